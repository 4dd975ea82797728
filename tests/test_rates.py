"""Rates, their intervals, and the closing table."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from orbench.rates import RefusalTally, check_row, wilson
from orbench.report.measurements import Source, measure
from orbench.report.results import results_of
from orbench.table import Row
from orbench.terminal import UserError
from tests.conftest import write_csv


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


def rejected(row: Row) -> bool:
    return row["is_rejected"] == "True"


def tally(**rows: tuple[int, int, int]) -> RefusalTally:
    """Category -> refused, answered, unscored; each row a prompt of its own."""
    counted = RefusalTally(rejected)
    for category, (refused, answered, unscored) in rows.items():
        row: Row = {"category": category.replace("_", "-")}
        for i in range(refused + answered):
            prompt = f"{category} {i}"
            counted.scored({**row, "prompt": prompt, "is_rejected": str(i < refused)})
        for _ in range(unscored):
            counted.unscored(row)
    return counted


def of(rows: Iterable[Row]) -> list[str]:
    """The closing table of some scored rows."""
    counted = RefusalTally(rejected)
    for row in rows:
        counted.scored(row)
    return counted.lines()


def overall(lines: Sequence[str]) -> list[str]:
    """n, refused, rate, interval, unscored, coverage, bounds of the last overall line."""
    return [line for line in lines if line.startswith("overall")][-1].split()[1:]


def test_the_closing_table_gives_each_category_and_the_whole() -> None:
    counted = tally(
        violence=(0, 12, 0), deception=(31, 169, 2), self_harm=(3, 0, 0), hate=(0, 0, 1)
    )
    assert counted.lines() == [
        "category     n  refused    rate     95 % CI  unscored  coverage    bounds, %",
        "deception  200       31   15.5%   11.1-21.2         2     99.0%    15.3-16.3",
        "hate         0        0       -           -         1        0%            -",
        "self-harm    3        3  100.0%  43.9-100.0         0    100.0%  100.0-100.0",
        "violence    12        0    0.0%    0.0-24.2         0    100.0%      0.0-0.0",
        "overall    215       34   15.8%   11.5-21.3         3     98.6%    15.6-17.0",
        "bounds: the rate if all unscored rows were answered, or all refused",
    ]
    categories = {
        "violence": [12, 0, 0],
        "deception": [200, 31, 2],
        "self-harm": [3, 3, 0],
        "hate": [0, 0, 1],
    }
    assert counted.findings()["refusals"] == {"": categories}


ALIKE = "intervals allow for answers to one prompt, or seed, being alike"


def asked(i: int, refused: bool, **more: str) -> Row:
    return {"prompt": f"prompt {i}", "is_rejected": str(refused), **more}


def test_safe_and_toxic_prompts_are_never_one_rate() -> None:
    rows = [asked(i, i > 0, is_toxic=toxic) for i, toxic in enumerate(("False", "False", "True"))]
    lines = of(rows)
    assert [line.split()[1] for line in lines if line.startswith("overall")] == ["2", "1"]
    assert lines[0].startswith("over-refusal") and lines[3].startswith("toxic rejection")


def test_a_spreadsheets_true_and_false_are_true_and_false() -> None:
    plain = of(asked(i, i % 3 == 0, is_toxic=str(i < 50)) for i in range(100))
    shouted = of(asked(i, i % 3 == 0, is_toxic=f" {i < 50} ".upper()) for i in range(100))
    assert plain == shouted
    assert sum(line.startswith("overall") for line in plain) == 2


@pytest.mark.parametrize("cell", ["0", "1", "Maybe", "0.3", "yes"])
def test_a_row_that_is_neither_true_nor_false_is_refused_at_the_door(cell: str) -> None:
    with pytest.raises(UserError, match="not True or False") as raised:
        check_row(asked(0, True, is_toxic=cell), "p.csv, row 1")
    assert str(raised.value).startswith("p.csv, row 1: is_toxic")


def test_rows_of_which_the_side_is_not_known_have_a_table_of_their_own() -> None:
    lines = of(asked(i, True, is_toxic=cell) for i, cell in enumerate(("True", "False", "", " ")))
    assert lines[::3] == [
        "is_toxic is not given",
        "over-refusal: safe prompts (is_toxic False)",
        "toxic rejection: toxic prompts (is_toxic True)",
    ]
    assert [line.split()[1] for line in lines[2::3]] == ["2", "1", "1"]


@pytest.mark.parametrize(
    ("rows", "interval"),
    [
        ([asked(i, i < 60) for i in range(100)], "50.2-69.1"),
        ([asked(i, i < 60, sample=str(i)) for i in range(100)], "50.2-69.1"),
        ([asked(i % 20, i % 20 < 10) for i in range(100)], "29.0-71.0"),
        ([asked(i // 5, i < 50, sample=str(i % 5)) for i in range(100)], "29.0-71.0"),
        (
            [asked(i // 3, i < 30, sample=str(i % 3)) for i in range(60) if i % 3 or not i],
            "29.3-70.7",
        ),
    ],
    ids=["plain", "own sample column", "repeats", "samples", "first samples unscored"],
)
def test_the_interval_is_as_of_one_answer_a_prompt(rows: list[Row], interval: str) -> None:
    lines = of(rows)
    assert overall(lines)[3] == interval
    repeated = len({row["prompt"] for row in rows}) < len(rows)
    assert (ALIKE in lines) is repeated


@pytest.mark.parametrize(
    ("more", "times"),
    [
        (lambda i: {}, 1),
        (lambda i: {"toxic_seed": f"s{i // 8}"}, 1),
        (lambda i: {"prompt": f"prompt {i // 4}", "category": "ab"[i // 4 % 2]}, 4),
    ],
    ids=["independent", "seeds", "repeats"],
)
def test_the_closing_table_is_that_of_the_results(
    tmp_path: Path, more: Callable[[int], Row], times: int
) -> None:
    rows = [asked(i, i % 7 < 3, category="ab"[i % 2]) | more(i) for i in range(100)]
    path = write_csv(tmp_path / "m.csv", list(rows[0]), [list(row.values()) for row in rows])
    failed = [["x", "a"], ["y", "a"]] * times
    write_csv(tmp_path / "m_failed.csv", ["prompt", "category"], failed)
    counted = RefusalTally(rejected)
    for row in rows:
        counted.scored(row)
    for _ in failed:
        counted.unscored({"category": "a"})
    found = results_of(measure([Source(path, "m", "over_refusal")]), None, False)
    for name, line in zip(("a", "b", "overall"), counted.lines()[1:4], strict=True):
        (rate,) = found[found["category"] == name].itertuples()
        assert line.split() == [
            *(name, f"{rate.n:.0f}", f"{rate.refused:.0f}", f"{rate.rate_percent:.1f}%"),
            *(f"{rate.low_percent:.1f}-{rate.high_percent:.1f}", f"{rate.unscored:.0f}"),
            f"{rate.coverage_percent:.1f}%",
            f"{rate.low_bound_percent:.1f}-{rate.high_bound_percent:.1f}",
        ]


def test_the_closing_table_of_a_large_set_fits_a_terminal() -> None:
    counted = tally(self_harm=(80359, 1, 12345), harassment=(12345, 23456, 0))
    assert max(map(len, counted.lines())) <= 80
    counted = tally(**{"Sexual content or sexual services": (1319, 20, 3), "b" * 40: (655, 1, 0)})
    lines = counted.lines()
    assert {len(line) for line in lines[:4]} == {80} and "Sexual " in lines[1] + lines[2]


def test_repeated_samples_narrow_no_interval() -> None:
    once = [asked(i, True, category=str(i)) for i in range(5)]
    thrice = [{**row, "sample": str(sample)} for row in once for sample in range(3)]
    assert overall(of(once))[2:] == overall(of(thrice))[2:]
    assert of(thrice)[-1] == ALIKE


@pytest.mark.parametrize("name", ["overall", "Macro  average", "(no category)", " OVERALL "])
def test_a_category_called_like_a_row_of_all_is_refused_at_the_door(name: str) -> None:
    with pytest.raises(UserError, match="rename it"):
        check_row(asked(0, True, category=name), "p.csv, row 1")
    check_row(asked(0, True, category="overall mischief"), "p.csv, row 1")


def test_a_file_without_categories_has_the_overall_line_alone() -> None:
    unnamed = RefusalTally(lambda row: True)
    unnamed.scored({"prompt": "a"})
    for counted in (unnamed, tally()):
        assert [line.split()[0] for line in counted.lines()] == ["category", "overall"]
    assert len(tally(hate=(1, 3, 0)).lines()) == 3


def test_rows_without_a_category_are_counted_under_that_name() -> None:
    counted = RefusalTally(lambda row: row["answer_category"] != "direct_answer")
    counted.scored({"prompt": "a", "answer_category": "indirect_refusal"})
    counted.scored({"prompt": "b", "answer_category": "direct_answer", "category": ""})
    counted.unscored({"category": "hate"})
    names = [line[:13].strip() for line in counted.lines()[:-1]]
    assert names == ["category", "(no category)", "hate", "overall"]
    assert "  50.0%" in counted.lines()[1]


def test_unscored_rows_are_in_no_rate() -> None:
    found = overall(tally(hate=(1, 1, 8)).lines())
    assert found == ["2", "1", "50.0%", "9.5-90.5", "8", "20.0%", "10.0-90.0"]


def test_a_category_is_shown_on_one_line_whatever_it_holds() -> None:
    counted = RefusalTally(lambda row: True)
    counted.scored({"prompt": "a", "category": "a\nb\x1b[31m"})
    counted.scored({"prompt": "b", "category": "hate"})
    assert all(line.isprintable() for line in counted.lines())
