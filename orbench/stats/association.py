"""What goes with refusals: a score (AUC), or features of the prompt (log-odds)."""

from collections.abc import Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.special import ndtr  # type: ignore[import-untyped]

from orbench.stats.core import Verdicts
from orbench.stats.inference import FEW_CLUSTERS, Array, kish, t95
from orbench.stats.intervals import Z95, wilson

TINY = 1e-9  # the variance of a score that separates perfectly
PRIOR = 10.0  # of log-odds, in prompts, each feature as frequent as in all of them


def auc(verdicts: Verdicts, score: Array) -> tuple[float, float, float]:
    """Return the probability that a refused prompt has a higher score than an answered one, ties
    half, and its 95 % interval: Wilson's, with N. A. Obuchowski's variance for clusters (Biometrics
    53 (1997) 567-578). NaN, 0 and 1 where all or none are refused.
    """
    refused, total = _by_cluster(verdicts, score)
    answered = total - refused
    r = refused.sum(axis=0)
    a = answered.sum(axis=0)
    if not r.sum() or not a.sum():
        return nan, 0.0, 1.0
    below = (np.cumsum(a) - a / 2) / a.sum()
    above = 1 - (np.cumsum(r) - r / 2) / r.sum()
    value = r @ below / r.sum()
    parts = refused @ (below - value) / r.sum()
    parts += answered @ (above - value) / a.sum()
    sizes = total.sum(axis=1)
    rest = np.maximum(TINY, 1 - sizes / sizes.sum())
    even = min(kish(refused.sum(axis=1)), kish(answered.sum(axis=1)))
    with_each = [part.any(axis=1).sum() for part in (refused, answered)]
    size = min(with_each)
    variance = parts @ (parts / rest)  # a large cluster hides its own deviation
    if size >= FEW_CLUSTERS and variance > TINY:
        few = Z95 / t95(even - 1)
        size = value * (1 - value) / variance * few**2
    low, high = wilson(value * size, size)
    return value, low, high


def _by_cluster(verdicts: Verdicts, score: Array) -> Array:
    """Return refused and all prompts, weighted, both as clusters x scores that occur."""
    scored = np.isfinite(verdicts.refused) & np.isfinite(score)
    prompt = verdicts.prompt[scored]
    _, place, rows = np.unique(prompt, return_inverse=True, return_counts=True)
    weight = np.broadcast_to(verdicts.weight, scored.shape)
    each = weight[scored] / rows[place]
    each = each * each.sum() / (each @ each)  # to the number of rows that say as much
    levels, level = np.unique(score[scored].round(9), return_inverse=True)
    names, of = np.unique(verdicts.cluster[scored], return_inverse=True)
    sums = np.zeros((2, len(names), len(levels)))
    np.add.at(sums[0], (of, level), each * verdicts.refused[scored])
    np.add.at(sums[1], (of, level), each)
    return sums


class LogOdds(NamedTuple):
    """What goes with refusals: an entry per feature."""

    refused: Array  # prompts that have it
    answered: Array
    log_odds: Array  # above 0: it goes with refusals
    z: Array
    q: Array  # p after Benjamini and Hochberg


def log_odds(features: Any, refused: Array, cluster: Array) -> LogOdds:
    """Return log-odds with an informative prior (Monroe et al., Political Analysis 16 (2008)
    372-403), of prompts in place of tokens. Rewrites of a seed share words: the variance is times
    the design effect, if above 1.

    features: sparse, prompts x features, 1 where a prompt has one; none is in all prompts. cluster:
    seeds, from 0.
    """
    from scipy.stats import false_discovery_control  # type: ignore[import-untyped]  # loads slowly

    share = features.mean(axis=0)
    groups = (refused, ~refused)
    counts = np.array([features[group].sum(axis=0) for group in groups])
    sizes = np.array([[group.sum()] for group in groups])
    yes = counts + PRIOR * share
    no = sizes + PRIOR - yes
    odds = np.log(yes / no)
    gap = odds[0] - odds[1]
    signs = np.where(refused, 1 / sizes[0], -1 / sizes[1])
    prompts = np.arange(len(cluster))
    members = csr_array((signs, (cluster, prompts)))  # clusters x prompts
    inside = members @ features
    alone = members.sum(axis=1)
    # Squared deviations of the clusters, multiplied out: what is expected of them is not sparse.
    between = inside.multiply(inside).sum(axis=0) - 2 * share * (inside.T @ alone)
    between += share**2 * (alone @ alone)
    effect = between / (share * (1 - share) * (signs @ signs))
    variance = (1 / yes + 1 / no).sum(axis=0)
    z = gap / np.sqrt(variance * np.maximum(1, effect))
    q = false_discovery_control(2 * ndtr(-np.abs(z)))
    return LogOdds(counts[0], counts[1], gap, z, q)


def holm(p: Sequence[float]) -> Array:
    """Return Holm's p values (Scand. J. Statist. 6 (1979) 65-70); NaN counts as 1."""
    known = np.nan_to_num(p, nan=1.0)
    order = np.argsort(known)
    times = known[order] * np.arange(len(known), 0, -1)
    known[order] = np.minimum(1, np.maximum.accumulate(times))
    return known
