"""The difference that a comparison can detect."""

import numpy as np
from scipy.special import stdtrit  # type: ignore[import-untyped]

from orbench.stats.core import Difference, Mean
from orbench.stats.inference import ALPHA, t_inflation

POWER = 0.8


def detectable_difference(found: Difference, comparisons: int = 1, lost: float = 0.0) -> float:
    """Return the smallest true difference that the test detects with this POWER; NaN if there is
    none, or where the size of a sample is assumed.

    One rate is the mean of both, the other is apart by the difference, on the side of 50 %.
    comparisons: Holm's strictest level is ALPHA over their number. lost: the share of each model's
    prompts that is unscored; a finding must hold with all of them against it (`worst_case_p`).
    """
    if found.a.assumed or found.b.assumed:
        return np.nan
    rate = (found.a.rate + found.b.rate) / 2
    rate = min(rate, 1 - rate)
    higher = np.linspace(rate, 1, 10_001)[1:]
    kept = 1 - lost
    # Lost rows of the model that refuses more count as answers, the other one's as refusals.
    low = rate * kept + lost
    high = higher * kept
    shown = high - low
    product = rate * (1 - rate) * higher * (1 - higher)
    covariance = found.correlation * np.sqrt(product) * kept**2
    variance = low * (1 - low) + high * (1 - high)
    variance -= 2 * covariance
    # Two models that are apart by so much differ on that share of the prompts at least.
    variance = np.maximum(variance, shown * (1 - shown))
    per_size = 1 / _size(found.a) + 1 / _size(found.b)
    error = np.sqrt(variance * per_size / 2) * kept  # of all their prompts
    level = stdtrit(found.df, 1 - ALPHA / comparisons / 2)
    power = stdtrit(found.df, POWER) * np.sqrt(1 + level**2 / (2 * found.df))
    needed = error * (level + power)
    enough = higher[shown >= needed]
    if not len(enough):
        return np.nan
    return float(enough[0]) - rate


def _size(mean: Mean) -> float:
    """Return the effective size without the allowance for few clusters, which is in the quantiles
    here.
    """
    size = mean.effective * t_inflation(mean.df, mean.rows)
    return min(mean.rows, size)
