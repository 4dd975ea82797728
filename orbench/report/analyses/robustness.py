"""In how many of the analyses that the files allow a finding stands: its multiverse (S. Steegen and
others, Perspectives on Psychological Science 11 (2016) 702-712).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from orbench.base.grouping import grouped
from orbench.report.analyses.labels import AGREED, Labels
from orbench.report.measures import Comparison, Robustness
from orbench.report.results import Result
from orbench.stats.core import ALPHA, Difference, Prepared, difference

FEWEST = 4  # analyses, from which on their number is reported


def with_robustness(
    comparisons: Sequence[Comparison], results: Sequence[Result], labels: Labels | None
) -> list[Comparison]:
    """Return the comparisons; those with a finding know in how many analyses it stands.

    An analysis is a judge (or rubric) of both models, all prompts or those whose label all agree
    with, and unscored rows left out, as answers or as refusals.
    """
    verdicts = {}
    for result in results:
        parts = [result.responses]
        if labels:
            parts.append(result.responses.where(labels.agreement(result) == AGREED))
        verdicts[result.number] = [Prepared(part.verdicts()) for part in parts]
    measured = grouped(results, _what)
    found = []
    for comparison in comparisons:
        if comparison.is_finding:
            several_a = measured[_what(comparison.a.result)]
            several_b = measured[_what(comparison.b.result)]
            held = []
            for a, b in product(several_a, several_b):
                if a.judge == b.judge:
                    gaps = _gaps(verdicts[a.number], verdicts[b.number])
                    held += [_is_same(gap, comparison.gap) for gap in gaps if gap.a.prompts]
            if len(held) >= FEWEST:
                comparison = replace(comparison, robustness=Robustness(sum(held), len(held)))
        found.append(comparison)
    return found


def _what(result: Result) -> tuple[str, str, str]:
    """Return what was measured, perhaps by several judges."""
    return result.side.name, result.prompt_set, result.label


def _gaps(of_a: Sequence[Prepared], of_b: Sequence[Prepared]) -> Iterator[Difference]:
    """Yield the difference in each analysis by one judge."""
    refused = of_a[0].verdicts.refused, of_b[0].verdicts.refused
    has_unscored = np.isnan(np.concatenate(refused)).any()
    for a, b in zip(of_a, of_b, strict=True):
        yield difference(a, b, paired=True)
        if has_unscored:
            yield difference(a.with_answers, b.with_answers, paired=True)
            yield difference(a.with_refusals, b.with_refusals, paired=True)


def _is_same(gap: Difference, finding: Difference) -> bool:
    return gap.p < ALPHA and gap.difference * finding.difference > 0
