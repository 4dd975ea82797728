"""The gate and the retries, in virtual time: hours of a run pass in a blink, and always the same.

The runner and its gate are the real ones; the endpoint is a coroutine, the log a dictionary.
"""

import asyncio
import random
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbench import run as runner
from orbench.answers import Answer, AnswerLog, Missing
from orbench.chat import Limited, Passing, Request
from orbench.gate import (
    LIMITED_TRIES,
    LONGEST_GAP_S,
    OWN_WAIT_S,
    ROW,
    Gate,
    Sent,
    TimedOut,
    Tries,
)
from orbench.models import resolve
from orbench.run import FAILURES_IN_A_ROW, Limits, Progress, Run
from tests.conftest import MODERATE, prompts_csv, read_csv, run
from tests.endpoints import AtRandom, Bucket, Endpoint, InFlight, Outage, Refusal, Sliding
from tests.server import Body, Reply, Server, answer, error

ROWS = 1319
LATENCY_S = 0.2
EPSILON = 1e-6


class VirtualTime(selectors.DefaultSelector):
    """Sleeping costs nothing: where a loop would wait, its clock jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits and nobody will ever be woken"
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.virtual = VirtualTime()
        super().__init__(self.virtual)

    def time(self) -> float:
        return self.virtual.now


def in_virtual_time(scene: Coroutine[Any, Any, Any], seed: int = 20240531) -> Any:
    random.seed(seed)
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(scene)
    finally:
        loop.close()


def now() -> float:
    return asyncio.get_running_loop().time()


# -- whole runs --------------------------------------------------------------------------------


class Played(NamedTuple):
    """What came of a run."""

    seconds: float
    sent: int
    refused: float  # share
    most: int  # in flight
    answered: int
    failed: int
    stopped: str
    lines: list[tuple[float, str]]  # when, what was said
    tries: int  # most of one request


class Said(Progress):
    def __init__(self) -> None:
        super().__init__("", 0, quiet=True)
        self.lines: list[tuple[float, str]] = []

    def say(self, line: str, *, always: bool = False) -> None:
        self.lines.append((now(), line))


class Log(dict[bytes, Answer]):
    def append(self, key: bytes, answer: Answer) -> None:
        self[key] = answer

    def append_failure(self, key: bytes, missing: Missing) -> None: ...


Latency = Callable[[], float]


def play(
    endpoint: Endpoint,
    *,
    seed: int = 0,
    rows: int = ROWS,
    latency: Latency = lambda: LATENCY_S,
    refusal_latency: Latency | None = None,
    work: Callable[[], Coroutine[Any, Any, None]] | None = None,
    bad: int = -1,
    **limits: Any,
) -> Played:
    """Run so many requests against an endpoint, by default 64 in flight.

    work: what takes the place of the latency of answers; bad: a request that is always refused.
    """
    tries: Counter[int] = Counter()
    sent = refused = in_flight = most = 0

    class Chat:
        def __init__(self, *_: object) -> None:
            self.sent_again = 0

        async def open(self, model: object) -> None: ...
        async def close(self) -> None: ...

        async def send(self, request: Request) -> Answer:
            nonlocal sent, refused, in_flight, most
            sent += 1
            tries[request.sample] += 1
            in_flight += 1
            most = max(most, in_flight)
            try:
                refusal = RA_1 if request.sample == bad else endpoint.ask(now())
                # What is sent first is answered first, as over a network.
                later = sent * 1e-7
                if refusal is None:
                    try:
                        await (work() if work else asyncio.sleep(latency() + later))
                    finally:
                        endpoint.leave()
                    return Answer("Fold it.")
                refused += 1
                slow = (refusal_latency or latency)()
                await asyncio.sleep((slow if refusal.status else 0.001) + later)
                said = f"{refusal.status}: {refusal.message}"
                if refusal.status == 429:
                    raise Limited(said, refusal.retry_after)
                raise Passing(said)
            finally:
                in_flight -= 1

    model = resolve("gpt-x", base_url="http://127.0.0.1:1/v1", environment={})
    requests = [Request(model, [], {}, sample=number) for number in range(rows)]
    log, progress, seconds = Log(), Said(), 0.0
    one = Run()
    session_limits = Limits(**{"concurrency": 64} | limits)

    async def scene() -> None:
        nonlocal seconds
        session = runner._Session(
            cast(AnswerLog, log), one, session_limits, progress, None, FAILURES_IN_A_ROW
        )
        await session.go(iter(requests), [model])
        seconds = now()

    with mock.patch.object(runner, "Chat", Chat):
        in_virtual_time(scene(), seed)
    share = refused / max(1, sent)
    return Played(
        seconds,
        sent,
        share,
        most,
        len(log),
        len(one.failed),
        one.stopped,
        progress.lines,
        max(tries.values()),
    )


def seeded(endpoint: Endpoint, seed: int) -> Endpoint:
    if isinstance(endpoint, AtRandom):
        endpoint.chance = random.Random(seed)
    return endpoint


def about_one_second() -> float:
    return random.uniform(0.5, 1.5)


RA_1 = Refusal(retry_after=1.0)
NO_RA = Refusal()
DEAD = Refusal(0, message="connection refused")
# The table of the issue: endpoint, seconds to reach, share refused at most.
Scene = tuple[Callable[[], Endpoint], float, float]
SCENES: dict[str, Scene] = {
    "5 % at random": (lambda: AtRandom(0.05, RA_1), 8, 1),
    "20 % at random": (lambda: AtRandom(0.2, RA_1), 14, 1),
    "40 % at random": (lambda: AtRandom(0.4, RA_1), 28, 1),
    "50 a second, bucket": (lambda: Bucket(50, "1"), 30, 0.1),
    "50 a second, bucket, none": (lambda: Bucket(50, "none"), 30, 0.1),
    "50 a second, bucket, true": (lambda: Bucket(50, "true"), 30, 0.1),
    "50 a second, sliding": (lambda: Sliding(50, 1, "1"), 30, 0.1),
    "50 a second, sliding, none": (lambda: Sliding(50, 1, "none"), 30, 0.1),
    "50 a second, sliding, true": (lambda: Sliding(50, 1, "true"), 30, 0.1),
    "200 a minute, true": (lambda: Sliding(200, 60, "true"), 375, 0.2),
    "200 a minute, 1": (lambda: Sliding(200, 60, "1"), 440, 0.2),
    "200 a minute, none": (lambda: Sliding(200, 60, "none"), 450, 0.2),
    "outage of 10 s": (lambda: Outage(1, 11, RA_1), 20, 1),
    "outage of 10 s, 503": (lambda: Outage(2, 12, Refusal(503)), 20, 1),
    "outage of 10 s from the start": (lambda: Outage(0, 10, NO_RA), 20, 1),
    "outage of 120 s": (lambda: Outage(1, 121, RA_1), 135, 1),
    "outage of 120 s, 503": (lambda: Outage(2, 122, Refusal(503)), 135, 1),
    "outage of 120 s, connections": (lambda: Outage(1, 121, DEAD), 135, 1),
    "8 in flight": (lambda: InFlight(8, RA_1), 38, 1),
    "8 in flight, none": (lambda: InFlight(8, NO_RA), 38, 1),
    "50 a second and 10 % at random": (lambda: AtRandom(0.1, RA_1, Bucket(50, "1")), 36, 1),
    "20 % 503 at random": (lambda: AtRandom(0.2, Refusal(503)), 12, 1),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", SCENES)
def test_an_endpoint_is_ridden_out_in_time_and_no_row_is_lost(name: str, seed: int) -> None:
    endpoint, seconds, share = SCENES[name]
    played = play(seeded(endpoint(), seed), seed=seed)
    assert (played.answered, played.failed, played.stopped) == (ROWS, 0, "")
    assert played.seconds <= seconds
    assert played.refused <= share
    assert played.most <= 64


@pytest.mark.parametrize("quick", [True, False], ids=["quick refusals", "slow refusals"])
def test_8_in_flight_where_answers_take_about_a_second(quick: bool) -> None:
    played = play(
        InFlight(8, RA_1),
        latency=about_one_second,
        refusal_latency=(lambda: 0.05) if quick else None,
    )
    assert (played.answered, played.failed) == (ROWS, 0)
    assert played.seconds <= 240


def test_1000_in_flight_and_a_fifth_refused_at_random() -> None:
    played = play(AtRandom(0.2, RA_1), rows=20_000, concurrency=1000)
    assert (played.answered, played.failed) == (20_000, 0)
    assert played.seconds <= 35
    assert played.most == 1000


def test_an_endpoint_without_a_limit_is_used_in_full() -> None:
    played = play(Endpoint())
    assert (played.sent, played.most) == (ROWS, 64)
    assert played.seconds <= 1.01 * LATENCY_S * (ROWS // 64 + 1)


# Language models take seconds for an answer, and no time to refuse: seconds to reach here are
# about a third more than what the endpoint allows.
SLOW: dict[str, tuple[Callable[[], Endpoint], float]] = {
    "5 a second, bucket": (lambda: Bucket(5, "1"), 350),
    "5 a second, sliding": (lambda: Sliding(5, 1, "none"), 350),
    "300 a minute": (lambda: Sliding(300, 60, "none"), 350),
    "8 in flight": (lambda: InFlight(8, RA_1), 790),
    "20 % at random": (lambda: AtRandom(0.2, RA_1), 110),
    "40 % at random": (lambda: AtRandom(0.4, RA_1), 150),
    "outage of 60 s": (lambda: Outage(20, 80, Refusal(503)), 190),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_slow_model_behind_a_limit_is_used_well(name: str) -> None:
    endpoint, seconds = SLOW[name]
    played = play(
        seeded(endpoint(), 1),
        latency=lambda: random.lognormvariate(1, 0.6),
        refusal_latency=lambda: 0.1,
    )
    assert (played.answered, played.failed, played.stopped) == (ROWS, 0, "")
    assert played.seconds <= seconds


# Just above what the endpoint allows, refusals and answers come mixed: no row of refusals.
MIXED: dict[str, Scene] = {
    "200 a second": (lambda: Bucket(200, "1"), 17, 0.1),
    "100 a second": (lambda: Bucket(100, "1"), 32, 0.1),
    "40 in flight": (lambda: InFlight(40, RA_1), 20, 0.1),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_limit_a_little_below_the_free_pace_is_kept(name: str) -> None:
    endpoint, seconds, share = MIXED[name]
    played = play(endpoint(), rows=3000, latency=lambda: random.uniform(0.1, 0.3))
    assert (played.answered, played.failed) == (3000, 0)
    assert played.seconds <= seconds
    assert played.refused <= share


class Changing(Bucket):
    """So many requests a second at first, so many (0: any number) from one time to another."""

    def __init__(self, first: float, then: float, start: float, end: float) -> None:
        super().__init__(first, "1")
        self.first, self.then, self.start, self.end_s = first, then, start, end

    def ask(self, at: float) -> Refusal | None:
        now_then = self.start <= at < self.end_s
        self.a_second = self.burst = self.then if now_then else self.first
        return super().ask(at) if self.a_second else None


@pytest.mark.parametrize(
    ("endpoint", "rows", "least"),
    [
        (lambda: Changing(50, 0, 30, 60), 5900, 100),
        (lambda: Changing(50, 10, 20, 1e9), 1400, 60),
        (lambda: Changing(0, 50, 20, 1e9), 3600, 60),
    ],
    ids=["lifted for a while", "lowered", "set on the way"],
)
def test_a_limit_that_changes_is_followed(
    endpoint: Callable[[], Endpoint], rows: int, least: float
) -> None:
    played = play(endpoint(), rows=rows, concurrency=16)
    assert (played.answered, played.failed) == (rows, 0)
    assert played.seconds <= 1.1 * least
    assert played.refused <= 0.1


@pytest.mark.parametrize("a_second", [120, 500])
def test_a_server_that_is_short_of_breath_is_not_paced_down_for_refusals_at_random(
    a_second: int,
) -> None:
    """1,000 in flight, and so many dealt with a second; the last few requests are no measure."""
    free_at = 0.0

    def latency() -> float:
        nonlocal free_at
        free_at = max(free_at, now()) + random.expovariate(a_second)
        return free_at - now() + LATENCY_S

    endpoint = AtRandom(0.2, RA_1)
    played = play(endpoint, rows=6000, latency=latency, concurrency=1000)
    assert (played.answered, played.failed) == (6000, 0)
    assert played.seconds <= 1.1 * 1.25 * 6000 / a_second + 10


def test_a_bucket_that_is_filled_slowly_refuses_no_request_ten_times() -> None:
    """As `llmock --rpm 200` does, which judges a client by that."""
    played = play(Bucket(200 / 60, "true", burst=200), rows=300)
    assert played.answered == 300
    assert played.seconds <= 45  # 30 is the least
    assert played.tries <= 10


# -- what stops a run --------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", [RA_1, NO_RA], ids=["Retry-After 1", "none"])
@pytest.mark.parametrize("rows", [3, ROWS])
def test_a_429_that_never_ends_stops_the_run_after_three_minutes(
    refusal: Refusal, rows: int
) -> None:
    played = play(Outage(0, 1e9, refusal), rows=rows)
    assert "429: slow down" in played.stopped
    assert 175 <= played.seconds <= 192
    assert played.sent < 64 + ROW + 40


@pytest.mark.parametrize("rows", [3, ROWS])
def test_connections_refused_from_the_start_stop_a_run_within_half_a_minute(rows: int) -> None:
    played = play(Outage(0, 1e9, DEAD), rows=rows)
    assert played.seconds <= 32
    assert "connection refused" in played.stopped or played.failed == rows


def test_an_endpoint_that_has_answered_before_is_waited_for_longer() -> None:
    played = play(Outage(2, 1e9, DEAD))
    assert 175 <= played.seconds <= 192
    assert "connection refused" in played.stopped
    assert played.failed == 0


def test_timeouts_are_no_outage_of_seconds() -> None:
    """Six tries that take three minutes each, not one, are what an endpoint gets."""
    played = play(Endpoint(), latency=lambda: 1e6, rows=5, max_retries=20)
    assert played.seconds >= 6 * 180
    assert "no whole answer within 180 s" in played.stopped


@pytest.mark.parametrize("concurrency", [4, 16, 64])
def test_an_outage_of_a_minute_loses_no_row_with_few_in_flight(concurrency: int) -> None:
    played = play(Outage(5, 65, Refusal(503)), concurrency=concurrency, rows=400)
    assert (played.answered, played.failed) == (400, 0)
    assert played.seconds <= 100


def test_a_pause_of_minutes_is_waited_for_and_said_once_with_the_429s_own_text() -> None:
    refusal = Refusal(retry_after=600.0, message="tokens per day: 7 of 7 used")
    played = play(Outage(1, 601, refusal))
    assert (played.answered, played.failed) == (ROWS, 0)
    assert 600 <= played.seconds <= 610
    ((_, line),) = played.lines
    assert "pause of 600 s" in line and "tokens per day: 7 of 7 used" in line


def test_an_outage_is_said_once_with_the_last_refusals_text() -> None:
    played = play(Outage(1, 121, RA_1))
    ((at, line),) = played.lines
    assert 10 <= at <= 16
    assert "429: slow down" in line


def test_a_pause_of_hours_ends_the_run_at_once() -> None:
    played = play(Outage(1, 1e9, Refusal(retry_after=3 * 3600.0)))
    assert played.seconds < 2
    assert "3.0 hours" in played.stopped and "slow down" in played.stopped


def test_one_request_that_is_always_refused_fails_alone() -> None:
    played = play(Endpoint(), rows=2000, concurrency=2, bad=0)
    assert (played.answered, played.failed) == (1999, 1)
    assert played.stopped == ""
    assert played.sent == 1999 + LIMITED_TRIES + 1


def test_a_run_with_max_retries_zero_fails_each_row_at_its_first_fault() -> None:
    played = play(AtRandom(0.2, Refusal(503)), rows=100, max_retries=0)
    assert played.sent == 100
    assert played.answered + played.failed == 100
    assert played.failed > 5


# -- one refusal -------------------------------------------------------------------------------


def refuse(gate: Gate, sent: Sent, wait: float | None = None) -> float:
    return gate.refused(sent, Limited("429: slow down", wait), Tries(6))


@pytest.mark.parametrize("asked", [None, 0.0, 0.25, 7.0, 600.0])
def test_a_refused_request_waits_by_itself_as_long_as_it_is_asked_to(asked: float | None) -> None:
    async def scene() -> None:
        gate = Gate(8)
        sent = await gate.enter()
        await asyncio.sleep(3)
        wait = refuse(gate, sent, asked)
        least = max(OWN_WAIT_S, asked or 0.0)
        assert least <= wait <= least + 0.25
        start = now()
        await gate.enter()  # the others go on
        assert now() == start

    in_virtual_time(scene())


def test_without_a_retry_after_each_wait_is_longer_than_the_gap_before() -> None:
    """Also where the request had to stand at the gate on top of its own wait."""
    tries = Tries(20)
    fault = Passing("500: no")
    refused_at, waits = 0.0, []
    for extra in (0.0, 2.0, 0.0, 0.0):
        waits.append(tries.add(fault, refused_at - 0.1, refused_at))
        gap = waits[-1] + extra
        refused_at += gap + 0.1
        waits.append(gap)
    gaps = waits[1::2]
    own = waits[::2]
    assert own[0] == 0.5
    assert all(later > 1.1 * before for before, later in pairwise(gaps))
    for _ in range(20):
        wait = tries.add(fault, 0.0, 0.0)
    assert wait == LONGEST_GAP_S


def test_a_request_that_meets_429s_and_other_faults_is_tried_ten_times() -> None:
    class Both(Endpoint):
        asked = 0

        def ask(self, at: float) -> Refusal | None:
            self.asked += 1
            return (RA_1, RA_1, Refusal(503))[self.asked % 3]

    played = play(Both(), rows=1, latency=lambda: 0.1)
    assert (played.failed, played.sent) == (1, 10)


def test_waits_differ_so_that_not_all_come_back_at_once() -> None:
    async def scene() -> None:
        gate = Gate(64)
        sent = [await gate.enter() for _ in range(10)]
        assert len({refuse(gate, one, 1.0) for one in sent}) == 10

    in_virtual_time(scene())


def test_refusals_in_a_row_leave_one_probe_at_a_time_until_one_is_answered() -> None:
    async def scene() -> None:
        gate = Gate(64)
        for sent in [await gate.enter() for _ in range(ROW)]:
            refuse(gate, sent, 5.0)
        entering = [asyncio.create_task(gate.enter()) for _ in range(20)]
        await asyncio.sleep(4.9)
        assert not any(task.done() for task in entering)  # Retry-After
        await asyncio.sleep(20)
        (probe,) = [task for task in entering if task.done()]
        refuse(gate, probe.result(), 5.0)
        entering.remove(probe)
        await asyncio.sleep(4.9)
        assert not any(task.done() for task in entering)
        await asyncio.sleep(20)
        (probe,) = [task for task in entering if task.done()]
        gate.passed(probe.result())
        await asyncio.sleep(0.01)
        assert all(task.done() for task in entering)

    in_virtual_time(scene())


def test_probes_come_ever_more_rarely_up_to_a_bound() -> None:
    async def scene() -> None:
        gate = Gate(64)
        for sent in [await gate.enter() for _ in range(ROW)]:
            refuse(gate, sent)
        gaps = []
        while not gate.over:
            before = now()
            sent = await gate.enter()
            gaps.append(now() - before)
            refuse(gate, sent)
        assert all(gap >= before - EPSILON for before, gap in pairwise(gaps))
        assert gaps[0] == pytest.approx(1) and gaps[-1] == pytest.approx(LONGEST_GAP_S)

    in_virtual_time(scene())


# -- timeouts ----------------------------------------------------------------------------------


def test_timeouts_shrink_the_number_in_flight_and_say_so() -> None:
    """64 at once to a server with 8 places, where an answer takes 30 s and the last ones 240 s."""
    places = asyncio.Semaphore(8)

    async def work() -> None:
        async with places:
            await asyncio.sleep(30)

    played = play(Endpoint(), rows=200, work=work)
    assert (played.answered, played.failed) == (200, 0)
    assert [line for _, line in played.lines] == [
        "gpt-x: no answer in 180 s: 32 in flight from here on; --timeout, --concurrency"
    ]
    assert played.sent <= 200 + 64


def test_a_single_request_that_hangs_shrinks_nothing() -> None:
    hung = iter([1e6])
    played = play(Endpoint(), rows=20_000, timeout=60.0, latency=lambda: next(hung, LATENCY_S))
    assert (played.answered, played.failed) == (20_000, 0)
    assert played.lines == []
    assert played.sent == 20_001


def test_many_timeouts_of_one_volley_shrink_it_once() -> None:
    async def scene() -> None:
        gate = Gate(64)
        for sent in [await gate.enter() for _ in range(10)]:
            gate.refused(sent, TimedOut(180), Tries(6))
        assert gate.limit == 32

    in_virtual_time(scene())


# -- caps of the user --------------------------------------------------------------------------


async def entries(gate: Gate, requests: int, tokens: int = 0, more: int = 0) -> list[float]:
    """When each of many workers' requests was let through."""
    times = []

    async def one() -> None:
        sent = await gate.enter(tokens)
        times.append(sent.at)
        await asyncio.sleep(LATENCY_S)
        gate.passed(sent, more)

    await asyncio.gather(*(one() for _ in range(requests)))
    return times


def most_within(times: list[float], seconds: float) -> int:
    return max(sum(start <= at < start + seconds - EPSILON for at in times) for start in times)


@pytest.mark.parametrize("a_minute", [30.0, 600.0, 6000.0])
def test_no_more_requests_a_minute_than_the_user_allows(a_minute: float) -> None:
    async def scene() -> list[float]:
        return await entries(Gate(64, a_minute), 300)

    times = in_virtual_time(scene())
    assert most_within(times, 60) <= a_minute
    assert most_within(times, 6) <= a_minute / 10 + 1
    assert times[-1] <= 1.02 * 300 / a_minute * 60  # and no fewer


@pytest.mark.parametrize("tokens", [10, 1000])
def test_no_more_tokens_a_minute_than_the_user_allows(tokens: int) -> None:
    async def scene() -> list[float]:
        return await entries(Gate(64, None, 60_000.0), 120, tokens)

    times = in_virtual_time(scene())
    assert most_within(times, 6) * tokens <= 6000 + tokens
    assert times[-1] <= 1.02 * 120 * tokens / 1000


def test_answers_longer_than_estimated_are_made_up_for() -> None:
    async def scene() -> list[float]:
        return await entries(Gate(64, None, 60_000.0), 120, 500, more=500)

    times = in_virtual_time(scene())
    assert times[-1] >= 0.95 * 119 * 1000 / 1000
    assert times[-1] <= 1.05 * 120 * 1000 / 1000


def test_the_tighter_of_two_caps_counts() -> None:
    async def scene() -> list[float]:
        return await entries(Gate(64, 600.0, 60_000.0), 60, 1000)

    assert in_virtual_time(scene())[-1] >= 58


@pytest.mark.parametrize("refusals", [1, ROW])
def test_a_429_wipes_no_debt_of_tokens(refusals: int) -> None:
    """An answer of 100,000 tokens, at 60,000 a minute, is paid for with 100 seconds."""

    async def scene() -> None:
        gate = Gate(64, None, 60_000.0)
        sent = [await gate.enter(0) for _ in range(refusals + 1)]
        gate.passed(sent.pop(), 100_000)
        for one in sent:
            refuse(gate, one, 0.1)
        assert (await gate.enter(0)).at == pytest.approx(100, abs=0.1)

    in_virtual_time(scene())


# -- places ------------------------------------------------------------------------------------


EVENTS = ["enter", "cancel", "pass", "leave", "refuse", "time out", "wait"]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 9)), max_size=60),
)
def test_no_order_of_events_loses_a_place_or_gives_away_too_many(
    concurrency: int, events: list[tuple[str, int]]
) -> None:
    async def scene() -> None:
        gate = Gate(concurrency)
        entering: list[asyncio.Task[Sent]] = []
        for event, which in events:
            inside = [task for task in entering if task.done() and not task.cancelled()]
            if event == "enter":
                entering.append(asyncio.create_task(gate.enter()))
            elif event == "wait":
                await asyncio.sleep(which / 4)
            elif event == "cancel" and entering:
                entering[which % len(entering)].cancel()  # nothing for one that is inside
            elif inside:
                task = inside[which % len(inside)]
                entering.remove(task)
                if event == "pass":
                    gate.passed(task.result())
                elif event == "leave":
                    gate.left(task.result())
                elif event == "refuse":
                    refuse(gate, task.result(), 0.5)
                else:
                    gate.refused(task.result(), TimedOut(180), Tries(6))
            assert sum(t.done() and not t.cancelled() for t in entering) <= concurrency
        await asyncio.sleep(0)
        for task in entering:
            if not task.cancel() and not task.cancelled():
                gate.left(task.result())
        results = await asyncio.gather(*entering, return_exceptions=True)
        assert not [r for r in results if isinstance(r, Exception)]
        # Everybody is gone: once one was answered as many fit in as may, and one more has to wait.
        gate.passed(await gate.enter())
        fresh = [asyncio.create_task(gate.enter()) for _ in range(gate.limit + 1)]
        await asyncio.sleep(600)
        (out,) = [task for task in fresh if not task.done()]
        gate.left(next(task for task in fresh if task.done()).result())
        await asyncio.sleep(60)
        assert out.done()

    in_virtual_time(scene())


def test_who_gets_a_place_and_is_cancelled_at_once_passes_it_on() -> None:
    async def scene() -> None:
        gate = Gate(1)
        sent = await gate.enter()
        first, second = (asyncio.create_task(gate.enter()) for _ in range(2))
        await asyncio.sleep(1)
        gate.passed(sent)
        first.cancel()
        assert (await second).at == 1.0

    in_virtual_time(scene())


def test_a_probe_that_is_cancelled_lets_another_go() -> None:
    async def scene() -> None:
        gate = Gate(64)
        for sent in [await gate.enter() for _ in range(ROW)]:
            refuse(gate, sent)
        gate.left(await gate.enter())
        start = now()
        await gate.enter()
        assert now() == start

    in_virtual_time(scene())


def test_who_waits_takes_a_place_unless_refusals_come_at_random() -> None:
    async def scene() -> None:
        gate = Gate(4)
        sent = [await gate.enter() for _ in range(4)]
        resting = [asyncio.create_task(gate.rest(refuse(gate, one, 5.0))) for one in sent[:3]]
        gate.passed(sent[3])
        await asyncio.sleep(0)
        entering = [asyncio.create_task(gate.enter()) for _ in range(4)]
        await asyncio.sleep(1)
        assert sum(task.done() for task in entering) == 1
        resting[0].cancel()
        await asyncio.sleep(1)
        assert sum(task.done() for task in entering) == 2
        await asyncio.sleep(5)
        assert sum(task.done() for task in entering) == 4

    in_virtual_time(scene())


# -- a script ----------------------------------------------------------------------------------


def test_a_judge_that_asks_to_wait_for_hours_holds_up_no_other(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        if body["model"] == "busy":
            return error(429, "slow down", [("Retry-After", "7200")])
        return answer("It only asks. [[11. none of the above]]")

    prompts_csv(tmp_path / "p.csv", 90)
    url = serve(reply).url
    args = ["--moderator_model=ollama/busy,vllm/free", "--min_votes=1", "--input_file_path=p.csv"]
    args += ["--concurrency=90"]
    env = {"OLLAMA_BASE_URL": url, "VLLM_BASE_URL": url}
    done = run(MODERATE, *args, cwd=tmp_path, env=env, timeout=50)
    assert done.returncode == 0, done.stderr
    assert "ollama/busy is left out" in done.stderr
    assert len(read_csv(tmp_path / done.stdout.strip())) == 90
