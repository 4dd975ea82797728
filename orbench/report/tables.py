"""The tables of a report: as CSVs for programs; in Markdown, LaTeX and on the page for people.

A grid has a title and columns; a cell is a text, what the page sorts by, and what stands behind it.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.tables import write_csv, write_text
from orbench.base.words import SIDES, Row, Words
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
    cell_of,
)
from orbench.report.measures import FEW_PROMPTS, MACRO, WIDER
from orbench.report.rates import on_side
from orbench.report.sentences import warnings
from orbench.report.standings import Report

LEGEND = (
    "Percent refused, with 95 % intervals that include unscored rows, as answers or as refusals. "
    f"† fewer than {FEW_PROMPTS} prompts. ‡ over {WIDER} times as wide because of unscored rows."
)
# Of Markdown, and of captions in LaTeX, which pandas leaves as they are.
ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]|<>#~&$"})
IN_CAPTIONS = str.maketrans({mark: f"\\{mark}" for mark in "_%&#$"})


class Filled(NamedTuple):
    """A column with its cells."""

    title: str
    cells: Sequence[Cell]
    shown: Shown = Shown.EVERYWHERE

    @property
    def texts(self) -> Words:
        """Return what it says."""
        return [cell.text for cell in self.cells]

    @property
    def is_varied(self) -> bool:
        """Return whether it does not say the same everywhere."""
        return len({text.lower() for text in self.texts}) > 1

    @property
    def is_in_documents(self) -> bool:
        """Return whether documents show it: not if nothing is measured."""
        if self.shown == Shown.ONLY_VARIED:
            return self.is_varied
        return bool({*self.texts} - {"", NOT_MEASURED.text})

    @property
    def is_on_page(self) -> bool:
        """Return whether the page shows it, too."""
        if self.shown == Shown.IF_VARIED:
            return self.is_varied
        return self.shown != Shown.IN_DOCUMENTS


class Grid(NamedTuple):
    """A table to be looked at."""

    title: str
    rows: int
    columns: Sequence[Filled]


# -- grids ---------------------------------------------------------------------------------------


def grids(report: Report) -> dict[str, list[Grid]]:
    """Return the tables of the documents, in their order, and of the page. Some have no rows."""
    by_side = []
    for side in SIDES.values():
        by_side.append(grid(side.rate.capitalize(), RATES, on_side(side, report.whole)))
    compared = report.of_models()
    return {
        "leaderboard": [grid("Leaderboard", BOARD, report.placed)],
        "rates": by_side,
        "shares": [grid("Shares of graded responses", RATES, report.shares)],
        "by_category": [_of_categories(one) for one in category_tables(report)],
        "same_prompts": [grid("Comparisons on the same prompts", COMPARISONS, compared)],
    }


def grid(title: str, columns: Sequence[Column], items: Sequence[object]) -> Grid:
    """Return a grid of the columns with a title, without those in which nothing is measured."""
    filled = []
    for column in columns:
        if column.title:
            cells = [column.cell(item) for item in items]
            filled.append(Filled(column.title, cells, column.shown))
    return Grid(title, len(items), [one for one in filled if one.is_in_documents])


def _of_categories(table: CategoryTable) -> Grid:
    """Return a row per category, a column per result."""
    subsets = [*table.subsets, MACRO]
    columns = [Filled("Category", [cell_of(subset.name) for subset in subsets])]
    for result, rates in table.rates.items():
        cells = [cell_of(rates.get(subset)) for subset in subsets]
        columns.append(Filled(result.label, cells))
    return Grid(table.title, len(subsets), columns)


# -- CSVs ----------------------------------------------------------------------------------------


def write_csvs(folder: Path, report: Report) -> None:
    """Write the CSVs. Raises OSError."""
    tables = {
        "results.csv": (RATES, report.rates),
        "comparison.csv": (COMPARISONS, report.comparisons),
        "associations.csv": (ASSOCIATIONS, report.associations),
        "leaderboard.csv": (BOARD, report.placed),
    }
    for file, (columns, items) in tables.items():
        names = [column.name for column in columns if column.name]
        write_csv(folder / file, names, [csv_row(columns, item) for item in items])


def csv_row(columns: Sequence[Column], item: object) -> Row:
    """Return a row of a CSV."""
    return {column.name: text_of(column.cell(item)) for column in columns if column.name}


def text_of(cell: Cell) -> str:
    """Return a cell for programs: 7 digits, and nothing for what was not measured."""
    if isinstance(cell.value, float):
        return f"{cell.value:.7g}"
    return "" if cell.value is None else str(cell.value)


# -- documents -----------------------------------------------------------------------------------


def write_documents(output: Path, report: Report, lines: Words) -> None:
    """Write the grids as Markdown and as LaTeX, beside `output`.

    lines: what to know before the figures, after the notes on results. Raises OSError.
    """
    parts = ["# Results"]
    for line in [*warnings(report.whole), *lines]:
        parts.append(f"**Note:** {_escaped(line)}")
    parts.append(LEGEND)
    latex = ""
    for one in chain(*grids(report).values()):
        if one.rows:
            table = DataFrame({column.title: column.texts for column in one.columns})
            caption = one.title.translate(IN_CAPTIONS)
            latex += table.to_latex(index=False, escape=True, caption=caption)
            table = table.map(_escaped).rename(columns=_escaped)
            parts.append(f"## {_escaped(one.title)}")
            parts.append(table.to_markdown(index=False, disable_numparse=True))
    write_text(output.with_suffix(".md"), "\n\n".join(parts) + "\n")
    write_text(output.with_suffix(".tex"), latex)


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is: names come from users and models."""
    return text.translate(ESCAPES)
