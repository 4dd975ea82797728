"""How many prompts a comparison needs."""

from math import isnan

import numpy as np
import pytest
from scipy.stats import norm  # type: ignore[import-untyped]

from orbench.clustered import Difference, by_prompt, compare
from orbench.planning import Plan, prompts_needed, smallest_difference
from tests.benchmark.coverage import numbers, rewritten


def test_a_plan_is_what_the_textbook_formula_gives() -> None:
    variance = 0.2 * 0.8 + 0.25 * 0.75
    n = (norm.ppf(0.975) + norm.ppf(0.8)) ** 2 * variance / 0.05**2
    plan = prompts_needed(0.2, 0.05)
    assert plan.prompts == pytest.approx(n, abs=4) and plan.design_effect == 1
    assert plan.seeds == plan.prompts


def test_rewrites_of_a_seed_cost_their_design_effect() -> None:
    plan = prompts_needed(0.2, 0.05, rewrites=5)
    assert plan.design_effect == pytest.approx(1 + 4 * 0.3)
    assert plan.prompts == pytest.approx(2.2 * prompts_needed(0.2, 0.05).prompts, abs=3)
    plan = prompts_needed(0.2, 0.05, rewrites=7)
    assert plan.prompts % 7 and 7 * (plan.seeds - 1) < plan.prompts < 7 * plan.seeds


def test_models_that_refuse_the_same_prompts_need_fewer() -> None:
    plan, alike = prompts_needed(0.3, 0.1), prompts_needed(0.3, 0.1, correlation=0.5)
    assert alike.prompts == pytest.approx(plan.prompts / 2, rel=0.02)
    assert prompts_needed(0.3, -0.1).prompts < plan.prompts  # nearer to 0 rates vary less
    assert prompts_needed(0.3, 0.1, power=0.95).prompts > plan.prompts


@pytest.mark.parametrize(("rate", "difference"), [(0.2, 0.0), (0.9, 0.2), (0.1, -0.2), (1.0, -1.0)])
def test_what_cannot_be_planned_is_an_error(rate: float, difference: float) -> None:
    with pytest.raises(ValueError):
        prompts_needed(rate, difference)


def test_a_plan_keeps_its_promise() -> None:
    plan = prompts_needed(0.2, 0.15, rewrites=5)
    assert isinstance(plan, Plan)
    random = np.random.default_rng(80)
    shown = 0
    for _ in range(400):
        a, b = (rewritten(random, rate, plan.seeds)[1] for rate in (0.2, 0.35))
        shown += compare(a, b).p < 0.05
    assert 0.73 < shown / 400 < 0.87


def test_the_smallest_difference_is_the_one_that_was_planned_for() -> None:
    n = prompts_needed(0.2, 0.05).prompts
    random = np.random.default_rng(3)
    a, b = (by_prompt(numbers(n), random.random(n) < rate) for rate in (0.2, 0.25))
    found = compare(a, b)
    assert smallest_difference(found) == pytest.approx(0.05, rel=0.06)
    assert smallest_difference(found, alpha=0.05 / 45) > 1.3 * smallest_difference(found)


def test_different_prompts_show_larger_differences_only() -> None:
    a = by_prompt(numbers(400), np.arange(400) < 120)
    found = compare(a, a._replace(prompt=a.prompt + np.uint64(500)))
    assert np.isnan(found.se)
    expected = (1.96 + 0.84) * np.sqrt(2 * 0.3 * 0.7 / 400)
    assert smallest_difference(found) == pytest.approx(expected, rel=0.02)


def test_two_models_that_never_differed_could_have() -> None:
    none = by_prompt(numbers(100), np.zeros(100))
    assert 0.03 < smallest_difference(compare(none, none)) < 0.06
    assert isnan(smallest_difference(Difference(0.5, 0.5, 0, 0, 1, 0, 5, 1, 0, 0, "")))
