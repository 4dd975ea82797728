"""What ranks and comparisons show of the models with the same prompts and judge."""

from collections.abc import Sequence
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.report.compare import of_models
from orbench.report.measures import Comparison, Counted
from orbench.report.standings import Standing


class Group(NamedTuple):
    """Models with the same prompts and judge."""

    models: list[Standing]
    comparisons: list[Comparison]  # of the ranked ones

    @property
    def ranked(self) -> list[Standing]:
        """Return the models that are ranked."""
        return [model for model in self.models if model.is_ranked]

    @property
    def unranked(self) -> list[Standing]:
        """Return the models that are not ranked."""
        return [model for model in self.models if not model.is_ranked]

    @property
    def leaders(self) -> list[Standing]:
        """Return the models that no other one is shown to beat."""
        return [model for model in self.models if model.rank and model.rank.best == 1]

    @property
    def findings(self) -> list[Comparison]:
        """Return the comparisons that show a difference."""
        return [comparison for comparison in self.comparisons if comparison.is_finding]


def groups_of(board: Sequence[Standing], comparisons: Sequence[Comparison]) -> list[Group]:
    """Return the groups of a leaderboard. comparisons: of all kinds."""
    compared = of_models(comparisons, Counted.REFUSED)
    groups = []
    for models in grouped(board, lambda standing: standing.group).values():
        results = {result for model in models if model.is_ranked for result in model.results}
        of_group = [one for one in compared if {one.a.result, one.b.result} <= results]
        groups.append(Group(models, of_group))
    return groups
