"""Each two models on the prompts in common."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_rel  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.report.compare import compare, of_models
from orbench.report.measures import OVERALL, Compared, Comparison, Counted, Family, Outcome, Rate
from orbench.report.rates import rate
from orbench.report.results import SAFE, TOXIC
from orbench.stats.core import Array, difference, worst_case_p
from orbench.stats.power import detectable_difference
from tests.results import responses, result_of

NAN = float("nan")


def overall(refused: Array | list[float], model: str = "m", /, **about: Any) -> Rate:
    """The rate of a result; about: columns of its responses, and fields of the result."""
    names = ("prompt", "seed")
    columns = {name: about.pop(name) for name in names if name in about}
    given = responses(refused, **columns)
    result = result_of(given, model=model, **about)
    return rate(result, given.verdicts(), OVERALL)


def of(n: int, refused: int, lost: int = 0) -> list[float]:
    """N verdicts, of which the first are refusals and the last are unscored."""
    return [1.0] * refused + [0.0] * (n - refused - lost) + [NAN] * lost


def alone(a: Rate, b: Rate) -> Comparison:
    (found,) = compare([a, b])
    return found


def several(models: int = 4, n: int = 200) -> list[Rate]:
    """Rates of models on the same prompts, far apart and near."""
    random = np.random.default_rng(7)
    shares = np.linspace(0.1, 0.4, models)
    found = []
    for number, share in enumerate(shares):
        refused = (random.random(n) < share).astype(float)
        found.append(overall(refused, f"m{number}"))
    return found


@pytest.mark.parametrize("differ", [3, 5, 6, 9])
def test_models_that_differ_one_way_have_mcnemars_p(differ: int) -> None:
    found = alone(overall(of(100, 20 + differ), "a"), overall(of(100, 20), "b"))
    exact = binomtest(differ, differ).pvalue
    assert found.gap.p == pytest.approx(exact) == found.p_holm == found.p_worst
    assert found.gap.difference == pytest.approx(differ / 100)
    wanted = Outcome.FINDING if exact < 0.05 else Outcome.NO_DIFFERENCE
    assert found.outcome is wanted and found.is_finding == (exact < 0.05)


def test_p_is_at_least_that_of_the_paired_t_test() -> None:
    random = np.random.default_rng(8)
    for _ in range(20):
        a, b = (random.random(120) < share for share in (0.3, 0.45))
        found = alone(overall(a, "a"), overall(b, "b"))
        assert found.gap.p > ttest_rel(a * 1.0, b * 1.0).pvalue * (1 - 1e-6)
        assert found.gap.difference == pytest.approx(a.mean() - b.mean())


def test_tests_of_a_side_are_corrected_together_by_holms_method() -> None:
    rates = several()
    toxic = [overall(one.verdicts.refused, one.result.model, side=TOXIC) for one in rates[:2]]
    found = compare([*toxic, *rates])
    of_safe, of_toxic = found[:6], found[6:]
    assert {one.family for one in of_safe} == {Family(Compared.MODELS, "over_refusal", 6)}
    assert {one.family for one in of_toxic} == {Family(Compared.MODELS, "toxic", 1)}
    for name, p in (("p_holm", lambda one: one.gap.p), ("p_worst", lambda one: worst_p(one))):
        _, holm, _, _ = multipletests([p(one) for one in of_safe], method="holm")
        assert [getattr(one, name) for one in of_safe] == pytest.approx(list(holm)), name
    assert of_toxic[0].p_holm == of_toxic[0].gap.p
    assert len({one.outcome for one in of_safe}) == 2


def worst_p(one: Comparison) -> float:
    return worst_case_p(one.a.verdicts, one.b.verdicts)


def test_the_gap_is_the_paired_difference_and_what_it_could_detect() -> None:
    rates = several(3)
    for found, (a, b) in zip(compare(rates), combinations(rates, 2), strict=True):
        assert (found.a, found.b) == (a, b)
        assert found.gap == difference(a.verdicts, b.verdicts, paired=True)
        assert found.detectable == detectable_difference(found.gap, 3, 0.0)
        lower = min(a, b, key=lambda one: one.mean.rate)
        assert found.fewer is lower and found.more is (b if lower is a else a)


def test_unscored_rows_count_in_what_can_be_detected() -> None:
    a, b = overall(of(200, 60, 20), "a"), overall(of(200, 40), "b")
    found = alone(a, b)
    assert found.detectable == detectable_difference(found.gap, 1, 0.05)
    assert found.detectable > detectable_difference(found.gap, 1, 0.0)


@pytest.mark.parametrize(
    ("a", "b", "outcome"),
    [
        (of(100, 40), of(100, 20), Outcome.FINDING),
        (of(100, 22), of(100, 20), Outcome.NO_DIFFERENCE),
        (of(100, 20), of(100, 20), Outcome.NO_DIFFERENCE),
        (of(100, 40, 2), of(100, 20), Outcome.FINDING),
        (of(100, 30, 20), of(100, 20)[::-1], Outcome.INCONCLUSIVE),
        (of(100, 40), of(100, 20, 40), Outcome.INCONCLUSIVE),
        (of(29, 25), of(29, 2), Outcome.TOO_FEW),
        (of(30, 25), of(30, 2), Outcome.FINDING),
    ],
)
def test_what_a_comparison_shows(a: list[float], b: list[float], outcome: Outcome) -> None:
    assert alone(overall(a, "a"), overall(b, "b")).outcome is outcome
    assert alone(overall(b, "a"), overall(a, "b")).outcome is outcome
    for doubtful in ("a", "b"):
        rates = [
            overall(of, name, doubt="x" * (name == doubtful))
            for name, of in zip("ab", (a, b), strict=True)
        ]
        assert alone(*rates).outcome is Outcome.DOUBTFUL


@pytest.mark.parametrize(("common", "shown"), [(39, False), (40, True)])
def test_half_of_the_smaller_set_must_be_in_common(common: int, shown: bool) -> None:
    a = overall(of(80, 80), "a")
    b = overall(of(200, 0), "b", prompt=np.arange(200) + 80 - common)
    found = alone(a, b)
    assert found.gap.a.prompts == common
    assert (found.outcome is Outcome.FINDING) == shown
    assert (found.outcome is Outcome.TOO_FEW) != shown


@pytest.mark.parametrize(
    ("about", "are_compared"),
    [
        ({}, True),
        ({"settings": "low", "model": "a"}, True),
        ({"model": "a"}, False),
        ({"side": TOXIC}, False),
        ({"judge_any_version": "k"}, False),
        ({"judge": "gpt4, rules 8"}, True),
        ({"prompts": "q", "prompt_set": "other"}, True),
        ({"is_baseline": True}, True),
    ],
)
def test_models_of_the_same_side_and_judge_are_compared(
    about: dict[str, Any], are_compared: bool
) -> None:
    model = about.pop("model", "b")
    found = compare([overall(of(50, 9), "a"), overall(of(50, 9), model, **about)])
    assert len(found) == are_compared
    assert not compare([overall(of(5, 2), "a"), overall(of(5, 2), "b", prompt=range(5, 10))])


def test_the_order_is_by_side_and_model_with_a_baseline_last() -> None:
    order = [("c", ""), ("a", "low"), ("a", ""), ("b", "")]
    safe = [overall(of(30, 3), model, settings=about) for model, about in order]
    safe[2] = overall(of(30, 3), "a", is_baseline=True)
    toxic = [overall(of(30, 3), model, side=TOXIC) for model in "yx"]
    found = compare([*toxic, *safe])
    labels = [(one.a.result.label, one.b.result.label) for one in found]
    assert labels[0] == ("a (low)", "b") and labels[2] == ("a (low)", "a")
    assert labels[5] == ("c", "a") and labels[6] == ("x", "y")
    assert found[0].a.result.side == SAFE


def test_comparisons_of_models_are_told_from_others_by_what_is_counted() -> None:
    found = alone(overall(of(50, 9), "a"), overall(of(50, 9), "b"))
    hedged = replace(found, a=replace(found.a, counted=Counted.HEDGED))
    sets = replace(found, family=Family(Compared.SETS, "", 1))
    assert of_models([sets, hedged, found], Counted.REFUSED) == [found]
    assert of_models([sets, hedged, found], Counted.HEDGED) == [hedged]
