"""Labels of prompts: what panels and people say, and how refusals go with it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped]

from orbench.base.messages import UserError
from orbench.report.analyses.labels import (
    AGREEMENT,
    Label,
    Labels,
    agreement_line,
    labels_of,
    read_labels,
    toxicity,
)
from orbench.report.measures import Analysis, Kind, Subset
from orbench.report.results import TOXIC, Result
from orbench.stats.core import Array
from orbench.stats.intervals import wilson
from tests.conftest import write_csv
from tests.results import prompts_of, responses, result_of, standing_of

NAN = float("nan")


def labels(score: Any, toxic: Any = None, weight: Any = None) -> Labels:
    """Labels of as many prompts; toxic: the score, if not said otherwise."""
    score = np.array(score, float)
    decided = score if toxic is None else np.array(toxic, float)
    return Labels(score, np.ones(len(score)) if weight is None else np.array(weight), decided, [])


def analysis(given: Labels, *results: Result) -> Analysis:
    """The analysis of one model, its safe side first."""
    return toxicity(results, [standing_of(*results)], given)


def shown(found: Analysis, kind: Kind) -> dict[str, tuple[int, float]]:
    """The prompts and the refused share of each subset that has prompts."""
    rates = [one for one in found.rates if one.subset.kind is kind and one.mean.prompts]
    return {one.subset.value: (one.mean.prompts, round(one.mean.rate, 9)) for one in rates}


def as_toxic(result: Result, first: int = 0, **about: Any) -> Result:
    """The same responses on the other side, to the prompts from `first` on."""
    moved = replace(result.responses, prompt=result.responses.prompt + first)
    return replace(result, number=1, side=TOXIC, responses=moved, **about)


# -- by agreement and score ------------------------------------------------------------------------


SCORES = [0, 0, 1, 0.5, NAN, 0.2]


@pytest.mark.parametrize(
    ("side", "agreed", "contradicted"), [("safe", (2, 0.5), (1, 0)), ("toxic", (1, 0), (2, 0.5))]
)
def test_labels_agree_with_a_side_dispute_it_or_contradict_it(
    side: str, agreed: tuple[int, float], contradicted: tuple[int, float]
) -> None:
    result = result_of(responses([0.0, 1, 0, 1, 1, 1]))
    found = toxicity([as_toxic(result) if side == "toxic" else result], [], labels(SCORES))
    assert tuple(rate.subset.value for rate in found.rates) == AGREEMENT
    expected = {"agreed": agreed, "disputed": (2, 1), "contradicted": contradicted}
    assert shown(found, Kind.LABEL) == expected | {"no_score": (1, 1)}


def test_without_a_score_a_decided_label_is_none() -> None:
    found = labels([NAN, 0], [0, 0]).agreement(result_of(responses([0.0, 1.0])))
    assert found.tolist() == ["no_score", "agreed"]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0, 0.25, 0.5, 0.75, 1, NAN], ["0", "0.25", "0.5", "0.75", "1"]),
        ([0, 0.19, 0.2, 0.4, 0.79, 1], ["0.1", "0.3", "0.5", "0.7", "0.9"]),
        ([1 / 3, 2 / 3, 1 / 3 + 1e-12, NAN, 0, 0], ["0", "0.3333333", "0.6666667"]),
    ],
)
def test_of_more_than_five_scores_the_curve_has_five_bins(
    scores: list[float], expected: list[str]
) -> None:
    found = analysis(labels(scores), result_of(responses([0.0, 1, 0, 1, 0, 1])))
    curve = shown(found, Kind.SCORE)
    assert list(curve) == expected
    assert sum(prompts for prompts, _ in curve.values()) == np.isfinite(scores).sum()


def test_only_scores_of_prompts_that_were_measured_fill_the_bins() -> None:
    result = result_of(responses([0.0, 1, 0, 1]))
    given = labels([0, 0.3, 0.5, 1, 0.1, 0.2, 0.6])
    assert list(shown(analysis(given, result), Kind.SCORE)) == ["0", "0.3", "0.5", "1"]
    other = as_toxic(result_of(responses([0.0, 1, 0])), 4)
    curve = shown(analysis(given, result, other), Kind.SCORE)
    assert curve == {"0.1": (2, 0), "0.3": (2, 1), "0.5": (1, 0), "0.7": (1, 0), "0.9": (1, 1)}


def test_a_curve_is_of_both_sides_and_its_weights_count() -> None:
    safe = result_of(responses([1.0, 0, 0]))
    toxic = as_toxic(result_of(responses([1.0, 1, 0])), 3)
    found = analysis(labels([0, 0, 1, 0, 1, 1], weight=[1, 3, 1, 1, 1, 3]), safe, toxic)
    rates = [one for one in found.rates if one.subset.kind is Kind.SCORE]
    assert {one.result.side.name for one in rates} == {"both"}
    assert shown(found, Kind.SCORE) == {"0": (3, 2 / 5), "1": (3, 1 / 5)}
    of_safe = [one for one in found.rates if one.subset == Subset(Kind.LABEL, "agreed")]
    assert of_safe[0].mean.rate == 1 / 4 and of_safe[0].with_unscored is None


# -- the AUC -------------------------------------------------------------------------------------


def area(refused: list[float], score: list[float], **columns: Any) -> Any:
    (found,) = analysis(labels(score), result_of(responses(refused, **columns))).associations
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_auc_is_the_mann_whitney_statistic(seed: int) -> None:
    random = np.random.default_rng(seed)
    score = random.integers(0, 5, 90) / 4
    refused = (random.random(90) < 0.2 + 0.5 * score).astype(float)
    score[:3] = NAN
    refused[3:5] = NAN
    found = area(list(refused), list(score))
    known = np.isfinite(score) & np.isfinite(refused)
    by_refused = score[known & (refused == 1)]
    by_answered = score[known & (refused == 0)]
    statistic = mannwhitneyu(by_refused, by_answered).statistic
    assert found.estimate == pytest.approx(statistic / (len(by_refused) * len(by_answered)))
    assert found.n == known.sum() == 85
    assert found.interval.low < found.estimate < found.interval.high


def test_a_score_that_separates_or_nothing_to_separate() -> None:
    assert area([0, 0, 1, 1] * 5, [0, 0.2, 0.9, 1] * 5).estimate == 1
    assert area([1, 1, 0, 0] * 5, [0, 0.2, 0.9, 1] * 5).estimate == 0
    none = area([0.0] * 20, [0, 1] * 10)
    assert np.isnan(none.estimate) and (*none.interval,) == (0, 1)
    assert none.n == 20


def test_prompts_count_once_however_many_responses_they_have() -> None:
    found = area([1, 0, 1, 1], [0, 1], prompt=[0, 0, 1, 1], seed=[0, 0, 1, 1])
    assert found.n == 2
    # Of each prompt a share: 1/2 and 1 refused; the only answer has score 0.
    assert found.estimate == pytest.approx((0.5 * 0.5 + 1) / 1.5)


# -- files ---------------------------------------------------------------------------------------


def panel(folder: Path, name: str, votes: dict[str, list[str]], *judges: str) -> Path:
    """A file of stage 3 with these columns, and the record of its judges."""
    rows = list(zip(*votes.values(), strict=True))
    path = write_csv(folder / name, list(votes), rows)
    if judges:
        models = [{"asked": judge, "id": judge, "base_url": "http://a"} for judge in judges]
        record = {"stage": "moderator", "parameters": {"column": "prompt"}, "models": models}
        path.with_suffix(".run.json").write_text(json.dumps(record))
    return path


def scores(*paths: Path, texts: str = "abcd") -> list[float | None]:
    found = labels_of(prompts_of(list(texts)), paths)
    return [None if np.isnan(score) else round(float(score), 4) for score in found.score]


def votes_of(*cells: str) -> dict[str, list[str]]:
    return {"prompt": list("abcd"[: len(cells)]), "is_toxic": list(cells)}


def test_votes_of_several_files_are_joined_by_judge(tmp_path: Path) -> None:
    first = panel(tmp_path, "1.csv", votes_of("False", "True", "True"), "j1")
    second = panel(tmp_path, "2.csv", votes_of("False", "False", "True", "True"), "j2")
    assert scores(first) == [0, 1, 1, None]
    assert scores(first, second) == [0, 0.5, 1, None]
    again = panel(tmp_path, "3.csv", votes_of("True", "True", "True"), "j1")
    assert scores(first, again) == [0.5, 1, 1, None]
    assert scores(first, second, first) == scores(first, second)


def test_files_without_a_record_are_one_judge_each_and_a_copy_is_no_other(tmp_path: Path) -> None:
    first = panel(tmp_path, "1.csv", votes_of("False", "True"))
    copy = panel(tmp_path, "2.csv", votes_of("False", "True"))
    other = panel(tmp_path, "3.csv", votes_of("True", "True"))
    assert scores(first, copy) == [0, 1, None, None]
    assert scores(first, copy, other) == [0.5, 1, None, None]


def test_a_panels_columns_are_its_judges_votes(tmp_path: Path) -> None:
    votes = votes_of("True", "True", "False") | {
        "is_toxic_j3": ["True", "False", "False"],
        "is_toxic_j4": ["True", "True", ""],
    }
    assert scores(panel(tmp_path, "p.csv", votes, "j3", "j4")) == [1, 0.5, None, None]


def people(folder: Path, name: str = "people.csv", **columns: str) -> Path:
    """Ratings: columns of cells parted by spaces, `~` for an empty one."""
    cells = {}
    for column, text in columns.items():
        cells[column] = [cell.removeprefix("~") for cell in text.split(" ")]
    return write_csv(folder / name, list(cells), list(zip(*cells.values(), strict=True)))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"label": "safe TOXIC Safe toxic"}, [0, 1, 0, 1]),
        ({"score": "0 1 0.25 1e-1"}, [0, 1, 0.25, 0.1]),
        ({"score": "0.4 ~ 1 ~", "label": "toxic toxic safe ~"}, [0.4, 1, 1, None]),
        ({"label": "0 1 0.5 safe", "weight": "1 2 ~ 0"}, [0, 1, 0.5, None]),
    ],
)
def test_people_give_labels_or_scores(
    tmp_path: Path, columns: dict[str, str], expected: list[float | None]
) -> None:
    assert scores(people(tmp_path, prompt="a b c d", **columns)) == expected


def test_people_decide_by_majority_and_weights_are_averaged(tmp_path: Path) -> None:
    path = people(tmp_path, prompt="a a a b b c", score="1 1 0 1 0 0.4", weight="1 2 6 4 4 8")
    found = labels_of(prompts_of(list("abcd")), [path])
    assert found.score.round(4).tolist()[:3] == [0.6667, 0.5, 0.4]
    assert found.toxic[[0, 2]].tolist() == [1, 0] and np.isnan(found.toxic[[1, 3]]).all()
    assert found.weight.tolist() == [3, 4, 8, 1]
    assert found.lines == ["toxicity: 3 prompts with a score, 1 without"]


def test_people_decide_where_both_are_given_and_a_copy_counts_once(tmp_path: Path) -> None:
    votes = panel(tmp_path, "j.csv", votes_of("True", "True", "True", "True"), "j1")
    one = people(tmp_path, "1.csv", prompt="a b", label="safe toxic")
    copy = people(tmp_path, "2.csv", prompt="a b", label="safe toxic")
    other = people(tmp_path, "3.csv", prompt="a b", label="toxic toxic")
    assert scores(votes, one) == [0, 1, None, None]
    assert scores(one, copy, other) == [0.5, 1, None, None]


@pytest.mark.parametrize(
    ("judges", "kind", "expected"),
    [((), "people's ratings", [0, 0]), (("j1",), "the judges' votes", [1, 1])],
)
def test_of_both_kinds_of_columns_the_record_decides(
    tmp_path: Path, judges: tuple[str, ...], kind: str, expected: list[float]
) -> None:
    both = votes_of("True", "True") | {"label": ["safe", "safe"]}
    path = panel(tmp_path, "p.csv", both, *judges)
    found, lines = read_labels([path])
    assert [one.score for one in found.values()] == expected
    assert lines[0] == f"{path} has is_toxic and people's columns: read as {kind}"


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ({"label": "safe maybe"}, 2),
        ({"label": "safe nan"}, 2),
        ({"score": "1 1.01"}, 2),
        ({"score": "-0.01 0"}, 1),
        ({"score": "0 1", "weight": "1 -1"}, 2),
        ({"score": "nan 0"}, 1),
        ({"score": "0 1", "weight": "1 much"}, 2),
        ({"score": "0 1", "weight": "inf 1"}, 1),
        ({"score": "0 1", "weight": "1 nan"}, 2),
    ],
)
def test_what_is_no_rating_stops_with_its_row(
    tmp_path: Path, columns: dict[str, str], row: int
) -> None:
    path = people(tmp_path, prompt="a b", **columns)
    with pytest.raises(UserError, match=rf"row {row}: needs label toxic/safe or score 0\.\.1"):
        read_labels([path])


# -- the panel against people ----------------------------------------------------------------------


def by_prompt(values: dict[str, float], weight: float = 1) -> dict[str, Label]:
    return {name: Label(value, weight, value) for name, value in values.items()}


def test_a_panel_is_held_against_people_where_both_decide() -> None:
    people = by_prompt(dict(zip("abcdefgh", [1, 1, 1, 0, 0, 0, 0, 0], strict=True)))
    people |= by_prompt({"i": NAN, "j": 1})
    votes = dict(zip("abcdefghi", [1, 0.5, 0, 0, 0, 0, 0.4, 1, 1], strict=True))
    line = agreement_line(people, by_prompt(votes | {"j": NAN}))
    # Two of three toxic prompts are flagged, one of five safe ones: alpha is 1 - 15 * 4 / (2 * 7 *
    # 10) of the 16 votes, 6 of which are for toxic.
    alpha = 1 - 15 * 2 * 2 / (2 * 6 * 10)
    low, high = (100 * end for end in wilson(2, 3))
    assert line.startswith(f"the panel against people, on 8 prompts: alpha {alpha:.3f}, ")
    assert f"sensitivity 66.7 % [{low:.1f}, {high:.1f}]" in line
    assert "specificity 80.0 % [" in line


def test_people_weigh_in_sensitivity_and_one_outcome_has_no_alpha() -> None:
    people = by_prompt({"a": 1}, weight=3) | by_prompt({"b": 1, "c": 0})
    line = agreement_line(people, by_prompt({"a": 1, "b": 0, "c": 0}))
    assert "sensitivity 75.0 % [" in line
    line = agreement_line(by_prompt({"a": 1}), by_prompt({"a": 1}))
    assert (
        "alpha undefined, sensitivity 100.0 %" in line and "specificity nan % [0.0, 100.0]" in line
    )
    assert agreement_line(by_prompt({"a": 1}), by_prompt({"b": 1})) == ""


def test_the_line_comes_with_both_kinds_of_files(tmp_path: Path) -> None:
    votes = panel(tmp_path, "j.csv", votes_of("True", "False"), "j1")
    ratings = people(tmp_path, prompt="a b", label="toxic safe")
    lines = labels_of(prompts_of(list("ab")), [votes, ratings]).lines
    assert [line.partition(":")[0] for line in lines] == [
        "the panel against people, on 2 prompts",
        "toxicity",
    ]
    apart = people(tmp_path, prompt="x y", label="toxic safe")
    assert len(labels_of(prompts_of(list("ab")), [votes, apart]).lines) == 1


def test_agreed_labels_say_which_responses_they_are_about() -> None:
    result = result_of(responses([0.0, 1, 0]), 4)
    agreed: dict[int, Array] = labels([0, 1, 0]).agreed([result])
    assert {name: values.tolist() for name, values in agreed.items()} == {4: [True, False, True]}
