"""Each two models on the prompts in common; the leaderboard. Both take the rows of `load` and the
results of `rates`.
"""

from collections.abc import Iterator
from itertools import combinations
from math import atanh, nan, sqrt, tanh
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.base.words import SIDES
from orbench.report.load import verdicts
from orbench.report.published import published_models
from orbench.report.rates import FEWEST_MODELS, contrast, label, overall, scaled, short_label
from orbench.stats import core
from orbench.stats.intervals import Z95

# Columns of comparison.csv; rates in percent, differences in percentage points, intervals 95 %. n:
# prompts with a verdict from both. detectable: the true difference that is shown with a probability
# of 80 %. p_worst: p with the unscored rows of both against the difference. p_holm, p_worst and
# detectable are corrected for the pairs of the side.
PAIR_COLUMNS = [
    *("side", "judge", "model_a", "settings_a", "model_b", "settings_b"),
    *("n", "rate_a_percent", "rate_b_percent", "difference_points", "low_points", "high_points"),
    *("detectable_points", "p", "p_holm", "p_worst", "finding"),
]
# Columns of leaderboard.csv; the intervals are texts and include unscored rows. rank: by Youden's J
# or the rate of the only side, among rows with the same prompts and judge: `1-3` where the model is
# shown worse than none and better than all but two; empty: nothing to rank.
BOARD_COLUMNS = [
    *("rank", "model", "settings", "prompts", "judge"),
    *(f"{side}_{what}" for side in SIDES for what in ("percent", "interval")),
]
# youden: Youden's J, toxic rejection minus over-refusal.
MORE = [
    *(f"{side}_{end}_percent" for side in SIDES for end in ("low", "high")),
    *("youden_points", "youden_low_points", "youden_high_points"),
    *("short", "family", "prompt_set", "score", "ranked", "safe", "toxic"),
]

Result = dict[str, Any]  # a row of `overall`, and `verdicts`, those behind it


def compare(rows: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """PAIR_COLUMNS, a row per pair of results with the side, the judge and prompts in common."""
    return pd.concat([_compared(_results(rows, results, side)) for side in SIDES])


def _results(rows: pd.DataFrame, results: pd.DataFrame, side: str) -> list[Result]:
    ones = overall(results[results["side"] == side]).to_dict("records")
    return [one | {"verdicts": verdicts(rows[rows["result"] == one["result"]])} for one in ones]


def _compared(ones: list[Result]) -> pd.DataFrame:
    pairs = [(a, b) for a, b in combinations(ones, 2) if _comparable(a, b)]
    found = [_row_of(a, b, len(pairs)) for a, b in pairs]
    table = pd.DataFrame(found, columns=[*PAIR_COLUMNS, "short_a", "short_b"])
    table["p_holm"], table["p_worst"] = core.holm(table["p"]), core.holm(table["p_worst"])
    both = zip(pairs, table.to_dict("records"), strict=True)
    return table.assign(finding=[_finding(a, b, row, len(pairs)) for (a, b), row in both])


def _comparable(a: Result, b: Result) -> bool:
    x, y = (one["verdicts"].prompt[np.isfinite(one["verdicts"].refused)] for one in (a, b))
    return a["judge"] == b["judge"] and label(a) != label(b) and bool(np.isin(x, y).any())


def _row_of(a: Result, b: Result, pairs: int) -> dict[str, Any]:
    found = core.difference(a["verdicts"], b["verdicts"], paired=True)
    return {
        "side": a["side"],
        "judge": a["judge"],
        "short_a": a["short"],
        "short_b": b["short"],
        **contrast(a, b, found, "rate"),
        **scaled("points", detectable=core.detectable_difference(found, pairs)),
        "p_worst": core.worst_case(a["verdicts"], b["verdicts"], paired=True).p,
    }


def _finding(a: Result, b: Result, row: dict[str, Any], pairs: int) -> str:
    if doubt := a["doubt"] or b["doubt"]:
        return str(doubt)
    cautions = ["settings differ"] * (a["settings"] != b["settings"])
    for one in (a, b):
        cautions += [f"{label(one)}: {text}" for text in (one["unranked"], one["cautions"]) if text]
    return _shown(a, b, row, pairs) + (f" ({'; '.join(cautions)})" if cautions else "")


def _shown(a: Result, b: Result, row: dict[str, Any], pairs: int) -> str:
    if not row["p_holm"] < core.ALPHA:
        corrected = f", corrected for {pairs} pairs" if row["p"] < core.ALPHA else ""
        return f"no difference shown{corrected}"
    if not row["p_worst"] < core.ALPHA:
        return "inconclusive: unscored rows could reverse this"
    fewer, more = (a, b) if row["difference_points"] < 0 else (b, a)
    prompts = SIDES[row["side"]].prompts
    return f"{short_label(fewer)} refuses fewer {prompts} than {short_label(more)}"


# -- leaderboard -------------------------------------------------------------------------------


def leaderboard(rows: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """A row per model, settings, judge and prompts, best first.

    Columns: BOARD_COLUMNS; MORE; published; group (a number, the same for the same prompts and
    judge); part (these two in words, if there are several groups).
    """
    safe, toxic = (_results(rows, results, side) for side in SIDES)
    pairs = [(one, _toxic_side(one, toxic)) for one in safe]
    taken = [other["result"] for _, other in pairs if other]
    pairs += [({}, one) for one in toxic if one["result"] not in taken]
    board = pd.DataFrame([_entry(*pair) for pair in pairs], columns=[*BOARD_COLUMNS, *MORE])
    board["group"] = board.groupby(["judge", "prompt_set"], sort=False).ngroup()
    board["rank"] = ""
    for _, group in board[board["ranked"].astype(bool)].groupby("group"):
        if len(group) > 1:
            board.loc[group.index, "rank"] = _ranks([_as_wanted(*pairs[n]) for n in group.index])
    several = board["group"].nunique() > 1
    board["part"] = board["prompts"] + ", " + board["judge"] if several else ""
    order = ["group", "ranked", "score"]
    return board.sort_values(order, ascending=[True, False, False]).assign(published=False)


def with_published(board: pd.DataFrame) -> pd.DataFrame:
    """The leaderboard with the models of the paper after its own."""
    return pd.concat([board, published_models().assign(published=True)], ignore_index=True)


def rank_correlation(board: pd.DataFrame) -> Iterator[str]:
    """Spearman's rho between the rates of FEWEST_MODELS or more, with its 95 % interval (D. G.
    Bonett and T. A. Wright, Psychometrika 65 (2000) 23-28); nothing if rho is 1 or -1.
    """
    columns = ["over_refusal_percent", "toxic_percent"]
    for (published, _), models in board.dropna(subset=columns).groupby(["published", "group"]):
        n = len(models)
        rho = models[columns].rank().corr().iat[0, 1]
        if n >= FEWEST_MODELS and abs(rho) < 1:
            half = Z95 * sqrt((1 + rho**2 / 2) / (n - 3))
            low, high = tanh(atanh(rho) - half), tanh(atanh(rho) + half)
            found = f"Spearman's ρ between the two rates {rho:.4f} [{low:.2f}, {high:.2f}]"
            yield f"{n} {'published' if published else 'measured'} models: {found}"


def _as_wanted(safe: Result, toxic: Result) -> core.Verdicts:
    """1: answered if safe, refused if toxic. The mean, each side alike, is (1 + Youden's J) / 2."""
    parts = [one["verdicts"] for one in (safe, toxic) if one]
    prompt, cluster = (np.concatenate([part[n] for part in parts]) for n in (1, 2))
    wanted = [abs(one["verdicts"].refused - n) for n, one in ((1, safe), (0, toxic)) if one]
    category = np.repeat(range(len(parts)), [len(part.prompt) for part in parts])
    return core.Verdicts(np.concatenate(wanted), prompt, cluster, category)


def _ranks(models: list[core.Verdicts]) -> list[str]:
    """The best and the worst rank that the paired tests leave each model."""
    n = len(models)
    best, worst = [1] * n, [n] * n
    pairs = list(combinations(range(n), 2))
    found = [core.difference(models[a], models[b], paired=True) for a, b in pairs]
    against = [core.worst_case(models[a], models[b], paired=True) for a, b in pairs]
    ps = (core.holm([one.p for one in several]) for several in (found, against))
    for pair, one, *both in zip(pairs, found, *ps, strict=True):
        if max(both) < core.ALPHA:
            better, worse = pair if one.difference > 0 else pair[::-1]
            best[worse] += 1
            worst[better] -= 1
    return [f"{a}-{b}" if a < b else str(a) for a, b in zip(best, worst, strict=True)]


def _toxic_side(safe: Result, toxic: list[Result]) -> Result:
    """The toxic result that belongs to a safe one: of the same model, settings and judge, with
    prompts from the same place, or the only such one. Empty if that is unclear.
    """
    names = ("model", "settings", "judge")
    alike = [one for one in toxic if all(one[name] == safe[name] for name in names)]
    found = [one for one in alike if one["home"] == safe["home"]] or alike
    return found[0] if len(found) == 1 else {}


def _entry(safe: Result, toxic: Result) -> Result:
    """A row of the leaderboard; safe or toxic may be empty."""
    sides = [one for one in (safe, toxic) if one]
    entry = {name: sides[0][name] for name in ("model", "short", "settings", "judge", "family")}
    for name in ("prompts", "prompt_set"):
        entry[name] = ", ".join(dict.fromkeys(one[name] for one in sides))
    for side, one in zip(SIDES, (safe, toxic), strict=True):
        for end, name in (("", "rate"), ("_low", "low_all"), ("_high", "high_all")):
            entry[f"{side}{end}_percent"] = one.get(f"{name}_percent", nan)
        entry[f"{side}_interval"] = one.get("interval", "")
    entry["score"] = -safe["rate_percent"] if safe else toxic["rate_percent"]
    if safe and toxic:
        found = core.difference(toxic["verdicts"], safe["verdicts"], paired=False)
        youden = {"youden": found.difference, "youden_low": found.low, "youden_high": found.high}
        entry |= {"score": found.difference, **scaled("points", **youden)}
    return entry | {
        "ranked": bool(entry["judge"])
        and not any(one["doubt"] or one["unranked"] for one in sides),
        "safe": safe.get("result", nan),
        "toxic": toxic.get("result", nan),
    }
