"""The trend of refusals over tiers; tests/simulations/coverage.py measures how often it errs."""

import numpy as np
import pytest
from scipy.stats import ttest_rel  # type: ignore[import-untyped]

from orbench.report.analyses.tiers import tiers
from orbench.report.measures import Association
from tests.results import responses, result_of, standing_of


def trend(refused: list[float], seed: list[int], step: list[int]) -> Association:
    """The trend of a model with one response to each prompt."""
    of_model = responses(refused, seed=seed, tier=[str(one) for one in step])
    (found,) = tiers([standing_of(result_of(of_model))]).associations
    return found


def test_prompts_above_the_mean_tier_of_their_seed_are_compared_with_those_below() -> None:
    # Seed 0: its middle prompt is neither; seed 1: two below; seed 2: in one tier alone.
    refused = [0.0, 1, 1, 0, 1, 1, 1, 0]
    found = trend(refused, [0, 0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 0, 0, 2, 1, 1])
    assert (found.n, found.higher, found.lower) == (2, 1, 0.25)


def test_between_seeds_nothing_is_compared() -> None:
    found = trend([1, 0] * 20, list(range(40)), [1, 0] * 20)
    assert found.n == 0 and np.isnan(found.p)


def test_it_is_at_least_the_paired_t_test_of_the_seeds() -> None:
    random = np.random.default_rng(8)
    for _ in range(20):
        step = np.tile(np.repeat([0, 1, 2], 4), 40)
        refused = random.random(len(step)) < 0.3 + 0.05 * step
        found = trend(list(refused), list(np.repeat(range(40), 12)), list(step))
        of_seeds = refused.reshape(40, 3, 4).mean(axis=2)
        reference = ttest_rel(of_seeds[:, 2], of_seeds[:, 0]).pvalue
        assert found.p > reference * (1 - 1e-6)
        assert found.estimate == pytest.approx((of_seeds[:, 2] - of_seeds[:, 0]).mean())
