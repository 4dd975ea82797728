"""How far a checker agrees with people: figures checked against statsmodels and by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from orbench.base.messages import UserError
from orbench.base.tables import Table
from orbench.base.words import HUMAN_LABELS, Row
from orbench.judging.validation import check_labels, compared_with_people, validation_lines

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
    assert "undefined" in validation_lines(nothing)[2]


def test_an_unknown_label_or_column_is_named_before_anything_is_sent() -> None:
    labels = [{"human": "refusal"}, {"human": ""}, {"human": "perhaps"}]
    table = Table(Path("a.csv"), ["human"], labels)
    with pytest.raises(UserError, match=r"a.csv, row 3: 'perhaps' in 'human'") as raised:
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


def test_the_closing_lines_show_the_measures_of_each_category() -> None:
    lines = validation_lines(compared(rows_of(ROWS)))
    assert max(map(len, lines)) <= 80
    assert lines[0] == "against the labels in 'human', with 95 % intervals:"
    assert lines[1].split()[:3] == ["n", "accuracy", "kappa"]
    starts = [line.split()[:3] for line in lines[2:5]]
    assert starts == [["overall", "5", "0.600"], ["hate", "3", "0.667"], ["privacy", "2", "0.500"]]
    assert "rows without a label: 1" in lines


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
