"""Endpoints that reject requests: how each decides, without HTTP and without a clock.

`tests/units/test_pacing.py` plays them in virtual time, `tests/simulations/endpoints.py` over HTTP.
"""

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class Rejection(NamedTuple):
    """A request that is not answered."""

    status: int = 429
    retry_after: float | None = None  # seconds


class Endpoint:
    """Answers everything. `ask` when a request arrives (seconds since the start), `leave` when its
    answer goes out.
    """

    def ask(self, at: float) -> Rejection | None:
        """None for a request that will be answered."""
        return None

    def leave(self) -> None:
        """An answer that `ask` promised has gone out."""


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


ROWS = 1000
LATENCY_S = 0.2
A_SECOND = Rejection(retry_after=1.0)
OVERLOADED = Rejection(503)


class Scene(NamedTuple):
    """An endpoint and the goals: wall seconds, rejections a prompt."""

    endpoint: Callable[[], Endpoint]
    wall: float
    rejected: float = 1.0


# The least possible: 3.2 s without a rejection, 19.2 s at 50 a second, 25 s in 8 slots, 240 s at
# 200 a minute.
SCENES = {
    "no rejection": Scene(Endpoint, 5),
    "20 % 429 at random": Scene(lambda: AtRandom(0.2, A_SECOND), 14),
    "20 % 503 at random": Scene(lambda: AtRandom(0.2, OVERLOADED), 16),
    "50 a second, bucket": Scene(lambda: Bucket(50, "1"), 1.4 * 19.2, 0.15),
    "50 a second, bucket, no Retry-After": Scene(lambda: Bucket(50, "none"), 1.4 * 19.2, 0.15),
    "50 a second, sliding": Scene(lambda: Sliding(50, 1, "1"), 1.4 * 19.2, 0.15),
    "50 a second, sliding, no Retry-After": Scene(lambda: Sliding(50, 1, "none"), 1.4 * 19.2, 0.15),
    "8 slots": Scene(lambda: InFlight(8, A_SECOND), 1.5 * 25),
    "outage of 10 s": Scene(lambda: Outage(1, 11, A_SECOND), 25),
    "outage of 10 s, 503": Scene(lambda: Outage(1, 11, OVERLOADED), 25),
    "outage of 120 s": Scene(lambda: Outage(1, 121, A_SECOND), 140),
    "outage of 120 s, 503": Scene(lambda: Outage(1, 121, OVERLOADED), 140),
    "200 a minute": Scene(lambda: Sliding(200, 60, "true"), 1.5 * 240),
    "200 a minute, Retry-After 1": Scene(lambda: Sliding(200, 60, "1"), 1.5 * 240),
    "200 a minute, no Retry-After": Scene(lambda: Sliding(200, 60, "none"), 1.5 * 240),
}
