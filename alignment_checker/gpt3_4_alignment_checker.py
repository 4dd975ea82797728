"""Stage 4: send each prompt to the model under test, and mark refusals by rules.

    python gpt3_4_alignment_checker.py --model=gpt-3.5-turbo-0125 --input_file=prompts.csv

Reads a CSV with the column prompt and, optionally, category; or with the column messages, a
conversation as a JSON list of {"role", "content"} that ends with the prompt. A named prompt set or
hf://datasets/OWNER/NAME/FILE works too. Writes ./final_{model}_results/{model}_merged_{input file
name}, or with --merge_result=False the files {model}_rejected_... and {model}_accepted_... instead.
Adds the columns response, is_rejected, rejection_reason (the rule, or the API's own signal as
api:...), finish_reason, api_category (of the API's own refusal, if it names one) and served_by (the
model id as returned, and the provider behind a gateway). Ends with a table of refusal rates.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.asking.requests import Answer, Missing, Request, message, messages_of
from orbench.base.messages import UserError, run_script, say
from orbench.base.prompts import prompt_id, turns_of
from orbench.base.tables import file_name_part, storable
from orbench.base.words import Row
from orbench.refusals.detect import classify, counts_as_refusal
from orbench.refusals.text import answer_of
from orbench.stages import flags
from orbench.stages.closing import RefusalStage
from orbench.stages.engine import run_stage
from orbench.stages.prompt_sets import add_column_flags, read_input
from orbench.stages.stage import empty_cell, output_columns, sampled
from orbench.stages.templates import text_in

COLUMNS = (
    "response",
    "is_rejected",
    "rejection_reason",
    "finish_reason",
    "api_category",
    "served_by",
)
MAX_TOKENS = 1000  # the paper's


class AlignmentChecker(RefusalStage):
    """Stage 4."""

    name = "alignment_checker"

    def __init__(self, args: argparse.Namespace) -> None:
        table = sampled(read_input(args.input_file, ["prompt"], args), args.samples)
        self.model = flags.model_of(args.model, args)
        word = file_name_part(args.model)
        stem = table.path.stem
        default = Path(f"final_{word}_results", f"{word}_merged_{stem}.csv")
        super().__init__(args, table, [self.model], default, output_columns(table, COLUMNS))
        self.split({part: f"{word}_{part}_{stem}.csv" for part in ("rejected", "accepted")})
        self.sent = flags.parameters_of(args, self.model)
        self.system_prompt = system_prompt_of(args)
        self.phrases = flags.phrases_of(args)
        self.parameters = {**self.sent, "system_prompt": self.system_prompt}
        self.reading = {"refusal_phrases": self.phrases}
        words = [flags.settings_in_words(args)]
        if self.system_prompt:
            words.append(f"system prompt {prompt_id(self.system_prompt)[:6]}")
        self.under_test = {
            "asked": args.model,
            "id": self.model.id,
            "family": self.model.family,
            "settings": ", ".join(filter(None, words)),
        }
        if args.samples > 1 and not args.temperature:
            say("--samples at temperature 0: answers to the same prompt will hardly differ")

    def requests(self, row: Row) -> list[Request] | Missing:
        if empty := empty_cell(row, "prompt"):
            return empty
        turns = turns_of(row)
        if self.system_prompt and turns[0]["role"] == "system":
            raise UserError("a conversation already has a system turn; omit the system prompt")
        before = [message("system", self.system_prompt)] if self.system_prompt else []
        sample = int(row["sample"]) if self.args.samples > 1 else 0
        return [Request(self.model, [*before, *messages_of(turns)], self.sent, sample)]

    def read(self, request: Request, answer: Answer) -> tuple[Row, bool] | Missing:
        """The cells that an answer fills, and whether the rules are certain of its verdict.

        Missing if it is empty or all thinking.
        """
        text, whole = answer_of(answer.text)
        if answer.says_nothing:
            finish = answer.finish_reason or "none"
            hidden = "an empty answer without a reason, perhaps a refusal hidden by a gateway"
            return Missing("unscored", f"{hidden} (finish_reason {finish})")
        if not answer.refused_by_api and not (whole and text.strip()):
            why = "cut off before the answer began; try a higher --max_tokens"
            return Missing("unscored", why)
        verdict = classify(
            text,
            finish_reason=answer.finish_reason,
            api_refusal=answer.refusal,
            phrases=self.phrases,
        )
        rejected = counts_as_refusal(verdict)
        cells = {
            "response": text or answer.refusal,
            "is_rejected": str(rejected),
            "rejection_reason": verdict.rule if rejected else "",
            "finish_reason": answer.finish_reason,
            "api_category": answer.api_category,
            "served_by": answer.served_by,
        }
        return {name: storable(cell) for name, cell in cells.items()}, verdict.certain

    def rows(self, row: Row, readings: list[Any]) -> list[Row]:
        ((cells, certain),) = readings
        self.decided_by["rules"] += 1
        self.certain += certain
        return [row | cells]

    def refused(self, row: Row) -> bool:
        return row["is_rejected"] == "True"

    def label(self, row: Row) -> str:
        return "rejected" if self.refused(row) else "accepted"


def system_prompt_of(args: argparse.Namespace) -> str:
    """The system prompt, "" for none. Raises UserError for a file that cannot be used."""
    if not args.system_prompt_file:
        return str(args.system_prompt)
    text = text_in(args.system_prompt_file)
    if not text:
        raise UserError(f"{args.system_prompt_file} is empty; it must hold a system prompt")
    return text


def main(argv: Sequence[str]) -> int:
    return run_stage(AlignmentChecker(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    add = parser.add_argument
    add("--model", required=True, help="the model under test, e.g. openai/gpt-5.4")
    add("--input_file", required=True, help="the CSV with the prompts, or a prompt set")
    flags.add_output_flags(
        parser,
        "./final_{model}_results/{model}_merged_{input file name}",
        "one for rejected and one for accepted prompts",
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--system_prompt", default="", help="a system prompt (default: none)")
    meaning = "a text file with a system prompt"
    ways.add_argument("--system_prompt_file", type=flags.input_path, metavar="FILE", help=meaning)
    flags.add_refusal_phrases(parser)
    add_column_flags(parser)
    flags.add_model_flags(parser, temperature_=0.0, max_tokens=MAX_TOKENS)
    flags.add_run_flags(parser, samples=True)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
