"""How often models hedge on safe prompts, compared: what graded results add."""

from collections.abc import Sequence

from orbench.report.compare import compare
from orbench.report.measures import OVERALL, Analysis, Counted, Rate
from orbench.report.rates import on_side
from orbench.report.results import SAFE


def hedging(rates: Sequence[Rate]) -> Analysis:
    """Return the comparisons of the shares of responses to safe prompts that hedge."""
    hedged = []
    for rate in on_side(SAFE, rates):
        if rate.counted is Counted.HEDGED and rate.subset == OVERALL:
            hedged.append(rate)
    return Analysis(comparisons=compare(hedged))
