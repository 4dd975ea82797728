"""The leaderboard: a row per model, prompts and judge; ranks among those with the same of both."""

from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.report.results import BY_AUTHORS, overall, paired

UNRANKED = ("scripted", "scripted_input", "partial")  # what says too little of a model for a rank
MARKS = {"tested": "\n", "prompts_shown": ", ", "settings": "; ", "notes": "; "}  # between sides


def leaderboard_of(results: pd.DataFrame) -> pd.DataFrame:
    """The overall rates with both sides in a row, those on toxic prompts with the ending `_toxic`.

    tested, prompts_shown, settings and notes hold for both sides. rank: by the joint score, with
    one side only by its rate, among `of` models with the same prompts and judge; NaN where it is
    the only one, and for published, scripted and partial results. Published models come last.
    """
    rates = overall(paired(results))
    toxic, keys = rates["side"] == "toxic", ["entry", "counted_by"]
    own = rates["model"].where(~toxic, rates["toxic_side"])
    rates = rates.assign(entry=rates["model"], model=own)
    rows = rates[~toxic].merge(rates[toxic], how="outer", on=keys, suffixes=("", "_toxic"))
    for name, mark in MARKS.items():
        both = zip(rows[name], rows[f"{name}_toxic"], strict=True)
        rows[name] = [_together(texts, mark) for texts in both]
    one_sided = [rows["side_toxic"].isna(), rows["side"].isna()]
    sides = [-rows["rate_percent"], rows["rate_percent_toxic"]]
    rows["score"] = np.select(one_sided, sides, rows["youden_points"])
    rows["published"] = rows["counted_by"] == BY_AUTHORS
    rows["unknown"] = rows["counted_by"] == "stage 5"  # by whom, no record says
    flags = rows[
        ["published", "unknown", *(name + end for name in UNRANKED for end in ("", "_toxic"))]
    ]
    same = [rows[name].fillna("") for name in ("counted_by", "prompt_set", "prompt_set_toxic")]
    ranked = rows["score"].mask(flags.eq(True).any(axis=1)).groupby(same)
    rows["of"] = ranked.transform("count")
    rows["rank"] = ranked.rank(ascending=False, method="min").where(rows["of"] > 1)
    rows["notes"] = rows["notes"].mask(rows["published"], "")
    order = ["published", "of", "counted_by", "prompts_shown", "rank", "score"]
    up = [name not in ("of", "score") for name in order]
    return rows.sort_values(order, ascending=up, kind="stable")


def _together(texts: tuple[Any, ...], mark: str) -> str:
    """What is said of both sides, each thing once."""
    parts = [part for text in texts if isinstance(text, str) for part in text.split(mark)]
    return mark.join(dict.fromkeys(filter(None, parts)))
