"""Every pair of models on the prompts that both have a verdict for: comparison.csv."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from orbench.columns import SIDES
from orbench.report.measurements import Measurement
from orbench.report.paired import compare_shares

SIGNIFICANCE = 0.05
# Columns of comparison.csv; rates in percent, differences in percentage points, intervals 95 %.
# fmt: off
PAIR_COLUMNS = [
    "side", "model_a", "model_b", "prompts", "rate_a_percent", "rate_b_percent",
    "difference_points", "low_points", "high_points", "interval_method",
    "a_only", "b_only", "p_mcnemar", "p_holm", "finding",
]
# fmt: on


def comparisons_of(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """PAIR_COLUMNS, a row per pair of models of a side, NaN where they have no prompt in common;
    and `other_prompts`: whether one of them was measured on prompts that the other was not.
    """
    pairs = list[dict[str, Any]]()
    for side in SIDES:
        ones = [(one, _share_per_prompt(one)) for one in measurements if one.side == side]
        pairs += _with_holm([_pair(*a, *b) for a, b in combinations(ones, 2)])
    return pd.DataFrame(pairs, columns=[*PAIR_COLUMNS, "other_prompts"])


def _share_per_prompt(one: Measurement) -> "pd.Series[float]":
    """The share of each prompt's rows that is refused."""
    return one.scored.groupby("prompt")["refused"].mean()


def _pair(
    a: Measurement, shares_a: "pd.Series[float]", b: Measurement, shares_b: "pd.Series[float]"
) -> dict[str, Any]:
    common = pd.concat([shares_a, shares_b], axis=1, join="inner", keys=["a", "b"])
    pair = {
        "side": a.side,
        "model_a": a.model,
        "model_b": b.model,
        "prompts": len(common),
        "other_prompts": not len(shares_a) == len(shares_b) == len(common),
    }
    if common.empty:
        return pair | {"finding": "no common prompt"}
    found = compare_shares(common["a"].to_numpy(), common["b"].to_numpy())
    return pair | {
        "rate_a_percent": 100 * found.a,
        "rate_b_percent": 100 * found.b,
        "difference_points": 100 * (found.a - found.b),
        "low_points": 100 * found.low,
        "high_points": 100 * found.high,
        "interval_method": found.method,
        "a_only": found.a_only,
        "b_only": found.b_only,
        "p_mcnemar": found.p,
        "finding": _doubt(a, b),
    }


def _doubt(a: Measurement, b: Measurement) -> str:
    """Why no finding is claimed, in words; empty where one may be."""
    if a.scripted or b.scripted:
        return "scripted: measures nothing"
    if a.counted_by != b.counted_by:
        return f"counted differently: {a.counted_by}, {b.counted_by}"
    return ""


def _with_holm(pairs: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """The pairs of a side with their p values corrected for their number, and what is found."""
    tested = [pair for pair in pairs if "p_mcnemar" in pair]
    if not tested:
        return pairs
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    corrected = multipletests([pair["p_mcnemar"] for pair in tested], method="holm")[1]
    for pair, p in zip(tested, corrected, strict=True):
        pair["p_holm"] = p
        pair["finding"] = pair["finding"] or _finding(pair)
    return pairs


def _finding(pair: dict[str, Any]) -> str:
    """`A is lower than B` where the mean and the number of prompts agree on it, and the test."""
    difference, prompts = pair["difference_points"], pair["a_only"] - pair["b_only"]
    if pair["p_holm"] >= SIGNIFICANCE or difference * prompts <= 0:
        return "no difference shown"
    lower, higher = ("model_a", "model_b") if difference < 0 else ("model_b", "model_a")
    return f"{pair[lower]} is lower than {pair[higher]}"
