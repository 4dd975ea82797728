"""How far a checker agrees with people: figures checked against statsmodels and by hand."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa  # type: ignore[import-untyped]
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from orbench.columns import HUMAN_LABELS, human_label
from orbench.rates import wilson
from orbench.report.people import read_validation
from orbench.table import Table
from orbench.terminal import UserError
from orbench.validation import (
    Confusion,
    Validation,
    confusion,
    confusion_of_responses,
    measures,
)
from tests.conftest import write_csv

COUNTS = st.integers(0, 300)
CONFUSIONS = st.builds(Confusion, COUNTS, COUNTS, COUNTS, COUNTS)
RATES: dict[str, Callable[[Confusion], tuple[int, int]]] = {
    "accuracy": lambda c: (c.tp + c.tn, sum(c)),
    "precision": lambda c: (c.tp, c.tp + c.fp),
    "recall": lambda c: (c.tp, c.tp + c.fn),
    "rate": lambda c: (c.tp + c.fp, sum(c)),
    "true_rate": lambda c: (c.tp + c.fn, sum(c)),
}


def once_each(confusion: Iterable[int]) -> pd.DataFrame:
    """So many rows of each kind, each a response of its own."""
    kinds = ((True, True), (True, False), (False, True), (False, False))
    rows = [kind for kind, times in zip(kinds, confusion, strict=True) for _ in range(times)]
    return pd.DataFrame(rows, columns=["checker", "human"], dtype=bool).reset_index(
        names="response"
    )


def statsmodels_kappa(counts: Confusion) -> Any:
    tp, fp, fn, tn = counts
    return cohens_kappa([[tp, fp], [fn, tn]])


def compared(
    tmp_path: Path,
    rows: Sequence[tuple[str, str, str]],
    unscored: int = 0,
    samples: int = 1,
    partial: str = "answer",
) -> Validation:
    """(category, people's label, answer_category) of each response, each judged so many times."""
    path = write_csv(
        tmp_path / "labelled.csv",
        ("prompt", "response", "category", "human", "answer_category"),
        [(f"p{i}", "ok", *row) for i, row in enumerate(rows) for _ in range(samples)],
    )
    table = Table(path)
    validation = Validation("human", table, partial)
    for row in table:
        validation.scored(row)
    for _ in range(unscored):
        validation.unscored({"human": "refusal"})
    return validation


# -- figures -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(CONFUSIONS)
def test_each_share_has_its_definition_and_wilsons_interval(counts: Confusion) -> None:
    found = measures(once_each(counts))
    for name, parts in RATES.items():
        hits, n = parts(counts)
        if n:
            assert found[name] == pytest.approx(hits / n)
            interval = proportion_confint(hits, n, method="wilson")
            assert found[f"{name}_interval"] == pytest.approx(interval, abs=1e-9)
        else:
            assert found[name] is found[f"{name}_interval"] is None


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # in variances, not used here
@settings(deadline=None, max_examples=30)
@given(CONFUSIONS)
def test_kappa_is_cohens(counts: Confusion) -> None:
    tp, fp, fn, tn = counts
    kappa = measures(once_each(counts))["kappa"]
    if (tp + fp) * (tp + fn) + (fn + tn) * (fp + tn) == sum(counts) ** 2:
        assert kappa is None  # both always say the same one thing, or there is no row
    else:
        assert kappa == pytest.approx(statsmodels_kappa(counts).kappa)


@settings(deadline=None, max_examples=30)
@given(CONFUSIONS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(counts: Confusion) -> None:
    found = measures(once_each(counts))
    if not counts.tp + counts.fp + counts.fn:
        assert found["f1"] is None
    elif not counts.tp:
        assert found["f1"] == 0
    else:
        mean = 2 / (1 / found["precision"] + 1 / found["recall"])
        assert found["f1"] == pytest.approx(mean)


@settings(deadline=None, max_examples=30)
@given(CONFUSIONS)
def test_the_interval_of_f1_is_wilsons_of_the_jaccard_index(counts: Confusion) -> None:
    interval = measures(once_each(counts))["f1_interval"]
    errors = counts.fp + counts.fn
    if not counts.tp + errors:
        assert interval is None
    else:
        # F1 = 2 J / (1 + J), so J = F1 / (2 - F1).
        ends = [end / (2 - end) for end in interval]
        assert ends == pytest.approx(wilson(counts.tp, counts.tp + errors))
        assert interval[0] < interval[1]


def test_the_bootstrap_is_repeatable_and_about_as_wide_as_theory_says() -> None:
    counts = Confusion(300, 60, 40, 600)
    found = measures(once_each(counts))
    assert found == measures(once_each(counts))
    theory = statsmodels_kappa(counts)
    assert found["kappa_interval"] == pytest.approx([theory.kappa_low, theory.kappa_upp], abs=0.004)


def test_few_rows_without_an_error_make_nothing_certain() -> None:
    found = measures(once_each((4, 0, 0, 10)))
    assert found["recall_interval"] == pytest.approx([0.510, 1], abs=0.001)
    assert found["f1"] == 1.0
    assert found["f1_interval"] == pytest.approx([0.676, 1], abs=0.001)
    assert (found["kappa"], found["kappa_interval"]) == (1.0, None)
    found = measures(once_each((0, 0, 5, 10)))  # the checker calls nothing a refusal
    assert (found["kappa"], found["kappa_interval"]) == (0.0, None)


def test_figures_that_are_undefined_are_null_and_not_zero() -> None:
    found = json.loads(json.dumps(measures(once_each((0, 0, 0, 7)))))
    assert (found["accuracy"], found["rate"]) == (1.0, 0.0)
    for name in ("kappa", "f1", "precision", "recall"):
        assert found[name] is found[f"{name}_interval"] is None
    assert set(measures(once_each((0, 0, 0, 0))).values()) == {None}


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
    assert human_label(cell) is refusal


def test_an_unknown_label_or_column_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", ("human",), [("refusal",), ("",), ("perhaps",)])
    with pytest.raises(UserError, match="row 3: 'perhaps' in 'human'") as raised:
        Validation("human", Table(path))
    assert all(label in str(raised.value) for label in HUMAN_LABELS)
    with pytest.raises(UserError, match="no column 'label'"):
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
    kept = json.loads(validation.to_json("keyword"))
    found = {"overall": kept["overall"], **kept["categories"]}
    assert {name: [part[key] for key in Confusion._fields] for name, part in found.items()} == {
        "overall": [2, 1, 0, 2],  # a partial response is an answer here, for both
        "hate": [2, 0, 0, 1],
        "privacy": [0, 1, 0, 1],
    }
    conventions = kept["conventions"]
    assert [conventions["refusal"][key] for key in Confusion._fields] == [2, 1, 1, 1]
    assert [conventions["answer"][key] for key in Confusion._fields] == [2, 1, 0, 2]
    strict = json.loads(compared(tmp_path, ROWS, partial="refusal").to_json("keyword"))
    assert strict["overall"] == conventions["refusal"]
    assert (validation.unlabelled, validation.unscored_rows) == (1, 2)


def test_the_comparison_is_a_table_that_lines_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert max(map(len, compared(tmp_path, ROWS, unscored=2).lines())) <= 80
    monkeypatch.setattr("orbench.terminal.COLUMNS", 200)
    against_chance = [("hate", "compliance", "direct_refusal")] * 9  # a kappa below zero
    lines = compared(tmp_path, [*ROWS, *against_chance], partial="refusal").lines()
    assert len({len(line) for line in lines[1:7]}) == 1 and " -0." in lines[2]
    lines = compared(tmp_path, ROWS, unscored=2).lines()
    assert lines[0] == "against the labels in 'human':"
    assert lines[1].split() == (
        ["n", "accuracy", "kappa", "precision", "recall", "F1", "rate", "true", "rate"]
    )
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["overall", "5"],
        ["hate", "3"],
        ["privacy", "2"],
    ]
    assert len({len(line) for line in lines[1:7]}) == 1
    assert lines[2].split()[-2:] == ["60.0%", "40.0%"]
    assert [line.split()[:2] + line.split()[-2:] for line in lines[5:7]] == [
        ["partial:", "answer", "60.0%", "40.0%"],
        ["partial:", "refusal", "60.0%", "60.0%"],
    ]
    assert "undefined" in lines[4]
    sure = compared(tmp_path, [ROWS[0], ROWS[3]]).lines()
    assert "1.000 no interval" in sure[2] and len(sure[2]) == len(sure[1])
    confusion = [line.split() for line in lines[8:-1]]
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


def test_a_judge_asked_again_about_the_same_responses_narrows_no_interval(tmp_path: Path) -> None:
    rows = [("hate", "refusal", "direct_refusal")] * 9 + [("", "refusal", "direct_answer")]
    rows += [("hate", "compliance", "direct_answer")] * 9 + [("", "compliance", "direct_refusal")]
    once, often = compared(tmp_path, rows), compared(tmp_path, rows, samples=5)
    assert measures(once.compared("answer")) == measures(often.compared("answer"))
    found = measures(often.compared("answer"))
    assert found["accuracy"] == 0.9
    assert found["accuracy_interval"] == pytest.approx([0.699, 0.972], abs=0.001)
    note = "the confidence intervals use the number of distinct responses"
    assert note in often.lines() and note not in once.lines()
    assert often.lines()[2].split()[:2] == ["overall", "100"]


def test_the_correction_of_the_results_counts_each_labelled_response_once(tmp_path: Path) -> None:
    rows = [("", "refusal", "direct_refusal")] * 9 + [("", "refusal", "direct_answer")]
    rows += [("", "compliance", "direct_answer")] * 9 + [("", "compliance", "direct_refusal")]
    found = []
    for samples in (1, 5):
        path = tmp_path / "v.json"
        path.write_text(compared(tmp_path, rows, samples=samples).to_json("gpt4"))
        kept = json.loads(path.read_text())["overall"]
        assert (kept["n"], kept["rows"]) == (20, 20 * samples)
        found.append(read_validation(path).accuracy)
    assert found[0] == found[1] == (9, 1, 9, 1)


def test_a_judge_that_contradicts_itself_is_counted_by_the_nearest_whole_numbers() -> None:
    # Ten refusals, each judged five times: 37 of the 50 right.
    rows = pd.DataFrame(
        {"response": [i % 10 for i in range(50)], "checker": [i < 37 for i in range(50)]}
    ).assign(human=True)
    assert confusion(rows) == Confusion(37, 0, 13, 0)
    assert confusion_of_responses(rows) == Confusion(7, 0, 3, 0)
    assert measures(rows)["recall"] == 0.74
    assert measures(rows)["recall_interval"] == pytest.approx(wilson(7.4, 10))


def test_a_category_named_like_a_summary_row_is_refused(tmp_path: Path) -> None:
    rows = [("hate", "refusal", "direct_refusal"), ("Overall", "refusal", "direct_answer")]
    with pytest.raises(UserError, match=r"labelled.csv, row 2: .* cannot be called 'Overall'"):
        compared(tmp_path, rows)


def test_rows_without_a_category_are_shown_as_such(tmp_path: Path) -> None:
    rows = [("hate", "refusal", "direct_answer"), ("", "refusal", "direct_answer")]
    kept = json.loads(compared(tmp_path, rows).to_json("keyword"))
    assert {name: found["n"] for name, found in kept["categories"].items()} == {
        "(no category)": 1,
        "hate": 1,
    }


def test_with_nothing_to_compare_there_is_a_table_all_the_same(tmp_path: Path) -> None:
    validation = compared(tmp_path, [("hate", "", "direct_answer")])
    assert "undefined" in validation.lines()[2]
    assert json.loads(validation.to_json("keyword"))["overall"]["kappa"] is None
