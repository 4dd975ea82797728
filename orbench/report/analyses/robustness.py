"""In how many of the analyses that the files allow a finding stands: its multiverse (S. Steegen and
others, Perspectives on Psychological Science 11 (2016) 702-712).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from orbench.report.measures import Comparison, Robustness
from orbench.report.results import Result
from orbench.stats.core import ALPHA, Array, Prepared, difference

FEWEST = 4  # analyses, from which on their number is reported

_Who = tuple[str, str, str]


class _Judged(NamedTuple):
    """A result's verdicts on all prompts, and on those with an agreed label."""

    everything: Prepared
    agreed: Prepared | None  # None: there are no labels
    has_unscored: bool


_ByJudge = Mapping[_Who, Mapping[str, _Judged]]


def with_robustness(
    comparisons: Sequence[Comparison], results: Sequence[Result], agreed: Mapping[int, Array]
) -> list[Comparison]:
    """Return the comparisons; those with a finding know in how many analyses it stands.

    An analysis is a judge (or rubric) of both models, all prompts or those whose label all agree
    with, and unscored rows left out, as answers or as refusals. agreed: by the number of a result,
    which of its responses are to prompts with an agreed label; empty without labels.
    """
    judged = defaultdict[_Who, dict[str, _Judged]](dict)
    for result in results:
        judged[_who(result)][result.judge] = _judged(result, agreed)
    found = []
    for comparison in comparisons:
        if comparison.is_finding:
            comparison = replace(comparison, robustness=_robustness(comparison, judged))
        found.append(comparison)
    return found


def _who(result: Result) -> _Who:
    """Return what was measured, perhaps by several judges."""
    return result.side.name, result.prompt_set, result.label


def _judged(result: Result, agreed: Mapping[int, Array]) -> _Judged:
    responses = result.responses
    with_agreed_label = None
    if agreed:
        with_agreed_label = Prepared(responses.where(agreed[result.number]).verdicts())
    has_unscored = not responses.scored.all()
    return _Judged(Prepared(responses.verdicts()), with_agreed_label, bool(has_unscored))


def _robustness(comparison: Comparison, judged: _ByJudge) -> Robustness | None:
    """Return in how many analyses a finding stands; None if they are few."""
    held = []
    for a, b in _analyses(comparison, judged):
        gap = difference(a, b, paired=True)
        if gap.a.prompts:
            is_same_sign = gap.difference * comparison.gap.difference > 0
            held.append(gap.p < ALPHA and is_same_sign)
    return Robustness(sum(held), len(held)) if len(held) >= FEWEST else None


def _analyses(comparison: Comparison, judged: _ByJudge) -> Iterator[tuple[Prepared, Prepared]]:
    """Yield the verdicts on both models in each analysis."""
    of_a = judged[_who(comparison.a.result)]
    of_b = judged[_who(comparison.b.result)]
    for judge in of_a.keys() & of_b.keys():
        a = of_a[judge]
        b = of_b[judge]
        prompts = [(a.everything, b.everything)]
        if a.agreed and b.agreed:
            prompts.append((a.agreed, b.agreed))
        for in_a, in_b in prompts:
            yield in_a, in_b
            if a.has_unscored or b.has_unscored:
                yield in_a.with_answers, in_b.with_answers
                yield in_a.with_refusals, in_b.with_refusals
