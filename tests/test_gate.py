"""The shared back-off, in virtual time: hours of a run pass in a blink, and always the same."""

import asyncio
import random
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbench.gate import SHORTEST_PAUSE_S, START_IN_FLIGHT, Gate
from orbench.run import FAILURES_IN_A_ROW
from tests.conftest import MODERATE, prompts_csv, read_csv, run
from tests.server import Body, Reply, Server, answer, error

LATENCY_S = 0.05
REQUESTS = 2000
A_SECOND = 50  # requests that the endpoints here allow
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


def in_virtual_time(scene: Coroutine[Any, Any, Any]) -> Any:
    random.seed(20240531)
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(scene)
    finally:
        loop.close()


def now() -> float:
    return asyncio.get_running_loop().time()


def gate_for(
    concurrency: int, requests_a_minute: float | None = None, tokens_a_minute: float | None = None
) -> Gate:
    return Gate(concurrency, requests_a_minute, tokens_a_minute, asyncio.get_running_loop().time)


# -- endpoints with a limit --------------------------------------------------------------------


class Endpoint(Protocol):
    """Gives None for a request that it answers, else the seconds until it would answer one."""

    def ask(self, at: float) -> float | None: ...


class TokenBucket:
    def __init__(self, burst: int = A_SECOND) -> None:
        self.burst, self.tokens, self.at = burst, float(burst), 0.0

    def ask(self, at: float) -> float | None:
        self.tokens = min(self.burst, self.tokens + (at - self.at) * A_SECOND)
        self.at = at
        if self.tokens < 1 - EPSILON:
            return (1 - self.tokens) / A_SECOND
        self.tokens -= 1
        return None


class FixedWindow:
    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds, self.window, self.count = seconds, -1, 0

    def ask(self, at: float) -> float | None:
        window = int(at // self.seconds)
        if window != self.window:
            self.window, self.count = window, 0
        if self.count >= A_SECOND * self.seconds:
            return (window + 1) * self.seconds - at
        self.count += 1
        return None


class SlidingWindow:
    def __init__(self) -> None:
        self.answered: deque[float] = deque()

    def ask(self, at: float) -> float | None:
        while self.answered and self.answered[0] <= at - 1:
            self.answered.popleft()
        if len(self.answered) >= A_SECOND:
            return self.answered[0] + 1 - at
        self.answered.append(at)
        return None


# What the endpoint puts into Retry-After.
RETRY_AFTER: dict[str, Callable[[float], float | None]] = {
    "one second": lambda exact: 1.0,
    "nothing": lambda exact: None,
    "the exact time": lambda exact: exact,
}


class Played(Protocol):
    done: int
    sent: int
    limited: int
    most: int
    seconds: float
    gate: Gate


async def play(
    endpoint: Endpoint,
    asked: Callable[[float], float | None],
    requests: int = REQUESTS,
    concurrency: int = 64,
) -> Played:
    """A run of so many requests through one gate, each tried until it is answered."""
    gate = gate_for(concurrency)
    left = iter(range(requests))
    in_flight = 0

    class Count:
        done = sent = limited = most = 0
        seconds = 0.0

    async def worker() -> None:
        nonlocal in_flight
        for _ in left:
            answered = again = False
            while not answered:
                sent = await gate.enter(again=again)
                in_flight += 1
                Count.sent += 1
                Count.most = max(Count.most, in_flight)
                await asyncio.sleep(LATENCY_S * random.uniform(0.4, 0.6))
                wait = endpoint.ask(now())
                await asyncio.sleep(LATENCY_S / 2)
                in_flight -= 1
                if wait is None:
                    gate.passed()
                    Count.done += 1
                    answered = True
                else:
                    Count.limited += 1
                    gate.limited(sent, asked(wait))
                    again = True

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    Count.seconds = now()
    Count.gate = gate  # type: ignore[attr-defined]
    return Count  # type: ignore[return-value]


@pytest.mark.parametrize("asked", RETRY_AFTER.values(), ids=RETRY_AFTER)
@pytest.mark.parametrize("endpoint", [TokenBucket, FixedWindow, SlidingWindow])
def test_a_run_against_a_limit_is_nearly_as_fast_as_the_limit_allows(
    endpoint: Callable[[], Endpoint], asked: Callable[[float], float | None]
) -> None:
    played = in_virtual_time(play(endpoint(), asked))
    assert played.done == REQUESTS
    assert played.sent == played.done + played.limited
    assert played.seconds <= 1.25 * REQUESTS / A_SECOND
    assert played.limited <= 0.1 * played.sent
    assert played.most <= 64


@pytest.mark.parametrize("concurrency", [1, 8, 256])
def test_the_limit_is_kept_with_few_and_with_many_at_once(concurrency: int) -> None:
    played = in_virtual_time(play(TokenBucket(), lambda exact: 1.0, concurrency=concurrency))
    assert played.done == REQUESTS
    slowest = max(REQUESTS / A_SECOND, REQUESTS * LATENCY_S / concurrency)
    assert played.seconds <= 1.25 * slowest
    assert played.limited <= 0.1 * played.sent


def test_an_endpoint_without_a_limit_is_used_in_full() -> None:
    class Open:
        def ask(self, at: float) -> float | None:
            return None

    played = in_virtual_time(play(Open(), lambda exact: None))
    assert (played.done, played.sent, played.most) == (REQUESTS, REQUESTS, 64)
    assert played.seconds <= 1.1 * REQUESTS / 64 * LATENCY_S


def test_refusals_that_come_at_random_do_not_strangle_a_run() -> None:
    class Moody:
        def ask(self, at: float) -> float | None:
            return 0.0 if random.random() < 0.1 else None

    played = in_virtual_time(play(Moody(), lambda exact: 0.1, requests=1000))
    assert played.done == 1000
    assert played.seconds < 300  # one at a time with a pause after each tenth would take 60


# -- one 429 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", [0.0, 0.25, 7.0, 600.0])
def test_a_429_pauses_everybody_as_long_as_the_endpoint_asks(wait: float) -> None:
    async def scene() -> None:
        gate = gate_for(8)
        for _ in range(4):
            await gate.enter()
        waiting = [asyncio.create_task(gate.enter()) for _ in range(8)]
        await asyncio.sleep(1)
        gate.passed()
        gate.passed()
        sent = now()
        gate.limited(0.0, wait)
        resume_at = now() + max(wait, SHORTEST_PAUSE_S)
        gate.passed()
        late = asyncio.create_task(gate.enter())
        while sum(task.done() for task in waiting) < 8:
            await asyncio.sleep(0.01)
            if now() > sent and sum(task.done() for task in waiting) > 4:
                gate.passed()
        entered = sorted(task.result() for task in waiting)
        assert entered[:4] == [0.0] * 4
        assert all(at >= resume_at - EPSILON for at in entered[4:])
        assert entered[4] <= resume_at + 0.1
        gate.passed()
        assert await late >= resume_at - EPSILON

    in_virtual_time(scene())


def test_a_longer_pause_is_not_cut_short_by_a_shorter_one() -> None:
    async def scene() -> None:
        gate = gate_for(8)
        sent = [await gate.enter() for _ in range(3)]
        gate.limited(sent[0], 30.0)
        gate.limited(sent[1], 1.0)
        gate.limited(sent[2], None)
        assert await gate.enter() >= 30.0 - EPSILON

    in_virtual_time(scene())


def test_without_a_time_to_wait_the_pauses_double_until_an_answer_comes() -> None:
    async def scene() -> None:
        gate = gate_for(8)
        pauses = []
        for number in range(1, 7):
            sent = await gate.enter()
            gate.limited(sent, None)
            assert gate.pauses == number
            before = now()
            after = await gate.enter()
            gate.failed()
            pauses.append(after - before)
        for pause, expected in zip(pauses, (0.5, 1, 2, 4, 8, 16), strict=True):
            assert 0.75 * expected <= pause <= 1.25 * expected
        await gate.enter()
        gate.passed()
        assert gate.pauses == 0

    in_virtual_time(scene())


def test_one_burst_of_429s_is_one_pause_and_one_cut() -> None:
    async def scene() -> None:
        gate = gate_for(64)
        sent = [await gate.enter() for _ in range(64)]
        await asyncio.sleep(LATENCY_S)
        for at in sent:
            gate.limited(at, 1.0)
        assert gate.pauses == 1
        assert gate.limit == 32

    in_virtual_time(scene())


def test_fewer_are_in_flight_after_a_429_and_more_again_after_answers() -> None:
    async def scene() -> None:
        gate = gate_for(8)
        sent = [await gate.enter() for _ in range(8)]
        for at in sent[:7]:
            gate.limited(at, 0.1)
            await asyncio.sleep(0.01)
        gate.failed()
        await asyncio.sleep(1)
        inside = [asyncio.create_task(gate.enter()) for _ in range(8)]
        await asyncio.sleep(60)
        assert sum(task.done() for task in inside) == int(gate.limit) < 8
        for _ in range(200):  # each answered; another takes its place
            gate.passed()
            inside.append(asyncio.create_task(gate.enter()))
            await asyncio.sleep(1)
        assert gate.limit == 8
        entered = sum(task.done() for task in inside)
        assert entered - 200 == 8
        for task in inside:
            task.cancel()
        await asyncio.gather(*inside, return_exceptions=True)

    in_virtual_time(scene())


def test_a_run_never_comes_to_a_halt_however_many_429s() -> None:
    async def scene() -> None:
        gate = gate_for(64)
        for _ in range(50):
            gate.limited(await gate.enter(), 0.1)
        assert gate.limit >= 1
        before = now()
        for _ in range(20):
            await gate.enter()
            gate.passed()
        assert now() - before <= 60

    in_virtual_time(scene())


@pytest.mark.parametrize("wait", [0.0, 1.0])
def test_so_many_429s_in_a_row_as_stop_a_run_take_minutes(wait: float) -> None:
    """Whatever the endpoint asks for: a short outage of nothing but 429s costs no run."""

    async def scene() -> None:
        gate = gate_for(64)
        before = now()
        while gate.pauses < FAILURES_IN_A_ROW:
            gate.limited(await gate.enter(), wait)
        assert now() - before > 100

    in_virtual_time(scene())


def test_a_concurrency_above_the_start_is_grown_into() -> None:
    async def scene() -> None:
        gate = gate_for(512)
        inside = [asyncio.create_task(gate.enter()) for _ in range(512)]
        await asyncio.sleep(0)
        for round_trips in range(1, 3):
            await asyncio.sleep(1)
            entered = sum(task.done() for task in inside)
            assert entered == START_IN_FLIGHT * (2**round_trips - 1)
            for _ in range(START_IN_FLIGHT * 2 ** (round_trips - 1)):
                gate.passed()
        await asyncio.sleep(1)
        assert all(task.done() for task in inside)
        assert gate.limit == 512

    in_virtual_time(scene())


# -- caps of the user --------------------------------------------------------------------------


async def entries(gate: Gate, requests: int, tokens: int = 0, more: int = 0) -> list[float]:
    """When each of many workers' requests was let through."""
    times = []

    async def one() -> None:
        times.append(await gate.enter(tokens))
        await asyncio.sleep(LATENCY_S)
        gate.passed(more)

    await asyncio.gather(*(one() for _ in range(requests)))
    return times


def most_within(times: list[float], seconds: float) -> int:
    return max(sum(start <= at < start + seconds - EPSILON for at in times) for start in times)


@pytest.mark.parametrize("a_minute", [30.0, 600.0, 6000.0])
def test_no_more_requests_a_minute_than_the_user_allows(a_minute: float) -> None:
    async def scene() -> list[float]:
        return await entries(gate_for(64, a_minute), 300)

    times = in_virtual_time(scene())
    assert most_within(times, 60) <= a_minute
    assert most_within(times, 6) <= a_minute / 10 + 1
    assert times[-1] <= 1.02 * 300 / a_minute * 60  # and no fewer


@pytest.mark.parametrize("tokens", [10, 1000])
def test_no_more_tokens_a_minute_than_the_user_allows(tokens: int) -> None:
    async def scene() -> list[float]:
        return await entries(gate_for(64, None, 60_000.0), 120, tokens)

    times = in_virtual_time(scene())
    assert most_within(times, 6) * tokens <= 6000 + tokens
    assert times[-1] <= 1.02 * 120 * tokens / 1000


def test_answers_longer_than_estimated_are_made_up_for() -> None:
    async def scene() -> list[float]:
        return await entries(gate_for(64, None, 60_000.0), 120, 500, more=500)

    times = in_virtual_time(scene())
    assert times[-1] >= 0.95 * 119 * 1000 / 1000
    assert times[-1] <= 1.05 * 120 * 1000 / 1000


def test_the_tighter_of_two_caps_counts() -> None:
    async def scene() -> list[float]:
        return await entries(gate_for(64, 600.0, 60_000.0), 60, 1000)

    assert in_virtual_time(scene())[-1] >= 58


EVENTS = ["enter", "again", "cancel", "pass", "fail", "limit", "wait"]

# -- places ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from(EVENTS), st.integers(0, 9)),
        max_size=40,
    ),
)
def test_no_order_of_events_loses_a_place_or_gives_away_too_many(
    concurrency: int, events: list[tuple[str, int]]
) -> None:
    async def scene() -> None:
        gate = gate_for(concurrency)
        entering: list[asyncio.Task[float]] = []
        for event, which in events:
            inside = [task for task in entering if task.done() and not task.cancelled()]
            if event in ("enter", "again"):
                entering.append(asyncio.create_task(gate.enter(again=event == "again")))
            elif event == "wait":
                await asyncio.sleep(which / 4)
            elif event == "cancel" and entering:
                entering[which % len(entering)].cancel()  # nothing for one that is inside
            elif inside:
                task = inside[which % len(inside)]
                entering.remove(task)
                if event == "pass":
                    gate.passed()
                elif event == "fail":
                    gate.failed()
                else:
                    gate.limited(task.result(), 0.5)
            assert sum(t.done() and not t.cancelled() for t in entering) <= concurrency
        await asyncio.sleep(0)
        for task in entering:
            if not task.cancel() and not task.cancelled():
                task.result()
                gate.failed()
        results = await asyncio.gather(*entering, return_exceptions=True)
        assert not [r for r in results if isinstance(r, Exception)]
        # Everybody is gone: as many fit in as the limit says, and one more has to wait.
        free = int(gate.limit)
        fresh = [asyncio.create_task(gate.enter()) for _ in range(free + 1)]
        await asyncio.sleep(600)
        assert sum(task.done() for task in fresh) == free
        gate.failed()
        await asyncio.sleep(60)
        assert all(task.done() for task in fresh)

    in_virtual_time(scene())


def test_who_gets_a_place_and_is_cancelled_at_once_passes_it_on() -> None:
    async def scene() -> None:
        gate = gate_for(1)
        await gate.enter()
        first, second = (asyncio.create_task(gate.enter()) for _ in range(2))
        await asyncio.sleep(1)
        gate.passed()
        first.cancel()
        assert await second == 1.0

    in_virtual_time(scene())


def test_who_gets_the_turn_and_is_cancelled_at_once_passes_it_on() -> None:
    async def scene() -> None:
        gate = gate_for(1)
        await gate.enter()

        async def first_of_three() -> None:
            await gate.enter()
            second.cancel()  # its turn has come this very moment
            await asyncio.sleep(1)
            gate.passed()

        first = asyncio.create_task(first_of_three())
        await asyncio.sleep(0)
        second, third = (asyncio.create_task(gate.enter()) for _ in range(2))
        await asyncio.sleep(1)
        gate.passed()
        await first
        assert await third == 2.0

    in_virtual_time(scene())


def test_who_tries_again_goes_before_who_tries_first() -> None:
    async def scene() -> None:
        gate = gate_for(1)
        await gate.enter()
        order: list[str] = []

        async def one(name: str, again: bool) -> None:
            await gate.enter(again=again)
            order.append(name)
            gate.passed()

        at_the_gate = asyncio.create_task(one("at the gate", False))
        await asyncio.sleep(0)
        others = [asyncio.create_task(one("new", False)), asyncio.create_task(one("again", True))]
        await asyncio.sleep(1)
        gate.passed()
        await asyncio.gather(at_the_gate, *others)
        assert order == ["at the gate", "again", "new"]

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
    args += ["--concurrency=90"]  # more than start at once: some still stand at the gate then
    env = {"OLLAMA_BASE_URL": url, "VLLM_BASE_URL": url}
    done = run(MODERATE, *args, cwd=tmp_path, env=env, timeout=50)
    assert done.returncode == 0, done.stderr
    assert "ollama/busy is left out" in done.stderr
    assert len(read_csv(tmp_path / done.stdout.strip())) == 90
