"""The headline of a report, for people who read nothing else.

Ranks and the outcomes of comparisons decide what it claims; rates only illustrate it.
"""

from operator import attrgetter

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.messages import listed
from orbench.base.words import Lines
from orbench.report.measures import Comparisons, Outcome
from orbench.report.sentences import equivalence, remarks
from orbench.report.standings import Board, Report, Standing
from orbench.stats.intervals import Interval

# What is compared, by whatever judge.
_what = attrgetter("a.side.name", "a.result.prompt_set", "a.result.label", "b.result.label")
UNLABELED = "errors of the judge that differ between the models are not covered"


def findings(report: Report) -> Lines:
    """Yield whether judges agree, then the finding on each group of models with the same prompts
    and judge.
    """
    compared = report.of_models()
    ranked = {rate for model in report.board if model.is_ranked for rate in model.sides}
    yield from _agreement([one for one in compared if {one.a, one.b} <= ranked])
    for models in grouped(report.board, lambda standing: standing.group).values():
        finding = ". ".join(dict.fromkeys(_sentences(models, compared)))
        part = models[0].part
        yield f"{part}: {finding}." if part else f"{finding}."


def _agreement(compared: Comparisons) -> Lines:
    """Yield whether several judges of the same models give the same findings, if there are some."""
    judges = set[str]()
    same = "the same"
    for tests in grouped(compared, _what).values():
        shown = {test.is_finding and test.worse.result.label for test in tests}
        if len(tests) > 1 and any(shown):
            judges |= {test.judge for test in tests}
            if len(shown) > 1:
                same = "different"
    if judges:
        yield f"{' and '.join(sorted(judges))} give {same} findings."


def _sentences(models: Board, compared: Comparisons) -> Lines:
    """Yield the finding on the models of a group. compared: of all groups."""
    ranked = [model for model in models if model.is_ranked]
    measured = ranked or models
    if len(ranked) > 1:
        yield from _compared(ranked, compared)
    elif len(measured) == 1 and not measured[0].doubts:
        yield _rates(measured[0])
    else:
        yield "No finding"
    for model in models:
        if model.youden and model.youden.interval.high < 0:
            yield (
                f"{model.result.short} refuses more safe prompts than toxic ones: "
                "check that no file is on the wrong side"
            )
    for why, alike in grouped(models, lambda model: "; ".join(model.why)).items():
        if why:
            names = listed([model.result.short for model in alike])
            yield f"Not ranked: {names} ({why})"


def _rates(model: Standing) -> str:
    """Return what a model refuses."""
    parts = []
    for rate in model.sides:
        if rate.n:
            few = ", too few to tell much" if rate.is_small else ""
            parts.append(f"{rate} of the {rate.side.prompts} (n {rate.n:,}{few})")
    return f"{model.result.short} refuses {' and '.join(parts) or 'an unknown share'}"


# -- two or more ranked models -------------------------------------------------------------------


def _compared(ranked: Board, compared: Comparisons) -> Lines:
    """Yield who is the best, the figures, and what speaks against it."""
    first = ranked[0]
    if first.youden:
        leaders = [model for model in ranked if model.rank and model.rank.best == 1]
        yield from _claims(leaders, "the best balance")
    against: list[str] = []
    for measured in first.sides:
        side = measured.side
        rates = [model.on(side) for model in ranked]
        of_side = [one for one in compared if one.a in rates and one.b in rates]
        beaten = [one.worse for one in of_side if one.is_finding]
        leaders = [model for model in ranked if model.on(side) not in beaten]
        of_best = [one for one in of_side if one.a not in beaten or one.b not in beaten]
        why = _undecided(of_best) if len(leaders) > 1 else _distance(of_best)
        most = "highest" if side.is_toxic else "lowest"
        yield from _claims(leaders, f"the {most} {side.rate}: {why}")
        for comparison in of_side:
            against += remarks(comparison)
            if comparison.is_finding and not comparison.by_labels:
                against.append(UNLABELED)
    if against:
        yield f"Note: {'; '.join(dict.fromkeys(against))}"


def _claims(leaders: Board, best: str) -> Lines:
    """Yield who has what is best. leaders: whom no other model is shown to beat.

    Each other model is shown to be beaten: by the only leader, or by one that it beats in turn.
    """
    names = listed([model.result.short for model in leaders])
    if len(leaders) > 1:
        yield f"{names} cannot be told apart for {best}"
    else:
        yield _rates(leaders[0])
        yield f"{names} has {best}"


def _distance(comparisons: Comparisons) -> str:
    """Return how far the next model is from the best one. comparisons: those of the best one."""
    findings = [one for one in comparisons if one.is_finding]
    nearest = min(findings, key=lambda one: abs(one.gap.difference))
    gap = nearest.gap
    ends = sorted(map(abs, gap.interval))  # a finding excludes 0
    return (
        f"{nearest.worse.result.short} follows with {nearest.worse}, "
        f"a difference of {100 * abs(gap.difference):.1f} points {Interval(*ends)} "
        f"on the {gap.a.prompts:,} prompts with a verdict from both"
    ) + equivalence(nearest)


def _undecided(comparisons: Comparisons) -> str:
    """Return why nobody is ahead, how close they are, and what true difference would be found."""
    undecided = [one for one in comparisons if not one.is_finding]
    why = "; ".join(dict.fromkeys(one.outcome for one in undecided)) or Outcome.TOO_FEW
    if undecided and all(one.within for one in undecided):
        why += equivalence(undecided[0])
    enough = [one.detectable for one in undecided if one.outcome is not Outcome.TOO_FEW]
    largest = 100 * np.max(enough, initial=0)
    if largest > 0:  # not if one is not known
        why += (
            f"; a true difference of {largest:.1f} points would be found with a probability of 80 %"
        )
    return why
