"""Tests and corrections for few clusters, on numbers and arrays. Loads numpy and scipy."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]

Array = NDArray[Any]

ALPHA = 0.05
# Where fewer clusters hold the rarer outcome, or differ, their spread alone is not trusted.
FEW_CLUSTERS = 10
ROUNDING = 1e-9  # shares that differ by less are equal


def sum_of_squares(values: Array) -> float:
    """Return the sum of the squares."""
    squares = values * values  # values @ values starts threads, which costs more than it saves
    return float(squares.sum())


def kish(weights: Array) -> float:
    """Return how many equal weights would be as even as these; 0 for none."""
    if not len(weights):
        return 0.0
    total = weights.sum()
    return float(total**2) / sum_of_squares(weights)


def degrees_of_freedom(leverage: Array) -> float:
    """Return Kish's number of clusters less the strata, Satterthwaite's over them at most.

    leverage: clusters x strata, the share of the stratum's weight that the cluster has.
    """
    strata = leverage.shape[1]
    squares = (leverage**2).sum(axis=0)
    in_strata = np.maximum(1, 1 / squares - 1)
    satterthwaite = squares.sum() ** 2 / (squares**2 / in_strata).sum()
    clusters = kish(leverage.mean(axis=1))
    fewer = min(satterthwaite, clusters - strata)
    return max(1.0, float(fewer))


def t95(df: float) -> float:
    """Return the t distribution's 97.5 % quantile, of one degree of freedom at least."""
    quantile = stdtrit(max(1.0, df), 1 - ALPHA / 2)
    return float(quantile)


def t_inflation(df: float, rows: int) -> float:
    """Return how much larger a variance counts that is known from few clusters: a ratio of t
    quantiles, squared (Korn, Graubard, Surv. Meth. 24 (1998)).
    """
    ratio = t95(df) / t95(rows - 1)
    return ratio**2


def t_test_p(gap: float, error: float, df: float) -> float:
    """Return the two-sided p value of a difference with this standard error."""
    t = abs(gap) / max(error, ROUNDING)
    return 2 * float(stdtr(df, -t))


def sign_flip_p(sums: Array) -> float:
    """Return the share of all flips of the clusters' signs whose total is as far from 0; of single
    prompts, that is McNemar's exact test. 0 where FEW_CLUSTERS differ: t is the test there.

    sums: the clusters' parts in the difference.
    """
    sums = sums[np.abs(sums) > ROUNDING * np.abs(sums).max()]
    if len(sums) >= FEW_CLUSTERS:
        return 0.0
    flips = product((1, -1), repeat=len(sums))
    totals = np.abs(np.array(list(flips)) @ sums)
    # Rounding must not make a total smaller than the one found.
    least = abs(sums.sum()) - ROUNDING * np.abs(sums).sum()
    return float(np.mean(totals >= least))
