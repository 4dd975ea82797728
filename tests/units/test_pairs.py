"""Pairs of a seed and its rewrite: who has one, what happens to it, and models compared by it."""

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.base.words import UNCATEGORIZED
from orbench.report.analyses.pairs import pairs
from orbench.report.measures import Analysis, Compared, Counted
from tests.units.read_results import read_board

OUTCOMES = [Counted.HIGHER_REFUSED, Counted.BOTH_REFUSED, Counted.BOTH_ANSWERED, Counted.REVERSE]
TWO = "1*10+0*20 category=ab*15 & 1*30; 1*19+0*11 category=ab*15 & 1*30"


def lines(found: Analysis) -> list[str]:
    """Model, side, tiers and category, prompts and those without a pair, the shares of OUTCOMES."""
    shown = []
    for place in range(0, len(found.rates), 4):
        four = found.rates[place : place + 4]
        assert [one.counted for one in four] == OUTCOMES
        assert len({(one.mean.prompts, one.unpaired, one.with_unscored) for one in four}) == 1
        rate = four[0]
        of = (rate.result.side.name, rate.subset.value, rate.subset.category)
        where = " ".join([rate.result.model, *of]).split()
        shares = " ".join(f"{one.mean.rate:.3g}" for one in four)
        shown.append(f"{' '.join(where)}: {rate.mean.prompts}+{rate.unpaired}, {shares}")
    return shown


def of_first(text: str) -> str:
    """The line of all pairs of the first model, from the number of prompts on."""
    return lines(pairs(read_board(text)))[0].partition(": ")[2]


@pytest.mark.parametrize(
    "case",
    [
        "00011001 & 11111000 -> 8+0, 0.375 0.25 0.25 0.125",
        # Seed 0 is refused in 2 of 3 known responses; its rewrites in 1 of 2 and in 0 of 1.
        "100 prompt=001 seed=000 & 110? prompt=9999 seed=0000 -> 2+0, 0.5 0.167 0.25 0.0833",
        "0?00 & 11?0 -> 2+0, 0.5 0 0.5 0",  # a pair without a verdict is one
        "0011 seed=0129 & 1111 -> 3+1, 0.667 0.333 0 0",
        "0011 seed=789z & 1111 -> 0+4, nan nan nan nan",
        "001 prompt=011 seed=099 & 1 -> 1+1, 1 0 0 0",  # a prompt counts once
        "000 & 111 seed=002 -> 1+2, 1 0 0 0",  # seed 0 is that of two prompts
        "000 & 111 prompt=0xy -> 2+1, 1 0 0 0",  # a prompt is not its own pair
        "01 -> 0+2, nan nan nan nan",
        "& 11 -> 0+0, nan nan nan nan",
    ],
)
def test_each_pair_has_one_of_four_outcomes(case: str) -> None:
    board, _, expected = case.partition(" -> ")
    assert of_first(board) == expected


def test_a_model_without_seeds_stands_beside_others_and_categories_are_the_rewrites() -> None:
    found = pairs(read_board("0100 category=baba & 1110; 01"))
    assert lines(found) == [
        "m0 both: 4+0, 0.5 0.25 0.25 0",
        "m0 both a: 2+0, 0 0.5 0.5 0",
        "m0 both b: 2+0, 1 0 0 0",
        "m1 both: 0+2, nan nan nan nan",
        "m1 both a: 0+2, nan nan nan nan",
    ]
    assert len(lines(pairs(read_board("01 & 11", category=UNCATEGORIZED)))) == 1


# -- tiers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        (
            "001011100 tier=123*3 seed=000111222",
            "m0 both 1 < 2: 3+0, 0.333 0 0.333 0.333; m0 both 1 < 3: 3+0, 0.667 0 0 0.333; "
            "m0 both 2 < 3: 3+0, 0.333 0.333 0.333 0",
        ),
        (
            "0011 tier=1212 seed=0011 & 11",
            "m0 both: 4+0, 0.5 0.5 0 0; m0 both 1 < 2: 2+0, 0 0.5 0.5 0",
        ),
        (
            "01 tier=ba seed=00; 0 & 1",
            "m0 both: 0+2, nan nan nan nan; m1 both: 1+0, 1 0 0 0; m0 both b < a: 1+0, 1 0 0 0; "
            "m1 both b < a: 0+0, nan nan nan nan",
        ),
        (
            "0101 tier=1212 seed=0011 & 1010 tier=1212 seed=0011",
            "m0 over_refusal 1 < 2: 2+0, 1 0 0 0; m0 toxic 1 < 2: 2+0, 0 0 0 1",
        ),
        (
            "01 tier=12 seed=00 & 10 tier=13 seed=00",
            "m0 over_refusal 1 < 2: 1+0, 1 0 0 0; m0 toxic 1 < 3: 1+0, 0 0 0 1",
        ),
    ],
)
def test_each_two_tiers_are_pairs_the_lower_one_the_rewrite(board: str, expected: str) -> None:
    found = lines(pairs(read_board(board, category=UNCATEGORIZED)))
    assert "; ".join(found) == expected


# -- models compared -----------------------------------------------------------------------------


def test_models_are_compared_by_their_right_pairs() -> None:
    found, *_ = pairs(read_board(TWO)).comparisons
    assert found.a.counted is found.b.counted is Counted.HIGHER_REFUSED
    assert found.gap.p == pytest.approx(mcnemar([[11, 9], [0, 10]], exact=True).pvalue)
    assert (found.kind, found.family) == (Compared.PAIRS, 1) and found.p_adjusted == found.gap.p
    assert np.isnan([found.p_worst, found.detectable]).all()


def test_all_pairs_are_a_family_and_the_categories_another_one() -> None:
    found = pairs(read_board(f"{TWO}; 1*30 category=ab*15 & 1*30")).comparisons
    shown = [f"{one.a.result.model} {one.b.result.model}{one.a.subset.category}" for one in found]
    assert shown == [
        *("m0 m1", "m0 m2", "m1 m2"),
        *("m0 m1a", "m0 m2a", "m1 m2a"),
        *("m0 m1b", "m0 m2b", "m1 m2b"),
    ]
    for family in (found[:3], found[3:]):
        assert {one.family for one in family} == {len(family)}
        corrected = multipletests([one.gap.p for one in family], method="holm")[1]
        assert [one.p_adjusted for one in family] == pytest.approx(corrected)
        assert [one.is_finding for one in family] == list(corrected < 0.05)
    assert len({one.outcome for one in found}) == 2


@pytest.mark.parametrize(
    ("board", "count"),
    [
        ("0*5+1*5 & 1*10; 0*3+1*7 & 1*10", 2),
        ("01 judge=x & 11 judge=x; 01 judge=y & 11 judge=y", 0),
        ("01 & 11; 01 prompt=yz & 11", 0),
    ],
)
def test_models_are_compared_on_pairs_in_common_by_one_judge(board: str, count: int) -> None:
    assert len(pairs(read_board(board)).comparisons) == count


@pytest.mark.parametrize("board", ["01 doubt=d & 11; 00 & 11", "01 & 11; 00 & 11 doubt=d"])
def test_results_in_doubt_are_not_compared(board: str) -> None:
    assert not pairs(read_board(board)).comparisons
