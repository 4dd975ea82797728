"""Prompts in steps, such as benign, borderline and dual use: rates by tier, and whether refusals
rise with the tier.

The test compares, within each seed, the prompts above its mean tier with those below, as D. R. Cox
and A. Stuart do along a series (Biometrika 42 (1955) 80-95). How seeds differ has no part in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise, product
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from pandas import Series  # type: ignore[import-untyped]

from orbench.base.grouping import grouped
from orbench.base.words import Side, Words, tiers_in_order
from orbench.report.compare import corrected
from orbench.report.measures import Analysis, Associated, Association, Kind, Outcome, Subset
from orbench.report.rates import refusal_rate, with_shares
from orbench.report.results import BOTH, SAFE, TOXIC, Responses, Result, merged
from orbench.report.standings import Board
from orbench.stats.core import FEW_CLUSTERS, Verdicts, difference, worst_case_p


class Scale(NamedTuple):
    """The tiers of models with the same prompts and judge."""

    tiers: list[str]  # the lowest first
    sides: list[Side]  # within which tiers are compared, or across both
    standings: Board


def tiers(board: Board) -> Analysis:
    """Return the rates by tier, and a trend for each model and scale; nothing without a tier.

    Scripted and partial results have no trend.
    """
    rates = {}  # a result may be in two rows of the leaderboard
    trends = []
    for scale in scales(board):
        for standing in scale.standings:
            for result, tier in product(standing.results, scale.tiers):
                responses = result.responses
                part = responses.where(responses.tier == tier)
                if len(part.prompt):
                    whole = refusal_rate(result, part, Subset(Kind.TIER, tier))
                    rates[result.number, tier] = [*with_shares(whole, part)]
        for side in scale.sides:
            for model in results_on(side, scale.standings):
                if model.responses.tier.any() and not model.doubt:
                    trends.append(_trend(model, scale.tiers))
    return Analysis([*chain(*rates.values())], associations=[*corrected(trends)])


def scales(board: Board) -> Iterator[Scale]:
    """Yield the tiers of each group of the leaderboard, if it has some.

    They are compared across both sides unless these have a tier in common.
    """
    for standings in grouped(board, attrgetter("group")).values():
        results = [result for standing in standings for result in standing.results]
        responses = merged(sorted(results, key=attrgetter("number"))).responses
        of_tiers = Series(responses.is_toxic).groupby(responses.tier, sort=False)
        sides = of_tiers.nunique().drop("", errors="ignore")
        within = [BOTH]
        if sides.max() > 1:
            within = [SAFE, TOXIC]
        if len(sides):
            yield Scale(tiers_in_order([*sides.index]), within, standings)


def results_on(side: Side, standings: Board) -> list[Result]:
    """Return each model's result on a side, or both as one."""
    if side == BOTH:
        return [standing.result for standing in standings]
    return [result for standing in standings for result in standing.results if result.side == side]


def _trend(model: Result, tiers: Words) -> Association:
    """Return the trend of a model, before its p values are corrected; with its steps, corrected."""
    responses = model.responses.where(model.responses.tier != "")
    tier = Series(responses.tier).map(tiers.index).to_numpy()
    there = np.unique(tier).tolist()
    in_steps = replace(responses, tier=tier)
    steps = [_rise(model, in_steps, pair, tiers) for pair in pairwise(there)]
    of_upper = zip([tiers[step] for step in there[1:]], corrected(steps), strict=True)
    return replace(_rise(model, in_steps, there, tiers), steps=dict(of_upper))


def _rise(model: Result, responses: Responses, steps: Sequence[int], tiers: Words) -> Association:
    """Return how refusals rise over some steps. responses: with numbers in place of tiers."""
    responses = responses.where(np.isin(responses.tier, steps))
    gap = difference(*_around_means(responses.where(responses.scored)), paired=False)
    outcome = Outcome.NO_DIFFERENCE
    if gap.a.prompts < FEW_CLUSTERS:
        outcome = Outcome.TOO_FEW
    return Association(
        kind=Associated.TREND,
        result=model,
        value=" < ".join(tiers[step] for step in steps),
        n=gap.a.prompts,
        estimate=gap.difference,
        interval=gap.interval,
        p=gap.p,
        p_worst=worst_case_p(*_around_means(responses), gap, paired=False),
        outcome=outcome,
        higher=gap.a.rate,
        lower=gap.b.rate,
    )


def _around_means(responses: Responses) -> tuple[Verdicts, Verdicts]:
    """Return the verdicts above the mean tier of their seed, and those below; each seed alike."""
    tiers = Series(responses.tier)
    means = tiers.groupby(responses.seed).transform("mean")
    verdicts = Verdicts(responses.refused, responses.seed, responses.seed)
    return verdicts.where(tiers > means), verdicts.where(tiers < means)
