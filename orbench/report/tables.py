"""The tables of a report: as CSVs and JSON for programs; in Markdown, LaTeX and on the page.

A grid has a title and columns; a cell is a text, what the page sorts by, and what stands behind it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.grouping import grouped
from orbench.base.tables import write_csv, write_json, write_text
from orbench.base.words import SIDES, Json, Row, Words
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
from orbench.report.measures import FEW_PROMPTS, MACRO, OVERALL, WIDER, Counted, Kind, Rate
from orbench.report.rates import on_side, overall, refusals
from orbench.report.sentences import warnings
from orbench.report.standings import Board, Report, in_order

LEGEND = (
    "Percent refused, with 95 % intervals that include unscored rows, as answers or as refusals. "
    f"† fewer than {FEW_PROMPTS} prompts. ‡ over {WIDER} times as wide because of unscored rows."
)
# Of Markdown, and of captions in LaTeX, which pandas leaves as they are.
ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]|<>#~&$"})
IN_CAPTIONS = str.maketrans({mark: f"\\{mark}" for mark in "_%&#$"})
SUMMARY_VERSION = 1  # of the format of results.json; a new member does not change it
OF_STANDING = ("rank", "score")  # columns of BOARD
# Columns of RATES: overall rates are all alike in what subset they are of.
LEFT_OUT = ("", "subset", "value", "category", "counted", "unpaired")
DIGITS = 10  # of figures in results.json, behind the point


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
    """Return the tables of the documents, in their order, by the section of the page that has them.
    Some have no rows.
    """
    by_side = []
    for side in SIDES.values():
        by_side.append(grid(side.rate.capitalize(), RATES, on_side(side, report.whole)))
    compared = report.of_models()
    return {
        "leaderboard": [grid("Leaderboard", BOARD, report.placed)],
        "details": by_side,
        "shares": [grid("Shares of graded responses", RATES, report.shares)],
        "categories": [*_by_category(report)],
        "differences": [grid("Comparisons on the same prompts", COMPARISONS, compared)],
    }


def grid(title: str, columns: Sequence[Column], items: Sequence[object]) -> Grid:
    """Return a grid of the columns with a title, without those in which nothing is measured."""
    filled = []
    for column in columns:
        if column.title:
            cells = [column.cell(item) for item in items]
            filled.append(Filled(column.title, cells, column.shown))
    return Grid(title, len(items), [one for one in filled if one.is_in_documents])


def _by_category(report: Report) -> Iterator[Grid]:
    """Yield the refusal rates of each side, prompt set and judge, with a row per category and a
    column per result, without results that have no category.
    """
    results = {rate.result for rate in refusals(report.rates, Kind.MACRO)}
    refused = [rate for rate in report.rates if rate.counted is Counted.REFUSED]
    rates = [rate for rate in refused if rate.result in results]
    for side, of_side in grouped(in_order(rates, report.board), attrgetter("side")).items():
        groups = grouped(of_side, attrgetter("result.prompt_set", "result.judge"))
        for group in groups.values():
            title = f"{side.rate.capitalize()} by category"
            if len(groups) > 1:
                title += f": {group[0].result.measured_by}"
            categories = {rate.subset for rate in refusals(group, Kind.CATEGORY)}
            subsets = [*sorted(categories), OVERALL, MACRO]
            names = [cell_of(subset.name) for subset in subsets]
            columns = [Filled("Category", names)]
            for result, own in grouped(group, attrgetter("result")).items():
                by_subset = {rate.subset: rate for rate in own}
                cells = [cell_of(by_subset.get(subset)) for subset in subsets]
                columns.append(Filled(result.short, cells))
            yield Grid(title, len(subsets), columns)


# -- CSVs ----------------------------------------------------------------------------------------


def csvs(report: Report) -> dict[str, tuple[Sequence[Column], Sequence[object]]]:
    """Return the columns and what is in the rows of each CSV."""
    return {
        "results.csv": (RATES, report.rates),
        "comparison.csv": (COMPARISONS, report.comparisons),
        "associations.csv": (ASSOCIATIONS, report.associations),
        "leaderboard.csv": (BOARD, report.placed),
    }


def write_csvs(folder: Path, report: Report) -> None:
    """Write the CSVs. Raises OSError."""
    for file, (columns, items) in csvs(report).items():
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


# -- results.json -------------------------------------------------------------------------------


def write_summary(folder: Path, report: Report) -> None:
    """Write results.json: the columns of results.csv that are not about subsets, of
    each overall rate, with its rank and its score; null for what is not known. Raises OSError.

    A result in several rows of the leaderboard has neither rank nor score.
    """
    entries = [_summary(rate, report.board) for rate in overall(report.rates)]
    content = {"version": SUMMARY_VERSION, "results": entries}
    write_json(folder / "results.json", content)


def _summary(rate: Rate, board: Board) -> Json:
    standings = [standing for standing in board if rate.result in standing.results]
    standing = standings[0] if len(standings) == 1 else None
    entry = {}
    for column in BOARD:
        if column.name in OF_STANDING:
            entry[column.name] = _rounded(column.cell(standing))
    for column in RATES:
        if column.name not in LEFT_OUT:
            entry[column.name] = _rounded(column.cell(rate))
    return entry


def _rounded(cell: Cell) -> float | str | None:
    """Return a cell for JSON; None for what is not known, and for an empty text."""
    if isinstance(cell.value, float):
        return round(cell.value, DIGITS)
    return None if cell.value == "" else cell.value


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
