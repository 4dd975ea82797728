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
from typing import NamedTuple

from orbench.asking.inquiry import Inquiry
from orbench.base.messages import UserError, say
from orbench.base.prompts import ids_of, text_id, text_of, tools_of, turns_of
from orbench.base.tables import file_name_part
from orbench.base.templates import text_in
from orbench.base.words import Row
from orbench.models.requests import Answer, Missing, Request, message, not_english
from orbench.models.substitutes import is_same_model
from orbench.refusals import rules
from orbench.refusals.api import CALLED, refused_by
from orbench.refusals.detect import classify, counts_as_refusal
from orbench.refusals.text import answer_of
from orbench.stages import flags, settings
from orbench.stages.closing import RefusalTable
from orbench.stages.prompt_sets import read_input
from orbench.stages.run import Outcome, as_script
from orbench.stages.runner import run_stage
from orbench.stages.stage import (
    Plan,
    Readings,
    Result,
    Stage,
    empty_cell,
    output_columns,
    sampled,
)

COLUMNS = (
    "response",
    "is_rejected",
    "rejection_reason",
    "refused_by",
    "finish_reason",
    "api_category",
    "served_by",
)
MAX_TOKENS = 1000  # the paper's
SUBSTITUTED = "substituted"  # the error_type, or the finish_reason in api.toml
IDENTICAL = 20  # responses in a row: no model answers so many prompts alike


# What the finish reason of an answer that says nothing means -> why it does not, and if it means
# something else.
NO_ANSWER = {
    "tool_call": "a tool call, no answer",
    "cut_off": "cut off before the answer began; try a higher --max_tokens",
    "context_full": "the context is full; shorten the prompt, or take a model with a longer one",
    "stopped": "stopped before the answer began (finish_reason {})",
}
NO_REASON = (
    "an empty answer without a reason, perhaps a refusal hidden by a gateway (finish_reason {})"
)


class Classified(NamedTuple):
    """What an answer says: the cells that it fills."""

    cells: Row
    certain: bool  # whether the rules are certain of the verdict
    judge: str = ""  # the rules decide


class AlignmentChecker(Stage):
    """Stage 4."""

    name = "alignment_checker"

    def __init__(self, args: Namespace) -> None:
        before = read_input(args.input_file, ["prompt"], args)
        table = sampled(before, args.samples, "sample")
        self.model = settings.model_of(args.model, args)
        word = file_name_part(args.model)
        stem = table.path.stem
        default = Path(f"final_{word}_results", f"{word}_merged_{stem}.csv")
        super().__init__(args, table, [self.model], default, output_columns(table, COLUMNS))
        self.split(f"{word}_", ("rejected", "accepted"), f"_{stem}.csv")
        self.sent = settings.parameters_of(args, self.model)
        self.system_prompt = system_prompt_of(args)
        self.parameters = {
            **self.sent,
            "system_prompt": self.system_prompt,
            "substituted": args.substituted,
        }
        self.reading = {"refusal_phrases": args.refusal_phrases}
        self.versions = {"rules": rules.version()}
        self.under_test = {
            "asked": args.model,
            "id": self.model.id,
            "family": self.model.family,
            "settings": described(args),
        }
        self.closing = ResponseTable(self)
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

    def read(self, request: Request, answer: Answer) -> Classified | Missing:
        """Return the cells that an answer fills; Missing if it is empty, all thinking, not in
        English, or from another model.
        """
        if is_same_model(self.model.id, answer.model) is False:
            if self.args.substituted == "unscored":
                why = f"answered by {answer.served_by} instead of {self.model.id}"
                return Missing(SUBSTITUTED, why, {"served_by": answer.served_by})
            if self.args.substituted == "as_refusal":
                answer = answer._replace(
                    text="", refusal="", finish_reason=SUBSTITUTED, api_category="gateway"
                )
        text, whole = answer_of(answer.text)
        if request.tools and answer.tool_calls and not (answer.refused_by_api or answer.cut_off):
            text = text_of({"content": text, "tool_calls": answer.tool_calls})
            answer = answer._replace(finish_reason=CALLED)
        if not answer.refused_by_api and not text.strip():
            meaning = answer.meaning if whole else "cut_off"
            why = NO_ANSWER.get(meaning, NO_REASON)
            return Missing("unscored", why.format(answer.finish_reason or "none"))
        verdict = classify(
            text,
            finish_reason=answer.finish_reason,
            api_refusal=answer.refusal,
            phrases=self.args.refusal_phrases,
        )
        rejected = counts_as_refusal(verdict)
        cells = {
            "response": text or answer.refusal,
            "is_rejected": str(rejected),
            "rejection_reason": verdict.rule if rejected else "",
            "refused_by": refused_by(verdict.rule) if rejected else "",
            "finish_reason": answer.finish_reason,
            "api_category": answer.api_category,
            "served_by": answer.served_by,
        }
        if verdict.language:
            return not_english(verdict.language, cells | {"is_rejected": ""})
        return Classified(cells, verdict.certain)

    def refusals(self, reading: Classified | Missing) -> list[bool]:
        if isinstance(reading, Missing):
            return []
        return [self.label(reading.cells) == "rejected"]

    def rows(self, row: Row, readings: Readings) -> list[Row]:
        return [row | readings[0].cells]

    def label(self, row: Row) -> str:
        return "rejected" if row["is_rejected"] == "True" else "accepted"


class ResponseTable(RefusalTable):
    """The refusal table, and whether the responses can be a model's own."""

    last = ""  # response
    in_a_row = 0  # prompts with that response, no refusal

    def add(self, result: Result) -> None:
        super().add(result)
        later_sample = result.row.get("sample", "0") != "0"  # may well be equal
        if isinstance(result.rows, Missing) or later_sample:
            return
        (row,) = result.rows
        if row["response"] != self.last:
            self.last = row["response"]
            self.in_a_row = 0
        # Equal calls of tools are no page.
        self.in_a_row += row["is_rejected"] != "True" and row["finish_reason"] != CALLED
        if self.in_a_row == IDENTICAL:
            self.doubt = f"{IDENTICAL} identical responses in a row, perhaps a gateway's error page"


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


def parser() -> flags.Parser:
    parser = flags.stage_parser(
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
