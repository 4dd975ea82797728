"""What a row asks: its prompt, or a conversation; and the ids of prompts and seeds.

A cell of the column `messages` is JSON, a list of {"role", "content"} that ends with the user; its
last turn is the row's prompt. An empty cell leaves the row to its column `prompt`.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from orbench.base.messages import UserError, storable
from orbench.base.words import Row

MESSAGES = "messages"
NO_VALUES = ("nan", "none", "null", "<na>", "n/a")  # missing values that a program wrote as text

Turn = dict[str, str]  # role, content
Turns = Sequence[Turn]


def turns_of(row: Row) -> list[Turn]:
    """Return what a checked row asks, oldest turn first: its conversation, or its prompt alone."""
    cell = row.get(MESSAGES, "")
    if cell.strip():
        return _turns_in(cell)
    return [{"role": "user", "content": row["prompt"]}]


def _turns_in(cell: str) -> list[Turn]:
    """Return the turns in a cell. Raises ValueError or RecursionError for what is no JSON."""
    turns: list[Turn] = json.loads(cell)
    if "\\u" in cell:  # an escape can hold a lone surrogate
        turns = json.loads(storable(json.dumps(turns, ensure_ascii=False)))
    return turns


def asked_in(row: Row) -> str:
    """Return what tells a row's question from others: two conversations that end alike are two."""
    turns = turns_of(row)
    return row["prompt"] if len(turns) == 1 else json.dumps(turns, sort_keys=True)


def shown_question(row: Row) -> str:
    """Return a row's question for a reader: the prompt, or all turns with their roles."""
    turns = turns_of(row)
    if len(turns) == 1:
        return row["prompt"]
    return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)


def with_prompt(row: Row, where: str) -> Row:
    """Return the row with the last turn of its conversation, if it has one, as its prompt.

    Raises UserError for a malformed conversation, and for a prompt that contradicts it.
    """
    cell = row.get(MESSAGES, "")
    if not cell.strip():
        return {"prompt": "", **row}
    try:
        turns = _turns_in(cell)
    except (ValueError, RecursionError):
        turns = []
    if fault := _fault_in(turns):
        raise UserError(f"{where}: {MESSAGES} {fault}")
    last = turns[-1]["content"]
    if row.get("prompt", "").strip() and row["prompt"] != last:
        raise UserError(f"{where}: the prompt is not the last turn in {MESSAGES}; drop one")
    return {**row, "prompt": last}


def _fault_in(turns: Any) -> str:
    """Return what is wrong with a conversation, "" for a good one."""
    if not isinstance(turns, list) or not turns:
        return 'is not a JSON list such as [{"role": "user", "content": "Hello"}]'
    for number, turn in enumerate(turns, start=1):
        match turn:
            case {"role": "system" | "user" | "assistant", "content": str(), **more} if not more:
                continue
        needs = "a role (one of system, user, assistant) and a text as content, nothing else,"
        return f"needs {needs} in turn {number}"
    if turns[-1]["role"] != "user":
        return "does not end with the user"
    return ""


def same(text: str) -> str:
    """Return what two prompts share that differ only in case, spacing and end punctuation.

    This is the one rule for equal prompts: of the generators, the datasets, ids and reports.
    """
    return " ".join(text.casefold().split()).rstrip(" .!?…。！？;:,\"'”’")


def text_id(text: str) -> str:
    """Return 12 hex digits that identify a text, whatever blanks are around it."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:12]


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
