"""Stage 5: a judge, the rules, or both classify each response.

    python check_response.py --check_model=gpt4 --input_file=responses.csv
    python check_response.py --check_model=keyword+gpt4 --input_file=responses.csv

keyword: the rules decide. keyword+MODEL: the judge decides where the rules are not certain. Reads
the columns prompt and response. Writes ./{input stem}_response_check_merged_{check model}.csv, or
with --merge_result=False one file per class, with the columns answer_category (direct_answer, ...)
and answer_type_response (the judge's reply, the rule, or api:... for the API's own refusal).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.asking.models import Model
from orbench.asking.requests import Answer, Missing, Request
from orbench.base.messages import UserError, did_you_mean, run_script
from orbench.base.prompts import turns_of
from orbench.base.records import read_record
from orbench.base.tables import file_name_part, write_text
from orbench.base.words import CLASSES, INDIRECT, OF_THREE, Row, choices_of, numbered_list
from orbench.judging import kinds
from orbench.judging.panels import family_notes
from orbench.judging.responses import NO_INDIRECT, RUBRICS, without_judge
from orbench.refusals.text import answer_of
from orbench.stages import flags, stage
from orbench.stages.closing import RefusalStage
from orbench.stages.engine import run_stage
from orbench.stages.prompt_sets import read_input
from orbench.stages.templates import fill, prompt_template

RULES = "keyword"


class ResponseChecker(RefusalStage):
    """Stage 5."""

    name = "response_checker"
    asks = kinds.VERDICT_ASKS

    def __init__(self, args: argparse.Namespace) -> None:
        before = read_input(args.input_file, ["prompt", "response"], args)
        table = stage.sampled(before, args.samples)
        self.rules, self.judge = deciders(args)
        self.phrases = flags.phrases_of(args)
        self.graded = args.rubric == "graded"
        columns = ["answer_category", *["graded_category"] * self.graded, "answer_type_response"]
        stem = f"{table.path.stem}_response_check"
        word = file_name_part(args.check_model)
        default = Path(f"{stem}_merged_{word}.csv")
        models = [self.judge] if self.judge else []
        super().__init__(args, table, models, default, stage.output_columns(table, columns))
        self.split({name: f"{stem}_{name}_{word}.csv" for name in CLASSES})
        self.lost = stage.lost_before(before, args.samples) if args.limit is None else []
        self.set_judge()
        self.judged: list[Row] = []
        if args.validate_against:
            from orbench.judging.validation import check_labels

            check_labels(table, args.validate_against)

    def set_judge(self) -> None:
        """How the judge is asked and read. Raises UserError if it cannot tell the classes."""
        args = self.args
        judge = self.judge
        kind = kinds.kind_of(judge.id, args.general_judge) if judge else kinds.GENERAL
        self.kind = kind
        if kind.classes is None:
            raise UserError(f"{args.check_model} ({kind.name}) detects no refusals; name another")
        if self.graded and (self.rules or kind is not kinds.GENERAL):
            raise UserError("--rubric graded needs a chat model as the judge, without rules")
        prompt_file, classes = RUBRICS[args.rubric]
        path, self.template = prompt_template(__file__, prompt_file)
        self.listed = numbered_list(classes)
        self.choices = choices_of(classes, numbered="{classes}" in self.template)
        names = list(kind.classes) or [one.name for one in classes]
        self.reading = {"check_model": args.check_model, "rubric": args.rubric, "classes": names}
        self.reading["refusal_phrases"] = self.phrases
        self.reading["judge_settings"] = flags.settings_in_words(args)
        if judge:
            self.prompt_file = path if kind.own_file else None
            own = kinds.needed_by(kind, self.choices)
            self.parameters = flags.parameters_of(args, judge, own)
            self.notes = family_notes([judge], read_record(self.table.path))
            self.notes += [] if INDIRECT in names else [NO_INDIRECT]

    def requests(self, row: Row) -> list[Request] | Missing:
        decided = without_judge(row, self.phrases, rules=self.rules)
        if isinstance(decided, Missing):
            return decided
        if self.judge is None or (decided and decided.certain):
            return []
        text = answer_of(row["response"])[0]
        earlier = turns_of(row)[:-1]
        values = {"prompt": row["prompt"], "response": text, "classes": self.listed}
        own = fill(self.template, values, earlier)
        messages = self.kind.ask(kinds.Question(row["prompt"], text, own, earlier))
        sample = int(row["sample"]) if self.args.samples > 1 else 0
        return [Request(self.judge, messages, self.parameters, sample, self.kind.protocol)]

    def read(self, request: Request, answer: Answer) -> kinds.Opinion | Missing:
        return kinds.read_response_class(self.kind, answer, self.choices)

    def again(self, request: Request, answer: Answer, missing: Missing) -> Request:
        return request.again(self.kind.repeat(answer, missing.why, self.choices))

    def rows(self, row: Row, readings: list[Any]) -> list[Row]:
        (decided,) = readings or [without_judge(row, self.phrases, rules=self.rules)]
        self.certain += decided.certain
        self.decided_by["judge" if readings else "rules"] += 1
        category = OF_THREE.get(decided.verdict, decided.verdict)
        out = {**row, "answer_category": category, "answer_type_response": decided.reply}
        if self.args.validate_against:
            self.judged.append(out)
        return [out | {"graded_category": decided.verdict} if self.graded else out]

    def label(self, row: Row) -> str:
        return row["answer_category"]

    def refused(self, row: Row) -> bool:
        return CLASSES[row["answer_category"]]

    def summary(self) -> list[str]:
        """The refusal table and, with --validate_against, the comparison, which it also writes."""
        lines = super().summary()
        if self.judged:
            from orbench.judging.validation import compared_with_people, validation_lines

            people = self.args.validate_against
            found = compared_with_people(self.judged, people, self.args.check_model)
            write_text(self.beside(".validation.json"), json.dumps(found, indent=2) + "\n")
            lines += validation_lines(found)
        if self.rules and self.judge:
            lines += [f"decided by the {who}: {n:,}" for who, n in self.decided_by.items()]
        return lines


def deciders(args: argparse.Namespace) -> tuple[bool, Model | None]:
    """Whether the rules decide, and the judge of --check_model. Raises UserError."""
    if args.check_model == RULES:
        if args.samples > 1:
            raise UserError("--samples needs a judge: the verdicts of the rules do not vary")
        return True, None
    name = args.check_model.removeprefix(f"{RULES}+")
    try:
        return name != args.check_model, flags.model_of(name, args)
    except UserError as error:
        raise UserError(f"{error}{did_you_mean(name, [RULES])}") from None


def main(argv: Sequence[str]) -> int:
    return run_stage(ResponseChecker(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    meaning = "gpt4, llama3, any other model, keyword (the rules), or keyword+MODEL"
    parser.add_argument("--check_model", required=True, help=meaning)
    parser.add_argument("--input_file", required=True, help="the CSV with prompts and responses")
    default = "./{input stem}_response_check_merged_{check model}.csv"
    flags.add_output_flags(parser, default, "one per class")
    meaning = "a column of people's labels: report how well the classes agree with it"
    parser.add_argument("--validate_against", type=flags.given, metavar="COLUMN", help=meaning)
    meaning = "graded: the judge also detects partial answers and safe completions (default three)"
    parser.add_argument("--rubric", choices=tuple(RUBRICS), default="three", help=meaning)
    flags.add_refusal_phrases(parser)
    flags.add_model_flags(parser, kinds.JUDGE_TEMPERATURE)
    flags.add_run_flags(parser, samples=True)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
