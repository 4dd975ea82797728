"""The leaderboard of the page: doubts about rates, and where axes begin and end."""

from dataclasses import replace
from math import nan

import pytest

from orbench.report.measures import Rate
from orbench.report.page_tables import doubts_of
from orbench.report.results import SAFE, TOXIC
from orbench.report.scatter import Axis, axis_over, percents_of
from orbench.report.standings import Published
from tests.results import make_details, make_rate, make_result, make_standing


def rate_with(
    n: int = 100, unscored: int = 0, cut_off: float = 0, certain: float = nan, known: bool = True
) -> Rate:
    result = make_result(certain=certain, unscored_known=known)
    return make_rate(result, n=n, details=make_details(n + unscored, cut_off=cut_off))


@pytest.mark.parametrize(
    ("rate", "doubts"),
    [
        (rate_with(), ""),
        (rate_with(29), "few prompts"),
        (rate_with(30), ""),
        (rate_with(100, 1200), "1,200 unscored"),
        (rate_with(100, 2, known=False), ""),
        (rate_with(100, 0, 0.05, 0.8), ""),
        (rate_with(100, 0, 0.06, 0.79), "6 % cut off, 79 % of verdicts certain"),
        (rate_with(29, 3, 0.5), "few prompts, 3 unscored, 50 % cut off"),
    ],
)  # fmt: skip
def test_doubts_about_a_rate_stand_below_it(rate: Rate, doubts: str) -> None:
    assert ", ".join(doubts_of(rate)) == doubts


def test_of_the_demo_few_prompts_are_no_news() -> None:
    few = rate_with(3, 1)
    assert [*doubts_of(replace(few, result=replace(few.result, is_demo=True)))] == ["1 unscored"]


@pytest.mark.parametrize(
    ("percents", "ticks"),
    [
        ([12.5, 33], "10 20 30 40"),
        ([0, 71], "0 20 40 60 80"),
        ([100, 100], "90 95 100"),
        ([20, 20], "20 25 30"),
        ([10, 30], "10 15 20 25 30"),
        ([0, 50], "0 10 20 30 40 50"),
    ],
)
def test_axes_go_from_a_ten_to_a_ten(percents: list[float], ticks: str) -> None:
    found = axis_over(percents)
    numbers = [int(tick) for tick in ticks.split()]
    assert found == Axis(numbers[0], numbers[-1]) and list(found.ticks) == numbers


def test_a_rate_has_its_place_between_the_ends_of_an_axis() -> None:
    up = Axis(20, 40).scale(100, 0)
    assert [up(share) for share in (0.2, 0.25, 0.33333, 0.4)] == [100, 75, 33.3, 0]


def test_an_axis_holds_rates_with_their_intervals() -> None:
    standing = make_standing(safe=12, toxic=90)
    rate = make_rate(with_unscored=None)
    alone = replace(standing, sides=[rate])
    nothing = replace(alone, sides=[replace(rate, mean=rate.mean._replace(prompts=0))])
    shown = []
    for one in (standing, alone, nothing, Published("p", "set", 0.1, 0.8)):
        sides = [percents_of(one, side) for side in (SAFE, TOXIC)]
        shown.append([[round(percent) for percent in percents] for percents in sides])
    assert shown == [[[12, 10, 14], [90, 88, 92]], [[12], []], [[], []], [[10], [80]]]
