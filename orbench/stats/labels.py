"""A rate by a judge, corrected by people's labels on some of the rows."""

from typing import NamedTuple

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
    of_people = mean(judge._replace(refused=labels))
    size = of_people.effective
    spread = _spread(judge, labels, size)
    trust = spread.covariance / spread.judge / (1 + size / mean(judge).effective)
    trust = min(1.0, max(0.0, trust))
    trusted = trust * judge.refused
    of_judge = mean(judge._replace(refused=trusted, weight=1.0))
    # What people say otherwise, between 0 and 1, as for any mean.
    otherwise = (labels - trusted + 1) / 2
    gap = mean(judge._replace(refused=otherwise))
    variance = of_judge.variance
    variance += max(4 * gap.variance, spread.of_gap(trust) / (size + 2))
    rate = of_judge.rate + 2 * gap.rate - 1
    rate = min(1.0, max(0.0, rate))
    inside = min(1 - ROUNDING, max(ROUNDING, rate))
    n = inside * (1 - inside) / variance / t_inflation(gap.df, gap.rows)
    low, high = wilson(inside * n, n)
    return rate, low, high


class _Spread(NamedTuple):
    """Variances and the covariance of the judge's verdicts and people's on the labeled rows."""

    judge: float
    people: float
    covariance: float

    def of_gap(self, trust: float) -> float:
        """Return the variance of what people say otherwise than this share of the judge."""
        return self.people - 2 * trust * self.covariance + trust**2 * self.judge


def _spread(judge: Verdicts, labels: Array, size: float) -> _Spread:
    """Return the spread with one more row of each disagreement, as for pairs that differ seldom
    (see `bonett_price`).

    size: the effective number of labeled rows.
    """
    known = np.isfinite(labels)
    weight = np.broadcast_to(judge.weight, known.shape)[known]
    weight = weight * size / weight.sum()
    weight = np.append(weight, [1, 1])
    by_judge = np.append(judge.refused[known], [1, 0])
    by_people = np.append(labels[known], [0, 1])
    matrix = np.cov(by_judge, by_people, aweights=weight, ddof=0)
    return _Spread(matrix[0, 0], matrix[1, 1], matrix[0, 1])
