"""Refusal rates by category, in a table for each side, prompt set and judge."""

from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.base.words import Side
from orbench.report.measures import OVERALL, Counted, Kind, Rate, Subset
from orbench.report.rates import refusals
from orbench.report.results import Result
from orbench.report.standings import Report, in_order


class CategoryTable(NamedTuple):
    """The rates of results on one side, with the same prompts and judge."""

    side: Side
    part: str  # the prompts and the judge, if there are several tables of the side
    subsets: list[Subset]  # the single categories, sorted, and all prompts
    rates: dict[Result, dict[Subset, Rate]]  # of any subset, in the order of the leaderboard

    @property
    def title(self) -> str:
        """Return what it shows."""
        title = f"{self.side.rate.capitalize()} by category"
        return f"{title}: {self.part}" if self.part else title


def category_tables(report: Report) -> Iterator[CategoryTable]:
    """Yield a table for each side, prompt set and judge, without results that have no category."""
    results = {rate.result for rate in refusals(report.rates, Kind.MACRO)}
    refused = [rate for rate in report.rates if rate.counted is Counted.REFUSED]
    rates = [rate for rate in refused if rate.result in results]
    for of_side in grouped(in_order(rates, report.board), attrgetter("side")).values():
        groups = grouped(of_side, attrgetter("result.prompt_set", "result.judge"))
        for group in groups.values():
            first = group[0].result
            part = f"{first.prompts}, {first.judge}" if len(groups) > 1 else ""
            by_result = defaultdict[Result, dict[Subset, Rate]](dict)
            for rate in group:
                by_result[rate.result][rate.subset] = rate
            categories = {rate.subset for rate in refusals(group, Kind.CATEGORY)}
            subsets = [*sorted(categories), OVERALL]
            yield CategoryTable(first.side, part, subsets, by_result)
