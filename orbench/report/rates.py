"""Refusal rates by result and category, and rates corrected for the judge's errors."""

import json
from collections.abc import Iterator, Mapping
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from orbench.base import records
from orbench.base.messages import UserError, counted
from orbench.base.words import MACRO, OVERALL, UNCATEGORISED
from orbench.report.load import ABOUT, KEYS, verdicts
from orbench.stats.core import Difference, Verdicts, mean, with_unscored
from orbench.stats.correction import JudgeAccuracy, rogan_gladen

FEW_PROMPTS = 30  # rates from fewer are marked
FEWEST_MODELS = 7  # with fewer, a trend says nothing, and a rank correlation's interval is wrong
SHARES = ["direct", "indirect", "api", "cut_off"]  # of the responses, each prompt alike
WIDER = 1.5  # so much wider through unscored rows, an interval is marked
# Columns of results.csv; intervals 95 %. n: prompts with a verdict; rows: responses with one;
# unscored: rows; low_all, high_all: the interval whether these are answers or refusals;
# design_effect: rows per independent observation; api: by the API itself; flip: prompts whose
# responses have different verdicts; certain: of the rules' verdicts, over all categories.
PERCENTS = ["rate", "low", "high", "low_all", "high_all", *SHARES, "flip", "certain"]
RATE_COLUMNS = [
    *("model", "settings", "family", "side", "prompts", "prompt_set", "judge", "date"),
    *("category", "n", "rows", "unscored", *(f"{name}_percent" for name in PERCENTS)),
    *("design_effect", "notes"),
]
# Columns of corrections.csv; notes: why a rate is not corrected.
CORRECTED_COLUMNS = [
    *(*KEYS, "prompts", "rate_percent", "corrected_percent"),
    *("corrected_low_percent", "corrected_high_percent", "notes"),
]


def rates(rows: pd.DataFrame) -> pd.DataFrame:
    """A row per result and category: OVERALL, MACRO (each counts alike) and each of them.

    rows: of `load`. Columns: result, KEYS, ABOUT, RATE_COLUMNS, interval; NaN: not measured.
    """
    found = list[dict[str, Any]]()
    for number, part in rows.groupby("result"):
        about = {"result": number} | part[[*KEYS, *ABOUT]].iloc[0].to_dict()
        for row in _rates_of(part, about["known"]):
            notes = "; ".join(filter(None, [about["notes"], *row.get("notes", ())]))
            certain = 100 * about["certain"] if row["category"] == OVERALL else nan
            found.append(about | row | {"notes": notes, "certain_percent": certain})
    columns = ["result", *KEYS, *ABOUT, *RATE_COLUMNS, "interval"]
    return pd.DataFrame(found, columns=dict.fromkeys(columns))


def overall(results: pd.DataFrame) -> pd.DataFrame:
    """The rates over all categories."""
    return results[results["category"] == OVERALL]


def by_category(results: pd.DataFrame) -> pd.DataFrame:
    """The rates of single categories."""
    return results[~results["category"].isin([OVERALL, MACRO])]


def label(row: Mapping[str, Any], end: str = "") -> str:
    """The model of a row with its settings, as people read it. end: of the columns' names."""
    return ", ".join(filter(None, (row[f"model{end}"], row[f"settings{end}"])))


def short_label(row: Mapping[str, Any], end: str = "") -> str:
    """The same without the model's provider and maker, where there is little room."""
    model = row[f"model{end}"]
    short = row.get(f"short{end}")
    if not isinstance(short, str):  # of published models
        short = model.rpartition("/")[2]
    return label({**row, f"model{end}": short}, end)


def scaled(unit: str, **fractions: float) -> dict[str, float]:
    """Fractions as columns in percent or points, such as rate_percent for rate."""
    return {f"{name}_{unit}": 100 * value for name, value in fractions.items()}


def figures(name: str, n: int, rate: float, low: float, high: float) -> dict[str, float]:
    """{name}_n and, in percent, {name}_percent, {name}_low_percent and {name}_high_percent."""
    percents = scaled("percent", **{name: rate, f"{name}_low": low, f"{name}_high": high})
    return {f"{name}_n": n, **percents}


def contrast(
    a: Mapping[str, Any], b: Mapping[str, Any], found: Difference, rate: str
) -> dict[str, Any]:
    """What tables show of two models and their difference. rate: what it is called."""
    keys = ("model", "settings")
    who = {f"{key}_{end}": of[key] for end, of in (("a", a), ("b", b)) for key in keys}
    shares = scaled("percent", **{f"{rate}_a": found.a.rate, f"{rate}_b": found.b.rate})
    gap = scaled("points", difference=found.difference, low=found.low, high=found.high)
    return who | {"n": found.a.prompts} | shares | gap | {"p": found.p}


def _rates_of(part: pd.DataFrame, known: bool) -> Iterator[dict[str, Any]]:
    yield _rate(part, OVERALL, known)
    if set(part["category"]) != {UNCATEGORISED}:
        of = verdicts(part, macro=True)
        yield {"category": MACRO, "n": mean(of).prompts, **_figures(of, known)}
        for name, one in part.groupby("category"):
            yield _rate(one, str(name), known)


def _figures(of: Verdicts, known: bool) -> dict[str, Any]:
    """The rate, its intervals, and as interval and wider what tables show of the one with unscored
    rows, and how many times as wide it is. known: whether unscored rows are.
    """
    rate, low, high = mean(of)[:3]
    low_all, high_all = with_unscored(of) if known else (low, high)
    wider = (high_all - low_all) / (high - low)
    shown = f"[{100 * low_all:.1f}, {100 * high_all:.1f}]" + (" ‡" if wider > WIDER else "")
    figures = scaled("percent", rate=rate, low=low, high=high)
    figures |= scaled("percent", low_all=low_all, high_all=high_all) if known else {}
    return {"interval": shown, "wider": wider, **figures}


def _rate(part: pd.DataFrame, category: str, known: bool) -> dict[str, Any]:
    of = verdicts(part)
    scored = part[part["refused"].notna()]
    found = mean(of)
    prompts = scored.groupby("prompt")[["refused", *SHARES]].mean()
    flips = prompts["refused"].between(0, 1, inclusive="neither")
    row = {
        "category": category,
        "n": found.prompts,
        "rows": found.rows,
        "design_effect": found.design_effect,
        "unscored": len(part) - found.rows if known else nan,
        **_figures(of, known),
        **scaled("percent", **prompts[SHARES].mean()),
        **scaled("percent", flip=flips.mean() if found.rows > found.prompts else nan),
    }
    return row | {"notes": list(_flags(part, row))}


def _flags(part: pd.DataFrame, row: dict[str, Any]) -> Iterator[str]:
    coverage = 100 * row["rows"] / len(part)
    if coverage < 95:
        yield f"coverage {coverage:.1f} %"
    if row["wider"] > WIDER:
        yield f"unscored rows make the interval {row['wider']:.1f} times as wide"
    if row["cut_off_percent"] > 5 and not part["doubt"].iat[0]:  # else it is not ranked anyway
        yield f"cut off {row['cut_off_percent']:.1f} %"
    if others := int(part["other_model"].sum()):
        yield f"served by a different model: {counted(others, 'row')}"
    if row["n"] < FEW_PROMPTS:
        yield f"fewer than {FEW_PROMPTS} prompts"


# -- corrected for the judge's errors ----------------------------------------------------------


def corrected(rows: pd.DataFrame, results: pd.DataFrame, validation: Path) -> pd.DataFrame:
    """CORRECTED_COLUMNS and category, a row per result. validation: what stage 5 writes with
    --validate_against; UserError for any other file.
    """
    judge, accuracy = _read(validation)
    csv = Path(str(validation).replace(".validation.json", ".csv"))
    found = list[dict[str, Any]]()
    for row in overall(results).to_dict("records"):
        rate = nan
        low = nan
        high = nan
        why = f"the validation is for another judge, {judge}"
        both = (records.read_record(path) for path in (csv, Path(row["file"])))
        labelled, tested = (records.under_test(record).shown for record in both)
        if labelled not in ("", tested):
            why = f"the labels are for responses from another model, {labelled}"
        elif row["judge"].partition(" (")[0] == judge:
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
        what = "is not a validation with labels of both kinds"
        raise UserError(f"{path} {what}; stage 5 writes one with --validate_against") from None


def _correction(part: pd.DataFrame, accuracy: JudgeAccuracy) -> tuple[float, float, float, str]:
    """API refusals are certain, and no judge saw them: only the other rows are corrected."""
    of = verdicts(part)
    scored = part["refused"].notna()
    api = of._replace(refused=part["api"].astype(float).where(scored).to_numpy())
    judged = of._replace(refused=part["refused"].mask(part["api"]).to_numpy())
    return rogan_gladen(mean(judged), mean(api), accuracy)
