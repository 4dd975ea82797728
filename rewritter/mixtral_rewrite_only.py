"""Stage 2: rewrite toxic seeds into prompts that look toxic but are safe.

    python mixtral_rewrite_only.py --input_file=../toxic_prompt_generator/harmful_prompts.csv

Reads a CSV with the columns prompt (the seed) and, optionally, category. Writes several rows per
seed: prompt (the rewrite), toxic_seed, category, and the input's other columns.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
from argparse import Namespace
from pathlib import Path

from orbench.asking.inquiry import Inquiry
from orbench.base.messages import UserError
from orbench.base.tables import check_single, columns_in
from orbench.base.templates import fill, prompt_template
from orbench.base.words import Row
from orbench.models.providers import generator
from orbench.models.requests import Answer, Missing, Request, user
from orbench.stages.flags import Parser, stage_parser
from orbench.stages.generators import Generated, Replies, only_new, prompts_in
from orbench.stages.prompt_sets import read_input
from orbench.stages.run import Outcome, as_script
from orbench.stages.runner import run_stage
from orbench.stages.settings import model_of, parameters_of
from orbench.stages.stage import Plan, Readings, Results, Stage, Written, empty_cell

EXTRA_MARKS = ("instruction", "other")  # columns that another prompt file may name
REWRITE_MAX_TOKENS = 2000  # five prompts are some 200; the rest is for models that think first


class Rewriter(Stage):
    """Stage 2."""

    name = "rewritter"
    brings = "rewrites"
    asks = 3  # for a reply without any prompt

    def __init__(self, args: Namespace) -> None:
        """Raises UserError for an input that was rewritten already, among others."""
        prompt_file, self.template = prompt_template(__file__, args.prompt_file)
        self.marks = [name for name in EXTRA_MARKS if f"{{{name}}}" in self.template]
        table = read_input(args.input_file, ["prompt", *self.marks], args)
        check_single(table)
        if "toxic_seed" in table.columns:
            raise UserError(
                f"{table.path} has a column 'toxic_seed': it has already been rewritten"
            )
        model = model_of(args.model or generator(), args)
        columns = columns_in([table.columns], ["prompt", "toxic_seed", "category"])
        super().__init__(args, table, [model], Path(f"{table.path.stem}_rewrite.csv"), columns)
        self.prompt_file = prompt_file
        self.closing = Replies(idle=("seed", "produced no new rewrites"))
        self.sent = parameters_of(args, model)
        self.parameters = {**self.sent, "num_rewrites": args.num_rewrites}

    def inquiries(self, row: Row) -> Plan:
        if empty := empty_cell(row, "prompt"):
            return empty
        number = str(self.args.num_rewrites)
        marks = {name: row[name] for name in self.marks}
        text = fill(self.template, {"number": number, **marks, "seed": row["prompt"]})
        return [Inquiry(Request(self.models[0], [user(text)], self.sent))]

    def read(self, request: Request, answer: Answer) -> Generated | Missing:
        """Return the prompts in a reply. A refusal is a reply too: another one would cost again."""
        generated = prompts_in(answer, request.messages[0]["content"])
        if not generated.whole:
            return Missing("unscored", "the reply was cut off inside its thinking")
        if not generated.prompts and not generated.refused:
            return Missing("unscored", "no prompt in double brackets in the reply")
        return generated

    def rows(self, row: Row, readings: Readings) -> Written:
        """Return the rewrites of a seed."""
        (generated,) = readings
        if not generated.prompts:
            return Missing("unscored", "the model refused to rewrite this seed")
        rows = []
        for prompt in generated.prompts[: self.args.num_rewrites]:
            rows.append({**row, "prompt": prompt, "toxic_seed": row["prompt"]})
        return rows

    def together(self, results: Results) -> Results:
        return only_new(results)

    def origin(self, row: Row) -> Row:
        return {**row, "prompt": row["toxic_seed"]}


def run(args: Namespace) -> Outcome:
    """Run stage 2 with these flags. Raises UserError."""
    return run_stage(Rewriter(args))


def parser() -> Parser:
    return stage_parser(
        __doc__,
        "mixtral_rewrite_only",
        "output",
        "writer",
        "columns",
        "rows",
        default="./{input stem}_rewrite.csv",
        temperature=0.7,
        max_tokens=REWRITE_MAX_TOKENS,
    )


if __name__ == "__main__":
    as_script(run, parser)
