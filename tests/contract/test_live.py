"""Live asking over HTTP: lanes, retries, models that are left out, signals, progress."""

import io
import json
import os
import signal
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orbench.asking import live
from orbench.asking.inquiry import Limits, Reader, Run
from orbench.asking.live import Progress, ask_live
from orbench.asking.log import AnswerLog
from orbench.models.adaptation import rejected_parameter
from orbench.models.errors import ErrorReply, error_in
from orbench.models.providers import Model, resolve
from orbench.models.requests import Prices, Request, user
from tests.server import NOBODY, Body, Reply, Script, Server, by_number, error, number_of

TOO_LONG = error(400, "too long")
OVERLOADED = error(503, "overloaded")
WRONG_KEY = error(401, "wrong key")
TURNED_AWAY = error(403, "not from here")
HANG = Reply(fault="hang")
REJECTIONS = tomllib.loads(Path(__file__).with_name("rejections.toml").read_text("utf-8"))


FollowUp = Callable[[bytes], Request | None]


def nothing(key: bytes) -> Request | None:
    return None


def to(model: Model, n: int) -> list[Request]:
    """Requests to fold n birds."""
    return [
        Request(model, [user(f"Fold paper bird number {i}.")], {"max_tokens": 9}) for i in range(n)
    ]


def birds(server: Server, model: str = "") -> list[int]:
    """What was asked, in order of arrival."""
    return [number_of(body) for body in server.requests if body["model"] == model or not model]


def by_model(**replies: Script) -> Script:
    def reply(body: Body, seen: int) -> Reply | str:
        script = replies[body["model"]]
        return script(body, seen) if callable(script) else script

    return reply


class Desk:
    """A server, models on it, and a log."""

    def __init__(self, folder: Path, serve: Callable[..., Server]) -> None:
        self.path, self.serve = folder / "o.answers.jsonl", serve
        self.asked: Run
        self.server: Server

    def models(self, reply: Script, *names: str, latency: float = 0.0) -> list[Model]:
        """Models on a new server that answers so."""
        self.server = self.serve(reply, latency)
        return [resolve(name, base_url=self.server.url) for name in names or ["a"]]

    def ask(
        self,
        requests: Sequence[Request],
        models: Sequence[Model],
        follow_up: FollowUp = nothing,
        progress: Progress | None = None,
        **limits: Any,
    ) -> Run:
        """Ask in a new run over the same log."""
        progress = progress or Progress("test", len(requests), quiet=True)
        following = mock.patch.object(live, "follow_up", lambda key, *_: follow_up(key))
        with AnswerLog(self.path, write=True) as log, following:
            todo = [request for request in requests if request.key not in log]
            wanted = Limits(**{"concurrency": 4} | limits)
            self.asked = Run(Reader(), log)
            ask_live(todo, models, self.asked, wanted, progress)
        return self.asked

    def answered(self, requests: Sequence[Request]) -> list[bool]:
        with AnswerLog(self.path, write=False) as log:
            return [request.key in log for request in requests]

    def failures(self, requests: Sequence[Request]) -> list[str]:
        """Why requests failed, in their order."""
        failed = self.asked.failed
        return [failed[request.key].kind for request in requests if request.key in failed]


@pytest.fixture
def desk(tmp_path: Path, serve: Callable[..., Server]) -> Desk:
    return Desk(tmp_path, serve)


# -- lanes -------------------------------------------------------------------------------------


def test_requests_go_out_in_order_and_each_answer_is_logged(desk: Desk) -> None:
    models = desk.models("Folded.")
    rows = to(models[0], 30)
    asked = desk.ask(rows, models, concurrency=1)
    assert birds(desk.server) == list(range(30))
    assert all(desk.answered(rows))
    assert (asked.requests, asked.retried.total(), asked.tokens.prompt) == (30, 0, 300)
    assert not (asked.failed or asked.left_out or asked.stopped or asked.interrupted)


def test_a_slow_model_holds_up_no_fast_one(desk: Desk) -> None:
    def slow(body: Body, seen: int) -> Reply | str:
        return "At last." if len(birds(desk.server, "fast")) == 30 else error(429, "later")

    models = desk.models(by_model(slow=slow, fast="Folded."), "slow", "fast")
    rows = [request for model in models for request in to(model, 30)]
    desk.ask(rows, models, concurrency=2)
    assert all(desk.answered(rows))
    assert len(birds(desk.server, "slow")) > 30


def test_what_follows_from_an_answer_is_asked_in_the_same_run(desk: Desk) -> None:
    models = desk.models(lambda body, seen: f"{len(body['messages'])}")
    rows = to(models[0], 5)
    again = [request.again([user("Again, please.")]) for request in rows]
    last = [request.again([user("Again, please.")]) for request in again]
    following = {
        one.key: other for one, other in zip([*rows, *again], [*again, *last], strict=True)
    }
    desk.ask(rows, models, following.get)
    assert len(desk.server.requests) == 15
    assert all(desk.answered(last))


def test_a_substitute_of_two_judges_is_asked_once(desk: Desk) -> None:
    script = by_model(a=TOO_LONG, b=TOO_LONG, c="Folded.")
    models = desk.models(script, "a", "b", "c")
    stand_in = to(models[2], 6)
    rows = [*to(models[0], 6), *to(models[1], 6)]
    instead = {request.key: stand_in[i % 6] for i, request in enumerate(rows)}
    for _ in range(2):  # the second run finds its answers in the log
        desk.ask(rows, models, instead.get)
        assert sorted(birds(desk.server, "c")) == list(range(6))
    assert desk.failures(rows) == ["bad_request"] * 12


# -- requests that fail, and parameters that models reject -------------------------------------


@pytest.mark.parametrize("said", REJECTIONS["rejection"], ids=lambda said: said["source"][19:])
def test_an_error_that_names_a_parameter_and_no_wrong_value_rejects_it(said: Body) -> None:
    reply = ErrorReply(said["status"], error_in(json.loads(said["body"])))
    assert rejected_parameter(reply, said["sent"]) == said["dropped"]


@pytest.mark.parametrize("first", [HANG, TOO_LONG, OVERLOADED])
def test_nothing_waits_long_for_a_first_request_without_an_answer(desk: Desk, first: Reply) -> None:
    models = desk.models(by_number({0: first}))
    with mock.patch.object(live, "ALONE_S", 0.05):
        desk.ask(to(models[0], 9), models, timeout=0.5, max_retries=0)
    assert desk.answered(to(models[0], 9)) == [number > 0 for number in range(9)]


def test_a_fault_is_retried_as_often_as_max_retries_says(desk: Desk) -> None:
    def at_times(body: Body, seen: int) -> Reply | str:
        faulty = number_of(body) == 1 or (number_of(body) == 2 and seen < 2)
        return OVERLOADED if faulty else "Folded."

    models = desk.models(at_times)
    rows = to(models[0], 4)
    asked = desk.ask(rows, models, max_retries=2)
    assert Counter(birds(desk.server)) == {0: 1, 1: 3, 2: 3, 3: 1}
    assert asked.failed[rows[1].key] == ("gave_up", "503: overloaded")
    assert desk.answered(rows) == [True, False, True, True]
    assert (asked.requests, asked.retried.total()) == (8, 4)


def test_an_answer_that_does_not_come_is_a_fault(desk: Desk) -> None:
    models = desk.models(lambda body, seen: "Folded." if seen > number_of(body) - 1 else HANG)
    rows = to(models[0], 3)
    asked = desk.ask(rows, models, timeout=0.2, max_retries=1)
    assert desk.answered(rows) == [True, True, False]
    assert "0.2 s" in asked.failed[rows[2].key].why


@pytest.mark.parametrize("script", [TOO_LONG, OVERLOADED])
def test_a_failure_is_followed_up_too(desk: Desk, script: Reply) -> None:
    models = desk.models(by_model(a=script, b="Folded."), "a", "b")
    rows, stand_in = to(models[0], 1), to(models[1], 1)
    desk.ask(rows, models, {rows[0].key: stand_in[0]}.get, max_retries=0)
    assert desk.answered(stand_in) == [True]


# -- models that are left out ------------------------------------------------------------------


@pytest.mark.parametrize(
    "script", [WRONG_KEY, error(404, "no such model"), error(429, "no", code="insufficient_quota")]
)
def test_a_model_that_can_answer_nothing_is_left_out_and_substitutes_take_over(
    desk: Desk, script: Reply, capsys: pytest.CaptureFixture[str]
) -> None:
    models = desk.models(by_model(a=script, b="Folded.", c="Folded."), "a", "b", "c")
    rows, others, stand_ins = (to(model, 50) for model in models)
    instead = {one.key: other for one, other in zip(rows, stand_ins, strict=True)}
    asked = desk.ask([*rows, *others], models, instead.get)
    assert list(asked.left_out) == ["a"]
    assert not (asked.stopped or asked.failed)
    assert len(birds(desk.server, "a")) <= 4
    assert all(desk.answered([*others, *stand_ins]))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("a is left out: ")


def test_a_server_that_is_not_there_stops_the_run_without_many_attempts(desk: Desk) -> None:
    model = resolve("a", base_url=NOBODY)
    with mock.patch("orbench.asking.pace.FIRST_PATIENCE_S", 0.3):
        asked = desk.ask(to(model, 50), [model])
    assert "is it running?" in asked.stopped and "127.0.0.1" in asked.stopped
    assert asked.requests <= 16 and asked.left_out
    assert "is it running?" in desk.ask(to(model, 2), [model], max_retries=0).stopped


def test_three_403s_before_any_answer_are_a_wrong_key(desk: Desk) -> None:
    models = desk.models(TURNED_AWAY)
    asked = desk.ask(to(models[0], 50), models, concurrency=1)
    assert "rejected the key" in asked.stopped
    assert len(desk.server.requests) == 3


def test_a_403_fails_alone_once_anything_was_answered(desk: Desk) -> None:
    models = desk.models(by_number(dict.fromkeys(range(1, 6), TURNED_AWAY)))
    rows = to(models[0], 9)
    for _ in range(2):  # in the second run the answers are in the log
        asked = desk.ask(rows, models, concurrency=1)
        assert desk.failures(rows) == ["bad_request"] * 5
        assert not asked.left_out


def test_20_failures_in_a_row_leave_a_model_out(desk: Desk) -> None:
    models = desk.models(by_number({19: "Folded."}, TOO_LONG))
    asked = desk.ask(to(models[0], 100), models, concurrency=1)
    assert birds(desk.server) == list(range(40))
    assert "20 requests in a row failed" in asked.stopped and "too long" in asked.stopped


# -- the end of a run --------------------------------------------------------------------------


def interrupting(number: int, otherwise: Script, at: int = 4) -> Script:
    """Sends this process a signal at the fourth request, or another one."""
    seen_so_far: list[int] = []

    def reply(body: Body, seen: int) -> Reply | str:
        seen_so_far.append(1)
        if len(seen_so_far) == at:
            os.kill(os.getpid(), number)
        return otherwise(body, seen) if callable(otherwise) else otherwise

    return reply


def test_answers_that_do_not_come_are_waited_for_only_so_long(desk: Desk) -> None:
    models = desk.models(interrupting(signal.SIGTERM, HANG))
    with mock.patch.multiple(live, GRACE_S=0.05, ALONE_S=0.0):
        asked = desk.ask(to(models[0], 9), models, timeout=60)
    assert asked.interrupted
    assert not (asked.failed or any(desk.answered(to(models[0], 9))))


def test_progress_is_a_line_now_and_then_and_nothing_if_quiet(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    models = desk.models(by_number({1: TOO_LONG}))
    desk.ask(to(models[0], 3), models, progress=Progress("stage", 3, quiet=False))
    assert capsys.readouterr().err == ""  # 30 s have not passed
    with mock.patch.object(live, "SAY_EVERY_S", -1.0):
        desk.ask(to(models[0], 3)[1:2], models, progress=Progress("stage", 1, quiet=True))
        assert capsys.readouterr().err == ""
        desk.ask(to(models[0], 3)[1:2], models, progress=Progress("stage", 1, quiet=False))
    assert capsys.readouterr().err == "stage: 1 of 1 row, failed 1, retries 0\n"


def test_progress_is_a_bar_on_a_terminal_and_lines_stand_above_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "FEWEST", 2)
    terminal = io.StringIO()
    with mock.patch("sys.stderr", terminal), mock.patch.object(terminal, "isatty", lambda: True):
        progress = Progress("stage", 3, quiet=False, prices=Prices(1, 2, 0.5))
        run = Run(Reader(), mock.Mock(), retried=Counter({"timed out": 1, "throttled": 2}))
        run.tokens.prompt = 4_000
        progress.done(run)
        progress.say("gpt-x is left out")
        monkeypatch.setattr("time.monotonic", lambda: progress._start + 800)
        progress.done(run)
        progress.close()
    state = "cost 0.0040, failed 0, retries 3 (2 throttled, 1 timed out)"
    assert f"2 of 3 rows [00:00, about 7 min left, {state}]" in terminal.getvalue()
    assert "\rgpt-x is left out\n" in terminal.getvalue()
