"""The columns of a report's tables, which columns.toml lists, and what stands in them.

Rates are in percent, differences in percentage points.
"""

from collections.abc import Callable
from enum import StrEnum
from math import isnan, nan
from typing import Any, NamedTuple

from orbench.base.toml_files import toml_beside
from orbench.report.measures import (
    WIDENED,
    Associated,
    Association,
    Counted,
    Kind,
    Rate,
)
from orbench.report.sentences import finding_of, notes_of, trend_words
from orbench.stats.core import Difference
from orbench.stats.intervals import Interval
from orbench.stats.labels import ByLabels


class Cell(NamedTuple):
    """What stands in a column for a row."""

    text: str  # for people
    value: float | str | None  # for programs and for sorting; None: not measured
    rate: Rate | None = None  # whose rows the page can show


SMALLEST = 0.001  # p value that is shown
NOT_MEASURED = Cell("–", None)


def cell_of(value: object) -> Cell:
    """Return a value as a cell; rates and differences are in percent, with their interval."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, Rate):
        return rate_cell(value)
    if isinstance(value, (Difference, ByLabels)):
        return percent_cell(value.difference, value.interval)
    if value is None or value != value:  # NaN alone differs from itself
        return NOT_MEASURED
    if isinstance(value, float) and 0 <= value < SMALLEST:
        return Cell(f"< {SMALLEST}", value)
    if isinstance(value, (int, float)):
        return Cell(f"{value:,.0f}" if value == int(value) else f"{value:.2g}", value)
    text = str(value)
    return Cell(text, text)


class Shown(StrEnum):
    """Where a column with a title stands."""

    EVERYWHERE = "everywhere"
    IN_DOCUMENTS = "in documents"  # no table of the page scrolls sideways
    IF_VARIED = "if varied"  # the page leaves it out if it says the same in each row
    ONLY_VARIED = "only varied"  # so do documents
    PROMPT = "prompt"  # a text that --no_responses leaves out of the page


class Column(NamedTuple):
    """A column of a table, and what stands in it for a row: a cell, a number, a text, or None."""

    name: str  # in CSVs; empty: in documents alone
    source: str  # attributes with dots between them, or a key of COMPUTED
    title: str = ""  # in documents and on the page; empty: in CSVs alone
    shown: Shown = Shown.EVERYWHERE
    percent: bool = False  # whether a number is a fraction, to be shown in percent

    def cell(self, item: Any) -> Cell:
        """Return what stands in it; what the item does not have is not measured."""
        value = item
        if self.source in COMPUTED:
            value = COMPUTED[self.source](item)
        else:
            for name in self.source.split("."):
                value = getattr(value, name, nan)
        if self.percent and isinstance(value, float):
            return percent_cell(value)
        return cell_of(value)


def percent_cell(fraction: float, interval: Interval | None = None, marks: str = "") -> Cell:
    """Return a share in percent, or a difference in points."""
    if isnan(fraction):
        return NOT_MEASURED
    text = f"{100 * fraction:.1f}"
    if interval:
        text += f" {interval}"
    return Cell(text + marks, 100 * fraction)


def rate_cell(rate: Rate) -> Cell:
    """Return a rate with the interval that is shown."""
    marks = WIDENED * rate.is_widened + " †" * rate.is_small
    cell = percent_cell(rate.mean.rate, rate.interval, marks)
    return cell._replace(rate=rate if can_lead(rate) else None)


def can_lead(rate: Rate) -> bool:
    """Return whether the page can show the rows behind a rate."""
    return rate.counted is Counted.REFUSED and rate.subset.kind in (Kind.OVERALL, Kind.CATEGORY)


def _estimate(found: Association) -> object:
    """Return a trend in points, an AUC in percent; log-odds stay what they are."""
    if found.kind is Associated.WORD:
        return found.estimate
    return percent_cell(found.estimate, found.interval)


def _goes_with(found: Association) -> str:
    """Return what a word goes with: refused or answered prompts."""
    if found.kind is not Associated.WORD:
        return ""
    return "refused" if found.z > 0 else "answered"


def _example(number: int) -> Callable[[Association], object]:
    """Return what gets a prompt with a word, from 0."""
    return lambda found: dict(enumerate(found.examples)).get(number)


# What columns.toml names beside attributes.
COMPUTED: dict[str, Callable[[Any], object]] = {
    "rate": rate_cell,
    "corrected": lambda rate: percent_cell(*rate.details.corrected),
    "notes": lambda rate: "; ".join(notes_of(rate)),
    "finding": finding_of,
    "trend": trend_words,
    "goes_with": _goes_with,
    "estimate": _estimate,
    "example_1": _example(0),
    "example_2": _example(1),
    "example_3": _example(2),
}
TABLES = toml_beside(__file__)


def _table(name: str) -> list[Column]:
    """Return the columns of a table of columns.toml."""
    return [Column(**entry) for entry in TABLES[name]]


RATES = _table("results")
COMPARISONS = _table("comparison")
ASSOCIATIONS = _table("associations")
BOARD = _table("leaderboard")
