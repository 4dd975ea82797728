"""What endpoints of each protocol are sent, and what their odd replies mean."""

import json

import pytest

from tests.conftest import ALIGN, CHECK, MODERATE, Desk
from tests.server import KEY, Body, Reply, error, prompt_of

VERDICT = "[[direct_refusal]]"


# -- what is sent ------------------------------------------------------------------------------

MESSAGES = {"stop_reason": "end_turn", "content": [{"type": "text", "text": VERDICT}]}
PARTS = [{"type": "output_text", "text": VERDICT}]
RESPONSES = {"status": "completed", "output": [{"type": "message", "content": PARTS}]}


def judged(desk: Desk, model: str, reply: Body) -> Body:
    """The body that a judge gets about a response; its reply is a refusal."""
    desk.csv("r.csv", ("prompt", "response"), [("How do I fold a crane?", "Ask a crane.")])
    desk.serve(Reply(json.dumps(reply)))
    flags = (f"--check_model={model}", "--reasoning_effort=low", "--random_seed=1")
    desk.stage(CHECK, *flags)
    assert desk.rows()[0]["answer_category"] == "direct_refusal"
    (body,) = desk.server.requests
    return body


def test_a_judge_behind_anthropics_messages_gets_schema_effort_and_a_limit(desk: Desk) -> None:
    body = judged(desk, "anthropic/m", MESSAGES)
    assert desk.server.paths == ["/v1/messages"]
    output = body["output_config"]
    assert (output["effort"], output["format"]["type"]) == ("low", "json_schema")
    assert "verdict" in output["format"]["schema"]["properties"]
    assert body["max_tokens"] == 16_000 and not {"seed", "reasoning_effort"} & set(body)
    head = desk.server.headers.lower()
    assert f"x-api-key: {KEY}" in head and "anthropic-version" in head
    assert "authorization" not in head


def test_a_judge_behind_openais_responses_gets_schema_and_effort_and_is_not_kept(
    desk: Desk,
) -> None:
    body = judged(desk, "openai/o3-pro", RESPONSES)
    assert desk.server.paths == ["/v1/responses"]
    assert body["text"]["format"].keys() >= {"type", "name", "schema"}
    assert (body["reasoning"], body["store"]) == ({"effort": "low"}, False)
    assert not {"seed", "reasoning_effort", "response_format", "messages"} & set(body)


def test_a_system_prompt_stands_apart_where_the_protocol_wants_it(desk: Desk) -> None:
    desk.prompts(1)
    desk.serve(Reply(json.dumps(MESSAGES)))
    flags = ("--model=anthropic/m", "--system_prompt=Be brief.", "--temperature=none")
    desk.stage(ALIGN, *flags)
    (body,) = desk.server.requests
    assert body["system"] == "Be brief." and "temperature" not in body
    assert [turn["role"] for turn in body["messages"]] == ["user"]


TURNS = [("user", "We fold {text} {prompt}."), ("assistant", "Gladly."), ("user", "Go on.")]


def talk(desk: Desk) -> None:
    """A conversation and a response to it, as the input of stages 3 and 5."""
    cell = json.dumps([{"role": role, "content": text} for role, text in TURNS])
    for name in ("p.csv", "r.csv"):
        desk.csv(name, ("messages", "prompt", "response"), [(cell, "Go on.", "Fold it.")])


@pytest.mark.parametrize("script", [MODERATE, CHECK])
def test_a_judge_sees_the_earlier_turns_as_material(desk: Desk, script: str) -> None:
    talk(desk)
    desk.serve("[[none]]" if script == MODERATE else VERDICT)
    desk.stage(script)
    text = prompt_of(desk.server.requests[0])
    places = [text.find(turn) for _, turn in TURNS]
    assert -1 < places[0] < places[1] < places[2] and "{turn_" not in text


def test_a_guard_judges_a_response_in_its_conversation(desk: Desk) -> None:
    talk(desk)
    desk.serve("Safety: Safe\nCategories: None\nRefusal: Yes")
    flags = ("--check_model=vllm/Qwen/Qwen3Guard-Gen-4B", f"--base_url={desk.url}")
    desk.stage(CHECK, *flags)
    turns = [(turn["role"], turn["content"]) for turn in desk.server.requests[0]["messages"]]
    assert turns == [*TURNS, ("assistant", "Fold it.")]


# -- odd replies -------------------------------------------------------------------------------


def test_a_redirect_is_not_followed(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(Reply("", 307, (("Location", "/v2"),)))
    assert "give the final --base_url" in desk.stopped(ALIGN, "--concurrency=1")
    assert desk.sent == 1


@pytest.mark.parametrize("header", [("Retry-After", "36000"), ("Retry-After-Ms", "36000000")])
def test_a_wait_of_hours_ends_the_run_at_once(desk: Desk, header: tuple[str, str]) -> None:
    desk.prompts(1)
    desk.serve(error(429, "slow down", headers=[header]))
    assert "a wait of 10.0 hours" in desk.stopped(ALIGN)


def test_a_model_that_asks_for_a_wait_of_hours_holds_up_no_other(desk: Desk) -> None:
    wait = error(429, "slow down", headers=[("Retry-After", "36000")])
    desk.prompts(3)
    desk.serve(lambda body, seen: wait if body["model"] == "busy" else "[[none]]")
    done = desk.stage(MODERATE, "--moderator_model=busy,a", "--min_votes=1")
    assert "busy is left out: the endpoint asks for a wait of 10.0 hours" in done.stderr
    assert desk.cells("votes") == ["1"] * 3


def test_no_answer_need_be_deleted_to_ask_a_judge_again_that_was_left_out(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(lambda body, seen: error(401) if body["model"] == "b" else "[[none]]")
    done = desk.stage(MODERATE, "--moderator_model=a,b", status=1)
    assert "b is left out" in done.stderr
    assert "delete" not in done.stderr


def test_a_timeout_is_for_each_attempt(desk: Desk) -> None:
    desk.prompts(1)
    desk.serve(Reply(fault="hang"))
    done = desk.stage(ALIGN, "--timeout=0.2", "--max_retries=1", status=1)
    assert "the most frequent error (1): no answer in 0.2 s\n" in done.stderr
    assert "retries 1 (1 timed out)" in done.stderr
