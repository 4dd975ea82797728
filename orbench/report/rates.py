"""Refusal rates by result and category, and rates corrected for the judge's errors."""

import json
from collections.abc import Iterator, Mapping
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from orbench.base.messages import UserError, counted
from orbench.base.words import MACRO, OVERALL, UNCATEGORISED
from orbench.report.load import ABOUT, KEYS, verdicts
from orbench.stats.core import bounds, mean
from orbench.stats.correction import JudgeAccuracy, rogan_gladen

FEW_PROMPTS = 30  # rates from fewer are marked
SHARES = ["direct", "indirect", "api", "cut_off"]  # of the responses, each prompt alike
# Columns of results.csv; intervals 95 %. n: prompts with a verdict; rows: responses with one;
# design_effect: rows per independent observation; unscored: rows; the bounds: the rates if all of
# them were answered, and if all were refused; api: by the API itself; flip: prompts whose responses
# have different verdicts.
PERCENTS = ["rate", "low", "high", "low_bound", "high_bound", *SHARES, "flip"]
RATE_COLUMNS = [
    "model",
    "settings",
    "family",
    "side",
    "prompts",
    "prompt_set",
    "judge",
    "category",
    "n",
    "rows",
    "unscored",
    "design_effect",
    *(f"{name}_percent" for name in PERCENTS),
    "notes",
]
# Columns of corrections.csv; notes: why a rate is not corrected.
CORRECTED_COLUMNS = [
    *KEYS,
    "prompts",
    "rate_percent",
    "corrected_percent",
    "corrected_low_percent",
    "corrected_high_percent",
    "notes",
]


def rates(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per result and category: OVERALL, MACRO (each counts alike) and each of them.

    rows: of `load`. Columns: result, KEYS, ABOUT, RATE_COLUMNS; NaN: not measured.
    """
    found = list[dict[str, Any]]()
    for number, part in rows.groupby("result"):
        about = {"result": number} | part[[*KEYS, *ABOUT]].iloc[0].to_dict()
        for row in _rates_of(part):
            notes = "; ".join(filter(None, [about["notes"], *row.get("notes", ())]))
            found.append(about | row | {"notes": notes})
    return pd.DataFrame(found, columns=dict.fromkeys(["result", *KEYS, *ABOUT, *RATE_COLUMNS]))


def overall(results: pd.DataFrame) -> pd.DataFrame:
    """The rates over all categories."""
    return results[results["category"] == OVERALL]


def by_category(results: pd.DataFrame) -> pd.DataFrame:
    """The rates of single categories."""
    return results[~results["category"].isin([OVERALL, MACRO])]


def label(row: Mapping[str, Any], end: str = "") -> str:
    """The model of a row with its settings, as people read it. end: of the columns' names."""
    return ", ".join(filter(None, (row[f"model{end}"], row[f"settings{end}"])))


def scaled(unit: str, **fractions: float) -> dict[str, float]:
    """Fractions as columns in percent or points, such as rate_percent for rate."""
    return {f"{name}_{unit}": 100 * value for name, value in fractions.items()}


def figures(name: str, n: int, rate: float, low: float, high: float) -> dict[str, float]:
    """{name}_n and, in percent, {name}_percent, {name}_low_percent and {name}_high_percent."""
    percents = scaled("percent", **{name: rate, f"{name}_low": low, f"{name}_high": high})
    return {f"{name}_n": n, **percents}


def _rates_of(part: pd.DataFrame) -> Iterator[dict[str, Any]]:
    yield _rate(part, OVERALL)
    if set(part["category"]) != {UNCATEGORISED}:
        found = mean(verdicts(part, macro=True))
        figures = scaled("percent", rate=found.rate, low=found.low, high=found.high)
        yield {"category": MACRO, "n": found.prompts, **figures}
        for name, one in part.groupby("category"):
            yield _rate(one, str(name))


def _rate(part: pd.DataFrame, category: str) -> dict[str, Any]:
    of = verdicts(part)
    scored = part[part["refused"].notna()]
    found = mean(of)
    (least, most) = bounds(of)
    prompts = scored.groupby("prompt")[["refused", *SHARES]].mean()
    flips = prompts["refused"].between(0, 1, inclusive="neither")
    row = {
        "category": category,
        "n": found.prompts,
        "rows": found.rows,
        "design_effect": found.design_effect,
        "unscored": len(part) - found.rows,
        **scaled("percent", rate=found.rate, low=found.low, high=found.high),
        **scaled("percent", low_bound=least.rate, high_bound=most.rate, **prompts[SHARES].mean()),
        **scaled("percent", flip=flips.mean() if found.rows > found.prompts else nan),
    }
    return row | {"notes": list(_flags(part, row))}


def _flags(part: pd.DataFrame, row: dict[str, Any]) -> Iterator[str]:
    coverage = 100 * row["rows"] / len(part)
    if coverage < 95:
        yield f"coverage {coverage:.1f}%"
    if row["cut_off_percent"] > 5:
        yield f"cut off {row['cut_off_percent']:.1f}%"
    if others := int(part["other_model"].sum()):
        yield f"served by a different model: {counted(others, 'row')}"
    if row["n"] < FEW_PROMPTS:
        yield f"prompts < {FEW_PROMPTS}"


# -- corrected for the judge's errors ----------------------------------------------------------


def corrected(rows: pd.DataFrame, results: pd.DataFrame, validation: Path) -> pd.DataFrame:
    """CORRECTED_COLUMNS and category, a row per result. validation: what stage 5 writes with
    --validate_against; UserError for any other file.
    """
    judge, accuracy = _read(validation)
    found = list[dict[str, Any]]()
    for row in overall(results).to_dict("records"):
        rate = nan
        low = nan
        high = nan
        why = f"the validation is of another judge, {judge}"
        if row["judge"].partition(" (")[0] == judge:
            rate, low, high, why = _correction(rows[rows["result"] == row["result"]], accuracy)
        row |= scaled("percent", corrected=rate, corrected_low=low, corrected_high=high)
        found.append(row | {"notes": why and f"not corrected: {why}"})
    return pd.DataFrame(found, columns=["category", *CORRECTED_COLUMNS])


def _read(path: Path) -> tuple[str, JudgeAccuracy]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        figures = (float(content["judge"][name]) for name in JudgeAccuracy._fields)
        return content["check_model"], JudgeAccuracy(*figures)
    except (ValueError, LookupError, TypeError):
        what = "is no validation with labels of both kinds"
        raise UserError(f"{path} {what}; stage 5 writes one with --validate_against") from None


def _correction(part: pd.DataFrame, accuracy: JudgeAccuracy) -> tuple[float, float, float, str]:
    """API refusals are certain, and no judge saw them: only the other rows are corrected."""
    of = verdicts(part)
    scored = part["refused"].notna()
    api = of._replace(refused=part["api"].astype(float).where(scored).to_numpy())
    judged = of._replace(refused=part["refused"].mask(part["api"]).to_numpy())
    return rogan_gladen(mean(judged), mean(api), accuracy)
