"""The tables of a report, to be looked at: in Markdown, LaTeX and on the page.

A grid has a title and columns; a cell is a text, what the page sorts by, and what stands behind it.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.tables import write_text
from orbench.base.words import SIDES
from orbench.report import columns
from orbench.report.categories import CategoryTable, category_tables
from orbench.report.cells import (
    DASH,
    MISSING,
    Cell,
    cell_of,
    figure,
    gap_cell,
    rank_cell,
    rate_cell,
    refusals_cell,
    share_cell,
)
from orbench.report.columns import Column
from orbench.report.compare import of_models
from orbench.report.measures import (
    FEW_PROMPTS,
    MACRO,
    OVERALL,
    WIDER,
    Comparison,
    Counted,
    Details,
    Published,
    Rate,
    Report,
    Standing,
    Subset,
)
from orbench.report.ranking import in_order
from orbench.report.rates import overall
from orbench.report.results import Result
from orbench.report.sentences import warnings

T = TypeVar("T")

LEGEND = (
    "Percent refused, with 95 % intervals that include unscored rows, as answers or as refusals. "
    f"† fewer than {FEW_PROMPTS} prompts. ‡ over {WIDER} times as wide because of unscored rows."
)
ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]|<>#~&$"})  # of Markdown
LONG = 12  # rows; the page folds longer tables
MANY = 7  # columns; the page sets them closer


@dataclass(frozen=True, eq=False)
class Grid:
    """A table to be looked at."""

    title: str
    columns: Sequence[Column[Any]]
    rows: Sequence[Sequence[Cell]]

    @property
    def is_dense(self) -> bool:
        """Return whether it has many columns."""
        return len(self.columns) > MANY

    @property
    def is_long(self) -> bool:
        """Return whether it has many rows."""
        return len(self.rows) > LONG

    @property
    def has_small(self) -> bool:
        """Return whether a figure is of few prompts."""
        return any(cell.is_small for row in self.rows for cell in row)

    def only(self, is_kept: Callable[[Column[Any], Sequence[Cell]], bool]) -> "Grid":
        """Return the grid with some of its columns; is_kept takes a column and its cells."""
        cells = list(zip(*self.rows, strict=True))
        places = []
        for place, column in enumerate(self.columns):
            if cells and is_kept(column, cells[place]):
                places.append(place)
        rows = [[row[place] for place in places] for row in self.rows]
        return Grid(self.title, [self.columns[place] for place in places], rows)

    @property
    def on_page(self) -> "Grid":
        """Return the grid with the columns that the page shows."""
        return self.only(_is_on_page)


def _is_on_page(column: Column[Any], cells: Sequence[Cell]) -> bool:
    is_varied = len({cell.text.lower() for cell in cells}) > 1
    return column.is_on_page and (is_varied or not column.is_if_varied)


def _is_filled(column: Column[Any], cells: Sequence[Cell]) -> bool:
    return any(cell.text not in ("", DASH) for cell in cells)


# -- columns -------------------------------------------------------------------------------------

LEADERBOARD: Sequence[Column[Standing]] = (
    Column("Rank", rank_cell),
    Column("Model", lambda standing: standing.label),
    Column("Over-refusal", lambda standing: refusals_cell(standing.safe, with_mark=False)),
    Column("Toxic rejection", lambda standing: refusals_cell(standing.toxic, with_mark=False)),
    Column("Score (J)", lambda standing: gap_cell(standing.youden)),
    Column("Judge", columns.judge_of_standing, is_if_varied=True),
    Column("Prompts", lambda standing: standing.prompts, is_if_varied=True),
)
PUBLISHED: Sequence[Column[Published]] = (
    Column("Rank", lambda published: ""),
    Column("Model", lambda published: published.model),
    Column("Over-refusal", lambda published: figure(published.over_refusal)),
    Column("Toxic rejection", lambda published: figure(published.toxic)),
    Column("Score (J)", lambda published: figure(published.score)),
    Column("Judge", lambda published: "published"),
    Column("Prompts", lambda published: published.prompts),
)


class Graded(NamedTuple):
    """An overall rate with the shares of its result, if that is graded."""

    rate: Rate
    shares: Mapping[Counted, Rate]


def _share(counted: Counted) -> Callable[[Graded], Cell]:
    """Return what shows the share of a graded class."""
    return lambda one: share_cell(one.shares.get(counted))


def _kind(counted: Counted, value: Callable[[Details], float]) -> Callable[[Graded], Cell]:
    """Return what shows how often a kind of refusal occurs; with its interval in graded results."""

    def cell(one: Graded) -> Cell:
        if one.shares:
            return share_cell(one.shares.get(counted))
        return _detail(value)(one)

    return cell


def _detail(value: Callable[[Details], float]) -> Callable[[Graded], Cell]:
    """Return what shows a share of the responses."""
    return lambda one: figure(value(one.rate.details)) if one.rate.details else MISSING


def _corrected(one: Graded) -> Cell:
    found = one.rate.result.corrected
    return figure(found.rate, found.interval) if found else MISSING


def _of_rate(column: Column[Rate]) -> Column[Graded]:
    """Return a column of results.csv for a table."""
    return Column(
        column.name,
        lambda one: column.value(one.rate),
        column.title,
        column.is_on_page,
        column.is_if_varied,
    )


MODEL = Column[Graded]("Model", lambda one: one.rate.result.label)
BY_THE_API = Column[Graded]("By the API", _kind(Counted.API, lambda details: details.api))
ONE_SIDE: Sequence[Column[Graded]] = (
    MODEL,
    Column("Rate", lambda one: rate_cell(one.rate)),
    Column("Corrected by labels", _corrected),
    _of_rate(columns.N),
    _of_rate(columns.ROWS),
    _of_rate(columns.DESIGN_EFFECT),
    _of_rate(columns.UNSCORED),
    Column("Helped", _share(Counted.HELPED)),
    Column("Partial", _share(Counted.PARTIAL)),
    Column("Safe completion", _share(Counted.SAFE_COMPLETION)),
    Column("Hedged", _share(Counted.HEDGED)),
    Column("Direct", _kind(Counted.DIRECT, lambda details: details.direct)),
    Column("Indirect", _kind(Counted.INDIRECT, lambda details: details.indirect)),
    BY_THE_API,
    Column("Refused or safe", _share(Counted.REJECTED_OR_SAFE)),
    Column("Cut off", _detail(lambda details: details.cut_off)),
    Column("Flip", _detail(lambda details: details.flips)),
    Column("Certain", lambda one: figure(one.rate.result.certain)),
    _of_rate(columns.JUDGE),
    _of_rate(columns.PROMPTS),
    _of_rate(columns.DATE),
    _of_rate(columns.NOTES),
)
BY_API: Sequence[Column[Graded]] = (
    MODEL,
    Column("Side", lambda one: one.rate.result.side.rate),
    BY_THE_API,
    _of_rate(columns.API_CATEGORIES),
    Column("After text", _detail(lambda details: details.after_text)),
    _of_rate(columns.JUDGE),
    _of_rate(columns.PROMPTS),
)
SAME_PROMPTS: Sequence[Column[Comparison]] = (
    Column("A", lambda pair: pair.a.result.short),
    Column("B", lambda pair: pair.b.result.short),
    columns.FINDING,
    columns.STANDS_IN,
    Column("A - B", lambda pair: gap_cell(pair.gap)),
    Column("Side", lambda pair: pair.a.result.side.rate),
    Column("Rate A", lambda pair: figure(pair.gap.a.rate)),
    Column("Rate B", lambda pair: figure(pair.gap.b.rate)),
    columns.N_IN_COMMON,
    columns.N_A,
    columns.N_B,
    Column("Detectable", lambda pair: figure(pair.detectable)),
    columns.P,
    columns.P_HOLM,
    columns.P_WORST,
    columns.JUDGE_OF_BOTH,
)

# -- grids ---------------------------------------------------------------------------------------


class Grids(NamedTuple):
    """The tables of the documents and of the page; some may have no rows."""

    leaderboard: Grid
    rates: list[Grid]  # a side each
    by_api: Grid
    by_category: list[Grid]
    same_prompts: Grid

    @property
    def filled(self) -> list[Grid]:
        """Return those with rows, in the order of the documents."""
        every = [self.leaderboard, *self.rates, self.by_api, *self.by_category, self.same_prompts]
        return [grid for grid in every if grid.rows]


def grid(title: str, columns: Sequence[Column[T]], items: Sequence[T]) -> Grid:
    """Return a grid without the columns in which nothing is measured."""
    return Grid(title, columns, cells_of(columns, items)).only(_is_filled)


def cells_of(columns: Sequence[Column[T]], items: Sequence[T]) -> list[list[Cell]]:
    """Return the rows of a grid."""
    return [[cell_of(column.value(item)) for column in columns] for item in items]


def grids(report: Report) -> Grids:
    """Return the tables of a report."""
    of_board = cells_of(LEADERBOARD, report.board) + cells_of(PUBLISHED, report.published)
    rates = graded(report)
    by_side = []
    for side in SIDES.values():
        of_side = [one for one in rates if one.rate.result.side == side]
        by_side.append(grid(side.rate.capitalize(), ONE_SIDE, of_side))
    by_api = [one for one in rates if one.rate.details and one.rate.details.api > 0]
    return Grids(
        leaderboard=Grid("Leaderboard", LEADERBOARD, of_board).only(_is_filled),
        rates=by_side,
        by_api=grid("Refusals by the API", BY_API, by_api),
        by_category=[_of_categories(one) for one in category_tables(report.rates, report.board)],
        same_prompts=grid(
            "Comparisons on the same prompts",
            SAME_PROMPTS,
            of_models(report.comparisons, Counted.REFUSED),
        ),
    )


def graded(report: Report) -> list[Graded]:
    """Return the overall rates with the shares of graded classes, in the leaderboard's order."""
    shares = defaultdict[int, dict[Counted, Rate]](dict)
    for rate in report.rates:
        if rate.subset == OVERALL and rate.counted is not Counted.REFUSED:
            shares[rate.result.number][rate.counted] = rate
    rates = in_order(overall(report.rates), report.board)
    return [Graded(rate, shares[rate.result.number]) for rate in rates]


def _of_categories(table: CategoryTable) -> Grid:
    """Return a row per category, a column per result."""
    shown: list[Column[Subset]] = [Column("Category", _category_name)]
    shown += [Column(result.label, _of_result(table, result)) for result in table.results]
    rows = cells_of(shown, [*table.categories, MACRO, OVERALL])
    return Grid(table.full_title, shown, rows)


def _category_name(subset: Subset) -> str:
    return subset.value or subset.kind


def _of_result(table: CategoryTable, result: Result) -> Callable[[Subset], Cell]:
    """Return what shows a result's rate in a category."""

    def cell(subset: Subset) -> Cell:
        rate = table.rates.get((result.number, subset))
        return rate_cell(rate) if rate else MISSING

    return cell


# -- documents -----------------------------------------------------------------------------------


def write_documents(output: Path, report: Report, lines: Sequence[str]) -> list[Path]:
    """Write the grids as Markdown and as LaTeX, beside `output`, and return the paths.

    lines: what to know before the figures, after the notes on results. Raises OSError.
    """
    notes = warnings(in_order(overall(report.rates), report.board))
    parts = ["# Results"]
    for line in [*notes, *lines]:
        parts.append(f"**Note:** {_escaped(line)}")
    parts.append(LEGEND)
    latex = ""
    for grid in grids(report).filled:
        texts = [[cell.text for cell in row] for row in grid.rows]
        table = DataFrame(texts, columns=[column.heading for column in grid.columns])
        caption = re.sub(r"([_%&#$])", r"\\\1", grid.title)  # pandas leaves it as it is
        latex += table.to_latex(index=False, escape=True, caption=caption)
        table = table.map(_escaped).rename(columns=_escaped)
        parts.append(f"## {_escaped(grid.title)}")
        parts.append(table.to_markdown(index=False, disable_numparse=True))
    markdown = output.with_suffix(".md")
    write_text(markdown, "\n\n".join(parts) + "\n")
    tex = output.with_suffix(".tex")
    write_text(tex, latex)
    return [markdown, tex]


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is: names come from users and models."""
    return text.translate(ESCAPES)
