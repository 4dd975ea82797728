"""What stands behind the rates of a report, as sections of the page: hedging, labels, pairs, tiers,
prompt sets and words. What is in each, and how to read it, is in behind.toml.
"""

from operator import attrgetter
from typing import Any

from orbench.base.grouping import grouped
from orbench.base.toml_files import toml_beside
from orbench.report.columns import ASSOCIATIONS, COMPARISONS, RATES
from orbench.report.measures import Compared, Counted, Kind
from orbench.report.rates import refusals
from orbench.report.standings import Report
from orbench.report.tables import Grid, grid

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
    return found
