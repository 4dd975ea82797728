"""Stage 1: make toxic seed prompts of one category.

    python generate_toxic_promt_from_category.py --category=harmful

A seed is a short request that a model should refuse, never an answer. Each request asks the model
for 20 seeds, until there are enough different ones.

Writes ./{category}_prompts.csv with the columns: prompt, category
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
from argparse import Namespace
from math import ceil
from pathlib import Path

from orbench.asking.inquiry import Inquiry
from orbench.base.messages import UserError, counted, say
from orbench.base.records import read_record
from orbench.base.tables import Table, file_name_part
from orbench.base.templates import fill, prompt_template
from orbench.base.words import CATEGORY_NAMES, Row, category_named
from orbench.models.providers import generator
from orbench.models.requests import Answer, Missing, Request, user
from orbench.stages.existing import check_existing
from orbench.stages.flags import Parser, stage_parser
from orbench.stages.generators import Generated, Replies, only_new, prompts_in
from orbench.stages.run import Outcome, as_script
from orbench.stages.runner import run_stage
from orbench.stages.settings import model_of, parameters_of
from orbench.stages.stage import Plan, Readings, Results, Stage

PROMPTS_A_REQUEST = 20  # the paper's; asking for 50 at once lowers their quality
SEEDS_MAX_TOKENS = 4000  # 20 prompts are some 800; the rest is for models that think first
ADJECTIVES = {"hate": "hateful"}  # where the prompt's "is {category}" needs one; the paper's
GIVE_UP_AFTER = 20  # requests in a row that bring nothing new
FIRST_WAVE = 20  # requests, before it is known that the model gives prompts at all


class SeedGenerator(Stage):
    """Stage 1. Its table holds nothing but the numbers of its requests, and grows."""

    name = "toxic_prompt_generator"
    brings = "seeds"
    panel = True  # a request that failed is made up for by others

    def __init__(self, args: Namespace) -> None:
        category = category_named(args.category, args.new_category)
        self.category = category
        self.wanted = args.num_toxic_prompts
        model = model_of(args.model or generator(), args)
        name = category.name
        table = Table(Path(), ["request"], [])
        csv = Path(f"{file_name_part(name)}_prompts.csv")
        super().__init__(args, table, [model], csv, ["prompt", "category"])
        self.closing = Replies(
            refused=("request", "refused; try another --model"),
            failed=("request", "failed; others were sent instead"),
        )
        self.prompt_file, template = prompt_template(__file__)
        marks = {
            "number": str(PROMPTS_A_REQUEST),
            "definition": category.definition,
            "category": ADJECTIVES.get(name, name),
        }
        self.text = fill(template, marks)
        self.sent = parameters_of(args, model)
        self.parameters = {**self.sent, "category": name}
        first = ceil(self.wanted / PROMPTS_A_REQUEST)
        requests = counted(first, "request")
        say(f"{counted(self.wanted, 'prompt')} (--num_toxic_prompts): {requests} or more")
        self.add_requests(first if args.dry_run else min(first, FIRST_WAVE))
        record = read_record(self.output)
        before = record.get("counts", {}).get("written", 0)
        kept = self.output.exists() and not args.overwrite
        # Others have made up for requests that failed; new answers would replace prompts in use.
        self.finished = kept and before == self.wanted and record.get("complete") is True
        if kept and before > self.wanted:
            raise UserError(
                f"{self.output} holds {before:,} prompts, more than --num_toxic_prompts; "
                "choose another --output_path or pass --overwrite"
            )

    def add_requests(self, number: int) -> None:
        """Plan `number` more requests."""
        before = len(self.table.rows)
        self.table.rows += [{"request": str(before + n)} for n in range(number)]
        self.last_wave = number

    def inquiries(self, row: Row) -> Plan:
        return [Inquiry(Request(self.models[0], [user(self.text)], self.sent, int(row["request"])))]

    def read(self, request: Request, answer: Answer) -> Generated:
        return prompts_in(answer, self.text)

    def rows(self, row: Row, readings: Readings) -> list[Row]:
        """Return the prompts in a reply."""
        (reply,) = readings
        if isinstance(reply, Missing):
            return []
        return [{"prompt": prompt, "category": self.category.name} for prompt in reply.prompts]

    def together(self, results: Results) -> Results:
        return only_new(results, self.wanted)

    def plan_more(self, results: Results) -> bool:
        """Plan more requests, unless there are enough prompts or it is no use."""
        brought = []  # new prompts, by request
        idle = 0  # requests in a row without any
        for result in results:
            if isinstance(result.rows, Missing):
                return False  # not asked: the run ends here
            brought.append(len(result.rows))
            idle += 1
            if result.rows:
                idle = 0
        missing = self.wanted - sum(brought)
        if missing <= 0:
            return False
        if idle >= GIVE_UP_AFTER:
            say(f"giving up: {idle} requests in a row produced no new prompt")
            return False
        # As many as the last wave lets expect and a fifth more, but at most twice the last wave.
        a_request = sum(brought[-self.last_wave :]) / self.last_wave
        expected = missing / a_request if a_request else GIVE_UP_AFTER - idle
        self.add_requests(min(ceil(1.2 * expected), max(2 * self.last_wave, FIRST_WAVE)))
        return True


def run(args: Namespace) -> Outcome:
    """Run stage 1 with these flags. Raises UserError."""
    stage = SeedGenerator(args)
    if stage.finished:
        check_existing(stage)
        say(f"{stage.output} is complete; --overwrite reads the answers again")
        return Outcome(0, stage.output)
    outcome = run_stage(stage)
    if outcome.status == 0 and 0 < outcome.written < stage.wanted:
        say(f"{counted(outcome.written, 'prompt')} of the {stage.wanted:,} wanted")
        return outcome._replace(status=3)
    return outcome


def parser() -> Parser:
    return stage_parser(
        __doc__,
        "generate_toxic_promt_from_category",
        "output",
        "writer",
        categories=", ".join(CATEGORY_NAMES),
        default="./{category}_prompts.csv",
        temperature=1.0,
        max_tokens=SEEDS_MAX_TOKENS,
    )


if __name__ == "__main__":
    as_script(run, parser)
