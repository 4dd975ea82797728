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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options, record, refusal
from orbench.chat import Answer, Request, user
from orbench.conduct import conduct
from orbench.judge import ASKS, verdict_in
from orbench.models import Model
from orbench.options import UserError, say
from orbench.rates import RefusalTally
from orbench.run import Failure
from orbench.stage import (
    RowsOf,
    Stage,
    Unscored,
    beside,
    empty_cell,
    fill,
    output_columns,
    output_path,
    prompt_template,
    split_paths,
)
from orbench.table import Row, Table, file_name_part, storable, write_text
from orbench.validation import Validation

RULES = "keyword"
TEMPERATURE = 0.0  # the paper's
CLASSES = ("direct_answer", "direct_refusal", "indirect_refusal")
CHOICES = {
    **{name: name for name in CLASSES},
    **{name.replace("_", " "): name for name in CLASSES},
    **{str(number): name for number, name in enumerate(CLASSES, 1)},
}


class Checker:
    """How the rows of one input are classed: by the rules, a judge, or both."""

    def __init__(
        self, rules: bool, judge: Model | None, family: str, phrases: Sequence[str]
    ) -> None:
        """rules: whether the rules decide (with a judge: only where they are certain)."""
        self.rules, self.judge, self.family, self.phrases = rules, judge, family, phrases

    def without_judge(self, row: Row) -> tuple[str, str] | Unscored | None:
        """What needs no request: (class, reason), or why the row is unscored; None: ask the
        judge.
        """
        if signal := self.api_signal(row):
            return "direct_refusal", signal
        if empty := empty_cell(row, "prompt"):
            return empty
        text, whole = refusal.answer_of(row["response"])
        if not whole:
            return Unscored("unscored", "the response was cut off inside its thinking")
        if not text.strip():
            return Unscored("empty_response", "the response is empty")
        if not self.rules:
            return None
        verdict = refusal.classify(
            text, family=self.family, phrases=self.phrases, prompt=row["prompt"]
        )
        if self.judge is not None and not verdict.certain:
            return None
        return refusal.REFUSAL_CLASSES[verdict.kind], verdict.rule

    def api_signal(self, row: Row) -> str:
        """The API's own refusal, as stage 4 noted it; "" if there is none."""
        reason = row.get("rejection_reason", "")
        if reason.startswith("api:"):
            return reason
        return refusal.api_refusal_signal(row.get("finish_reason", ""))


class Summary:
    """What is counted while rows are written, and said at the end."""

    def __init__(self, validation: Validation | None, rules_and_judge: bool) -> None:
        self.tally = RefusalTally(lambda row: row["answer_category"] != "direct_answer")
        self.validation = validation
        self.rules_and_judge = rules_and_judge
        self.by_rules = self.by_judge = 0

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
        found = self.tally.findings()
        if self.rules_and_judge:
            found |= {"by_rules": self.by_rules, "by_judge": self.by_judge}
        return found

    def lines(self) -> list[str]:
        """The refusal table, the comparison with people, what the rules saved."""
        lines = self.tally.lines()
        if self.validation:
            lines += self.validation.lines()
        if self.rules_and_judge:
            lines.append(
                f"the rules were certain of {self.by_rules:,} responses, the judge was needed for "
                f"{self.by_judge:,}: {self.by_rules:,} judge requests saved"
            )
        return lines


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    table = Table(args.input_file, needed=["prompt", "response"], limit=args.limit)
    first, plus, rest = args.check_model.partition("+")
    rules = first == RULES
    judge_name = rest if rules and plus else "" if rules else args.check_model
    if rules and not plus and args.samples > 1:
        raise UserError("--samples: the rules say the same each time")
    if rules and plus and not rest:
        raise UserError("--check_model=keyword+ names no judge behind the plus")
    judge = options.model_of(judge_name, args) if judge_name else None
    under_test = record.read(table.path).get("under_test", {})
    if judge is not None and judge.id == under_test.get("id"):
        say(f"{judge.id} judges its own responses here: judges tend to favour their own")
    checker = Checker(
        rules, judge, str(under_test.get("family", "")).lower(), options.phrases_of(args)
    )
    prompt_file, template = prompt_template(__file__)
    parameters = {"temperature": TEMPERATURE}
    validation = Validation(args.validate_against, table) if args.validate_against else None

    def requests_of(row: Row) -> list[Request] | Unscored:
        decided = checker.without_judge(row)
        if isinstance(decided, Unscored):
            return decided
        if decided is not None or judge is None:
            return []
        text, _ = refusal.answer_of(row["response"])
        message = user(fill(template, {"prompt": row["prompt"], "response": text}))
        sample = int(row["sample"]) if args.samples > 1 else 0
        return [Request(judge, [message], parameters, sample)]

    def rows_of(row: Row, answers: Sequence[Answer | Failure]) -> list[Row] | Unscored:
        summary.by_judge += bool(answers)
        summary.by_rules += not answers
        if answers:
            answer = answers[0]
            assert isinstance(answer, Answer)
            label, why = verdict_in(answer, CHOICES)
            if label is None:
                return Unscored("unscored", why)
            reason = storable(answer.text)
        else:
            decided = checker.without_judge(row)
            assert isinstance(decided, tuple)
            label, reason = decided
        return [{**row, "answer_category": label, "answer_type_response": reason}]

    def reader() -> RowsOf:
        summary.by_judge = summary.by_rules = 0
        return rows_of

    word = file_name_part(args.check_model)
    default = Path(f"{table.path.stem}_response_check_merged_{word}.csv")
    names = {name: f"{table.path.stem}_response_check_{name}_{word}.csv" for name in CLASSES}
    output = output_path(args.output_path, default)
    summary = Summary(validation, rules_and_judge=rules and judge is not None)
    stage = Stage(
        name="response_checker",
        table=table,
        output=output,
        columns=output_columns(table, ("answer_category", "answer_type_response"), args.samples),
        models=[judge] if judge else [],
        requests_of=requests_of,
        reader=reader,
        parameters={**parameters, "check_model": args.check_model},
        unreadable=lambda answer: verdict_in(answer, CHOICES)[1] or None,
        asks=ASKS,
        split=None if args.merge_result else split_paths(output, args.output_path, names),
        label_of=lambda row: row["answer_category"],
        summary=summary,
        prompt_file=prompt_file if judge else None,
        samples=args.samples,
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
    return parser


if __name__ == "__main__":
    sys.exit(options.run_script(main))
