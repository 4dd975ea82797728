"""Refusal rates by category, in a table for each side, prompt set and judge."""

from dataclasses import dataclass

from orbench.base.grouping import grouped
from orbench.base.words import Side
from orbench.report.measures import MACRO, OVERALL, Kind, Rate, Subset
from orbench.report.ranking import in_order
from orbench.report.rates import overall, refusals
from orbench.report.results import Result
from orbench.report.standings import Report


@dataclass(frozen=True, eq=False)
class CategoryTable:
    """The rates of results on one side, with the same prompts and judge."""

    side: Side
    part: str  # the prompts and the judge, if there are several tables of the side
    results: list[Result]  # in the order of the leaderboard
    rates: dict[tuple[int, Subset], Rate]  # by the number of the result

    @property
    def title(self) -> str:
        """Return what it shows."""
        title = f"{self.side.rate.capitalize()} by category"
        return f"{title}: {self.part}" if self.part else title

    @property
    def subsets(self) -> list[Subset]:
        """Return the single categories, sorted, and all prompts."""
        found = {subset for _, subset in self.rates} - {OVERALL, MACRO}
        return [*sorted(found, key=lambda subset: subset.value), OVERALL]


def category_tables(report: Report) -> list[CategoryTable]:
    """Return a table for each side, prompt set and judge. Results without categories are left
    out.
    """
    macro = refusals(report.rates, Kind.MACRO)
    numbers = {rate.result.number for rate in macro}
    every = [*overall(report.rates), *macro, *refusals(report.rates, Kind.CATEGORY)]
    shown = [rate for rate in in_order(every, report.board) if rate.result.number in numbers]
    tables = []
    for of_side in grouped(shown, lambda rate: rate.side).values():
        groups = grouped(of_side, lambda rate: (rate.result.prompt_set, rate.result.judge))
        for group in groups.values():
            first = group[0].result
            part = f"{first.prompts}, {first.judge}" if len(groups) > 1 else ""
            results = [*dict.fromkeys(rate.result for rate in group)]
            by_subset = {(rate.result.number, rate.subset): rate for rate in group}
            tables.append(CategoryTable(first.side, part, results, by_subset))
    return tables
