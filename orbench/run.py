"""Many requests at once: lanes, retries, a shared back-off, progress, interruption.

The runner knows no stage and no file but the answer log: it is handed requests, and sees to it
that each has an answer there.
"""

import asyncio
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from orbench.answers import Answer, AnswerLog, LogError, Missing, Tokens
from orbench.chat import (
    Adaptation,
    BadRequest,
    Chat,
    Fatal,
    Limited,
    Passing,
    Request,
    TurnedAway,
)
from orbench.gate import Gate, TimedOut, Tries
from orbench.models import Model
from orbench.terminal import counted, say

FAILURES_IN_A_ROW = 20  # rows with nothing done in between: the run stops
TURNED_AWAY = 3  # requests, before any answer: not a firewall's doubts about one prompt
GRACE_S = 25.0  # for answers in flight after SIGTERM, which managers follow up with SIGKILL after
# 30 s, and when a run cannot go on; Ctrl-C waits for as long as an attempt may take
CHARACTERS_A_TOKEN = 4  # rule of thumb for English; for estimates only
SAY_EVERY_S = 30.0  # progress where stderr is no terminal
AHEAD = 1000  # requests that a slow model may lie behind a fast one

# Called with each answer once it is in the log; gives what to ask because of it, if anything.
OnAnswer = Callable[[Request, Answer], Request | None]


class Limits(NamedTuple):
    """How a run may use its endpoints."""

    concurrency: int | None = None  # requests in flight; None: the provider's default
    max_retries: int = 6
    timeout: float = 180.0  # seconds, for a whole attempt
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass
class Run:
    """What came of asking, live or in batches.

    failed: by the key of a request's first ask; given_up: models that did nothing but fail, and
    why; stopped: why the run could not go on.
    """

    failed: dict[bytes, Missing] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str = ""
    requests: int = 0  # attempts sent
    retries: int = 0
    answered: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    adaptation: Adaptation = field(default_factory=Adaptation)

    def store(self, log: AnswerLog, key: bytes, answer: Answer) -> None:
        """Count an answer and put it into the log. Raises LogError."""
        self.answered += 1
        self.tokens.add(answer)
        log.append(key, answer)

    def fail(self, log: AnswerLog, first: bytes, missing: Missing) -> None:
        """Note that a request has no answer and gets none in this run. Raises LogError."""
        self.failed[first] = missing
        log.append_failure(first, missing)


def ask_all(
    requests: Iterator[Request],
    models: Sequence[Model],
    log: AnswerLog,
    run: Run,
    limits: Limits,
    progress: "Progress",
    *,
    on_answer: OnAnswer | None = None,
    patience: int = 0,
) -> None:
    """Ask requests of some models, all of them at once, and put the answers into the log.

    patience: extra failures in a row to allow, for requests known to have failed before.
    Ends when everything is asked, when a signal interrupts it, or when the run cannot go on; the
    outcome is in `run`. Raises UserError for a key that is not set, and LogError where an answer
    could not be stored.
    """
    session = _Session(log, run, limits, progress, on_answer, FAILURES_IN_A_ROW + patience)
    asyncio.run(session.go(requests, models))


class _Feed:
    """One stream of requests, handed out to the lanes of their models."""

    def __init__(self, requests: Iterator[Request], models: Sequence[Model]) -> None:
        self._requests = requests
        self._waiting: dict[Model, deque[Request]] = {model: deque() for model in models}
        self._room = asyncio.Event()

    async def next(self, model: Model) -> Request | None:
        """The next request to a model; None after the last one, and for a model that is closed."""
        while (mine := self._waiting.get(model)) is not None and not mine:
            if any(len(waiting) >= AHEAD for waiting in self._waiting.values()):
                self._room.clear()
                await self._room.wait()
                continue
            request = next(self._requests, None)
            if request is None:
                return None
            if request.model in self._waiting:
                self._waiting[request.model].append(request)
        self._room.set()
        return mine.popleft() if mine else None

    def close(self, model: Model) -> None:
        """Drop the requests to a model."""
        self._waiting.pop(model, None)
        self._room.set()


class _Session:
    """The live part of a run: one event loop, its signals, a lane per model."""

    def __init__(
        self,
        log: AnswerLog,
        run: Run,
        limits: Limits,
        progress: "Progress",
        on_answer: OnAnswer | None,
        most_failures: int,
    ) -> None:
        self.log, self.run, self.limits, self.progress = log, run, limits, progress
        self.on_answer, self.most_failures = on_answer, most_failures
        self.chat = Chat(limits.timeout, run.adaptation, progress.title)
        self.grace = min(GRACE_S, limits.timeout)
        self.resumed = len(log) > 0  # the key was good once
        self.sending: set[asyncio.Task[None]] = set()
        self.error: Exception | None = None

    async def go(self, requests: Iterator[Request], models: Sequence[Model]) -> None:
        self.stopping = asyncio.Event()
        self.feed = _Feed(requests, models)
        self.lanes_open = len(models)
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            for model in models:
                await self.chat.open(model)
            await asyncio.sleep(0.001)  # lets in a signal that arrived during set-up
            if not self.stopping.is_set():
                lanes = [_Lane(self, model) for model in models]
                await self._finish([worker for lane in lanes for worker in lane.start()])
        finally:
            self.run.requests += self.chat.sent_again
            await self.chat.close()
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
        if self.error is not None:
            raise self.error

    async def _finish(self, workers: list["asyncio.Task[None]"]) -> None:
        stop = asyncio.create_task(self.stopping.wait())
        everyone = asyncio.gather(*workers, return_exceptions=True)
        ends: list[asyncio.Future[Any]] = [stop, everyone]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if self.stopping.is_set():
            for worker in workers:
                if worker not in self.sending:
                    worker.cancel()
            if self.sending:
                self._say_wait()
                await asyncio.wait(self.sending.copy(), timeout=self.grace)
            for worker in workers:
                worker.cancel()
        stop.cancel()
        for result in await everyone:
            if isinstance(result, Exception) and self.error is None:
                self.error = result

    def _on_signal(self, number: int) -> None:
        if self.stopping.is_set():
            self.progress.close()
            os._exit(130)  # at once; all that arrived is in the log already
        self.run.interrupted = True
        if number == signal.SIGINT:
            self.grace = self.limits.timeout
        self.stopping.set()

    def _say_wait(self) -> None:
        again = " again" if self.run.interrupted else ""
        self.progress.say(
            f"stopping: waiting for {counted(len(self.sending), 'answer')} under way, at most "
            f"{self.grace:.0f} s; interrupt{again} to leave at once",
            always=True,
        )

    def stop(self, why: str) -> None:
        """End the run: no new request starts."""
        if not self.stopping.is_set():
            self.run.stopped = why
            self.stopping.set()


class _Lane:
    """The requests of a run that go to one model, with the workers' shared state."""

    def __init__(self, session: _Session, model: Model) -> None:
        limits = session.limits
        self.session, self.model = session, model
        self.gate = Gate(
            limits.concurrency or model.settings.concurrency,
            limits.requests_per_minute,
            limits.tokens_per_minute,
            lambda line: session.progress.say(f"{model.asked}: {line}"),
        )
        self.over = False
        self.failures = 0  # in a row
        self.turned_away = 0
        self.last_error, self.told = "", False
        self.answered = False
        self.completion_tokens = 0.0  # running mean, for the token budget

    def start(self) -> "list[asyncio.Task[None]]":
        """Start twice as many workers as there may be requests in flight: the others take the
        places of those that wait after a refusal, where the gate lets them.
        """
        self.workers = [asyncio.create_task(self.work()) for _ in range(2 * self.gate.limit)]
        return self.workers

    async def work(self) -> None:
        session = self.session
        try:
            while request := await session.feed.next(self.model):
                if self.over or session.stopping.is_set():
                    return
                await self.settle(request)
                session.progress.done()
        except (Fatal, LogError) as error:
            if isinstance(error, LogError) and session.error is None:
                session.error = error
            session.stop(str(error))

    async def settle(self, request: Request) -> None:
        """Get an answer to a request and to what it leads to, or note its failure."""
        session, asked = self.session, request
        while not session.stopping.is_set():
            try:
                answer = await self.attempt(asked)
            except (BadRequest, Passing, Limited) as error:
                self.fail(asked, error)
                return
            self.failures, self.answered = 0, True
            session.run.store(session.log, asked.key(), answer)
            again = session.on_answer(asked, answer) if session.on_answer else None
            if again is None:
                return
            asked = again

    def fail(self, request: Request, error: Exception) -> None:
        """Note that a request has no answer and gets none in this run. Raises Fatal where none
        gets one.
        """
        session = self.session
        self.turned_away += isinstance(error, TurnedAway)
        if self.turned_away >= TURNED_AWAY and not (self.answered or session.resumed):
            raise Fatal(str(error))
        kind = "bad_request" if isinstance(error, BadRequest) else "gave_up"
        session.run.fail(session.log, request.first(), Missing(kind, str(error)))
        session.progress.failed += 1
        if self.last_error == str(error) and not self.told:  # it is not about one prompt
            self.told = True
            session.progress.say(f"{self.model.asked}: the first failures say: {error}")
        self.last_error = str(error)
        self.failures += 1
        if self.failures >= session.most_failures:
            self.give_up(f"{self.failures} requests in a row failed, the last one with: {error}")

    def give_up(self, why: str) -> None:
        """This model does nothing but fail. The others of an ensemble go on; alone, the run
        ends.
        """
        if self.over:
            return
        self.over = True
        session = self.session
        session.run.given_up[self.model.asked] = why
        session.feed.close(self.model)
        session.lanes_open -= 1
        if session.lanes_open == 0:
            session.stop(f"{self.model.asked}: {why}")
            return
        session.progress.say(f"{self.model.asked} is left out from here on: {why}")
        for worker in self.workers:
            if worker not in session.sending:  # it may wait at the gate, for hours
                worker.cancel()

    async def attempt(self, request: Request) -> Answer:
        """Send a request until it is answered. Raises what it failed with in the end."""
        session, gate, limits = self.session, self.gate, self.session.limits
        tokens = 0
        if limits.tokens_per_minute:
            characters = sum(len(message["content"]) for message in request.messages)
            tokens = int(characters / CHARACTERS_A_TOKEN + self.completion_tokens)
        tries = Tries(limits.max_retries)
        while True:
            sent = await gate.enter(tokens)
            if self.over or session.stopping.is_set():
                gate.left(sent)
                raise asyncio.CancelledError
            try:
                answer = await self.send(request)
            except (Limited, Passing, TimeoutError) as error:
                fault = TimedOut(limits.timeout) if isinstance(error, TimeoutError) else error
                wait = gate.refused(sent, fault, tries)
                if gate.over:
                    self.give_up(gate.over)
                tries.check(fault)
            except BadRequest:
                gate.passed(sent)  # a sign of life
                raise
            except BaseException:
                gate.left(sent)
                raise
            else:
                gate.passed(sent, answer.prompt_tokens + answer.completion_tokens - tokens)
                self.completion_tokens += 0.1 * (answer.completion_tokens - self.completion_tokens)
                return answer
            if session.stopping.is_set() or self.over:
                raise asyncio.CancelledError  # nothing is lost: it goes on with the next run
            session.run.retries += 1
            session.progress.retries += 1
            await gate.rest(wait)

    async def send(self, request: Request) -> Answer:
        """Send a request once. Raises what `Chat.send` does, and TimeoutError."""
        session, me = self.session, asyncio.current_task()
        assert me is not None
        session.run.requests += 1
        session.sending.add(me)
        try:
            async with asyncio.timeout(session.limits.timeout):
                return await session.chat.send(request)
        finally:
            session.sending.discard(me)


class Progress:
    """Progress on stderr: a bar on a terminal, a line now and then elsewhere, nothing when
    quiet.
    """

    def __init__(
        self, title: str, total: int, *, quiet: bool, unit: str = "row", done: int | None = None
    ) -> None:
        """total: what is to be done, in requests. done: how much of it there is already, where it
        is no requests that are counted (see `advance`).
        """
        self.title, self.total, self.quiet, self.unit = title, total, quiet, unit
        self.failed = self.retries = 0
        self._of_requests = done is None
        self._before = self._n = min(done or 0, total)
        self._start = self._said = time.monotonic()
        self._bar = None
        if total and not quiet and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                initial=self._n,
                # Never tqdm's own `1.52s/ rows`.
                bar_format="{n:,}/{total:,} |{bar}| {rate_noinv_fmt}, {remaining} left{postfix}",
                unit=f" {unit}s",
                dynamic_ncols=True,
            )

    def skip(self, n: int) -> None:
        """So many requests fewer are left to do: the log has their answers."""
        if self._of_requests:
            self.total -= n
        if self._bar is not None:
            self._bar.total = self.total

    def done(self) -> None:
        """One more request is settled."""
        self.advance(1 if self._of_requests else 0)

    def advance(self, n: int) -> None:
        """So many more of what is counted are there; more than wanted do not count."""
        n = min(n, self.total - self._n)
        self._n += n
        if self._bar is not None:
            if self.failed or self.retries:
                self._bar.set_postfix_str(", ".join(self._troubles()), refresh=False)
            self._bar.update(n)
        elif not self.quiet and time.monotonic() - self._said > SAY_EVERY_S:
            self._said = time.monotonic()
            say(self.line(self._said - self._start))

    def line(self, elapsed: float) -> str:
        """How far it is after so many seconds, in at most 80 columns."""
        rate = (self._n - self._before) / elapsed
        parts = [f"{self._n:,} of {counted(self.total, self.unit)}", f"{rate:.1f}/s"]
        if rate:
            minutes = (self.total - self._n) / rate / 60
            parts.append(
                f"{minutes:.0f} min left" if minutes < 120 else f"{minutes / 60:.0f} h left"
            )
        return ", ".join([*parts, *self._troubles()])

    def _troubles(self) -> list[str]:
        found = [(self.failed, "failed"), (self.retries, "sent again")]
        return [f"{n:,} {what}" for n, what in found if n]

    def say(self, line: str, *, always: bool = False) -> None:
        """A line for the user, above the bar. always: also with --quiet."""
        if self._bar is not None:
            self._bar.clear()
            say(line)
            self._bar.refresh()
        elif always or not self.quiet:
            say(line)

    def close(self) -> None:
        """Leave the terminal clean."""
        if self._bar is not None:
            self._bar.close()
