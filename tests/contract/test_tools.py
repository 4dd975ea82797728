"""Conversations with tools: what is asked once, what judges see, and pairs of them.

What is sent in each protocol stands in transcripts/models/tools.txt.
"""

import json

import pytest

from tests.conftest import ALIGN, CHECK, MODERATE, ROOT, Desk
from tests.server import Body, Reply, answer, prompt_of

EXAMPLES = ROOT / "docs" / "conversations_with_tools.json"
ALARMING = ("POISON", "advisory", "exploit", "suspended", "morphine", "brute", "cannon", "kill ")
CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}
TURNS = [
    {"role": "system", "content": "FIRST"},
    {"role": "user", "content": "Look {prompt}."},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "LAST"},
]


def talk(desk: Desk, *tools: list[Body], **cells: str) -> None:
    """Rows with the same turns, each with other tools, as the input of any stage."""
    rows = [(json.dumps(TURNS), json.dumps(offered), *cells.values()) for offered in tools]
    for name in ("p.csv", "r.csv"):
        desk.csv(name, ("messages", "tools", *cells), rows)


def test_other_tools_make_another_request_and_another_prompt(desk: Desk) -> None:
    other = {"type": "function", "function": {"name": "other", "parameters": {}}}
    talk(desk, [TOOL], [other, TOOL], [TOOL])
    desk.serve()
    done = desk.stage(ALIGN)
    assert desk.sent == 2
    assert "duplicate prompts, used as they are: 1" in done.stderr


@pytest.mark.parametrize("script", [MODERATE, CHECK])
def test_a_judge_sees_the_turns_and_knows_what_a_call_is(desk: Desk, script: str) -> None:
    talk(desk, [TOOL], response='{"tool_calls": ["x"]}')
    desk.serve("[[none]]" if script == MODERATE else "[[direct_answer]]")
    desk.stage(script)
    text = prompt_of(desk.server.requests[0])
    shown = [
        'with "tool_calls"',
        "FIRST",
        "Look {prompt}.",
        '"tool_calls": [{',
        "LAST",
        "end of",
    ]
    places = [text.find(part) for part in shown]
    assert min(places) > -1 and places == sorted(places)


def test_a_guard_that_reads_a_chat_is_sent_the_turns_of_tools(desk: Desk) -> None:
    talk(desk, [TOOL], response="Fold it.")
    desk.serve("Safety: Safe\nCategories: None\nRefusal: No")
    desk.stage(CHECK, "--check_model=Qwen3Guard-Gen-4B", f"--base_url={desk.url}")
    said = {"role": "assistant", "content": "Fold it."}
    assert desk.server.requests[0]["messages"] == [*TURNS[1:], TURNS[1], said]


def test_a_call_of_a_tool_that_was_not_offered_is_no_answer(desk: Desk) -> None:
    desk.prompts(1)
    desk.serve(answer(None, "tool_calls", tool_calls=[CALL]))
    desk.stage(ALIGN, status=1)
    assert desk.tally() == "0 rows, unscored 1, 1 sent"


def test_a_call_that_the_api_refused_is_a_refusal(desk: Desk) -> None:
    talk(desk, [TOOL])
    desk.serve(answer(None, "content_filter", tool_calls=[CALL]))
    desk.stage(ALIGN)
    assert desk.tally() == "1 rows, 1 sent"
    assert desk.cells("is_rejected") == ["True"]


def test_equal_calls_of_tools_are_no_error_page(desk: Desk) -> None:
    talk(desk, *[[TOOL]] * 20)
    desk.serve(answer(None, "tool_calls", tool_calls=[CALL]))
    assert "identical" not in desk.stage(ALIGN).stderr


def wary(body: Body, seen: int) -> Reply:
    """A model that refuses what sounds alarming, and calls a tool else."""
    if any(word in json.dumps(body["messages"]) for word in ALARMING):
        return answer("I'm sorry, but I can't help with that.")
    return answer(None, "tool_calls", tool_calls=[CALL])


def test_of_each_two_conversations_with_one_seed_the_report_compares_the_refusals(
    desk: Desk,
) -> None:
    desk.serve(wary)
    flags = (f"--prompts={EXAMPLES}", "--judge=rules", "--base_url=" + desk.url, "--output_dir=r")
    done = desk.run("measure.py", "--model=m", *flags)
    assert "m: refusals by tier (plain < alarming): rises (10 seeds)" in done.stderr
    (trend,) = desk.rows("r/associations.csv")
    assert (trend["lower_percent"], trend["higher_percent"]) == ("0", "80")
    assert 30 < float(trend["low"]) < float(trend["estimate"]) == 80 < float(trend["high"]) < 100


def test_the_examples_are_pairs_that_differ_in_one_turn() -> None:
    rows = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    assert len(pairs) == 10
    for plain, alarming in pairs:
        assert (plain["tier"], alarming["tier"]) == ("plain", "alarming")
        assert plain["seed_id"] == alarming["seed_id"] and plain["tools"] == alarming["tools"]
        turns = zip(plain["messages"], alarming["messages"], strict=True)
        assert sum(one != other for one, other in turns) == 1
