"""Rate limits, outages and random rejections, in virtual time: minutes of a run pass in a blink.

`Session`, `Pace` and the answer log are the real ones; a coroutine plays the endpoint.
"""

import asyncio
import random
import selectors
import signal
from collections import defaultdict
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orbench.asking import live
from orbench.asking.inquiry import Inquiry, Limits, Phase, Reader, Run, pending
from orbench.asking.log import AnswerLog
from orbench.asking.pace import ROW, SMALL, Pace
from orbench.models.client import Client
from orbench.models.errors import NotReached, RateLimited, TimedOut, TransientError
from orbench.models.providers import Model, resolve
from orbench.models.requests import Answer, Request
from tests.endpoint_server import (
    A_SECOND,
    LATENCY_S,
    OVERLOADED,
    ROWS,
    SCENES,
    AtRandom,
    Bucket,
    Endpoint,
    Goals,
    Outage,
    Queue,
    Rejection,
    Sliding,
)


class _Selector(selectors.DefaultSelector):
    """Where a loop would wait, its clock jumps."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        self.now += timeout or 0.0 if not ready else 0.0
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = _Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


LOCAL = "http://127.0.0.1:1/v1"
PUBLIC = "https://api.example.com/v1"


class Played:
    """Takes the place of the client, and keeps what came of a run. most: in flight."""

    seconds = 0.0
    answered = 0
    rejections = in_flight = most = sent_again = 0
    asked: Run

    def __init__(
        self, endpoint: Endpoint, quick: bool, bad: Rejection | None, timeout: float
    ) -> None:
        self.endpoint, self.quick, self.bad = endpoint, quick, bad
        self.timeout = timeout
        self.queueing: set[Model] = set()
        self.sent: dict[int, list[float]] = defaultdict(list)  # row -> when
        self.lines: list[str] = []
        self.chance = random.Random(1)

    @property
    def times(self) -> list[float]:
        """When requests were sent."""
        return sorted(chain(*self.sent.values()))

    @property
    def rejected(self) -> float:
        """The share."""
        return self.rejections / len(self.times)

    async def open(self, model: object) -> None: ...

    async def close(self) -> None:
        self.seconds = asyncio.get_running_loop().time()

    async def send(self, request: Request) -> Answer:
        now = asyncio.get_running_loop().time()
        self.sent[request.sample].append(now)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        rejection = self.bad if self.bad and not request.sample else self.endpoint.ask(now)
        seconds = LATENCY_S if rejection else self.endpoint.takes(now)
        seconds *= self.chance.uniform(0.9, 1.1)
        await asyncio.sleep(0.005 if rejection and self.quick else min(seconds, self.timeout))
        self.in_flight -= 1
        if seconds > self.timeout:
            self.rejections += 1
            raise TimedOut("no answer")
        if rejection is None:
            self.endpoint.leave()
            return Answer("Fold it.")
        self.rejections += 1
        raise fault_of(rejection)


def fault_of(rejection: Rejection) -> Exception:
    """status 0: no connection."""
    if rejection.status == 429:
        return RateLimited("429: slow down", rejection.retry_after or 0.0)
    if rejection.status:
        return TransientError(f"{rejection.status}: overloaded")
    return NotReached("no answer: Cannot connect to host 127.0.0.1:1")


def play(
    endpoint: Endpoint,
    folder: Path,
    rows: int = ROWS,
    *,
    quick: bool = False,
    bad: Rejection | None = None,
    address: str = LOCAL,
    **limits: Any,
) -> Played:
    """Ask for so many rows. quick: rejections come at once. bad: how row 0 is always rejected."""
    random.seed(1)
    model = resolve("gpt-x", base_url=address)
    inquiries = [Inquiry(Request(model, [], {}, n, key=n.to_bytes(16))) for n in range(rows)]
    wanted = Limits(**{"concurrency": 64} | limits)
    played = Played(endpoint, quick, bad, wanted.timeout)
    if isinstance(endpoint, Queue):
        played.queueing.add(model)  # as its answers say
    progress = live.Progress("", rows, quiet=True)
    with (
        mock.patch.object(live, "Client", return_value=played),
        mock.patch.object(progress, "say", played.lines.append),
        mock.patch.object(asyncio.events, "new_event_loop", VirtualLoop),
        AnswerLog(folder / "o.answers.jsonl", write=True) as log,
    ):
        played.asked = Run(Reader(), log, inquiries)
        live.Session(pending(played.asked), [model], played.asked, wanted, progress).ask()
        played.answered = len(log)
    return played


SLOW_DOWN = Rejection()
DEAD = Rejection(0)
FOR_EVER = 1e9


@pytest.mark.parametrize("speed", ["slow", "quick"])
@pytest.mark.parametrize("name", SCENES)
def test_an_endpoint_is_ridden_out_in_time_and_no_row_is_lost(
    name: str, speed: str, tmp_path: Path
) -> None:
    scene = SCENES[name]
    limits = scene.limits._asdict()
    played = play(scene.endpoint(), tmp_path, scene.rows, quick=speed == "quick", **limits)
    assert (played.answered, played.asked.failed, played.asked.stopped) == (scene.rows, {}, "")
    goals: Goals = getattr(scene, speed)
    assert played.seconds <= goals.wall and played.rejections / scene.rows <= goals.rejected
    assert played.most <= 64


@pytest.mark.parametrize(
    ("name", "address", "limits", "size"),
    [
        ("gpt-x", LOCAL, Limits(), SMALL),
        ("gpt-x", "http://localhost:1/v1", Limits(), SMALL),
        ("gpt-x", "http://192.168.1.7/v1", Limits(), SMALL),
        ("gpt-x", "http://localhost:1/v1", Limits(concurrency=64), 64),
        ("gpt-x", PUBLIC, Limits(), 64),
        ("vllm/x", "", Limits(), 64),
    ],
)
def test_a_local_server_is_asked_a_few_requests_at_first(
    name: str, address: str, limits: Limits, size: int
) -> None:
    assert Pace(resolve(name, base_url=address), limits, mock.Mock()).size == size


def test_a_server_whose_answers_say_that_it_queues_is_asked_few_requests_at_once(
    tmp_path: Path,
) -> None:
    played = play(Queue(4, 1, 10), tmp_path, 60, address=PUBLIC, concurrency=None, timeout=10)
    assert (played.rejections, played.answered) == (0, 60)
    assert played.most <= 4 * SMALL


@pytest.mark.parametrize("seed", range(6))
def test_rejections_at_random_do_not_throttle(seed: int, tmp_path: Path) -> None:
    played = play(AtRandom(0.2, A_SECOND, seed=seed), tmp_path, rows=8000)
    assert played.answered == 8000
    assert played.seconds <= 1.5 * 8000 / 0.8 / 64 * LATENCY_S


@pytest.mark.parametrize("kind", ["bucket", "sliding"])
def test_a_limit_is_never_taken_for_rejections_at_random(kind: str, tmp_path: Path) -> None:
    limit = Bucket(50, "1") if kind == "bucket" else Sliding(50, 1, "1")
    played = play(limit, tmp_path, rows=8000)
    assert played.rejected <= 0.1
    assert played.seconds <= 1.25 * 8000 / 50


def test_all_places_are_used_again_soon_after_an_outage(tmp_path: Path) -> None:
    played = play(Outage(1, 11, A_SECOND), tmp_path, rows=8000)
    assert played.seconds <= 10 + 10 + 8000 / 64 * LATENCY_S


@pytest.mark.parametrize("rejection", [OVERLOADED, DEAD], ids=["503", "no connection"])
@pytest.mark.parametrize("concurrency", [1, 2, 64])
def test_an_outage_loses_no_row_and_gets_few_requests(
    concurrency: int, rejection: Rejection, tmp_path: Path
) -> None:
    played = play(Outage(1, 121, rejection), tmp_path, rows=500, concurrency=concurrency)
    assert (played.answered, played.asked.failed) == (500, {})
    during = [at for at in played.times if 1.5 <= at < 121]
    assert len(during) <= concurrency + 12 + 120 / 3
    (line,) = played.lines
    assert line == f"gpt-x: waiting at least 3 s before retrying ({fault_of(rejection)})"


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_a_server_that_is_not_there_is_given_up_within_seconds(rows: int, tmp_path: Path) -> None:
    played = play(Outage(0, FOR_EVER, DEAD), tmp_path, rows=rows)
    assert "is it running?" in played.asked.stopped
    assert played.asked.left_out
    assert played.seconds <= 5


@pytest.mark.parametrize("rejection", [A_SECOND, SLOW_DOWN, OVERLOADED])
def test_an_endpoint_that_only_rejects_is_given_up_after_three_minutes(
    rejection: Rejection, tmp_path: Path
) -> None:
    played = play(Outage(0, FOR_EVER, rejection), tmp_path)
    assert "no answer for 18" in played.asked.stopped
    assert 180 <= played.seconds <= 190
    assert len(played.times) <= 64 + 180 / 3 + 10


def test_a_pause_of_hours_ends_the_run_at_once(tmp_path: Path) -> None:
    played = play(Outage(0, FOR_EVER, Rejection(retry_after=7300.0)), tmp_path)
    assert "2.0 hours" in played.asked.stopped
    assert played.seconds < 1


def gaps(times: list[float]) -> list[float]:
    """Seconds from each rejection, at its earliest, to the next attempt."""
    return [later - earlier - 0.9 * LATENCY_S for earlier, later in pairwise(times)]


def test_a_request_that_always_fails_fails_alone_after_its_retries(tmp_path: Path) -> None:
    played = play(Endpoint(), tmp_path, rows=8000, bad=OVERLOADED, max_retries=4)
    assert played.answered == 7999
    (missing,) = played.asked.failed.values()
    assert (missing.kind, missing.why) == ("gave_up", "503: overloaded")
    waits = gaps(played.sent[0])
    assert len(waits) == 4
    assert waits == sorted(waits) and waits[-1] > 2 * waits[0]


def test_429s_of_one_request_do_not_count_as_retries_but_end(tmp_path: Path) -> None:
    played = play(Endpoint(), tmp_path, rows=12_000, bad=SLOW_DOWN, max_retries=1, concurrency=16)
    assert played.answered == 11_999
    assert len(played.sent[0]) == live.LIMITED_TRIES + 1


def test_a_signal_after_the_last_answer_is_no_fault(tmp_path: Path) -> None:
    async def close(client: Client) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)

    with (
        AnswerLog(tmp_path / "o.answers.jsonl", write=True) as log,
        mock.patch.object(Client, "close", close),
    ):
        run = Run(Reader(), log)
        session = live.Session([], [], run, Limits(), live.Progress("", 0, quiet=True))
        session.ask()
        assert run.phase is Phase.INTERRUPTED
        session.interrupt(signal.SIGTERM)


@pytest.mark.parametrize("asked", [0.7, 3.0])
def test_a_request_waits_as_long_as_retry_after_says_and_holds_up_no_other(
    asked: float, tmp_path: Path
) -> None:
    played = play(AtRandom(0.2, Rejection(retry_after=asked)), tmp_path)
    waits = map(gaps, played.sent.values())
    assert min(chain(*waits)) >= asked
    assert played.seconds <= 14 + 4 * asked


def test_a_long_wait_of_one_request_is_reported(tmp_path: Path) -> None:
    played = play(Outage(0, 0.1, Rejection(retry_after=30.0)), tmp_path, rows=1)
    assert played.lines == ["gpt-x: waiting at least 30 s before retrying (429: slow down)"]


def test_requests_rejected_together_do_not_come_back_together(tmp_path: Path) -> None:
    played = play(Outage(0.1, 0.3, SLOW_DOWN), tmp_path, rows=60)
    again = {round(times[1], 2) for times in played.sent.values() if len(times) > 1}
    assert len(again) > 10


def test_requests_per_minute_are_never_exceeded(tmp_path: Path) -> None:
    played = play(Endpoint(), tmp_path, rows=300, requests_per_minute=100)
    times = played.times
    assert min(later - first for first, later in zip(times, times[101:], strict=False)) > 60
    assert min(gaps(times)) > 0.4
    assert played.seconds <= 3 * 60 + 1


def test_no_endpoint_is_given_up_before_a_request_can_have_timed_out() -> None:
    pace = Pace(resolve("gpt-x"), Limits(1, timeout=400), say := mock.Mock())
    for now in (*[0] * ROW, 10, 11, 399):
        pace.rejected(TransientError("busy", 3600 * (now in (0, 11))), now, now, 6)
    say.assert_called_once_with("gpt-x: waiting at least 3600 s before retrying (busy)")
    assert not pace.over
