"""In how many of the analyses that the files allow a finding stands: its multiverse (S. Steegen and
others, Perspectives on Psychological Science 11 (2016) 702-712).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import nan
from operator import attrgetter

from orbench.base.grouping import grouped
from orbench.report.analyses.labels import AGREED, Labels
from orbench.report.measures import Comparison, Comparisons, Robustness
from orbench.report.results import Result, Results
from orbench.stats.core import ALPHA, Difference, Verdicts, difference

FEWEST = 4  # analyses, from which on their number is reported


# What was measured, perhaps by several judges.
_what = attrgetter("side.name", "prompt_set", "label")


def with_robustness(
    comparisons: Comparisons, results: Results, labels: Labels | None
) -> Iterator[Comparison]:
    """Yield the comparisons; those with a finding know in how many analyses it stands.

    An analysis is a judge (or rubric) of both models, all prompts or those whose label all agree
    with, and unscored rows left out, as answers or as refusals.
    """
    judged = grouped(results, _what)
    for comparison in comparisons:
        if comparison.is_finding:
            held: list[bool] = []
            of_a = judged[_what(comparison.a.result)]
            of_b = judged[_what(comparison.b.result)]
            for a, b in product(of_a, of_b):
                if a.judge == b.judge:
                    held += _held(comparison.gap, a, b, labels)
            if len(held) >= FEWEST:
                comparison = replace(comparison, robustness=Robustness(sum(held), len(held)))
        yield comparison


def _held(finding: Difference, a: Result, b: Result, labels: Labels | None) -> Iterator[bool]:
    """Yield whether a finding stands in each analysis by one judge."""
    subsets = zip(_subsets(a, labels), _subsets(b, labels), strict=True)
    fills = [nan]
    if not (a.responses.scored.all() and b.responses.scored.all()):
        fills += [0, 1]
    for (of_a, of_b), fill in product(subsets, fills):
        gap = difference(of_a.imputed(fill), of_b.imputed(fill), paired=True)
        if gap.a.prompts:
            yield gap.p_toward(finding) < ALPHA


def _subsets(result: Result, labels: Labels | None) -> Iterator[Verdicts]:
    """Yield the verdicts on all prompts, and on those whose label all agree with."""
    verdicts = result.responses.verdicts()
    yield verdicts
    if labels:
        yield verdicts.where(labels.agreement(result) == AGREED)
