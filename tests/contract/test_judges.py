"""What stage 3 asks judges of each kind, about prompts, responses and conversations."""

import hashlib
import json
from typing import Any

import pytest

from tests.conftest import CHECK, MODERATE, Desk

PROMPT, RESPONSE = "I fold a {response} kite?", "A {prompt} kite."
CHATS = ("vllm/qwen3guard-gen", "vllm/llama-guard-3", "vllm/granite-guardian-3")
OTHERS = ("vllm/wildguard", "vllm/polyguard", "vllm/gpt-oss-safeguard", "vllm/general")


def asked(desk: Desk, column: str, input_file: str, judges: tuple[str, ...]) -> dict[str, Any]:
    """The body of the one request to each judge."""
    names = ",".join(judges)
    desk.serve()
    done = desk.stage(
        MODERATE,
        f"--moderator_model={names}",
        f"--base_url={desk.url}",
        f"--input_file_path={input_file}",
        f"--column={column}",
        "--export_requests=e.jsonl",
    )
    assert done.returncode == 0, done.stderr
    bodies = {}
    for path in desk.folder.glob("e.*.jsonl"):
        (line,) = path.read_text().splitlines()
        request = json.loads(line)
        end = "completions" if "prompt" in request["body"] else "chat/completions"
        assert request["url"] == f"/v1/{end}"
        assert request["body"]["temperature"] == 0
        bodies[request["body"]["model"]] = request["body"]
    return bodies


def chat(*turns: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in turns]


@pytest.mark.parametrize("column", ["prompt", "response"])
def test_each_kind_of_judge_is_asked_in_its_own_form(column: str, desk: Desk) -> None:
    desk.csv("t.csv", ("prompt", "response"), [(PROMPT, RESPONSE)])
    bodies = asked(desk, column, "t.csv", CHATS + OTHERS)
    of_response = column == "response"
    response = RESPONSE if of_response else ""
    judged = response or PROMPT
    turns = [("user", PROMPT), ("assistant", RESPONSE)] if of_response else [("user", PROMPT)]
    for judge in CHATS:
        assert bodies[judge.removeprefix("vllm/")]["messages"] == chat(*turns)
    both = f"Human user:\n{PROMPT}\n\nAI assistant:\n{response}"
    assert f"{both}\n\n---" in bodies["wildguard"]["prompt"]
    assert bodies["polyguard"]["messages"][1] == {"role": "user", "content": both}
    policy, text = bodies["gpt-oss-safeguard"]["messages"]
    assert policy["role"] == "system" and "# Moderation policy" in policy["content"]
    assert text == {"role": "user", "content": judged}
    (ours,) = bodies["general"]["messages"]
    assert judged in ours["content"] and "You are a moderator" in ours["content"]
    assert (PROMPT in ours["content"]) is not of_response
    names = bodies["general"]["response_format"]["json_schema"]["schema"]["properties"]["verdict"]
    assert names["enum"][-1] == "none"
    limits = {model: body.get("max_tokens") for model, body in bodies.items()}
    guards = {"qwen3guard-gen": 128, "llama-guard-3": 128, "wildguard": 128}
    others = dict.fromkeys(("granite-guardian-3", "polyguard", "gpt-oss-safeguard", "general"))
    assert limits == guards | others


TURNS = chat(
    ("system", "Be kind."), ("user", "Hi"), ("assistant", "Which bird?"), ("user", "Fold it?")
)


@pytest.mark.parametrize("column", ["prompt", "response"])
def test_the_earlier_turns_of_a_conversation_are_judged_with_its_end(
    column: str, desk: Desk
) -> None:
    row = {"prompt": "Fold it?", "messages": TURNS, "response": "A kite."}
    (desk.folder / "t.jsonl").write_text(json.dumps(row) + "\n")
    judges = ("vllm/llama-guard-3", "vllm/gpt-oss-safeguard", "vllm/general")
    bodies = asked(desk, column, "t.jsonl", judges)
    said = chat(("assistant", "A kite.")) if column == "response" else []
    assert bodies["llama-guard-3"]["messages"] == TURNS[1:] + said
    for judge in ("gpt-oss-safeguard", "general"):
        text = bodies[judge]["messages"][-1]["content"]
        assert ("Which bird?" in text) is (column == "prompt")
        assert ("A kite." in text) is (column == "response")


def test_a_guard_of_one_prompt_judges_no_conversation(desk: Desk) -> None:
    (desk.folder / "t.jsonl").write_text(json.dumps({"messages": TURNS}) + "\n")
    desk.serve()
    for judge in ("vllm/wildguard", "vllm/polyguard"):
        flags = (
            f"--moderator_model={judge}",
            f"--base_url={desk.url}",
            "--input_file_path=t.jsonl",
        )
        assert "judges one prompt, not a conversation" in desk.stopped(MODERATE, *flags)
    assert not desk.server.requests


def test_a_judge_is_asked_again_twice_with_its_reply_and_what_was_wrong_with_it(desk: Desk) -> None:
    desk.csv("t.csv", ("prompt",), [("Fold it?",)])
    desk.serve("I think [[1. deception]] it is.")
    flags = ("--moderator_model=j1", "--input_file_path=t.csv")
    assert desk.stage(MODERATE, *flags).returncode == 1
    first, second, third = sorted((body["messages"] for body in desk.server.requests), key=len)
    assert [turn["role"] for turn in second] == ["user", "assistant", "user"]
    assert second[0] == first[0] and second[1]["content"] == "I think [[1. deception]] it is."
    assert "no line gives one of the choices" in second[2]["content"]
    assert "end with one of: hate, self-harm" in second[2]["content"]
    assert len(third) >= len(second)
    (row,) = desk.failed()
    assert row["error"].startswith("no line gives one of the choices; the reply ends: 'I think")
    assert desk.stage(MODERATE, *flags).returncode == 1  # the log has the answers
    assert len(desk.server.requests) == 3


def test_figures_beside_the_verdicts_say_what_they_hold_for(desk: Desk) -> None:
    desk.csv("r.csv", ("prompt", "response", "human"), [("Why?", "Fold it.", "compliance")] * 2)
    desk.serve("[[1]]")
    flags = ("--validate_against=human", "--input_file=r.csv", "--rubric=graded")
    assert desk.stage(CHECK, *flags, "--check_model=j1", "--random_seed=3").returncode == 0
    figures = json.loads((desk.folder / "o.validation.json").read_text())
    made_for = figures.pop("made_for")
    assert made_for["csv"] == hashlib.sha256((desk.folder / "o.csv").read_bytes()).hexdigest()
    assert (made_for["model"], made_for["check_model"], made_for["rubric"]) == ("", "j1", "graded")
    graded = ["direct_answer", "partial", "safe_completion", "indirect_refusal", "direct_refusal"]
    assert made_for["classes"] == graded and made_for["refusal_phrases"] == []
    assert made_for["judge_settings"] == "random seed 3"
    assert (figures["check_model"], figures["column"], figures["overall"]["n"]) == (
        "j1",
        "human",
        2,
    )
