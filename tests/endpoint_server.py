"""Endpoints that reject requests: how each decides, without HTTP and without a clock.

`tests/units/test_pacing.py` plays them in virtual time, `tests/simulations/endpoints.py` over HTTP.
"""

import random
from collections import deque
from collections.abc import Callable
from heapq import heapreplace
from typing import NamedTuple

from orbench.asking.inquiry import Limits


class Rejection(NamedTuple):
    """A request that is not answered."""

    status: int = 429
    retry_after: float | None = None  # seconds


ROWS = 1000
LATENCY_S = 0.2
A_SECOND = Rejection(retry_after=1.0)
OVERLOADED = Rejection(503)


class Endpoint:
    """Answers everything. `ask` when a request arrives (seconds since the start), `leave` when its
    answer goes out.
    """

    def ask(self, at: float) -> Rejection | None:
        """None for a request that will be answered."""
        return None

    def leave(self) -> None:
        """An answer that `ask` promised has gone out."""

    def takes(self, at: float) -> float:
        """How long an answer takes to a request that arrives then."""
        return LATENCY_S


class AtRandom(Endpoint):
    """Rejects a share of the requests at any rate."""

    def __init__(self, share: float, rejection: Rejection, seed: int = 0) -> None:
        self.share, self.rejection = share, rejection
        self.chance = random.Random(seed)

    def ask(self, at: float) -> Rejection | None:
        return self.rejection if self.chance.random() < self.share else None


# Seconds until a request would be answered -> what Retry-After says.
SAYS: dict[str, Callable[[float], float | None]] = {
    "true": lambda exact: exact,
    "1": lambda exact: 1.0,
    "none": lambda exact: None,
}


class Bucket(Endpoint):
    """A number of requests a second, and as many at once after a pause."""

    def __init__(self, a_second: float, says: str) -> None:
        self.a_second, self.says = a_second, SAYS[says]
        self.tokens, self.at = a_second, 0.0

    def ask(self, at: float) -> Rejection | None:
        self.tokens = min(self.a_second, self.tokens + (at - self.at) * self.a_second)
        self.at = at
        if self.tokens < 1:
            return Rejection(retry_after=self.says((1 - self.tokens) / self.a_second))
        self.tokens -= 1
        return None


class Sliding(Endpoint):
    """A number of requests within any stretch of so many seconds."""

    def __init__(self, requests: int, seconds: float, says: str) -> None:
        self.requests, self.seconds, self.says = requests, seconds, SAYS[says]
        self.answered: deque[float] = deque()

    def ask(self, at: float) -> Rejection | None:
        while self.answered and self.answered[0] <= at - self.seconds:
            self.answered.popleft()
        if len(self.answered) >= self.requests:
            return Rejection(retry_after=self.says(self.answered[0] + self.seconds - at))
        self.answered.append(at)
        return None


class Outage(Endpoint):
    """Rejects everything from one time to another."""

    def __init__(self, start: float, end: float, rejection: Rejection) -> None:
        self.start, self.end, self.rejection = start, end, rejection

    def ask(self, at: float) -> Rejection | None:
        return self.rejection if self.start <= at < self.end else None


class InFlight(Endpoint):
    """A number of requests at once."""

    def __init__(self, most: int, rejection: Rejection) -> None:
        self.most, self.rejection = most, rejection
        self.now = 0

    def ask(self, at: float) -> Rejection | None:
        if self.now >= self.most:
            return self.rejection
        self.now += 1
        return None

    def leave(self) -> None:
        self.now -= 1


class Queue(Endpoint):
    """A server of one's own: a request waits for a slot, and is dropped when the client leaves."""

    def __init__(self, slots: int, each: float, timeout: float) -> None:
        self.free = [0.0] * slots  # from when on each slot is
        self.each, self.timeout = each, timeout

    def takes(self, at: float) -> float:
        start = max(at, self.free[0])
        end = min(start + self.each, at + self.timeout)
        if start < end:
            heapreplace(self.free, end)
        return start + self.each - at


class Goals(NamedTuple):
    """At most: wall seconds, and rejections (or timeouts) a row."""

    wall: float
    rejected: float


class Scene(NamedTuple):
    """An endpoint; goals if rejections take as long as answers, and if they come at once."""

    endpoint: Callable[[], Endpoint]
    slow: Goals
    quick: Goals
    rows: int = ROWS
    limits: Limits = Limits(concurrency=64)


PATIENT = Limits(timeout=10)  # as many in flight as `Pace` chooses: the server is local

# The least possible: 3.2 s for 1,000 rows without a rejection, 19.2 s at 50 a second, 25 s in 8
# slots, 240 s at 200 a minute; 15 s for 60 rows of 1 s in 4 slots, 16 s for 1,000 in 64.
SCENES = {
    "no rejection": Scene(Endpoint, Goals(6, 0), Goals(6, 0)),
    "20 % 429 at random": Scene(
        lambda: AtRandom(0.2, A_SECOND), Goals(12, 0.3), Goals(12, 0.3), 1319
    ),
    "5 % 429 at random": Scene(
        lambda: AtRandom(0.05, A_SECOND, seed=1), Goals(10, 0.07), Goals(10, 0.07), 1319
    ),
    "20 % 503 at random": Scene(lambda: AtRandom(0.2, OVERLOADED), Goals(15, 0.3), Goals(14, 0.3)),
    "50 a second, bucket": Scene(lambda: Bucket(50, "1"), Goals(18, 0.15), Goals(18, 0.15), 750),
    "50 a second, bucket, no Retry-After": Scene(
        lambda: Bucket(50, "none"), Goals(22, 0.12), Goals(22, 0.1)
    ),
    "50 a second, sliding": Scene(lambda: Sliding(50, 1, "1"), Goals(26, 0.15), Goals(26, 0.15)),
    "50 a second, sliding, no Retry-After": Scene(
        lambda: Sliding(50, 1, "none"), Goals(24, 0.15), Goals(24, 0.13)
    ),
    "8 slots": Scene(lambda: InFlight(8, A_SECOND), Goals(37.5, 0.16), Goals(37.5, 0.15)),
    "4 slots that queue": Scene(
        lambda: Queue(4, 1, 10), Goals(19.5, 5 / 60), Goals(19.5, 5 / 60), 60, PATIENT
    ),
    "4 slots that queue, 64 in flight": Scene(
        lambda: Queue(4, 1, 10),
        Goals(19.5, 24 / 60),
        Goals(19.5, 24 / 60),
        60,
        PATIENT._replace(concurrency=64),
    ),
    "64 slots that queue": Scene(
        lambda: Queue(64, 1, 10), Goals(22, 0), Goals(22, 0), 1000, PATIENT
    ),
    "5 % 429 at random, own gateway": Scene(
        lambda: AtRandom(0.05, A_SECOND, seed=1), Goals(10, 0.07), Goals(10, 0.07), 1319, PATIENT
    ),
    "50 a second, own gateway": Scene(
        lambda: Bucket(50, "1"), Goals(18, 0.33), Goals(18, 0.33), 750, PATIENT
    ),
    "outage of 10 s": Scene(lambda: Outage(1, 11, A_SECOND), Goals(20, 0.15), Goals(17, 0.15)),
    "outage of 10 s, 503": Scene(
        lambda: Outage(1, 11, OVERLOADED), Goals(20, 0.15), Goals(20, 0.15)
    ),
    "outage of 120 s": Scene(lambda: Outage(1, 121, A_SECOND), Goals(130, 0.2), Goals(130, 0.2)),
    "outage of 120 s, 503": Scene(
        lambda: Outage(1, 121, OVERLOADED), Goals(130, 0.2), Goals(130, 0.2)
    ),
    "200 a minute": Scene(lambda: Sliding(200, 60, "true"), Goals(265, 0.25), Goals(265, 0.28)),
    "200 a minute, Retry-After 1": Scene(
        lambda: Sliding(200, 60, "1"), Goals(265, 0.33), Goals(265, 0.36)
    ),
    "200 a minute, no Retry-After": Scene(
        lambda: Sliding(200, 60, "none"), Goals(265, 0.33), Goals(265, 0.36)
    ),
}
