"""The sections of the page behind the leaderboard, in tables. Their words are in behind.toml."""

from collections import defaultdict
from collections.abc import Container, Sequence
from operator import attrgetter
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.base.toml_files import toml_beside
from orbench.base.words import Side
from orbench.report.analyses.judges import agreement
from orbench.report.columns import ASSOCIATIONS, COMPARISONS, RATES, cell_of, percent_cell
from orbench.report.measures import Associated, Compared, Comparison, Counted, Kind
from orbench.report.rates import refusals
from orbench.report.results import Result, Results
from orbench.report.standings import Report
from orbench.report.tables import Filled, Grid, grid, grids

TEXTS = toml_beside(__file__)
MOST_IN_MATRIX = 15  # models
Matrix = dict[Result, dict[Result, Comparison]]  # by both models, in either order


class Section(NamedTuple):
    """A section of the page."""

    tables: Sequence[Grid]  # with rows
    title: str
    about: str  # how to read it


def sections(report: Report, pictured: Container[str]) -> dict[str, Section]:
    """Return what there is to show, in the order of the page. pictured: the sections with pictures;
    the others need a table with rows.
    """
    shown = grids(report)
    tables = {
        "differences": shown["same_prompts"],
        "categories": shown["by_category"],
        "judges": [_judges(report.results)],
        "details": [*shown["rates"], *shown["shares"]],
    }
    rates = grouped(report.rates, attrgetter("subset.kind"))
    compared = grouped(report.comparisons, attrgetter("kind"))
    associated = grouped(report.associations, attrgetter("kind"))
    rows = {
        "hedging": (COMPARISONS, report.of_models(Counted.HEDGED)),
        "toxicity": (RATES, rates[Kind.LABEL]),
        "auc": (ASSOCIATIONS, associated[Associated.AUC]),
        "pairs": (RATES, rates[Kind.PAIRS]),
        "pairs_comparison": (COMPARISONS, compared[Compared.PAIRS]),
        "tiers": (RATES, refusals(report.rates, Kind.TIER)),  # without the shares of classes
        "tiers_trend": (ASSOCIATIONS, associated[Associated.TREND]),
        "drift": (COMPARISONS, compared[Compared.SETS] + compared[Compared.CHANGES]),
        "triggers": (ASSOCIATIONS, associated[Associated.WORD]),
    }
    for name, (columns, items) in rows.items():
        tables[name] = [grid(TEXTS[name]["title"], columns, items)]
    found = {}
    for name, text in TEXTS.items():
        filled = [table for table in tables.get(name, ()) if table.rows]
        if filled or name in pictured:
            found[name] = Section(filled, **text)
    return found


def matrices(report: Report) -> dict[tuple[Side, str], Matrix]:
    """Return the comparisons of models on each side and by each judge, if the models are few."""
    found = {}
    for key, pairs in grouped(report.of_models(), attrgetter("a.side", "judge")).items():
        matrix: Matrix = defaultdict(dict)
        for pair in pairs:
            matrix[pair.a.result][pair.b.result] = pair
            matrix[pair.b.result][pair.a.result] = pair
        if len(matrix) <= MOST_IN_MATRIX:
            found[key] = matrix
    return found


def _judges(results: Results) -> Grid:
    """Return how far judges agree, with a row and a column for each."""
    agreed = agreement(results)
    columns = [Filled("Judge", [*map(cell_of, agreed)])]
    for judge, shares in agreed.items():
        columns.append(Filled(judge, [*map(percent_cell, shares)]))
    return Grid(TEXTS["judges"]["title"], len(agreed), columns)
