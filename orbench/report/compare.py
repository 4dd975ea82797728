"""Each two models on the prompts in common."""

from collections.abc import Iterator, Sequence
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
from orbench.report.rates import on_side
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, Difference, Verdicts, difference, worst_case_p
from orbench.stats.power import detectable_difference


class Tested(NamedTuple):
    """The paired test of two rates, corrected by Holm's method for all tests of the family."""

    gap: Difference
    p_holm: float
    p_worst: float


def paired_tests(pairs: Sequence[tuple[Verdicts, Verdicts]]) -> Iterator[Tested]:
    """Yield the test of each pair of a family."""
    gaps = [difference(a, b, paired=True) for a, b in pairs]
    p_holm = holm([gap.p for gap in gaps])
    p_worst = holm([worst_case_p(a, b) for a, b in pairs])
    return map(Tested, gaps, p_holm.tolist(), p_worst.tolist())


def compare(rates: Sequence[Rate]) -> list[Comparison]:
    """Return each two results with the side, the judge and prompts in common. rates: one a result.

    The order is the same after each run: by side, then by model, a baseline last.
    """
    comparisons = []
    ordered = sorted(rates, key=_place)
    for side in SIDES.values():
        pairs = []
        for a, b in combinations(on_side(side, ordered), 2):
            if _are_comparable(a, b):
                pairs.append((a, b))
        family = Family(Compared.MODELS, side.name, len(pairs))
        tests = paired_tests([(a.verdicts, b.verdicts) for a, b in pairs])
        for (a, b), test in zip(pairs, tests, strict=True):
            unscored = sum(np.isnan(rate.verdicts.refused).mean() for rate in (a, b)) / 2
            detectable = detectable_difference(test.gap, family.size, unscored)
            outcome = _outcome(a, b, test)
            comparisons.append(Comparison(a, b, family, *test, detectable, outcome))
    return comparisons


def of_models(comparisons: Sequence[Comparison], counted: Counted) -> list[Comparison]:
    """Return the comparisons of models by one rate."""
    of_models = [one for one in comparisons if one.family.kind is Compared.MODELS]
    return [one for one in of_models if one.a.counted is counted]


def _place(rate: Rate) -> tuple[bool, str, str]:
    result = rate.result
    return result.is_baseline, result.model, result.settings


def _are_comparable(a: Rate, b: Rate) -> bool:
    """Return whether two rates are of two models by the same judge, with prompts in common."""
    same_judge = a.result.judge_any_version == b.result.judge_any_version
    common = np.intersect1d(a.verdicts.prompts.prompt, b.verdicts.prompts.prompt)
    return same_judge and a.result.label != b.result.label and len(common) > 0


def _outcome(a: Rate, b: Rate, test: Tested) -> Outcome:
    """Return what a comparison shows. A p value that is missing shows nothing."""
    if a.result.doubt or b.result.doubt:
        return Outcome.DOUBTFUL
    fewest = min(a.mean.prompts, b.mean.prompts)
    if test.gap.a.prompts < max(FEW_PROMPTS, fewest / 2):
        return Outcome.TOO_FEW
    if test.p_holm >= ALPHA:
        return Outcome.NO_DIFFERENCE
    if test.p_worst >= ALPHA:
        return Outcome.INCONCLUSIVE
    return Outcome.FINDING
