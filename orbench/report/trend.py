"""Over-refusal against toxic rejection over models: rank correlation and regression curve."""

from collections.abc import Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FEWEST_MODELS = 4  # with fewer, neither a rank correlation nor a parabola says anything
BOOTSTRAP_RESAMPLES = 9999
BOOTSTRAP_SEED = 2405  # so that the same input gives the same interval


class Correlation(NamedTuple):
    """Spearman's rho with its bootstrap 95 % interval; NaN where it is not defined."""

    rho: float
    low: float
    high: float


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Spearman's rank correlation over models.

    Percentile interval of BOOTSTRAP_RESAMPLES resamples of the models; resamples in which all the
    values are the same have no rho and are left out.
    """
    if len(x) < FEWEST_MODELS:
        return Correlation(nan, nan, nan)
    pairs = np.array([x, y], dtype=float)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    rhos = _rank_correlation(pairs[:, rng.integers(len(x), size=(BOOTSTRAP_RESAMPLES, len(x)))])
    low, high = np.nanpercentile(rhos, [2.5, 97.5]) if np.isfinite(rhos).any() else (nan, nan)
    return Correlation(float(_rank_correlation(pairs)), float(low), float(high))


def parabola(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float] | None:
    """Least squares y = a x^2 + b x + c in the units given; None where there are too few points."""
    if len(set(x)) < FEWEST_MODELS:
        return None
    a, b, c = np.polyfit(x, y, 2)
    return float(a), float(b), float(c)


def _rank_correlation(pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's rho of pairs[0] and pairs[1] along the last axis, ties at their mean rank.

    scipy.stats.spearmanr takes no batches, and a call a resample takes seconds.
    """
    from scipy.stats import rankdata  # type: ignore[import-untyped]

    ranks = rankdata(pairs, axis=-1)
    ranks -= ranks.mean(axis=-1, keepdims=True)
    covariance = (ranks[0] * ranks[1]).sum(-1)
    with np.errstate(invalid="ignore"):
        rho: NDArray[np.float64] = covariance / np.sqrt((ranks**2).sum(-1).prod(0))
    return rho
