"""How every stage goes: ask what the answer log lacks, then write what follows from it.

plan(job)         -> the requests that the log lacks           (orbench.job)
ask_missing(job)     has them answered: live, through a batch service, or through files
outcomes(job)     -> each row with its output rows             (orbench.job)
write_outputs(job) -> the CSVs, the failed file, the record     (orbench.write)
close(job)           says how it went; the path goes to stdout
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from orbench import batch, exchange, options, record
from orbench.answers import Answer, AnswerLog, Missing
from orbench.chat import Request
from orbench.job import Job, RowKeys, next_ask, outcomes, plan, repeated
from orbench.run import CHARACTERS_A_TOKEN, Progress, ask_all
from orbench.settings import check_replaced, settings_of
from orbench.stage import Stage, check_outputs, make_folder
from orbench.table import Writer
from orbench.terminal import UserError, one_line, say
from orbench.write import close, close_without_csv, write_outputs

PARTIAL_AFTER_S = 3.0  # at least, between two slices of the partial CSV
PARTIAL_SHARE = 0.05  # of the time, at most, goes into the partial CSV
UNREADABLE = 12  # replies in a row in which nothing can be read
SAMPLE = 150  # characters of the end of one
SLICE_S = 0.005  # the longest that one slice may hold up the requests


def conduct(stage: Stage, args: argparse.Namespace, command: Sequence[str]) -> int:
    """Run a stage over its table. Gives the exit status; the path of the main CSV goes to stdout.

    Raises UserError.
    """
    exchange.check_flags(args)
    check_outputs(stage, args.shard)
    if args.dry_run:
        return say_plan(open_job(stage, args, command, write=False))
    if not stage.table.n:
        record.check_not_failed(stage.table.path)
    check_replaced(stage, record.read(next(iter(stage.outputs.values()))), args)
    make_folder(stage.output.parent)
    job = open_job(stage, args, command, write=bool(stage.models))
    try:
        say_before(job)
        while True:
            ask_missing(job)
            ended = job.run.stopped or job.run.interrupted or job.handed_over
            if ended or not stage.more(one.result for one in outcomes(job)):
                break
            job.keys = RowKeys()  # rows may need other requests now
        if job.handed_over or args.export_requests or args.shard is not None:
            return close_without_csv(job)
        counts = write_outputs(job)
    finally:
        job.log.close()
        for ending in (".partial.csv", ".partial.csv.tmp"):  # a killed run may have left one
            with suppress(OSError):
                stage.beside(ending).unlink(missing_ok=True)
    return close(job, counts)


def open_job(stage: Stage, args: argparse.Namespace, command: Sequence[str], *, write: bool) -> Job:
    """Open the answer log, in the round that follows the last finished one. Raises LogError."""
    previous = record.read(next(iter(stage.outputs.values())))
    finished = previous.get("finished_round")
    finished = finished if isinstance(finished, int) else 0
    round_ = max(1, finished) if args.from_log else finished + 1
    merged, also = stage.beside(".answers.jsonl"), None
    path = merged
    if args.shard is not None:
        path, also = stage.beside(f".{args.shard}.answers.jsonl"), merged
    log = AnswerLog(path, write=write, round_=round_, also=also, settings=settings_of(stage))
    job = Job(stage, args, command, log, previous, record.read(stage.table.path))
    job.patience = len(log.failed)
    left_out = previous.get("left_out")
    if args.from_log and isinstance(left_out, dict):  # by the run that made the log
        job.run.given_up = {str(model): str(why) for model, why in left_out.items()}
    return job


def say_plan(job: Job) -> int:
    """Say what a run would send, and what it would cost."""
    args, first, n, characters, waiting = job.args, None, 0, 0, 0
    under_way = batch.under_way(job.stage.output)
    for request in plan(job):
        if request.key() in under_way:
            waiting += 1
            continue
        first = first or request
        n += 1
        characters += sum(len(message["content"]) for message in request.messages)
    every = len({key for row in range(len(job.keys)) for key in job.keys.get(row) or ()})
    say(f"requests: {every:,}, of which {every - n - waiting:,} are answered in the log")
    if waiting:
        say(f"under way in batches: {waiting:,}, which --batch collects")
    tokens = characters // CHARACTERS_A_TOKEN
    say(f"to send: {n:,}, about {tokens:,} tokens in (characters / {CHARACTERS_A_TOKEN})")
    most = job.stage.parameters.get("max_tokens")
    if most:
        say(f"tokens out: at most {n * most:,} (max_tokens {most})")
    if args.price_in is not None:
        say(f"cost of the tokens in: about {tokens / 1e6 * args.price_in:.2f}")
    if args.price_out is not None and most:
        say(f"cost of the tokens out: at most {n * most / 1e6 * args.price_out:.2f}")
    if first is not None:
        say(f"the first request, to {first.model.endpoint}:")
        for line in json.dumps(first.body(), indent=2).splitlines():
            say(line)
    return 0


# ---------------------------------------------------------------------------------- ask


def say_before(job: Job) -> None:
    """Which models are asked, and what is known to be wrong with the input."""
    for model in job.stage.models:
        if model.id != model.asked or model.base_url != model.settings.base_url:
            name = model.asked if model.asked == model.id else f"{model.asked} is {model.id}"
            say(f"{name} at {model.endpoint}")
    for note in job.stage.notes:
        say(note)
    if job.input_record.get("complete") is False:
        say(f"{job.stage.table.path} is from a run that did not finish: rows are missing in it")


def ask_missing(job: Job) -> None:
    """Have the requests answered that the log lacks."""
    args, models = job.args, job.stage.models
    if not models or args.from_log:
        return
    own = batch.state_path(job.log.path) if args.batch else None
    if not args.import_answers:
        batch.check_not_under_way(job.stage.output, lambda: plan(job), own)
    if args.export_requests:
        path = Path(args.export_requests)
        job.handed_over = exchange.export_requests(plan(job), models, path) > 0
    elif args.import_answers:
        paths = [Path(name) for name in args.import_answers]
        job.lacking = exchange.import_answers(lambda: plan(job), job.log, job.run, paths)
    else:
        if args.batch:
            end = batch.ask_in_batches(lambda: plan(job), models, job.log, job.run, args)
            job.handed_over = end == "waiting"
            if end != "left":
                say_notes(job)
                return
        ask_live(job)


def ask_live(job: Job) -> None:
    """Send the requests, and ask again where an answer cannot be read."""
    stage = job.stage
    there = found_before(job)
    progress = progress_of(job, there)
    partial = Partial(job) if job.args.shard is None else None

    def on_answer(request: Request, answer: Answer) -> Request | None:
        if partial is not None:
            partial.look()
        if stage.asks == 1 and stage.items is None:
            return None
        reading = stage.read(answer, request.model)
        if stage.items:
            new = {*stage.items(reading)} - there
            there.update(new)
            progress.advance(len(new))
        readable = bool(stage.items(reading)) if stage.items else not isinstance(reading, Missing)
        watch(job, answer, progress, readable=readable)
        if not isinstance(reading, Missing):
            return None
        ask = next_ask(job, request.first(), request.model)
        return None if ask is None else repeated(job, request, ask)

    limits = options.limits_of(job.args)
    try:
        ask_all(
            plan(job, progress),
            stage.models,
            job.log,
            job.run,
            limits,
            progress,
            on_answer=on_answer,
            patience=job.patience,
        )
    finally:
        progress.close()
        if partial is not None:
            partial.close()
    say_notes(job)


def found_before(job: Job) -> set[str]:
    """The things that the stage is after and the log's answers hold; for progress alone."""
    stage, found = job.stage, set[str]()
    if stage.items and len(job.log):
        for one in outcomes(job):
            for _, _, answer in one.answers:
                found.update(stage.items(stage.read(answer, stage.models[0])))
    return found


def progress_of(job: Job, there: set[str]) -> Progress:
    """Progress in rows, or in the things that the stage is after."""
    stage, quiet = job.stage, job.args.quiet
    if stage.items:
        return Progress(stage.name, stage.wanted, quiet=quiet, unit="prompt", done=len(there))
    return Progress(stage.name, stage.n * len(stage.models), quiet=quiet)


def watch(job: Job, answer: Answer, progress: Progress, *, readable: bool) -> None:
    """Say it at once, and once, where a model's replies cannot be read."""
    job.unreadable = 0 if readable else job.unreadable + 1
    if job.unreadable == UNREADABLE and not job.told:
        job.told = True
        end = one_line(answer.text[-SAMPLE:])
        progress.say(
            f"nothing can be read in {UNREADABLE} replies in a row; the last one ends: {end!r}",
            always=True,
        )


def say_notes(job: Job) -> None:
    """Say what the endpoints made clear (a parameter that a model rejects), once."""
    notes = job.run.adaptation.notes
    while notes:
        say(notes.pop(0))


class Partial:
    """`<output stem>.partial.csv`: a look into a long run, written in slices between requests."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._rows: Iterator[None] | None = None
        self._next = time.monotonic() + PARTIAL_AFTER_S

    def look(self) -> None:
        """Write another slice, if it is time for one."""
        began = time.monotonic()
        if began < self._next:
            return
        if self._rows is None:
            self._rows = self._write()
        pause = PARTIAL_AFTER_S
        try:
            for _ in self._rows:
                if time.monotonic() - began > SLICE_S:
                    pause = SLICE_S / PARTIAL_SHARE
                    break
            else:
                self._rows = None
        except (OSError, UserError):
            pause = float("inf")  # no room, or its input is gone: the run itself says so at its end
        self._next = time.monotonic() + pause

    def close(self) -> None:
        """Leave nothing half-written."""
        if self._rows is not None:
            self._rows.close()  # type: ignore[attr-defined]  # it is a generator

    def _write(self) -> Iterator[None]:
        stage = self._job.stage
        writer = Writer({"": stage.beside(".partial.csv")}, stage.columns)
        try:
            for one in outcomes(self._job):
                for row in one.result if isinstance(one.result, list) else ():
                    writer.write(row)
                yield
            writer.commit(lasting=False)  # a look, while requests wait
        finally:
            writer.discard()
