"""What a scatter shows: both rates of models with the same prompts and judge, and its axes."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.words import SIDES, Side
from orbench.report.published import is_on_or_bench
from orbench.report.standings import Placed, Published, Report, Standing

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


WHOLE = Axis(0, 100)


def axis_over(percents: Sequence[float]) -> Axis:
    """Return an axis from a ten to a ten that holds these."""
    low = min(10 * floor(min(percents, default=100) / 10), 90)
    high = 10 * ceil(max(percents, default=0) / 10)
    return Axis(low, max(high, low + 10))


def percents_of(row: Placed, side: Side) -> list[float]:
    """Return the rate of a side in percent, and the ends of its interval; without the ends if
    unscored rows are not known, and nothing if no row has a verdict.
    """
    if isinstance(row, Published):
        return [100 * row.rate(side)]
    rate = row.on(side)
    if not rate or not rate.n:
        return []
    return [100 * share for share in (rate.mean.rate, *(rate.with_unscored or ()))]


def all_percents(rows: Iterable[Placed], side: Side) -> list[float]:
    """Return the percents of several models."""
    return [percent for row in rows for percent in percents_of(row, side)]


def axes_over(rows: Sequence[Placed]) -> list[Axis]:
    """Return the axes of both rates of several models, over-refusal first."""
    return [axis_over(all_percents(rows, side)) for side in SIDES.values()]


class Scatter(NamedTuple):
    """Both rates of the models of a group, in the order of the leaderboard."""

    standings: list[Standing]
    gray: list[Published]  # about the same prompts
    x: Axis  # over-refusal
    y: Axis  # toxic rejection


def scatters(report: Report) -> list[Scatter]:
    """Return a scatter for each group of the leaderboard that has models with both rates."""
    measured = [standing for standing in report.board if standing.has_both_sides]
    found = []
    for standings in grouped(measured, lambda standing: standing.group).values():
        gray = report.published if is_on_or_bench(standings[0]) else []
        found.append(Scatter(standings, gray, *axes_over([*standings, *gray])))
    return found
