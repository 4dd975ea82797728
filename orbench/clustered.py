"""Rates and comparisons whose rows are not independent: their intervals, tests and bounds.

Rewrites of one seed resemble each other, and so do the samples of one prompt. The unit is the
prompt: its value is the share of its scored rows that is refused, a rate is the mean of these
values, and the seed is the cluster (without seeds each prompt is a cluster of its own). Samples
are nested in prompts and prompts in seeds, so a variance between clusters holds for both (E.
Miller, Adding Error Bars to Evals, arXiv 2411.00640).

Where each prompt has one row and one seed, everything here is Wilson's interval, Newcombe's
interval for pairs and McNemar's exact test. tests/benchmark/coverage.py measures coverage and
type I error. numpy and scipy are needed: no stage imports this module when it starts.
"""

from collections.abc import Sequence
from math import nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit  # type: ignore[import-untyped]

from orbench.rates import Z95, wilson

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]

ALPHA = 0.05
# The intra-cluster correlation that is assumed where the data cannot show one, as at 0 and 100 %.
# Above the .3 of rewrites in the middle of the scale, and the correlation of a binary outcome
# shrinks towards 0 and 100 % (M. C. Gulliford et al., J. Clinical Epidemiology 58 (2005) 246-251),
# so it is on the safe side: 5 rewrites a seed count as 5 / 3 prompts.
ASSUMED_ICC = 0.5
FEW_CLUSTERS = 10  # with fewer that hold the rarer outcome, their variance is not to be relied on
FEW_PROMPTS = 30  # rates from fewer are marked
RESAMPLES = 9999
SEED = 2405  # of the bootstrap, so that the same input gives the same interval
FEWEST = 4  # models, and families: with fewer a rank correlation and its resamples say nothing
SAME = 1e-9  # shares that are nearer than this differ by rounding
METHODS = {
    "McNemar, Newcombe": "McNemar's exact test and Newcombe's interval (his method 10 for pairs): "
    "one answer a prompt, one prompt a seed",
    "cluster-robust t": "paired t test and interval with the variance between seeds (prompts where "
    "there are no seeds), G - 1 degrees of freedom",
    "sign flips": "as cluster-robust t, but p is at least that of all sign flips of the clusters: "
    f"fewer than {FEW_CLUSTERS} of them differ",
    "Newcombe, effective n": "both Wilson intervals at the effective sample size, put together as "
    "for independent rates; p is the level at which that interval reaches 0",
}


class Prompts(NamedTuple):
    """What one model did on a set of prompts: an entry a prompt, each prompt once, sorted."""

    prompt: Hashes
    seed: Hashes  # the cluster
    refused: Floats  # rows
    scored: Ints  # rows with a verdict
    missing: Ints  # rows without one

    @property
    def shares(self) -> Floats:
        """The share of each prompt's scored rows that is refused; NaN where none is scored."""
        with np.errstate(invalid="ignore"):
            return self.refused / self.scored

    def at(self, chosen: "NDArray[np.bool_] | NDArray[np.intp]") -> "Prompts":
        """Only some of the prompts."""
        return Prompts(
            self.prompt[chosen],
            self.seed[chosen],
            self.refused[chosen],
            self.scored[chosen],
            self.missing[chosen],
        )

    def with_verdict(self) -> "Prompts":
        """Only the prompts of which some row is scored."""
        return self.at(self.scored > 0)

    def filled(self, *, refused: bool) -> "Prompts":
        """As if the missing rows had been scored, all refused or all answered."""
        more = self.missing if refused else 0
        none = np.zeros_like(self.missing)
        return Prompts(
            self.prompt, self.seed, self.refused + more, self.scored + self.missing, none
        )


class Estimate(NamedTuple):
    """A rate with its 95 % interval, as fractions; NaN, 0 and 1 where nothing is scored."""

    rate: float
    low: float
    high: float
    rows: int
    prompts: int
    clusters: int
    effective: float  # as many independent rows would say as much

    @property
    def design_effect(self) -> float:
        """How many rows say as much as one independent row; 1 where rows are independent."""
        return self.rows / self.effective if self.rows else nan

    @property
    def few(self) -> bool:
        """Whether the rate rests on fewer than FEW_PROMPTS prompts."""
        return self.prompts < FEW_PROMPTS


class Difference(NamedTuple):
    """Rate a minus rate b, with its 95 % interval, as fractions, and p, two-sided."""

    rate_a: float
    rate_b: float
    low: float
    high: float
    p: float
    se: float  # of the difference; NaN where the method has none
    prompts: int  # in common; of the smaller set where the prompts differ
    clusters: int
    a_only: int  # prompts that a refuses more often than b
    b_only: int
    method: str  # a key of METHODS; empty where there is nothing to compare

    @property
    def difference(self) -> float:
        """rate_a - rate_b."""
        return self.rate_a - self.rate_b


NOTHING = Difference(nan, nan, nan, nan, nan, nan, 0, 0, 0, 0, "")


def by_prompt(prompt: Hashes, refused: NDArray[np.generic], seed: Hashes | None = None) -> Prompts:
    """Group rows by prompt.

    prompt, seed: a hash a row; refused: 1 refused, 0 answered, NaN without a verdict. A prompt that
    stands under several seeds counts to the first of them.
    """
    prompts, first, index = np.unique(prompt, return_index=True, return_inverse=True)
    values = np.asarray(refused, dtype=float)
    known, n = np.isfinite(values), len(prompts)
    return Prompts(
        prompts,
        (prompt if seed is None else seed)[first],
        _sums(index[known], values[known], n),
        np.bincount(index[known], minlength=n),
        np.bincount(index[~known], minlength=n),
    )


# ---------------------------------------------------------------------------------- one rate


def estimate(prompts: Prompts) -> Estimate:
    """The rate over the scored prompts; Wilson's interval at the effective sample size."""
    scored = prompts.with_verdict()
    n, rows = len(scored.prompt), int(scored.scored.sum())
    if not n:
        return Estimate(nan, 0.0, 1.0, 0, 0, 0, 0.0)
    rate = float(scored.shares.mean())
    clusters = len(np.unique(scored.seed))
    effective = effective_size(scored.shares, scored.seed, rows)
    return Estimate(rate, *wilson(rate * effective, effective), rows, n, clusters, effective)


def effective_size(shares: Floats, cluster: Hashes, rows: int) -> float:
    """How many independent rows would say as much: p (1 - p) / cluster-robust variance.

    shares: a value a prompt, 0..1; rows: how many answers are behind them. At most `rows`. Times
    the squared ratio of the t quantiles for rows - 1 and for clusters - 1 degrees of freedom, which
    is the correction for few clusters (E. L. Korn, B. I. Graubard, Survey Methodology 24 (1998)
    193-201). Where fewer than FEW_CLUSTERS clusters hold the rarer outcome, at most the prompts
    over the design effect of ASSUMED_ICC.
    """
    n, rate = len(shares), float(shares.mean())
    names, index, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    groups, sums = len(names), _sums(index, shares)
    variance = _variance(sums - rate * sizes, n)
    size = float(rows)
    if variance > SAME**2 and n > 1:
        size = min(size, rate * (1 - rate) * n / (n - 1) / variance * _few(rows, groups))
    rarer = min(np.count_nonzero(sums > SAME), np.count_nonzero(sums < sizes - SAME))
    if rarer < FEW_CLUSTERS:
        size = min(size, n / design_effect(sizes, ASSUMED_ICC))
    return size


def design_effect(sizes: Sequence[int] | Ints, icc: float) -> float:
    """Kish's: 1 + (m - 1) icc, where m is the mean cluster size that a prompt sees."""
    counts = np.asarray(sizes, dtype=float)
    return float(1 + ((counts**2).sum() / counts.sum() - 1) * icc)


def macro_average(rates: Sequence[Estimate]) -> tuple[float, float, float]:
    """The mean of independent rates, each with the same weight, and its 95 % interval.

    The intervals' own distances, put together as for a sum of independent estimates (G. Y. Zou,
    W. Huang, X. Zhang, Computational Statistics & Data Analysis 53 (2009) 1080-1085): unlike the
    delta method it has a width where categories are at 0 or 100 %. Rates without rows are left out.
    """
    ends = np.array([(one.rate, one.low, one.high) for one in rates if one.rows])
    if not len(ends):
        return nan, nan, nan
    mean, k = float(ends[:, 0].mean()), len(ends)
    below, above = (sqrt(((ends[:, 0] - ends[:, end]) ** 2).sum()) / k for end in (1, 2))
    return mean, mean - below, mean + above


def flips(prompts: Prompts) -> Estimate:
    """The share of prompts whose verdict is not the same in all samples.

    Over the prompts with two samples or more: with a judge asked again it is the share on which the
    judge contradicts itself. Grows with the number of samples, which belongs beside it.
    """
    again = prompts.at(prompts.scored > 1)
    mixed = ((again.refused > 0) & (again.refused < again.scored)).astype(float)
    once = np.ones_like(again.scored)
    return estimate(Prompts(again.prompt, again.seed, mixed, once, np.zeros_like(once)))


# ---------------------------------------------------------------------------------- comparison


def compare(a: Prompts, b: Prompts) -> Difference:
    """Two models on the prompts that both have a verdict for; unpaired where there is none."""
    x, y = a.with_verdict(), b.with_verdict()
    _, in_x, in_y = np.intersect1d(x.prompt, y.prompt, assume_unique=True, return_indices=True)
    return paired(x.at(in_x), y.at(in_y)) if len(in_x) else unpaired(x, y)


def paired(a: Prompts, b: Prompts) -> Difference:
    """Two models on the same scored prompts, in the same order, see METHODS.

    Test and interval are one statistic wherever prompts share a seed or have several rows: one says
    a difference exactly where the other does.
    """
    x, y = a.shares, b.shares
    difference = x - y
    _, index, sizes = np.unique(a.seed, return_inverse=True, return_counts=True)
    se = sqrt(_variance(_sums(index, difference - difference.mean()), len(x)))
    counts = (int(np.count_nonzero(x > y + SAME)), int(np.count_nonzero(x < y - SAME)))
    found = Difference(
        *(float(x.mean()), float(y.mean()), nan, nan, nan, se, len(x), len(sizes), *counts), ""
    )
    if sizes.max() == 1 and np.isin(x, (0, 1)).all() and np.isin(y, (0, 1)).all():
        both = int(np.count_nonzero((x == 1) & (y == 1)))
        low, high = newcombe(both, *counts, len(x) - both - sum(counts))
        p, method = mcnemar(*counts), "McNemar, Newcombe"
        return found._replace(low=low, high=high, p=p, method=method)
    if se < SAME:  # all clusters differ by the same: their spread says nothing
        apart = unpaired(a, b)
        return found._replace(low=apart.low, high=apart.high, p=apart.p, method=apart.method)
    return _student(found, _sums(index, difference))


def _student(found: Difference, sums: Floats) -> Difference:
    """The t test and interval; sums: of the differences in each cluster."""
    df = found.clusters - 1
    p = 2 * float(stdtr(df, -abs(found.difference) / found.se))
    half = found.se * float(stdtrit(df, 1 - ALPHA / 2))
    low, high = found.difference - half, found.difference + half
    method = "cluster-robust t"
    differing = sums[np.abs(sums) > SAME]
    if len(differing) < FEW_CLUSTERS:
        p, method = max(p, sign_flips(differing)), "sign flips"
    if p >= ALPHA:
        low, high = min(low, 0.0), max(high, 0.0)
    return found._replace(low=max(-1.0, low), high=min(1.0, high), p=p, method=method)


def unpaired(a: Prompts, b: Prompts) -> Difference:
    """Two rates on different prompts, taken as independent, see METHODS.

    The hybrid score interval (R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10)
    at the effective sample sizes; the test is that interval turned round, so they agree. Seeds in
    common would make it narrower: without that it is on the safe side.
    """
    x, y = estimate(a), estimate(b)
    if not x.rows or not y.rows:
        return NOTHING
    low, high = _hybrid(x, y, Z95)
    return Difference(
        *(x.rate, y.rate, low, high, _level(x, y), nan, min(x.prompts, y.prompts)),
        *(min(x.clusters, y.clusters), 0, 0, "Newcombe, effective n"),
    )


def youden(toxic: Prompts, safe: Prompts) -> Difference:
    """Youden's J of one model: toxic rejection minus over-refusal, -1..1, with its interval."""
    return unpaired(toxic, safe)


def against(a: Prompts, b: Prompts) -> Difference:
    """The comparison of a and b with the missing rows of both set against its direction.

    The finding that the lower rate is lower stands only if this one, too, shows it: p is 1 where
    the direction turns. Correct it for the number of pairs as the p of the comparison itself.
    """
    found = compare(a, b)
    a_is_lower = found.difference < 0
    extreme = compare(a.filled(refused=a_is_lower), b.filled(refused=not a_is_lower))
    turned = found.difference * extreme.difference <= 0
    return extreme._replace(p=1.0) if turned else extreme


def newcombe(both: int, a_only: int, b_only: int, neither: int) -> tuple[float, float]:
    """The 95 % interval of a difference of paired proportions, a minus b.

    Method 10 of R. G. Newcombe, Statistics in Medicine 17 (1998) 2635-2650: the two Wilson
    intervals, put together with the correlation phi, its numerator corrected for continuity.
    """
    n = both + a_only + b_only + neither
    a, b = both + a_only, both + b_only
    numerator: float = both * neither - a_only * b_only
    if numerator > 0:
        numerator = max(numerator - n / 2, 0)
    denominator = sqrt(a * (n - a) * b * (n - b))
    phi = numerator / denominator if denominator else 0.0
    return _together(a / n, b / n, wilson(a, n), wilson(b, n), phi)


def mcnemar(a_only: int, b_only: int) -> float:
    """p of McNemar's exact test, two-sided."""
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # half a second to load

    return float(binomtest(a_only, a_only + b_only).pvalue) if a_only + b_only else 1.0


def sign_flips(sums: Floats) -> float:
    """p of the exact permutation test that flips each cluster's sum, two-sided; 2^n flips."""
    n = len(sums)
    signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return float(np.mean(np.abs(signs @ sums) >= abs(sums.sum()) - SAME))


def _together(
    a: float, b: float, ends_a: tuple[float, float], ends_b: tuple[float, float], phi: float
) -> tuple[float, float]:
    """The interval of a - b from the intervals of a and b and their correlation."""

    def reach(of_a: float, of_b: float) -> float:
        return sqrt(max(0.0, of_a**2 - 2 * phi * of_a * of_b + of_b**2))

    low = a - b - reach(a - ends_a[0], ends_b[1] - b)
    high = a - b + reach(ends_a[1] - a, b - ends_b[0])
    return max(-1.0, low), min(1.0, high)


def _hybrid(x: Estimate, y: Estimate, z: float) -> tuple[float, float]:
    of_x, of_y = (wilson(one.rate * one.effective, one.effective, z) for one in (x, y))
    return _together(x.rate, y.rate, of_x, of_y, 0.0)


def _level(x: Estimate, y: Estimate) -> float:
    """The p at which the hybrid interval of a difference reaches 0."""
    from scipy.optimize import brentq  # type: ignore[import-untyped]

    if abs(x.rate - y.rate) < SAME:
        return 1.0
    higher, lower = (x, y) if x.rate > y.rate else (y, x)
    far = 38.0  # beyond, p is 0 as a float

    def distance(z: float) -> float:
        return _hybrid(higher, lower, z)[0]

    return 2 * float(ndtr(-brentq(distance, 0.0, far))) if distance(far) < 0 else 0.0


def _sums(index: NDArray[np.intp], values: Floats, groups: int = 0) -> Floats:
    """The sum of the values in each group."""
    return np.bincount(index, values, groups).astype(float)


def _variance(residuals: Floats, n: int) -> float:
    """Of a mean of n prompts, from the sum of residuals of each cluster: CR1 for a mean, which is
    statsmodels' OLS with cov_type "cluster"; 0 where there is only one cluster."""
    groups = len(residuals)
    return groups / (groups - 1) * float((residuals**2).sum()) / n**2 if groups > 1 else 0.0


def _few(rows: int, groups: int) -> float:
    """The squared ratio of the t quantiles; 1 for rows that are clusters of their own."""
    level = 1 - ALPHA / 2
    return float((stdtrit(rows - 1, level) / stdtrit(groups - 1, level)) ** 2) if groups > 1 else 1


# ---------------------------------------------------------------------------------- correlation


class Correlation(NamedTuple):
    """Spearman's rho with its bootstrap 95 % interval (NaN where it cannot be had)."""

    rho: float
    low: float
    high: float
    models: int
    families: int


def spearman(x: Sequence[float], y: Sequence[float], family: Sequence[str]) -> Correlation:
    """Spearman's rank correlation over models, with an interval that resamples families.

    Models of one family resemble each other: whole families are drawn, RESAMPLES times with a fixed
    seed, and the interval is that of the percentiles. A model drawn several times weighs as often
    (ties have their mean rank, so this is the rho of the repeated models). Draws without a rho, for
    all the values are the same, are left out. Fewer than FEWEST models or families: no interval.
    """
    values = np.array([x, y], dtype=float)
    names, index = np.unique(np.array(family), return_inverse=True)
    n, families = len(index), len(names)
    if n < FEWEST:
        return Correlation(nan, nan, nan, n, families)
    rho = float(_weighted_rho(values, np.ones((1, n)))[0])
    low = high = nan
    if families >= FEWEST:
        drawn = np.random.default_rng(SEED).multinomial(
            families, np.full(families, 1 / families), size=RESAMPLES
        )
        rhos = _weighted_rho(values, drawn[:, index].astype(float))
        if np.isfinite(rhos).any():
            low, high = np.nanpercentile(rhos, [2.5, 97.5]).tolist()
    return Correlation(rho, low, high, n, families)


def _weighted_rho(values: Floats, weights: Floats) -> Floats:
    """Spearman's rho of two lines of values, for each line of weights: how often each is there."""
    ranks = []
    for line in values:  # twice the ranks less 1, which rho does not see
        below, same = line[None, :] < line[:, None], line[None, :] == line[:, None]
        ranks.append(2 * weights @ below.T + weights @ same.T)
    total = weights.sum(axis=1, keepdims=True)
    a, b = (rank - (weights * rank).sum(axis=1, keepdims=True) / total for rank in ranks)
    spread = (weights * a * a).sum(axis=1) * (weights * b * b).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho: Floats = (weights * a * b).sum(axis=1) / np.sqrt(spread)
    return rho
