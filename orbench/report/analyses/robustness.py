"""In how many of the analyses that the files allow a finding stands: its multiverse (S. Steegen and
others, Perspectives on Psychological Science 11 (2016) 702-712).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import nan

from orbench.report.measures import Comparison, Robustness
from orbench.report.results import Result
from orbench.stats.core import ALPHA, Array, Verdicts, difference, impute_unscored

FEWEST = 4  # analyses, from which on their number is reported

_Who = tuple[str, str, str]
_Judged = Mapping[_Who, Mapping[str, Result]]  # who -> judge -> result


def with_robustness(
    comparisons: Sequence[Comparison], results: Sequence[Result], agreed: Mapping[int, Array]
) -> list[Comparison]:
    """Return the comparisons; those with a finding know in how many analyses it stands.

    An analysis is a judge (or rubric) of both models, all prompts or those whose label all agree
    with, and unscored rows left out, as answers or as refusals. agreed: by the number of a result,
    which of its responses are to prompts with an agreed label; empty without labels.
    """
    judged = defaultdict[_Who, dict[str, Result]](dict)
    for result in results:
        judged[_who(result)][result.judge] = result
    found = []
    for comparison in comparisons:
        if comparison.is_finding:
            comparison = replace(comparison, robustness=_robustness(comparison, judged, agreed))
        found.append(comparison)
    return found


def _who(result: Result) -> _Who:
    """Return what was measured, perhaps by several judges."""
    return result.side.name, result.prompt_set, result.label


def _robustness(
    comparison: Comparison, judged: _Judged, agreed: Mapping[int, Array]
) -> Robustness | None:
    """Return in how many analyses a finding stands; None if they are few."""
    held = []
    for a, b in _analyses(comparison, judged, agreed):
        gap = difference(a, b, paired=True)
        if gap.a.prompts:
            is_same_sign = gap.difference * comparison.gap.difference > 0
            held.append(gap.p < ALPHA and is_same_sign)
    return Robustness(sum(held), len(held)) if len(held) >= FEWEST else None


def _analyses(
    comparison: Comparison, judged: _Judged, agreed: Mapping[int, Array]
) -> Iterator[tuple[Verdicts, Verdicts]]:
    """Yield the verdicts on both models in each analysis."""
    of_a = judged[_who(comparison.a.result)]
    of_b = judged[_who(comparison.b.result)]
    for judge in of_a.keys() & of_b.keys():
        a = of_a[judge]
        b = of_b[judge]
        prompts = [(a.responses, b.responses)]
        if agreed:
            part_a = a.responses.where(agreed[a.number])
            part_b = b.responses.where(agreed[b.number])
            prompts.append((part_a, part_b))
        unscored = [nan]  # left out, as answers, as refusals
        if not (a.responses.scored.all() and b.responses.scored.all()):
            unscored += [0, 1]
        for (in_a, in_b), counts_as in product(prompts, unscored):
            filled_a = impute_unscored(in_a.verdicts(), counts_as)
            filled_b = impute_unscored(in_b.verdicts(), counts_as)
            yield filled_a, filled_b
