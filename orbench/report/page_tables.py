"""The heat maps of the page, and its matrices of comparisons."""

from collections.abc import Sequence
from typing import NamedTuple

from orbench.base.words import SIDES, Side
from orbench.report.categories import CategoryTable, category_tables
from orbench.report.columns import joined
from orbench.report.compare import of_models
from orbench.report.measures import OVERALL, Comparison, Counted, Rate, Subset
from orbench.report.results import Result
from orbench.report.sentences import remarks, verdict_words
from orbench.report.standings import Report

MOST_IN_MATRIX = 6  # models
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
        return sum(step <= bad for step in SHADES)


def heat_maps(report: Report) -> list[HeatMap]:
    """Return a heat map for each side, prompt set and judge."""
    maps = []
    for table in category_tables(report.rates, report.board):
        subsets = [*table.categories, OVERALL]
        rows = [HeatRow(one, _measured(table, one, subsets)) for one in table.results]
        names = [subset.value or subset.kind for subset in subsets]
        maps.append(HeatMap(table, names, rows))
    return maps


def _measured(table: CategoryTable, result: Result, subsets: Sequence[Subset]) -> list[Rate | None]:
    """Return the rates that have a verdict."""
    rates = [table.rates.get((result.number, subset)) for subset in subsets]
    return [rate if rate and rate.mean.prompts else None for rate in rates]


# -- comparisons ---------------------------------------------------------------------------------


class Facing(NamedTuple):
    """A comparison as one of its two results sees it: that one minus the other."""

    comparison: Comparison
    sign: int

    @property
    def points(self) -> float:
        """Return the difference in points."""
        return 100 * self.sign * self.comparison.gap.difference

    @property
    def ends(self) -> list[float]:
        """Return the ends of its interval in points."""
        gap = self.comparison.gap
        return sorted([100 * self.sign * gap.low, 100 * self.sign * gap.high])

    @property
    def is_better(self) -> bool:
        """Return whether the difference speaks for the one that sees it."""
        return (self.points < 0) != self.comparison.a.result.side.is_toxic

    @property
    def words(self) -> str:
        """Return what the comparison shows, in few words."""
        if self.comparison.is_finding:
            return "refuses fewer" if self.points < 0 else "refuses more"
        return verdict_words(self.comparison).partition(":")[0]

    @property
    def remarks(self) -> str:
        """Return what speaks against it."""
        return joined(remarks(self.comparison))


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
    facing: dict[tuple[int, int], Facing] = {}
    for pair in pairs:
        a = pair.a.result.number
        b = pair.b.result.number
        facing[a, b] = Facing(pair, 1)
        facing[b, a] = Facing(pair, -1)
    judges = sorted({result.judge_any_version for result in results}, key=str.lower)
    matrices = []
    are_all_drawn = True
    for side in SIDES.values():
        for judge in judges:
            members = _judged(results, side, judge)
            if len(members) > MOST_IN_MATRIX:
                are_all_drawn = False
            elif len(members) > 1:
                rows = [[facing.get((a.number, b.number)) for b in members] for a in members]
                shown_judge = judge if len(judges) > 1 else ""
                matrices.append(Matrix(side, shown_judge, members, rows, _remarks(rows)))
    return Differences(matrices, are_all_drawn, any(pair.robustness for pair in pairs))


def _judged(results: Sequence[Result], side: Side, judge: str) -> list[Result]:
    found = []
    for result in results:
        if result.side == side and result.judge_any_version == judge:
            found.append(result)
    return found


def _remarks(rows: Sequence[Sequence[Facing | None]]) -> list[str]:
    """Return the different remarks, in the order of the rows."""
    texts = [cell.remarks for row in rows for cell in row if cell]
    return list(dict.fromkeys(filter(None, texts)))
