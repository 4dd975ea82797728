"""How the rates of models change from one prompt set to another, such as two dated releases.

The prompts differ, so the comparison is unpaired.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.report.load import verdicts
from orbench.report.rates import overall, scaled
from orbench.stats import core

ALIKE = ["side", "judge", "model", "settings"]


def drift(rows: pd.DataFrame, results: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The frame drift: for each two prompt sets (from, to) of a side, each model measured on both,
    and their mean. Rates in percent; their change in percentage points with its 95 % interval.

    rows: of `load`; results: `rates`. Scripted and partial results are left out.
    """
    found = list[dict[str, Any]]()
    own = overall(results)
    for (side, judge), part in own[own["doubt"] == ""].groupby(["side", "judge"], observed=True):
        for one, other in combinations(part["prompts"].unique(), 2):
            both = part[part["prompts"] == one].merge(part[part["prompts"] == other], on=ALIKE)
            about = {"side": side, "judge": judge, "from": one, "to": other}
            found += [about | change for change in _changes(rows, both)]
    return {"drift": pd.DataFrame(found)}, []


def _changes(rows: pd.DataFrame, both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row per model, and one for their mean. both: of each model, result_x and result_y."""
    sides = [[verdicts(rows[rows["result"] == n]) for n in both[f"result_{x}"]] for x in "xy"]
    for model, before, after in zip(both.to_dict("records"), *sides, strict=True):
        yield {"model": model["model"], "settings": model["settings"]} | _change(before, after)
    if len(both) > 1:
        yield {"model": "mean of these models", "settings": ""} | _change(*map(_together, sides))


def _together(models: list[core.Verdicts]) -> core.Verdicts:
    """The verdicts on all models, each of which counts alike."""
    prompts = max(int(one.prompt.max()) for one in models) + 1
    return core.Verdicts(
        np.concatenate([one.refused for one in models]),
        np.concatenate([one.prompt + n * prompts for n, one in enumerate(models)]),
        np.concatenate([one.cluster for one in models if one.cluster is not None]),
        np.repeat(range(len(models)), [len(one.prompt) for one in models]),
    )


def _change(before: core.Verdicts, after: core.Verdicts) -> dict[str, Any]:
    found = core.difference(after, before, paired=False)
    rates = {"from": found.b.rate, "to": found.a.rate}
    change = {"change": found.difference, "low": found.low, "high": found.high}
    return scaled("percent", **rates) | scaled("points", **change) | {"p": found.p}
