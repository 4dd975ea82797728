"""Stage 1: make toxic seed prompts of one category.

    python generate_toxic_promt_from_category.py --category=harmful

A seed is a short request that a model should refuse, never an answer. Each request asks the model
for 20 seeds, until there are enough different ones.

Writes ./{category}_prompts.csv with the columns: prompt, category
"""

import argparse
import sys
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.asking.models import generator
from orbench.asking.requests import Answer, Missing, Request, user
from orbench.base.messages import UserError, counted, did_you_mean, run_script, say
from orbench.base.records import NOT_ASKED, read_record
from orbench.base.tables import Table, file_name_part, storable
from orbench.base.words import CATEGORIES, CATEGORY_NAMES, Option, Row
from orbench.stages import flags
from orbench.stages.engine import run_stage
from orbench.stages.generators import Given, dropped_lines, prompts_in, same
from orbench.stages.stage import Stage
from orbench.stages.templates import fill, prompt_template

PROMPTS_A_REQUEST = 20  # the paper's; asking for 50 at once lowers their quality
SEEDS_MAX_TOKENS = 4000  # 20 prompts are some 800; the rest is for models that think first
ADJECTIVES = {"hate": "hateful"}  # where the prompt's "is {category}" needs one; the paper's
GIVE_UP_AFTER = 20  # requests in a row that bring nothing new
FIRST_WAVE = 20  # requests, before it is known that the model gives prompts at all


class SeedGenerator(Stage):
    """Stage 1. Its table holds nothing but the numbers of its requests, and grows."""

    name = "toxic_prompt_generator"
    panel = True  # a request that failed is made up for by others
    grows = True

    def __init__(self, args: argparse.Namespace) -> None:
        name = args.category
        self.category = category_named(name) or Option(name, f"is {name}.")
        self.wanted = args.num_toxic_prompts
        model = flags.model_of(args.model or generator(), args)
        if not args.model:
            say(f"no --model given; using {model.provider}/{model.id}")
        name = self.category.name
        table = Table(Path(), ["request"], [])
        default = Path(f"{file_name_part(name)}_prompts.csv")
        super().__init__(args, table, [model], default, ["prompt", "category"])
        self.prompt_file, template = prompt_template(__file__)
        category = {"definition": self.category.definition, "category": ADJECTIVES.get(name, name)}
        self.text = fill(template, {"number": str(PROMPTS_A_REQUEST), **category})
        self.sent = flags.parameters_of(args, model)
        self.parameters = {**self.sent, "category": name}
        first = ceil(self.wanted / PROMPTS_A_REQUEST)
        least = f"{counted(first, 'request')} or more"
        say(f"{counted(self.wanted, 'prompt')} (--num_toxic_prompts): {least}")
        self.add_requests(first if args.dry_run else min(first, FIRST_WAVE))
        self.start_over()
        record = read_record(self.output)
        before = record.get("counts", {}).get("written", 0)
        kept = self.output.exists() and not args.overwrite
        # Others have made up for requests that failed; new answers would replace prompts in use.
        self.finished = kept and before == self.wanted and record.get("complete") is True
        if kept and before > self.wanted:
            there = f"{self.output} holds {before:,} prompts, more than --num_toxic_prompts"
            raise UserError(f"{there}; choose another --output_path or pass --overwrite")

    def start_over(self) -> None:
        """Forget what came of the requests so far: all are read again."""
        self.seen: set[str] = set()
        self.refused = self.failed = self.dropped = self.copies = 0

    def add_requests(self, number: int) -> None:
        """Plan so many more requests."""
        before = len(self.table.rows)
        self.table.rows += [{"request": str(before + n)} for n in range(number)]
        self.last_wave = number

    def requests(self, row: Row) -> list[Request]:
        return [Request(self.models[0], [user(self.text)], self.sent, int(row["request"]))]

    def read(self, request: Request, answer: Answer) -> Given:
        return prompts_in(answer, self.text)

    def rows(self, row: Row, readings: list[Any]) -> list[Row]:
        """The prompts in a reply that are new."""
        (reply,) = readings
        if isinstance(reply, Missing):
            self.failed += 1
            return []
        self.refused += reply.refused
        self.dropped += reply.dropped
        self.copies += reply.copies
        new = []
        for prompt in map(storable, reply.prompts):
            if same(prompt) not in self.seen and len(self.seen) < self.wanted:
                self.seen.add(same(prompt))
                new.append({"prompt": prompt, "category": self.category.name})
        return new

    def more(self, outcomes: Sequence[list[Row] | Missing]) -> bool:
        """Plan another wave, unless there are enough prompts or it is no use."""
        missing = self.wanted - len(self.seen)
        self.start_over()
        brought = [0 if isinstance(one, Missing) else len(one) for one in outcomes]
        idle = next((n for n, new in enumerate(reversed(brought)) if new), len(brought))
        not_asked = any(isinstance(one, Missing) and one.kind == NOT_ASKED for one in outcomes)
        if missing <= 0 or not_asked:
            return False
        if idle >= GIVE_UP_AFTER:
            say(f"giving up: {idle} requests in a row produced no new prompt")
            return False
        # As many as the last wave lets expect and a fifth more, but at most twice the last wave.
        a_request = sum(brought[-self.last_wave :]) / self.last_wave
        expected = missing / a_request if a_request else GIVE_UP_AFTER - idle
        self.add_requests(min(ceil(1.2 * expected), max(2 * self.last_wave, FIRST_WAVE)))
        return True

    def summary(self) -> list[str]:
        requests = counted(len(self.table.rows), "request")
        lines = dropped_lines(self.dropped, self.copies)
        lines += [(self.refused, f"refused {self.refused} of {requests}; try another --model")]
        lines += [(self.failed, f"{counted(self.failed, 'request')} failed; others made up for it")]
        return [f"{self.models[0].id}: {line}" for number, line in lines if number]


def category_named(name: str) -> Option | None:
    """One of the ten, in any spelling of its name; None for any other word."""
    folded = name.strip().lower().replace("_", "-").replace(" ", "-")
    return next((one for one in CATEGORIES if one.name == folded), None)


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    if not (category_named(args.category) or args.new_category):
        meant = did_you_mean(args.category.lower(), CATEGORY_NAMES)
        listed = f"is not one of the ten categories ({', '.join(CATEGORY_NAMES)})"
        parser().error(f"{args.category!r} {listed}; --new_category adds a new one{meant}")
    stage = SeedGenerator(args)
    status = run_stage(stage)
    if status == 0 and stage.seen and len(stage.seen) < stage.wanted:
        say(f"{counted(len(stage.seen), 'prompt')} of the {stage.wanted:,} wanted")
        return 3
    return status


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    add = parser.add_argument
    meaning = f"one of {', '.join(CATEGORY_NAMES)}"
    add("--category", required=True, type=flags.given, help=meaning)
    add("--new_category", action="store_true", help="allow a --category that is not one of the ten")
    number = flags.whole_number(1)
    meaning = "number of different prompts (default %(default)s)"
    add("--num_toxic_prompts", type=number, default=2000, help=meaning)
    flags.add_output_flags(parser, "./{category}_prompts.csv")
    meaning = "a model or alias (default: Mixtral if its key is set, else a current OpenAI model)"
    add("--model", help=meaning)
    flags.add_model_flags(parser, temperature_=1.0, max_tokens=SEEDS_MAX_TOKENS)
    flags.add_run_flags(parser, limit=False)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
