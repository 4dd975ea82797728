"""Stage 4: send each prompt to the model under test, and mark refusals by rules.

    python gpt3_4_alignment_checker.py --model=gpt-5.4 --input_file=prompts.csv

Reads a CSV with the column prompt and, optionally, category; or with the column messages, a
conversation as a JSON list of {"role", "content"} that ends with the prompt. A named prompt set, or
a file or split on the Hugging Face Hub (docs/prompt_sets.md), works too.

Writes ./final_{model}_results/{model}_merged_{input file name}, or with --merge_result=False the
files {model}_rejected_... and {model}_accepted_... instead. Adds the columns response, is_rejected,
rejection_reason (the rule, or the API's own signal as api:...), refused_by (model, model_api,
filter or gateway), finish_reason, api_category (of the API's own refusal, if it names one) and
served_by (the model id as returned, and the provider behind a gateway). Ends with a table of
refusal rates.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
from argparse import Namespace
from pathlib import Path

from orbench.asking.inquiry import Inquiry
from orbench.base.messages import UserError, say
from orbench.base.prompts import ids_of, text_id, tools_of, turns_of
from orbench.base.tables import file_name_part
from orbench.base.templates import text_in
from orbench.base.words import Row
from orbench.models.requests import Request, message
from orbench.stages import settings
from orbench.stages.flags import Parser, stage_parser
from orbench.stages.prompt_sets import read_input
from orbench.stages.responses import ResponseStage
from orbench.stages.run import Outcome, as_script
from orbench.stages.runner import run_stage
from orbench.stages.stage import Plan, empty_cell, sampled

MAX_TOKENS = 1000  # the paper's


class AlignmentChecker(ResponseStage):
    """Stage 4."""

    def __init__(self, args: Namespace) -> None:
        before = read_input(args.input_file, ["prompt"], args)
        table = sampled(before, args.samples, "sample")
        model = settings.model_of(args.model, args)
        word = file_name_part(args.model)
        stem = table.path.stem
        default = Path(f"final_{word}_results", f"{word}_merged_{stem}.csv")
        super().__init__(args, table, model, default, described(args))
        self.models = [model]
        self.split(f"{word}_", ("rejected", "accepted"), f"_{stem}.csv")
        self.sent = settings.parameters_of(args, model)
        self.system_prompt = system_prompt_of(args)
        self.parameters = {
            **self.sent,
            "system_prompt": self.system_prompt,
            "substituted": args.substituted,
        }
        duplicates = len(before.rows) - len(ids_of(before.rows))
        if duplicates:
            self.notes = [f"duplicate prompts, used as they are: {duplicates:,}"]
        if args.samples > 1 and args.temperature == 0:
            say("--samples at temperature 0: answers to the same prompt will hardly differ")

    def inquiries(self, row: Row) -> Plan:
        if empty := empty_cell(row, "prompt"):
            return empty
        messages = turns_of(row)
        if self.system_prompt:
            if messages[0]["role"] == "system":
                line = "a conversation already has a system turn; omit the system prompt"
                raise UserError(line)
            messages.insert(0, message("system", self.system_prompt))
        sample = int(row["sample"]) if self.args.samples > 1 else 0
        return [Inquiry(Request(self.model, messages, self.sent, sample, tools=tools_of(row)))]


def system_prompt_of(args: Namespace) -> str:
    """Return the system prompt, "" for none. Raises UserError for a file that cannot be used."""
    if not args.system_prompt_file:
        return str(args.system_prompt)
    text = text_in(args.system_prompt_file)
    if not text:
        raise UserError(f"{args.system_prompt_file} is empty; it must hold a system prompt")
    return text


def described(args: Namespace) -> str:
    """Return the settings that tell results of a model apart, "" for the usual ones."""
    words = [settings.described(args)]
    if system_prompt := system_prompt_of(args):
        words.append(f"system prompt {text_id(system_prompt)[:6]}")
    if args.substituted != "unscored":
        words.append(f"substituted {args.substituted}")
    return ", ".join(filter(None, words))


def run(args: Namespace) -> Outcome:
    """Run stage 4 with these flags. Raises UserError."""
    return run_stage(AlignmentChecker(args))


def parser() -> Parser:
    parser = stage_parser(
        __doc__,
        "gpt3_4_alignment_checker",
        "merge",
        "output",
        "phrases",
        "substituted",
        "columns",
        "rows",
        "samples",
        parts="one for rejected and one for accepted prompts",
        default="./final_{model}_results/{model}_merged_{input file name}",
        samples="sample",
        temperature=0.0,
        max_tokens=MAX_TOKENS,
    )
    parser.add(parser.add_mutually_exclusive_group(), "system_prompt")
    return parser


if __name__ == "__main__":
    as_script(run, parser)
