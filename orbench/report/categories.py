"""Refusal rates by category, in a table for each side, prompt set and judge."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from orbench.base.words import Side
from orbench.report.measures import MACRO, OVERALL, Counted, Kind, Rate, Subset
from orbench.report.ranking import in_order
from orbench.report.results import Result
from orbench.report.standings import Standing

KINDS = (Kind.OVERALL, Kind.MACRO, Kind.CATEGORY)


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
        return f"{self.side.rate.capitalize()} by category"

    @property
    def full_title(self) -> str:
        """Return the title with the part."""
        return f"{self.title}: {self.part}" if self.part else self.title

    @property
    def categories(self) -> list[Subset]:
        """Return the single categories, sorted."""
        found = {subset for _, subset in self.rates} - {OVERALL, MACRO}
        return sorted(found, key=lambda subset: subset.value)


def category_tables(rates: Sequence[Rate], board: Sequence[Standing]) -> list[CategoryTable]:
    """Return a table for each side, prompt set and judge. Results without categories are left
    out.
    """
    with_categories = {one.result.number for one in rates if one.subset == MACRO}
    shown = [one for one in rates if _is_refusal_rate(one) and one.result.number in with_categories]
    sides = defaultdict[Side, dict[tuple[str, str], list[Rate]]](dict)
    for one in in_order(shown, board):
        result = one.result
        sides[result.side].setdefault((result.prompt_set, result.judge), []).append(one)
    tables = []
    for groups in sides.values():
        for group in groups.values():
            tables.append(_table(group, is_only=len(groups) == 1))
    return tables


def _is_refusal_rate(rate: Rate) -> bool:
    return rate.counted is Counted.REFUSED and rate.subset.kind in KINDS


def _table(rates: Sequence[Rate], *, is_only: bool) -> CategoryTable:
    results = {rate.result.number: rate.result for rate in rates}
    first = rates[0].result
    part = "" if is_only else f"{first.prompts}, {first.judge}"
    by_subset = {(rate.result.number, rate.subset): rate for rate in rates}
    return CategoryTable(first.side, part, list(results.values()), by_subset)
