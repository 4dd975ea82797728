"""The leaderboard of the page: doubts about rates, and where axes begin and end."""

from dataclasses import replace
from math import nan

import pytest

from orbench.report.measures import Rate
from orbench.report.page_tables import doubts_of
from tests.results import make_details, make_rate, make_result


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
