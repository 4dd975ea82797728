"""Pairs of a toxic seed and its rewrite, or of prompts in two tiers that share a seed: does a model
refuse the one and answer the other?
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from pandas import DataFrame, Series  # type: ignore[import-untyped]

from orbench.base.words import SIDES, UNCATEGORIZED
from orbench.report.about import UNKNOWN_JUDGE
from orbench.report.analyses.families import Contrast, tested
from orbench.report.analyses.tiers import responses_on, scales
from orbench.report.measures import Analysis, Compared, Counted, Kind, Rate, Subset
from orbench.report.results import BOTH, SAFE, TOXIC, Responses, Result, merged
from orbench.report.standings import Standing
from orbench.stats.core import difference, mean


class _Pairs(NamedTuple):
    """A model's rewrites and their seeds. Of two tiers, the lower one is the rewrite."""

    result: Result
    tiers: tuple[str, ...]  # the lower one first; none: toxic seeds and their rewrites
    rewrites: Responses
    seeds: Responses


def pairs(board: Sequence[Standing]) -> Analysis:
    """Return the rates of what may happen to a pair, and each two models compared by how often the
    seed is refused and the rewrite answered. Both are given for all pairs and by category.
    """
    rates: list[Rate] = []
    contrasts: list[Contrast] = []
    for models in _steps(board):
        of_models = [list(_rates(model)) for model in models]
        for own in of_models:
            rates += own
        for of_a, of_b in combinations(of_models, 2):
            contrasts += _contrasts(of_a, of_b)
    return Analysis(rates, tested(Compared.PAIRS, contrasts))


def _steps(board: Sequence[Standing]) -> Iterator[list[_Pairs]]:
    """Yield the pairs of all models of seeds and rewrites, if there are seeds or no tiers; then of
    each two tiers.
    """
    tiered = list(scales(board))
    models = []
    for standing in board:
        rewrites = responses_on(standing, SAFE.name)
        models.append(_Pairs(merged(standing.results), (), rewrites, _single_seeds(standing)))
    if any(len(model.seeds) for model in models) or not tiered:
        yield models
    for scale in tiered:
        for side, (lower, higher) in product(scale.sides, combinations(scale.tiers, 2)):
            models = []
            for standing in scale.standings:
                result = merged(standing.results, SIDES.get(side, BOTH))
                responses = responses_on(standing, side)
                of_lower = responses.where(responses.tier == lower)
                of_higher = responses.where(responses.tier == higher)
                models.append(_Pairs(result, (lower, higher), of_lower, of_higher))
            if any(len(model.rewrites) for model in models):
                yield models


def _single_seeds(standing: Standing) -> Responses:
    """Return the toxic responses whose seed id no other toxic prompt has: these are seeds."""
    toxic = responses_on(standing, TOXIC.name)
    prompts = Series(toxic.prompt).groupby(toxic.seed).transform("nunique")
    return toxic.where(prompts.to_numpy() == 1)


def _rates(model: _Pairs) -> Iterator[Rate]:
    """Yield the rates of each outcome, of all pairs and by category.

    With several seeds or responses each, a rate is the probability of a pair of them.
    """
    seeds = DataFrame({"prompt": model.seeds.prompt, "refused": model.seeds.refused})
    by_seed = seeds.groupby(model.seeds.seed)
    partner = by_seed.prompt.first().reindex(model.rewrites.seed).to_numpy()
    share = by_seed.refused.mean().reindex(model.rewrites.seed).to_numpy()  # NaN: unscored
    is_paired = np.isfinite(partner) & (partner != model.rewrites.prompt)
    seed_refused = np.where(is_paired, share, np.nan)
    categories = set(model.rewrites.category)
    if categories == {UNCATEGORIZED}:
        categories = set()
    for category in ["", *sorted(categories)]:
        chosen = (model.rewrites.category == category) | (category == "")
        rewrites = model.rewrites.where(chosen)
        unpaired = len(np.unique(rewrites.prompt[~is_paired[chosen]]))
        seed = seed_refused[chosen]
        rewrite = rewrites.refused
        both = seed * rewrite
        outcomes = {
            Counted.RIGHT: seed - both,
            Counted.BOTH_REFUSED: both,
            Counted.BOTH_ANSWERED: 1 - seed - rewrite + both,
            Counted.REVERSE: rewrite - both,
        }
        subset = Subset(Kind.PAIRS, " < ".join(model.tiers), category, model.tiers)
        for counted, probability in outcomes.items():
            verdicts = rewrites.verdicts()._replace(refused=probability)
            found = mean(verdicts)
            yield Rate(model.result, subset, counted, verdicts, found, None, unpaired=unpaired)


def _contrasts(of_a: Sequence[Rate], of_b: Sequence[Rate]) -> Iterator[Contrast]:
    """Yield the rates of two models with the same judge, and how they differ."""
    for a, b in product(of_a, of_b):
        is_right = a.counted is b.counted is Counted.RIGHT
        if is_right and a.subset == b.subset and a.result.judge == b.result.judge != UNKNOWN_JUDGE:
            gap = difference(a.verdicts, b.verdicts, paired=True)
            if gap.a.prompts:
                yield Contrast(a, b, gap)
