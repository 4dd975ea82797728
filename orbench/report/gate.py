"""The baseline of a report, and its gates: what `--fail_if` says must not be.

Intervals and findings decide, not point estimates.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.base.messages import UserError, say
from orbench.base.records import read_record, under_test
from orbench.base.words import SIDES, WORSE, Side
from orbench.report.compare import compare
from orbench.report.load import sources_of
from orbench.report.measures import FEW_PROMPTS, Comparison, Outcome, Rate
from orbench.report.numerals import WIDENED, percent, points
from orbench.report.rates import on_side
from orbench.report.results import Source, named
from orbench.report.sentences import verdict_words
from orbench.stats.core import ALPHA


class Status(IntEnum):
    """What a gate says of a model; the number is the exit status, the highest one counts."""

    MET = 0
    UNDECIDED = 1
    NOT_MET = 4


class Decision(NamedTuple):
    """What a gate says of a rate, and why."""

    status: Status
    reasons: tuple[str, ...] = ()


class GateResult(NamedTuple):
    """What a gate says of a model on one side."""

    gate: str
    model: str
    side: Side
    status: Status
    reasons: tuple[str, ...]


def _undecided(*reasons: str) -> Decision:
    return Decision(Status.UNDECIDED, reasons)


MET = Decision(Status.MET)
NOT_MEASURED = _undecided("not measured")
NO_BASELINE = _undecided("the baseline was not measured")
UNSCORED = _undecided("too many rows are unscored")


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


def check(gates: Sequence[str], rates: Sequence[Rate], files: Sequence[str]) -> list[GateResult]:
    """Return what each gate says of each model on each side.

    gates: texts, or several in one with semicolons. rates: overall ones. files: whose results are
    meant; none: all but the baseline's.
    """
    kept = list(rates)
    if files:
        kept = [one for one in rates if one.result.is_baseline or one.result.file in files]
    tested = [one for one in kept if not one.result.is_baseline]
    models = grouped(tested, lambda one: one.result.label) or {"no result but the baseline's": []}
    results = []
    for gate in filter(None, "; ".join(gates).split("; ")):
        for side in _sides_of(gate, kept):
            for model, of_model in models.items():
                of_side = on_side(side, of_model)
                decisions = [_decide(gate, rate, kept) for rate in of_side] or [NOT_MEASURED]
                results += [GateResult(gate, model, side, *one) for one in decisions]
    return results


def exit_status(results: Sequence[GateResult]) -> int:
    """Return the exit status that the gates ask for."""
    return max((int(result.status) for result in results), default=0)


def report(result: GateResult) -> None:
    """Say that a gate is not met or cannot be decided."""
    if result.status is not Status.MET:
        say(line_of(result))


def line_of(result: GateResult) -> str:
    """Return why a gate is not met or cannot be decided."""
    claim = "; ".join(result.reasons)
    if result.status is Status.UNDECIDED:
        claim = f"cannot be decided: {claim}"
    return f"gate: {result.model}: {result.side.rate} {claim}"


def _sides_of(gate: str, rates: Sequence[Rate]) -> list[Side]:
    """Return the sides that a gate is about."""
    if gate == WORSE:
        return list(dict.fromkeys(rate.side for rate in rates))
    return [SIDES[gate.split(" ")[0]]]


def _decide(gate: str, rate: Rate, rates: Sequence[Rate]) -> Decision:
    """Return what a gate says of a rate; rates: with the baseline's."""
    doubts = _doubts(rate)
    if doubts:
        return _undecided(*doubts)
    if gate != WORSE:
        return _within_limit(gate, rate)
    baselines = [one for one in on_side(rate.side, rates) if one.result.is_baseline]
    decisions: list[Decision] = []
    for baseline in baselines:
        decisions += _against_baseline(rate, baseline, len(baselines))
    # What is known counts first.
    return max(decisions, key=lambda decision: decision.status, default=NO_BASELINE)


def _doubts(rate: Rate) -> tuple[str, ...]:
    """Return why a rate decides nothing."""
    result = rate.result
    if result.doubt or result.unranked:
        return (result.doubt,) if result.doubt else result.unranked
    if rate.is_small:
        return (f"fewer than {FEW_PROMPTS} prompts",)
    if not rate.with_unscored:
        return ("the number of unscored rows is unknown",)
    return ()


def _within_limit(gate: str, rate: Rate) -> Decision:
    """Return whether the whole interval is beyond the limit of a gate like `over_refusal > 12`."""
    _, sign, limit = gate.split(" ")
    above = 100 * rate.interval.low > float(limit)
    below = 100 * rate.interval.high < float(limit)
    if (sign == ">" and above) or (sign == "<" and below):
        return Decision(Status.NOT_MET, (f"{percent(rate, WIDENED)} is {sign} {limit}",))
    return MET


def _against_baseline(rate: Rate, baseline: Rate, baselines: int) -> Iterator[Decision]:
    """Yield whether a rate is worse than that of a baseline, and what leaves that open."""
    doubts = _doubts(baseline)
    if doubts:
        yield _undecided(*doubts)
    comparisons = compare([rate, baseline])
    for comparison in comparisons:
        yield _is_worse(comparison, baselines)
    if not comparisons:
        yield _undecided(f"prompts or judge are not those of {baseline.result.label}")


def _is_worse(comparison: Comparison, baselines: int) -> Decision:
    """Return whether a rate is worse than that of a baseline, which comes second.

    A finding is corrected for the baselines and for both sides: else a false alarm is twice as
    likely.
    """
    gap = comparison.gap
    tests = baselines * len(SIDES)
    is_worse = (gap.difference < 0) == comparison.a.side.is_toxic
    is_widened = comparison.a.is_widened or comparison.b.is_widened
    if comparison.is_finding and is_worse and gap.p * tests < ALPHA:
        than = f"that of {comparison.b.result.label}: {points(gap)}"
        return Decision(Status.NOT_MET, (f"is worse than {than}",))
    if is_widened and (is_worse or not comparison.is_finding):
        return UNSCORED
    if comparison.outcome in (Outcome.FINDING, Outcome.NO_DIFFERENCE):
        return MET
    return _undecided(verdict_words(comparison))
