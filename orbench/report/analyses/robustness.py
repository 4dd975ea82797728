"""In how many of the analyses that the files allow a finding stands: its multiverse (S. Steegen and
others, Perspectives on Psychological Science 11 (2016) 702-712).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from orbench.report.analyses.labels import AGREED, Labels
from orbench.report.measures import Comparison, Robustness
from orbench.report.results import Result
from orbench.stats.core import ALPHA, Difference, Verdicts, difference

FEWEST = 4  # analyses, from which on their number is reported

_What = tuple[str, str, str]  # was measured, perhaps by several judges


def with_robustness(
    comparisons: Sequence[Comparison], results: Sequence[Result], labels: Labels | None
) -> list[Comparison]:
    """Return the comparisons; those with a finding know in how many analyses it stands.

    An analysis is a judge (or rubric) of both models, all prompts or those whose label all agree
    with, and unscored rows left out, as answers or as refusals.
    """
    measured = defaultdict[_What, dict[str, list[Verdicts]]](dict)  # by judge
    for result in results:
        parts = [result.responses]
        if labels:
            parts.append(result.responses.where(labels.agreement(result) == AGREED))
        measured[_what(result)][result.judge] = [part.verdicts() for part in parts]
    found = []
    for comparison in comparisons:
        if comparison.is_finding:
            of_a = measured[_what(comparison.a.result)]
            of_b = measured[_what(comparison.b.result)]
            held: list[bool] = []
            for judge in of_a.keys() & of_b.keys():
                held += _held(comparison.gap, of_a[judge], of_b[judge])
            if len(held) >= FEWEST:
                comparison = replace(comparison, robustness=Robustness(sum(held), len(held)))
        found.append(comparison)
    return found


def _what(result: Result) -> _What:
    return result.side.name, result.prompt_set, result.label


def _held(
    finding: Difference, of_a: Sequence[Verdicts], of_b: Sequence[Verdicts]
) -> Iterator[bool]:
    """Yield whether a finding stands in each analysis by one judge."""
    refused = of_a[0].refused, of_b[0].refused
    has_unscored = np.isnan(np.concatenate(refused)).any()
    for a, b in zip(of_a, of_b, strict=True):
        analyses = [(a, b)]
        if has_unscored:
            analyses.append((a.imputed(0), b.imputed(0)))
            analyses.append((a.imputed(1), b.imputed(1)))
        for pair in analyses:
            gap = difference(*pair, paired=True)
            if gap.a.prompts:
                yield gap.p < ALPHA and gap.difference * finding.difference > 0
