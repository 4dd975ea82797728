"""Prompts in steps, such as benign, borderline and dual use: rates by tier, and whether refusals
rise with the tier.

The test compares, within each seed, the prompts above its mean tier with those below, as D. R. Cox
and A. Stuart do along a series (Biometrika 42 (1955) 80-95). How seeds differ has no part in it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from pandas import Series  # type: ignore[import-untyped]

from orbench.base.grouping import grouped
from orbench.base.words import SIDES, tiers_in_order
from orbench.report.measures import Analysis, Associated, Association, Kind, Outcome, Subset
from orbench.report.rates import refusal_rate
from orbench.report.results import Responses, Result, joined_responses, merged
from orbench.report.standings import Standing
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, FEW_CLUSTERS, Array, Difference, Verdicts, difference


class Scale(NamedTuple):
    """The tiers of models with the same prompts and judge."""

    standings: list[Standing]
    results: list[Result]  # theirs, in the order given
    tiers: list[str]  # the lowest first
    sides: list[str]  # within which tiers are compared; empty: across both


def tiers(board: Sequence[Standing]) -> Analysis:
    """Return the rates by tier, and a trend for each model and scale; nothing without a tier.

    Scripted and partial results have no trend.
    """
    rates = {}  # a result may be in two rows of the leaderboard
    trends: list[Association] = []
    for scale in scales(board):
        for result, tier in product(scale.results, scale.tiers):
            part = result.responses.where(result.responses.tier == tier)
            if len(part):
                rates[result.number, tier] = refusal_rate(result, part, Subset(Kind.TIER, tier))
        trends += _trends(scale)
    return Analysis([*rates.values()], associations=_corrected(trends))


def scales(board: Sequence[Standing]) -> Iterator[Scale]:
    """Yield the tiers of each group of the leaderboard; nothing for one without tiers.

    They are compared across both sides unless these have a tier in common.
    """
    for standings in grouped(board, lambda standing: standing.group).values():
        of_models = chain(*[standing.results for standing in standings])
        results = sorted(of_models, key=lambda result: result.number)
        sides = defaultdict[str, set[str]](set)
        for result in results:
            for tier in result.responses.tier:
                sides[tier].add(result.side.name)
        sides.pop("", None)
        if sides:
            within = any(len(several) > 1 for several in sides.values())
            names = tiers_in_order([*sides])
            yield Scale(standings, results, names, [*SIDES] if within else [""])


def _on(standing: Standing, side: str) -> list[Result]:
    """Return a model's results on a side or (empty) on both."""
    return [one for one in standing.results if side in ("", one.side.name)]


def responses_on(standing: Standing, side: str) -> Responses:
    """Return a model's responses on a side or (empty) on both, perhaps none."""
    none = standing.first.responses.where(np.array([], int))
    return joined_responses([none, *[one.responses for one in _on(standing, side)]])


def _trends(scale: Scale) -> Iterator[Association]:
    """Yield the trend of each model; p_adjusted and p_worst are not yet corrected."""
    done = set()
    for standing, side in product(scale.standings, scale.sides):
        numbers = tuple(one.number for one in _on(standing, side))
        responses = responses_on(standing, side)
        tiered = responses.where(responses.tier != "")
        # A toxic set may belong to several safe ones.
        if len(tiered) and numbers not in done and not standing.doubts:
            done.add(numbers)
            yield _trend(standing, side, tiered, scale.tiers)


def _trend(
    standing: Standing, side: str, responses: Responses, tiers: Sequence[str]
) -> Association:
    steps = np.array([tiers.index(tier) for tier in responses.tier])
    seed = responses.seed
    gap = _compared(responses.refused, seed, steps)
    is_against = _above(seed, steps) * gap.difference < 0
    at_worst = np.where(responses.scored, responses.refused, is_against)
    worst = _compared(at_worst, seed, steps)
    is_same_sign = gap.difference * worst.difference > 0
    return Association(
        kind=Associated.TREND,
        result=merged(standing.results),
        value=" < ".join(tiers[step] for step in np.unique(steps)),
        n=gap.a.prompts,
        estimate=gap.difference,
        interval=gap.interval,
        p=gap.p,
        p_adjusted=gap.p,
        p_worst=worst.p if is_same_sign else 1.0,
        outcome=Outcome.NO_DIFFERENCE,
        of_side=side,
        higher=gap.a.rate,
        lower=gap.b.rate,
    )


def _compared(refused: Array, seed: Array, steps: Array) -> Difference:
    """Return how the rate above each seed's mean tier differs from that below, each seed alike."""
    above = _above(seed, np.where(np.isfinite(refused), steps, np.nan))
    higher = Verdicts(np.where(above > 0, refused, np.nan), seed, seed)
    lower = Verdicts(np.where(above < 0, refused, np.nan), seed, seed)
    return difference(higher, lower, paired=False)


def _above(seed: Array, steps: Array) -> Array:
    """Return how far each row is above the mean tier of its seed; NaN for a step that is."""
    above: Array = steps - Series(steps).groupby(seed).transform("mean").to_numpy()
    return above


def _corrected(trends: Sequence[Association]) -> list[Association]:
    """Return the trends with p values that are corrected for all of them, and what they show."""
    p_holm = holm([trend.p for trend in trends]).tolist()
    p_worst = holm([trend.p_worst for trend in trends]).tolist()
    found = []
    for trend, p, worst in zip(trends, p_holm, p_worst, strict=True):
        outcome = Outcome.FINDING
        if trend.n < FEW_CLUSTERS:
            outcome = Outcome.TOO_FEW
        elif p >= ALPHA:
            outcome = Outcome.NO_DIFFERENCE
        elif worst >= ALPHA:
            outcome = Outcome.INCONCLUSIVE
        found.append(replace(trend, p_adjusted=p, p_worst=worst, outcome=outcome))
    return found
