"""The run record, `<output stem>.run.json` beside each CSV, and `_failed.csv`, its missing rows.

A record says how a number came about. What later stages and tables must know about an earlier run
is written once, by the stage that knows it, and carried along (`CARRIED`).
"""

import json
import platform
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from orbench.base.messages import UserError, clean
from orbench.base.tables import beside, read_csv, sha256_of, write_text
from orbench.base.words import VERDICTS, Row

VERSION = "0.1.0"  # of the suite; pyproject.toml reads it here

Record = dict[str, Any]

FAILED = "_failed.csv"  # every input row without a result, with error_type and error
NOT_ASKED = "not_asked"  # error_type of a row that no request was sent for yet
# What a stage takes over from the record of its input:
#   under_test  the model whose responses a file holds (see UnderTest), what it was asked, and when
#   written_by  the models of stages 1 and 2: [{"asked", "id", "family"}]
#   selectors   the families whose refusals chose the prompts
#   source      where a public prompt set came from
CARRIED = ("under_test", "written_by", "selectors", "source")
# What a record's readers rely on.
LISTS = ("notes", "models", "written_by", "selectors")
DICTS = ("counts", "under_test", "findings", "source", "parameters", "settings", "output")
KINDS = {**dict.fromkeys(LISTS, list), **dict.fromkeys(DICTS, dict), "part": str}


def record_path(csv: Path) -> Path:
    """The record of a CSV."""
    return beside(csv, ".run.json")


def read_record(csv: Path) -> Record:
    """The record beside a CSV; empty if there is none that can be read."""
    try:
        record = json.loads(record_path(csv).read_text(encoding="utf-8"))
        fits = all(isinstance(record.get(name, kind()), kind) for name, kind in KINDS.items())
        [one.get("asked") for one in record.get("models", ())]
        {one["family"] for one in record.get("written_by", ())}
    except (OSError, ValueError, RecursionError, AttributeError, TypeError, KeyError):
        return {}
    return record if fits else {}


def write_record(csv: Path, record: Record) -> None:
    """Raises OSError."""
    write_text(record_path(csv), json.dumps(record, indent=2) + "\n")


def failed_hash(csv: Path) -> str:
    """The SHA-256 of a CSV's failed rows, "" without any: in the record with the CSV's own."""
    failed = beside(csv, FAILED)
    return sha256_of(failed) if failed.is_file() else ""


@cache
def versions() -> dict[str, str]:
    """Of the suite, with its commit ("" outside of a repository), and of Python."""
    root = Path(__file__).resolve().parents[2]
    commit = ""
    if (root / ".git").exists():
        command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--exclude=*"]
        with suppress(OSError):  # there is no git
            found = subprocess.run(command, cwd=root, capture_output=True, text=True)
            commit = found.stdout.strip()
    return {"orbench": VERSION, "commit": commit, "python": platform.python_version()}


def failed_rows(csv: Path) -> list[Row]:
    """The rows without a result behind a CSV, with error_type and error. Raises UserError."""
    failed = beside(csv, FAILED)
    return read_csv(failed, ("error_type",)).rows if failed.is_file() else []


class UnderTest(NamedTuple):
    """The model whose responses a file holds; a field is empty if the record does not say."""

    asked: str  # as the user wrote it, perhaps an alias
    id: str
    family: str
    settings: str  # reasoning effort, system prompt and the like, in words

    @property
    def shown(self) -> str:
        """The name, with the id unless the name ends in it: `llama3 (gpt-4o-mini)`."""
        name = self.asked or self.id
        return f"{name} ({self.id})" if self.id and not name.endswith(self.id) else name


def under_test(record: Record) -> UnderTest:
    """The model under test, as stage 4 recorded it."""
    known = record.get("under_test", {})
    return UnderTest(*(clean(str(known.get(name) or "")) for name in UnderTest._fields))


def selectors(record: Record) -> list[str]:
    """The families whose refusals chose the prompts (select_hard_prompts.py)."""
    return [clean(str(one)) for one in record.get("selectors", [])]


def is_scripted(record: Record) -> bool:
    """Whether the offline scripted model wrote anything in a file, its prompts included."""
    return any(record.get(name) is True for name in ("scripted", "scripted_input"))


def check_whole(path: Path, record: Record) -> None:
    """Raise UserError for a file with the responses of one verdict alone."""
    if record.get("part") in VERDICTS:
        only = f"{path} holds only the responses of the part {record['part']!r}, so it has no rate"
        raise UserError(f"{only}; rerun the stage with --merge_result=True and give that file")
