"""What goes with refusals: a score (AUC), features of the prompt (log-odds), a seed's size."""

from collections.abc import Sequence
from math import nan, sqrt
from typing import Any

import numpy as np
from pandas import DataFrame  # type: ignore[import-untyped]
from scipy.special import bdtrc, ndtr, ndtri  # type: ignore[import-untyped]

from orbench.stats.core import difference
from orbench.stats.estimates import Verdicts, by_cluster
from orbench.stats.inference import (
    ALPHA,
    FEW_CLUSTERS,
    ROUNDING,
    Array,
    kish,
    sum_of_squares,
    t95,
)
from orbench.stats.intervals import Z95, Interval, wilson

TINY = 1e-9  # the variance of a score that separates perfectly
# Where fewer seeds have a feature (as Kish counts), their spread alone is not trusted.
ENOUGH_SEEDS = 20
# With fewer, an interval may be too narrow if the sizes of seeds go with refusals.
SEEDS_OF_ANY_SIZE = 60
# Refusals, or answers, to be expected: with fewer, normal tails are too light.
ENOUGH_EXPECTED = 3
PRIOR = 10.0  # of log-odds, in prompts, each feature as frequent as in all of them


def auc(verdicts: Verdicts, score: Array) -> tuple[float, Interval]:
    """Return the probability that a refused prompt has a higher score than an answered one, ties
    half, and its 95 % interval: Wilson's, with N. A. Obuchowski's variance for clusters (Biometrics
    53 (1997) 567-578). NaN, 0 and 1 where all or none are refused.

    score: by prompt id.
    """
    prompts = verdicts.prompts
    of_prompts = score[prompts.prompt].round(9)
    _, place = np.unique(of_prompts, return_inverse=True)
    total, refused = by_cluster(prompts, np.unique(prompts.cluster), place)
    answered = total - refused
    if not refused.any() or not answered.any():
        return nan, Interval(0.0, 1.0)
    refused /= refused.sum()
    answered /= answered.sum()
    refusals = refused.sum(axis=0)  # at each score
    answers = answered.sum(axis=0)
    # Of each score: the share of the other group that it is above, or below.
    above = np.cumsum(answers) - answers / 2
    below = 1 - np.cumsum(refusals) + refusals / 2
    value = float(refusals @ above)
    parts = refused @ (above - value) + answered @ (below - value)
    others = 1 - total.sum(axis=1) / total.sum()
    enlarged = parts / np.maximum(TINY, others)  # a large cluster hides its own deviation
    variance = parts @ enlarged
    of_clusters = [group.sum(axis=1) for group in (refused, answered)]
    size = float(min(map(np.count_nonzero, of_clusters)))
    if size >= FEW_CLUSTERS and variance > TINY:
        even = min(map(kish, of_clusters))
        few = Z95 / t95(even - 1)
        size = value * (1 - value) / variance * few**2
    return value, wilson(value * size, size)


def goes_with_size(verdicts: Verdicts) -> bool:
    """Return whether there are few seeds, and those with more prompts than most of them are refused
    more often, or less.
    """
    prompts = verdicts.prompts
    _, seed, sizes = np.unique(prompts.cluster, return_inverse=True, return_counts=True)
    if len(sizes) >= SEEDS_OF_ANY_SIZE:
        return False
    is_large = sizes[seed] > np.median(sizes)
    gap = difference(prompts.where(is_large), prompts.where(~is_large), paired=False)
    return gap.p < ALPHA


def log_odds(features: Any, refused: Array, cluster: Array) -> DataFrame:
    """Return log-odds with an informative prior (Monroe et al., Political Analysis 16 (2008)
    372-403), of prompts in place of tokens. Rewrites of a seed share words: the variance is times
    the design effect, if above 1; what few seeds have is tested as a `difference`, too, and what
    few refusals or answers are to be expected of by a binomial test (mid-p).

    features: sparse, prompts x features, 1 where a prompt has one; none is in all prompts. cluster:
    seeds, by number. The table has a row per feature: the refused and the answered prompts that
    have it, log_odds (above 0: it goes with refusals), z, and q (p after Benjamini and Hochberg).
    Seeds count only for what has q below ALPHA without them, since they don't lower it.
    """
    share = features.mean(axis=0)
    groups = np.array([refused, ~refused])
    counts = groups @ features
    sizes = groups.sum(axis=1, keepdims=True)
    yes = counts + PRIOR * share
    no = sizes + PRIOR - yes
    of_refused, of_answered = np.log(yes / no)
    gap = of_refused - of_answered
    z = _of_rare(gap / np.sqrt((1 / yes + 1 / no).sum(axis=0)), counts, refused.mean())
    columns = features.tocsc()
    verdicts = Verdicts(refused * 1.0, np.arange(len(refused)), cluster)
    for term in np.flatnonzero(_adjusted(z) < ALPHA):
        has = columns[:, [term]].toarray().ravel() > 0
        z[term] = _by_seeds(z[term], verdicts, has)
    found = DataFrame(counts.T, columns=["refused", "answered"])
    return found.assign(log_odds=gap, z=z, q=_adjusted(z))


def _of_rare(z: Array, counts: Array, rate: float) -> Array:
    """Return z of features, that of rare ones no larger than a binomial test's (mid-p).

    counts: refused and answered prompts. rate: of refusals.
    """
    n = counts.sum(axis=0).astype(int)
    more = (bdtrc(counts[0], n, rate) + bdtrc(counts[0] - 1, n, rate)) / 2
    most = -ndtri(np.minimum(more, 1 - more))
    is_rare = n * min(rate, 1 - rate) < ENOUGH_EXPECTED
    return np.where(is_rare, np.clip(z, -most, most), z)


def _by_seeds(z: float, verdicts: Verdicts, has: Array) -> float:
    """Return z of a feature, allowing for seeds. has: which prompts have the feature."""
    # The design effect of the difference between the prompts with the feature and the others. They
    # deviate from the share of their own group: from that of all, an association would be noise.
    group = has.astype(int)
    size = np.bincount(group)
    share = np.bincount(group, verdicts.refused) / size
    part = (verdicts.refused - share[group]) / size[group]
    seeds = np.bincount(verdicts.cluster, np.where(has, part, -part))
    independent = max(TINY**2, sum_of_squares(part))
    z /= sqrt(max(1.0, sum_of_squares(seeds) / independent))
    fewer = has if size[1] <= size[0] else ~has
    seeds = np.bincount(verdicts.cluster[fewer])
    if kish(seeds) < min(ENOUGH_SEEDS, size.min()) - ROUNDING:
        p = difference(verdicts.where(has), verdicts.where(~has), paired=False).p
        most = -ndtri(p / 2)
        z = np.clip(z, -most, most)
    return z


def _adjusted(z: Array) -> Array:
    """Return p values adjusted by Y. Benjamini and Y. Hochberg's method (J. R. Statist. Soc. B 57
    (1995) 289-300). SciPy has it too, where it takes half a second to load.
    """
    p: Array = 2 * ndtr(-np.abs(z))
    falling = np.argsort(-p)
    rank = np.arange(len(p), 0, -1)
    p[falling] = np.minimum.accumulate(p[falling] * len(p) / rank)
    return p


def holm(p: Sequence[float]) -> Array:
    """Return Holm's p values (Scand. J. Statist. 6 (1979) 65-70); NaN counts as 1."""
    adjusted: Array = np.nan_to_num(np.array(p, float), nan=1.0)
    rising = np.argsort(adjusted)
    left = np.arange(len(p), 0, -1)
    adjusted[rising] = np.maximum.accumulate(np.minimum(1, adjusted[rising] * left))
    return adjusted
