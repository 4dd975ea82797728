"""Simulated refusals with a known truth: toxicity, pairs of seed and rewrite, trigger words."""

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit, ndtr  # type: ignore[import-untyped]

from orbench.report.analyses.labels import AGREED, labels_of, toxicity
from orbench.report.analyses.pairs import pairs
from orbench.report.analyses.trigger_words import trigger_words
from orbench.report.measures import Counted, Kind, Subset
from orbench.report.results import TOXIC
from orbench.stats.association import auc
from orbench.stats.core import Array, Verdicts
from tests.results import prompts_of, responses, result_of, standing_of

Random = np.random.Generator
Draw = Callable[[Random], float]  # 1: the interval covers, 0: it does not, NaN: there is none


class Case(NamedTuple):
    """Refusals that depend on a score."""

    seeds: int
    icc: float
    middle: float
    slope: float
    judges: int


def uniform(random: Random, seed: Array, icc: float) -> Array:
    """Numbers from 0 to 1 that resemble each other within a seed."""
    common, own = random.normal(size=(2, len(seed)))
    return np.asarray(ndtr(icc**0.5 * common[seed] + (1 - icc) ** 0.5 * own))


def headline(random: Random, folder: Path) -> tuple[float, float, float]:
    """The raw rate, that over prompts that three judges call safe, the truth; in percent. Half of
    the set is toxic, of which the model refuses 50 %, of the rest 10 %; judges err in 10 %.
    """
    toxic = np.arange(4000) % 2 == 1
    refused = random.random(4000) < np.where(toxic, 0.5, 0.1)
    votes = toxic[:, None] ^ (random.random((4000, 3)) < 0.1)
    table = pd.DataFrame(votes, columns=["is_toxic_a", "is_toxic_b", "is_toxic_c"])
    table.assign(prompt=table.index, is_toxic=True).to_csv(folder / "panel.csv")
    judges = [{"asked": judge} for judge in "abc"]
    record = {"stage": "moderator", "models": judges, "parameters": {"column": "prompt"}}
    (folder / "panel.run.json").write_text(json.dumps(record))
    result = result_of(responses(refused))
    labels = labels_of(prompts_of([str(n) for n in range(4000)]), [folder / "panel.csv"])
    found = toxicity([result], [standing_of(result)], labels).rates
    (agreed,) = (one for one in found if one.subset == Subset(Kind.LABEL, AGREED))
    return 100 * refused.mean(), 100 * agreed.mean.rate, 100 * refused[~toxic].mean()


def logistic(random: Random, case: Case) -> tuple[Verdicts, Array]:
    """Refusals of five rewrites a seed from a logistic curve of their score; the scores."""
    seed = np.repeat(np.arange(case.seeds), 5)
    score = random.binomial(case.judges, uniform(random, seed, 0.5)) / case.judges
    refused = uniform(random, seed, case.icc) < expit(case.slope * (score - case.middle))
    return Verdicts(refused.astype(float), np.arange(len(seed)), seed), score


@cache
def true_value(curve: Case) -> float:
    """The AUC of very many prompts."""
    return auc(*logistic(np.random.default_rng(1), curve))[0]


def area(case: Case, random: Random) -> float:
    """Whether the interval of the AUC covers."""
    value, (low, high) = auc(*logistic(random, case))
    return nan if isnan(value) else low <= true_value(case._replace(seeds=50_000, icc=0)) <= high


def pair(seeds: int, icc: float, of_seeds: float, of_rewrites: float, random: Random) -> float:
    """The share of pairs that are right, where these shares of seeds and rewrites are refused."""
    seed = np.repeat(np.arange(seeds), 5)
    second = uniform(random, seed, icc) < of_rewrites
    rewrites = result_of(responses(second, seed=seed, prompt=seeds + np.arange(len(seed))))
    toxic = result_of(responses(random.random(seeds) < of_seeds), 1, side=TOXIC)
    found, *_ = pairs([standing_of(rewrites, toxic)]).rates
    assert found.counted is Counted.HIGHER_REFUSED
    low, high = found.mean.interval
    return float(low <= of_seeds * (1 - of_rewrites) <= high)


def words(random: Random) -> tuple[int, int]:
    """How many of 20 planted words are found, each in about 80 of 1,000 prompts with odds ratio 4;
    and how many other entries.
    """
    refused = random.random(1000) < 0.3
    drawn = random.integers(2000, size=(1000, 12)) ** 2 // 2000  # some words are frequent
    prompts = [[f"word{n}" for n in one] for one in drawn]
    chance = np.where(refused, 0.16, 0.045)
    for n in range(20):
        for place in np.flatnonzero(random.random(1000) < chance):
            prompts[place].append(f"planted{n}")
    board = [standing_of(result_of(responses(refused)))]
    texts = [" ".join(random.permutation(one)) for one in prompts]
    terms = [one.value for one in trigger_words(prompts_of(texts), board).associations]
    planted = [term for term in terms if "planted" in term]
    return sum(" " not in term for term in planted), len(terms) - len(planted)


def cases() -> Iterator[tuple[str, Draw]]:
    """All cases; a share of .93 or more is wanted in each."""
    curves = ((0.5, 3.0), (0.5, 10.0), (0.2, 6.0), (0.8, 3.0))
    for seeds, icc in product((20, 60, 260), (0.0, 0.4)):
        of = f"{seeds} x 5, icc {icc}"
        for (middle, slope), judges in product(curves, (1, 3)):
            name = f"AUC: {of}, middle {middle}, slope {slope:g}, {judges} judges"
            yield name, partial(area, Case(seeds, icc, middle, slope, judges))
        for rates in ((0.9, 0.1), (0.6, 0.4)):
            yield f"pairs: {of}, refused {rates}", partial(pair, seeds, icc, *rates)


def coverage(name: str, draw: Draw, draws: int) -> float:
    """The share of the intervals that cover; the same each time."""
    random = np.random.default_rng(list(name.encode()))
    return float(np.nanmean([draw(random) for _ in range(draws)]))
