"""The leaderboard: both sides of each model, and the ranks that the tests leave it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import atanh, isnan, sqrt, tanh
from operator import attrgetter
from typing import NamedTuple

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.grouping import grouped
from orbench.report.compare import corrected, pairs_of_models, tested, uncorrected
from orbench.report.measures import (
    FEWEST_MODELS,
    Compared,
    Comparison,
    Comparisons,
    Rate,
    Rates,
)
from orbench.report.rates import on_side
from orbench.report.results import BOTH, SAFE, TOXIC
from orbench.report.standings import Board, Placed, Published, Rank, Standing, in_order
from orbench.stats.core import difference
from orbench.stats.inference import ROUNDING
from orbench.stats.intervals import Z95

_who = attrgetter("result.label", "result.judge")  # of a rate


class Correlation(NamedTuple):
    """Spearman's rho between both rates of several models."""

    models: str  # their number, and whose they are
    rho: float
    low: float
    high: float


def ranking(rates: Rates) -> tuple[list[Standing], Comparisons]:
    """Return the models, settings, judges and prompts of overall rates, best first in each group of
    the same prompts and judge; and each two models on the prompts in common, in that order.

    The tests of a group are a family: on both sides, and of the balance. So are those
    across groups.
    """
    groups = grouped(_both_sides(rates), _shared)
    board = []
    within: dict[frozenset[Rate], Comparison] = {}
    for group, of_group in enumerate(groups.values()):
        models = sorted(of_group, key=_place)
        own = [rate for model in models for rate in (*model.sides, model.decisive)]
        tests = uncorrected(Compared.MODELS, pairs_of_models(dict.fromkeys(own)))
        for test in corrected(tests):
            within[frozenset([test.a, test.b])] = test
        ranked = _ranked(models, tests)
        first = ranked[0].result
        part = first.measured_by if len(groups) > 1 else ""
        board += [replace(standing, group=group, part=part) for standing in ranked]
    pairs = pairs_of_models(in_order(rates, board))
    across = [pair for pair in pairs if frozenset(pair) not in within]
    comparisons = [*within.values(), *tested(Compared.MODELS, across)]
    return board, [one for one in comparisons if one.a.side != BOTH]


def _ranked(models: list[Standing], tests: Comparisons) -> Board:
    """Return the models of a group, in their order, with their ranks.

    tests: uncorrected. Those of one model are a family, so that its ranks hold with 95 % (M.
    Mogstad and others, Rev. Econ. Stud. 91 (2024) 476-518).
    """
    rivals = [model.decisive for model in models if model.is_ranked]
    if len(rivals) > 1:
        for place, rate in enumerate(rivals):
            rates = {rate, *models[place].sides}
            own = corrected([test for test in tests if rates & {test.a, test.b}])
            findings = [test for test in own if test.is_finding and {test.a, test.b} <= {*rivals}]
            beaten = sum(test.worse is rate for test in findings)
            rank = Rank(1 + beaten, len(rivals) - len(findings) + beaten)
            models[place] = replace(models[place], rank=rank)
    return models


def _shared(standing: Standing) -> tuple[str, ...]:
    """Return what the models of a group share: the judge and the prompts."""
    prompt_sets = [result.prompt_set for result in standing.results]
    return standing.result.judge, *prompt_sets


def _both_sides(rates: Rates) -> Iterator[Standing]:
    """Yield each safe rate with the toxic one that belongs to it, then the other toxic ones.

    It is of the same model, settings and judge, with prompts from the same place, or the only such
    one. If that is unclear, none does.
    """
    toxic = on_side(TOXIC, rates)
    of_models = grouped(toxic, _who)
    partners = []
    for rate in on_side(SAFE, rates):
        alike = of_models[_who(rate)]
        place = rate.result.prompts_from
        candidates = [one for one in alike if one.result.prompts_from == place] or alike
        if len(candidates) == 1:
            partners += candidates
            youden = difference(candidates[0].verdicts, rate.verdicts, paired=False)
            yield Standing([rate, *candidates], youden)
        else:
            yield Standing([rate])
    for rate in toxic:
        if rate not in partners:
            yield Standing([rate])


def _place(standing: Standing) -> tuple[bool, bool, float, str]:
    """Return a key that puts the best first, what has no rank or no score last, and equal scores in
    the order of their names. Scores that were computed from other rates differ by rounding.
    """
    score = standing.score
    return not standing.is_ranked, isnan(score), -round(score, 9), standing.result.label


# -- Spearman's rho ------------------------------------------------------------------------------


def rank_correlations(board: Board, published: Sequence[Published]) -> Iterator[Correlation]:
    """Yield Spearman's rho between the rates of FEWEST_MODELS or more, with its 95 % interval (D.
    G. Bonett and T. A. Wright, Psychometrika 65 (2000) 23-28); nothing if rho is 1 or -1.
    """
    every: list[Placed] = [one for one in board if one.has_both_sides]
    every += published
    groups = grouped(every, attrgetter("result.prompts", "result.judge"))
    for (prompts, judge), models in groups.items():
        rates = DataFrame([[one.rate(SAFE), one.rate(TOXIC)] for one in models])
        # Of a Series it would load scipy.stats, which takes longer than all else here.
        rho = rates.corr("spearman", FEWEST_MODELS).iloc[0, 1]
        if abs(rho) < 1 - ROUNDING:
            z = atanh(rho)
            half = Z95 * sqrt((1 + rho**2 / 2) / (len(models) - 3))
            name = f"{len(models)} models on {prompts} ({judge})"
            yield Correlation(name, rho, tanh(z - half), tanh(z + half))
