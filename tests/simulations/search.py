"""What a hit costs the search, in the world of tests/worlds.py.

python tests/simulations/search.py --correlation 0.5 --searches 5
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.server import Server  # noqa: E402
from tests.worlds import JUDGES, TARGETS, World, seeds_file  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, value in World()._asdict().items():
        parser.add_argument(f"--{name}", type=float, default=value)
    parser.add_argument("--searches", type=int, default=3, help="with other random seeds")
    args = vars(parser.parse_args())
    searches = args.pop("searches")
    world = World(**args)
    names = (
        f"--targets={','.join(TARGETS)}",
        f"--judges={','.join(JUDGES)}",
        "--rewriter=rewriter",
    )
    with tempfile.TemporaryDirectory() as name, Server(world.reply) as server:
        folder = Path(name)
        env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.url}
        seeds = seeds_file(folder, 800)
        for n in range(searches):
            before = len(server.requests)
            flags = (f"--seeds={seeds}", *names, f"--random_seed={n}")
            output = folder / f"{n}.csv"
            command = [sys.executable, str(ROOT / "rewritter/evolve_prompts.py"), *flags]
            command.append(f"--output_path={output}")
            subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
            with output.open(newline="") as file:
                rows = list(csv.DictReader(file))
            true = sum(not world.is_toxic(row["prompt"]) for row in rows)
            each = (len(server.requests) - before) / true
            by_seed = Counter(row["toxic_seed"] for row in rows)
            most = max(by_seed.values()) / len(rows)
            print(f"{each:.1f} a true hit, {true} from {len(by_seed)} seeds, {most:.1%} from one")


if __name__ == "__main__":
    main()
