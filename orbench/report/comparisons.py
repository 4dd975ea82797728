"""Every pair of models on the prompts that both have a verdict for: comparison.csv."""

from collections.abc import Sequence
from itertools import combinations
from math import nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.clustered import ALPHA, Difference, Prompts, against, paired
from orbench.columns import SIDES
from orbench.planning import smallest_difference
from orbench.report.measurements import UNKNOWN, Measurement

# Columns of comparison.csv; rates in percent, differences in percentage points, intervals 95 %.
# fmt: off
PAIR_COLUMNS = [
    "side", "model_a", "model_b", "prompts", "seeds", "rate_a_percent", "rate_b_percent",
    "difference_points", "low_points", "high_points", "method", "smallest_points",
    "a_only", "b_only", "p", "p_holm", "missing_a", "missing_b", "p_missing", "finding",
]
# fmt: on


class Pair(NamedTuple):
    """Two models of a side on the prompts in common."""

    a: Measurement
    b: Measurement
    missing: tuple[int, int]  # rows without a verdict on these prompts
    other_prompts: bool  # one was measured on prompts that the other was not
    found: Difference
    worst: Difference  # with the missing rows of both against it


def comparisons_of(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """PAIR_COLUMNS, a row per pair of models of a side that have prompts in common and were judged
    alike; and `other_prompts`: whether one was measured on prompts that the other was not.

    p_holm and p_missing (p with the missing rows of both models set against the difference) are
    corrected for the pairs of the side, smallest_points likewise.
    """
    rows = list[dict[str, Any]]()
    for side in SIDES:
        ones = [(one, one.prompts()) for one in measurements if one.side == side]
        pairs = [_pair(*a, *b) for a, b in combinations(ones, 2) if _comparable(a[0], b[0])]
        rows += _rows([pair for pair in pairs if pair])
    return pd.DataFrame(rows, columns=[*PAIR_COLUMNS, "other_prompts"])


def _comparable(a: Measurement, b: Measurement) -> bool:
    """Whether two models were judged alike."""
    return a.tested != b.tested and a.counted_by == b.counted_by


def _pair(a: Measurement, of_a: Prompts, b: Measurement, of_b: Prompts) -> Pair | None:
    """The comparison of two models; None where they have no prompt with a verdict in common."""
    x, y = _with_unlisted(of_a, a.unlisted, of_b), _with_unlisted(of_b, b.unlisted, of_a)
    both = np.intersect1d(x.prompt, y.prompt, assume_unique=True)
    x, y = (one.at(np.isin(one.prompt, both)) for one in (x, y))
    scored = (x.scored > 0) & (y.scored > 0)
    if not scored.any():
        return None
    known = {a.prompt_set, b.prompt_set}
    missing = int(x.missing.sum()), int(y.missing.sum())
    return Pair(a, b, missing, len(known) > 1, paired(x.at(scored), y.at(scored)), against(x, y))


def _with_unlisted(one: Prompts, unlisted: int, other: Prompts) -> Prompts:
    """A model's prompts; for its rows without a verdict of which the prompt is not known, as far as
    there are any, those that only the other model has.
    """
    if not unlisted:
        return one
    alone = np.setdiff1d(other.prompt, one.prompt, assume_unique=True)
    alone = alone[alone >= UNKNOWN][:unlisted]
    kept = one.at((one.prompt >= UNKNOWN) | (one.prompt < unlisted - len(alone)))
    more = other.at(np.isin(other.prompt, alone))
    none = np.zeros_like(more.scored)
    lost = more._replace(refused=none.astype(float), scored=none, missing=none + 1)
    joined = Prompts(*(np.concatenate(pair) for pair in zip(kept, lost, strict=True)))
    return joined.at(np.argsort(joined.prompt))


def _rows(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """The rows of one side."""
    holm = _holm([pair.found.p for pair in pairs])
    worst = _holm([pair.worst.p for pair in pairs])
    return [_row(*about, len(pairs)) for about in zip(pairs, holm, worst, strict=True)]


def _holm(p: Sequence[float]) -> Sequence[float]:
    if not p:
        return p
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    corrected: Sequence[float] = multipletests(p, method="holm")[1]
    return corrected


def _row(pair: Pair, holm: float, worst: float, pairs: int) -> dict[str, Any]:
    found = pair.found
    row = {
        "side": pair.a.side,
        "model_a": pair.a.model,
        "model_b": pair.b.model,
        "prompts": found.prompts,
        "seeds": found.clusters if found.clusters < found.prompts else nan,
        "rate_a_percent": 100 * found.rate_a,
        "rate_b_percent": 100 * found.rate_b,
        "difference_points": 100 * found.difference,
        "low_points": 100 * found.low,
        "high_points": 100 * found.high,
        "method": found.method,
        "smallest_points": 100 * smallest_difference(found, alpha=ALPHA / pairs),
        "a_only": found.a_only,
        "b_only": found.b_only,
        "p": found.p,
        "p_holm": holm,
        "missing_a": pair.missing[0],
        "missing_b": pair.missing[1],
        "p_missing": worst,
        "other_prompts": pair.other_prompts,
    }
    return row | {"finding": _doubt(pair) or _finding(row)}


def _doubt(pair: Pair) -> str:
    """Why no finding is claimed, in words; empty where one may be."""
    a, b = pair.a, pair.b
    if a.scripted or b.scripted:
        return "scripted: measures nothing"
    if a.selected_itself != b.selected_itself:
        one = a if a.selected_itself else b
        return f"not claimed: {one.family} was among the families that chose the prompts"
    return ""


def _finding(row: dict[str, Any]) -> str:
    """`A is lower than B` where the test shows it, whatever the missing rows would have been."""
    if not row["p_holm"] < ALPHA:
        return "no difference shown"
    if row["p_missing"] >= ALPHA:
        missing = row["missing_a"] + row["missing_b"]
        return f"not claimed: the rows without a verdict ({missing:,}) could undo the difference"
    below = row["difference_points"] < 0
    lower, higher = ("model_a", "model_b") if below else ("model_b", "model_a")
    return f"{row[lower]} is lower than {row[higher]}"
