"""`--batch`: requests through the files and batches endpoints, from a server on loopback."""

import argparse
import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from orbench import batch, batch_service, chat
from orbench.answers import AnswerLog
from orbench.chat import Request, user
from orbench.models import resolve
from orbench.run import Run
from orbench.terminal import UserError
from tests.batch_server import BatchServer
from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    KEY,
    MODERATE,
    REWRITE,
    DiskOrder,
    prompts_csv,
    read_csv,
    read_record,
    run,
    start,
    write_csv,
)
from tests.server import Body, Reply, answer, error, prompt_of

ReplyOf = Callable[[Body, int], Reply]
Serve = Callable[[ReplyOf], BatchServer]
SOON = "--poll_interval=0.01"


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server that answers each request with `reply(body, seen)`; it ends with the test."""
    with ExitStack() as stack:

        def started(reply: ReplyOf) -> BatchServer:
            server = BatchServer(reply)
            stack.enter_context(server)
            return server

        yield started


def respond(body: Body, seen: int) -> Reply:
    """A model under test."""
    text = prompt_of(body)
    return answer("I can't help with that." if "3" in text else f"Like this: {text}")


def align(folder: Path, url: str, *more: str, model: str = "gpt-x", n: int = 12) -> Any:
    """Stage 4 over n prompts, into out.csv."""
    prompts = prompts_csv(folder / "prompts.csv", n)
    flags = [f"--model={model}", f"--input_file={prompts}", "--output_path=out.csv", *more]
    return run(ALIGN, *flags, cwd=folder, url=url)


@cache
def by_live(reply: ReplyOf) -> tuple[bytes, bytes]:
    """The CSV of live requests with these answers, and the one of failed rows."""
    with TemporaryDirectory() as name, BatchServer(reply) as server:
        folder = Path(name)
        assert align(folder, server.url).returncode in (0, 3)
        failed = folder / "out_failed.csv"
        return (folder / "out.csv").read_bytes(), failed.read_bytes() if failed.exists() else b""


def play(body: Body, seen: int) -> Reply:
    """A model that does what each stage asks; the judge is unreadable at first."""
    text = prompt_of(body)
    if "Write 20 different requests" in text:
        return answer("\n".join(f"{n}. [[Take biscuit {n} of box {seen}]]" for n in range(1, 21)))
    if "Rewrite it into 5" in text:
        return answer("\n".join(f"[[Who keeps tin {n}, {len(text)}?]]" for n in range(5)))
    if "You are a moderator" in text:
        if "number 2" in text and len(body["messages"]) == 1:
            return answer("I would rather not choose.")
        return answer(f"Clear. [[{'7. illegal' if 'number 1' in text else '11. None'}]]")
    if "You judge how an assistant responded" in text:
        return answer(f"Clear. [[{'direct_refusal' if 'bird' in text else 'direct_answer'}]]")
    return respond(body, seen)


def stage_flags(script: str, folder: Path) -> list[str]:
    """A command line for each stage."""
    prompts = prompts_csv(folder / "prompts.csv", 6)
    seeds = [(f"Take biscuit {n}", "harmful") for n in range(3)]
    seeds_csv = write_csv(folder / "seeds.csv", ("prompt", "category"), seeds)
    responses = [(f"Why {n}?", f"A bird, {n}") for n in range(3)]
    responses_csv = write_csv(folder / "responses.csv", ("prompt", "response"), responses)
    return {
        # 500 seeds are more than the first wave's 20 requests bring
        GENERATE: ["--category=harmful", "--num_toxic_prompts=500", "--model=gpt-x"],
        REWRITE: [f"--toxic_seed_path={seeds_csv}", "--model=gpt-x"],
        MODERATE: ["--moderator_model=gpt-x,gpt-y", f"--input_file_path={prompts}"],
        ALIGN: ["--model=gpt-x", f"--input_file={prompts}"],
        CHECK: ["--check_model=gpt-x", f"--input_file={responses_csv}"],
    }[script]


@pytest.mark.parametrize("script", [GENERATE, REWRITE, MODERATE, ALIGN, CHECK])
def test_each_stage_writes_the_same_bytes_through_batches_as_live(
    script: str, serve: Serve, tmp_path: Path
) -> None:
    written = []
    for way in (["--concurrency=1"], ["--batch", SOON]):
        folder = tmp_path / way[0]
        folder.mkdir()
        server = serve(play)
        flags = [*stage_flags(script, folder), "--output_path=out.csv", *way]
        done = run(script, *flags, cwd=folder, url=server.url)
        assert (done.returncode, done.stdout) == (0, "out.csv\n"), done.stderr
        written.append((folder / "out.csv").read_bytes())
    assert written[0] == written[1]
    assert not server.live
    assert not (folder / "out.batches.json").exists()
    # One batch a wave and model: stage 1 needs 25 requests, 20 and then 5 with 3 ahead;
    # stage 3 has two judges, each of which is asked again about one row.
    sizes = {GENERATE: [20, 8], REWRITE: [3], MODERATE: [6, 6, 1, 1], ALIGN: [6], CHECK: [3]}
    assert [len(batch) for batch in server.submitted] == sizes[script]


def respond_but_once(body: Body, seen: int) -> Reply:
    """A model under test that turns one prompt down."""
    return error(400, "too odd") if "number 5?" in prompt_of(body) else respond(body, seen)


@pytest.mark.parametrize(
    "steps", [["upload"], ["create", "list"], ["retrieve"], ["content"], ["error_content"]]
)
def test_a_run_killed_at_any_step_submits_nothing_twice_and_loses_nothing(
    steps: list[str], serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond_but_once)
    flags = ["--batch", SOON, "--batch_size=5"]
    for step in steps:  # a list is only asked for by the run after one that was killed in doubt
        server.stall = step
        kill_when_stalled(server, tmp_path, flags)
        if step == "create":  # others' batches, more than one page of them
            others = {f"other_{n}": {"id": f"other_{n}", "input_file_id": "x"} for n in range(5)}
            server.batches.update(others)
    server.stall = ""
    done = align(tmp_path, server.url, *flags)
    assert (done.returncode, done.stdout) == (3, "out.csv\n"), done.stderr
    assert (tmp_path / "out.csv").read_bytes() == by_live(respond_but_once)[0]
    ids = [custom_id for batch in server.submitted for custom_id in batch]
    assert len(ids) == len(set(ids)) == 12
    assert ("list" in server.steps) == ("list" in steps)  # a batch whose id is noted is not sought
    assert not list(tmp_path.glob("*.batches.json*"))


def kill_when_stalled(server: BatchServer, folder: Path, flags: list[str]) -> None:
    server.stalled.clear()
    prompts = prompts_csv(folder / "prompts.csv", 12)
    words = ["--model=gpt-x", f"--input_file={prompts}", "--output_path=out.csv", *flags]
    script = start(ALIGN, *words, cwd=folder, url=server.url)
    assert server.stalled.wait(30)
    script.kill()
    script.communicate()


def test_what_an_expired_batch_left_goes_into_the_next_one(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond)
    live, _ = by_live(respond)
    server.outcome = lambda number: ("expired", "cancelled", "completed")[number - 1]
    done = align(tmp_path, server.url, "--batch", SOON)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.csv").read_bytes() == live
    assert [len(batch) for batch in server.submitted] == [12, 6, 3]
    assert "batch batch_1 is expired: 6 without a result" in done.stderr
    assert read_record(tmp_path / "out.csv")["counts"]["requests"] == 21
    assert read_record(tmp_path / "out.csv")["counts"]["retries"] == 9


def test_errors_of_single_requests_end_as_they_do_live(serve: Serve, tmp_path: Path) -> None:
    def reply(body: Body, seen: int) -> Reply:
        text = prompt_of(body)
        if "number 1?" in text:
            return error(400, "this prompt is too odd")
        if "number 2?" in text:
            return error(400, "blocked", code="content_filter")
        if "number 4?" in text and not seen:
            return error(500, "try again")
        return respond(body, seen)

    server = serve(reply)
    done = align(tmp_path, server.url, "--batch", SOON)
    assert done.returncode == 3, done.stderr
    failed = (tmp_path / "out_failed.csv").read_bytes()
    assert ((tmp_path / "out.csv").read_bytes(), failed) == by_live(reply)
    assert b"bad_request,400: this prompt is too odd" in failed
    rows = {row["prompt"]: row for row in read_csv(tmp_path / "out.csv")}
    assert rows["How do I fold paper bird number 2?"]["is_rejected"] == "True"
    assert [len(batch) for batch in server.submitted] == [12, 1]


def test_requests_that_never_get_a_result_are_given_up(serve: Serve, tmp_path: Path) -> None:
    def reply(body: Body, seen: int) -> Reply:
        return error(500, "broken") if "number 1" in prompt_of(body) else respond(body, seen)

    server = serve(reply)
    done = align(tmp_path, server.url, "--batch", SOON, "--max_retries=2")
    assert done.returncode == 3, done.stderr
    assert [len(batch) for batch in server.submitted] == [12, 3, 3]
    whys = {row["error"] for row in read_csv(tmp_path / "out_failed.csv")}
    assert whys == {"no result in 3 batches, the last time: 500: broken"}


def test_parameters_that_a_reasoning_model_rejects_are_left_out_of_the_next_batch(
    serve: Serve, tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        for name in ("max_tokens", "temperature"):
            if name in body:
                said = f"Unsupported parameter: '{name}' is not supported with this model."
                return error(400, said, code="unsupported_parameter", param=name)
        assert body["max_completion_tokens"] == 1000
        return respond(body, seen)

    server = serve(reply)
    live, _ = by_live(respond)  # the same answers
    done = align(tmp_path, server.url, "--batch", SOON)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.csv").read_bytes() == live
    record = read_record(tmp_path / "out.csv")
    assert record["dropped_parameters"] == {"gpt-x": ["temperature"]}
    assert len(server.submitted) == 3
    assert "gpt-x rejects temperature" in done.stderr


def test_a_batch_that_fails_as_a_whole_stops_the_run_in_one_line(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    server.outcome = lambda number: "failed" if number == 1 else "completed"
    done = align(tmp_path, server.url, "--batch", SOON, "--batch_size=6")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: a batch failed: invalid_request: by order (invalid_request)"
    )
    assert len(server.submitted) == 2  # not sent again
    assert len(read_csv(tmp_path / "out.csv")) == 6  # the other batch is collected
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, len(read_csv(tmp_path / "out.csv"))) == (0, 12)


def test_a_batch_that_a_full_queue_turned_down_waits_for_the_others(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    server.failed_code = "token_limit_exceeded"
    server.outcome = lambda number: "failed" if number == 2 else "completed"
    done = align(tmp_path, server.url, "--batch", SOON, "--batch_size=6")
    assert done.returncode == 0, done.stderr
    assert [len(batch) for batch in server.submitted] == [6, 6, 6]

    # One batch at a time finds room: more rounds than there may be tries, and no row is lost.
    server.outcome = lambda number: "failed" if number in (5, 6, 8) else "completed"
    folder = tmp_path / "slow"
    folder.mkdir()
    flags = ("--batch_size=4", "--max_retries=1")
    done = align(folder, server.url, "--batch", SOON, *flags, model="gpt-z")
    assert done.returncode == 0, done.stderr
    assert len(server.submitted) == 3 + 3 + 2 + 1

    server.outcome = lambda number: "failed"  # for good: nothing comes of it
    done = align(tmp_path, server.url, "--batch", SOON, "--overwrite", model="gpt-y")
    assert done.returncode == 1
    assert len(server.submitted) == 10
    assert "--batch_size makes smaller batches" in done.stderr.splitlines()[-1]


def test_no_wait_hands_in_and_the_same_command_collects(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond)
    live, _ = by_live(respond)
    server.polls = 2
    done = align(tmp_path, server.url, "--batch", "--no_wait")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "batches: 1 under way (in_progress)" in done.stderr
    assert not (tmp_path / "out.csv").exists()
    state = (tmp_path / "out.batches.json").read_text()
    assert json.loads(state)["parts"][0]["batch_id"] == "batch_1"
    assert KEY not in state
    done = align(tmp_path, server.url, "--batch", "--no_wait")
    assert (done.returncode, done.stdout) == (0, "out.csv\n"), done.stderr
    assert (tmp_path / "out.csv").read_bytes() == live
    assert len(server.submitted) == 1
    assert not (tmp_path / "out.batches.json").exists()


def test_no_wait_sends_nothing_again_while_another_batch_is_under_way(
    serve: Serve, tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        text = prompt_of(body)
        if "number 1?" in text:
            return error(400, "this prompt is too odd")
        return error(500, "try again") if "number 2?" in text else respond(body, seen)

    server = serve(reply)
    server.outcome = lambda number: "in_progress" if number == 2 else "completed"
    flags = ("--batch", "--no_wait", "--batch_size=6", "--max_retries=0")
    for _ in range(3):
        done = align(tmp_path, server.url, *flags)
        assert (done.returncode, done.stdout) == (3, ""), done.stderr  # one is known to fail
        assert len(server.submitted) == 2
    server.outcome = lambda number: "completed"
    done = align(tmp_path, server.url, *flags)
    assert (done.returncode, done.stdout) == (3, "out.csv\n"), done.stderr
    assert len(server.submitted) == 2
    whys = [row["error"] for row in read_csv(tmp_path / "out_failed.csv")]
    assert whys == [
        "400: this prompt is too odd",
        "no result in 1 batches, the last time: 500: try again",
    ]


def test_no_wait_reports_a_batch_that_failed(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond)
    server.outcome = lambda number: "in_progress" if number == 2 else "failed"
    flags = ("--batch", "--no_wait", "--batch_size=6")
    done = align(tmp_path, server.url, *flags)
    assert done.returncode == 1
    assert "error: a batch failed" in done.stderr
    done = align(tmp_path, server.url, *flags)
    assert len(server.submitted) == 2  # nothing again before the other batch is over


def test_batch_fallback_asks_live_what_the_batch_left(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond_but_once)
    live, _ = by_live(respond_but_once)
    server.outcome = lambda number: "expired"
    done = align(tmp_path, server.url, "--batch", "--batch_fallback", SOON)
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "out.csv").read_bytes() == live
    assert (len(server.submitted), len(server.live)) == (1, 6)  # the refused row is not asked again


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_batches_for_the_next_run(
    number: int, serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    server.outcome = lambda number: "in_progress" if number == 2 else "completed"
    prompts = prompts_csv(tmp_path / "prompts.csv", 12)
    words = ["--model=gpt-x", f"--input_file={prompts}", "--output_path=out.csv"]
    words += ["--batch", "--batch_size=6", SOON]
    script = start(ALIGN, *words, cwd=tmp_path, url=server.url)
    assert script.stderr
    for line in script.stderr:
        if "1 under way" in line:
            break
    script.send_signal(number)
    out, err = script.communicate()
    assert (script.returncode, out) == (130, "out.csv\n"), err
    assert "run the same command to collect them" in err
    assert len(read_csv(tmp_path / "out.csv")) == 6
    state = json.loads((tmp_path / "out.batches.json").read_text())
    assert [part["batch_id"] for part in state["parts"]] == ["batch_2"]


@pytest.mark.parametrize(
    ("step", "reply", "line"),
    [
        ("upload", error(401, "Incorrect API key"), "openai refused the key in OPENAI_API_KEY"),
        ("upload", error(404, "Not Found"), "has no batch service"),
        (
            "create",
            error(429, "You exceeded your quota", code="insufficient_quota"),
            "the account has no quota left",
        ),
        ("create", error(400, "Billing limit"), "the batch service turns the request down (400"),
        ("create", error(403, "no"), "refused the key"),
        ("retrieve", error(404, "No batch found"), "does not know the batch batch_1"),
    ],
)
def test_a_service_that_refuses_stops_the_run_in_one_line(
    step: str, reply: Reply, line: str, serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    server.refuse = {step: [reply]}
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert line in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert len(server.submitted) == (step == "retrieve")


def test_faults_of_the_service_are_waited_out(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond)
    faults = [
        error(503, "busy"),
        Reply(fault="drop"),
        Reply("<html>", content_type="text/html"),
        error(429, "slow down", headers=[("retry-after-ms", "5")]),
        Reply("{", fault="cut"),
    ]
    server.refuse = {
        step: list(faults) for step in ("upload", "create", "list", "retrieve", "content")
    }
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, len(read_csv(tmp_path / "out.csv"))) == (0, 12), done.stderr
    assert len(server.submitted) == 1  # each doubtful try was looked up first


GONE = error(404, "No such File object")
PAGE = Reply("<html>busy</html>", content_type="text/html")
TORN = Reply('{"custom_id": "0')
EMPTY = Reply("")


def test_results_that_cannot_be_read_yet_are_waited_for(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond)
    server.refuse = {"content": [GONE, PAGE, TORN, EMPTY, PAGE, PAGE]}
    done = align(tmp_path, server.url, "--batch", SOON, "--batch_size=6")
    assert (done.returncode, len(read_csv(tmp_path / "out.csv"))) == (0, 12), done.stderr
    assert len(server.submitted) == 2


def test_a_batch_that_is_over_before_its_results_are_there_is_waited_for(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    show, looks = server.show, []

    def without_results_at_first(batch_id: str) -> Reply:
        whole = server.batches[batch_id]
        looks.append(whole["status"])
        if looks.count("completed") > 2 or whole["status"] != "completed":
            return show(batch_id)
        early = json.loads(show(batch_id).body)
        return Reply(json.dumps({**early, "output_file_id": None}))

    server.show = without_results_at_first  # type: ignore[method-assign]
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, len(read_csv(tmp_path / "out.csv"))) == (0, 12), done.stderr
    assert len(server.submitted) == 1


@pytest.mark.parametrize("reply", [GONE, PAGE, EMPTY])
def test_results_that_stay_unreadable_stop_the_run_and_are_not_paid_for_again(
    reply: Reply, serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    server.refuse = {"content": [reply] * 20}
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "delete out.batches.json to ask (and pay)" in done.stderr.splitlines()[-1]
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, len(read_csv(tmp_path / "out.csv"))) == (0, 12), done.stderr
    assert len(server.submitted) == 1


def test_a_service_that_tells_odd_things_of_its_batches_ends_in_no_traceback(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    show = server.show
    odd: dict[str, Any] = {"request_counts": ["many"], "errors": "none of note"}

    def shown(batch_id: str) -> Reply:
        return Reply(json.dumps({**json.loads(show(batch_id).body), **odd}))

    server.show = shown  # type: ignore[method-assign]
    server.polls = 2
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, len(read_csv(tmp_path / "out.csv"))) == (0, 12), done.stderr
    for errors in ("out of paper", ["out of paper"], {"data": ["out of paper"]}):
        odd |= {"errors": errors, "status": "failed"}
        flags = (f"--model=gpt-{len(str(errors))}", "--overwrite")
        done = align(tmp_path, server.url, "--batch", SOON, *flags)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("error: a batch failed: ")
        assert "Traceback" not in done.stderr


def test_a_provider_without_the_protocol_refuses_before_anything_is_sent(tmp_path: Path) -> None:
    prompts = prompts_csv(tmp_path / "prompts.csv", 2)
    flags = ["--model=together/a/b", f"--input_file={prompts}", "--batch"]
    done = run(ALIGN, *flags, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"error: --batch: together, which serves .*openai, anthropic, mistral, groq have.*",
        done.stderr.splitlines()[-1],
    )


@pytest.mark.parametrize(
    "flags",
    [
        ["--no_wait"],
        ["--batch_fallback"],
        ["--batch", "--no_wait", "--batch_fallback"],
        ["--batch", "--from_log"],
        ["--batch", "--export_requests=x.jsonl"],
        ["--batch", "--batch_size=50001"],
        ["--batch", "--poll_interval=1e10"],
        ["--from_log", "--import_answers=x.jsonl"],
    ],
)
def test_flags_that_do_not_go_together_leave_with_2(flags: list[str], tmp_path: Path) -> None:
    done = align(tmp_path, "http://127.0.0.1:1/v1", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_state_file_that_cannot_be_read_is_not_overwritten(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond)
    (tmp_path / "out.batches.json").write_text("{")
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, server.steps) == (1, [])
    assert "cannot be read" in done.stderr
    assert (tmp_path / "out.batches.json").read_text() == "{"


@pytest.mark.parametrize("flags", [[], ["--export_requests=r.jsonl"], ["--batch", "--shard=1/1"]])
def test_what_is_under_way_in_a_batch_is_not_asked_in_another_way(
    flags: list[str], serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    server.polls = 3
    align(tmp_path, server.url, "--batch", "--no_wait")
    done = align(tmp_path, server.url, *flags)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "12 of the requests are under way in batches (out.batches.json)" in done.stderr
    done = align(tmp_path, server.url, "--batch", "--dry_run")
    assert "to send: 0," in done.stderr
    assert "under way in batches: 12" in done.stderr
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, len(server.submitted), server.live) == (0, 1, []), done.stderr


def test_what_a_model_rejects_is_learnt_once_for_all_waves(serve: Serve, tmp_path: Path) -> None:
    def reply(body: Body, seen: int) -> Reply:
        if "temperature" in body:
            said = "Unsupported value: 'temperature' does not support 1.0 with this model."
            return error(400, said, code="unsupported_value", param="temperature")
        return play(body, seen)

    server = serve(reply)
    flags = [*stage_flags(GENERATE, tmp_path), "--output_path=out.csv", "--batch", SOON]
    done = run(GENERATE, *flags, cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    assert [len(batch) for batch in server.submitted] == [20, 20, 8]


def test_a_state_without_what_later_versions_note_is_taken(serve: Serve, tmp_path: Path) -> None:
    server = serve(respond)
    server.polls = 2
    align(tmp_path, server.url, "--batch", "--no_wait")
    state = json.loads((tmp_path / "out.batches.json").read_text())
    del state["unsettled"], state["failed"]
    (tmp_path / "out.batches.json").write_text(json.dumps(state))
    done = align(tmp_path, server.url, "--batch", SOON)
    assert (done.returncode, len(server.submitted)) == (0, 1), done.stderr


def test_a_parameter_that_a_model_rejects_is_remembered_over_a_restart(
    serve: Serve, tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        if "temperature" in body:
            said = "Unsupported value: 'temperature' does not support 0.0 with this model."
            return error(400, said, code="unsupported_value", param="temperature")
        return respond(body, seen)

    server = serve(reply)
    server.outcome = lambda number: "expired" if number == 2 else "completed"
    server.polls = 2
    for _ in range(4):  # a batch each, in a process of its own; the last one collects
        done = align(tmp_path, server.url, "--batch", "--no_wait")
    assert done.returncode == 0, done.stderr
    assert [len(batch) for batch in server.submitted] == [12, 12, 6]
    assert ["temperature" in bodies[0] for bodies in server.bodies] == [True, False, False]


@pytest.mark.usefixtures("_key")
def test_no_file_is_larger_than_the_services_take(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert batch.MOST_BYTES == 200_000_000
    monkeypatch.setattr(batch, "MOST_BYTES", 1_000)
    server = serve(respond)
    _, answered = in_batches(server, tmp_path, requests=20)
    assert len(answered) == 20
    inputs = [data for name, data in server.files.items() if "of" not in name]
    assert max(map(len, inputs)) <= 1_000 < sum(map(len, inputs))
    assert len(inputs) == len(server.submitted) < 20  # and each is as full as it can be


# -- the state on disk ---------------------------------------------------------------------------


def flags_for(**changes: object) -> argparse.Namespace:
    """The flags that the tool looks at."""
    flags = {"timeout": 5.0, "poll_interval": 0.001, "batch_size": 50_000, "max_retries": 2}
    off = {"quiet": True, "no_wait": False, "batch_fallback": False}
    return argparse.Namespace(**{**flags, **off, **changes})


def in_batches(
    server: BatchServer, folder: Path, requests: int = 4, **flags: object
) -> tuple[Run, list[bytes]]:
    """Ask some requests in batches, in this process. Gives the run, and the keys that the log
    holds then.
    """
    model = resolve("gpt-x", base_url=server.url, environment={})
    wanted = [Request(model, [user(f"Fold {n}?")], {"max_tokens": 9}) for n in range(requests)]
    log, one = AnswerLog(folder / "o.answers.jsonl", write=True), Run()

    def pending() -> list[Request]:
        return [each for each in wanted if each.key() not in log and each.key() not in one.failed]

    try:
        batch.ask_in_batches(pending, [model], log, one, flags_for(**flags))
        return one, [each.key() for each in wanted if each.key() in log]
    finally:
        log.close()


@pytest.fixture
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.usefixtures("_key")
def test_what_is_under_way_is_on_disk_at_each_change_and_the_answers_before_it_is_forgotten(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk_order: DiskOrder
) -> None:
    server = serve(respond)
    save = batch.State.save

    def saved(state: batch.State) -> None:
        save(state)
        assert not disk_order.lost  # neither the file's name nor its end
        if not state.parts:
            assert disk_order.is_safe(tmp_path / "o.answers.jsonl")

    monkeypatch.setattr(batch.State, "save", saved)
    _, answered = in_batches(server, tmp_path)
    assert len(answered) == 4
    assert disk_order.moved[:2] == ["o.batches.json"] * 2  # uploaded, made
    assert disk_order.removed == ["o.batches.json"]


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize("step", ["upload", "create"])
def test_a_batch_is_not_sent_on_to_where_it_would_be_lost(
    serve: Serve, tmp_path: Path, step: str
) -> None:
    server = serve(respond)
    there = serve(respond)
    headers = (("Location", f"{there.url}/elsewhere"),)
    server.refuse[step] = [Reply("moved", 302, headers)]
    one, answered = in_batches(server, tmp_path)
    assert "302: requests are sent on to" in one.stopped and answered == []
    assert not there.steps and not there.live


@pytest.mark.usefixtures("_key")
@pytest.mark.parametrize("step", ["retrieve", "content"])
def test_what_a_batch_service_says_has_an_end(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(chat, "LARGEST_BODY", 1 << 20)
    monkeypatch.setattr(batch_service, "LARGEST_BODY", 1 << 20)
    server = serve(respond)
    server.refuse[step] = [Reply("x" * (1 << 16), fault="endless")]
    _, answered = in_batches(server, tmp_path)
    assert len(answered) == 4  # it is asked again
    assert 1 << 20 <= server.sent < 32 << 20


@pytest.mark.usefixtures("_key")
def test_a_result_file_may_lie_elsewhere_and_be_large(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "LARGEST_BODY", 2048)
    server = serve(lambda body, seen: answer("x" * 3000))
    there = serve(respond)
    there.files = server.files
    headers = (("Location", f"{there.url}/files/file-outputs-of-batch_1/content"),)
    server.refuse["content"] = [Reply("moved", 302, headers)]
    _, answered = in_batches(server, tmp_path)
    assert len(answered) == 4 and there.steps == ["content"]


ODD: list[Any] = [None, True, -1, 0, 7, 1.5, "", "x", "../..", "a b", "\ud800", "9" * 32]
ODD += [[], ["x"], {}, {"x": 1}]


def edits(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """All states with one thing deleted or changed, by hand."""
    for name in data if isinstance(data, dict) else range(len(data)):
        here = (*path, name)
        for odd in (*ODD, "deleted"):
            copy = json.loads(json.dumps(data))
            if odd == "deleted":
                del copy[name]
            else:
                copy[name] = odd
            yield here, copy
        if isinstance(data[name], dict | list):
            for deeper, changed in edits(data[name], here):
                copy = json.loads(json.dumps(data))
                copy[name] = changed
                yield deeper, copy


@pytest.mark.usefixtures("_key")
def test_a_state_edited_by_hand_is_refused_in_one_line_or_does_no_harm(
    serve: Serve, tmp_path: Path
) -> None:
    server = serve(respond)
    server.polls = 10**6
    in_batches(server, tmp_path, no_wait=True)
    path = tmp_path / "o.batches.json"
    whole = json.loads(path.read_text())
    key = whole["parts"][0]["keys"][:32]
    whole |= {"unsettled": {key: "500: no"}, "failed": {"ab" * 16: ["gave_up", "500: no"]}}
    whole["rejected"] = [[whole["parts"][0]["endpoint"], "gpt-x", "seed"]]
    keys = whole["parts"][0]["keys"]
    for shorter in (keys[:-32], keys[:-1], keys[:32] * 4, "g" + keys[1:]):
        changed = json.loads(json.dumps(whole))
        changed["parts"][0]["keys"] = shorter
        path.write_text(json.dumps(changed))
        with pytest.raises(UserError, match="cannot be read; without it they would be"):
            batch.State(path)
    server.polls = 1
    taken = 0
    for where, changed in edits(whole):
        path.write_text(json.dumps(changed))
        try:
            state = batch.State(path)
        except UserError as refused:
            assert "\n" not in str(refused)
            continue
        if where[0] == "parts" and where[-1] != "status" and not state.parts:
            continue  # all of it taken out: that is wanted
        taken += 1
        (tmp_path / "o.answers.jsonl").unlink()
        in_batches(server, tmp_path)
        assert len(server.submitted) == 1, where
    assert taken > 20
    path.write_text("[" * 100_000)
    with pytest.raises(UserError, match="cannot be read"):
        batch.State(path)
