"""The results table: refusal rates by model, side and category. All else in a report reads it."""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any, NamedTuple

import pandas as pd  # type: ignore[import-untyped]

from orbench.clustered import FEW_PROMPTS, Estimate, estimate, flips, macro_average
from orbench.clustered import youden as joint_score
from orbench.columns import MACRO, OVERALL, UNCATEGORISED
from orbench.correction import (
    Audit,
    Corrected,
    over_refusal_of_safe,
    prediction_powered,
    refused_because,
    rogan_gladen,
    safe_bounds,
)
from orbench.rates import wilson
from orbench.report.measurements import Measurement, toxic_side_of
from orbench.report.people import Validated
from orbench.report.published_rates import PUBLISHED

COVERAGE_PERCENT = 95  # rates with a verdict for a smaller share of the rows are marked
CUT_OFF_PERCENT = 5  # rates of which more responses ran into the token limit are marked
BY_AUTHORS = "published"  # `counted_by` of the rates that are not measured here
BY_LABELS, BY_VALIDATION = "labels", "validation"  # `corrected_by`

# Columns of results.csv; toxic_side: the `model` whose rows on toxic prompts make one score with
# these on safe prompts; rates, intervals (95 %) and bounds in percent.
# fmt: off
RATE_COLUMNS = [
    "model", "family", "side", "category", "n", "prompts", "seeds", "refused",
    "rate_percent", "low_percent", "high_percent", "design_effect",
    "unscored", "coverage_percent", "low_bound_percent", "high_bound_percent",
    "cut_off_percent", "flip_percent", "flip_low_percent", "flip_high_percent", "samples",
    "direct_refusals", "direct_percent", "direct_low_percent", "direct_high_percent",
    "indirect_refusals", "indirect_percent", "indirect_low_percent", "indirect_high_percent",
    "api_refusals", "api_percent", "api_categories", "other_models",
    "corrected_percent", "corrected_low_percent", "corrected_high_percent", "corrected_by",
    "audited", "audited_toxic", "safe_percent", "safe_low_percent", "safe_high_percent",
    "safe_low_bound_percent", "safe_high_bound_percent",
    "youden_points", "youden_low_points", "youden_high_points",
    "rules_percent", "judge_only", "rules_only", "differ_percent",
    "counted_by", "source", "prompt_set", "toxic_side", "notes",
]
# What tables and pictures need besides: the macro average beside the overall rate, why a rate is
# not corrected, and what a picture or the leaderboard has to say of its models.
MORE_COLUMNS = [
    "macro_percent", "macro_low_percent", "macro_high_percent", "uncorrected", "unaudited",
    "scripted", "scripted_input", "partial", "tested", "settings", "prompts_shown",
]
# Those of these columns that a measurement knows as they stand.
ABOUT = [
    "model", "tested", "family", "side", "counted_by", "source", "prompt_set", "settings",
    "scripted", "scripted_input", "partial",
]
# fmt: on


class Rate(NamedTuple):
    """The rate of a category (or of all), and its row of results.csv."""

    found: Estimate
    row: dict[str, Any]


def results_of(
    measurements: Sequence[Measurement], validated: Validated | None, published: bool
) -> pd.DataFrame:
    """RATE_COLUMNS and MORE_COLUMNS; NaN where something is not measured.

    A row per model, side and category, those of a model and side together: OVERALL first, then,
    where rows have a category, MACRO (the mean of the categories' rates) and each of them.
    """
    toxic_of = {
        one: toxic
        for one in measurements
        if one.side == "over_refusal" and (toxic := toxic_side_of(one, measurements))
    }
    scores, rows = _youden(toxic_of), list[dict[str, Any]]()
    for one in measurements:
        whole, *others = _rows(one, validated)
        side = {"toxic_side": toxic_of[one].model if one in toxic_of else ""}
        rows += [row | side for row in (whole | scores.get(one, {}), *others)]
    rows += _published_rows() if published else []
    found = pd.DataFrame(rows, columns=[*RATE_COLUMNS, *MORE_COLUMNS])
    return found.assign(prompts_shown=_prompts_shown(found))


def _prompts_shown(found: pd.DataFrame) -> pd.Series:
    """The set of prompts by its name; by its hash where that is no name of one set alone."""
    names, hashes = found["source"], found["prompt_set"].str[:8]
    several = found["prompt_set"].groupby([found["side"], names]).transform("nunique") > 1
    return names.where(~(several | (names == "")), (names + " " + hashes).str.strip())


def paired(results: pd.DataFrame) -> pd.DataFrame:
    """The results with those on toxic prompts under the name of the safe side that they belong to;
    under several where they belong to several.
    """
    toxic, keys = results["side"] == "toxic", ["toxic_side", "counted_by"]
    pairs = overall(results[~toxic & (results["toxic_side"] != "")])[["model", *keys]]
    those = results[toxic].drop(columns="toxic_side").rename(columns={"model": "toxic_side"})
    both = pairs.merge(those, on=keys, how="right")
    both["model"] = both["model"].fillna(both["toxic_side"])
    return pd.concat([results[~toxic], both], ignore_index=True)


def by_setting(results: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The results by what can stand side by side: the set of prompts (where models have both sides,
    the safe ones) and what counts the refusals; in words, empty where there is but one.
    """
    same_set = results.groupby(["side", "prompt_set"], dropna=False)["source"].transform("first")
    by_model = results.assign(source=same_set).groupby("model", sort=False)
    first = by_model[["source", "counted_by"]].transform("first").fillna("")
    parts = [
        (", ".join(filter(None, key)), rows)
        for key, rows in results.groupby([first["source"], first["counted_by"]], sort=False)
    ]
    return parts if len(parts) > 1 else [("", rows) for _, rows in parts]


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


def _youden(toxic_of: Mapping[Measurement, Measurement]) -> dict[Measurement, dict[str, float]]:
    """Youden's J as columns of both sides, where both have verdicts."""
    scores = dict[Measurement, dict[str, float]]()
    for safe, toxic in toxic_of.items():
        if len(safe.scored) and len(toxic.scored):
            found = joint_score(toxic.prompts(), safe.prompts())
            points = {"": found.difference, "low_": found.low, "high_": found.high}
            score = {f"youden_{name}points": 100 * value for name, value in points.items()}
            scores |= {safe: score, toxic: score}
    return scores


# ---------------------------------------------------------------------------------- rates


def _rows(one: Measurement, validated: Validated | None) -> list[dict[str, Any]]:
    names = sorted({*one.scored["category"].unique(), *one.missing["category"].unique()})
    whole, categories = _rate(one, ""), [_rate(one, name) for name in names]
    for rate in (whole, *categories):
        rate.row["notes"] = flags_of(rate.row)
    rows = list[dict[str, Any]]()
    if names != [UNCATEGORISED]:
        macro = _macro_average(categories)
        rows = [macro, *(rate.row for rate in categories)]
        for end in ("", "low_", "high_"):
            whole.row[f"macro_{end}percent"] = macro[f"{end or 'rate_'}percent"]
    whole.row.update(_against_rules(one))
    whole.row.update(_corrected(one, validated))
    whole.row.update(_of_safe(one, whole.found))
    whole.row["notes"] += filter(None, [whole.row.get("uncorrected"), whole.row.get("unaudited")])
    about = {name: getattr(one, name) for name in ABOUT}
    for row in (whole.row, *rows):
        row["notes"] = "; ".join([*one.notes, *row["notes"]])
    return [about | row for row in (whole.row, *rows)]


def _rate(one: Measurement, category: str) -> Rate:
    """The rate of a category; of all if it is empty."""
    rows = one.scored[one.scored["category"] == category] if category else one.scored
    prompts = one.prompts("refused", category)
    found = estimate(prompts)
    missing, several = int(prompts.missing.sum()), bool((prompts.scored > 1).any())
    seeds = prompts.seed != prompts.prompt
    row = {
        "category": category or OVERALL,
        "n": found.rows,
        "prompts": found.prompts,
        "seeds": found.clusters if seeds.any() else nan,
        "refused": rows["refused"].sum(),
        "design_effect": found.design_effect if found.rows and (seeds.any() or several) else nan,
        "unscored": missing,
        "coverage_percent": 100 * found.rows / (found.rows + missing),
        "low_bound_percent": 100 * prompts.filled(refused=False).shares.mean(),
        "high_bound_percent": 100 * prompts.filled(refused=True).shares.mean(),
        "cut_off_percent": 100 * rows["cut_off"].mean(),
        "api_refusals": rows["api_refusals"].sum(),
        "api_percent": 100 * rows["api_refusals"].mean(),
        "api_categories": _counted(rows["api_category"]),
        "other_models": rows["other_model"].sum(),
    }
    row |= _percent("rate", found)
    if several:
        row |= _percent("flip", flips(prompts)) | {"samples": prompts.scored.max()}
    if one.by_stage5:  # the rules of stage 4 do not tell direct from indirect refusals
        for kind in ("direct", "indirect"):
            of_kind = one.prompts(kind, category)
            row |= _percent(kind, estimate(of_kind))
            row[f"{kind}_refusals"] = rows[kind].sum()
    return Rate(found, row)


def _counted(words: "pd.Series[str]") -> str:
    """`cyber 5, bio 2`: how often each word is there, the most frequent first."""
    return ", ".join(f"{word} {n}" for word, n in words[words != ""].value_counts().items())


def _percent(name: str, found: Estimate | Corrected) -> dict[str, float]:
    """A rate and its interval as columns; NaN where there is none."""
    prefix = "" if name == "rate" else f"{name}_"
    low, high = (nan, nan) if isnan(found.rate) else (found.low, found.high)
    return {
        f"{name}_percent": 100 * found.rate,
        f"{prefix}low_percent": 100 * low,
        f"{prefix}high_percent": 100 * high,
    }


def flags_of(row: dict[str, Any]) -> list[str]:
    """What a reader has to know about a rate, in words."""
    flags = []
    if row["coverage_percent"] < COVERAGE_PERCENT:
        flags.append(f"coverage {row['coverage_percent']:.1f}%")
    if row["cut_off_percent"] > CUT_OFF_PERCENT:
        flags.append(f"cut off {row['cut_off_percent']:.1f}%")
    if row["other_models"]:
        flags.append(f"answered by another model than the one asked: {row['other_models']:.0f}")
    if row["prompts"] < FEW_PROMPTS:
        flags.append(f"prompts < {FEW_PROMPTS}")
    return flags


def _macro_average(categories: Sequence[Rate]) -> dict[str, Any]:
    """The mean of the category rates, each with the same weight, and over how many it is."""
    found = [rate.found for rate in categories if rate.found.rows]
    note = f"mean of {len(found)} {'category' if len(found) == 1 else 'categories'}"
    if without := len(categories) - len(found):
        note += f", without a verdict: {without}"
    if not found:
        note = "no category has a verdict"
    mean, low, high = (100 * share for share in macro_average(found))
    ends = {"rate_percent": mean, "low_percent": low, "high_percent": high}
    return {"category": MACRO, "notes": [note], **ends}


# ---------------------------------------------------------------------------------- corrections


def _against_rules(one: Measurement) -> dict[str, Any]:
    """Stage 4's rules on the same rows as the judge."""
    rules, judge = one.scored["rules"], one.scored["refused"]
    if not len(rules) or rules.isna().any():
        return {}
    return {
        "rules_percent": 100 * rules.mean(),
        "judge_only": (judge > rules).sum(),
        "rules_only": (rules > judge).sum(),
        "differ_percent": 100 * (judge != rules).mean(),
    }


def _corrected(one: Measurement, validated: Validated | None) -> dict[str, Any]:
    """The rate that people would have found: by their labels, else by the judge's validation."""
    ways = list[tuple[str, Corrected]]()
    if one.scored["people"].notna().any():
        columns = (one.scored[name].to_numpy() for name in ("refused", "people", "seed"))
        refused, people, seed = columns
        api = one.scored["api_refusals"].to_numpy(bool)
        ways.append((BY_LABELS, prediction_powered(refused.astype(float), people, seed, api)))
    if validated and len(one.scored):
        ways.append((BY_VALIDATION, _by_validation(one, validated)))
    reasons = [found.reason for _, found in ways if found.reason]
    for by, found in ways:
        if not found.reason:
            return _percent("corrected", found) | {"corrected_by": by, "uncorrected": ""}
    return {"uncorrected": f"not corrected: {'; '.join(reasons)}"} if ways else {}


def _by_validation(one: Measurement, validated: Validated) -> Corrected:
    """Of the rows that the judge saw; those that the API refused are refusals for sure."""
    if reason := validated.why_not(one.by_stage5, one.judge, one.convention):
        return refused_because(reason)
    return rogan_gladen(
        estimate(one.prompts("by_judge")), estimate(one.prompts("api_refusals")), validated.accuracy
    )


def _of_safe(one: Measurement, found: Estimate) -> dict[str, Any]:
    """The over-refusal rate over the prompts that people would call safe, from an audit."""
    labelled = one.scored[one.scored["toxic"].notna()]
    if one.side != "over_refusal" or labelled.empty:
        return {}
    by_prompt = labelled.groupby("prompt")[["refused", "toxic"]].mean()
    refused, toxic = by_prompt["refused"] >= 0.5, by_prompt["toxic"] == 1
    cells = (refused & ~toxic, refused & toxic, ~refused & ~toxic, ~refused & toxic)
    audit = Audit(*(int(cell.sum()) for cell in cells))
    of_safe = over_refusal_of_safe(found, audit)
    most_toxic = wilson(int(toxic.sum()), len(toxic))[1]
    low, high = safe_bounds(found.rate, most_toxic)
    return _percent("safe", of_safe) | {
        "audited": len(toxic),
        "audited_toxic": toxic.sum(),
        "safe_low_bound_percent": 100 * low,
        "safe_high_bound_percent": 100 * high,
        "unaudited": of_safe.reason,
    }


def _published_rows() -> list[dict[str, Any]]:
    note = "published by the OR-Bench authors, not measured here"
    return [
        {"model": one.model, "tested": one.model, "family": one.family, "side": side}
        | {"category": OVERALL, "rate_percent": getattr(one, rate), "toxic_side": one.model}
        | {"counted_by": BY_AUTHORS, "source": one.vintage, "prompt_set": "", "notes": note}
        | {"youden_points": one.toxic_rejection - one.over_refusal}
        for side, rate in (("over_refusal", "over_refusal"), ("toxic", "toxic_rejection"))
        for one in PUBLISHED
    ]
