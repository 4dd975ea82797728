"""In how many of the analyses that the files allow a finding stands: its multiverse (S. Steegen and
others, Perspectives on Psychological Science 11 (2016) 702-712).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from math import nan

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.report.compare import NAME_ENDS
from orbench.report.frames import Entry
from orbench.report.load import verdicts
from orbench.stats.core import ALPHA, Verdicts, difference, impute_unscored

FEWEST = 4  # analyses, from which on their number is reported
WHO = ["side", "prompt_set", "model", "settings"]  # measured, perhaps by several judges

_Who = tuple[str, ...]
_Measured = Mapping[_Who, dict[str, DataFrame]]  # who -> judge -> rows


def stands_in(pairs: DataFrame, rows: DataFrame) -> list[str]:
    """Return for each pair of `compare` in how many analyses its finding stands, `14 of 16`; empty
    for no finding, or few analyses.

    An analysis is a judge (or rubric) of both models, all prompts or those whose label all agree
    with (column agreed of rows, if there), and unscored rows left out, as answers or as refusals.
    rows: of `load_results`.
    """
    measured = defaultdict[_Who, dict[str, DataFrame]](dict)
    for (*who, judge), part in rows.groupby([*WHO, "judge"], observed=True):
        measured[tuple(who)][judge] = part
    return [_stands(pair, measured) for pair in pairs.to_dict("records")]


def _stands(pair: Entry, measured: _Measured) -> str:
    if not pair["stands"]:
        return ""
    held = []
    for a, b in _analyses(pair, measured):
        gap = difference(a, b, paired=True)
        if gap.a.prompts:
            held.append(gap.p < ALPHA and gap.difference * pair["difference_points"] > 0)
    return f"{sum(held)} of {len(held)}" if len(held) >= FEWEST else ""


def _analyses(pair: Entry, measured: _Measured) -> Iterator[tuple[Verdicts, Verdicts]]:
    """Yield the verdicts on both models in each analysis."""
    of_a, of_b = (measured[tuple(pair[f"{name}{end}"] for name in WHO)] for end in NAME_ENDS)
    for judge in of_a.keys() & of_b.keys():
        a = of_a[judge]
        b = of_b[judge]
        prompts = [(a, b)]
        if "agreed" in a:
            prompts.append((a[a["agreed"]], b[b["agreed"]]))
        unscored = [nan]  # left out, as answers, as refusals
        if a["refused"].isna().any() or b["refused"].isna().any():
            unscored += [0, 1]
        for (rows_a, rows_b), counts_as in product(prompts, unscored):
            yield (
                impute_unscored(verdicts(rows_a), counts_as),
                impute_unscored(verdicts(rows_b), counts_as),
            )
