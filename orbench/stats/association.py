"""What goes with refusals: a score (threshold, AUC), or features of the prompt (log-odds)."""

from math import nan
from typing import Any

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.special import expit, ndtr  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.stats.core import FEW_CLUSTERS, Array, Verdicts, t95
from orbench.stats.intervals import Z95, wilson

GRID = np.linspace(0, 1, 1001)  # where the threshold is looked for
STEEPEST = 1e4  # slope of the logistic curve: more is a step
TINY = 1e-9  # squared residuals of a perfect fit
NEAR = 0.05  # of a standard error: no difference
PRIOR = 10.0  # of log-odds, in prompts, each feature as frequent as in all of them


def threshold(verdicts: Verdicts, score: Array) -> tuple[float, float, float, str]:
    """The score (0 to 1) at which a logistic curve rises through one half, its 95 % interval, and
    where the curve stays if there is none.

    The interval holds what a cluster-robust score test does not reject (D. D. Boos, The American
    Statistician 46 (1992) 327-333): it exists for a perfect step, too.
    """
    levels, hits, total = _by_cluster(verdicts, score)
    if len(levels) < 2:
        return nan, nan, nan, "fewer than two scores"
    sums, errors = _score_test(levels, hits, total)
    if not sums[0] < 0 < sums[-1]:  # the signs are those of the curve less one half
        side = "below one half" if sums[-1] < 0 else "above one half"
        return nan, nan, nan, side if sums[0] * sums[-1] > 0 else "falls through one half"
    off = np.abs(sums / errors)
    middle = float(GRID[off <= off.min() + NEAR].mean())
    inside = GRID[off <= t95(len(hits) - 1)]
    return middle, float(inside.min()), float(inside.max()), ""


def _score_test(levels: Array, hits: Array, total: Array) -> tuple[Array, Array]:
    """The efficient score and its standard error for each threshold in GRID."""
    x = levels[:, None] - GRID
    refused = hits.sum(axis=0)[:, None]
    n = total.sum(axis=0)[:, None]
    low = np.full(GRID.shape, -STEEPEST)
    high = -low
    for _ in range(60):  # with its threshold given, a curve has only its slope
        slope = (low + high) / 2
        steeper = (x * (refused - n * expit(slope * x))).sum(axis=0) > 0
        low = np.where(steeper, slope, low)
        high = np.where(steeper, high, slope)
    p = expit(slope * x)
    spread = n * p * (1 - p)
    explained = (spread * x).sum(axis=0) / np.maximum((spread * x * x).sum(axis=0), TINY**2)
    own = 1 - x * explained  # what the slope cannot make up for
    parts = hits @ own - total @ (own * p)
    # Where a score has next to none of the rarer outcome, clusters show less than the curve's own.
    variance = np.maximum((parts**2).sum(axis=0), (spread * own**2).sum(axis=0))
    return parts.sum(axis=0), np.sqrt(np.maximum(variance, TINY))


def auc(verdicts: Verdicts, score: Array) -> tuple[float, float, float]:
    """The probability that a refused prompt has a higher score than an answered one, ties half, and
    its 95 % interval: Wilson's, with N. A. Obuchowski's variance for clusters (Biometrics 53 (1997)
    567-578). NaN, 0 and 1 where all or none are refused.
    """
    _, refused, total = _by_cluster(verdicts, score)
    answered = total - refused
    r = refused.sum(axis=0)
    a = answered.sum(axis=0)
    if not r.sum() or not a.sum():
        return nan, 0.0, 1.0
    below = (np.cumsum(a) - a / 2) / a.sum()
    above = 1 - (np.cumsum(r) - r / 2) / r.sum()
    value = float(r @ below / r.sum())
    parts = refused @ (below - value) / r.sum() + answered @ (above - value) / a.sum()
    size = float(min(np.count_nonzero(one.sum(axis=1)) for one in (refused, answered)))
    variance = float(parts @ parts) * len(parts) / max(1, len(parts) - 1)
    if size >= FEW_CLUSTERS and variance > TINY:
        size = value * (1 - value) / variance * (Z95 / t95(len(parts) - 1)) ** 2
    return value, *wilson(value * size, size)


def _by_cluster(verdicts: Verdicts, score: Array) -> tuple[Array, Array, Array]:
    """The scores that occur; refused and all prompts, weighted, clusters x scores."""
    scored = np.isfinite(verdicts.refused) & np.isfinite(score)
    refused = verdicts.refused[scored]
    prompt = verdicts.prompt[scored]
    cluster = prompt if verdicts.cluster is None else verdicts.cluster[scored]
    _, place, rows = np.unique(prompt, return_inverse=True, return_counts=True)
    each = (1.0 if verdicts.weight is None else verdicts.weight[scored]) / rows[place]
    each = each * each.sum() / (each @ each)  # to the number of rows that say as much
    levels, level = np.unique(score[scored].round(9), return_inverse=True)
    names, of = np.unique(cluster, return_inverse=True)
    hits, total = np.zeros((2, len(names), len(levels)))
    np.add.at(hits, (of, level), each * refused)
    np.add.at(total, (of, level), each)
    return levels, hits, total


def log_odds(features: Any, refused: Array, cluster: Array) -> dict[str, Array]:
    """Log-odds with an informative prior (Monroe et al., Political Analysis 16 (2008) 372-403), of
    prompts in place of tokens; rewrites of a seed share words: times the design effect, if above 1.

    features: sparse, prompts x features, 1 where a prompt has one; none is in all prompts. cluster:
    seeds, from 0. Returns for each feature the prompts that have it (refused, answered), log_odds
    (above 0: it goes with refusals), z, and q (p after Benjamini and Hochberg).
    """
    share = features.mean(axis=0)
    counts = np.array([features[group].sum(axis=0) for group in (refused, ~refused)])
    sizes = np.array([[refused.sum()], [(~refused).sum()]])
    yes = counts + PRIOR * share
    no = sizes + PRIOR - yes
    found = np.log(yes[0] / no[0]) - np.log(yes[1] / no[1])
    signs = np.where(refused, 1 / sizes[0], -1 / sizes[1])
    members = csr_array((signs, (cluster, np.arange(len(cluster)))))  # clusters x prompts
    inside = members @ features
    alone = members.sum(axis=1)
    # Squared deviations of the clusters, multiplied out: what is expected of them is not sparse.
    between = inside.multiply(inside).sum(axis=0) - 2 * share * (inside.T @ alone)
    effect = (between + share**2 * (alone @ alone)) / (share * (1 - share) * (signs @ signs))
    z = found / np.sqrt((1 / yes + 1 / no).sum(axis=0) * np.maximum(1, effect))
    q = multipletests(2 * ndtr(-np.abs(z)), method="fdr_bh")[1] if len(z) else z
    return {"refused": counts[0], "answered": counts[1], "log_odds": found, "z": z, "q": q}
