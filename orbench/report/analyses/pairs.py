"""Pairs of a toxic seed and its rewrite, or of prompts in two tiers that share a seed: does a model
refuse the one and answer the other?
"""

from collections.abc import Iterator
from itertools import chain, combinations
from operator import attrgetter

import numpy as np
from pandas import Series  # type: ignore[import-untyped]

from orbench.base.grouping import grouped
from orbench.base.words import UNCATEGORIZED
from orbench.report.analyses.tiers import results_on, scales
from orbench.report.compare import tested
from orbench.report.measures import Analysis, Compared, Counted, Kind, Pair, Rate, Subset
from orbench.report.results import Responses, Result
from orbench.report.standings import Board, Standing
from orbench.stats.core import mean


def pairs(board: Board) -> Analysis:
    """Return the rates of what may happen to a pair, and each two models compared by how often the
    seed is refused and the rewrite answered, without results in doubt. Both are given for all
    pairs and by category.
    """
    rates = []
    rivals: list[Pair] = []
    for step in _steps(board):
        rates += step
        higher = [rate for rate in step if rate.counted is Counted.HIGHER_REFUSED]
        sound = [rate for rate in higher if not rate.result.doubt]
        for group in grouped(sound, attrgetter("subset", "result.judge")).values():
            rivals += combinations(group, 2)
    families = grouped(rivals, lambda pair: pair[0].subset.category == "")
    tests = [tested(Compared.PAIRS, family) for family in families.values()]
    return Analysis(rates, [*chain(*tests)])


def _steps(board: Board) -> Iterator[list[Rate]]:
    """Yield the rates of seeds and rewrites, if there are such pairs or no tiers; then of each two
    tiers.
    """
    tiered = [*scales(board)]
    of_seeds = [rate for standing in board for rate in _of_seeds(standing)]
    if any(rate.n for rate in of_seeds) or not tiered:
        yield of_seeds
    for scale in tiered:
        for side in scale.sides:
            models = results_on(side, scale.standings)
            there = {tier for model in models for tier in model.responses.tier}
            for tiers in combinations([tier for tier in scale.tiers if tier in there], 2):
                of_tiers: list[Rate] = []
                for model in models:
                    responses = model.responses
                    lower, higher = [responses.where(responses.tier == tier) for tier in tiers]
                    of_tiers += _rates(model, lower, higher, " < ".join(tiers))
                yield of_tiers


def _of_seeds(standing: Standing) -> Iterator[Rate]:
    """Return the rates of safe prompts and seeds: toxic prompts whose seed id no other one has."""
    responses = standing.result.responses
    safe = responses.where(~responses.is_toxic)
    toxic = responses.where(responses.is_toxic)
    prompts = Series(toxic.prompt).groupby(toxic.seed).transform("nunique")
    return _rates(standing.result, safe, toxic.where(prompts == 1), "")


def _rates(model: Result, rewrites: Responses, of_seeds: Responses, tiers: str) -> Iterator[Rate]:
    """Yield the rates of each outcome, of all pairs and by category.

    With several seeds or responses each, a rate is the probability of a pair of them. Of two tiers,
    the lower one is the rewrite.
    """
    is_rewrite = np.isin(of_seeds.prompt, rewrites.prompt)
    seeds = of_seeds.where(~is_rewrite)
    is_paired = np.isin(rewrites.seed, seeds.seed)
    by_seed = Series(seeds.refused).groupby(seeds.seed).mean()
    seed = by_seed.reindex(rewrites.seed).to_numpy()  # NaN: unpaired or unscored
    rewrite = rewrites.refused
    outcomes = {
        Counted.HIGHER_REFUSED: seed * (1 - rewrite),
        Counted.BOTH_REFUSED: seed * rewrite,
        Counted.BOTH_ANSWERED: (1 - seed) * (1 - rewrite),
        Counted.REVERSE: (1 - seed) * rewrite,
    }
    categories = sorted({"", *rewrites.category})
    if categories == ["", UNCATEGORIZED]:
        categories = [""]
    verdicts = rewrites.verdicts()
    for category in categories:
        chosen = (rewrites.category == category) | (category == "")
        unpaired = len(np.unique(rewrites.prompt[chosen & ~is_paired]))
        subset = Subset(Kind.PAIRS, tiers, category)
        for counted, probability in outcomes.items():
            outcome = verdicts._replace(refused=probability).where(chosen)
            yield Rate(model, subset, counted, outcome, mean(outcome), unpaired=unpaired)
