"""One request over HTTP, with the real openai package: what is an answer, a refusal, a fault."""

import asyncio
import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbench import chat
from orbench.answers import Answer
from orbench.chat import (
    Adaptation,
    BadRequest,
    Chat,
    Fatal,
    Limited,
    Passing,
    Request,
    TurnedAway,
    bare_key,
    read_answer,
    retry_after,
    system,
    user,
)
from orbench.models import Model, resolve
from orbench.refusal import api_refusal_signal
from orbench.terminal import UserError, one_line
from tests.conftest import KEY
from tests.server import Body, Reply, Server, answer, completion, error, prompt_of

Serve = Callable[..., Server]
Outcome = Answer | Exception


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, KEY)


def model_at(url: str, name: str = "model-1") -> Model:
    return resolve(name, base_url=url, environment={})


def send(*requests: Request, timeout: float = 20.0) -> tuple[list[Outcome], list[str]]:
    """What comes of requests that are sent one after the other, and what the user must hear."""

    async def one_by_one() -> tuple[list[Outcome], list[str]]:
        adaptation = Adaptation()
        sender = Chat(timeout, adaptation)
        outcomes: list[Outcome] = []
        try:
            for request in requests:
                try:
                    outcomes.append(await sender.send(request))
                except (Passing, Limited, BadRequest, Fatal) as fault:
                    outcomes.append(fault)
        finally:
            await sender.close()
        return outcomes, adaptation.notes

    return asyncio.run(one_by_one())


def outcome_of(
    serve: Serve, reply: Reply, name: str = "model-1", timeout: float = 20.0, **parameters: Any
) -> Outcome:
    """What comes of one request to a server that answers so. It is sent exactly once."""
    server = serve(lambda body, seen: reply)
    request = Request(model_at(server.url, name), [user("hello")], parameters)
    (outcome,), _ = send(request, timeout=timeout)
    assert len(server.requests) == 1
    return outcome


def said_by(fault: Outcome, kind: type[Exception]) -> str:
    """What a fault of this kind says; it is fit for one line of a terminal."""
    assert type(fault) is kind, repr(fault)
    assert str(fault).isprintable()
    assert len(str(fault)) <= 500
    return str(fault)


# -- answers -----------------------------------------------------------------------------------


def test_the_request_goes_out_as_the_user_wants_it(serve: Serve) -> None:
    server = serve(lambda body, seen: answer("Hi!"))
    messages = [system("Be kind."), user('{"a": "\n👍"}')]
    request = Request(model_at(server.url), messages, {"temperature": 0.0, "max_tokens": 9})
    outcomes, notes = send(request)
    assert outcomes == [Answer("Hi!", "stop", "", "loopback-1", 10, 5)]
    assert notes == []
    assert server.requests == [
        {
            "model": "model-1",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": '{"a": "\n👍"}'},
            ],
            "temperature": 0.0,
            "max_tokens": 9,
        }
    ]
    assert server.headers.startswith("POST /v1/chat/completions ")
    assert f"Bearer {KEY}" in server.headers


def choice(message: object, **members: object) -> Reply:
    return Reply(completion(choices=[{"finish_reason": "stop", "message": message, **members}]))


TEXTS = {
    "nothing": (None, ""),
    "an empty text": ("", ""),
    "a text part": ([{"type": "text", "text": "Hi!"}], "Hi!"),
    "parts, one of them thinking": (
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "reasoning", "text": "Hm."},
            {"type": "text", "text": "Hi"},
            {"type": "text", "text": " there!"},
        ],
        "Hi there!",
    ),
    "an empty list": ([], ""),
    "odd parts": ([None, 5, "x", {"type": "text"}, {"type": "text", "text": 5}], ""),
    "a number": (5, ""),
    "NUL, tab and line ends": ("a\x00\t\r\nb", "a\x00\t\r\nb"),
    "half an emoji": ("a\ud83d", "a\ud83d"),
    "right to left": ("שלום\u202e", "שלום\u202e"),
}


@pytest.mark.parametrize(("content", "text"), TEXTS.values(), ids=TEXTS)
def test_content_of_any_shape_is_read(serve: Serve, content: object, text: str) -> None:
    outcome = outcome_of(serve, choice({"role": "assistant", "content": content}))
    assert outcome == Answer(text, "stop", "", "loopback-1", 10, 5)


def test_an_answer_of_five_megabytes_is_an_answer(serve: Serve) -> None:
    text = "five megabytes of é " * 262_144
    outcome = outcome_of(serve, answer(text))
    assert isinstance(outcome, Answer)
    assert outcome.text == text


def test_a_compressed_answer_is_read(serve: Serve) -> None:
    body = answer("Hi!").body
    assert isinstance(body, str)
    packed = Reply(gzip.compress(body.encode()), headers=(("Content-Encoding", "gzip"),))
    outcome = outcome_of(serve, packed)
    assert isinstance(outcome, Answer)
    assert outcome.text == "Hi!"


def test_half_an_emoji_in_a_prompt_is_sent_as_a_replacement_mark(serve: Serve) -> None:
    server = serve(lambda body, seen: answer("Hi!"))
    request = Request(model_at(server.url), [user("a\ud83d\x00b"), system("\udc80")], {})
    (outcome,), _ = send(request)
    assert isinstance(outcome, Answer)
    contents = [message["content"] for message in server.requests[0]["messages"]]
    assert contents == ["a\ufffd\x00b", "\ufffd"]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"usage": None, "model": None}, Answer("Hi!", "stop")),
        ({"usage": [], "model": 5}, Answer("Hi!", "stop")),
        ({"usage": {"prompt_tokens": None, "completion_tokens": "9"}}, Answer("Hi!", "stop")),
        (
            {"usage": {"prompt_tokens": -3, "completion_tokens": 2}},
            Answer("Hi!", "stop", "", "", 0, 2),
        ),
        ({"error": None, "warnings": ["old"]}, Answer("Hi!", "stop")),
    ],
)
def test_missing_or_odd_figures_do_not_spoil_an_answer(
    members: dict[str, Any], expected: Answer
) -> None:
    data = {"choices": [{"finish_reason": "stop", "message": {"content": "Hi!"}}], **members}
    assert read_answer(data, model_at("http://127.0.0.1:9/v1")) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "refusal", "finish_reason", "error"])
            | st.sampled_from(["usage", "model", "type", "text", "prompt_tokens"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=300)
@given(JSON, st.sampled_from(["model-1", "gemini/model-1"]))
def test_no_json_is_too_odd(data: object, name: str) -> None:
    try:
        read = read_answer(data, model_at("http://127.0.0.1:9/v1", name))
    except Passing as fault:
        said_by(fault, Passing)
    else:
        assert all(isinstance(part, str) for part in read[:4])
        assert all(isinstance(count, int) and count >= 0 for count in read[4:6])


# -- refusals that the API declares ------------------------------------------------------------


@pytest.mark.parametrize(
    "spelling",
    [
        *["content_filter", "CONTENT_FILTER", "refusal", "SAFETY", "safety", "PROHIBITED_CONTENT"],
        *["BLOCKLIST", "SPII", "content_filtered", "guardrail_intervened", "Content_Filter"],
    ],
)
def test_a_finish_reason_that_declares_a_refusal_is_kept(serve: Serve, spelling: str) -> None:
    for content in (None, "I", ""):
        outcome = outcome_of(serve, answer(content, spelling))
        assert isinstance(outcome, Answer)
        assert outcome.finish_reason == spelling
        assert api_refusal_signal(outcome.finish_reason)


def test_a_copyright_stop_is_no_refusal(serve: Serve) -> None:
    outcome = outcome_of(serve, answer("It was the best of", "RECITATION"))
    assert isinstance(outcome, Answer)
    assert not api_refusal_signal(outcome.finish_reason)


@pytest.mark.parametrize("name", ["model-1", "gemini/model-1"])
@pytest.mark.parametrize("reason", ["content_filter", "SAFETY", "length"])
def test_a_finish_reason_without_a_message_speaks_for_itself(
    serve: Serve, name: str, reason: str
) -> None:
    reply = Reply(completion(choices=[{"index": 0, "finish_reason": reason}]))
    outcome = outcome_of(serve, reply, name)
    assert isinstance(outcome, Answer)
    assert (outcome.text, outcome.finish_reason, outcome.refusal) == ("", reason, "")


def test_the_refusal_field_is_the_refusal(serve: Serve) -> None:
    outcome = outcome_of(serve, answer(None, "stop", refusal="I can't help with that."))
    assert outcome == Answer("", "stop", "I can't help with that.", "loopback-1", 10, 5)
    assert outcome_of(serve, answer("Hi!", "stop", refusal=None)) == Answer(
        "Hi!", "stop", "", "loopback-1", 10, 5
    )


POLICY_BLOCKS = {
    "OpenAI": (400, {"code": "content_policy_violation", "type": "invalid_request_error"}),
    "Azure": (
        400,
        {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
    ),
    "Azure, inside": (400, {"innererror": {"code": "ResponsibleAIPolicyViolation"}}),
    "images' name": (400, {"code": "moderation_blocked"}),
    "by type": (400, {"code": None, "type": "content_filter"}),
    "OpenRouter": (403, {"code": 403, "metadata": {"flagged_input": "x", "reasons": ["y"]}}),
}


@pytest.mark.parametrize(("status", "members"), POLICY_BLOCKS.values(), ids=POLICY_BLOCKS)
def test_an_error_for_content_policy_is_a_refusal(
    serve: Serve, status: int, members: dict[str, Any]
) -> None:
    outcome = outcome_of(serve, error(status, "The prompt was blocked.", **members))
    assert isinstance(outcome, Answer)
    assert outcome._replace(api_category="") == Answer("", "content_filter")
    assert api_refusal_signal("content_filter")


NO_CANDIDATE = {
    "no choices": completion(choices=[]),
    "choices null": completion(choices=None),
    "no content": completion(choices=[{"finish_reason": "stop", "message": {"role": "assistant"}}]),
    "content null": completion(choices=[{"finish_reason": None, "message": {"content": None}}]),
}


@pytest.mark.parametrize("body", NO_CANDIDATE.values(), ids=NO_CANDIDATE)
def test_no_candidate_is_a_refusal_of_gemini(serve: Serve, body: str) -> None:
    outcome = outcome_of(serve, Reply(body), "gemini/model-1")
    assert outcome == Answer("", "no_candidate", "", "loopback-1", 10, 5)
    assert api_refusal_signal("no_candidate")


def test_an_answer_of_gemini_that_is_only_too_long_is_no_refusal(serve: Serve) -> None:
    outcome = outcome_of(serve, answer(None, "length"), "gemini/model-1")
    assert outcome == Answer("", "length", "", "loopback-1", 10, 5)
    outcome = outcome_of(serve, answer("", "stop"), "gemini/model-1")
    assert outcome == Answer("", "stop", "", "loopback-1", 10, 5)


# -- faults that can pass ----------------------------------------------------------------------

GOOD = answer("Hi!").body
assert isinstance(GOOD, str)

FAULTY = {
    "no choices": Reply(completion(choices=[])),
    "choices null": Reply(completion(choices=None)),
    "choices of another kind": Reply(completion(choices={"0": "x"})),
    "a choice that is none": Reply(completion(choices=[None])),
    "no message": Reply(completion(choices=[{"finish_reason": "stop"}])),
    "a message that is none": Reply(completion(choices=[{"message": "Hi!"}])),
    "an error with status 200": Reply('{"error": {"message": "overloaded", "code": 502}}'),
    "an error beside an answer": Reply(
        completion(error="overloaded", choices=[{"message": {"content": "Half an"}}])
    ),
    "an error in the choice": choice({"content": "Half an"}, error={"code": 502, "message": "x"}),
    "a choice that ended in an error": choice({"content": "Half an"}, finish_reason="error"),
    "a page of a gateway": Reply("<html>Bad\nGateway</html>", content_type="text/html"),
    "a page that says it is JSON": Reply("<html>Bad Gateway</html>"),
    "plain text": Reply("upstream connect error", content_type="text/plain"),
    "a list": Reply("[]"),
    "a number": Reply("5"),
    "null": Reply("null"),
    "a text in JSON": Reply('"Hi!"'),
    "half a body": Reply(GOOD, fault="cut"),
    "half of the JSON": Reply(GOOD[: len(GOOD) // 2]),
    "an empty body": Reply(""),
    "an empty body of no type": Reply("", content_type=""),
    "nested beyond reading": Reply("[" * 100_000),
    "no content": Reply("", status=204),
    "bad UTF-8": Reply(GOOD.encode().replace(b"Hi!", b"\xff\xfe")),
    "bad gzip": Reply(GOOD, headers=(("Content-Encoding", "gzip"),)),
    "half a gzip": Reply(
        gzip.compress(GOOD.encode())[:-20], headers=(("Content-Encoding", "gzip"),)
    ),
    "a lost connection": Reply(GOOD, fault="drop"),
    "no HTTP": Reply(GOOD, fault="garbage"),
    "a length that is none": Reply(GOOD, headers=(("Content-Length", "x"),)),
}


@pytest.mark.parametrize("reply", FAULTY.values(), ids=FAULTY)
def test_a_faulty_answer_is_a_fault_that_can_pass(serve: Serve, reply: Reply) -> None:
    fault = outcome_of(serve, reply)
    assert said_by(fault, Passing)


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
def test_what_can_pass_by_itself_says_its_status(serve: Serve, status: int) -> None:
    fault = outcome_of(serve, error(status, "try\n\x1b[31m again"))
    assert said_by(fault, Passing) == f"{status}: try [31m again"


def test_a_page_with_an_error_status_is_cut_to_one_line(serve: Serve) -> None:
    page = Reply("<html>\n" + "<p>Bad Gateway</p>\n" * 1000, 502, content_type="text/html")
    assert said_by(outcome_of(serve, page), Passing).startswith("502: ")


def test_a_server_that_does_not_answer_costs_a_timeout(serve: Serve) -> None:
    fault = outcome_of(serve, Reply(fault="hang"), timeout=0.2)
    assert "no answer" in said_by(fault, Passing)


def test_a_server_that_is_not_there_is_a_fault_that_can_pass(serve: Serve) -> None:
    with Server(lambda body, seen: answer("Hi!")) as gone:
        pass
    (fault,), _ = send(Request(model_at(gone.url), [user("hello")], {}))
    assert "no answer" in said_by(fault, Passing)


# -- too many requests -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After-Ms": "250"}, 0.25),
        ({"Retry-After-Ms": "250", "Retry-After": "7"}, 0.25),
        ({"Retry-After-Ms": "soon", "Retry-After": "7"}, 7.0),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "Mon, 01 Jan 2024 00:00:00 GMT"}, 0.0),
        ({"Retry-After": "Mon, 01 Jan 2024 00:00:00 +99999999999999999"}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(
    serve: Serve, headers: dict[str, str], wait: float | None
) -> None:
    limited = outcome_of(serve, error(429, "slow\ndown", headers.items()))
    assert said_by(limited, Limited) == "429: slow down"
    assert isinstance(limited, Limited)
    assert limited.wait == wait


@pytest.mark.parametrize("zone", [UTC, None])
def test_a_date_to_wait_for_counts_from_now(zone: Any) -> None:
    then = datetime.now(UTC) + timedelta(seconds=90)
    wait = retry_after({"retry-after": format_datetime(then.replace(tzinfo=zone))})
    assert wait is not None
    assert 0 < wait <= 90


@given(st.text(max_size=30) | st.dates().map(str) | st.floats().map(str), st.text(max_size=10))
def test_no_header_is_too_odd_to_wait_for(value: str, milliseconds: str) -> None:
    wait = retry_after({"retry-after": value, "retry-after-ms": milliseconds})
    assert wait is None or wait >= 0


def test_an_overloaded_server_that_names_a_time_is_waited_for_by_everyone(serve: Serve) -> None:
    limited = outcome_of(serve, error(503, "busy", [("Retry-After", "3")]))
    assert said_by(limited, Limited)
    assert isinstance(limited, Limited)
    assert limited.wait == 3


# -- what cannot be mended by asking again -----------------------------------------------------


@pytest.mark.parametrize("status", [400, 413, 418, 422])
def test_a_request_that_is_at_fault_fails_alone(serve: Serve, status: int) -> None:
    fault = outcome_of(serve, error(status, "too long", code="context_length_exceeded"))
    assert said_by(fault, BadRequest) == f"{status}: too long"


ODD_ERRORS = {
    "empty": "",
    "a page": "<html>no</html>",
    "a text": '"no"',
    "a list": "[]",
    "an error that is a text": '{"error": "no"}',
    "an error that is a list": '{"error": [1]}',
    "codes of other kinds": '{"error": {"message": 5, "code": ["x"], "type": {}, "param": 5}}',
    "inner codes of other kinds": '{"error": {"innererror": {"code": []}, "metadata": "x"}}',
    "details in a list": '{"detail": [{"loc": ["body"], "msg": "no"}]}',
    "nested beyond reading": "[" * 100_000,
}


@pytest.mark.parametrize("body", ODD_ERRORS.values(), ids=ODD_ERRORS)
def test_an_odd_error_body_is_still_an_error_of_its_status(serve: Serve, body: str) -> None:
    sent: dict[str, Any] = {"temperature": 0.0, "max_tokens": 5}
    assert "400" in said_by(outcome_of(serve, Reply(body, 400), **sent), BadRequest)
    assert "500" in said_by(outcome_of(serve, Reply(body, 500), **sent), Passing)
    assert said_by(outcome_of(serve, Reply(body, 401), **sent), Fatal)
    assert said_by(outcome_of(serve, Reply(body, 403), **sent), TurnedAway)


def test_a_refused_key_ends_the_run_and_names_its_variable(serve: Serve) -> None:
    for status, kind in ((401, Fatal), (403, TurnedAway)):
        said = said_by(outcome_of(serve, error(status, "Incorrect API key")), kind)
        assert "OPENAI_API_KEY" in said
        assert "Incorrect API key" in said


@pytest.mark.parametrize(
    ("status", "members"),
    [
        (429, {"code": "insufficient_quota", "type": "insufficient_quota"}),
        (429, {"type": "insufficient_quota"}),
        (403, {"code": "insufficient_quota"}),
        (402, {}),
    ],
)
def test_an_empty_account_ends_the_run(serve: Serve, status: int, members: dict[str, Any]) -> None:
    said = said_by(outcome_of(serve, error(status, "You exceeded", **members)), Fatal)
    assert "no quota left" in said


@pytest.mark.parametrize(
    "message",
    [
        "ExceededBudget: User=u over budget. Spend=2.1, Budget=2.0",
        "Budget has been exceeded! Current cost: 2.1, Max budget: 2.0",
        "this key has crossed budget, try again in 30d",
        "Team exceeded budget",
    ],
)
def test_a_spent_budget_in_a_plain_429_ends_the_run(serve: Serve, message: str) -> None:
    assert message in said_by(outcome_of(serve, error(429, message)), Fatal)


def test_an_unknown_model_ends_the_run_and_says_how_to_name_another(serve: Serve) -> None:
    said = said_by(outcome_of(serve, error(404, "no such model", code="model_not_found")), Fatal)
    assert "model-1" in said
    assert "ORBENCH_MODEL" not in said
    said = said_by(outcome_of(serve, error(404, "no such model"), "gemini-1.5"), Fatal)
    assert "ORBENCH_MODEL_GEMINI_1_5=provider/model-id" in said


@pytest.mark.parametrize(
    ("reply", "known"),
    [
        (error(404, "The model `gpt-x` does not exist."), True),
        (error(404, "gone", code="model_not_found"), True),
        (error(404, "retired"), True),
        (error(404, "Invalid URL (POST /v1/v1/chat/completions)"), False),
        (Reply('{"detail":"Not Found"}', 404), False),
        (Reply("404 page not found", 404, (), "text/plain"), False),
        (Reply("<html>Model zoo</html>", 404, (), "text/html"), False),
    ],
)
def test_a_404_is_blamed_on_what_it_names(serve: Serve, reply: Reply, known: bool) -> None:
    said = said_by(outcome_of(serve, reply), Fatal)
    assert ("does not know the model" in said) == known
    assert ("is not the address of an API" in said and "--base_url" in said) != known


# -- parameters that a model does not take -----------------------------------------------------

NO_MAX_TOKENS = error(
    400,
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead.",
    code="unsupported_parameter",
    param="max_tokens",
    type="invalid_request_error",
)
NO_TEMPERATURE = error(
    400,
    "Unsupported value: 'temperature' does not support 0.0 with this model. "
    "Only the default (1) value is supported.",
    code="unsupported_value",
    param="temperature",
    type="invalid_request_error",
)


def reasoning_model(body: Body, seen: int) -> Reply:
    """Rejects first the one parameter and then the other."""
    if "max_tokens" in body:
        return NO_MAX_TOKENS
    if "temperature" in body:
        return NO_TEMPERATURE
    return answer(f"Answer to {prompt_of(body)}")


def test_rejected_parameters_are_adapted_once_for_the_whole_run_and_said_once(serve: Serve) -> None:
    server = serve(reasoning_model)
    model = model_at(server.url)
    parameters = {"temperature": 0.0, "max_tokens": 9}
    requests = [Request(model, [user(word)], parameters) for word in ("one", "two", "three")]
    keys = [request.key() for request in requests]
    outcomes, notes = send(*requests)
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Answer)] == [
        "Answer to one",
        "Answer to two",
        "Answer to three",
    ]
    assert all(isinstance(o, Answer) and o.dropped == ("temperature",) for o in outcomes)
    assert len(server.requests) == 2 + 3
    for body in server.requests[2:]:
        assert body["max_completion_tokens"] == 9
        assert not {"max_tokens", "temperature"} & set(body)
    assert notes == [
        "model-1 takes max_completion_tokens in place of max_tokens",
        "model-1 rejects temperature: left out for the whole run",
    ]
    assert keys == [request.key() for request in requests]  # a rerun finds the answers
    assert parameters == {"temperature": 0.0, "max_tokens": 9}


def test_requests_under_way_together_adapt_without_saying_it_twice(serve: Serve) -> None:
    server = serve(reasoning_model)
    model = model_at(server.url)

    async def together() -> tuple[list[Answer], list[str]]:
        adaptation = Adaptation()
        sender = Chat(20.0, adaptation)
        requests = [
            Request(model, [user(str(n))], {"temperature": 0.0, "max_tokens": 9}) for n in range(8)
        ]
        try:
            return await asyncio.gather(*map(sender.send, requests)), adaptation.notes
        finally:
            await sender.close()

    answers, notes = asyncio.run(together())
    assert [found.text for found in answers] == [f"Answer to {n}" for n in range(8)]
    assert len(notes) == 2


def test_a_rejection_that_comes_back_behind_an_answer_costs_no_row(serve: Serve) -> None:
    def reply(body: Body, seen: int) -> Reply:
        found = reasoning_model(body, seen)
        late = prompt_of(body) == "late" and "max_tokens" in body
        return found._replace(delay=0.5) if late else found

    server = serve(reply)
    model = model_at(server.url)

    async def together() -> list[Answer]:
        sender = Chat(20.0, Adaptation())
        parameters = {"temperature": 0.0, "max_tokens": 9}
        requests = [Request(model, [user(text)], parameters) for text in ("late", "early")]
        try:
            return await asyncio.gather(*map(sender.send, requests))
        finally:
            await sender.close()

    answers = asyncio.run(together())
    assert [found.text for found in answers] == ["Answer to late", "Answer to early"]


def test_what_one_model_rejects_another_is_still_sent(serve: Serve) -> None:
    def reply(body: Body, seen: int) -> Reply:
        if body["model"] == "reasoner" and "temperature" in body:
            return NO_TEMPERATURE
        return answer("Hi!")

    server = serve(reply)
    requests = [
        Request(model_at(server.url, name), [user("hello")], {"temperature": 0.0})
        for name in ("reasoner", "plain", "reasoner")
    ]
    outcomes, _ = send(*requests)
    assert [o.dropped for o in outcomes if isinstance(o, Answer)] == [
        ("temperature",),
        (),
        ("temperature",),
    ]
    sent = [(body["model"], "temperature" in body) for body in server.requests]
    assert sent == [("reasoner", True), ("reasoner", False), ("plain", True), ("reasoner", False)]


@pytest.mark.parametrize(
    ("message", "members"),
    [
        ("temperature is deprecated for this model.", {}),
        ("`temperature`: Extra inputs are not permitted", {}),
        ("Unrecognized request argument supplied: temperature", {}),
        ("This model does not support the parameter", {"param": "temperature"}),
        ("Not good", {"param": "temperature", "code": "unsupported_parameter"}),
    ],
)
def test_each_way_to_reject_a_parameter_is_understood(
    serve: Serve, message: str, members: dict[str, Any]
) -> None:
    server = serve(
        lambda body, seen: (
            error(400, message, **members) if "temperature" in body else answer("Hi!")
        )
    )
    request = Request(model_at(server.url), [user("hello")], {"temperature": 0.0, "seed": 1})
    (outcome,), _ = send(request)
    assert isinstance(outcome, Answer)
    assert outcome.dropped == ("temperature",)
    assert server.requests[-1]["seed"] == 1


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2",
            "temperature",
        ),
        ("temperature: Input should be less than or equal to 1", None),
        (
            "max_tokens is too large: 9. This model supports at most 5 completion tokens",
            "max_tokens",
        ),
        ("This model's maximum context length is 10 tokens; you asked for max_tokens 9", None),
        ("'messages' must contain the word 'json', which is not supported here", "messages"),
        ("top_p and seed are not supported", None),
    ],
)
def test_a_value_out_of_range_is_the_users_to_mend(
    serve: Serve, message: str, param: str | None
) -> None:
    fault = outcome_of(serve, error(400, message, param=param), temperature=5.0, max_tokens=9)
    assert message[:20] in said_by(fault, BadRequest)


def test_a_server_that_rejects_everything_is_not_asked_for_ever(serve: Serve) -> None:
    names = ("max_tokens", "max_completion_tokens", "temperature", "top_p", "seed", "messages")

    def reply(body: Body, seen: int) -> Reply:
        name = next(name for name in names if name in body)
        return error(400, f"{name} is not supported")

    server = serve(reply)
    parameters = {"temperature": 0.0, "max_tokens": 9, "top_p": 1.0, "seed": 1}
    (fault,), _ = send(Request(model_at(server.url), [user("hello")], parameters))
    assert said_by(fault, BadRequest)
    assert len(server.requests) == 6
    assert set(server.requests[-1]) == {"model", "messages"}


# -- what a server may do beyond answering ------------------------------------------------------


@pytest.mark.parametrize("content_type", ["text/plain", "text/plain; charset=latin-1", "", "a/b"])
def test_a_completion_is_one_whatever_its_content_type(serve: Serve, content_type: str) -> None:
    said = outcome_of(serve, answer("Hi! 👍")._replace(content_type=content_type))
    assert said == Answer("Hi! 👍", "stop", "", "loopback-1", 10, 5)
    without = Reply(answer("Hi!").body, headers=(("Content-Type", None),))
    assert isinstance(outcome_of(serve, without), Answer)


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_would_lose_the_request_is_not_followed(serve: Serve, status: int) -> None:
    there = serve(lambda body, seen: answer("what a GET gets"))
    headers = (("Location", f"{there.url}/elsewhere?token=hidden"),)
    said = said_by(outcome_of(serve, Reply("moved", status, headers)), TurnedAway)
    assert f"{status}: requests are sent on to '{there.url}/elsewhere'" in said
    assert there.requests == []


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_keeps_the_request_is_followed(serve: Serve, status: int) -> None:
    there = serve(lambda body, seen: answer("Hi!"))
    headers = (("Location", f"{there.url}/chat/completions"),)
    outcome = outcome_of(serve, Reply("moved", status, headers))
    assert isinstance(outcome, Answer) and outcome.text == "Hi!"
    assert len(there.requests) == 1


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_has_an_end(serve: Serve, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    monkeypatch.setattr(chat, "LARGEST_BODY", 1 << 20)
    body = json.dumps({"choices": [{"message": {"content": "x" * (1 << 20)}}]}).encode()
    small = json.dumps({"choices": [{"message": {"content": "x" * (1 << 19)}}]}).encode()
    headers = (("Content-Encoding", "gzip"),) if packed else ()
    outcomes = [
        outcome_of(serve, Reply(gzip.compress(data) if packed else data, headers=headers))
        for data in (body, small)
    ]
    assert said_by(outcomes[0], Passing) == "an answer of more than 1 MB"
    assert isinstance(outcomes[1], Answer) and len(outcomes[1].text) == 1 << 19


def test_a_body_without_end_is_left(serve: Serve) -> None:
    assert chat.LARGEST_BODY == 16 << 20
    server = serve(lambda body, seen: Reply("x" * (1 << 16), fault="endless"))
    (outcome,), _ = send(Request(model_at(server.url), [user("hello")], {}))
    assert said_by(outcome, Passing) == "an answer of more than 16 MB"
    assert server.sent < 64 << 20  # some is under way in buffers


@pytest.mark.parametrize("name", ["OPENAI_ORG_ID", "OPENAI_PROJECT_ID"])
@pytest.mark.parametrize("value", ["org\nx", "örg", " org", "org\t"])
def test_a_variable_that_is_no_header_is_named(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    server = serve(lambda body, seen: answer("Hi!"))
    with pytest.raises(UserError, match=f"{name} holds characters that no header can have"):
        send(Request(model_at(server.url), [user("hello")], {}))
    assert server.requests == []


# -- keys --------------------------------------------------------------------------------------

ECHOES = {
    "in the text": answer(f"Your key is {KEY}, {KEY}."),
    "in a part of the text": choice({"content": [{"type": "text", "text": KEY}]}),
    "in the refusal": answer(None, "stop", refusal=f"Not with {KEY}"),
    "in the finish reason": answer("Hi!", KEY),
    "in the model": Reply(completion(model=KEY, choices=[{"message": {"content": "Hi!"}}])),
    "in a block": error(400, f"blocked {KEY}", code="content_filter"),
    "in an error with status 200": Reply(json.dumps({"error": {"message": KEY}})),
    "behind much else": error(400, "x" * 290 + KEY),
    "in a page": Reply(f"<html>{KEY}</html>", 502, content_type="text/html"),
    **{
        str(status): error(status, f"wrong {KEY}") for status in (400, 401, 403, 404, 408, 429, 500)
    },
}


@pytest.mark.parametrize("reply", ECHOES.values(), ids=ECHOES)
def test_a_server_that_echoes_the_key_does_not_get_it_into_what_is_kept(
    serve: Serve, reply: Reply
) -> None:
    server = serve(lambda body, seen: reply)
    outcomes, notes = send(Request(model_at(server.url), [user("hello")], {"temperature": 0.0}))
    kept = repr(outcomes) + str(outcomes[0]) + repr(notes)
    assert KEY not in kept
    assert KEY[:-1] not in kept
    assert KEY in server.headers


@pytest.mark.parametrize("around", [f'"{KEY}"', f"'{KEY}'", f"Bearer {KEY}", f' "bearer  {KEY}" '])
def test_a_key_that_was_copied_with_more_around_it_is_sent_bare_and_masked_in_both_forms(
    around: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", around)
    assert bare_key(around) == KEY
    server = serve(lambda body, seen: answer(f"Your key is {KEY}, as in {around.strip()}."))
    (outcome,), _ = send(Request(model_at(server.url), [user("hello")], {}))
    assert f"Bearer {KEY}\r\n" in server.headers + "\r\n"
    assert KEY not in repr(outcome)
    assert KEY not in str(outcome_of(serve, error(401, f"what is {around}?")))


def test_a_stand_in_for_a_key_does_not_change_answers_that_hold_the_word(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for word in ("EMPTY", "none", "x", "test"):
        monkeypatch.setenv("OPENAI_API_KEY", word)
        outcome = outcome_of(serve, answer(f"An {word} example of text"))
        assert isinstance(outcome, Answer)
        assert outcome.text == f"An {word} example of text"


# -- what a request is -------------------------------------------------------------------------

MODEL = model_at("http://127.0.0.1:9/v1")
SAME = Request(MODEL, [user("hello")], {"temperature": 0.0})


def test_equal_requests_have_equal_keys_of_16_bytes() -> None:
    again = Request(MODEL, [user("hello")], {"temperature": 0.0})
    assert again.key() == SAME.key() == SAME.key()
    assert len(SAME.key()) == 16
    parameters = {"max_tokens": 9, "temperature": 0.0}
    turned = dict(reversed(parameters.items()))
    assert Request(MODEL, [], parameters).key() == Request(MODEL, [], turned).key()


OTHERS = {
    "prompt": Request(MODEL, [user("hello ")], {"temperature": 0.0}),
    "role": Request(MODEL, [system("hello")], {"temperature": 0.0}),
    "more messages": Request(MODEL, [system("hi"), user("hello")], {"temperature": 0.0}),
    "parameter": Request(MODEL, [user("hello")], {"temperature": 0.1}),
    "another parameter": Request(MODEL, [user("hello")], {"top_p": 0.0}),
    "no parameter": Request(MODEL, [user("hello")], {}),
    "model": Request(MODEL._replace(id="model-2"), [user("hello")], {"temperature": 0.0}),
    "endpoint": Request(
        MODEL._replace(base_url="http://127.0.0.1:10/v1"), [user("hello")], {"temperature": 0.0}
    ),
    "sample": Request(MODEL, [user("hello")], {"temperature": 0.0}, sample=1),
    "ask": Request(MODEL, [user("hello")], {"temperature": 0.0}, ask=1),
}


def test_anything_that_differs_makes_another_key() -> None:
    keys = {name: request.key() for name, request in {"same": SAME, **OTHERS}.items()}
    assert len(set(keys.values())) == len(keys)
    assert SAME.again(0).key() == SAME.key()
    assert SAME.again(1).key() == OTHERS["ask"].key()
    assert Request(MODEL, [user("hello")], {"temperature": 0.0}, 1).again(2).sample == 1


def test_the_key_follows_from_neither_name_nor_secret_of_the_endpoint() -> None:
    other = MODEL._replace(
        asked="alias", base_url="http://me:secret@127.0.0.1:9/v1?key=1", key_variable="MY_KEY"
    )
    assert Request(other, [user("hello")], {"temperature": 0.0}).key() == SAME.key()


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_makes_a_request(text: str) -> None:
    request = Request(MODEL, [system(text), user(text)], {})
    assert len(request.key()) == 16
    json.dumps(request.body(), ensure_ascii=False).encode("utf-8")


@given(st.text(st.characters(exclude_categories=())))
def test_what_a_server_says_is_made_fit_for_a_line_of_a_terminal(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert len(line) <= 300
    assert line == one_line(line)


def test_what_a_server_says_at_length_is_cut(serve: Serve) -> None:
    said = said_by(outcome_of(serve, error(400, "no " * 10_000)), BadRequest)
    assert said.startswith("400: no no")
    assert said.endswith("…")
    assert len(said) <= 310


def test_the_scripted_model_answers_without_a_key_and_always_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    request = Request(resolve("scripted", environment={}), [user("hello")], {"temperature": 0.0})
    one, _ = send(request)
    two, _ = send(request)
    assert one == two
    assert isinstance(one[0], Answer)
    assert one[0].text
    assert one[0].model == "scripted"


# -- what only looks like a rejected parameter -------------------------------------------------


@pytest.mark.parametrize(
    ("message", "members"),
    [
        ("content 'At what temperature do birds fold?' holds an unsupported character", {}),
        ("temperature 3.5 is not supported, must be in [0, 2]", {}),
        ("max_tokens above 296 not allowed for this prompt", {}),
        ("does not support 'system', see temperature docs", {"param": "messages[0].role"}),
    ],
)
def test_a_400_that_only_mentions_a_parameter_changes_nothing(
    serve: Serve, message: str, members: dict[str, Any]
) -> None:
    server = serve(lambda body, seen: error(400, message, **members))
    parameters = {"temperature": 3.5, "max_tokens": 1000}
    (fault,), _ = send(Request(model_at(server.url), [user("hello")], parameters))
    assert said_by(fault, BadRequest)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        error(400, "Content Exists Risk", code="invalid_request_error"),
        error(400, "Output blocked by content filtering policy", type="invalid_request_error"),
        error(
            400,
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
            code="invalid_prompt",
        ),
        Reply(completion(choices=[{"finish_reason": "content_filter", "message": None}])),
    ],
)
def test_a_policy_block_in_each_providers_words_is_a_refusal(serve: Serve, reply: Reply) -> None:
    server = serve(lambda body, seen: reply)
    (found,), _ = send(Request(model_at(server.url), [user("hello")], {}))
    assert isinstance(found, Answer)
    assert found.finish_reason == "content_filter"
    assert len(server.requests) == 1


def test_an_absurd_usage_is_no_usage(serve: Serve) -> None:
    body = completion(choices=[{"message": {"content": "Hi!"}}], usage={"prompt_tokens": 10**400})
    (found,), _ = send(Request(model_at(serve(lambda b, s: Reply(body)).url), [user("hello")], {}))
    assert isinstance(found, Answer)
    assert (found.text, found.prompt_tokens) == ("Hi!", 0)


XAI = {"code": "The caller may not", "error": "Content violates usage guidelines."}
GEMINI_KEY = [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID"}}]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(json.dumps(XAI), 403),
        error(400, "Input may hold odd words.", code="data_inspection_failed"),
        error(422, "no", code="content_policy_violation"),
        Reply(json.dumps({"error": {"message": "blocked", "code": "content_filter"}})),
    ],
    ids=["xAI", "DashScope", "422", "status 200"],
)
def test_a_policy_block_is_a_refusal_whatever_its_form(serve: Serve, reply: Reply) -> None:
    assert outcome_of(serve, reply) == Answer("", "content_filter")


def test_a_refusal_among_the_parts_of_a_message_is_the_apis(serve: Serve) -> None:
    parts = [{"type": "refusal", "refusal": "I will not."}]
    data = completion(choices=[{"finish_reason": "stop", "message": {"content": parts}}])
    found = outcome_of(serve, Reply(data))
    assert isinstance(found, Answer)
    assert (found.text, found.refusal) == ("", "I will not.")


def test_an_error_in_a_list_or_a_page_says_what_it_can(serve: Serve) -> None:
    said = said_by(outcome_of(serve, Reply(json.dumps(GEMINI_KEY), 400)), BadRequest)
    assert said == "400: API key not valid."
    page = Reply("<html>long</html>", 400, content_type="text/html")
    assert "html" not in said_by(outcome_of(serve, page), BadRequest)
