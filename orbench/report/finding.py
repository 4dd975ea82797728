"""The headline of a report, for people who read nothing else.

Ranks and the outcomes of comparisons decide what it claims; rates only illustrate it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.words import Side
from orbench.report.compare import of_models
from orbench.report.measures import Comparison, Counted, Outcome
from orbench.report.numerals import interval_words, listed, percent
from orbench.report.sentences import remarks
from orbench.report.standings import Standing
from orbench.stats.intervals import Interval

SWAPPED = "refuses more safe prompts than toxic ones: check that no file is on the wrong side"


def findings(board: Sequence[Standing], comparisons: Sequence[Comparison]) -> list[str]:
    """Return the finding on each group of models with the same prompts and judge.

    comparisons: of all kinds.
    """
    compared = of_models(comparisons, Counted.REFUSED)
    found = []
    for models in grouped(board, lambda standing: standing.group).values():
        finding = ". ".join(_sentences(models, compared)) + "."
        part = models[0].part
        found.append(f"{part}: {finding}" if part else finding)
    return found


def _sentences(models: Sequence[Standing], compared: Sequence[Comparison]) -> Iterator[str]:
    """Yield the finding on the models of a group. compared: of all groups."""
    ranked = [model for model in models if model.is_ranked]
    measured = ranked or models
    if len(ranked) > 1:
        yield from _compared(ranked, compared)
    elif len(measured) == 1 and not measured[0].doubts:
        yield _rates(measured[0])
    else:
        yield "No finding"
    unranked = defaultdict[str, list[str]](list)
    for model in models:
        if model.youden and model.youden.interval.high < 0:
            yield f"{model.result.short} {SWAPPED}"
        if model.why:
            unranked["; ".join(model.why)].append(model.result.short)
    for why, names in unranked.items():
        yield f"Not ranked: {listed(names)} ({why})"


def _rates(model: Standing) -> str:
    """Return what a model refuses."""
    parts = []
    for rate in model.sides:
        if rate.n:
            few = ", too few to tell much" if rate.is_small else ""
            parts.append(f"{percent(rate)} of the {rate.side.prompts} (n {rate.n:,}{few})")
    return f"{model.result.short} refuses {' and '.join(parts)}"


# -- two or more ranked models -------------------------------------------------------------------


def _compared(ranked: Sequence[Standing], compared: Sequence[Comparison]) -> list[str]:
    """Return who is the best, the figures, and what speaks against it."""
    sentences = []
    against: list[str] = []
    first = ranked[0]
    if first.youden:
        leaders = [model for model in ranked if model.rank and model.rank.best == 1]
        sentences += _claims(leaders, "the best balance")
    for rate in first.sides:
        rates = [model.on(rate.side) for model in ranked]
        of_side = [one for one in compared if one.a in rates and one.b in rates]
        sentences += _claims_on(rate.side, ranked, of_side)
        for comparison in of_side:
            against += remarks(comparison)
    texts = "; ".join(dict.fromkeys(against))
    if texts:
        sentences[-1] += f" ({texts})"
    return [*dict.fromkeys(sentences)]


def _claims(leaders: Sequence[Standing], best: str) -> list[str]:
    """Return who has what is best. leaders: whom no other model is shown to beat.

    Each other model is shown to be beaten: by the only leader, or by one that it beats in turn.
    """
    names = listed([model.result.short for model in leaders])
    if len(leaders) > 1:
        return [f"{names} tie for {best}"]
    return [_rates(leaders[0]), f"{names} has {best}"]


def _claims_on(
    side: Side, ranked: Sequence[Standing], comparisons: Sequence[Comparison]
) -> list[str]:
    """Return who has the best rate on a side, by how much, or why that is not known."""
    beaten = [one.worse for one in comparisons if one.is_finding]
    leaders = [model for model in ranked if model.on(side) not in beaten]
    rates = [model.on(side) for model in leaders]
    of_leaders = [one for one in comparisons if one.a in rates or one.b in rates]
    best = "highest" if side.is_toxic else "lowest"
    why = _undecided(of_leaders) if len(leaders) > 1 else _distance(of_leaders)
    return _claims(leaders, f"the {best} {side.rate}: {why}")


def _distance(comparisons: Sequence[Comparison]) -> str:
    """Return how far the next model is from the best one. comparisons: those of the best one."""
    findings = [one for one in comparisons if one.is_finding]
    nearest = min(findings, key=lambda one: abs(one.gap.difference))
    rate = nearest.worse
    gap = nearest.gap
    low, high = sorted(map(abs, gap.interval))  # a finding excludes 0
    interval = interval_words(Interval(low, high))
    difference = f"a difference of {100 * abs(gap.difference):.1f} points {interval}"
    prompts = f"the {gap.a.prompts:,} prompts with a verdict from both"
    return f"{rate.result.short} follows with {percent(rate)}, {difference} on {prompts}"


def _undecided(comparisons: Sequence[Comparison]) -> str:
    """Return why nobody is ahead, and what true difference would be found."""
    reasons: list[str] = []
    detectable = [0.0]
    for comparison in comparisons:
        if not comparison.is_finding:
            reasons.append(comparison.outcome)
            if comparison.outcome is not Outcome.TOO_FEW:
                detectable.append(comparison.detectable)
    why = "; ".join(dict.fromkeys(reasons)) or Outcome.TOO_FEW
    largest = 100 * np.max(detectable)
    if largest > 0:  # not if one is not known
        difference = f"a true difference of {largest:.1f} points"
        why += f"; {difference} would be found with a probability of 80 %"
    return why
