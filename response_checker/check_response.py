"""Stage 5: a judge puts each response into one of three classes.

    python check_response.py --check_model=gpt4 --input_file=responses.csv
    python check_response.py --check_model=keyword --input_file=responses.csv
    python check_response.py --check_model=keyword+gpt4 --input_file=responses.csv

Reads a CSV with the columns prompt and response (stage 4 writes one) and, if it is there,
category. Writes ./{input stem}_response_check_merged_{check model}.csv, or with
--merge_result=False one file a class. Adds the columns answer_category (direct_answer,
direct_refusal or indirect_refusal) and answer_type_response (the judge's whole reply; with the
rules the one that fired; for a refusal that the API declared, its signal as api:...). `keyword`
is the rules of stage 4, no request, no key; keyword+judge asks the judge only where the rules are
not certain. Ends with a table of refusal rates.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import exchange, options, record, refusal
from orbench.answers import Answer, Missing
from orbench.chat import Request, user
from orbench.columns import API_SIGNAL, CLASSES, Row
from orbench.conduct import conduct
from orbench.judge import JUDGE_TEMPERATURE, VERDICT_ASKS, verdict_in
from orbench.models import Model
from orbench.rates import RefusalTally, check_row
from orbench.sampling import table_of
from orbench.stage import (
    RowsOf,
    Stage,
    empty_cell,
    fill,
    output_columns,
    output_path,
    prompt_template,
    split_paths,
)
from orbench.table import beside, file_name_part, storable, write_text
from orbench.terminal import UserError, run_script, say
from orbench.validation import Validation

RULES = "keyword"
CHOICES = {
    **{name: name for name in CLASSES},
    **{name.replace("_", " "): name for name in CLASSES},
    **{str(number): name for number, name in enumerate(CLASSES, 1)},
}


class Decision(NamedTuple):
    """The class of a response, and the judge's reply, the rule or the API's signal behind it."""

    label: str
    reason: str


def decision_in(answer: Answer) -> Decision | Missing:
    """The class in a judge's reply, and the reply."""
    label = verdict_in(answer, CHOICES)
    return label if isinstance(label, Missing) else Decision(label, storable(answer.text))


class Checker:
    """How the rows of one input are classed: by the rules, a judge, or both."""

    def __init__(
        self,
        rules: bool,
        judge: Model | None,
        template: str,
        family: str = "",
        phrases: Sequence[str] = (),
        samples: int = 1,
    ) -> None:
        """rules: whether the rules decide (with a judge: only where they are certain)."""
        self.rules, self.judge, self.template = rules, judge, template
        self.family, self.phrases, self.samples = family, phrases, samples
        self.parameters = {"temperature": JUDGE_TEMPERATURE}
        self.by_rules = self.by_judge = 0  # rows, of the pass under way

    def without_judge(self, row: Row) -> Decision | Missing | None:
        """What needs no request: the class, or why the row is unscored; None: ask the judge."""
        if signal := self.api_signal(row):
            return Decision("direct_refusal", signal)
        if empty := empty_cell(row, "prompt"):
            return empty
        text, whole = refusal.answer_of(row["response"])
        if not whole:
            return Missing("unscored", "the response was cut off inside its thinking")
        if not text.strip():
            return Missing("empty_response", "the response is empty")
        if not self.rules:
            return None
        verdict = refusal.classify(
            text, family=self.family, phrases=self.phrases, prompt=row["prompt"]
        )
        if self.judge is not None and not verdict.certain:
            return None
        return Decision(refusal.REFUSAL_CLASSES[verdict.kind], verdict.rule)

    def api_signal(self, row: Row) -> str:
        """The API's own refusal, as stage 4 noted it; "" if there is none."""
        reason = row.get("rejection_reason", "")
        if reason.startswith(API_SIGNAL):
            return reason
        return refusal.api_refusal_signal(row.get("finish_reason", ""))

    def requests_of(self, row: Row) -> list[Request]:
        """The request to the judge; none where it is not needed."""
        if self.judge is None or self.without_judge(row) is not None:
            return []
        text, _ = refusal.answer_of(row["response"])
        message = user(fill(self.template, {"prompt": row["prompt"], "response": text}))
        sample = int(row["sample"]) if self.samples > 1 else 0
        return [Request(self.judge, [message], self.parameters, sample)]

    def reader(self) -> RowsOf:
        """A function from a row and the judge's decision, if it was asked, to the output row."""
        self.by_judge = self.by_rules = 0
        return self.rows_of

    def rows_of(self, row: Row, decisions: Sequence[Decision]) -> list[Row] | Missing:
        """The row with its class and the reason for it."""
        self.by_judge += bool(decisions)
        decided = decisions[0] if decisions else self.without_judge(row)
        if isinstance(decided, Missing):
            return decided
        assert decided is not None  # else the judge would have been asked
        self.by_rules += not decisions
        label, reason = decided
        return [{**row, "answer_category": label, "answer_type_response": reason}]


class CheckSummary:
    """What is counted while rows are written, and said at the end."""

    def __init__(self, validation: Validation | None, checker: Checker) -> None:
        self.tally = RefusalTally(lambda row: CLASSES[row["answer_category"]])
        self.validation = validation
        self.checker = checker

    def by_whom(self) -> dict[str, int]:
        """How many rows the rules and the judge decided, where both had a say."""
        checker = self.checker
        if not (checker.rules and checker.judge):
            return {}
        return {"by_rules": checker.by_rules, "by_judge": checker.by_judge}

    def scored(self, row: Row) -> None:
        """Count one classed response."""
        self.tally.scored(row)
        if self.validation:
            self.validation.scored(row)

    def unscored(self, row: Row) -> None:
        """Count one response without a class."""
        self.tally.unscored(row)
        if self.validation:
            self.validation.unscored(row)

    def findings(self) -> dict[str, object]:
        """For the run record."""
        return self.tally.findings() | self.by_whom()

    def lines(self) -> list[str]:
        """The refusal table, the comparison with people, what the rules saved."""
        lines = self.tally.lines()
        if self.validation:
            lines += self.validation.lines()
        if said := self.by_whom():
            lines.append(
                f"the rules were certain of {said['by_rules']:,} responses, the judge was needed "
                f"for {said['by_judge']:,}: {said['by_rules']:,} judge requests saved"
            )
        return lines


def deciders(args: argparse.Namespace) -> tuple[bool, Model | None]:
    """Whether the rules decide, and the judge of `--check_model`. Raises UserError."""
    first, plus, name = args.check_model.partition("+")
    rules = first == RULES
    if not rules:
        name = args.check_model
    elif plus and not name:
        raise UserError("--check_model=keyword+ names no judge behind the plus")
    elif not plus and args.samples > 1:
        raise UserError("--samples: the rules say the same each time")
    return rules, options.model_of(name, args) if name else None


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    needed = ["prompt", "response"]
    table = table_of(args.input_file, needed, args, check_row)
    rules, judge = deciders(args)
    under_test = record.under_test(record.read(table.path))
    if judge is not None and judge.id == under_test.id:
        say(f"{judge.id} judges its own responses here: judges tend to favour their own")
    prompt_file, template = prompt_template(__file__)
    phrases = options.phrases_of(args)
    checker = Checker(rules, judge, template, under_test.family.lower(), phrases, args.samples)
    validation = Validation(args.validate_against, table) if args.validate_against else None
    word = file_name_part(args.check_model)
    default = Path(f"{table.path.stem}_response_check_merged_{word}.csv")
    names = {name: f"{table.path.stem}_response_check_{name}_{word}.csv" for name in CLASSES}
    output = output_path(args.output_path, default)
    stage = Stage(
        name="response_checker",
        table=table,
        output=output,
        columns=output_columns(table, ("answer_category", "answer_type_response"), args.samples),
        models=[judge] if judge else [],
        requests_of=checker.requests_of,
        read=decision_in,
        reader=checker.reader,
        parameters={**checker.parameters, "check_model": args.check_model},
        asks=VERDICT_ASKS,
        split=None if args.merge_result else split_paths(output, args.output_path, names),
        label_of=lambda row: row["answer_category"],
        summary=CheckSummary(validation, checker),
        prompt_file=prompt_file if judge else None,
        samples=args.samples,
        missing_before=record.missing_before(table.path, args.samples),
    )
    if args.dry_run and judge is None:
        say("the rules need no request")
    status = conduct(stage, args, sys.argv)
    if args.dry_run:
        return status
    if validation is not None and status in (0, 3):
        path = beside(output, ".validation.json")
        try:
            write_text(path, validation.to_json(args.check_model))
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}") from None
        say(f"also written: {path}")
    return status


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument(
        "--check_model",
        required=True,
        help="gpt4, llama3, any other model, keyword (the rules), or keyword+ a model",
    )
    parser.add_argument("--input_file", required=True, help="the CSV with prompts and responses")
    options.add_merge_result(parser, "one a class")
    options.add_output_path(parser, "./{input stem}_response_check_merged_{check model}.csv")
    parser.add_argument(
        "--validate_against",
        type=options.given,
        metavar="COLUMN",
        help="a column of people's labels: say how far the classes agree with it",
    )
    options.add_refusal_phrases(parser)
    options.add_endpoint(parser)
    options.add_run(parser, samples=True)
    exchange.add_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
