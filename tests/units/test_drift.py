"""How a model's rates change from one prompt set to the next, and who hedges more."""

import numpy as np
import pytest
from scipy.stats import t  # type: ignore[import-untyped]
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]
from statsmodels.stats.proportion import confint_proportions_2indep  # type: ignore[import-untyped]

from orbench.report.analyses.drift import drift
from orbench.report.compare import hedging
from orbench.report.measures import Compared, Comparison, Counted, Outcome, Rate
from orbench.report.rates import overall, rates
from orbench.report.results import Result
from orbench.stats.core import Verdicts, difference
from tests.units.read_results import cells_of, read_result, verdicts_of


def changes(text: str) -> list[Comparison]:
    """The changes between results such as "m june 8": 8 of its 80 prompts are refused."""
    measured = []
    for number, line in enumerate(text.split("; ")):
        model, prompts, refused, *fields = line.split()
        words = [f"1*{refused}+0*{80 - int(refused)} model={model} prompts={prompts}", *fields]
        words.append(f"prompt_set={prompts}")
        place = np.arange(80) + 1000 * number
        result = read_result(" ".join(words), number, prompt=place, seed=place)
        measured += overall(rates([result]))
    return [one for one in drift(measured).comparisons if one.kind is Compared.SETS]


def test_the_later_set_is_compared_with_the_earlier_one_unpaired() -> None:
    (found,) = changes("m june 8 unranked=u; m july 40")
    assert found.gap.difference == pytest.approx(0.4) and found.outcome is Outcome.DIFFICULTY
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
    assert {one.outcome for one in found} == {Outcome.DIFFICULTY}


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


# -- two models on two sets ----------------------------------------------------------------------


def relative(later: str, earlier: str) -> list[Comparison]:
    """How models m and r change; "1*8+0*72 0*80" are m's and r's."""
    measured: list[Rate] = []
    for first, text in ((0, earlier), (1000, later)):
        for model, refused in zip("mr", text.split(), strict=True):
            words = f"{refused} model={model} prompts=p{first} prompt_set={first}"
            place = np.arange(len(cells_of(refused))) + first
            result = read_result(words, len(measured), prompt=place, seed=place)
            measured += overall(rates([result]))
    return [one for one in drift(measured).comparisons if one.kind is Compared.CHANGES]


def test_a_change_relative_to_another_model_is_a_difference_of_paired_differences() -> None:
    sets = "1*48+0*72 1*24+0*96", "1*12+0*108 01*6+1*4+0*104"
    (found,) = relative(*sets)
    gaps = []
    for text in sets:
        m, r = (np.array(verdicts_of(one)) for one in text.split())
        ids = np.arange(120)
        gaps.append(difference(Verdicts(m, ids, ids), Verdicts(r, ids, ids), paired=True))
    later, earlier = gaps
    gap = later.difference - earlier.difference
    below = np.hypot(
        later.difference - later.interval.low, earlier.interval.high - earlier.difference
    )
    above = np.hypot(
        later.interval.high - later.difference, earlier.difference - earlier.interval.low
    )
    assert found.gap.interval == pytest.approx((gap - below, gap + above))
    assert found.gap.p == pytest.approx(2 * t.sf(gap / below * t.ppf(0.975, 119), 119))
    names = [(one.result.model, one.result.prompts) for one in (found.a, found.b)]
    assert names == [("m", "p1000"), ("r", "p0")]
    assert (found.outcome, found.p_worst) == (Outcome.FINDING, found.p_adjusted)


@pytest.mark.parametrize(
    ("later", "earlier", "outcome"),
    [
        ("1*48+0*72 1*48+0*72", "1*12+0*108 1*12+0*108", Outcome.NO_DIFFERENCE),  # harder prompts
        ("1*12+0*108 1*24+0*96", "1*24+0*96 0*6+1*24+0*90", Outcome.FINDING),
        ("1*12+0*108 1*24+0*96", "1*24+0*96 1*12+0*108", Outcome.DIFFICULTY),  # unequal before
        ("?*30+0*90 0*30+1*24+0*66", "0*120 0*120", Outcome.INCONCLUSIVE),
        ("0*30+1*24+0*66 ?*30+0*90", "0*120 0*120", Outcome.INCONCLUSIVE),
        ("1*24+0*96 0*120", "?*30+1*12+0*78 0*30+1*12+0*78", Outcome.INCONCLUSIVE),
        ("0*120 1*24+0*96", "0*30+1*12+0*78 ?*30+1*12+0*78", Outcome.INCONCLUSIVE),
        ("1*24+0*96 0*120", "?*2+1*12+0*106 0*2+1*12+0*106", Outcome.FINDING),
    ],
)
def test_unscored_rows_count_against_a_relative_change(
    later: str, earlier: str, outcome: Outcome
) -> None:
    (found,) = relative(later, earlier)
    assert found.outcome is outcome


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
