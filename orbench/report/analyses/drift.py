"""How the rates of models change from one prompt set to another, such as two dated releases.

The prompts differ, so the comparison is unpaired.
"""

from itertools import combinations

from orbench.base.grouping import grouped
from orbench.report.compare import tested
from orbench.report.measures import Analysis, Compared, Rates


def drift(rates: Rates) -> Analysis:
    """Return the comparison of each model's overall rates on two prompt sets of a side: the later
    set minus the earlier one, in the order given. Scripted and partial results are left out.
    """
    sound = [rate for rate in rates if not rate.result.doubt]
    changes = []
    groups = grouped(sound, lambda rate: (rate.side.name, rate.result.judge, rate.result.label))
    for _, of_model in sorted(groups.items()):
        for before, after in combinations(of_model, 2):
            changes.append((after, before))
    return Analysis(comparisons=[*tested(Compared.SETS, changes)])
