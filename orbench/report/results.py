"""The results table: refusal rates by model, side and category. All else in a report reads it."""

from collections.abc import Sequence
from math import nan
from statistics import fmean
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from orbench.columns import MACRO, OVERALL, UNCATEGORISED
from orbench.rates import wilson
from orbench.report.correction import Validated, correct
from orbench.report.measurements import Measurement
from orbench.report.published_rates import PUBLISHED

FEW = 30  # rates from fewer rows are marked
COVERAGE_PERCENT = 95  # rates with a verdict for a smaller share of the rows are marked
BY_AUTHORS = "published"  # `counted_by` of the rates that are not measured here

# Columns of results.csv; rates and intervals in percent, intervals 95 %.
# fmt: off
RATE_COLUMNS = [
    "model", "family", "side", "category", "n", "prompts", "refused",
    "rate_percent", "low_percent", "high_percent",
    "unscored", "coverage_percent",
    "direct_refusals", "direct_percent", "direct_low_percent", "direct_high_percent",
    "indirect_refusals", "indirect_percent", "indirect_low_percent", "indirect_high_percent",
    "api_refusals", "api_percent",
    "corrected_percent", "corrected_low_percent", "corrected_high_percent",
    "rules_percent", "judge_only", "rules_only", "differ_percent",
    "counted_by", "prompt_set", "notes",
]
# fmt: on
# What tables and pictures need besides: the macro average beside the overall rate, why a rate is
# not corrected, and what a picture has to say of its models.
MORE_COLUMNS = ["macro_percent", "uncorrected", "scripted", "partial"]


def results_of(
    measurements: Sequence[Measurement], validated: Validated | None, published: bool
) -> pd.DataFrame:
    """RATE_COLUMNS and MORE_COLUMNS; NaN where something is not measured.

    A row per model, side and category, those of a model and side together: OVERALL first, then,
    where rows have a category, MACRO (the mean of the categories' rates) and each of them.
    """
    rows = [row for one in measurements for row in _rows(one, validated)]
    rows += _published_rows() if published else []
    return pd.DataFrame(rows, columns=[*RATE_COLUMNS, *MORE_COLUMNS])


def measured(results: pd.DataFrame) -> pd.DataFrame:
    """The rates that are not the published ones."""
    return results[results["counted_by"] != BY_AUTHORS]


def overall(results: pd.DataFrame) -> pd.DataFrame:
    """The rates over all categories."""
    return results[results["category"] == OVERALL]


def by_category(results: pd.DataFrame) -> pd.DataFrame:
    """The rates of single categories."""
    return results[~results["category"].isin([OVERALL, MACRO])]


def same_prompts(results: pd.DataFrame) -> bool:
    """Whether the models of each side were measured on the same set of prompts."""
    return bool((results.groupby("side")["prompt_set"].nunique() <= 1).all())


def _rows(one: Measurement, validated: Validated | None) -> list[dict[str, Any]]:
    table = _with_shares(_counts(one), one.by_stage5)
    whole, *categories = table.reset_index(names="category").to_dict("records")
    for row in (whole, *categories):
        row["notes"] = flags_of(row)
    rows = [whole]
    if [row["category"] for row in categories] != [UNCATEGORISED]:
        macro = _macro_average(categories)
        whole["macro_percent"] = macro["rate_percent"]
        rows += [macro, *categories]
    _add_judge(whole, one, validated)
    names = ("model", "family", "side", "counted_by", "prompt_set", "scripted", "partial")
    about = {name: getattr(one, name) for name in names}
    return [about | row | {"notes": "; ".join([*one.notes, *row["notes"]])} for row in rows]


def _counts(one: Measurement) -> pd.DataFrame:
    """OVERALL and each category, in order of name: n, prompts, refusals by kind, unscored rows."""
    rows = pd.concat([one.scored.assign(category=OVERALL), one.scored])
    for kind in ("direct", "indirect"):
        rows[f"{kind}_refusals"] = rows["verdict"] == f"{kind}_refusal"
    by = rows.groupby("category")
    sums = ["refused", "direct_refusals", "indirect_refusals", "api_refusals"]
    counts = by[sums].sum().assign(n=by.size(), prompts=by["prompt"].nunique())
    unscored = {OVERALL: one.unscored.sum() + one.unlisted, **one.unscored}
    counts = counts.join(pd.Series(unscored, name="unscored"), how="outer").fillna(0)
    return counts.loc[[OVERALL, *sorted(counts.index.drop(OVERALL))]]


def _with_shares(counts: pd.DataFrame, by_stage5: bool) -> pd.DataFrame:
    """The counts, and the shares that they make in percent."""
    table, n = counts.astype(float), counts["n"]
    for kind in ("", "direct_", "indirect_"):
        shares = table[f"{kind}refusals" if kind else "refused"] / n
        ends = [_interval(*pair) for pair in zip(shares, counts["prompts"], strict=True)]
        table[f"{kind or 'rate_'}percent"] = 100 * shares
        table[f"{kind}low_percent"], table[f"{kind}high_percent"] = zip(*ends, strict=True)
    if not by_stage5:  # the rules of stage 4 do not tell direct from indirect refusals
        table[[name for name in table if "direct_" in name]] = nan
    table["coverage_percent"] = 100 * n / (n + counts["unscored"])
    table["api_percent"] = 100 * counts["api_refusals"] / n
    return table


def _interval(share: float, prompts: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of the rows, in percent.

    Rows with the same prompt (several samples, duplicates) are not independent, so n is the number
    of distinct prompts: more samples never narrow the interval beyond what the prompts allow.
    """
    if not prompts:
        return nan, nan
    low, high = wilson(share * prompts, prompts)
    return 100 * low, 100 * high


def flags_of(row: dict[str, Any]) -> list[str]:
    """What a reader has to know about a rate, in words."""
    flags = []
    if row["coverage_percent"] < COVERAGE_PERCENT:
        flags.append(f"coverage {row['coverage_percent']:.1f}%")
    if row["n"] < FEW:
        flags.append(f"n < {FEW}")
    return flags


def _macro_average(categories: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of the category rates, each with the same weight, and over how many it is."""
    rates = [row["rate_percent"] for row in categories if row["n"]]
    note = f"mean of {len(rates)} {'category' if len(rates) == 1 else 'categories'}"
    if without := len(categories) - len(rates):
        note += f", without a verdict: {without}"
    if not rates:
        note = "no category has a verdict"
    return {"category": MACRO, "rate_percent": fmean(rates) if rates else nan, "notes": [note]}


def _add_judge(row: dict[str, Any], one: Measurement, validated: Validated | None) -> None:
    """To an overall rate: stage 4's rules on the same rows, and the correction for the judge."""
    rules, judge = one.scored["rules"], one.scored["refused"]
    if rules.notna().all() and len(rules):
        row["rules_percent"] = 100 * rules.mean()
        row["judge_only"], row["rules_only"] = (judge > rules).sum(), (rules > judge).sum()
        row["differ_percent"] = 100 * (judge != rules).mean()
    if validated and validated.applies_to(one.by_stage5, one.judge) and row["n"]:
        found = correct(row["rate_percent"] / 100, row["prompts"], validated.accuracy)
        for name, share in (("", found.rate), ("low_", found.low), ("high_", found.high)):
            row[f"corrected_{name}percent"] = 100 * share
        row["uncorrected"] = found.reason
        row["notes"] += filter(None, [found.reason])


def _published_rows() -> list[dict[str, Any]]:
    note = "published by the OR-Bench authors, not measured here"
    return [
        {"model": one.model, "family": one.family, "side": side, "category": OVERALL}
        | {"rate_percent": getattr(one, rate), "counted_by": BY_AUTHORS, "notes": note}
        for side, rate in (("over_refusal", "over_refusal"), ("toxic", "toxic_rejection"))
        for one in PUBLISHED
    ]
