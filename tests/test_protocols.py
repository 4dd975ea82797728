"""Each way to ask: what goes out, and what the documented answers and errors are read as.

The shapes are those of the pages named in orbench/protocols.py and orbench/api_category.py.
"""

import argparse
import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbench import options
from orbench.answers import Answer
from orbench.api_category import category_in
from orbench.chat import (
    Adaptation,
    BadRequest,
    Chat,
    Fatal,
    Limited,
    Passing,
    Request,
    assistant,
    read_answer,
    system,
    user,
)
from orbench.columns import OVERALL
from orbench.models import Model, is_same_model, resolve
from orbench.protocols import PROTOCOLS
from orbench.report.measurements import Source, measure
from orbench.report.results import results_of
from orbench.terminal import UserError
from tests.conftest import ALIGN, KEY, prompts_csv, read_csv, read_record, run
from tests.server import Body, Reply, Server, answer, completion, error, prompt_of

Serve = Callable[..., Server]
SCHEMA = {"type": "object"}
FORM = {"type": "json_schema", "json_schema": {"name": "v", "strict": True, "schema": SCHEMA}}
MESSAGES = [system("Be kind."), user("hello"), assistant("Hi!"), user("again")]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("OPENAI", "ANTHROPIC", "OPENROUTER"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)


def send(server: Server, model: Model, **parameters: Any) -> tuple[Answer | Exception, list[str]]:
    """What comes of one request, and what the user must hear."""

    async def once() -> tuple[Answer | Exception, list[str]]:
        adaptation = Adaptation()
        sender = Chat(20.0, adaptation)
        try:
            return await sender.send(Request(model, MESSAGES, parameters)), adaptation.notes
        except (Passing, Limited, BadRequest, Fatal) as fault:
            return fault, adaptation.notes
        finally:
            await sender.close()

    return asyncio.run(once())


def claude(server: Server, name: str = "claude-opus-5") -> Model:
    return resolve(f"anthropic/{name}", environment={"ANTHROPIC_BASE_URL": server.url})


def pro(server: Server) -> Model:
    return resolve("o3-pro", environment={"OPENAI_BASE_URL": server.url})


def openrouter(server: Server) -> Model:
    return resolve("openrouter/a/b", environment={"OPENROUTER_BASE_URL": server.url})


# -- Anthropic's messages ----------------------------------------------------------------------


def message(content: object, stop_reason: str = "end_turn", **members: Any) -> Reply:
    usage = {"input_tokens": 10, "output_tokens": 5}
    data: Body = {"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-5"}
    data |= {"content": content, "stop_reason": stop_reason, "usage": usage}
    return Reply(json.dumps(data | members))


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
CLAUDE = Answer("Hi!", "stop", "", "claude-opus-5", 10, 5)


def test_messages_go_out_as_their_makers_page_says(serve: Serve) -> None:
    server = serve(lambda body, seen: message([THINKING, text("Hi!")]))
    sent = {"max_tokens": 9, "reasoning_effort": "low", "response_format": FORM, "top_k": 4}
    assert send(server, claude(server), **sent) == (CLAUDE, [])
    assert server.requests == [
        {
            "model": "claude-opus-5",
            "system": "Be kind.",
            "messages": [dict(one) for one in MESSAGES[1:]],
            "max_tokens": 9,
            "top_k": 4,
            "output_config": {
                "effort": "low",
                "format": {"type": "json_schema", "schema": SCHEMA},
            },
        }
    ]
    headers = server.headers.lower()
    assert headers.startswith("post /v1/messages ")
    assert f"x-api-key: {KEY}" in headers
    assert "anthropic-version: 2023-06-01" in headers
    assert "authorization" not in headers


DETAILS = {"type": "refusal", "category": "cyber", "explanation": "This request was declined."}
USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 7,
    "cache_creation_input_tokens": 3,
    "output_tokens": 50,
    "output_tokens_details": {"thinking_tokens": 40},
}
CLAUDE_ANSWERS: dict[str, tuple[Reply, Answer]] = {
    "thinking first": (message([THINKING, text("Hi"), text("!")]), CLAUDE),
    "thinking that is hidden": (message([{"type": "redacted_thinking"}, text("Hi!")]), CLAUDE),
    "refused before a word": (
        message([], "refusal", stop_details=DETAILS),
        CLAUDE._replace(text="", finish_reason="refusal", api_category="cyber"),
    ),
    "refused in the middle": (
        message([text("Hi!")], "refusal", stop_details=DETAILS),
        CLAUDE._replace(finish_reason="refusal", api_category="cyber"),
    ),
    "no category": (
        message(None, "refusal", stop_details={"type": "refusal", "category": None}),
        CLAUDE._replace(text="", finish_reason="refusal"),
    ),
    "cut off while thinking": (
        message([THINKING], "max_tokens"),
        CLAUDE._replace(text="", finish_reason="length"),
    ),
    "out of context": (
        message([text("Hi!")], "model_context_window_exceeded"),
        CLAUDE._replace(finish_reason="length"),
    ),
    "nothing at all": (message([]), CLAUDE._replace(text="")),
    "a cache and thinking": (
        message([text("Hi!")], usage=USAGE),
        CLAUDE._replace(
            prompt_tokens=20, completion_tokens=50, cached_tokens=7, reasoning_tokens=40
        ),
    ),
}


@pytest.mark.parametrize(("reply", "wanted"), CLAUDE_ANSWERS.values(), ids=CLAUDE_ANSWERS)
def test_an_answer_of_claude_is_read(serve: Serve, reply: Reply, wanted: Answer) -> None:
    server = serve(lambda body, seen: reply)
    assert send(server, claude(server), max_tokens=9)[0] == wanted


def claude_error(status: int, type_: str, said: str, headers: Any = ()) -> Reply:
    body = {"type": "error", "error": {"type": type_, "message": said}, "request_id": "r"}
    return Reply(json.dumps(body), status, tuple(headers))


CLAUDE_ERRORS = {
    "overloaded": (claude_error(529, "overloaded_error", "Overloaded"), Passing),
    "too fast": (claude_error(429, "rate_limit_error", "Slow down."), Limited),
    "broken": (claude_error(500, "api_error", "Internal server error"), Passing),
    "too long": (claude_error(413, "request_too_large", "Request too large"), BadRequest),
    "wrong": (claude_error(400, "invalid_request_error", "max_tokens: 9 < 0"), BadRequest),
    "no credit": (
        claude_error(400, "invalid_request_error", "Your credit balance is too low to ..."),
        Fatal,
    ),
    "spent": (
        claude_error(429, "rate_limit_error", "You have reached your specified API usage limits."),
        Fatal,
    ),
    "bad key": (claude_error(401, "authentication_error", "invalid x-api-key"), Fatal),
    "no such model": (claude_error(404, "not_found_error", "model: claude-x"), Fatal),
}


@pytest.mark.parametrize(("reply", "kind"), CLAUDE_ERRORS.values(), ids=CLAUDE_ERRORS)
def test_an_error_of_claude_is_of_its_kind(
    serve: Serve, reply: Reply, kind: type[Exception]
) -> None:
    server = serve(lambda body, seen: reply)
    fault, _ = send(server, claude(server), max_tokens=9)
    assert type(fault) is kind


def test_an_overloaded_claude_is_waited_for_as_long_as_it_says(serve: Serve) -> None:
    busy = claude_error(529, "overloaded_error", "Overloaded", [("Retry-After", "3")])
    server = serve(lambda body, seen: busy)
    fault, _ = send(server, claude(server), max_tokens=9)
    assert isinstance(fault, Limited)
    assert fault.wait == 3


def test_what_newer_claudes_reject_is_left_out_and_a_seed_they_never_had_too(serve: Serve) -> None:
    said = "`temperature` is deprecated for this model."

    def reply(body: Body, seen: int) -> Reply:
        if "temperature" in body:
            return claude_error(400, "invalid_request_error", said)
        return message([text("Hi!")])

    server = serve(reply)
    found, notes = send(server, claude(server), max_tokens=9, temperature=0.0, seed=3)
    assert isinstance(found, Answer)
    assert set(found.dropped) == {"temperature", "seed"}
    assert len(notes) == 2
    assert all("seed" not in body for body in server.requests)


# -- OpenAI's responses ------------------------------------------------------------------------


def response(*output: Any, status: str = "completed", **members: Any) -> Reply:
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 15,
    }
    data: Body = {"id": "r", "object": "response", "model": "o3-pro-2025-06-10", "error": None}
    data |= {"status": status, "incomplete_details": None, "output": output, "usage": usage}
    return Reply(json.dumps(data | members))


def item(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": parts}


REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
SAID = {"type": "output_text", "text": "Hi!", "annotations": []}
PRO = Answer("Hi!", "stop", "", "o3-pro-2025-06-10", 10, 5, (), 4, 3)


def test_responses_go_out_as_the_packages_types_say(serve: Serve) -> None:
    server = serve(lambda body, seen: response(REASONING, item(SAID)))
    sent = {"max_tokens": 9, "reasoning_effort": "high", "response_format": FORM}
    more = {"reasoning": {"summary": "auto"}}
    assert send(server, pro(server), **sent, **more) == (PRO, [])
    assert server.headers.startswith("POST /v1/responses ")
    assert server.requests == [
        {
            "model": "o3-pro",
            "input": [dict(one) for one in MESSAGES],
            "store": False,
            "max_output_tokens": 9,
            "reasoning": {"summary": "auto", "effort": "high"},
            "text": {
                "format": {"type": "json_schema", "name": "v", "strict": True, "schema": SCHEMA}
            },
        }
    ]


def incomplete(why: str) -> dict[str, Any]:
    return {"status": "incomplete", "incomplete_details": {"reason": why}}


REFUSED = {"type": "refusal", "refusal": "I cannot."}
RESPONSES: dict[str, tuple[Reply, Answer]] = {
    "reasoning first": (response(REASONING, item(SAID)), PRO),
    "a refusal": (response(item(REFUSED)), PRO._replace(text="", refusal="I cannot.")),
    "cut off": (
        response(REASONING, **incomplete("max_output_tokens")),
        PRO._replace(text="", finish_reason="length"),
    ),
    "filtered": (
        response(item(SAID), **incomplete("content_filter")),
        PRO._replace(finish_reason="content_filter"),
    ),
    "nothing": (response(), PRO._replace(text="")),
    "a policy": (
        response(status="failed", error={"code": "bio_policy", "message": "no"}),
        Answer("", "content_filter", api_category="bio_policy"),
    ),
}


@pytest.mark.parametrize(("reply", "wanted"), RESPONSES.values(), ids=RESPONSES)
def test_a_response_is_read(serve: Serve, reply: Reply, wanted: Answer) -> None:
    server = serve(lambda body, seen: reply)
    assert send(server, pro(server), max_tokens=9)[0] == wanted


@pytest.mark.parametrize("status", ["failed", "cancelled", "in_progress"])
def test_a_response_without_an_end_is_a_fault_that_can_pass(serve: Serve, status: str) -> None:
    failed = {"error": {"code": "server_error", "message": "no"}} if status == "failed" else {}
    server = serve(lambda body, seen: response(status=status, **failed))
    assert type(send(server, pro(server))[0]) is Passing


# -- any protocol ------------------------------------------------------------------------------

WORDS = ["stop_reason", "content", "usage", "output", "status", "completed", "type", "text"]
WORDS += ["message", "stop_details", "incomplete_details", "incomplete", "reason", "choices"]
ODD_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=12,
)


@settings(max_examples=100)
@given(data=ODD_JSON, protocol=st.sampled_from(list(PROTOCOLS)))
def test_no_json_is_too_odd_for_any_protocol(data: object, protocol: str) -> None:
    try:
        found = read_answer(PROTOCOLS[protocol].read(data), resolve("gpt-x", environment={}))
    except Passing:
        return
    assert isinstance(found.text, str)


def test_each_sample_has_a_seed_of_its_own() -> None:
    model = resolve("gpt-x", environment={})
    bodies = [Request(model, MESSAGES, {"seed": 5}, sample=n).body() for n in range(3)]
    assert [body["seed"] for body in bodies] == [5, 6, 7]


PLAIN: dict[str, tuple[str, str]] = {
    "anthropic/claude-opus-5": ("messages", "/v1/"),
    "claude-3-opus-20240229": ("messages", "/v1/"),
    "openai/gpt-5.5-pro": ("responses", "/v1"),
    "o3-deep-research": ("responses", "/v1"),
    "gpt-4-turbo-2024-04-09": ("chat", "/v1"),
    "gpt-4o-mini": ("chat", "/v1"),
    "openrouter/anthropic/claude-opus-5": ("chat", "/v1"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_model_is_asked_as_its_provider_is(name: str) -> None:
    model = resolve(name, environment={})
    protocol, ending = PLAIN[name]
    assert model.protocol == protocol
    assert model.base_url.endswith(ending)
    assert resolve(name, base_url="http://h/v1", environment={}).protocol == "chat"
    assert resolve(name, protocol="responses", environment={}).protocol == "responses"


@pytest.mark.parametrize(
    ("asked", "returned", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", False),
        ("gpt-4-turbo-2024-04-09", "gpt-4-turbo", True),
        ("gpt-5", "gpt-5.1", False),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("claude-opus-4", "claude-opus-4-1", False),
        ("mistral-large-latest", "mistral-large-2411", True),
        ("mistralai/mixtral-8x7b-instruct", "mixtral-8x7b-instruct", True),
        ("gemini-1.5-pro", "models/gemini-1.5-pro-002", True),
        ("anything", "", True),
        ("smollm2", "SmolLM2-135M-Instruct.Q4_1", True),
        ("a", "b", False),
    ],
)
def test_a_version_of_a_model_is_that_model(asked: str, returned: str, same: bool) -> None:
    assert is_same_model(asked, returned) is same


# -- tokens as billed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "tokens"),  # prompt, completion, cached, reasoning
    [
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 8,
                "total_tokens": 17,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            (9, 8, 4, 7),
        ),
        # Gemini: thinking is only in the total. xAI: said, but not in the completion.
        ({"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623}, (20, 603, 0, 405)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 8,
                "total_tokens": 57,
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            (9, 48, 0, 40),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 8, "prompt_cache_hit_tokens": 5}, (9, 8, 5, 0)),
        ({"prompt_tokens": 9, "completion_tokens": 8, "prompt_tokens_details": 1}, (9, 8, 0, 0)),
    ],
)
def test_tokens_are_counted_as_they_are_billed(usage: Body, tokens: tuple[int, ...]) -> None:
    data = json.loads(completion(choices=[{"message": {"content": "x"}}], usage=usage))
    found = read_answer(data, resolve("gpt-x", environment={}))
    assert tokens == (
        *(found.prompt_tokens, found.completion_tokens),
        *(found.cached_tokens, found.reasoning_tokens),
    )


# -- categories of refusals --------------------------------------------------------------------

AZURE = {"hate": {"filtered": True, "severity": "high"}, "violence": {"filtered": False}}
JAILBREAK = {"jailbreak": {"detected": True, "filtered": True}}
RATING = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}
PLACES: dict[str, tuple[Any, str]] = {
    "Anthropic": ({"stop_details": {"category": "bio", "explanation": "hate"}}, "bio"),
    "Azure, the answer": ({"content_filter_results": AZURE}, "hate"),
    "Azure, the prompt": ({"prompt_filter_results": [{"content_filter_results": AZURE}]}, "hate"),
    "Azure, an error": (
        {"code": "content_filter", "innererror": {"content_filter_result": {**AZURE, **JAILBREAK}}},
        "hate, jailbreak",
    ),
    "Gemini, the prompt": (
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
        "PROHIBITED_CONTENT",
    ),
    "Gemini, the answer": (
        {"safety_ratings": [{"category": "x", "blocked": False}, RATING]},
        "HARM_CATEGORY_HARASSMENT",
    ),
    "OpenRouter": ({"metadata": {"reasons": ["harassment"]}}, "harassment"),
    "OpenAI": ({"code": "misalignment_policy_violation"}, "misalignment_policy_violation"),
    "none": ({"code": "content_filter", "stop_details": None, "choices": []}, ""),
    "odd": ({"stop_details": [1], "safety_ratings": {"a": 1}, "metadata": {"reasons": "x"}}, ""),
}


@pytest.mark.parametrize(("place", "category"), PLACES.values(), ids=PLACES)
def test_the_category_that_an_api_names_is_found(place: Any, category: str) -> None:
    assert category_in(place) == category


def test_an_answer_that_was_not_refused_has_no_category(serve: Serve) -> None:
    choice = {"finish_reason": "stop", "message": {"content": "Hi!"}}
    choice["content_filter_results"] = AZURE
    server = serve(lambda body, seen: Reply(completion(choices=[choice])))
    model = resolve("gpt-x", base_url=server.url, environment={})
    found, _ = send(server, model)
    assert isinstance(found, Answer)
    assert found.api_category == ""
    choice["finish_reason"] = "content_filter"
    found, _ = send(server, model)
    assert isinstance(found, Answer)
    assert found.api_category == "hate"


def test_an_error_of_azure_names_its_filters(serve: Serve) -> None:
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": AZURE}
    server = serve(lambda body, seen: error(400, "no", code="content_filter", innererror=inner))
    found, _ = send(server, resolve("gpt-x", base_url=server.url, environment={}))
    assert found == Answer("", "content_filter", api_category="hate")


# -- what is sent beside the messages ----------------------------------------------------------


def asked(*flags: str, model: str = "gpt-4o", usual: int | None = 1000) -> dict[str, Any]:
    parser = options.Parser("")
    options.add_asking(parser, 0.0, usual)
    return options.parameters_of(parser.parse_args(flags), resolve(model, environment={}))


def test_what_is_not_said_is_not_sent() -> None:
    assert asked() == {"temperature": 0.0, "max_tokens": 1000}
    assert asked(usual=None) == {"temperature": 0.0}
    assert asked("--temperature=none", "--max_tokens=7") == {"max_tokens": 7}


def test_effort_seed_and_any_other_field_are_passed_through() -> None:
    more = ("--top_p=0.9", "--seed=3", "--reasoning_effort=ultra", '--extra_body={"top_k": 4}')
    found = asked(*more)
    wanted = {"top_p": 0.9, "seed": 3, "reasoning_effort": "ultra", "top_k": 4}
    assert wanted.items() <= found.items()


def test_the_state_of_a_model_is_said_in_words() -> None:
    parser = options.Parser("")
    options.add_asking(parser, 0.0, 1000)
    body = {"thinking": {"type": "disabled"}, "provider": {"only": ["x"]}}
    flags = ["--reasoning_effort=high", f"--extra_body={json.dumps(body)}"]
    said = options.state_of(parser.parse_args(flags))
    assert said == 'effort high, thinking.type disabled, provider.only ["x"]'
    assert options.state_of(parser.parse_args([])) == ""


@pytest.mark.parametrize("name", ["reasoning", "output_config"])
def test_an_effort_is_given_once(name: str) -> None:
    parser = options.Parser("")
    options.add_asking(parser, 0.0, 1000)
    args = parser.parse_args([f'--extra_body={{"{name}": {{"effort": "low"}}}}'])
    assert options.parameters_of(args, resolve("o3-pro"))[name] == {"effort": "low"}
    args.reasoning_effort = "high"
    with pytest.raises(UserError, match=f"{name}.effort of --extra_body"):
        options.parameters_of(args, resolve("o3-pro"))


def test_a_model_that_thinks_has_room_for_it_from_the_start(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for model, flags, limit in (
        ("gpt-4o", (), 1000),
        ("o3", (), 16_000),
        ("o3", ("--max_tokens=500",), 500),
        ("claude-opus-5", (), 16_000),
        ("claude-sonnet-4-5", (), 1000),
        ("claude-sonnet-4-5", ("--reasoning_effort=high",), 16_000),
        ("gpt-5.5", ("--reasoning_effort=none",), 1000),
    ):
        assert asked(*flags, model=model)["max_tokens"] == limit, (model, flags)
        said = capsys.readouterr().err
        assert ("--max_tokens is 16,000, not 1,000" in said) == (limit == 16_000)
    assert asked(model="claude-3-opus-20240229", usual=None)["max_tokens"] == 4096


def test_openrouter_drops_nothing_silently_unless_told_to() -> None:
    found = asked(model="openrouter/a/b", usual=None)
    assert found["provider"] == {"require_parameters": True}
    for wish in ({"only": ["x"]}, {"require_parameters": False}):
        flag = f"--extra_body={json.dumps({'provider': wish})}"
        found = asked(flag, model="openrouter/a/b", usual=None)
        assert found["provider"] == {"require_parameters": True} | wish


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": 1e400}', "not JSON"),
        ('{"a": "\\ud800"}', "not JSON"),
        ('{"a":' * 20_000, "not JSON"),
        *[(f'{{"{name}": 1}}', f"{name} cannot be set") for name in sorted(options.OWN_FIELDS)],
    ],
)
def test_a_body_that_cannot_be_is_turned_down_in_one_line(given_: str, why: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=why) as found:
        options.extra_body(given_)
    assert str(found.value).isprintable()
    assert len(str(found.value)) < 600


def test_where_openrouter_has_no_provider_one_line_says_what_to_leave_out(serve: Serve) -> None:
    said = "No endpoints found that can handle the requested parameters."
    takes = [["max_tokens", "temperature"], ["max_tokens", "seed", "top_k"]]
    ends = [{"supported_parameters": names} for names in takes]

    def reply(body: Body, seen: int) -> Reply:
        return (
            error(404, said, code=404) if body else Reply(json.dumps({"data": {"endpoints": ends}}))
        )

    server = serve(reply)
    sent = {"temperature": 0.0, "max_tokens": 9, "seed": 1, "top_k": 2, "provider": {}}
    fault, _ = send(server, openrouter(server), **sent)
    assert type(fault) is Fatal
    assert "leave out temperature (" in str(fault)
    assert str(fault).isprintable()
    ends = []
    fault, _ = send(server, openrouter(server), **sent)
    assert "leave out one of temperature, max_tokens, seed, top_k (" in str(fault)


# -- a whole run -------------------------------------------------------------------------------


def test_a_run_says_who_answered_what_was_refused_and_what_it_cost(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 6)
    replies = {
        "0": message([THINKING, text("Fold it.")], usage=USAGE),
        "1": message([], "refusal", stop_details=DETAILS),
        "2": message([text("Fold it.")], model="claude-haiku-5"),
        "3": message([]),
    }

    def reply(body: Body, seen: int) -> Reply:
        return replies.get(prompt_of(body)[-2], message([text("Fold it.")]))

    server = serve(reply)
    env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
    flags = ("--model=claude-opus-5", "--input_file=p.csv", "--reasoning_effort=low")
    prices = ("--price_in=1000", "--price_out=1e4", "--price_cached=100", "--output_path=o.csv")
    done = run(ALIGN, *flags, *prices, cwd=tmp_path, env=env)
    assert done.returncode == 3, done.stderr
    rows = {row["prompt"][-2]: row for row in read_csv(tmp_path / "o.csv")}
    assert [rows[n]["api_category"] for n in "0124"] == ["", "cyber", "", ""]
    assert [rows[n]["served_by"] for n in "012"] == [
        *("claude-opus-5", "claude-opus-5", "claude-haiku-5")
    ]
    assert rows["1"]["rejection_reason"] == "api:refusal"
    assert "tokens in 70 (cached 7), out 75 (thinking 40)" in done.stderr
    # 63 tokens at 1,000 a million, 7 at 100 and 75 at 10,000
    assert "cost 0.8137 · 1 not from claude-opus-5 but from claude-haiku-5 (1)" in done.stderr
    assert "1 of 6 answers are empty and do not say why" in done.stderr
    assert "may think before it answers" in done.stderr
    record = read_record(tmp_path / "o.csv")
    assert record["tokens"] == {"prompt": 70, "cached": 7, "completion": 75, "reasoning": 40}
    assert record["parameters"]["reasoning_effort"] == "low"
    assert record["parameters"]["max_tokens"] == 16_000
    assert record["models"][0]["protocol"] == "messages"
    assert record["models"][0]["served_by"] == {"claude-opus-5": 5, "claude-haiku-5": 1}
    assert record["counts"]["empty"] == 1
    (found,) = results_of(measure([Source(tmp_path / "o.csv", "", "over_refusal")]), None, False)[
        lambda table: table["category"] == OVERALL
    ].to_dict("records")
    assert found["model"] == "claude-opus-5 [effort low]"
    assert (found["api_refusals"], found["api_categories"]) == (1, "cyber 1")
    assert found["other_models"] == 1
    assert "answered by another model than the one asked: 1" in found["notes"]


def test_a_gateway_names_the_provider_and_a_moved_alias_is_said(
    serve: Serve, tmp_path: Path
) -> None:
    prompts_csv(tmp_path / "p.csv", 2)

    def reply(body: Body, seen: int) -> Reply:
        day = "2024-08-06" if prompt_of(body).endswith("0?") else "2024-11-20"
        choices = [{"finish_reason": "stop", "message": {"content": "Fold it."}}]
        return Reply(completion(choices=choices, model=f"m-{day}", provider="DeepInfra"))

    server = serve(reply)
    args = ("--model=m", "--input_file=p.csv", "--output_path=o.csv", "--quiet")
    done = run(ALIGN, *args, cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    served = [row["served_by"] for row in read_csv(tmp_path / "o.csv")]
    assert served == ["m-2024-08-06 via DeepInfra", "m-2024-11-20 via DeepInfra"]
    assert "m answered as m-2024-08-06 (1), m-2024-11-20 (1)" in done.stderr


def test_a_gateway_without_refusals_is_no_reason_to_warn(serve: Serve, tmp_path: Path) -> None:
    prompts_csv(tmp_path / "p.csv", 50)
    server = serve(lambda body, seen: answer("" if " 7?" in prompt_of(body) else "Fold it."))
    args = ("--model=loopback-1", "--input_file=p.csv", "--output_path=o.csv")
    done = run(ALIGN, *args, cwd=tmp_path, url=server.url)
    assert done.returncode == 3
    assert read_record(tmp_path / "o.csv")["counts"]["empty"] == 1  # 2 % of the rows
    assert "are empty" not in done.stderr
    assert "not from" not in done.stderr
