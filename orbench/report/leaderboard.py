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
    toxic, keys = rates["side"] == "toxic", ["model", "counted_by"]
    safe = rates[~toxic].drop(columns="toxic_side")
    rows = safe.merge(rates[toxic], how="outer", on=keys, suffixes=("", "_toxic"))
    for name, mark in MARKS.items():
        both = zip(rows[name], rows[f"{name}_toxic"], strict=True)
        rows[name] = [_together(texts, mark) for texts in both]
    one_sided = [rows["side_toxic"].isna(), rows["side"].isna()]
    sides = [-rows["rate_percent"], rows["rate_percent_toxic"]]
    score = pd.Series(np.select(one_sided, sides, rows["youden_points"]), rows.index)
    published = rows["counted_by"] == BY_AUTHORS
    flags = rows[[name + end for name in UNRANKED for end in ("", "_toxic")]]
    same = [rows[name].fillna("") for name in ("counted_by", "prompt_set", "prompt_set_toxic")]
    ranked = score.mask(published | flags.eq(True).any(axis=1)).groupby(same)
    of = ranked.transform("count")
    rows = rows.assign(
        rank=ranked.rank(ascending=False, method="min").where(of > 1), of=of, score=score
    )
    rows["notes"] = rows["notes"].mask(published, "")
    order = {"published": True, "of": False, "counted_by": True, "prompts_shown": True}
    order |= {"rank": True, "score": False}
    rows = rows.assign(published=published)
    return rows.sort_values(list(order), ascending=list(order.values()), kind="stable")


def _together(texts: tuple[Any, ...], mark: str) -> str:
    """What is said of both sides, each thing once."""
    parts = [part for text in texts if isinstance(text, str) for part in text.split(mark)]
    return mark.join(dict.fromkeys(filter(None, parts)))
