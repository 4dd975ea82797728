"""What stands behind the rates of a report, as sections of the page: hedging, labels, pairs, tiers,
prompt sets, words and judges. What is in each, and how to read it, is in behind.toml.
"""

from operator import attrgetter
from typing import Any

from orbench.base.grouping import grouped
from orbench.base.toml_files import toml_beside
from orbench.report.analyses.judges import agreement
from orbench.report.columns import ASSOCIATIONS, COMPARISONS, RATES, cell_of, percent_cell
from orbench.report.measures import Compared, Counted, Kind
from orbench.report.rates import refusals
from orbench.report.results import Results
from orbench.report.standings import Report
from orbench.report.tables import Filled, Grid, grid

TEXTS = toml_beside(__file__)


def sections(report: Report) -> dict[str, Grid]:
    """Return a table for each part of behind.toml, in the order of the page. Some have no rows."""
    rates = grouped(report.rates, attrgetter("subset.kind"))
    rates[Kind.TIER] = refusals(report.rates, Kind.TIER)  # without the shares of classes
    tables: dict[str, Any] = {
        "results": (RATES, rates),
        "hedged": (COMPARISONS, {Compared.MODELS: report.of_models(Counted.HEDGED)}),
        "comparison": (COMPARISONS, grouped(report.comparisons, attrgetter("kind"))),
        "associations": (ASSOCIATIONS, grouped(report.associations, attrgetter("kind"))),
    }
    found = {}
    for name, text in TEXTS.items():
        columns, by_kind = tables[text["table"]]
        items = [one for kind in text["kinds"] for one in by_kind[kind]]
        found[name] = grid(text["title"], columns, items)
    found["judges"] = _judges(report.results)
    return found


def _judges(results: Results) -> Grid:
    """Return how far judges agree, with a row and a column for each."""
    agreed = agreement(results)
    columns = [Filled("Judge", [*map(cell_of, agreed)])]
    for judge, shares in agreed.items():
        columns.append(Filled(judge, [*map(percent_cell, shares)]))
    return Grid(TEXTS["judges"]["title"], len(agreed), columns)
