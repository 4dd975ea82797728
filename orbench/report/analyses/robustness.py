"""In how many of the analyses that the files allow a finding stands: its multiverse (S. Steegen and
others, Perspectives on Psychological Science 11 (2016) 702-712).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from orbench.report.measures import Comparison, Robustness
from orbench.report.results import Result
from orbench.stats.core import ALPHA, Array, Verdicts, difference

FEWEST = 4  # analyses, from which on their number is reported

_Who = tuple[str, str, str]  # what was measured, perhaps by several judges
# All verdicts on a result; with labels also those on prompts with an agreed label.
_ByJudge = dict[str, list[Verdicts]]


def with_robustness(
    comparisons: Sequence[Comparison], results: Sequence[Result], agreed: Mapping[int, Array]
) -> list[Comparison]:
    """Return the comparisons; those with a finding know in how many analyses it stands.

    An analysis is a judge (or rubric) of both models, all prompts or those whose label all agree
    with, and unscored rows left out, as answers or as refusals. agreed: by the number of a result,
    which of its responses are to prompts with an agreed label; empty without labels.
    """
    judged = defaultdict[_Who, _ByJudge](dict)
    for result in results:
        verdicts = [result.responses.verdicts()]
        if agreed:
            of_agreed = result.responses.where(agreed[result.number])
            verdicts.append(of_agreed.verdicts())
        judged[_who(result)][result.judge] = verdicts
    found = []
    for comparison in comparisons:
        if comparison.is_finding:
            analyses = _analyses(
                judged[_who(comparison.a.result)], judged[_who(comparison.b.result)]
            )
            comparison = replace(comparison, robustness=_robustness(comparison, analyses))
        found.append(comparison)
    return found


def _who(result: Result) -> _Who:
    return result.side.name, result.prompt_set, result.label


def _robustness(
    comparison: Comparison, analyses: Iterable[tuple[Verdicts, Verdicts]]
) -> Robustness | None:
    """Return in how many analyses a finding stands; None if they are few."""
    held = []
    for a, b in analyses:
        gap = difference(a, b, paired=True)
        if gap.a.prompts:
            held.append(gap.p < ALPHA and gap.difference * comparison.gap.difference > 0)
    return Robustness(sum(held), len(held)) if len(held) >= FEWEST else None


def _analyses(of_a: _ByJudge, of_b: _ByJudge) -> Iterator[tuple[Verdicts, Verdicts]]:
    """Yield the verdicts on both models in each analysis."""
    for judge in of_a.keys() & of_b.keys():
        first_a = of_a[judge][0]
        first_b = of_b[judge][0]
        has_unscored = np.isnan([*first_a.refused, *first_b.refused]).any()
        for a, b in zip(of_a[judge], of_b[judge], strict=True):
            yield a, b
            if has_unscored:
                yield a.with_answers, b.with_answers
                yield a.with_refusals, b.with_refusals
