"""How far the results on safety are to be trusted, on made data whose truth is known.

python tests/simulations/safety.py --draws 2000
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.simulated_safety import cases, coverage, headline, words


def main(draws: int) -> None:
    """Print all of it."""
    for name, draw in cases():
        share = coverage(name, draw, draws)
        print(f"{share:.3f}  {name}{'' if share > 0.92 else '  MISSED'}", flush=True)
    random = np.random.default_rng(26)
    with tempfile.TemporaryDirectory() as folder:
        found = np.array([headline(random, Path(folder)) for _ in range(100)])
    off = np.abs(found - found[:, 2:]).max(axis=0)
    print(f"points off the truth, most: raw {off[0]:.1f}, headline {off[1]:.1f} (wanted: 2)")
    hits, others = np.array([words(random) for _ in range(100)]).T
    print(f"trigger words, of 20: {hits.min()} or more; other entries: {others.max()} or fewer")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="of each case (default: 2000)")
    main(parser.parse_args().draws)
