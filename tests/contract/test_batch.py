"""`--batch`: requests through the batch services of OpenAI and Anthropic, on loopback."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from orbench.asking import batch
from orbench.asking.inquiry import Inquiry, Reader, Run
from orbench.asking.log import AnswerLog
from orbench.base.messages import UserError
from orbench.models import requests
from orbench.models.providers import resolve
from orbench.models.requests import Answer, Missing, Request, user
from tests.batch_server import BatchServer, MessageServer
from tests.conftest import ALIGN, Desk
from tests.server import KEY, Body, Reply, Script, error, prompt_of

REJECTS = "Unsupported value: 'temperature' does not support 0.0 with this model."
PAGE = Reply("<html>busy</html>", content_type="text/html")
SOON = [("retry-after-ms", "1")]
EARLY = Reply(json.dumps({"id": "batch_1", "status": "completed", "output_file_id": None}))


def fold(body: Body, seen: int) -> str:
    return f"Folded: {prompt_of(body)}"


def message(text: str, reason: str = "end_turn", **members: Any) -> Reply:
    """An answer of Anthropic's messages."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": text}]
    data = {"type": "message", "model": "claude-x", "content": content, "usage": usage}
    return Reply(json.dumps({**data, "stop_reason": reason, **members}))


def failing(status: int, kind: str, said: str = "no") -> Reply:
    """An error of Anthropic's."""
    return Reply(json.dumps({"type": "error", "error": {"type": kind, "message": said}}), status)


class Twice(Reader):
    """Asks twice for an answer with an unreadable text."""

    asks = 2

    def __init__(self, unreadable: str | None) -> None:
        self.unreadable = unreadable

    def read(self, request: Request, answer: Answer) -> str | Missing:
        return Missing("unscored", "?") if answer.text == self.unreadable else answer.text


class Batched:
    """A run that asks each of its models to fold n things, again and again over one log."""

    def __init__(self, folder: Path, server: BatchServer, models: str, n: int = 4) -> None:
        self.folder, self.server, self.n = folder, server, n
        provider = "anthropic/" if isinstance(server, MessageServer) else ""
        self.models = [resolve(provider + name) for name in models.split(",")]
        self.state = folder / "o.batches.json"
        self.answers: list[Answer | None] = []  # of the first model
        self.unreadable: str | None = None  # an answer that is asked for once more

    def requests(self) -> list[Request]:
        values = {"max_tokens": 9, "temperature": 0.0, "seed": 1}
        turns = [
            [requests.message("system", "Be kind."), user(f"Fold {n}?")] for n in range(self.n)
        ]
        return [Request(model, turn, values) for model in self.models for turn in turns]

    def ask(self, wait: bool = True) -> Run:
        """Ask what is missing."""
        with AnswerLog(self.folder / "o.answers.jsonl", write=True) as log:
            asked = Run(Twice(self.unreadable), log, list(map(Inquiry, self.requests())))
            batch.ask_in_batches(self.models, asked, wait, self.state)
            self.answers = [log.get(one.key) for one in self.requests()[: self.n]]
        return asked

    def under_way(self) -> set[str]:
        """The keys of requests in batches, in hex."""
        return {key for one in batch.read_batches(self.state) for key in one.keys}

    @property
    def texts(self) -> list[str | None]:
        """The answers of the first model, None if there is none."""
        return [one and one.text for one in self.answers]

    @property
    def sizes(self) -> list[int]:
        """How many requests each batch had."""
        return [len(ids) for ids in self.server.submitted]


Start = Callable[..., Batched]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a server that answers so, and a run that uses it."""
    monkeypatch.setattr(batch, "POLL_S", 0.0)
    monkeypatch.setattr(batch, "RETRIES", 2)
    with ExitStack() as stack:

        def started(reply: Script = fold, models: str = "gpt-x", n: int = 4) -> Batched:
            kind = MessageServer if "claude" in models else BatchServer
            server = stack.enter_context(kind(reply))
            for name in ("OPENAI", "ANTHROPIC"):
                monkeypatch.setenv(f"{name}_API_KEY", KEY)
                monkeypatch.setenv(f"{name}_BASE_URL", server.url)
            return Batched(tmp_path, server, models, n)

        yield started


def test_a_run_that_does_not_wait_submits_once_and_collects_later(start: Start) -> None:
    run = start()
    run.server.outcome = lambda number: "in_progress"
    for _ in range(2):
        assert run.ask(wait=False).waiting
        assert run.under_way() == {one.key.hex() for one in run.requests()}
    assert KEY not in run.state.read_text()
    run.server.outcome = lambda number: "completed"
    assert not run.ask(wait=False).waiting and not run.under_way()
    assert None not in run.texts and run.sizes == [4]


def test_what_is_ready_is_collected_while_another_batch_is_under_way(start: Start) -> None:
    run = start(models="gpt-x,gpt-y")
    run.server.outcome = lambda number: "completed" if number == 1 else "in_progress"
    assert run.ask(wait=False).waiting
    assert None not in run.texts and run.sizes == [4, 4]
    assert len(run.under_way()) == 4


def test_unreadable_answers_are_asked_for_in_another_batch(start: Start) -> None:
    run = start()
    run.unreadable = "Folded: Fold 2?"
    run.ask()
    assert run.sizes == [4, 1]


def test_what_expired_goes_into_the_next_batch(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start()
    run.server.outcome = lambda number: "expired" if number == 1 else "completed"
    asked = run.ask()
    assert None not in run.texts and run.sizes == [4, 2]
    assert (asked.requests, asked.retried.total()) == (6, 2)
    line = "batch batch_1 is expired: 4 requests, 2 without a result are sent again"
    assert line in capsys.readouterr().err


def test_error_results_mean_what_they_mean_live(start: Start) -> None:
    faults = {
        ("Fold 0?", 0): error(400, "this prompt is too odd"),
        ("Fold 1?", 0): error(400, "blocked", code="content_filter"),
        ("Fold 2?", 0): error(500, "try again"),
    }
    run = start(lambda body, seen: faults.get((prompt_of(body), seen)) or fold(body, seen))
    asked = run.ask()
    assert [tuple(one) for one in asked.failed.values()] == [
        ("bad_request", "400: this prompt is too odd")
    ]
    assert run.texts == [None, "", "Folded: Fold 2?", "Folded: Fold 3?"]
    assert run.answers[1] and run.answers[1].refused_by_api
    assert run.sizes == [4, 1]


def test_rejected_parameters_are_left_out_of_the_next_batches_and_noted(start: Start) -> None:
    def reply(body: Body, seen: int) -> Reply | str:
        for name in ("max_tokens", "temperature"):
            if name in body:
                return error(400, f"Unsupported parameter: '{name}'", param=name)
        return fold(body, seen)

    run = start(reply, "gpt-y")
    run.ask()
    assert run.sizes == [4, 4, 4]
    run = start(reply)
    run.unreadable = "Folded: Fold 2?"
    for over in range(5):  # a run for each batch: the next one knows what the last one learned
        run.server.outcome = lambda n, over=over: "completed" if n <= over else "in_progress"  # type: ignore[misc]
        run.ask(wait=False)
    assert run.sizes == [4, 4, 4, 1]
    (body,) = run.server.bodies["batch_4"].values()
    assert body["max_completion_tokens"] == 9 and "temperature" not in body
    assert [one and one.dropped for one in run.answers] == [("temperature",)] * 4


def test_a_model_that_answers_does_not_reject_its_parameters(start: Start) -> None:
    odd = error(400, REJECTS, param="temperature")
    run = start(lambda body, seen: odd if prompt_of(body) == "Fold 1?" else fold(body, seen))
    assert [one.kind for one in run.ask().failed.values()] == ["bad_request"]
    assert run.sizes == [4]


def test_a_run_stops_after_a_batch_without_any_result(start: Start) -> None:
    run = start()
    run.server.outcome = lambda number: "failed"
    asked = run.ask()
    assert "the last batch had no result (failed: " in asked.stopped
    assert "by order of [key]" in asked.stopped
    assert run.sizes == [4] and not run.state.exists()


def test_a_request_that_always_fails_stops_the_run_and_costs_no_other_answer(start: Start) -> None:
    broken = error(500, "broken")
    run = start(lambda body, seen: broken if prompt_of(body) == "Fold 1?" else fold(body, seen))
    asked = run.ask()
    assert "500: broken" in asked.stopped and run.sizes == [4, 1]
    assert run.texts.count(None) == 1


def test_a_batch_is_no_larger_than_the_service_takes(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "LARGEST_BATCH", 3)
    run = start(n=8)
    run.ask()
    assert None not in run.texts and run.sizes == [3, 3, 2]


def test_an_interrupted_run_leaves_its_batch_to_the_next_one(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start()
    with monkeypatch.context() as patch:
        patch.setattr(batch.Service, "look", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run.ask().interrupted
    assert len(run.under_way()) == 4
    assert not run.ask().interrupted
    assert None not in run.texts and run.sizes == [4]


def test_faults_that_can_pass_are_retried_unless_a_second_batch_could_come_of_it(
    start: Start,
) -> None:
    run = start()
    busy = [error(503, "busy", headers=SOON), error(429, "slow down", headers=SOON)]
    run.server.refuse = {step: [*busy] for step in ("upload", "retrieve", "content")}
    assert not run.ask().stopped and None not in run.texts
    run.n, run.server.refuse = 5, {"create": [Reply("{}", fault="drop")]}
    assert "if there is a new batch at the provider, cancel it" in run.ask().stopped
    assert run.server.steps.count("create") == 2


@pytest.mark.parametrize(
    ("step", "reply", "line"),
    [
        ("upload", error(401, "Incorrect API key"), "rejected the key in OPENAI_API_KEY"),
        ("upload", error(404, "Not Found"), "the batch service of openai fails: 404: Not Found"),
        ("create", PAGE, "a gateway's page"),
        ("upload", PAGE, "a gateway's page"),
        ("create", error(429, "no", code="insufficient_quota"), "no quota left"),
        ("create", error(400, "Billing limit"), "400: Billing limit"),
        ("retrieve", error(404, f"No batch {KEY}"), "404: No batch [key]"),
        ("retrieve", error(500, f"oops {KEY}", headers=SOON), "500: oops [key]; rerun to collect"),
        ("retrieve", EARLY, "results of batch batch_1 cannot be read"),
        ("content", PAGE, "results of batch batch_1 cannot be read"),
    ],
)
def test_a_service_that_refuses_stops_the_run_in_one_line(
    start: Start, step: str, reply: Reply, line: str
) -> None:
    run = start()
    run.server.refuse = {step: [reply] * 5}
    asked = run.ask()
    assert line in asked.stopped and "\n" not in asked.stopped and KEY not in asked.stopped
    run.server.refuse = {}
    assert not run.ask().stopped
    assert None not in run.texts and run.sizes == [4]


def test_replies_with_the_content_type_of_text_are_read(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BatchServer.do

    def do(server: BatchServer, *args: Any) -> Reply:
        return real(server, *args)._replace(content_type="text/plain")

    monkeypatch.setattr(BatchServer, "do", do)
    run = start()
    assert not run.ask().stopped and None not in run.texts


def test_a_provider_without_a_batch_service_is_turned_down(start: Start) -> None:
    for name in ("together/a/b", "scripted"):
        run = start()
        run.models = [resolve(name)]
        with pytest.raises(UserError, match="openai and anthropic have one"):
            run.ask()


ENTRY = {"id": "b", "model": ["http://h/v1", "m"], "protocol": "chat", "rejected": [], "keys": []}
NEWER = json.dumps([{**ENTRY, "more": 1}])


@pytest.mark.parametrize("content", ["{", "{}", "[{}]", "7", NEWER])
def test_a_state_file_that_cannot_be_read_stops_and_is_kept(start: Start, content: str) -> None:
    run = start()
    run.state.write_text(content)
    with pytest.raises(UserError, match="cannot be read"):
        run.ask()
    assert run.state.read_text() == content and not run.server.steps


# -- Anthropic's -------------------------------------------------------------------------------


def test_message_batches_are_batches_too(start: Start) -> None:
    replies = {
        ("Fold 0?", 0): message("", "refusal", stop_details={"category": "bio"}),
        ("Fold 1?", 0): failing(400, "invalid_request_error", "too odd"),
        ("Fold 2?", 0): failing(529, "overloaded_error"),
    }
    run = start(
        lambda body, seen: replies.get((prompt_of(body), seen)) or message("Folded."), "claude-x", 8
    )
    run.server.outcome = lambda number: "expired" if number == 1 else "completed"
    asked = run.ask()
    assert run.texts == ["", None, *["Folded."] * 6]
    assert [one.why for one in asked.failed.values()] == ["400: too odd"]
    assert run.answers[0] and run.answers[0].api_category == "bio"
    assert run.sizes == [8, 5]
    (body, *_) = run.server.bodies["batch_1"].values()
    assert body["system"] == "Be kind." and "seed" not in body


# -- as users run it ---------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_ends_while_it_waits_is_resumed(desk: Desk, number: signal.Signals) -> None:
    desk.prompts(3)
    with BatchServer(fold) as server:
        desk.url, server.stall = server.url, "retrieve"
        process = desk.start(ALIGN, "--batch")
        assert server.stalled.wait(30)
        process.send_signal(number)
        out, err = process.communicate()
        if number != signal.SIGKILL:
            assert (process.returncode, out) == (130, ""), err
            assert "the batches continue at the provider; rerun the same command" in err
        assert "3 requests are already in batches" in desk.stopped(ALIGN)
        assert "already in batches: 3" in desk.stage(ALIGN, "--batch", "--dry_run").stderr
        server.stall = ""
        assert desk.stage(ALIGN, "--batch").returncode == 0
    assert len(desk.rows()) == 3
    assert len(server.submitted) == 1 and not server.requests


def test_a_measurement_in_batches_writes_its_page_once_all_are_collected(desk: Desk) -> None:
    desk.prompts(3)
    flags = ("--model=gpt-x", "--prompts=p.csv", "--judge=gpt-judge", "--batch=submit")

    def play(body: Body, seen: int) -> str:
        return "[[direct_answer]]" if body["model"] == "gpt-judge" else "Fold it."

    with BatchServer(play) as server:
        desk.url = server.url
        pages = list[str]()
        server.outcome = lambda n: "completed" if n <= len(pages) else "in_progress"
        for _ in range(3):
            done = desk.run("measure.py", *flags)
            assert done.returncode == 0, done.stderr
            pages.append(done.stdout)
    assert pages == ["", "", "results/results.html\n"]
    assert [len(ids) for ids in server.submitted] == [3, 3]
    assert {body["max_tokens"] for body in server.requests} == {16}  # only endpoints were tried
