"""What a stage is: which requests a row needs, how an answer is read, which output rows follow, and
what is said at the end. And what the five have in common: prompt files, columns, output paths.

`orbench.conduct` runs a stage.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from orbench import record
from orbench.answers import Answer, Missing
from orbench.chat import Message, Request
from orbench.columns import Row
from orbench.models import Model
from orbench.table import Table, Waves, beside, check_no_input
from orbench.terminal import UserError

_NAME = re.compile(r"\{(\w+)\}")

# A row and what its requests' answers say -> the output rows.
RowsOf = Callable[[Row, Sequence[Any]], list[Row] | Missing]


class Summary(Protocol):
    """What a stage counts while its rows are written, and says at the end."""

    def scored(self, row: Row) -> None: ...
    def unscored(self, row: Row) -> None: ...
    def lines(self) -> Sequence[str]: ...
    def findings(self) -> Mapping[str, Any]: ...


@dataclass
class Stage:
    """What makes one stage different from the others.

    name: the folder. output: the path of the merged CSV; log, failed file and run record are
    named after it. columns: of the output. requests_of: what a row needs, at most one request per
    model and in their order, or why it is never sent. read: what an answer says, or why it cannot
    be used; then it is asked again, up to `asks` times a round, with what `repeat` says of it.
    reader: gives a function from a row and what its answers say to output rows (a new one for each
    pass, as it may remember). A missing answer makes its row missing unless missing_counts: then
    the reader sees it among the others.
    split: label -> path of the CSV of that label; label_of gives a row's. more: whether to plan
    another wave of rows, from what came of those so far. wanted, items: how many different things
    a stage is after that has no rows to count, and which are in what an answer says.
    """

    name: str
    table: Table | Waves
    output: Path
    columns: list[str]
    models: list[Model]
    requests_of: Callable[[Row], list[Request] | Missing]
    read: Callable[[Answer, Model], Any]
    reader: Callable[[], RowsOf]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    asks: int = 1
    repeat: Callable[[Model, Answer, str], Sequence[Message]] = lambda model, answer, why: ()
    missing_counts: bool = False
    split: Mapping[str, Path] | None = None
    label_of: Callable[[Row], str] = lambda row: ""
    summary: Summary | None = None
    prompt_file: Path | None = None
    under_test: Mapping[str, str] = field(default_factory=dict)  # the fields of record.UnderTest
    missing_before: Mapping[str, Any] = field(default_factory=dict)  # see `orbench.record`
    notes: Sequence[str] = ()  # what a reader of the numbers must know
    samples: int = 1
    allow_empty: bool = True  # a CSV without a row is a result
    more: Callable[[Iterable[list[Row] | Missing]], bool] = lambda outcomes: False
    wanted: int = 0
    items: Callable[[Any], Sequence[str]] | None = None

    def rows(self) -> Iterable[Row]:
        """The input rows, each as often as it is sampled."""
        if self.samples == 1:
            return self.table
        return ({**row, "sample": str(n)} for row in self.table for n in range(self.samples))

    @property
    def n(self) -> int:
        """How many rows that is."""
        return self.table.n * self.samples

    @property
    def outputs(self) -> Mapping[str, Path]:
        """Label -> the CSV of the rows with that label; without a split, one under ""."""
        return self.split or {"": self.output}

    def beside(self, ending: str) -> Path:
        """A file that belongs to the output: `<output stem><ending>`."""
        return beside(self.output, ending)


def prompt_template(script: str, name: str = "prompt.txt") -> tuple[Path, str]:
    """A prompt file beside a stage's script, and its text. Raises UserError."""
    path = Path(script).resolve().parent / name
    try:
        return path, path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8; save it as UTF-8 and run again") from None


def fill(template: str, values: Mapping[str, str]) -> str:
    """A prompt template with each `{name}` replaced by its value, and `{mark}` by a fence word.

    One pass: a value that itself holds `{name}` stays as it is. The mark is made from the values,
    so no text can hold the mark it will be fenced with.
    """
    mark = hashlib.sha256("\0".join(values.values()).encode("utf-8", "surrogatepass")).hexdigest()
    replace = {**values, "mark": mark[:12]}
    return _NAME.sub(lambda name: replace.get(name.group(1), name.group(0)), template)


def empty_cell(row: Row, column: str) -> Missing | None:
    """Why a row whose cell is blank is never sent; None for one that has a text."""
    if row[column].strip():
        return None
    return Missing("empty_" + column, f"the {column} is empty")


def output_columns(table: Table, added: Sequence[str], samples: int = 1) -> list[str]:
    """The input's columns and the stage's. Raises UserError where one would be written over."""
    added = [*(["sample"] if samples > 1 else []), *added]
    clash = [column for column in added if column in table.columns]
    if clash:
        raise UserError(
            f"{table.path} already has a column {clash[0]!r}, which would be written over; "
            "rename or drop it there"
        )
    return [*table.columns, *added]


def output_path(given: str | None, default: Path) -> Path:
    """Where the merged CSV goes. Raises UserError where none can be."""
    path = Path(given) if given else default
    if path.suffix != ".csv":
        raise UserError(f"{path} does not end in .csv; name a CSV file")
    if path.stem.endswith("_failed"):  # those of another run, which would be lost
        raise UserError(
            f"{path}: names that end in _failed.csv are for rows without a result; "
            "choose another --output_path"
        )
    try:
        path = followed(path)
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is not a file; name a CSV file")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    return path


def followed(path: Path) -> Path:
    """The file that a link stands for: that is written, not the link replaced. Raises OSError."""
    return path.resolve() if path.is_symlink() else path


def check_outputs(stage: Stage, shard: object = None) -> None:
    """Raise UserError where a run would write over its own input, or could not write at all."""
    part = f".{shard}" if shard else ""
    csvs = [*stage.outputs.values(), stage.beside(record.FAILED), stage.beside(".partial.csv")]
    logs = [word + ending for word in {"", part} for ending in (".answers.jsonl", ".batches.json")]
    others = [stage.beside(ending) for ending in logs]
    others += map(record.path_of, stage.outputs.values())
    paths = [*csvs, *others]
    paths += [path.with_name(path.name + ".tmp") for path in paths]
    for path in paths:
        try:
            if path.is_dir():
                raise UserError(f"{path} is a folder, but this run has to write a file there")
        except OSError as error:  # a name that is too long
            raise UserError(f"{path} cannot be written: {error.strerror}") from None
    for path in paths:
        check_no_input(path)


def split_paths(output: Path, given: str | None, names: Mapping[str, str]) -> dict[str, Path]:
    """The files of `--merge_result=False`. names: label -> default file name; a given output path
    gets the label after its stem instead."""
    if given:
        names = {label: f"{output.stem}_{label}.csv" for label in names}
    return {label: followed(output.with_name(name)) for label, name in names.items()}


def make_folder(folder: Path) -> None:
    """Make the output folder. Raises UserError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the folder {folder} cannot be made: {error.strerror}") from None
