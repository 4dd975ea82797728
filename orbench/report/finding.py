"""The headline of a report, for people who read nothing else, and the remarks behind it.

Ranks and the outcomes of comparisons decide what it claims; rates only illustrate it.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.messages import listed, shortened
from orbench.base.words import Lines, Words
from orbench.report.measures import FEW_PROMPTS, Comparison, Comparisons, Outcome
from orbench.report.numerals import points
from orbench.report.sentences import equivalence, remarks
from orbench.report.standings import Board, Report, Standing

# What is compared, by whatever judge.
_what = attrgetter("a.side.name", "a.result.prompt_set", "a.result.label", "b.result.label")
UNLABELED = "errors of the judge that differ between the models are not covered"
COMPARATIVES = {"best": "better", "lowest": "lower", "highest": "higher"}
WIDTH = 48  # of a name in a headline, so that a headline has two lines at most


class Finding(NamedTuple):
    """What a report shows, in two lines at most, and sentences on what it rests on."""

    headline: str
    remarks: Words = ()


def findings(report: Report) -> Iterator[Finding]:
    """Yield whether judges agree, then the finding on each group of models with the same prompts
    and judge.
    """
    compared = report.of_models()
    ranked = {rate for model in report.board if model.is_ranked for rate in model.sides}
    for line in _agreement([one for one in compared if {one.a, one.b} <= ranked]):
        yield Finding(line)
    for models in grouped(report.board, lambda standing: standing.group).values():
        headline, *remarks = dict.fromkeys(_sentences(models, compared))
        if sum(model.is_ranked for model in models) < 2:  # nobody quotes it without what is wrong
            headline, remarks = ". ".join([headline, *remarks]), []
        part = models[0].part
        yield Finding(f"{part}: {headline}." if part else f"{headline}.", remarks)


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
        yield f"{listed(sorted(judges))} give {same} findings."


def _sentences(models: Board, compared: Comparisons) -> Lines:
    """Yield the finding on the models of a group, then remarks. compared: of all groups."""
    ranked = [model for model in models if model.is_ranked]
    measured = ranked or models
    if len(ranked) > 1:
        yield from _compared(ranked, compared)
    elif len(measured) == 1 and not measured[0].result.doubt:
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
            yield f"Not ranked: {_names(alike)} ({why})"


def _names(models: Board) -> str:
    """Return who they are."""
    return listed([shortened(model.result.short, WIDTH) for model in models])


def _rates(model: Standing) -> str:
    """Return what a model refuses."""
    parts = []
    for rate in model.sides:
        if rate.n:
            few = f" (n {rate.n}, too few to tell much)" if rate.is_small else ""
            parts.append(f"{rate} of the {rate.side.prompts}{few}")
    return f"{model.result.short} refuses {' and '.join(parts) or 'an unknown share'}"


# -- two or more ranked models -------------------------------------------------------------------


def _compared(ranked: Board, compared: Comparisons) -> Lines:
    """Yield who is the best, the figures, and what speaks against it."""
    first = ranked[0]
    if first.youden:
        leaders = [model for model in ranked if model.rank and model.rank.best == 1]
        yield _headline(leaders, ranked, "best", "balance")
    against: list[str] = []
    for measured in first.sides:
        side = measured.side
        rates = [model.on(side) for model in ranked]
        of_side = [one for one in compared if one.a in rates and one.b in rates]
        beaten = [one.worse for one in of_side if one.is_finding]
        leaders = [model for model in ranked if model.on(side) not in beaten]
        of_best = [one for one in of_side if one.a not in beaten or one.b not in beaten]
        best = "highest" if side.is_toxic else "lowest"
        if not first.youden:
            yield _headline(leaders, ranked, best, side.rate)
        why = _undecided(of_best) if len(leaders) > 1 else _distance(of_best)
        yield f"{_claim(leaders)} the {best} {side.rate}: {why}"
        for comparison in of_side:
            against += _against(comparison)
    if against:
        yield f"Note: {'; '.join(dict.fromkeys(against))}"


def _against(comparison: Comparison) -> Lines:
    """Yield what speaks against a finding, and what does so in many comparisons alike."""
    a = comparison.a.result
    b = comparison.b.result
    yield from remarks(comparison)
    if a.settings != b.settings:
        yield "settings differ"
    if comparison.is_finding and not comparison.by_labels:
        yield UNLABELED


def _headline(leaders: Board, ranked: Board, best: str, measure: str) -> str:
    """Return who has what is best, and the rates of the first side.

    leaders: whom no other model is shown to beat. Each other model is shown to be beaten: by the
    only leader, or by one that it beats in turn.
    """
    side = ranked[0].sides[0].side
    percent = [100 * model.rate(side) for model in ranked]
    claim = f"{_claim(leaders)} the {best} {measure}"
    few = ""
    if any(rate.is_small for model in ranked for rate in model.sides):
        few = f" (some from fewer than {FEW_PROMPTS} prompts)"
    if len(ranked) == 2:
        if len(leaders) == 1:
            than = _names(ranked[1:])
            claim = f"{_names(leaders)} has a {COMPARATIVES[best]} {measure} than {than}"
        both = "{:.1f} and {:.1f} %".format(*percent)
        return f"{claim}; {side.rate}s: {both}{few}"
    if len(leaders) > 1:
        claim = f"{_names(leaders)} cannot be told apart at the top"
    extremes = f"range from {min(percent):.0f} to {max(percent):.0f} %{few}"
    return f"{claim} of {len(ranked)} models; {side.rate}s {extremes}"


def _claim(leaders: Board) -> str:
    """Return what the models whom no other model is shown to beat do, up to what is best."""
    verb = "cannot be told apart for" if len(leaders) > 1 else "has"
    return f"{_names(leaders)} {verb}"


def _distance(comparisons: Comparisons) -> str:
    """Return how far the next model is from the best one. comparisons: those of the best one."""
    findings = [one for one in comparisons if one.is_finding]
    nearest = min(findings, key=lambda one: abs(one.gap.difference))
    a, b = nearest.a.result, nearest.b.result
    return f"{a.short} - {b.short} {points(nearest.gap)}{equivalence(nearest)}"


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
