"""What a scatter shows: both rates of models with the same prompts and judge, and its axes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import NamedTuple

from orbench.base.words import Side
from orbench.report.columns import Placed
from orbench.report.published import are_on_or_bench
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Published, Report, Standing


class Axis(NamedTuple):
    """Where an axis begins and ends, in percent."""

    low: float
    high: float

    @property
    def ticks(self) -> range:
        """Return the places of its ticks."""
        span = self.high - self.low
        step = 20 if span > 50 else 10 if span > 20 else 5
        return range(int(self.low), int(self.high) + 1, step)


def axis_over(percents: Sequence[float], highest_start: float = 90) -> Axis:
    """Return an axis from a ten to a ten that holds these. highest_start: it begins no later."""
    low = min(10 * floor(min(percents, default=100) / 10), highest_start)
    high = 10 * ceil(max(percents, default=0) / 10)
    return Axis(low, max(high, low + 10))


def percents_of(row: Placed, side: Side) -> list[float]:
    """Return the rate of a side in percent, and the ends of its interval; without the ends if
    unscored rows are not known, and nothing if no row has a verdict.
    """
    if isinstance(row, Published):
        return [100 * (row.toxic if side.is_toxic else row.over_refusal)]
    rate = row.on(side)
    if not rate or not rate.n:
        return []
    return [100 * share for share in (rate.mean.rate, *(rate.with_unscored or ()))]


class Scatter(NamedTuple):
    """Both rates of the models of a group, in the order of the leaderboard."""

    standings: list[Standing]
    gray: list[Published]  # about the same prompts

    @property
    def part(self) -> str:
        """Return the prompts and the judge, if there are several groups."""
        return self.standings[0].part

    @property
    def doubts(self) -> list[str]:
        """Return what makes results measure nothing."""
        doubts = [doubt for standing in self.standings for doubt in standing.doubts]
        return list(dict.fromkeys(doubts))

    @property
    def from_the_top(self) -> list[Standing]:
        """Return the models by toxic rejection, then by over-refusal."""
        return sorted(self.standings, key=lambda one: (-one.rate(TOXIC), one.rate(SAFE)))

    @property
    def x(self) -> Axis:
        """Return the axis of over-refusal."""
        percents = all_percents([*self.standings, *self.gray], SAFE)
        high = max(10 * ceil(max(percents) / 10), 10)
        return Axis(min(10 * floor(min(percents) / 10), high - 10), high)

    @property
    def y(self) -> Axis:
        """Return the axis of toxic rejection."""
        return axis_over(all_percents([*self.standings, *self.gray], TOXIC))


def all_percents(rows: Iterable[Placed], side: Side) -> list[float]:
    """Return the percents of several models."""
    return [percent for row in rows for percent in percents_of(row, side)]


def scatters(report: Report) -> list[Scatter]:
    """Return a scatter for each group of the leaderboard that has models with both rates."""
    groups = defaultdict[int, list[Standing]](list)
    for standing in report.board:
        if standing.has_both_sides:
            groups[standing.group].append(standing)
    found = []
    for standings in groups.values():
        is_same = are_on_or_bench(standings[0].results)
        found.append(Scatter(standings, report.published if is_same else []))
    return found
