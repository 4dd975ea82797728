"""The run record: `<output stem>.run.json` beside each CSV, enough to say how a number came about.

What a later stage or a table has to know about an earlier run (the model under test, whether rows
are missing, which part of a split a file is) is written here once, by the stage that knows it, and
read here.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orbench.columns import PARTS_BY_VERDICT
from orbench.models import Model, family_of
from orbench.table import Table, beside, prompt_id, seed_id_of, write_text
from orbench.terminal import UserError, clean

Record = dict[str, Any]

FAILED = "_failed.csv"  # the rows of a run without a result
NOT_ASKED = "not_asked"  # their error_type where they were not asked yet


def path_of(csv: Path) -> Path:
    """The record of a CSV."""
    return beside(csv, ".run.json")


def read(csv: Path) -> Record:
    """The record beside a CSV; empty where there is none that can be read."""
    try:
        record = json.loads(path_of(csv).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def write(csv: Path, record: Record) -> None:
    """Write the record beside its CSV. Raises OSError."""
    write_text(path_of(csv), json.dumps(record, indent=2) + "\n")


def is_scripted(record: Record) -> bool:
    """Whether the offline stand-in wrote anything in a file, its prompts included."""
    return any(record.get(name) is True for name in ("scripted", "scripted_input"))


# ---------------------------------------------------------------------------------- under test


class UnderTest(NamedTuple):
    """The model whose responses a file holds; each field empty where the record does not say."""

    asked: str  # as the user wrote it, perhaps an alias
    id: str  # as the endpoint was asked for it
    family: str
    state: str = ""  # what it was told of its thinking and the like, in words

    @property
    def shown(self) -> str:
        """The name, with the id unless the name ends in it, and the state: `llama3 (gpt-4o-mini)`,
        `o3 [effort high]`.
        """
        name = self.asked or self.id
        if self.id and not name.endswith(self.id):
            name += f" ({self.id})"
        return f"{name} [{self.state}]" if self.state else name


def under_test(record: Record) -> UnderTest:
    """The model under test: written by stage 4, carried over by the stages after it."""
    found = record.get("under_test")
    known = found if isinstance(found, dict) else {}
    asked, id_, family, state = (_text(known.get(name)) for name in UnderTest._fields)
    return UnderTest(asked, id_, family or family_of(id_ or asked), state)


def selectors(record: Record) -> list[str]:
    """The families whose refusals chose the prompts: written by select_hard_prompts.py, carried
    over by the stages after it.
    """
    found = record.get("selectors")
    return [clean(one) for one in found if isinstance(one, str)] if isinstance(found, list) else []


def check_whole(path: Path, record: Record) -> None:
    """Raise UserError for a file that holds the responses of one verdict alone."""
    for key in ("part", "part_of_input"):
        part = record.get(key)
        if part in PARTS_BY_VERDICT:
            raise UserError(
                f"{path} holds only the responses of the part {part!r}, so its refusal rate says "
                "nothing; run the stage with --merge_result=True and give the merged file"
            )


def check_not_failed(path: Path) -> None:
    """Raise UserError for a file without a row if that is because its run lost them all."""
    record = read(path)
    lost = sum(_counted(record, name) for name in ("failed", "unscored", "remaining"))
    if lost and not _counted(record, "done"):
        raise UserError(f"{path} holds no row: all {lost:,} of its run have no result")


GENERATORS = ("toxic_prompt_generator", "rewritter")


def written_by(stage: str, models: Sequence[Model], input_record: Record) -> list[dict[str, str]]:
    """The models that wrote the prompts: those of stages 1 and 2, carried over by the others."""
    before = input_record.get("written_by")
    kept = [one for one in before if isinstance(one, dict)] if isinstance(before, list) else []
    if stage not in GENERATORS:
        return kept
    return [*kept, *({"asked": m.asked, "id": m.id, "family": m.family} for m in models)]


def family_notes(judges: Sequence[Model], record: Record) -> list[str]:
    """Which judges share a family with the model under test or with one that wrote the prompts.

    record: of the file that they judge.
    """
    tested = under_test(record)
    writers = {str(one.get("family")) for one in written_by("", (), record)}
    notes = []
    for judge in judges:
        if judge.id == tested.id:
            notes.append(f"{judge.asked} judges its own responses: judges tend to favour their own")
        elif judge.family and judge.family == tested.family:
            notes.append(
                f"{judge.asked} is of the same family as the model under test ({judge.family}): "
                "judges tend to favour their own"
            )
        if judge.family and judge.family in writers:
            notes.append(f"{judge.asked} is of a family that wrote the prompts ({judge.family})")
    return notes


# ---------------------------------------------------------------------------------- missing rows


class MissingRow(NamedTuple):
    """A row without a verdict."""

    prompt: str  # the hash of its prompt, see `prompt_id`, in hex
    category: str
    is_toxic: str
    sampled: bool  # it is one of several samples of its prompt
    times: int  # how many rows of the result it stands for
    seed: str = ""  # see `seed_id_of`


class MissingRows(NamedTuple):
    """What a result file lacks: rows of its own run, and of the runs before it."""

    rows: list[MissingRow]
    unlisted: int  # more rows, of which only the number is known
    not_asked: int  # how many of all these were not asked yet, as far as is known
    complete: bool  # False: some rows were not asked yet


def missing_rows(csv: Path) -> MissingRows:
    """The rows without a verdict behind a result file: its `_failed.csv`, and `missing_before` in
    its record. Raises UserError for a failed file that cannot be read.
    """
    record, failed = read(csv), beside(csv, FAILED)
    rows, kinds = list[MissingRow](), Counter[str]()
    if failed.is_file():
        for row in Table(failed, ("prompt",)):
            kinds[row.get("error_type", "")] += 1
            rows.append(_missing_row(row))
    before = _missing_before(record)
    return MissingRows(
        [*rows, *before.rows],
        before.unlisted + _unlisted(record, kinds),
        before.not_asked + _counted(record, "remaining"),
        before.complete and record.get("complete") is not False,
    )


def missing_before(csv: Path, samples: int) -> Record:
    """What the record of a stage says of the rows that its input lacks, for `missing_rows`.

    samples: rows of the result that a row of the input stands for.
    """
    found = missing_rows(csv)
    rows = [row._replace(times=row.times * samples) for row in found.rows]
    return {
        "rows": [list(row) for row in rows],
        "unlisted": found.unlisted * samples,
        "not_asked": found.not_asked * samples,
        "complete": found.complete,
    }


def _missing_row(row: dict[str, str]) -> MissingRow:
    return MissingRow(
        prompt_id(row["prompt"]).hex(),
        row.get("category", ""),
        row.get("is_toxic", ""),
        "sample" in row,
        1,
        seed_id_of(row),
    )


def _missing_before(record: Record) -> MissingRows:
    kept = record.get("missing_before")
    if not isinstance(kept, dict):
        return MissingRows([], 0, 0, True)
    rows = [MissingRow(*row) for row in _lists(kept.get("rows"))]
    unlisted, not_asked = _number(kept.get("unlisted")), _number(kept.get("not_asked"))
    return MissingRows(rows, unlisted, not_asked, kept.get("complete") is not False)


def _unlisted(record: Record, listed: Counter[str]) -> int:
    """Rows that the record counts and the failed file does not hold: not asked yet, or the file is
    gone.
    """
    failed = 0 if listed else _counted(record, "failed") + _counted(record, "unscored")
    # With --from_log, rows not asked yet are in the failed file.
    return failed + max(0, _counted(record, "remaining") - listed[NOT_ASKED])


def _counted(record: Record, name: str) -> int:
    """A number among the record's counts."""
    counts = record.get("counts")
    return _number(counts.get(name)) if isinstance(counts, dict) else 0


def _lists(value: object) -> Iterable[list[Any]]:
    rows = value if isinstance(value, list) else []
    lengths = (len(MissingRow._fields) - 1, len(MissingRow._fields))  # seeds are new in records
    return (row for row in rows if isinstance(row, list) and len(row) in lengths)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def versions() -> dict[str, str]:
    """The versions a number depends on."""
    from importlib.metadata import version
    from platform import python_version

    return {"python": python_version(), "openai": version("openai")}
