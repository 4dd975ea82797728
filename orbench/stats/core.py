"""One mean and one difference, for verdicts that are not independent. Loads numpy and scipy.

The unit is the prompt: its value is the share of its scored rows that are refusals. The cluster is
the seed, whose rewrites resemble each other. Rates, macro averages, pairs of models or prompt sets
and Youden's J are each a `mean` or a `difference`.
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]

from orbench.stats.intervals import Interval, bonett_price, wilson

Array = NDArray[Any]
_Ends = tuple[float, float]  # of an interval

ALPHA = 0.05
# Where fewer clusters hold the rarer outcome, or differ, their spread alone is not trusted.
FEW_CLUSTERS = 10
# The intra-seed correlation assumed there: above the .3 of rewrites at medium rates, and that of a
# binary outcome shrinks toward 0 and 100 % (Gulliford et al., J. Clin. Epidemiol. 58 (2005) 246).
ASSUMED_ICC = 0.5
ROUNDING = 1e-9  # shares that differ by less are equal


class Verdicts(NamedTuple):
    """The rows behind a mean: arrays of equal length, ids as integers (texts are slow).

    refused: 1 refused, 0 answered, NaN unscored. cluster: the seed, or the prompt where there is no
    seed; a prompt with several belongs to the first. category: for a macro average, in which each
    category counts alike; one number: each prompt does. weight: of the prompt, such as 1 / its
    chance to be in the sample; one number: all alike. Verdicts that are compared take their ids
    from the same numbering.
    """

    refused: Array
    prompt: Array
    cluster: Array
    category: Array | int = 0
    weight: Array | float = 1.0


class Mean(NamedTuple):
    """A rate and its 95 % interval, as fractions; NaN, 0 and 1 where nothing is scored."""

    rate: float
    low: float
    high: float
    prompts: int
    rows: int  # scored ones
    effective: float  # the number of independent rows that would say as much
    variance: float  # of the rate, by the spread of the clusters
    df: float  # degrees of freedom of the variance
    assumed: bool = False  # whether the interval is that of ASSUMED_ICC

    @property
    def interval(self) -> Interval:
        """Return the 95 % interval."""
        return Interval(self.low, self.high)

    @property
    def design_effect(self) -> float:
        """Rows per independent observation; NaN where nothing is scored."""
        if not self.rows:
            return np.nan
        return self.rows / self.effective


class Difference(NamedTuple):
    """Rate a minus rate b: the 95 % interval, as fractions, and p; NaN where a rate is missing.

    p < ALPHA exactly where the interval excludes 0.
    """

    a: Mean
    b: Mean
    low: float
    high: float
    p: float
    correlation: float  # of the two rates, through the clusters in common
    df: float

    @property
    def difference(self) -> float:
        """Rate a minus rate b."""
        return self.a.rate - self.b.rate


class _Prompts(NamedTuple):
    """One entry per scored prompt, sorted by id."""

    id: Array
    share: Array
    rows: Array
    cluster: Array
    category: Array
    weight: Array


def mean(verdicts: Verdicts) -> Mean:
    """Return the mean of the prompts' shares, with Wilson's interval at the effective size.

    Any values from 0 to 1 may stand in place of the verdicts.
    """
    (prompts,) = _by_prompt(verdicts)
    return _estimate(prompts, prompts.cluster.max(initial=-1) + 1)[0]


def impute_unscored(verdicts: Verdicts, refused: float) -> Verdicts:
    """Return the same rows with all unscored ones refused (1) or answered (0)."""
    rows = verdicts.refused
    return verdicts._replace(refused=np.where(np.isnan(rows), refused, rows))


def with_unscored(verdicts: Verdicts) -> Interval:
    """Return the 95 % interval whatever the unscored rows are: all answered, up to all refused."""
    return Interval(mean(impute_unscored(verdicts, 0)).low, mean(impute_unscored(verdicts, 1)).high)


def difference(a: Verdicts, b: Verdicts, *, paired: bool) -> Difference:
    """Return mean a minus mean b.

    paired: two models, on the prompts with a verdict from both. Else each on all its prompts: two
    prompt sets, or Youden's J (toxic minus safe). Either way, clusters in common count.
    """
    x, y = _by_prompt(a, b)
    if paired:
        x, y = _in_common(x, y)
    clusters = max(x.cluster.max(initial=-1), y.cluster.max(initial=-1)) + 1
    of_a, parts_a, sums_a = _estimate(x, clusters)
    of_b, parts_b, sums_b = _estimate(y, clusters)
    if not of_a.rows or not of_b.rows:
        return Difference(of_a, of_b, *[np.nan] * 5)
    found = _combined(of_a, parts_a, of_b, parts_b)
    gap = found.difference
    error = _square(parts_a - parts_b) ** 0.5
    p = _p_of_t(gap, error, found.df)
    low, high = found.low, found.high
    if paired:
        p = max(p, _p_of_flips(sums_a - sums_b))
    if not paired or error < ROUNDING:  # where all clusters differ alike, t knows no error
        p = max(p, found.p)
    else:  # the end near 0 is that of t, so that it agrees with p; the far end is the wider one
        half = error * t95(found.df)
        low = min(low, gap - half)
        high = max(high, gap + half)
        if gap > ROUNDING:
            low = gap - half
        if gap < -ROUNDING:
            high = gap + half
    if paired:
        fewest = min(of_a.effective, of_b.effective)
        low, high = _widened(low, high, _of_pairs(x, y, sums_a - sums_b, error, fewest), p)
    if p >= ALPHA:
        low = min(low, 0.0)
        high = max(high, 0.0)
    return found._replace(low=max(-1.0, low), high=min(1.0, high), p=p)


def _of_pairs(x: _Prompts, y: _Prompts, sums: Array, error: float, fewest: float) -> _Ends:
    """Return Bonett and Price's interval at the effective number of pairs: by the spread of the
    differences, but `fewest` where less than FEW_CLUSTERS differ. sums: of the clusters.
    """
    gaps = (x.share - y.share) * _weights(x)
    more = float(gaps[gaps > 0].sum())
    fewer = -float(gaps[gaps < 0].sum())
    pairs = fewest
    if np.count_nonzero(np.abs(sums) > ROUNDING) >= FEW_CLUSTERS and error > ROUNDING:
        pairs = min(len(gaps), (more + fewer - (more - fewer) ** 2) / error**2)
    return bonett_price(more, fewer, pairs)


def _widened(low: float, high: float, other: _Ends, p: float) -> _Ends:
    """Return an interval that holds another one; where p < ALPHA it still excludes 0."""
    widest = (min(low, other[0]), max(high, other[1]))
    if p < ALPHA and low > 0 >= widest[0]:
        return low, widest[1]
    if p < ALPHA and high < 0 <= widest[1]:
        return widest[0], high
    return widest


def worst_case_p(a: Verdicts, b: Verdicts) -> float:
    """Return p of the paired difference with the unscored rows against it; 1 where it turns."""
    before = difference(a, b, paired=True).difference
    after = difference(impute_unscored(a, before < 0), impute_unscored(b, before > 0), paired=True)
    if before * after.difference > 0:
        return after.p
    return 1.0


def _by_prompt(*several: Verdicts) -> list[_Prompts]:
    """Return the prompts of each, their clusters numbered alike."""
    found = []
    for one in several:
        scored = np.isfinite(one.refused)
        ids, first, place = np.unique(one.prompt[scored], return_index=True, return_inverse=True)
        rows = np.bincount(place, minlength=len(ids))
        share = np.bincount(place, one.refused[scored], len(ids)) / rows
        _, *columns = np.broadcast_arrays(scored, *one[2:])  # cluster, category, weight
        of_prompts = [column[scored][first] for column in columns]
        found.append(_Prompts(ids, share, rows, *of_prompts))
    names = np.unique(np.concatenate([one.cluster for one in found]))
    return [one._replace(cluster=np.searchsorted(names, one.cluster)) for one in found]


def _in_common(x: _Prompts, y: _Prompts) -> tuple[_Prompts, _Prompts]:
    """Return the prompts in both; where their clusters disagree, the fewer and larger ones."""
    _, in_x, in_y = np.intersect1d(x.id, y.id, assume_unique=True, return_indices=True)
    x = _Prompts(*(one[in_x] for one in x))
    y = _Prompts(*(one[in_y] for one in y))
    coarser = min(x.cluster, y.cluster, key=lambda cluster: len(np.unique(cluster)))
    return x._replace(cluster=coarser), y._replace(cluster=coarser)


def _estimate(prompts: _Prompts, clusters: int) -> tuple[Mean, Array, Array]:
    """Return the mean; each cluster's part in its deviation, so that the variance is the sum of
    their squares; and in the mean itself. clusters: their number, with those without a prompt here.
    """
    _, share, rows, cluster, category, weight = prompts
    if not len(share):
        none = np.zeros(clusters)
        return Mean(np.nan, 0.0, 1.0, 0, 0, 0.0, 0.0, 0.0), none, none
    stratum = np.unique(category, return_inverse=True)[1]
    totals = np.bincount(stratum, weight)
    strata = len(totals)
    weights = _weights(prompts)
    n = int(rows.sum())
    cell = cluster * strata + stratum
    cells = clusters * strata
    means = np.bincount(stratum, weight * share) / totals
    centered = np.bincount(cell, weights * (share - means[stratum]), cells)
    leverage = np.bincount(cell, weights * strata, cells)
    known = np.where(leverage < 1 - ROUNDING, 1 - leverage, np.inf)
    parts = (centered / np.sqrt(known)).reshape(clusters, -1).sum(axis=1)  # CR2
    in_clusters = np.bincount(cluster, weights)
    df = _degrees_of_freedom(leverage.reshape(clusters, -1), in_clusters)
    rate = float(means.mean())
    variance = _square(parts)
    size = float(n)
    assumed = False
    if variance > ROUNDING**2:
        spread = rate * (1 - rate) * len(share) / (len(share) - 1)
        size = min(size, spread / variance / allowance(df, n))
    outcomes = [np.bincount(cluster, part) > ROUNDING for part in (share, 1 - share)]
    fewest = min(kish(in_clusters[holders]) for holders in outcomes)
    if fewest < FEW_CLUSTERS - ROUNDING or np.isinf(known).any():
        between = _square(in_clusters)
        within = _square(weights)
        spread_size = size
        size = min(size, 1 / (ASSUMED_ICC * between + (1 - ASSUMED_ICC) * within))
        assumed = size < spread_size and between > within + ROUNDING
    low, high = wilson(rate * size, size)
    found = Mean(rate, low, high, len(share), n, size, variance, df, assumed)
    return found, parts, np.bincount(cluster, weights * share, clusters)


def _weights(prompts: _Prompts) -> Array:
    """Return how much each prompt counts in the mean: 1 in all, each category alike."""
    stratum = np.unique(prompts.category, return_inverse=True)[1]
    totals = np.bincount(stratum, prompts.weight)
    weights: Array = prompts.weight / (len(totals) * totals[stratum])
    return weights


def kish(weights: Array) -> float:
    """Return how many equal weights would be as even as these; 0 for none."""
    if not len(weights):
        return 0.0
    return float(weights.sum() ** 2) / _square(weights)


def _degrees_of_freedom(leverage: Array, in_clusters: Array) -> float:
    """Return Kish's number of clusters less the strata, Satterthwaite's over them at most."""
    strata = leverage.shape[1]
    squares = (leverage**2).sum(axis=0)
    of_strata = np.maximum(1, 1 / squares - 1)
    together = squares.sum() ** 2 / (squares**2 / of_strata).sum()
    kish = 1 / _square(in_clusters)
    return max(1.0, float(min(together, kish - strata)))


def allowance(df: float, rows: int) -> float:
    """For few clusters: a ratio of t quantiles, squared (Korn, Graubard, Surv. Meth. 24 (1998))."""
    return (t95(df) / t95(rows - 1)) ** 2


def _square(x: Array) -> float:
    return float((x * x).sum())  # x @ x starts threads, which costs more than it saves


def t95(df: float) -> float:
    """Return the t distribution's 97.5 % quantile, of one degree of freedom at least."""
    return float(stdtrit(max(1.0, df), 1 - ALPHA / 2))


def _combined(a: Mean, parts_a: Array, b: Mean, parts_b: Array) -> Difference:
    """Return both Wilson intervals combined with the clusters' correlation, and its t test.

    R. G. Newcombe, Statistics in Medicine 17 (1998) 2635-2650, method 10; in general G. Y. Zou and
    A. Donner, Statistics in Medicine 27 (2008) 1693-1702.
    """
    norms = (_square(parts_a) * _square(parts_b)) ** 0.5
    correlation = 0.0
    if norms > ROUNDING**2:
        correlation = float((parts_a * parts_b).sum()) / norms
    of_a = np.array([a.rate - a.low, a.high - a.rate])
    of_b = np.array([b.high - b.rate, b.rate - b.low])
    squares = of_a**2 - 2 * correlation * of_a * of_b + of_b**2
    below, above = np.sqrt(np.maximum(0, squares)).tolist()
    gap = a.rate - b.rate
    df = min(a.df, b.df)
    half = below if gap > 0 else above
    p = _p_of_t(gap, half / t95(df), df)
    return Difference(a, b, gap - below, gap + above, p, correlation, df)


def _p_of_t(gap: float, error: float, df: float) -> float:
    return 2 * float(stdtr(df, -abs(gap) / max(error, ROUNDING)))


def _p_of_flips(sums: Array) -> float:
    """Of all flips of the clusters' signs, for prompts McNemar's; 0 where FEW_CLUSTERS differ."""
    sums = sums[np.abs(sums) > ROUNDING * np.abs(sums).max()]
    if len(sums) >= FEW_CLUSTERS:
        return 0.0
    signs = np.array(list(product((1, -1), repeat=len(sums))))
    least = abs(sums.sum()) - ROUNDING * np.abs(sums).sum()
    return float(np.mean(np.abs(signs @ sums) >= least))
