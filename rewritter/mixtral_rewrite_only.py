"""Stage 2: rewrite toxic seeds into prompts that look toxic but are safe.

    python mixtral_rewrite_only.py --toxic_seed_path=../toxic_prompt_generator/harmful_prompts.csv

Reads a CSV with the columns prompt (the seed) and, optionally, category. Writes several rows per
seed: prompt (the rewrite), toxic_seed, category, and the input's other columns.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.asking.models import generator
from orbench.asking.requests import Answer, Missing, Request, user
from orbench.base.messages import UserError, counted, run_script
from orbench.base.prompts import check_single
from orbench.base.tables import storable
from orbench.base.words import Row
from orbench.stages import flags
from orbench.stages.engine import run_stage
from orbench.stages.generators import Given, dropped_lines, prompts_in, same
from orbench.stages.prompt_sets import add_column_flags, read_input
from orbench.stages.stage import Stage, empty_cell
from orbench.stages.templates import fill, prompt_template

EXTRA_MARKS = ("instruction", "other")  # columns that another prompt file may name
REWRITE_MAX_TOKENS = 2000  # five prompts are some 200; the rest is for models that think first


class Rewriter(Stage):
    """Stage 2."""

    name = "rewritter"
    asks = 3  # for a reply without any prompt

    def __init__(self, args: argparse.Namespace) -> None:
        """Raises UserError for an input that was rewritten already, among others."""
        prompt_file, self.template = prompt_template(__file__, args.prompt_file)
        self.marks = [name for name in EXTRA_MARKS if f"{{{name}}}" in self.template]
        table = read_input(args.toxic_seed_path, ["prompt", *self.marks], args)
        check_single(table.path, table.columns)
        if "toxic_seed" in table.columns:
            raise UserError(
                f"{table.path} has a column 'toxic_seed': it has already been rewritten"
            )
        model = flags.model_of(args.model or generator(), args)
        others = [column for column in table.columns if column not in ("prompt", "category")]
        columns = ["prompt", "toxic_seed", "category", *others]
        super().__init__(args, table, [model], Path(f"{table.path.stem}_rewrite.csv"), columns)
        self.prompt_file = prompt_file
        self.values = {"number": str(args.num_rewrites)}
        self.sent = flags.parameters_of(args, model)
        self.parameters = {**self.sent, "num_rewrites": args.num_rewrites}
        self.seen: set[str] = set()
        self.nothing_new = self.dropped = self.copies = 0

    def requests(self, row: Row) -> list[Request] | Missing:
        if empty := empty_cell(row, "prompt"):
            return empty
        values = self.values | {name: row[name] for name in self.marks}
        text = fill(self.template, values | {"seed": row["prompt"]})
        return [Request(self.models[0], [user(text)], self.sent)]

    def read(self, request: Request, answer: Answer) -> Given | Missing:
        """The prompts in a reply. A refusal is a reply: to ask again would only buy another one."""
        given = prompts_in(answer, request.messages[0]["content"])
        if not given.whole:
            return Missing("unscored", "the reply was cut off inside its thinking")
        if not given.prompts and not given.refused:
            return Missing("unscored", "no prompt in double brackets in the reply")
        return given

    def rows(self, row: Row, readings: list[Any]) -> list[Row] | Missing:
        """The rewrites of a seed that are new."""
        (given,) = readings
        if not given.prompts:
            return Missing("unscored", "the model refused to rewrite this seed")
        self.dropped += given.dropped
        self.copies += given.copies
        new = []
        for prompt in given.prompts[: self.args.num_rewrites]:
            if same(prompt) not in self.seen and same(prompt) != same(row["prompt"]):
                self.seen.add(same(prompt))
                new.append({**row, "prompt": storable(prompt), "toxic_seed": row["prompt"]})
        self.nothing_new += not new
        return new

    def origin(self, row: Row) -> Row:
        return {**row, "prompt": row["toxic_seed"]}

    def summary(self) -> list[str]:
        idle = f"{counted(self.nothing_new, 'seed')} produced no new rewrites"
        lines = [*dropped_lines(self.dropped, self.copies), (self.nothing_new, idle)]
        return [line for number, line in lines if number]


def main(argv: Sequence[str]) -> int:
    return run_stage(Rewriter(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    add = parser.add_argument
    add("--toxic_seed_path", required=True, help="the CSV of stage 1")
    flags.add_output_flags(parser, "./{input stem}_rewrite.csv")
    number = flags.whole_number(1)
    meaning = "rewrites per seed, in one request (default 5)"
    add("--num_rewrites", type=number, default=5, help=meaning)
    meaning = "a model or alias (default: Mixtral if its key is set, else a current OpenAI model)"
    add("--model", help=meaning)
    meaning = "the prompt file: a name in this script's folder, or a path (default %(default)s)"
    add("--prompt_file", default="prompt.txt", type=flags.given, metavar="FILE", help=meaning)
    add_column_flags(parser)
    flags.add_model_flags(parser, temperature_=0.7, max_tokens=REWRITE_MAX_TOKENS)
    flags.add_run_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
