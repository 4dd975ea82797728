"""The leaderboard of the page: doubts about rates, and where axes begin and end."""

from dataclasses import replace
from typing import Any

import pytest

from orbench.report.measures import Rate
from orbench.report.page_board import doubts_of
from orbench.report.results import SAFE, TOXIC
from orbench.report.scatter import Axis, axis_over, percents_of
from orbench.report.standings import Published
from tests.results import make_details, make_rate, make_result, make_standing


def rate_with(n: int = 100, unscored: int = 0, cut_off: float = 0, **about: Any) -> Rate:
    rate = make_rate(make_result(**{"certain": float("nan")} | about), n=n)
    return replace(rate, details=make_details(n + unscored, cut_off=cut_off))


@pytest.mark.parametrize(
    ("rate", "doubts"),
    [
        (rate_with(), []),
        (rate_with(n=29), ["few prompts"]),
        (rate_with(n=30), []),
        (rate_with(unscored=1200), ["1,200 unscored"]),
        (rate_with(unscored=2, unscored_known=False), []),
        (rate_with(cut_off=0.05), []),
        (rate_with(cut_off=0.06), ["6 % cut off"]),
        (rate_with(certain=0.8), []),
        (rate_with(certain=0.79), ["79 % of verdicts certain"]),
        (rate_with(29, 3, 0.5, certain=0.1), ["few", "3 unscored", "50 % cut", "10 % of"]),
    ],
)
def test_doubts_about_a_rate_stand_below_it(rate: Rate, doubts: list[str]) -> None:
    found = doubts_of(rate, is_demo=False)
    assert len(found) == len(doubts)
    for one, text in zip(found, doubts, strict=True):
        assert one.text.startswith(text) and one.meaning


def test_of_the_demo_few_prompts_are_no_news() -> None:
    found = doubts_of(rate_with(n=3, unscored=1), is_demo=True)
    assert [one.text for one in found] == ["1 unscored"]
    assert doubts_of(replace(rate_with(), details=None), is_demo=False) == []


@pytest.mark.parametrize(
    ("percents", "axis", "ticks"),
    [
        ([], (90, 100), [90, 95, 100]),
        ([12.5, 33], (10, 40), [10, 20, 30, 40]),
        ([0, 71], (0, 80), [0, 20, 40, 60, 80]),
        ([100, 100], (90, 100), [90, 95, 100]),
        ([20, 20], (20, 30), [20, 25, 30]),
        ([10, 30], (10, 30), [10, 15, 20, 25, 30]),
        ([0, 50], (0, 50), [0, 10, 20, 30, 40, 50]),
    ],
)
def test_axes_go_from_a_ten_to_a_ten(
    percents: list[float], axis: tuple[float, float], ticks: list[int]
) -> None:
    found = axis_over(percents)
    assert found == Axis(*axis) and list(found.ticks) == ticks


def test_an_axis_holds_rates_with_their_intervals() -> None:
    standing = make_standing(safe=12, toxic=90)
    assert percents_of(standing, SAFE) == pytest.approx([12, 10, 14])
    assert percents_of(standing, TOXIC) == pytest.approx([90, 88, 92])
    assert standing.safe
    alone = replace(standing, toxic=None, safe=replace(standing.safe, with_unscored=None))
    assert percents_of(alone, SAFE) == [12] and percents_of(alone, TOXIC) == []
    nothing = replace(standing.safe, mean=standing.safe.mean._replace(prompts=0))
    assert percents_of(replace(standing, safe=nothing), SAFE) == []
    published = Published("p", "set", 0.1, 0.8)
    assert (percents_of(published, SAFE), percents_of(published, TOXIC)) == ([10], [80])
