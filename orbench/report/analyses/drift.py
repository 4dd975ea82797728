"""How the rates of models change from one prompt set to another, such as two dated releases.

The prompts differ, and so may their difficulty: a change alone is no finding. How much more a model
changes than another one that was measured on both sets may be one.
"""

from dataclasses import replace
from itertools import chain, combinations
from math import nan
from operator import attrgetter

from orbench.base.grouping import grouped
from orbench.report.compare import corrected, tested
from orbench.report.measures import Analysis, Compared, Comparison, Outcome, Pair, Rates
from orbench.stats.core import Difference, change, difference

# What two models must share for their changes to be compared.
_prompts = attrgetter("side.name", "result.judge", "result.prompt_set")


def drift(rates: Rates) -> Analysis:
    """Return the comparison of each model's overall rates on two prompt sets of a side, the later
    set minus the earlier one, in the order given; then the changes of each two models compared.
    Scripted and partial results are left out.
    """
    sound = [rate for rate in rates if not rate.result.doubt]
    changes = []
    groups = grouped(sound, attrgetter("side.name", "result.judge", "result.label"))
    for _, of_model in sorted(groups.items()):
        for before, after in combinations(of_model, 2):
            changes.append((after, before))
    alone = [replace(one, outcome=Outcome.DIFFICULTY) for one in tested(Compared.SETS, changes)]
    same_sets = grouped(changes, lambda sets: tuple(map(_prompts, sets)))
    pairs = chain.from_iterable(combinations(models, 2) for models in same_sets.values())
    relative = [_relative(*models) for models in pairs]
    return Analysis(comparisons=[*alone, *corrected(relative)])


def _relative(model: Pair, reference: Pair) -> Comparison:
    """Return how much more a model changes than another one, before correction. Both: with the
    rate on the later set first.
    """
    gap = _change(model, reference, nan)
    worst = _change(model, reference, float(gap.difference <= 0))
    # Harder prompts change unequal rates unequally.
    low, high = gap.b.interval  # of their difference on the earlier set
    outcome = Outcome.DIFFICULTY if low * high > 0 else Outcome.NO_DIFFERENCE
    return Comparison(
        model[0], reference[1], Compared.CHANGES, gap, p_worst=worst.p_toward(gap), outcome=outcome
    )


def _change(model: Pair, reference: Pair, fill: float) -> Difference:
    """Return the change. fill: for unscored rows of the model on the later set, and so on, against
    each other; NaN: they are left out.
    """
    gaps = []
    for a, b, of_a in zip(model, reference, (fill, 1 - fill), strict=True):
        x = a.verdicts.imputed(of_a)
        y = b.verdicts.imputed(1 - of_a)
        gaps.append(difference(x, y, paired=True))
    return change(*gaps)
