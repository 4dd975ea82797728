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
from orbench.report.frames import Entries, Entry, named
from orbench.report.load import Source, sources_of
from orbench.report.rates import label, overall
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
        models = "; ".join(dict.fromkeys(map(_shown, given))) or "none"
        what = "neither a model with results here nor a folder of other results"
        raise UserError(f"--baseline {name} is {what}; the models: {models}")
    return sources


def _shown(source: Source) -> str:
    """Return the model of a file with its settings, as reports show it."""
    tested = under_test(read_record(source.path))
    return named(source.model or tested.shown, tested.settings)


def check(gates: Sequence[str], results: DataFrame, pairs: DataFrame, files: Sequence[str]) -> int:
    """Report each gate that is not met or cannot be decided, and return the exit status.

    gates: texts, or several in one with semicolons. results, pairs: of `rates` and `compare`.
    files: whose results are meant; none: all but the baseline's.
    """
    whole = overall(results)
    if files:
        whole = whole.query("baseline or file in @files")
    tested = whole.query("not baseline").to_dict("records")
    against = [pair for pair in pairs.to_dict("records") if pair["baseline_b"]]
    models = dict.fromkeys(map(label, tested)) or ["no result but the baseline's"]
    statuses = {0}
    for gate in "; ".join(gates).split("; "):
        kind, _, limit = gate.partition(" ")
        for side, name in product(whole["side"].unique() if kind == "worse" else [kind], models):
            rows = [row for row in tested if row["side"] == side and label(row) == name]
            found = [_failure(row, limit, against) for row in rows] or [f"{UNCLEAR}not measured"]
            for text in filter(None, found):
                say(f"gate: {name}: {SIDES[side].rate} {text}")
                statuses.add(UNDECIDED if text.startswith(UNCLEAR) else NOT_MET)
    return max(statuses)


def _failure(row: Entry, limit: str, against: Entries) -> str:
    """Return why a result does not pass; empty if it does.

    limit: such as `> 12`; empty: worse than the baseline. against: comparisons with it.
    """
    doubt = row["doubt"] or row["unranked"]
    if not doubt and isnan(row["low_all_percent"]):
        doubt = "the number of unscored rows is unknown"
    if not doubt and not row["n"]:
        doubt = "nothing is scored"
    if doubt:
        return f"{UNCLEAR}{doubt}"
    if not limit:
        found = [_worse(pair) for pair in against if pair["result_a"] == row["result"]]
        return max(found, default=f"{UNCLEAR}not compared with the baseline")
    sign, number = limit.split(" ")
    beyond = row["high_all_percent"] < float(number)
    if sign == ">":
        beyond = row["low_all_percent"] > float(number)
    return f"{row['rate_percent']:.1f} % {row['interval']} is {limit}" if beyond else ""


def _worse(pair: Entry) -> str:
    """Return how a comparison shows a rate worse than the baseline's, or why it decides nothing."""
    gap = pair["difference_points"]
    is_worse = gap > 0 if pair["side"] == "over_refusal" else gap < 0
    shown: str = pair["shown"]
    if isnan(pair["low_all_percent_b"]):
        shown = "the number of the baseline's unscored rows is unknown"
    elif pair["stands"]:
        # Corrected for the two sides, too: else a false alarm is twice as likely.
        if not is_worse or pair["p_holm"] * len(SIDES) >= ALPHA:
            return ""
        ends = f"[{pair['low_points']:.1f}, {pair['high_points']:.1f}]"
        return f"is worse than that of {label(pair, '_b')}: {gap:+.1f} points {ends}"
    elif shown.startswith("no difference") or (shown.startswith("inconclusive") and not is_worse):
        return ""
    return f"{UNCLEAR}{shown}"
