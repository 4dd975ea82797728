"""How the rates of models change from one prompt set to another, such as two dated releases.

The prompts differ, so the comparison is unpaired.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import nan

from orbench.report.measures import Analysis, Compared, Comparison, Family, Outcome, Rate
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, difference


def drift(rates: Sequence[Rate]) -> Analysis:
    """Return the comparison of each model's overall rates on two prompt sets of a side: the later
    set minus the earlier one, in the order given. Scripted and partial results are left out.
    """
    changes = list(_changes([rate for rate in rates if not rate.result.doubt]))
    family = Family(Compared.SETS, "", len(changes))
    gaps = [
        difference(later.verdicts, earlier.verdicts, paired=False) for later, earlier in changes
    ]
    corrected = holm([gap.p for gap in gaps])
    comparisons = []
    for (later, earlier), gap, p_holm in zip(changes, gaps, corrected, strict=True):
        outcome = Outcome.FINDING if p_holm < ALPHA else Outcome.NO_DIFFERENCE
        comparison = Comparison(
            a=later,
            b=earlier,
            family=family,
            gap=gap,
            p_holm=float(p_holm),
            p_worst=nan,
            detectable=nan,
            outcome=outcome,
        )
        comparisons.append(comparison)
    return Analysis(comparisons=comparisons)


def _changes(rates: Sequence[Rate]) -> Iterator[tuple[Rate, Rate]]:
    """Yield the later and the earlier rate of a model, for each two prompt sets."""
    for several in _grouped(rates):
        sets = defaultdict[str, list[Rate]](list)
        for rate in several:
            sets[rate.result.prompts].append(rate)
        for earlier, later in combinations(sets.values(), 2):
            of_later = {rate.result.label: rate for rate in later}
            for rate in earlier:
                if rate.result.label in of_later:
                    yield of_later[rate.result.label], rate


def _grouped(rates: Sequence[Rate]) -> list[list[Rate]]:
    """Return the rates by side and judge."""
    groups = defaultdict[tuple[str, str], list[Rate]](list)
    for rate in rates:
        groups[rate.result.side.name, rate.result.judge].append(rate)
    return [groups[name] for name in sorted(groups)]
