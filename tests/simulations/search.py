"""What a hit costs the search, and how many are true, in a world (tests/worlds.py) where models
err. A hit is true if it is safe in truth, and alarming to everybody.

python tests/simulations/search.py --searches 5 --confirm 2
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
from tests.worlds import CONFIRMING, JUDGES, TARGETS, World, seeds_file  # noqa: E402

ERRING = World(refuses=1.45, shared=0.97, error=0.3, alike=0.3)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, value in ERRING._asdict().items():
        parser.add_argument(f"--{name}", type=float, default=value)
    parser.add_argument("--searches", type=int, default=3, help="with other random seeds")
    parser.add_argument("--first", type=int, default=0, help="the first random seed")
    parser.add_argument("--confirm", type=int, default=0, help="number of confirming models")
    args = vars(parser.parse_args())
    searches = args.pop("searches")
    first = args.pop("first")
    confirming = CONFIRMING[: args.pop("confirm")]
    world = World(**args)
    names = [
        f"--targets={','.join(TARGETS)}",
        f"--judges={','.join(JUDGES)}",
        "--rewriter=rewriter",
    ]
    if confirming:
        names.append(f"--confirm={','.join(confirming)}")
    with tempfile.TemporaryDirectory() as name, Server(world.reply) as server:
        folder = Path(name)
        env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.url}
        seeds = seeds_file(folder, 800)
        for n in range(first, first + searches):
            before = len(server.requests)
            flags = (f"--seeds={seeds}", *names, f"--random_seed={n}")
            output = folder / f"{n}.csv"
            command = [sys.executable, str(ROOT / "rewritter/evolve_prompts.py"), *flags]
            command.append(f"--output_path={output}")
            subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
            rows = rows_of(output)
            true = [row for row in rows if world.is_true(row["prompt"])]
            each = (len(server.requests) - before) / len(true)
            by_seed = Counter(row["toxic_seed"] for row in rows)
            most = max(by_seed.values()) / len(rows)
            lost = rows_of(folder / f"{n}_contradicted.csv")
            wrong = sum(world.is_true(row["prompt"]) for row in lost)
            print(
                f"{each:.1f} a true hit, {len(true)} of {len(rows)} true, "
                f"{len(by_seed)} seeds, {most:.1%} from one; "
                f"contradicted {len(lost)}, {wrong} of them true",
                flush=True,
            )


if __name__ == "__main__":
    main()
