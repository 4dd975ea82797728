"""Refusal rates by category, in a table for each side, prompt set and judge."""

from collections import defaultdict
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.base.words import Side
from orbench.report.measures import MACRO, OVERALL, Kind, Rate, Subset
from orbench.report.ranking import in_order
from orbench.report.rates import overall, refusals
from orbench.report.results import Result
from orbench.report.standings import Report


class CategoryTable(NamedTuple):
    """The rates of results on one side, with the same prompts and judge."""

    side: Side
    part: str  # the prompts and the judge, if there are several tables of the side
    subsets: list[Subset]  # the single categories, sorted, and all prompts
    rates: dict[Result, dict[Subset, Rate]]  # in the order of the leaderboard

    @property
    def title(self) -> str:
        """Return what it shows."""
        title = f"{self.side.rate.capitalize()} by category"
        return f"{title}: {self.part}" if self.part else title


def category_tables(report: Report) -> list[CategoryTable]:
    """Return a table for each side, prompt set and judge. Results without categories are left
    out.
    """
    macro = refusals(report.rates, Kind.MACRO)
    with_categories = {rate.result for rate in macro}
    every = [*overall(report.rates), *macro, *refusals(report.rates, Kind.CATEGORY)]
    shown = [rate for rate in in_order(every, report.board) if rate.result in with_categories]
    tables = []
    for of_side in grouped(shown, lambda rate: rate.side).values():
        groups = grouped(of_side, lambda rate: (rate.result.prompt_set, rate.result.judge))
        for group in groups.values():
            first = group[0].result
            part = f"{first.prompts}, {first.judge}" if len(groups) > 1 else ""
            rates = defaultdict[Result, dict[Subset, Rate]](dict)
            for rate in group:
                rates[rate.result][rate.subset] = rate
            categories = {rate.subset for rate in group} - {OVERALL, MACRO}
            subsets = [*sorted(categories), OVERALL]
            tables.append(CategoryTable(first.side, part, subsets, rates))
    return tables
