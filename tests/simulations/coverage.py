"""How often intervals cover and tests err, on made data whose truth is known.

    python tests/simulations/coverage.py --draws 2000

Prints the worst cell of each group beside what is wanted; of intervals also the median width,
times that of a normal interval with the error that they have. Random seeds are fixed: the same
number of draws gives the same table. Nothing is read and nothing is sent.
"""

import argparse
import sys
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests import simulated_findings, simulated_rates
from tests.simulated_rates import CONTRADICTION, Group, Measured, measured

CELLS = [*simulated_rates.cells(), *simulated_findings.cells()]
SLACK = 0.01  # two Monte Carlo standard errors in 2,000 draws


def shares_of(number: int, draws: int) -> list[Measured]:
    """What `measured` finds in a cell, by its number; with ten times as many draws if that is not
    as wanted, since the worst of many cells is so by chance, too.
    """
    found = measured(CELLS[number], draws)
    if any(one.group.beyond(one.share) > 0 for one in found):
        found = measured(CELLS[number], 10 * draws)
    return found


def main(draws: int) -> None:
    """Print the table: for each group the worst cell, and how wide intervals are."""
    found = dict[Group, list[tuple[Measured, str]]]()
    with get_context("fork").Pool() as pool:  # which hands over the cells
        every = pool.map(partial(shares_of, draws=draws), range(len(CELLS)), chunksize=1)
    for cell, of_cell in zip(CELLS, every, strict=True):
        for one in of_cell:
            found.setdefault(one.group, []).append((one, cell.name))
    print(f"{'group':<50}{'cells':>6}  {'wanted':<13}{'worst':>8}{'width':>7}  in the cell")
    for group, cells in found.items():
        off, worst, name = max((group.beyond(one.share), one.share, name) for one, name in cells)
        wanted = f"{group.least:g} to {group.most:g}"
        wanted = wanted.replace("-inf to", "at most").replace(" to inf", " or more")
        width = np.median([one.width for one, _ in cells])
        shown = "" if np.isnan(width) else f"{width:.2f}"
        slack = 0 if group == CONTRADICTION else SLACK
        missed = "  MISSED" if off > slack else ""
        print(
            f"{group.name:<50}{len(cells):>6}  {wanted:<13}{worst:>8.3f}{shown:>7}  {name}{missed}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="of each cell (default: 2000)")
    main(parser.parse_args().draws)
