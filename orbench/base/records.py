"""The run record, `<output stem>.run.json` beside each CSV, and `_failed.csv`, its missing rows.

A record says how a number came about. What later stages and tables must know about an earlier run
is written once, by the stage that knows it, and carried along (`CARRIED`).
"""

import json
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from orbench.base.messages import ROOT, UserError, clean, without_query
from orbench.base.tables import beside, read_csv, sha256_of, write_json
from orbench.base.words import VERDICTS, Json, Row, Texts, Words

VERSION = "1.0.0"

Record = Json

FAILED = "_failed.csv"  # every input row without a result, with error_type and error
FAILED_COLUMNS = ("error_type", "error")
NOT_ASKED = "not_asked"  # error_type of a row that no request was sent for yet
# What a stage takes over from the record of its input:
#   under_test  the model whose responses a file holds (see UnderTest), what it was asked, when and
#               with which parameters, and why its result is not ranked, if it is not
#   written_by  the models of stages 1 and 2: [{"asked", "id", "family"}]
#   selectors   the families whose refusals chose the prompts
#   source      where a public prompt set came from; side, a key of SIDES, of any set
CARRIED = ("under_test", "written_by", "selectors", "source")

# What a record's readers rely on: a type; a dict of the entries that are read, with None for all
# others; a list of one shape. An entry may be missing.
_MODEL = {
    "asked": str,
    "id": str,
    "family": str,
    "served_by": dict,
    "left_out": str,
    "left_out_parameters": dict,
}
SHAPE: Record = {
    "stage": str,
    "part": str,
    "start": str,
    "complete": bool,
    "notes": [str],
    "selectors": [str],
    "models": [_MODEL],
    "written_by": [_MODEL],
    "counts": {None: int | dict},
    "findings": {None: int},
    "confirmed": {None: int},
    "settings": {None: str},
    "parameters": {
        "refusal_phrases": [str],
        "check_model": str,
        "rubric": str,
        "judge_settings": str,
    },
    "under_test": dict,
    "source": {"rows": int, "side": str, "repository": str, "name": str},
    "output": dict,
    "versions": dict,
}
PASSPORT = SHAPE | {"note": str}  # of a judge: its run record, and what reports say of it
PASSPORTS = "passport.json"


def now() -> str:
    """Return the time as records have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def record_path(csv: Path) -> Path:
    """Return the path of a CSV's record."""
    return beside(csv, ".run.json")


def read_record(csv: Path) -> Record:
    """Return the record beside a CSV, empty if there is none. Raises UserError if damaged."""
    if not csv.name:  # stage 1 has no input
        return {}
    return _read(record_path(csv), SHAPE, "to go on without a run record")


def passports_in(folder: Path) -> Json:
    """Return the passports of the judges that ran in a folder, by their CSVs; empty if there are
    none. Raises UserError if damaged.
    """
    return _read(folder / PASSPORTS, {None: PASSPORT}, "and rerun the judges")


def _read(path: Path, shape: Any, why_delete: str) -> Json:
    if not path.exists():
        return {}
    with suppress(OSError, ValueError, RecursionError):
        found: Json = json.loads(path.read_text(encoding="utf-8"))
        if _fits(found, shape):
            return found
    raise UserError(f"{path} is damaged; restore it, or delete it {why_delete}")


def _fits(value: Any, shape: Any) -> bool:
    """Return whether a value has its shape, see `SHAPE`."""
    if not isinstance(shape, list | dict):
        return isinstance(value, shape)
    if type(value) is not type(shape):
        return False
    if isinstance(shape, dict):
        others = shape.get(None, object)
        return all(_fits(entry, shape.get(name, others)) for name, entry in dict(value).items())
    return all(_fits(item, shape[0]) for item in value)


def validation_of(csv: Path) -> Json | None:
    """Return the validation beside a CSV, with the rates that people's labels corrected, by side;
    empty if there is none. None if it is damaged, or was not made for exactly this CSV.
    """
    path = beside(csv, ".validation.json")
    if not path.is_file():
        return {}
    with suppress(OSError, ValueError, RecursionError, LookupError, TypeError):
        found: Json = json.loads(path.read_text(encoding="utf-8"))
        # null: a side without labels
        for rate, low, high in filter(None, dict(found["corrected"]).values()):
            if not 0 <= low <= rate <= high <= 1:
                return None
        if found["made_for"]["csv"] == sha256_of(csv):
            return found
    return None


def write_record(csv: Path, stage: str, command: Words, facts: Record) -> None:
    """Write the record beside a CSV. command: the words of the command line. Raises OSError."""
    head = {"stage": stage, "command": [without_query(word) for word in command]}
    write_json(
        record_path(csv), head | facts | {"versions": versions() | facts.get("versions", {})}
    )


def add_to_record(csv: Path, part: str, **entries: object) -> None:
    """Add to the record beside a CSV what a caller of the stage knows. Raises OSError, UserError.

    part: of the record, see `CARRIED`.
    """
    record = read_record(csv)
    record.setdefault(part, {}).update(entries)
    write_json(record_path(csv), record)


def failed_hash(csv: Path) -> str:
    """Return the SHA-256 of a CSV's failed rows, "" without any: in the record with the CSV's."""
    failed = beside(csv, FAILED)
    return sha256_of(failed) if failed.is_file() else ""


@cache
def versions() -> Texts:
    """Return those of the suite, with its commit ("" outside of a repository), and of Python."""
    import platform
    import subprocess

    commit = ""
    if (ROOT / ".git").exists():
        command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--exclude=*"]
        with suppress(OSError):  # there is no git
            described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            commit = described.stdout.strip()
    return {"orbench": VERSION, "commit": commit, "python": platform.python_version()}


def failed_rows(csv: Path) -> list[Row]:
    """Return the rows without a result behind a CSV, with FAILED_COLUMNS. Raises UserError."""
    failed = beside(csv, FAILED)
    return read_csv(failed, ("prompt", "error_type")).rows if failed.is_file() else []


class UnderTest(NamedTuple):
    """The model whose responses a file holds; a field is empty if the record does not say."""

    asked: str  # as the user wrote it, perhaps an alias
    id: str
    family: str
    settings: str  # reasoning effort, system prompt and the like, in words
    label: str = ""  # what reports are to call it

    @property
    def name(self) -> str:
        """Return what the user called it, else its id."""
        return self.asked or self.id

    @property
    def shown(self) -> str:
        """Return the name, with the id unless the name ends in it: `llama3 (gpt-4o-mini)`."""
        if self.id and not self.name.endswith(self.id):
            return f"{self.name} ({self.id})"
        return self.name


def under_test(record: Record) -> UnderTest:
    """Return the model under test, as stage 4 recorded it."""
    known = record.get("under_test", {})
    fields = [clean(str(known.get(name) or "")) for name in UnderTest._fields]
    return UnderTest(*fields)


def selectors(record: Record) -> Words:
    """Return the families whose refusals chose the prompts (select_hard_prompts.py)."""
    return [clean(family) for family in record.get("selectors", [])]


def is_scripted(record: Record) -> bool:
    """Return whether the offline scripted model wrote anything in a file, its prompts included."""
    return record.get("scripted") is True or record.get("scripted_input") is True


def check_whole(path: Path, record: Record) -> None:
    """Raise UserError for a file with the responses of one verdict alone."""
    if record.get("part") in VERDICTS:
        raise UserError(
            f"{path} holds only the responses of the part {record['part']!r}, so it has no rate; "
            "rerun the stage with --merge_result=True and give that file"
        )
