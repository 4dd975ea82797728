"""Prompts in steps, such as benign, borderline and dual use: rates by tier, and whether refusals
rise with the tier.

The test compares, within each seed, the prompts above its mean tier with those below, as D. R. Cox
and A. Stuart do along a series (Biometrika 42 (1955) 80-95). How seeds differ has no part in it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from orbench.base.words import SIDES, tiers_in_order
from orbench.report.measures import (
    Analysis,
    Associated,
    Association,
    Kind,
    Outcome,
    Rate,
    Standing,
    Subset,
)
from orbench.report.rates import refusal_rate
from orbench.report.results import Responses, Result, merged
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, FEW_CLUSTERS, Array, Difference, Verdicts, difference
from orbench.stats.intervals import Interval


class Scale(NamedTuple):
    """The tiers of models with the same prompts and judge."""

    standings: list[Standing]
    tiers: list[str]  # the lowest first
    sides: list[str]  # within which tiers are compared; empty: across both

    def results(self) -> list[Result]:
        """Return the results, in the order given."""
        results = [result for standing in self.standings for result in standing.results]
        by_number = {result.number: result for result in results}
        return [by_number[number] for number in sorted(by_number)]

    def steps(self, responses: Responses) -> Array:
        """Return the place of each response's tier in their order, from 0."""
        return np.array([self.tiers.index(tier) for tier in responses.tier], int)


def tiers(board: Sequence[Standing]) -> Analysis:
    """Return the rates by tier, and a trend for each model and scale; nothing without a tier.

    Scripted and partial results have no trend.
    """
    rates: list[Rate] = []
    trends: list[Association] = []
    for scale in scales(board):
        done = {rate.result.number for rate in rates}
        for result in scale.results():
            if result.number not in done:
                rates += _rates_by_tier(result, scale)
        trends += _trends(scale)
    return Analysis(rates=rates, associations=_corrected(trends))


def scales(board: Sequence[Standing]) -> Iterator[Scale]:
    """Yield the tiers of each group of the leaderboard; nothing for one without tiers.

    They are compared across both sides unless these have a tier in common.
    """
    groups = defaultdict[int, list[Standing]](list)
    for standing in board:
        groups[standing.group].append(standing)
    for standings in groups.values():
        scale = Scale(standings, [], [])
        sides = defaultdict[str, set[str]](set)
        for result in scale.results():
            for tier in result.responses.tier:
                if tier:
                    sides[tier].add(result.side.name)
        if sides:
            within = any(len(several) > 1 for several in sides.values())
            yield Scale(standings, tiers_in_order([*sides]), [*SIDES] if within else [""])


def _rates_by_tier(result: Result, scale: Scale) -> Iterator[Rate]:
    for tier in scale.tiers:
        part = result.responses.where(result.responses.tier == tier)
        if len(part):
            yield refusal_rate(result, part, Subset(Kind.TIER, tier))


def with_tiers(standing: Standing, side: str) -> Responses | None:
    """Return a model's responses to prompts with a tier, on a side or (empty) on both."""
    results = [one for one in standing.results if side in ("", one.side.name)]
    if not results:
        return None
    responses = merged(results).responses
    tiered = responses.where(responses.tier != "")
    return tiered if len(tiered) else None


def _trends(scale: Scale) -> Iterator[Association]:
    """Yield the trend of each model; p_adjusted and p_worst are not yet corrected."""
    done = set()
    for standing in scale.standings:
        if standing.doubts:
            continue
        for side in scale.sides:
            responses = with_tiers(standing, side)
            numbers = [one.number for one in standing.results if side in ("", one.side.name)]
            # A toxic set may belong to several safe ones.
            if responses and tuple(numbers) not in done:
                done.add(tuple(numbers))
                yield _trend(standing, side, responses, scale)


def _trend(standing: Standing, side: str, responses: Responses, scale: Scale) -> Association:
    steps = scale.steps(responses)
    gap = _compared(responses, steps)
    worst = _compared_at_worst(responses, steps, gap.difference)
    is_same_sign = gap.difference * worst.difference > 0
    return Association(
        kind=Associated.TREND,
        result=merged(standing.results),
        value=" < ".join(scale.tiers[step] for step in np.unique(steps)),
        n=gap.a.prompts,
        estimate=gap.difference,
        interval=Interval(gap.low, gap.high),
        p=gap.p,
        p_adjusted=gap.p,
        p_worst=worst.p if is_same_sign else 1.0,
        outcome=Outcome.NO_DIFFERENCE,
        of_side=side,
        higher=gap.a.rate,
        lower=gap.b.rate,
    )


def _compared(responses: Responses, steps: Array) -> Difference:
    """Return how the rate above each seed's mean tier differs from that below, each seed alike."""
    scored = responses.scored
    of_scored = responses.where(scored)
    above = _above(of_scored, steps[scored])
    higher = _by_seed(of_scored.where(above > 0))
    lower = _by_seed(of_scored.where(above < 0))
    return difference(higher, lower, paired=False)


def _by_seed(responses: Responses) -> Verdicts:
    """Return the verdicts, each seed as one prompt."""
    return Verdicts(responses.refused, responses.seed, responses.seed)


def _compared_at_worst(responses: Responses, steps: Array, trend: float) -> Difference:
    """Return the same with the unscored rows against the trend."""
    is_against = _above(responses, steps) * trend < 0
    refused = np.where(responses.scored, responses.refused, is_against)
    return _compared(replace(responses, refused=refused), steps)


def _above(responses: Responses, steps: Array) -> Array:
    """Return how far each row is above the mean tier of its seed."""
    _, seed, rows = np.unique(responses.seed, return_inverse=True, return_counts=True)
    means = np.bincount(seed, steps, len(rows)) / rows
    above: Array = steps - means[seed]
    return above


def _corrected(trends: Sequence[Association]) -> list[Association]:
    """Return the trends with p values that are corrected for all of them, and what they show."""
    p_holm = holm([trend.p for trend in trends])
    p_worst = holm([trend.p_worst for trend in trends])
    found = []
    for trend, p, worst in zip(trends, p_holm, p_worst, strict=True):
        outcome = _outcome(trend.n, p, worst)
        corrected = replace(trend, p_adjusted=float(p), p_worst=float(worst), outcome=outcome)
        found.append(corrected)
    return found


def _outcome(seeds: int, p_holm: float, p_worst: float) -> Outcome:
    """Return what a trend shows."""
    if seeds < FEW_CLUSTERS:
        return Outcome.TOO_FEW
    if p_holm >= ALPHA:
        return Outcome.NO_DIFFERENCE
    if p_worst >= ALPHA:
        return Outcome.INCONCLUSIVE
    return Outcome.FINDING
