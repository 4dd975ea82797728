"""What the tables of the page show: the leaderboard, heat maps, and matrices of comparisons."""

from bisect import bisect
from operator import attrgetter

from orbench.base.grouping import grouped
from orbench.base.words import Lines
from orbench.report.about import CERTAIN
from orbench.report.measures import Comparison, Rate
from orbench.report.results import Results
from orbench.report.sentences import MANY_CUT_OFF
from orbench.report.standings import Report

MOST_IN_MATRIX = 15  # models
SHADES = (1, 5, 10, 20, 30, 40, 50, 60, 75, 90)  # percent of wrong responses: a cell is more shaded


# -- the leaderboard -----------------------------------------------------------------------------


def doubts_of(rate: Rate) -> Lines:
    """Yield what a reader of the leaderboard must know of a rate."""
    if rate.is_small and not rate.result.is_demo:  # the finding says it of the demo
        yield "few prompts"
    if rate.unscored:
        yield f"{rate.unscored:,} unscored"
    cut_off = 100 * rate.details.cut_off
    if cut_off > MANY_CUT_OFF:
        yield f"{cut_off:.0f} % cut off"
    if rate.result.certain < CERTAIN:
        yield f"{100 * rate.result.certain:.0f} % of verdicts certain"


# -- heat maps -----------------------------------------------------------------------------------


def shade(rate: Rate) -> int:
    """Return how dark a cell is: the worse, the darker."""
    bad = abs(rate.side.is_toxic - rate.mean.rate)
    return bisect(SHADES, round(100 * bad, 3))


# -- comparisons ---------------------------------------------------------------------------------


def pairs(report: Report) -> dict[tuple[int, int], Comparison]:
    """Return the comparisons of models, by the numbers of both results."""
    compared = report.of_models()
    return {(pair.a.result.number, pair.b.result.number): pair for pair in compared}


def matrices(report: Report) -> list[Results]:
    """Return the results of each matrix: those of a side and judge, if they are few."""
    results = [rate.result for rate in report.whole]
    groups = grouped(results, attrgetter("side", "judge_any_version"))
    return [members for members in groups.values() if 1 < len(members) <= MOST_IN_MATRIX]
