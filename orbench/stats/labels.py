"""A rate by a judge, corrected by people's labels on some of the rows."""

from typing import NamedTuple

import numpy as np
from pandas import Series  # type: ignore[import-untyped]

from orbench.stats.core import Verdicts, in_common, mean
from orbench.stats.estimates import estimate
from orbench.stats.inference import ROUNDING, Array, sum_of_squares, t_inflation
from orbench.stats.intervals import Interval, wilson


class ByLabels(NamedTuple):
    """How two models differ as people see it, by their labels on some prompts of both."""

    difference: float
    interval: Interval
    prompts: int  # with labels of both


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
    rows = judge.where(known)
    people = labels[known]
    share = rows.weight / np.sum(rows.weight)
    trust = _trust(rows.refused, people, share)
    trusted = judge._replace(refused=trust * judge.refused, weight=1.0)
    # What people say otherwise, between 0 and 1, as for any mean.
    otherwise = judge._replace(refused=(labels - trusted.refused + 1) / 2)
    clusters = np.unique(judge.cluster)
    of_judge = estimate(trusted.prompts, clusters)
    gap = estimate(otherwise.prompts, clusters)
    rate = of_judge.mean.rate + 2 * gap.mean.rate - 1
    rate = min(1.0, max(0.0, rate))
    by_people = mean(judge._replace(refused=labels))
    size = by_people.effective
    # The labeled rows are some of all rows: both means go into one sum of each cluster.
    variance = sum_of_squares(of_judge.parts + 2 * gap.parts)
    # Few labels rarely meet a rare error: one more row of each (see `bonett_price`).
    errors = np.append(people - trust * rows.refused, [-trust, 1])
    least = float(np.cov(errors, aweights=np.append(size * share, [1, 1]), ddof=0)) / (size + 2)
    variance = max(variance, of_judge.mean.variance + least)
    n = rate * (1 - rate) / variance / t_inflation(gap.mean.df, gap.mean.rows)
    n = max(n, size)
    interval = wilson(rate * n, n)
    if interval.width > by_people.interval.width:  # a judge that tells less than it blurs
        low, high = by_people.interval
        interval = Interval(min(low, rate), max(high, rate))
    return rate, *interval


def corrected_difference(
    a: Verdicts, b: Verdicts, people_a: Array, people_b: Array
) -> ByLabels | None:
    """Return rate a minus rate b as people would give them; None without labels of both.

    A judge's errors may differ between models: corrected is the difference on each prompt, as one
    variable between 0 and 1. Verdicts and labels: as `corrected` takes them, without weights.
    """
    labeled = _halved(a._replace(refused=people_a), b._replace(refused=people_b))
    n = len(labeled.prompt)
    if not n:
        return None
    judged = _halved(a, b)
    labels = Series(labeled.refused, labeled.prompt).reindex(judged.prompt).to_numpy()
    rate, low, high = corrected(judged, labels)
    return ByLabels(2 * rate - 1, Interval(2 * low - 1, 2 * high - 1), n)


def _halved(a: Verdicts, b: Verdicts) -> Verdicts:
    """Return the difference on each prompt of both, between 0 and 1."""
    x, y = in_common(a.prompts, b.prompts)
    return x._replace(refused=(x.refused - y.refused + 1) / 2)


def _trust(judge: Array, people: Array, share: Array) -> float:
    """Return the share of the judge that gives the least variance, from the labeled rows.

    PPI++ divides by 1 + n / N, since its labeled rows are others than the N. share: a row's weight.
    """
    if np.array_equal(judge, people):  # also where the judge always says the same
        return 1.0
    by_judge, covariance = np.cov(judge, people, aweights=share, ddof=0)[0]
    trust = float(covariance / max(by_judge, ROUNDING))
    return min(1.0, max(0.0, trust))
