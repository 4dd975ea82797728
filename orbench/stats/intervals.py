"""Intervals for independent observations; pure Python, but `spearman` imports scipy."""

from collections.abc import Sequence
from math import atanh, nan, sqrt, tanh

Z95 = 1.959963984540054  # the normal distribution's 97.5 % quantile: two-sided 95 %
FEWEST_MODELS = 7  # with fewer, the interval of a rank correlation does not cover


def wilson(hits: float, n: float) -> tuple[float, float]:
    """The 95 % Wilson score interval of hits out of n, as fractions; (0, 1) where n is 0.

    E. B. Wilson, JASA 22 (1927). At an effective sample size, hits is rate * n.
    """
    if not n:
        return 0.0, 1.0
    p = hits / n
    square = Z95**2
    middle = (p + square / (2 * n)) / (1 + square / n)
    half = Z95 * sqrt(p * (1 - p) / n + square / (4 * n * n)) / (1 + square / n)
    # min and max: rounding must not put an end on the wrong side of the rate itself, at 0 and 1.
    return max(0.0, min(p, middle - half)), min(1.0, max(p, middle + half))


def spearman(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Spearman's rho and its 95 % interval; NaN where undefined, or without FEWEST_MODELS.

    D. G. Bonett and T. A. Wright, Psychometrika 65 (2000) 23-28. For rho 1 it is that of the next
    lower rho, up to 1; for -1 likewise.
    """
    if len(set(x)) < 2 or len(set(y)) < 2:
        return nan, nan, nan
    from scipy.stats import spearmanr  # type: ignore[import-untyped]

    n = len(x)
    rho = float(spearmanr(x, y).statistic)
    if n < FEWEST_MODELS:
        return rho, nan, nan
    most = 1 - 12 / (n * (n * n - 1))  # two neighbours have changed places
    near = min(max(rho, -most), most)
    half = Z95 * sqrt((1 + near**2 / 2) / (n - 3))
    return rho, min(rho, tanh(atanh(near) - half)), max(rho, tanh(atanh(near) + half))
