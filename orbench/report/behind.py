"""What stands behind the rates of a report, as tables of the page: hedging, labels, pairs, tiers,
prompt sets and words. How to read them is in tables.toml.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from orbench.base.toml_files import toml_beside
from orbench.base.words import OVERALL as OVERALL_NAME
from orbench.base.words import SIDES, Side
from orbench.report import columns
from orbench.report.cells import MISSING, Cell, figure, gap_cell, mean_cell
from orbench.report.columns import Column
from orbench.report.compare import of_models
from orbench.report.measures import (
    FEW_PROMPTS,
    Associated,
    Association,
    Compared,
    Comparison,
    Counted,
    Kind,
    Rate,
    Report,
    Standing,
    Subset,
)
from orbench.report.rates import refusals
from orbench.report.results import SAFE, TOXIC, Result
from orbench.report.tables import Grid, grid

T = TypeVar("T")

TEXTS = toml_beside(__file__)
AGREED = Subset(Kind.LABEL, "agreed")


# -- rows ----------------------------------------------------------------------------------------


class Labelled(NamedTuple):
    """A model, and its rates on prompts whose label all agree with."""

    standing: Standing
    safe: Rate | None
    toxic: Rate | None
    auc: Association


class Paired(NamedTuple):
    """What happens to the pairs of a model, in a category or in all."""

    rate: Rate  # of those that it gets right
    outcomes: Mapping[Counted, Rate]


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


def labelled(report: Report) -> list[Labelled]:
    """Return a row per model, if there are labels."""
    agreed = {rate.result.number: rate for rate in report.rates if rate.subset == AGREED}
    aucs = associations_of(report, Associated.AUC)
    rows = []
    for standing, auc in zip(report.board, aucs, strict=False):
        safe = agreed[standing.safe.result.number] if standing.safe else None
        toxic = agreed[standing.toxic.result.number] if standing.toxic else None
        rows.append(Labelled(standing, safe, toxic, auc))
    return rows


def paired(report: Report) -> list[Paired]:
    """Return a row per model, tiers and category."""
    groups = defaultdict[tuple[int, Side, Subset], dict[Counted, Rate]](dict)
    for rate in report.rates:
        if rate.subset.kind is Kind.PAIRS:
            key = (rate.result.number, rate.result.side, rate.subset)
            groups[key][rate.counted] = rate
    return [Paired(outcomes[Counted.RIGHT], outcomes) for outcomes in groups.values()]


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


# -- columns -------------------------------------------------------------------------------------

HEDGING: Sequence[Column[Comparison]] = (
    Column("A", lambda pair: pair.a.result.label),
    Column("B", lambda pair: pair.b.result.label),
    columns.FINDING,
    Column("A - B", lambda pair: gap_cell(pair.gap)),
    Column("Rate A", lambda pair: figure(pair.gap.a.rate)),
    Column("Rate B", lambda pair: figure(pair.gap.b.rate)),
    columns.N_IN_COMMON,
)
LABELS: Sequence[Column[Labelled]] = (
    Column("Model", lambda row: row.standing.label),
    Column("Over-refusal, agreed labels", lambda row: mean_cell(row.safe)),
    Column("Agreed safe prompts", lambda row: row.safe.mean.prompts if row.safe else 0),
    Column("Over-refusal, all", lambda row: mean_cell(row.standing.safe)),
    Column("Toxic rejection, agreed labels", lambda row: mean_cell(row.toxic)),
    Column("Agreed toxic prompts", lambda row: row.toxic.mean.prompts if row.toxic else 0),
    Column("Toxic rejection, all", lambda row: mean_cell(row.standing.toxic)),
    Column("AUC", lambda row: _auc(row.auc)),
)


def _auc(found: Association) -> Cell:
    return figure(found.estimate, found.interval, small=found.n < FEW_PROMPTS)


def _side(rate: Rate) -> Cell:
    """Return the side of pairs of tiers; seeds and rewrites are on both."""
    if not rate.subset.value:
        return MISSING
    side = rate.result.side
    return Cell(side.rate if side in (SAFE, TOXIC) else "")


def _tier(rate: Rate, place: int) -> Cell:
    """Return the lower tier of pairs (0) or the higher one (1)."""
    if not rate.subset.value:
        return MISSING
    return Cell(rate.subset.value.split(" < ")[place])


def _category(rate: Rate) -> str:
    return rate.subset.category or OVERALL_NAME


def _outcome(counted: Counted) -> Callable[[Paired], Cell]:
    """Return what shows how often something happens to a pair."""
    return lambda row: mean_cell(row.outcomes[counted])


PAIRS: Sequence[Column[Paired]] = (
    Column("Model", lambda row: row.rate.result.label),
    Column("Side", lambda row: _side(row.rate)),
    Column("Lower", lambda row: _tier(row.rate, 0)),
    Column("Higher", lambda row: _tier(row.rate, 1)),
    Column("Category", lambda row: _category(row.rate)),
    Column("Right", _outcome(Counted.RIGHT)),
    Column("Both refused", _outcome(Counted.BOTH_REFUSED)),
    Column("Both answered", _outcome(Counted.BOTH_ANSWERED)),
    Column("Reverse", _outcome(Counted.REVERSE)),
    Column("Unpaired", lambda row: row.rate.unpaired),
)
PAIRS_COMPARED: Sequence[Column[Comparison]] = (
    Column("A", lambda pair: pair.a.result.label),
    Column("B", lambda pair: pair.b.result.label),
    Column("Side", lambda pair: _side(pair.a)),
    Column("Lower", lambda pair: _tier(pair.a, 0)),
    Column("Higher", lambda pair: _tier(pair.a, 1)),
    Column("Category", lambda pair: _category(pair.a)),
    Column("A - B", lambda pair: gap_cell(pair.gap)),
    Column("Right A", lambda pair: figure(pair.gap.a.rate)),
    Column("Right B", lambda pair: figure(pair.gap.b.rate)),
    columns.N_IN_COMMON,
    columns.P_HOLM,
)
TRENDS: Sequence[Column[Association]] = (
    Column("Model", lambda trend: trend.result.label),
    columns.TREND,
    Column("A - B", lambda trend: figure(trend.estimate, trend.interval)),
    Column("Side", lambda trend: SIDES[trend.of_side].rate if trend.of_side else ""),
    Column("Tiers", lambda trend: trend.value),
    columns.SEEDS,
    Column("p (Holm)", lambda trend: trend.p_adjusted),
)
CHANGES: Sequence[Column[Comparison]] = (
    Column("Model", lambda pair: pair.a.result.label),
    Column("Side", lambda pair: pair.a.result.side.rate),
    Column("From", lambda pair: pair.b.result.prompts),
    Column("To", lambda pair: pair.a.result.prompts),
    Column("Rate in From", lambda pair: figure(pair.gap.b.rate)),
    Column("Rate in To", lambda pair: figure(pair.gap.a.rate)),
    Column("Change", lambda pair: gap_cell(pair.gap)),
    columns.P_HOLM,
    columns.JUDGE_OF_BOTH,
)
WORDS: Sequence[Column[Association]] = (
    Column("Model", lambda word: word.result.label),
    columns.AGAINST,
    columns.WITH,
    Column("Term", lambda word: word.value),
    columns.REFUSED,
    columns.ANSWERED,
    Column("Log odds", lambda word: word.estimate),
    columns.Q,
    *columns.EXAMPLES,
)
BY_TIER: Sequence[Column[Rate]] = (Column("Model", lambda rate: rate.result.label),)

# -- sections ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page."""

    name: str  # a key of behind.toml, and of a picture
    grid: Grid
    is_folded: bool = False
    tiers: Tiers | None = None  # shown in place of the grid

    @property
    def title(self) -> str:
        """Return the heading."""
        return self.grid.title

    @property
    def about(self) -> str:
        """Return how to read it."""
        text: str = TEXTS[self.name]["about"]
        return text


def sections(report: Report) -> list[Section]:
    """Return what there is to show, in the order of the page."""
    pairs_of = comparisons_of(report, Compared.PAIRS)
    changes = comparisons_of(report, Compared.SETS)
    hedging = of_models(report.comparisons, Counted.HEDGED)
    by_tier = refusals(report.rates, Kind.TIER)
    found = [
        _section("hedging", HEDGING, hedging),
        _section("toxicity", LABELS, labelled(report)),
        _section("pairs", PAIRS, paired(report)),
        _section("pairs_comparison", PAIRS_COMPARED, pairs_of),
        replace(_section("tiers", BY_TIER, by_tier), tiers=tiers_of(by_tier)),
        _section("tiers_trend", TRENDS, associations_of(report, Associated.TREND)),
        _section("drift", CHANGES, changes),
        _section("triggers", WORDS, associations_of(report, Associated.WORD), is_folded=True),
    ]
    return [section for section in found if section.grid.rows]


def _section(
    name: str, columns: Sequence[Column[T]], items: Sequence[T], is_folded: bool = False
) -> Section:
    return Section(name, grid(TEXTS[name]["title"], columns, items), is_folded)


def comparisons_of(report: Report, compared: Compared) -> list[Comparison]:
    """Return the comparisons of one kind."""
    return [pair for pair in report.comparisons if pair.family.kind is compared]


def associations_of(report: Report, kind: Associated) -> list[Association]:
    """Return the associations of one kind."""
    return [found for found in report.associations if found.kind is kind]
