"""The runner: what is retried, what stops a run, and that nothing is lost or paid for twice."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import orbench.run
from orbench import gate
from orbench.answers import AnswerLog
from orbench.chat import Chat, Request, user
from orbench.models import Model, resolve
from orbench.run import Limits, Progress, Run, ask_all
from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    KEY,
    MODERATE,
    ROOT,
    environment,
    in_terminal,
    prompts_csv,
    read_csv,
    read_record,
    run,
    start,
    write_csv,
)
from tests.server import Body, Reply, Server, answer, completion, error, prompt_of

Serve = Callable[..., Server]
OUT = "--output_path=o.csv"
ARGS = ("--model=gpt-x", "--input_file=p.csv", OUT)


def fine(body: Body, seen: int) -> Reply:
    return answer(f"About {prompt_of(body)}: fold it.")


def number_of(body: Body) -> int:
    """Which of `prompts_csv`'s prompts this is."""
    return int(prompt_of(body).split()[-1][:-1])


# -- what can pass by itself ------------------------------------------------------------------

PASSING = {
    "connection lost": Reply(fault="drop"),
    "408": error(408),
    "409": error(409),
    "429": error(429, headers=[("Retry-After-Ms", "50")]),
    "500": error(500),
    "503": error(503),
    "a body cut off": fine({"messages": [{"content": "x"}]}, 0)._replace(fault="cut"),
    "not JSON": Reply('{"choices": ['),
    "no body": Reply(""),
    "204": Reply("", 204),
    "HTML from a gateway": Reply("<html>busy</html>", content_type="text/html"),
    "a 200 with an error": Reply('{"error": {"message": "overloaded"}}'),
    "no choices": Reply(completion()),
    "no HTTP": Reply(fault="garbage"),
    "hangs": Reply(fault="hang"),
    "drips": fine({"messages": [{"content": "x"}]}, 0)._replace(fault="drip"),
}


def test_what_can_pass_by_itself_is_tried_again(serve: Serve, tmp_path: Path) -> None:
    """All faults in one run, each the first answer to a prompt of its own."""
    faults = list(PASSING.values())
    prompts_csv(tmp_path / "p.csv", len(faults))
    server = serve(lambda body, seen: fine(body, 0) if seen else faults[number_of(body)])
    done = run(ALIGN, *ARGS, "--timeout=1", cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    assert len(read_csv(tmp_path / "o.csv")) == len(faults)
    asked = Counter(number_of(body) for body in server.requests)
    assert set(asked.values()) == {2}


def test_a_lost_server_costs_nothing_but_time(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    done = run(ALIGN, *ARGS, "--max_retries=1", cwd=tmp_path, url="http://127.0.0.1:9/v1")
    assert (done.returncode, done.stdout) == (1, "")
    failed = read_csv(tmp_path / "o_failed.csv")
    assert {row["error_type"] for row in failed} == {"gave_up"}
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=serve(fine).url)
    assert done.returncode == 0
    assert not (tmp_path / "o_failed.csv").exists()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_row_at_fault_fails_at_once_and_the_others_go_on(
    serve: Serve, tmp_path: Path, status: int
) -> None:
    prompts_csv(tmp_path / "p.csv", 5)

    def reply(body: Body, seen: int) -> Reply:
        return error(status, "too long\nby far") if number_of(body) == 2 else fine(body, seen)

    server = serve(reply)
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert done.returncode == 3
    assert len(server.requests) == 5
    assert len(read_csv(tmp_path / "o.csv")) == 4
    (failed,) = read_csv(tmp_path / "o_failed.csv")
    assert list(failed) == ["prompt", "category", "error_type", "error"]
    assert failed["error_type"] == "bad_request"
    assert failed["error"] == f"{status}: too long by far"
    run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert len(server.requests) == 6  # just the failed one again


FATAL = {
    "401": (error(401, "bad key"), "OPENAI_API_KEY"),
    "404": (error(404, "no such model"), "does not know the model 'gpt-x'"),
    "quota": (error(429, "exceeded", code="insufficient_quota"), "no quota left"),
    "402": (error(402, "insufficient balance"), "no quota left"),
}


@pytest.mark.parametrize("name", FATAL)
def test_what_cannot_pass_stops_the_run_and_keeps_what_has_arrived(
    serve: Serve, tmp_path: Path, name: str
) -> None:
    prompts_csv(tmp_path / "p.csv", 500)
    reply, says = FATAL[name]
    server = serve(lambda body, seen: fine(body, 0) if number_of(body) < 3 else reply)
    done = run(ALIGN, *ARGS, "--concurrency=4", cwd=tmp_path, url=server.url)
    assert done.returncode == 1
    assert len(server.requests) <= 3 + 4
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert says in line
    assert "Traceback" not in done.stderr
    assert len(read_csv(tmp_path / "o.csv")) == 3
    assert read_record(tmp_path / "o.csv")["complete"] is False


# What a firewall may do to one prompt, and a key without rights or a moved endpoint to all.
TURNED_AWAY = {
    "403": (error(403, "not yours"), "refused the key in OPENAI_API_KEY, or this prompt"),
    "301": (Reply("", 301, (("Location", "http://127.0.0.1:9/v2"),)), "127.0.0.1:9/v2"),
}


@pytest.mark.parametrize("name", TURNED_AWAY)
def test_what_turns_all_requests_away_stops_the_run(
    serve: Serve, tmp_path: Path, name: str
) -> None:
    prompts_csv(tmp_path / "p.csv", 100)
    reply, says = TURNED_AWAY[name]
    server = serve(lambda body, seen: reply)
    for requests in (6, 12):  # with nothing in the log, the same again
        done = run(ALIGN, *ARGS, "--concurrency=4", cwd=tmp_path, url=server.url)
        assert (done.returncode, done.stdout) == (1, "")
        assert says in done.stderr.splitlines()[-1]
        assert len(server.requests) <= requests


@pytest.mark.parametrize("name", TURNED_AWAY)
def test_a_prompt_that_a_firewall_turns_away_fails_alone(
    serve: Serve, tmp_path: Path, name: str
) -> None:
    prompts_csv(tmp_path / "p.csv", 12)
    reply, says = TURNED_AWAY[name]
    bad = {0, 1, 5, 6, 9}  # the first two before any answer

    server = serve(lambda body, seen: reply if number_of(body) in bad else fine(body, seen))
    args = (*ARGS, "--concurrency=1")
    done = run(ALIGN, *args, cwd=tmp_path, url=server.url)
    assert done.returncode == 3, done.stderr
    assert len(read_csv(tmp_path / "o.csv")) == 7
    failed = read_csv(tmp_path / "o_failed.csv")
    assert {row["error_type"] for row in failed} == {"bad_request"}
    assert all(says in row["error"] for row in failed) and len(failed) == 5
    done = run(ALIGN, *args, cwd=tmp_path, url=server.url)  # only those five are asked
    assert (done.returncode, len(server.requests)) == (3, 17), done.stderr


def test_a_wrong_key_at_the_first_request_leaves_no_csv(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 50)
    server = serve(lambda body, seen: error(401, "bad key"))
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert not (tmp_path / "o.csv").exists()


def test_a_retired_model_behind_an_alias_says_how_to_point_it_elsewhere(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    server = serve(lambda body, seen: error(404, "retired"))
    args = ("--moderator_model=gpt4", "--input_file_path=p.csv")
    done = run(MODERATE, *args, cwd=tmp_path, url=server.url)
    assert done.returncode == 1
    assert "ORBENCH_MODEL_GPT4=provider/model-id" in done.stderr


def test_a_run_that_gets_nothing_but_failures_stops_by_itself(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 500)
    server = serve(lambda body, seen: error(400, "no tools here"))
    done = run(ALIGN, *ARGS, "--concurrency=4", cwd=tmp_path, url=server.url)
    assert done.returncode == 1
    assert 20 <= len(server.requests) < 30
    assert "20 requests in a row failed" in done.stderr
    assert "no tools here" in done.stderr


def test_nothing_but_429_stops_by_itself(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("OWN_WAIT_S", 0.01), ("LONGEST_GAP_S", 0.05), ("PATIENCE_S", 0.5)):
        monkeypatch.setattr(gate, name, seconds)  # it would take minutes
    server = serve(lambda body, seen: error(429, "slow", headers=[("Retry-After-Ms", "1")]))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = resolve("gpt-x", base_url=server.url, environment={})
    log = AnswerLog(tmp_path / "o.answers.jsonl", write=True)
    one = Run()
    requests = [Request(model, [user(str(n))], {}) for n in range(500)]
    progress = Progress("", 0, quiet=True)
    ask_all(iter(requests), [model], log, one, Limits(), progress)
    log.close()
    assert "no answer for" in one.stopped and "429: slow" in one.stopped
    assert len(server.requests) < 200


# -- limits -----------------------------------------------------------------------------------


def test_a_429_storm_loses_no_row_and_few_requests(serve: Serve, tmp_path: Path) -> None:
    """50 requests a second are allowed; a whole second's worth may come at once."""
    prompts_csv(tmp_path / "p.csv", 160)
    window: list[float] = []

    def reply(body: Body, seen: int) -> Reply:
        now = time.monotonic()
        window[:] = [then for then in window if then > now - 1]
        if len(window) >= 50:
            return error(429, "slow down", headers=[("Retry-After", "1")])
        window.append(now)
        return fine(body, seen)

    server = serve(reply)
    done = run(ALIGN, *ARGS, "--concurrency=32", cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    assert len(read_csv(tmp_path / "o.csv")) == 160
    assert len(server.requests) <= 240  # a third of them refused, on a machine under load


def test_a_retry_after_date_is_understood(serve: Serve, tmp_path: Path) -> None:
    from email.utils import formatdate

    prompts_csv(tmp_path / "p.csv", 1)
    when: list[float] = []

    def reply(body: Body, seen: int) -> Reply:
        when.append(time.time())
        if seen:
            return fine(body, seen)
        date = formatdate(time.time() + 2, usegmt=True)
        return error(503, "maintenance", headers=[("Retry-After", date)])

    assert run(ALIGN, *ARGS, cwd=tmp_path, url=serve(reply).url).returncode == 0
    assert when[1] - when[0] > 0.9


def test_requests_per_minute_are_kept(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 12)
    when: list[float] = []

    def reply(body: Body, seen: int) -> Reply:
        when.append(time.monotonic())
        return fine(body, seen)

    done = run(ALIGN, *ARGS, "--requests_per_minute=600", cwd=tmp_path, url=serve(reply).url)
    assert done.returncode == 0
    assert when[-1] - when[0] > 0.95  # eleven gaps of a tenth of a second, the first made up for


def test_no_more_requests_are_in_flight_than_the_concurrency(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 100)
    server = serve(fine, latency=0.02)
    assert run(ALIGN, *ARGS, "--concurrency=7", cwd=tmp_path, url=server.url).returncode == 0
    assert server.most == 7


# -- nothing lost, nothing doubled ------------------------------------------------------------


def test_a_second_run_sends_nothing(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 30)
    server = serve(fine)
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=server.url).returncode == 0
    first = (tmp_path / "o.csv").read_bytes()
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert done.returncode == 0
    assert len(server.requests) == 30
    assert (tmp_path / "o.csv").read_bytes() == first
    assert "reused from the log 30" in done.stderr


def test_a_changed_temperature_is_asked_anew(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 3)
    server = serve(fine)
    run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    run(ALIGN, *ARGS, "--temperature=0.5", "--overwrite", cwd=tmp_path, url=server.url)
    assert len(server.requests) == 6


def test_rows_that_are_alike_are_asked_once_and_answered_each(serve: Serve, tmp_path: Path) -> None:
    rows = [("Fold a bird?", str(n)) for n in range(40)]
    write_csv(tmp_path / "p.csv", ("prompt", "id"), rows)
    server = serve(fine, latency=0.01)
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=server.url).returncode == 0
    assert len(server.requests) == 1
    assert [row["id"] for row in read_csv(tmp_path / "o.csv")] == [str(n) for n in range(40)]


def flaky(body: Body, seen: int) -> Reply:
    """Mostly an answer; now and then a fault that passes, a row at fault, an empty answer."""
    number = number_of(body)
    if number % 17 == 3 and seen == 0:
        return error(500)
    if number % 41 == 5:
        return error(400, "at fault")
    if number % 29 == 7:
        return answer("")
    return answer(f"I can't help with {number}." if number % 3 else f"Sure:\n{number},\r\n\x00")


def test_a_run_killed_at_any_moment_ends_like_one_that_was_not(
    serve: Serve, tmp_path: Path
) -> None:
    """Killed 12 times at random moments, with a torn and a garbled line in the log on the way."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    n = 450
    for name in ("whole", "killed"):
        prompts_csv(tmp_path / name / "p.csv", n)
    undisturbed = serve(flaky)
    done = run(ALIGN, *ARGS, cwd=tmp_path / "whole", url=undisturbed.url)
    assert done.returncode == 3, done.stderr

    folder, log = tmp_path / "killed", tmp_path / "killed" / "o.answers.jsonl"
    server = serve(flaky, latency=0.03)
    args = (*ARGS, "--concurrency=16")
    chance = random.Random(7)
    stored: set[str] = set()
    kills = 0
    while kills < 12:
        wanted = len(stored) + chance.randrange(1, 40)
        process = start(ALIGN, *args, cwd=folder, url=server.url)
        while process.poll() is None and len(keys(log)) < wanted:
            time.sleep(chance.random() * 0.01)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        assert keys(log) >= stored, "an answer was lost"
        stored = keys(log)
        if kills in (4, 8):
            with log.open("ab") as file:
                file.write(b'{"key": "00", "te' if kills == 4 else b"\x00\xff garbled\n")
    assert kills == 12
    done = run(ALIGN, *args, cwd=folder, url=server.url)
    assert done.returncode == 3, done.stderr
    for name in ("o.csv", "o_failed.csv"):
        assert (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(keys(log)) == len(keys(tmp_path / "whole" / "o.answers.jsonl"))
    # A request is sent again only if its answer had not arrived: at most those in flight at a kill.
    answered = Counter(number_of(b) for b in server.requests if number_of(b) % 41 != 5)
    extra = sum(answered.values()) - len(answered) - sum(i % 17 == 3 for i in answered)
    assert extra <= 12 * 16
    sent = len(server.requests)
    run(ALIGN, *args, "--from_log", cwd=folder, url=server.url)
    assert len(server.requests) == sent
    assert not list(folder.glob("*.tmp")) and not list(folder.glob("*.partial.csv"))


def keys(log: Path) -> set[str]:
    """The keys of the whole lines of a log."""
    if not log.exists():
        return set()
    lines = log.read_bytes().split(b"\n")[:-1]
    return {line[9:41].decode() for line in lines if line.startswith(b'{"key": "')}


def wait_for(server: Server, n: int) -> None:
    """Until the server has got n requests."""
    end = time.monotonic() + 30
    while len(server.requests) < n:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_what_there_is_and_goes_on_later(
    serve: Serve, tmp_path: Path, number: signal.Signals
) -> None:
    prompts_csv(tmp_path / "p.csv", 200)
    server = serve(fine, latency=0.05)
    process = start(ALIGN, *ARGS, "--concurrency=4", cwd=tmp_path, url=server.url)
    wait_for(server, 20)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    rows = read_csv(tmp_path / "o.csv")
    assert out == "o.csv\n"
    assert 16 <= len(rows) < 200
    assert f"interrupted: {200 - len(rows)} rows left" in err
    assert len(server.requests) == len(rows)  # what was in flight was waited for
    assert "Traceback" not in err
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert done.returncode == 0
    assert len(server.requests) == 200
    assert len(read_csv(tmp_path / "o.csv")) == 200


# Signal, how long answers are waited for.
STOPS = [(signal.SIGINT, "180 s"), (signal.SIGTERM, "25 s")]


@pytest.mark.parametrize(("number", "bound"), STOPS)
@pytest.mark.parametrize("flags", [[], ["--quiet"]])
def test_answers_under_way_are_waited_for_and_kept_whatever_they_take(
    serve: Serve,
    tmp_path: Path,
    number: signal.Signals,
    bound: str,
    flags: list[str],
) -> None:
    prompts_csv(tmp_path / "p.csv", 9)
    server = serve(fine, latency=1.0)
    process = start(ALIGN, *ARGS, "--concurrency=3", *flags, cwd=tmp_path, url=server.url)
    wait_for(server, 3)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    line = f"stopping: waiting for 3 answers under way, at most {bound}; interrupt again to leave"
    assert line in err
    assert len(server.requests) == len(keys(tmp_path / "o.answers.jsonl")) == 3
    assert len(read_csv(tmp_path / "o.csv")) == 3


def test_a_fatal_stop_waits_for_the_answers_under_way(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 9)

    def reply(body: Body, seen: int) -> Reply:
        if number_of(body):
            return fine(body, seen)._replace(delay=1.5)
        return error(401, "bad key")._replace(delay=0.3)

    server = serve(reply)
    done = run(ALIGN, *ARGS, "--concurrency=2", "--timeout=20", cwd=tmp_path, url=server.url)
    assert done.returncode == 1
    assert "waiting for 1 answer under way, at most 20 s; interrupt to leave" in done.stderr
    assert len(keys(tmp_path / "o.answers.jsonl")) == 1
    assert len(server.requests) == 2


def test_the_bound_of_a_wait_is_kept(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that never come hold up a SIGTERM no longer than that, a Ctrl-C till the timeout."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(orbench.run, "GRACE_S", 0.2)
    model = resolve("gpt-x", base_url="http://127.0.0.1:9/v1", environment={})
    for number, timeout in ((signal.SIGTERM, 30.0), (signal.SIGINT, 1.5)):

        def reply(body: Body, seen: int, number: signal.Signals = number) -> Reply:
            os.kill(os.getpid(), number)
            return Reply(fault="hang")

        server = serve(reply)
        model = resolve("gpt-x", base_url=server.url, environment={})
        log, one = AnswerLog(tmp_path / f"{number}.answers.jsonl", write=True), Run()
        requests = iter([Request(model, [user("Fold?")], {})])
        began = time.monotonic()
        ask_all(requests, [model], log, one, Limits(timeout=timeout), Progress("", 0, quiet=True))
        took = time.monotonic() - began
        log.close()
        assert one.interrupted
        assert took < 20 if number == signal.SIGTERM else took > 1


def test_two_interrupts_end_a_run_at_once(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 50)
    server = serve(lambda body, seen: Reply(fault="hang"))
    process = start(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    wait_for(server, 50)
    process.send_signal(signal.SIGINT)
    assert process.stderr
    while "interrupt again" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)  # a graceful stop would wait for the hung requests: 180 s
    assert process.returncode == 130


def test_a_stage_that_reads_an_interrupted_runs_csv_says_so(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 100)
    server = serve(fine, latency=0.1)
    process = start(ALIGN, *ARGS, "--concurrency=2", cwd=tmp_path, url=server.url)
    wait_for(server, 6)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    done = run(CHECK, "--check_model=keyword", "--input_file=o.csv", cwd=tmp_path)
    assert "rows are missing" in done.stderr


def test_a_second_run_on_the_same_output_stops_with_one_line(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 4)
    server = serve(lambda body, seen: Reply(fault="hang"))
    process = start(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    wait_for(server, 4)
    second = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    process.kill()
    process.communicate()
    assert second.returncode == 1
    assert "another run is writing" in second.stderr
    assert second.stderr.count("\n") == 1
    assert len(server.requests) == 4


def test_a_full_disk_stops_the_run_with_one_line_and_loses_no_answer(
    serve: Serve, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        prompts_csv(disk / "p.csv", 300)
        server = serve(lambda body, seen: answer("Fold it. " * 200))
        # A process of its own: the disk can be unmounted when it has ended.
        done = run(ALIGN, *ARGS, cwd=disk, url=server.url, own_process=True)
        assert done.returncode == 1, done.stderr
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert "no room left" in line
        assert "Traceback" not in done.stderr
        sent = len(server.requests)
        assert len(keys(disk / "o.answers.jsonl")) == sent
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        done = run(ALIGN, *ARGS, cwd=disk, url=server.url, own_process=True)
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == 300
        assert len(read_csv(disk / "o.csv")) == 300
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_the_input_is_never_written_over_or_removed(serve: Serve, tmp_path: Path) -> None:
    """Not by any of the files that belong to an output."""
    server = serve(fine)
    for name in ("o_failed.csv", "o.partial.csv", "o_rejected.csv", "o.csv.tmp", "o.csv"):
        rows = prompts_csv(tmp_path / name, 3).read_bytes()
        split = ["--merge_result=False"] if name == "o_rejected.csv" else []
        args = ["--model=gpt-x", f"--input_file={name}", OUT, *split]
        done = run(ALIGN, *args, cwd=tmp_path, url=server.url)
        assert done.returncode == 1
        assert "is an input and would be written over" in done.stderr
        assert (tmp_path / name).read_bytes() == rows
    assert server.requests == []


def test_an_output_is_a_csv_file_and_a_link_is_followed(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    url = serve(fine).url
    for output in ("o.answers.jsonl", "o.txt", "x" * 300 + ".csv"):
        args = ("--model=gpt-x", "--input_file=p.csv", f"--output_path={output}")
        done = run(ALIGN, *args, cwd=tmp_path, url=url)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    (tmp_path / "there").mkdir()
    (tmp_path / "o.csv").symlink_to(tmp_path / "there" / "real.csv")
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=url).returncode == 0
    assert (tmp_path / "o.csv").is_symlink()
    assert len(read_csv(tmp_path / "there" / "real.csv")) == 2


def test_a_link_in_the_place_of_a_part_is_followed(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    (tmp_path / "there").mkdir()
    (tmp_path / "o_accepted.csv").symlink_to(tmp_path / "there" / "real.csv")
    done = run(ALIGN, *ARGS, "--merge_result=False", cwd=tmp_path, url=serve(fine).url)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o_accepted.csv").is_symlink()
    assert len(read_csv(tmp_path / "there" / "real.csv")) == 2
    assert read_record(tmp_path / "there" / "real.csv")["part"] == "accepted"


def test_two_keyword_runs_on_one_output_do_not_mix(tmp_path: Path) -> None:
    import fcntl

    write_csv(tmp_path / "r.csv", ("prompt", "response"), [("a", "Here is how.")])
    args = ("--check_model=keyword", "--input_file=r.csv", OUT)
    with (tmp_path / "o.csv.tmp").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        done = run(CHECK, *args, cwd=tmp_path)
        assert done.returncode == 1
        assert "another run is writing o.csv" in done.stderr
    assert run(CHECK, *args, cwd=tmp_path).returncode == 0


def test_rows_behind_many_bad_ones_are_reached_by_the_same_command(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 60)

    def reply(body: Body, seen: int) -> Reply:
        return error(400, "at fault") if number_of(body) < 25 else fine(body, seen)

    server = serve(reply)
    args = (*ARGS, "--concurrency=2")
    first = run(ALIGN, *args, cwd=tmp_path, url=server.url)
    assert first.returncode == 1
    assert len(read_csv(tmp_path / "o_failed.csv")) < 25  # those that failed, not the rest
    done = run(ALIGN, *args, cwd=tmp_path, url=server.url)
    assert done.returncode == 3, done.stderr
    assert len(read_csv(tmp_path / "o.csv")) == 35


def test_rows_that_were_only_not_asked_buy_no_patience(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 400)
    server = serve(
        lambda body, seen: error(400, "at fault") if number_of(body) else fine(body, seen)
    )
    args = (*ARGS, "--concurrency=2")
    run(ALIGN, *args, "--limit=1", cwd=tmp_path, url=server.url)
    done = run(ALIGN, *args, "--from_log", cwd=tmp_path, url=server.url)
    assert done.returncode == 3
    assert len(read_csv(tmp_path / "o_failed.csv")) == 399
    done = run(ALIGN, *args, cwd=tmp_path, url=server.url)
    assert done.returncode == 1
    assert len(server.requests) <= 23


def test_a_stage_that_plans_again_does_not_grow_patient_with_its_own_failures(
    serve: Serve, tmp_path: Path
) -> None:
    """Stage 1: of the first requests one in two fails, of those planned after them each."""

    def reply(body: Body, seen: int) -> Reply:
        return error(400) if seen % 2 or seen >= 20 else answer(f"[[Take biscuit {seen}]]")

    server = serve(reply)
    done = run(GENERATE, "--category=hate", "--model=gpt-x", cwd=tmp_path, url=server.url)
    assert done.returncode == 1, done.stderr
    assert "20 requests in a row failed" in done.stderr


def test_bad_rows_here_and_there_never_stop_a_run(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 120)
    server = serve(
        lambda body, seen: fine(body, seen) if number_of(body) % 4 else error(400, "at fault")
    )
    done = run(ALIGN, *ARGS, "--concurrency=2", cwd=tmp_path, url=server.url)
    assert done.returncode == 3, done.stderr
    assert len(read_csv(tmp_path / "o.csv")) == 90
    assert len(read_csv(tmp_path / "o_failed.csv")) == 30


def test_first_rows_that_always_fail_keep_no_other_from_being_asked(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 10)
    server = serve(
        lambda body, seen: error(500) if "number 0?" in prompt_of(body) else fine(body, seen)
    )
    args = (*ARGS, "--max_retries=0", "--concurrency=1")
    for requests in (10, 11):  # again: just the row that failed
        done = run(ALIGN, *args, cwd=tmp_path, url=server.url)
        assert done.returncode == 3, done.stderr
        assert len(read_csv(tmp_path / "o.csv")) == 9
        assert len(server.requests) == requests


def test_no_request_starts_after_an_interrupt(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 50)
    server = serve(lambda body, seen: answer("hm"), latency=0.5)
    args = ("--moderator_model=gpt4", "--input_file_path=p.csv", "--concurrency=8")
    process = start(MODERATE, *args, cwd=tmp_path, url=server.url)
    wait_for(server, 8)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert len(server.requests) == 8


def test_an_input_that_changes_while_a_run_goes_is_no_result(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 10)

    def reply(body: Body, seen: int) -> Reply:
        prompts_csv(tmp_path / "p.csv", 11)
        return fine(body, seen)

    server = serve(reply)
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert done.returncode == 1
    assert "p.csv changed while the run went" in done.stderr
    assert not (tmp_path / "o.csv").exists()
    assert run(ALIGN, *ARGS, cwd=tmp_path, url=server.url).returncode == 0
    assert len(server.requests) == 11


def test_a_split_files_record_says_that_it_is_a_part(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 4)
    args = (*ARGS, "--merge_result=False")
    assert run(ALIGN, *args, cwd=tmp_path, url=serve(fine).url).returncode == 0
    assert read_record(tmp_path / "o_accepted.csv")["part"] == "accepted"
    assert not (tmp_path / "o.run.json").exists()
    done = run(CHECK, "--check_model=keyword", "--input_file=o_accepted.csv", cwd=tmp_path)
    record = read_record(tmp_path / done.stdout.strip())
    assert record["part_of_input"] == "accepted"
    assert record["under_test"] == {
        "asked": "gpt-x",
        "id": "gpt-x",
        "family": "",
        "state": "",
    }


def test_a_record_that_is_broken_stops_nothing(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 1)
    url = serve(fine).url
    for text in ('{"stage": 1, "rounds": [], "complete": true}', "[" * 100_000, "[]", "\x00"):
        (tmp_path / "o.run.json").write_text(text)
        (tmp_path / "p.run.json").write_text(text)
        assert run(ALIGN, *ARGS, cwd=tmp_path, url=url).returncode == 0


# -- before and during a run ------------------------------------------------------------------


def test_a_dry_run_sends_nothing_and_needs_no_key(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 10)
    server = serve(fine)
    run(ALIGN, *ARGS, "--limit=4", cwd=tmp_path, url=server.url)
    log = (tmp_path / "o.answers.jsonl").read_bytes()
    prices = ("--price_in=2", "--price_out=10")
    env = {"OPENAI_BASE_URL": server.url}
    done = run(ALIGN, *ARGS, *prices, "--dry_run", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (0, "")
    assert "requests: 10, of which 4 are answered in the log" in done.stderr
    assert "to send: 6" in done.stderr
    assert "tokens out: at most 6,000" in done.stderr
    assert "cost of the tokens out: at most 0.06" in done.stderr
    assert "How do I fold paper bird number 4?" in done.stderr
    assert len(server.requests) == 4
    assert (tmp_path / "o.answers.jsonl").read_bytes() == log


def test_from_log_writes_what_is_answered_and_sends_nothing(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 10)
    server = serve(fine)
    run(ALIGN, *ARGS, "--limit=4", cwd=tmp_path, url=server.url)
    env = {"OPENAI_BASE_URL": server.url}
    done = run(ALIGN, *ARGS, "--from_log", cwd=tmp_path, env=env)
    assert done.returncode == 3
    assert len(read_csv(tmp_path / "o.csv")) == 4
    failed = read_csv(tmp_path / "o_failed.csv")
    assert [row["error_type"] for row in failed] == ["not_asked"] * 6
    assert len(server.requests) == 4


def test_limit_takes_the_first_rows(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 10)
    done = run(ALIGN, *ARGS, "--limit=3", cwd=tmp_path, url=serve(fine).url)
    assert done.returncode == 0
    assert [row["prompt"][-2] for row in read_csv(tmp_path / "o.csv")] == ["0", "1", "2"]


def test_people_can_look_into_a_long_run(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2000)
    server = serve(fine, latency=0.05)
    process = start(ALIGN, *ARGS, "--concurrency=4", cwd=tmp_path, url=server.url)
    partial = tmp_path / "o.partial.csv"
    end = time.monotonic() + 30
    while not partial.exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    rows = read_csv(partial)
    assert rows and rows[0]["response"].startswith("About How do I fold")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert not partial.exists()


def test_the_run_record_says_how_a_number_came_about(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 5)
    server = serve(fine)
    prices = ("--price_in=1", "--price_out=1000")
    done = run(ALIGN, *ARGS, *prices, cwd=tmp_path, url=server.url)
    assert "tokens in 50, out 25 · cost 0.0250" in done.stderr or "cost 0.0251" in done.stderr
    record = read_record(tmp_path / "o.csv")
    assert record["stage"] == "alignment_checker"
    assert record["under_test"]["asked"] == "gpt-x"
    (model,) = record["models"]
    assert (model["asked"], model["returned"]) == ("gpt-x", ["loopback-1"])
    assert model["endpoint"] == server.url
    assert record["parameters"]["max_tokens"] == 1000
    assert record["input"]["rows"] == 5
    assert record["counts"]["done"] == 5
    assert record["tokens"] == {
        "prompt": 50,
        "cached": 0,
        "completion": 25,
        "reasoning": 0,
    }
    assert record["complete"] is True
    assert {"python", "openai"} <= set(record["versions"])
    assert record["start"] <= record["end"]
    assert len(record["input"]["sha256"]) == 64


@pytest.mark.parametrize("unit", ["row", "prompt"])
def test_progress_fits_a_terminal_and_counts_in_english(unit: str) -> None:
    progress = Progress("alignment_checker", 80_359, quiet=True, unit=unit)
    progress.advance(79_345)
    progress.failed, progress.retries = 1_312, 12_170
    line = progress.line(60.0)
    assert line == (
        f"79,345 of 80,359 {unit}s, 1322.4/s, 0 min left, 1,312 failed, 12,170 sent again"
    )
    assert len(line) <= 80
    one = Progress("alignment_checker", 1, quiet=True, unit=unit)
    assert one.line(30.0) == f"0 of 1 {unit}, 0.0/s"
    slow = Progress("toxic_prompt_generator", 2_000, quiet=True, unit=unit, done=100)
    slow.done()  # a request, which is not what is counted
    slow.skip(5)
    slow.advance(19)
    assert slow.line(31.0) == f"119 of 2,000 {unit}s, 0.6/s, 51 min left"
    slow.advance(-18)
    assert slow.line(31.0).endswith("16 h left")


def test_the_bar_fits_80_columns_and_never_counts_seconds_a_row() -> None:
    script = (
        "import time\n"
        "from orbench.run import Progress\n"
        "progress = Progress('toxic_prompt_generator', 80359, quiet=False, unit='prompt')\n"
        "for _ in range(5):\n"
        "    time.sleep(0.15)\n"
        "    progress.retries += 1\n"
        "    progress.failed += 1\n"
        "    progress.done()\n"
        "progress.say('a line')\n"
        "progress.close()\n"
    )
    env = environment(PYTHONPATH=str(ROOT))
    said = in_terminal([sys.executable, "-c", script], Path.cwd(), env)
    shown = [part.rstrip() for part in re.split(r"[\r\n]", said) if part.strip()]
    assert "a line" in shown
    assert all(len(part) <= 80 for part in shown), shown
    assert re.search(r"^5/80,359 \|.*\d prompts/s, .* left, 5 failed, 5 sent again$", shown[-1])
    assert not any("s/ " in part for part in shown)


def test_progress_is_quiet_where_stderr_is_no_terminal(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 50)
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=serve(fine).url)
    assert "\r" not in done.stderr
    assert len(done.stderr.splitlines()) < 8


def test_model_text_cannot_write_to_the_terminal(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 30)
    server = serve(lambda body, seen: error(400, "\x1b[2J\x1b]0;gotcha\x07\nnext line"))
    done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr


def test_help_and_a_wrong_command_line_import_nothing_heavy(tmp_path: Path) -> None:
    import sys

    from tests.conftest import ROOT, STAGES

    for script in STAGES:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", str(ROOT / script), "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        imported = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
        assert not imported & {"openai", "pandas", "numpy", "aiohttp", "tqdm", "dotenv"}


def test_the_log_and_the_record_are_json(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 3)
    run(ALIGN, *ARGS, cwd=tmp_path, url=serve(fine).url)
    for line in (tmp_path / "o.answers.jsonl").read_text().splitlines():
        assert set(json.loads(line)) >= {"key", "text", "time", "finish_reason", "model"}
    assert os.access(tmp_path / "o.run.json", os.R_OK)


# -- how often a request is asked -----------------------------------------------------------------


def test_a_new_row_beside_old_unreadable_ones_is_asked_three_times(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(lambda body, seen: answer("I would rather not choose."))
    args = ("--moderator_model=gpt4", "--input_file_path=p.csv", OUT)
    prompts_csv(tmp_path / "p.csv", 1)
    for requests in (3, 6, 9):
        assert run(MODERATE, *args, cwd=tmp_path, url=server.url).returncode == 1
        assert len(server.requests) == requests
    prompts_csv(tmp_path / "p.csv", 2)
    assert run(MODERATE, *args, cwd=tmp_path, url=server.url).returncode == 1
    assert len(server.requests) == 9 + 3 + 3
    asked = Counter(prompt_of(body) for body in server.requests)
    assert sorted(asked.values()) == [3, 12]


def test_an_answer_that_is_all_thinking_is_asked_for_again_by_the_next_run(
    serve: Serve, tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        return fine(body, seen) if seen else answer("<think>hm</think>")

    prompts_csv(tmp_path / "p.csv", 2)
    server = serve(reply)
    for status, requests in ((1, 2), (0, 4)):
        assert run(ALIGN, *ARGS, cwd=tmp_path, url=server.url).returncode == status
        assert len(server.requests) == requests


def test_from_log_gives_no_verdict_where_a_judge_was_never_asked(
    serve: Serve, tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        return answer("[[7. illegal]]" if body["model"] == "b" else "[[11. None of the above]]")

    prompts_csv(tmp_path / "p.csv", 4)
    server = serve(reply)
    args = ("--input_file_path=p.csv", OUT)
    run(MODERATE, "--moderator_model=a,b", *args, cwd=tmp_path, url=server.url)
    for name in ("o.csv", "o.run.json"):  # as if it had been killed before its third judge
        (tmp_path / name).unlink()
    three = ("--moderator_model=a,b,c", *args)
    done = run(MODERATE, *three, "--from_log", cwd=tmp_path, url=server.url)
    assert done.returncode == 1, done.stderr
    assert "4 rows not asked yet" in done.stderr


def test_a_signal_while_a_run_is_set_up_keeps_it_from_asking(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Chat.open

    async def interrupted(self: Chat, model: Model) -> Any:
        client = await opened(self, model)
        os.kill(os.getpid(), signal.SIGINT)
        return client

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(Chat, "open", interrupted)
    server = serve(fine)
    model = resolve("gpt-x", base_url=server.url, environment={})
    log = AnswerLog(tmp_path / "o.answers.jsonl", write=True)
    one = Run()
    requests = [Request(model, [user(str(n))], {}) for n in range(9)]
    ask_all(iter(requests), [model], log, one, Limits(), Progress("", 0, quiet=True))
    log.close()
    assert (one.interrupted, server.requests) == (True, [])


def test_faults_in_the_second_round_of_questions_do_not_end_it(
    serve: Serve, tmp_path: Path
) -> None:
    unclear = answer("I would rather not choose.")
    server = serve(lambda body, seen: unclear)
    args = ("--moderator_model=gpt4", "--input_file_path=p.csv", OUT, "--max_retries=0")
    prompts_csv(tmp_path / "p.csv", 4)
    for reply, requests in ((unclear, 12), (error(500), 16), (unclear, 28), (unclear, 40)):
        server.reply = lambda body, seen, reply=reply: reply  # type: ignore[misc]
        assert run(MODERATE, *args, cwd=tmp_path, url=server.url).returncode == 1
        assert len(server.requests) == requests


def test_a_shard_asks_again_once_after_a_finished_run_however_often_it_runs(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(lambda body, seen: answer("I would rather not choose."))
    args = ("--moderator_model=gpt4", "--input_file_path=p.csv", OUT)
    prompts_csv(tmp_path / "p.csv", 3)
    run(MODERATE, *args, cwd=tmp_path, url=server.url)
    for _ in range(3):
        run(MODERATE, *args, "--shard=1/1", cwd=tmp_path, url=server.url)
        assert len(server.requests) == 9 + 9


def test_from_log_trusts_a_finished_run_only_for_its_own_rows(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda body, seen: answer("[[11. None of the above]]"))
    prompts_csv(tmp_path / "p.csv", 6)
    args = ("--input_file_path=p.csv", OUT)
    three = ("--moderator_model=a,b,c", *args)
    run(MODERATE, *three, "--limit=2", cwd=tmp_path, url=server.url)
    record = (tmp_path / "o.run.json").read_bytes()
    run(MODERATE, "--moderator_model=a,b", *args, "--overwrite", cwd=tmp_path, url=server.url)
    (tmp_path / "o.run.json").write_bytes(record)
    done = run(MODERATE, *three, "--from_log", cwd=tmp_path, url=server.url)
    assert done.returncode == 3
    assert len(read_csv(tmp_path / "o.csv")) == 2
    assert "4 rows not asked yet" in done.stderr


def test_from_log_goes_on_without_a_judge_that_the_run_went_on_without(
    serve: Serve, tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        return error(400) if body["model"] == "c" else answer("[[11. None of the above]]")

    prompts_csv(tmp_path / "p.csv", 30)
    three = ("--moderator_model=a,b,c", "--input_file_path=p.csv", OUT)
    server = serve(reply)
    run(MODERATE, *three, "--concurrency=2", cwd=tmp_path, url=server.url)
    assert [body["model"] for body in server.requests].count("c") < 30
    first = (tmp_path / "o.csv").read_bytes()
    record = read_record(tmp_path / "o.csv") | {"complete": False}  # as of a run that was stopped
    for _ in range(2):
        (tmp_path / "o.run.json").write_text(json.dumps(record))
        (tmp_path / "o.csv").unlink()
        done = run(MODERATE, *three, "--from_log", cwd=tmp_path, url=server.url)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "o.csv").read_bytes() == first


def test_an_error_that_repeats_is_shown_while_the_run_goes_on(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 12)

    def reply(body: Body, seen: int) -> Reply:
        if number_of(body) in (0, 1, 4):
            return error(400, "no tools here")
        return fine(body, seen)._replace(delay=8.0)

    server = serve(reply)
    process = start(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
    assert process.stderr
    lines = iter(process.stderr.readline, "")
    shown = next((line for line in lines if "no tools here" in line), "")
    assert process.poll() is None
    process.kill()
    process.communicate()
    assert shown == "gpt-x: the first failures say: 400: no tools here\n"


# -- what is counted, and what no restart forgets -------------------------------------------------


def test_the_record_counts_what_was_sent_again_reused_and_used(
    serve: Serve, tmp_path: Path
) -> None:
    rows = [(f"Fold bird number {n % 8}?", "x") for n in range(10)]  # two of them twice
    write_csv(tmp_path / "p.csv", ("prompt", "category"), rows)

    def reply(body: Body, seen: int) -> Reply:
        if "temperature" in body:
            said = "Unsupported value: 'temperature' does not support 0.0 with this model."
            return error(400, said, code="unsupported_value", param="temperature")
        if number_of(body) == 3 and seen < 2:
            return error(500)
        return error(400, "at fault") if number_of(body) == 5 else fine(body, seen)

    server = serve(reply)
    args = (*ARGS, "--concurrency=1")
    done = run(ALIGN, *args, "--limit=6", cwd=tmp_path, url=server.url)
    assert done.returncode == 3, done.stderr
    first = read_record(tmp_path / "o.csv")
    wanted = {"done": 5, "failed": 1, "unscored": 0, "remaining": 0, "written": 5, "reused": 0}
    wanted["empty"] = 0
    # six requests, one again without the parameter, two again after a 500
    assert first["counts"] == wanted | {"requests": 9, "retries": 2}
    assert first["tokens"] == {
        "prompt": 50,
        "cached": 0,
        "completion": 25,
        "reasoning": 0,
    }
    assert len(server.requests) == 9
    run(ALIGN, *args, cwd=tmp_path, url=server.url)
    second = read_record(tmp_path / "o.csv")["counts"]
    # 0, 0, 1, 1, 2, 3, 4 were there; 5, 6 and 7 are asked, and one of them twice
    assert second == wanted | {"done": 9, "written": 9, "reused": 7, "requests": 4, "retries": 0}


def test_the_budget_of_tokens_counts_those_of_the_answers(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    when: list[float] = []

    def reply(body: Body, seen: int) -> Reply:
        when.append(time.monotonic())
        usage = {"prompt_tokens": 10, "completion_tokens": 1500}
        choice = {"finish_reason": "stop", "message": {"content": "Fold it."}}
        return Reply(completion(choices=[choice], usage=usage))

    args = (*ARGS, "--tokens_per_minute=60000", "--concurrency=1")
    done = run(ALIGN, *args, cwd=tmp_path, url=serve(reply).url)
    assert done.returncode == 0, done.stderr
    assert when[1] - when[0] > 1.2  # 1,510 of 1,000 a second


def test_reading_the_log_anew_opens_no_other_paid_round(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda body, seen: answer("I would rather not choose."))
    args = ("--moderator_model=gpt4", "--input_file_path=p.csv", OUT)
    prompts_csv(tmp_path / "p.csv", 1)
    assert run(MODERATE, *args, cwd=tmp_path, url=server.url).returncode == 1
    (tmp_path / "o.run.json").unlink()  # as if it had been killed before it wrote that
    for _ in range(2):
        assert run(MODERATE, *args, "--from_log", cwd=tmp_path, url=server.url).returncode == 1
        (row,) = read_csv(tmp_path / "o_failed.csv")
        assert row["error_type"] == "unscored"
    assert run(MODERATE, *args, cwd=tmp_path, url=server.url).returncode == 1
    assert len(server.requests) == 3


def test_an_answer_that_was_cut_off_before_it_began_is_not_paid_for_again(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 2)
    texts = ["", "<think>Well, this"]
    server = serve(lambda body, seen: answer(texts[number_of(body)], "length"))
    for _ in range(3):
        done = run(ALIGN, *ARGS, cwd=tmp_path, url=server.url)
        assert done.returncode == 1
        assert {row["error_type"] for row in read_csv(tmp_path / "o_failed.csv")} == {"unscored"}
        assert len(server.requests) == 2


def test_one_odd_400_does_not_change_how_the_others_are_asked(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 12)

    def reply(body: Body, seen: int) -> Reply:
        if number_of(body) == 3:
            return error(400, "temperature is not supported", param="temperature")
        return fine(body, seen)

    server = serve(reply)
    done = run(ALIGN, *ARGS, "--concurrency=1", cwd=tmp_path, url=server.url)
    assert done.returncode == 3, done.stderr
    assert all({"temperature", "max_tokens"} <= set(body) for body in server.requests)
    assert len(server.requests) == 12
    assert read_record(tmp_path / "o.csv")["dropped_parameters"] == {}
