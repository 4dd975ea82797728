"""Stage 3: judges decide whether a text is toxic, and in which category.

    python moderate_only.py --moderator_model=gpt4 --input_file_path=../rewritter/harmful_prompts_rewrite.csv --column=prompt
    python moderate_only.py --moderator_model=gpt4,llama3,gemini-1.5 --input_file_path=prompts.csv

Reads a CSV with the column to be judged. Writes ./{input
stem}_moderation_merged_{moderator}_{column}.csv, or with --merge_result=False the files
..._toxic_moderation_... and ..._non_toxic_moderation_... instead. Adds the columns is_toxic,
moderation_category (one of the ten, "none", or a guard model's "other") and moderation_result (the
whole reply). For a column other than prompt, each name has that column as a prefix
(response_is_toxic, ...). With several judges, each has its own three columns (is_toxic_{judge},
...); is_toxic and moderation_category hold the majority; votes says how many gave a readable
verdict, and debatable whether they disagree.
"""  # noqa: E501 - a command that can be copied stands on one line

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.asking.models import Model
from orbench.asking.requests import Answer, Missing, Request
from orbench.base.messages import run_script
from orbench.base.prompts import turns_of
from orbench.base.records import read_record
from orbench.base.tables import file_name_part
from orbench.base.words import CATEGORIES_OR_NONE, Choice, Row, choices_of, numbered_list
from orbench.judging import kinds, panels
from orbench.stages import flags
from orbench.stages.engine import run_stage
from orbench.stages.prompt_sets import add_column_flags, read_input
from orbench.stages.stage import Stage, empty_cell, output_columns
from orbench.stages.templates import fill, prompt_template


class Moderator(Stage):
    """Stage 3."""

    name = "moderator"
    asks = kinds.VERDICT_ASKS

    def __init__(self, args: argparse.Namespace) -> None:
        self.column = args.column
        self.judges = panels.judges_named(args.moderator_model)
        table = read_input(args.input_file_path, [self.column], args)
        every = [*self.judges, *([args.substitute] if args.substitute else [])]
        models = [flags.model_of(name, args) for name in every]
        panels.check_different(models)
        self.kinds = {model: kinds.kind_of(model.id, args.general_judge) for model in models}
        self.added = panels.ModerationColumns(self.column, self.judges, args.substitute)
        self.panel = self.added.panel
        self.of_response = self.column == "response" and "prompt" in table.columns
        word = f"{'+'.join(map(file_name_part, self.judges))}_{file_name_part(self.column)}"
        stem = table.path.stem
        columns = output_columns(table, self.added.added())
        default = Path(f"{stem}_moderation_merged_{word}.csv")
        super().__init__(args, table, models, default, columns)
        self.split({p: f"{stem}_{p}_moderation_{word}.csv" for p in ("toxic", "non_toxic")})
        self.set_questions()
        self.votes: list[list[bool | None]] = []  # a row per text, a vote per judge
        self.counts = {"toxic": 0, "not toxic": 0, "unscored": 0}
        self.notes = panels.family_notes(models, read_record(table.path))

    def set_questions(self) -> None:
        """What the judges are asked, and with which parameters. Raises UserError."""
        args = self.args
        files = sorted({kind.own_file for kind in self.kinds.values()} - {""})
        self.templates = {file: prompt_template(__file__, file) for file in files}
        self.prompt_file = self.templates[files[0]][0] if files else None
        pairs = self.kinds.items()
        own = {model: kinds.needed_by(kind, self.choices(kind)) for model, kind in pairs}
        self.sent = {model: flags.parameters_of(args, model, own[model]) for model in self.models}
        each = {model.asked: sent for model, sent in self.sent.items()}
        self.parameters = {"judges": each, "column": self.column}
        self.min_votes = args.min_votes or len(self.judges) // 2 + 1
        self.reading = {"min_votes": self.min_votes}

    def requests(self, row: Row) -> list[Request] | Missing:
        if empty := empty_cell(row, self.column):
            return empty
        asked = [self.request(model, row) for model in self.models]
        for request in asked[: len(self.judges)]:
            request.substitute = asked[-1] if self.args.substitute else None
        return asked[: len(self.judges)]

    def request(self, model: Model, row: Row) -> Request:
        """The request to a judge about a row."""
        kind = self.kinds[model]
        text = row[self.column]
        earlier = turns_of(row)[:-1] if self.column == "prompt" else []
        question = kinds.Question(text, earlier=earlier)
        if kind.own_file:
            template = self.templates[kind.own_file][1]
            values = {"text": text, "categories": numbered_list(CATEGORIES_OR_NONE)}
            own = fill(template, values, earlier if "{text}" in template else ())
            question = question._replace(prompt=fill("{text}", values, earlier), own=own)
        elif self.of_response:
            question = kinds.Question(row["prompt"], text, earlier=turns_of(row)[:-1])
        return Request(model, kind.ask(question), self.sent[model], protocol=kind.protocol)

    def choices(self, kind: kinds.JudgeKind) -> Sequence[Choice]:
        """What a judge may choose; numbers count only if its prompt lists the categories."""
        template = self.templates[kind.own_file][1] if kind.own_file else ""
        return choices_of(CATEGORIES_OR_NONE, numbered="{categories}" in template)

    def read(self, request: Request, answer: Answer) -> kinds.Opinion | Missing:
        kind = self.kinds[request.model]
        choices = self.choices(kind)
        judge = request.model.asked
        return kinds.read_moderation(kind, answer, choices, judge, of_response=self.of_response)

    def again(self, request: Request, answer: Answer, missing: Missing) -> Request:
        kind = self.kinds[request.model]
        return request.again(kind.repeat(answer, missing.why, self.choices(kind)))

    def rows(self, row: Row, readings: list[Any]) -> list[Row] | Missing:
        cells = self.added.cells(readings, self.min_votes)
        return cells if isinstance(cells, Missing) else [row | cells]

    def is_toxic(self, row: Row) -> bool:
        """The verdict in an output row."""
        return row[self.added.named("is_toxic")] == "True"

    def label(self, row: Row) -> str:
        return "toxic" if self.is_toxic(row) else "non_toxic"

    def scored(self, row: Row) -> None:
        self.counts["toxic" if self.is_toxic(row) else "not toxic"] += 1
        self.votes.append(self.added.votes(row))

    def unscored(self, row: Row) -> None:
        self.counts["unscored"] += 1

    def summary(self) -> list[str]:
        """Toxic or not, and how far several judges agree."""
        several = len(self.judges) > 1 and self.votes
        agreement = panels.agreement_lines(self.judges, self.votes) if several else []
        return [*agreement, " · ".join(f"{name} {n:,}" for name, n in self.counts.items())]


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    judges = len(panels.judges_named(args.moderator_model))
    if args.min_votes and args.min_votes > judges:
        parser().error(f"--min_votes {args.min_votes} exceeds the number of judges ({judges})")
    return run_stage(Moderator(args))


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    add = parser.add_argument
    meaning = "gpt4, llama3, gemini-1.5, any other model, or several, comma-separated"
    add("--moderator_model", required=True, help=meaning)
    add("--input_file_path", required=True, help="the CSV with the texts to judge")
    add("--column", default="prompt", help="the column to judge (default %(default)s)")
    default = "./{input stem}_moderation_merged_{moderator}_{column}.csv"
    flags.add_output_flags(parser, default, "one for toxic and one for non-toxic rows")
    meaning = "readable verdicts required per row (default: a majority of the judges)"
    add("--min_votes", type=flags.whole_number(1), help=meaning)
    meaning = "a judge to ask if another judge's vote is missing"
    add("--substitute", default="", metavar="MODEL", help=meaning)
    add_column_flags(parser)
    flags.add_model_flags(parser, kinds.JUDGE_TEMPERATURE)
    flags.add_run_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
