"""What stands behind the rates of a report, as sections of the page: hedging, labels, pairs, tiers,
prompt sets and words. What is in each, and how to read it, is in behind.toml.
"""

from operator import attrgetter
from typing import Any, NamedTuple

from orbench.base.grouping import grouped
from orbench.base.toml_files import toml_beside
from orbench.base.words import Side
from orbench.report.columns import ASSOCIATIONS, COMPARISONS, RATES
from orbench.report.measures import Compared, Counted, Kind, Rates
from orbench.report.rates import refusals
from orbench.report.standings import Report
from orbench.report.tables import Grid, grid

TEXTS = toml_beside(__file__)


def sections(report: Report) -> dict[str, Grid]:
    """Return a table for each part of behind.toml, in the order of the page. Some have no rows."""
    tables: dict[str, Any] = {
        "results": (RATES, grouped(report.rates, attrgetter("subset.kind"))),
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


class Tiers(NamedTuple):
    """The rates by tier: models in rows, tiers in columns."""

    steps: list[tuple[Side, str]]  # with the tier
    models: list[Rates]  # all rates of a model


def tiers_of(report: Report) -> Tiers:
    """Return the rates by tier as rows and columns."""
    rates = refusals(report.rates, Kind.TIER)
    steps = grouped(rates, attrgetter("side", "subset.value"))
    models = grouped(rates, attrgetter("result.label", "result.judge"))
    return Tiers([*steps], [*models.values()])
