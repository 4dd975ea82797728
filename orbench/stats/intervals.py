"""Intervals for independent observations, in pure Python."""

from math import sqrt
from typing import NamedTuple

Z95 = 1.959963984540054  # the normal distribution's 97.5 % quantile: two-sided 95 %


class Interval(NamedTuple):
    """The ends of a 95 % interval, as fractions."""

    low: float
    high: float


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of hits out of n, as fractions; (0, 1) where n is 0.

    E. B. Wilson, JASA 22 (1927). At an effective sample size, hits is rate * n.
    """
    if not n:
        return 0.0, 1.0
    p = hits / n
    square = Z95**2
    scale = 1 + square / n
    middle = (p + square / (2 * n)) / scale
    half = Z95 * sqrt(p * (1 - p) / n + square / (4 * n * n)) / scale
    # min and max: rounding must not put an end on the wrong side of the rate itself, at 0 and 1.
    low = min(p, middle - half)
    high = max(p, middle + half)
    return max(0.0, low), min(1.0, high)


def bonett_price(more: float, fewer: float, n: float) -> tuple[float, float]:
    """Return the 95 % interval of a difference of pairs that holds where few or none differ.

    D. G. Bonett and R. M. Price, J. Educ. Behav. Statist. 37 (2012) 479-488: one more pair of each
    kind. more, fewer: the shares of the n pairs that differ one way and the other.
    """
    more = (n * more + 1) / (n + 2)
    fewer = (n * fewer + 1) / (n + 2)
    gap = more - fewer
    half = Z95 * sqrt((more + fewer - gap**2) / (n + 2))
    return gap - half, gap + half
