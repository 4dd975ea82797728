"""Live asking over HTTP: lanes, retries, what is waited for, signals, progress."""

import io
import json
import os
import re
import signal
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orbench.asking import live
from orbench.asking.inquiry import Run
from orbench.asking.live import Progress
from orbench.models.adaptation import rejected_parameter
from orbench.models.errors import ErrorReply, error_in
from orbench.models.requests import Prices
from tests.conftest import ALIGN, MODERATE, Desk
from tests.server import NOBODY, Body, Reply, by_number, error, number_of

TOO_LONG = error(400, "too long")
OVERLOADED = error(503, "overloaded")
HANG = Reply(fault="hang")
REJECTIONS = tomllib.loads(Path(__file__).with_name("rejections.toml").read_text("utf-8"))


def test_requests_go_out_in_order(desk: Desk) -> None:
    desk.prompts(30)
    desk.serve()
    desk.stage(ALIGN, "--concurrency=1")
    assert list(map(number_of, desk.server.requests)) == list(range(30))
    assert desk.record()["tokens"]["prompt"] == 300


def test_a_slow_model_holds_up_no_fast_one(desk: Desk) -> None:
    def reply(body: Body, seen: int) -> Reply | str:
        models = Counter(request["model"] for request in desk.server.requests)
        is_early = body["model"] == "slow" and models["fast"] < 30
        return error(429, "later") if is_early else "[[none]]"

    desk.prompts(30)
    desk.serve(reply)
    desk.stage(MODERATE, "--moderator_model=slow,fast", "--concurrency=2")
    assert desk.cells("votes") == ["2"] * 30
    assert desk.sent > 60


@pytest.mark.parametrize("said", REJECTIONS["rejection"], ids=lambda said: said["source"][19:])
def test_an_error_that_names_a_parameter_and_no_wrong_value_rejects_it(said: Body) -> None:
    reply = ErrorReply(said["status"], error_in(json.loads(said["body"])))
    assert rejected_parameter(reply, said["sent"]) == said["dropped"]


@pytest.mark.parametrize("first", [HANG, TOO_LONG, OVERLOADED])
def test_nothing_waits_long_for_a_first_request_without_an_answer(desk: Desk, first: Reply) -> None:
    desk.prompts(9)
    desk.serve(by_number({0: first}))
    with mock.patch.object(live, "ALONE_S", 0.05):
        desk.stage(ALIGN, "--timeout=0.5", "--max_retries=0", "--concurrency=4", status=3)
    assert list(map(number_of, desk.rows())) == list(range(1, 9))


def test_a_fault_is_retried_as_often_as_max_retries_says(desk: Desk) -> None:
    def at_times(body: Body, seen: int) -> Reply | str:
        faults = {1: [OVERLOADED] * 3, 2: [OVERLOADED, error(429)]}.get(number_of(body), [])
        return faults[seen] if seen < len(faults) else "Folded."

    desk.prompts(4)
    desk.serve(at_times)
    desk.stage(ALIGN, "--max_retries=2", status=3)
    assert Counter(map(number_of, desk.server.requests)) == {0: 1, 1: 3, 2: 3, 3: 1}
    assert desk.tally() == "3 rows, gave_up 1, 8 sent"
    assert desk.failed()[0]["error"] == "503: overloaded"
    assert desk.record()["counts"]["retried"] == {"failed at the server": 3, "throttled": 1}


@pytest.mark.parametrize("first", [TOO_LONG, OVERLOADED])
def test_a_failure_is_followed_up_too(desk: Desk, first: Reply) -> None:
    desk.prompts(1)
    desk.serve(lambda body, seen: "[[none]]" if body["model"] == "b" else first)
    with mock.patch.object(live, "SAY_EVERY_S", -1.0):
        done = desk.stage(MODERATE, "--moderator_model=a", "--substitute=b", "--max_retries=0")
    assert desk.cells("is_toxic_b") == ["False"]
    assert done.stderr.count("votes: 1 of 1, ") == 1


def test_a_server_that_is_not_there_stops_the_run_without_many_attempts(desk: Desk) -> None:
    desk.prompts(50)
    with mock.patch("orbench.asking.pace.FIRST_PATIENCE_S", 0.3):
        done = desk.stage(ALIGN, f"--base_url={NOBODY}", "--concurrency=4", status=1)
    assert re.search(r"error: .* is it running\?.*127\.0\.0\.1", done.stderr)
    (requests,) = re.findall(r"^requests (\d+)", done.stderr, re.MULTILINE)
    assert int(requests) <= 16


def test_answers_that_do_not_come_are_waited_for_only_so_long(desk: Desk) -> None:
    def reply(body: Body, seen: int) -> Reply:
        if desk.sent == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return HANG

    desk.prompts(9)
    desk.serve(reply)
    with mock.patch.multiple(live, GRACE_S=0.05, ALONE_S=0.0):
        desk.stage(ALIGN, "--concurrency=4", "--timeout=60", status=130)
    assert desk.tally() == "0 rows, not_asked 9, 4 sent"


def test_an_interrupted_run_stays_one_if_it_could_not_go_on_either(desk: Desk) -> None:
    def reply(body: Body, seen: int) -> Reply:
        os.kill(os.getpid(), signal.SIGINT)
        return error(401, "bad key")._replace(delay=0.05)

    desk.prompts(4)
    desk.serve(by_number({0: TOO_LONG}, reply))
    done = desk.stage(ALIGN, "--concurrency=1", status=130)
    assert "waiting at most 180 s" in done.stderr
    assert "interrupted: 3 rows left; run the same command to resume\n" in done.stderr


def test_progress_is_a_line_now_and_then_and_nothing_if_quiet(desk: Desk, capsys: Any) -> None:
    desk.prompts(1)
    desk.serve(TOO_LONG)
    line = "prompts: 1 of 1, failed 1, retries 0\n"
    assert line not in desk.stage(ALIGN, status=1).stderr  # 30 s have not passed
    with mock.patch.object(live, "SAY_EVERY_S", -1.0):
        assert line not in desk.stage(ALIGN, "--quiet", status=1).stderr
        assert line in desk.stage(ALIGN, status=1).stderr
        assert (
            line.replace("failed", "cost $0.0000, failed")
            in desk.stage(ALIGN, "--prices=1,2", status=1).stderr
        )
    progress = Progress("s", 9, quiet=False)
    progress._said -= 31
    progress.done(run := Run(mock.Mock(), mock.Mock()), mock.Mock())
    progress.done(run, mock.Mock())
    assert capsys.readouterr().err == "s: 1 of 9, failed 0, retries 0\n"


def test_limits_reach_the_requests(desk: Desk) -> None:
    desk.prompts(1)
    desk.serve()
    words = "--concurrency=3 --max_retries=2 --timeout=9 --requests_per_minute=5"
    with mock.patch.object(live, "Session") as asked:
        desk.stage(ALIGN, *words.split(), status=1)
    assert asked.call_args.args[3] == (3, 2, 9.0, 5.0)


def test_progress_is_a_bar_on_a_terminal_and_lines_stand_above_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "FEWEST", 2)
    terminal = io.StringIO()
    with mock.patch("sys.stderr", terminal), mock.patch.object(terminal, "isatty", lambda: True):
        progress = Progress("stage", 3, quiet=False, prices=Prices(1, 2, 0.5))
        stage = mock.Mock(refusals=lambda reading: [True])
        run = Run(stage, mock.Mock(), retried=Counter({"timed out": 1, "throttled": 2}))
        run.tokens.prompt = 4_000
        monkeypatch.setattr(run, "read", mock.Mock())
        progress.bar.mininterval = 0
        progress.done(run, mock.Mock())
        progress.say("gpt-x is left out")
        monkeypatch.setattr("time.monotonic", lambda: progress._start + 800)
        progress.done(run, mock.Mock())
        progress.close()
    state = "cost $0.0040, failed 0, retries 3 (2 throttled, 1 timed out); lower --concurrency?"
    assert f"2 of 3 [00:00, 100 % refused, about 7 min left, {state}]" in terminal.getvalue()
    assert "\rgpt-x is left out\n" in terminal.getvalue()
