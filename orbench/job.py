"""A run of a stage as the answer log sees it: what it lacks, and what follows from what it has.

plan(job)      -> the requests that the log lacks, streamed; the only place that builds them
outcomes(job)  -> each row with its output rows or why it has none; the only reader of answers
"""

import argparse
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

from orbench.answers import Answer, AnswerLog, Missing
from orbench.chat import Request, ask_key
from orbench.columns import Row
from orbench.models import Model
from orbench.record import NOT_ASKED, Record
from orbench.run import Progress, Run
from orbench.stage import RowsOf, Stage


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
    unreadable: int = 0  # replies in a row
    told: bool = False  # the user was told of them
    patience: int = 0  # requests that had failed before this run
    lacking: bool = False  # after an import: some requests are still without an answer

    @property
    def only_reads(self) -> bool:
        """Whether this run sends nothing and takes the answers that there are."""
        return bool(self.args.from_log or self.args.import_answers)

    @property
    def scripted(self) -> bool:
        """Whether answers of the offline stand-in are among the results, or behind the input; its
        prompts do not count where a model under test answers them.
        """
        behind = self.input_record.get("scripted") and not self.stage.under_test
        return any(model.scripted for model in self.stage.models) or bool(behind)

    @property
    def scripted_input(self) -> bool:
        """Whether the offline stand-in wrote anything behind the input."""
        return any(self.input_record.get(name) for name in ("scripted", "scripted_input"))


# ---------------------------------------------------------------------------------- plan


def plan(job: Job, progress: Progress | None = None) -> Iterator[Request]:
    """The requests without a usable answer, each once, as they are to be asked next.

    They are built here and hashed, once. progress: its total shrinks by what needs no request.
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
                    yield repeated(job, request, asks[request.first()])
        if progress:
            progress.skip(len(job.stage.models) - len(asks))


def open_asks(job: Job, keys: Sequence[bytes], seen: set[bytes]) -> dict[bytes, int]:
    """Which of these requests are to be asked, and after how many unreadable answers."""
    shard, found = job.args.shard, {}
    for key, model in zip(keys, job.stage.models, strict=False):
        if key in seen or key in job.run.failed or (shard is not None and not shard.holds(key)):
            continue
        ask = next_ask(job, key, model)
        if ask is not None:
            found[key] = ask
    return found


def next_ask(job: Job, first: bytes, model: Model) -> int | None:
    """How many unreadable answers a request has had, if it is to be asked again; None where it is
    settled.
    """
    if job.stage.asks == 1 and job.log.round == 1:  # the answer need not be read
        return None if first in job.log else 0
    return look_up(job, first, model).ask


def repeated(job: Job, request: Request, ask: int) -> Request:
    """The request after so many unreadable answers: it says what was wrong with the last one."""
    if not ask:
        return request
    entry = job.log.get(ask_key(request.first(), ask - 1))
    assert entry is not None  # else it would be asked for
    answer, _ = entry
    reading = job.stage.read(answer, request.model)
    why = reading.why if isinstance(reading, Missing) else ""
    return request.again(ask, job.stage.repeat(request.model, answer, why))


class Lookup(NamedTuple):
    """What the log has of a request."""

    reading: Any  # of the last answer; Missing where it cannot be used
    answer: Answer | None
    key: bytes
    ask: int | None  # to be sent next: how many unreadable answers came before; None: nothing


def look_up(job: Job, first: bytes, model: Model) -> Lookup:
    """The first usable answer to a request, else the last one, and what is left to ask.

    An unreadable answer is followed by another ask, up to `Stage.asks` in a round; a run after a
    finished one opens another round.
    """
    tries, found = 0, Lookup(None, None, first, 0)
    for ask in count():
        key = ask_key(first, ask)
        entry = job.log.get(key)
        if entry is None:
            return found._replace(ask=ask if not ask or tries < job.stage.asks else None)
        answer, round_ = entry
        found = Lookup(job.stage.read(answer, model), answer, key, None)
        if not isinstance(found.reading, Missing):
            return found
        tries += round_ == job.log.round
    raise AssertionError  # count() has no end


# ---------------------------------------------------------------------------------- outcomes


class Outcome(NamedTuple):
    """What came of one row, and the answers that it rests on."""

    row: Row
    result: list[Row] | Missing
    answers: Sequence[tuple[str, bytes, Answer]]  # model as asked, key, answer


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
        found = look_up(job, first, model)
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
