"""Sentences about rates, comparisons, trends and correlations, for people.

The headline is in `orbench.report.finding`, the lines of gates in `orbench.report.gate`. Nobody
reads a sentence back: decide from the objects.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from orbench.base.messages import counted
from orbench.base.words import SIDES
from orbench.refusals.api import NOT_ABOUT_SAFETY
from orbench.report.measures import (
    FEW_PROMPTS,
    Associated,
    Association,
    Compared,
    Comparison,
    Counted,
    Kind,
    Outcome,
    Rate,
    Subset,
)
from orbench.report.numerals import WIDENED, percent, points
from orbench.report.ranking import Correlation
from orbench.report.rates import on_side
from orbench.report.results import BOTH, Result
from orbench.report.standings import Standing
from orbench.stats.core import ALPHA, FEW_CLUSTERS

FAR_APART = 90  # days between two measurements; endpoints change behind their names
MOST_COMPARISONS = 6  # those of three models on two sides; of more, only findings have a line
LOW_COVERAGE = 95  # percent of the rows
MANY_CUT_OFF = 5  # percent of the responses
FEW_SEEDS = (
    f"fewer than {FEW_CLUSTERS} seeds have a refused prompt, or an answered one: "
    "the interval is widened, as if the rewrites of a seed were much alike"
)
LIKE_REWRITES = (
    "without a seed look like rewrites of others, so the interval may be too narrow: "
    "name their seeds in a column seed_id of the same file"
)
REVERSIBLE = "inconclusive: unscored rows could reverse this"
NO_SINGLE_RANKING = "results differ in prompts or judge: there is no single ranking"
AGREED = Subset(Kind.LABEL, "agreed")
# What a comparison of models without a finding shows, and a trend.
UNDECIDED = {
    Outcome.TOO_FEW: "too few prompts in common",
    Outcome.INCONCLUSIVE: REVERSIBLE,
    Outcome.NO_DIFFERENCE: "no difference shown",
}
NO_TREND = {
    Outcome.TOO_FEW: "too few seeds with prompts in two tiers",
    Outcome.INCONCLUSIVE: REVERSIBLE,
    Outcome.NO_DIFFERENCE: "no trend shown",
}
# What the model with the lower rate does.
FEWER = {
    Counted.REFUSED: "refuses fewer",
    Counted.HEDGED: "hedges on fewer",
}


# -- notes ---------------------------------------------------------------------------------------


def notes_of(rate: Rate) -> list[str]:
    """Return what a reader must know of a rate, the most important first."""
    notes = [*rate.result.all_notes, *_flags(rate)]
    found = rate.result.lookalikes
    if found:
        notes.append(f"{found.alike} of the first {found.sample} prompts {LIKE_REWRITES}")
    return notes


def _flags(rate: Rate) -> Iterator[str]:
    """Yield the notes on the responses behind a rate."""
    details = rate.details
    if not details:
        return
    coverage = 100 * rate.mean.rows / details.rows
    if coverage < LOW_COVERAGE:
        yield f"coverage {coverage:.1f} %"
    if rate.is_widened:
        yield f"unscored rows make the interval {rate.wider:.1f} times as wide"
    cut_off = 100 * details.cut_off
    if cut_off > MANY_CUT_OFF and not rate.result.doubt:  # else it is not ranked anyway
        yield f"cut off {cut_off:.1f} %"
    if details.refused_to_judge:
        yield f"the judge refused to judge {counted(details.refused_to_judge, 'row')}"
    if details.not_about_safety:
        terms = " or ".join(NOT_ABOUT_SAFETY)
        refusals = counted(details.refused, "refusal")
        yield f"{details.not_about_safety} of {refusals} for {terms}, not for safety"
    if details.other_model:
        yield f"served by a different model: {counted(details.other_model, 'row')}"
    if rate.mean.assumed:
        yield FEW_SEEDS
    if rate.is_small:
        yield f"fewer than {FEW_PROMPTS} prompts"


def warnings(rates: Sequence[Rate]) -> list[str]:
    """Return what a reader must know before any number: each note, behind the results that it is
    about. rates: overall ones.
    """
    noted: dict[str, list[Rate]] = {}
    for rate in rates:
        for note in dict.fromkeys(notes_of(rate)):
            noted.setdefault(note, []).append(rate)
    lines = [f"{_names(having, rates)}: {note}" for note, having in noted.items()]
    results = [rate.result for rate in rates]
    sides = {result.side for result in results}
    if len({(result.side, result.prompt_set, result.judge) for result in results}) > len(sides):
        lines.append(NO_SINGLE_RANKING)
    return lines


def _names(some: Sequence[Rate], every: Sequence[Rate]) -> str:
    """Return names of some of the rates; all of a side have one name."""
    names = []
    for side in SIDES.values():
        of_side = on_side(side, some)
        if len(of_side) == len(on_side(side, every)) > 1:
            names.append(f"all {side.rate}s")
        else:
            names += [f"{rate.result.label}, {side.rate}" for rate in of_side]
    return "; ".join(dict.fromkeys(names))


# -- rates ---------------------------------------------------------------------------------------


def rate_lines(rates: Sequence[Rate]) -> list[str]:
    """Return a line for each rate: `gpt-4o: over-refusal rate 12.3 % [11.0, 14.6] (n 1,319)`."""
    judges = {rate.result.judge for rate in rates}
    lines = []
    for rate in rates:
        result = rate.result
        name = result.label
        if len(judges) > 1:
            name += f", {result.judge}"
        measured = percent(rate, WIDENED) if rate.n else "not measured"
        known = f"n {rate.n:,}"
        if rate.unscored is not None:
            known += f", unscored {rate.unscored:,}"
        if result.doubt:
            known += f", {result.doubt}"
        lines.append(f"{name}: {result.side.rate} {measured} ({known})")
    return lines


def pair_lines(rates: Sequence[Rate]) -> list[str]:
    """Return how many pairs of a seed and its rewrite each model has; of prompts in two tiers, if
    some are missing or few. rates: of all kinds.
    """
    lines = []
    for rate in rates:
        is_of_all = rate.counted is Counted.RIGHT and not rate.subset.category
        if is_of_all and (not rate.subset.tiers or rate.unpaired or rate.is_small):
            lines.append(_pair_line(rate))
    return lines


def _pair_line(rate: Rate) -> str:
    name = rate.result.label
    unpaired = f"{counted(rate.unpaired, 'rewrite')} whose seed has no result"
    if rate.subset.tiers:
        if rate.side != BOTH:
            name += f", {rate.side.name}"
        name = ", ".join([name, *rate.subset.tiers])
        unpaired = f"{counted(rate.unpaired, 'prompt')} without a partner"
    line = f"{name}: {counted(rate.n, 'pair')}, {unpaired}"
    return f"{line}: too few" if rate.is_small else line


def agreed_label_lines(board: Sequence[Standing], rates: Sequence[Rate]) -> list[str]:
    """Return on which side a model has too few prompts whose label all agree with. rates: of all
    kinds.
    """
    agreed = {rate.result.number: rate.n for rate in rates if rate.subset == AGREED}
    lines = []
    for standing in board:
        for rate in standing.sides:
            n = agreed.get(rate.result.number, 0)
            if n < min(FEW_PROMPTS, rate.n):
                prompts = f"{rate.side.prompts} with an agreed label"
                lines.append(f"{standing.label}: too few {prompts} ({n})")
    return lines


# -- comparisons ---------------------------------------------------------------------------------


def comparison_lines(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a line for each comparison; if they are many, for some that have a finding.

    comparisons: of models, by one rate.
    """
    judges = {one.judge for one in comparisons}
    found = [one for one in comparisons if one.is_finding]
    chosen = comparisons
    if len(comparisons) > MOST_COMPARISONS:
        chosen = found[:MOST_COMPARISONS]
    lines = []
    for one in chosen:
        rate = one.a.side.rate
        if one.a.counted is Counted.HEDGED:
            rate = "share of hedged responses"
        names = f"{one.a.result.short} - {one.b.result.short}"
        if len(judges) > 1:
            names += f", {one.judge}"
        lines.append(f"{names}, {rate}: {points(one.gap)}: {finding_of(one)}")
    left = len(comparisons) - len(chosen)
    if left:
        findings = f"{len(found) - len(chosen)} with a finding"
        lines.append(f"{left} more comparisons, {findings}: see comparison.csv")
    return lines


def finding_of(comparison: Comparison) -> str:
    """Return what a comparison of models shows, and in parentheses what speaks against it; of other
    comparisons whether there is a finding.
    """
    if comparison.family.kind is not Compared.MODELS:
        return comparison.outcome.value
    verdict = verdict_words(comparison)
    against = "; ".join(remarks(comparison))
    return f"{verdict} ({against})" if against else verdict


def verdict_words(comparison: Comparison) -> str:
    """Return what a comparison of models shows, without what speaks against it."""
    a = comparison.a
    if comparison.outcome is Outcome.DOUBTFUL:
        return a.result.doubt or comparison.b.result.doubt
    if comparison.is_finding:
        less = f"{comparison.fewer.result.short} {FEWER[a.counted]} {a.result.side.prompts}"
        return f"{less} than {comparison.more.result.short}"
    words = UNDECIDED[comparison.outcome]
    if comparison.outcome is Outcome.NO_DIFFERENCE and comparison.gap.p < ALPHA:
        words += f", corrected for {comparison.family.size} pairs"
    return words


def remarks(comparison: Comparison, with_settings: bool = True) -> list[str]:
    """Return what speaks against a finding. with_settings: whether names lack what settings differ
    in, so that a remark says it.
    """
    if comparison.outcome is Outcome.DOUBTFUL:
        return []  # the doubt says it all
    a = comparison.a.result
    b = comparison.b.result
    found = []
    if a.prompt_set != b.prompt_set:
        n = comparison.gap.a.prompts
        found.append(f"on {n:,} of {comparison.a.n:,} and {comparison.b.n:,} prompts")
    apart = _days_apart(a, b)
    if apart > FAR_APART:
        found.append(f"measured {apart} days apart")
    if with_settings and a.settings != b.settings:
        found.append("settings differ")
    if a.judge != b.judge:
        found.append("judged by different versions of the rules")
    if a.lookalikes or b.lookalikes:
        rewrites = f"{a.side.prompts} may be rewrites of one another"
        found.append(f"{rewrites}, so intervals may be too narrow")
    for result in (a, b):
        for texts in filter(None, (result.unranked, result.cautions)):
            found.append(f"{result.label}: {'; '.join(texts)}")
    return found


def _days_apart(a: Result, b: Result) -> int:
    """Return the days from the first answer to the last one; 0: not known."""
    if not a.days or not b.days:
        return 0
    try:
        days = [*map(date.fromisoformat, a.days + b.days)]
    except ValueError:  # of a record that was edited
        return 0
    return (max(days) - min(days)).days


# -- trends and correlations ---------------------------------------------------------------------


def trend_lines(associations: Iterable[Association]) -> list[str]:
    """Return a line for each trend over tiers. associations: of all kinds."""
    lines = []
    for trend in associations:
        if trend.kind is Associated.TREND:
            name = trend.result.label
            if trend.result.side != BOTH:
                name += f", {trend.result.side.name}"
            found = f"{trend_words(trend)} ({counted(trend.n, 'seed')})"
            lines.append(f"{name}: refusals by tier ({trend.value}): {found}")
    return lines


def trend_words(trend: Association) -> str:
    """Return what a trend over tiers shows."""
    rises = "rises" if trend.estimate > 0 else "falls"
    return NO_TREND.get(trend.outcome, rises)


def correlation_line(found: Correlation) -> str:
    """Return Spearman's rho between both rates, with its interval."""
    models = "measured models"
    if found.published_on:
        models = f"published models on {found.published_on}"
    interval = f"[{found.low:.2f}, {found.high:.2f}]"
    return f"{found.models} {models}: Spearman's ρ between the two rates {found.rho:.4f} {interval}"
