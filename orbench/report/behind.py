"""What stands behind the rates of a report, as sections of the page: hedging, labels, pairs, tiers,
prompt sets and words. Their titles, and how to read them, are in behind.toml.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from orbench.base.grouping import grouped
from orbench.base.toml_files import toml_beside
from orbench.base.words import Side
from orbench.report.columns import ASSOCIATIONS, COMPARISONS, RATES, Column
from orbench.report.compare import of_models
from orbench.report.measures import (
    Associated,
    Compared,
    Counted,
    Kind,
    Rate,
)
from orbench.report.results import Result
from orbench.report.standings import Report
from orbench.report.tables import Grid, grid

TEXTS = toml_beside(__file__)


Step = tuple[Side, str]  # with the tier


class TierRow(NamedTuple):
    """A model's rates in each tier, a list for each step."""

    result: Result
    rates: list[list[Rate]]


class Tiers(NamedTuple):
    """The rates by tier: models in rows, tiers in columns."""

    steps: list[Step]
    rows: list[TierRow]

    @property
    def has_both_sides(self) -> bool:
        """Return whether there are tiers on both sides."""
        return len({side for side, _ in self.steps}) > 1

    @property
    def has_judges(self) -> bool:
        """Return whether there are several judges."""
        return len({row.result.judge for row in self.rows}) > 1


class Section(NamedTuple):
    """A part of the page."""

    name: str  # a key of behind.toml, and of a picture
    about: str  # how to read it
    grid: Grid
    tiers: Tiers | None  # shown in place of the grid
    is_folded: bool  # shown on demand


def sections(report: Report) -> list[Section]:
    """Return what there is to show, in the order of the page."""
    rates = grouped(report.rates, lambda rate: rate.subset.kind)
    compared = grouped(report.comparisons, lambda pair: pair.family.kind)
    associated = grouped(report.associations, lambda found: found.kind)
    parts: list[tuple[str, Sequence[Column[Any]], Sequence[Any] | None]] = [
        ("hedging", COMPARISONS, of_models(report.comparisons, Counted.HEDGED)),
        ("toxicity", RATES, rates.get(Kind.LABEL)),
        ("auc", ASSOCIATIONS, associated.get(Associated.AUC)),
        ("pairs", RATES, rates.get(Kind.PAIRS)),
        ("pairs_comparison", COMPARISONS, compared.get(Compared.PAIRS)),
        ("tiers", RATES, rates.get(Kind.TIER)),
        ("tiers_trend", ASSOCIATIONS, associated.get(Associated.TREND)),
        ("drift", COMPARISONS, compared.get(Compared.SETS)),
        ("triggers", ASSOCIATIONS, associated.get(Associated.WORD)),
    ]
    found = []
    for name, columns, items in parts:
        if items:
            table = grid(TEXTS[name]["title"], columns, items)
            tiers = tiers_of(items) if name == "tiers" else None
            found.append(Section(name, TEXTS[name]["about"], table, tiers, name == "triggers"))
    return found


def tiers_of(rates: Sequence[Rate]) -> Tiers:
    """Return the rates by tier as rows and columns; in a cell those that have a verdict."""
    steps = [*grouped(rates, _step)]
    rows = []
    for of_model in grouped(rates, lambda rate: (rate.result.label, rate.result.judge)).values():
        cells = grouped([rate for rate in of_model if rate.n], _step)
        rows.append(TierRow(of_model[0].result, [cells.get(step, []) for step in steps]))
    return Tiers(steps, rows)


def _step(rate: Rate) -> Step:
    return rate.side, rate.subset.value
