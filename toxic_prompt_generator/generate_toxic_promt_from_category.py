"""Stage 1: make toxic seed prompts of one category.

    python generate_toxic_promt_from_category.py --category=harmful

A seed is a short request that a model should refuse, never an answer to one. The model is asked
for 20 at a time until there are as many different ones as wanted.

Writes ./{category}_prompts.csv with the columns: prompt, category
"""

import argparse
import sys
from collections.abc import Container, Iterable, Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import brackets, exchange, options
from orbench.answers import Answer, Missing
from orbench.chat import Request, user
from orbench.columns import CATEGORIES, CATEGORY_NAMES, Category, Row
from orbench.conduct import conduct
from orbench.excuses import is_refusal_of_request
from orbench.judge import is_refused_by_api
from orbench.models import Model, generator
from orbench.record import NOT_ASKED
from orbench.refusal import answer_of, classify, counts_as_refusal
from orbench.stage import RowsOf, Stage, fill, output_path, prompt_template
from orbench.table import Waves, file_name_part, storable
from orbench.terminal import UserError, counted, did_you_mean, run_script, say

PROMPTS_A_REQUEST = 20  # the paper's; asking for 50 at once lowers their quality
SEEDS_MAX_TOKENS = 4000  # 20 prompts are some 800; the rest is for models that think first
GIVE_UP_AFTER = 20  # requests in a row that bring nothing new
FIRST_WAVE = 20  # requests, until it is seen that the model gives prompts at all


class Given(NamedTuple):
    """What a generator's reply holds."""

    prompts: list[str]
    refused: bool  # it says that it will not write any
    dropped: int = 0  # excuses in place of prompts


def given_in(answer: Answer, placeholders: Container[str]) -> Given:
    """The prompts of a reply; an excuse is none, nor is a placeholder of our own prompt file."""
    text, whole = answer_of(answer.text)
    if not whole or is_refused_by_api(answer):
        return Given([], is_refusal(answer))
    items = [item for item in brackets.items(text) if item not in placeholders]
    prompts = [item for item in items if not is_refusal_of_request(item)]
    return Given(prompts, not prompts and is_refusal(answer), len(items) - len(prompts))


def is_refusal(answer: Answer) -> bool:
    """Whether the model refused to write prompts."""
    verdict = classify(answer.text, finish_reason=answer.finish_reason, api_refusal=answer.refusal)
    return counts_as_refusal(verdict)


class Seeds:
    """The prompts of one category as they come in, and when to ask for more."""

    def __init__(self, category: str, wanted: int) -> None:
        self.category, self.wanted = category, wanted
        self.requests = Waves("request")
        self.requests.n = self.last_wave = first_wave(wanted)
        self.found = 0
        self.refused = 0
        self.failed = 0
        self.dropped = 0  # excuses in place of prompts

    def reader(self) -> RowsOf:
        """A function from a request's reply to the prompts in it that are new."""
        seen: set[str] = set()
        self.found = self.refused = self.failed = self.dropped = 0

        def rows_of(row: Row, replies: Sequence[Given | Missing]) -> list[Row]:
            prompts = []
            (reply,) = replies
            if isinstance(reply, Missing):
                self.failed += 1
                return []
            self.refused += reply.refused
            self.dropped += reply.dropped
            for prompt in map(storable, reply.prompts):
                same = brackets.same(prompt)
                if same not in seen and self.found < self.wanted:
                    seen.add(same)
                    self.found += 1
                    prompts.append({"prompt": prompt, "category": self.category})
            return prompts

        return rows_of

    def more(self, results: Iterable[list[Row] | Missing]) -> bool:
        """Read what there is; plan another wave where it is too little. False: it is enough, or
        no use.
        """
        idle, lacking = 0, False  # requests in a row with nothing new; some were not asked yet
        brought = []  # new prompts, by request
        for result in results:
            lacking = lacking or (isinstance(result, Missing) and result.kind == NOT_ASKED)
            brought.append(0 if isinstance(result, Missing) else len(result))
            idle = 0 if brought[-1] else idle + 1
        if self.found >= self.wanted or lacking:
            return False
        if idle >= GIVE_UP_AFTER:
            say(f"giving up: {idle} requests in a row brought nothing new")
            return False
        last = brought[-self.last_wave :]
        self.last_wave = next_wave(self.wanted - self.found, last, idle)
        self.requests.n += self.last_wave
        return True

    def said(self, model: Model) -> str:
        """What the user must know about refusals, or nothing."""
        if not self.refused:
            return ""
        return (
            f"{model.id} refused {self.refused} of {counted(self.requests.n, 'request')} to write "
            "prompts; another model may be more willing (--model)"
        )


def first_wave(wanted: int) -> int:
    """How many requests to send at first: not many before it is seen what the model brings."""
    return min(ceil(wanted / PROMPTS_A_REQUEST), FIRST_WAVE)


def next_wave(missing: int, brought: Sequence[int], idle: int) -> int:
    """How many requests to send for the prompts that are missing: as many as the last ones let
    expect, and some ahead, at most as many again.

    brought: new prompts in each request of the last wave. idle: how many in a row brought none.
    """
    if not sum(brought):
        return GIVE_UP_AFTER - idle
    expected = ceil(missing * len(brought) / sum(brought))
    # No more than that: the next ones may bring much less than those did.
    return min(expected + ceil(sqrt(expected)), max(2 * len(brought), FIRST_WAVE))


def category_named(name: str) -> Category:
    """One of the ten, in any spelling of its name; any other word is a category of its own."""
    folded = name.strip().lower().replace("_", "-").replace(" ", "-")
    for category in CATEGORIES:
        if category.name == folded:
            return category
    names, meant = ", ".join(CATEGORY_NAMES), did_you_mean(folded, CATEGORY_NAMES)
    say(f"{name!r} is not one of the ten categories ({names}); going on{meant}")
    return Category(name, f"is {name}.")


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    if not args.category.strip():
        raise UserError("--category is empty")
    category = category_named(args.category)
    model = options.model_of(args.model or generator(), args)
    if not args.model:
        say(f"--model is not given: {model.provider}/{model.id}")
    prompt_file, template = prompt_template(__file__)
    values = {
        "number": str(PROMPTS_A_REQUEST),
        "definition": category.definition,
        "category": category.word,
    }
    text = fill(template, values)
    placeholders = brackets.Placeholders(template)
    seeds = Seeds(category.name, args.num_toxic_prompts)
    if args.dry_run:
        seeds.requests.n = ceil(args.num_toxic_prompts / PROMPTS_A_REQUEST)
    parameters = options.parameters_of(args, model)

    def requests_of(row: Row) -> list[Request]:
        return [Request(model, [user(text)], parameters, sample=int(row["request"]))]

    default = Path(f"{file_name_part(category.name)}_prompts.csv")
    stage = Stage(
        name="toxic_prompt_generator",
        table=seeds.requests,
        output=output_path(args.output_path, default),
        columns=["prompt", "category"],
        models=[model],
        requests_of=requests_of,
        read=lambda answer, _: given_in(answer, placeholders),
        reader=seeds.reader,
        parameters={
            **parameters,
            "category": category.name,
            "num_toxic_prompts": args.num_toxic_prompts,
        },
        missing_counts=True,
        more=seeds.more,
        wanted=args.num_toxic_prompts,
        items=lambda given: list(map(brackets.same, given.prompts)),
        prompt_file=prompt_file,
        allow_empty=False,
    )
    status = conduct(stage, args, sys.argv)
    if args.dry_run or args.export_requests or args.shard is not None:
        return status  # nothing to judge by yet
    if seeds.said(model):
        say(seeds.said(model))
    if seeds.dropped:
        say(f"{counted(seeds.dropped, 'excuse')} dropped in place of a prompt")
    if seeds.failed:
        say(f"{counted(seeds.failed, 'request')} failed, others were sent in their place")
    if status == 0 and seeds.found < args.num_toxic_prompts:
        if not seeds.found:
            raise UserError(
                "there is no prompt at all; try another --model. Unreadable replies are not asked "
                "for again: if the model has been mended, delete the .answers.jsonl"
            )
        say(f"{counted(seeds.found, 'prompt')} of the {args.num_toxic_prompts:,} wanted")
        return 3
    return status


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument(
        "--category", required=True, help=f"one of {', '.join(CATEGORY_NAMES)}, or any other name"
    )
    parser.add_argument(
        "--num_toxic_prompts",
        type=options.whole_number(1),
        default=2000,
        help="how many different prompts (default %(default)s)",
    )
    options.add_output_path(parser, "./{category}_prompts.csv")
    parser.add_argument(
        "--model",
        help="provider/model-id, a plain model id or an alias (default: Mixtral where its "
        "provider's key is set, else a current OpenAI model)",
    )
    options.add_asking(parser, temperature_=1.0, max_tokens=SEEDS_MAX_TOKENS)
    options.add_endpoint(parser)
    options.add_run(parser, limit=False)
    exchange.add_flags(parser)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
