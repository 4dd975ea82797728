"""Two rates compared: each two models on the prompts in common, and families of tests."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import nan

import numpy as np

from orbench.base.words import SIDES
from orbench.report.measures import (
    FEW_PROMPTS,
    OVERALL,
    Analysis,
    Compared,
    Comparison,
    Counted,
    Outcome,
    Rate,
)
from orbench.report.rates import on_side
from orbench.report.results import SAFE
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, Difference, difference, worst_case_p
from orbench.stats.power import detectable_difference


def corrected(
    p: Sequence[float], p_worst: Sequence[float]
) -> Iterator[tuple[float, float, Outcome]]:
    """Yield both p values of each test of a family by Holm's method, and what they show.

    p_worst: with the unscored rows against the difference.
    """
    for of_test, worst in zip(holm(p).tolist(), holm(p_worst).tolist(), strict=True):
        outcome = Outcome.FINDING
        if of_test >= ALPHA:
            outcome = Outcome.NO_DIFFERENCE
        elif worst >= ALPHA:
            outcome = Outcome.INCONCLUSIVE
        yield of_test, worst, outcome


def tested(kind: Compared, pairs: Iterable[tuple[Rate, Rate]]) -> Iterator[Comparison]:
    """Yield the comparisons of a family, of rates with a verdict (of pairs: on the same prompts).
    A finding on models holds whatever unscored rows are.
    """
    is_of_models = kind is Compared.MODELS
    gaps = []
    p = []
    p_worst = []
    for a, b in pairs:
        gap = difference(a.verdicts, b.verdicts, paired=kind is not Compared.SETS)
        if not np.isnan(gap.p):
            gaps.append((a, b, gap))
            p.append(gap.p)
            p_worst.append(worst_case_p(a.verdicts, b.verdicts, gap) if is_of_models else gap.p)
    family = len(gaps)
    for (a, b, gap), (p_holm, worst, outcome) in zip(gaps, corrected(p, p_worst), strict=True):
        detectable = nan
        if is_of_models:
            unscored = sum(np.isnan(rate.verdicts.refused).mean() for rate in (a, b)) / 2
            detectable = detectable_difference(gap, family, unscored)
            outcome = _doubted(a, b, gap) or outcome
        else:
            worst = nan
        yield Comparison(a, b, kind, family, gap, p_holm, worst, detectable, outcome)


def compare(rates: Sequence[Rate]) -> list[Comparison]:
    """Return each two results with the side, the judge and prompts in common. rates: one a result.

    The order is the same after each run: by side, then by model, a baseline last.
    """
    comparisons: list[Comparison] = []
    ordered = sorted(
        rates, key=lambda rate: (rate.result.is_baseline, rate.result.model, rate.result.settings)
    )
    for side in SIDES.values():
        pairs = []
        for a, b in combinations(on_side(side, ordered), 2):
            same_judge = a.result.judge_any_version == b.result.judge_any_version
            if same_judge and a.result.label != b.result.label:
                pairs.append((a, b))
        comparisons += tested(Compared.MODELS, pairs)
    return comparisons


def hedging(rates: Sequence[Rate]) -> Analysis:
    """Return the comparisons of the shares of responses to safe prompts that hedge."""
    hedged = (SAFE, OVERALL, Counted.HEDGED)
    chosen = [rate for rate in rates if (rate.side, rate.subset, rate.counted) == hedged]
    return Analysis(comparisons=compare(chosen))


def of_models(comparisons: Sequence[Comparison], counted: Counted) -> list[Comparison]:
    """Return the comparisons of models by one rate."""
    wanted = Compared.MODELS, counted
    return [one for one in comparisons if (one.kind, one.a.counted) == wanted]


def _doubted(a: Rate, b: Rate, gap: Difference) -> Outcome | None:
    """Return what a comparison of models shows whatever its p values are."""
    if a.result.doubt or b.result.doubt:
        return Outcome.DOUBTFUL
    fewest = min(a.n, b.n)
    if min(fewest, gap.a.prompts) < max(FEW_PROMPTS, fewest / 2):
        return Outcome.TOO_FEW
    return None
