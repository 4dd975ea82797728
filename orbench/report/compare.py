"""Each two models on the prompts in common."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from orbench.base.words import SIDES
from orbench.report.measures import (
    FEW_PROMPTS,
    Compared,
    Comparison,
    Counted,
    Family,
    Outcome,
    Rate,
)
from orbench.report.results import Result
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, Difference, difference, worst_case_p
from orbench.stats.power import detectable_difference


class _Pair(NamedTuple):
    """Two rates before the correction of their test."""

    a: Rate
    b: Rate
    gap: Difference
    p_worst: float


def compare(rates: Sequence[Rate]) -> list[Comparison]:
    """Return each two results with the side, the judge and prompts in common. rates: one a result.

    The order is the same after each run: by side, then by model, a baseline last.
    """
    by_side = defaultdict[str, list[_Pair]](list)
    ordered = sorted(rates, key=lambda one: _place(one.result))
    for a, b in combinations(ordered, 2):
        if _are_comparable(a.result, b.result):
            gap = difference(a.prepared, b.prepared, paired=True)
            if gap.a.prompts:
                p_worst = worst_case_p(a.prepared, b.prepared)
                by_side[a.result.side.name].append(_Pair(a, b, gap, p_worst))
    comparisons: list[Comparison] = []
    for side in SIDES:
        comparisons += _tested(side, by_side[side])
    return comparisons


def of_models(comparisons: Sequence[Comparison], counted: Counted) -> list[Comparison]:
    """Return the comparisons of models by one rate."""
    found = []
    for comparison in comparisons:
        if comparison.family.kind is Compared.MODELS and comparison.a.counted is counted:
            found.append(comparison)
    return found


def _place(result: Result) -> tuple[bool, str, str]:
    return result.is_baseline, result.model, result.settings


def _are_comparable(a: Result, b: Result) -> bool:
    """Return whether two results are of two models on the same side, by the same judge."""
    same = a.side == b.side and a.judge_any_version == b.judge_any_version
    return same and a.label != b.label


def _tested(side: str, pairs: Sequence[_Pair]) -> list[Comparison]:
    """Return the pairs of a side with their corrected tests."""
    family = Family(Compared.MODELS, side, len(pairs))
    p_holm = holm([pair.gap.p for pair in pairs])
    p_worst = holm([pair.p_worst for pair in pairs])
    comparisons = []
    for pair, corrected, worst in zip(pairs, p_holm, p_worst, strict=True):
        shares = [np.isnan(rate.verdicts.refused).mean() for rate in (pair.a, pair.b)]
        detectable = detectable_difference(pair.gap, family.size, sum(shares) / 2)
        comparison = Comparison(
            a=pair.a,
            b=pair.b,
            family=family,
            gap=pair.gap,
            p_holm=float(corrected),
            p_worst=float(worst),
            detectable=detectable,
            outcome=_outcome(pair, corrected, worst),
        )
        comparisons.append(comparison)
    return comparisons


def _outcome(pair: _Pair, p_holm: float, p_worst: float) -> Outcome:
    """Return what a comparison shows. A p value that is missing shows nothing."""
    if pair.a.result.doubt or pair.b.result.doubt:
        return Outcome.DOUBTFUL
    fewest = min(pair.a.mean.prompts, pair.b.mean.prompts)
    if pair.gap.a.prompts < max(FEW_PROMPTS, fewest / 2):
        return Outcome.TOO_FEW
    if not p_holm < ALPHA:
        return Outcome.NO_DIFFERENCE
    if not p_worst < ALPHA:
        return Outcome.INCONCLUSIVE
    return Outcome.FINDING
