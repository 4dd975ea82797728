"""What the run record of a result file says of the model it measured, and whether it is whole."""

from pathlib import Path
from typing import NamedTuple

from orbench.models import family_of
from orbench.record import Record
from orbench.table import TableError, clean

# Parts that --merge_result=False splits responses into by their verdict. A rate over one of them is
# 0 % or 100 % by construction. (toxic and non_toxic are parts of the prompts, which may stay.)
PARTS_BY_VERDICT = (
    "rejected",
    "accepted",
    "direct_answer",
    "direct_refusal",
    "indirect_refusal",
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


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""
