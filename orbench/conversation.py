"""Conversations: the column `messages`, which takes the place of `prompt`; and system prompts.

A cell of `messages` is JSON, a list of {"role", "content"} that ends with the user. Its last turn
is the row's prompt; an empty cell leaves the row to its prompt. Imports only `orbench.terminal`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orbench.terminal import UserError

MESSAGES = "messages"
SYSTEM_PROMPT = "system_prompt_name"  # under which of several system prompts a row was asked
ROLES = ("system", "user", "assistant")

Turn = dict[str, str]  # role, content


def turns_of(row: Mapping[str, str]) -> list[Turn]:
    """What a checked row asks, oldest turn first: its conversation, or its prompt alone."""
    cell = row.get(MESSAGES, "")
    turns: list[Turn] = json.loads(cell) if cell.strip() else []
    return turns or [{"role": "user", "content": row["prompt"]}]


def earlier_turns(row: Mapping[str, str]) -> list[Turn]:
    """What was said before the prompt of a checked row."""
    return turns_of(row)[:-1]


def asked_in(row: Mapping[str, str]) -> str:
    """What tells a checked row's question from others: the prompt, with the turns before it where
    there are any. Two conversations that end alike are two questions.
    """
    turns = turns_of(row)
    return json.dumps(turns, sort_keys=True) if len(turns) > 1 else row["prompt"]


def shown(row: Mapping[str, str]) -> str:
    """A checked row's question for a reader: the prompt, or all turns with who said them."""
    turns = turns_of(row)
    if len(turns) == 1:
        return row["prompt"]
    return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)


def with_prompt(row: dict[str, str], where: str) -> dict[str, str]:
    """The row with the last turn of its conversation as its prompt.

    Raises UserError for a conversation that is none, and for a prompt that says something else.
    """
    cell = row.get(MESSAGES, "")
    if not cell.strip():
        return row
    try:
        turns = json.loads(cell)
    except (ValueError, RecursionError):
        turns = None
    if wrong := _fault_in(turns):
        raise UserError(f"{where}: {MESSAGES} {wrong}")
    last: str = turns[-1]["content"]
    if row.get("prompt", "").strip() and row["prompt"] != last:
        raise UserError(f"{where}: the prompt is not the last turn in {MESSAGES}; leave one out")
    return {**row, "prompt": last}


def check_single(path: object, columns: Sequence[str]) -> None:
    """Raise UserError for a file of conversations or of answers under several system prompts, where
    a prompt is to stand for itself.
    """
    if found := {MESSAGES, SYSTEM_PROMPT}.intersection(columns):
        raise UserError(
            f"{path} has a column {min(found)!r}; only single prompts, asked under one system "
            "prompt, are taken here"
        )


def _fault_in(turns: Any) -> str:
    """What is wrong with a conversation, in words; "" for a good one."""
    if not (isinstance(turns, list) and turns):
        return 'is not a JSON list such as [{"role": "user", "content": "Hello"}]'
    for number, turn in enumerate(turns, start=1):
        if not isinstance(turn, dict) or turn.keys() != {"role", "content"}:
            return f"needs role and content and nothing else in each turn (turn {number})"
        if turn["role"] not in ROLES:
            return f"knows the roles {', '.join(ROLES)} and no other (turn {number})"
        if not isinstance(turn["content"], str):
            return f"needs a text as content (turn {number})"
    return "" if turns[-1]["role"] == "user" else "does not end with the user"
