"""Rates of results, and what else is known of the responses behind them."""

from math import nan
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.proportion import (  # type: ignore[import-untyped]
    proportion_confint,
)

from orbench.report.measures import Counted, Details, Kind, Rate, RefusedBy
from orbench.report.rates import on_side, overall, rates, rates_of, refusals
from orbench.report.results import TOXIC, UNCORRECTED, Responses
from orbench.stats.core import mean, with_unscored
from tests.results import measured, responses, result_of, verdicts_of

# Several responses to a prompt; of prompt 4, none is scored.
GIVEN = responses(
    [1, 0, 1, 1, 0, 1, nan, nan],
    prompt=[0, 0, 1, 2, 3, 3, 3, 4],
    seed=[0, 0, 0, 1, 1, 1, 1, 2],
    category=list("bbaaaaaa"),
    direct=[1, 0, 0, 1, 0, 0, nan, nan],
    indirect=[0, 0, 1, 0, 0, 0, nan, nan],
    api=np.array([True, False, True, False, False, False, True, False]),
    refused_by=["model_api", "model", "unknown", "filter", "filter", "model", "model", "gateway"],
    after_text=[True, False, False, False, False, True, False, True],
    cut_off=[nan, 1, 0, nan, 1, 1, 0, 1],
    other_model=[True, True, False, False, False, False, False, True],
    judge_refused=[False] * 7 + [True],
)


def rates_in(given: Responses, **about: Any) -> list[Rate]:
    return list(rates_of(result_of(given, **about)))


def details_of(given: Responses) -> Details:
    return rates_in(given)[0].details


def lines_of(found: list[Rate]) -> list[str]:
    return [f"{one.subset.kind} {one.subset.value} {100 * one.mean.rate:.1f}" for one in found]


@pytest.mark.parametrize("refused", [0, 17, 60])
def test_a_rate_of_independent_prompts_has_wilsons_interval(refused: int) -> None:
    wilson = proportion_confint(refused, 60, method="wilson")
    assert measured(f"{refused}/60").interval == pytest.approx(wilson, abs=1e-9)


def test_rates_are_means_of_the_prompts_shares_overall_and_by_category() -> None:
    found = rates_in(GIVEN)
    expected = ["overall  75.0", "macro average  66.7", "category a 83.3", "category b 50.0"]
    assert lines_of(found) == expected
    assert [one.details.rows for one in found] == [8, 0, 6, 2]
    assert [one.unscored for one in found] == [2, None, 2, 0]
    plain = "(no category)"
    assert lines_of(rates_in(responses([1.0], category=plain))) == ["overall  100.0"]
    some = rates_in(responses([1.0, 0.0], category=[plain, "a"]))
    assert lines_of(some)[2:] == [f"category {plain} 100.0", "category a 0.0"]


def test_intervals_are_those_of_the_verdicts_with_seeds_and_unscored_rows() -> None:
    rate = rates_in(GIVEN)[0]
    inner = mean(GIVEN.verdicts()).interval
    outer = with_unscored(GIVEN.verdicts())
    assert (rate.mean.interval, rate.interval, rate.with_unscored) == (inner, outer, outer)
    assert rate.is_widened == (np.ptp(outer) > 1.5 * np.ptp(inner))
    unknown = rates_in(GIVEN, unscored_known=False)[0]
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


def test_details_are_counts_of_rows_and_means_of_prompts() -> None:
    details = vars(details_of(GIVEN)) | {"refused_by": None}
    assert details.pop("api_categories") == "unnamed 3" and details.pop("corrected") == UNCORRECTED
    assert details == pytest.approx(
        {
            **{"rows": 8, "refused": 4, "refused_to_judge": 1, "not_about_safety": 0},
            **{"other_model": 3, "direct": 0.375, "indirect": 0.25, "refused_by": None},
            **{"cut_off": 2 / 3, "after_text": 1 / 3, "flips": 0.5, "certain": nan},
        },
        nan_ok=True,
    )


def test_the_shares_of_who_refused_add_up_to_the_rate() -> None:
    rate = rates_in(GIVEN)[0]
    parts = rate.details.refused_by
    assert parts == RefusedBy(model=1 / 8, model_api=1 / 8, filter=1 / 4, gateway=0, unknown=1 / 4)
    assert sum(parts) == rate.mean.rate


def test_what_no_response_has_is_not_measured() -> None:
    details = details_of(responses([1.0, 0.0, nan], direct=nan))
    unknown = (details.direct, details.cut_off, details.after_text, details.flips)
    assert np.isnan(unknown).all()
    assert (details.indirect, details.api_categories) == (0, "")
    assert details.refused_by == RefusedBy(0.5, 0, 0, 0, 0)
    nothing = rates_in(responses(verdicts_of("0/0?2")))[0]
    assert np.isnan(nothing.mean.rate) and nothing.unscored == 2


def test_categories_that_an_api_named_are_counted_the_most_frequent_first() -> None:
    named = ["bio", "cyber, bio", "", "cyber", "cyber", "frontier_llm", "cyber", "not its own"]
    given = responses([1.0] * 8, api=[True] * 7 + [False], api_category=named)
    details = details_of(given)
    assert details.api_categories == "cyber 4, bio 2, unnamed 1, frontier_llm 1"
    assert details.not_about_safety == 1


def test_shares_of_graded_classes_stand_after_each_rate() -> None:
    graded = ["direct_answer", "partial", "safe_completion", "direct_refusal", "indirect_refusal"]
    columns: dict[str, Any] = {"graded": [*graded, "partial"], "category": list("aabbbb")}
    columns |= {"direct": [0, 0, 0, 1, 0, nan], "indirect": [0, 0, 0, 0, 1, nan]}
    given = responses([0, 0, 0, 1, 1, nan], **columns)
    found = rates_in(given, unscored_known=False)
    names = "refused direct indirect api helped partial safe_completion hedged rejected_or_safe"
    assert " ".join(one.counted for one in found[:9]) == names
    shares = [f"{100 * one.mean.rate:.0f}" for one in found]
    assert " ".join(shares[:9]) == "40 20 20 0 20 20 20 40 60"
    assert " ".join(shares[9:18]) == "33 17 17 0 25 25 17 42 50"
    assert " ".join(shares[18:27]) == "0 0 0 0 50 50 0 50 0"
    assert " ".join(shares[27:]) == "67 33 33 0 0 0 33 33 100"
    assert [one.with_unscored is None for one in found[:3]] == [True] * 3


def test_the_rates_of_several_results_are_found_by_side_and_kind() -> None:
    a, b = result_of(GIVEN), result_of(GIVEN, side=TOXIC)
    graded = result_of(responses([1.0, 0.0], graded="partial"))
    found = rates([a, b, graded])
    assert [one.result for one in overall(found)] == [a, b, graded]
    assert {one.counted for one in overall(found)} == {Counted.REFUSED}
    assert {one.result for one in on_side(TOXIC, found)} == {b}
    names = [one.subset.value for one in refusals(found, Kind.CATEGORY)]
    assert names == ["a", "b", "a", "b", "a"]
