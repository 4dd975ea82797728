"""What a report is built of, what it says at the door, and the exit status of its gates."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orbench.base.messages import UserError
from orbench.report.build import Options, build, find_sources, report
from orbench.report.measures import Associated, Compared, Kind
from orbench.report.standings import Report
from orbench.report.write import Outputs
from tests.conftest import write_csv
from tests.results import ANSWER, DIRECT, lost, numbered, written

N = 36


def options(folder: Path, *safe: Path, toxic: tuple[Path, ...] = (), **about: Any) -> Options:
    """Options of a report of tables."""
    given = {"over_refusal": [str(path) for path in safe], "toxic": [str(path) for path in toxic]}
    outputs = Outputs(folder / "results", ["plot_results.py"], pictures=False)
    return Options(given, outputs, **about)


def model(folder: Path, name: str, refused: int, n: int = N, /, **about: Any) -> Path:
    """A result of maker/NAME in NAME.csv; t.csv is about other prompts."""
    verdicts = [DIRECT] * refused + [ANSWER] * (n - refused)
    file = about.pop("file", f"{name}.csv")
    return written(folder, file, verdicts, f"maker/{name}", **about)


def add_to_record(path: Path, **entries: Any) -> None:
    file = path.with_suffix(".run.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))


def built(given: Options) -> Report:
    return build(find_sources(given), given)


def gates_said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of gates, without their beginning."""
    lines = capsys.readouterr().err.splitlines()
    return [line.removeprefix("gate: ") for line in lines if line.startswith("gate: ")]


# -- what a report holds ---------------------------------------------------------------------------


def kinds(made: Report) -> set[str]:
    return {str(rate.subset.kind) for rate in made.rates}


def test_analyses_come_with_what_they_need(tmp_path: Path) -> None:
    tiers = {"tier": ["1", "2"] * 18, "seed_id": [str(n // 2) for n in range(N)]}
    safe = model(tmp_path, "a", 18, columns=tiers)
    toxic = model(tmp_path, "t", 30)
    add_to_record(toxic, under_test={"asked": "maker/a"})
    ratings = [[text, "safe"] for text in numbered(N)]
    labels = [write_csv(tmp_path / "labels.csv", ("prompt", "label"), ratings)]
    plain = built(options(tmp_path, safe, toxic=(toxic,)))
    assert kinds(plain) == {"overall", "macro average", "category", "tier"}
    assert [one.kind for one in plain.associations] == [Associated.TREND]
    assert plain.label_lines == [] and plain.published == []
    whole = built(options(tmp_path, safe, toxic=(toxic,), labels=labels, pairs=True))
    assert kinds(whole) == kinds(plain) | {"label", "score", "pairs"}
    assert [one.kind for one in whole.associations] == [Associated.AUC, Associated.TREND]
    assert whole.label_lines == ["toxicity: 36 prompts with a score, 36 without"]
    tail = [rate.subset.kind for rate in whole.rates][-2:]
    assert tail == [Kind.TIER, Kind.TIER]
    assert not whole.results[0].texts
    page = replace(options(tmp_path, safe).outputs, html=True)
    assert len(built(replace(options(tmp_path, safe), outputs=page)).results[0].texts) == N


def test_labels_without_results_are_nothing(tmp_path: Path) -> None:
    labels = [tmp_path / "nowhere.csv"]
    made = built(options(tmp_path, with_published=True, labels=labels))
    assert len(made.published) == 32 and not made.rates


def test_models_are_compared_and_sets_are(tmp_path: Path) -> None:
    earlier = model(tmp_path, "a", 20, columns={"prompt": [f"June {n}" for n in range(N)]})
    later = [model(tmp_path, "a", 3, file="b/a.csv"), model(tmp_path, "c", 4)]
    made = built(options(tmp_path, earlier, *later))
    found = [(one.family.kind, one.a.result.label, one.b.result.label) for one in made.comparisons]
    assert found == [
        (Compared.MODELS, "maker/a", "maker/c"),
        (Compared.SETS, "maker/a", "maker/a"),
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("or-bench-hard-1k", "mine"), 32), (("mine", "other"), 0)],
)
def test_published_models_stand_with_results_on_their_prompts(
    tmp_path: Path, names: tuple[str, str], expected: int
) -> None:
    paths = []
    for number, name in enumerate(names):
        source = {"source": {"name": name}}
        texts = {"prompt": [f"{name} {n}" for n in range(N)]}
        paths.append(model(tmp_path, f"m{number}", 5, columns=texts, **source))
    made = built(options(tmp_path, *paths, with_published=True))
    assert {one.prompts for one in made.board} == {*names}
    assert len(made.published) == expected
    assert built(options(tmp_path, *paths)).published == []


# -- the door --------------------------------------------------------------------------------------


def test_files_of_failed_rows_alone_are_no_results(tmp_path: Path) -> None:
    path = model(tmp_path, "a", 3)
    lost(path, ["x"])
    failed = path.with_name("a_failed.csv")
    with pytest.raises(UserError, match="only files of failed rows were given"):
        find_sources(options(tmp_path, failed))
    given = options(tmp_path, failed, with_published=True)
    assert find_sources(given) == []
    with pytest.raises(UserError, match="only files of failed rows"):
        find_sources(replace(given, outputs=replace(given.outputs, html=True)))
    assert [one.path for one in find_sources(options(tmp_path, failed, path))] == [path]


def measured_in(folder: Path, name: str, safe: int, toxic: int = 30) -> None:
    """A folder as measure.py leaves it."""
    model(folder, name, safe, file=f"over_refusal/j/{name}.csv")
    path = model(folder, name, toxic, columns={"prompt": [f"Rude {n}" for n in range(N)]},
                 file=f"toxic/j/{name}.csv")  # fmt: skip
    assert path.exists()


def test_a_baseline_is_a_model_or_a_folder_of_results(tmp_path: Path) -> None:
    a, b = model(tmp_path, "a", 3), model(tmp_path, "b", 4)
    add_to_record(b, under_test={"asked": "maker/b", "settings": "effort low"})
    for name, expected in (("maker/a", [True, False]), ("maker/b (effort low)", [False, True])):
        sources = find_sources(options(tmp_path, a, b, baseline=name))
        assert [one.baseline for one in sources] == expected
    given = options(tmp_path, a, b, baseline="own")
    given.given["over_refusal"][0] = f"own={a}"
    assert [one.baseline for one in find_sources(given)] == [True, False]
    measured_in(tmp_path / "may", "a", 3)
    sources = find_sources(options(tmp_path, b, baseline=str(tmp_path / "may")))
    assert [(one.side, one.baseline) for one in sources] == [
        ("over_refusal", False),
        ("over_refusal", True),
        ("toxic", True),
    ]


@pytest.mark.parametrize("name", ["maker/b", "maker/c", "empty", "a.csv"])
def test_any_other_baseline_stops_the_report(tmp_path: Path, name: str) -> None:
    path = model(tmp_path, "a", 3)
    add_to_record(path, under_test={"asked": "maker/b", "settings": "effort low"})
    (tmp_path / "empty").mkdir()
    given = options(tmp_path, path, baseline=str(tmp_path / name) if "/" not in name else name)
    with pytest.raises(UserError, match="is neither a model as the report names it nor a folder"):
        find_sources(given)


def test_results_given_anyway_are_no_baseline_of_themselves(tmp_path: Path) -> None:
    measured_in(tmp_path / "may", "a", 3)
    folder = str(tmp_path / "may")
    given = options(tmp_path, baseline=folder)
    given.given["over_refusal"].append(f"{folder}/over_refusal")
    assert [one.baseline for one in find_sources(given)] == [False, True]
    given.given["toxic"].append(f"{folder}/toxic")
    with pytest.raises(UserError, match="is neither a model"):
        find_sources(given)


# -- gates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "status"),
    [
        ((), 0),
        (("over_refusal > 40",), 0),
        (("over_refusal > 12",), 4),
        (("over_refusal > 12; toxic < 50",), 4),
        (("over_refusal > 40", "toxic < 50"), 1),  # the toxic side was not measured
    ],
)
def test_gates_have_an_exit_status(tmp_path: Path, gates: tuple[str, ...], status: int) -> None:
    assert report(options(tmp_path, model(tmp_path, "a", 12), gates=gates)) == status


def test_a_model_is_held_against_each_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = model(tmp_path, "o", 1), model(tmp_path, "n", 20)
    earlier = model(tmp_path, "o", 20, columns={"prompt": numbered(N + 1)[1:]}, file="e.csv")
    given = options(tmp_path, earlier, old, new, baseline="maker/o", gates=["worse"])
    assert report(given) == 4
    (line,) = gates_said(capsys)
    assert line.startswith("maker/n: over-refusal rate is worse than that of maker/o (baseline): +")
    assert report(replace(given, gates=["worse", "over_refusal > 60"])) == 4
    assert report(replace(given, gates=["over_refusal > 60"])) == 0


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"scripted": True}, "scripted: measures nothing"),
        ({"under_test": {"asked": "maker/o", "unranked": "20 identical responses"}}, "20 ident"),
    ],
)
def test_a_baseline_in_doubt_decides_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], about: dict[str, Any], reason: str
) -> None:
    old, new = model(tmp_path, "o", 1), model(tmp_path, "n", 1)
    add_to_record(old, **about)
    assert report(options(tmp_path, old, new, baseline="maker/o", gates=["worse"])) == 1
    (line,) = gates_said(capsys)
    assert line.startswith(f"maker/n: over-refusal rate cannot be decided: {reason}")


def test_a_copy_of_the_baseline_is_ranked_and_that_of_a_new_model_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"response": [f"Fold {n}" for n in range(N)]}
    old, new, copy = (model(tmp_path, name, 3, columns=texts) for name in "onc")
    given = options(tmp_path, old, new, baseline="maker/o", gates=["worse"])
    assert report(given) == 0 and gates_said(capsys) == []
    given.given["over_refusal"].append(str(copy))
    assert report(given) == 1
    (line,) = gates_said(capsys)
    assert line.startswith("maker/c: ") and "decided: the same responses as maker/n" in line


def test_too_many_unscored_rows_decide_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = model(tmp_path, "o", 3), model(tmp_path, "n", 0, 30)
    lost(new, numbered(N + 3)[30:])
    assert report(options(tmp_path, old, new, baseline="maker/o", gates=["worse"])) == 1
    assert gates_said(capsys) == [
        "maker/n: over-refusal rate cannot be decided: too many rows are unscored"
    ]
