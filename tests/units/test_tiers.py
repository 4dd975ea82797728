"""Rates by tier, and the trend of refusals over tiers; tests/simulations/coverage.py measures how
often it errs.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.report.analyses.tiers import scales, tiers
from orbench.report.measures import Association, Counted, Outcome
from orbench.report.sentences import trend_lines, trend_words
from orbench.report.standings import Standing
from orbench.stats.core import Array, Verdicts, difference
from tests.units.read_results import cells_of, read_board, read_standing

SEEDS = np.arange(24) // 2


def tiered(text: str, number: int = 0, **about: Any) -> Standing:
    """A model with a prompt in tiers 1 and 2 of each seed, if not said otherwise."""
    n = len(cells_of(text.split()[0]))
    standard = {"tier": list("12") * (n // 2), "seed": np.arange(n) // 2}
    standing: Standing = read_standing(text, number, **standard | about)
    return standing


def lines(*board: Standing) -> list[str]:
    """The model of each trend, its side, tiers, seeds and what it shows."""
    shown = []
    for one in tiers(board).associations:
        where = f"{one.result.model} {one.result.side.name}".removesuffix(" both")
        shown.append(f"{where}: {one.value}, {one.n} {one.outcome.name}")
    return shown


def digits(refused: Array) -> str:
    return "".join(map(str, refused.ravel()))


def only(*board: Standing) -> Association:
    (found,) = tiers(board).associations
    return found


# -- scales --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("dual use,benign,borderline", "benign,borderline,dual use"),
        ("10,9,2.5", "2.5,9,10"),
        ("three,one", "three,one"),
        ("benign,", "benign"),
    ],
)
def test_tiers_have_the_order_of_a_known_scale_or_that_of_the_file(
    given: str, expected: str
) -> None:
    of_rows = given.split(",")
    (scale,) = scales([tiered("0" * len(of_rows), tier=of_rows, seed=0)])
    assert ",".join(scale.tiers) == expected


def test_a_group_without_tiers_has_no_scale_and_others_have_their_own() -> None:
    board = []
    for group, tier in enumerate(("", "tier=ab", "tier=12")):
        board.append(replace(read_standing(f"01 {tier}", group), group=group))
    assert [scale.tiers for scale in scales(board)] == [["a", "b"], ["1", "2"]]


@pytest.mark.parametrize(
    ("of_toxic", "expected"),
    [
        ("3*24", "m0: 1 < 2 < 3, 12 FINDING; m7: 1 < 2, 12 FINDING"),
        (
            "13*12",
            "m0 over_refusal: 1 < 2, 12 FINDING; m0 toxic: 1 < 3, 12 FINDING; "
            "m7: 1 < 2, 12 FINDING",
        ),
    ],
)
def test_tiers_that_both_sides_have_are_compared_within_each(of_toxic: str, expected: str) -> None:
    refused = "1*24" if of_toxic == "3*24" else "01*12"
    whole = read_standing(f"01*12 tier=12*12 & {refused} tier={of_toxic}", seed=SEEDS)
    assert "; ".join(lines(whole, replace(tiered("01*12", 7), group=1))) == expected


# -- rates ---------------------------------------------------------------------------------------


def test_each_result_has_a_rate_in_each_of_its_tiers_in_the_order_of_the_board() -> None:
    board = read_board("11 tier=ba prompt=xy seed=99; 011? tier=cbcb seed=0011")[::-1]
    rates = tiers(board).rates
    shown = [f"{one.result.model} {one.subset.value} {one.mean.rate}" for one in rates]
    assert shown == ["m1 b 1.0", "m1 c 0.5", "m0 b 1.0", "m0 a 1.0"]
    assert rates[0].unscored == 1


def test_graded_results_have_the_share_of_each_class_in_each_tier() -> None:
    graded = ["partial", "direct_answer", "direct_answer", "partial"]
    rates = tiers([tiered("0000", graded=graded)]).rates
    hedged = {one.subset.value: one.mean.rate for one in rates if one.counted is Counted.HEDGED}
    assert hedged == {"1": 0.5, "2": 0.5} and len(rates) == 2 * 9


def test_a_result_in_two_rows_of_the_leaderboard_has_its_rates_once() -> None:
    first = read_standing("01*12 tier=12*12 & 01*12 tier=12*12", seed=SEEDS)
    second = tiered("01*12", 1, prompt=np.arange(100, 124))
    second = replace(second, sides=[*second.sides, first.sides[1]])
    rates = tiers([first, replace(second, group=1)]).rates
    assert sorted(rate.result.number for rate in rates) == [0, 0, 1, 1, 2, 2]


# -- trends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        ("01*8+00", "1 < 2, 9 TOO_FEW"),
        ("01*9+00 unranked=u", "1 < 2, 10 FINDING"),
        ("01*12 tier=1*24", "1, 0 TOO_FEW"),
    ],
)
def test_a_trend_needs_ten_seeds_and_two_tiers(refused: str, expected: str) -> None:
    assert lines(tiered(refused)) == [f"m0: {expected}"]


def test_a_scripted_side_leaves_the_model_without_a_trend() -> None:
    assert not lines(read_standing("01*12 tier=12*12 & 1*12 doubt=scripted", seed=0))
    assert len(tiers([tiered("01*12", doubt="scripted")]).rates) == 2


def test_the_rates_above_and_below_are_compared_unpaired() -> None:
    refused = (np.random.default_rng(1).random((15, 2)) < [0.2, 0.6]).astype(int)
    found = only(tiered(digits(refused)))
    seed = np.arange(15)
    lower, higher = (Verdicts(values.astype(float), seed, seed) for values in refused.T)
    expected = difference(higher, lower, paired=False)
    assert (found.p, found.interval) == (expected.p, expected.interval)


def test_prompts_above_the_mean_tier_of_their_seed_are_compared_with_those_below() -> None:
    # Seed 0: its middle prompt is neither; seed 1: two below; seed 2: in one tier alone.
    found = only(read_standing("01101110 seed=00011122 tier=01200211"))
    assert (found.n, found.higher, found.lower) == (2, 1, 0.25)
    between = only(tiered("10*20", seed=range(40)))
    assert between.n == 0 and np.isnan(between.p)


def test_trends_of_all_groups_are_corrected_together() -> None:
    random = np.random.default_rng(0)
    board = []
    for number, rise in enumerate((0.3, 0.3, 0.1)):
        refused = (random.random((40, 2)) < [0.3, 0.3 + rise]).astype(int)
        standing = tiered(digits(refused), number)
        board.append(replace(standing, group=number))
    found = tiers(board).associations
    corrected = multipletests([one.p for one in found], method="holm")[1]
    assert [one.p_adjusted for one in found] == pytest.approx(corrected)
    assert any(one.p < 0.05 < one.p_adjusted for one in found)
    shown = {True: Outcome.FINDING, False: Outcome.NO_DIFFERENCE}
    assert [one.outcome for one in found] == [shown[one] for one in corrected < 0.05]


@pytest.mark.parametrize("tier", ["12", "21"])
@pytest.mark.parametrize(
    ("lost", "outcome"),
    [
        (0, Outcome.FINDING),
        (1, Outcome.FINDING),
        (9, Outcome.INCONCLUSIVE),
        (14, Outcome.INCONCLUSIVE),
    ],
)
def test_unscored_rows_count_against_the_trend(tier: str, lost: int, outcome: Outcome) -> None:
    found, worst = (
        only(tiered(f"01*{24 - lost}+{filled}*{lost} tier={tier}*24")) for filled in ("??", "10")
    )
    rise = 1 if tier == "12" else -1
    assert (found.n, found.estimate, found.outcome) == (24 - lost, rise, outcome)
    is_turned = worst.estimate * rise < 0
    assert is_turned == (lost == 14)
    assert found.p_worst == (1 if is_turned else worst.p)


@pytest.mark.parametrize(
    ("of_seeds", "expected"),
    [
        ("001*24", "rises"),
        ("010*24", "not monotone: rises to 2, falls to 3"),
        ("101*24", "not monotone: falls to 2, rises to 3"),
        ("011*9+010*15", "not monotone: rises to 2, falls to 3"),  # though all in all it rises
        ("010*3+000*21", "no difference shown"),
    ],
)
def test_a_trend_that_a_shown_step_contradicts_is_not_monotone(
    of_seeds: str, expected: str
) -> None:
    refused = np.array([*cells_of(of_seeds)])
    three = np.arange(len(refused))
    found = only(tiered("".join(refused), tier=list("123") * 24, seed=three // 3))
    assert trend_words(found) == expected
    steps = [*found.steps.values()]
    for place, step in enumerate(steps):
        two = refused[(three % 3 == place) | (three % 3 == place + 1)]
        alone = only(tiered("".join(two)))
        assert (step.p, step.interval) == (alone.p, alone.interval)
    corrected = multipletests([step.p for step in steps], method="holm")[1]
    assert [step.p_adjusted for step in steps] == pytest.approx(corrected)


def test_tiers_without_seeds_ask_for_them() -> None:
    found = only(tiered("01*20", seed=range(40)))
    assert [*trend_lines([found])] == [
        "m0: refusals by tier (1 < 2): add a column seed_id, the same in all prompts of one intent"
    ]


def test_a_file_on_the_wrong_side_has_a_trend_of_its_own() -> None:
    wrong = read_standing("& 01*12 tier=12*12", 1, seed=SEEDS)
    assert lines(tiered("01*12"), wrong) == [
        "m0 over_refusal: 1 < 2, 12 FINDING",
        "m1 toxic: 1 < 2, 12 FINDING",
    ]


def test_both_sides_of_a_model_are_one_series_if_no_tier_is_on_both() -> None:
    text = "00*12 tier=12*12 & 1*24 tier=3*24 prompts=t"
    found = only(read_standing(text, seed=SEEDS))
    assert (found.result.side.name, found.result.prompts) == ("both", "p, t")
    assert (found.higher, found.lower) == (1, 0)
