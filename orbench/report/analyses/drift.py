"""How the rates of models change from one prompt set to another, such as two dated releases.

The prompts differ, so the comparison is unpaired.
"""

from collections.abc import Sequence
from itertools import combinations, product

from orbench.base.grouping import grouped
from orbench.report.compare import tested
from orbench.report.measures import Analysis, Compared, Rate


def drift(rates: Sequence[Rate]) -> Analysis:
    """Return the comparison of each model's overall rates on two prompt sets of a side: the later
    set minus the earlier one, in the order given. Scripted and partial results are left out.
    """
    sound = [rate for rate in rates if not rate.result.doubt]
    changes = []
    for _, several in sorted(grouped(sound, _side_and_judge).items()):
        sets = grouped(several, lambda rate: rate.result.prompts)
        for earlier, later in combinations(sets.values(), 2):
            for before, after in product(earlier, later):
                if before.result.label == after.result.label:
                    changes.append((after, before))
    return Analysis(comparisons=[*tested(Compared.SETS, changes)])


def _side_and_judge(rate: Rate) -> tuple[str, str]:
    return rate.result.side.name, rate.result.judge
