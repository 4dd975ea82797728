"""Stage 5: a judge, the rules, or both classify each response.

    python check_response.py --check_model=gpt-5.4 --input_file=responses.csv
    python check_response.py --check_model=rules+gpt-5.4 --input_file=responses.csv

rules: the rules decide. rules+MODEL: the judge decides where the rules are not certain. Reads
the columns prompt and response. Writes ./{input stem}_response_check_merged_{check model}.csv, or
with --merge_result=False one file per class, with the columns refused (True or False, what rates
count), answer_category (direct_answer, ...), answer_type_response (the judge's reply, the rule, or
api:... for the API's own refusal) and refused_by, in place of stage 4's.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
from argparse import Namespace
from pathlib import Path

from orbench.asking.inquiry import Inquiry
from orbench.base.messages import UserError, did_you_mean
from orbench.base.prompts import earlier_turns, response_id_of
from orbench.base.records import failed_rows, passports_in, read_record
from orbench.base.tables import Table, file_name_part, read_csv, sha256_of, write_json
from orbench.base.words import CLASSES, INDIRECT, OF_THREE, Lines, Row, Words, numbered_list
from orbench.judging.kinds import GENERAL, JUDGE_TEMPERATURE, About
from orbench.judging.responses import NO_INDIRECT, RUBRICS, without_judge
from orbench.models.providers import Models
from orbench.models.requests import NOT_ENGLISH, Missing
from orbench.refusals import rules
from orbench.refusals.api import refused_by
from orbench.refusals.text import answer_of
from orbench.stages import flags, settings
from orbench.stages.closing import RefusalTable
from orbench.stages.judges import JudgedStage
from orbench.stages.prompt_sets import read_input
from orbench.stages.run import Outcome, as_script
from orbench.stages.runner import run_stage
from orbench.stages.stage import (
    Plan,
    Readings,
    output_columns,
    sampled,
)

SHEET_LABEL = "sheet_label"  # column: people's labels from a sheet
SAMPLE = "judge_sample"  # stage 4 calls its samples `sample`
OWN_SERVER = "OPENAI_BASE_URL, or --judge_base_url of measure.py"  # what sets its address


class ResponseChecker(JudgedStage):
    """Stage 5."""

    name = "response_checker"
    brings = "verdicts"
    about = About.REFUSAL

    def __init__(self, args: Namespace) -> None:
        before = read_input(args.input_file, ["prompt", "response"], args)
        if {"rejection_reason", "refused_by"} <= set(before.columns):  # by the verdicts of stage 4
            before.columns.remove("refused_by")
        # Rows without a response stay unscored; a judge may read what the rules of stage 4 do not.
        if read_record(before.file).get("stage") == "alignment_checker":
            blank = dict.fromkeys(before.columns, "")
            before.rows += [blank | row for row in failed_rows(before.file)]
            before.rows = before.rows[: args.limit]
        if args.validate_against:
            args.validate_against = labels_in(before, args.validate_against)
        table = sampled(before, args.samples, SAMPLE)
        self.rules, models = deciders(args)
        self.graded = args.rubric == "graded"
        columns = ["refused", "answer_category", "answer_type_response", "refused_by"]
        if self.graded:
            columns.insert(2, "graded_category")
        stem = f"{table.path.stem}_response_check"
        word = file_name_part(args.check_model)
        default = Path(f"{stem}_merged_{word}.csv")
        super().__init__(args, table, models, default, output_columns(table, columns))
        if self.rules:
            self.versions = {"rules": rules.version()}
        self.split(f"{stem}_", CLASSES, f"_{word}.csv")
        self.set_judge()
        self.closing = VerdictTable(self)
        # By people: the judge gets a passport.
        is_labeled = "sets" in table.source and args.validate_against == "label"
        self.gives_passport = is_labeled and args.merge_result
        if self.gives_passport:
            passports_in(self.output.parent)  # a damaged file stops the run before it costs

    def set_judge(self) -> None:
        """Set how the judge is asked and read. Raises UserError if it cannot tell the classes."""
        args = self.args
        prompt_file, classes = RUBRICS[args.rubric]
        self.listed = numbered_list(classes)
        self.seat_judges(classes, __file__, prompt_file)
        kind = GENERAL
        for seat in self.seats.values():  # of the judge, if there is one
            kind = seat.kind
            self.parameters = seat.parameters
        if kind.classes is None:
            raise UserError(f"{args.check_model} ({kind.name}) detects no refusals; name another")
        if self.graded and (self.rules or kind is not GENERAL):
            raise UserError(
                "--rubric graded needs a chat model as the judge, such as gpt-5.4-mini: "
                f"{args.check_model} does not tell the graded classes apart"
            )
        names = list(kind.classes) or [option.name for option in classes]
        if INDIRECT not in names:
            self.notes.append(NO_INDIRECT)
        self.reading = {
            "check_model": args.check_model,
            "rubric": args.rubric,
            "classes": names,
            "refusal_phrases": args.refusal_phrases,
            "judge_settings": settings.described(args),
        }

    def inquiries(self, row: Row) -> Plan:
        decided = without_judge(row, self.args.refusal_phrases, rules=self.rules)
        if isinstance(decided, Missing):
            if decided.kind != NOT_ENGLISH or not self.models:
                return decided
        elif decided and (decided.certain or not self.models):
            return [decided]
        (judge,) = self.models
        text = answer_of(row["response"])[0]
        earlier = earlier_turns(row)
        values = {"prompt": row["prompt"], "response": text, "classes": self.listed}
        sample = int(row[SAMPLE]) if self.args.samples > 1 else 0
        return [Inquiry(self.request(judge, values, earlier, sample))]

    def rows(self, row: Row, readings: Readings) -> list[Row]:
        (opinion,) = readings
        category = OF_THREE.get(opinion.verdict, opinion.verdict)
        signal = "" if opinion.judge else opinion.reply  # a judge's reply is none
        cells = {
            "refused": str(CLASSES[category]),
            "answer_category": category,
            "answer_type_response": opinion.reply,
            "refused_by": refused_by(signal) if CLASSES[category] else "",
        }
        if self.graded:
            cells["graded_category"] = opinion.verdict
        return [row | cells]

    def label(self, row: Row) -> str:
        return row["answer_category"]


class VerdictTable(RefusalTable):
    """The refusal table and, with --validate_against, the comparison with people's labels."""

    stage: ResponseChecker
    agreement: Words = ()  # lines

    def save(self) -> None:
        """Write `<stem>.validation.json`. Raises OSError."""
        args = self.stage.args
        if args.validate_against and (rows := self.stage.written()):
            from orbench.judging.validation import compared_with_people, validation_lines

            output = self.stage.output
            figures = compared_with_people(rows, args.validate_against, args.check_model)
            csv = sha256_of(output) if args.merge_result else ""
            # What the figures hold for, and nothing else: by its hash, this CSV.
            figures["made_for"] = {"csv": csv}
            write_json(self.stage.beside(".validation.json"), figures)
            lines = [*validation_lines(figures)]
            if self.stage.gives_passport:
                from orbench.judging.passport import add_passport

                lines += add_passport(output, figures, rows, args.prices)
            self.agreement = lines

    def lines(self) -> Lines:
        yield from super().lines()
        yield from self.agreement
        if self.stage.rules and self.stage.models:
            n = self.findings["by_rules"]
            yield f"decided by the rules: {n:,}; the others by the judge"


def deciders(args: Namespace) -> tuple[bool, Models]:
    """Tell whether the rules decide, and return the judge of --check_model, if there is one.

    Raises UserError.
    """
    if args.check_model == flags.RULES:
        if args.samples > 1:
            raise UserError("--samples needs a judge: the verdicts of the rules do not vary")
        return True, []
    name = args.check_model.removeprefix(f"{flags.RULES}+")
    try:
        return name != args.check_model, [settings.model_of(name, args, OWN_SERVER)]
    except UserError as error:
        raise UserError(f"{error}{did_you_mean(name, [flags.RULES])}") from None


def labels_in(table: Table, labels: str) -> str:
    """Return the column of people's labels; those in a sheet of label_sheet.py become one.

    Raises UserError.
    """
    from orbench.judging.validation import check_labels

    column = labels
    if labels.endswith(".csv"):
        sheet = read_csv(labels, ["id", "label"]).rows
        known = {row["id"]: row["label"] for row in sheet}
        if len(known) < len(sheet):
            raise UserError(f"{labels} labels a response twice; give the sheet of one annotator")
        for row in table.rows:
            row[SHEET_LABEL] = known.get(response_id_of(row), "")
        table.columns = output_columns(table, [SHEET_LABEL])
        column = SHEET_LABEL
    check_labels(table, column)
    if table.rows and not any(row[column].strip() for row in table.rows):
        raise UserError(f"no response in {table.path} has a label in {labels}")
    return column


def run(args: Namespace) -> Outcome:
    """Run stage 5 with these flags. Raises UserError."""
    return run_stage(ResponseChecker(args))


def parser() -> flags.Parser:
    return flags.stage_parser(
        __doc__,
        "check_response",
        "rubric",
        "merge",
        "output",
        "phrases",
        "rows",
        "samples",
        parts="one per class",
        default="./{input stem}_response_check_merged_{check model}.csv",
        samples=SAMPLE,
        temperature=JUDGE_TEMPERATURE,
    )


if __name__ == "__main__":
    as_script(run, parser)
