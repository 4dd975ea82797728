"""The leaderboard: both sides of each model, and the ranks that the tests leave it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import atanh, isnan, sqrt, tanh
from typing import NamedTuple

import numpy as np
from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.grouping import grouped
from orbench.report.compare import tested
from orbench.report.measures import FEWEST_MODELS, Compared, Rate, Rates
from orbench.report.rates import on_side
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Board, Placed, Published, Rank, Standing
from orbench.stats.core import difference
from orbench.stats.inference import ROUNDING
from orbench.stats.intervals import Z95


def _who(rate: Rate) -> tuple[str, str]:
    return rate.result.label, rate.result.judge


class Correlation(NamedTuple):
    """Spearman's rho between both rates of several models."""

    models: str  # their number, and whose they are
    rho: float
    low: float
    high: float


def leaderboard(rates: Rates) -> list[Standing]:
    """Return the models, settings, judges and prompts of overall rates, best first in each group of
    the same prompts and judge.
    """
    groups = grouped(_both_sides(rates), _shared)
    board = []
    for group, models in enumerate(groups.values()):
        for mark_number, standing in enumerate(_ranked(models)):
            part = f"{standing.result.prompts}, {standing.result.judge}" if len(groups) > 1 else ""
            board.append(replace(standing, group=group, mark_number=mark_number, part=part))
    return board


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


def _ranked(group: Board) -> list[Standing]:
    """Return a group with its ranks, the ranked models first, the best first."""
    models = sorted(group, key=_place)
    balances = [_balance(model) for model in models if model.is_ranked]
    tests = tested(Compared.MODELS, combinations(balances, 2))
    findings = [test for test in tests if test.is_finding]
    beaten = [finding.fewer for finding in findings]
    ahead = [finding.more for finding in findings]
    if len(balances) > 1:
        for place, balance in enumerate(balances):
            rank = Rank(1 + beaten.count(balance), len(balances) - ahead.count(balance))
            models[place] = replace(models[place], rank=rank)
    return models


def _place(standing: Standing) -> tuple[bool, bool, float]:
    """Return a key that puts the best first, and what has no rank or no score last. Equal scores
    that were computed from other rates differ by rounding.
    """
    return not standing.is_ranked, isnan(standing.score), -round(standing.score, 9)


def _balance(standing: Standing) -> Rate:
    """Return the share of what is wanted: answered if safe, refused if toxic. With each side alike,
    it is (1 + Youden's J) / 2. The rate knows the number of prompts of the smaller side.
    """
    responses = standing.result.responses
    wanted = np.where(responses.is_toxic, responses.refused, 1 - responses.refused)
    verdicts = responses.verdicts()._replace(refused=wanted, category=responses.is_toxic)
    smaller = min(standing.sides, key=lambda rate: rate.n)
    return replace(smaller, verdicts=verdicts)


# -- Spearman's rho ------------------------------------------------------------------------------


def rank_correlations(board: Board, published: Sequence[Published]) -> Iterator[Correlation]:
    """Yield Spearman's rho between the rates of FEWEST_MODELS or more, with its 95 % interval (D.
    G. Bonett and T. A. Wright, Psychometrika 65 (2000) 23-28); nothing if rho is 1 or -1.
    """
    every: list[Placed] = [one for one in board if one.has_both_sides]
    every += published
    groups = grouped(every, lambda rate: (rate.result.prompts, rate.result.judge))
    for (prompts, judge), models in groups.items():
        rates = DataFrame([[one.rate(SAFE), one.rate(TOXIC)] for one in models])
        # Of a Series it would load scipy.stats, which takes longer than all else here.
        rho = rates.corr("spearman", FEWEST_MODELS).iloc[0, 1]
        if abs(rho) < 1 - ROUNDING:
            z = atanh(rho)
            half = Z95 * sqrt((1 + rho**2 / 2) / (len(models) - 3))
            name = f"{len(models)} models on {prompts} ({judge})"
            yield Correlation(name, rho, tanh(z - half), tanh(z + half))
