"""Rates of results, and what else is known of the responses behind them."""

from math import nan
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from statsmodels.stats.proportion import (  # type: ignore[import-untyped]
    proportion_confint,
)

from orbench.report.measures import OVERALL, Counted, Details, Kind, Rate
from orbench.report.rates import on_side, overall, rates, rates_of, refusals
from orbench.report.results import SAFE, TOXIC, Responses
from orbench.stats.core import Array, mean, with_unscored
from tests.results import measured, responses, result_of, verdicts_of

GRADED = ("direct_answer", "partial", "safe_completion", "direct_refusal", "indirect_refusal")
# The classes that count.
SHARES = {
    Counted.REFUSED: (3, 4),
    Counted.DIRECT: (3,),
    Counted.INDIRECT: (4,),
    Counted.API: (),
    Counted.HELPED: (0,),
    Counted.PARTIAL: (1,),
    Counted.SAFE_COMPLETION: (2,),
    Counted.HEDGED: (1, 2),
    Counted.REJECTED_OR_SAFE: (2, 3, 4),
}


def drawn(n: int = 400) -> Responses:
    """Responses of three categories, several to a prompt, some of them unscored."""
    random = np.random.default_rng(3)
    prompt = random.integers(0, n // 3, n)
    refused = (random.random(n) < 0.3).astype(float)
    refused[random.random(n) < 0.1] = nan
    columns: dict[str, Any] = {"judge_refused": np.isnan(refused) & (random.random(n) < 0.5)}
    for name in ("api", "after_text", "other_model"):
        columns[name] = random.random(n) < 0.2
    for name in ("direct", "indirect"):
        columns[name] = refused * random.integers(0, 2, n)
    columns["cut_off"] = random.choice([0, 1, nan], n)
    category = np.array(["b", "c", "a"], object)[prompt % 3]
    return responses(refused, prompt=prompt, seed=prompt % 50, category=category, **columns)


def rates_in(given: Responses, **about: Any) -> list[Rate]:
    return list(rates_of(result_of(given, **about)))


def details_of(given: Responses) -> Details:
    details = rates_in(given)[0].details
    assert details
    return details


def by_prompt(values: Array, given: Responses, category: str = "") -> Any:
    """The means of the prompts' scored values, as pandas computes them."""
    kept = given.scored & ((given.category == category) | (category == ""))
    table = pd.Series(values.astype(float)[kept]).groupby(given.prompt[kept])
    return table.mean().dropna()


@pytest.mark.parametrize("refused", [0, 17, 60])
def test_a_rate_of_independent_prompts_has_wilsons_interval(refused: int) -> None:
    wilson = proportion_confint(refused, 60, method="wilson")
    assert measured(f"{refused}/60").interval == pytest.approx(wilson, abs=1e-9)


def test_rates_are_means_of_the_prompts_shares_overall_and_by_category() -> None:
    given = drawn()
    found = rates_in(given)
    names = ["overall ", "macro average ", "category a", "category b", "category c"]
    assert [f"{one.subset.kind} {one.subset.value}" for one in found] == names
    whole, macro, *parts = found
    assert whole.mean.rate == pytest.approx(by_prompt(given.refused, given).mean())
    for part in parts:
        shares = by_prompt(given.refused, given, part.subset.value)
        assert part.mean.rate == pytest.approx(shares.mean())
        assert part.mean.prompts == len(shares)
        assert part.details
        assert part.details.rows == (given.category == part.subset.value).sum()
    assert macro.mean.rate == pytest.approx(np.mean([part.mean.rate for part in parts]))
    assert macro.details is None and macro.unscored is None


def test_intervals_are_those_of_the_verdicts_with_seeds_and_unscored_rows() -> None:
    given = drawn()
    rate = rates_in(given)[0]
    inner = mean(given.verdicts()).interval
    outer = with_unscored(given.verdicts())
    assert (rate.mean.interval, rate.interval, rate.with_unscored) == (inner, outer, outer)
    assert rate.wider == pytest.approx(np.ptp(outer) / np.ptp(inner))
    assert rate.unscored == (~given.scored).sum()
    unknown = rates_in(given, unscored_known=False)[0]
    assert (unknown.with_unscored, unknown.unscored, unknown.interval) == (None, None, inner)


@pytest.mark.parametrize(
    ("text", "is_widened", "is_small"),
    [
        ("50/100", False, False),
        ("50/100?2", False, False),
        ("50/100?30", True, False),
        ("29/29?1", False, True),
        ("30/30", False, False),
    ],
)
def test_intervals_that_unscored_rows_widen_and_few_prompts_are_marked(
    text: str, is_widened: bool, is_small: bool
) -> None:
    rate = measured(text)
    assert (rate.is_widened, rate.is_small) == (is_widened, is_small)


def test_prompts_without_any_category_have_the_overall_rate_alone() -> None:
    plain = "(no category)"
    assert len(rates_in(responses([1.0], category=plain))) == 1
    some = rates_in(responses([1.0, 0.0], category=[plain, "a"]))
    assert [one.subset.value for one in some] == ["", "", plain, "a"]


def test_details_are_counts_of_rows_and_means_of_prompts() -> None:
    given = drawn()
    details = details_of(given)
    assert (details.rows, details.refused) == (400, np.nansum(given.refused))
    assert details.other_model == given.other_model.sum()
    assert details.refused_to_judge == given.judge_refused.sum() > 0
    for name in ("direct", "indirect", "api", "cut_off"):
        wanted = by_prompt(getattr(given, name), given).mean()
        assert getattr(details, name) == pytest.approx(wanted), name
    assert details.after_text == pytest.approx(given.after_text[given.api].mean())


def test_what_no_response_has_is_not_measured() -> None:
    details = details_of(responses([1.0, 0.0, nan], direct=nan))
    unknown = (details.direct, details.cut_off, details.after_text, details.flips)
    assert np.isnan(unknown).all()
    assert (details.indirect, details.api, details.api_categories) == (0, 0, {})
    nothing = rates_in(responses(verdicts_of("0/0?2")))[0]
    assert (nothing.mean.prompts, nothing.unscored) == (0, 2) and np.isnan(nothing.mean.rate)


def test_a_prompt_flips_if_its_scored_responses_differ() -> None:
    given = responses([1, 0, 1, 1, 0, nan, 1], prompt=[0, 0, 1, 1, 2, 2, 3])
    assert details_of(given).flips == 1 / 4


def test_categories_that_an_api_named_are_counted_the_most_frequent_first() -> None:
    named = ["bio", "cyber, bio", "", "cyber", "cyber", "frontier_llm", "cyber", "not its own"]
    given = responses([1.0] * 8, api=[True] * 7 + [False], api_category=named)
    details = details_of(given)
    shown = ", ".join(f"{name} {count}" for name, count in details.api_categories.items())
    assert shown == "cyber 4, bio 2, unnamed 1, frontier_llm 1"
    assert details.not_about_safety == 1


def test_shares_of_graded_classes_stand_after_each_rate() -> None:
    random = np.random.default_rng(5)
    graded = random.integers(0, 5, 300)
    refused = np.where(np.arange(300) % 9 == 0, nan, graded >= 3)
    columns = {"graded": np.array(GRADED)[graded], "direct": graded == 3, "indirect": graded == 4}
    given = responses(refused, category=random.choice(["a", "b"], 300), **columns)
    found = rates_in(given)
    subsets = [one.subset for one in found[:: len(SHARES)]]
    assert [(one.subset, one.counted) for one in found] == [
        (subset, counted) for subset in subsets for counted in SHARES
    ]
    for share in found:
        of_class = np.isin(graded, SHARES[share.counted])
        means = [by_prompt(of_class, given, name).mean() for name in "ab"]
        chosen = {OVERALL: by_prompt(of_class, given).mean(), subsets[1]: np.mean(means)}
        chosen |= dict(zip(subsets[2:], means, strict=True))
        assert share.mean.rate == pytest.approx(chosen[share.subset])
        assert share.with_unscored and share.with_unscored.low <= share.mean.low
    unknown = rates_in(given, unscored_known=False)
    assert [one.with_unscored is None for one in unknown[:2]] == [True, False]


def test_the_rates_of_several_results_are_found_by_side_and_kind() -> None:
    a, b = (result_of(drawn(), side=side) for side in (SAFE, TOXIC))
    graded = result_of(responses([1.0, 0.0], graded="partial"))
    found = rates([a, b, graded])
    assert [one.result for one in overall(found)] == [a, b, graded]
    assert {one.counted for one in overall(found)} == {Counted.REFUSED}
    assert {one.result for one in on_side(TOXIC, found)} == {b}
    names = [one.subset.value for one in refusals(found, Kind.CATEGORY)]
    assert names == ["a", "b", "c", "a", "b", "c", "a"]
