"""Simulated refusals with a known truth: how often intervals cover and tests err."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from math import nan
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]
from scipy.stats import beta  # type: ignore[import-untyped]

from orbench.stats.core import (
    ALPHA,
    Array,
    Difference,
    Verdicts,
    difference,
    mean,
    with_unscored,
    worst_case_p,
)
from orbench.stats.intervals import Z95
from orbench.stats.labels import corrected, corrected_difference
from orbench.stats.power import detectable_difference

Random = np.random.Generator
Sizes = Sequence[int]  # prompts of each seed
ROUNDING = 1e-12
ANY = float("inf")


class Group(NamedTuple):
    """What is asked of cells, and the share of draws that is wanted in each of them."""

    name: str
    least: float = -ANY
    most: float = ANY

    def beyond(self, share: float) -> float:
        """How far a share is outside of what is wanted; negative: within."""
        return max(self.least - share, share - self.most)


MEAN = Group("mean", 0.92)
ONE_SEED = Group("one seed has 40 % of the rows", 0.93)
MACRO = Group("macro average", 0.92)
ACROSS = Group("macro average, seeds across categories", 0.93)
MISSING = Group("rows missing", 0.95)
DIFFERENCE = Group("difference", 0.92)
CONTRADICTION = Group("test and interval contradict", most=0)
TYPE_I = Group("type I error", most=0.06)
POWER = Group("power of the detectable difference", 0.77, 0.83)
SMALL = Group("small sets", 0.83)  # Wilson's own dips
NEARLY = Group("nearly equal models", 0.92)
CORRECTED = Group("rate corrected by labels", 0.905)
WIDTH = Group("its width, labels' own + 2 points at most", 0.9)
GAP = Group("difference corrected by labels", 0.92)
GAP_WIDTH = Group("its width, labels' own at most", 0.9)
GAP_TYPE_I = Group("it finds, equal models and a biased judge", most=0.05)
GAP_POWER = Group("it finds 10 points with 100 labels", 0.85)
SHARE = Group("share of a graded class", 0.92)
HEDGED = Group("type I error, hedged responses", most=0.06)
TIERED = Group("difference of tiers", 0.92)
TREND = Group("trend over tiers, type I error", most=0.06)
TREND_POWER = Group("trend over tiers, power", 0.9)


class Drawn(NamedTuple):
    """One made data set: for each group of the cell whether it happened there; an estimate, and
    half the width of its interval.
    """

    happened: tuple[bool, ...]
    estimate: float = nan
    half: float = nan


class Cell(NamedTuple):
    """A case. groups: that of its interval, if it has one, is the first."""

    name: str
    groups: tuple[Group, ...]
    draw: Callable[[Random], Drawn]


# ---------------------------------------------------------------------------------- made data


@cache
def quantiles(rate: float, icc: float) -> Array:
    """Of the Beta distribution that gives 0/1 outcomes this intra-seed correlation."""
    both = (1 - icc) / icc
    grid = (np.arange(20_000) + 0.5) / 20_000
    return np.asarray(beta.ppf(grid, rate * both, (1 - rate) * both))


def answered(
    random: Random, rate: float, icc: float, difficulty: Array, sizes: Sizes
) -> tuple[Array, Array]:
    """Verdicts and seeds of the prompts; difficulty: 0..1, where a seed is among all seeds."""
    seed = np.repeat(np.arange(len(sizes)), sizes)
    probability = quantiles(rate, icc)[(difficulty * 20_000).astype(int)][seed]
    return (random.random(len(seed)) < probability).astype(float), seed


def of(values: Array, seed: Array, first: int = 0) -> Verdicts:
    """A row a prompt, numbered from the first."""
    return Verdicts(values * 1.0, np.arange(len(seed)) + first, seed)


def rewrites(random: Random, rate: float, icc: float, sizes: Sizes) -> Verdicts:
    """One model on rewrites of seeds."""
    return of(*answered(random, rate, icc, random.random(len(sizes)), sizes))


class Pair(NamedTuple):
    """Two models on the same prompts; unpaired: b on other prompts, of these and of more seeds."""

    sizes: Sizes
    icc: float
    alike: float  # the share of seeds that are as hard for b as for a
    paired: bool

    def compared(self, random: Random, a: float, b: float) -> Difference:
        """At the true rates a and b."""
        hard = random.random(len(self.sizes))
        same = random.random(len(self.sizes)) < self.alike
        of_b, more = np.where(same, hard, random.random(len(self.sizes))), self.sizes
        if not self.paired:
            more = [*self.sizes, *self.sizes[::2]]
            of_b = np.concatenate([of_b, random.random(len(more) - len(of_b))])
        x = answered(random, a, self.icc, hard, self.sizes)
        y = answered(random, b, self.icc, of_b, more)
        first = 0 if self.paired else len(x[0])
        return difference(of(*x), of(*y, first), paired=self.paired)


def within(estimate: float, interval: Sequence[float], truth: float, *more: bool) -> Drawn:
    """Whether the truth lies in the interval of an estimate. more: of other groups."""
    low, high = interval
    covered = bool(low - ROUNDING <= truth <= high + ROUNDING)
    return Drawn((covered, *more), estimate, (high - low) / 2)


# ---------------------------------------------------------------------------------- one mean

EQUAL: dict[str, Sizes] = {
    **{f"{seeds} x 5": [5] * seeds for seeds in (8, 20, 60, 200)},
    **{f"{seeds} x 20": [20] * seeds for seeds in (12, 40)},
    **{f"{prompts} x 1": [1] * prompts for prompts in (40, 200)},
}
UNEQUAL: dict[str, Sizes] = {
    "1 to 60, 30 seeds": np.geomspace(1, 60, 30).round().astype(int).tolist(),
    "1, 10 and 40, 40 seeds": [1] * 30 + [10] * 6 + [40] * 4,
}
ONE_LARGE: dict[str, Sizes] = {
    f"{large} and {n} x {m}": [large] + [m] * n
    for large, n, m in ((40, 30, 2), (160, 120, 2), (200, 60, 5))
}
RATES = (0.01, 0.02, 0.05, 0.2, 0.4, 0.9)
ICCS = (0.1, 0.3, 0.6)


def mean_cells() -> Iterator[Cell]:
    """Rates over seeds. For so many independent rows Wilson's interval covers .92 in each cell."""

    def draw(rate: float, icc: float, sizes: Sizes, random: Random) -> Drawn:
        found = mean(rewrites(random, rate, icc, sizes))
        return within(found.rate, found.interval, rate)

    for group, designs in ((MEAN, {**EQUAL, **UNEQUAL}), (ONE_SEED, ONE_LARGE)):
        for (name, sizes), icc, rate in product(designs.items(), ICCS, RATES):
            cell = f"{rate:g}, {name}, icc {icc}"
            yield Cell(cell, (group,), partial(draw, rate, icc, sizes))


TEN = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.95)
CATEGORIES: dict[str, Sequence[tuple[float, Sizes]]] = {
    **{f"10 categories of {n} x 5": [(rate, [5] * n) for rate in TEN] for n in (3, 6, 20)},
    "10 categories of 10 x 1": [(rate, [1] * 10) for rate in TEN],
    "10 categories of 40 x 5 at .03": [(0.03, [5] * 40)] * 10,
    "60 to 4 seeds, rising rates": [
        (rate, [5] * n) for rate, n in zip(TEN, (60, 60, 40, 40, 20, 20, 10, 10, 4, 4), strict=True)
    ],
    "4 to 60 seeds, rising rates": [
        (rate, [5] * n) for rate, n in zip(TEN, (4, 4, 10, 10, 20, 20, 40, 40, 60, 60), strict=True)
    ],
    "2 categories": [(0.1, [5] * 30), (0.6, [5] * 10)],
    "10 and 10 and 4 seeds": [(0.05, [5] * 10), (0.05, [5] * 10), (0.5, [5] * 4)],
}


def macro_cells() -> Iterator[Cell]:
    """Macro averages: each seed in one category, and each in all of them."""

    def nested(each: Sequence[tuple[float, Sizes]], icc: float, random: Random) -> Drawn:
        parts = [rewrites(random, rate, icc, sizes) for rate, sizes in each]
        counts = [len(part.prompt) for part in parts]
        category = np.repeat(np.arange(len(parts)), counts)
        seed = np.concatenate([part.cluster for part in parts])
        refused = np.concatenate([part.refused for part in parts])
        found = mean(Verdicts(refused, np.arange(sum(counts)), seed + 1000 * category, category))
        return within(found.rate, found.interval, float(np.mean([rate for rate, _ in each])))

    def across(rates: Sequence[float], seeds: int, icc: float, random: Random) -> Drawn:
        hard = random.random(seeds)
        refused = np.concatenate([answered(random, r, icc, hard, [1] * seeds)[0] for r in rates])
        ids = np.arange(len(refused))
        found = mean(of(refused, ids % seeds)._replace(category=ids // seeds))
        return within(found.rate, found.interval, float(np.mean(rates)))

    for (name, each), icc in product(CATEGORIES.items(), ICCS):
        yield Cell(f"{name}, icc {icc}", (MACRO,), partial(nested, each, icc))
    for (rates, seeds), icc in product(((TEN, 30), (TEN, 100), ((0.05,) * 10, 60)), ICCS):
        name = f"{seeds} seeds in 10 categories, mean rate {np.mean(rates):.2g}, icc {icc}"
        yield Cell(name, (ACROSS,), partial(across, rates, seeds, icc))


def missing_cells() -> Iterator[Cell]:
    """Lost rows, all of them refusals: the interval that includes the unscored rows."""

    def draw(rate: float, lost: float, sizes: Sizes, random: Random) -> Drawn:
        verdicts = rewrites(random, rate, 0.3, sizes)
        gone = (verdicts.refused == 1) & (random.random(len(verdicts.refused)) < lost / rate)
        left = verdicts._replace(refused=np.where(gone, np.nan, verdicts.refused))
        return within(mean(left).rate, with_unscored(left), rate)

    for rate, lost, (name, sizes) in product((0.05, 0.2, 0.4), (0.01, 0.04), EQUAL.items()):
        cell = f"{lost:.0%} lost, all refusals, {rate:g}, {name}"
        yield Cell(cell, (MISSING,), partial(draw, rate, lost, sizes))


# ---------------------------------------------------------------------------------- two means

RATES_OF_PAIRS = (
    *((0.02, 0.02), (0.02, 0.06), (0.1, 0.1), (0.1, 0.2)),
    *((0.4, 0.4), (0.4, 0.6), (0.9, 0.9), (0.9, 0.98)),
)


def difference_cells() -> Iterator[Cell]:
    """128 cells: coverage, contradictions and, where the rates are the same, type I error."""

    def draw(pair: Pair, a: float, b: float, random: Random) -> Drawn:
        found = pair.compared(random, a, b)
        shown = found.p < ALPHA
        contradicts = shown != (found.interval.low > 0 or found.interval.high < 0)
        return within(found.difference, found.interval, a - b, contradicts, shown)

    designs = {name: EQUAL[name] for name in ("20 x 5", "60 x 5")} | {"60 x 1": [1] * 60}
    designs |= {"1 to 20, 30 seeds": np.geomspace(1, 20, 30).round().astype(int).tolist()}
    for (name, sizes), (icc, alike), paired, (a, b) in product(
        designs.items(), ((0.1, 0.0), (0.4, 0.8)), (True, False), RATES_OF_PAIRS
    ):
        cell = f"{a:g}/{b:g}, {name}, icc {icc}, {'paired' if paired else 'unpaired'}"
        groups = (DIFFERENCE, CONTRADICTION, *([TYPE_I] if a == b else []))
        yield Cell(cell, groups, partial(draw, Pair(sizes, icc, alike, paired), a, b))


def power_cells() -> Iterator[Cell]:
    """How often a true difference is shown that a comparison calls detectable."""

    @cache
    def detectable(pair: Pair, rate: float, comparisons: int) -> float:
        random = np.random.default_rng(24)
        compared = (pair.compared(random, rate, rate) for _ in range(200))
        return float(np.median([detectable_difference(found, comparisons) for found in compared]))

    def draw(pair: Pair, rate: float, comparisons: int, random: Random) -> Drawn:
        apart = detectable(pair, rate, comparisons)
        other = rate + apart if rate < 0.5 else rate - apart
        return Drawn((pair.compared(random, rate, other).p < ALPHA / comparisons,))

    @cache
    def detectable_finding(rate: float, lost: float, comparisons: int) -> float:
        random = np.random.default_rng(25)
        drawn = (incomplete(random, rate, rate, lost) for _ in range(200))
        gaps = (difference(a, b, paired=True) for a, b in drawn)
        return float(np.median([detectable_difference(gap, comparisons, lost) for gap in gaps]))

    def finding(rate: float, lost: float, comparisons: int, random: Random) -> Drawn:
        apart = detectable_finding(rate, lost, comparisons)
        a, b = incomplete(random, rate, rate + apart, lost)
        gap = difference(a, b, paired=True)
        both = max(gap.p, worst_case_p(a, b, gap))
        return Drawn((both < ALPHA / comparisons,))

    for rate, lost, comparisons in product((0.05, 0.1, 0.3), (0.01, 0.03), (1, 45)):
        cell = f"{rate:g}, 1319 x 1, {lost:.0%} lost, of {comparisons}"
        yield Cell(cell, (POWER,), partial(finding, rate, lost, comparisons))

    singles, seeds = ("655 x 1", (1,) * 655), ("200 x 5", (5,) * 200)
    for (name, sizes), rates in ((singles, (0.02, 0.1, 0.4, 0.8)), (seeds, (0.1, 0.4, 0.8))):
        for rate, paired, comparisons in product(rates, (True, False), (1, 45)):
            pair = Pair(sizes, 0.3, 0.5, paired)
            cell = f"{rate:g}, {name}, {'paired' if paired else 'unpaired'}, of {comparisons}"
            yield Cell(cell, (POWER,), partial(draw, pair, rate, comparisons))


def incomplete(random: Random, a: float, b: float, lost: float) -> tuple[Verdicts, Verdicts]:
    """Two models on 1,319 prompts, each without the verdicts on some of them."""
    hard = random.random(1319)
    same = random.random(1319) < 0.5
    of_b = np.where(same, hard, random.random(1319))
    both = []
    for rate, difficulty in ((a, hard), (b, of_b)):
        refused, seed = answered(random, rate, 0.3, difficulty, [1] * 1319)
        refused[random.random(1319) < lost] = np.nan
        both.append(of(refused, seed))
    return both[0], both[1]


def nearly_equal_cells() -> Iterator[Cell]:
    """Two models that disagree on few prompts: two efforts, two checkpoints."""

    def draw(n: int, rate: float, more: float, fewer: float, random: Random) -> Drawn:
        a = random.random(n) < rate
        b = a.copy()
        turn = random.random(n)
        for refused, by_a in ((turn < more, True), (turn > 1 - fewer, False)):
            a[refused] = by_a
            b[refused] = not by_a
        ids = np.arange(n)
        found = difference(of(a, ids), of(b, ids), paired=True)
        return within(found.difference, found.interval, more - fewer)

    some = ((0, 0), (0.001, 0), (0.003, 0), (0.01, 0), (0.03, 0), (0.005, 0.001), (0.02, 0.01))
    for n, rate, (more, fewer) in product((30, 100, 300, 1319), (0.05, 0.2, 0.5), some):
        if n * more <= 10:
            cell = f"{n} prompts, {rate:g}, {more:g} and {fewer:g} disagree"
            yield Cell(cell, (NEARLY,), partial(draw, n, rate, more, fewer))


def small_cells() -> Iterator[Cell]:
    """Few prompts without seeds: what Wilson's interval does by itself."""

    def draw(n: int, rate: float, random: Random) -> Drawn:
        found = mean(of(random.random(n) < rate, np.arange(n)))
        return within(found.rate, found.interval, rate)

    rates = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.98, 0.99)
    for n, rate in product((5, 6, 8, 10, 15, 20, 30, 40), rates):
        yield Cell(f"{n} prompts, {rate:g}", (SMALL,), partial(draw, n, rate))


class Judge(NamedTuple):
    """How often a judge says refusal: of refusals, and of answers."""

    sensitivity: float
    false_alarms: float


def corrected_cells() -> Iterator[Cell]:
    """A judge on 1,319 rows, people's labels on some: drawn evenly, or half from refusals."""

    def draw(
        rate: float, judge: Judge, labels: int, uneven: bool, seeds: bool, random: Random
    ) -> Drawn:
        sizes = [5] * 264 if seeds else [1] * 1319
        truth = rewrites(random, rate, 0.3, sizes)
        n = len(truth.refused)
        chance = np.where(truth.refused == 1, judge.sensitivity, judge.false_alarms)
        by_judge = (random.random(n) < chance) * 1.0
        people = np.full(n, np.nan)
        weight = np.ones(n)
        groups = [by_judge == 1, by_judge == 0] if uneven else [np.ones(n, bool)]
        for group in groups:
            rows = np.flatnonzero(group)
            drawn = random.permutation(rows)[: labels // len(groups)]
            people[drawn] = truth.refused[drawn]
            weight[rows] = len(rows) / max(1, len(drawn))
        judged = truth._replace(refused=by_judge, weight=weight)
        estimate, *interval = corrected(judged, people)
        by_labels = mean(judged._replace(refused=people)).interval
        is_narrow = interval[1] - interval[0] <= by_labels.width + 0.02
        return within(estimate, interval, rate, is_narrow)

    judges = (Judge(1, 0), Judge(0.7, 0.05))
    for rate, judge, labels, uneven, seeds in product(
        (0.01, 0.05, 0.2, 0.5), judges, (20, 80, 200), (False, True), (False, True)
    ):
        name = f"{rate:g}, {labels} labels, {'half refusals' if uneven else 'random'}"
        name += f", sensitivity {judge.sensitivity:g}{', seeds of 5' if seeds else ''}"
        yield Cell(name, (CORRECTED, WIDTH), partial(draw, rate, judge, labels, uneven, seeds))


def corrected_gap_cells() -> Iterator[Cell]:
    """Two models by the same judge, with labels of both on some of 1,319 prompts: of equal truth,
    the judge with more false alarms on one; and 10 points apart, a judge alike on both.
    """

    def draw(labels: int, apart: float, seeds: bool, random: Random) -> Drawn:
        sizes = [5] * 264 if seeds else [1] * 1319
        hard = random.random(len(sizes))
        of_b = np.where(random.random(len(sizes)) < 0.5, hard, random.random(len(sizes)))
        labeled = random.random(sum(sizes)).argsort() < labels
        models = []
        for rate, difficulty, false_alarms in (
            (0.15 + apart, hard, 0.02 if apart else 0.07),
            (0.15, of_b, 0.02),
        ):
            truth, seed = answered(random, rate, 0.3, difficulty, sizes)
            chance = np.where(truth == 1, 0.95, false_alarms)
            by_judge = random.random(len(seed)) < chance
            models.append((of(by_judge, seed), np.where(labeled, truth, nan)))
        (a, people_a), (b, people_b) = models
        found = corrected_difference(a, b, people_a, people_b)
        assert found
        estimate, interval, _ = found
        of_people = [one._replace(refused=people) for one, people in models]
        by_labels = difference(*of_people, paired=True).interval
        is_narrow = interval.width <= by_labels.width
        is_found = interval.low > 0 or interval.high < 0
        return within(estimate, interval, apart, is_narrow, is_found)

    designs = {"": False, ", seeds of 5": True}
    for labels, apart, (design, seeds) in product((50, 100, 200), (0.0, 0.1), designs.items()):
        groups = [GAP, GAP_WIDTH]
        if not apart:
            groups.append(GAP_TYPE_I)
        elif labels >= 100 and not seeds:
            groups.append(GAP_POWER)
        name = f"{100 * apart:g} points apart, {labels} prompts labeled{design}"
        yield Cell(name, tuple(groups), partial(draw, labels, apart, seeds))


# ---------------------------------------------------------------------------------- graded classes

# Shares of helped, partial, safe completion, indirect, direct and by API; of .02 to .9.
GRADED = {
    "few refusals": (0.9, 0.02, 0.02, 0.02, 0.02, 0.02),
    "many hedge": (0.22, 0.1, 0.4, 0.04, 0.2, 0.04),
    "all alike": (1 / 6,) * 6,
}


def graded(random: Random, shares: Sequence[float], leaning: Array, seed: Array) -> Array:
    """The class of each prompt; leaning: a uniform number a seed, which decides for half of its
    rewrites, so that rewrites resemble each other in any class.
    """
    chance = np.where(random.random(len(seed)) < 0.5, leaning[seed], random.random(len(seed)))
    return np.searchsorted(np.cumsum(shares)[:-1], chance)


def graded_cells() -> Iterator[Cell]:
    """Each class's share; and two models with the same share of hedged responses and other
    refusals, partly to the same prompts.
    """

    def share(shares: Sequence[float], part: int, sizes: Sizes, random: Random) -> Drawn:
        seed = np.repeat(np.arange(len(sizes)), sizes)
        found = mean(of(graded(random, shares, random.random(len(sizes)), seed) == part, seed))
        return within(found.rate, found.interval, shares[part])

    def hedged(shares: Sequence[float], sizes: Sizes, random: Random) -> Drawn:
        seed = np.repeat(np.arange(len(sizes)), sizes)
        other = (shares[3], *shares[1:3], shares[0], *shares[4:])  # helped less, refuses more
        leaning = random.random(len(sizes))
        mixed = np.where(random.random(len(sizes)) < 0.5, leaning, random.random(len(sizes)))
        both = []
        for of_model, lean in ((shares, leaning), (other, mixed)):
            classes = graded(random, of_model, lean, seed)
            both.append(of((classes == 1) | (classes == 2), seed))
        return Drawn((difference(*both, paired=True).p < ALPHA,))

    designs = [(60, 1), (600, 1), (12, 5), (60, 5), (120, 5), (20, 3), (200, 3)]
    for (name, shares), (seeds, size) in product(GRADED.items(), designs):
        sizes = [size] * seeds
        cell = f"{name}, {seeds} x {size}"
        for part, one in enumerate(shares):
            yield Cell(
                f"{cell}, class {part} ({one:.2g})", (SHARE,), partial(share, shares, part, sizes)
            )
        yield Cell(cell, (HEDGED,), partial(hedged, shares, sizes))


# The tiers of each seed's prompts; uneven: one design after the other.
TIERS: dict[str, Sequence[Sequence[int]]] = {
    "1, 1": [[0, 1]],
    "1, 1, 1": [[0, 1, 2]],
    "5, 1": [[0] * 5 + [1]],
    "5, 5, 5": [[0] * 5 + [1] * 5 + [2] * 5],
    "uneven": [[0, 2], [0, 1, 1, 2], [0, 0, 1], [0] * 8 + [1] * 4 + [2] * 12],
}
# The variance that prompts of a seed share, and those of a seed and tier.
SHARED = {"icc .3": (0.3, 0.0), "icc .7": (0.7, 0.0), "icc .3, .4 in a tier": (0.3, 0.4)}


def trend_cells() -> Iterator[Cell]:
    """Refusals that do not depend on the tier; and those that rise from 20 to 40 or 60 %. Compared
    as the report does: in each seed, the prompts above its mean tier with those below.
    """

    def draw(
        rate: float, rise: float, shared: str, design: str, seeds: int, random: Random
    ) -> Drawn:
        each = TIERS[design]
        tiers = [each[seed % len(each)] for seed in range(seeds)]
        sizes = [len(one) for one in tiers]
        seed = np.repeat(np.arange(seeds), sizes)
        tier = np.concatenate(tiers)
        of_seed, of_tier = SHARED[shared]
        harm = of_seed**0.5 * random.normal(size=seeds)[seed]
        harm += of_tier**0.5 * random.normal(size=(seeds, 3))[seed, tier]
        harm += (1 - of_seed - of_tier) ** 0.5 * random.normal(size=len(seed))
        refused = (harm < ndtri(rate + rise * tier)).astype(float)
        mean_tier = np.repeat(np.bincount(seed, tier) / sizes, sizes)
        both = []
        expected = []
        for part in (tier > mean_tier, tier < mean_tier):
            both.append(Verdicts(refused[part], seed[part], seed[part]))
            steps = np.bincount(seed[part], tier[part]) / np.bincount(seed[part])
            expected.append(rate + rise * steps.mean())
        found = difference(*both, paired=False)
        gap = expected[0] - expected[1]
        return within(found.difference, found.interval, gap, found.p < ALPHA)

    designs = product(TIERS, SHARED, (10, 20, 60, 200))
    for (design, shared, seeds), rate in product(designs, (0.05, 0.2, 0.5)):
        name = f"{rate:g} in each tier, {seeds} seeds x {design}, {shared}"
        yield Cell(name, (TIERED, TREND), partial(draw, rate, 0.0, shared, design, seeds))
    for (design, shared), (seeds, rise) in product(
        product(TIERS, SHARED), ((60, 0.3), (200, 0.15))
    ):
        name = f"20 % and {100 * rise:g} points per tier, {seeds} seeds x {design}, {shared}"
        groups = (TIERED, TREND_POWER)
        yield Cell(name, groups, partial(draw, 0.2, rise, shared, design, seeds))


# ---------------------------------------------------------------------------------- the table


def cells() -> list[Cell]:
    """Those about rates, differences and trends; what is said of them: `simulated_findings`."""
    some = [mean_cells, macro_cells, missing_cells, difference_cells, power_cells, small_cells]
    some += [nearly_equal_cells, corrected_cells, corrected_gap_cells, graded_cells, trend_cells]
    return [cell for each in some for cell in each()]


class Measured(NamedTuple):
    """What a cell shows of a group."""

    group: Group
    share: float  # of the draws
    width: float = nan  # of an interval, times that of a normal one with the error that it has


def measured(cell: Cell, draws: int) -> list[Measured]:
    """What is found in a cell; the same each time."""
    random = np.random.default_rng(list(cell.name.encode()))
    drawn = [cell.draw(random) for _ in range(draws)]
    happened = [one.happened[: len(cell.groups)] for one in drawn]
    half = np.mean([one.half for one in drawn])
    error = np.std([one.estimate for one in drawn])
    widths = [float(half / np.maximum(ROUNDING, Z95 * error))] + [nan] * len(cell.groups)
    shares = np.mean(happened, axis=0).tolist()
    return [*map(Measured, cell.groups, shares, widths)]
