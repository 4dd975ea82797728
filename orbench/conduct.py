"""How every stage goes: plan what the answer log lacks, ask it, derive the rows from the log, write
the CSVs and the run record.

    plan(job)      -> the requests that the log lacks, streamed; the only place that builds them
    ask(job)          has them answered: live, through a batch service, or through files
    outcomes(job)  -> each row with its output rows or why it has none; the only reader of answers
    write(job)     -> the CSVs and the failed file; gives the counts
    write_record, close
"""

import argparse
import json
import os
import time
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from orbench import batch, exchange, options, record
from orbench.answers import Answer, AnswerLog, Missing
from orbench.chat import Request, ask_key
from orbench.columns import Row
from orbench.record import FAILED, NOT_ASKED, Record
from orbench.run import CHARACTERS_A_TOKEN, Progress, Run, ask_all
from orbench.stage import RowsOf, Stage, check_outputs, make_folder
from orbench.table import PromptSet, Writer, sha256_of
from orbench.terminal import UserError, counted, say

PARTIAL_AFTER_S = 3.0  # between two looks into a running run, at least
PARTIAL_SHARE = 0.05  # of the time, at most, goes into the partial CSV
SLICE_S = 0.005  # for which it may hold up the requests at a time
MEASURES_NOTHING = "scripted model: fixed texts, not a model's; whatever comes out measures nothing"


class RowKeys:
    """The keys of each row's requests in file order: requests are built and hashed once."""

    def __init__(self) -> None:
        self._keys, self._ends = bytearray(), array("Q")

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, keys: Sequence[bytes]) -> None:
        """The keys of the next row."""
        self._keys += b"".join(keys)
        self._ends.append(len(self._keys))

    def get(self, number: int) -> list[bytes] | None:
        """The keys of a row, counted from 0; None for one that was not planned yet."""
        if number >= len(self._ends):
            return None
        start = self._ends[number - 1] if number else 0
        return [bytes(self._keys[at : at + 16]) for at in range(start, self._ends[number], 16)]


@dataclass
class Job:
    """One run of a stage: what is open while it goes."""

    stage: Stage
    args: argparse.Namespace
    command: Sequence[str]
    log: AnswerLog
    previous: Record  # of the last run with this output
    input_record: Record
    run: Run = field(default_factory=Run)
    keys: RowKeys = field(default_factory=RowKeys)
    start: datetime = field(default_factory=lambda: datetime.now(UTC))
    handed_over: bool = False  # the answers come later: from a file, or from batches
    lacking: bool = False  # after an import: some requests are still without an answer

    @property
    def only_reads(self) -> bool:
        """Whether this run sends nothing and takes the answers that there are."""
        return bool(self.args.from_log or self.args.import_answers)

    @property
    def scripted(self) -> bool:
        """Whether answers of the offline stand-in are among the results, or behind the input."""
        return any(model.scripted for model in self.stage.models) or bool(
            self.input_record.get("scripted")
        )


class Outcome(NamedTuple):
    """What came of one row, and the answers that it rests on."""

    row: Row
    result: list[Row] | Missing
    answers: Sequence[tuple[str, bytes, Answer]]  # model as asked, key, answer


def conduct(stage: Stage, args: argparse.Namespace, command: Sequence[str]) -> int:
    """Run a stage over its table. Gives the exit status; the path of the main CSV goes to stdout.

    Raises UserError.
    """
    exchange.check_flags(args)
    check_outputs(stage)
    if args.dry_run:
        return say_plan(open_job(stage, args, command, write=False))
    make_folder(stage.output.parent)
    job = open_job(stage, args, command, write=bool(stage.models))
    try:
        say_before(job)
        while True:
            ask(job)
            ended = job.run.stopped or job.run.interrupted or job.handed_over
            if ended or not stage.more(one.result for one in outcomes(job)):
                break
        if job.handed_over or args.export_requests or args.shard is not None:
            return close_without_csv(job)
        counts = write(job)
    finally:
        job.log.close()
        with suppress(OSError):  # a leftover harms nobody
            stage.beside(".partial.csv").unlink(missing_ok=True)
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
    log = AnswerLog(path, write=write, round_=round_, also=also)
    job = Job(stage, args, command, log, previous, record.read(stage.table.path))
    left_out = previous.get("left_out")
    if args.from_log and isinstance(left_out, dict):  # by the run that made the log
        job.run.given_up = {str(model): str(why) for model, why in left_out.items()}
    return job


# ---------------------------------------------------------------------------------- plan


def plan(job: Job, progress: Progress | None = None) -> Iterator[Request]:
    """The requests without a usable answer, each once, as they are to be asked next.

    They are built here and hashed, once. progress: loses what needs no request.
    """
    seen: set[bytes] = set()
    for number, row in enumerate(job.stage.rows()):
        keys = job.keys.get(number)
        asks = open_asks(job, keys or (), seen)
        if keys is None or asks:
            requests = job.stage.requests_of(row)
            requests = [] if isinstance(requests, Missing) else requests
            if keys is None:
                keys = [request.first() for request in requests]
                job.keys.add(keys)
                asks = open_asks(job, keys, seen)
            seen.update(asks)
            for request in requests:
                if request.first() in asks:
                    yield request.again(asks[request.first()])
        if progress:
            progress.skip(len(job.stage.models) - len(asks))


def open_asks(job: Job, keys: Sequence[bytes], seen: set[bytes]) -> dict[bytes, int]:
    """Which of these requests are to be asked, and after how many unreadable answers."""
    shard, found = job.args.shard, {}
    for key in keys:
        if key in seen or key in job.run.failed or (shard is not None and not shard.holds(key)):
            continue
        ask = next_ask(job, key)
        if ask is not None:
            found[key] = ask
    return found


def next_ask(job: Job, first: bytes) -> int | None:
    """How many unreadable answers a request has had, if it is to be asked again; None where it is
    settled.
    """
    if job.stage.asks == 1 and job.log.round == 1:  # the answer need not be read
        return None if first in job.log else 0
    return look_up(job, first).ask


class Found(NamedTuple):
    """What the log has of a request."""

    reading: Any  # of the last answer; Missing where it cannot be used
    answer: Answer | None
    key: bytes
    ask: int | None  # to be sent next: how many unreadable answers came before; None: nothing


def look_up(job: Job, first: bytes) -> Found:
    """The first usable answer to a request, else the last one, and what is left to ask.

    An unreadable answer is followed by another ask, up to `Stage.asks` in a round; a run after a
    finished one opens another round.
    """
    tries, found = 0, Found(None, None, first, 0)
    for ask in count():
        key = ask_key(first, ask)
        entry = job.log.get(key)
        if entry is None:
            return found._replace(ask=ask if not ask or tries < job.stage.asks else None)
        answer, round_ = entry
        found = Found(job.stage.read(answer), answer, key, None)
        if not isinstance(found.reading, Missing):
            return found
        tries += round_ == job.log.round
    raise AssertionError  # count() has no end


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
            say(f"{model.asked} is {model.id} at {model.endpoint}")
    if job.input_record.get("complete") is False:
        say(f"{job.stage.table.path} is from a run that did not finish: rows are missing in it")


def ask(job: Job) -> None:
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
            end = batch.ask(lambda: plan(job), models, job.log, job.run, args)
            job.handed_over = end == "waiting"
            if end != "left":
                say_notes(job)
                return
        ask_live(job)


def ask_live(job: Job) -> None:
    """Send the requests, and ask again where an answer cannot be read."""
    stage = job.stage
    total = stage.n * len(stage.models)
    progress = Progress(stage.name, total, quiet=job.args.quiet)
    partial = Partial(job) if job.args.shard is None else None

    def on_answer(request: Request, answer: Answer) -> Request | None:
        if partial is not None:
            partial.look()
        if stage.asks == 1 or not isinstance(stage.read(answer), Missing):
            return None
        again = next_ask(job, request.first())
        return None if again is None else request.again(again)

    limits = options.limits_of(job.args)
    patience = len(job.log.failed)
    try:
        ask_all(
            plan(job, progress),
            stage.models,
            job.log,
            job.run,
            limits,
            progress,
            on_answer=on_answer,
            patience=patience,
        )
    finally:
        progress.close()
        if partial is not None:
            partial.close()
    say_notes(job)


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
            writer.commit()
        finally:
            writer.discard()


# ---------------------------------------------------------------------------------- outcomes


def outcomes(job: Job) -> Iterator[Outcome]:
    """Each input row with its output rows, or why it has none."""
    rows_of = job.stage.reader()
    for number, row in enumerate(job.stage.rows()):
        yield outcome(job, number, row, rows_of)


def outcome(job: Job, number: int, row: Row, rows_of: RowsOf) -> Outcome:
    """What came of one row."""
    keys = job.keys.get(number)
    if not keys:  # not planned, or never sent
        requests = job.stage.requests_of(row)
        if isinstance(requests, Missing):
            return Outcome(row, requests, ())
        keys = [request.first() for request in requests]
    readings, answers = [], []
    for first, model in zip(keys, job.stage.models, strict=False):
        found = look_up(job, first)
        reading = found.reading
        if found.ask is not None:
            reading = why_missing(job, first, model.asked)
        elif found.answer is not None:
            answers.append((model.asked, found.key, found.answer))
        if isinstance(reading, Missing) and (
            # A row with several judges goes on with what the others said, but waits for one that
            # was only not asked yet.
            reading.kind == NOT_ASKED or not job.stage.missing_counts
        ):
            return Outcome(row, reading, answers)
        readings.append(reading)
    return Outcome(row, rows_of(row, readings), answers)


def why_missing(job: Job, first: bytes, model: str) -> Missing:
    """Why a request has no usable answer."""
    failed = job.run.failed.get(first)
    if failed is None and job.only_reads:
        failed = job.log.failed.get(first)
    if failed is None and not job.run.stopped and model in job.run.given_up:
        failed = Missing("gave_up", job.run.given_up[model])
    return failed or Missing(NOT_ASKED, "there is no answer in the log")


# ---------------------------------------------------------------------------------- write


@dataclass
class Counts:
    """What came of a run's rows."""

    done: int = 0
    failed: int = 0
    unscored: int = 0
    remaining: int = 0  # not asked yet
    written: int = 0  # output rows
    reused: int = 0  # answers that were in the log before this run
    prompt_tokens: int = 0  # of the answers used
    completion_tokens: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    # Model as asked -> the ids that answered, and the parameters that it rejects.
    returned: dict[str, set[str]] = field(default_factory=dict)
    dropped: dict[str, set[str]] = field(default_factory=dict)
    prompts: PromptSet = field(default_factory=PromptSet)
    outputs: Mapping[str, Path] = field(default_factory=dict)  # label -> what was written
    _used: set[bytes] = field(default_factory=set)

    def add(self, one: Outcome, log: AnswerLog) -> None:
        """Count one row."""
        if "prompt" in one.row:
            self.prompts.add(one.row["prompt"])
        if isinstance(one.result, list):
            self.done += 1
            self.written += len(one.result)
        elif one.result.kind == NOT_ASKED:
            self.remaining += 1
        elif one.result.kind in ("bad_request", "gave_up"):
            self.failed += 1
            self.errors[one.result.why] += 1
        else:
            self.unscored += 1
        for model, key, answer in one.answers:
            self.reused += log.was_there(key)
            self.returned.setdefault(model, set()).add(answer.model)
            if answer.dropped:
                self.dropped.setdefault(model, set()).update(answer.dropped)
            if key not in self._used:
                self._used.add(key)
                self.prompt_tokens += answer.prompt_tokens
                self.completion_tokens += answer.completion_tokens


def write(job: Job) -> Counts:
    """Write the CSVs, the failed file and the run record. Raises UserError."""
    stage, counts = job.stage, Counts()
    columns = [c for c in stage.table.columns if c not in ("error_type", "error")]
    columns += ["sample"] if stage.samples > 1 else []
    try:
        writer = Writer(stage.outputs, stage.columns)
        failed = Writer({"": stage.beside(FAILED)}, [*columns, "error_type", "error"])
        try:
            for number, one in enumerate(outcomes(job)):
                counts.add(one, job.log)
                write_outcome(job, number, one, writer, failed)
            if counts.failed or counts.unscored or (counts.remaining and job.only_reads):
                failed.commit()
            else:
                stage.beside(FAILED).unlink(missing_ok=True)
            if not counts.written and (counts.remaining or not stage.allow_empty):
                return counts  # nothing to show: what stood there before stays
            if stage.table.changed():
                raise UserError(
                    f"{stage.table.path} changed while the run went on; the answers are in the "
                    "log, run the same command again for the new rows"
                )
            writer.commit()
            counts.outputs = stage.outputs
        finally:
            writer.discard()
            failed.discard()
        write_record(job, counts)
    except OSError as error:
        raise UserError(
            f"{stage.output} cannot be written: {error.strerror}; the answers are in the log, "
            "run the same command again"
        ) from None
    return counts


def write_outcome(job: Job, number: int, one: Outcome, writer: Writer, failed: Writer) -> None:
    """Write what came of one row, and tell the stage's summary."""
    stage, summary = job.stage, job.stage.summary
    if isinstance(one.result, list):
        for out in one.result:
            writer.write(out, stage.label_of(out) if stage.split else "")
            if summary:
                summary.scored(out)
        return
    kind, why, _ = one.result
    if kind != NOT_ASKED or job.only_reads:
        failed.write({**one.row, "error_type": kind, "error": why})
    if kind != NOT_ASKED and summary:
        summary.unscored(one.row)
    if kind.startswith("empty_") and number % stage.samples == 0:
        say(f"row {number // stage.samples + 1}: {why}")


def write_record(job: Job, counts: Counts) -> None:
    """The run record, beside each CSV. Raises OSError."""
    stage, asked = job.stage, job.run
    table = stage.table
    entry: Record = {
        "stage": stage.name,
        "command": list(job.command),
        "models": [
            {
                "asked": model.asked,
                "id": model.id,
                "provider": model.provider,
                "endpoint": model.endpoint,
                "family": model.family,
                "returned": sorted(counts.returned.get(model.asked, ())),
            }
            for model in stage.models
        ],
        "under_test": dict(stage.under_test) or record.under_test(job.input_record)._asdict(),
        "missing_before": dict(stage.missing_before),
        "scripted": job.scripted,
        "parameters": dict(stage.parameters),
        "dropped_parameters": {name: sorted(gone) for name, gone in counts.dropped.items()},
        "left_out": dict(asked.given_up),
        "prompt_file_sha256": stage.prompt_file and sha256_of(stage.prompt_file),
        "part_of_input": job.input_record.get("part") or job.input_record.get("part_of_input", ""),
        "input": {"path": path_of_input(stage), "sha256": table.sha256, "rows": table.n},
        "prompt_set": counts.prompts.hexdigest(),
        "counts": {
            "done": counts.done,
            "failed": counts.failed,
            "unscored": counts.unscored,
            "remaining": counts.remaining,
            "reused": counts.reused,
            "requests": asked.requests,
            "retries": asked.retries,
        },
        "tokens": {"prompt": counts.prompt_tokens, "completion": counts.completion_tokens},
        "findings": dict(stage.summary.findings()) if stage.summary else {},
        "complete": not counts.remaining,
        "finished_round": finished_round(job, counts),
        "versions": record.versions(),
        "start": job.start.isoformat(timespec="seconds"),
        "end": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    for part, path in stage.outputs.items():
        record.write(path, entry | {"part": part})


def finished_round(job: Job, counts: Counts) -> int:
    """The last round of asking that came to its end: the next run may ask again what it could not
    read. Reading the log anew ends no round.
    """
    if counts.remaining or job.args.from_log:
        before = job.previous.get("finished_round")
        return before if isinstance(before, int) else 0
    return job.log.round


def path_of_input(stage: Stage) -> str:
    """The input as seen from the folder of the CSV; "" for stage 1, which has none."""
    if not stage.table.sha256:
        return ""
    return os.path.relpath(stage.table.path.resolve(), stage.output.parent.resolve())


# ---------------------------------------------------------------------------------- close


def close_without_csv(job: Job) -> int:
    """Say where the answers are, and give the exit status. Nothing goes to stdout."""
    asked, args = job.run, job.args
    if args.export_requests and not job.handed_over and not asked.stopped:
        say("every request has an answer in the log: there is nothing to export")
    if args.shard is not None and not job.handed_over:
        say(
            f"{args.shard}: {asked.answered:,} answers, {len(asked.failed):,} failed; they are in "
            f"{job.log.path}. When all {args.shard.of} are done, append their logs to "
            f"{job.stage.beside('.answers.jsonl')} and run without --shard"
        )
    if asked.interrupted:
        say("interrupted; run the same command to resume")
        return 130
    if asked.stopped:
        say(f"error: {asked.stopped}")
        return 1
    return 3 if asked.failed or asked.given_up or job.lacking else 0


def close(job: Job, counts: Counts) -> int:
    """Say how it went, print the path of the CSV, and give the exit status."""
    stage, asked = job.stage, job.run
    if stage.summary and counts.done + counts.unscored + counts.failed:
        for line in stage.summary.lines():
            say(line)
    if job.scripted:
        say(MEASURES_NOTHING)
    for name, why in asked.given_up.items():
        say(f"{name} gave no answer to the rows it was left out of: {why}")
    say(closing_line(job, counts))
    aside = counts.failed + counts.unscored + (counts.remaining if job.only_reads else 0)
    if aside:
        say(f"{counted(aside, 'row')} in {stage.beside(FAILED)}")
    for why, times in counts.errors.most_common(1):
        say(f"the most frequent error ({times:,}): {why}")
    if job.only_reads and counts.remaining:
        say(f"{counted(counts.remaining, 'row')} not asked yet")
    if asked.interrupted:
        say(f"interrupted: {counts.remaining:,} rows remain; run the same command to resume")
    elif asked.stopped:
        if counts.outputs:
            say(f"{counted(counts.done, 'row')} done, {counts.remaining:,} not: {stage.output}")
        say(f"error: {asked.stopped}")
    paths = list(counts.outputs.values())
    for path in paths[1:]:
        say(f"also written: {path}")
    if paths:
        print(paths[0])
    if asked.interrupted:
        return 130
    if asked.stopped:
        return 1
    return 3 if counts.failed + counts.unscored + counts.remaining else 0


def closing_line(job: Job, counts: Counts) -> str:
    """done / failed / unscored / reused, requests, retries, tokens, cost."""
    asked, args = job.run, job.args
    line = (
        f"done {counts.done:,} · failed {counts.failed:,} · unscored {counts.unscored:,} · reused "
        f"from the log {counts.reused:,} · requests {asked.requests:,}, retries {asked.retries:,} "
        f"· tokens in {asked.prompt_tokens:,}, out {asked.completion_tokens:,}"
    )
    if counts.written != counts.done:
        line = f"{counts.written:,} rows written · " + line
    if args.price_in is not None and args.price_out is not None:
        cost = asked.prompt_tokens * args.price_in + asked.completion_tokens * args.price_out
        line += f" · cost {cost / 1e6:.4f}"
    return line
