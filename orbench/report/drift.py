"""How the rates of models change from one prompt set to another, such as two dated releases.

The prompts differ, so the comparison is unpaired.
"""

from itertools import combinations

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.report.frames import Behind
from orbench.report.rates import overall, scaled
from orbench.stats.association import holm
from orbench.stats.core import difference

CHANGED = ["side", "judge", "from", "to", "model", "settings"]


def drift(results: DataFrame) -> Behind:
    """Return the frame drift: for each two prompt sets (from, to) of a side, each model measured on
    both. Rates in percent; their change in percentage points with its 95 % interval; p, and p_holm,
    corrected for all changes.

    results: of `rates`. Scripted and partial results are left out.
    """
    changes = []
    whole = overall(results).query("doubt == ''")
    for _, part in whole.groupby(["side", "judge"]):
        sets = part.groupby("prompts", sort=False)
        for (_, earlier), (_, later) in combinations(sets, 2):
            pairs = earlier.merge(later, on=["side", "judge", "model", "settings"])
            pairs = pairs.rename(columns={"prompts_x": "from", "prompts_y": "to"})
            for both in pairs.to_dict("records"):
                gap = difference(both["verdicts_y"], both["verdicts_x"], paired=False)
                row = {name: both[name] for name in CHANGED}
                row |= scaled("percent", rate_from=gap.b.rate, rate_to=gap.a.rate)
                row |= scaled("points", change=gap.difference, low=gap.low, high=gap.high)
                changes.append(row | {"p": gap.p})
    table = DataFrame(changes)
    if changes:
        table["p_holm"] = holm(table["p"])
    return {"drift": table}, []
