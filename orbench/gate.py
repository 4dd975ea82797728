"""When a request to an endpoint may be sent, and what becomes of one that was refused.

A refusal is a 429 or any other fault that can pass: the same is done about both. A refused request
waits by itself. The pace of all is free until refusals come from the pace; then it follows what the
endpoint accepts. An endpoint that does nothing but refuse is asked by one request at a time.
"""

import asyncio
import math
import random
from collections.abc import Callable
from typing import NamedTuple

from orbench.chat import Limited, Passing

# The pace. What is sent and what is refused is counted by windows.
WINDOW_S = 1.0  # so long at least, and as long as an answer takes
WINDOW = 20  # requests at least
MANY = 0.25  # more of a window refused ends the free pace
FEW = 0.05  # with no more refused a cut pace grows, else it is cut again, by half at most
GROWTH = 0.025  # of the pace after a clean window, twice that after a second in a row, ...

# A refused request, and an endpoint that does nothing but refuse.
OWN_WAIT_S = 1.0  # after a 429, at least: its Retry-After, if that is longer
FAULT_WAIT_S = 0.5  # after another fault
BACK_OFF = 1.5  # a request's next wait, where no Retry-After says how long
ROW = 12  # refusals in a row: from then on one request at a time, a probe
LONGEST_GAP_S = 8.0  # between probes, where Retry-After does not ask for more
LONG_S = 10.0  # a pause that is worth a line
PATIENCE_S = 175.0  # until the endpoint is given up
FIRST_PATIENCE_S = 25.0  # the same for one that never gave a sign of life: an answer, a 429
FEWEST_TRIES = 6  # one after another, however long each takes, before it is given up
LONGEST_WAIT_S = 3600.0  # that an endpoint may ask for
LIMITED_TRIES = 40  # 429s that one request may meet while others pass
MOST_TRIES = 10  # of a request that met other faults too


class TimedOut(Passing):
    """No whole answer came within the time that an attempt may take."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no whole answer within {seconds:g} s")
        self.seconds = seconds


class Tries:
    """The refusals that one request has met."""

    def __init__(self, max_retries: int) -> None:
        self.max_retries = max_retries
        self.limited = self.faults = 0
        self._at = math.inf  # of the last one

    @property
    def none(self) -> bool:
        """Whether it has met none."""
        return not self.limited and not self.faults

    def add(self, fault: Limited | Passing, sent: float, now: float) -> float:
        """Count a refusal. Gives the seconds to wait where no Retry-After says how long: ever more,
        also than it had to wait so far, pauses of the whole run included.
        """
        first = OWN_WAIT_S if isinstance(fault, Limited) else FAULT_WAIT_S
        wait = max(first * BACK_OFF ** (self.limited + self.faults), 1.2 * (sent - self._at))
        self._at = now
        if isinstance(fault, Limited):
            self.limited += 1
        else:
            self.faults += 1
        return min(wait, LONGEST_GAP_S)

    def check(self, fault: Limited | Passing) -> None:
        """Raise the fault if it was one too many for this request."""
        most = max(MOST_TRIES - 1, self.max_retries) if self.faults else LIMITED_TRIES
        if self.faults > self.max_retries or self.limited + self.faults > most:
            raise fault


class Sent(NamedTuple):
    """A request that was let through."""

    at: float
    answers: int  # of the endpoint before it
    probe: bool


class Pace:
    """Requests a second, steered by the share that is refused.

    rate: None where it is free; next: when the next request may go; at_random: the pace is free
    although some are refused, so that others may take the places of those that wait.
    """

    def __init__(self, now: float) -> None:
        self._noise = 0.0  # share refused at any pace
        self._answers = self._answers_before = 0  # in all; before the last outage
        self._answer_s = 0.0  # a running mean
        self._resumed_at = now
        self._before_row: float | None = None  # accepted a second
        self._before_burst: float | None = None
        self._last: float | None = None  # accepted a second in the last window
        self.rate: float | None = None
        self.next = now
        self._trial: tuple[float, float] | None  # pace and share when cutting began,
        self._trial_sent = self._trial_refused = 0  # and what was counted since
        self._settled = self._ever_clean = False
        self._clean = 0  # windows in a row
        self._begin(None, now)

    def sent(self, now: float, late: float) -> None:
        """Count a request. late: up to then a sleep that ended late is made up for."""
        self._sent += 1
        if self.rate:
            self.next = max(self.next, late) + 1 / self.rate

    def refused(self, sent: float) -> None:
        """Count a refusal of a request that was sent then."""
        self._refused += sent >= self._from

    def answered(self, seconds: float) -> None:
        """Count an answer that took so long."""
        self._answers += 1
        self._answer_s += (seconds - self._answer_s) / min(self._answers, WINDOW)

    def steer(self, now: float) -> None:
        """Close a window that is long enough, and set the pace by what it says."""
        seconds = now - self._since
        if self._sent < WINDOW or seconds < max(WINDOW_S, self._answer_s):
            return
        # After a burst its refusals arrive in a window in which little is sent.
        sent = max(self._sent, self._sent_before)
        share = min(1.0, self._refused / sent)
        accepted = self._last = max(1, self._sent - self._refused) / seconds
        chance = 2 * math.sqrt(self._noise * (1 - self._noise) / sent)  # two sigma
        self._trial_sent += sent
        self._trial_refused += self._refused
        self._open(now, self._sent)
        if self.rate is None and share > self._noise + MANY:
            self._begin(accepted, now)
        elif self.rate is None:
            self.at_random = True
        elif share > self._noise + max(FEW, chance):
            self._cut(share, now)
        else:
            self._clean += 1
            self._ever_clean = True
            more = self.rate * (1 + GROWTH * self._clean)
            self.rate = max(self.rate, min(more, 2 * accepted))  # no further than it is used
        self._noise = min(self._noise, 0.95 * self._noise + 0.05 * share)

    def _cut(self, share: float, now: float) -> None:
        """Go down to what was accepted; where that lowers no share, refusals have another cause."""
        assert self.rate is not None
        rate = self.rate * max(0.5, 1 - share + self._noise)
        mean = self._trial_refused / self._trial_sent
        if not self._settled or share > 0.6:  # what was saved up before, or far too fast
            self._settled, self._trial = True, None
        elif self._trial is None or mean < self._trial[1] / 2:
            self._trial = (self.rate, share if self._trial is None else mean)
            self._trial_sent = self._trial_refused = 0
        elif self.rate < 0.8 * self._trial[0]:
            rate = self._trial[0]
            self._noise, self._trial = min(0.5, mean), None
            if not self._ever_clean:
                self._begin(None, now)
                self.at_random = True
                return
        self._set(rate, now)

    def pause(self, until: float, in_flight: int) -> None:
        """Refusals came in a row from then on: remember what was accepted before."""
        accepted = self._sent - self._refused - in_flight
        seconds = until - self._since
        self._before_row = self._before_burst = self._last
        if accepted >= WINDOW and seconds > 0:
            self._before_row = accepted / seconds
            self._before_burst = accepted / max(seconds, WINDOW_S)

    def resume(self, now: float, outage: bool) -> None:
        """A probe was answered, after an outage or only a burst of refusals.

        A free pace becomes what was accepted before. A cut one is halved by an outage, but not
        below what was answered a second since the last one, outage and all.
        """
        lasting = (self._answers - self._answers_before) / (now - self._resumed_at)
        enough = self._answers - self._answers_before >= WINDOW
        if not outage:
            if self.rate is None and self._before_burst:
                self._begin(self._before_burst, now)
            return
        if self.rate:
            rate: float | None = max(self.rate / 2, lasting)
        else:
            rate = self._before_row or (lasting if enough else None)
        if rate:
            self._answers_before, self._resumed_at = self._answers, now
        self._begin(rate, now)

    def _begin(self, rate: float | None, now: float) -> None:
        """Set a pace that has nothing to do with the one before."""
        self.at_random = self._settled = self._ever_clean = False
        self._trial = None
        self._trial_sent = self._trial_refused = 0
        self._set(rate, now)

    def _set(self, rate: float | None, now: float) -> None:
        self.rate, self.next = rate, now
        self._from = now  # what was sent before says nothing about this pace
        self._clean = 0
        self._open(now)

    def _open(self, now: float, before: int = 0) -> None:
        self._since = now
        self._sent_before = before
        self._sent = self._refused = 0


class Gate:
    """Lets the requests to one endpoint pass: `enter`, send, then one of `passed`, `refused` (and
    `rest` before it enters again), `left`.

    limit: requests that may be in flight; over: why the endpoint is given up, once it is. say:
    takes a line for the user.
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.limit = concurrency
        self.over = ""
        self._request_s = 60 / requests_per_minute if requests_per_minute else 0.0
        self._token_s = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._say = say
        self._turn = asyncio.Lock()  # one at a time stands at the gate,
        self._newcomers = asyncio.Lock()  # and one of those that come for the first time behind it
        self._changed = asyncio.Event()
        self._pace = Pace(_now())
        self._in_flight = self._waiting = self._answers = 0
        self._owed = self._asked = 0.0  # when the caps per minute, and Retry-After, let one pass
        self._probe_at: float | None = None  # infinity: one is under way; None: no need of any
        self._row = self._tries = 0  # refusals in a row; of them one after another
        self._row_since = self._tried_at = 0.0
        self._shrunk_at = -1.0
        self._alive = self._told = False

    async def enter(self, tokens: int = 0, *, again: bool = False) -> Sent:
        """Wait until a request of about so many tokens may be sent; again: it was refused before,
        and goes before those that were not.
        """
        if again:
            return await self._enter(tokens)
        async with self._newcomers:
            return await self._enter(tokens)

    async def _enter(self, tokens: int) -> Sent:
        async with self._turn:
            while (wait := self._wait()) > 0:
                self._changed.clear()
                try:
                    async with asyncio.timeout(wait if wait < math.inf else None):
                        await self._changed.wait()
                except TimeoutError:
                    pass
            now = _now()
            late = now - 0.05
            self._owed = max(self._owed, late) + max(self._request_s, tokens * self._token_s)
            probe = self._probe_at is not None
            if probe:
                self._probe_at = math.inf
            else:
                self._pace.sent(now, late)
            self._in_flight += 1
            return Sent(now, self._answers, probe)

    def _wait(self) -> float:
        """Seconds until the next request may go; infinity: until something changes."""
        waiting = 0 if self._pace.at_random else self._waiting
        if self._in_flight + waiting >= self.limit:
            return math.inf
        until = self._owed
        if self._probe_at is not None:
            until = max(until, self._probe_at, self._asked)
        elif self._pace.rate:
            until = max(until, self._pace.next)
        return until - _now()

    def passed(self, sent: Sent, more_tokens: int = 0) -> None:
        """It was answered; more_tokens: what it took beyond the estimate given to `enter`."""
        now = self._leave(sent)
        self._answers += 1
        self._alive = True
        self._row = self._tries = 0
        self._pace.answered(now - sent.at)
        if self._token_s:
            self._owed = max(self._owed, now) + more_tokens * self._token_s
        if self._probe_at is None:
            self._pace.steer(now)
        elif sent.probe or now - self._row_since < 2 * OWN_WAIT_S:
            self._probe_at = None
            self._told = False
            self._pace.resume(now, outage=now - self._row_since >= 2 * OWN_WAIT_S)
        else:  # sent before the outage: there is room for one
            self._probe_at = min(self._probe_at, now)

    def left(self, sent: Sent) -> None:
        """It was not sent after all, or what came of it says nothing about the endpoint."""
        self._leave(sent)

    def refused(self, sent: Sent, fault: Limited | Passing, tries: Tries) -> float:
        """It was refused. Gives the seconds for which it rests; `over` may be set now."""
        now = self._leave(sent)
        asked = (fault.wait or 0.0) if isinstance(fault, Limited) else 0.0
        self._asked = max(self._asked, now + asked)
        self._alive = self._alive or isinstance(fault, Limited)
        timed_out = isinstance(fault, TimedOut)
        if isinstance(fault, TimedOut):
            self._shrink(sent, now, fault)
        if not timed_out or self._answers == sent.answers:  # else others were answered meanwhile
            self._count_row(sent, now)
        age = now - self._row_since if self._row else 0.0
        if sent.probe:
            self._probe_at = now + min(max(OWN_WAIT_S, age / 3), LONGEST_GAP_S)
        elif not timed_out:
            self._pace.refused(sent.at)
        if self._probe_at is None and self._row >= ROW:
            self._probe_at = self._row_since + OWN_WAIT_S
            self._pace.pause(self._row_since, self._in_flight)
        elif self._probe_at is None:
            self._pace.steer(now)
        self._judge(age, asked, fault)
        wait = tries.add(fault, sent.at, now)
        if self._probe_at is not None or asked:
            wait = max(OWN_WAIT_S, asked)
        elif not isinstance(fault, Limited):
            wait = max(wait, min(age, LONGEST_GAP_S))  # nobody is answered, but few ask
        return wait + random.random() / 10

    async def rest(self, seconds: float) -> None:
        """Wait as `refused` told a request to, before it enters again."""
        self._waiting += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._waiting -= 1
            self._changed.set()

    def _count_row(self, sent: Sent, now: float) -> None:
        if not self._row:
            self._row_since = now
        self._row += 1
        if sent.at >= self._tried_at:
            self._tries += 1
            self._tried_at = now

    def _judge(self, age: float, asked: float, fault: Limited | Passing) -> None:
        """Give the endpoint up, or say that there is a long pause."""
        patience = PATIENCE_S if self._alive else FIRST_PATIENCE_S
        if asked > LONGEST_WAIT_S:
            self.over = f"the endpoint asks to wait {asked / 3600:.1f} hours ({fault})"
        elif age >= patience and self._tries >= FEWEST_TRIES:
            self.over = f"nothing but refusals for {age:.0f} s, the last one: {fault}"
        elif max(age, asked) >= LONG_S and not self._told:
            self._told = True
            if asked >= LONG_S:
                self._say(f"the endpoint asks for a pause of {asked:.0f} s ({fault})")
            else:
                self._say(
                    f"nothing but refusals for {age:.0f} s, the last one: {fault}; from here on "
                    f"one request at a time, for {patience:.0f} s at most"
                )

    def _shrink(self, sent: Sent, now: float, fault: TimedOut) -> None:
        """Fewer in flight, where the endpoint answered fewer than that in the whole time."""
        answered = self._answers - sent.answers
        if sent.probe or sent.at <= self._shrunk_at or answered >= self.limit:
            return
        self._shrunk_at = now
        self.limit = max(1, self.limit // 2)
        self._say(
            f"no answer in {fault.seconds:g} s: {self.limit} in flight from here on; "
            "--timeout, --concurrency"
        )

    def _leave(self, sent: Sent) -> float:
        now = _now()
        self._in_flight -= 1
        if sent.probe and self._probe_at == math.inf:
            self._probe_at = now
        self._changed.set()
        return now


def _now() -> float:
    return asyncio.get_running_loop().time()
