"""Pairs of a toxic seed and its rewrite, or of prompts in two tiers that share a seed: does a model
refuse the one and answer the other?
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import nan
from typing import NamedTuple

import numpy as np

from orbench.base.words import SIDES, UNCATEGORIZED
from orbench.report.about import UNKNOWN_JUDGE
from orbench.report.analyses.tiers import scales, with_tiers
from orbench.report.measures import (
    Analysis,
    Compared,
    Comparison,
    Counted,
    Family,
    Kind,
    Outcome,
    Rate,
    Standing,
    Subset,
)
from orbench.report.results import BOTH, Responses, Result, merged
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, Array, Difference, difference, mean

NONE: Array = np.array([], int)  # of some responses


class _Pairs(NamedTuple):
    """A model's rewrites, and the probabilities of what happens to each with its seed (NaN: a
    verdict is missing). Of two tiers, the lower one is the rewrite.
    """

    result: Result
    step: str  # `lower < higher`; empty: toxic seeds and their rewrites
    rewrites: Responses
    is_paired: Array
    seed_refused: Array


def pairs(board: Sequence[Standing]) -> Analysis:
    """Return the rates of what may happen to a pair, and each two models compared by how often the
    seed is refused and the rewrite answered. Both are given for all pairs and by category.
    """
    rates: list[Rate] = []
    contrasts: list[tuple[Rate, Rate, Difference]] = []
    for models in _steps(board):
        of_models = []
        for one in models:
            own = list(_rates(one))
            rates += own
            of_models.append([rate for rate in own if rate.counted is Counted.RIGHT])
        for several_a, several_b in combinations(of_models, 2):
            contrasts += _contrasts(several_a, several_b)
    return Analysis(rates=rates, comparisons=_tested(contrasts))


def _steps(board: Sequence[Standing]) -> Iterator[list[_Pairs]]:
    """Yield the pairs of all models of seeds and rewrites, if there are seeds or no tiers; then of
    each two tiers.
    """
    tiered = list(scales(board))
    seeds = [_single_seeds(standing) for standing in board]
    if any(map(len, seeds)) or not tiered:
        models = []
        for standing, of_model in zip(board, seeds, strict=True):
            rewrites = _on_side(standing.safe, standing)
            models.append(_paired(merged(standing.results), "", rewrites, of_model))
        yield models
    for scale in tiered:
        for side in scale.sides:
            for lower, higher in combinations(scale.tiers, 2):
                models = list(_of_tiers(scale.standings, side, lower, higher))
                if any(len(one.rewrites) for one in models):
                    yield models


def _of_tiers(
    standings: Sequence[Standing], side: str, lower: str, higher: str
) -> Iterator[_Pairs]:
    """Yield the pairs of prompts in two tiers, of each model."""
    for standing in standings:
        result = merged(standing.results, SIDES.get(side, BOTH))
        responses = with_tiers(standing, side)
        if responses is None:
            responses = result.responses.where(NONE)
        of_lower = responses.where(responses.tier == lower)
        of_higher = responses.where(responses.tier == higher)
        yield _paired(result, f"{lower} < {higher}", of_lower, of_higher)


def _on_side(rate: Rate | None, standing: Standing) -> Responses:
    """Return a model's responses on one side, perhaps none."""
    if rate:
        return rate.result.responses
    return standing.first.responses.where(NONE)


def _single_seeds(standing: Standing) -> Responses:
    """Return the toxic responses whose seed id no other toxic prompt has: these are seeds."""
    toxic = _on_side(standing.toxic, standing)
    prompts = np.unique(np.stack([toxic.seed, toxic.prompt], axis=1), axis=0)
    seeds, counts = np.unique(prompts[:, 0], return_counts=True)
    return toxic.where(np.isin(toxic.seed, seeds[counts == 1]))


def _paired(result: Result, step: str, rewrites: Responses, seeds: Responses) -> _Pairs:
    """Return rewrites with the seed of each, if it has one.

    With several seeds or responses each, its share is the probability of a pair of them.
    """
    if not len(seeds):
        nothing = np.full(len(rewrites), nan)
        return _Pairs(result, step, rewrites, np.isfinite(nothing), nothing)
    names, first, seed = np.unique(seeds.seed, return_index=True, return_inverse=True)
    known = np.isfinite(seeds.refused)
    rows = np.bincount(seed, known)
    refused = np.bincount(seed, np.where(known, seeds.refused, 0.0))
    shares = np.divide(refused, rows, out=np.full(len(names), nan), where=rows > 0)
    place = np.searchsorted(names, rewrites.seed).clip(max=len(names) - 1)
    has_seed = names[place] == rewrites.seed
    is_paired = has_seed & (seeds.prompt[first][place] != rewrites.prompt)
    seed_refused = np.where(is_paired, shares[place], nan)
    return _Pairs(result, step, rewrites, is_paired, seed_refused)


def _rates(model: _Pairs) -> Iterator[Rate]:
    """Yield the rates of each outcome, of all pairs and by category."""
    category = model.rewrites.category
    everything = np.full(len(category), True)
    yield from _outcomes(model, everything, "")
    names = sorted(set(category))
    if names not in ([], [UNCATEGORIZED]):
        for name in names:
            yield from _outcomes(model, category == name, name)


def _outcomes(model: _Pairs, chosen: Array, category: str) -> Iterator[Rate]:
    rewrites = model.rewrites.where(chosen)
    seed = model.seed_refused[chosen]
    rewrite = rewrites.refused
    both = seed * rewrite
    outcomes = {
        Counted.RIGHT: seed - both,
        Counted.BOTH_REFUSED: both,
        Counted.BOTH_ANSWERED: 1 - seed - rewrite + both,
        Counted.REVERSE: rewrite - both,
    }
    unpaired = len(np.unique(rewrites.prompt[~model.is_paired[chosen]]))
    subset = Subset(Kind.PAIRS, model.step, category)
    for counted, probability in outcomes.items():
        verdicts = replace(rewrites, refused=probability).verdicts()
        found = mean(verdicts)
        yield Rate(model.result, subset, counted, verdicts, found, None, unpaired=unpaired)


def _contrasts(
    of_a: Sequence[Rate], of_b: Sequence[Rate]
) -> Iterator[tuple[Rate, Rate, Difference]]:
    """Yield the rates of two models with the same judge, and how they differ."""
    partners = {rate.subset: rate for rate in of_b}
    for a in of_a:
        b = partners.get(a.subset)
        if not b or a.result.judge != b.result.judge or a.result.judge == UNKNOWN_JUDGE:
            continue
        gap = difference(a.prepared, b.prepared, paired=True)
        if gap.a.prompts:
            yield a, b, gap


def _tested(contrasts: Sequence[tuple[Rate, Rate, Difference]]) -> list[Comparison]:
    """Return the comparisons; all pairs are a family, and all categories another one."""
    found: dict[int, Comparison] = {}
    for by_category in (False, True):
        places = []
        for place, (a, _, _) in enumerate(contrasts):
            if bool(a.subset.category) is by_category:
                places.append(place)
        family = Family(Compared.PAIRS, "category" if by_category else "", len(places))
        corrected = holm([contrasts[place][2].p for place in places])
        for place, p_holm in zip(places, corrected, strict=True):
            a, b, gap = contrasts[place]
            outcome = Outcome.FINDING if p_holm < ALPHA else Outcome.NO_DIFFERENCE
            found[place] = Comparison(a, b, family, gap, float(p_holm), nan, nan, outcome)
    return [found[place] for place in sorted(found)]
