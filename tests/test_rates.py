"""Rates, their intervals, and the closing table."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from orbench.rates import RefusalTally, wilson
from orbench.table import Row


@settings(deadline=None)
@given(st.integers(1, 1_000_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons(counts: tuple[int, int]) -> None:
    hits, n = counts
    assert wilson(hits, n) == pytest.approx(
        proportion_confint(hits, n, alpha=0.05, method="wilson"), abs=1e-12
    )


def test_no_rounding_puts_the_rate_outside_its_interval() -> None:
    for n in range(1, 100):
        for hits in range(n + 1):
            low, high = wilson(hits, n)
            assert 0 <= low <= hits / n <= high <= 1


@pytest.mark.parametrize(
    ("percent", "n", "low", "high"),
    [(12.7, 1319, 11.0, 14.6), (50.0, 655, 46.2, 53.8), (10.0, 41, 4.0, 22.9)],
)
def test_the_interval_is_as_the_project_states_it(
    percent: float, n: int, low: float, high: float
) -> None:
    hits = percent / 100 * n
    assert [round(100 * end, 1) for end in wilson(hits, n)] == [low, high]


def test_of_nothing_every_rate_is_possible() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def tally(**rows: tuple[int, int, int]) -> RefusalTally:
    """Category -> refused, answered, unscored."""
    counted = RefusalTally(lambda row: row["is_rejected"] == "True")
    for category, (refused, answered, unscored) in rows.items():
        row: Row = {"category": category.replace("_", "-")}
        for _ in range(refused):
            counted.scored({**row, "is_rejected": "True"})
        for _ in range(answered):
            counted.scored({**row, "is_rejected": "False"})
        for _ in range(unscored):
            counted.unscored(row)
    return counted


def test_the_closing_table_gives_each_category_and_the_whole() -> None:
    counted = tally(
        violence=(0, 12, 0), deception=(31, 169, 2), self_harm=(3, 0, 0), hate=(0, 0, 1)
    )
    assert counted.lines() == [
        "category        n  refused     rate    95 % interval  unscored",
        "deception     200       31    15.5%   11.1% -  21.2%         2",
        "hate            0        0        -                -         1",
        "self-harm       3        3   100.0%   43.9% - 100.0%         0",
        "violence       12        0     0.0%    0.0% -  24.2%         0",
        "overall       215       34    15.8%   11.5% -  21.3%         3",
    ]
    categories = {
        "violence": [12, 0, 0],
        "deception": [200, 31, 2],
        "self-harm": [3, 3, 0],
        "hate": [0, 0, 1],
    }
    assert counted.findings()["refusals"] == {"": categories}


def test_safe_and_toxic_prompts_are_never_one_rate() -> None:
    counted = RefusalTally(lambda row: row["is_rejected"] == "True")
    for toxic, rejected in (("False", "True"), ("False", "False"), ("True", "True")):
        counted.scored({"category": "hate", "is_toxic": toxic, "is_rejected": rejected})
    lines = counted.lines()
    assert [line.split()[:2] for line in lines if "overall" in line] == [
        ["overall", "2"],
        ["overall", "1"],
    ]
    assert lines[0].startswith("over-refusal") and lines[4].startswith("toxic rejection")


def test_repeated_samples_narrow_no_interval() -> None:
    once, thrice = RefusalTally(lambda row: True), RefusalTally(lambda row: True)
    for prompt in range(5):
        once.scored({"category": str(prompt)})
        for sample in range(3):
            thrice.scored({"category": str(prompt), "sample": str(sample)})
    assert once.lines()[-1].split()[4:7] == thrice.lines()[-2].split()[4:7]
    assert thrice.lines()[-1] == "intervals as of one answer a prompt"


def test_a_file_without_categories_has_the_overall_line_alone() -> None:
    unnamed = RefusalTally(lambda row: True)
    unnamed.scored({})
    for counted in (unnamed, tally()):
        assert [line.split()[0] for line in counted.lines()] == ["category", "overall"]
    assert len(tally(hate=(1, 3, 0)).lines()) == 3


def test_rows_without_a_category_are_counted_under_that_name() -> None:
    counted = RefusalTally(lambda row: row["answer_category"] != "direct_answer")
    counted.scored({"answer_category": "indirect_refusal"})
    counted.scored({"answer_category": "direct_answer", "category": ""})
    counted.unscored({"category": "hate"})
    names = [line[:13].strip() for line in counted.lines()]
    assert names == ["category", "(no category)", "hate", "overall"]
    assert "  50.0%" in counted.lines()[1]


def test_unscored_rows_are_in_no_rate() -> None:
    overall = tally(hate=(1, 1, 8)).lines()[-1]
    assert overall.split()[:4] == ["overall", "2", "1", "50.0%"]
    assert overall.split()[-1] == "8"


def test_a_category_is_shown_on_one_line_whatever_it_holds() -> None:
    counted = RefusalTally(lambda row: True)
    counted.scored({"category": "a\nb\x1b[31m"})
    counted.scored({"category": "hate"})
    assert all(line.isprintable() for line in counted.lines())
