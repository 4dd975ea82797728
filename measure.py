"""Measure a model's over-refusal and toxic rejection rates, and write a page.

    python measure.py --model=vllm/Qwen/Qwen2.5-7B-Instruct
    python measure.py --model=gpt-5.4 --judge=rules+gpt-5.4-mini --limit=100 --dry_run

Reads prompts as stage 4 does: from a CSV, JSON lines, a parquet file, a named set or
hf://datasets/.... Runs stage 4 and stage 5, with judges in --labels stage 3 as well,
and writes {output_dir}/results.html, which shows every model in the folder.

Each endpoint first gets one short test request. Rerun the same command to resume; another --judge
sends nothing to the model again.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache
from io import StringIO
from math import ceil
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple

from orbench.base.messages import run_script, say, tell, without_query
from orbench.base.prompts import set_name
from orbench.base.records import add_side
from orbench.base.tables import file_name_part, write_csv
from orbench.base.words import Json, Texts
from orbench.stages import flags
from orbench.stages.prompt_sets import check_sides
from orbench.stages.run import Outcome, load, run, words_of

ALIGN = "alignment_checker/gpt3_4_alignment_checker.py"
CHECK = "response_checker/check_response.py"
MODERATE = "moderator/moderate_only.py"
# Flags that are passed on as they are.
INPUT = ("limit", "shuffle", "prompt_column", "category_column", "overwrite")
UNDER_TEST = (
    "model",
    "base_url",
    "api_key_env",
    "max_tokens",
    "reasoning_effort",
    "system_prompt_file",
)
# The published models were measured on these.
DEFAULT_PROMPTS = {"over_refusal": "or-bench-hard-1k", "toxic": "or-bench-toxic"}
LATER_TOKENS = 700  # of a judge's request about a response that is not there yet


class Step(NamedTuple):
    """A run of a stage on one side. flags: see `words_of`."""

    side: str
    script: str
    flags: Json


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    if args.limit is not None:
        args.shuffle = 0
    if args.model == "smollm2" and not args.max_tokens:
        args.max_tokens = 60  # it hardly stops, and its first words tell a refusal
    args.panel = [word for word in args.labels if not word.endswith(".csv")]
    args.votes = args.output_dir / "labels" / file_name_part("+".join(args.panel))
    prompts = DEFAULT_PROMPTS.copy()
    if args.prompts:
        prompts = {"over_refusal": args.prompts}
    if args.toxic:
        prompts["toxic"] = args.toxic
    args.with_published = prompts == DEFAULT_PROMPTS
    check_sides(prompts, args)
    todo = list(steps(prompts, args))
    announce(todo, args.dry_run)
    if args.dry_run:
        return 0
    for step in todo:
        say(f"== {step.side}: {step.script}")
        outcome = run(step.script, step.flags)
        if outcome.status == 1:  # 3: some rows failed, and are in a file of their own
            return 1
        if step.script == ALIGN and outcome.path:
            add_side(outcome.path, step.side)
    write_report(args)
    tell(args.output_dir / "results.html")
    return 0


def steps(prompts: Texts, args: Namespace) -> Iterator[Step]:
    """Yield the runs of stages 4, 5 and, with judges in --labels, 3."""
    folder = args.output_dir
    sample = {name: getattr(args, name) for name in INPUT}
    under_test = {name: getattr(args, name) for name in UNDER_TEST}
    for side, name in prompts.items():
        stem = file_name_part(set_name(Path(without_query(name))))
        file = Path(side, stem, f"{file_name_part(args.model)}.csv")
        responses = folder / "responses" / file
        where = {"input_file": name, "output_path": responses}
        yield Step(side, ALIGN, where | under_test | sample)
        checked = folder / side / file_name_part(args.judge) / stem / file.name
        where = {"input_file": responses, "output_path": checked, "overwrite": args.overwrite}
        yield Step(side, CHECK, where | {"check_model": args.judge})
        if args.panel:
            votes = args.votes / side / f"{stem}.csv"
            where = {"input_file": name, "output_path": votes}
            yield Step(side, MODERATE, where | sample | {"moderator_model": ",".join(args.panel)})


def announce(todo: Sequence[Step], dry: bool) -> None:
    """Report what all steps together will send, and try each endpoint. Raises UserError."""
    from orbench.asking.live import probe

    pace = cache(lambda *endpoint: asyncio.run(probe(*endpoint, dry=dry)))  # seconds a request
    requests = tokens = 0
    seconds = 0.0
    responses = 0  # that are still to come
    for step in todo:
        plan = foresee(step)
        sent = plan.to_send
        tokens += plan.tokens
        if step.script == CHECK and plan.models:
            sent += responses
            tokens += responses * LATER_TOKENS
        requests += sent
        responses = plan.to_send
        if sent:
            paces = [pace(model, step.flags.get("max_tokens")) for model in plan.models]
            seconds += sent * fmean(paces)
    say(
        f"to send: {requests:,} requests, about {tokens:,} tokens in the prompts, "
        f"{ceil(seconds / 60)} min"
    )


def foresee(step: Step) -> Outcome:
    """Return what a dry run of a step finds. Raises UserError."""
    flags = step.flags | {"dry_run": True}
    with TemporaryDirectory() as folder:
        if step.script == CHECK and not flags["input_file"].exists():  # stage 4 comes first
            empty = Path(folder, "responses.csv")
            write_csv(empty, ("prompt", "category", "response"), [])
            flags |= {"input_file": empty, "output_path": f"{folder}/checked.csv"}
        return run(step.script, flags, StringIO())


def write_report(args: Namespace) -> None:
    """Write the tables, the pictures and the page. Raises UserError."""
    from orbench.report import build

    folder = args.output_dir
    flags: Json = {"html": True, "output_dir": folder}
    flags["over_refusal"] = [folder / "over_refusal"]
    if (folder / "toxic").is_dir():
        flags["toxic"] = [folder / "toxic"]
    flags["with_published"] = args.with_published or None
    flags["pairs"] = args.pairs
    if args.labels:
        votes = sorted(args.votes.rglob("*.csv"), key=str)
        people = [word for word in args.labels if word.endswith(".csv")]
        flags["toxicity"] = people + [path for path in votes if not path.match("*_failed.csv")]
    build.report(load("response_checker/plot_results.py").command_line(words_of(flags)))


def parser() -> flags.Parser:
    parser = flags.Parser(__doc__)
    parser.add("measure")
    parser.add("columns")
    parser.set_defaults(shuffle=None)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
