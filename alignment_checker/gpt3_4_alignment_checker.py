"""Stage 4: put each prompt to the model under test, and mark refusals by rules.

    python gpt3_4_alignment_checker.py --model=gpt-3.5-turbo-0125 --input_file=prompts.csv

Reads a CSV with the column prompt and, if it is there, category; or with the column messages, a
conversation as a JSON list of {"role", "content"} that ends with the prompt. Writes
./final_{model}_results/{model}_merged_{input file name}, or with --merge_result=False the files
{model}_rejected_... and {model}_accepted_... instead. Adds the columns response, is_rejected,
rejection_reason (the rule, or the API's own signal as api:...), finish_reason, api_category (of the
API's own refusal, where it names one) and served_by (the model id as returned, and the provider
behind a gateway); with --system_prompts also system_prompt_name. Ends with a table of refusal
rates.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import exchange, options, prompt_sets, refusal
from orbench.answers import Answer, Missing
from orbench.chat import Request, messages_of, system
from orbench.columns import PARTIAL_RULE, Row
from orbench.conduct import conduct
from orbench.conversation import SYSTEM_PROMPT, turns_of
from orbench.judge import is_refused_by_api, says_nothing
from orbench.models import Model
from orbench.protocols import COMPLETIONS
from orbench.rates import RefusalTally, check_row
from orbench.sampling import table_of
from orbench.stage import (
    Stage,
    empty_cell,
    output_columns,
    output_path,
    repeats,
    split_paths,
    text_in,
)
from orbench.table import Table, file_name_part, storable
from orbench.terminal import UserError, clean, run_script, say

COLUMNS = (
    *("response", "is_rejected", "rejection_reason", "finish_reason"),
    *("api_category", "served_by"),
)


class Response(NamedTuple):
    """What the model under test answered."""

    text: str  # without its thinking
    verdict: refusal.Verdict
    finish_reason: str
    api_category: str
    served_by: str


def response_in(answer: Answer, phrases: Sequence[str], partial: str) -> Response | Missing | None:
    """The response in an answer; None for one that was cut off inside its thinking, Missing for an
    empty one with nothing that explains it, which may be worth another try in a later run.
    """
    text, whole = refusal.answer_of(answer.text)
    if not is_refused_by_api(answer):
        if says_nothing(answer):
            finish = answer.finish_reason or "none"
            why = f"an empty answer, no refusal signal (finish_reason {finish})"
            return Missing("unscored", why)
        if not whole or not text.strip():
            return None
    verdict = refusal.classify(
        text,
        finish_reason=answer.finish_reason,
        api_refusal=answer.refusal,
        phrases=phrases,
        partial=partial,
    )
    return Response(
        storable(text or answer.refusal),
        verdict,
        storable(answer.finish_reason),
        storable(answer.api_category),
        storable(answer.served_by),
    )


def rows_of(row: Row, responses: Sequence[Response | None]) -> list[Row] | Missing:
    """The output row of a response, or why it is unscored."""
    (response,) = responses
    if response is None:
        return Missing("unscored", "cut off before the answer began; try a higher --max_tokens")
    rejected, reason = refusal.counts_as_refusal(response.verdict), response.verdict.rule
    return [
        {
            **row,
            "response": response.text,
            "is_rejected": str(rejected),
            "rejection_reason": reason if rejected or reason.startswith(PARTIAL_RULE) else "",
            "finish_reason": response.finish_reason,
            "api_category": response.api_category,
            "served_by": response.served_by,
        }
    ]


def system_prompts_of(args: argparse.Namespace) -> dict[str, str]:
    """Name -> system prompt, of --system_prompts; else the one system prompt, under no name.

    Raises UserError for a file that cannot be used.
    """
    if args.system_prompt_file:
        text = text_in(args.system_prompt_file)
        if not text:
            raise UserError(f"{args.system_prompt_file} is empty; it is to hold a system prompt")
        return {"": text}
    if not args.system_prompts:
        return {"": args.system_prompt}
    found = dict[str, str]()
    for number, row in enumerate(Table(args.system_prompts, ("name", "system_prompt")), start=1):
        name = clean(row["name"]).strip()
        if not name or name in found:
            wrong = f"the name {name!r} is there twice" if name else "the name is empty"
            raise UserError(f"{args.system_prompts}, row {number}: {wrong}")
        found[name] = row["system_prompt"]
    if not found:
        raise UserError(f"{args.system_prompts} holds no system prompt")
    return found


def check_turns(row: Row, where: str, has_system_prompt: bool, model: Model) -> None:
    """Raise UserError for a row that cannot be put to the model as it stands."""
    roles = [turn["role"] for turn in turns_of(row)]
    if has_system_prompt and "system" in roles:
        raise UserError(f"{where}: the conversation has a system turn; give no system prompt")
    if model.protocol == COMPLETIONS and (has_system_prompt or len(roles) > 1):
        raise UserError(f"{where}: {COMPLETIONS} takes a prompt alone; leave --protocol out")


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    prompts, model = system_prompts_of(args), options.model_of(args.model, args)
    repeated = repeats(args.samples, filter(None, prompts))

    def check(row: Row, where: str) -> None:
        check_row(row, where)
        check_turns(row, where, any(prompts.values()), model)

    table = table_of(prompt_sets.path_of(args.input_file, args), ["prompt"], args, check)
    phrases = options.phrases_of(args)
    parameters = options.parameters_of(args, model)

    def requests_of(row: Row) -> list[Request] | Missing:
        if empty := empty_cell(row, "prompt"):
            return empty
        sample = int(row["sample"]) if args.samples > 1 else 0
        prompt = prompts[row[SYSTEM_PROMPT] if args.system_prompts else ""]
        before = [system(prompt)] if prompt else []
        return [Request(model, [*before, *messages_of(turns_of(row))], parameters, sample)]

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
        columns=output_columns(table, [*repeated[0], *COLUMNS]),
        models=[model],
        requests_of=requests_of,
        read=lambda answer, _: response_in(answer, phrases, args.partial),
        reader=lambda: rows_of,
        parameters={
            **parameters,
            "system_prompt": prompts.get("", ""),
            **({"system_prompts": prompts} if args.system_prompts else {}),
            "partial": args.partial,
            "refusal_phrases": options.phrases_mark(phrases),
        },
        split=None if args.merge_result else split_paths(output, args.output_path, names),
        label_of=lambda row: "rejected" if row["is_rejected"] == "True" else "accepted",
        summary=RefusalTally(lambda row: row["is_rejected"] == "True", args.partial),
        under_test={
            "asked": args.model,
            "id": model.id,
            "family": model.family,
            "state": options.state_of(args),
        },
        repeats=repeated,
    )
    return conduct(stage, args, sys.argv)


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument("--model", required=True, help="the model under test, e.g. openai/gpt-5.4")
    parser.add_argument(
        "--input_file", required=True, help="the CSV with the prompts, or a named prompt set"
    )
    options.add_merge_result(parser, "one for rejected and one for accepted prompts")
    options.add_output_path(parser, "./final_{model}_results/{model}_merged_{input file name}")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--system_prompt", default="", help="a system prompt (default: none)")
    ways.add_argument(
        "--system_prompt_file",
        type=options.input_path,
        metavar="FILE",
        help="a text file with a system prompt",
    )
    ways.add_argument(
        "--system_prompts",
        type=options.input_path,
        metavar="FILE",
        help="a CSV with the columns name and system_prompt: every prompt is asked under each",
    )
    options.add_asking(parser, temperature_=0.0, max_tokens=1000)
    options.add_refusal_phrases(parser)
    options.add_partial(parser)
    options.add_endpoint(parser)
    options.add_run(parser, samples=True)
    prompt_sets.add_flags(parser)
    exchange.add_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
