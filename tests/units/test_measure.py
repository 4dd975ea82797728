"""How measure.py puts stages together: the runs, their files, and what the report is given."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

import measure
from orbench.base.messages import UserError
from orbench.base.prompts import ids_of
from orbench.report import build
from orbench.stages.run import Outcome
from tests.conftest import write_csv

SAFE, TOXIC = "over_refusal", "toxic"


def parsed(folder: Path, *words: str) -> Namespace:
    """The flags of a run in a folder with p.csv and t.csv."""
    for name, text in (("p.csv", "Why?"), ("t.csv", "Who?")):
        write_csv(folder / name, ("prompt",), [[text]])
    flags = [f"--prompts={folder / 'p.csv'}", f"--output_dir={folder / 'out'}", *words]
    args: Namespace = measure.parser().parse_args(["--model=maker/m", *flags])
    return args


def all_steps(folder: Path, *words: str, panel: tuple[str, ...] = ()) -> list[measure.Step]:
    args = parsed(folder, *words)
    args.panel = list(panel)
    args.votes = folder / "votes"
    prompts = {SAFE: str(folder / "p.csv"), TOXIC: str(folder / "t.csv")}
    return list(measure.steps(prompts, args))


def paths(steps: list[measure.Step], folder: Path) -> list[str]:
    return [str(step.flags["output_path"].relative_to(folder)) for step in steps]


# -- the runs --------------------------------------------------------------------------------------


def test_each_side_is_asked_judged_and_labeled(tmp_path: Path) -> None:
    steps = all_steps(tmp_path, panel=("j1", "j2"))
    assert [(one.side, one.script) for one in steps] == [
        (side, script)
        for side in (SAFE, TOXIC)
        for script in (measure.ALIGN, measure.CHECK, measure.MODERATE)
    ]
    assert paths(steps, tmp_path)[:3] == [
        "out/responses/over_refusal/p/maker_m.csv",
        "out/over_refusal/rules/p/maker_m.csv",
        "votes/over_refusal/p.csv",
    ]
    _, check, moderate = steps[:3]
    assert check.flags["input_file"] == steps[0].flags["output_path"]
    assert check.flags["check_model"] == "rules" and check.flags["rubric"] == "three"
    assert moderate.flags["moderator_model"] == "j1,j2"
    assert moderate.flags["input_file"] == steps[0].flags["input_file"]


def test_without_a_panel_nothing_is_labeled(tmp_path: Path) -> None:
    scripts = [one.script for one in all_steps(tmp_path)]
    assert scripts == [measure.ALIGN, measure.CHECK] * 2


def test_flags_reach_the_stages_that_have_them(tmp_path: Path) -> None:
    flags = ("--limit=3", "--overwrite", "--batch", "--temperature=0.5", "--general_judge")
    align, check, moderate, *_ = all_steps(tmp_path, *flags, "--quiet", panel=("j",))
    given = [{name for name, value in one.flags.items() if value is not None} for one in
             (align, check, moderate)]  # fmt: skip
    assert all({"overwrite", "quiet"} <= names for names in given)
    assert [("limit" in names, "temperature" in names) for names in given] == [
        (True, True),
        (False, False),
        (True, False),
    ]
    assert [("batch" in names, "general_judge" in names) for names in given] == [
        (True, False),
        (True, True),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("flags", "folder"),
    [
        (("--judge=gpt-5.4", "--rubric=graded"), "gpt-5.4_graded"),
        (("--judge=rules+org/j",), "rules+org_j"),
    ],
)
def test_each_judge_and_rubric_has_a_folder(
    tmp_path: Path, flags: tuple[str, ...], folder: str
) -> None:
    check = all_steps(tmp_path, *flags)[1]
    assert check.flags["output_path"] == tmp_path / f"out/over_refusal/{folder}/p/maker_m.csv"


def test_settings_are_in_the_files_name_and_long_ones_as_a_hash(tmp_path: Path) -> None:
    assert measure.responses_in(tmp_path, {"model": "org/m"}) == tmp_path / "org_m.csv"
    of_model = {"model": "org/m", "temperature": "0.70", "reasoning_effort": "high"}
    named = measure.responses_in(tmp_path, of_model)
    assert named.name == "org_m__effort_high__temperature_0.7.csv"
    long = of_model | {"extra_body": '{"one": "%s"}' % ("x" * 60)}
    names = {measure.responses_in(tmp_path, long).name}
    names.add(measure.responses_in(tmp_path, long | {"max_tokens": 9}).name)
    assert len(names) == 2
    assert all(len(name) == len("org_m__settings_123456.csv") for name in names)


def test_prompts_that_were_answered_under_another_name_stop_the_run(tmp_path: Path) -> None:
    steps = all_steps(tmp_path)
    asked = {SAFE: ids_of([{"prompt": "Why?"}]), TOXIC: set[str]()}
    measure.check_names(steps, asked)
    own = steps[0].flags["output_path"]
    other = own.parent.parent / "q" / own.name
    other.parent.mkdir(parents=True)
    write_csv(other, ("prompt",), [["Why?"]])
    with pytest.raises(UserError, match="name their file q again to use them"):
        measure.check_names(steps, asked)
    write_csv(other, ("prompt",), [["Why?"], ["Other?"]])
    measure.check_names(steps, asked)
    write_csv(other, ("prompt",), [["Other?"]])
    write_csv(other, ("prompt",), [["Why?"]])
    own.parent.mkdir()
    write_csv(own, ("prompt",), [["Why?"]])
    measure.check_names(steps, asked)


# -- running them ----------------------------------------------------------------------------------


def outcomes(monkeypatch: pytest.MonkeyPatch, *given: tuple[int, bool]) -> list[str]:
    """Let runs end with a status, with a result or without; returns the scripts that are run."""
    left = list(given)
    run = list[str]()

    def of_step(script: str, flags: dict[str, Any], brief: bool) -> Outcome:
        run.append(script)
        status, has_result = left.pop(0)
        return Outcome(status, Path("x.csv") if has_result else None)

    monkeypatch.setattr(measure, "run", of_step)
    monkeypatch.setattr(measure, "add_side", lambda path, side: None)
    monkeypatch.setattr(measure, "write_report", lambda args, checked: len(checked))
    return run


FINE = (0, True)


@pytest.mark.parametrize(
    ("given", "status", "runs"),
    [
        ([FINE] * 4, 2, 4),
        ([(3, True), FINE, FINE, (3, True)], 2, 4),  # some rows failed
        ([FINE, (1, False)], 1, 2),
        ([(0, False), FINE, FINE], 0, 3),  # a batch is under way: nothing to judge yet
        ([FINE, (0, False), FINE, FINE], 0, 4),
    ],
)
def test_a_run_that_stops_ends_it_and_one_in_a_batch_puts_off_the_report(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: list[tuple[int, bool]],
    status: int,
    runs: int,
) -> None:
    run = outcomes(monkeypatch, *given)
    assert measure.measure(all_steps(tmp_path), parsed(tmp_path)) == status
    assert len(run) == runs


def test_no_gate_is_decided_while_a_batch_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes(monkeypatch, FINE, (0, False), FINE, FINE)
    args = parsed(tmp_path, "--fail_if", "over_refusal > 12")
    with pytest.raises(UserError, match="no gate can be decided before all answers are there"):
        measure.measure(all_steps(tmp_path), args)


# -- the report ------------------------------------------------------------------------------------


def reported(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> build.Options:
    """The options that the report is given."""
    given = list[build.Options]()

    def report(options: build.Options) -> int:
        given.append(options)
        return 4

    monkeypatch.setattr(build, "report", report)
    args = parsed(folder, *words)
    args.votes = folder / "votes"
    args.with_published = False
    args.command = ["measure.py"]
    assert measure.write_report(args, ["a.csv"]) == 4
    return given[0]


def test_the_report_is_of_both_sides_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out" / SAFE).mkdir(parents=True)
    options = reported(tmp_path, monkeypatch)
    assert options.given == {SAFE: [str(tmp_path / "out" / SAFE)]}
    assert (options.labels, options.baseline, options.pairs, options.gates) == ([], "", False, [])
    assert options.gated == ["a.csv"] and not options.with_published
    outputs = options.outputs
    assert (outputs.folder, outputs.html, outputs.names_page) == (tmp_path / "out", True, False)
    assert outputs.pictures and outputs.command == ["measure.py"]
    (tmp_path / "out" / TOXIC).mkdir()
    flags = ("--pairs", "--baseline=old", "--fail_if", "worse")
    options = reported(tmp_path, monkeypatch, *flags)
    assert list(options.given) == [SAFE, TOXIC]
    assert (options.baseline, options.pairs, options.gates) == ("old", True, ["worse"])


def test_labels_are_the_files_given_and_the_votes_but_no_failed_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes = tmp_path / "votes" / SAFE
    votes.mkdir(parents=True)
    for name in ("p.csv", "p_failed.csv", "b.csv"):
        write_csv(votes / name, ("prompt",), [["Why?"]])
    options = reported(tmp_path, monkeypatch, "--labels", "people.csv", "j1")
    assert options.labels == [Path("people.csv"), votes / "b.csv", votes / "p.csv"]
    assert reported(tmp_path, monkeypatch).labels == []
