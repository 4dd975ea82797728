"""Results, rates and comparisons with the figures that a test names, such as 12 % of 100."""

from dataclasses import fields, replace
from itertools import count
from math import isnan, nan
from typing import Any

import numpy as np

from orbench.report.measures import (
    OVERALL,
    Compared,
    Comparison,
    Counted,
    Details,
    Family,
    Outcome,
    Rate,
)
from orbench.report.results import SAFE, TOXIC, Result
from orbench.report.standings import Rank, Standing
from orbench.stats.core import Difference, Mean, Verdicts
from orbench.stats.intervals import Interval

MARGIN = 0.02  # from a rate to the ends of its interval
GAP_MARGIN = 0.05  # from a difference to the ends of its interval
NUMBERS = count()


def make_result(model: str = "m", **changed: Any) -> Result:
    """Return a result on the safe side, without responses; its other fields are empty."""
    values: dict[str, Any] = dict.fromkeys([field.name for field in fields(Result)], "")
    for name in ("unranked", "cautions", "notes", "days"):
        values[name] = ()
    values |= {
        "number": next(NUMBERS),
        "model": model,
        "short": model,
        "side": SAFE,
        "prompts": "hard",
        "judge": "judge",
        "file": f"{model}.csv",
        "is_baseline": False,
        "unscored_known": True,
        "is_demo": False,
        "lookalikes": None,
    }
    return Result(**(values | changed))


def make_rate(
    result: Result | str = "m", percent: float = 12, n: int = 100, unscored: int = 0, **changed: Any
) -> Rate:
    """Return a rate whose interval ends MARGIN from it, of prompts the first of which are refused.

    result: may be the name of a model. changed: fields of the rate.
    """
    if isinstance(result, str):
        result = make_result(result)
    refused = np.full(n + unscored, np.nan)
    refused[:n] = np.arange(n) < n * percent / 100
    prompts = np.arange(n + unscored)
    share = percent / 100
    mean = Mean(share, share - MARGIN, share + MARGIN, n, n, n, variance=0.0, df=n)
    verdicts = Verdicts(refused, prompts, prompts)
    details = make_details(n + unscored)
    rate = Rate(result, OVERALL, Counted.REFUSED, verdicts, mean, mean.interval, details)
    return replace(rate, **changed)


def make_details(rows: int, **changed: Any) -> Details:
    """Return details in which nothing but `changed` is above 0."""
    values: dict[str, Any] = dict.fromkeys([field.name for field in fields(Details)], 0)
    return Details(**(values | {"rows": rows} | changed))


def widened(rate: Rate, low: float, high: float) -> Rate:
    """Return a rate with another interval, through unscored rows, in percent."""
    return replace(rate, with_unscored=Interval(low / 100, high / 100))


def make_standing(
    model: str = "m",
    safe: float = 12,
    toxic: float = nan,
    rank: Rank | None = None,
    n: int = 100,
    **changed: Any,
) -> Standing:
    """Return a row of the leaderboard. safe, toxic: percent refused, NaN for a side that was not
    measured; changed: fields of both results.
    """
    of_safe = make_rate(make_result(model, side=SAFE, **changed), safe, n)
    of_toxic = make_rate(make_result(model, side=TOXIC, **changed), toxic, n)
    youden = make_gap(of_toxic, of_safe)
    standing = Standing(of_safe, of_toxic, youden, group=0, part="", look=0, rank=rank)
    if isnan(safe):
        return replace(standing, safe=None, youden=None)
    if isnan(toxic):
        return replace(standing, toxic=None, youden=None)
    return standing


def make_gap(a: Rate, b: Rate, n: int = 100, p: float = 0.001) -> Difference:
    """Return a difference whose interval ends GAP_MARGIN from it. n: prompts in common."""
    gap = a.mean.rate - b.mean.rate
    mean_a = a.mean._replace(prompts=n)
    mean_b = b.mean._replace(prompts=n)
    return Difference(mean_a, mean_b, gap - GAP_MARGIN, gap + GAP_MARGIN, p, 0.0, n)


def make_comparison(
    a: Rate,
    b: Rate,
    outcome: Outcome = Outcome.FINDING,
    n: int = 100,
    p: float = 0.001,
    **changed: Any,
) -> Comparison:
    """Return a comparison with an outcome that its figures need not have. n: prompts in common."""
    family = Family(Compared.MODELS, a.result.side.name, 3)
    comparison = Comparison(a, b, family, make_gap(a, b, n, p), p, p, 0.1, outcome)
    return replace(comparison, **changed)
