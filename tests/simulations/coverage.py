"""How often intervals cover and tests err, on made data whose truth is known.

    python tests/simulations/coverage.py --draws 2000

Prints the worst cell of each group beside what is wanted. Random seeds are fixed: the same number
of draws gives the same table. Nothing is read and nothing is sent.
"""

import argparse
import sys
from functools import partial
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.simulated_rates import CONTRADICTION, WANTED, beyond, cells, measured

CELLS = cells()
SLACK = 0.01  # two Monte Carlo standard errors in 2,000 draws


def shares_of(number: int, draws: int) -> list[tuple[str, float]]:
    """What `measured` finds in a cell, by its number; with ten times as many draws if that is not
    as wanted, since the worst of many cells is so by chance, too.
    """
    found = measured(CELLS[number], draws)
    if any(beyond(group, share) > 0 for group, share in found):
        found = measured(CELLS[number], 10 * draws)
    return found


def main(draws: int) -> None:
    """Print the table: for each group the worst cell."""
    found = dict[str, list[tuple[float, str]]]()
    with get_context("fork").Pool() as pool:  # which hands over the cells
        every = pool.map(partial(shares_of, draws=draws), range(len(CELLS)), chunksize=1)
    for cell, measures in zip(CELLS, every, strict=True):
        for group, share in measures:
            found.setdefault(group, []).append((share, cell.name))
    print(f"{'group':<40}{'cells':>6}  {'wanted':<13}{'worst':>8}  in the cell")
    for group, shares in found.items():
        off, worst, name = max((beyond(group, share), share, name) for share, name in shares)
        wanted = "{:g} to {:g}".format(*WANTED[group])
        wanted = wanted.replace("-inf to", "at most").replace(" to inf", " or more")
        slack = 0 if group == CONTRADICTION else SLACK
        missed = "  MISSED" if off > slack else ""
        print(f"{group:<40}{len(shares):>6}  {wanted:<13}{worst:>8.3f}  {name}{missed}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="of each cell (default: 2000)")
    main(parser.parse_args().draws)
