"""How many prompts a comparison needs, and what a comparison could have found: statsmodels' power.

statsmodels takes a second to load: import this module where it is used.
"""

from math import ceil, hypot, nan, sqrt
from typing import NamedTuple

import numpy as np
from statsmodels.stats.power import TTestPower  # type: ignore[import-untyped]

from orbench.clustered import ALPHA, Difference, design_effect

POWER = 0.8
# Of rewrites of one seed: what a plan assumes where nothing is measured yet. The design effect of a
# pilot's results tells more.
ICC = 0.3


class Plan(NamedTuple):
    """How many prompts, the same for both models."""

    prompts: int
    seeds: int  # the prompts over the rewrites, rounded up
    design_effect: float


def prompts_needed(
    rate: float,
    difference: float,
    *,
    rewrites: int = 1,
    icc: float = ICC,
    correlation: float = 0.0,
    power: float = POWER,
    alpha: float = ALPHA,
) -> Plan:
    """The prompts on which a difference of two models is shown with that probability.

    rate: of one model; the other's is rate + difference; rewrites: prompts a seed; correlation: of
    the two models' verdicts on a prompt. 0 is on the safe side: models that refuse the same prompts
    need fewer. For a paired t test, two-sided. Raises ValueError for rates outside 0..1 or no
    difference.
    """
    other = rate + difference
    if not difference or not 0 <= rate <= 1 or not 0 <= other <= 1:
        raise ValueError("rate and rate + difference must be within 0..1, and not the same")
    of_a, of_b = rate * (1 - rate), other * (1 - other)
    spread = sqrt(of_a + of_b - 2 * correlation * sqrt(of_a * of_b))
    if not spread:
        raise ValueError("models that always answer and always refuse need no plan")
    independent = _solved(effect_size=abs(difference) / spread, alpha=alpha, power=power)
    effect = design_effect([rewrites], icc)
    prompts = ceil(independent * effect)
    return Plan(prompts, ceil(prompts / rewrites), effect)


def smallest_difference(found: Difference, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """The true difference that this comparison would have shown with that probability.

    alpha: over the number of comparisons where p is corrected. From the standard error found, with
    one more prompt that only a refuses and one that only b does, so that two models that never
    differed have one; from the interval where the method has no standard error. NaN for fewer than
    two clusters. At most 1.
    """
    if found.clusters < 2:
        return nan
    se = found.se if found.se == found.se else (found.high - found.low) / (2 * 1.96)
    se = hypot(se, sqrt(2) / found.prompts)
    effect = _solved(nobs=found.clusters, alpha=alpha, power=power)
    return min(1.0, effect * se * sqrt(found.clusters))


def _solved(**known: float) -> float:
    """What a paired t test's power equation leaves open: the effect size, or the number of pairs.
    statsmodels gives a number or an array of one, as its solver has it."""
    return float(np.ravel(TTestPower().solve_power(**known))[0])
