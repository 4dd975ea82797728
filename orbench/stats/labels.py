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
    of_people = mean(judge._replace(refused=labels))
    size = of_people.effective
    known = np.isfinite(labels)
    rows = judge.where(known)
    share = rows.weight / np.sum(rows.weight)
    # One more row of each disagreement, as for pairs that differ seldom (see `bonett_price`).
    verdicts = np.append(rows.refused, [1, 0]), np.append(labels[known], [0, 1])
    weight = np.append(share * size, [1, 1])
    (by_judge, covariance), (_, by_people) = np.cov(*verdicts, aweights=weight, ddof=0)
    labeled = size / mean(judge).effective
    trust = covariance / by_judge / (1 + labeled)
    trust = min(1.0, max(0.0, trust))
    trusted = trust * judge.refused
    of_judge = mean(judge._replace(refused=trusted, weight=1.0))
    # What people say otherwise, between 0 and 1, as for any mean.
    otherwise = (labels - trusted + 1) / 2
    gap = mean(judge._replace(refused=otherwise))
    least = by_people - 2 * trust * covariance + trust**2 * by_judge
    variance = of_judge.variance
    variance += max(4 * gap.variance, least / (size + 2))
    rate = of_judge.rate + 2 * gap.rate - 1
    rate = min(1.0, max(0.0, rate))
    inside = min(1 - ROUNDING, max(ROUNDING, rate))
    n = inside * (1 - inside) / variance
    n /= t_inflation(gap.df, gap.rows)
    low, high = wilson(inside * n, n)
    return rate, low, high
