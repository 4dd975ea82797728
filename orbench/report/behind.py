"""The sections of the page behind the leaderboard, in tables. Their words are in behind.toml."""

from collections.abc import Container, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from orbench.base.toml_files import toml_beside
from orbench.base.words import Words
from orbench.report.analyses.judges import agreement
from orbench.report.columns import cell_of, percent_cell
from orbench.report.results import Results
from orbench.report.standings import Report
from orbench.report.tables import Filled, Grid, csvs, grid, grids

TEXTS = toml_beside(__file__)


class Section(NamedTuple):
    """A section of the page."""

    title: str
    about: str  # how to read it
    tables: Sequence[Grid]  # with rows


def sections(report: Report, always: Container[str]) -> dict[str, Section]:
    """Return what there is to show, in the order of the page. always: these sections; the others
    need a table with rows.
    """
    shown = grids(report)
    shown["judges"] = [_judges(report.results)]
    files = csvs(report)
    found = {}
    for name, text in TEXTS.items():
        if "file" in text:
            columns, items = files[text["file"]]
            chosen = [item for item in items if _is_chosen(item, text["where"])]
            shown[name] = [grid(text["title"], columns, chosen)]
        tables = [table for table in shown.get(name, ()) if table.rows]
        if tables or name in always:
            found[name] = Section(text["title"], text["about"], tables)
    return found


def _is_chosen(item: object, where: Mapping[str, Words]) -> bool:
    """Return whether the attributes of a row have these values."""
    return all(attrgetter(name)(item) in values for name, values in where.items())


def _judges(results: Results) -> Grid:
    """Return how far judges agree, with a row and a column for each."""
    agreed = agreement(results)
    columns = [Filled("Judge", [*map(cell_of, agreed)])]
    for judge, shares in agreed.items():
        columns.append(Filled(judge, [*map(percent_cell, shares)]))
    return Grid(TEXTS["judges"]["title"], len(agreed), columns)
