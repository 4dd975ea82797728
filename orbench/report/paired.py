"""Two models on the same prompts: the interval and the test of their difference.

Takes arrays, a value a prompt, and knows nothing of files or models.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orbench.rates import wilson

Floats = NDArray[np.float64]

# How a paired interval was calculated -> what that is, and when.
METHODS = {
    "Newcombe": "method 10 for paired proportions, where each prompt was always or never refused",
    "t": "Student's, over the prompts' differences, where only some samples of a prompt were "
    "refused",
    "Wilson": "both rates' own, combined as for independent ones, where all differences are equal",
}
ROUNDING = 1e-9  # shares that are nearer to each other than this differ by rounding


class Difference(NamedTuple):
    """The refusal rates of two models on the same prompts, as fractions."""

    a: float
    b: float
    low: float  # 95 % interval of a - b
    high: float
    method: str  # of the interval, a key of METHODS
    a_only: int  # prompts that a refuses more often than b
    b_only: int
    p: float  # McNemar's exact test, two-sided; with several answers a prompt, the sign test


def compare_shares(a: Floats, b: Floats) -> Difference:
    """a, b: the share of each prompt's answers that is refused, 0..1, for the same prompts."""
    from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]

    a_only, b_only = int((a > b).sum()), int((a < b).sum())
    p = mcnemar([[0, a_only], [b_only, 0]], exact=True).pvalue
    return Difference(a.mean(), b.mean(), *paired_interval(a, b), a_only, b_only, float(p))


def paired_interval(a: Floats, b: Floats) -> tuple[float, float, str]:
    """The 95 % interval of mean(a) - mean(b), and its method (a key of METHODS).

    a, b: as for `compare_shares`. Where all the differences are equal their spread says nothing: a
    t interval would have no width.
    """
    if np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all():
        cells = (np.count_nonzero((a == i) & (b == j)) for i, j in ((1, 1), (1, 0), (0, 1), (0, 0)))
        return *newcombe(*map(int, cells)), "Newcombe"
    if np.ptp(a - b) < ROUNDING:
        return *_combined(a.mean(), b.mean(), len(a), 0.0), "Wilson"
    from scipy.stats import ttest_rel  # type: ignore[import-untyped]

    low, high = ttest_rel(a, b).confidence_interval(0.95)
    return max(-1.0, float(low)), min(1.0, float(high)), "t"


def newcombe(both: int, a_only: int, b_only: int, neither: int) -> tuple[float, float]:
    """The 95 % interval of a difference of paired proportions, a minus b.

    Method 10 of R. G. Newcombe, Statistics in Medicine 17 (1998) 2635-2650: the two Wilson
    intervals, combined with the correlation phi, its numerator corrected for continuity.
    (statsmodels has Newcombe's interval for independent proportions only.)
    """
    n = both + a_only + b_only + neither
    a, b = both + a_only, both + b_only
    numerator: float = both * neither - a_only * b_only
    if numerator > 0:
        numerator = max(numerator - n / 2, 0)
    denominator = sqrt(a * (n - a) * b * (n - b))
    return _combined(a / n, b / n, n, numerator / denominator if denominator else 0.0)


def _combined(a: float, b: float, n: int, phi: float) -> tuple[float, float]:
    """The interval of a - b, shares of n each, from Wilson's two and the correlation."""
    low_a, high_a = wilson(a * n, n)
    low_b, high_b = wilson(b * n, n)

    def reach(from_a: float, from_b: float) -> float:
        return sqrt(max(0.0, from_a**2 - 2 * phi * from_a * from_b + from_b**2))

    low = a - b - reach(a - low_a, high_b - b)
    high = a - b + reach(high_a - a, b - low_b)
    return max(-1.0, low), min(1.0, high)
