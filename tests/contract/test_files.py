"""Requests and answers as files: `--export_requests` and `--import_answers`."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter

from orbench.asking import files
from orbench.asking.files import answer_in, import_answers, read_result
from orbench.asking.inquiry import Inquiry, Reader, Run
from orbench.asking.log import AnswerLog
from orbench.base.messages import UserError
from orbench.models.errors import BadRequest, Fatal, RateLimited, TransientError
from orbench.models.providers import CHAT, MESSAGES_API, Model, resolve
from orbench.models.requests import Answer, Request, user
from tests.conftest import MODERATE, Desk
from tests.server import NOBODY, Body, Reply, answer, error, prompt_of

Line = dict[str, Any]
MODEL, OTHER = (resolve(name, base_url="http://127.0.0.1:9/v1") for name in ("gpt-x", "org/y"))


def requests(n: int) -> list[Request]:
    return [Request(MODEL, [user(f"Fold {i}?")], {"max_tokens": 9}) for i in range(n)]


def export(some: list[Request], path: Path, models: Sequence[Model] = (MODEL,)) -> None:
    files.export_requests(some, path, models)


def fold(body: Body) -> Reply:
    return answer(f"Folded: {prompt_of(body)}")


def lines_of(path: Path) -> list[Line]:
    """The JSON lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def worked_off(path: Path, reply: Callable[[Body], Reply] = fold) -> list[Line]:
    """What a batch runner makes of a file of requests."""
    results = []
    for line in lines_of(path):
        said = reply(line["body"])
        response = {"status_code": said.status, "request_id": "r", "body": json.loads(said.body)}
        results.append({"custom_id": line["custom_id"], "response": response, "error": None})
    return results


def write_lines(path: Path, lines: list[Line]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def imported(folder: Path, asked_for: list[Request], *paths: Path) -> tuple[Run, list[str]]:
    """Import files into the log of a folder. Gives what came of it, and the texts in the log."""
    with AnswerLog(folder / "o.answers.jsonl", write=True) as log:
        asked = Run(Reader(), log, [Inquiry(one) for one in asked_for])
        import_answers(asked, paths)
        got = [log.get(one.key) for one in asked_for]
    return asked, [one.text if one else "-" for one in got]


# -- export ------------------------------------------------------------------------------------


def test_exported_requests_are_lines_of_the_batch_format(tmp_path: Path) -> None:
    export(requests(3), tmp_path / "q.jsonl")
    lines = lines_of(tmp_path / "q.jsonl")
    assert len({line["custom_id"] for line in lines}) == 3
    for n, line in enumerate(lines):
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(line["body"])
        assert line["body"]["messages"] == [{"role": "user", "content": f"Fold {n}?"}]
        assert (line["body"]["model"], line["body"]["max_tokens"]) == ("gpt-x", 9)


def test_parameters_go_out_under_the_names_of_their_provider(tmp_path: Path) -> None:
    names = {"o3": "max_completion_tokens seed", "mistral-small-latest": "max_tokens random_seed"}
    for name, sent in {**names, "gpt-5-chat-latest": "max_tokens seed"}.items():
        model = resolve(name)
        export([Request(model, [], {"max_tokens": 9, "seed": 1})], tmp_path / "q.jsonl", [model])
        assert [*lines_of(tmp_path / "q.jsonl")[0]["body"]][2:] == sent.split()


def test_each_model_has_a_file_of_its_own(tmp_path: Path) -> None:
    both = [Request(model, [user("Fold.")], {}) for model in (MODEL, OTHER)]
    export(both, tmp_path / "q.jsonl", [MODEL, OTHER])
    export(both[:1], tmp_path / "later.jsonl", [MODEL, OTHER])
    sizes = {path.name: len(lines_of(path)) for path in tmp_path.iterdir()}
    assert sizes == {
        **{"q.gpt-x.jsonl": 1, "q.org_y.jsonl": 1},
        **{"later.gpt-x.jsonl": 1, "later.org_y.jsonl": 0},
    }


def test_an_export_replaces_an_earlier_export_and_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "o.answers.jsonl"
    log.write_text('{"key": "00"}\n')
    with pytest.raises(UserError, match="holds no requests"):
        export(requests(1), log)
    assert log.read_text() == '{"key": "00"}\n'
    for n in (3, 0, 2):
        export(requests(n), tmp_path / "q.jsonl")
        assert len(lines_of(tmp_path / "q.jsonl")) == n
    with pytest.raises(UserError, match="cannot be written"):
        export(requests(1), tmp_path / "no" / "q.jsonl")


# -- import ------------------------------------------------------------------------------------


def test_results_are_taken_in_any_order_and_other_lines_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(requests(12), tmp_path / "q.jsonl")
    results = worked_off(tmp_path / "q.jsonl")
    random.Random(1).shuffle(results)
    some, late = results[:9], results[9:]
    foreign = [{**results[0], "custom_id": "00" * 16}]
    path = write_lines(tmp_path / "some.jsonl", [*some, some[0], *foreign])
    with path.open("a") as file:
        file.write('\n["no", "result"]\n{"custom_id": 7}\n' + json.dumps(late[0])[:50])
    asked, texts = imported(tmp_path, requests(12), path)
    assert texts.count("-") == 3 and asked.tokens.prompt == 9 * 10
    assert "imported 9 answers from 14 lines" in capsys.readouterr().err
    _, texts = imported(tmp_path, requests(12), path, write_lines(tmp_path / "late.jsonl", late))
    assert texts == [f"Folded: Fold {n}?" for n in range(12)]
    assert "imported 3 answers from 17 lines" in capsys.readouterr().err


def test_a_number_too_long_for_python_does_not_cost_the_answer(tmp_path: Path) -> None:
    export(requests(1), tmp_path / "q.jsonl")
    path = write_lines(tmp_path / "r.jsonl", worked_off(tmp_path / "q.jsonl"))
    path.write_text(path.read_text().replace('"created": 1', '"created": ' + "1" * 5000))
    assert imported(tmp_path, requests(1), path)[1] == ["Folded: Fold 0?"]


def test_an_error_is_a_failure_unless_another_line_has_the_answer(tmp_path: Path) -> None:
    export(requests(6), tmp_path / "q.jsonl")
    results = worked_off(tmp_path / "q.jsonl")
    beside = {"error": {"message": "too long", "type": "BadRequestError", "code": 400}}
    expired = {"code": "batch_expired", "message": "This request could not be executed."}
    blocked = json.loads(error(400, "blocked", code="content_filter").body)
    broken = [
        {**results[0], "response": {"status_code": 400, "request_id": "r"}, "error": beside},
        {**results[1], "response": None, "error": expired},
        {**results[2], "response": {"status_code": 400, "body": blocked}},
        {**results[3], "response": {"status_code": 500}, "error": "it broke"},
        {**results[4], "error": {"message": "half of it is missing"}},
    ]
    path = write_lines(tmp_path / "r.jsonl", [*broken, results[3], results[5]])
    asked, texts = imported(tmp_path, requests(6), path)
    assert texts == ["-", "-", "", "Folded: Fold 3?", "-", "Folded: Fold 5?"]
    assert [(one.kind, one.why) for one in asked.failed.values()] == [
        ("bad_request", "400: too long"),
        ("gave_up", "no answer: This request could not be executed."),
        ("gave_up", "no answer: half of it is missing"),
    ]


def test_judges_have_a_file_each_and_export_their_retries(desk: Desk) -> None:
    def judge(body: Body) -> Reply:
        unreadable = "number 1" in prompt_of(body) and len(body["messages"]) == 1
        return answer("Hm." if unreadable else "[[none of the above]]")

    desk.prompts(3)
    for size, status in ((3, 3), (1, 0)):
        for flags in (["--export_requests=q.jsonl"], ["--import_answers", "gpt-x.out", "y.out"]):
            done = desk.stage(MODERATE, "--moderator_model=gpt-x,y", *flags, url=NOBODY)
            for name in ("gpt-x", "y"):
                results = worked_off(desk.folder / f"q.{name}.jsonl", judge)
                assert len(results) == size
                write_lines(desk.folder / f"{name}.out", results)
        assert done.returncode == status, done.stderr
    assert [row["is_toxic"] for row in desk.rows()] == ["False"] * 3


# -- lines -------------------------------------------------------------------------------------


def result_line(**members: Any) -> bytes:
    return json.dumps({"custom_id": "ab" * 16, **members}).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("response", "error", "result", "status_code", "body", "message", "type")
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(("response", "error", "result")), JSON), st.integers(0, 700))
def test_any_result_line_is_an_answer_or_a_known_fault(members: Line, status: int) -> None:
    if isinstance(members.get("response"), dict):
        members["response"]["status_code"] = status
    found = read_result(result_line(**members))
    for protocol in (CHAT, MESSAGES_API) if found else ():
        assert found
        try:
            assert isinstance(answer_in(found, MODEL, protocol), Answer)
        except (TransientError, RateLimited, BadRequest, Fatal) as fault:
            assert "\n" not in str(fault)
