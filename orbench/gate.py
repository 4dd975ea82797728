"""When a request to an endpoint may be sent, and what becomes of one that was refused.

A refusal is a 429 or a fault that can pass: the same is done about both. A refused request waits by
itself. The pace of all is free until refusals come from the pace, then it follows what the endpoint
accepts. An endpoint that does nothing but refuse is asked by one request at a time.
"""

import asyncio
import math
import random
from collections.abc import Callable
from typing import NamedTuple

from orbench.chat import Limited, Passing

WINDOW_S = 1.0  # what is sent and refused is counted over so long at least,
WINDOW = 20  # and over so many requests
MANY = 0.25  # share refused of a window: more of it ends the free pace
FEW = 0.05  # with no more than this a pace grows, with more it is cut
GROWTH = 0.025  # of the pace after a clean window; twice that after the second in a row, ...

OUTAGE = 15  # refusals in a row
OWN_WAIT_S = 1.0  # of a refused request, at least
LONGEST_GAP_S = 10.0  # between two probes, where the endpoint does not ask for more
LONGEST_WAIT_S = 3600.0  # that an endpoint may ask for
PATIENCE_S = 180.0  # with an endpoint that does nothing but refuse
FIRST_PATIENCE_S = 29.0  # with one that never gave a sign of life: an answer, a 429
FEWEST_TRIES = 6  # one after the other, however long each takes, before patience ends
LIMITED_TRIES = 30  # 429s that one request may meet while others pass


class TimedOut(Passing):
    """No whole answer came in the time that an attempt may take."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no whole answer within {seconds:g} s")
        self.seconds = seconds


class Tries:
    """The refusals that one request met."""

    def __init__(self, max_retries: int) -> None:
        self.max_retries = max_retries
        self.limited = self.faults = 0

    def count(self, fault: Limited | Passing) -> None:
        """Raise the fault where it was one too many."""
        if isinstance(fault, Limited):
            self.limited += 1
        else:
            self.faults += 1
        if self.limited > LIMITED_TRIES or self.faults > self.max_retries:
            raise fault


class Sent(NamedTuple):
    """A request under way: when it was sent, after how many answers, and whether as a probe."""

    at: float
    answers: int
    probe: bool


class Pace:
    """Requests a second (rate; None: free), from what is sent and refused in windows of time.

    at_random: the pace is free although some are refused.
    """

    def __init__(self, now: float) -> None:
        self.at_random = False
        self._answers = self._answers_then = 0
        self._reopened_at = now
        self._answer_s = 0.0
        self._noise = 0.0  # share that is refused at any pace
        self.set(None, now)

    def set(self, rate: float | None, now: float) -> None:
        """Start again with a rate; what was sent before says nothing about it."""
        self.rate = rate
        self.next = self._from = now
        self._clean = 0  # windows in a row
        self._open(now)

    def _open(self, now: float) -> None:
        self._since = now
        self._sent = self._refused = 0

    def sent(self, now: float, late: float) -> None:
        """Count a request; late: a sleep that ended after it is made up for."""
        self._sent += 1
        if self.rate:
            self.next = max(self.next, late) + 1 / self.rate

    def refused(self, sent: float) -> None:
        """Count a refusal."""
        self._refused += sent >= self._from

    def accepted(self, until: float, unknown: int = 0) -> float | None:
        """Requests a second that this window accepted; unknown: not answered, not counted."""
        n = self._before_n = self._sent - self._refused - unknown
        return n / (until - self._since) if n >= WINDOW and until > self._since else self._last

    def answered(self, seconds: float) -> None:
        self._answers += 1
        self._answer_s += (seconds - self._answer_s) / min(self._answers, 20)

    def lasting(self, now: float) -> float:
        return (self._answers - self._answers_then) / (now - self._reopened_at)

    def burst(self, now: float) -> None:
        if self.rate is None and self._before:
            self.at_random = self._settled = self._ever_clean = False
            self._trial = None
            self.set(min(self._before, self._before_n / WINDOW_S), now)

    def reopen(self, now: float) -> None:
        self.at_random = False
        lasting = self.lasting(now)
        if self.rate:
            rate = max(self.rate / 2, lasting)
        else:
            rate = self._before or (lasting if self._answers >= self._answers_then + WINDOW else None)
        if rate:
            self._answers_then, self._reopened_at = self._answers, now
        self._trial = None
        self._settled = False
        self.set(rate, now)

    def steer(self, now: float) -> None:
        """Close the window if it is long enough, and set the pace by what it says."""
        if self._sent < WINDOW or now - self._since < max(WINDOW_S, self._answer_s):
            return
        share = min(1.0, self._refused / self._sent)
        self._last = accepted = max(1, self._sent - self._refused) / (now - self._since)
        self._trial_sent += self._sent
        self._trial_refused += self._refused
        chance = 2 * math.sqrt(self._noise * (1 - self._noise) / self._sent)
        self._open(now)
        if self.rate is None and share > self._noise + MANY:
            self._trial = None
            self._settled = False
            self._ever_clean = False
            self.set(0.95 * accepted, now)
        elif self.rate is not None and share > self._noise + max(FEW, chance):
            self._cut(share, now)
        elif self.rate is not None:
            self._clean += 1
            self._ever_clean = True
            more = self.rate * (1 + GROWTH * self._clean)
            self.rate = max(self.rate, min(more, 2 * accepted))  # no further than it is used
        self.at_random = self.rate is None
        self._noise = min(self._noise, 0.95 * self._noise + 0.05 * share)

    _trial: tuple[float, float] | None = None
    _settled = _ever_clean = False
    _last = None
    _trial_sent = _trial_refused = 0

    def _cut(self, share: float, now: float) -> None:
        assert self.rate is not None
        mean = self._trial_refused / self._trial_sent
        if not self._settled or share > 0.6:
            self._settled, self._trial = True, None
        elif self._trial is None or mean < self._trial[1] / 2:
            self._trial = (self.rate, share if self._trial is None else mean)
            self._trial_sent = self._trial_refused = 0
        elif self.rate < 0.8 * self._trial[0]:
            self.set(self._trial[0] if self._ever_clean else None, now)
            self._noise, self._trial = min(mean, 0.5), None
            return
        self.set(self.rate * max(0.5, 1 - share + self._noise), now)


class Gate:
    """Lets the requests to one endpoint pass: `enter`, send, then `passed`, `refused` or `left`.

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
        self._turn = asyncio.Lock()  # one at a time stands at the gate
        self._changed = asyncio.Event()
        self._pace = Pace(_now())
        self._in_flight = self._waiting = self._answers = self._answers_then = 0
        self._owed = self._asked = 0.0  # when caps, Retry-After let one pass
        self._probe_at: float | None = None  # when the next probe goes; None: no outage
        self._row = self._tries = 0  # refusals in a row; of them one after the other
        self._row_since = self._tried_at = self._shrunk_at = 0.0
        self._reopened_at = _now()
        self._alive = self._told = False

    async def enter(self, tokens: int = 0) -> Sent:
        """Wait until a request of about so many tokens may be sent."""
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
        waiting = 0 if self._pace.at_random else self._waiting
        if self._in_flight + waiting >= self.limit:
            return math.inf
        until = max(self._pace.next if self._pace.rate else 0.0, self._owed)
        if self._probe_at is not None:
            until = max(self._owed, self._probe_at, self._asked)
        return until - _now()

    def passed(self, sent: Sent, more_tokens: int = 0) -> None:
        """It was answered; more_tokens: what it took beyond the estimate given to `enter`."""
        now = self._leave(sent)
        self._answers += 1
        self._alive = True
        self._pace.answered(now - sent.at)
        self._row = self._tries = 0
        if self._token_s:
            self._owed = max(self._owed, now) + more_tokens * self._token_s
        if now - self._row_since < 2 * OWN_WAIT_S:  # no outage, only a burst of refusals
            if self._probe_at is not None:
                self._pace.burst(now)
            self._probe_at = None
            self._pace.steer(now)
        elif self._probe_at is None:
            self._pace.steer(now)
        elif sent.probe:
            self._reopen(now)
        else:  # sent before the outage: there is room for one
            self._probe_at = min(self._probe_at, now)

    def left(self, sent: Sent) -> None:
        """It was not sent after all, or says nothing about the endpoint."""
        self._leave(sent)

    def refused(self, sent: Sent, fault: Limited | Passing) -> float:
        """It was refused. Gives the seconds after which it may come again; see `over` too."""
        now = self._leave(sent)
        asked = (fault.wait or 0.0) if isinstance(fault, Limited) else 0.0
        self._asked = max(self._asked, now + asked)
        self._alive = self._alive or isinstance(fault, Limited)
        if not self._row:
            self._row_since = now
        self._row += 1
        if sent.at >= self._tried_at:
            self._tries += 1
            self._tried_at = now
        age = now - self._row_since
        if isinstance(fault, TimedOut):
            self._shrink(sent, now, fault)
        if not sent.probe:
            self._pace.refused(sent.at)
        if self._probe_at is None and self._row >= OUTAGE:
            self._probe_at = self._row_since + OWN_WAIT_S
            self._pace._before = self._pace.accepted(self._row_since, self._in_flight)
        elif self._probe_at is None:
            self._pace.steer(now)
        elif sent.probe:
            self._probe_at = now + min(max(OWN_WAIT_S, age / 3), LONGEST_GAP_S)
        self._judge(age, asked, fault)
        if not isinstance(fault, Limited) and self._probe_at is None:
            asked = min(age, LONGEST_GAP_S)
        wait = max(OWN_WAIT_S, asked) + random.random() / 4
        self._waiting += 1
        asyncio.get_running_loop().call_later(wait, self._waited)
        return wait

    def _waited(self) -> None:
        self._waiting -= 1
        self._changed.set()

    def _judge(self, age: float, asked: float, fault: Limited | Passing) -> None:
        patience = PATIENCE_S if self._alive else FIRST_PATIENCE_S
        if asked > LONGEST_WAIT_S:
            self.over = f"the endpoint asks to wait {asked / 3600:.1f} hours ({fault})"
        elif age >= patience and self._tries >= FEWEST_TRIES:
            self.over = f"nothing but refusals for {age:.0f} s, the last one: {fault}"
        elif max(age, asked) >= LONGEST_GAP_S and not self._told:
            self._told = True
            what = f"asks for a pause of {asked:.0f} s" if asked else "answers nothing for now"
            self._say(f"the endpoint {what} ({fault}); one request at a time tries again")

    def _reopen(self, now: float) -> None:
        self._probe_at = None
        self._told = False
        self._pace.reopen(now)

    def _shrink(self, sent: Sent, now: float, fault: TimedOut) -> None:
        """Fewer in flight, where the endpoint cannot answer so many within the time."""
        if sent.probe or sent.at < self._shrunk_at or self._answers - sent.answers >= self.limit:
            return
        self._shrunk_at = now
        self.limit = max(1, self.limit // 2)
        self._say(
            f"no answer in {fault.seconds:g} s: {self.limit} in flight from here on; "
            "--timeout, --concurrency"
        )

    def _leave(self, sent: Sent) -> float:
        self._in_flight -= 1
        now = _now()
        if sent.probe and self._probe_at == math.inf:
            self._probe_at = now
        self._changed.set()
        return now


def _now() -> float:
    return asyncio.get_running_loop().time()
