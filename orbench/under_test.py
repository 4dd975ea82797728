"""What the run record of a result file says: the model it measured, whether it is whole, and which
file of stage 4 stands behind it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from orbench.models import family_of
from orbench.record import Record
from orbench.table import TableError, clean, sha256_of

# Parts that --merge_result=False splits responses into by their verdict. A rate over one of them is
# 0 % or 100 % by construction. (toxic and non_toxic are parts of the prompts, which may stay.)
PARTS_BY_VERDICT = (
    "rejected",
    "accepted",
    "direct_answer",
    "direct_refusal",
    "indirect_refusal",
)

ROOT = Path(__file__).resolve().parents[1]
STAGE_FOLDERS = (
    "toxic_prompt_generator",
    "rewritter",
    "moderator",
    "alignment_checker",
    "response_checker",
)


class UnderTest(NamedTuple):
    """The model whose responses a file holds; each field empty where the record does not say."""

    asked: str  # as the user wrote it, perhaps an alias
    id: str  # what the endpoint was asked for
    family: str

    @property
    def shown(self) -> str:
        """The name, with the id where the one does not end in the other: `llama3 (gpt-4o-mini)`."""
        if not self.id or self.asked.endswith(self.id):
            return self.asked
        return f"{self.asked} ({self.id})" if self.asked else self.id


def under_test(record: Record) -> UnderTest:
    """The model under test, from a record of stage 4 or 5.

    Stage 4 has it first among `models`; those of stage 5 are judges, and `under_test` is carried
    over from stage 4. The family is that of the id: an alias can point anywhere.
    """
    found: object = record.get("under_test")
    models = record.get("models")
    if record.get("stage") == "alignment_checker" and isinstance(models, list) and models:
        found = models[0]
    known = found if isinstance(found, dict) else {}
    asked = _text(record.get("model_under_test")) or _text(known.get("asked"))
    id_ = _text(known.get("id"))
    return UnderTest(asked, id_, _text(known.get("family")) or family_of(id_ or asked))


def check_whole(path: Path, record: Record) -> None:
    """Raises TableError for a file that holds the responses of one verdict alone."""
    for key in ("part", "part_of_input"):
        part = record.get(key)
        if part in PARTS_BY_VERDICT:
            raise TableError(
                f"{path} holds only the responses of the part {part!r}, so its refusal rate says "
                "nothing; run the stage with --merge_result=True and give the merged file"
            )


class Judged(NamedTuple):
    """Stage 4's file behind one of stage 5; beside it stand the rows that stage 4 lost."""

    path: Path | None  # None: it is not found, or the record names none
    missing: str  # where it is named and not found: what follows from that, in words


def judged_by_stage5(csv: Path, record: Record) -> Judged:
    """The file whose responses stage 5 judged, if it is still what it was (its SHA-256).

    csv: stage 5's file. The path in its record can be relative to the folder that the stage ran in,
    which the record does not tell, and the files can have moved together since. So the path, or
    what it ends in, is looked for from the CSV's folder up, from the working directory, and from
    the folders that the stages are run in.
    """
    named = record.get("input")
    if record.get("stage") != "response_checker" or not isinstance(named, dict):
        return Judged(None, "")
    path, sha256 = Path(_text(named.get("path"))), named.get("sha256")
    for place in dict.fromkeys(_places(csv, path)):
        if _is(place, sha256):
            return Judged(place, "")
    return Judged(
        None, f"rows lost before stage 5 are not counted: {path.name} is not found as it was judged"
    )


def _places(csv: Path, named: Path) -> Iterator[Path]:
    parts = [part for part in named.parts if part not in (named.anchor, "..")]
    ends = [named, *(Path(*parts[i:]) for i in range(len(parts)))]
    stages = [ROOT, *(ROOT / name for name in STAGE_FOLDERS)]
    for end in ends:
        for folder in (*csv.absolute().parents, Path.cwd(), *stages):
            yield folder / end


def _is(path: Path, sha256: object) -> bool:
    """Whether the file is there with these bytes."""
    try:
        return os.path.isfile(path) and sha256_of(path) == sha256
    except OSError:  # somebody else's
        return False


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""
