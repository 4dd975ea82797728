"""The columns of a report's tables: the only place that knows their names.

A new column is a line here, and one in docs/columns.md. A column with a title stands in documents
and on the page, too. Rates are in percent, differences in percentage points.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from math import isnan, nan
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from orbench.base.words import Side
from orbench.report.measures import (
    Associated,
    Association,
    Comparison,
    Counted,
    Kind,
    Rate,
)
from orbench.report.numerals import WIDENED, interval_words
from orbench.report.results import SAFE, TOXIC
from orbench.report.sentences import finding_of, notes_of, trend_words
from orbench.report.standings import Placed, Published
from orbench.stats.intervals import Interval

T = TypeVar("T")


class Cell(NamedTuple):
    """What stands in a column for a row."""

    text: str
    value: float | None = None  # for programs and for sorting; NaN: not measured; None: the text
    rate: Rate | None = None  # whose rows the page can show
    is_small: bool = False  # of few prompts


class Shown(Enum):
    """Where a column with a title stands."""

    EVERYWHERE = 1
    IN_DOCUMENTS = 2  # no table of the page scrolls sideways
    IF_VARIED = 3  # the page leaves it out if it says the same in each row
    ONLY_VARIED = 4  # so do documents


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table, and what stands in it for a row: a cell, a number, a text, or None."""

    name: str  # in CSVs; empty: in documents alone
    source: str | Callable[[T], object]  # attributes with dots between them, or a function
    title: str = ""  # in documents and on the page; empty: in CSVs alone
    shown: Shown = Shown.EVERYWHERE

    def value(self, item: T) -> object:
        """Return what stands in it."""
        if isinstance(self.source, str):
            return attrgetter(self.source)(item)
        return self.source(item)


NOT_MEASURED = Cell("–", nan)
UNKNOWN = Interval(nan, nan)


def _percent(name: str, path: str, title: str = "") -> Column[Any]:
    """Return the column of a fraction, in percent."""
    fraction = attrgetter(path)
    return Column(name, lambda item: percent_cell(fraction(item)), title)


def _ends(
    low: str, high: str, source: str | Callable[[Any], Interval | None]
) -> tuple[Column[Any], Column[Any]]:
    """Return the columns of both ends of an interval, in CSVs alone."""
    interval = attrgetter(source) if isinstance(source, str) else source
    return (
        Column(low, lambda item: 100 * (interval(item) or UNKNOWN).low),
        Column(high, lambda item: 100 * (interval(item) or UNKNOWN).high),
    )


# -- results.csv -----------------------------------------------------------------------------------


def joined(texts: Iterable[str]) -> str:
    """Join notes and the like."""
    return "; ".join(texts)


def percent_cell(fraction: float, interval: Interval | None = None, marks: str = "") -> Cell:
    """Return a share in percent, or a difference in points."""
    if isnan(fraction):
        return NOT_MEASURED
    text = f"{100 * fraction:.1f}"
    if interval:
        text += f" {interval_words(interval)}"
    return Cell(text + marks, 100 * fraction)


def rate_cell(rate: Rate | None) -> Cell:
    """Return a rate with the interval that is shown."""
    if not rate:
        return NOT_MEASURED
    marks = WIDENED * rate.is_widened + " †" * rate.is_small
    cell = percent_cell(rate.mean.rate, rate.interval, marks)
    return cell._replace(rate=rate if can_lead(rate) else None, is_small=rate.is_small)


def can_lead(rate: Rate) -> bool:
    """Return whether the page can show the rows behind a rate."""
    return rate.counted is Counted.REFUSED and rate.subset.kind in (Kind.OVERALL, Kind.CATEGORY)


# What rate it is: the overall rates in results.json are all alike in this.
OF_SUBSETS: tuple[Column[Rate], ...] = (
    Column("subset", "subset.kind"),
    Column("value", "subset.value", "Subset", Shown.ONLY_VARIED),
    Column("category", "subset.category", "Category", Shown.ONLY_VARIED),
    Column("counted", "counted", "Counted", Shown.ONLY_VARIED),
)
UNPAIRED = Column[Rate](
    "unpaired", lambda rate: rate.unpaired if rate.subset.kind is Kind.PAIRS else None, "Unpaired"
)
RATES: tuple[Column[Rate], ...] = (
    Column("", "result.label", "Model"),
    Column("model", "result.model"),
    Column("settings", "result.settings"),
    Column("side", "side.name", "Side", Shown.ONLY_VARIED),
    *OF_SUBSETS,
    Column("rate_percent", rate_cell, "Rate"),
    *_ends("low_percent", "high_percent", "mean.interval"),
    *_ends("low_all_percent", "high_all_percent", "with_unscored"),
    Column(
        "corrected_percent",
        lambda rate: percent_cell(*rate.details.corrected),
        "Corrected by labels",
    ),
    *_ends("corrected_low_percent", "corrected_high_percent", "details.corrected.interval"),
    Column("n", "n", "n"),
    Column("rows", "mean.rows", "Rows", Shown.IN_DOCUMENTS),
    Column("design_effect", "mean.design_effect", "Design effect", Shown.IN_DOCUMENTS),
    Column("unscored", "unscored", "Unscored"),
    _percent("direct_percent", "details.direct", "Direct"),
    _percent("indirect_percent", "details.indirect", "Indirect"),
    _percent("api_percent", "details.api", "By the API"),
    Column("api_categories", "details.api_categories", "Category: responses"),
    _percent("after_text_percent", "details.after_text", "After text"),
    _percent("cut_off_percent", "details.cut_off", "Cut off"),
    _percent("flip_percent", "details.flips", "Flip"),
    _percent("certain_percent", "details.certain", "Certain"),
    UNPAIRED,
    Column("judge", "result.judge", "Judge", Shown.IF_VARIED),
    Column("judge_version", "result.judge_version"),
    Column("prompts", "result.prompts", "Prompts", Shown.IF_VARIED),
    Column("prompt_set", "result.prompt_set"),
    Column("family", "result.family"),
    Column("date", "result.date", "Date", Shown.IN_DOCUMENTS),
    Column("notes", lambda rate: joined(notes_of(rate)), "Notes", Shown.IN_DOCUMENTS),
)

# -- comparison.csv --------------------------------------------------------------------------------


COMPARISONS: tuple[Column[Comparison], ...] = (
    Column("", "a.result.short", "A"),
    Column("", "b.result.short", "B"),
    Column("compared", "kind"),
    Column("model_a", "a.result.model"),
    Column("settings_a", "a.result.settings"),
    Column("model_b", "b.result.model"),
    Column("settings_b", "b.result.settings"),
    Column("side", "a.side.name"),
    Column("subset", "a.subset.kind"),
    Column("value", "a.subset.value", "Subset", Shown.ONLY_VARIED),
    Column("category", "a.subset.category", "Category", Shown.ONLY_VARIED),
    Column("counted", "a.counted"),
    Column("finding", finding_of, "Finding"),
    Column("stands_in", "robustness", "Stands in"),
    Column(
        "difference_points",
        lambda pair: percent_cell(pair.gap.difference, pair.gap.interval),
        "A - B",
    ),
    *_ends("low_points", "high_points", "gap.interval"),
    Column("", "a.side.rate", "Side"),
    _percent("rate_a_percent", "gap.a.rate", "Rate A"),
    _percent("rate_b_percent", "gap.b.rate", "Rate B"),
    Column("n", "gap.a.prompts", "n"),
    Column("n_a", "a.n", "n A", Shown.IN_DOCUMENTS),
    Column("n_b", "b.n", "n B", Shown.IN_DOCUMENTS),
    _percent("detectable_points", "detectable", "Detectable"),
    Column("p", "gap.p", "p", Shown.IN_DOCUMENTS),
    Column("p_holm", "p_adjusted", "p (Holm)"),
    Column("p_worst", "p_worst", "p (worst case)"),
    Column("judge", "judge", "Judge", Shown.IF_VARIED),
    Column("prompts_a", "a.result.prompts", "Prompts A", Shown.ONLY_VARIED),
    Column("prompts_b", "b.result.prompts", "Prompts B", Shown.ONLY_VARIED),
)

# -- associations.csv ------------------------------------------------------------------------------


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


def _trend(found: Association) -> str:
    return trend_words(found) if found.kind is Associated.TREND else ""


ASSOCIATIONS: tuple[Column[Association], ...] = (
    Column("", "result.label", "Model"),
    Column("associated", "kind"),
    Column("model", "result.model"),
    Column("settings", "result.settings"),
    Column("against", lambda found: found.against and found.against.label, "Against"),
    Column("side", lambda found: found.result.side.name, "Side", Shown.ONLY_VARIED),
    Column("trend", _trend, "Trend"),
    Column("value", "value", "Tiers or word"),
    Column("goes_with", _goes_with, "Goes with"),
    Column("n", "n", "n"),
    Column("refused", "refused", "Refused"),
    Column("answered", "answered", "Answered"),
    Column("estimate", _estimate, "Estimate"),
    *_ends("low", "high", "interval"),
    _percent("higher_percent", "higher"),
    _percent("lower_percent", "lower"),
    Column("z", "z"),
    Column("p", "p"),
    Column("p_adjusted", "p_adjusted", "p (adjusted)"),
    Column("p_worst", "p_worst", "p (worst case)"),
    Column("example_1", _example(0), "Example 1"),
    Column("example_2", _example(1), "Example 2"),
    Column("example_3", _example(2)),
    Column("judge", "result.judge", "Judge", Shown.IF_VARIED),
    Column("prompts", "result.prompts", "Prompts", Shown.IF_VARIED),
)

# -- leaderboard.csv -------------------------------------------------------------------------------


def _placed(row: Placed, side: Side) -> Cell:
    """Return the rate of a side; published models have no interval."""
    if isinstance(row, Published):
        return percent_cell(row.rate(side))
    return rate_cell(row.on(side))


def _unscored(row: Placed, side: Side) -> Interval | None:
    """Return the interval that includes unscored rows."""
    rate = None if isinstance(row, Published) else row.on(side)
    return rate.with_unscored if rate else None


def _youden(row: Placed) -> Cell:
    """Return Youden's J."""
    if isinstance(row, Published):
        return percent_cell(row.score)
    if not row.youden:
        return NOT_MEASURED
    return percent_cell(row.youden.difference, row.youden.interval)


RANK = Column[Placed]("rank", lambda row: str(row.rank or ""), "Rank")
SCORE = _percent("score", "score")
BOARD: tuple[Column[Placed], ...] = (
    RANK,
    Column("", "result.label", "Model"),
    Column("model", "result.model"),
    Column("settings", "result.settings"),
    SCORE,
    Column("over_refusal_percent", lambda row: _placed(row, SAFE), "Over-refusal"),
    *_ends(
        "over_refusal_low_percent",
        "over_refusal_high_percent",
        lambda row: _unscored(row, SAFE),
    ),
    Column("toxic_percent", lambda row: _placed(row, TOXIC), "Toxic rejection"),
    *_ends("toxic_low_percent", "toxic_high_percent", lambda row: _unscored(row, TOXIC)),
    Column("", _youden, "Score (J)"),
    Column("judge", "result.judge", "Judge", Shown.IF_VARIED),
    Column("prompts", "result.prompts", "Prompts", Shown.IF_VARIED),
)
