"""How far a checker agrees with people: figures checked against statsmodels and by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from orbench.base.messages import UserError
from orbench.base.tables import Table
from orbench.base.words import HUMAN_LABELS, Row
from orbench.judging.validation import check_labels, compared_with_people, validation_lines
from orbench.stats.core import Verdicts
from orbench.stats.labels import corrected

ROWS = [
    ("hate", "refusal", "direct_refusal"),
    ("hate", "indirect_refusal", "indirect_refusal"),
    ("hate", "partial_refusal", "direct_answer"),
    ("privacy", "compliance", "direct_answer"),
    ("privacy", "compliance", "indirect_refusal"),
    ("privacy", "", "direct_answer"),
]


def rows_of(rows: Sequence[tuple[str, str, str]]) -> list[Row]:
    """(category, people's label, answer_category) of responses."""
    named = [{"category": row[0], "human": row[1], "answer_category": row[2]} for row in rows]
    return [{"prompt": f"p{n}", "response": "ok", **row} for n, row in enumerate(named)]


def compared(rows: Sequence[Row]) -> dict[str, Any]:
    """The comparison, as it is after a trip through its file."""
    found = compared_with_people(rows, "human", "rules")
    return dict(json.loads(json.dumps(found, allow_nan=False)))


def cells_of(figures: dict[str, Any]) -> list[int]:
    """tp, fp, fn, tn."""
    return [figures[cell] for cell in ("tp", "fp", "fn", "tn")]


def of_counts(tp: int, fp: int, fn: int, tn: int) -> list[Row]:
    """Rows of each kind, each a response of its own."""
    kinds = [("refusal", "direct_refusal")] * tp + [("compliance", "direct_refusal")] * fp
    kinds += [("refusal", "direct_answer")] * fn + [("compliance", "direct_answer")] * tn
    return rows_of([("hate", *kind) for kind in kinds])


@settings(deadline=None, max_examples=25)
@given(st.tuples(*[st.integers(0, 60)] * 4).filter(any))
def test_each_measure_has_its_definition_and_wilsons_interval(
    counts: tuple[int, int, int, int],
) -> None:
    tp, fp, fn, tn = counts
    found = compared(of_counts(*counts))["overall"]
    assert cells_of(found) == [*counts]
    shares = {
        "accuracy": (tp + tn, sum(counts)),
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "F1": (tp, tp + fp + fn),
    }
    for name, (hits, n) in shares.items():
        ends = proportion_confint(hits, n, method="wilson") if n else ()
        expected = [x * (2 / (1 + x) if name == "F1" else 1) for x in (n and hits / n, *ends)]
        assert found[name] == (pytest.approx(expected, abs=1e-9) if n else None)


def test_figures_that_are_undefined_are_null_and_not_zero() -> None:
    found = compared(of_counts(0, 0, 0, 7))["overall"]
    assert found["accuracy"][0] == 1
    assert [found[name] for name in ("kappa", "F1", "precision", "recall")] == [None] * 4
    nothing = compared(rows_of([("hate", "", "direct_answer")]))
    assert (nothing["overall"]["n"], nothing["overall"]["accuracy"]) == (0, None)
    assert "undefined" in [*validation_lines(nothing)][2]


def test_an_unknown_label_or_column_is_named_before_anything_is_sent() -> None:
    labels = [{"human": "refusal"}, {"human": ""}, {"human": "perhaps"}]
    table = Table(Path("a.csv"), ["human"], labels)
    with pytest.raises(UserError, match=r"a.csv, row 3: human is 'perhaps', not a known") as raised:
        check_labels(table, "human")
    assert all(label in str(raised.value) for label in HUMAN_LABELS)
    with pytest.raises(UserError, match=r"no column 'humn' .*Did you mean human"):
        check_labels(table, "humn")
    check_labels(Table(table.path, table.columns, labels[:2]), "human")


def test_any_refusal_counts_as_one_and_rows_without_a_label_are_left_out() -> None:
    found = compared(rows_of(ROWS))
    assert cells_of(found["overall"]) == [2, 1, 1, 1]
    assert cells_of(found["categories"]["hate"]) == [2, 0, 1, 0]
    assert cells_of(found["categories"]["privacy"]) == [0, 1, 0, 1]
    assert (found["check_model"], found["column"], found["unlabeled"]) == ("rules", "human", 1)


LABELS = {
    True: "direct_refusal indirect_refusal rejected refusal partial_refusal full_refusal refused "
    "true 1 2_full_refusal 3-Partial_Refusal TRUE Refused",
    False: "direct_answer accepted partial safe_completion compliance full_compliance answer "
    "answered complied false 0 1_full_compliance 10_answer False",
}


@pytest.mark.parametrize("refused", LABELS)
def test_each_label_says_whether_people_see_a_refusal(refused: bool) -> None:
    for label in LABELS[refused].split():
        for written in (label, f" {label.replace('_', ' ')} "):
            found = compared(rows_of([("hate", written, "direct_answer")]))["overall"]
            assert cells_of(found) == [0, 0, int(refused), int(not refused)], written


@pytest.mark.parametrize("weight", ["many", "-1", "1,5", "inf", "nan", "1e400"])
def test_a_weight_is_a_number_or_left_out(weight: str) -> None:
    columns = ["human", "weight"]
    for good in ("", " ", "2", " 2.5 ", ".5", "1e3", "0"):
        check_labels(Table(Path("a.csv"), columns, [{"human": "1", "weight": good}]), "human")
    rows = [{"human": "1", "weight": "1"}, {"human": "", "weight": weight}]
    with pytest.raises(UserError, match=rf"a.csv, row 2: weight is '{weight}', not a number"):
        check_labels(Table(Path("a.csv"), columns, rows), "human")


def half_labeled(n: int, **more: str) -> list[Row]:
    """n refusals with a label and n answers without one, which have the other columns too."""
    rows = rows_of(
        [("hate", "refusal", "direct_refusal")] * n + [("hate", "", "direct_answer")] * n
    )
    return [row | more for row in rows]


def test_labels_drawn_from_one_side_are_said_to_be_biased_and_correct_nothing() -> None:
    few, many = compared(half_labeled(8)), compared(half_labeled(10))
    assert few["bias"] == "" and few["corrected"][""] is not None
    said = "100 % of them are refusals, but 0 % of the other rows"
    assert many["bias"] == f"the labeled rows are not a random sample: {said}"
    assert many["corrected"] == {"": None}
    assert [*validation_lines(many)][-1] == many["bias"]
    assert not any("corrected" in line for line in validation_lines(many))
    weighted = compared(half_labeled(10, weight="2") + half_labeled(1, weight="1"))
    assert weighted["bias"] and weighted["corrected"][""] is not None


def test_refusals_of_the_api_are_no_sign_of_a_biased_sample() -> None:
    rows = half_labeled(10)
    for row in rows:
        row["rejection_reason"] = "api:content_filter"
    assert compared(rows)["bias"] == ""
    mixed = half_labeled(10)
    mixed[0]["rejection_reason"] = "api:content_filter"
    assert "100 % of them" in compared(half_labeled(12) + mixed)["bias"]


def test_a_rate_is_corrected_with_the_labels_and_the_weights_of_the_rows() -> None:
    rows = of_counts(5, 2, 1, 8) + rows_of([("hate", "", "direct_answer")] * 4)
    for number, row in enumerate(rows):
        row["prompt"] = f"q{number}"
        row["weight"] = ["", "2", " 3.5 "][number % 3]
    judged = np.array([1] * 7 + [0] * 13, float)
    people = np.array([1] * 5 + [0] * 2 + [1] + [0] * 8 + [np.nan] * 4)
    weights = np.array([1, 2, 3.5] * 7)[:20]
    each = np.arange(20)
    verdicts = Verdicts(judged, each, each)._replace(weight=weights)
    assert compared(rows)["corrected"][""] == pytest.approx(corrected(verdicts, people))


def test_safe_and_toxic_prompts_are_corrected_apart_if_each_row_says_which_it_is() -> None:
    rows = of_counts(9, 1, 1, 9)
    for number, row in enumerate(rows):
        row["is_toxic"] = ["True", " true ", "FALSE", "false"][number % 4]
    found = compared(rows)
    names = {"over_refusal": "over-refusal rate", "toxic": "toxic rejection rate"}
    assert found["corrected"].keys() == names.keys()
    lines = [*validation_lines(found)]
    for side, name in names.items():
        rate, low, high = (100 * share for share in found["corrected"][side])
        assert f"{name} corrected by the labels: {rate:.1f} % [{low:.1f}, {high:.1f}]" in lines
    rows[3]["is_toxic"] = "somewhat"
    assert set(compared(rows)["corrected"]) == {""}


def test_categories_stand_apart_only_if_labels_are_of_several() -> None:
    one = [("hate", "refusal", "direct_refusal"), ("privacy", "", "direct_answer")]
    assert compared(rows_of(one))["categories"] == {}
    assert set(compared(rows_of(ROWS))["categories"]) == {"hate", "privacy"}


def test_a_judge_asked_again_about_the_same_responses_narrows_no_interval() -> None:
    rows = of_counts(9, 1, 1, 9)
    once, often = compared(rows)["overall"], compared(rows * 5)["overall"]
    assert (once["n"], often["n"]) == (20, 100)
    for name in ("accuracy", "kappa", "precision", "recall", "F1"):
        (value, low, high), (same, lower, higher) = once[name], often[name]
        assert same == pytest.approx(value)
        assert lower <= low + 1e-9 and high - 1e-9 <= higher


def test_labels_of_one_seed_count_less_than_independent_ones() -> None:
    rows = of_counts(40, 20, 20, 40)
    seeded = [row | {"seed_id": str(n // 20)} for n, row in enumerate(rows)]
    (_, low, high), (_, lower, higher) = (
        compared(r)["overall"]["accuracy"] for r in (rows, seeded)
    )
    assert higher - lower > 1.5 * (high - low)
