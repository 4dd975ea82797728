"""The columns of a report's tables: the only place that knows their names.

A new column is a line here, and one in docs/columns.md. A column with a title stands in documents
and on the page, too. Rates are in percent, differences in percentage points.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from math import nan
from typing import Generic, NamedTuple, TypeVar

from orbench.base.words import Side
from orbench.report.measures import (
    OVERALL,
    Associated,
    Association,
    Comparison,
    Counted,
    Details,
    Kind,
    Rate,
)
from orbench.report.results import SAFE, TOXIC
from orbench.report.sentences import finding_of, notes_of, trend_words
from orbench.report.standings import Published, Standing
from orbench.stats.intervals import Interval

T = TypeVar("T")
Placed = Standing | Published  # a row of the leaderboard


class Behind(NamedTuple):
    """The rows behind a figure."""

    result: int
    category: str  # empty: all


class Figure(NamedTuple):
    """A share or a difference: CSVs hold it times 100, documents with its interval."""

    fraction: float
    interval: Interval | None = None
    is_small: bool = False  # of few prompts
    is_widened: bool = False  # by unscored rows
    behind: Behind | None = None


class Shown(Enum):
    """Where a column with a title stands."""

    EVERYWHERE = 1
    IN_DOCUMENTS = 2  # no table of the page scrolls sideways
    IF_VARIED = 3  # the page leaves it out if it says the same in each row
    ONLY_VARIED = 4  # so do documents


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table, and what stands in it for a row: a number, a text, a figure, or None."""

    name: str  # in CSVs; empty: in documents alone
    value: Callable[[T], object]
    title: str = ""  # in documents and on the page; empty: in CSVs alone
    shown: Shown = Shown.EVERYWHERE


UNKNOWN = Interval(nan, nan)


def _ends(
    low: str, high: str, interval: Callable[[T], Interval | None]
) -> tuple[Column[T], Column[T]]:
    """Return the columns of both ends of an interval, in CSVs alone."""
    return (
        Column(low, lambda item: 100 * (interval(item) or UNKNOWN).low),
        Column(high, lambda item: 100 * (interval(item) or UNKNOWN).high),
    )


# -- results.csv -----------------------------------------------------------------------------------


def joined(texts: Iterable[str]) -> str:
    """Join notes and the like."""
    return "; ".join(texts)


def can_lead(rate: Rate) -> bool:
    """Return whether the page can show the rows behind a rate."""
    return rate.counted is Counted.REFUSED and rate.subset.kind in (Kind.OVERALL, Kind.CATEGORY)


def rate_figure(rate: Rate | None) -> Figure:
    """Return a rate with the interval that is shown."""
    if not rate:
        return Figure(nan)
    behind = None
    if can_lead(rate):
        behind = Behind(rate.result.number, rate.subset.value)
    return Figure(rate.mean.rate, rate.interval, rate.is_small, rate.is_widened, behind)


def corrected_figure(rate: Rate) -> Figure:
    """Return the rate by people's labels, of overall rates."""
    if rate.result.corrected and is_overall(rate):
        return Figure(*rate.result.corrected)
    return Figure(nan)


def is_overall(rate: Rate) -> bool:
    """Return whether it is the refusal rate over all prompts."""
    return rate.subset == OVERALL and rate.counted is Counted.REFUSED


def _certain(rate: Rate) -> Figure:
    """Return the share of the rules' verdicts that are certain, of overall rates."""
    return Figure(rate.result.certain if is_overall(rate) else nan)


def _share(value: Callable[[Details], float]) -> Callable[[Rate], Figure]:
    """Return what gets a share of the responses; rates without details have none."""
    return lambda rate: Figure(value(rate.details) if rate.details else nan)


def _api_categories(rate: Rate) -> str:
    """Return how often an API named which category: `cyber 12, bio 3`."""
    named = rate.details.api_categories if rate.details else {}
    counts = [f"{name} {rows}" for name, rows in named.items()]
    return ", ".join(counts)


def _unpaired(rate: Rate) -> int | None:
    """Return the number of prompts without a partner, of pairs."""
    return rate.unpaired if rate.subset.kind is Kind.PAIRS else None


# What rate it is: the overall rates in results.json are all alike in this.
OF_SUBSETS: tuple[Column[Rate], ...] = (
    Column("subset", lambda rate: rate.subset.kind),
    Column("value", lambda rate: rate.subset.value, "Subset", Shown.ONLY_VARIED),
    Column("category", lambda rate: rate.subset.category, "Category", Shown.ONLY_VARIED),
    Column("counted", lambda rate: rate.counted, "Counted", Shown.ONLY_VARIED),
)
UNPAIRED = Column[Rate]("unpaired", _unpaired, "Unpaired")
RATES: tuple[Column[Rate], ...] = (
    Column("", lambda rate: rate.result.label, "Model"),
    Column("model", lambda rate: rate.result.model),
    Column("settings", lambda rate: rate.result.settings),
    Column("side", lambda rate: rate.side.name, "Side", Shown.ONLY_VARIED),
    *OF_SUBSETS,
    Column("rate_percent", rate_figure, "Rate"),
    *_ends("low_percent", "high_percent", lambda rate: rate.mean.interval),
    *_ends("low_all_percent", "high_all_percent", lambda rate: rate.with_unscored),
    Column("corrected_percent", corrected_figure, "Corrected by labels"),
    *_ends(
        "corrected_low_percent",
        "corrected_high_percent",
        lambda rate: corrected_figure(rate).interval,
    ),
    Column("n", lambda rate: rate.n, "n"),
    Column("rows", lambda rate: rate.mean.rows, "Rows", Shown.IN_DOCUMENTS),
    Column(
        "design_effect", lambda rate: rate.mean.design_effect, "Design effect", Shown.IN_DOCUMENTS
    ),
    Column("unscored", lambda rate: rate.unscored, "Unscored"),
    Column("direct_percent", _share(lambda details: details.direct), "Direct"),
    Column("indirect_percent", _share(lambda details: details.indirect), "Indirect"),
    Column("api_percent", _share(lambda details: details.api), "By the API"),
    Column("api_categories", _api_categories, "Category: responses"),
    Column("after_text_percent", _share(lambda details: details.after_text), "After text"),
    Column("cut_off_percent", _share(lambda details: details.cut_off), "Cut off"),
    Column("flip_percent", _share(lambda details: details.flips), "Flip"),
    Column("certain_percent", _certain, "Certain"),
    UNPAIRED,
    Column("judge", lambda rate: rate.result.judge, "Judge", Shown.IF_VARIED),
    Column("judge_version", lambda rate: rate.result.judge_version),
    Column("prompts", lambda rate: rate.result.prompts, "Prompts", Shown.IF_VARIED),
    Column("prompt_set", lambda rate: rate.result.prompt_set),
    Column("family", lambda rate: rate.result.family),
    Column("date", lambda rate: rate.result.date, "Date", Shown.IN_DOCUMENTS),
    Column("notes", lambda rate: joined(notes_of(rate)), "Notes", Shown.IN_DOCUMENTS),
)

# -- comparison.csv --------------------------------------------------------------------------------


def _stands_in(comparison: Comparison) -> str:
    """Return in how many analyses a finding stands: `14 of 16`."""
    found = comparison.robustness
    return f"{found.held} of {found.analyses}" if found else ""


COMPARISONS: tuple[Column[Comparison], ...] = (
    Column("", lambda pair: pair.a.result.short, "A"),
    Column("", lambda pair: pair.b.result.short, "B"),
    Column("compared", lambda pair: pair.family.kind),
    Column("model_a", lambda pair: pair.a.result.model),
    Column("settings_a", lambda pair: pair.a.result.settings),
    Column("model_b", lambda pair: pair.b.result.model),
    Column("settings_b", lambda pair: pair.b.result.settings),
    Column("side", lambda pair: pair.a.side.name),
    Column("subset", lambda pair: pair.a.subset.kind),
    Column("value", lambda pair: pair.a.subset.value, "Subset", Shown.ONLY_VARIED),
    Column("category", lambda pair: pair.a.subset.category, "Category", Shown.ONLY_VARIED),
    Column("counted", lambda pair: pair.a.counted),
    Column("finding", finding_of, "Finding"),
    Column("stands_in", _stands_in, "Stands in"),
    Column(
        "difference_points", lambda pair: Figure(pair.gap.difference, pair.gap.interval), "A - B"
    ),
    *_ends("low_points", "high_points", lambda pair: pair.gap.interval),
    Column("", lambda pair: pair.a.side.rate, "Side"),
    Column("rate_a_percent", lambda pair: Figure(pair.gap.a.rate), "Rate A"),
    Column("rate_b_percent", lambda pair: Figure(pair.gap.b.rate), "Rate B"),
    Column("n", lambda pair: pair.gap.a.prompts, "n"),
    Column("n_a", lambda pair: pair.a.n, "n A", Shown.IN_DOCUMENTS),
    Column("n_b", lambda pair: pair.b.n, "n B", Shown.IN_DOCUMENTS),
    Column("detectable_points", lambda pair: Figure(pair.detectable), "Detectable"),
    Column("p", lambda pair: pair.gap.p, "p", Shown.IN_DOCUMENTS),
    Column("p_holm", lambda pair: pair.p_holm, "p (Holm)"),
    Column("p_worst", lambda pair: pair.p_worst, "p (worst case)"),
    Column("judge", lambda pair: pair.judge, "Judge", Shown.IF_VARIED),
    Column("prompts_a", lambda pair: pair.a.result.prompts, "Prompts A", Shown.ONLY_VARIED),
    Column("prompts_b", lambda pair: pair.b.result.prompts, "Prompts B", Shown.ONLY_VARIED),
)

# -- associations.csv ------------------------------------------------------------------------------


def _estimate(found: Association) -> object:
    """Return a trend in points, an AUC in percent; log-odds stay what they are."""
    if found.kind is Associated.WORD:
        return found.estimate
    return Figure(found.estimate, found.interval)


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
    Column("", lambda found: found.result.label, "Model"),
    Column("associated", lambda found: found.kind),
    Column("model", lambda found: found.result.model),
    Column("settings", lambda found: found.result.settings),
    Column("against", lambda found: found.against and found.against.label, "Against"),
    Column("side", lambda found: found.result.side.name, "Side", Shown.ONLY_VARIED),
    Column("trend", _trend, "Trend"),
    Column("value", lambda found: found.value, "Tiers or word"),
    Column("goes_with", _goes_with, "Goes with"),
    Column("n", lambda found: found.n, "n"),
    Column("refused", lambda found: found.refused, "Refused"),
    Column("answered", lambda found: found.answered, "Answered"),
    Column("estimate", _estimate, "Estimate"),
    *_ends("low", "high", lambda found: found.interval),
    Column("higher_percent", lambda found: 100 * found.higher),
    Column("lower_percent", lambda found: 100 * found.lower),
    Column("z", lambda found: found.z),
    Column("p", lambda found: found.p),
    Column("p_adjusted", lambda found: found.p_adjusted, "p (adjusted)"),
    Column("p_worst", lambda found: found.p_worst, "p (worst case)"),
    Column("example_1", _example(0), "Example 1"),
    Column("example_2", _example(1), "Example 2"),
    Column("example_3", _example(2)),
    Column("judge", lambda found: found.result.judge, "Judge", Shown.IF_VARIED),
    Column("prompts", lambda found: found.result.prompts, "Prompts", Shown.IF_VARIED),
)

# -- leaderboard.csv -------------------------------------------------------------------------------


def _placed(row: Placed, side: Side) -> Figure:
    """Return the rate of a side; published models have no interval."""
    if isinstance(row, Published):
        return Figure(row.toxic if side.is_toxic else row.over_refusal)
    return rate_figure(row.on(side))._replace(is_small=False, behind=None)


def _unscored(row: Placed, side: Side) -> Interval | None:
    """Return the interval that includes unscored rows."""
    rate = None if isinstance(row, Published) else row.on(side)
    return rate.with_unscored if rate else None


def _youden(row: Placed) -> Figure:
    """Return Youden's J."""
    if isinstance(row, Published):
        return Figure(row.score)
    return Figure(row.youden.difference, row.youden.interval) if row.youden else Figure(nan)


RANK = Column[Placed]("rank", lambda row: str(row.rank or ""), "Rank")
SCORE = Column[Placed]("score", lambda row: 100 * row.score)
BOARD: tuple[Column[Placed], ...] = (
    RANK,
    Column("", lambda row: row.label, "Model"),
    Column("model", lambda row: row.model),
    Column("settings", lambda row: row.settings),
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
    Column("judge", lambda row: row.judge, "Judge", Shown.IF_VARIED),
    Column("prompts", lambda row: row.prompts, "Prompts", Shown.IF_VARIED),
)
