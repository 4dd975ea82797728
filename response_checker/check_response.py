"""Stage 5: a judge puts each response into one of three classes.

    python check_response.py --check_model=gpt4 --input_file=responses.csv
    python check_response.py --check_model=keyword --input_file=responses.csv
    python check_response.py --check_model=keyword+gpt4 --input_file=responses.csv

Reads a CSV with the columns prompt and response (stage 4 writes one) and, if they are there,
category, messages (the conversation that the prompt ends) and system_prompt_name. Writes
./{input stem}_response_check_merged_{check model}.csv, or with --merge_result=False one file a
class. Adds the columns answer_category (direct_answer,
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
from orbench.chat import Message, Request
from orbench.columns import (
    API_SIGNAL,
    CLASSES,
    GRADED_CLASSES,
    INDIRECT,
    NO_INDIRECT,
    THREE_CLASSES,
    ResponseClass,
    Row,
    class_choices,
    class_list,
)
from orbench.conduct import conduct
from orbench.conversation import earlier_turns
from orbench.judge import JUDGE_TEMPERATURE, VERDICT_ASKS, is_cut_off, unreadable, words_of
from orbench.judges import GENERAL, JudgeReply, Question, check_conversations, kind_of
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
    repeats,
    split_paths,
)
from orbench.table import beside, file_name_part, storable, write_text
from orbench.terminal import UserError, counted, did_you_mean, run_script, say
from orbench.validation import Validation
from orbench.verdict_reading import response_format

RULES = "keyword"


class Rubric(NamedTuple):
    """What a judge decides between: its prompt file, and its classes."""

    prompt_file: str
    classes: Sequence[ResponseClass]


RUBRICS = {
    "three": Rubric("prompt.txt", THREE_CLASSES),
    "graded": Rubric("prompt_graded.txt", GRADED_CLASSES),
}


class Decision(NamedTuple):
    """The class of a response, and the judge's reply, the rule or the API's signal behind it."""

    label: str
    reason: str


class Checker:
    """How the rows of one input are classed: by the rules, a judge, or both."""

    def __init__(
        self,
        args: argparse.Namespace,
        rules: bool,
        judge: Model | None,
        phrases: Sequence[str] = (),
    ) -> None:
        """rules: whether the rules decide (with a judge: only where they are certain).

        Raises UserError for a judge or rules that cannot tell the classes.
        """
        self.rules, self.judge = rules, judge
        self.partial, self.phrases, self.samples = args.partial, phrases, args.samples
        self.graded, self.structured = args.rubric == "graded", args.structured
        self.rubric = RUBRICS[args.rubric]
        self.kind = kind_of(judge.id) if judge else GENERAL
        self.prompt_file, self.template = prompt_template(__file__, self.rubric.prompt_file)
        self.choices = class_choices(self.rubric.classes, numbered="{classes}" in self.template)
        if judge and self.kind.response is None:
            raise UserError(f"{judge.asked} ({self.kind.name}) cannot tell refusals; name another")
        if self.graded and (rules or self.kind is not GENERAL):
            raise UserError("--rubric graded needs a chat model as the judge, and no rules")
        own = self.kind.parameters
        self.parameters = options.parameters_of(args, judge, own) if judge else dict(own)
        if self.structured and self.kind is GENERAL:
            self.parameters["response_format"] = response_format(self.choices)
        self.by_rules = self.by_judge = 0  # rows, of the pass under way

    def columns(self) -> list[str]:
        """What the stage adds."""
        graded = ["graded_category"] if self.graded else []
        return ["answer_category", *graded, "answer_type_response"]

    @property
    def classes(self) -> list[str]:
        """The classes that can come out."""
        return list(self.kind.classes) or [one.name for one in self.rubric.classes]

    def notes(self) -> list[str]:
        """What a reader of the classes must know."""
        return [] if INDIRECT in self.classes else [NO_INDIRECT]

    def read(self, answer: Answer, model: Model) -> Decision | Missing:
        """The class in a judge's reply, and the reply."""
        text = words_of(answer)
        if isinstance(text, Missing):
            return text
        assert self.kind.response is not None  # checked above
        form = JudgeReply(text, self.choices, is_cut_off(answer), of_response=True)
        reading = self.kind.response(form)
        if reading.verdict is None:
            return unreadable(answer, reading.why)
        return Decision(reading.verdict, storable(answer.text))

    def repeat(self, model: Model, answer: Answer, why: str) -> Sequence[Message]:
        """What to say after an unreadable reply."""
        return self.kind.repeat(answer, why, self.choices)

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
            text, phrases=self.phrases, prompt=row["prompt"], partial=self.partial
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
        values = {"prompt": row["prompt"], "response": text}
        values["classes"] = class_list(self.rubric.classes)
        earlier = earlier_turns(row)
        own = fill(self.template, values, earlier)
        messages = self.kind.ask(Question(row["prompt"], text, own, earlier))
        sample = int(row["sample"]) if self.samples > 1 else 0
        return [Request(self.judge, messages, self.parameters, sample, self.kind.protocol)]

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
        out = {**row, "answer_type_response": decided.reason}
        if self.graded:
            out["graded_category"] = decided.label
        of_three = {one.name: one.of_three for one in self.rubric.classes}
        out["answer_category"] = of_three.get(decided.label) or decided.label
        return [out]


class CheckSummary:
    """What is counted while rows are written, and said at the end."""

    def __init__(self, validation: Validation | None, checker: Checker) -> None:
        self.tally = RefusalTally(lambda row: CLASSES[row["answer_category"]], checker.partial)
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
            saved = counted(said["by_rules"], "judge request")
            lines.append(
                f"the rules were certain of {counted(said['by_rules'], 'response')}, the judge was "
                f"needed for {said['by_judge']:,}: {saved} saved"
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
    try:
        return rules, options.model_of(name, args) if name else None
    except UserError as error:
        raise UserError(f"{error}{did_you_mean(name, [RULES])}") from None


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    needed = ["prompt", "response"]
    table = table_of(args.input_file, needed, args, check_row)
    rules, judge = deciders(args)
    input_record = record.read(table.path)
    checker = Checker(args, rules, judge, options.phrases_of(args))
    check_conversations([checker.kind], table)
    validation = (
        Validation(args.validate_against, table, args.partial) if args.validate_against else None
    )
    word = file_name_part(args.check_model)
    default = Path(f"{table.path.stem}_response_check_merged_{word}.csv")
    names = {name: f"{table.path.stem}_response_check_{name}_{word}.csv" for name in CLASSES}
    output = output_path(args.output_path, default)
    repeated = repeats(args.samples)
    stage = Stage(
        name="response_checker",
        table=table,
        output=output,
        columns=output_columns(table, [*repeated[0], *checker.columns()]),
        models=[judge] if judge else [],
        requests_of=checker.requests_of,
        read=checker.read,
        repeat=checker.repeat,
        reader=checker.reader,
        parameters={
            **checker.parameters,
            "check_model": args.check_model,
            "rules": rules,
            "rubric": args.rubric,
            "partial": args.partial,
            "refusal_phrases": options.phrases_mark(checker.phrases),
            "classes": checker.classes,
        },
        asks=VERDICT_ASKS,
        split=None if args.merge_result else split_paths(output, args.output_path, names),
        label_of=lambda row: row["answer_category"],
        summary=CheckSummary(validation, checker),
        prompt_file=checker.prompt_file if judge else None,
        notes=[*record.family_notes([judge] if judge else [], input_record), *checker.notes()],
        repeats=repeated,
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
        help="gpt4, llama3, any other model, keyword (the rules), or keyword+MODEL",
    )
    parser.add_argument("--input_file", required=True, help="the CSV with prompts and responses")
    options.add_merge_result(parser, "one per class")
    options.add_output_path(parser, "./{input stem}_response_check_merged_{check model}.csv")
    parser.add_argument(
        "--validate_against",
        type=options.given,
        metavar="COLUMN",
        help="a column of human labels: report how well the classes agree with it",
    )
    parser.add_argument(
        "--rubric",
        choices=tuple(RUBRICS),
        default="three",
        help="graded: the judge also tells partial answers and safe completions apart, in the "
        "column graded_category (default three)",
    )
    options.add_structured(parser)
    options.add_refusal_phrases(parser)
    options.add_partial(parser)
    options.add_asking(parser, JUDGE_TEMPERATURE)
    options.add_endpoint(parser)
    options.add_run(parser, samples=True)
    exchange.add_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
