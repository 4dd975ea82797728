"""The cells of tables that people look at."""

from math import isnan, nan
from typing import NamedTuple

from orbench.report.measures import MACRO, Rate, Standing
from orbench.stats.core import Difference
from orbench.stats.intervals import Interval

DASH = "–"  # not measured


class Behind(NamedTuple):
    """The rows behind a figure."""

    result: int
    category: str  # empty: all


class Cell(NamedTuple):
    """One cell of a grid."""

    text: str
    value: float | None = None  # what the page sorts by; None: the text
    behind: Behind | None = None
    is_small: bool = False  # of few prompts

    @property
    def is_measured(self) -> bool:
        """Return whether it is a figure that is known."""
        return self.value is not None and not isnan(self.value)


MISSING = Cell(DASH, nan)


def cell_of(value: object) -> Cell:
    """Return a value as a cell: a number, a text, or what is one already."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(value)
    if not isinstance(value, (int, float)) or isnan(value):
        return MISSING
    return Cell(f"{value:.0f}" if value == int(value) else f"{value:.2g}", value)


def figure(
    fraction: float, interval: Interval | None = None, *, small: bool = False, mark: str = ""
) -> Cell:
    """Return a fraction in percent, or a difference in points. mark: behind the interval."""
    if isnan(fraction):
        return MISSING
    text = f"{100 * fraction:.1f}"
    if interval:
        text += f" [{100 * interval.low:.1f}, {100 * interval.high:.1f}]{mark}"
    if small:
        text += " †"
    return Cell(text, 100 * fraction, is_small=small)


def refusals_cell(rate: Rate | None, *, with_mark: bool = True) -> Cell:
    """Return a refusal rate; marked if it is of few prompts."""
    if not rate:
        return MISSING
    small = with_mark and rate.is_small
    mark = " ‡" if rate.is_widened else ""
    return figure(rate.mean.rate, rate.interval, small=small, mark=mark)


def rate_cell(rate: Rate) -> Cell:
    """Return a refusal rate that leads to the rows behind it."""
    cell = refusals_cell(rate)
    if not cell.is_measured or rate.subset == MACRO:
        return cell
    return cell._replace(behind=Behind(rate.result.number, rate.subset.value))


def share_cell(rate: Rate | None) -> Cell:
    """Return the share of a graded class; its interval includes unscored rows."""
    if not rate:
        return MISSING
    return figure(rate.mean.rate, rate.interval)


def mean_cell(rate: Rate | None) -> Cell:
    """Return a rate whose interval leaves unscored rows out."""
    if not rate:
        return MISSING
    return figure(rate.mean.rate, rate.mean.interval, small=rate.is_small)


def gap_cell(gap: Difference | None) -> Cell:
    """Return a difference in points."""
    return figure(gap.difference, Interval(gap.low, gap.high)) if gap else MISSING


def rank_cell(standing: Standing) -> Cell:
    """Return a rank, sorted by the better one."""
    rank = standing.rank
    return Cell(str(rank), rank.best) if rank else Cell("")
