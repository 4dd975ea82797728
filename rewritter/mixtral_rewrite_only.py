"""Stage 2: rewrite toxic seeds into prompts that look toxic but are safe.

    python mixtral_rewrite_only.py --toxic_seed_path=../toxic_prompt_generator/harmful_prompts.csv

Reads a CSV with the column prompt (the seed) and, if it is there, category. Writes ./{input
stem}_rewrite.csv with the columns: prompt (the rewrite), toxic_seed, category, and what else the
input had; several rows a seed.
"""

import argparse
import sys
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import brackets, exchange, options, prompt_sets
from orbench.answers import Answer, Missing
from orbench.chat import Request, user
from orbench.columns import Row
from orbench.conduct import conduct
from orbench.excuses import is_refusal_of_request
from orbench.judge import is_refused_by_api
from orbench.models import generator
from orbench.refusal import answer_of, classify, counts_as_refusal
from orbench.sampling import table_of
from orbench.stage import RowsOf, Stage, empty_cell, fill, output_path, prompt_template
from orbench.table import storable
from orbench.terminal import UserError, counted, run_script, say

REWRITE_MAX_TOKENS = 2000  # five prompts are some 200; the rest is for models that think first
REWRITE_ASKS = 3  # for a reply in which no prompt can be found


class Rewritten(NamedTuple):
    """What a generator's reply holds: prompts, or its refusal to write any, in words."""

    prompts: list[str]
    refused: str = ""
    dropped: int = 0  # excuses in place of prompts


def reply_in(answer: Answer, number: int, placeholders: Container[str]) -> Rewritten | Missing:
    """The prompts in a reply, at most `number`. A refusal is a reply: asking again would only pay
    for another one.
    """
    if is_refused_by_api(answer):
        return Rewritten([], "the API refused to rewrite this seed")
    text, whole = answer_of(answer.text)
    if not whole:
        return Missing("unscored", "the reply was cut off inside its thinking")
    found = [item for item in brackets.items(text) if item not in placeholders]
    prompts = [item for item in found if not is_refusal_of_request(item)]
    if prompts:
        return Rewritten(prompts[:number], dropped=len(found) - len(prompts))
    if found or counts_as_refusal(classify(text)):
        return Rewritten([], "the model refused to rewrite this seed")
    return Missing("unscored", "no prompt in double brackets in the reply")


class Rewrites:
    """The rows of all seeds' rewrites, no rewrite twice in all."""

    def __init__(self) -> None:
        self.nothing_new = 0  # seeds whose rewrites were all there already
        self.dropped = 0  # excuses in place of prompts

    def reader(self) -> RowsOf:
        """A function from a seed and its reply to the rows of its rewrites."""
        seen: set[str] = set()
        self.nothing_new = self.dropped = 0

        def rows_of(row: Row, replies: Sequence[Rewritten]) -> list[Row] | Missing:
            (reply,) = replies
            if reply.refused:
                return Missing("unscored", reply.refused)
            self.dropped += reply.dropped
            rows = []
            for prompt in reply.prompts:
                same = brackets.same(prompt)
                if same not in seen and same != brackets.same(row["prompt"]):
                    seen.add(same)
                    rows.append({**row, "prompt": storable(prompt), "toxic_seed": row["prompt"]})
            self.nothing_new += not rows
            return rows

        return rows_of


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    table = table_of(prompt_sets.path_of(args.toxic_seed_path, args), ["prompt"], args)
    if "toxic_seed" in table.columns:
        raise UserError(f"{table.path} already has a column 'toxic_seed': it has been rewritten")
    model = options.model_of(args.model or generator(), args)
    if not args.model:
        say(f"--model is not given: {model.provider}/{model.id}")
    prompt_file, template = prompt_template(__file__)
    number = args.num_rewrites
    placeholders = brackets.Placeholders(fill(template, {"number": str(number)}))
    rewrites = Rewrites()
    parameters = options.parameters_of(args, model)

    def requests_of(row: Row) -> list[Request] | Missing:
        if empty := empty_cell(row, "prompt"):
            return empty
        text = fill(template, {"number": str(number), "seed": row["prompt"]})
        return [Request(model, [user(text)], parameters)]

    default = Path(f"{table.path.stem}_rewrite.csv")
    others = [column for column in table.columns if column not in ("prompt", "category")]
    stage = Stage(
        name="rewritter",
        table=table,
        output=output_path(args.output_path, default),
        columns=["prompt", "toxic_seed", "category", *others],
        models=[model],
        requests_of=requests_of,
        read=lambda answer, _: reply_in(answer, number, placeholders),
        reader=rewrites.reader,
        parameters={**parameters, "num_rewrites": number},
        asks=REWRITE_ASKS,
        prompt_file=prompt_file,
    )
    status = conduct(stage, args, sys.argv)
    if rewrites.dropped:
        say(f"{counted(rewrites.dropped, 'excuse')} dropped in place of a rewrite")
    if rewrites.nothing_new:
        say(f"{counted(rewrites.nothing_new, 'seed')} brought no rewrite that is new")
    return status


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument("--toxic_seed_path", required=True, help="the CSV of stage 1")
    options.add_output_path(parser, "./{input stem}_rewrite.csv")
    parser.add_argument(
        "--num_rewrites",
        type=options.whole_number(1),
        default=5,
        help="prompts asked for a seed, all in one request (default %(default)s)",
    )
    parser.add_argument(
        "--model",
        help="provider/model-id, a plain model id or an alias (default: Mixtral where its "
        "provider's key is set, else a current OpenAI model)",
    )
    options.add_asking(parser, temperature_=0.7, max_tokens=REWRITE_MAX_TOKENS)
    options.add_endpoint(parser)
    options.add_run(parser)
    prompt_sets.add_flags(parser)
    exchange.add_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
