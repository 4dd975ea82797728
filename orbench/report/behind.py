"""What stands behind the rates of a report, as sections of the page: hedging, labels, pairs, tiers,
prompt sets and words. Their titles, and how to read them, are in behind.toml.
"""

from operator import attrgetter
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.base.toml_files import toml_beside
from orbench.base.words import Side
from orbench.report.columns import ASSOCIATIONS, COMPARISONS, RATES
from orbench.report.measures import Associated, Compared, Counted, Kind, Rates
from orbench.report.rates import refusals
from orbench.report.standings import Report
from orbench.report.tables import Grid, grid

TEXTS = toml_beside(__file__)


def sections(report: Report) -> dict[str, Grid]:
    """Return a table for each part of behind.toml, in the order of the page. Some have no rows."""
    rates = grouped(report.rates, attrgetter("subset.kind"))
    compared = grouped(report.comparisons, attrgetter("kind"))
    associated = grouped(report.associations, attrgetter("kind"))
    parts = [
        ("hedging", COMPARISONS, report.of_models(Counted.HEDGED)),
        ("toxicity", RATES, rates[Kind.LABEL]),
        ("auc", ASSOCIATIONS, associated[Associated.AUC]),
        ("pairs", RATES, rates[Kind.PAIRS]),
        ("pairs_comparison", COMPARISONS, compared[Compared.PAIRS]),
        ("tiers", RATES, rates[Kind.TIER]),
        ("tiers_trend", ASSOCIATIONS, associated[Associated.TREND]),
        ("drift", COMPARISONS, [*compared[Compared.SETS], *compared[Compared.CHANGES]]),
        ("triggers", ASSOCIATIONS, associated[Associated.WORD]),
    ]
    return {name: grid(TEXTS[name]["title"], columns, items) for name, columns, items in parts}


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
