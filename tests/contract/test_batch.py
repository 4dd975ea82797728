"""`--batch`: requests through the batch services of OpenAI and Anthropic, on loopback."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from orbench.asking import batch
from tests.batch_server import BatchServer, MessageServer
from tests.conftest import ALIGN, MODERATE, Desk, wait_for
from tests.server import KEY, Body, Reply, Script, error, number_of, prompt_of

REJECTS = "Unsupported value: 'temperature' does not support 0.0 with this model."
PAGE = Reply("<html>busy</html>", content_type="text/html")
SOON = [("retry-after-ms", "1")]
EARLY = Reply(json.dumps({"id": "batch_1", "status": "completed", "output_file_id": None}))
STATE = "o.batches.json"
ENTRY = {"id": "b", "model": ["http://h/v1", "gpt-x"], "rejected": [], "keys": ["00"]}
SUBMIT = "--batch=submit"


def fold(body: Body, seen: int) -> str:
    return f"Folded: {prompt_of(body)}"


def message(text: str, reason: str = "end_turn", **members: Any) -> Reply:
    """An answer of Anthropic's messages."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": text}]
    data = {"type": "message", "model": "claude-x", "content": content, "usage": usage}
    return Reply(json.dumps({**data, "stop_reason": reason, **members}))


def failing(status: int, kind: str) -> Reply:
    """An error of Anthropic's."""
    return Reply(
        json.dumps({"type": "error", "error": {"type": kind, "message": "no max_tokens"}}), status
    )


def at_first(*replies: Reply, then: Callable[[Body, int], Reply | str] = fold) -> Script:
    """What the first prompts get at first."""

    def reply(body: Body, seen: int) -> Reply | str:
        number = number_of(body)
        return replies[number] if number < len(replies) and not seen else then(body, seen)

    return reply


Start = Callable[..., BatchServer]


@pytest.fixture
def start(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Write n prompts, and start a service that answers so."""
    monkeypatch.setattr(batch, "POLL_S", 0.0)
    monkeypatch.setattr(batch, "RETRIES", 2)
    with ExitStack() as stack:

        def started(
            reply: Script = fold, n: int = 4, kind: type[BatchServer] = BatchServer
        ) -> BatchServer:
            desk.prompts(n)
            server = stack.enter_context(kind(reply))
            desk.server, desk.url = server, server.url
            return server

        yield started


def under_way(desk: Desk) -> int:
    """How many requests are in batches."""
    return sum(len(one.keys) for one in batch.read_batches(desk.folder / STATE))


def test_a_run_that_does_not_wait_submits_once_and_collects_later(desk: Desk, start: Start) -> None:
    server = start()
    server.ends("in_progress")
    for _ in range(2):
        assert desk.stage(ALIGN, SUBMIT).stdout == ""
        assert under_way(desk) == 4
    assert KEY not in desk.text(STATE)
    server.ends("completed")
    desk.stage(ALIGN, SUBMIT)
    assert desk.tally() == "4 rows, 0 sent" and server.sizes == [4]
    assert STATE not in desk.files()


def test_what_is_ready_is_collected_while_another_batch_is_under_way(
    desk: Desk, start: Start
) -> None:
    server = start("[[none]]")
    server.ends("completed", "in_progress")
    for _ in range(2):
        desk.stage(MODERATE, "--moderator_model=gpt-x,gpt-y", SUBMIT)
    assert server.sizes == [4, 4] and under_way(desk) == 4
    assert desk.text("o.answers.jsonl").count("\n") == 4


def test_unreadable_answers_are_asked_for_in_another_batch(desk: Desk, start: Start) -> None:
    def reply(body: Body, seen: int) -> str:
        is_odd = number_of(body) == 2 and len(body["messages"]) == 1
        return "Hm." if is_odd else "[[none]]"

    server = start(reply)
    desk.stage(MODERATE, "--batch")
    assert desk.tally() == "4 rows, 0 sent" and server.sizes == [4, 1]


def test_what_expired_goes_into_the_next_batch(desk: Desk, start: Start) -> None:
    server = start()
    server.ends("expired", "completed")
    done = desk.stage(ALIGN, "--batch")
    assert desk.tally() == "4 rows, 0 sent" and server.sizes == [4, 2]
    counts = desk.record()["counts"]
    assert (counts["requests"], counts["retried"]) == (6, {"unanswered": 2})
    line = "batch batch_1 is expired: 4 requests, 2 without a result are sent again"
    assert line in done.stderr


def test_error_results_mean_what_they_mean_live(desk: Desk, start: Start) -> None:
    odd, blocked = error(400, "too odd"), error(400, "blocked", code="content_filter")
    server = start(at_first(odd, blocked, error(500)))
    desk.stage(ALIGN, "--batch", status=3)
    assert desk.cells("error_type error", "o_failed.csv") == ["bad_request 400: too odd"]
    assert list(map(number_of, desk.rows())) == [1, 2, 3]
    assert desk.cells("rejection_reason") == ["api:content_filter", "", ""]
    assert server.sizes == [4, 1]


@pytest.mark.parametrize(("flag", "over"), [("--batch", [3]), (SUBMIT, [0, 1, 2, 3])])
def test_rejected_parameters_are_left_out_of_the_next_batches_and_noted(
    desk: Desk, start: Start, flag: str, over: list[int]
) -> None:
    def reply(body: Body, seen: int) -> Reply | str:
        for name in ("max_tokens", "temperature"):
            if name in body:
                return error(400, f"Unsupported parameter: '{name}'", param=name)
        return fold(body, seen)

    server = start(reply)
    for number in over:  # the next run knows what the last one learned
        server.ends(*["completed"] * number, "in_progress")
        desk.stage(ALIGN, flag)
    assert server.sizes == [4, 4, 4]
    for body in server.bodies["batch_3"].values():
        assert body["max_completion_tokens"] == 1000 and "temperature" not in body
    assert desk.record()["models"][0]["left_out_parameters"] == {"temperature": 4}


def test_each_model_of_a_run_rejects_parameters_of_its_own(desk: Desk, start: Start) -> None:
    def reply(body: Body, seen: int) -> Reply | str:
        is_odd = body["model"] == "gpt-y" and "temperature" in body
        said = "[[none]]" * bool(number_of(body) or body["messages"][1:])
        return error(400, REJECTS, param="temperature") if is_odd else said

    server = start(reply)
    desk.write(STATE, json.dumps([ENTRY]))
    desk.stage(MODERATE, "--moderator_model=gpt-x,gpt-y", "--batch")
    assert server.sizes == [4, 4, 1, 4, 1]
    assert "//h/" in desk.text(STATE)  # that is another run's
    left_out = [model["left_out_parameters"] for model in desk.record()["models"]]
    assert left_out == [{}, {"temperature": 4}]


def test_a_model_that_answers_does_not_reject_its_parameters(desk: Desk, start: Start) -> None:
    server = start(at_first(error(400, REJECTS, param="temperature")))
    desk.stage(ALIGN, "--batch", status=3)
    assert desk.tally() == "3 rows, bad_request 1, 0 sent" and server.sizes == [4]


def test_a_run_stops_after_a_batch_without_any_result(desk: Desk, start: Start) -> None:
    server = start()
    server.ends("failed")
    line = desk.stopped(ALIGN, "--batch")
    assert "the last batch had no result (failed: " in line and "by order of [key]" in line
    assert server.sizes == [4] and STATE not in desk.files()


def test_a_request_that_always_fails_stops_the_run_and_costs_no_other_answer(
    desk: Desk, start: Start
) -> None:
    broken = error(500, "broken")
    server = start(lambda body, seen: broken if number_of(body) == 1 else fold(body, seen))
    assert "500: broken" in desk.stage(ALIGN, "--batch", status=1).stderr
    assert len(desk.rows()) == 3 and server.sizes == [4, 1]


def test_a_batch_is_no_larger_than_the_service_takes(
    desk: Desk, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "LARGEST_BATCH", 3)
    server = start(n=8)
    desk.stage(ALIGN, "--batch")
    assert desk.tally() == "8 rows, 0 sent" and server.sizes == [3, 3, 2]


def test_faults_that_can_pass_are_retried_unless_a_second_batch_could_come_of_it(
    desk: Desk, start: Start
) -> None:
    server = start()
    for step in ("upload", "retrieve", "content"):
        busy = [error(503, "busy", headers=SOON), error(429, "slow down", headers=SOON)]
        server.refuse[step] = busy
    desk.stage(ALIGN, "--batch")
    desk.prompts(5)
    server.refuse = {"create": [Reply("{}", fault="drop")]}
    done = desk.stage(ALIGN, "--batch", status=1)
    assert "if there is a new batch at the provider, cancel it" in done.stderr
    assert server.steps.count("create") == 2


@pytest.mark.parametrize(
    ("step", "reply", "line"),
    [
        ("upload", error(401, "Incorrect API key"), "rejected the key in OPENAI_API_KEY"),
        ("upload", error(404, "Not Found"), "the batch service of openai fails: 404: Not Found"),
        ("create", PAGE, "a gateway's page"),
        ("create", error(429, "no", code="insufficient_quota"), "no quota left"),
        ("create", error(400, "Billing limit"), "400: Billing limit"),
        ("retrieve", error(404, f"No batch {KEY}"), "404: No batch [key]"),
        ("retrieve", error(500, f"oops {KEY}", headers=SOON), "500: oops [key]; rerun to collect"),
        ("retrieve", EARLY, "results of batch batch_1 cannot be read"),
        ("content", PAGE, "results of batch batch_1 cannot be read"),
    ],
)
def test_a_service_that_refuses_stops_the_run_in_one_line(
    desk: Desk, start: Start, step: str, reply: Reply, line: str
) -> None:
    server = start()
    server.refuse = {step: [reply] * 5}
    done = desk.stage(ALIGN, "--batch", status=1)
    assert line in done.stderr.splitlines()[-1] and KEY not in done.stderr
    server.refuse = {}
    desk.stage(ALIGN, "--batch")
    assert desk.tally() == "4 rows, 0 sent" and server.sizes == [4]


def test_replies_with_the_content_type_of_text_are_read(
    desk: Desk, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BatchServer.do

    def do(server: BatchServer, *args: Any) -> Reply:
        return real(server, *args)._replace(content_type="text/plain")

    monkeypatch.setattr(BatchServer, "do", do)
    start()
    desk.stage(ALIGN, "--batch")


NEWER = json.dumps([{**ENTRY, "more": 1}])


@pytest.mark.parametrize("content", ["{", "{}", "[{}]", "7", NEWER])
def test_a_state_file_that_cannot_be_read_stops_and_is_kept(
    desk: Desk, start: Start, content: str
) -> None:
    server = start()
    desk.write(STATE, content)
    assert "cannot be read" in desk.stopped(ALIGN, "--batch")
    assert desk.text(STATE) == content and not server.steps


def test_message_batches_are_batches_too(desk: Desk, start: Start) -> None:
    refusal = message("", "refusal", stop_details={"category": "bio"})
    replies = at_first(
        refusal,
        failing(529, "overloaded_error"),
        failing(400, "invalid_request_error"),
        then=lambda body, seen: message("Folded."),
    )
    server = start(replies, 6, MessageServer)
    server.ends("expired", "completed")
    flags = ("--batch", "--model=anthropic/claude-x", "--system_prompt=Be kind.", "--random_seed=1")
    server.refuse = {"content": [PAGE]}
    desk.stage(ALIGN, *flags, status=1)
    desk.stage(ALIGN, *flags, status=3)
    assert desk.cells("error", "o_failed.csv") == ["400: no max_tokens"]
    assert desk.cells("api_category response") == ["bio ", *[" Folded."] * 4]
    assert server.sizes == [6, 4]
    (body, *_) = server.bodies["batch_1"].values()
    assert body["system"] == "Be kind." and "seed" not in body


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_ends_while_it_waits_is_resumed(desk: Desk, number: signal.Signals) -> None:
    desk.prompts(3)
    with BatchServer(fold) as server:
        desk.server, desk.url = server, server.url
        server.ends("in_progress")
        process = desk.start(ALIGN, "--batch")
        wait_for(lambda: "retrieve" in server.steps)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        if number != signal.SIGKILL:
            assert (process.returncode, out) == (130, ""), err
            assert "the batches continue at the provider; rerun the same command" in err
        assert "3 requests are already in batches" in desk.stopped(ALIGN)
        assert "already in batches: 3" in desk.stage(ALIGN, "--batch", "--dry_run").stderr
        server.ends("completed")
        desk.stage(ALIGN, "--batch")
    assert desk.tally() == "3 rows, 0 sent" and server.sizes == [3]


def test_a_measurement_in_batches_writes_its_page_once_all_are_collected(desk: Desk) -> None:
    desk.prompts(3)
    flags = ("--model=gpt-x", "--prompts=p.csv", "--judge=gpt-judge", "--batch=submit")

    def play(body: Body, seen: int) -> str:
        return "[[direct_answer]]" if body["model"] == "gpt-judge" else "Fold it."

    pages = list[str]()
    with BatchServer(play) as server:
        server.outcome = lambda n: "completed" if n <= len(pages) else "in_progress"
        for _ in range(3):
            pages.append(desk.run("measure.py", *flags, url=server.url).stdout)
    assert pages == ["", "", "results/results.html\n"]
    assert server.sizes == [3, 3]
    assert {body["max_tokens"] for body in server.requests} == {16}  # only endpoints were tried
