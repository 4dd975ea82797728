"""What goes with refusals: a score (AUC), or features of the prompt (log-odds)."""

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np
from pandas import DataFrame, Series  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.special import ndtr  # type: ignore[import-untyped]

from orbench.stats.estimates import Verdicts, by_cluster
from orbench.stats.inference import FEW_CLUSTERS, Array, kish, t95
from orbench.stats.intervals import Z95, Interval, wilson

TINY = 1e-9  # the variance of a score that separates perfectly
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


def log_odds(features: Any, refused: Array, cluster: Array) -> DataFrame:
    """Return log-odds with an informative prior (Monroe et al., Political Analysis 16 (2008)
    372-403), of prompts in place of tokens. Rewrites of a seed share words: the variance is times
    the design effect, if above 1.

    features: sparse, prompts x features, 1 where a prompt has one; none is in all prompts. cluster:
    seeds, by number. The table has a row per feature: the refused and the answered prompts that
    have it, log_odds (above 0: it goes with refusals), z, and q (p after Benjamini and Hochberg).
    """
    share = features.mean(axis=0)
    groups = np.array([refused, ~refused])
    counts = groups @ features
    sizes = groups.sum(axis=1, keepdims=True)
    yes = counts + PRIOR * share
    no = sizes + PRIOR - yes
    of_refused, of_answered = np.log(yes / no)
    gap = of_refused - of_answered
    variance = (1 / yes + 1 / no).sum(axis=0)
    # The design effect: how much more the difference varies than if prompts were independent.
    part = np.where(refused, 1 / sizes[0], -1 / sizes[1])  # of each prompt in the difference
    prompts = np.arange(len(cluster))
    members = csr_array((part, (cluster, prompts)))  # clusters x prompts
    inside = members @ features
    alone = members.sum(axis=1)
    # Squared deviations of the clusters, multiplied out: what is expected of them is not sparse.
    between = inside.multiply(inside).sum(axis=0)
    between = between - 2 * share * (inside.T @ alone)
    between += share**2 * (alone @ alone)
    independent = share * (1 - share) * (part @ part)
    variance *= np.maximum(1, between / independent)
    z = gap / np.sqrt(variance)
    p = 2 * ndtr(-np.abs(z))
    found = DataFrame(counts.T, columns=["refused", "answered"])
    return found.assign(log_odds=gap, z=z, q=_false_discoveries(p))


def _false_discoveries(p: Array) -> Array:
    """Return p values adjusted by Y. Benjamini and Y. Hochberg's method (J. R. Statist. Soc. B 57
    (1995) 289-300). SciPy has it too, where it takes half a second to load.
    """
    falling = Series(p).sort_values(ascending=False)
    rank = np.arange(len(p), 0, -1)
    adjusted = falling * len(p) / rank
    return np.asarray(adjusted.cummin().sort_index())


def holm(p: Sequence[float]) -> Array:
    """Return Holm's p values (Scand. J. Statist. 6 (1979) 65-70); NaN counts as 1."""
    rising = Series(p, dtype=float).fillna(1).sort_values()
    left = np.arange(len(p), 0, -1)
    adjusted = np.minimum(1, rising * left)
    return np.asarray(adjusted.cummax().sort_index())
