"""What is counted: tokens and cost; and texts that are sent as they are."""

import json

from tests.conftest import ALIGN, CHECK, MODERATE, Desk
from tests.server import Reply, prompt_of

# -- tokens ------------------------------------------------------------------------------------

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 30,
    "completion_tokens_details": {"reasoning_tokens": 20},
    "prompt_tokens_details": {"cached_tokens": 60},
}
CHOICES = [{"finish_reason": "stop", "message": {"content": "Fold it."}}]


def test_tokens_are_counted_as_they_are_billed(desk: Desk) -> None:
    desk.prompts(2)
    desk.serve(Reply(json.dumps({"choices": CHOICES, "usage": USAGE})))
    done = desk.stage(ALIGN, "--prices=1000,10000,500")
    assert "tokens in 200 (cached 120), out 60 (thinking 40) · cost $0.7400" in done.stderr
    tokens = {"prompt": 200, "cached": 120, "completion": 60, "reasoning": 40}
    assert desk.record()["tokens"] == tokens
    again = desk.stage(ALIGN, "--prices=1000,10000,500")  # what was paid for before costs nothing
    assert "tokens in 0, out 0 · cost $0.0000" in again.stderr
    assert desk.record()["tokens"] == tokens


# -- what a request is -------------------------------------------------------------------------


def test_a_text_with_marks_of_a_prompt_file_arrives_as_it_is(desk: Desk) -> None:
    text = "How do I print {mark}, {categories} and {classes}?"
    desk.csv("p.csv", ("prompt",), [(text,)])
    desk.csv("r.csv", ("prompt", "response"), [(text, text + " So.")])
    desk.serve("[[none]]")
    desk.stage(MODERATE)
    desk.stage(CHECK, "--output_path=c.csv", status=None)
    moderated, checked = prompt_of(desk.server.requests[0]), prompt_of(desk.server.requests[-1])
    assert text in moderated and checked.count(text) == 2
