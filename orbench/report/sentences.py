"""Sentences about rates, comparisons, trends and correlations, for people.

The headline is in `orbench.report.finding`, the lines of gates in `orbench.report.gate`. Nobody
reads a sentence back: decide from the objects.
"""

from collections.abc import Iterable, Sequence
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
    Details,
    Kind,
    Outcome,
    Rate,
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
# What the model with the lower rate does.
FEWER = {
    Counted.REFUSED: "refuses fewer",
    Counted.HEDGED: "hedges on fewer",
}


# -- notes ---------------------------------------------------------------------------------------


def notes_of(rate: Rate) -> list[str]:
    """Return what a reader must know of a rate, the most important first."""
    notes = rate.result.all_notes
    if rate.details:
        notes += _flags(rate, rate.details)
    found = rate.result.lookalikes
    if found:
        notes.append(f"{found.alike} of the first {found.sample} prompts {LIKE_REWRITES}")
    return notes


def _flags(rate: Rate, details: Details) -> list[str]:
    """Return the notes on the responses behind a rate."""
    flags = []
    coverage = 100 * rate.mean.rows / details.rows
    if coverage < LOW_COVERAGE:
        flags.append(f"coverage {coverage:.1f} %")
    if rate.is_widened:
        flags.append(f"unscored rows make the interval {rate.wider:.1f} times as wide")
    cut_off = 100 * details.cut_off
    if cut_off > MANY_CUT_OFF and not rate.result.doubt:  # else it is not ranked anyway
        flags.append(f"cut off {cut_off:.1f} %")
    if details.refused_to_judge:
        flags.append(f"the judge refused to judge {counted(details.refused_to_judge, 'row')}")
    if details.not_about_safety:
        terms = " or ".join(NOT_ABOUT_SAFETY)
        refusals = counted(details.refused, "refusal")
        flags.append(f"{details.not_about_safety} of {refusals} for {terms}, not for safety")
    if details.other_model:
        flags.append(f"served by a different model: {counted(details.other_model, 'row')}")
    if rate.mean.assumed:
        flags.append(FEW_SEEDS)
    if rate.is_small:
        flags.append(f"fewer than {FEW_PROMPTS} prompts")
    return flags


def warnings(rates: Sequence[Rate]) -> list[str]:
    """Return what a reader must know before any number: each note, behind the results that it is
    about. rates: overall ones.
    """
    noted: dict[str, list[Rate]] = {}
    for rate in rates:
        for note in dict.fromkeys(notes_of(rate)):
            noted.setdefault(note, []).append(rate)
    lines = []
    for note, having in noted.items():
        lines.append(f"{_names(having, rates)}: {note}")
    if any(_differ(on_side(side, rates)) for side in SIDES.values()):
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


def _differ(rates: Sequence[Rate]) -> bool:
    """Return whether rates are about several prompt sets, or by several judges."""
    prompt_sets = {rate.result.prompt_set for rate in rates}
    judges = {rate.result.judge for rate in rates}
    return len(prompt_sets) > 1 or len(judges) > 1


# -- rates ---------------------------------------------------------------------------------------


def rate_lines(rates: Sequence[Rate]) -> list[str]:
    """Return a line for each rate: `gpt-4o: over-refusal rate 12.3 % [11.0, 14.6] (n 1,319)`."""
    judges = {rate.result.judge for rate in rates}
    return [_rate_line(rate, len(judges) > 1) for rate in rates]


def _rate_line(rate: Rate, with_judge: bool) -> str:
    result = rate.result
    name = result.label
    if with_judge:
        name += f", {result.judge}"
    measured = "not measured"
    if rate.mean.prompts:
        measured = percent(rate, WIDENED)
    known = [f"n {rate.mean.prompts:,}"]
    if rate.unscored is not None:
        known.append(f"unscored {rate.unscored:,}")
    if result.doubt:
        known.append(result.doubt)
    return f"{name}: {result.side.rate} {measured} ({', '.join(known)})"


def pair_lines(rates: Sequence[Rate]) -> list[str]:
    """Return how many pairs of a seed and its rewrite each model has; of prompts in two tiers, if
    some are missing or few. rates: of all kinds.
    """
    lines = []
    for rate in rates:
        subset = rate.subset
        if subset != (Kind.PAIRS, subset.value, "") or rate.counted is not Counted.RIGHT:
            continue
        if not subset.value or rate.unpaired or rate.is_small:
            lines.append(_pair_line(rate))
    return lines


def _pair_line(rate: Rate) -> str:
    name = [rate.result.label]
    unpaired = f"{counted(rate.unpaired, 'rewrite')} whose seed has no result"
    if rate.subset.value:
        if rate.result.side != BOTH:
            name.append(rate.result.side.name)
        name.append(rate.subset.value.replace(" < ", ", "))
        unpaired = f"{counted(rate.unpaired, 'prompt')} without a partner"
    line = f"{', '.join(name)}: {counted(rate.mean.prompts, 'pair')}, {unpaired}"
    return f"{line}: too few" if rate.is_small else line


def agreed_label_lines(board: Sequence[Standing], rates: Sequence[Rate]) -> list[str]:
    """Return on which side a model has too few prompts whose label all agree with. rates: of all
    kinds.
    """
    agreed = {}
    for rate in rates:
        if rate.subset == (Kind.LABEL, "agreed", ""):
            agreed[rate.result.number] = rate.mean.prompts
    lines = []
    for standing in board:
        for rate in standing.sides:
            n = agreed.get(rate.result.number, 0)
            if n < min(FEW_PROMPTS, rate.mean.prompts):
                prompts = f"{rate.result.side.prompts} with an agreed label"
                lines.append(f"{standing.label}: too few {prompts} ({n})")
    return lines


# -- comparisons ---------------------------------------------------------------------------------


def comparison_lines(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a line for each comparison; if they are many, for some that have a finding.

    comparisons: of models, by one rate.
    """
    judges = {comparison.a.result.judge_any_version for comparison in comparisons}
    found = [comparison for comparison in comparisons if comparison.is_finding]
    chosen = comparisons
    if len(comparisons) > MOST_COMPARISONS:
        chosen = found[:MOST_COMPARISONS]
    lines = [_comparison_line(one, len(judges) > 1) for one in chosen]
    left = len(comparisons) - len(chosen)
    if left:
        findings = f"{len(found) - len(chosen)} with a finding"
        lines.append(f"{left} more comparisons, {findings}: see comparison.csv")
    return lines


def _comparison_line(comparison: Comparison, with_judge: bool) -> str:
    rate = comparison.a.result.side.rate
    if comparison.a.counted is Counted.HEDGED:
        rate = "share of hedged responses"
    names = f"{comparison.a.result.short} - {comparison.b.result.short}"
    if with_judge:
        names += f", {comparison.a.result.judge_any_version}"
    return f"{names}, {rate}: {points(comparison.gap)}: {finding_of(comparison)}"


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
    a = comparison.a.result
    b = comparison.b.result
    match comparison.outcome:
        case Outcome.DOUBTFUL:
            return a.doubt or b.doubt
        case Outcome.TOO_FEW:
            return "too few prompts in common"
        case Outcome.INCONCLUSIVE:
            return REVERSIBLE
        case Outcome.NO_DIFFERENCE:
            if comparison.gap.p < ALPHA:
                return f"no difference shown, corrected for {comparison.family.size} pairs"
            return "no difference shown"
    verb = FEWER[comparison.a.counted]
    less = f"{comparison.fewer.result.short} {verb} {a.side.prompts}"
    return f"{less} than {comparison.more.result.short}"


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
        common = f"{comparison.gap.a.prompts:,}"
        of_both = f"{comparison.a.mean.prompts:,} and {comparison.b.mean.prompts:,} prompts"
        found.append(f"on {common} of {of_both}")
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
        for texts in (result.unranked, result.cautions):
            if texts:
                found.append(f"{result.label}: {'; '.join(texts)}")
    return found


def _days_apart(a: Result, b: Result) -> int:
    """Return the days from the first answer to the last one; 0: not known."""
    if not a.date or not b.date:
        return 0
    try:
        days = [date.fromisoformat(day) for day in f"{a.date} to {b.date}".split(" to ")]
    except ValueError:  # of a record that was edited
        return 0
    return (max(days) - min(days)).days


# -- trends and correlations ---------------------------------------------------------------------


def trend_lines(associations: Iterable[Association]) -> list[str]:
    """Return a line for each trend over tiers. associations: of all kinds."""
    lines = []
    for trend in associations:
        if trend.kind is not Associated.TREND:
            continue
        name = trend.result.label
        if trend.of_side:
            name += f", {trend.of_side}"
        seeds = counted(trend.n, "seed")
        lines.append(f"{name}: refusals by tier ({trend.value}): {trend_words(trend)} ({seeds})")
    return lines


def trend_words(trend: Association) -> str:
    """Return what a trend over tiers shows."""
    match trend.outcome:
        case Outcome.TOO_FEW:
            return "too few seeds with prompts in two tiers"
        case Outcome.NO_DIFFERENCE:
            return "no trend shown"
        case Outcome.INCONCLUSIVE:
            return REVERSIBLE
    return "rises" if trend.estimate > 0 else "falls"


def correlation_line(found: Correlation) -> str:
    """Return Spearman's rho between both rates, with its interval."""
    models = "measured models"
    if found.published_on:
        models = f"published models on {found.published_on}"
    interval = f"[{found.low:.2f}, {found.high:.2f}]"
    return f"{found.models} {models}: Spearman's ρ between the two rates {found.rho:.4f} {interval}"
