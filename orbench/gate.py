"""When a request to an endpoint may be sent, and what becomes of one that was refused.

A refusal is a 429 or any other fault that can pass: the same is done about both.

- A refused request waits by itself; the others go on.
- The pace of all is free until more than MANY of a window are refused. From then on it is what the
  endpoint accepted: it grows while no more than FEW are refused, and is cut again when more are.
- Where half the pace does not halve the refused share, refusals do not come from the pace: it is
  free again, and that share counts for nothing from then on.
- After ROW refusals and no answer one request at a time goes out, a probe. The first answer opens
  the gate again, at REOPEN of the pace before.
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
MANY, FEW = 0.25, 0.05  # shares refused
GROWTH = 0.025  # of the pace after a window with few, twice that after a second in a row, ...
REOPEN = 0.6

# An endpoint that does nothing but refuse.
ROW = 12
LONGEST_GAP_S = 8.0  # between probes, where Retry-After does not ask for more
LONG_S = 10.0  # a pause that is worth a line
PATIENCE_S = 175.0  # until the endpoint is given up
FIRST_PATIENCE_S = 25.0  # the same for one that never gave a sign of life: an answer, a 429
TIMEOUTS = 8  # one after another: the least patience where refusals are timeouts
LONGEST_WAIT_S = 3600.0  # that an endpoint may ask for

# A request that is refused.
OWN_WAIT_S = 1.0  # after a 429, at least; half of it after another fault
BACK_OFF = 1.4  # its next wait, where no Retry-After says how long
LONGEST_OWN_WAIT_S = 30.0
LIMITED_TRIES = 40  # 429s that it may meet while others pass
MOST_TRIES = 10  # if it meets other faults too


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
        self._at, self._longest = math.inf, 0.0  # of the last one; seconds between two

    def add(self, fault: Limited | Passing, sent: float, now: float) -> float:
        """Count a refusal. Gives the seconds to wait where no Retry-After says how long: ever more,
        after faults also than it ever had to wait, pauses of the whole run included.
        """
        self._longest = max(self._longest, sent - self._at)
        wait = OWN_WAIT_S * BACK_OFF ** (self.limited + self.faults)
        self._at = now
        if isinstance(fault, Limited):
            self.limited += 1
            return min(wait, LONGEST_GAP_S)
        self.faults += 1
        return min(max(min(wait / 2, LONGEST_GAP_S), 1.2 * self._longest), LONGEST_OWN_WAIT_S)

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
    """Requests a second, steered by the share that is refused. rate: None where it is free; next:
    when the next request may go.
    """

    def __init__(self, now: float) -> None:
        self._start = self.next = now
        self._noise = 0.0  # share refused at any pace
        self._accepted: float | None = None  # a second, in the last window
        self._answers, self.answer_s = 0, 0.0  # seconds that an answer takes, a running mean
        self._before = self._share = 0.0  # pace and share refused when cutting began
        self._sent_since = self._refused_since = 0  # and what was counted since then
        self._set(None, now)

    @property
    def proven(self) -> bool:
        """Whether it is free and a whole window was no reason to cut it."""
        return self.rate is None and self._accepted is not None

    @property
    def at_random(self) -> bool:
        """Whether many are refused at any pace."""
        return self._noise > FEW

    def sent(self, now: float) -> None:
        """Count a request."""
        self._sent += 1
        if self.rate:
            self.next = slot(self.next, now) + 1 / self.rate

    def ended(self, sent: float, now: float, *, refused: bool) -> None:
        """Count the end of a request that was sent then."""
        if not refused:
            self._answers += 1
            self.answer_s += (now - sent - self.answer_s) / min(self._answers, WINDOW)
        if sent >= self._set_at:  # what was sent before says nothing about this pace
            self._ended += 1
            self._refused += refused

    def steer(self, now: float) -> None:
        """Close a window that is long enough, and set the pace by what it says."""
        count, seconds = max(self._sent, self._ended), now - self._since
        least = max(WINDOW_S, self.answer_s)
        if count < WINDOW or seconds < least:
            return
        if seconds > 3 * max(least, WINDOW / self.rate if self.rate else 0.0):
            self._open(now)  # few ask, as at the end of a run: that says nothing
            return
        share = self._refused / count
        accepted = self._accepted = max(1, count - self._refused) / seconds
        self._sent_since += count
        self._refused_since += self._refused
        mean = self._refused_since / self._sent_since
        # Above 0.6 the pace is so much too high that a cut cannot show in the share.
        if mean <= max(FEW, self._share / 2) or mean > 0.6:
            self._before = 0.0
        more = share - self._noise
        self._noise = min(self._noise, 0.9 * self._noise + 0.1 * share)
        if self.rate is None and more > MANY:
            self._cut(accepted, share, mean, count / seconds, now)
        elif self.rate and more > FEW:
            self._cut(self.rate * max(0.5, 1 - more), share, mean, count / seconds, now)
        elif self.rate:
            self._clean += 1
            self.rate *= 1 + GROWTH * self._clean
            if self.rate > 2 * accepted:  # it holds nobody back
                self._set(None, now)
        self._open(now)

    def _cut(self, rate: float, share: float, mean: float, before: float, now: float) -> None:
        if not self._before:
            self._before, self._share = before, share
            self._sent_since = self._refused_since = 0
        elif self.rate and self.rate < self._before / 2:
            self._before, self._noise = 0.0, mean
            self._set(None, now)
            return
        self._set(rate, now)

    def resume(self, stopped: float, now: float) -> None:
        """Open again after an outage, not below what was answered a second since the start."""
        answered = self._ended - self._refused
        if answered >= WINDOW:
            lately = answered / max(WINDOW_S, self.answer_s, stopped - self._since)
            self._accepted = max(self._accepted or 0.0, lately)
        pace, least = self.rate or self._accepted, max(WINDOW_S, now - self._start)
        if pace and (self.rate or now - stopped > 2 * WINDOW_S):  # else it was a mere burst
            pace = max(REOPEN * pace, self._answers / least)
        self._before = 0.0
        self._set(pace, now)

    def _set(self, rate: float | None, now: float) -> None:
        self.rate = rate
        self.next = self._set_at = now
        self._clean = 0  # windows in a row
        self._open(now)

    def _open(self, now: float) -> None:
        self._since = now
        self._sent = self._ended = self._refused = 0


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
        self._turn = asyncio.Lock()  # one at a time stands at the gate
        self._changed = asyncio.Event()
        self._pace = Pace(_now())
        self._in_flight = self._waiting = self._answers = 0
        self._owed = self._asked = 0.0  # when the caps per minute, and Retry-After, let one pass
        # Refusals in a row: how many, since when, and when the first of them was sent.
        self._row, self._row_since, self._row_sent = 0, 0.0, 0.0
        self._probe_at = 0.0  # infinity: one is under way
        self._shrunk_at = -1.0
        self._alive = self._told = False

    async def enter(self, tokens: int = 0) -> Sent:
        """Wait until a request of about so many tokens may be sent."""
        async with self._turn:
            while (wait := self._wait(now := _now())) > 0:
                self._changed.clear()
                try:
                    async with asyncio.timeout(wait if wait < math.inf else None):
                        await self._changed.wait()
                except TimeoutError:
                    pass
            self._owed = slot(self._owed, now) + max(self._request_s, tokens * self._token_s)
            sent = Sent(now, self._answers, probe=self._outage(now))
            if sent.probe:
                self._probe_at = math.inf
            else:
                self._pace.sent(now)
            self._in_flight += 1
            return sent

    def _wait(self, now: float) -> float:
        """Seconds until the next request may go; infinity: until something changes."""
        resting = 0 if self._pace.proven else self._waiting  # which keep their places, or not
        if self._in_flight + resting >= self.limit:
            return math.inf
        if self._outage(now):
            return max(self._owed, self._probe_at, self._asked) - now
        return max(self._owed, self._pace.next) - now

    def _outage(self, now: float) -> bool:
        return self._row >= ROW and now - self._row_since >= 1.5 * self._pace.answer_s

    def passed(self, sent: Sent, more_tokens: int = 0) -> None:
        """It was answered; more_tokens: what it took beyond the estimate given to `enter`."""
        now = self._leave(sent)
        self._answers += 1
        self._alive = True
        if self._token_s:
            self._owed = max(self._owed, now) + more_tokens * self._token_s
        self._pace.ended(sent.at, now, refused=False)
        if self._row < ROW:
            self._row = 0
            self._pace.steer(now)
        elif sent.at >= (self._row_sent if self._pace.at_random else self._row_since):
            # Else it tells how things were before.
            if self._outage(now):
                self._pace.resume(self._row_since, now)
            self._row, self._told = 0, False

    def left(self, sent: Sent) -> None:
        """It was not sent after all, or what came of it says nothing about the endpoint."""
        self._leave(sent)

    def refused(self, sent: Sent, fault: Limited | Passing, tries: Tries) -> float:
        """It was refused. Gives the seconds for which it rests; `over` may be set now."""
        now = self._leave(sent)
        asked = (fault.wait or 0.0) if isinstance(fault, Limited) else 0.0
        self._asked = max(self._asked, now + asked)
        self._alive = self._alive or isinstance(fault, Limited)
        own_wait = tries.add(fault, sent.at, now)
        if isinstance(fault, TimedOut):
            self._shrink(sent, now, fault)
        if not isinstance(fault, TimedOut) or self._answers == sent.answers:
            self._count(sent, now)
        if self._row >= ROW:  # soon after the end of an outage all shall ask again
            own_wait = min(own_wait, LONGEST_GAP_S)
        age = now - self._row_since if self._row else 0.0
        self._judge(age, asked, fault)
        # While nobody is answered, each asks more rarely.
        wait = max(OWN_WAIT_S, asked) if asked else max(own_wait, min(age, LONGEST_GAP_S))
        return wait + random.random() / 10

    def _count(self, sent: Sent, now: float) -> None:
        if not self._row:
            self._row_since, self._row_sent = now, sent.at
        self._row += 1
        if sent.probe or self._row == ROW:
            gap = max(OWN_WAIT_S, (now - self._row_since) / 3)
            self._probe_at = now + min(gap, LONGEST_GAP_S)
        if not sent.probe:
            self._pace.ended(sent.at, now, refused=True)
        if self._row < ROW:
            self._pace.steer(now)

    async def rest(self, seconds: float) -> None:
        """Wait as `refused` told a request to, before it enters again."""
        self._waiting += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._waiting -= 1
            self._changed.set()

    def _judge(self, age: float, asked: float, fault: Limited | Passing) -> None:
        """Give the endpoint up, or say that there is a long pause."""
        patience = PATIENCE_S if self._alive else FIRST_PATIENCE_S
        if isinstance(fault, TimedOut):
            patience = max(patience, TIMEOUTS * fault.seconds)
        if asked > LONGEST_WAIT_S:
            self.over = f"the endpoint asks to wait {asked / 3600:.1f} hours ({fault})"
        elif age >= patience:
            self.over = f"no answer for {age:.0f} s, the last refusal or fault: {fault}"
        elif max(age, asked) >= LONG_S and not self._told:
            self._told = True
            if asked >= LONG_S:
                self._say(f"the endpoint asks for a pause of {asked:.0f} s ({fault})")
            else:
                self._say(
                    f"no answer for {age:.0f} s, the last refusal or fault: {fault}; from here on "
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


def slot(due: float, now: float) -> float:
    """When what was due may count as sent: a sleep that ended a little late is made up for."""
    return max(due, now - 0.05)


def _now() -> float:
    return asyncio.get_running_loop().time()
