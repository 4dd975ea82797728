"""Endpoints that refuse: how each decides, without HTTP and without a clock.

`tests/test_pacing.py` plays them in virtual time, `tests/benchmark/endpoints.py` over HTTP.
"""

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class Refusal(NamedTuple):
    """A request that is not answered."""

    status: int = 429
    retry_after: float | None = None  # seconds


class Endpoint:
    """Answers everything. `ask` when a request arrives (seconds since the start), `leave` when its
    answer goes out.
    """

    def ask(self, at: float) -> Refusal | None:
        """None for a request that will be answered."""
        return None

    def leave(self) -> None:
        """An answer that `ask` promised has gone out."""


class AtRandom(Endpoint):
    """Refuses a share of the requests at any rate, beside another endpoint's refusals."""

    def __init__(
        self, share: float, refusal: Refusal, then: Endpoint | None = None, seed: int = 0
    ) -> None:
        self.share, self.refusal, self.then = share, refusal, then or Endpoint()
        self.chance = random.Random(seed)

    def ask(self, at: float) -> Refusal | None:
        return self.refusal if self.chance.random() < self.share else self.then.ask(at)


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

    def ask(self, at: float) -> Refusal | None:
        self.tokens = min(self.a_second, self.tokens + (at - self.at) * self.a_second)
        self.at = at
        if self.tokens < 1:
            return Refusal(retry_after=self.says((1 - self.tokens) / self.a_second))
        self.tokens -= 1
        return None


class Sliding(Endpoint):
    """A number of requests within any stretch of so many seconds."""

    def __init__(self, requests: int, seconds: float, says: str) -> None:
        self.requests, self.seconds, self.says = requests, seconds, SAYS[says]
        self.answered: deque[float] = deque()

    def ask(self, at: float) -> Refusal | None:
        while self.answered and self.answered[0] <= at - self.seconds:
            self.answered.popleft()
        if len(self.answered) >= self.requests:
            return Refusal(retry_after=self.says(self.answered[0] + self.seconds - at))
        self.answered.append(at)
        return None


class Outage(Endpoint):
    """Refuses everything from one time to another."""

    def __init__(self, start: float, end: float, refusal: Refusal) -> None:
        self.start, self.end, self.refusal = start, end, refusal

    def ask(self, at: float) -> Refusal | None:
        return self.refusal if self.start <= at < self.end else None


class InFlight(Endpoint):
    """A number of requests at once."""

    def __init__(self, most: int, refusal: Refusal) -> None:
        self.most, self.refusal = most, refusal
        self.now = 0

    def ask(self, at: float) -> Refusal | None:
        if self.now >= self.most:
            return self.refusal
        self.now += 1
        return None

    def leave(self) -> None:
        self.now -= 1
