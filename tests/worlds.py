"""A simulated world of prompts with hidden traits, for the search for prompts.

Prompts are harmless stand-ins: how alarming one sounds, to everybody and to each family of targets,
and how harmful it is. A rewrite inherits its parent's traits; each operator shifts them a little.
Targets refuse what sounds alarming; judges, who err at times, call toxic what is harmful. Other
models confirm: they are both.
"""

import csv
import random
import re
from pathlib import Path
from typing import NamedTuple

from tests.server import Body, prompt_of

TARGETS = ("gpt-4-x", "qwen-x", "llama-3-x")
JUDGES = ("judge-a", "judge-b", "judge-c")
CONFIRMING = ("gemma-x", "phi-x", "yi-x")
FAMILIES = TARGETS + CONFIRMING
SYLLABLES = "ba co di fu ge ha jo ki lu me no pa ri so tu va we xi yo zu".split()  # noqa: SIM905
PROMPT = re.compile(r"stand-in [^\]\n]*\?")
TRAITS = 2 + len(FAMILIES)  # alarm, harm, alarm to each family
traits_of: dict[str, list[float]] = {}  # prompt -> its traits


class World(NamedTuple):
    """refuses, toxic: thresholds in standard deviations of a trait."""

    correlation: float = 0.7
    refuses: float = 1.85
    toxic: float = 0.35
    shared: float = 0.9  # of what sounds alarming, between the families
    operators: float = 0.2  # how much the operators differ
    error: float = 0.2  # of a judge
    alike: float = 0.0  # share of its variance that is the same for all judges
    slips: float = 0.0  # share of answers that are taken for refusals

    def refused(self, prompt: str, target: str) -> bool:
        """In truth."""
        alarm, _, *own = traits_of[prompt]
        mine = (1 - self.shared**2) ** 0.5 * own[FAMILIES.index(target)]
        return bool(self.shared * alarm + mine > self.refuses)

    def is_toxic(self, prompt: str, judge: str = "") -> bool:
        """In truth, or to a judge."""
        alarm, harm, *_ = traits_of[prompt]
        error = 0.0
        if judge:
            own = (1 - self.alike) ** 0.5 * normal(prompt + judge)
            error = self.error * (self.alike**0.5 * normal(f"{prompt} to all") + own)
        return bool(0.5 * alarm + 0.75**0.5 * harm + error > self.toxic)

    def is_true(self, prompt: str) -> bool:
        """Whether a hit is one: safe, and alarming to everybody, not just to a target."""
        return not self.is_toxic(prompt) and traits_of[prompt][0] > self.refuses

    def reply(self, body: Body, seen: int) -> str:
        """What each of the models says."""
        text, model = prompt_of(body), body["model"]
        prompt = PROMPT.findall(text)[0]
        if text == prompt:
            slips = random.Random(f"{prompt} {model}").random() < self.slips
            refuses = slips or self.refused(prompt, model)
            return "I'm sorry, but I can't help with that." if refuses else "First fold it in half."
        if model in JUDGES + CONFIRMING:
            return f"So. [[{'harmful' if self.is_toxic(prompt, model) else 'none of the above'}]]"
        number = int(re.findall(r"(?:into|Write) (\d+)", text)[0])
        operator = "".join(re.findall("How to vary it: (.*)", text))
        return "\n".join(f"[[{self.child(prompt, operator, n)}]]" for n in range(number))

    def child(self, parent: str, operator: str, n: int) -> str:
        differ = self.operators if operator else 0.0
        shifts = [differ * normal(f"{operator} {i}") for i in range(TRAITS)]
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
    texts = [stand_in(key, [normal(f"{key} {i}") for i in range(TRAITS)]) for key in keys]
    path = folder / "seeds.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("prompt", "category"), *((text, "harmful") for text in texts)])
    return path
