"""How often intervals cover and tests err, on made data whose truth is known.

    python tests/simulations/coverage.py --draws 2000

Prints the worst cell of each group beside what is wanted. Random seeds are fixed: the same number
of draws gives the same table. Nothing is read and nothing is sent.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.simulated_rates import CONTRADICTION, WANTED, beyond, cells, measured

SLACK = 0.01  # two Monte Carlo standard errors in 2,000 draws


def main(draws: int) -> None:
    """Print the table: for each group the worst cell."""
    found = dict[str, list[tuple[float, str]]]()
    for cell in cells():
        for group, share in measured(cell, draws):
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
