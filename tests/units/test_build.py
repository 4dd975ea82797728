"""What a report is built of, what it says at the door, and the exit status of its gates."""

import json
import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from orbench.base.messages import UserError
from orbench.report.build import build, find_sources, report
from orbench.report.published import is_on_or_bench
from orbench.report.standings import Report, Standing
from orbench.stats.intervals import wilson
from tests.conftest import write_csv
from tests.results import lost, make_standing, numbered
from tests.units.reported import TIERS, N, add_to_record, model, options


def built(given: Namespace) -> Report:
    return build(find_sources(given), given)


def gated(capsys: pytest.CaptureFixture[str], given: Namespace) -> str:
    """The exit status, and the lines of gates without their beginning."""
    status = report(given)
    lines = capsys.readouterr().err.splitlines()
    said = [line.removeprefix("gate: ") for line in lines if line.startswith("gate: ")]
    return f"{status} " + "; ".join(said)


# -- what a report holds ---------------------------------------------------------------------------


def test_analyses_come_with_what_they_need(tmp_path: Path) -> None:
    safe = model(tmp_path, "a", 18, columns=TIERS)
    toxic = model(tmp_path, "a", 30, texts="Rude", file="t.csv")
    ratings = [[text, "safe"] for text in numbered(N)]
    labels = [write_csv(tmp_path / "labels.csv", ("prompt", "label"), ratings)]
    shown = []
    for about in ({}, {"toxicity": labels, "pairs": True}):
        made = built(options(tmp_path, safe, toxic=(toxic,), **about))
        kinds = dict.fromkeys([rate.subset.kind for rate in made.rates])
        shown.append(", ".join([*kinds, *[str(one.kind) for one in made.associations]]))
        assert made.published == [] and not made.results[0].texts
    assert shown == [
        "overall, macro average, category, tier, trend",
        "overall, macro average, category, label, score, pairs, tier, auc, trend",
    ]
    assert made.label_lines == ["toxicity: 40 prompts with a score, 40 without"]
    assert len(built(options(tmp_path, safe, html=True)).results[0].texts) == N


def test_labels_without_results_are_nothing(tmp_path: Path) -> None:
    made = built(options(tmp_path, with_published=True, toxicity=[tmp_path / "nowhere.csv"]))
    assert len(made.published) == 32 and not made.rates


@pytest.mark.parametrize(("name", "expected"), [("or-bench-hard-1k", 32), ("other", 0)])
def test_published_models_stand_with_results_on_their_prompts(
    tmp_path: Path, name: str, expected: int
) -> None:
    paths = []
    for number, one in enumerate(("mine", name)):
        paths.append(model(tmp_path, f"m{number}", 5, texts=one, source={"name": one}))
    assert len(built(options(tmp_path, *paths, with_published=True)).published) == expected
    assert built(options(tmp_path, *paths)).published == []


# -- the door --------------------------------------------------------------------------------------


def baselines(given: Namespace) -> list[str]:
    """The sides of the sources, with a star for a baseline."""
    return [f"{one.side}{'*' * one.baseline}" for one in find_sources(given)]


def measured_in(folder: Path) -> Path:
    """A folder as measure.py leaves it."""
    model(folder, "a", 3, file="over_refusal/j/a.csv")
    model(folder, "a", 30, texts="Rude", file="toxic/j/a.csv")
    return folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [("maker/a", "*,"), ("maker/b (effort low)", ",*"), ("own (b) (effort low)", ",*")],
)
def test_a_baseline_is_a_model_of_the_report(tmp_path: Path, name: str, expected: str) -> None:
    a, b = model(tmp_path, "a", 3), model(tmp_path, "b", 4)
    add_to_record(b, under_test={"asked": "maker/b", "settings": "effort low"})
    given = options(tmp_path, a, f"own={b}" if "own" in name else b, baseline=name)
    assert ",".join(baselines(given)).replace("over_refusal", "") == expected


def test_a_baseline_is_a_folder_whose_results_are_not_given_anyway(tmp_path: Path) -> None:
    folder = measured_in(tmp_path / "may")
    given = options(tmp_path, model(tmp_path, "b", 4), baseline=str(folder))
    assert baselines(given) == ["over_refusal", "over_refusal*", "toxic*"]
    given = options(tmp_path, folder / "over_refusal", baseline=str(folder))
    assert baselines(given) == ["over_refusal", "toxic*"]
    other = model(folder, "b", 3, 30, file="toxic/j/b.csv")
    add_to_record(other, under_test={"asked": "maker/b", "settings": "low"})
    with pytest.raises(
        UserError, match=r"which of maker/a, maker/b \(low\)\? write --baseline MODEL"
    ):
        find_sources(options(tmp_path, baseline=str(folder)))
    one = options(tmp_path, baseline=f"maker/b (low)={folder}")
    assert baselines(one) == ["toxic*"]
    other.unlink()
    given.toxic.append(f"{folder}/toxic")
    with pytest.raises(UserError, match="is neither a model"):
        find_sources(given)


# -- gates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        ([], 0),
        (["over_refusal > 40"], 0),
        (["over_refusal > 12"], 4),
        (["over_refusal > 12; toxic < 50"], 4),
        (["over_refusal > 40", "toxic < 50"], 1),  # the toxic side was not measured
    ],
)
def test_gates_have_an_exit_status(tmp_path: Path, gates: list[str], status: int) -> None:
    assert report(options(tmp_path, model(tmp_path, "a", 14), fail_if=gates)) == status


def test_a_model_is_held_against_each_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [model(tmp_path, "o", 1), model(tmp_path, "n", 20)]
    paths.append(model(tmp_path, "o", 20, columns={"prompt": numbered(N + 1)[1:]}, file="e.csv"))
    given = options(tmp_path, *paths, baseline="maker/o", fail_if=["worse"])
    said = re.sub(" [+-].*?against", " against", gated(capsys, given))
    assert said == (
        "4 worse (over_refusal): not met; against maker/o (baseline), one-sided p 3.1e-07; "
        "worse (over_refusal): met; against maker/o (baseline), 2 prompts in one run only: "
        "+0.0 points over all"
    )
    given.fail_if = ["worse", "over_refusal > 60"]
    assert report(given) == 4
    given.fail_if = ["over_refusal > 60"]
    assert report(given) == 0


def test_a_model_without_any_result_is_undecided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "x"
    good = model(folder, "a", 0)
    for name in ("a", "b"):
        lost(folder / f"{name}.csv", ["Another prompt"])
    given = options(tmp_path, folder, fail_if=["over_refusal > 12"])
    found = gated(capsys, given)
    assert found.startswith("1 maker/a: over_refusal > 12: met; ")
    assert found.endswith(f"; {folder}/b_failed.csv: all gates: undecided; no row has a result")
    files = sorted(folder.glob("*.csv"))
    assert gated(capsys, options(tmp_path, *files, fail_if=["over_refusal > 12"])) == found
    given.gated = [str(good)]
    assert gated(capsys, given).startswith("0 over_refusal > 12: met")


def test_what_gates_say_is_written_for_programs_and_never_stays(tmp_path: Path) -> None:
    given = options(tmp_path, model(tmp_path, "a", 14), fail_if=["over_refusal > 12; toxic < 50"])
    report(given)
    file = tmp_path / "results" / "gate.json"
    limit, other = json.loads(file.read_text())
    low, high = (100 * end for end in wilson(14, N))
    shown = f"35.0 % [{low:.1f}, {high:.1f}]"
    figures = {"shown": shown, "n": N, "estimate": 35, "low": low, "high": high}
    assert limit.pop("figures") == pytest.approx(figures)
    about = {"gate": "over_refusal > 12", "model": "maker/a"}
    assert limit == about | {"status": "not met", "reasons": []}
    assert (other["status"], other["reasons"]) == ("undecided", ["not measured"])
    given.over_refusal = ["none="]
    with pytest.raises(UserError):
        report(given)
    assert not file.exists()


HARD = "or-bench-hard-1k (60 of 1,319)"


@pytest.mark.parametrize(
    ("safe", "toxic", "expected"),
    [(HARD, "or-bench-toxic", True), (HARD, "mine", False), ("mine", "or-bench-toxic", False)],
)
def test_both_sides_must_be_on_the_sets_of_the_published_models(
    safe: str, toxic: str, expected: bool
) -> None:
    standing = make_standing(safe=12, toxic=90)
    rates = []
    for rate, name in zip(standing.sides, (safe, toxic), strict=True):
        rates.append(replace(rate, result=replace(rate.result, prompts=name)))
    assert is_on_or_bench(Standing(rates)) is expected
