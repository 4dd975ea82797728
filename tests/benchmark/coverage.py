"""How often intervals cover and tests err, on made data whose truth is known.

    python tests/benchmark/coverage.py --draws 2000

Prints, for each case, what is wanted, what it was when rows were taken as independent ("before")
and what it is with orbench/clustered.py and orbench/correction.py ("after"). Seeds are fixed: the
same draws give the same table. Nothing is read and nothing leaves this machine.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from math import nan
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from scipy.stats import binomtest, ttest_rel  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from orbench.clustered import (
    Difference,
    Floats,
    Hashes,
    Prompts,
    against,
    by_prompt,
    compare,
    estimate,
    macro_average,
    unpaired,
    youden,
)
from orbench.correction import (
    Audit,
    JudgeAccuracy,
    over_refusal_of_safe,
    prediction_powered,
    rogan_gladen,
)
from orbench.rates import wilson

Random = np.random.Generator
Draw = Callable[[Random], tuple[float, float]]  # before, after: 1 or 0, or a width
REWRITES, ICC = 5, 0.3  # of a seed, as in the paper; between them
ROUNDING = 1e-12


class Case(NamedTuple):
    """Something that happens in a share of the draws."""

    name: str
    wanted: str
    draw: Draw


class Line(NamedTuple):
    """A case and how often it happened; NaN where there is no before."""

    case: Case
    before: float
    after: float


# ---------------------------------------------------------------------------------- made data


def latent(random: Random, rate: float, icc: float, n: int) -> Floats:
    """A probability for each cluster: its Beta distribution gives 0/1 outcomes that correlation."""
    if not icc:
        return np.full(n, rate)
    both = (1 - icc) / icc
    return random.beta(rate * both, (1 - rate) * both, n)


def numbers(n: int) -> Hashes:
    """A hash for each of n prompts."""
    return np.arange(n, dtype=np.uint64)


def rewritten(random: Random, rate: float, seeds: int, icc: float = ICC) -> tuple[Prompts, Prompts]:
    """REWRITES prompts a seed: with the seeds not known, and known."""
    prompt = numbers(seeds * REWRITES)
    refused = random.random(len(prompt)) < np.repeat(latent(random, rate, icc, seeds), REWRITES)
    return by_prompt(prompt, refused), by_prompt(prompt, refused, prompt // REWRITES)


def sampled(random: Random, probability: Floats, samples: int) -> Prompts:
    """Several answers a prompt."""
    n = len(probability)
    prompt = np.repeat(numbers(n), samples)
    return by_prompt(prompt, random.random(n * samples) < np.repeat(probability, samples))


class Interval(Protocol):
    """What has two ends."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def within(low: float, high: float, truth: float) -> bool:
    """Whether the truth lies between two ends."""
    return bool(low - ROUNDING <= truth <= high + ROUNDING)


def covers(found: Interval, truth: float) -> bool:
    """Whether an interval holds the truth."""
    return within(found.low, found.high, truth)


# ---------------------------------------------------------------------------------- seeds


def rate_of_seeds(rate: float, seeds: int, icc: float = ICC) -> Draw:
    """Coverage of a rate."""

    def draw(random: Random) -> tuple[float, float]:
        plain, known = rewritten(random, rate, seeds, icc)
        return covers(estimate(plain), rate), covers(estimate(known), rate)

    return draw


def pair_of_seeds(
    a: float, b: float, seeds: int, seen: Callable[[Difference, float], bool]
) -> Draw:
    """Two models on the same prompts whose seeds are hard for each in its own way."""

    def draw(random: Random) -> tuple[float, float]:
        of_a, of_b = rewritten(random, a, seeds), rewritten(random, b, seeds)
        before, after = (compare(x, y) for x, y in zip(of_a, of_b, strict=True))
        return seen(before, a - b), seen(after, a - b)

    return draw


def other_prompts(
    a: float, b: float, seeds: int, seen: Callable[[Difference, float], bool]
) -> Draw:
    """Two models on different prompts. There was no such comparison: rows taken as independent."""

    def draw(random: Random) -> tuple[float, float]:
        of_a, of_b = rewritten(random, a, seeds), rewritten(random, b, seeds + 20)
        before, after = (unpaired(x, y) for x, y in zip(of_a, of_b, strict=True))
        return seen(before, a - b), seen(after, a - b)

    return draw


def in_interval(found: Difference, truth: float) -> bool:
    """Whether the difference is covered."""
    return covers(found, truth)


def rejects(found: Difference, truth: float) -> bool:
    """Whether a difference is claimed at 5 %."""
    return found.p < 0.05


def contradicts(found: Difference, truth: float) -> bool:
    """Whether the test says otherwise than the interval."""
    return (found.p < 0.05) != (found.low > 0 or found.high < 0)


# ---------------------------------------------------------------------------------- samples

SAMPLES, SAMPLED_PROMPTS = 5, 200


def samples_before(a: Prompts, b: Prompts) -> Difference:
    """Student's interval over the prompts, and the sign test."""
    low, high = ttest_rel(a.shares, b.shares).confidence_interval(0.95)
    more = int((a.shares > b.shares).sum()), int((a.shares < b.shares).sum())
    p = binomtest(more[0], sum(more)).pvalue if sum(more) else 1.0
    return compare(a, b)._replace(low=float(low), high=float(high), p=float(p))


def rate_of_samples(icc: float, width: bool = False) -> Draw:
    """Coverage, or width against that of the right one, of a rate from several answers a prompt."""

    def draw(random: Random) -> tuple[float, float]:
        rate = 0.3
        found = sampled(random, latent(random, rate, icc, SAMPLED_PROMPTS), SAMPLES)
        before = wilson(found.shares.sum(), SAMPLED_PROMPTS)
        after = estimate(found)
        if width:
            right = 2 * 1.96 * np.sqrt(rate * (1 - rate) * (icc + (1 - icc) / SAMPLES) / 200)
            return (before[1] - before[0]) / right, (after.high - after.low) / right
        return within(*before, rate), covers(after, rate)

    return draw


def pair_of_samples(
    difference: float, seen: Callable[[Difference, float], bool], icc: float = 0.5
) -> Draw:
    """Two models, several answers a prompt."""

    def draw(random: Random) -> tuple[float, float]:
        a, b = (
            sampled(random, latent(random, rate, icc, SAMPLED_PROMPTS), SAMPLES)
            for rate in (0.3, 0.3 + difference)
        )
        return seen(samples_before(a, b), -difference), seen(compare(a, b), -difference)

    return draw


# ---------------------------------------------------------------------------------- missing rows


def claimed(lost: float, b: float = 0.4, any_row: bool = False) -> Draw:
    """Whether a difference is claimed where model b loses rows: of its refusals, or of any."""

    def draw(random: Random) -> tuple[float, float]:
        prompt = numbers(1000)
        of_a, of_b = ((random.random(1000) < rate).astype(float) for rate in (0.4, b))
        of_b[(random.random(1000) < lost) & ((of_b == 1) | any_row)] = nan
        x, y = by_prompt(prompt, of_a), by_prompt(prompt, of_b)
        before = compare(x, y).p < 0.05
        return before, before and against(x, y).p < 0.05

    return draw


# ---------------------------------------------------------------------------------- corrections


def judged(random: Random, refused: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Floats:
    """A judge who finds 85 % of the refusals and calls 5 % of the answers so."""
    return (random.random(len(refused)) < np.where(refused, 0.85, 0.05)).astype(float)


def with_api(truth: float, blocked: float, seeds: int = 200) -> Draw:
    """Coverage of the corrected rate where the API itself refuses a share of the prompts."""
    total = blocked + (1 - blocked) * truth

    def draw(random: Random) -> tuple[float, float]:
        n = seeds * REWRITES
        api = random.random(n) < blocked
        refused = random.random(n) < np.repeat(latent(random, truth, ICC, seeds), REWRITES)
        flagged = judged(random, refused)
        right, wrong = int(random.binomial(200, 0.85)), int(random.binomial(300, 0.05))
        judge = JudgeAccuracy(right, 200 - right, 300 - wrong, wrong)
        counted = np.where(api, 1.0, flagged)
        none = estimate(by_prompt(numbers(n), np.zeros(n)))
        before = rogan_gladen(estimate(by_prompt(numbers(n), counted)), none, judge)
        seed = numbers(n) // REWRITES
        of_judge = estimate(by_prompt(numbers(n), np.where(api, nan, flagged), seed))
        after = rogan_gladen(of_judge, estimate(by_prompt(numbers(n), api, seed)), judge)
        return covers(before, total), covers(after, total)

    return draw


def labelled(
    truth: float, labels: int, icc: float, *, blocked: float = 0.0, wide: bool = False
) -> Draw:
    """Labels of a random part: the labels alone (before), and prediction-powered."""
    seeds = 200
    n = seeds * REWRITES
    total = blocked + (1 - blocked) * truth

    def draw(random: Random) -> tuple[float, float]:
        api = random.random(n) < blocked
        refused = api | (random.random(n) < np.repeat(latent(random, truth, icc, seeds), REWRITES))
        people = np.where(refused, 1.0, 0.0)
        people[random.permutation(n)[labels:]] = nan
        before = wilson(np.nansum(people), labels)
        after = prediction_powered(judged(random, refused), people, numbers(n) // REWRITES, api)
        if wide:
            return before[1] - before[0], after.high - after.low
        return within(*before, total), covers(after, total)

    return draw


def hard_set(toxic: float, audited: int) -> Draw:
    """Over-refusal of the safe prompts of a set in which some are toxic and mostly refused."""
    of_safe, of_toxic, n = 0.3, 0.9, 1319

    def draw(random: Random) -> tuple[float, float]:
        is_toxic = random.random(n) < toxic
        refused = random.random(n) < np.where(is_toxic, of_toxic, of_safe)
        whole = estimate(by_prompt(numbers(n), refused))
        chosen = random.permutation(n)[:audited]
        r, t = refused[chosen], is_toxic[chosen]
        cells = ((r & ~t).sum(), (r & t).sum(), (~r & ~t).sum(), (~r & t).sum())
        after = over_refusal_of_safe(whole, Audit(*map(int, cells)))
        return covers(whole, of_safe), covers(after, of_safe)

    return draw


# ---------------------------------------------------------------------------------- scores


def joint() -> Draw:
    """Youden's J, with the seeds not known and known."""

    def draw(random: Random) -> tuple[float, float]:
        toxic, safe = rewritten(random, 0.9, 60), rewritten(random, 0.2, 150)
        before, after = (youden(t, s) for t, s in zip(toxic, safe, strict=True))
        return covers(before, 0.7), covers(after, 0.7)

    return draw


def macro(rates: Iterable[float], seeds: int) -> Draw:
    """The macro average over categories, with the seeds not known and known."""
    each = list(rates)
    truth = float(np.mean(each))

    def draw(random: Random) -> tuple[float, float]:
        found = [rewritten(random, rate, seeds) for rate in each]
        plain = macro_average([estimate(one[0]) for one in found])
        known = macro_average([estimate(one[1]) for one in found])
        return within(*plain[1:], truth), within(*known[1:], truth)

    return draw


COVERED, ERRS, NEVER = ".95", ".05", "0"
CATEGORIES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.95)
CASES = [
    *(
        Case(f"rate {rate:.3g}, {seeds} seeds x 5: covered", COVERED, rate_of_seeds(rate, seeds))
        for rate, seeds in ((0.4, 200), (0.2, 200), (0.05, 200), (0.005, 200), (0.4, 20), (0.4, 8))
    ),
    Case("rate .4, 200 x 5, rewrites independent: covered", COVERED, rate_of_seeds(0.4, 200, 0.0)),
    *(
        Case(f"pair {a:g}/{b:g}, {n} seeds x 5: {name}", wanted, pair_of_seeds(a, b, n, seen))
        for name, wanted, seen, cases in (
            ("claims", ERRS, rejects, ((0.4, 0.4, 200), (0.05, 0.05, 200), (0.2, 0.2, 20))),
            (
                "covered",
                COVERED,
                in_interval,
                ((0.4, 0.4, 200), (0.3, 0.4, 200), (0.02, 0.06, 100)),
            ),
            ("contradiction", NEVER, contradicts, ((0.3, 0.35, 200), (0.02, 0.06, 20))),
        )
        for a, b, n in cases
    ),
    Case("different prompts .2/.2: claims", ERRS, other_prompts(0.2, 0.2, 100, rejects)),
    Case("different prompts .2/.3: covered", COVERED, other_prompts(0.2, 0.3, 100, in_interval)),
    Case("5 samples, icc .3: covered", COVERED, rate_of_samples(0.3)),
    Case("5 samples, icc .9: covered", COVERED, rate_of_samples(0.9)),
    Case("5 samples, icc .1: width / right width", "1", rate_of_samples(0.1, width=True)),
    Case("5 samples, icc .5: width / right width", "1", rate_of_samples(0.5, width=True)),
    Case("5 samples, pair: claims", ERRS, pair_of_samples(0.0, rejects)),
    Case("5 samples, pair: covered", COVERED, pair_of_samples(0.05, in_interval)),
    Case("5 samples, pair: contradiction", NEVER, pair_of_samples(0.05, contradicts)),
    Case("60 % of the refusals missing, .4/.4: claims", "<.05", claimed(0.6)),
    Case("1 % of the rows missing, .4/.5: claims", "1", claimed(0.01, 0.5, any_row=True)),
    Case("judge corrected, no API refusal: covered", COVERED, with_api(0.3, 0.0)),
    Case("judge corrected, 40 % API refusals: covered", COVERED, with_api(0.3, 0.4)),
    Case("200 labels, rewrites independent: covered", COVERED, labelled(0.3, 200, 0.0)),
    Case("200 labels, icc .3: covered", COVERED, labelled(0.3, 200, ICC)),
    Case("50 labels, rate .1: covered", COVERED, labelled(0.1, 50, 0.0)),
    Case("200 labels, 30 % API refusals: covered", COVERED, labelled(0.3, 200, ICC, blocked=0.3)),
    Case("200 labels: width", "less", labelled(0.3, 200, 0.0, wide=True)),
    Case("18 % of a hard set toxic, 200 audited: covered", COVERED, hard_set(0.18, 200)),
    Case("3 % of a hard set toxic, 100 audited: covered", COVERED, hard_set(0.03, 100)),
    Case("Youden's J of seeds: covered", COVERED, joint()),
    Case("macro average, 10 x 20 seeds: covered", COVERED, macro(CATEGORIES, 20)),
    Case("macro average, 10 x 6 seeds: covered", COVERED, macro(CATEGORIES, 6)),
]


def measure(case: Case, draws: int) -> Line:
    """Draw a case that often; the same each time."""
    random = np.random.default_rng(list(case.name.encode()))
    found = np.array([case.draw(random) for _ in range(draws)], dtype=float)
    before, after = found.mean(axis=0)
    return Line(case, float(before), float(after))


def main(draws: int) -> None:
    """Print the table."""
    width = max(len(case.name) for case in CASES)
    print(f"{'case':<{width}}  wanted  before   after")
    for case in CASES:
        line = measure(case, draws)
        print(f"{case.name:<{width}}  {case.wanted:>6}  {line.before:6.3f}  {line.after:6.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="of each case (default: 2000)")
    main(parser.parse_args().draws)
