"""Each two models on the prompts in common."""

from dataclasses import replace
from itertools import combinations
from math import nan

import numpy as np
import pytest
from scipy.stats import binomtest  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.report.columns import COMPARISONS
from orbench.report.compare import compare, with_margin
from orbench.report.measures import Compared, Comparison, Counted, Outcome
from orbench.report.numerals import points
from orbench.report.sentences import remarks
from orbench.report.standings import Report
from orbench.report.tables import csv_row
from orbench.stats.core import Verdicts, difference, worst_case_p
from orbench.stats.labels import corrected
from orbench.stats.power import detectable_difference
from tests.results import measured, models, responses, verdicts_of


def compared(text: str) -> Comparison:
    """The comparison of two models."""
    (found,) = compare(models(text))
    return found


@pytest.mark.parametrize("differ", [3, 5, 6, 9])
def test_models_that_differ_one_way_have_mcnemars_p(differ: int) -> None:
    found = compared(f"a {20 + differ}/100, b 20/100")
    exact = binomtest(differ, differ).pvalue
    assert found.gap.p == pytest.approx(exact) == found.p_adjusted == found.p_worst
    assert found.gap.difference == pytest.approx(differ / 100)
    assert found.is_finding == (exact < 0.05)


def test_paired_tests_of_both_sides_are_corrected_together_by_holms_method() -> None:
    random = np.random.default_rng(7)
    toxic = models("y - 20/60, x - 30/60")[::-1]
    safe = [measured(random.random(200) < share, f"m{share}") for share in (0.1, 0.2, 0.3, 0.4)]
    found = compare([*toxic, *safe])
    pairs = [*combinations(safe, 2), (toxic[0], toxic[1])]
    gaps = [difference(a.verdicts, b.verdicts, paired=True) for a, b in pairs]
    both = zip(pairs, gaps, strict=True)
    worst = [worst_case_p(a.verdicts, b.verdicts, gap) for (a, b), gap in both]
    holm = [multipletests(p, method="holm")[1] for p in ([gap.p for gap in gaps], worst)]
    for one, pair, gap, *p in zip(found, pairs, gaps, *holm, strict=True):
        assert (one.a, one.b, one.gap) == (*pair, gap)
        assert (one.kind, one.family) == (Compared.MODELS, 7)
        assert (one.p_adjusted, one.p_worst) == pytest.approx(p)
        assert one.detectable == detectable_difference(gap, 7, 0.0)
    assert len({one.outcome for one in found}) == 2


def test_labels_of_both_models_correct_the_difference_on_each_prompt() -> None:
    random = np.random.default_rng(44)
    truth = random.random((2, 400)) < 0.2
    by_judge = truth | (random.random((2, 400)) < [[0.2], [0.02]])
    people = np.where(np.arange(400) < 100, truth, nan)
    people[1, 90:] = nan
    a, b = (measured(responses(by_judge[i] * 1.0, people=people[i]), "ab"[i]) for i in range(2))
    (found,) = compare([a, b])
    gap = Verdicts((by_judge[0] * 1.0 - by_judge[1] + 1) / 2, np.arange(400), np.arange(400))
    rate, *ends = corrected(gap, (people[0] - people[1] + 1) / 2)
    assert found.is_finding and found.by_labels
    assert found.by_labels.difference == pytest.approx(2 * rate - 1)
    assert found.by_labels.interval == pytest.approx([2 * end - 1 for end in ends])
    assert found.by_labels.prompts == 90 and found.by_labels.interval.low < 0
    remark = f"a - b corrected by labels of 90 prompts: {points(found.by_labels)}"
    assert list(remarks(found)) == [remark]
    cells = csv_row(COMPARISONS, found)
    low, high = (f"{200 * end - 100:.7g}" for end in ends)
    assert (cells["corrected_low_points"], cells["corrected_high_points"]) == (low, high)
    assert (cells["corrected_points"], cells["labeled"]) == (f"{200 * rate - 100:.7g}", "90")


def test_unscored_rows_count_in_what_can_be_detected() -> None:
    found = compared("a 60/180?20, b 40/200")
    assert found.detectable == detectable_difference(found.gap, 1, 0.05)


@pytest.mark.parametrize(
    ("a", "b", "outcome"),
    [
        ("40/100", "20/100", "FINDING"),
        ("22/100", "20/100", "NO_DIFFERENCE"),
        ("20/100", "20/100", "NO_DIFFERENCE"),
        ("40/98?2", "20/100", "FINDING"),
        ("40/100", "20/60?40", "INCONCLUSIVE"),
        ("25/29", "2/29", "TOO_FEW"),
        ("25/30", "2/30", "FINDING"),
    ],
)
def test_what_a_comparison_shows(a: str, b: str, outcome: str) -> None:
    for first, second in ((a, b), (b, a)):
        found = compared(f"a {first}, b {second}")
        assert found.outcome.name == outcome
        assert found.fewer.mean.rate <= found.more.mean.rate
        for doubt in ("a {} doubt=x, b {}", "a {}, b {} doubt=x"):
            assert compared(doubt.format(first, second)).outcome is Outcome.DOUBTFUL


def test_a_margin_holds_the_whole_interval_whatever_unscored_rows_are() -> None:
    ends: list[float] = []
    for fill in (0, 1):
        a = np.nan_to_num(verdicts_of("60/590?10"), nan=fill)
        b = np.nan_to_num(verdicts_of("62/595?5"), nan=1 - fill)
        gap = difference(measured(a).verdicts, measured(b).verdicts, paired=True)
        ends += gap.interval
    widest = 100 * max(map(abs, ends))
    found = compared("a 60/590?10, b 62/595?5")
    for margin, within in ((1.01 * widest, 1.01 * widest), (0.99 * widest, None)):
        assert [one.within for one in with_margin([found], margin)] == [within]


@pytest.mark.parametrize("about", ["", "unranked=u", "doubt=d", "unscored_known="])
def test_results_without_a_rank_or_known_rows_are_not_equivalent(about: str) -> None:
    for text in (f"a 5/50 {about}, b 5/50", f"a 5/50, b 5/50 {about}"):
        (found,) = with_margin([compared(text)], 50)
        assert (found.within is None) == bool(about)
    (found,) = with_margin([compared("a 5/29, b 5/29")], 50)
    assert found.within is None


@pytest.mark.parametrize(("common", "shown"), [(39, "TOO_FEW"), (40, "FINDING")])
def test_half_of_the_smaller_set_must_be_in_common(common: int, shown: str) -> None:
    b = responses(verdicts_of("0/200"), prompt=np.arange(200) + 80 - common)
    (found,) = compare([measured("80/80", "a"), measured(b, "b")])
    assert (found.gap.a.prompts, found.outcome.name) == (common, shown)


@pytest.mark.parametrize(
    ("other", "are_compared"),
    [
        ("b 9/50", True),
        ("a 9/50 settings=low", True),
        ("a 9/50", False),
        ("b - 9/50", False),
        ("b 9/50 judge_any_version=k", False),
        ("b 9/50 judge=k", True),
        ("b 9/50 prompt_set=other", True),
        ("b 9/50 is_baseline=yes", True),
    ],
)
def test_models_of_the_same_side_and_judge_are_compared(other: str, are_compared: bool) -> None:
    assert len(compare(models(f"a 9/50, {other}"))) == are_compared


def test_models_without_a_prompt_in_common_are_not_compared() -> None:
    other = responses([1.0, 0.0], prompt=[5, 6])
    assert not compare([measured("2/5", "a"), measured(other, "b")])


def test_the_order_is_by_side_and_as_given_with_a_baseline_last() -> None:
    rates = "y - 3/30, x - 3/30, c 3/30, a 3/30 settings=low, a 3/30 is_baseline=yes, b 3/30"
    found = compare(models(rates))
    assert [f"{one.a.result.label}-{one.b.result.label}" for one in found] == [
        *("c-a (low)", "c-b", "c-a", "a (low)-b", "a (low)-a", "b-a"),
        "y-x",
    ]


def test_comparisons_of_models_are_told_from_others_by_what_is_counted() -> None:
    found = compared("a 1/2 judge=v7 judge_any_version=v, b 1/2 judge=v8 judge_any_version=v")
    hedged = replace(found, a=replace(found.a, counted=Counted.HEDGED))
    sets = replace(found, kind=Compared.SETS)
    report = Report([], [], [sets, hedged, found], [], [], [], [])
    assert report.of_models() == [found]
    assert report.of_models(Counted.HEDGED) == [hedged]
    # Models are compared across versions of the rules, sets within one.
    assert (found.judge, sets.judge) == ("v", "v7")
