"""How measure.py puts stages together: the runs, their files, and what the report is given."""

from argparse import Namespace
from itertools import product
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


def texts(path: Path, *prompts: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_csv(path, ("prompt",), [[prompt] for prompt in prompts])


def parsed(folder: Path, words: str = "") -> Namespace:
    """The flags of a run in a folder with p.csv and t.csv."""
    prompts = texts(folder / "p.csv", "Why?")
    texts(folder / "t.csv", "Who?")
    flags = ["--model=maker/m", f"--prompts={prompts}", f"--output_dir={folder / 'out'}"]
    args: Namespace = measure.parser().parse_args([*flags, *words.split()])
    (args.model,) = args.model
    args.votes = folder / "votes"
    args.gates = args.fail_if
    args.label_files = [folder / "people.csv"]
    return args


def all_steps(folder: Path, words: str = "", panel: str = "") -> list[measure.Step]:
    args = parsed(folder, words)
    args.panel = panel.split()
    args.votes = folder / "votes"
    args.sides = {SAFE: str(folder / "p.csv"), TOXIC: str(folder / "t.csv")}
    return list(measure.steps(args))


# -- the runs --------------------------------------------------------------------------------------


def test_each_side_is_asked_judged_and_labeled(tmp_path: Path) -> None:
    steps = all_steps(tmp_path, panel="j1 j2")
    scripts = [measure.ALIGN, measure.CHECK, measure.MODERATE]
    runs = [(one.side, one.script) for one in steps]
    assert runs == [*product((SAFE, TOXIC), scripts)]
    align, check, moderate = (one.flags for one in steps[:3])
    responses = tmp_path / "out/responses/over_refusal/p/maker_m.csv"
    assert align["output_path"] == check["input_file"] == responses
    assert moderate["input_file"] == align["input_file"]
    expected = {
        "output_path": tmp_path / "out/over_refusal/rules/p/maker_m.csv",
        "check_model": "rules",
        "rubric": "three",
    }
    assert expected.items() < check.items()
    votes = tmp_path / "votes/over_refusal/p.csv"
    assert (moderate["output_path"], moderate["moderator_model"]) == (votes, "j1,j2")
    assert [one.script for one in all_steps(tmp_path)] == scripts[:2] * 2


def test_flags_reach_the_stages_that_have_them(tmp_path: Path) -> None:
    names = ["limit", "temperature", "batch", "general_judge", "overwrite", "quiet"]
    words = "--limit=3 --temperature=0.5 --batch --general_judge --overwrite --quiet"
    given = []
    for step in all_steps(tmp_path, words, panel="j")[:3]:
        given.append([name for name in names if step.flags.get(name) is not None])
    assert given == [
        ["limit", "temperature", "batch", "overwrite", "quiet"],
        ["batch", "general_judge", "overwrite", "quiet"],
        ["limit", "general_judge", "overwrite", "quiet"],
    ]


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("--judge=gpt-5.4 --rubric=graded", "gpt-5.4_graded"),
        ("--judge=rules+org/j", "rules+org_j"),
    ],
)
def test_each_judge_and_rubric_has_a_folder(tmp_path: Path, words: str, folder: str) -> None:
    check = all_steps(tmp_path, words)[1]
    assert check.flags["output_path"] == tmp_path / f"out/over_refusal/{folder}/p/maker_m.csv"


def test_settings_are_in_the_files_name_and_long_ones_as_a_hash(tmp_path: Path) -> None:
    of_model = {"model": "org/m", "temperature": "0.70", "reasoning_effort": "high"}
    long = of_model | {"extra_body": '{"one": "%s"}' % ("x" * 60)}
    settings: list[dict[str, Any]] = [{"model": "org/m"}, of_model, long, long | {"samples": 9}]
    plain, named, *hashed = map(measure.responses_file, settings)
    assert (plain, named) == ("org_m.csv", "org_m__effort_high__temperature_0.7.csv")
    assert [len(name) for name in hashed] == [len("org_m__settings_123456.csv")] * 2
    assert hashed[0] != hashed[1]


def test_prompts_that_were_answered_under_another_name_stop_the_run(tmp_path: Path) -> None:
    steps = all_steps(tmp_path)
    asked = {SAFE: ids_of([{"prompt": "Why?"}]), TOXIC: set[str]()}
    measure.check_names(steps, asked)
    own = steps[0].flags["output_path"]
    other = texts(own.parent.parent / "q" / own.name, "Why?")
    with pytest.raises(UserError, match="name their file q again to use them"):
        measure.check_names(steps, asked)
    texts(other, "Why?", "Other?")
    measure.check_names(steps, asked)
    texts(other, "Why?")
    texts(own, "Why?")
    measure.check_names(steps, asked)


# -- running them ----------------------------------------------------------------------------------


def measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ends: str, words: str = ""
) -> tuple[int, int]:
    """The exit status, and how many runs there were. ends: of each run its status, and a comma if
    it has no result; the report's is the number of files to check.
    """
    left = ends.split()

    def run(script: str, flags: dict[str, Any], prompts: str) -> Outcome:
        end = left.pop(0)
        return Outcome(int(end[0]), None if "," in end else Path("x.csv"))

    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(measure, "add_to_record", lambda path, part, **entries: None)
    monkeypatch.setattr(measure, "write_report", lambda args, checked: len(checked))
    try:
        status = measure.measure(all_steps(folder), parsed(folder, words), [])
    except SystemExit as end:
        status = int(str(end))
    return status, len(ends.split()) - len(left)


@pytest.mark.parametrize(
    ("ends", "status", "runs"),
    [
        ("0 0 0 0", 2, 4),
        ("3 0 0 3", 2, 4),  # some rows failed
        ("0 1, 0 0", 1, 2),
        ("0, 0 0 0", 0, 3),  # a batch is under way: nothing to judge yet
        ("0 0, 0 0", 0, 4),
    ],
)
def test_a_run_that_stops_ends_it_and_one_in_a_batch_puts_off_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, status: int, runs: int
) -> None:
    assert measured(tmp_path, monkeypatch, ends) == (status, runs)


def test_no_gate_is_decided_while_a_batch_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="no gate can be decided before all answers are there"):
        measured(tmp_path, monkeypatch, "0 0, 0 0", "--fail_if toxic<1")


# -- the report ------------------------------------------------------------------------------------


def reported(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str = "") -> Namespace:
    """The options that the report is given."""
    given = list[Namespace]()
    monkeypatch.setattr(build, "report", given.append)
    args = parsed(folder, words)
    args.sides = {}
    args.command = ["measure.py"]
    measure.write_report(args, ["a.csv"])
    return given[0]


def test_the_report_is_of_both_sides_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    (out / SAFE).mkdir(parents=True)
    options = reported(tmp_path, monkeypatch)
    about_it = {"output_dir": out, "command": ["measure.py"], "gated": ["a.csv"], "html": True}
    given = {
        "over_refusal": [str(out / SAFE)],
        "toxic": [],
        "merged": [],
        "toxicity": [tmp_path / "people.csv"],
    }
    expected = about_it | given | {"fail_if": [], "require": [], "tells": "results.html"}
    assert vars(options) | expected == vars(options)
    (out / TOXIC).mkdir()
    options = reported(tmp_path, monkeypatch, "--pairs --baseline=old --fail_if worse")
    assert options.toxic == [str(out / TOXIC)]
    assert (options.baseline, options.pairs, options.fail_if) == ("old", True, ["worse"])


def test_labels_are_the_files_given_and_the_votes_but_no_failed_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    votes = tmp_path / "votes" / SAFE
    for name in ("p.csv", "p_failed.csv", "b.csv"):
        texts(votes / name, "Why?")
    options = reported(tmp_path, monkeypatch)
    assert options.toxicity == [tmp_path / "people.csv", votes / "b.csv", votes / "p.csv"]
