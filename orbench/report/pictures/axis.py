"""An axis in percent or in points, from left to right or upwards."""

from collections.abc import Iterator, Sequence
from math import ceil, floor
from typing import NamedTuple

from orbench.report.measures import Rate
from orbench.report.pictures.drawing import Item, Line, Text

STEPS = (5, 10, 20, 50)  # between two ticks; an axis has at most five steps
SHORT = 12  # ems; a shorter axis has three ticks


class Axis(NamedTuple):
    """Where an axis begins and ends, in percent and in a drawing."""

    low: int
    high: int
    start: float
    end: float

    @property
    def ticks(self) -> range:
        """Return the places of its ticks."""
        span = self.high - self.low
        step = next(step for step in STEPS if span <= 5 * step)
        if abs(self.end - self.start) < SHORT:
            step = span // 2
        return range(self.low, self.high + 1, step)

    def at(self, percent: float) -> float:
        """Return the place of a rate."""
        share = (percent - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def across(self, top: float, bottom: float) -> Iterator[Item]:
        """Yield its rules and numbers, if it runs from left to right."""
        for tick in self.ticks:
            x = self.at(tick)
            yield Line([(x, top), (x, bottom)], "rule", 0.07)
            yield Text(x, bottom + 1.2, str(tick), "faint", "middle")

    def upwards(self, left: float, right: float) -> Iterator[Item]:
        """Yield its rules and numbers, if it runs upwards."""
        for tick in self.ticks:
            y = self.at(tick)
            yield Line([(left, y), (right, y)], "rule", 0.07)
            yield Text(left - 0.5, y + 0.35, str(tick), "faint", "end")


def axis_over(percents: Sequence[float]) -> Axis:
    """Return an axis from a ten to a ten that holds these."""
    low = min(10 * floor(min(percents, default=0) / 10), 90)
    high = 10 * ceil(max(percents, default=100) / 10)
    return Axis(low, max(high, low + 10), 0, 1)


def percents(rate: Rate) -> list[float]:
    """Return a rate in percent, and the ends of its interval; without the ends if the number of
    unscored rows is not known, and nothing if no row has a verdict.
    """
    if not rate.n:
        return []
    ends = rate.interval if rate.result.unscored_known else ()
    return [100 * share for share in (rate.mean.rate, *ends)]
