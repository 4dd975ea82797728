"""The columns of a report's tables: the only place that knows their names.

A new column is a line here, and one in docs/columns.md. A column with a title stands in documents
and on the page, too. Rates are in percent, differences in percentage points.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import isnan, nan
from typing import Any, NamedTuple

from orbench.report.measures import (
    Associated,
    Association,
    ByLabels,
    Counted,
    Kind,
    Rate,
)
from orbench.report.numerals import WIDENED
from orbench.report.sentences import finding_of, notes_of, trend_words
from orbench.stats.core import Difference
from orbench.stats.intervals import Interval


class Cell(NamedTuple):
    """What stands in a column for a row."""

    text: str  # for people
    value: float | str | None  # for programs and for sorting; None: not measured
    rate: Rate | None = None  # whose rows the page can show
    is_small: bool = False  # of few prompts


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
    if isinstance(value, (int, float)):
        return Cell(f"{value:.0f}" if value == int(value) else f"{value:.2g}", value)
    text = str(value)
    return Cell(text, text)


class Shown(Enum):
    """Where a column with a title stands."""

    EVERYWHERE = 1
    IN_DOCUMENTS = 2  # no table of the page scrolls sideways
    IF_VARIED = 3  # the page leaves it out if it says the same in each row
    ONLY_VARIED = 4  # so do documents


@dataclass(frozen=True)
class Column:
    """A column of a table, and what stands in it for a row: a cell, a number, a text, or None."""

    name: str  # in CSVs; empty: in documents alone
    source: str | Callable[[Any], object]  # attributes with dots between them, or a function
    title: str = ""  # in documents and on the page; empty: in CSVs alone
    shown: Shown = Shown.EVERYWHERE

    def value(self, item: Any) -> Any:
        """Return what the source says; NaN if there is no such thing."""
        if not isinstance(self.source, str):
            return self.source(item)
        for name in self.source.split("."):
            item = getattr(item, name, nan)
        return item

    def cell(self, item: Any) -> Cell:
        """Return what stands in it."""
        return cell_of(self.value(item))


class Share(Column):
    """The column of a fraction, in percent."""

    def cell(self, item: Any) -> Cell:
        """Return the fraction in percent."""
        value = self.value(item)
        return percent_cell(value) if isinstance(value, float) else cell_of(value)


# In every table but comparison.csv.
MODEL = (
    Column("", "result.label", "Model"),
    Column("model", "result.model"),
    Column("settings", "result.settings"),
)
JUDGE = Column("judge", "result.judge", "Judge", Shown.IF_VARIED)
PROMPTS = Column("prompts", "result.prompts", "Prompts", Shown.IF_VARIED)

# -- results.csv -----------------------------------------------------------------------------------


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
    return cell._replace(rate=rate if can_lead(rate) else None, is_small=rate.is_small)


def can_lead(rate: Rate) -> bool:
    """Return whether the page can show the rows behind a rate."""
    return rate.counted is Counted.REFUSED and rate.subset.kind in (Kind.OVERALL, Kind.CATEGORY)


RATES = (
    *MODEL,
    Column("side", "side.name", "Side", Shown.ONLY_VARIED),
    Column("subset", "subset.kind"),
    Column("value", "subset.value", "Subset", Shown.ONLY_VARIED),
    Column("category", "subset.category", "Category", Shown.ONLY_VARIED),
    Column("counted", "counted", "Counted", Shown.ONLY_VARIED),
    Column("rate_percent", rate_cell, "Rate"),
    Share("low_percent", "mean.interval.low"),
    Share("high_percent", "mean.interval.high"),
    Share("low_all_percent", "with_unscored.low"),
    Share("high_all_percent", "with_unscored.high"),
    Column(
        "corrected_percent",
        lambda rate: percent_cell(*rate.details.corrected),
        "Corrected by labels",
    ),
    Share("corrected_low_percent", "details.corrected.interval.low"),
    Share("corrected_high_percent", "details.corrected.interval.high"),
    Column("n", "n", "n"),
    Column("rows", "mean.rows", "Rows", Shown.IN_DOCUMENTS),
    Column("design_effect", "mean.design_effect", "Design effect", Shown.IN_DOCUMENTS),
    Column("unscored", "unscored", "Unscored"),
    Share("direct_percent", "details.direct", "Direct"),
    Share("indirect_percent", "details.indirect", "Indirect"),
    Share("api_percent", "details.api", "By the API"),
    Column("api_categories", "details.api_categories", "Category: responses"),
    Share("after_text_percent", "details.after_text", "After text"),
    Share("cut_off_percent", "details.cut_off", "Cut off"),
    Share("flip_percent", "details.flips", "Flip"),
    Share("certain_percent", "details.certain", "Certain"),
    Column("unpaired", "unpaired", "Unpaired"),
    JUDGE,
    Column("judge_version", "result.judge_version"),
    PROMPTS,
    Column("prompt_set", "result.prompt_set"),
    Column("family", "result.family"),
    Column("date", "result.date", "Date", Shown.IN_DOCUMENTS),
    Column("notes", lambda rate: "; ".join(notes_of(rate)), "Notes", Shown.IN_DOCUMENTS),
)

# -- comparison.csv --------------------------------------------------------------------------------


COMPARISONS = (
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
    Column("within_points", "within"),
    Column("stands_in", "robustness", "Stands in"),
    Column("difference_points", "gap", "A - B"),
    Share("low_points", "gap.interval.low"),
    Share("high_points", "gap.interval.high"),
    Column("corrected_points", "by_labels", "By labels"),
    Share("corrected_low_points", "by_labels.interval.low"),
    Share("corrected_high_points", "by_labels.interval.high"),
    Column("labeled", "by_labels.prompts"),
    Column("", "a.side.rate", "Side"),
    Share("rate_a_percent", "gap.a.rate", "Rate A"),
    Share("rate_b_percent", "gap.b.rate", "Rate B"),
    Column("n", "gap.a.prompts", "n"),
    Column("n_a", "a.n", "n A", Shown.IN_DOCUMENTS),
    Column("n_b", "b.n", "n B", Shown.IN_DOCUMENTS),
    Share("detectable_points", "detectable", "Detectable"),
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


ASSOCIATIONS = (
    Column("associated", "kind"),
    *MODEL,
    Column("against", "against.label", "Against"),
    Column("side", "result.side.name", "Side", Shown.ONLY_VARIED),
    Column("trend", trend_words, "Trend"),
    Column("value", "value", "Tiers or word"),
    Column("goes_with", _goes_with, "Goes with"),
    Column("n", "n", "n"),
    Column("refused", "refused", "Refused"),
    Column("answered", "answered", "Answered"),
    Column("estimate", _estimate, "Estimate"),
    Share("low", "interval.low"),
    Share("high", "interval.high"),
    Share("higher_percent", "higher"),
    Share("lower_percent", "lower"),
    Column("z", "z"),
    Column("p", "p"),
    Column("p_adjusted", "p_adjusted", "p (adjusted)"),
    Column("p_worst", "p_worst", "p (worst case)"),
    Column("example_1", _example(0), "Example 1"),
    Column("example_2", _example(1), "Example 2"),
    Column("example_3", _example(2)),
    JUDGE,
    PROMPTS,
)

# -- leaderboard.csv -------------------------------------------------------------------------------


RANK = Column("rank", "rank", "Rank")
SCORE = Share("score", "score")
BOARD = (
    RANK,
    *MODEL,
    SCORE,
    Share("over_refusal_percent", "safe", "Over-refusal"),
    Share("over_refusal_low_percent", "safe.with_unscored.low"),
    Share("over_refusal_high_percent", "safe.with_unscored.high"),
    Share("toxic_percent", "toxic", "Toxic rejection"),
    Share("toxic_low_percent", "toxic.with_unscored.low"),
    Share("toxic_high_percent", "toxic.with_unscored.high"),
    Share("", "youden", "Score (J)"),
    JUDGE,
    PROMPTS,
)
