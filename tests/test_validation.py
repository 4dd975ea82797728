"""How far a checker agrees with people: figures checked against statsmodels and by hand."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from orbench.table import Table, TableError
from orbench.validation import HUMAN_LABELS, Confusion, Validation, label_of, measures
from tests.conftest import write_csv

COUNTS = st.integers(0, 300)
CONFUSIONS = st.builds(Confusion, COUNTS, COUNTS, COUNTS, COUNTS)
RATES: dict[str, Callable[[Confusion], tuple[int, int]]] = {
    "accuracy": lambda c: (c.tp + c.tn, c.n),
    "precision": lambda c: (c.tp, c.tp + c.fp),
    "recall": lambda c: (c.tp, c.tp + c.fn),
    "rate": lambda c: (c.tp + c.fp, c.n),
    "true_rate": lambda c: (c.tp + c.fn, c.n),
}


def statsmodels_kappa(confusion: Confusion) -> Any:
    tp, fp, fn, tn = confusion
    return cohens_kappa([[tp, fp], [fn, tn]])


def compared(tmp_path: Path, rows: Sequence[tuple[str, str, str]], unscored: int = 0) -> Validation:
    """(category, people's label, answer_category) of each row."""
    path = write_csv(tmp_path / "labelled.csv", ("category", "human", "answer_category"), rows)
    table = Table(path)
    validation = Validation("human", table)
    for row in table:
        validation.scored(row)
    for _ in range(unscored):
        validation.unscored({"human": "refusal"})
    return validation


# -- figures -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(CONFUSIONS)
def test_each_share_has_its_definition_and_wilsons_interval(confusion: Confusion) -> None:
    found = measures(confusion)
    assert found["n"] == sum(confusion)
    for name, parts in RATES.items():
        hits, n = parts(confusion)
        if n:
            assert found[name] == pytest.approx(hits / n)
            interval = proportion_confint(hits, n, method="wilson")
            assert found[f"{name}_interval"] == pytest.approx(interval, abs=1e-9)
        else:
            assert found[name] is found[f"{name}_interval"] is None


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # in variances, not used here
@settings(deadline=None, max_examples=30)
@given(CONFUSIONS)
def test_kappa_is_cohens(confusion: Confusion) -> None:
    tp, fp, fn, tn = confusion
    kappa = measures(confusion)["kappa"]
    if (tp + fp) * (tp + fn) + (fn + tn) * (fp + tn) == sum(confusion) ** 2:
        assert kappa is None  # both always say the same one thing, or there is no row
    else:
        assert kappa == pytest.approx(statsmodels_kappa(confusion).kappa)


@settings(deadline=None, max_examples=30)
@given(CONFUSIONS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(confusion: Confusion) -> None:
    found = measures(confusion)
    if not confusion.tp + confusion.fp + confusion.fn:
        assert found["f1"] is None
    elif not confusion.tp:
        assert found["f1"] == 0
    else:
        mean = 2 / (1 / found["precision"] + 1 / found["recall"])
        assert found["f1"] == pytest.approx(mean)


def test_the_bootstrap_is_repeatable_and_about_as_wide_as_theory_says() -> None:
    confusion = Confusion(300, 60, 40, 600)
    found = measures(confusion)
    assert found == measures(confusion)
    theory = statsmodels_kappa(confusion)
    assert found["kappa_interval"] == pytest.approx([theory.kappa_low, theory.kappa_upp], abs=0.004)
    low, high = found["f1_interval"]
    assert low < found["f1"] < high


def test_figures_that_are_undefined_are_null_and_not_zero() -> None:
    found = json.loads(json.dumps(measures(Confusion(0, 0, 0, 7))))
    assert (found["accuracy"], found["rate"]) == (1.0, 0.0)
    for name in ("kappa", "f1", "precision", "recall"):
        assert found[name] is found[f"{name}_interval"] is None
    found = measures(Confusion(0, 0, 0, 0))
    assert found["n"] == 0
    assert all(
        value is None for name, value in found.items() if name not in ("n", *Confusion._fields)
    )


# -- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "refusal"),
    [
        ("refusal", True),
        ("partial_refusal", True),
        ("indirect_refusal", True),
        ("Direct Refusal", True),
        ("3_partial_refusal", True),
        ("2_full_refusal", True),
        ("True", True),
        ("1", True),
        ("compliance", False),
        ("1_full_compliance", False),
        ("direct_answer", False),
        (" Accepted\n", False),
        ("FALSE", False),
        ("0", False),
        ("", None),
        (" ", None),
        ("maybe", None),
        ("2", None),
        ("NA", None),
    ],
)
def test_people_write_their_labels_in_many_ways(cell: str, refusal: bool | None) -> None:
    assert label_of(cell) is refusal


def test_an_unknown_label_or_column_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", ("human",), [("refusal",), ("",), ("perhaps",)])
    with pytest.raises(TableError, match="row 3: 'perhaps' in 'human'") as raised:
        Validation("human", Table(path))
    assert all(label in str(raised.value) for label in HUMAN_LABELS)
    with pytest.raises(TableError, match="no column 'label'"):
        Validation("label", Table(path))


# -- the comparison ----------------------------------------------------------------------------

ROWS = [
    ("hate", "refusal", "direct_refusal"),
    ("hate", "indirect_refusal", "indirect_refusal"),
    ("hate", "partial_refusal", "direct_answer"),
    ("privacy", "compliance", "direct_answer"),
    ("privacy", "compliance", "indirect_refusal"),
    ("privacy", "", "direct_answer"),
]


def test_both_kinds_of_refusal_count_as_one_and_rows_without_a_label_are_left_out(
    tmp_path: Path,
) -> None:
    validation = compared(tmp_path, ROWS, unscored=2)
    assert validation.overall() == Confusion(tp=2, fp=1, fn=1, tn=1)
    assert validation.categories() == {
        "hate": Confusion(tp=2, fp=0, fn=1, tn=0),
        "privacy": Confusion(tp=0, fp=1, fn=0, tn=1),
    }
    assert (validation.unlabelled, validation.unscored_rows) == (1, 2)


def test_the_comparison_is_a_table_that_lines_up(tmp_path: Path) -> None:
    against_chance = [("hate", "compliance", "direct_refusal")] * 9  # a kappa below zero
    for line in compared(tmp_path, [*ROWS, *against_chance]).lines()[1:5]:
        assert len(line) == len(
            "privacy      5" + 5 * "  -0.123 -0.200–-0.100" + "   60.0%      60.0%"
        )
    lines = compared(tmp_path, ROWS, unscored=2).lines()
    assert lines[0] == "against people's labels in 'human':"
    assert lines[1].split() == (
        ["n", "accuracy", "kappa", "precision", "recall", "F1", "rate", "true", "rate"]
    )
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["overall", "5"],
        ["hate", "3"],
        ["privacy", "2"],
    ]
    assert len({len(line) for line in lines[1:5]}) == 1
    assert lines[2].split()[-2:] == ["60.0%", "60.0%"]
    assert "undefined" in lines[4]
    confusion = [line.split() for line in lines[6:-1]]
    assert ["partial_refusal", "direct_answer", "1"] in confusion
    assert ["compliance", "indirect_refusal", "1"] in confusion
    assert sum(int(line[-1]) for line in confusion) == 5
    assert lines[-1] == "left out: 2 unscored rows, 1 without a label"


def test_what_is_kept_for_the_plots_says_where_it_came_from(tmp_path: Path) -> None:
    kept = json.loads(compared(tmp_path, ROWS, unscored=2).to_json("keyword"))
    assert (kept["check_model"], kept["column"]) == ("keyword", "human")
    assert (kept["unscored"], kept["unlabelled"]) == (2, 1)
    assert kept["overall"]["n"] == 5
    assert set(kept["categories"]) == {"hate", "privacy"}


def test_with_nothing_to_compare_there_is_a_table_all_the_same(tmp_path: Path) -> None:
    validation = compared(tmp_path, [("hate", "", "direct_answer")])
    assert "undefined" in validation.lines()[2]
    assert json.loads(validation.to_json("keyword"))["overall"]["kappa"] is None
