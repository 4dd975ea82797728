"""Intervals for independent observations, in pure Python."""

from math import sqrt
from typing import NamedTuple

Z95 = 1.959963984540054  # the normal distribution's 97.5 % quantile: two-sided 95 %
TINY = 1e-6  # below it, an end is 0 but for rounding
ROUNDED = 0.0005  # what 0.0 % may stand for


class Interval(NamedTuple):
    """A 95 % interval, as fractions."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Return how far the ends are apart."""
        return self.high - self.low

    def __str__(self) -> str:
        """Return it in percent: `[10.0, 14.6]`; an end near 0 does not touch it: `[0.03, 14.6]`."""
        ends = []
        for end in self:
            digits = ".1g" if TINY < abs(end) < ROUNDED else "z.1f"
            ends.append(f"{100 * end:{digits}}")
        return f"[{', '.join(ends)}]"


def wilson(hits: float, n: float) -> Interval:
    """Return the Wilson score interval of hits out of n; (0, 1) where n is 0.

    E. B. Wilson, JASA 22 (1927). At an effective sample size, hits is rate * n.
    """
    if not n:
        return Interval(0.0, 1.0)
    p = hits / n
    square = Z95**2
    scale = 1 + square / n
    middle = (p + square / (2 * n)) / scale
    variance = p * (1 - p) / n + square / (4 * n * n)
    half = Z95 * sqrt(variance) / scale
    # min and max: rounding must not put an end on the wrong side of the rate itself, at 0 and 1.
    return Interval(max(0.0, min(p, middle - half)), min(1.0, max(p, middle + half)))


def bonett_price(gap: float, differing: float, n: float) -> Interval:
    """Return the interval of a difference of pairs that holds where few or none differ.

    D. G. Bonett and R. M. Price, J. Educ. Behav. Statist. 37 (2012) 479-488: one more pair of each
    kind. gap, differing: the shares of the n pairs that differ one way and the other, subtracted
    and added.
    """
    pairs = n + 2
    gap = n * gap / pairs
    differing = (n * differing + 2) / pairs
    variance = differing - gap**2
    half = Z95 * sqrt(variance / pairs)
    return Interval(gap - half, gap + half)
