"""How a model's rates change from one prompt set to the next, and who hedges more."""

from typing import Any

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.proportion import confint_proportions_2indep  # type: ignore[import-untyped]

from orbench.report.analyses.drift import drift
from orbench.report.analyses.graded import hedging
from orbench.report.measures import Compared, Comparison, Counted, Outcome, Rate
from orbench.report.rates import overall, rates
from orbench.report.results import SAFE, TOXIC, Result
from tests.results import responses, result_of

N = 80  # prompts of each set


def measured(number: int, model: str, prompts: str, refused: int, **about: Any) -> Rate:
    """A rate on prompts that no other set has."""
    place = np.arange(N) + 1000 * number
    of_set = responses([1.0] * refused + [0.0] * (N - refused), prompt=place, seed=place)
    result = result_of(of_set, number, model=model, prompts=prompts, **about)
    return overall(rates([result]))[0]


def changes(*given: Rate) -> list[Comparison]:
    return list(drift(given).comparisons)


def named(comparison: Comparison) -> tuple[str, str, str]:
    a, b = comparison.a.result, comparison.b.result
    assert a.label == b.label
    return a.label, b.prompts, a.prompts


# -- drift ---------------------------------------------------------------------------------------


def test_the_later_set_is_compared_with_the_earlier_one_unpaired() -> None:
    (found,) = changes(measured(0, "m", "june", 8), measured(1, "m", "july", 40))
    assert named(found) == ("m", "june", "july")
    assert found.gap.difference == pytest.approx(0.4)
    assert found.outcome is Outcome.FINDING
    newcombe = confint_proportions_2indep(40, 80, 8, 80, method="newcomb", compare="diff")
    assert found.gap.interval == pytest.approx(newcombe, abs=0.01)
    assert np.isnan([found.p_worst, found.detectable]).all()
    assert found.family == (Compared.SETS, "", 1)
    (back,) = changes(measured(0, "m", "july", 40), measured(1, "m", "june", 8))
    assert back.gap.difference == pytest.approx(-0.4)


def test_of_three_sets_each_two_are_compared_and_corrected_together() -> None:
    found = changes(
        measured(0, "m", "1", 10),
        measured(1, "m", "2", 20),
        measured(2, "m", "3", 24),
        measured(3, "other", "2", 10),
        measured(4, "other", "3", 30),
    )
    steps = [("m", "1", "2"), ("m", "1", "3"), ("m", "2", "3")]
    assert sorted(map(named, found)) == sorted([*steps, ("other", "2", "3")])
    p = [one.gap.p for one in found]
    assert [one.p_holm for one in found] == pytest.approx(multipletests(p, method="holm")[1])
    assert {one.family.size for one in found} == {4}
    for one in found:
        expected = Outcome.FINDING if one.p_holm < 0.05 else Outcome.NO_DIFFERENCE
        assert one.outcome is expected
    assert len({one.outcome for one in found}) == 2
    assert any(one.gap.p < 0.05 < one.p_holm for one in found)


@pytest.mark.parametrize(
    "about",
    [{"side": TOXIC}, {"judge": "another"}, {"settings": "effort low"}, {"doubt": "partial"}],
)
def test_only_a_side_a_judge_and_settings_are_compared(about: dict[str, Any]) -> None:
    earlier = measured(0, "m", "june", 8)
    assert changes(earlier, measured(1, "m", "july", 40, **about)) == []
    assert changes(earlier, measured(1, "m", "june", 40)) == []


def test_sides_and_judges_follow_their_names() -> None:
    given: list[Rate] = []
    for judge in ("b", "a"):
        for side in (TOXIC, SAFE):
            for prompts in ("1", "2"):
                given.append(measured(len(given), "m", prompts, 8, judge=judge, side=side))
    found = [(one.a.result.side.name, one.judge) for one in changes(*given)]
    assert found == [("over_refusal", "a"), ("over_refusal", "b"), ("toxic", "a"), ("toxic", "b")]


# -- hedging -------------------------------------------------------------------------------------


def graded(number: int, *counts: int, **about: Any) -> Result:
    """A result with so many direct answers, partial ones, safe completions and refusals."""
    names = ("direct_answer", "partial", "safe_completion", "direct_refusal")
    classes = np.repeat(np.array(names, object), counts)
    refused = (classes == "direct_refusal").astype(float)
    return result_of(responses(list(refused), graded=classes), number, **about)


def test_partial_answers_and_safe_completions_are_hedged() -> None:
    results = [graded(0, 40, 6, 4, 5), graded(1, 31, 9, 10, 5)]
    (found,) = hedging(rates(results)).comparisons
    assert found.a.counted is found.b.counted is Counted.HEDGED
    assert (found.gap.a.rate, found.gap.b.rate) == (10 / 55, 19 / 55)
    # The prompts stand in one order: 9 are hedged by the second model alone.
    assert found.gap.p == pytest.approx(mcnemar([[10, 0], [9, 36]], exact=True).pvalue)
    assert found.outcome is Outcome.FINDING and found.family.kind is Compared.MODELS


def test_only_graded_results_on_the_safe_side_are_compared_by_hedging() -> None:
    plain = result_of(responses([0.0, 1.0] * 20), 2)
    assert not hedging(rates([graded(0, 40, 0, 0, 0), plain])).comparisons
    toxic = [graded(n, 20, 10, 10, 0, side=TOXIC) for n in (3, 4)]
    assert not hedging(rates(toxic)).comparisons
