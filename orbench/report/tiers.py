"""Prompts in steps, such as benign, borderline and dual use: rates by tier, and whether refusals
rise with the tier.

The test compares, within each seed, the prompts above its mean tier with those below, as D. R. Cox
and A. Stuart do along a series (Biometrika 42 (1955) 80-95). How seeds differ has no part in it.
"""

from collections.abc import Iterator

from pandas import DataFrame, Series, concat  # type: ignore[import-untyped]

from orbench.base.words import tiers_in_order
from orbench.report.frames import Behind, Entry, who
from orbench.report.lines import lines_of
from orbench.report.load import verdicts
from orbench.report.rates import RATE_COLUMNS, rates, scaled
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, FEW_CLUSTERS, Difference, difference

SAME = ["model", "settings", "judge", "side", "p", "difference_points"]  # in a repeated trend


def tiers(rows: DataFrame, board: DataFrame) -> Behind:
    """Return the frames tiers and tiers_trend, and a line per trend; nothing without a tier.

    rows: of `load_results`; board: `leaderboard`. tiers is `rates` with tiers for categories.
    tiers_trend has a row per model and scale of `tiered`: its tiers in their order; n, the seeds
    with prompts above and below their mean tier, each seed alike; the rates of these prompts, their
    difference and its interval; p, p_holm and p_worst (with the unscored rows against it), both
    corrected for all rows; trend, in words. Scripted and partial results are left out.
    """
    tables = []
    found = list[Entry]()
    for group, part in tiered(rows, board):
        table = rates(part.assign(category=part["step"]))
        names = dict(zip(part["step"].astype(str), part["tier"], strict=True))
        table["category"] = table["category"].map(names)
        tables.append(table[RATE_COLUMNS].dropna(subset="category"))
        found += _trends(part[part["doubt"] == ""], group)
    if not tables:
        return {}, []
    trends = DataFrame(found)
    if found:
        trends = trends.drop_duplicates(SAME)  # a toxic set may belong to several safe ones
        trends["p_worst"] = holm(trends["p_worst"])
        trends["p_holm"] = holm(trends["p"])
        trends["trend"] = [_shown(row) for row in trends.to_dict("records")]
    findings = lines_of("trends.txt", trends=trends.to_dict("records"))
    of_tiers = concat(tables).rename(columns={"category": "tier"})
    return {"tiers": of_tiers, "tiers_trend": trends}, findings


def tiered(rows: DataFrame, board: DataFrame) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Yield each group of the leaderboard (the same prompts and judge) and its rows with a tier,
    the lowest first; none without one. step: the place in the order, from 0; scale: the side within
    which tiers are compared; empty: across both, which have no tier in common.
    """
    for _, group in board.groupby("group", sort=False):
        of_group = rows["result"].isin(group[["safe", "toxic"]].stack())
        part = rows[of_group & (rows["tier"] != "")]
        if part.empty:
            continue
        order = tiers_in_order([*part["tier"].unique()])
        sides = part.groupby("tier")["side"].nunique()
        scale = ""
        if (sides > 1).any():
            scale = part["side"].astype(str)
        part = part.assign(step=part["tier"].map(order.index), scale=scale)
        yield group, part.sort_values("step", kind="stable")


def _trends(part: DataFrame, board: DataFrame) -> Iterator[Entry]:
    """Yield the figures of each trend; p_worst is not yet corrected."""
    for entry in board.to_dict("records"):
        of_model = part[part["result"].isin([entry["safe"], entry["toxic"]])]
        for scale, rows in of_model.groupby("scale"):
            gap = compared(rows.dropna(subset="refused"))
            against = _above(rows) * gap.difference < 0
            worst = compared(rows.fillna({"refused": against * 1.0}))
            turns = not gap.difference * worst.difference > 0
            yield who(entry) | {
                "side": scale,
                "tiers": " < ".join(rows["tier"].unique()),
                "n": gap.a.prompts,
                **scaled("percent", higher=gap.a.rate, lower=gap.b.rate),
                **scaled("points", difference=gap.difference, low=gap.low, high=gap.high),
                "p": gap.p,
                "p_worst": 1.0 if turns else worst.p,
            }


def compared(rows: DataFrame) -> Difference:
    """Return how the rate above each seed's mean tier differs from that below, each seed alike."""
    above = _above(rows)
    seeds = rows.assign(prompt=rows["seed"])
    return difference(verdicts(seeds[above > 0]), verdicts(seeds[above < 0]), paired=False)


def _above(rows: DataFrame) -> Series:
    """Return how far each row is above the mean tier of its seed."""
    means = rows.groupby("seed")["step"].transform("mean")
    return rows["step"] - means


def _shown(trend: Entry) -> str:
    """Return what a trend shows."""
    if trend["n"] < FEW_CLUSTERS:
        return "too few seeds with prompts in two tiers"
    if trend["p_holm"] >= ALPHA:
        return "no trend shown"
    if trend["p_worst"] >= ALPHA:
        return "inconclusive: unscored rows could reverse this"
    return "rises" if trend["difference_points"] > 0 else "falls"
