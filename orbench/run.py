"""Many requests at once: workers, retries, shared back-off, progress, interruption.

The runner knows no stage and no file but the answer log: it is handed requests, and sees to it
that each has an answer there.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from orbench.answers import AnswerLog, LogError
from orbench.chat import Adaptation, Answer, BadRequest, Chat, Fatal, Limited, Passing, Request
from orbench.gate import Gate, TimedOut, Tries
from orbench.models import Model

FAILURES_IN_A_ROW = 20  # rows with nothing done between: the run stops
GRACE_S = 5.0  # for answers in flight when a run stops: they are paid for
CHARACTERS_A_TOKEN = 4  # rule of thumb for English; for estimates only
SAY_EVERY_S = 30.0  # progress where stderr is no terminal


class Failure(NamedTuple):
    """Why a request has no answer."""

    error_type: str  # bad_request, gave_up
    error: str


class Limits(NamedTuple):
    """How a run may use its endpoints."""

    concurrency: int | None = None  # requests in flight; None: the provider's default
    max_retries: int = 6
    timeout: float = 180.0  # seconds, for a whole attempt
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass
class Run:
    """One run of a stage over its requests.

    unreadable: says why an answer cannot be used (None: it can); such a request is asked again,
    `asks` times, and so many times more where none of the answers that a finished run left in the
    log can be used. After `answer_all`: failed (by the key of a request's first ask), interrupted,
    stopped (why, where the run could not go on), given_up (models that did nothing but fail), and
    the counts.
    """

    log: AnswerLog
    limits: Limits
    unreadable: Callable[[Answer], str | None]
    asks: int = 1
    finished: int = 0  # bytes of the log when a finished run had left rows unscored
    patience: int = 0  # rows more that may fail in a row: those known to have failed before
    failed: dict[bytes, Failure] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str = ""
    given_up: dict[str, str] = field(default_factory=dict)
    requests: int = 0  # attempts sent
    retries: int = 0
    answered: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    adaptation: Adaptation = field(default_factory=Adaptation)  # outlives the waves of a stage

    def chain(self, request: Request) -> Iterator[tuple[Request, Answer | None]]:
        """A request's asks in order, each with its answer in the log, up to the first usable one;
        None as the last answer: it is to be asked.
        """
        key = b""
        for ask in count():
            asked = request.again(ask)
            before, key = key, asked.key()
            answer = self.log.get(key)
            often = answer is None and ask and ask % self.asks == 0
            if often and not self.log.was_before(before, self.finished):
                return
            yield asked, answer
            if answer is None or self.unreadable(answer) is None:
                return

    def next_ask(self, request: Request) -> Request | None:
        """A request as it is to be asked next: the first time, or again after an answer that could
        not be read; None where nothing is left to ask.
        """
        if self.asks == 1 and not self.finished:  # without reading the answer
            return None if request.key() in self.log else request
        *_, (asked, answer) = self.chain(request)
        return asked if answer is None else None

    def answer_all(
        self,
        requests_to: Callable[[Model], Iterator[Request]],
        models: list[Model],
        progress: "Progress",
        beside: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Ask what the log lacks. requests_to: the requests that go to a model, in order.

        beside: work to do while requests are under way (it is cancelled at the end).
        Ends when all is asked, when a signal interrupts it, or when the run cannot go on.
        Raises ModelError for a key that is not set, LogError where an answer could not be stored.
        """
        asyncio.run(self._answer_all(requests_to, models, progress, beside))

    async def _answer_all(
        self,
        requests_to: Callable[[Model], Iterator[Request]],
        models: list[Model],
        progress: "Progress",
        beside: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._chat = Chat(self.limits.timeout, self.adaptation)
        self._progress = progress
        self._lanes_open = len(models)
        self._stop = asyncio.Event()
        self._sending: set[asyncio.Task[None]] = set()
        self._error: Exception | None = None
        loop = asyncio.get_running_loop()
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in before:
            loop.add_signal_handler(number, self._on_signal)
        try:
            for model in models:
                await self._chat.open(model)
            await asyncio.sleep(0.001)  # lets a signal in that came while all this was set up
            if self._stop.is_set():
                return
            lanes = [_Lane(self, model, requests_to(model)) for model in models]
            for lane in lanes:
                lane.start()
            workers = [worker for lane in lanes for worker in lane.workers]
            others = [asyncio.ensure_future(beside())] if beside else []
            await self._finish(workers)
            for task in others:
                task.cancel()
            for result in await asyncio.gather(*others, return_exceptions=True):
                if isinstance(result, Exception):
                    raise result
        finally:
            self.requests += self._chat.sent_again
            await self._chat.close()
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
        if self._error is not None:
            raise self._error

    async def _finish(self, workers: list["asyncio.Task[None]"]) -> None:
        stop = asyncio.create_task(self._stop.wait())
        everyone = asyncio.gather(*workers, return_exceptions=True)
        ends: list[asyncio.Future[Any]] = [stop, everyone]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if self._stop.is_set():
            for worker in workers:
                if worker not in self._sending:
                    worker.cancel()
            if self._sending:
                await asyncio.wait(self._sending.copy(), timeout=GRACE_S)
            for worker in workers:
                worker.cancel()
        stop.cancel()
        for result in await everyone:
            if isinstance(result, Exception) and self._error is None:
                self._error = result

    def _on_signal(self) -> None:
        if self.interrupted:
            self._progress.close()
            os._exit(130)  # twice: at once; all that arrived is in the log already
        self.interrupted = True
        if self._sending:
            self._progress.say(
                f"stopping: {len(self._sending)} answers are under way, at most {GRACE_S:.0f} s; "
                "interrupt again to leave at once"
            )
        self._stop.set()

    def stop(self, why: str) -> None:
        """End the run: no new request starts."""
        if not self._stop.is_set():
            self.stopped = why
            self._stop.set()

    def note_answer(self, answer: Answer) -> None:
        """Count an answer as it arrives."""
        self.answered += 1
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens


class _Lane:
    """The requests of a run that go to one model, with the workers' shared state."""

    def __init__(self, run: Run, model: Model, requests: Iterator[Request]) -> None:
        limits = run.limits
        self.run, self.model, self.requests = run, model, requests
        self.gate = Gate(
            limits.concurrency or model.settings.concurrency,
            limits.requests_per_minute,
            limits.tokens_per_minute,
            lambda line: run._progress.say(f"{model.asked}: {line}"),
        )
        self.over = False
        self.failures = 0  # in a row
        self.completion_tokens = 0.0  # running mean, for the token budget

    def start(self) -> None:
        """Set the workers to work: as many as may be in flight, and as many again, which take the
        places of those that wait after a refusal where the gate lets them.
        """
        self.workers = [asyncio.create_task(self.work()) for _ in range(2 * self.gate.limit)]

    async def work(self) -> None:
        run = self.run
        try:
            for request in self.requests:
                if self.over or run._stop.is_set():
                    return
                await self.settle(request)
                run._progress.done()
        except (Fatal, LogError) as error:
            if isinstance(error, LogError) and run._error is None:
                run._error = error
            run.stop(str(error))

    async def settle(self, request: Request) -> None:
        """Get a usable answer for a request, or note its failure."""
        run = self.run
        while (asked := run.next_ask(request)) and not run._stop.is_set():
            try:
                answer = await self.attempt(asked)
            except (BadRequest, Passing, Limited) as error:
                self.fail(request, error)
                return
            self.failures = 0
            run.note_answer(answer)
            run.log.append(asked.key(), answer)

    def fail(self, request: Request, error: Exception) -> None:
        """Note that a request has no answer and will get none in this run."""
        run = self.run
        kind = "bad_request" if isinstance(error, BadRequest) else "gave_up"
        run.failed[request.key()] = Failure(kind, str(error))
        run._progress.failed += 1
        self.failures += 1
        if self.failures >= FAILURES_IN_A_ROW + run.patience:
            self.give_up(f"{self.failures} requests in a row failed, the last one with: {error}")

    def give_up(self, why: str) -> None:
        """This model does nothing but fail. The others of an ensemble go on; alone, the run
        ends.
        """
        if self.over:
            return
        self.over = True
        run = self.run
        run.given_up[self.model.asked] = why
        run._lanes_open -= 1
        if run._lanes_open == 0:
            run.stop(f"{self.model.asked}: {why}")
        else:
            run._progress.say(f"{self.model.asked} is left out from here on: {why}")
            for worker in self.workers:
                if worker not in run._sending:  # it may wait at the gate, for hours
                    worker.cancel()

    async def attempt(self, request: Request) -> Answer:
        """Send a request until it is answered. Raises what it failed with in the end."""
        run, gate, limits = self.run, self.gate, self.run.limits
        tokens = 0
        if limits.tokens_per_minute:
            characters = sum(len(message["content"]) for message in request.messages)
            tokens = int(characters / CHARACTERS_A_TOKEN + self.completion_tokens)
        me = asyncio.current_task()
        assert me is not None
        tries = Tries(limits.max_retries)
        while True:
            sent = await gate.enter(tokens, again=not tries.none)
            if self.over or run._stop.is_set():
                gate.left(sent)
                raise asyncio.CancelledError
            run.requests += 1
            run._sending.add(me)
            try:
                async with asyncio.timeout(limits.timeout):
                    answer = await run._chat.send(request)
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
            finally:
                run._sending.discard(me)
            if run._stop.is_set() or self.over:
                raise asyncio.CancelledError  # nothing is lost: it goes on with the next run
            run.retries += 1
            run._progress.retries += 1
            await gate.rest(wait)


class Progress:
    """Progress on stderr: a bar on a terminal, a line now and then elsewhere, nothing when
    quiet.
    """

    def __init__(self, title: str, total: int, *, quiet: bool) -> None:
        """total: what is left to do, in requests."""
        self.title, self.total, self.quiet = title, total, quiet
        self.failed = self.retries = 0
        self._n = 0
        self._start = self._said = time.monotonic()
        self._bar = None
        if total and not quiet and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc=title, unit=" rows", file=sys.stderr)

    def done(self) -> None:
        """One more is settled."""
        self._n += 1
        if self._bar is not None:
            self._bar.update()
            if self.failed or self.retries:
                self._bar.set_postfix(failed=self.failed, retries=self.retries, refresh=False)
        elif not self.quiet and time.monotonic() - self._said > SAY_EVERY_S:
            self._said = time.monotonic()
            rate = self._n / (self._said - self._start)
            left = (self.total - self._n) / rate
            print(
                f"{self.title}: {self._n:,} of {self.total:,} rows, {rate:.1f}/s, failed "
                f"{self.failed}, retries {self.retries}, about {left / 60:.0f} min to go",
                file=sys.stderr,
            )

    def say(self, line: str) -> None:
        """A line for the user, above the bar."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)
        elif not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal clean."""
        if self._bar is not None:
            self._bar.close()
