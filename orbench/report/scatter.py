"""What a scatter shows: both rates of models with the same prompts and judge, and its axes."""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.words import SIDES, Side
from orbench.report.published import is_on_or_bench
from orbench.report.standings import Board, Placed, Published, Report

STEPS = (5, 10, 20)  # percent between two ticks; an axis has at most five steps


class Axis(NamedTuple):
    """Where an axis begins and ends, in percent."""

    low: int
    high: int

    @property
    def ticks(self) -> range:
        """Return the places of its ticks."""
        steps = [step for step in STEPS if self.high - self.low <= 5 * step]
        return range(self.low, self.high + 1, steps[0])

    def scale(self, start: float, end: float) -> Callable[[float], float]:
        """Return what places a fraction on a line from start to end."""
        return lambda share: round(float(np.interp(100 * share, self, (start, end))), 1)


def axis_over(percents: Sequence[float]) -> Axis:
    """Return an axis from a ten to a ten that holds these."""
    low = min(10 * floor(min(percents) / 10), 90)
    high = 10 * ceil(max(percents) / 10)
    return Axis(low, max(high, low + 10))


def percents_of(row: Placed, side: Side) -> list[float]:
    """Return the rate of a side in percent, and the ends of its interval; without the ends if
    unscored rows are not known, and nothing if no row has a verdict.
    """
    rate = row.toxic if side.is_toxic else row.safe
    if isinstance(rate, float):
        return [100 * rate]
    if not rate or not rate.n:
        return []
    return [100 * share for share in (rate.mean.rate, *(rate.with_unscored or ()))]


def axes_over(rows: Sequence[Placed]) -> dict[Side, Axis]:
    """Return the axis of each side that some models have a rate on, over-refusal first."""
    axes = {}
    for side in SIDES.values():
        percents = [percent for row in rows for percent in percents_of(row, side)]
        if percents:
            axes[side] = axis_over(percents)
    return axes


class Scatter(NamedTuple):
    """Both rates of the models of a group, in the order of the leaderboard."""

    standings: Board
    gray: list[Published]  # about the same prompts
    x: Axis  # over-refusal
    y: Axis  # toxic rejection


def scatters(report: Report) -> Iterator[Scatter]:
    """Yield a scatter for each group of the leaderboard that has models with both rates."""
    measured = [standing for standing in report.board if standing.has_both_sides]
    for standings in grouped(measured, lambda standing: standing.group).values():
        gray = report.published if is_on_or_bench(standings[0]) else []
        yield Scatter(standings, gray, *axes_over([*standings, *gray]).values())
