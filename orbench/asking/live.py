"""Ask live: many requests at once, retries, interruption, progress.

Each model has a lane, so a slow one holds up no other. Its `Pace` says when the next request goes.
"""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil, inf
from statistics import fmean

from orbench.asking.inquiry import Limits, Phase, Run, follow_up
from orbench.asking.pace import Pace
from orbench.base.messages import UserError, progress_bar, say
from orbench.models.adaptation import Adaptation
from orbench.models.client import Client
from orbench.models.errors import (
    BadRequest,
    Fatal,
    Forbidden,
    NotReached,
    RateLimited,
    TimedOut,
    TransientError,
)
from orbench.models.providers import IN_PROCESS, PROVIDERS, Model, Models, address_variable
from orbench.models.requests import Answer, Missing, Prices, Request, user

FAILURES_IN_A_ROW = 20  # of a model, with no answer in between: it is left out
TURNED_AWAY = 3  # the same if the last one is a 403 and the log is empty: the key is wrong
LIMITED_TRIES = 20  # 429s of one request while others get through
ALONE_S = 5.0  # at most; a model's first request shows which parameters it rejects
GRACE_S = 25.0  # for answers under way after SIGTERM: SIGKILL often follows after 30 s
SIGNALS = (signal.SIGINT, signal.SIGTERM)  # that end a program
TICK_S = 0.005  # how late a request may go out
SAY_EVERY_S = 30.0  # progress if stderr is no terminal
FEWEST = 10  # settled requests before the time left is shown
PROBE_TOKENS = 16  # the least that OpenAI's responses take
SLOWEST_PROBE_S = 20.0  # a server that needs longer is there


@dataclass
class _Lane:
    """The requests to one model."""

    pace: Pace
    alone_s: float  # how long the first request goes alone
    alone_until: float = 0.0
    failures: int = 0  # requests in a row that failed
    unsent: deque[Request] = field(default_factory=deque)
    rejections: dict[bytes, list[str]] = field(default_factory=dict)  # by request: their kinds

    def take(self, now: float) -> Request | None:
        """Return a request that may go out now, if there is one."""
        if not self.unsent or now < self.alone_until or not self.pace.take(now):
            return None
        self.alone_until = now + self.alone_s
        self.alone_s = 0.0
        # In an outage each probe is another request, so that none runs out of tries.
        return self.unsent.pop() if self.pace.closed else self.unsent.popleft()


@dataclass(repr=False)  # signal.signal() writes out each handler with what it is bound to
class Session:
    """The requests of a run, a lane for each model, and the event loop that sends them."""

    requests: Sequence[Request]
    models: Models  # substitutes too
    run: Run
    limits: Limits
    progress: "Progress"
    lanes: dict[Model, _Lane] = field(default_factory=dict)
    places: int = 0  # how many requests may be in flight
    not_stored: UserError | None = None

    @property
    def over(self) -> bool:
        """Tell whether no request starts any more."""
        return not (self.run.under_way and self.run.asking) or self.not_stored is not None

    def settle(self, request: Request) -> None:
        """Queue what follows from a request that is answered or brings no answer in this run."""
        following = follow_up(request.key, self.run)
        if following:
            self.lanes[following.model].unsent.append(following)
        else:
            self.progress.done(self.run, request)

    def store(self, request: Request, answer: Answer) -> None:
        """Log an answer, before anything else is done with it, and queue what follows from it."""
        self.lanes[request.model].failures = 0
        try:
            self.run.store(request.key, answer)
            self.settle(request)
            self.reserve()
        except UserError as error:  # those in flight are stored too, if they can be
            self.not_stored = error

    def reserve(self) -> None:
        """Reserve room in the log for all that may be in flight. Raises UserError."""
        self.run.log.reserve(min(self.places, len(self.run.under_way)))

    def fail(self, request: Request, kind: str, error: Exception) -> None:
        """Note why a request gets no answer in this run."""
        self.run.failed[request.key] = Missing(kind, str(error))
        lane = self.lanes[request.model]
        lane.failures += 1
        most = FAILURES_IN_A_ROW
        if isinstance(error, Forbidden) and not self.run.log:
            most = TURNED_AWAY
        if lane.failures >= most:
            self.leave_out(
                request.model, f"{lane.failures} requests in a row failed, the last: {error}"
            )
        self.settle(request)

    def leave_out(self, model: Model, why: str) -> None:
        """Send nothing more to a model; substitutes take over."""
        if model.asked in self.run.left_out:
            return
        self.run.left_out[model.asked] = why
        if len(self.run.left_out) < len(self.lanes):
            self.progress.say(f"{model.asked} is left out: {why}")
        else:
            self.run.stopped = f"{model.asked}: {why}"

    def ask(self) -> None:
        """Send the requests and what follows from them, until nothing or no model is left, or
        after a signal; log each answer.

        Raises UserError, also if an answer cannot be stored: then nothing more is sent, and the
        answers in flight are stored as far as that is possible.
        """
        asyncio.run(self._ask())

    async def _ask(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.client = Client(self.limits.timeout, self.run.adaptation, self.run.stage.name)
        handlers = {number: signal.signal(number, self.on_signal) for number in SIGNALS}
        try:
            with suppress(TimeoutError):  # an interrupted run waits no longer for answers
                async with asyncio.timeout(None) as self.end, asyncio.TaskGroup() as self.tasks:
                    await self.queue()
                    while not self.over:
                        await asyncio.sleep(TICK_S)
                        self.pump()
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            self.run.requests += self.client.sent_again
            await self.client.close()  # a signal meanwhile is still seen to
            self.progress.close()
            for number, handler in handlers.items():
                signal.signal(number, handler)
        self.run.log.release()  # the CSVs need room, too
        if self.not_stored:
            raise self.not_stored

    async def queue(self) -> None:
        """Open a lane for each model and put the requests into them."""
        for model in self.models:
            await self.client.open(model)
            known = model in self.run.adaptation.rejected or model.base_url in IN_PROCESS
            pace = Pace(model, self.limits, self.progress.say)
            self.lanes[model] = _Lane(pace, 0.0 if known else ALONE_S)
            self.places += pace.limit
        for request in self.requests:
            self.lanes[request.model].unsent.append(request)
        self.reserve()

    def on_signal(self, number: int, _: object) -> None:
        """Have a signal seen to in the event loop, whatever it is doing now."""
        self.loop.call_soon_threadsafe(self.interrupt, number)

    def interrupt(self, number: int) -> None:
        """Wait only for the answers in flight: they are paid for."""
        if self.run.phase is Phase.INTERRUPTED and number == signal.SIGINT:
            os._exit(130)  # all that arrived is in the log
        self.run.phase = Phase.INTERRUPTED
        grace = self.limits.timeout
        if number == signal.SIGTERM:
            grace = min(grace, GRACE_S)
        with suppress(RuntimeError):  # the last answer is there already
            self.end.reschedule(self.loop.time() + grace)
        self.progress.say(
            f"stopping: waiting at most {grace:.0f} s for the answers in flight; "
            "interrupt again to exit at once"
        )

    def pump(self) -> None:
        """Send what may go out now."""
        for model, lane in self.lanes.items():
            left_out = model.asked in self.run.left_out
            while lane.unsent and left_out:
                self.settle(lane.unsent.popleft())
            while not self.over and (request := lane.take(self.loop.time())):
                self.tasks.create_task(self.send(request, lane))

    async def send(self, request: Request, lane: _Lane) -> None:
        """Send a request once, and see to what comes of it."""
        sent = self.loop.time()
        self.run.requests += 1
        if request.key in lane.rejections:
            self.run.retried[lane.rejections[request.key][-1]] += 1
        try:
            answer = await self.client.send(request)
        except TransientError as fault:
            self.rejected(request, lane, sent, fault)
        except (BadRequest, Fatal) as error:
            if isinstance(error, BadRequest) or (error.by_words and self.run.log):
                lane.pace.answered(sent, self.loop.time())
                self.fail(request, "bad_request", error)
            else:
                self.leave_out(request.model, str(error))
                self.settle(request)
        else:
            self.store(request, answer)
            lane.pace.answered(sent, self.loop.time())
            if request.model in self.client.queueing:
                lane.pace.start_small(self.loop.time())
        lane.alone_until = 0.0
        self.pump()

    def rejected(self, request: Request, lane: _Lane, sent: float, fault: TransientError) -> None:
        """Send a request again later, unless this was one rejection too many."""
        kinds = lane.rejections.setdefault(request.key, [])
        before = len(kinds)
        kinds.append(fault.kind)
        faults = len(kinds) - kinds.count(RateLimited.kind)
        rest = lane.pace.rejected(fault, sent, self.loop.time(), before)
        if lane.pace.over:
            self.leave_out(request.model, lane.pace.over)
            rest = 0.0  # what it asks for would hold up the other models
        elif faults > self.limits.max_retries or before >= LIMITED_TRIES:
            self.fail(request, "gave_up", fault)
            return
        self.loop.call_later(rest, lane.unsent.appendleft, request)


class Progress:
    """Progress on stderr: a bar on a terminal, a line now and then elsewhere, none if quiet."""

    def __init__(
        self, title: str, total: int, *, quiet: bool, prices: Prices | None = None
    ) -> None:
        """total: requests to be settled."""
        self.title = title
        self.total = total
        self.prices = prices
        self._n = 0
        self._refusals: list[bool] = []  # of the responses that were looked at
        self._start = self._said = time.monotonic()
        self._every = inf if quiet else SAY_EVERY_S
        self.bar = progress_bar(title, range(total), quiet=quiet, leave=True)

    def done(self, run: Run, request: Request) -> None:
        """Count one more settled request."""
        self._n += 1
        now = time.monotonic()
        state = f"failed {len(run.failed):,}, retries {run.retries}"
        if run.retried[TimedOut.kind]:
            state += "; lower --concurrency?"
        if cost := run.tokens.cost(self.prices):
            state = f"{cost}, {state}"
        seconds_left = (now - self._start) / self._n * (self.total - self._n)
        if self._n >= FEWEST and seconds_left > 0:
            state = f"about {ceil(seconds_left / 60):,} min left, {state}"
        if not self.bar.disable:
            if self._refusals:
                state = f"{100 * fmean(self._refusals):.0f} % refused, {state}"
            self.bar.set_postfix_str(state, refresh=False)
            if self.bar.update():  # drawn, ten times a second at most: reading takes .1 ms
                done = run.read(request, first=False)
                self._refusals += run.stage.refusals(done.reading) if done else []
        elif now - self._said > self._every:
            self._said = now
            say(f"{self.title}: {self._n:,} of {self.total:,}, {state}")

    def say(self, line: str) -> None:
        """Print a line for the user, above the bar."""
        self.bar.clear()
        say(line)

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()


def try_endpoints(models: Iterable[Model]) -> None:
    """Send one small request to each model. Raises UserError without connection, key, model or
    quota.
    """
    for model in dict.fromkeys(models):
        if model.moved_by:
            say(f"{model.id} at {model.address}{model.moved_by}")
        asyncio.run(_try(model))


async def _try(model: Model) -> None:
    request = Request(model, [user("Hello")], {"max_tokens": PROBE_TOKENS})
    client = Client(SLOWEST_PROBE_S, Adaptation())
    try:
        await client.send(request)
    except (Fatal, Forbidden) as error:
        raise UserError(f"{model.asked}: {error}") from None
    except NotReached:
        of_judge = "--judge_base_url"
        if model.provider in PROVIDERS:
            of_judge += f" or {address_variable(model.provider)}"
        mend = f"is the server running? Set --base_url (for a judge: {of_judge})"
        raise UserError(f"no connection to {model.address}: {mend}") from None
    except (TransientError, BadRequest):  # the server is there
        pass
    finally:
        await client.close()
