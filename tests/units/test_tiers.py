"""Rates by tier, and what a trend over tiers shows; test_trend.py has its estimate and its p."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.report.analyses.tiers import scales, tiers
from orbench.report.measures import Association, Outcome
from orbench.report.results import SAFE, TOXIC, Result
from orbench.report.standings import Standing
from orbench.stats.core import Verdicts, difference
from tests.results import responses, result_of, standing_of

STEPS = ("benign", "borderline")
NAN = float("nan")


def tiered(
    refused: list[float], *steps: str, seeds: int = 0, number: int = 0, **about: Any
) -> Result:
    """A result with a prompt in each step of each seed, seed by seed."""
    n = len(refused)
    seed = np.arange(n) // len(steps) + seeds
    columns: dict[str, Any] = {"tier": list(steps) * (n // len(steps)), "seed": seed}
    columns["prompt"] = np.arange(n) + 1000 * seeds
    return result_of(responses(refused, **columns), number, **about)


def toxic_side(of: Result, **about: Any) -> Result:
    """The same responses on the other side, to other prompts."""
    moved = replace(of.responses, prompt=of.responses.prompt + 5000)
    changed: dict[str, Any] = {"number": of.number + 1, "side": TOXIC, "responses": moved}
    return replace(of, **changed | about)


def trends(*board: Standing) -> list[Association]:
    return list(tiers(board).associations)


def rising(seeds: int, **about: Any) -> Result:
    """The higher prompt of each seed is refused, but for the last seed's."""
    return tiered([0.0, 1.0] * (seeds - 1) + [0.0, 0.0], *STEPS, **about)


# -- scales --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["dual use", "benign", "borderline"], ["benign", "borderline", "dual use"]),
        (["10", "9", "2.5"], ["2.5", "9", "10"]),
        (["three", "one"], ["three", "one"]),
        (["benign", ""], ["benign"]),
    ],
)
def test_tiers_have_the_order_of_a_known_scale_or_that_of_the_file(
    given: list[str], expected: list[str]
) -> None:
    (scale,) = scales([standing_of(tiered([0] * len(given), *given))])
    assert scale.tiers == expected


def test_a_group_without_tiers_has_no_scale_and_others_have_their_own() -> None:
    plain = standing_of(result_of(responses([0.0, 1.0])))
    of_b = replace(standing_of(tiered([0, 1], *STEPS, number=1)), group=1)
    of_c = replace(standing_of(tiered([0, 1], "1", "2", number=2)), group=2)
    found = list(scales([plain, of_b, of_c]))
    assert [scale.tiers for scale in found] == [["benign", "borderline"], ["1", "2"]]


@pytest.mark.parametrize(
    ("of_toxic", "sides"),
    [("high", [""]), ("benign", ["over_refusal", "toxic"])],
)
def test_tiers_that_both_sides_have_are_compared_within_each(
    of_toxic: str, sides: list[str]
) -> None:
    safe = tiered([0, 1] * 12, *STEPS)
    toxic = toxic_side(safe)
    of_side = np.array([of_toxic, "dual use"] * 12, object)
    toxic = replace(toxic, responses=replace(toxic.responses, tier=of_side))
    (scale,) = scales([standing_of(safe, toxic)])
    assert scale.sides == sides
    assert [found.of_side for found in trends(standing_of(safe, toxic))] == sides


# -- rates ---------------------------------------------------------------------------------------


def test_each_result_has_a_rate_in_each_of_its_tiers_in_the_order_given() -> None:
    a = tiered([0, 1, 1, NAN], "1", "2", number=1)
    b = tiered([1, 1], "2", "3", number=0, seeds=9)
    rates = tiers([standing_of(a), standing_of(b)]).rates
    shown = [(one.result.number, one.subset.value, one.mean.rate, one.unscored) for one in rates]
    assert shown == [(0, "2", 1, 0), (0, "3", 1, 0), (1, "1", 0.5, 0), (1, "2", 1, 1)]


def test_a_result_in_two_rows_of_the_leaderboard_has_its_rates_once() -> None:
    safe = [tiered([0, 1] * 12, *STEPS, seeds=50 * n, number=n) for n in (0, 1)]
    toxic = replace(toxic_side(safe[0]), number=2)
    board = [standing_of(one, toxic) for one in safe]
    numbers = [rate.result.number for rate in tiers(board).rates]
    assert numbers == [0, 0, 1, 1, 2, 2]
    apart = [board[0], replace(board[1], group=1)]
    assert sorted(rate.result.number for rate in tiers(apart).rates) == [0, 0, 1, 1, 2, 2]
    found = trends(*board)
    assert [(one.of_side, one.result.number) for one in found] == [
        ("over_refusal", 0),
        ("toxic", 0),
        ("over_refusal", 1),
    ]


# -- trends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seeds", "outcome"), [(9, Outcome.TOO_FEW), (10, Outcome.FINDING), (30, Outcome.FINDING)]
)
def test_a_trend_needs_ten_seeds(seeds: int, outcome: Outcome) -> None:
    (found,) = trends(standing_of(rising(seeds)))
    assert (found.n, found.outcome, found.value) == (seeds, outcome, "benign < borderline")
    assert found.estimate == pytest.approx((seeds - 1) / seeds)
    assert found.interval and found.interval.low < found.estimate < found.interval.high


def test_the_rates_above_and_below_are_compared_unpaired() -> None:
    random = np.random.default_rng(1)
    refused = (random.random((15, 2)) < [0.2, 0.6]).astype(float)
    (found,) = trends(standing_of(tiered(list(refused.ravel()), *STEPS)))
    seed = np.arange(15)
    lower, higher = (Verdicts(values, seed, seed) for values in refused.T)
    expected = difference(higher, lower, paired=False)
    assert (found.p, found.interval) == (expected.p, expected.interval)
    assert expected.interval != difference(higher, lower, paired=True).interval


def test_a_scripted_side_leaves_the_model_without_a_trend() -> None:
    safe = rising(12)
    assert trends(standing_of(safe, toxic_side(safe, doubt="scripted"))) == []
    assert len(tiers([standing_of(replace(safe, doubt="scripted"))]).rates) == 2


def test_one_tier_alone_gives_no_finding() -> None:
    (found,) = trends(standing_of(tiered([0, 1] * 12, "benign")))
    assert (found.n, found.value, found.outcome) == (0, "benign", Outcome.TOO_FEW)


def test_trends_of_all_groups_are_corrected_together() -> None:
    random = np.random.default_rng(0)
    board = []
    for number, rise in enumerate((0.3, 0.3, 0.1)):
        refused = (random.random((40, 2)) < [0.3, 0.3 + rise]).astype(float)
        result = tiered(list(refused.ravel()), *STEPS, number=number)
        board.append(replace(standing_of(result), group=number))
    found = trends(*board)
    p = [one.p for one in found]
    corrected = multipletests(p, method="holm")[1]
    assert [one.p_adjusted for one in found] == pytest.approx(corrected)
    assert any(one.p < 0.05 < one.p_adjusted for one in found)
    for one in found:
        shown = Outcome.FINDING if one.p_adjusted < 0.05 else Outcome.NO_DIFFERENCE
        assert one.outcome is shown


@pytest.mark.parametrize("rise", [1, -1])
@pytest.mark.parametrize(
    ("lost", "outcome"),
    [
        (0, Outcome.FINDING),
        (1, Outcome.FINDING),
        (9, Outcome.INCONCLUSIVE),
        (14, Outcome.INCONCLUSIVE),
    ],
)
def test_unscored_rows_count_against_the_trend(rise: int, lost: int, outcome: Outcome) -> None:
    steps = STEPS[::rise]
    scored = [0.0, 1.0] * (24 - lost)
    (found,) = trends(standing_of(tiered(scored + [NAN] * 2 * lost, *steps)))
    (worst,) = trends(standing_of(tiered(scored + [1.0, 0.0] * lost, *steps)))
    assert (found.n, found.estimate) == (24 - lost, rise)
    turned = worst.estimate * rise < 0
    assert turned == (lost == 14)
    assert found.p_worst == (1 if turned else worst.p)
    assert found.outcome is outcome


def test_both_sides_of_a_model_are_one_series_if_no_tier_is_on_both() -> None:
    safe = tiered([0, 0] * 12, *STEPS)
    toxic = toxic_side(safe, prompts="t")
    higher = replace(toxic.responses, tier=np.full(24, "dual use", object), refused=np.ones(24))
    (found,) = trends(standing_of(safe, replace(toxic, responses=higher)))
    assert found.value == "benign < borderline < dual use"
    assert (found.result.side.name, found.result.prompts) == ("both", "p, t")
    assert (found.higher, found.lower, found.of_side) == (1, 0, "")


def test_without_a_response_on_a_side_there_is_no_trend_there() -> None:
    safe = tiered([0, 1] * 12, *STEPS)
    whole = standing_of(safe, toxic_side(safe))
    alone = standing_of(tiered([0, 1] * 12, *STEPS, number=7))
    found = [(one.result.number, one.of_side) for one in trends(whole, alone)]
    assert found == [(0, SAFE.name), (0, TOXIC.name), (7, SAFE.name)]
