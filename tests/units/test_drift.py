"""How a model's rates change from one prompt set to the next, and who hedges more."""

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.proportion import confint_proportions_2indep  # type: ignore[import-untyped]

from orbench.report.analyses.drift import drift
from orbench.report.compare import hedging
from orbench.report.measures import Compared, Comparison, Counted, Outcome
from orbench.report.rates import overall, rates
from orbench.report.results import Result
from tests.units.read_results import cells_of, read_result


def changes(text: str) -> list[Comparison]:
    """The changes between results such as "m june 8": 8 of its 80 prompts are refused."""
    measured = []
    for number, line in enumerate(text.split("; ")):
        model, prompts, refused, *fields = line.split()
        words = [f"1*{refused}+0*{80 - int(refused)} model={model} prompts={prompts}", *fields]
        place = np.arange(80) + 1000 * number
        result = read_result(" ".join(words), number, prompt=place, seed=place)
        measured += overall(rates([result]))
    return list(drift(measured).comparisons)


def test_the_later_set_is_compared_with_the_earlier_one_unpaired() -> None:
    (found,) = changes("m june 8 unranked=u; m july 40")
    assert found.gap.difference == pytest.approx(0.4) and found.outcome is Outcome.FINDING
    newcombe = confint_proportions_2indep(40, 80, 8, 80, method="newcomb", compare="diff")
    assert found.gap.interval == pytest.approx(newcombe, abs=0.01)
    assert np.isnan([found.p_worst, found.detectable]).all()
    assert (found.kind, found.family) == (Compared.SETS, 1)


def test_of_three_sets_each_two_are_compared_and_corrected_together() -> None:
    found = changes("m 1 10; m 2 20; m 3 24; x 2 10; x 3 30")
    shown = [f"{one.b.result.label}{one.b.result.prompts} {one.a.result.prompts}" for one in found]
    assert sorted(shown) == ["m1 2", "m1 3", "m2 3", "x2 3"]
    p = np.array([one.gap.p for one in found])
    corrected = multipletests(p, method="holm")[1]
    assert [one.p_adjusted for one in found] == pytest.approx(corrected)
    assert {one.family for one in found} == {4}
    assert [one.outcome is Outcome.FINDING for one in found] == list(corrected < 0.05)
    assert any((p < 0.05) & (corrected >= 0.05)) and min(corrected) < 0.05


@pytest.mark.parametrize(
    "later",
    [
        "m july 40 side=toxic",
        "m july 40 judge=another",
        "m july 40 settings=effort_low",
        "m july 40 doubt=partial",
    ],
)
def test_only_a_side_a_judge_and_settings_are_compared(later: str) -> None:
    assert changes(f"m june 8; {later}") == []


def test_sides_and_judges_follow_their_names() -> None:
    given = []
    for about in ("judge=b side=toxic", "judge=b", "judge=a side=toxic", "judge=a"):
        given += [f"m 1 8 {about}", f"m 2 8 {about}"]
    found = [f"{one.a.result.side.name} {one.judge}" for one in changes("; ".join(given))]
    assert found == ["over_refusal a", "over_refusal b", "toxic a", "toxic b"]


# -- hedging -------------------------------------------------------------------------------------

CLASSES = {"a": "direct_answer", "p": "partial", "s": "safe_completion", "r": "direct_refusal"}


def graded(text: str, number: int, fields: str = "") -> Result:
    """A result with these CLASSES."""
    letters = cells_of(text)
    refused = "".join(str(int(letter == "r")) for letter in letters)
    classes = [CLASSES[letter] for letter in letters]
    return read_result(f"{refused} {fields}", number, graded=classes)


def test_partial_answers_and_safe_completions_are_hedged() -> None:
    results = [graded("a*40+p*6+s*4+r*5", 0), graded("a*31+p*9+s*10+r*5", 1)]
    (found,) = hedging(rates(results)).comparisons
    assert found.a.counted is found.b.counted is Counted.HEDGED
    assert (found.gap.a.rate, found.gap.b.rate) == (10 / 55, 19 / 55)
    # The prompts stand in one order: 9 are hedged by the second model alone.
    assert found.gap.p == pytest.approx(mcnemar([[10, 0], [9, 36]], exact=True).pvalue)
    assert found.outcome is Outcome.FINDING and found.kind is Compared.MODELS


def test_only_graded_results_on_the_safe_side_are_compared_by_hedging() -> None:
    plain = read_result("01*20", 2)
    assert not hedging(rates([graded("a*40", 0), plain])).comparisons
    toxic = [graded("a*20+p*20", number, "side=toxic") for number in (3, 4)]
    assert not hedging(rates(toxic)).comparisons
