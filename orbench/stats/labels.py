"""A rate by a judge, corrected by people's labels on some of the rows."""

import numpy as np

from orbench.stats.core import ROUNDING, Array, Verdicts, allowance, mean, moments
from orbench.stats.intervals import wilson

CELLS = ((1, 1), (1, 0), (0, 1), (0, 0))  # what people say, what the judge says


def corrected(judge: Verdicts, labels: Array) -> tuple[float, float, float]:
    """Return the rate that people would give to all rows, and its 95 % interval, as fractions.

    Prediction-powered inference (A. Angelopoulos and others, Science 382 (2023) 669-674; PPI++,
    arXiv 2311.01453): the judge's rate on all rows, plus the mean of what people say otherwise on
    the labelled ones. Of both, the share `trust` of the judge that gives the least variance. It
    does not need a judge that errs alike everywhere, but labelled rows drawn by chance.

    judge: its verdicts on all rows; weight: 1 / the chance to be labelled. labels: 1, 0, NaN where
    people said nothing. NaN, 0 and 1 without labels.
    """
    known = np.isfinite(labels + judge.refused)
    if not known.any():
        return np.nan, 0.0, 1.0
    labelled = judge._replace(refused=labels)
    size = mean(labelled).effective
    shares = _shares(judge, labels, known)
    trust = _trust(shares, size / mean(judge).effective)
    of_judge, variance, _ = moments(judge._replace(refused=trust * judge.refused, weight=None))
    # What people say otherwise, between 0 and 1, as moments takes it.
    otherwise = (labels - trust * judge.refused + 1) / 2
    gap, spread, df = moments(judge._replace(refused=otherwise))
    rate = min(1.0, max(0.0, of_judge + 2 * gap - 1))
    variance += max(4 * spread, _least(shares, trust, size))
    inside = min(1 - ROUNDING, max(ROUNDING, rate))
    size = inside * (1 - inside) / variance / allowance(df, int(known.sum()))
    low, high = wilson(inside * size, size)
    return rate, low, high


def _shares(judge: Verdicts, labels: Array, known: Array) -> Array:
    """Return the weighted share of the labelled rows in each of CELLS."""
    place = (3 - 2 * labels - judge.refused)[known].astype(int)
    weight = None if judge.weight is None else judge.weight[known]
    counts = np.bincount(place, weight, len(CELLS))
    shares: Array = counts / counts.sum()
    return shares


def _trust(shares: Array, part: float) -> float:
    """Return the share of the judge that gives the least variance. part: labelled of all rows."""
    both, only_people, only_judge, _ = shares.tolist()
    people = both + only_people
    by_judge = both + only_judge
    spread = by_judge * (1 - by_judge)
    if spread < ROUNDING:
        return 0.0
    return float(np.clip((both - people * by_judge) / (1 + part) / spread, 0, 1))


def _least(shares: Array, trust: float, size: float) -> float:
    """Return the variance of what people say otherwise with one more row of each disagreement, as
    for pairs that differ seldom (Bonett and Price, see `orbench.stats.core`).
    """
    more = (shares * size + [0, 1, 1, 0]) / (size + 2)
    values = np.array([people - trust * by_judge for people, by_judge in CELLS])
    return float(more @ values**2 - (more @ values) ** 2) / (size + 2)
