"""Sentences about rates, comparisons, trends and correlations, for people.

The headline is in `orbench.report.finding`, the lines of gates in `orbench.report.gate`. Nobody
reads a sentence back: decide from the objects.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

from pandas import to_datetime  # type: ignore[import-untyped]

from orbench.base.messages import counted
from orbench.base.words import SIDES, Lines
from orbench.report.measures import (
    FEW_PROMPTS,
    Associated,
    Association,
    Compared,
    Comparison,
    Comparisons,
    Counted,
    Outcome,
    Rate,
    Rates,
)
from orbench.report.numerals import points
from orbench.report.ranking import Correlation
from orbench.report.rates import on_side
from orbench.report.results import BOTH
from orbench.stats.association import SEEDS_OF_ANY_SIZE, goes_with_size
from orbench.stats.core import ALPHA, FEW_CLUSTERS

FAR_APART = 90  # days between two measurements; endpoints change behind their names
MOST_COMPARISONS = 6  # those of three models on two sides; of more, only their number is said
LOW_COVERAGE = 95  # percent of the rows
MANY_CUT_OFF = 5  # percent of the responses
FEW_SEEDS = (
    f"fewer than {FEW_CLUSTERS} seeds have a refused prompt, or an answered one: "
    "the interval is widened, as if the rewrites of a seed were much alike"
)
SIZES = (
    "seeds with more prompts are refused more often, or less, "
    f"and fewer than {SEEDS_OF_ANY_SIZE} seeds may not show how much: "
    "the interval may be too narrow"
)
# What the model with the lower rate does.
FEWER = {
    Counted.REFUSED: "refuses fewer",
    Counted.HEDGED: "hedges on fewer",
}


# -- notes ---------------------------------------------------------------------------------------


def notes_of(rate: Rate) -> Lines:
    """Yield what a reader must know of a rate, the most important first."""
    result = rate.result
    details = rate.details
    yield from result.against
    yield from result.notes
    if not details.rows:
        return
    coverage = 100 * rate.mean.rows / details.rows
    if coverage < LOW_COVERAGE or rate.is_widened:
        yield f"coverage {coverage:.1f} %"
    cut_off = 100 * details.cut_off
    if cut_off > MANY_CUT_OFF and not result.doubt:  # else it is not ranked anyway
        yield f"cut off {cut_off:.1f} %"
    if details.refused_to_judge:
        yield f"the judge refused to judge {counted(details.refused_to_judge, 'row')}"
    if details.not_about_safety:
        yield (
            f"{details.not_about_safety:,} of {counted(details.refused, 'refusal')} "
            "for the provider's terms, not for safety"
        )
    if details.other_model:
        yield f"served by a different model: {counted(details.other_model, 'row')}"
    if rate.mean.assumed:
        yield FEW_SEEDS
    if rate.n and goes_with_size(rate.verdicts):
        yield SIZES
    if rate.is_small:
        yield f"fewer than {FEW_PROMPTS} prompts"


def warnings(rates: Rates) -> Lines:
    """Yield what a reader must know before any number: each note on the rates of a side, behind
    the models that it is about. rates: overall ones.
    """
    for side in SIDES.values():
        of_side = on_side(side, rates)
        noted = defaultdict(list)
        for rate in of_side:
            for note in dict.fromkeys(notes_of(rate)):
                noted[note].append(f"{rate.result.label}, {side.rate}")
        for note, names in noted.items():
            if len(names) == len(of_side) > 1:
                names = [f"all {side.rate}s"]
            yield f"{'; '.join(names)}: {note}"
        if len({(rate.result.prompt_set, rate.result.judge) for rate in of_side}) > 1:
            yield f"{side.rate}s differ in prompts or judge: there is no single ranking"


# -- rates ---------------------------------------------------------------------------------------


def rate_line(rates: Rates, part: str = "") -> str:
    """Return a line on a model: `gpt-4o: over-refusal rate 12.3 % [11.0, 14.6] (n 1,319) · toxic
    rejection rate ...`. part: see `Standing`.
    """
    name = rates[0].result.label
    if part:
        name += f", {part}"
    return f"{name}: {' · '.join(map(_rate_words, rates))}"


def _rate_words(rate: Rate) -> str:
    measured = str(rate) if rate.n else "not measured"
    known = f"n {rate.n:,}"
    if rate.unscored is not None:
        known += f", unscored {rate.unscored:,}"
    if rate.result.doubt:
        known += f", {rate.result.doubt}"
    return f"{rate.side.rate} {measured} ({known})"


# -- comparisons ---------------------------------------------------------------------------------


def comparison_lines(comparisons: Comparisons) -> Lines:
    """Yield a line for each comparison; if they are many, their number.

    comparisons: of models, by one rate.
    """
    judges = {one.judge for one in comparisons}
    shown = comparisons
    if len(comparisons) > MOST_COMPARISONS:
        shown = []
        found = sum(one.is_finding for one in comparisons)
        yield f"{len(comparisons)} comparisons, {found} with a finding: see comparison.csv"
    for one in shown:
        rate = one.a.side.rate
        if one.a.counted is Counted.HEDGED:
            rate = "share of hedged responses"
        judge = f", {one.judge}" if len(judges) > 1 else ""
        yield (
            f"{one.a.result.short} - {one.b.result.short}{judge}, {rate}: "
            f"{points(one.gap)}: {finding_of(one)}"
        )


@cache  # for the CSV, the documents and the page
def finding_of(comparison: Comparison) -> str:
    """Return what a comparison of models shows, and in parentheses what speaks against it; of other
    comparisons whether there is a finding.
    """
    words = str(comparison.outcome)
    if comparison.kind is not Compared.MODELS:
        return words
    if comparison.is_finding:
        a = comparison.a
        words = (
            f"{comparison.fewer.result.short} {FEWER[a.counted]} {a.side.prompts} "
            f"than {comparison.more.result.short}"
        )
    elif comparison.outcome is Outcome.NO_DIFFERENCE and comparison.gap.p < ALPHA:
        words += f", corrected for {comparison.family} tests"
    words += equivalence(comparison)
    against = "; ".join(remarks(comparison))
    return f"{words} ({against})" if against else words


def equivalence(comparison: Comparison) -> str:
    """Return how close two models are shown to be, behind what else a comparison shows."""
    return f", within {comparison.within:g} points of each other" if comparison.within else ""


def remarks(comparison: Comparison) -> Lines:
    """Yield what speaks against a finding; of most comparisons alike, the headline's remarks do."""
    a = comparison.a.result
    b = comparison.b.result
    if a.prompt_set != b.prompt_set:
        yield (
            f"on {comparison.gap.a.prompts:,} of {comparison.a.n:,} and {comparison.b.n:,} prompts"
        )
    if a.days and b.days:
        # In a record that was edited, a day may be none: NaT.
        days = to_datetime([*a.days, *b.days], format="ISO8601", errors="coerce")
        apart = (days.max() - days.min()).days
        if apart > FAR_APART:
            yield f"measured {apart} days apart"
    if a.judge != b.judge:
        yield "judged by different versions of the rules"
    if comparison.by_labels:
        labeled = counted(comparison.by_labels.prompts, "prompt")
        yield (
            f"{a.short} - {b.short} corrected by labels of {labeled}: "
            f"{points(comparison.by_labels)}"
        )
    for result in (a, b):
        if result.against:
            yield f"{result.label}: {'; '.join(result.against)}"


# -- trends and correlations ---------------------------------------------------------------------


def trend_lines(associations: Iterable[Association]) -> Lines:
    """Yield a line for each trend over tiers. associations: of all kinds."""
    for one in associations:
        trend = trend_words(one)
        if trend:
            name = one.result.label
            if one.result.side != BOTH:
                name += f", {one.result.side.name}"
            seeds = f" ({counted(one.n, 'seed')})" if one.n else ""
            yield f"{name}: refusals by tier ({one.value}): {trend}{seeds}"


def trend_words(found: Association) -> str:
    """Return what a trend over tiers shows; nothing of other associations."""
    if found.kind is not Associated.TREND:
        return ""
    if found.steps and not found.n:
        return "add a column seed_id, the same in all prompts of one intent"
    whole = _direction(found)
    steps = {tier: _direction(step) for tier, step in found.steps.items()}
    if {"rises", "falls"} <= {whole, *steps.values()}:
        shown = [f"{direction} to {tier}" for tier, direction in steps.items() if direction]
        return f"not monotone: {', '.join(shown)}"
    return whole or found.outcome


def _direction(found: Association) -> str:
    """Return where a trend or a step goes; nothing if that is not shown."""
    if found.outcome is not Outcome.FINDING:
        return ""
    return "rises" if found.estimate > 0 else "falls"


def correlation_line(found: Correlation) -> str:
    """Return Spearman's rho between both rates, with its interval."""
    return (
        f"{found.models}: Spearman's ρ between the two rates {found.rho:.4f} "
        f"[{found.low:.2f}, {found.high:.2f}]"
    )
