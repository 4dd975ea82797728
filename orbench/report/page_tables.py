"""The heat maps of the page, and its matrices of comparisons."""

from bisect import bisect
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.base.words import Side
from orbench.report.categories import CategoryTable, category_tables
from orbench.report.columns import joined
from orbench.report.compare import of_models
from orbench.report.measures import OVERALL, Comparison, Counted, Outcome, Rate
from orbench.report.results import Result
from orbench.report.sentences import remarks, verdict_words
from orbench.report.standings import Report

MOST_IN_MATRIX = 6  # models
IN_SHORT = {Outcome.INCONCLUSIVE: "inconclusive"}  # else there is a remark
SHADES = (1, 5, 10, 20, 30, 40, 50, 60, 75, 90)  # percent of bad responses: a cell is darker


# -- heat maps -----------------------------------------------------------------------------------


class HeatRow(NamedTuple):
    """The rates of a model, by category; the last one is that over all."""

    result: Result
    rates: list[Rate | None]  # None: not measured


class HeatMap(NamedTuple):
    """Rates by category: the worse, the darker."""

    table: CategoryTable
    categories: list[str]
    rows: list[HeatRow]

    @property
    def small(self) -> list[bool]:
        """Return for each rate whether it is of few prompts."""
        return [rate.is_small for row in self.rows for rate in row.rates if rate]

    def shade(self, rate: Rate) -> int:
        """Return how dark a cell is."""
        percent = 100 * rate.mean.rate
        bad = round(100 - percent if self.table.side.is_toxic else percent, 3)
        return bisect(SHADES, bad)


def heat_maps(report: Report) -> list[HeatMap]:
    """Return a heat map for each side, prompt set and judge."""
    maps = []
    for table in category_tables(report.rates, report.board):
        subsets = [*table.categories, OVERALL]
        measured = {key: rate for key, rate in table.rates.items() if rate.n}
        rows = []
        for result in table.results:
            rates = [measured.get((result.number, subset)) for subset in subsets]
            rows.append(HeatRow(result, rates))
        maps.append(HeatMap(table, [subset.name for subset in subsets], rows))
    return maps


# -- comparisons ---------------------------------------------------------------------------------


class Facing(NamedTuple):
    """A comparison as one of its two results sees it: that one minus the other."""

    is_finding: bool
    points: float
    ends: list[float]  # of the interval, in points
    is_better: bool  # whether the difference speaks for the one that sees it
    words: str  # what the comparison shows
    remarks: str  # what speaks against it


class Matrix(NamedTuple):
    """Each two models of a side and judge."""

    side: Side
    judge: str  # empty: the only one
    results: list[Result]
    rows: list[list[Facing | None]]
    remarks: list[str]  # of all comparisons

    @property
    def has_several_sets(self) -> bool:
        """Return whether the prompts differ."""
        return len({result.prompts for result in self.results}) > 1


class Differences(NamedTuple):
    """Who refuses more: all comparisons of models, and matrices of few models."""

    matrices: list[Matrix]
    are_all_drawn: bool
    have_robustness: bool


def differences(report: Report, results: Sequence[Result]) -> Differences:
    """Return the comparisons of models. results: in the order of the leaderboard."""
    pairs = of_models(report.comparisons, Counted.REFUSED)
    facing = {}
    for pair in pairs:
        numbers = pair.a.result.number, pair.b.result.number
        facing[numbers] = _facing(pair, 1)
        facing[numbers[::-1]] = _facing(pair, -1)
    ordered = sorted(results, key=lambda one: (one.side.is_toxic, one.judge_any_version.lower()))
    groups = grouped(ordered, lambda one: (one.side, one.judge_any_version))
    judges = {judge for _, judge in groups}
    matrices = []
    for (side, judge), members in groups.items():
        if 1 < len(members) <= MOST_IN_MATRIX:
            rows = [[facing.get((a.number, b.number)) for b in members] for a in members]
            texts = [cell.remarks for cell in chain(*rows) if cell and cell.remarks]
            shown_judge = judge if len(judges) > 1 else ""
            matrices.append(Matrix(side, shown_judge, members, rows, [*dict.fromkeys(texts)]))
    are_all_drawn = all(len(members) <= MOST_IN_MATRIX for members in groups.values())
    return Differences(matrices, are_all_drawn, any(pair.robustness for pair in pairs))


def _facing(comparison: Comparison, sign: int) -> Facing:
    """Return what the first of two results sees (sign 1), or the second one (-1)."""
    gap = comparison.gap
    points = 100 * sign * gap.difference
    words = verdict_words(comparison)
    against = joined(remarks(comparison))
    if comparison.is_finding:
        words = "refuses fewer" if points < 0 else "refuses more"
    return Facing(
        comparison.is_finding,
        points,
        ends=sorted([100 * sign * gap.low, 100 * sign * gap.high]),
        is_better=(points < 0) != comparison.a.side.is_toxic,
        words=IN_SHORT.get(comparison.outcome, words),
        remarks=against,
    )
