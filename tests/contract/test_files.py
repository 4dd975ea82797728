"""Requests and answers as files: `--export_requests` and `--import_answers`."""

import json
import random
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter

from orbench.asking.files import answer_in, read_result
from orbench.models.errors import BadRequest, Fatal, RateLimited, TransientError
from orbench.models.providers import resolve
from orbench.models.requests import Answer
from tests.conftest import ALIGN, MODERATE, Desk
from tests.server import NOBODY, Body, Reply, answer, error, number_of, prompt_of

Line = dict[str, Any]
IMPORT = "--import_answers"


def fold(body: Body) -> Reply:
    return answer(f"Folded: {prompt_of(body)}")


def lines_of(desk: Desk, name: str) -> list[Line]:
    """The JSON lines of a file."""
    return [json.loads(line) for line in desk.text(name).splitlines()]


def exported(desk: Desk, n: int, *flags: str) -> list[Line]:
    """The requests of stage 4 about n prompts, in q.jsonl."""
    desk.prompts(n)
    desk.stage(ALIGN, "--export_requests=q.jsonl", *flags, url=NOBODY)
    return lines_of(desk, "q.jsonl")


def worked_off(
    desk: Desk, name: str = "q.jsonl", reply: Callable[[Body], Reply] = fold
) -> list[Line]:
    """What a batch runner makes of a file of requests."""
    results = []
    for line in lines_of(desk, name):
        said = reply(line["body"])
        response = {"status_code": said.status, "request_id": "r", "body": json.loads(said.body)}
        results.append({"custom_id": line["custom_id"], "response": response, "error": None})
    return results


def write_lines(desk: Desk, name: str, lines: list[Line], more: str = "") -> None:
    desk.write(name, "".join(json.dumps(line) + "\n" for line in lines) + more)


def test_exported_requests_are_lines_of_the_batch_format(desk: Desk) -> None:
    assert len(exported(desk, 4)) == 4
    lines = exported(desk, 3)  # in place of the others
    assert len({line["custom_id"] for line in lines}) == 3
    assert list(map(number_of, lines)) == [0, 1, 2]
    for line in lines:
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        TypeAdapter(CompletionCreateParamsNonStreaming).validate_python(line["body"])
        assert (line["body"]["model"], line["body"]["max_tokens"]) == ("gpt-x", 1000)


def test_parameters_go_out_under_the_names_of_their_provider(desk: Desk) -> None:
    names = {"o3": "max_completion_tokens seed", "mistral-small-latest": "max_tokens random_seed"}
    for name, sent in {**names, "gpt-5-chat-latest": "max_tokens seed"}.items():
        (line,) = exported(desk, 1, f"--model={name}", "--random_seed=1", "--temperature=none")
        assert set(line["body"]) == {"model", "messages", *sent.split()}


def test_results_are_taken_in_any_order_and_other_lines_are_counted(desk: Desk) -> None:
    exported(desk, 12)
    results = worked_off(desk)
    random.Random(1).shuffle(results)
    some, late = results[:9], results[9:]
    foreign = {**results[0], "custom_id": "00" * 16}
    others = '\n["no", "result"]\n{"custom_id": 7}\n' + json.dumps(late[0])[:50]
    write_lines(desk, "some.jsonl", [*some, some[0], foreign], others)
    done = desk.stage(ALIGN, IMPORT, "some.jsonl", url=NOBODY, status=3)
    assert "imported 9 answers from 14 lines" in done.stderr
    assert len(desk.rows()) == 9 and desk.record()["tokens"]["prompt"] == 9 * 10
    write_lines(desk, "late.jsonl", late)
    done = desk.stage(ALIGN, IMPORT, "some.jsonl", "late.jsonl", url=NOBODY)
    assert "imported 3 answers from 17 lines" in done.stderr
    assert desk.cells("response") == [f"Folded: {prompt}" for prompt in desk.cells("prompt")]


def test_an_error_is_a_failure_unless_another_line_has_the_answer(desk: Desk) -> None:
    exported(desk, 6)
    results = worked_off(desk)
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
    write_lines(desk, "r.jsonl", [*broken, results[3], results[5]])
    desk.stage(ALIGN, IMPORT, "r.jsonl", url=NOBODY, status=3)
    assert list(map(number_of, desk.rows())) == [2, 3, 5]
    assert desk.cells("response")[0] == ""
    assert desk.cells("error_type error", "o_failed.csv") == [
        "bad_request 400: too long",
        "gave_up no answer: This request could not be executed.",
        "gave_up no answer: half of it is missing",
    ]


def test_judges_have_a_file_each_and_export_their_retries(desk: Desk) -> None:
    def judge(body: Body) -> Reply:
        is_odd = body["model"] == "gpt-x" and number_of(body) == 1 and len(body["messages"]) == 1
        return answer("Hm." if is_odd else "[[none of the above]]")

    desk.prompts(3)
    flags = ("--moderator_model=gpt-x,org/y", "--base_url=http://127.0.0.1:9/v1")
    for sizes, status in (((3, 3), 3), ((1, 0), 0)):
        desk.stage(MODERATE, *flags, "--export_requests=q.jsonl")
        for name, size in zip(("gpt-x", "org_y"), sizes, strict=True):
            results = worked_off(desk, f"q.{name}.jsonl", judge)
            assert len(results) == size
            write_lines(desk, f"{name}.out", results)
        desk.stage(MODERATE, *flags, IMPORT, "gpt-x.out", "org_y.out", status=status)
    assert desk.cells("is_toxic") == ["False"] * 3


def test_a_judges_file_of_another_origin_is_kept(desk: Desk) -> None:
    desk.prompts(1)
    desk.write("q.org_y.jsonl", "mine")
    flags = ("--moderator_model=gpt-x,org/y", "--base_url=http://127.0.0.1:9/v1")
    assert "holds no requests" in desk.stopped(MODERATE, *flags, "--export_requests=q.jsonl")
    assert desk.text("q.org_y.jsonl") == "mine"


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
    for name in ("gpt-x", "claude-x") if found else ():
        assert found
        try:
            assert isinstance(answer_in(found, resolve(name)), Answer)
        except (TransientError, RateLimited, BadRequest, Fatal) as fault:
            assert "\n" not in str(fault)
