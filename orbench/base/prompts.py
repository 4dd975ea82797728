"""What a row asks: its prompt, or a conversation; and the ids of prompts and seeds.

A cell of the column `messages` is JSON, a list of {"role", "content"}; the user's last turn is the
row's prompt. An empty cell leaves the row to its column `prompt`. A cell of the column `tools`
beside it lists the tools that are offered; then an assistant's turn may call tools (`tool_calls`),
and turns of the role `tool` right behind it hold the results, one for each call, all in the form of
OpenAI's chat.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from orbench.base.messages import UserError, storable
from orbench.base.words import Json, Row

MESSAGES = "messages"
TOOLS = "tools"
NO_VALUES = ("nan", "none", "null", "<na>", "n/a")  # missing values that a program wrote as text

Turn = Json  # role, content; tool_calls or tool_call_id
Turns = Sequence[Turn]


def turns_of(row: Row) -> list[Turn]:
    """Return what a checked row asks, oldest turn first: its conversation, or its prompt alone."""
    cell = row.get(MESSAGES, "")
    if not cell.strip():
        return [{"role": "user", "content": row["prompt"]}]
    turns: list[Turn] = json_in(cell)
    return turns


def tools_of(row: Row) -> Any:
    """Return the tools that a row offers, a list once it is checked. Without a column `messages`
    a column `tools` is something else.
    """
    if MESSAGES not in row:
        return []
    return json_in(row.get(TOOLS) or "[]")


def json_in(cell: str) -> Any:
    """Return what a cell holds, None for what is no JSON, as NaN and infinite numbers are none."""
    try:
        text = json.dumps(json.loads(cell), ensure_ascii=False, allow_nan=False)
        return json.loads(storable(text))  # an escape can hold a lone surrogate
    except (ValueError, RecursionError):
        return None


def text_of(turn: Turn) -> str:
    """Return a turn for a reader: its text; one with tool calls as a line of JSON."""
    if "tool_calls" in turn:
        return json.dumps(turn, ensure_ascii=False)
    return str(turn["content"])


def earlier_turns(row: Row) -> list[Turn]:
    """Return what a judge of the user's last turn sees in front of it: the turns before it; all
    turns if a tool's result stands behind it.
    """
    turns = turns_of(row)
    if "tool_call_id" in turns[-1]:
        return turns
    return turns[:-1]


def asked_in(row: Row) -> str:
    """Return what tells a row's question from others: two conversations that end alike are two."""
    asked = turns_of(row) + tools_of(row)
    if len(asked) == 1:
        return row["prompt"]
    return json.dumps(asked, sort_keys=True)


def shown_question(row: Row) -> str:
    """Return a row's question for a reader: the prompt, or all turns with their roles."""
    turns = turns_of(row)
    if len(turns) == 1:
        return row["prompt"]
    return "\n\n".join(f"{turn['role']}: {text_of(turn)}" for turn in turns)


def with_prompt(row: Row, where: str) -> Row:
    """Return the row with the user's last turn in its conversation, if it has one, as its prompt.

    Raises UserError for a malformed conversation or list of tools, and for a prompt that
    contradicts it.
    """
    row = {"prompt": "", **row}
    turns = turns_of(row)
    if fault := _fault_in(turns, tools_of(row)):
        raise UserError(f"{where}: {fault}")
    last = None
    for turn in turns:
        if turn["role"] == "user":
            last = turn["content"]
    if last is None or (row["prompt"].strip() and row["prompt"] != last):
        raise UserError(
            f"{where}: the prompt must be the user's last turn in {MESSAGES}; add that turn, or "
            "drop the prompt"
        )
    return {**row, "prompt": last}


def _fault_in(turns: Any, tools: Any) -> str:
    """Return what is wrong with a conversation or the tools offered in it, "" for good ones."""
    if not isinstance(tools, list) or not all(map(_is_tool, tools)):
        return (
            'tools is not a JSON list such as [{"type": "function", "function": {"name": "look", '
            '"parameters": {"type": "object"}}}]'
        )
    if not isinstance(turns, list) or not turns:
        return 'messages is not a JSON list such as [{"role": "user", "content": "Hello"}]'
    waiting: set[str] = set()  # ids of calls without a result so far
    for number, turn in enumerate(turns, start=1):
        match turn:
            case {"role": "tool", "tool_call_id": id_, "content": str()} if id_ in waiting:
                waiting.remove(id_)
                continue
            case {"role": "assistant", "tool_calls": [*calls]} if tools and not waiting:
                if isinstance(turn.get("content"), str | None) and all(map(_is_call, calls)):
                    waiting = {call["id"] for call in calls}
                    if 0 < len(waiting) == len(calls):
                        continue
            case {"role": "system" | "user" | "assistant", "content": str(), **more} if not more:
                if not waiting:
                    continue
        return (
            f"messages needs in turn {number} a role (one of system, user, assistant) and a text "
            "as content, nothing else; if the column tools offers some, also tool_calls such as "
            '[{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}], '
            "each with an id of its own and its result right behind it"
        )
    if waiting or turn["role"] not in ("user", "tool"):
        return "messages does not end with the user or the results of all tool calls"
    return ""


def _is_call(call: Any) -> bool:
    match call:
        case {"id": str(id_), "function": {"name": str(name), "arguments": str(arguments)}} if (
            id_ and name
        ):
            return isinstance(json_in(arguments), dict)
    return False


def _is_tool(tool: Any) -> bool:
    match tool:
        case {"type": "function", "function": {"name": str(name), "parameters": {}}} if name:
            return True
    return False


def same(text: str) -> str:
    """Return what two prompts share that differ only in case, spacing and end punctuation.

    This is the one rule for equal prompts: of the generators, the datasets, ids and reports.
    """
    return " ".join(text.casefold().split()).rstrip(" .!?…。！？;:,\"'”’")


def text_id(text: str) -> str:
    """Return 12 hex digits that identify a text, whatever blanks are around it."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:12]


@lru_cache(maxsize=16_384)  # many models answer the same prompts
def prompt_id(prompt: str) -> str:
    """Return 12 hex digits that identify a prompt in all its spellings, see `same`."""
    return text_id(same(prompt))


def prompt_id_of(row: Row) -> str:
    """Return the id of what a row asks: its prompt, or its whole conversation."""
    return prompt_id(asked_in(row))


def response_id_of(row: Row) -> str:
    """Return the id of a response to what a row asks, whichever model gave it."""
    return text_id(prompt_id_of(row) + row["response"])


def ids_of(rows: Iterable[Row]) -> set[str]:
    """Return the ids of what rows ask."""
    return set(map(prompt_id_of, rows))


def seed_id_of(row: Row) -> str:
    """Return the id of a rewrite's seed, from seed_id or toxic_seed; "" if there is none."""
    seed_id = row.get("seed_id", "").strip()
    seed = row.get("toxic_seed", "").strip()
    if seed_id and not is_no_value(seed_id):
        return seed_id
    return "" if is_no_value(seed) else seed and prompt_id(seed)


def is_no_value(cell: str) -> bool:
    """Return whether a cell holds the word for a missing value, such as nan or None."""
    return cell.strip().lower() in NO_VALUES


def prompt_set_hash(ids: Iterable[str]) -> str:
    """Return 16 hex digits that identify a set of prompt ids in any order; "" for none."""
    joined = "".join(sorted(set(ids)))
    return joined and hashlib.sha256(joined.encode()).hexdigest()[:16]


def set_name(path: Path) -> str:
    """Return a prompt set's name: its file's stem; 2026-12-hard of `releases/2026-12/hard.csv`."""
    folder = path.absolute().parent
    if folder.parent.name == "releases":
        return f"{folder.name}-{path.stem}"
    return path.stem
