"""Stage 2: rewrite toxic seeds into prompts that look toxic but are safe.

    python mixtral_rewrite_only.py --toxic_seed_path=../toxic_prompt_generator/harmful_prompts.csv

Reads a CSV with the column prompt (the seed) and, if it is there, category. Writes ./{input
stem}_rewrite.csv with the columns: prompt (the rewrite), toxic_seed, category, and what else the
input had; several rows a seed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import brackets, options
from orbench.chat import Answer, Request, user
from orbench.conduct import conduct
from orbench.judge import is_refused_by_api
from orbench.models import generator
from orbench.refusal import answer_of, classify, counts_as_refusal
from orbench.run import Failure
from orbench.stage import RowsOf, Stage, Unscored, empty_cell, fill, output_path, prompt_template
from orbench.table import Row, Table, storable
from orbench.terminal import UserError, counted, run_script, say

ASKS = 3  # for a reply in which no prompt can be found


REFUSED = ("the API refused to rewrite this seed", "the model refused to rewrite this seed")


def rewrites_in(answer: Answer, number: int, placeholders: set[str]) -> list[str] | str:
    """The prompts in a reply, at most `number`; or why there are none."""
    if is_refused_by_api(answer):
        return REFUSED[0]
    text, whole = answer_of(answer.text)
    if not whole:
        return "the reply was cut off inside its thinking"
    found = [item for item in brackets.items(text) if item not in placeholders]
    prompts = [item for item in found if classify(item).kind != "refusal"]
    if prompts:
        return prompts[:number]
    if found or counts_as_refusal(classify(text)):
        return REFUSED[1]
    return "no prompt in double brackets in the reply"


class Rewrites:
    """The rows of all seeds' rewrites, no rewrite twice in all."""

    def __init__(self, number: int, placeholders: set[str]) -> None:
        """number: of rewrites a seed at most. placeholders: of our own prompt file."""
        self.number, self.placeholders = number, placeholders
        self.nothing_new = 0  # seeds whose rewrites were all there already

    def reader(self) -> RowsOf:
        """A function from a seed and its answer to the rows of its rewrites."""
        seen: set[str] = set()
        self.nothing_new = 0

        def rows_of(row: Row, answers: Sequence[Answer | Failure]) -> list[Row] | Unscored:
            (answer,) = answers
            assert isinstance(answer, Answer)
            prompts = rewrites_in(answer, self.number, self.placeholders)
            if isinstance(prompts, str):
                return Unscored("unscored", prompts)
            rows = []
            for prompt in prompts:
                same = brackets.same(prompt)
                if same not in seen and same != brackets.same(row["prompt"]):
                    seen.add(same)
                    rows.append({**row, "prompt": storable(prompt), "toxic_seed": row["prompt"]})
            self.nothing_new += not rows
            return rows

        return rows_of


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    table = Table(args.toxic_seed_path, needed=["prompt"], limit=args.limit)
    if "toxic_seed" in table.columns:
        raise UserError(f"{table.path} has a column 'toxic_seed' already: it is rewritten as it is")
    model = options.model_of(args.model or generator(), args)
    if not args.model:
        say(f"--model is not given: {model.provider}/{model.id}")
    prompt_file, template = prompt_template(__file__)
    number = args.num_rewrites
    placeholders = set(brackets.items(fill(template, {"number": str(number)})))
    rewrites = Rewrites(number, placeholders)
    parameters = {"temperature": args.temperature}

    def requests_of(row: Row) -> list[Request] | Unscored:
        if empty := empty_cell(row, "prompt"):
            return empty
        text = fill(template, {"number": str(number), "seed": row["prompt"]})
        return [Request(model, [user(text)], parameters)]

    def unreadable(answer: Answer) -> str | None:
        found = rewrites_in(answer, number, placeholders)
        # A refusal is an answer: asking once more would only pay for another.
        return found if isinstance(found, str) and found not in REFUSED else None

    default = Path(f"{table.path.stem}_rewrite.csv")
    others = [column for column in table.columns if column not in ("prompt", "category")]
    stage = Stage(
        name="rewritter",
        table=table,
        output=output_path(args.output_path, default),
        columns=["prompt", "toxic_seed", "category", *others],
        models=[model],
        requests_of=requests_of,
        reader=rewrites.reader,
        parameters={**parameters, "num_rewrites": number},
        unreadable=unreadable,
        asks=ASKS,
        prompt_file=prompt_file,
    )
    status = conduct(stage, args, sys.argv)
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
    parser.add_argument(
        "--temperature", type=options.not_negative, default=0.7, help="default %(default)s"
    )
    options.add_endpoint(parser)
    options.add_run(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
