"""What a hit costs: the search against the plain chain, in a simulated world over HTTP.

    python tests/benchmark/search.py --correlation 0.5 --searches 5

Prompts are harmless stand-ins with hidden traits: how alarming one sounds, to everybody and to each
family of targets, and how harmful it is. A rewrite inherits its parent's traits with --correlation;
each operator shifts them a little. Targets refuse what sounds alarming; judges, who err at times,
call toxic what is harmful. The plain chain runs stages 2, 3 and 4 on the same seeds.
"""

import argparse
import csv
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.server import Body, Server, prompt_of  # noqa: E402

TARGETS = ("gpt-4-x", "qwen-x", "llama-3-x")
JUDGES = ("judge-a", "judge-b", "judge-c")
SYLLABLES = "ba co di fu ge ha jo ki lu me no pa ri so tu va we xi yo zu".split()  # noqa: SIM905
PROMPT = re.compile(r"stand-in [^\]\n]*\?")
traits_of: dict[str, list[float]] = {}  # prompt -> alarm, alarm to each target, harm


class World(NamedTuple):
    """refuses, toxic: thresholds in standard deviations of a trait."""

    correlation: float = 0.7
    refuses: float = 1.85
    toxic: float = 0.35
    shared: float = 0.9  # of what sounds alarming, between the families
    operators: float = 0.2  # how much the operators differ

    def refused(self, prompt: str, target: str) -> bool:
        alarm, *own, _ = traits_of[prompt]
        mine = (1 - self.shared**2) ** 0.5 * own[TARGETS.index(target)]
        return bool(self.shared * alarm + mine > self.refuses)

    def is_toxic(self, prompt: str, judge: str = "") -> bool:
        """In truth, or to a judge."""
        alarm, *_, harm = traits_of[prompt]
        error = 0.2 * normal(prompt + judge) if judge else 0.0
        return bool(0.5 * alarm + 0.75**0.5 * harm + error > self.toxic)

    def reply(self, body: Body, seen: int) -> str:
        """What each of the models says."""
        text, model = prompt_of(body), body["model"]
        prompt = PROMPT.findall(text)[0]
        if model in TARGETS:
            refuses = self.refused(prompt, model)
            return "I'm sorry, but I can't help with that." if refuses else "First fold it in half."
        if model in JUDGES:
            return f"So. [[{'harmful' if self.is_toxic(prompt, model) else 'none of the above'}]]"
        number = int(re.findall(r"(?:into|Write) (\d+)", text)[0])
        operator = "".join(re.findall("How to vary it: (.*)", text))
        return "\n".join(f"[[{self.child(prompt, operator, n)}]]" for n in range(number))

    def child(self, parent: str, operator: str, n: int) -> str:
        shifts = [self.operators * normal(f"{operator} {i}") if operator else 0.0 for i in range(5)]
        new = (1 - self.correlation**2) ** 0.5
        key = f"{parent} {operator} {n}"
        pairs = enumerate(zip(traits_of[parent], shifts, strict=True))
        traits = [self.correlation * t + s + new * normal(f"{key} {i}") for i, (t, s) in pairs]
        return stand_in(key, traits)


def normal(key: str) -> float:
    return random.Random(key).gauss(0, 1)


def stand_in(key: str, traits: list[float]) -> str:
    """A harmless text that is like no other, with these traits."""
    text = f"stand-in {''.join(random.Random(key).choices(SYLLABLES, k=40))}?"
    traits_of[text] = traits
    return text


def seeds_file(folder: Path, number: int) -> Path:
    """Seeds with traits of their own."""
    keys = [f"seed {n}" for n in range(number)]
    texts = [stand_in(key, [normal(f"{key} {i}") for i in range(5)]) for key in keys]
    return prompts_file(folder / "seeds.csv", texts)


def prompts_file(path: Path, texts: list[str]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("prompt", "category"), *((text, "harmful") for text in texts)])
    return path


def run(script: str, server: Server, output: Path, *flags: str | Path) -> list[dict[str, str]]:
    env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.url}
    command = [sys.executable, str(ROOT / script), *map(str, flags), f"--output_path={output}"]
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    with output.open(newline="") as file:
        return list(csv.DictReader(file))


def plain(world: World, server: Server, folder: Path, seeds: Path) -> float:
    """Requests per true hit of the plain chain."""
    flags = ("--model=rewriter", f"--toxic_seed_path={seeds}")
    run("rewritter/mixtral_rewrite_only.py", server, folder / "r.csv", *flags)
    flags = (f"--moderator_model={','.join(JUDGES)}", f"--input_file_path={folder / 'r.csv'}")
    judged = run("moderator/moderate_only.py", server, folder / "j.csv", *flags)
    safe = [row["prompt"] for row in judged if row["is_toxic"] == "False"]
    path = prompts_file(folder / "safe.csv", safe)
    for target in TARGETS:
        flags = (f"--model={target}", f"--input_file={path}")
        run(
            "alignment_checker/gpt3_4_alignment_checker.py",
            server,
            folder / f"{target}.csv",
            *flags,
        )
    refused = [text for text in safe if any(world.refused(text, target) for target in TARGETS)]
    return len(server.requests) / sum(not world.is_toxic(text) for text in refused)


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
        seeds = seeds_file(folder, 800)
        print(world, f"plain chain: {plain(world, server, folder, seeds):.0f} requests a true hit")
        for n in range(searches):
            before = len(server.requests)
            flags = (f"--seeds={seeds}", *names, f"--random_seed={n}")
            rows = run("rewritter/evolve_prompts.py", server, folder / f"{n}.csv", *flags)
            true = sum(not world.is_toxic(row["prompt"]) for row in rows)
            each = (len(server.requests) - before) / true
            by_seed = Counter(row["toxic_seed"] for row in rows)
            most = max(by_seed.values()) / len(rows)
            print(f"{each:.1f} a true hit, {true} from {len(by_seed)} seeds, {most:.1%} from one")


if __name__ == "__main__":
    main()
