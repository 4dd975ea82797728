"""The baseline of a report, and its gates: what `--fail_if` says must not be.

Intervals and findings decide, not point estimates.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import product
from pathlib import Path
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.base.messages import UserError, say
from orbench.base.records import read_record, under_test
from orbench.base.words import SIDES, WORSE, Side
from orbench.report.compare import compare
from orbench.report.load import sources_of
from orbench.report.measures import FEW_PROMPTS, Outcome, Rate, Rates
from orbench.report.numerals import percent, points
from orbench.report.rates import on_side
from orbench.report.results import Source, named
from orbench.stats.core import ALPHA


class Gate(NamedTuple):
    """What must not be true of the rates of a side."""

    side: Side
    sign: str = ""  # `>` or `<`; empty: worse than the baseline
    limit: float = 0  # in percent


class Status(IntEnum):
    """What a gate says of a rate; the number is the exit status, the highest one counts."""

    MET = 0
    UNDECIDED = 1
    NOT_MET = 4


class Decision(NamedTuple):
    """What a gate says of a rate, and why."""

    status: Status
    reason: str = ""


MET = Decision(Status.MET)
NOBODY = "no result but the baseline's"


def _undecided(reason: str) -> Decision:
    return Decision(Status.UNDECIDED, f"cannot be decided: {reason}")


# -- the baseline --------------------------------------------------------------------------------


def measured_in(folder: str | Path) -> list[Source]:
    """Return the result files in a folder that measure.py wrote; none if there is no such folder.

    Raises UserError.
    """
    sources = []
    for side in SIDES:
        if Path(folder, side).is_dir():
            sources += sources_of(f"{folder}/{side}", side)
    return sources


def with_baseline(name: str, given: Sequence[Source]) -> list[Source]:
    """Return the sources, with the model `name` marked as the baseline, or with what is in the
    folder `name` as baselines. Raises UserError if it is neither.
    """
    sources = [source._replace(baseline=_label(source) == name) for source in given]
    for source in measured_in(name):
        if source not in given:
            sources.append(source._replace(baseline=True))
    if not any(source.baseline for source in sources):
        raise UserError(
            f"--baseline {name} is neither a model as the report names it "
            "nor a folder of other results"
        )
    return sources


def _label(source: Source) -> str:
    """Return the model of a file with its settings, as reports show it."""
    tested = under_test(read_record(source.path))
    return named(source.model or tested.shown, tested.settings)


# -- the gates -----------------------------------------------------------------------------------


def check(gates: Sequence[str], rates: Rates, files: Sequence[str]) -> list[Decision]:
    """Return what each gate says of each model, which the reasons begin with.

    gates: texts, or several in one with semicolons. rates: overall ones. files: whose results are
    meant; none: all but the baseline's.
    """
    baselines = [rate for rate in rates if rate.result.is_baseline]
    tested = [rate for rate in rates if rate not in baselines]
    if files:
        tested = [rate for rate in tested if rate.result.file in files]
    models = grouped(tested, lambda test: test.result.label) or {NOBODY: []}
    results = []
    for gate, model in product(_read(gates, tested + baselines), models):
        of_side = on_side(gate.side, models[model])
        decisions = [_decide(gate, rate, baselines) for rate in of_side]
        for status, reason in decisions or [_undecided("not measured")]:
            results.append(Decision(status, f"{model}: {gate.side.rate} {reason}"))
    return results


def report(results: Sequence[Decision]) -> int:
    """Say what is not met or cannot be decided, and return the exit status."""
    for status, reason in results:
        if status is not Status.MET:
            say(f"gate: {reason}")
    return max(results, default=MET).status


def _read(texts: Sequence[str], rates: Rates) -> Iterator[Gate]:
    """Yield the gates; one that is about the baseline for each side of the rates."""
    for text in filter(None, "; ".join(texts).split("; ")):
        if text == WORSE:
            yield from map(Gate, dict.fromkeys(rate.side for rate in rates))
        else:
            side, sign, limit = text.split(" ")
            yield Gate(SIDES[side], sign, float(limit))


def _decide(gate: Gate, rate: Rate, baselines: Rates) -> Decision:
    """Return what a gate says of a rate."""
    doubt = _doubt(rate)
    if doubt:
        return _undecided(doubt)
    if gate.sign:
        return _within_limit(gate, rate)
    of_side = on_side(rate.side, baselines)
    decisions = [_against_baseline(rate, baseline, len(of_side)) for baseline in of_side]
    missing = _undecided("the baseline was not measured")
    # What is known counts first.
    return max(decisions, key=lambda decision: decision.status, default=missing)


def _doubt(rate: Rate) -> str:
    """Return why a rate decides nothing."""
    doubt = rate.result.doubt or "; ".join(rate.result.unranked)
    if doubt:
        return doubt
    if rate.is_small:
        return f"fewer than {FEW_PROMPTS} prompts"
    return "" if rate.with_unscored else "the number of unscored rows is unknown"


def _within_limit(gate: Gate, rate: Rate) -> Decision:
    """Return whether the whole interval is beyond the limit."""
    is_beyond = 100 * rate.interval.high < gate.limit
    if gate.sign == ">":
        is_beyond = 100 * rate.interval.low > gate.limit
    if is_beyond:
        return Decision(Status.NOT_MET, f"{percent(rate)} is {gate.sign} {gate.limit:g}")
    return MET


def _against_baseline(rate: Rate, baseline: Rate, baselines: int) -> Decision:
    """Return whether a rate is worse than that of a baseline.

    A finding is corrected for the baselines and for both sides: else a false alarm is twice as
    likely.
    """
    doubt = _doubt(baseline)
    if doubt:
        return _undecided(doubt)
    comparisons = compare([rate, baseline])
    if not comparisons:
        return _undecided(f"prompts or judge are not those of {baseline.result.label}")
    (comparison,) = comparisons
    gap = comparison.gap
    if comparison.is_finding:
        if comparison.worse is baseline:
            return MET
        if gap.p * baselines * len(SIDES) < ALPHA:
            reason = f"is worse than that of {baseline.result.label}: {points(gap)}"
            return Decision(Status.NOT_MET, reason)
    if rate.is_widened or baseline.is_widened:
        return _undecided("too many rows are unscored")
    if comparison.outcome in (Outcome.FINDING, Outcome.NO_DIFFERENCE):
        return MET
    return _undecided(comparison.outcome)
