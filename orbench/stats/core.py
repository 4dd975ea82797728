"""One mean and one difference, for verdicts that are not independent. Loads numpy and scipy.

The unit is the prompt: its value is the share of its scored rows that are refusals. The cluster is
the seed, whose rewrites resemble each other. Rates, macro averages, pairs of models or prompt sets
and Youden's J are each a `mean` or a `difference`.
"""

from math import copysign, isnan, sqrt
from typing import NamedTuple

import numpy as np

from orbench.stats.estimates import (
    ASSUMED_ICC,
    Estimate,
    Mean,
    Verdicts,
    estimate,
    mean,
    with_unscored,
)
from orbench.stats.inference import (
    ALPHA,
    FEW_CLUSTERS,
    ROUNDING,
    Array,
    sign_flip_p,
    sum_of_squares,
    t95,
    t_test_p,
)
from orbench.stats.intervals import Interval, bonett_price, wilson

__all__ = [
    "ALPHA",
    "ASSUMED_ICC",
    "FEW_CLUSTERS",
    "Array",
    "Difference",
    "Mean",
    "Verdicts",
    "change",
    "difference",
    "in_common",
    "mean",
    "with_unscored",
    "worst_case_p",
]


class Difference(NamedTuple):
    """Rate a minus rate b: the 95 % interval, as fractions, and p; NaN where a rate is missing.

    p < ALPHA exactly where the interval excludes 0.
    """

    a: Mean
    b: Mean
    interval: Interval
    p: float
    correlation: float  # of the two rates, through the clusters in common
    df: float

    @property
    def difference(self) -> float:
        """Rate a minus rate b."""
        return self.a.rate - self.b.rate

    def p_toward(self, other: "Difference") -> float:
        """Return p; 1 where the other difference has not the same sign."""
        return self.p if self.difference * other.difference > 0 else 1.0


def difference(a: Verdicts, b: Verdicts, *, paired: bool) -> Difference:
    """Return mean a minus mean b.

    paired: two models, on the prompts with a verdict from both. Else each on all its prompts: two
    prompt sets, or Youden's J (toxic minus safe). Either way, clusters in common count.
    """
    x = a.prompts
    y = b.prompts
    if paired:
        x, y = in_common(x, y)
        of_a = x.estimate
        of_b = y.estimate
    else:
        clusters = np.union1d(x.cluster, y.cluster)
        of_a = estimate(x, clusters)
        of_b = estimate(y, clusters)
    error = sqrt(sum_of_squares(of_a.parts - of_b.parts))
    products = of_a.parts * of_b.parts
    norms = sqrt(of_a.mean.variance * of_b.mean.variance)
    correlation = float(products.sum()) / max(norms, ROUNDING**2)
    found = _newcombe(of_a.mean, of_b.mean, correlation, error)
    gap = found.difference
    if isnan(gap):
        return found
    p = found.p
    tested = found.interval
    if paired and error >= ROUNDING:  # else all clusters differ alike, and t knows no error
        p = t_test_p(gap, error, found.df)
        half = error * t95(found.df)
        tested = Interval(gap - half, gap + half)
    widest = tested
    if paired:
        p = max(p, sign_flip_p(of_a.sums - of_b.sums))
        differing = np.abs(x.refused - y.refused) * of_a.weights
        pairs = _pairs_interval(of_a, of_b, float(differing.sum()), error)
        widest = Interval(min(tested.low, pairs.low), max(tested.high, pairs.high))
    interval = _combined(gap, p, tested, widest, found.interval)
    return found._replace(interval=interval, p=p)


def change(later: Difference, earlier: Difference) -> Difference:
    """Return how much a difference of two models changes from one prompt set to another; the means
    are the differences. Seeds that the sets share don't count: they would make it narrower.
    """
    a, b = [
        gap.a._replace(rate=gap.difference, interval=gap.interval, df=gap.df)
        for gap in (later, earlier)
    ]
    return _newcombe(a, b, 0.0, 0.0)


def _combined(
    gap: float, p: float, tested: Interval, widest: Interval, newcombe: Interval
) -> Interval:
    """Return one interval that excludes 0 exactly where p < ALPHA.

    tested: that of the test. widest: of all that hold. newcombe: it may be the test's or not.
    """
    # Newcombe's end near 0 counts only if it is the test's. Where the widest interval contradicts
    # p, the test decides.
    low, high = widest
    if gap <= ROUNDING:
        low = min(newcombe.low, low)
    if gap >= -ROUNDING:
        high = max(newcombe.high, high)
    if p >= ALPHA:
        low = min(low, 0.0)
        high = max(high, 0.0)
    elif low <= 0 <= high:
        if gap > 0:
            low = tested.low
        else:
            high = tested.high
    return Interval(max(-1.0, low), min(1.0, high))


def worst_case_p(a: Verdicts, b: Verdicts, found: Difference, paired: bool = True) -> float:
    """Return p of a difference with the unscored rows against it; 1 where it turns. found: that of
    the scored rows.
    """
    if found.difference and a.are_scored and b.are_scored:
        return found.p
    fill = float(found.difference <= 0)  # what lowers the higher rate, or raises the lower one
    worst = difference(a.imputed(fill), b.imputed(1 - fill), paired=paired)
    return worst.p_toward(found)


def in_common(x: Verdicts, y: Verdicts) -> tuple[Verdicts, Verdicts]:
    """Return the prompts in both; where their clusters disagree, the fewer and larger ones."""
    if np.array_equal(x.prompt, y.prompt) and np.array_equal(x.cluster, y.cluster):
        return x, y  # which most models have: all else takes longer than their comparison
    x = x.where(np.isin(x.prompt, y.prompt))
    y = y.where(np.isin(y.prompt, x.prompt))
    fewer = min(x.cluster, y.cluster, key=lambda cluster: len(np.unique(cluster)))
    return x._replace(cluster=fewer), y._replace(cluster=fewer)


def _newcombe(a: Mean, b: Mean, correlation: float, error: float) -> Difference:
    """Return a difference as Newcombe's interval shows it. error: its standard error at least."""
    gap = a.rate - b.rate
    below = _newcombe_margin(a, b, correlation)
    above = _newcombe_margin(b, a, correlation)
    df = min(a.df, b.df)
    margin = below if gap > 0 else above
    p = t_test_p(gap, max(error, margin / t95(df)), df)
    return Difference(a, b, Interval(gap - below, gap + above), p, correlation, df)


def _newcombe_margin(a: Mean, b: Mean, correlation: float) -> float:
    """Return how far the interval goes below the difference, or above that of b and a.

    R. G. Newcombe, Statistics in Medicine 17 (1998) 2635-2650, method 10; in general G. Y. Zou and
    A. Donner, Statistics in Medicine 27 (2008) 1693-1702.
    """
    below = a.rate - a.interval.low
    above = b.interval.high - b.rate
    square = below**2 - 2 * correlation * below * above + above**2
    return sqrt(max(0.0, square))


def _pairs_interval(a: Estimate, b: Estimate, apart: float, error: float) -> Interval:
    """Return Bonett and Price's interval at the effective number of pairs: by the spread of the
    differences, but that of the smaller mean where less than FEW_CLUSTERS differ.

    apart: the mean size of the differences.
    """
    gap = a.mean.rate - b.mean.rate
    pairs = min(a.mean.effective, b.mean.effective)
    differing = np.abs(a.sums - b.sums) > ROUNDING
    if differing.sum() >= FEW_CLUSTERS and error > ROUNDING:
        spread = apart - gap**2
        pairs = min(a.mean.prompts, spread / error**2)
    found = bonett_price(gap, apart, pairs)
    if not ROUNDING < apart < abs(gap) + ROUNDING:
        return found
    # All differ one way: their share is a rate, whose interval goes further.
    far = copysign(wilson(apart * pairs, pairs).high, gap)
    return Interval(min(found.low, far), max(found.high, far))
