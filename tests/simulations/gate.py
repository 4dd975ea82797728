"""How often a gate against a baseline is not met, or undecided, by two runs of one model, and by a
model that is worse.

    python tests/simulations/gate.py --draws 2000
    python tests/simulations/gate.py --gate="not_worse 2"

The model refuses some of 1,319 safe and most of 655 toxic prompts, rewrites of seeds. In each run,
each verdict flips with a probability of 3 %, independently; then rows are left unscored. The gate
is the one of the report. Random seeds are fixed. Nothing is sent; files are written to a temporary
folder.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from orbench.base.records import record_path
from orbench.report import gate, load
from orbench.report.measures import OVERALL
from orbench.report.rates import refusal_rate
from orbench.report.results import Result, Source
from orbench.stats.core import Array
from tests.conftest import write_csv
from tests.results import record_output
from tests.simulated_rates import Random, answered

PROMPTS = {"over_refusal": 1319, "toxic": 655}
FLIPS = 0.03
WANTED = 0.05  # at most
SLACK = 0.01  # two Monte Carlo standard errors in 2,000 draws
SEED_SIZES = (1, 5)  # rewrites of a seed
ICC = 0.3
# Rates on safe and on toxic prompts, by how much the new run is worse, and the unscored share.
CELLS = (
    (0.02, 0.95, 0, 0),
    (0.1, 0.9, 0, 0),
    (0.4, 0.7, 0, 0),
    (0.1, 0.9, 0.02, 0),
    (0.1, 0.9, 0.04, 0),
    (0.02, 0.95, 0, 0.02),
    (0.1, 0.9, 0, 0.02),
    (0.4, 0.7, 0, 0.02),
    (0.1, 0.9, 0.02, 0.02),
    (0.1, 0.9, 0.04, 0.02),
)


def results_of(folder: Path) -> list[Result]:
    """The report's results of both runs; their verdicts are filled in later."""
    sources = []
    for side, run in product(PROMPTS, ("new", "old")):
        path = folder / f"{side}_{run}.csv"
        answers = [[f"{side} {n}", f"{run} {n}", "direct_answer"] for n in range(PROMPTS[side])]
        write_csv(path, ["prompt", "response", "answer_category"], answers)
        about = {"under_test": {"asked": run, "id": run}, "parameters": {"check_model": "judge"}}
        record_path(path).write_text(json.dumps(about))
        record_output(path)
        sources.append(Source(path, "", side))
    results, _ = load.load_results(gate.with_baseline("old", sources))
    return results


def verdicts(
    random: Random, safe: float, toxic: float, worse: float, unscored: float
) -> Iterator[Array]:
    """Seeds, and the verdicts of the new and the old run, of each side."""
    for side, rate, sign in (("over_refusal", safe, 1), ("toxic", toxic, -1)):
        n = PROMPTS[side]
        sizes = random.integers(*SEED_SIZES, n, endpoint=True)
        truth, seed = answered(random, rate, ICC, random.random(n), sizes.tolist())
        truth, seed = truth[:n], seed[:n]
        changed = np.where(truth == (sign < 0), random.random(n) < worse / max(rate, 1 - rate), 0)
        for extra in (changed.astype(bool), np.zeros(n, bool)):
            flipped = random.random(n) < FLIPS
            refused = np.where(random.random(n) < unscored, np.nan, (truth != extra) != flipped)
            yield np.array([seed, refused])


def status(given: str, results: Sequence[Result], random: Random, *cell: float) -> gate.Status:
    """What the gate says of one made data set."""
    rates = []
    for result, (seed, refused) in zip(results, verdicts(random, *cell), strict=True):
        seeds = seed.astype(int) + 10_000 * result.side.is_toxic  # no seed is on both sides
        responses = replace(result.responses, seed=seeds, refused=refused)
        rates.append(refusal_rate(result, responses, OVERALL))
    return max(one.status for one in gate.check([given], rates, []))


def main(given: str, draws: int) -> None:
    """Print the share of draws in which the gate is not met, or undecided, in each cell."""
    with TemporaryDirectory() as folder:
        results = results_of(Path(folder))
    print("safe  toxic  worse by  unscored  not met  undecided")
    for number, cell in enumerate(CELLS):
        random = np.random.default_rng(number)
        found = [status(given, results, random, *cell) for _ in range(draws)]
        not_met = np.mean([one is gate.Status.NOT_MET for one in found])
        undecided = np.mean([one is gate.Status.UNDECIDED for one in found])
        missed = "  MISSED" if not_met > WANTED + SLACK and not cell[2] else ""
        shown = f"{cell[0]:4}  {cell[1]:5}  {cell[2]:8g}  {cell[3]:8g}"
        print(f"{shown}  {not_met:7.3f}  {undecided:9.3f}{missed}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="of each cell (default: 2000)")
    parser.add_argument("--gate", default="worse", help="worse (the default) or 'not_worse POINTS'")
    args = parser.parse_args()
    main(args.gate, args.draws)
