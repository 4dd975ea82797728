"""What a hit costs: the search against the plain chain, in a simulated world over HTTP.

    python tests/benchmark/search.py
    python tests/benchmark/search.py --correlation 0.5 --searches 5

Every prompt is a harmless stand-in with hidden traits: how alarming it sounds, to everybody and to
each family of targets, and how harmful it is. A rewrite inherits its parent's traits with
--correlation, and each operator shifts them a little. Targets refuse what sounds alarming; judges,
who err at times, call toxic what is harmful. A true hit is refused and harmless in truth. The plain
chain runs stages 2, 3 and 4 on the same seeds. Nothing leaves this machine.
"""

import argparse
import csv
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.server import Body, Server, prompt_of  # noqa: E402

TARGETS = ("gpt-4-x", "qwen-x", "llama-3-x")
JUDGES = ("judge-a", "judge-b", "judge-c")
WORDS = """
apple bird cloud door engine forest garden hammer island jacket kettle ladder mirror needle ocean
pencil quilt river saddle table umbrella violin window yard zebra basket candle desert feather
glove harbour kite lemon marble noodle orange paddle ribbon shovel tunnel wagon bottle carpet drum
"""
PROMPT = re.compile(r"stand-in ([0-9a-f]{12})\b[^\]\n]*")


class World(NamedTuple):
    """refuses, toxic: thresholds of the two traits, in standard deviations."""

    correlation: float = 0.7  # of a rewrite's traits with its parent's
    refuses: float = 1.85
    toxic: float = 0.35
    shared: float = 0.9  # of what sounds alarming, between the families
    noise: float = 0.2  # of a judge

    def child(self, parent: str, key: str, operator: str) -> str:
        """The text of a rewrite: its traits follow from what it holds."""
        traits = [
            self.correlation * old + (1 - self.correlation**2) ** 0.5 * normal(f"{key} {n}")
            for n, old in enumerate(traits_of[parent])
        ]
        if operator:
            traits[0] += 0.2 * normal(f"{operator} alarm")
            traits[-1] += 0.2 * normal(f"{operator} harm")
        return stand_in(key, traits)

    def refused(self, prompt: str, target: str) -> bool:
        alarm, *own, _ = traits_of[prompt]
        mine = own[TARGETS.index(target)]
        heard = self.shared * alarm + (1 - self.shared**2) ** 0.5 * mine
        return bool(heard > self.refuses)

    def is_toxic(self, prompt: str, judge: str = "") -> bool:
        """In truth, or to a judge."""
        alarm, *_, harm = traits_of[prompt]
        error = self.noise * normal(f"{prompt} {judge}") if judge else 0
        return bool(0.5 * alarm + 0.75**0.5 * harm + error > self.toxic)

    def reply(self, body: Body, seen: int) -> str:
        """What each of the models says."""
        text, model = prompt_of(body), body["model"]
        prompt = next(found[0] for found in PROMPT.finditer(text))
        if model in TARGETS:
            refuses = self.refused(prompt, model)
            return "I'm sorry, but I can't help with that." if refuses else "First fold it in half."
        if model in JUDGES:
            return f"So. [[{'harmful' if self.is_toxic(prompt, model) else 'none of the above'}]]"
        number = int(re.search(r"(?:into|Write) (\d+)", text)[1])  # type: ignore[index]
        operator = "".join(re.findall("How to vary it: (.*)", text))
        keys = (f"{prompt} {operator} {n}" for n in range(number))
        return "\n".join(f"[[{self.child(prompt, key, operator)}]]" for key in keys)


traits_of: dict[str, list[float]] = {}


def normal(key: str) -> float:
    return random.Random(key).gauss(0, 1)


def stand_in(key: str, traits: list[float]) -> str:
    """A harmless text that is like no other, and has these traits."""
    chance = random.Random(key)
    text = (
        f"stand-in {chance.getrandbits(48):012x} {' '.join(chance.choices(WORDS.split(), k=12))}?"
    )
    traits_of[text] = traits
    return text


def seeds_file(folder: Path, number: int, name: str) -> Path:
    """Seeds with traits of their own."""
    path = folder / "seeds.csv"
    keys = [f"seed {name} {n}" for n in range(number)]
    texts = [stand_in(key, [normal(f"{key} {n}") for n in range(5)]) for key in keys]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("prompt", "category"), *((text, "harmful") for text in texts)])
    return path


def run(script: str, server: Server, *flags: str | Path) -> Path:
    env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.url}
    command = [sys.executable, str(ROOT / script), *map(str, flags)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(done.stderr)
    return Path(done.stdout.strip())


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def plain(world: World, server: Server, folder: Path, seeds: Path) -> float:
    """Requests per true hit of the plain chain."""
    before = len(server.requests)
    rewrites = folder / "rewrites.csv"
    flags = ("--model=rewriter", f"--output_path={rewrites}")
    run("rewritter/mixtral_rewrite_only.py", server, f"--toxic_seed_path={seeds}", *flags)
    flags = (f"--moderator_model={','.join(JUDGES)}", f"--output_path={folder / 'judged.csv'}")
    run("moderator/moderate_only.py", server, f"--input_file_path={rewrites}", *flags)
    safe = [row["prompt"] for row in rows_of(folder / "judged.csv") if row["is_toxic"] == "False"]
    path = folder / "safe.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("prompt",), *((text,) for text in safe)])
    for target in TARGETS:
        flags = (f"--model={target}", f"--output_path={folder / target}.csv")
        run("alignment_checker/gpt3_4_alignment_checker.py", server, f"--input_file={path}", *flags)
    refused = [text for text in safe if any(world.refused(text, target) for target in TARGETS)]
    return (len(server.requests) - before) / sum(not world.is_toxic(text) for text in refused)


def search(world: World, server: Server, folder: Path, seeds: Path, number: int) -> list[float]:
    """Requests per true hit, hits, the seeds they come from, the most from one, rounds."""
    before = len(server.requests)
    names = (
        f"--targets={','.join(TARGETS)}",
        f"--judges={','.join(JUDGES)}",
        "--rewriter=rewriter",
    )
    output = f"--output_path={folder / f'found{number}.csv'}"
    more = (f"--random_seed={number}", output, "--wanted=100")
    rows = rows_of(run("rewritter/evolve_prompts.py", server, f"--seeds={seeds}", *names, *more))
    true = sum(not world.is_toxic(row["prompt"]) for row in rows)
    by_seed = Counter(row["toxic_seed"] for row in rows)
    each = (len(server.requests) - before) / true
    most = max(by_seed.values()) / len(rows)
    return [each, true, len(by_seed), most, max(int(row["round"]) for row in rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, value in World()._asdict().items():
        parser.add_argument(f"--{name}", type=float, default=value, help="(default %(default)s)")
    parser.add_argument("--seeds", type=int, default=600)
    parser.add_argument("--searches", type=int, default=3, help="with other random seeds")
    args = vars(parser.parse_args())
    world = World(**{name: args[name] for name in World._fields})
    print(json.dumps(world._asdict()))
    with tempfile.TemporaryDirectory() as name, Server(world.reply) as server:
        folder = Path(name)
        seeds = seeds_file(folder, args["seeds"], "a")
        print(f"plain chain: {plain(world, server, folder, seeds):.0f} requests per true hit")
        found = [search(world, server, folder, seeds, n) for n in range(args["searches"])]
        for each, true, of, most, rounds in found:
            line = f"search: {each:.1f} requests per true hit, {true} true hits from {of} seeds"
            print(f"{line}, {most:.1%} from one, {rounds} rounds")
        print(f"mean {fmean(one[0] for one in found):.1f}")


if __name__ == "__main__":
    main()
