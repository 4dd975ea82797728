"""Asks live: many requests at once, retries, interruption, progress.

Each model has a lane, so a slow one holds up no other. Its `Pace` says when the next request goes.
"""

import asyncio
import math
import os
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence

from orbench.asking.adaptation import Adaptation
from orbench.asking.answer_log import AnswerLog
from orbench.asking.asked import Asked, FollowUp, Limits, Pending
from orbench.asking.client import Client
from orbench.asking.faults import BadRequest, Fatal, Limited, Passing, TurnedAway
from orbench.asking.models import IN_PROCESS, Model
from orbench.asking.pacing import NO_CONNECTION, Pace
from orbench.asking.requests import Answer, Missing, Request, user
from orbench.base.messages import UserError, counted, say

FAILURES_IN_A_ROW = 20  # of a model, with no answer in between: it is left out
TURNED_AWAY = 3  # the same if the last one is a 403 and the log is empty: the key is wrong
LIMITED_TRIES = 20  # 429s of one request while others get through
ALONE_S = 5.0  # at most; a model's first request shows which parameters it rejects
GRACE_S = 25.0  # for answers under way after SIGTERM: SIGKILL often follows after 30 s
TICK_S = 0.005  # how late a request may go out
SAY_EVERY_S = 30.0  # progress if stderr is no terminal
PROBE_TOKENS = 16  # the least that OpenAI's responses take
SLOWEST_PROBE_S = 20.0  # a server that needs longer is there
REPLY_S = 5.0  # of an endpoint, as an estimate


def ask_live(
    pending: Pending,
    models: Sequence[Model],
    log: AnswerLog,
    asked: Asked,
    limits: Limits,
    follow_up: FollowUp,
    progress: "Progress",
) -> None:
    """Send the pending requests and what follows from their answers, until nothing or no model is
    left, or after a signal; log each answer. models: substitutes too. Raises UserError.
    """
    asyncio.run(_Session(log, asked, limits, progress).run(pending, models, follow_up))


class _Session:
    """One event loop. open: keys that are not settled. over: no request starts any more."""

    def __init__(self, log: AnswerLog, asked: Asked, limits: Limits, progress: "Progress") -> None:
        self.log = log
        self.asked = asked
        self.limits = limits
        self.progress = progress
        self.paces = dict[Model, Pace]()
        self.unsent = dict[Model, deque[Request]]()
        self.failures = Counter[Model]()  # in a row
        self.refusals = Counter[bytes]()
        self.faults = Counter[bytes]()  # faults: all but 429s
        self.open = set[bytes]()
        self.alone = dict[Model, float]()  # when a model's other requests may go out
        self.over = False

    async def run(self, pending: Pending, models: Sequence[Model], follow_up: FollowUp) -> None:
        """Ask until nothing is left to do."""
        self.loop = asyncio.get_running_loop()
        self.follow_up = follow_up
        self.client = Client(self.limits.timeout, self.asked.adaptation, self.progress.title)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in handlers:
            self.loop.add_signal_handler(number, self.interrupt, number)
        try:
            async with asyncio.timeout(None) as self.end, asyncio.TaskGroup() as self.tasks:
                for model in models:
                    await self.client.open(model)
                    self.paces[model] = Pace(model, self.limits, self.progress.say)
                    self.unsent[model] = deque()
                    if model in self.asked.adaptation.rejected or model.base_url in IN_PROCESS:
                        self.alone[model] = 0.0
                for request in pending():
                    self.open.add(request.key)
                    self.unsent[request.model].append(request)
                while not self.over:
                    await asyncio.sleep(TICK_S)
                    self.pump()
        except TimeoutError:
            pass  # an interrupted run waits no longer for answers
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            for number, handler in handlers.items():
                self.loop.remove_signal_handler(number)
                signal.signal(number, handler)
            self.asked.requests += self.client.sent_again
            await self.client.close()
            self.progress.close()

    def interrupt(self, number: int) -> None:
        """Wait only for the answers under way: they are paid for."""
        if self.asked.interrupted and number == signal.SIGINT:
            os._exit(130)  # all that arrived is in the log
        self.asked.interrupted = self.over = True
        grace = min(self.limits.timeout, GRACE_S if number == signal.SIGTERM else 1e9)
        # SIGTERM can come twice, as measure.py passes it on.
        self.end.reschedule(min(self.end.when() or math.inf, self.loop.time() + grace))
        wait = f"waiting at most {grace:.0f} s for the answers in flight"
        self.progress.say(f"stopping: {wait}; interrupt again to exit at once")

    def settle(self, request: Request, answer: Answer | None) -> None:
        """Queue what follows from an answer (None: there is none)."""
        self.open.discard(request.key)
        following = self.follow_up(request, answer)
        known = (self.open, self.log, self.asked.failed)
        if following is None or any(following.key in keys for keys in known):
            self.progress.done(len(self.asked.failed), self.asked.retries)
        else:
            self.open.add(following.key)
            self.unsent[following.model].append(following)

    def pump(self) -> None:
        """Send what may go out now."""
        for model, unsent in self.unsent.items():
            pace = self.paces[model]
            left_out = model.asked in self.asked.left_out
            while unsent and left_out:
                self.settle(unsent.popleft(), None)
            while unsent and not self.over:
                now = self.loop.time()
                if now < self.alone.get(model, now) or not pace.take(now):
                    break
                self.alone.setdefault(model, now + ALONE_S)
                # In an outage each probe is another request, so that none runs out of tries.
                request = unsent.pop() if pace.closed else unsent.popleft()
                self.tasks.create_task(self.send(request, pace, now))
        self.over |= not self.open

    async def send(self, request: Request, pace: Pace, sent: float) -> None:
        """Send a request once, and see to what comes of it."""
        self.asked.requests += 1
        self.asked.retries += request.key in self.refusals
        try:
            async with asyncio.timeout(self.limits.timeout):
                answer = await self.client.send(request)
        except (Limited, Passing) as fault:
            self.refused(request, pace, sent, fault)
        except TimeoutError:
            self.refused(request, pace, sent, Passing(f"no answer in {self.limits.timeout:g} s"))
        except BadRequest as error:
            pace.answered(sent, self.loop.time())
            self.fail(request, "bad_request", error)
        except Fatal as error:
            self.leave_out(request.model, str(error))
            self.settle(request, None)
        else:
            pace.answered(sent, self.loop.time())
            self.failures[request.model] = 0
            self.asked.store(self.log, request.key, answer)
            self.settle(request, answer)
        self.alone[request.model] = 0.0
        self.pump()

    def refused(self, request: Request, pace: Pace, sent: float, fault: Limited | Passing) -> None:
        """Send a request again later, unless this was one refusal too many."""
        key = request.key
        before = self.refusals[key]
        self.refusals[key] += 1
        self.faults[key] += isinstance(fault, Passing)
        rest = pace.refused(fault, sent, self.loop.time(), before)
        if pace.over:
            self.leave_out(request.model, pace.over)
        too_often = self.faults[key] > self.limits.max_retries or before >= LIMITED_TRIES
        if too_often and not pace.over:
            self.fail(request, "gave_up", fault)
        else:
            self.loop.call_later(rest, self.unsent[request.model].appendleft, request)

    def fail(self, request: Request, kind: str, error: Exception) -> None:
        """Note why a request gets no answer in this run."""
        self.asked.failed[request.key] = Missing(kind, str(error))
        self.failures[request.model] += 1
        n = self.failures[request.model]
        wrong_key = isinstance(error, TurnedAway) and n >= TURNED_AWAY and not len(self.log)
        if wrong_key or n >= FAILURES_IN_A_ROW:
            self.leave_out(request.model, f"{n} requests in a row failed, the last: {error}")
        self.settle(request, None)

    def leave_out(self, model: Model, why: str) -> None:
        """Send nothing more to a model; substitutes take over."""
        if model.asked not in self.asked.left_out:
            self.asked.left_out[model.asked] = why
            if len(self.asked.left_out) < len(self.paces):
                self.progress.say(f"{model.asked} is left out: {why}")
            else:
                self.asked.stopped = f"{model.asked}: {why}"
                self.over = True


class Progress:
    """Progress on stderr: a bar on a terminal, a line now and then elsewhere, none if quiet."""

    def __init__(self, title: str, total: int, *, quiet: bool) -> None:
        """total: requests to be settled."""
        self.title = title
        self.total = total
        self.quiet = quiet
        self._n = 0
        self._said = time.monotonic()
        self._bar = None
        if not quiet and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc=title, unit=" rows", dynamic_ncols=True)

    def done(self, failed: int, retries: int) -> None:
        """One more request is settled; failed, retries: how many so far."""
        self._n += 1
        if self._bar is not None:
            self._bar.set_postfix(failed=failed, retries=retries, refresh=False)
            self._bar.update()
        elif not self.quiet and time.monotonic() - self._said > SAY_EVERY_S:
            self._said = time.monotonic()
            line = f"{self.title}: {self._n:,} of {counted(self.total, 'row')}"
            say(f"{line}, {failed:,} failed, {retries:,} retries")

    def say(self, line: str) -> None:
        """A line for the user, above the bar."""
        if self._bar is not None:
            self._bar.clear()
        say(line)

    def close(self) -> None:
        """Leave the terminal clean."""
        if self._bar is not None:
            self._bar.close()


async def probe(model: Model, max_tokens: int | None, *, dry: bool) -> float:
    """Seconds for a request: measured if the model runs on this machine, else an estimate, after
    one small request (dry: without). Raises UserError without connection, key, model or quota.
    """
    own = model.base_url in IN_PROCESS
    request = Request(model, [user("Hello")], {"max_tokens": (own and max_tokens) or PROBE_TOKENS})
    client = Client(SLOWEST_PROBE_S, Adaptation())
    start = time.monotonic()
    try:
        if own or not dry:
            await client.send(request)
    except (Fatal, TurnedAway) as error:
        raise UserError(f"{model.asked}: {error}") from None
    except (Passing, BadRequest, Limited) as error:
        if str(error).startswith(NO_CONNECTION):
            server = "your server" if model.provider == "custom" else model.provider
            mend = f"is {server} running? Set --base_url (for a judge: ..._BASE_URL)"
            raise UserError(f"no connection to {model.address}: {mend}") from None
    finally:
        await client.close()
    return time.monotonic() - start if own else REPLY_S / model.settings.concurrency
