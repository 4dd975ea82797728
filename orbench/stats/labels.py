"""A rate by a judge, corrected by people's labels on some of the rows."""

import numpy as np

from orbench.stats.core import Verdicts, mean
from orbench.stats.inference import ROUNDING, Array, t_inflation
from orbench.stats.intervals import wilson


def corrected(judge: Verdicts, labels: Array) -> tuple[float, float, float]:
    """Return the rate that people would give to all rows, and its 95 % interval, as fractions.

    Prediction-powered inference (A. Angelopoulos and others, Science 382 (2023) 669-674; PPI++,
    arXiv 2311.01453): the judge's rate on all rows, plus the mean of what people say otherwise on
    the labeled ones. Of both, the share `trust` of the judge that gives the least variance. It
    does not need a judge that errs alike everywhere, but labeled rows drawn by chance.

    judge: its verdicts on all rows; weight: 1 / the chance to be labeled. labels: 1, 0, NaN where
    people said nothing.
    """
    known = np.isfinite(labels)
    size = mean(judge._replace(refused=labels)).effective
    spread = _spread(judge, labels, known, size)
    trust = spread[0, 1] / spread[0, 0] / (1 + size / mean(judge).effective)
    trust = min(1.0, max(0.0, trust))
    of_judge = mean(judge._replace(refused=trust * judge.refused, weight=1.0))
    # What people say otherwise, between 0 and 1, as for any mean.
    otherwise = (labels - trust * judge.refused + 1) / 2
    gap = mean(judge._replace(refused=otherwise))
    least = spread[1, 1] - 2 * trust * spread[0, 1] + trust**2 * spread[0, 0]
    variance = of_judge.variance + max(4 * gap.variance, least / (size + 2))
    rate = min(1.0, max(0.0, of_judge.rate + 2 * gap.rate - 1))
    inside = min(1 - ROUNDING, max(ROUNDING, rate))
    n = inside * (1 - inside) / variance / t_inflation(gap.df, gap.rows)
    low, high = wilson(inside * n, n)
    return rate, low, high


def _spread(judge: Verdicts, labels: Array, known: Array, size: float) -> Array:
    """Return the covariance matrix of the judge's verdicts and people's on the labeled rows, with
    one more row of each disagreement, as for pairs that differ seldom (see `bonett_price`).

    size: the effective number of labeled rows.
    """
    weight = np.broadcast_to(judge.weight, known.shape)[known]
    weight = weight * size / weight.sum()
    pairs = [np.append(judge.refused[known], [1, 0]), np.append(labels[known], [0, 1])]
    spread: Array = np.cov(pairs, aweights=np.append(weight, [1, 1]), ddof=0)
    return spread
