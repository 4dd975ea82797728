"""One back-off for all requests to an endpoint: who may send now, and how many at once.

A row that backs off alone only makes room for the others to run into the same limit. So a 429 holds
back everyone: the gate pauses as long as the endpoint asked, lets fewer requests be in flight, and
paces them at the rate that the endpoint was seen to accept; then it feels its way up again.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable

START_IN_FLIGHT = 128  # more than this is grown into, a doubling per round trip
EASE = 0.95  # of the accepted rate, after a 429: just below the limit
FLOOR = 0.5  # of the best rate seen: 429s that come at random must not strangle a run
FORGET = 0.7  # of that best rate stays after a 429 when many requests are refused
MANY = 0.45  # share of refused requests, of late, that is many
LATE = 0.05  # weight of the last request in that share
RETURN_S = 12.0  # seconds in which the pace returns from EASE to where the last 429 came
SEARCH = 0.3  # of the accepted rate, a second: growth after the first 429
SPEED_UP = 1.5  # beyond that, each such stretch of a second multiplies the growth
SHORTEST_PAUSE_S = 0.1
PATIENT_PAUSES = 5  # in a row, of the length the endpoint asks for; then it is not believed, and
LONGEST_OWN_PAUSE_S = 15.0  # the shortest pause doubles up to this: an outage takes minutes
LONGEST_PAUSE_S = 60.0  # of the back-off's own choosing; an endpoint may ask for more
WINDOW_S = 1.0  # over which the accepted rate is measured


class Gate:
    """Lets requests of one endpoint pass. Call `enter`, send, then one of `passed`, `failed`,
    `limited`.

    limit: requests that may be in flight now; rate: requests a second, None until a 429 taught one;
    pauses: 429s in a row that no success interrupted, pauses of the whole run.
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.concurrency = concurrency
        self.limit = float(min(concurrency, START_IN_FLIGHT))
        self.rate: float | None = None
        self.pauses = 0
        self._cap = requests_per_minute / 60 if requests_per_minute else None
        self._tokens_a_second = tokens_per_minute / 60 if tokens_per_minute else None
        self._clock = clock
        self._in_flight = 0
        self._taken = False  # somebody stands at the gate
        self._again: deque[asyncio.Future[None]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._place: asyncio.Future[None] | None = None
        self._resume_at = 0.0
        self._next_slot = 0.0
        self._cut_at = 0.0  # requests sent before the last cut say nothing new
        self._ceiling = 0.0  # the rate at which the last 429 came
        self._best = 0.0
        self._refused = 0.0  # share of requests answered 429 of late
        self._accepted: deque[float] = deque()  # when, within the last window
        self._grown_at = 0.0
        self._growth = 0.0

    async def enter(self, tokens: int = 0, *, again: bool = False) -> float:
        """Wait until a request of about so many tokens may be sent; who tries again goes first.

        Gives the time at which it was let through. One at a time stands at the gate, so that each
        is let through at the pace and the limit as they are by then.
        """
        if self._taken:
            turn = asyncio.get_running_loop().create_future()
            queue = self._again if again else self._waiting
            queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._next()
                elif turn in queue:
                    queue.remove(turn)
                raise
        self._taken = True
        try:
            while self._in_flight >= int(self.limit):
                self._place = asyncio.get_running_loop().create_future()
                await self._place
            now = await self._slot(tokens)
            self._in_flight += 1
            return now
        finally:
            self._next()

    def _next(self) -> None:
        """Let the next one stand at the gate."""
        while queue := self._again or self._waiting:
            turn = queue.popleft()
            if not turn.done():  # else its task was cancelled and has not noticed yet
                turn.set_result(None)
                return
        self._taken = False

    async def _slot(self, tokens: int) -> float:
        while True:
            now = self._clock()
            until = max(self._resume_at, self._next_slot)
            if until <= now:
                break
            await asyncio.sleep(until - now)
        spacing = self._spacing(now, tokens)
        if spacing:  # a sleep that ended late is made up for
            self._next_slot = max(self._next_slot, now - 0.05) + spacing
        return now

    def _spacing(self, now: float, tokens: int) -> float:
        rates = [rate for rate in (self._paced(now), self._cap) if rate]
        spacing = 1 / min(rates) if rates else 0.0
        if self._tokens_a_second:
            spacing = max(spacing, tokens / self._tokens_a_second)
        return spacing

    def _paced(self, now: float) -> float | None:
        """The pace now: back to the ceiling within RETURN_S, then ever faster beyond it."""
        if self.rate is None:
            return None
        elapsed = max(0.0, now - self._grown_at)
        if elapsed >= 0.1:
            self._grown_at = now
            self._growth = max(self._growth, self._ceiling * (1 - EASE) / RETURN_S)
            if self.rate > self._ceiling:
                self._growth *= SPEED_UP**elapsed
            self.rate += self._growth * elapsed
        return self.rate

    def passed(self, more_tokens: int = 0) -> None:
        """The request was answered; more_tokens: what it took beyond the estimate given to
        `enter`.
        """
        now = self._clock()
        if self._tokens_a_second:
            self._next_slot = max(self._next_slot, now) + more_tokens / self._tokens_a_second
        self.pauses = 0
        if self.limit < self.concurrency:
            self.limit = min(self.concurrency, self.limit + self._step())
        self._accepted.append(now)
        while self._accepted and self._accepted[0] < now - WINDOW_S:
            self._accepted.popleft()
        self._refused -= LATE * self._refused
        self._best = max(self._best, len(self._accepted) / WINDOW_S)
        self._leave()

    def _step(self) -> float:
        # Before any 429: one more for each answer, a doubling per round trip. After: some per
        # round.
        return 1.0 if self.rate is None else min(1.0, 4.0 / self.limit)

    def failed(self) -> None:
        """The request failed in a way that says nothing about the endpoint's limits."""
        self._leave()

    def limited(self, sent: float, wait: float | None) -> None:
        """The request, sent at that time, was refused as one too many; wait: seconds asked for."""
        now = self._clock()
        self._refused += LATE * (1 - self._refused)
        if sent >= self._cut_at:
            self._cut(now)
        if wait is not None:
            doublings = min(max(0, self.pauses - PATIENT_PAUSES), 10)
            own = min(LONGEST_OWN_PAUSE_S, SHORTEST_PAUSE_S * 2.0**doublings)
            until = now + max(wait, own)
        else:
            wait = min(LONGEST_PAUSE_S, 0.5 * 2.0 ** min(self.pauses - 1, 10))
            wait *= 0.75 + random.random() / 2
            until = self._cut_at + wait
        self._resume_at = max(self._resume_at, until)
        self._next_slot = self._resume_at  # nothing to make up for after a pause
        self._leave()

    def _cut(self, now: float) -> None:
        recent = sum(1 for then in self._accepted if then >= now - WINDOW_S) / WINDOW_S
        if self._refused > MANY:  # a burst that an endpoint allows once is no rate
            self._best *= FORGET
        seen = max(recent, self._best * FLOOR, 1.0 / WINDOW_S)
        # The first 429 of a burst says little about the rate; grow fast until a second one does.
        self._growth = SEARCH * seen if self.rate is None else 0.0
        self._ceiling = seen
        self.rate = EASE * seen
        self._grown_at = now
        self.limit = max(1.0, self.limit / 2)
        self._cut_at = now
        self.pauses += 1

    def _leave(self) -> None:
        self._in_flight -= 1
        if self._place is not None and not self._place.done() and self._in_flight < int(self.limit):
            self._place.set_result(None)
