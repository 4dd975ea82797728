"""An axis in percent or in points, from left to right or upwards."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import ceil, floor
from typing import NamedTuple

from orbench.base.words import Side
from orbench.report.measures import Rate
from orbench.report.pictures.drawing import Item, Shape, Text
from orbench.report.standings import Placed, Published

STEPS = (5, 10, 20, 50, 100)  # between two ticks; an axis has at most five
SHORT = 12  # ems; a shorter axis has at most two


class Axis(NamedTuple):
    """Where an axis begins and ends, in percent and in a drawing."""

    low: int
    high: int
    start: float = 0
    end: float = 1

    @property
    def ticks(self) -> range:
        """Return the places of its ticks."""
        most = 2 if abs(self.end - self.start) < SHORT else 5
        step = next(step for step in STEPS if self.high - self.low <= most * step)
        return range(step * ceil(self.low / step), self.high + 1, step)

    def at(self, percent: float) -> float:
        """Return the place of a rate."""
        share = (percent - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def rules(self, start: float, end: float, *, is_upright: bool = False) -> Iterator[Item]:
        """Yield its rules, from one place to another, and the numbers at their ends."""
        for tick in self.ticks:
            at = self.at(tick)
            rule = [(at, start), (at, end)]
            number = Text(at, end + 1.2, str(tick), "faint", "middle")
            if is_upright:
                rule = [(start, at), (end, at)]
                number = number._replace(x=end - 0.5, y=at + 0.35, anchor="end")
            yield Shape(rule, "rule", 0.07)
            yield number


def on(shapes: Iterable[Shape], x: Axis, y: Axis) -> Iterator[Shape]:
    """Yield shapes at their places on two axes."""
    for shape in shapes:
        yield shape._replace(points=[(x.at(a), y.at(b)) for a, b in shape.points])


def axis_over(intervals: Iterable[Sequence[float]]) -> Axis:
    """Return an axis from a ten to a ten that holds intervals in percent."""
    percents = [*chain.from_iterable(intervals)]
    low = min(10 * floor(min(percents) / 10), 90)
    high = 10 * ceil(max(percents) / 10)
    return Axis(low, max(high, low + 10))


def percents(rate: Rate) -> list[float]:
    """Return a rate in percent, and the ends of its interval; without the ends if the number of
    unscored rows is not known, and nothing if no row has a verdict.
    """
    if not rate.n:
        return []
    ends = rate.interval if rate.result.unscored_known else ()
    return [100 * share for share in (rate.mean.rate, *ends)]


def percents_of(model: Placed, side: Side) -> list[float]:
    """Return the rate of a side in percent, and the ends of its interval if it has one."""
    if isinstance(model, Published):
        return [100 * model.rate(side)]
    rate = model.on(side)
    return percents(rate) if rate else []
