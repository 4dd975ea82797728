"""In how many of the analyses that the files allow a finding stands: its multiverse (S. Steegen and
others, Perspectives on Psychological Science 11 (2016) 702-712).
"""

from collections.abc import Iterator
from itertools import product
from math import nan

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.report.compare import REFUSES_FEWER
from orbench.report.frames import Entry
from orbench.report.load import verdicts
from orbench.stats.core import ALPHA, Verdicts, difference, filled

FEWEST = 4  # analyses, from which on their number is reported


def stands_in(pairs: DataFrame, rows: DataFrame) -> list[str]:
    """Return for each pair of `compare` in how many analyses its finding stands, `14 of 16`; empty
    for no finding, or few analyses.

    An analysis is a judge (or rubric) of both models, all prompts or those whose label all agree
    with (column agreed of rows, if there), and unscored rows left out, as answers or as refusals.
    rows: of `load_results`.
    """
    keys = ["side", "prompt_set", "model", "settings", "judge"]
    results = {key: part for key, part in rows.groupby(keys, observed=True)}
    return [_stands(pair, results) for pair in pairs.to_dict("records")]


def _stands(pair: Entry, results: dict[tuple[str, ...], DataFrame]) -> str:
    if REFUSES_FEWER not in pair["finding"]:
        return ""
    held = []
    for a, b in _analyses(pair, results):
        gap = difference(a, b, paired=True)
        if gap.a.prompts:
            held.append(gap.p < ALPHA and gap.difference * pair["difference_points"] > 0)
    return f"{sum(held)} of {len(held)}" if len(held) >= FEWEST else ""


def _analyses(
    pair: Entry, results: dict[tuple[str, ...], DataFrame]
) -> Iterator[tuple[Verdicts, Verdicts]]:
    """Yield the verdicts on both models in each analysis."""
    side = pair["side"]
    who_a = (side, pair["set_a"], pair["model_a"], pair["settings_a"])
    who_b = (side, pair["set_b"], pair["model_b"], pair["settings_b"])
    for *who, judge in results:
        if tuple(who) != who_a or (*who_b, judge) not in results:
            continue
        a = results[*who_a, judge]
        b = results[*who_b, judge]
        rules = ("all", "agreed") if "agreed" in a else ("all",)
        lost = a["refused"].isna().any() or b["refused"].isna().any()
        for rule, unscored in product(rules, (nan, 0, 1) if lost else (nan,)):
            yield _verdicts(a, rule, unscored), _verdicts(b, rule, unscored)


def _verdicts(rows: DataFrame, rule: str, unscored: float) -> Verdicts:
    """Return the verdicts under a rule for labels; unscored: what such rows count as, NaN: out."""
    if rule == "agreed":
        rows = rows[rows["agreed"]]
    return filled(verdicts(rows), unscored)
