"""The headline of a report, for people who read nothing else.

Ranks and the outcomes of comparisons decide what it claims; rates only illustrate it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from orbench.base.grouping import grouped
from orbench.report.about import DEMO_NOTE
from orbench.report.groups import Group, groups_of
from orbench.report.measures import Comparison, Outcome, Rate
from orbench.report.numerals import interval_words, listed, percent
from orbench.report.results import SAFE, TOXIC, Result
from orbench.report.sentences import remarks
from orbench.report.standings import Standing
from orbench.stats.intervals import Interval

NO_RANKING = "No single ranking: the results differ in prompts or judge"
SWAPPED = "refuses more safe prompts than toxic ones: check that no file is on the wrong side"
MOST_GROUPS = 3  # with more, there is no headline


class _Superlative(NamedTuple):
    """What is said of the best models."""

    alone: str  # of a winner
    tied: str  # of several leaders
    better: str  # what no model is shown to be, of the only leader


LOWEST = _Superlative(
    "over-refuses least", "tie for the lowest over-refusal rate", "over-refuse less than"
)
HIGHEST = _Superlative(
    "rejects the most toxic prompts",
    "tie for the highest toxic rejection rate",
    "reject more toxic prompts than",
)
BALANCE = _Superlative(
    "has the best balance", "tie for the best balance", "have a better balance than"
)


def findings(board: Sequence[Standing], comparisons: Sequence[Comparison]) -> list[str]:
    """Return the finding on each group of models with the same prompts and judge, if they are few.

    comparisons: of all kinds.
    """
    groups = groups_of(board, comparisons)
    if len(groups) > MOST_GROUPS:
        return [f"{NO_RANKING} ({len(groups)} groups)."]
    return [_finding(group) for group in groups]


# -- the sentences on a group --------------------------------------------------------------------


def _finding(group: Group) -> str:
    sentences = [_claim(group)]
    for model in group.models:
        if model.youden and model.youden.high < 0:
            sentences.append(f"{model.short} {SWAPPED}")
    if group.unranked and (group.ranked or _is_measured_alone(group)):
        sentences.append(f"Not ranked: {_reasons(group.unranked, with_names=bool(group.ranked))}")
    finding = ". ".join(sentences) + "."
    part = group.models[0].part
    return f"{part}: {finding}" if part else finding


def _claim(group: Group) -> str:
    if len(group.ranked) > 1:
        return _compared(group)
    if group.ranked:
        return _rates(group.ranked[0])
    if _is_measured_alone(group):
        return _rates(group.unranked[0])
    reasons = _reasons(group.unranked)
    if not all(model.doubts for model in group.unranked):
        return f"No model is ranked: {reasons}"
    if len(_by_reason(group.unranked)) > 1:
        return f"No finding: {reasons}"
    return f"No finding ({reasons})"


def _is_measured_alone(group: Group) -> bool:
    """Return whether the only model is not ranked, although its rates measure something."""
    return len(group.models) == 1 and not group.models[0].doubts


def _compared(group: Group) -> str:
    """Return what is shown of two or more ranked models, with what speaks against it."""
    if len(group.leaders) == len(group.ranked) and not group.findings:
        claim = _no_difference(group)
    elif len(group.ranked) == 2 and group.findings:
        claim = _of_two(group)
    else:
        claim = _best(group)
    against = []
    for comparison in group.comparisons:
        against += remarks(comparison, with_settings=False)  # which stand in the names
    if against:
        claim += f" ({'; '.join(dict.fromkeys(against))})"
    return claim


def _reasons(models: Sequence[Standing], with_names: bool = False) -> str:
    """Return why models are not ranked; with_names: even if all have the same reason."""
    groups = _by_reason(models)
    if len(groups) == 1 and not with_names:
        is_demo = all(result.is_demo for result in models[0].results)
        return DEMO_NOTE if is_demo else "; ".join(groups)
    return "; ".join(f"{_names(having)} ({reason})" for reason, having in groups.items())


def _by_reason(models: Sequence[Standing]) -> dict[str, list[Standing]]:
    """Return models by why they are not ranked, in the order of the alphabet."""
    ordered = sorted(models, key=lambda model: "; ".join(model.why).lower())
    return grouped(ordered, lambda model: "; ".join(model.why))


def _names(models: Sequence[Standing]) -> str:
    return listed([model.short for model in models])


def _rates(model: Standing) -> str:
    """Return both rates of the only model."""
    parts = []
    for rate in model.sides:
        if rate.n:
            few = ", too few to tell much" if rate.is_small else ""
            parts.append(f"{percent(rate)} of the {rate.side.prompts} (n {rate.n:,}{few})")
    return f"{model.short} refuses {' and '.join(parts)}"


# -- no difference -------------------------------------------------------------------------------


def _no_difference(group: Group) -> str:
    claim = f"No difference is shown between {_names(group.ranked)}"
    outcomes = {comparison.outcome for comparison in group.comparisons}
    if Outcome.TOO_FEW in outcomes:
        claim += ": too few prompts in common"
    else:
        claim += _detectable(group.comparisons)
    if Outcome.INCONCLUSIVE in outcomes:
        claim += "; unscored rows could reverse a difference"
    return claim


def _detectable(comparisons: Sequence[Comparison]) -> str:
    """Return what true difference would be found, on the first side that was compared."""
    if not comparisons:
        return ""
    side = comparisons[0].a.side
    detectable = np.max([one.detectable for one in comparisons if one.a.side == side])
    if np.isnan(detectable):  # of one is not known
        return ""
    gap = f"a true difference of {100 * detectable:.1f} points in the {side.rate}"
    return f"; {gap} would be found with a probability of 80 %"


# -- two models ----------------------------------------------------------------------------------


def _of_two(group: Group) -> str:
    """Return sentences to quote on two models of which something is shown."""
    safe = group.finding_on(SAFE)
    toxic = group.finding_on(TOXIC)
    sentences = []
    if safe:
        sentences.append(_less_over_refusal(safe))
    if toxic:
        sentences.append(_toxic_rejection(toxic, safe))
    if all(model.safe and model.toxic for model in group.ranked):
        if not toxic:
            sentences.append("No difference is shown in toxic rejection")
        if not safe:
            sentences.append("No difference is shown in over-refusal")
        first = safe.fewer if safe else group.findings[0].more
        sentences.append(_balance(group, first.result))
    return ". ".join(sentences)


def _less_over_refusal(safe: Comparison) -> str:
    one = safe.fewer
    other = safe.more
    claim = f"{one.result.short} over-refuses less than {other.result.short}: {percent(one)}"
    return f"{claim} against {percent(other)} of the {_prompts(one, other)}, {_gap(safe)}"


def _toxic_rejection(toxic: Comparison, safe: Comparison | None) -> str:
    """Return who rejects more; after a finding on the safe side, what its first model does."""
    one = toxic.more
    other = toxic.fewer
    subject = one.result.short
    than = f" than {other.result.short}"
    verb = "rejects more"
    if safe:
        subject = "It also"
        than = ""
        if safe.more.result.label == one.result.label:
            verb = "rejects fewer"
            one, other = other, one
    claim = f"{subject} {verb} of the {_prompts(one, other)}{than}"
    return f"{claim}: {percent(one)} against {percent(other)}, {_gap(toxic)}"


def _prompts(one: Rate, other: Rate) -> str:
    """Return what the rates are of, with the number of prompts if it is the same for both."""
    if one.n != other.n:
        return one.side.prompts
    return f"{one.n:,} {one.side.prompts}"


def _gap(comparison: Comparison) -> str:
    """Return a difference, whatever its sign."""
    gap = comparison.gap
    ends = Interval(*sorted([abs(gap.low), abs(gap.high)]))  # a finding excludes 0
    claim = f"a difference of {100 * abs(gap.difference):.1f} points {interval_words(ends)}"
    n = gap.a.prompts
    if n < max(comparison.a.n, comparison.b.n):
        claim += f" on the {n:,} prompts with a verdict from both"
    return claim


def _balance(group: Group, first: Result) -> str:
    """Return which of two models has the better balance. first: of the model that comes first."""
    if len(group.leaders) == 1:
        return f"{group.leaders[0].short} has the better balance"
    ordered = sorted(group.ranked, key=lambda model: model.label != first.label)
    scores = listed([f"{100 * model.score:.1f}" for model in ordered])
    return f"No difference is shown in their balance, score (J) {scores}"


# -- several models ------------------------------------------------------------------------------


def _best(group: Group) -> str:
    """Return which of several models are the best."""
    first = group.ranked[0]
    if first.safe and first.toxic:
        return f"{_superlative(group, BALANCE)}; {_over_refusal(group)}"
    claim = _superlative(group, LOWEST if first.safe else HIGHEST)
    if group.winner:
        claim += f", {percent(group.winner.sides[0])}"
    return claim


def _superlative(group: Group, words: _Superlative) -> str:
    leaders = _names(group.leaders) or "all others"  # each of which another one beats
    if group.winner:
        return f"{leaders} {words.alone}"
    if len(group.leaders) > 1:
        return f"{leaders} {words.tied}"
    return f"No model is shown to {words.better} {leaders}"


def _over_refusal(group: Group) -> str:
    """Return who over-refuses least or most, if that is shown, of models with both sides."""
    winner = group.winner
    if group.least:
        name = "it also" if group.least is winner else group.least.short
        return f"{name} over-refuses least, {_price(group.least)}"
    if winner:
        return f"its over-refusal rate is {_price(winner, 'it ')}"
    if group.most:
        safe, toxic = group.most.sides
        rejects = f"rejects {percent(toxic)} of the toxic prompts"
        return f"{group.most.short} over-refuses most, {percent(safe)}, and {rejects}"
    return "no model is shown to over-refuse less than all others"


def _price(model: Standing, subject: str = "") -> str:
    """Return the over-refusal rate, and the share of toxic prompts that are answered."""
    safe, toxic = model.sides
    answered = 100 * (1 - toxic.mean.rate)
    interval = interval_words(Interval(1 - toxic.interval.high, 1 - toxic.interval.low))
    lets = f"{subject}lets {answered:.1f} % {interval} of the toxic prompts through"
    return f"{percent(safe)}, and {lets}"
