"""Simulated refusals with a known truth: toxicity, pairs of seed and rewrite, trigger words."""

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from math import isnan, nan
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit, ndtr  # type: ignore[import-untyped]

from orbench.base.prompts import prompt_id
from orbench.report.seed_pairs import seed_pairs
from orbench.report.toxicity import toxicity
from orbench.report.triggers import triggers
from orbench.stats.association import auc
from orbench.stats.core import Array, Verdicts

Random = np.random.Generator
Case = tuple[int, float, float, float, int]  # seeds, icc, middle, slope, judges
Draw = Callable[[Random], float]  # 1: the interval covers, 0: it does not, NaN: there is none
NAMES = dict.fromkeys(("model", "settings", "judge", "prompts", "part"), "")
BOARD = pd.DataFrame([NAMES | {"published": False, "safe": 0, "toxic": 1}])


def rows_of(refused: Array, **columns: object) -> pd.DataFrame:
    """Rows as `load` gives them: of safe prompts without seeds, if not said otherwise."""
    usual = {"result": 0, "side": "over_refusal", "category": "a", "tier": ""}
    numbers = np.arange(len(refused))
    frame = pd.DataFrame({"prompt": numbers, "seed": numbers, "refused": refused.astype(float)})
    return frame.assign(**usual | columns)


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
    table = pd.DataFrame(votes, columns=[f"is_toxic_{judge}" for judge in "abc"])
    table.assign(prompt=table.index.map(str), is_toxic=True).to_csv(folder / "panel.csv")
    judges = [{"asked": judge} for judge in "abc"]
    record = {"stage": "moderator", "models": judges, "parameters": {"column": "prompt"}}
    (folder / "panel.run.json").write_text(json.dumps(record))
    rows = rows_of(refused, id=[prompt_id(str(n)) for n in range(4000)])
    found = toxicity(rows, BOARD, [folder / "panel.csv"])[0]["toxicity"].iloc[0]
    rates = found[["over_refusal_own_label_percent", "over_refusal_agreed_percent"]]
    return *rates, 100 * refused[~toxic].mean()


def logistic(random: Random, *case: float) -> tuple[Verdicts, Array]:
    """Refusals of five rewrites a seed from a logistic curve of their score; the scores."""
    seeds, icc, middle, slope, judges = case
    seed = np.repeat(np.arange(seeds), 5)
    score = random.binomial(int(judges), uniform(random, seed, 0.5)) / judges
    refused = uniform(random, seed, icc) < expit(slope * (score - middle))
    return Verdicts(refused.astype(float), np.arange(len(seed)), seed), score


@cache
def true_value(*curve: float) -> float:
    """The AUC of very many prompts. curve: middle, slope, judges."""
    return auc(*logistic(np.random.default_rng(1), 50_000, 0, *curve))[0]


def area(case: Case, random: Random) -> float:
    """Whether the interval of the AUC covers."""
    value, low, high = auc(*logistic(random, *case))
    return nan if isnan(value) else float(low <= true_value(*case[2:]) <= high)


def pair(seeds: int, icc: float, of_seeds: float, of_rewrites: float, random: Random) -> float:
    """The share of pairs that are right, where these shares of seeds and rewrites are refused."""
    seed = np.repeat(np.arange(seeds), 5)
    second = uniform(random, seed, icc) < of_rewrites
    rewrites = rows_of(second, seed=seed, prompt=seeds + np.arange(len(seed)))
    toxic = rows_of(random.random(seeds) < of_seeds, result=1, side="toxic")
    found = seed_pairs(pd.concat([rewrites, toxic]), BOARD)[0]["pairs"].iloc[0]
    truth = 100 * of_seeds * (1 - of_rewrites)
    return float(found["right_low_percent"] <= truth <= found["right_high_percent"])


def words(random: Random) -> tuple[int, int]:
    """How many of 20 planted words are found, each in 50 to 100 of 1,000 prompts with odds ratio 4;
    and how many other entries.
    """
    refused = random.random(1000) < 0.3
    frequency = 1 / np.arange(5, 2005)
    drawn = random.choice(2000, (1000, 12), p=frequency / frequency.sum())
    prompts = [[f"word{n}" for n in one] for one in drawn]
    weights = np.where(refused, 4, 1) / (1000 + 3 * refused.sum())
    for n in range(20):
        for place in random.choice(1000, random.integers(50, 101), False, weights):
            prompts[place].insert(random.integers(len(prompts[place])), f"planted{n}")
    rows = rows_of(refused, text=[" ".join(one) for one in prompts])
    terms = triggers(rows, BOARD)[0]["triggers"]["term"]
    planted = terms.str.contains("planted")
    return int((planted & ~terms.str.contains(" ")).sum()), int((~planted).sum())


def cases() -> Iterator[tuple[str, Draw]]:
    """All cases; a share of .93 or more is wanted in each."""
    curves = ((0.5, 3.0), (0.5, 10.0), (0.2, 6.0), (0.8, 3.0))
    for seeds, icc in product((20, 60, 260), (0.0, 0.4)):
        of = f"{seeds} x 5, icc {icc}"
        for curve, judges in product(curves, (1, 3)):
            case = (seeds, icc, *curve, judges)
            name = f"{of}, middle {curve[0]}, slope {curve[1]:g}, {judges} judges"
            yield f"AUC: {name}", partial(area, case)
        for rates in ((0.9, 0.1), (0.6, 0.4)):
            yield f"pairs: {of}, refused {rates}", partial(pair, seeds, icc, *rates)


def coverage(name: str, draw: Draw, draws: int) -> float:
    """The share of the intervals that cover; the same each time."""
    random = np.random.default_rng(list(name.encode()))
    return float(np.nanmean([draw(random) for _ in range(draws)]))
