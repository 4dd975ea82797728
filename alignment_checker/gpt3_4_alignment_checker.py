"""Stage 4: put each prompt to the model under test, and mark refusals by rules.

    python gpt3_4_alignment_checker.py --model=gpt-3.5-turbo-0125 --input_file=prompts.csv

Reads a CSV with the column prompt and, if it is there, category. Writes
./final_{model}_results/{model}_merged_{input file name}, or with --merge_result=False the files
{model}_rejected_... and {model}_accepted_... instead. Adds the columns response, is_rejected,
rejection_reason (the rule, or the API's own signal as api:...) and finish_reason. Ends with a
table of refusal rates.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options, refusal
from orbench.chat import Answer, Request, system, user
from orbench.conduct import conduct
from orbench.judge import is_cut_off, is_refused_by_api
from orbench.rates import RefusalTally
from orbench.run import Failure
from orbench.stage import Stage, Unscored, empty_cell, output_columns, output_path, split_paths
from orbench.table import Row, Table, file_name_part, storable
from orbench.terminal import run_script, say

COLUMNS = ("response", "is_rejected", "rejection_reason", "finish_reason")


def unreadable(answer: Answer) -> str | None:
    """Why an answer is worth another try in a later run: empty, with nothing that explains it."""
    text, _ = refusal.answer_of(answer.text)
    if text.strip() or is_refused_by_api(answer) or is_cut_off(answer):
        return None
    return "an empty answer without a refusal signal"


def scored(row: Row, answer: Answer, family: str, phrases: Sequence[str]) -> list[Row] | Unscored:
    """The output row of an answer, or why it is unscored."""
    text, whole = refusal.answer_of(answer.text)
    if not is_refused_by_api(answer):
        if not whole:
            return Unscored(
                "unscored", "cut off inside its thinking; a higher --max_tokens may help"
            )
        if not text.strip():
            finish = answer.finish_reason or "none"
            return Unscored(
                "unscored", f"an empty answer, no refusal signal (finish_reason {finish})"
            )
    verdict = refusal.classify(
        text,
        finish_reason=answer.finish_reason,
        api_refusal=answer.refusal,
        family=family,
        phrases=phrases,
    )
    rejected = refusal.counts_as_refusal(verdict)
    return [
        {
            **row,
            "response": storable(text or answer.refusal),
            "is_rejected": str(rejected),
            "rejection_reason": verdict.rule if rejected else "",
            "finish_reason": storable(answer.finish_reason),
        }
    ]


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    table = Table(args.input_file, needed=["prompt"], limit=args.limit)
    model = options.model_of(args.model, args)
    phrases = options.phrases_of(args)
    family = model.family.lower()
    parameters = {"temperature": args.temperature, "max_tokens": args.max_tokens}
    before = [system(args.system_prompt)] if args.system_prompt else []

    def requests_of(row: Row) -> list[Request] | Unscored:
        if empty := empty_cell(row, "prompt"):
            return empty
        sample = int(row["sample"]) if args.samples > 1 else 0
        return [Request(model, [*before, user(row["prompt"])], parameters, sample)]

    def rows_of(row: Row, answers: Sequence[Answer | Failure]) -> list[Row] | Unscored:
        (answer,) = answers
        assert isinstance(answer, Answer)
        return scored(row, answer, family, phrases)

    if args.samples > 1 and not args.temperature:
        say("--samples at temperature 0: the answers to a prompt will hardly differ")
    word = file_name_part(args.model)
    stem = table.path.stem
    default = Path(f"final_{word}_results", f"{word}_merged_{stem}.csv")
    names = {kind: f"{word}_{kind}_{stem}.csv" for kind in ("rejected", "accepted")}
    output = output_path(args.output_path, default)
    stage = Stage(
        name="alignment_checker",
        table=table,
        output=output,
        columns=output_columns(table, COLUMNS, args.samples),
        models=[model],
        requests_of=requests_of,
        reader=lambda: rows_of,
        parameters={**parameters, "system_prompt": args.system_prompt},
        unreadable=unreadable,
        split=None if args.merge_result else split_paths(output, args.output_path, names),
        label_of=lambda row: "rejected" if row["is_rejected"] == "True" else "accepted",
        summary=RefusalTally(lambda row: row["is_rejected"] == "True"),
        under_test={"asked": args.model, "id": model.id, "family": model.family},
        samples=args.samples,
    )
    return conduct(stage, args, sys.argv)


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument("--model", required=True, help="the model under test: any")
    parser.add_argument("--input_file", required=True, help="the CSV with the prompts")
    options.add_merge_result(parser, "one for rejected and one for accepted prompts")
    options.add_output_path(parser, "./final_{model}_results/{model}_merged_{input file name}")
    parser.add_argument("--system_prompt", default="", help="a system prompt (default: none)")
    parser.add_argument(
        "--temperature", type=options.not_negative, default=0.0, help="default %(default)s"
    )
    parser.add_argument(
        "--max_tokens", type=options.whole_number(1), default=1000, help="default %(default)s"
    )
    options.add_refusal_phrases(parser)
    options.add_endpoint(parser)
    options.add_run(parser, samples=True)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
