"""The headline of a report, for people who read nothing else.

Ranks and the outcomes of comparisons decide what it claims; rates only illustrate it.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.words import Side
from orbench.report.groups import Group, groups_of
from orbench.report.measures import Comparison, Outcome, Rate
from orbench.report.numerals import interval_words, listed, percent
from orbench.report.sentences import remarks
from orbench.report.standings import Standing
from orbench.stats.intervals import Interval

SWAPPED = "refuses more safe prompts than toxic ones: check that no file is on the wrong side"


def findings(board: Sequence[Standing], comparisons: Sequence[Comparison]) -> list[str]:
    """Return the finding on each group of models with the same prompts and judge.

    comparisons: of all kinds.
    """
    return [*map(_finding, groups_of(board, comparisons))]


def _finding(group: Group) -> str:
    measured = group.ranked or group.models
    if len(group.ranked) > 1:
        sentences = _compared(group)
    elif len(measured) == 1 and not measured[0].doubts:
        sentences = [_rates(measured[0])]
    else:
        sentences = ["No finding"]
    for model in group.models:
        if model.youden and model.youden.high < 0:
            sentences.append(f"{model.short} {SWAPPED}")
    for why, alike in grouped(group.unranked, lambda model: "; ".join(model.why)).items():
        sentences.append(f"Not ranked: {_names(alike)} ({why})")
    finding = ". ".join(sentences) + "."
    part = group.models[0].part
    return f"{part}: {finding}" if part else finding


def _names(models: Sequence[Standing]) -> str:
    return listed([model.short for model in models])


def _rates(model: Standing) -> str:
    """Return what a model refuses."""
    parts = []
    for rate in model.sides:
        if rate.n:
            few = ", too few to tell much" if rate.is_small else ""
            parts.append(f"{percent(rate)} of the {rate.side.prompts} (n {rate.n:,}{few})")
    return f"{model.short} refuses {' and '.join(parts)}"


# -- two or more ranked models -------------------------------------------------------------------


def _compared(group: Group) -> list[str]:
    """Return who is the best, the figures, and what speaks against it."""
    sentences = []
    first = group.ranked[0]
    if first.youden:
        sentences += _claims(group.leaders, "the best balance")
    for rate in first.sides:
        sentences += _claims_on(rate.side, group)
    against = chain.from_iterable(map(remarks, group.comparisons))
    texts = "; ".join(dict.fromkeys(against))
    if texts:
        sentences[-1] += f" ({texts})"
    return list(dict.fromkeys(sentences))


def _claims(leaders: Sequence[Standing], best: str) -> list[str]:
    """Return who has what is best. leaders: whom no other model is shown to beat.

    Each other model is shown to be beaten: by the only leader, or by one that it beats in turn.
    """
    if len(leaders) > 1:
        return [f"{_names(leaders)} tie for {best}"]
    return [_rates(leaders[0]), f"{leaders[0].short} has {best}"]


def _claims_on(side: Side, group: Group) -> list[str]:
    """Return who has the best rate on a side, by how much, or why that is not known."""
    beaten = [_worse(finding) for finding in group.findings]
    leaders = [model for model in group.ranked if model.on(side) not in beaten]
    rates = [model.on(side) for model in leaders]
    found = []
    undecided = []
    for comparison in group.comparisons:
        if comparison.a in rates or comparison.b in rates:
            if comparison.is_finding:
                found.append(comparison)
            else:
                undecided.append(comparison)
    best = "highest" if side.is_toxic else "lowest"
    claims = _claims(leaders, f"the {best} {side.rate}")
    if len(leaders) > 1:
        claims[-1] += f": {_undecided(undecided)}"
    else:
        claims[-1] += f": {_distance(found)}"
    return claims


def _worse(finding: Comparison) -> Rate:
    return finding.fewer if finding.a.side.is_toxic else finding.more


def _distance(findings: Sequence[Comparison]) -> str:
    """Return how far the next model is from the best one. findings: those of the best one."""
    finding = min(findings, key=lambda one: abs(one.gap.difference))
    rate = _worse(finding)
    gap = finding.gap
    ends = Interval(*sorted([abs(gap.low), abs(gap.high)]))  # a finding excludes 0
    difference = f"{100 * abs(gap.difference):.1f} points {interval_words(ends)}"
    prompts = f"{gap.a.prompts:,} prompts with a verdict from both"
    follows = f"{rate.result.short} follows with {percent(rate)}"
    return f"{follows}, a difference of {difference} on the {prompts}"


def _undecided(comparisons: Sequence[Comparison]) -> str:
    """Return why nobody is ahead, and what true difference would be found."""
    reasons: list[str] = [*dict.fromkeys(one.outcome for one in comparisons)]
    if not reasons:
        reasons.append(Outcome.TOO_FEW)
    tested = [one.detectable for one in comparisons if one.outcome is not Outcome.TOO_FEW]
    largest = 100 * np.max(tested, initial=0)
    if largest > 0:  # not if one is not known
        difference = f"a true difference of {largest:.1f} points"
        reasons.append(f"{difference} would be found with a probability of 80 %")
    return "; ".join(reasons)
