"""Simulated models, prompt sets, tiers and words: how often a report claims what is not true, and
how often it finds what is.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.special import ndtri  # type: ignore[import-untyped]

from orbench.base.words import Side
from orbench.report.analyses.drift import drift
from orbench.report.analyses.tiers import tiers
from orbench.report.compare import compare, with_margin
from orbench.report.measures import Compared, Rate
from orbench.report.ranking import ranking
from orbench.report.results import SAFE, TOXIC
from orbench.report.sentences import trend_words
from orbench.stats.association import goes_with_size, log_odds
from orbench.stats.core import ALPHA, Array
from tests.results import measured, responses, result_of, standing_of
from tests.simulated_rates import Cell, Drawn, Group, Random, Sizes, answered, of, within

CLAIMS = Group("two equal models, any false claim", most=0.06)
CLAIMED = Group("8 points on the safe side are found", 0.65)
LEADERS = Group("the leaders hold the best of 4 models", 0.95)
LEADING = Group("a model 6 points behind leads, too", most=0.3)
WITHIN = Group("within 2 points, if 2 points apart", most=0.05)
EQUAL = Group("within 2 points, if equal", 0.65)
CHANGE = Group("change against a reference", 0.92)
ALIKE = Group("both change alike, one is found", most=0.06)
LOST = Group("10 or 20 % of the refusals lost, a change is found", most=0.05)
CHANGED = Group("a change by 5 or 10 points is found", 0.6)
BENT = Group("rises and falls, called one of both", most=0.03)
MONOTONE = Group("monotone, called not monotone", most=0.05)
RISING = Group("a rise by 10 points a tier is found", 0.8)
NO_WORD = Group("no word matters, one is found", most=0.06)
NO_SIZE = Group("sizes of seeds don't matter, a note", most=0.05)
SIZE = Group("40 seeds, the larger are refused more, a note", 0.4)
WORD = Group("a word in 40 prompts, .3 against .1, is found", 0.45)

# ---------------------------------------------------------------------------------- models


def refusals(random: Random, rates: Sequence[float], seeds: int, each: int) -> Array:
    """Verdicts of models on the same rewrites, models x prompts; half of what makes a prompt hard
    is so for all models, and half of either is the seed's.
    """
    shape = (len(rates) + 1, seeds)
    of_seed = np.repeat(random.normal(size=shape), each, axis=1)
    harm = np.where(each > 1, 0.5, 0) ** 0.5 * of_seed
    harm += np.where(each > 1, 0.5, 1) ** 0.5 * random.normal(size=(len(rates) + 1, seeds * each))
    return np.asarray((harm[:1] + harm[1:]) * 0.5**0.5 < ndtri(np.array([rates]).T))


def rate_of(refused: Array, model: str, first: int = 0, each: int = 1, side: Side = SAFE) -> Rate:
    """The rate of a model. first: the number of the first prompt, and of its prompt set."""
    prompt = first + np.arange(len(refused))
    given = responses(refused * 1.0, prompt=prompt, seed=first + prompt // each)
    return measured(given, model, side=side, prompts=str(first), prompt_set=str(first))


def board_cells() -> Iterator[Cell]:
    """Two equal models, or 8 points apart on one side; four models, the best of which is known."""

    def models(
        random: Random, safe: Sequence[float], toxic: Sequence[float], n: Sizes
    ) -> list[Rate]:
        rates = []
        for side, of_side, seeds in zip((SAFE, TOXIC), (safe, toxic), n[:2], strict=True):
            refused = refusals(random, of_side, seeds, n[2])
            for number, row in enumerate(refused):
                rates.append(rate_of(row, f"m{number}", 10_000 * side.is_toxic, n[2], side))
        return rates

    def claims(safe: float, toxic: float, n: Sizes, random: Random) -> Drawn:
        board, found = ranking(models(random, [safe] * 2, [toxic] * 2, n))
        is_first = [standing.rank.best == 1 for standing in board if standing.rank]
        return Drawn((any(one.is_finding for one in found) or not all(is_first),))

    def claimed(n: Sizes, random: Random) -> Drawn:
        _, found = ranking(models(random, [0.2, 0.28], [0.9, 0.9], n))
        return Drawn((any(one.is_finding for one in found if one.a.side is SAFE),))

    def leading(n: Sizes, random: Random) -> Drawn:
        worse = [0.01 * place for place in range(4)]
        safe = [0.1 + points for points in worse]
        board, _ = ranking(models(random, safe, [0.9 - points for points in worse], n))
        leads = {one.result.model for one in board if one.rank and one.rank.best == 1}
        return Drawn(("m0" in leads, "m3" in leads))

    designs: dict[str, Sizes] = {
        "1,319 and 655 prompts": (1319, 655, 1),
        "300 and 300 prompts": (300, 300, 1),
        "60 and 60 seeds of 5": (60, 60, 5),
    }
    for (name, n), (safe, toxic) in product(designs.items(), ((0.05, 0.95), (0.3, 0.8))):
        cell = f"{safe:g} and {toxic:g} refused, {name}"
        yield Cell(cell, (CLAIMS,), partial(claims, safe, toxic, n))
    yield Cell("300 and 300 prompts", (CLAIMED,), partial(claimed, (300, 300, 1)))
    four = partial(leading, designs["1,319 and 655 prompts"])
    yield Cell("scores 2 points apart, 1,319 and 655 prompts", (LEADERS, LEADING), four)


def margin_cells() -> Iterator[Cell]:
    """Two models that disagree on 6 % of the prompts, or on as few as make 2 points."""

    def draw(n: int, more: float, fewer: float, random: Random) -> Drawn:
        a = random.random(n) < 0.2
        b = a.copy()
        turn = random.random(n)
        for turned, by_a in ((turn < more, True), (turn > 1 - fewer, False)):
            a[turned] = by_a
            b[turned] = not by_a
        (found,) = with_margin(compare([rate_of(a, "a"), rate_of(b, "b")]), 2)
        return Drawn((found.within is not None,))

    for n, fewer in product((300, 600, 1319), (0, 0.005, 0.02)):
        name = f"{n:,} prompts, {fewer + 0.02:g} and {fewer:g} disagree"
        yield Cell(name, (WITHIN,), partial(draw, n, fewer + 0.02, fewer))
    yield Cell("1,319 prompts, 0.03 and 0.03 disagree", (EQUAL,), partial(draw, 1319, 0.03, 0.03))


# ---------------------------------------------------------------------------------- prompt sets


def change_cells() -> Iterator[Cell]:
    """Two models on two sets that differ in difficulty; one of them changes by itself, or loses
    refusals on the later set.
    """

    def draw(
        n: int, before: float, after: float, apart: float, lost: float, random: Random
    ) -> Drawn:
        rates = []
        for first, both in ((0, [before] * 2), (10_000, [after + apart, after])):
            for refused, model in zip(refusals(random, both, n, 1) * 1.0, "ab", strict=True):
                if first and model == "a":
                    refused[(refused == 1) & (random.random(n) < lost)] = np.nan
                rates.append(rate_of(refused, model, first))
        (found,) = [one for one in drift(rates).comparisons if one.kind is Compared.CHANGES]
        gap = found.gap
        return within(gap.difference, gap.interval, apart, found.is_finding)

    def gone(n: int, lost: float, random: Random) -> Drawn:
        return Drawn(draw(n, 0.2, 0.3, 0, lost, random).happened[1:])

    for n, before, after in (*product([300], (0.05, 0.2), (0.05, 0.4)), (1319, 0.05, 0.4)):
        name = f"{before:g}, then {after:g}, {n:,} prompts"
        yield Cell(name, (CHANGE, ALIKE), partial(draw, n, before, after, 0, 0))
    for (n, apart), after in product(((1319, 0.05), (300, 0.1)), (0.2, 0.3)):
        name = f"{100 * apart:g} points, {n:,} prompts, 0.2, then {after:g}"
        yield Cell(name, (CHANGE, CHANGED), partial(draw, n, 0.2, after, apart, 0))
    for lost in (0.1, 0.2):
        yield Cell(f"{lost:.0%} lost", (LOST,), partial(gone, 1319, lost))


# ---------------------------------------------------------------------------------- tiers


def tier_cells() -> Iterator[Cell]:
    """A prompt of each seed in each of three tiers: rates that rise and fall, or only rise."""

    def said(words: tuple[str, ...], rates: Sequence[float], seeds: int, random: Random) -> Drawn:
        harm = 0.5**0.5 * (random.normal(size=(1, seeds)) + random.normal(size=(3, seeds)))
        refused = (harm < ndtri(np.array([rates]).T)).ravel() * 1.0
        tier = np.repeat(["1", "2", "3"], seeds)
        given = responses(refused, tier=tier, seed=np.tile(np.arange(seeds), 3))
        (trend,) = tiers([standing_of(result_of(given))]).associations
        return Drawn(tuple(trend_words(trend).startswith(word) for word in words))

    for seeds, (groups, words, rates) in product(
        (20, 60),
        (
            ((BENT, BENT), ("rises", "falls"), (0.2, 0.6, 0.2)),
            ((MONOTONE,), ("not monotone",), (0.2, 0.2, 0.6)),
        ),
    ):
        yield Cell(f"{rates}, {seeds} seeds", groups, partial(said, words, rates, seeds))
    both = ("not monotone", "rises")
    for groups, rates in (((MONOTONE, RISING), (0.2, 0.3, 0.4)), ((MONOTONE,), (0.2, 0.2, 0.2))):
        yield Cell(f"{rates}, 60 seeds", groups, partial(said, both, rates, 60))


# ---------------------------------------------------------------------------------- sizes, words


def size_cells() -> Iterator[Cell]:
    """Seeds of 1 to 10 prompts, which say nothing about them, or the more the harder they are."""

    def draw(rate: float, icc: float, seeds: int, matters: float, random: Random) -> Drawn:
        hard = random.random(seeds)
        sizes = 1 + random.binomial(9, 0.5 + matters * (hard - 0.5))
        if not matters:
            sizes = random.integers(1, 11, seeds)
        refused, seed = answered(random, rate, icc, hard, sizes.tolist())
        return Drawn((goes_with_size(of(refused, seed)),))

    for seeds, rate, icc in product((12, 59), (0.05, 0.5), (0.1, 0.6)):
        name = f"{rate:g}, {seeds} seeds, icc {icc}"
        yield Cell(name, (NO_SIZE,), partial(draw, rate, icc, seeds, 0))
    for rate, icc in ((0.2, 0.1), (0.2, 0.6), (0.5, 0.3)):
        yield Cell(f"{rate:g}, icc {icc}", (SIZE,), partial(draw, rate, icc, 40, 0.7))


def word_cells() -> Iterator[Cell]:
    """200 words in 1 to 20 % of the prompts, which rewrites of a seed mostly share: none of them
    matters, or the first one does.
    """

    def draw(sizes: Sizes, matters: bool, random: Random) -> Drawn:
        refused, seed = answered(random, 0.1, 0.3, random.random(len(sizes)), sizes)
        shares = np.geomspace(0.01, 0.2, 200)
        of_seed = random.random((len(sizes), 200)) < shares
        kept = random.random((len(seed), 200)) < 0.8
        has = np.where(kept, of_seed[seed], random.random((len(seed), 200)) < shares)
        if matters:
            has[:, 0] = random.random(len(seed)).argsort() < 40
            often = random.random(len(seed)) < 0.3
            refused = np.where(has[:, 0], often, refused)
        has = has[:, has.sum(axis=0) >= 10]
        q = log_odds(csr_array(has * 1), refused > 0, seed).q
        return Drawn((bool(q[0] < ALPHA) if matters else bool((q < ALPHA).any()),))

    for seeds, each in ((1319, 1), (200, 5), (60, 5), (30, 10)):
        yield Cell(f"{seeds} x {each}", (NO_WORD,), partial(draw, [each] * seeds, False))
    yield Cell("1319 x 1", (WORD,), partial(draw, [1] * 1319, True))


def cells() -> list[Cell]:
    """All of them."""
    some = [board_cells, margin_cells, change_cells, tier_cells, size_cells, word_cells]
    return [cell for each in some for cell in each()]
