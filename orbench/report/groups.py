"""What ranks and comparisons show of the models with the same prompts and judge."""

from collections.abc import Sequence
from dataclasses import dataclass

from orbench.base.grouping import grouped
from orbench.report.compare import of_models
from orbench.report.measures import Comparison, Counted
from orbench.report.standings import Standing


@dataclass(frozen=True, eq=False)
class Group:
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
        return [model for model in self.ranked if model.rank and model.rank.best == 1]

    @property
    def findings(self) -> list[Comparison]:
        """Return the comparisons that show a difference."""
        return [comparison for comparison in self.comparisons if comparison.is_finding]


def groups_of(board: Sequence[Standing], comparisons: Sequence[Comparison]) -> list[Group]:
    """Return the groups of a leaderboard. comparisons: of all kinds."""
    groups = []
    for models in grouped(board, lambda standing: standing.group).values():
        group = Group(models, [])
        results = [result for model in group.ranked for result in model.results]
        for comparison in of_models(comparisons, Counted.REFUSED):
            if comparison.a.result in results and comparison.b.result in results:
                group.comparisons.append(comparison)
        groups.append(group)
    return groups
