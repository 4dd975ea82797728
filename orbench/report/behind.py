"""What stands behind the rates of a report, as sections of the page: hedging, labels, pairs, tiers,
prompt sets and words. Their titles, and how to read them, are in behind.toml.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from orbench.base.toml_files import toml_beside
from orbench.base.words import Side
from orbench.report.columns import ASSOCIATIONS, COMPARISONS, RATES, Column
from orbench.report.compare import of_models
from orbench.report.measures import (
    Associated,
    Association,
    Compared,
    Comparison,
    Counted,
    Kind,
    Rate,
)
from orbench.report.results import Result
from orbench.report.standings import Report
from orbench.report.tables import Grid, grid

TEXTS = toml_beside(__file__)


class TierRow(NamedTuple):
    """A model's rates in each tier, a list for each step."""

    result: Result
    rates: list[list[Rate]]


class Tiers(NamedTuple):
    """The rates by tier: models in rows, tiers in columns."""

    steps: list[tuple[Side, str]]
    rows: list[TierRow]

    @property
    def has_both_sides(self) -> bool:
        """Return whether there are tiers on both sides."""
        return len({side for side, _ in self.steps}) > 1

    @property
    def has_judges(self) -> bool:
        """Return whether there are several judges."""
        return len({row.result.judge for row in self.rows}) > 1


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page."""

    name: str  # a key of behind.toml, and of a picture
    grid: Grid
    tiers: Tiers | None  # shown in place of the grid

    @property
    def title(self) -> str:
        """Return the heading."""
        return self.grid.title

    @property
    def about(self) -> str:
        """Return how to read it."""
        text: str = TEXTS[self.name]["about"]
        return text

    @property
    def is_folded(self) -> bool:
        """Return whether it is shown on demand."""
        return self.name in FOLDED


FOLDED = ("triggers",)


def sections(report: Report) -> list[Section]:
    """Return what there is to show, in the order of the page."""
    hedging = of_models(report.comparisons, Counted.HEDGED)
    by_tier = _rates(report, Kind.TIER)
    found = [
        _section("hedging", COMPARISONS, hedging),
        _section("toxicity", RATES, _rates(report, Kind.LABEL)),
        _section("auc", ASSOCIATIONS, _associations(report, Associated.AUC)),
        _section("pairs", RATES, _rates(report, Kind.PAIRS)),
        _section("pairs_comparison", COMPARISONS, _compared(report, Compared.PAIRS)),
        _section("tiers", RATES, by_tier, tiers_of(by_tier)),
        _section("tiers_trend", ASSOCIATIONS, _associations(report, Associated.TREND)),
        _section("drift", COMPARISONS, _compared(report, Compared.SETS)),
        _section("triggers", ASSOCIATIONS, _associations(report, Associated.WORD)),
    ]
    return [section for section in found if section.grid.rows]


def _section(
    name: str, columns: Sequence[Column[Any]], items: Sequence[Any], tiers: Tiers | None = None
) -> Section:
    return Section(name, grid(TEXTS[name]["title"], columns, items), tiers)


def _rates(report: Report, kind: Kind) -> list[Rate]:
    return [rate for rate in report.rates if rate.subset.kind is kind]


def _compared(report: Report, compared: Compared) -> list[Comparison]:
    return [pair for pair in report.comparisons if pair.family.kind is compared]


def _associations(report: Report, kind: Associated) -> list[Association]:
    return [found for found in report.associations if found.kind is kind]


def tiers_of(rates: Sequence[Rate]) -> Tiers:
    """Return the rates by tier as rows and columns; in a cell those that have a verdict."""
    steps = list(dict.fromkeys((rate.result.side, rate.subset.value) for rate in rates))
    models = defaultdict[tuple[str, str], list[Rate]](list)
    for rate in rates:
        models[rate.result.label, rate.result.judge].append(rate)
    rows = []
    for of_model in models.values():
        cells: list[list[Rate]] = [[] for _ in steps]
        for rate in of_model:
            if rate.mean.prompts:
                cells[steps.index((rate.result.side, rate.subset.value))].append(rate)
        rows.append(TierRow(of_model[0].result, cells))
    return Tiers(steps, rows)
