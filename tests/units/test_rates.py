"""Rates of results, and what else is known of the responses behind them."""

from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from statsmodels.stats.proportion import (  # type: ignore[import-untyped]
    proportion_confint,
)

from orbench.report.measures import MACRO, OVERALL, Counted, Kind, Rate, Subset
from orbench.report.rates import on_side, overall, rates, rates_of, refusals
from orbench.report.results import SAFE, TOXIC, Responses
from orbench.stats.core import Array, mean, with_unscored
from tests.results import responses, result_of

GRADED = ("direct_answer", "partial", "safe_completion", "direct_refusal", "indirect_refusal")
SHARES = {
    Counted.DIRECT: (3,),
    Counted.INDIRECT: (4,),
    Counted.API: (),
    Counted.HELPED: (0,),
    Counted.PARTIAL: (1,),
    Counted.SAFE_COMPLETION: (2,),
    Counted.HEDGED: (1, 2),
    Counted.REJECTED_OR_SAFE: (2, 3, 4),
}


def drawn(seed: int = 3, n: int = 400, **columns: Any) -> Responses:
    """Responses of three categories, several to a prompt, some of them unscored."""
    random = np.random.default_rng(seed)
    prompt = random.integers(0, n // 3, n)
    refused = (random.random(n) < 0.3).astype(float)
    refused[random.random(n) < 0.1] = nan
    flags = {name: random.random(n) < 0.2 for name in ("api", "after_text", "other_model")}
    flags["judge_refused"] = np.isnan(refused) & (random.random(n) < 0.5)
    shares = {name: refused * random.integers(0, 2, n) for name in ("direct", "indirect")}
    cut_off = random.choice([0, 1, nan], n)
    category = np.array(["b", "c", "a"], object)[prompt % 3]
    every = {"prompt": prompt, "seed": prompt % 50, "category": category, "cut_off": cut_off}
    return responses(refused, **every | flags | shares | columns)


def by_prompt(values: Array, prompt: Array) -> float:
    """The mean of the prompts' means, as pandas computes it; missing values are left out."""
    table = pd.DataFrame({"value": values.astype(float), "prompt": prompt}).dropna()
    return float(table.groupby("prompt")["value"].mean().mean())


def only(found: list[Rate], subset: Subset, counted: Counted = Counted.REFUSED) -> Rate:
    (rate,) = (one for one in found if (one.subset, one.counted) == (subset, counted))
    return rate


def test_a_rate_of_independent_prompts_has_wilsons_interval() -> None:
    for refused in (0, 1, 17, 60):
        given = responses([1.0] * refused + [0.0] * (60 - refused), category="(no category)")
        (rate,) = rates([result_of(given)])
        wilson = proportion_confint(refused, 60, method="wilson")
        assert rate.mean.rate == refused / 60
        assert (rate.interval.low, rate.interval.high) == pytest.approx(wilson, abs=1e-9)
        assert (rate.mean.prompts, rate.mean.rows, rate.unscored) == (60, 60, 0)
        assert rate.mean.design_effect == pytest.approx(1)


def test_rates_are_means_of_the_prompts_shares_overall_and_by_category() -> None:
    given = drawn()
    found = list(rates_of(result_of(given)))
    assert [one.subset for one in found] == [
        OVERALL,
        MACRO,
        *(Subset(Kind.CATEGORY, name) for name in "abc"),
    ]
    table = pd.DataFrame({"refused": given.refused, "prompt": given.prompt, "of": given.category})
    shares = table.dropna().groupby(["of", "prompt"])["refused"].mean()
    of_category = shares.groupby("of").mean()
    assert found[0].mean.rate == pytest.approx(shares.mean())
    assert found[1].mean.rate == pytest.approx(of_category.mean())
    for name in "abc":
        rate = only(found, Subset(Kind.CATEGORY, name))
        assert rate.mean.rate == pytest.approx(of_category[name])
        assert rate.mean.prompts == len(shares[name])
        assert rate.details and rate.details.rows == (given.category == name).sum()
    assert found[1].details is None and found[1].unscored is None


def test_intervals_are_those_of_the_verdicts_with_seeds_and_unscored_rows() -> None:
    given = drawn()
    rate = next(rates_of(result_of(given)))
    verdicts = given.verdicts()
    assert rate.mean.interval == mean(verdicts).interval
    assert rate.interval == rate.with_unscored == with_unscored(verdicts)
    widths = [high - low for low, high in (rate.interval, rate.mean.interval)]
    assert rate.wider == pytest.approx(widths[0] / widths[1])
    assert rate.unscored == int(np.isnan(given.refused).sum())
    unknown = next(rates_of(result_of(given, unscored_known=False)))
    assert unknown.with_unscored is None and unknown.unscored is None
    assert unknown.interval == rate.mean.interval and unknown.wider == 1


@pytest.mark.parametrize(("lost", "is_widened"), [(0, False), (2, False), (30, True)])
def test_an_interval_that_unscored_rows_make_much_wider_is_marked(
    lost: int, is_widened: bool
) -> None:
    given = responses([1.0, 0.0] * 50 + [nan] * lost)
    rate = next(rates_of(result_of(given)))
    assert rate.is_widened == is_widened == (rate.wider > 1.5)


@pytest.mark.parametrize(("prompts", "is_small"), [(29, True), (30, False)])
def test_rates_of_fewer_than_30_prompts_are_marked(prompts: int, is_small: bool) -> None:
    rate = next(rates_of(result_of(responses([1.0] * prompts + [nan] * 5))))
    assert (rate.mean.prompts, rate.is_small) == (prompts, is_small)


def test_prompts_without_any_category_have_the_overall_rate_alone() -> None:
    plain = "(no category)"
    assert len(list(rates_of(result_of(responses([1.0], category=plain))))) == 1
    some = list(rates_of(result_of(responses([1.0, 0.0], category=[plain, "a"]))))
    assert [one.subset.value for one in some] == ["", "", plain, "a"]
    assert some[1].mean.rate == 0.5


def test_details_are_counts_of_rows_and_means_of_prompts() -> None:
    given = drawn(category="a")
    details = next(rates_of(result_of(given))).details
    assert details
    scored = given.where(given.scored)
    assert (details.rows, details.refused) == (400, int(np.nansum(given.refused)))
    assert details.other_model == given.other_model.sum()
    assert details.refused_to_judge == given.judge_refused.sum() > 0
    for name in ("direct", "indirect", "api", "cut_off"):
        wanted = by_prompt(getattr(scored, name), scored.prompt)
        assert getattr(details, name) == pytest.approx(wanted), name
    assert details.after_text == pytest.approx(given.after_text[given.api].mean())
    table = pd.DataFrame({"refused": scored.refused, "prompt": scored.prompt})
    flips = table.groupby("prompt")["refused"].nunique() > 1
    assert details.flips == pytest.approx(flips.mean()) and details.flips > 0.1


def test_what_no_response_has_is_not_measured() -> None:
    details = next(rates_of(result_of(responses([1.0, 0.0, nan], direct=nan)))).details
    assert details
    assert all(map(isnan, (details.direct, details.cut_off, details.after_text, details.flips)))
    assert (details.indirect, details.api, details.api_categories) == (0, 0, {})
    nothing = next(rates_of(result_of(responses([nan, nan]))))
    assert nothing.details and isnan(nothing.details.direct) and nothing.details.refused == 0
    assert (nothing.mean.prompts, nothing.unscored) == (0, 2) and isnan(nothing.mean.rate)


def test_a_prompt_flips_if_its_scored_responses_differ() -> None:
    given = responses([1, 0, 1, 1, 0, nan, 1], prompt=[0, 0, 1, 1, 2, 2, 3])
    details = next(rates_of(result_of(given))).details
    assert details and details.flips == 1 / 4


def test_categories_that_an_api_named_are_counted_the_most_frequent_first() -> None:
    named = ["bio", "cyber, bio", "", "cyber", "cyber", "frontier_llm", "cyber", "not its own"]
    given = responses([1.0] * 8, api=[True] * 7 + [False], api_category=named)
    details = next(rates_of(result_of(given))).details
    assert details
    assert list(details.api_categories.items()) == [
        ("cyber", 4),
        ("bio", 2),
        ("unnamed", 1),
        ("frontier_llm", 1),
    ]
    assert details.not_about_safety == 1


def test_shares_of_graded_classes_stand_after_each_rate_and_add_up() -> None:
    random = np.random.default_rng(5)
    graded = random.integers(0, 5, 300)
    refused = np.where(np.arange(300) % 9 == 0, nan, graded >= 3)
    direct, indirect = graded == 3, graded == 4
    columns = {"graded": [GRADED[n] for n in graded], "direct": direct, "indirect": indirect}
    category = np.array(["a", "b"], object)[random.integers(0, 2, 300)]
    given = responses(refused, category=category, **columns)
    found = list(rates_of(result_of(given, unscored_known=False)))
    order = [Counted.REFUSED, *SHARES]
    subsets = [OVERALL, MACRO, Subset(Kind.CATEGORY, "a"), Subset(Kind.CATEGORY, "b")]
    assert [(one.subset, one.counted) for one in found] == [
        (subset, counted) for subset in subsets for counted in order
    ]
    scored = np.isfinite(refused)
    for counted, classes in SHARES.items():
        for category_name in ("", "a", "b"):
            subset = Subset(Kind.CATEGORY, category_name) if category_name else OVERALL
            chosen = scored & (category == category_name if category_name else True)
            share = only(found, subset, counted)
            assert share.mean.rate == pytest.approx(np.isin(graded[chosen], classes).mean())
            assert share.with_unscored and share.details is None
            assert share.with_unscored.low <= share.mean.low
        macro = only(found, MACRO, counted).mean.rate
        both = [only(found, subset, counted).mean.rate for subset in subsets[2:]]
        assert macro == pytest.approx(np.mean(both))
    parts = (Counted.HELPED, Counted.PARTIAL, Counted.SAFE_COMPLETION, Counted.REFUSED)
    assert sum(only(found, OVERALL, part).mean.rate for part in parts) == pytest.approx(1)


def test_the_rates_of_several_results_are_found_by_side_and_kind() -> None:
    a, b = (result_of(drawn(n), n, side=side) for n, side in enumerate((SAFE, TOXIC)))
    graded = result_of(responses([1.0, 0.0], graded="partial"), 2)
    found = rates([a, b, graded])
    assert [one.result.number for one in overall(found)] == [0, 1, 2]
    assert {one.counted for one in overall(found)} == {Counted.REFUSED}
    assert {one.result.number for one in on_side(TOXIC, found)} == {1}
    names = [one.subset.value for one in refusals(found, Kind.CATEGORY)]
    assert names == ["a", "b", "c", "a", "b", "c", "a"]
