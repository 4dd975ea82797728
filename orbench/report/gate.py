"""The baseline of a report, and its gates: what `--fail_if` says must not be, and
what `--require` says must be shown.

Intervals and findings decide; if an estimate is beyond a limit, the line of the gate says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import product
from math import nan
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.messages import UserError, clean, counted, say
from orbench.base.records import FAILED, read_record, under_test
from orbench.base.tables import make_folder, write_json, write_text
from orbench.base.words import GIVEN, SIDES, WORSE, Json, Side, Words
from orbench.report.about import EDITED, model_of
from orbench.report.compare import compare
from orbench.report.load import sources_of
from orbench.report.measures import FEW_PROMPTS, Comparison, Rate, Rates
from orbench.report.numerals import points
from orbench.report.rates import on_side
from orbench.report.results import Corrected, Source, named
from orbench.stats.core import ALPHA, Mean, mean
from orbench.stats.intervals import Interval

FILE = "gate.json"
APART = 0.1  # of the prompts of two runs; with more in one of them only, they are not compared
COMPARED = 0.8  # of them, at least: with verdicts from both
NOBODY = "no result but the baseline's"
UNSCORED = "with all unscored rows against the model, "


class Gate(NamedTuple):
    """What must not be true of the rates of a side."""

    name: str
    rule: str  # the name of the side: a limit; WORSE or NOT_WORSE: than a baseline
    side: Side
    limit: float  # in percent, of the rate or of its difference from a baseline's

    def is_beyond(self, share: float) -> bool:
        """Return whether a share is worse than the limit: higher on the safe side, else lower."""
        over = 100 * share - self.limit
        return over < 0 if self.side.is_toxic else over > 0


class Status(IntEnum):
    """What a gate says of a rate; the number is the exit status, the highest one counts."""

    MET = 0
    UNDECIDED = 1
    NOT_MET = 4

    @property
    def words(self) -> str:
        """Return it as lines show it: `not met`."""
        return self.name.lower().replace("_", " ")


ALIKE = "with unscored rows counted alike, "
FILLED = ("", ALIKE, ALIKE, UNSCORED)  # what is done with the unscored rows of two runs
BY_ENDS = tuple(Status)  # by how many ends of an interval are beyond a limit
# The elements of a test case in JUnit's format. A test that is skipped would let a checkpoint pass.
JUNIT = {Status.MET: "system-out", Status.UNDECIDED: "error", Status.NOT_MET: "failure"}
NO_FIGURES: Json = {"shown": ""}


class GateResult(NamedTuple):
    """What a gate says of a rate, and why."""

    status: Status
    reasons: Words = ()
    figures: Json = NO_FIGURES  # in percent; `shown`: as in lines
    gate: str = ""
    model: str = ""

    @property
    def words(self) -> str:
        """Return what a line says of it."""
        why = filter(None, [self.figures["shown"], *self.reasons])
        return f"{self.status.words}; {', '.join(why)}"


# -- the baseline --------------------------------------------------------------------------------


def measured_in(folder: str | Path) -> list[Source]:
    """Return the result files in a folder that measure.py wrote; none if there is no such folder.

    Raises UserError.
    """
    sources = []
    for side in GIVEN:
        if Path(folder, side).is_dir():
            sources += sources_of(f"{folder}/{side}", side)
    return sources


def with_baseline(name: str, given: Sequence[Source]) -> list[Source]:
    """Return the sources, with the model `name` marked as the baseline, or with the results in the
    folder `name`, or of the model in `MODEL=FOLDER`. Raises UserError if it is none of these, or if
    the folder holds several models.
    """
    sources = [source._replace(baseline=_label(source) == name) for source in given]
    folder = name if Path(name).is_dir() else name.rpartition("=")[2]
    labels = set()
    for source in measured_in(folder):
        label = _label(source)
        if name in (folder, f"{label}={folder}") and source not in given:
            sources.append(source._replace(baseline=True))
            labels.add(label)
    if len(labels) > 1:
        choices = ", ".join(sorted(labels))
        raise UserError(f"--baseline {name}: which of {choices}? write --baseline MODEL={folder}")
    if not any(source.baseline for source in sources):
        raise UserError(
            f"--baseline {name} is neither a model as the report names it "
            "nor a folder of other results"
        )
    return sources


def _label(source: Source) -> str:
    """Return the model of a file with its settings, as reports show it."""
    tested = under_test(read_record(source.path))
    return named(model_of(source, tested), tested.settings)


# -- the gates -----------------------------------------------------------------------------------


def check(gates: Words, rates: Rates, files: Words) -> list[GateResult]:
    """Return what each gate says of each model: of each of its rates, against each baseline.

    gates: texts, or several in one with semicolons. rates: overall ones. files: whose results are
    meant; none: all but the baseline's.
    """
    baselines = [rate for rate in rates if rate.result.is_baseline]
    tested = [rate for rate in rates if rate not in baselines]
    if files:
        tested = [rate for rate in tested if rate.result.file in files]
    models = grouped(tested, attrgetter("result.label")) or {NOBODY: []}
    results = []
    for gate, model in product(_read(gates, tested + baselines), models):
        for result in _of_model(gate, on_side(gate.side, models[model]), baselines):
            results.append(result._replace(gate=gate.name, model=model))
    return results


def without_results(given: str) -> Iterator[GateResult]:
    """Yield what all gates say of each model of which a file or folder holds failed rows alone."""
    for failed in [Path(given), *sorted(Path(given).rglob("*"))]:
        name = failed.name.removesuffix(FAILED)
        if name != failed.name and not failed.with_name(f"{name}.csv").exists():
            result = _undecided("no row has a result")
            yield result._replace(gate="all gates", model=str(failed))


def report(results: Sequence[GateResult]) -> int:
    """Say what each gate says, and return the exit status."""
    several = len({result.model for result in results}) > 1
    for result in results:
        name = f"{result.model}: {result.gate}" if several else result.gate
        say(f"gate: {name}: {result.words}")
    return max((result.status for result in results), default=Status.MET)


def write(path: Path, results: Sequence[GateResult]) -> None:
    """Write what the gates say for programs. Raises OSError."""
    write_json(path, [one._asdict() | {"status": one.status.words} for one in results])


def write_junit(path: Path, results: Sequence[GateResult]) -> None:
    """Write what the gates say as test cases, for CI systems. Raises OSError."""
    suite = Element("testsuite", name="gates")
    for result in results:
        # XML has no control characters.
        case = SubElement(suite, "testcase", classname=clean(result.model), name=result.gate)
        SubElement(case, JUNIT[result.status]).text = clean(result.words)
    indent(suite)
    make_folder(path.parent)
    write_text(path, tostring(suite, "unicode") + "\n")


def _read(texts: Words, rates: Rates) -> Iterator[Gate]:
    """Yield the gates; one that is about the baseline for each side of the rates."""
    for text in filter(None, "; ".join(texts).split("; ")):
        rule, *others = text.split(" ")
        limit = float(others[-1]) if others else 0.0
        if rule in SIDES:
            yield Gate(text, rule, SIDES[rule], limit)
            continue
        for side in dict.fromkeys(rate.side for rate in rates):
            worse_by = -limit if side.is_toxic else limit
            yield Gate(f"{text} ({side.name})", rule, side, worse_by)


def _of_model(gate: Gate, rates: Rates, baselines: Rates) -> Iterator[GateResult]:
    """Yield what a gate says of a model's rates, against each baseline if it is about them."""
    if not rates:
        yield _undecided("not measured")
    for rate in rates:
        doubt = _doubt(rate)
        if doubt or gate.rule in SIDES:
            result = _undecided(doubt) if doubt else _within_limit(gate, rate)
            figures = _figures(str(rate), rate.mean.rate, rate.interval, rate.n)
            yield result._replace(figures=figures)
            continue
        comparisons = [one for one in compare([rate, *baselines]) if one.a is rate]
        if not comparisons:
            yield _undecided("no baseline with the same prompts and judge")
        for comparison in comparisons:
            # The level is for all tests: of baselines, and of sides.
            level = ALPHA / len(comparisons) / len({one.side for one in baselines})
            yield _against_baseline(gate, comparison, level)


def _doubt(rate: Rate) -> str:
    """Return why a rate decides nothing."""
    doubt = rate.result.doubt or "; ".join(rate.result.unranked)
    if doubt:
        return doubt
    if rate.result.is_edited:
        return EDITED
    if rate.is_small:
        return f"fewer than {FEW_PROMPTS} prompts"
    return "" if rate.with_unscored else "the number of unscored rows is unknown"


def _figures(shown: str, estimate: float, interval: Interval, n: int) -> Json:
    return {
        "shown": shown,
        "n": n,
        "estimate": 100 * estimate,
        "low": 100 * interval.low,
        "high": 100 * interval.high,
    }


def _undecided(reason: str) -> GateResult:
    return GateResult(Status.UNDECIDED, [reason])


def _met(
    gate: Gate, estimates: Iterable[tuple[str, float]], beyond: str, prompts: int
) -> GateResult:
    """Return that a gate is met, and the first estimate that is beyond its limit all the same."""
    for when, share in estimates:
        if gate.is_beyond(share):
            reasons = [f"{when}the estimate is {beyond}", f"{prompts:,} prompts cannot decide"]
            return GateResult(Status.MET, reasons)
    return GateResult(Status.MET)


def _within_limit(gate: Gate, rate: Rate) -> GateResult:
    """Return whether the whole interval is beyond the limit, also that of other estimates."""
    if all(map(gate.is_beyond, rate.interval)):
        return GateResult(Status.NOT_MET)
    others: dict[str, Mean | Corrected] = {
        UNSCORED: mean(rate.verdicts.imputed(not gate.side.is_toxic)),
        "corrected by labels, ": rate.details.corrected,
    }
    estimates = [("", rate.mean.rate)]
    for when, other in others.items():
        if all(map(gate.is_beyond, other.interval)):
            return _undecided(f"{when}it is beyond the limit")
        estimates.append((when, other.rate))
    return _met(gate, estimates, "beyond the limit", rate.n)


def _against_baseline(gate: Gate, comparison: Comparison, level: float) -> GateResult:
    """Return what a gate says of a rate and a baseline's. level: of its test."""
    label = comparison.b.result.label
    doubt = _doubt(comparison.b)
    if doubt:
        return _undecided(f"{label}: {doubt}")
    if comparison.a.result.judge != comparison.b.result.judge:
        return _undecided(f"{label}: judged by another version of the rules")
    if any(map(_is_contradicted, (comparison.a, comparison.b))):
        return _undecided("people's labels contradict the judge")
    gap = comparison.gap._replace(interval=comparison.with_unscored)
    n = gap.a.prompts
    shown = f"{points(gap)} against {label}"
    new = comparison.a.verdicts.prompt
    old = comparison.b.verdicts.prompt
    every = np.union1d(new, old).size
    apart = np.setxor1d(new, old).size
    whole = comparison.a.mean.rate - comparison.b.mean.rate  # with prompts of one run only
    if apart:
        shown += (
            f", {counted(apart, 'prompt')} in one run only: {100 * whole:+z.1f} points over all"
        )
    if apart > APART * every or n < COMPARED * every:
        result = _undecided(f"only {n:,} of {every:,} prompts compared")
    elif gate.rule == WORSE:
        result = _worse(gate, comparison, level)
    else:
        ends = sum(map(gate.is_beyond, gap.interval))
        result = GateResult(max(BY_ENDS[ends], BY_ENDS[gate.is_beyond(whole)]))
    return result._replace(figures=_figures(shown, gap.difference, gap.interval, n))


def _is_contradicted(rate: Rate) -> bool:
    """Return whether labels show a rate to be another than the judge's."""
    low, high = rate.details.corrected.interval
    return rate.mean.rate < low or rate.mean.rate > high


def _worse(gate: Gate, comparison: Comparison, level: float) -> GateResult:
    """Return whether a is worse than b, by a test in one direction, for which half of p counts."""
    # The unscored rows of both are left out, or counted alike.
    gaps = [comparison.imputed(fill, fill) for fill in (nan, 0, 1)]
    p, *alike = [gap.p / 2 if gate.is_beyond(gap.difference) else 1.0 for gap in gaps]
    if max(p, *alike) < level:
        return GateResult(Status.NOT_MET, [f"one-sided p {p:.2g}"])
    if 2 * min(alike) < level:  # corrected for the two ways
        return _undecided("unscored rows could make it worse")
    against = not gate.side.is_toxic
    gaps.append(comparison.imputed(against, not against))
    estimates = zip(FILLED, [gap.difference for gap in gaps], strict=True)
    return _met(gate, estimates, "worse", comparison.gap.a.prompts)
