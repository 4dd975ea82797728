"""Endpoints that refuse: how each decides, without a word about HTTP or clocks.

`tests/test_gate.py` plays them in virtual time, `tests/benchmark/endpoints.py` over HTTP.
"""

import random
from collections import deque
from collections.abc import Callable
from typing import NamedTuple


class Refusal(NamedTuple):
    """A request that is not answered. status 0: the connection is refused."""

    status: int = 429
    retry_after: float | None = None  # seconds
    message: str = "slow down"
    code: str = ""


class Endpoint:
    """Answers everything. `ask` when a request arrives (seconds since the first one), `leave`
    when its answer goes out."""

    def ask(self, at: float) -> Refusal | None:
        """None for a request that will be answered."""
        return None

    def leave(self) -> None:
        """An answer that `ask` promised has gone out."""


class AtRandom(Endpoint):
    """Refuses a share of the requests, whatever their pace; on top of another endpoint's refusals
    if one is given."""

    def __init__(self, share: float, refusal: Refusal, then: Endpoint | None = None) -> None:
        self.share, self.refusal, self.then = share, refusal, then or Endpoint()
        self.chance = random.Random(20240531)

    def ask(self, at: float) -> Refusal | None:
        return self.refusal if self.chance.random() < self.share else self.then.ask(at)


# Seconds until a request would be answered -> what Retry-After says.
SAYS: dict[str, Callable[[float], float | None]] = {
    "true": lambda exact: exact,
    "1": lambda exact: 1.0,
    "none": lambda exact: None,
}


class Bucket(Endpoint):
    """So many requests a second, and so many at once after a pause (as many if not given)."""

    def __init__(self, a_second: float, says: str, burst: float = 0) -> None:
        self.a_second, self.says, self.burst = a_second, SAYS[says], burst or a_second
        self.tokens, self.at = self.burst, 0.0

    def ask(self, at: float) -> Refusal | None:
        self.tokens = min(self.burst, self.tokens + (at - self.at) * self.a_second)
        self.at = at
        if self.tokens < 1:
            return Refusal(retry_after=self.says((1 - self.tokens) / self.a_second))
        self.tokens -= 1
        return None


class Sliding(Endpoint):
    """So many requests within any stretch of so many seconds."""

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
    """So many requests at once."""

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
