"""What the tables of the page show: the leaderboard, heat maps, and matrices of comparisons."""

from bisect import bisect
from collections import defaultdict
from typing import NamedTuple

from orbench.base.grouping import grouped
from orbench.base.words import SIDES, Side
from orbench.report.compare import of_models
from orbench.report.measures import Comparison, Counted, Outcome, Rate
from orbench.report.ranking import in_order
from orbench.report.rates import overall
from orbench.report.results import Result
from orbench.report.scatter import Axis, all_percents, axis_over
from orbench.report.sentences import MANY_CUT_OFF
from orbench.report.standings import Report
from orbench.report.tables import shares_of
from orbench.stats.core import Difference
from orbench.stats.intervals import Interval

CERTAIN = 80  # percent of the rules' verdicts
MOST_IN_MATRIX = 6  # models
# Short for what a comparison without a finding shows.
IN_SHORT = {Outcome.INCONCLUSIVE: "inconclusive"}
SHADES = (1, 5, 10, 20, 30, 40, 50, 60, 75, 90)  # percent of bad responses: a cell is darker
# The classes of graded results, as bars show them: they add up to all responses.
SHARES = {
    Counted.HELPED: "helped",
    Counted.PARTIAL: "partial",
    Counted.SAFE_COMPLETION: "safe completion",
    Counted.INDIRECT: "indirect refusal",
    Counted.DIRECT: "direct refusal",
    Counted.API: "refused by the API",
}


# -- the leaderboard -----------------------------------------------------------------------------


def rate_axes(report: Report) -> dict[Side, Axis | None]:
    """Return the axis of each side with rates; None if only published models have them."""
    axes: dict[Side, Axis | None] = {}
    for side in SIDES.values():
        percents = all_percents(report.board, side)
        if percents:
            axes[side] = axis_over(percents)
        elif report.published:
            axes[side] = None
    return axes


def doubts_of(rate: Rate) -> list[str]:
    """Return what a reader of the leaderboard must know of a rate."""
    doubts = []
    if rate.is_small and not rate.result.is_demo:  # the finding says it of the demo
        doubts.append("few prompts")
    if rate.unscored:
        doubts.append(f"{rate.unscored:,} unscored")
    cut_off = 100 * rate.details.cut_off
    if cut_off > MANY_CUT_OFF:
        doubts.append(f"{cut_off:.0f} % cut off")
    certain = 100 * rate.result.certain
    if certain < CERTAIN:
        doubts.append(f"{certain:.0f} % of verdicts certain")
    return doubts


def shares_by_result(report: Report) -> dict[int, dict[Counted, Rate]]:
    """Return the shares of graded results that are scored, by number and by class."""
    shares = defaultdict[int, dict[Counted, Rate]](dict)
    for rate in shares_of(report):
        if rate.n:
            shares[rate.result.number][rate.counted] = rate
    return shares


# -- heat maps -----------------------------------------------------------------------------------


def shade(rate: Rate) -> int:
    """Return how dark a cell is: the worse, the darker."""
    bad = abs(rate.side.is_toxic - rate.mean.rate)
    return bisect(SHADES, round(100 * bad, 3))


# -- comparisons ---------------------------------------------------------------------------------


class Facing(NamedTuple):
    """A comparison as one of its two models sees it."""

    comparison: Comparison
    gap: Difference  # that model minus the other


def facing(report: Report) -> dict[tuple[int, int], Facing]:
    """Return each comparison of models from both sides, by the numbers of the results."""
    found = {}
    for pair in of_models(report.comparisons, Counted.REFUSED):
        a, b, gap = pair.a.result.number, pair.b.result.number, pair.gap
        low, high = gap.interval
        other_way = gap._replace(a=gap.b, b=gap.a, interval=Interval(-high, -low))
        found[a, b] = Facing(pair, gap)
        found[b, a] = Facing(pair, other_way)
    return found


def matrices(report: Report) -> list[list[Result]]:
    """Return the results of each matrix: those of a side and judge, if they are few."""
    rates = in_order(overall(report.rates), report.board)
    results = [rate.result for rate in rates]
    groups = grouped(results, lambda result: (result.side, result.judge_any_version))
    return [members for members in groups.values() if 1 < len(members) <= MOST_IN_MATRIX]
