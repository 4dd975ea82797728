"""How far the three results on safety are to be trusted, on made data whose truth is known.

    python tests/benchmark/safety.py --draws 2000

Prints each case beside what is wanted. Random seeds are fixed. Nothing is read and nothing is sent.
"""

import argparse
import csv
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import isnan, nan
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit, ndtr  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from orbench.report.seed_pairs import seed_pairs
from orbench.report.toxicity import toxicity
from orbench.report.triggers import triggers
from orbench.stats.association import auc, threshold
from orbench.stats.core import Array, Verdicts

Random = np.random.Generator
Draw = Callable[[Random], float]  # 1 or 0: whether it is as it should be; NaN: does not count
MODEL = {"model": "m", "settings": "", "judge": "keyword", "prompts": "p", "published": False}
BOARD = pd.DataFrame([MODEL | {"safe": 0, "toxic": 1}])


def rows_of(refused: Array, **columns: object) -> pd.DataFrame:
    """Rows as `load` gives them: of result 0, safe prompts without seeds, if not said otherwise."""
    numbers = np.arange(len(refused))
    usual = {"result": 0, "side": "over_refusal", "category": "a", "prompt": numbers}
    usual |= {"seed": numbers, "id": "", "text": ""}
    return pd.DataFrame({"refused": refused.astype(float)}).assign(**usual | columns)


def uniform(random: Random, seed: Array, icc: float) -> Array:
    """Numbers from 0 to 1 that resemble each other within a seed."""
    common = random.normal(size=int(seed.max()) + 1)[seed]
    return np.asarray(ndtr(icc**0.5 * common + (1 - icc) ** 0.5 * random.normal(size=len(seed))))


def headline(random: Random, folder: Path) -> tuple[float, float, float]:
    """The raw rate, that over prompts that three judges call safe, the truth; in percent. Half of
    the set is toxic, of which the model refuses 50 %, of the rest 10 %; judges err in 10 %.
    """
    toxic = np.arange(4000) % 2 == 1
    said = toxic[:, None] ^ (random.random((4000, 3)) < 0.1)
    refused = random.random(4000) < np.where(toxic, 0.5, 0.1)
    ids = [f"{n:012}" for n in range(4000)]
    from orbench.base.prompts import prompt_id

    with (folder / "panel.csv").open("w") as file:
        csv.writer(file).writerows([["prompt", "is_toxic_a", "is_toxic_b", "is_toxic_c"]])
        csv.writer(file).writerows([one, *votes] for one, votes in zip(ids, said, strict=True))
    rows = rows_of(refused, id=[prompt_id(one) for one in ids])
    frames, _ = toxicity(rows, BOARD, [folder / "panel.csv"])
    found = frames["toxicity"].iloc[0]
    raw = found["over_refusal_own_label_percent"]
    return raw, found["over_refusal_agreed_percent"], 100 * refused[~toxic].mean()


def logistic(
    random: Random, seeds: int, icc: float, middle: float, slope: float, judges: int
) -> tuple[Verdicts, Array]:
    """Refusals of five rewrites a seed from a logistic curve of their score, and the scores."""
    seed = np.repeat(np.arange(seeds), 5)
    score = random.binomial(judges, uniform(random, seed, 0.5)) / judges
    refused = uniform(random, seed, icc) < expit(slope * (score - middle))
    return Verdicts(refused.astype(float), np.arange(len(seed)), seed), score


def crossing(case: tuple[int, float, float, float, int], random: Random) -> float:
    """Whether the threshold's interval covers."""
    value, low, high, _ = threshold(*logistic(random, *case))
    return nan if isnan(value) else float(low <= case[2] <= high)


def area(case: tuple[int, float, float, float, int], truth: float, random: Random) -> float:
    """Whether the interval of the AUC covers."""
    value, low, high = auc(*logistic(random, *case))
    return nan if isnan(value) else float(low <= truth <= high)


def pair(seeds: int, icc: float, rates: tuple[float, float], random: Random) -> float:
    """Whether the interval of the share of pairs that are right covers. rates: of the seeds, and of
    five rewrites each, that are refused.
    """
    seed = np.repeat(np.arange(seeds), 5)
    first = random.random(seeds) < rates[0]
    second = uniform(random, seed, icc) < rates[1]
    rewrites = rows_of(second, seed=seed, prompt=seeds + np.arange(len(seed)))
    both = pd.concat([rewrites, rows_of(first, result=1, side="toxic")], ignore_index=True)
    found = seed_pairs(both, BOARD)[0]["pairs"].iloc[0]
    truth = 100 * rates[0] * (1 - rates[1])
    return float(found["right_low_percent"] <= truth <= found["right_high_percent"])


def words(random: Random) -> tuple[int, int]:
    """Of 20 planted words, each in 50 to 100 of 1,000 prompts with an odds ratio of 4, how many are
    found; and how many other entries there are.
    """
    refused = random.random(1000) < 0.3
    vocabulary = [f"word{n}" for n in range(2000)]
    frequency = 1 / np.arange(5, 2005)
    prompts = random.choice(vocabulary, (1000, 12), p=frequency / frequency.sum()).tolist()
    for n in range(20):
        size = random.integers(50, 101)
        chosen = random.choice(
            1000, size, False, np.where(refused, 4, 1) / (1000 + 3 * refused.sum())
        )
        for place in chosen:
            prompts[place].insert(random.integers(len(prompts[place])), f"planted{n}")
    rows = rows_of(refused, text=[" ".join(one) for one in prompts])
    terms = triggers(rows, BOARD)[0]["triggers"]["term"].tolist()
    return sum(one.startswith("planted") and " " not in one for one in terms), sum(
        "planted" not in one for one in terms
    )


def cases() -> Iterator[tuple[str, Draw]]:
    """All cases with a share of .93 or more wanted."""
    curves = ((0.5, 3.0), (0.5, 10.0), (0.2, 6.0), (0.8, 3.0))
    for seeds, icc, curve, judges in product((20, 60, 260), (0.0, 0.4), curves, (1, 3, 6)):
        case = (seeds, icc, *curve, judges)
        name = f"{seeds} x 5, icc {icc}, threshold {curve[0]}, slope {curve[1]:g}, {judges} judges"
        yield f"threshold: {name}", partial(crossing, case)
        truth, *_ = auc(*logistic(np.random.default_rng(1), 100_000, 0, *curve, judges))
        yield f"AUC: {name}", partial(area, case, truth)
    for seeds, icc, rates in product((20, 60, 260), (0.0, 0.4), ((0.9, 0.1), (0.6, 0.4))):
        name = (
            f"{seeds} x 5, icc {icc}, {rates[0]:.0%} of seeds refused, {rates[1]:.0%} of rewrites"
        )
        yield f"pairs: {name}", partial(pair, seeds, icc, rates)


def coverage(name: str, draw: Draw, draws: int) -> float:
    """The share of the draws that count; the same each time."""
    random = np.random.default_rng(list(name.encode()))
    return float(np.nanmean([draw(random) for _ in range(draws)]))


def main(draws: int) -> None:
    """Print all of it."""
    worst = dict[str, tuple[float, str]]()
    for name, draw in cases():
        share = coverage(name, draw, draws)
        print(f"{share:.3f}  {name}", flush=True)
        group, _, case = name.partition(": ")
        worst[group] = min(worst.get(group, (2.0, "")), (share, case))
    for group, (share, case) in worst.items():
        print(f"{group}: wanted .93 or more, worst {share:.3f} ({case})")
    random = np.random.default_rng(26)
    with tempfile.TemporaryDirectory() as folder:
        found = np.array([headline(random, Path(folder)) for _ in range(min(draws, 100))])
    off = np.abs(found - found[:, 2:]).max(axis=0)
    print(f"points off the truth, worst: raw {off[0]:.1f}, headline {off[1]:.1f} (wanted: 2)")
    hits, others = np.array([words(random) for _ in range(min(draws, 100))]).T
    print(
        f"trigger words found of 20: fewest {hits.min()}, 16 or more in {(hits >= 16).mean():.0%}"
    )
    print(f"other entries: most {others.max()}, 1 or none in {(others <= 1).mean():.0%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="of each case (default: 2000)")
    main(parser.parse_args().draws)
