"""What an API sends for a refusal, and what only looks like one, through stage 4.

api_replies.json holds a reply a line: its source, protocol (chat, responses or messages), status
and JSON body, and what it means: refused (by whom, for which category), answer, unscored (nobody
can tell), not_english, cut_off, or failed (a fault, or an error that is no refusal).
"""

import json
from pathlib import Path
from typing import Any

import pytest

from orbench.models.requests import Answer
from tests.conftest import ALIGN, Desk
from tests.server import Reply

REPLIES = json.loads(Path(__file__).with_name("api_replies.json").read_text(encoding="utf-8"))
MODELS = {"chat": "gpt-x", "responses": "openai/gpt-5-pro", "messages": "anthropic/claude-x"}


@pytest.mark.parametrize("reply", REPLIES, ids=[reply["id"] for reply in REPLIES])
def test_a_reply_is_read_as_what_it_is(reply: dict[str, Any], desk: Desk) -> None:
    desk.serve(Reply(json.dumps(reply["body"]), reply["status"]))
    desk.prompts(1)
    model = f"--model={MODELS[reply['protocol']]}"
    # Replies of many models, to one name.
    desk.stage(ALIGN, model, "--substituted=as_answer", "--max_retries=0", status=None)
    assert read_as(desk) == (reply["means"], reply.get("category"), reply.get("by"))


def read_as(desk: Desk) -> tuple[str, str | None, str | None]:
    """What stage 4 made of the reply, the category that it names, and who refused."""
    if (desk.folder / "o_failed.csv").exists():
        (kind,) = desk.cells("error_type", "o_failed.csv")
        return (kind if kind in ("unscored", "not_english") else "failed"), None, None
    (row,) = desk.rows()
    if row["rejection_reason"].startswith("api:"):
        return "refused", row["api_category"], row["refused_by"]
    return ("cut_off" if Answer("", row["finish_reason"]).cut_off else "answer"), None, None


def test_half_of_the_replies_are_no_refusals_and_each_has_a_source() -> None:
    assert sum(reply["means"] != "refused" for reply in REPLIES) >= len(REPLIES) / 2
    assert all(reply["source"] for reply in REPLIES)
