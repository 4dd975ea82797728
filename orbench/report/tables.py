"""The tables of a report: as CSVs for programs; in Markdown, LaTeX and on the page for people.

A grid has a title and columns; a cell is a text, what the page sorts by, and what stands behind it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.tables import write_csv, write_text
from orbench.base.words import SIDES
from orbench.report.categories import CategoryTable, category_tables
from orbench.report.columns import (
    ASSOCIATIONS,
    BOARD,
    COMPARISONS,
    NOT_MEASURED,
    RATES,
    Cell,
    Column,
    Shown,
    rate_cell,
)
from orbench.report.compare import of_models
from orbench.report.measures import FEW_PROMPTS, MACRO, OVERALL, WIDER, Counted, Rate, Subset
from orbench.report.ranking import in_order
from orbench.report.rates import on_side, overall
from orbench.report.results import Result
from orbench.report.sentences import warnings
from orbench.report.standings import Placed, Report

T = TypeVar("T")

CSVS = ("results", "comparison", "associations", "leaderboard")
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

    @property
    def on_page(self) -> "Grid":
        """Return the grid with the columns that the page shows."""
        return self.only(_is_on_page)

    def only(self, is_kept: Callable[[Column[Any], Sequence[Cell]], bool]) -> "Grid":
        """Return the grid with some of its columns; is_kept takes a column and its cells."""
        cells = zip(*self.rows, strict=True)
        kept = [*map(is_kept, self.columns, cells)]
        rows = [[*compress(row, kept)] for row in self.rows]
        return Grid(self.title, [*compress(self.columns, kept)], rows)


def _is_on_page(column: Column[Any], cells: Sequence[Cell]) -> bool:
    if column.shown is Shown.IF_VARIED:
        return _is_varied(cells)
    return column.shown is not Shown.IN_DOCUMENTS


def _is_in_documents(column: Column[Any], cells: Sequence[Cell]) -> bool:
    if column.shown is Shown.ONLY_VARIED:
        return _is_varied(cells)
    return any(cell.text not in ("", NOT_MEASURED.text) for cell in cells)


def _is_varied(cells: Sequence[Cell]) -> bool:
    return len({cell.text.lower() for cell in cells}) > 1


# -- grids ---------------------------------------------------------------------------------------


class Grids(NamedTuple):
    """The tables of the documents, in their order, and of the page; some may have no rows."""

    leaderboard: list[Grid]
    rates: list[Grid]  # a side each
    shares: list[Grid]  # of graded classes
    by_api: list[Grid]
    by_category: list[Grid]
    same_prompts: list[Grid]


def grids(report: Report) -> Grids:
    """Return the tables of a report."""
    rates = in_order(overall(report.rates), report.board)
    by_side = []
    for side in SIDES.values():
        by_side.append(grid(side.rate.capitalize(), RATES, on_side(side, rates)))
    compared = of_models(report.comparisons, Counted.REFUSED)
    by_api = [rate for rate in rates if rate.details.api > 0]
    return Grids(
        [grid("Leaderboard", BOARD, placed(report))],
        by_side,
        [grid("Shares of graded responses", RATES, shares_of(report))],
        [grid("Refusals by the API", RATES, by_api)],
        [_of_categories(one) for one in category_tables(report.rates, report.board)],
        [grid("Comparisons on the same prompts", COMPARISONS, compared)],
    )


def placed(report: Report) -> list[Placed]:
    """Return the rows of the leaderboard, published models last."""
    return [*report.board, *report.published]


def shares_of(report: Report) -> list[Rate]:
    """Return the shares of graded classes over all prompts, in the leaderboard's order."""
    whole = [rate for rate in report.rates if rate.subset == OVERALL]
    return [one for one in in_order(whole, report.board) if one.counted is not Counted.REFUSED]


def grid(title: str, columns: Sequence[Column[T]], items: Sequence[T]) -> Grid:
    """Return a grid of the columns with a title, without those in which nothing is measured."""
    titled = [column for column in columns if column.title]
    rows = [[cell_of(column.value(item)) for column in titled] for item in items]
    return Grid(title, titled, rows).only(_is_in_documents)


def known(value: object) -> object:
    """Return a value as programs take it: a number, a text; None for what was not measured."""
    if isinstance(value, Cell):
        value = value.value
    return None if value != value else value  # NaN alone differs from itself


def cell_of(value: object) -> Cell:
    """Return a value as a cell."""
    if isinstance(value, Cell):
        return value
    number = known(value)
    if number is None:
        return NOT_MEASURED
    if isinstance(number, (int, float)):
        return Cell(f"{number:.0f}" if number == int(number) else f"{number:.2g}", number)
    return Cell(str(value))


def _of_categories(table: CategoryTable) -> Grid:
    """Return a row per category, a column per result."""
    columns = [Column[Subset]("", lambda one: one.name, "Category")]
    for result in table.results:
        columns.append(_of_result(table, result))
    return grid(table.title, columns, [*table.categories, MACRO, OVERALL])


def _of_result(table: CategoryTable, result: Result) -> Column[Subset]:
    """Return the column of a result's rates."""
    rates = table.rates
    return Column("", lambda one: rate_cell(rates.get((result.number, one))), result.label)


# -- CSVs ----------------------------------------------------------------------------------------


def csv_paths(folder: Path) -> list[Path]:
    """Return the paths of the CSVs."""
    return [folder / f"{name}.csv" for name in CSVS]


def write_csvs(folder: Path, report: Report) -> list[Path]:
    """Write the CSVs and return their paths. Raises OSError."""
    tables: tuple[tuple[Sequence[Column[Any]], Sequence[Any]], ...] = (
        (RATES, report.rates),
        (COMPARISONS, report.comparisons),
        (ASSOCIATIONS, report.associations),
        (BOARD, placed(report)),
    )
    paths = csv_paths(folder)
    for path, (columns, items) in zip(paths, tables, strict=True):
        named = [column for column in columns if column.name]
        texts = []
        for item in items:
            texts.append({column.name: text_of(column.value(item)) for column in named})
        write_csv(path, [column.name for column in named], texts)
    return paths


def text_of(value: object) -> str:
    """Return a value for programs: 7 digits, and nothing for what was not measured."""
    value = known(value)
    if value is None:
        return ""
    return f"{value:.7g}" if isinstance(value, float) else str(value)


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
    for one in filter(lambda grid: grid.rows, chain(*grids(report))):
        texts = [[cell.text for cell in row] for row in one.rows]
        table = DataFrame(texts, columns=[column.title for column in one.columns])
        caption = re.sub(r"([_%&#$])", r"\\\1", one.title)  # pandas leaves it as it is
        latex += table.to_latex(index=False, escape=True, caption=caption)
        table = table.map(_escaped).rename(columns=_escaped)
        parts.append(f"## {_escaped(one.title)}")
        parts.append(table.to_markdown(index=False, disable_numparse=True))
    markdown = output.with_suffix(".md")
    write_text(markdown, "\n\n".join(parts) + "\n")
    tex = output.with_suffix(".tex")
    write_text(tex, latex)
    return [markdown, tex]


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is: names come from users and models."""
    return text.translate(ESCAPES)
