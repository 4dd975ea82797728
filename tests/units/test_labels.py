"""Labels of prompts: what panels and people say, and how refusals go with it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pandas import DataFrame, Series  # type: ignore[import-untyped]
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped]

from orbench.base.messages import UserError
from orbench.report.analyses.labels import (
    Labels,
    labels_of,
    panel_against_people,
    read_labels,
    toxicity,
)
from orbench.report.measures import Analysis, Association, Kind
from orbench.stats.intervals import wilson
from tests.conftest import write_csv
from tests.results import prompts_of
from tests.units.read_results import read_result, read_standing


def read_numbers(text: str) -> list[float]:
    """Numbers parted by spaces; `-` for none."""
    return [float(cell.replace("-", "nan")) for cell in text.split()]


def labels(score: str, toxic: str = "", weight: str = "") -> Labels:
    """Labels of as many prompts; toxic: the score, if not said otherwise."""
    scores = np.array(read_numbers(score))
    decided = np.array(read_numbers(toxic or score))
    weights = np.array(read_numbers(weight)) if weight else np.ones(len(scores))
    return Labels(scores, weights, decided, [])


def analysis(given: Labels, text: str, **about: Any) -> Analysis:
    standing = read_standing(text, **about)
    return toxicity(standing.results, [standing], given)


def shown(found: Analysis, kind: Kind) -> str:
    """The sides, prompts and refused shares of the subsets that have prompts."""
    parts = []
    for one in found.rates:
        if one.subset.kind is kind and one.mean.prompts:
            figures = f"{one.mean.prompts}, {one.mean.rate:.3g}"
            parts.append(f"{one.result.side.name[0]} {one.subset.value}: {figures}")
    return "; ".join(parts)


# -- by agreement and score ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("010111", "o agreed: 2, 0.5; o disputed: 2, 1; o contradicted: 1, 0; o no_score: 1, 1"),
        (
            "& 010111 prompt=012345",
            "t agreed: 1, 0; t disputed: 2, 1; t contradicted: 2, 0.5; t no_score: 1, 1",
        ),
    ],
)
def test_labels_agree_with_a_side_dispute_it_or_contradict_it(text: str, expected: str) -> None:
    assert shown(analysis(labels("0 0 1 0.5 - 0.2"), text), Kind.LABEL) == expected


def test_without_a_score_a_decided_label_is_none() -> None:
    found = labels("- 0", toxic="0 0")
    assert found.agreement(read_result("01")).tolist() == ["no_score", "agreed"]


@pytest.mark.parametrize(
    ("scores", "text", "expected"),
    [
        ("0 0.25 0.5 0.75 1 -", "010101", "0: 1, 0; 0.25: 1, 1; 0.5: 1, 0; 0.75: 1, 1; 1: 1, 0"),
        (
            "0 0.19 0.2 0.4 0.79 1",
            "010101",
            "0.1: 2, 0.5; 0.3: 1, 0; 0.5: 1, 1; 0.7: 1, 0; 0.9: 1, 1",
        ),
        ("0.333333333333 0.66666667 0.333333333334", "010", "0.3333333: 2, 0; 0.6666667: 1, 1"),
        (
            "0 0.3 0.5 1 0.1 0.2 0.6",
            "0101 & 010 prompt=456",
            "0.1: 2, 0; 0.3: 2, 1; 0.5: 1, 0; 0.7: 1, 0; 0.9: 1, 1",
        ),
    ],
)  # fmt: skip
def test_of_more_than_five_scores_the_curve_has_five_bins(
    scores: str, text: str, expected: str
) -> None:
    curve = shown(analysis(labels(scores), text), Kind.SCORE)
    assert curve.replace("b ", "").replace("o ", "") == expected


def test_a_curve_is_of_both_sides_and_its_weights_count() -> None:
    given = labels("0 0 1 0 1 1", weight="1 3 1 1 1 3")
    found = analysis(given, "100 & 110 prompt=345")
    assert shown(found, Kind.SCORE) == "b 0: 3, 0.4; b 1: 3, 0.2"
    assert shown(found, Kind.LABEL).startswith("o agreed: 2, 0.25; ")


# -- the AUC -------------------------------------------------------------------------------------


def area(refused: str, score: str, **columns: Any) -> Association:
    (found,) = analysis(labels(score), refused, **columns).associations
    return found


@pytest.mark.parametrize("seed", range(3))
def test_the_auc_is_the_mann_whitney_statistic(seed: int) -> None:
    random = np.random.default_rng(seed)
    score = random.integers(0, 9, 85) / 8  # more than the curve has
    refused = random.random(85) < 0.2 + 0.5 * score
    text = "".join(map(str, refused.astype(int)))
    found = area(f"010??{text}", "- - - 0 1 " + " ".join(map(str, score)))
    statistic = mannwhitneyu(score[refused], score[~refused]).statistic
    assert found.estimate == pytest.approx(statistic / (refused.sum() * (~refused).sum()))
    assert found.interval and found.interval.low < found.estimate < found.interval.high
    assert found.n == 85


def test_a_score_that_separates_or_nothing_to_separate() -> None:
    score = "0 0.2 0.9 1 " * 5
    assert (area("0011*5", score).estimate, area("1100*5", score).estimate) == (1, 0)
    none = area("0*20", score)
    assert np.isnan(none.estimate) and none.interval == (0, 1) and none.n == 20


def test_prompts_count_once_however_many_responses_they_have() -> None:
    found = area("1011 prompt=0011 seed=0011", "0 1")
    # Of each prompt a share: 1/2 and 1 refused; the only answer has score 0.
    assert found.estimate == pytest.approx((0.5 * 0.5 + 1) / 1.5) and found.n == 2


# -- files ---------------------------------------------------------------------------------------

VOTES = {"T": "True", "F": "False", "-": ""}


def labels_file(folder: Path, text: str) -> Path:
    """Ratings such as "prompt=a,b score=0,1" or VOTES such as "j1,j2: prompt=a,b is_toxic=T,F",
    with the record of their judges.
    """
    judges, _, given = text.rpartition(":")
    columns = {}
    for word in given.split():
        name, _, cells = word.partition("=")
        columns[name] = [VOTES.get(cell, cell) for cell in cells.split(",")]
    path = folder / f"{len(list(folder.iterdir()))}.csv"
    models = [{"asked": one, "id": one[-2:], "base_url": "http://a"} for one in judges.split(",")]
    record = {"stage": "moderator", "parameters": {"column": "prompt"}, "models": models}
    if judges:
        path.with_suffix(".run.json").write_text(json.dumps(record))
    return write_csv(path, list(columns), list(zip(*columns.values(), strict=True)))


def scores(*paths: Path) -> str:
    found = labels_of(prompts_of(list("abcd")), paths).score
    return " ".join(f"{score:.4g}" for score in found).replace("nan", "-")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("j1: prompt=a,b,c is_toxic=F,T,T", "0 1 1 -"),
        ("j1: prompt=a,b,c is_toxic=F,T,T; j2: prompt=a,b,c,d is_toxic=F,F,T,T", "0 0.5 1 -"),
        ("j1: prompt=a,b,c is_toxic=F,T,T; /j1: prompt=a,b,c,d is_toxic=T,T,T,T", "0.5 1 1 1"),
        ("j1: prompt=a is_toxic=F; j2: prompt=a is_toxic=T; j1: prompt=a is_toxic=F", "0.5 - - -"),
        ("j1: prompt=a,b label=safe,toxic", "0 1 - -"),
        # Files without a record are a judge each, and a copy is no other one.
        ("prompt=a,b is_toxic=F,T; prompt=a,b is_toxic=F,T", "0 1 - -"),
        ("prompt=a,b is_toxic=F,T; prompt=a,b is_toxic=F,T; prompt=a,b is_toxic=T,T", "0.5 1 - -"),
        ("j3,j4: prompt=a,b,c is_toxic=T,T,F is_toxic_j3=T,F,F is_toxic_j4=T,T,-", "1 0.5 - -"),
    ],
)
def test_votes_of_several_files_are_joined_by_judge(
    tmp_path: Path, files: str, expected: str
) -> None:
    assert scores(*[labels_file(tmp_path, text) for text in files.split("; ")]) == expected


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("label=safe,TOXIC,Safe,toxic", "0 1 0 1"),
        ("score=0,1,0.25,1e-1", "0 1 0.25 0.1"),
        ("score=0.4,,1, label=toxic,toxic,safe,", "0.4 1 1 -"),
        ("label=0,1,0.5,safe weight=1,2,,0", "0 1 0.5 -"),
    ],
)
def test_people_give_labels_or_scores(tmp_path: Path, columns: str, expected: str) -> None:
    assert scores(labels_file(tmp_path, f"prompt=a,b,c,d {columns}")) == expected


def test_people_decide_by_majority_and_weights_are_averaged(tmp_path: Path) -> None:
    text = "prompt=a,a,a,b,b,c score=1,1,0,1,0,0.4 weight=1,2,6,4,4,8"
    found = labels_of(prompts_of(list("abcd")), [labels_file(tmp_path, text)])
    assert found.score == pytest.approx([2 / 3, 0.5, 0.4, np.nan], nan_ok=True)
    assert str(found.toxic) == "[1.  0.5 0.  nan]"
    assert found.weight.tolist() == [3, 4, 8, 1]
    assert found.lines == ["toxicity: 3 prompts with a score, 1 without"]


def test_people_decide_where_both_are_given_and_a_copy_counts_once(tmp_path: Path) -> None:
    votes = labels_file(tmp_path, "j1: prompt=a,b,c,d is_toxic=T,T,T,T")
    one, copy = (labels_file(tmp_path, "prompt=a,b label=safe,toxic") for _ in range(2))
    other = labels_file(tmp_path, "prompt=a,b label=toxic,toxic")
    assert scores(votes, one) == "0 1 - -"
    assert scores(one, copy, other) == "0.5 1 - -"


@pytest.mark.parametrize(
    ("judges", "kind", "expected"),
    [("", "people's ratings", "0 0 - -"), ("j1", "the judges' votes", "1 1 - -")],
)
def test_of_both_kinds_of_columns_the_record_decides(
    tmp_path: Path, judges: str, kind: str, expected: str
) -> None:
    path = labels_file(tmp_path, f"{judges}: prompt=a,b is_toxic=T,T label=safe,safe")
    assert scores(path) == expected
    assert read_labels([path])[1] == [f"{path} has is_toxic and people's columns: read as {kind}"]


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ("label=safe,maybe", 2),
        ("label=safe,nan", 2),
        ("score=1,1.01", 2),
        ("score=-0.01,0", 1),
        ("score=0,1 weight=1,-1", 2),
    ],
)
def test_what_is_no_rating_stops_with_its_row(tmp_path: Path, columns: str, row: int) -> None:
    path = labels_file(tmp_path, f"prompt=a,b {columns}")
    with pytest.raises(UserError, match=rf"row {row}: (needs label toxic/safe|weight is '-1')"):
        read_labels([path])


def test_a_file_needs_votes_or_ratings(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has neither is_toxic "):
        read_labels([labels_file(tmp_path, "prompt=a verdict=True")])


# -- the panel against people ----------------------------------------------------------------------


def agreement_line(people: str, panel: str, weight: str = "") -> str:
    """What is said of prompts a, b, ... with these labels of people and scores of a panel."""
    scores = Series(read_numbers(panel), index=list("abcdefghij"[: len(panel.split())]))
    toxic = read_numbers(people)
    weights = read_numbers(weight) if weight else 1.0
    labels = DataFrame({"score": toxic, "weight": weights, "toxic": toxic})
    return "; ".join(panel_against_people(scores, labels.set_axis(scores.index)))


def test_a_panel_is_held_against_people_where_both_decide() -> None:
    line = agreement_line("1 1 1 0 0 0 0 0 0.5 1", "1 0.5 0 0 0 0 0.4 1 1 -")
    # Two of three toxic prompts are flagged, one of five safe ones: alpha is 1 - 15 * 4 / (2 * 7 *
    # 10) of the 16 votes, 6 of which are for toxic.
    alpha = 1 - 15 * 2 * 2 / (2 * 6 * 10)
    low, high = (100 * end for end in wilson(2, 3))
    start = f"the panel against people, on 8 prompts: alpha {alpha:.3f}, "
    assert line.startswith(f"{start}sensitivity 66.7 % [{low:.1f}, {high:.1f}], specificity 80.0 %")


def test_people_weigh_in_sensitivity_and_one_outcome_has_no_alpha() -> None:
    assert "sensitivity 75.0 % [" in agreement_line("1 1 0", "1 0 0", weight="3 1 1")
    assert "alpha undefined, sensitivity 100.0 %" in agreement_line("1", "1")
    assert agreement_line("1", "-") == ""
