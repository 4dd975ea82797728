"""The baseline of a report, and its gates: what `--fail_if` says must not be.

Intervals and findings decide, not point estimates.
"""

from collections.abc import Sequence
from itertools import product
from math import isnan
from pathlib import Path

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.messages import UserError, say
from orbench.base.records import read_record, under_test
from orbench.base.words import SIDES
from orbench.report.compare import compare
from orbench.report.frames import Entry, named
from orbench.report.load import Source, sources_of
from orbench.report.rates import FEW_PROMPTS, label, overall
from orbench.stats.core import ALPHA

NOT_MET = 4  # exit statuses
UNDECIDED = 1
UNCLEAR = "cannot be decided: "


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
    sources = [source._replace(baseline=_shown(source) == name) for source in given]
    earlier = [source for source in measured_in(name) if source not in given]
    sources += [source._replace(baseline=True) for source in earlier]
    if not any(source.baseline for source in sources):
        raise UserError(
            f"--baseline {name} is neither a model as the report names it "
            "nor a folder of other results"
        )
    return sources


def _shown(source: Source) -> str:
    """Return the model of a file with its settings, as reports show it."""
    tested = under_test(read_record(source.path))
    return named(source.model or tested.shown, tested.settings)


def check(gates: Sequence[str], results: DataFrame, files: Sequence[str]) -> int:
    """Report each gate that is not met or cannot be decided, and return the exit status.

    gates: texts, or several in one with semicolons. results: of `rates`. files: whose results are
    meant; none: all but the baseline's.
    """
    whole = overall(results)
    if files:
        whole = whole.query("baseline or file in @files")
    tested = whole.query("not baseline").to_dict("records")
    models = dict.fromkeys(map(label, tested)) or ["no result but the baseline's"]
    statuses = {0}
    for gate in "; ".join(gates).split("; "):
        kind, _, limit = gate.partition(" ")
        sides = whole["side"].unique() if kind == "worse" else [kind]
        for side, name in product(sides, models):
            rows = [row for row in tested if row["side"] == side and label(row) == name]
            found = [_beyond(row, limit) if limit else _worse(row, whole) for row in rows]
            for text in filter(None, found or [f"{UNCLEAR}not measured"]):
                say(f"gate: {name}: {SIDES[side].rate} {text}")
                statuses.add(UNDECIDED if text.startswith(UNCLEAR) else NOT_MET)
    return max(statuses)


def _doubt(row: Entry) -> str:
    """Return why a rate decides nothing; empty if it does."""
    doubt: str = row["doubt"] or row["unranked"]
    if not doubt and row["n"] < FEW_PROMPTS:
        doubt = f"fewer than {FEW_PROMPTS} prompts"
    if not doubt and isnan(row["low_all_percent"]):
        doubt = "the number of unscored rows is unknown"
    return doubt and f"{UNCLEAR}{doubt}"


def _beyond(row: Entry, limit: str) -> str:
    """Return how the whole interval is beyond a limit, such as `> 12`; empty if it is not."""
    sign, number = limit.split(" ")
    beyond = row["high_all_percent"] < float(number)
    if sign == ">":
        beyond = row["low_all_percent"] > float(number)
    said = f"{row['rate_percent']:.1f} % {row['interval']} is {limit}" if beyond else ""
    return _doubt(row) or said


def _worse(row: Entry, whole: DataFrame) -> str:
    """Return how a result is worse than a baseline, or why that is not decided; empty if neither.

    A finding is corrected for the baselines and for both sides: else a false alarm is twice as
    likely.
    """
    baselines = whole[whole["baseline"] & (whole["side"] == row["side"])].to_dict("records")
    if not baselines:
        return f"{UNCLEAR}the baseline was not measured"
    said = []
    for base in baselines:
        said.append(_doubt(base))
        two = whole[whole["result"].isin([row["result"], base["result"]])]
        pairs = compare(two).to_dict("records")
        said += [_of_pair(pair, len(baselines)) for pair in pairs]
        if not pairs:
            said.append(f"{UNCLEAR}prompts or judge are not those of {label(base)}")
    said.sort(key=lambda text: text.startswith(UNCLEAR))  # what is known counts first
    return _doubt(row) or next(filter(None, said), "")


def _of_pair(pair: Entry, baselines: int) -> str:
    """Return what a comparison with a baseline says against a model."""
    gap = pair["difference_points"]
    is_worse = (gap < 0) == SIDES[pair["side"]].is_toxic
    wide = "‡" in pair["interval_a"] + pair["interval_b"]
    if pair["stands"] and is_worse and pair["p"] * baselines * len(SIDES) < ALPHA:
        ends = f"[{pair['low_points']:.1f}, {pair['high_points']:.1f}]"
        return f"is worse than that of {label(pair, '_b')}: {gap:+.1f} points {ends}"
    if wide and (is_worse or not pair["stands"]):
        return f"{UNCLEAR}too many rows are unscored"
    if pair["stands"] or pair["shown"].startswith("no difference"):
        return ""
    return f"{UNCLEAR}{pair['shown']}"
