"""What a row asks: its prompt, or a conversation; and the ids of prompts and seeds.

A cell of the column `messages` is JSON, a list of {"role", "content"} that ends with the user; its
last turn is the row's prompt. An empty cell leaves the row to its column `prompt`.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orbench.base.messages import UserError

MESSAGES = "messages"

Turn = dict[str, str]  # role, content


def turns_of(row: Mapping[str, str]) -> list[Turn]:
    """What a checked row asks, oldest turn first: its conversation, or its prompt alone."""
    cell = row.get(MESSAGES, "")
    turns: list[Turn] = json.loads(cell) if cell.strip() else []
    return turns or [{"role": "user", "content": row["prompt"]}]


def asked_in(row: Mapping[str, str]) -> str:
    """What tells a row's question from others: two conversations that end alike are two."""
    turns = turns_of(row)
    return json.dumps(turns, sort_keys=True) if len(turns) > 1 else row["prompt"]


def shown_question(row: Mapping[str, str]) -> str:
    """A row's question for a reader: the prompt, or all turns with their roles."""
    turns = turns_of(row)
    said = [f"{turn['role']}: {turn['content']}" for turn in turns]
    return "\n\n".join(said) if len(turns) > 1 else row["prompt"]


def with_prompt(row: dict[str, str], where: str) -> dict[str, str]:
    """The row with the last turn of its conversation, if it has one, as its prompt.

    Raises UserError for a malformed conversation, and for a prompt that contradicts it.
    """
    cell = row.get(MESSAGES, "")
    if not cell.strip():
        return {"prompt": "", **row}
    try:
        turns = json.loads(cell)
    except (ValueError, RecursionError):
        turns = None
    if wrong := _fault_in(turns):
        raise UserError(f"{where}: {MESSAGES} {wrong}")
    last: str = turns[-1]["content"]
    if row.get("prompt", "").strip() and row["prompt"] != last:
        raise UserError(f"{where}: the prompt is not the last turn in {MESSAGES}; drop one")
    return {**row, "prompt": last}


def check_single(path: object, columns: Sequence[str]) -> None:
    """Raise UserError for a file of conversations where a prompt must stand for itself."""
    if MESSAGES in columns:
        raise UserError(f"{path} has a column {MESSAGES!r}; only single prompts are read here")


def _fault_in(turns: Any) -> str:
    """What is wrong with a conversation, "" for a good one."""
    if not (isinstance(turns, list) and turns):
        return 'is not a JSON list such as [{"role": "user", "content": "Hello"}]'
    for number, turn in enumerate(turns, start=1):
        named = isinstance(turn, dict) and turn.keys() == {"role", "content"}
        if not (named and isinstance(turn["content"], str)):
            return f"needs a role and a text as content, nothing else, in each turn (turn {number})"
        if turn["role"] not in ("system", "user", "assistant"):
            return f"has a role other than system, user, assistant (turn {number})"
    return "" if turns[-1]["role"] == "user" else "does not end with the user"


def prompt_id(prompt: str) -> str:
    """12 hex digits that identify a prompt, whatever blanks are around it."""
    return hashlib.sha256(prompt.strip().encode("utf-8", "surrogatepass")).hexdigest()[:12]


def prompt_id_of(row: Mapping[str, str]) -> str:
    """The id of what a row asks: its prompt, or its whole conversation."""
    return prompt_id(asked_in(row))


def seed_id_of(row: Mapping[str, str]) -> str:
    """The id of a rewrite's seed, from the column seed_id or toxic_seed; "" if there is none."""
    seed = row.get("toxic_seed", "").strip()
    return row.get("seed_id", "").strip() or (prompt_id(seed) if seed else "")


def prompt_set_hash(ids: Iterable[str]) -> str:
    """16 hex digits that identify a set of prompt ids, whatever their order; "" for none."""
    each = "".join(sorted(set(ids)))
    return hashlib.sha256(each.encode()).hexdigest()[:16] if each else ""


def set_name(path: Path) -> str:
    """A prompt set's name by its file: the stem; of `releases/2026-12/hard.csv`, 2026-12-hard."""
    folder = path.absolute().parent
    return f"{folder.name}-{path.stem}" if folder.parent.name == "releases" else path.stem
