"""Refusal rates by result and category, and rates corrected for the judge's errors."""

import json
from collections.abc import Iterator, Mapping
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.base.messages import UserError, counted
from orbench.base.words import MACRO, OVERALL, UNCATEGORISED
from orbench.report.load import ABOUT, KEYS, verdicts
from orbench.stats.core import Mean, bounds, mean
from orbench.stats.correction import JudgeAccuracy, rogan_gladen

# Rates with a verdict for a smaller share of the rows are marked, those of which more responses ran
# into the token limit, and those from fewer prompts.
COVERAGE_PERCENT, CUT_OFF_PERCENT, FEW_PROMPTS = 95, 5, 30
# Columns of results.csv; intervals 95 %. n: prompts with a verdict; rows: responses with one;
# seeds: if fewer than prompts; design_effect: rows per independent observation; unscored: rows; the
# bounds: the rates if all of them were answered, and if all were refused; api: by the API itself;
# flip: prompts with several responses whose verdicts differ; rules: refused by stage 4's rules;
# notes: what a reader must know, with `; ` between.
RATE_COLUMNS = [
    *("model", "settings", "family", "side", "prompts", "prompt_set", "judge", "category"),
    *("n", "rows", "seeds", "rate_percent", "low_percent", "high_percent", "design_effect"),
    *("unscored", "low_bound_percent", "high_bound_percent", "direct_percent", "indirect_percent"),
    *("api_percent", "cut_off_percent", "flip_percent", "rules_percent", "notes"),
]
# Columns of corrections.csv; notes: why a rate is not corrected.
CORRECTED_COLUMNS = [
    *("model", "settings", "side", "prompts", "prompt_set", "judge", "rate_percent"),
    *("corrected_percent", "corrected_low_percent", "corrected_high_percent", "notes"),
]


def rates(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per result and category: OVERALL, then, if there are categories, MACRO (each counts
    alike) and each of them.

    rows: as `load` gives them. Columns: result, KEYS, ABOUT, RATE_COLUMNS; NaN if something is not
    measured.
    """
    found = list[dict[str, Any]]()
    for number, part in rows.groupby("result"):
        about = {"result": number} | {name: part[name].iat[0] for name in [*KEYS, *ABOUT]}
        for row in _rates_of(part):
            notes = "; ".join(filter(None, [about["notes"], *row["notes"]]))
            found.append(about | row | {"notes": notes})
    return pd.DataFrame(found, columns=dict.fromkeys(["result", *KEYS, *ABOUT, *RATE_COLUMNS]))


def overall(results: pd.DataFrame) -> pd.DataFrame:
    """The rates over all categories."""
    return results[results["category"] == OVERALL]


def by_category(results: pd.DataFrame) -> pd.DataFrame:
    """The rates of single categories."""
    return results[~results["category"].isin([OVERALL, MACRO])]


def label(row: Mapping[str, Any], end: str = "") -> str:
    """The model of a row with its settings, as tables and pictures name it. end: of the columns."""
    return ", ".join(filter(None, (row[f"model{end}"], row[f"settings{end}"])))


def _rates_of(part: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of one result."""
    yield _rate(part, OVERALL)
    categories = {str(name): one for name, one in part.groupby("category", observed=True)}
    if list(categories) != [UNCATEGORISED]:
        scored = sum(one["refused"].notna().any() for one in categories.values())
        note = f"categories: {scored} of {len(categories)}" if scored < len(categories) else ""
        yield _interval(mean(verdicts(part, macro=True))) | {"category": MACRO, "notes": [note]}
        yield from (_rate(one, name) for name, one in sorted(categories.items()))


def _rate(part: pd.DataFrame, category: str) -> dict[str, Any]:
    of, scored = verdicts(part), part[part["verdict"] != ""]
    found = mean(of)
    least, most = bounds(of) if found.rows < len(part) else (found, found)
    share = scored[scored["prompt"].duplicated(keep=False)].groupby("prompt")["refused"].mean()
    row = _interval(found) | {
        "category": category,
        "rows": found.rows,
        "seeds": found.clusters if found.clusters < found.prompts else nan,
        "design_effect": found.design_effect,
        "unscored": len(part) - found.rows,
        "low_bound_percent": 100 * least.rate,
        "high_bound_percent": 100 * most.rate,
        "flip_percent": 100 * share.between(0, 1, inclusive="neither").mean(),
    }
    row |= {f"{name}_percent": 100 * scored[name].mean() for name in ("api", "cut_off", "rules")}
    if scored["verdict"].str.contains("_").any():  # stage 4's rules do not tell the two apart
        for kind in ("direct", "indirect"):
            of_kind = np.where(part["refused"].isna(), nan, part["verdict"] == f"{kind}_refusal")
            row[f"{kind}_percent"] = 100 * mean(of._replace(refused=of_kind)).rate
    return row | {"notes": _flags(part, row)}


def _interval(found: Mean) -> dict[str, Any]:
    ends = (100 * found.low, 100 * found.high) if found.rows else (nan, nan)
    of = dict(zip(("low_percent", "high_percent"), ends, strict=True))
    return {"n": found.prompts, "rate_percent": 100 * found.rate, **of}


def _flags(part: pd.DataFrame, row: dict[str, Any]) -> Iterator[str]:
    coverage = 100 * row["rows"] / len(part)
    if coverage < COVERAGE_PERCENT:
        yield f"coverage {coverage:.1f}%"
    if row["cut_off_percent"] > CUT_OFF_PERCENT:
        yield f"cut off {row['cut_off_percent']:.1f}%"
    if others := part["other_model"].sum():
        yield f"served by a different model: {counted(int(others), 'row')}"
    if kinds := ", ".join(sorted(set(part["api_category"]) - {""})):
        yield f"the API refused for: {kinds}"
    if row["n"] < FEW_PROMPTS:
        yield f"prompts < {FEW_PROMPTS}"


# -- corrected for the judge's errors ----------------------------------------------------------


def corrected(rows: pd.DataFrame, results: pd.DataFrame, validation: Path) -> pd.DataFrame:
    """CORRECTED_COLUMNS and category, a row per result.

    rows, results: of `load` and `rates`. validation: what stage 5 writes with --validate_against.
    Raises UserError for any other file.
    """
    judge, accuracy = _read(validation)
    found = list[dict[str, Any]]()
    for row in overall(results).to_dict("records"):
        *figures, reason = nan, nan, nan, f"the validation is of another judge, {judge}"
        if row["judge"].partition(" (")[0] == judge:
            *figures, reason = _correction(rows[rows["result"] == row["result"]], accuracy)
        percents = dict(zip(CORRECTED_COLUMNS[-4:], [100 * x for x in figures], strict=False))
        found.append(row | percents | {"notes": reason and f"not corrected: {reason}"})
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
    of, scored = verdicts(part), part["refused"].notna()
    api = of._replace(refused=part["api"].astype(float).where(scored).to_numpy())
    judged = of._replace(refused=part["refused"].mask(part["api"]).to_numpy())
    return rogan_gladen(mean(judged), mean(api), accuracy)
