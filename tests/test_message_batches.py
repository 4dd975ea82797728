"""`--batch` through the services that are not OpenAI's, from a server on loopback."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from orbench import batch
from orbench.answers import AnswerLog
from orbench.chat import Request, system, user
from orbench.exchange import read_result
from orbench.models import Model, resolve
from orbench.run import Run
from orbench.terminal import UserError
from tests.batch_server import MessageServer, MistralServer
from tests.conftest import ALIGN, KEY, prompts_csv, run, start
from tests.server import Body, Reply, answer, error, prompt_of
from tests.test_batch import flags_for

FLAGS = ("--model=claude-opus-5", "--output_path=out.csv")
SOON = ("--batch", "--poll_interval=0.01")


def message(said: str, reason: str = "end_turn", **members: Any) -> Reply:
    usage = {"input_tokens": 10, "output_tokens": 5}
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": said}]
    data = {"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-5"}
    more = {"content": content, "stop_reason": reason, "usage": usage}
    return Reply(json.dumps({**data, **more, **members}))


def failing(status: int, kind: str, said: str = "no") -> Reply:
    error = {"type": "error", "error": {"type": kind, "message": said}, "request_id": "r"}
    return Reply(json.dumps(error), status)


def respond(body: Body, seen: int) -> Reply:
    """A model that answers, declines by itself, and by its provider's classifier."""
    text = prompt_of(body)
    if "number 2?" in text:
        details = {"type": "refusal", "category": "bio", "explanation": None}
        return message("", "refusal", content=[], stop_details=details)
    if "number 5?" in text:
        return failing(400, "invalid_request_error", "too odd")
    return message("I can't help with that." if "3" in text else f"Like this: {text}")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MessageServer]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with ExitStack() as stack:
        one = MessageServer(respond)
        stack.enter_context(one)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", one.url)
        yield one


def align(folder: Path, server: MessageServer, *more: str) -> Any:
    prompts = prompts_csv(folder / "prompts.csv", 12)
    return run(ALIGN, *FLAGS, f"--input_file={prompts}", *more, cwd=folder, env=env_of(server))


def env_of(server: MessageServer) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}


def written(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "out.csv").read_bytes(), (folder / "out_failed.csv").read_bytes()


def test_a_batch_killed_at_any_step_is_submitted_once_and_writes_the_bytes_of_a_live_run(
    server: MessageServer, tmp_path: Path
) -> None:
    live, batches = tmp_path / "live", tmp_path / "batches"
    live.mkdir()
    batches.mkdir()
    assert align(live, server).returncode == 3
    asked = len(server.live)
    for n in range(3):  # others' batches, more than one page, of the same size
        server.add(f"other_{n}", 12)
    prompts = prompts_csv(batches / "prompts.csv", 12)
    for step in ("create", "retrieve", "content"):
        server.stall = step
        server.stalled.clear()
        flags = (*FLAGS, f"--input_file={prompts}", *SOON)
        script = start(ALIGN, *flags, cwd=batches, env=env_of(server))
        assert server.stalled.wait(30)
        script.kill()
        script.communicate()
    server.stall = ""
    done = align(batches, server, *SOON)
    assert (done.returncode, done.stdout) == (3, "out.csv\n"), done.stderr
    assert written(batches) == written(live)
    assert [len(ids) for ids in server.submitted] == [12]
    assert len(server.live) == asked
    assert logged(batches) == logged(live)
    assert not list(batches.glob("*.batches.json*"))


def logged(folder: Path) -> list[str]:
    """The lines of the answer log in any order, without their time."""
    lines = (folder / "out.answers.jsonl").read_text().splitlines()
    return sorted(line.partition(', "time"')[0] for line in lines)


def in_batches(
    folder: Path, n: int = 4, model: Model | None = None, **flags: object
) -> tuple[str, Run, int]:
    """Ask n requests in this process. Gives how it ended, the run, and the answers it has."""
    model = model or resolve("claude-opus-5")
    turns = [[system("Be kind."), user(f"Fold {i}?")] for i in range(n)]
    wanted = [Request(model, messages, {"max_tokens": 9, "seed": 1}) for messages in turns]
    log, one = AnswerLog(folder / "o.answers.jsonl", write=True), Run()

    def pending() -> list[Request]:
        return [each for each in wanted if each.key() not in log and each.key() not in one.failed]

    try:
        end = batch.ask_in_batches(pending, [model], log, one, flags_for(**flags))
        return end, one, sum(each.key() in log for each in wanted)
    finally:
        log.close()


def test_what_errs_expires_or_is_cancelled_goes_into_the_next_batch(
    server: MessageServer, tmp_path: Path
) -> None:
    faults: dict[str, Any] = {
        "Fold 0?": json.loads(failing(529, "overloaded_error").body),
        "Fold 1?": json.loads(failing(500, "api_error").body),
    }

    def result(number: int, body: Body) -> Any:
        text = prompt_of(body)
        if number == 1 and text in faults:
            return {"type": "errored", "error": faults[text]}
        kinds = {"Fold 2?": {1: "expired", 2: "expired"}, "Fold 3?": {1: "canceled"}}
        kind = kinds.get(text, {}).get(number)
        return {"type": kind} if kind else None

    server.result = result
    end, one, answered = in_batches(tmp_path, 6)
    assert (end, one.stopped, answered) == ("done", "", 6)
    assert [len(ids) for ids in server.submitted] == [6, 4, 1]
    body = server.bodies[0][0]
    assert body["system"] == "Be kind."
    assert "seed" not in body


@pytest.mark.parametrize(
    ("others", "submitted"),
    [
        ({}, 1),  # it was made
        ({"x": 9}, 1),  # so was another's, of another size
        ({"x": 4}, 1),  # and one of this size: which is ours cannot be told before they end
        (None, 2),  # it was not made
    ],
)
def test_a_batch_of_a_killed_run_is_found_again_by_its_size_and_results(
    others: dict[str, int] | None,
    submitted: int,
    server: MessageServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.add("msgbatch_0", 4)  # older

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(batch, "say", killed)  # just after the batch was made
        with pytest.raises(SystemExit):
            in_batches(tmp_path)
    path = tmp_path / "o.batches.json"
    state = json.loads(path.read_text())
    assert state["parts"][0]["file_id"] == "msgbatch_0"
    state["parts"][0]["batch_id"] = ""  # and it is not known
    path.write_text(json.dumps(state))
    if others is None:
        del server.batches["msgbatch_1"]
    for name, n in (others or {}).items():
        server.add(name, n)
    end, one, answered = in_batches(tmp_path)
    if others == {"x": 4}:
        assert "one of which may be this run's" in one.stopped
        assert not answered
        for name in ("x", "msgbatch_1"):
            if name in server.batches:
                server.batches[name]["processing_status"] = "ended"
        server.end(server.batches["msgbatch_1"], 1)
        server.files["x"] = json.dumps(
            {"custom_id": "theirs", "result": {"type": "expired"}}
        ).encode()
        server.batches["x"] |= {"results_url": "x", "request_counts": {"expired": 4}}
        end, one, answered = in_batches(tmp_path)
    assert (end, one.stopped, answered) == ("done", "", 4)
    assert len(server.submitted) == submitted


def test_the_compatible_layer_has_no_batches() -> None:
    model = resolve("claude-opus-5", protocol="chat", environment={})
    with pytest.raises(UserError, match="no batch service that is asked in this way"):
        batch.refuse_unable([model])
    batch.refuse_unable([resolve("claude-opus-5", environment={})])


@pytest.mark.parametrize("odd", [None, [], "x", 7, {}, {"type": 7}, {"type": "errored"}])
def test_an_odd_result_line_is_no_answer(odd: object) -> None:
    found = read_result(json.dumps({"custom_id": "ab" * 16, "result": odd}).encode())
    assert found is None or found.status != 200


# -- Mistral's ------------------------------------------------------------------------------------


def chat(body: Body, seen: int) -> Reply:
    return error(503, "busy") if prompt_of(body) == "Fold 1?" and not seen else answer("Folded.")


@pytest.mark.parametrize("made", [True, False])
def test_mistrals_jobs_are_batches_too(
    made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    server = MistralServer(chat)
    server.polls = 2
    with server:
        model = resolve("mistral-small-latest", environment={"MISTRAL_BASE_URL": server.url})
        for n in range(5):  # others' jobs, more than one page of them
            server.batches[f"other_{n}"] = {"input_file_id": "x"}
        server.outcome = lambda number: "cancelled" if number == 6 else "completed"
        in_batches(tmp_path, model=model, no_wait=True)
        path = tmp_path / "o.batches.json"
        state = json.loads(path.read_text())
        assert state["parts"][0]["batch_id"] == "batch_6"
        state["parts"][0]["batch_id"] = ""  # as if the run was killed before it was noted
        path.write_text(json.dumps(state))
        if not made:
            del server.batches["batch_6"]
        end, one, answered = in_batches(tmp_path, model=model)
    assert (end, one.stopped, answered) == ("done", "", 4)
    handed_in = [len(ids) for ids in server.submitted]
    assert handed_in == ([4, 3] if made else [4, 4, 3])
