"""What a stage is: which requests a row needs, which output rows come of their answers, what is
said at the end. And what the five have in common: prompt files, columns, output paths.

`orbench.conduct` runs a stage.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from orbench import record
from orbench.chat import Answer, Request
from orbench.models import Model
from orbench.run import Failure
from orbench.table import Row, Table, Waves
from orbench.terminal import UserError

_NAME = re.compile(r"\{(\w+)\}")


class Unscored(NamedTuple):
    """Why a row has no result: error_type (empty_prompt, unscored) and one line."""

    error_type: str
    error: str


Outcome = tuple[Row, "list[Row] | Unscored | Failure | None"]
RowsOf = Callable[[Row, Sequence[Answer | Failure]], list[Row] | Unscored]


class Summary(Protocol):
    """What a stage counts while its rows are written, and says at the end."""

    def scored(self, row: Row) -> None: ...
    def unscored(self, row: Row) -> None: ...
    def lines(self) -> Sequence[str]: ...
    def findings(self) -> Mapping[str, Any]: ...


def readable(answer: Answer) -> str | None:
    """Every answer can be used."""
    return None


@dataclass
class Stage:
    """What makes one stage different from the others.

    name: the folder. output: the path of the merged CSV; log, failed file and run record are
    named after it. columns: of the output. requests_of: what a row needs, or why it is never
    sent. reader: gives a function from a row and its answers to output rows (a new one for each
    pass, as it may remember). A failed request fails its row unless failures_count: then the
    reader sees it among the answers. split: label -> path of the CSV of that label; label_of
    tells a row's. asks: tries for an answer that `unreadable` turns down.
    """

    name: str
    table: Table | Waves
    output: Path
    columns: list[str]
    models: list[Model]
    requests_of: Callable[[Row], list[Request] | Unscored]
    reader: Callable[[], RowsOf]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    unreadable: Callable[[Answer], str | None] = readable
    asks: int = 1
    failures_count: bool = False
    split: Mapping[str, Path] | None = None
    label_of: Callable[[Row], str] = lambda row: ""
    summary: Summary | None = None
    prompt_file: Path | None = None
    under_test: Mapping[str, str] = field(default_factory=dict)  # asked, id, family
    missing_before: Mapping[str, Any] = field(default_factory=dict)  # see `orbench.record`
    samples: int = 1
    allow_empty: bool = True  # a CSV without a row is a result
    more: Callable[[Iterator["Outcome"]], bool] = lambda outcomes: False  # another wave of rows

    def rows(self) -> Iterator[Row]:
        """The input rows, each as often as it is sampled."""
        for row in self.table:
            if self.samples == 1:
                yield row
            else:
                for sample in range(self.samples):
                    yield {**row, "sample": str(sample)}

    @property
    def n(self) -> int:
        """How many rows that is."""
        return self.table.n * self.samples


def prompt_template(script: str) -> tuple[Path, str]:
    """The prompt file beside a stage's script, and its text. Raises UserError."""
    path = Path(script).resolve().parent / "prompt.txt"
    try:
        return path, path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8; save it as UTF-8 and run again") from None


def fill(template: str, values: Mapping[str, str]) -> str:
    """A prompt template with each `{name}` replaced by its value, and `{mark}` by a word for
    fences.

    One pass: a value that holds `{name}` itself stays as it is. The mark is made from the values,
    so no text can hold the mark it will be fenced with.
    """
    mark = hashlib.sha256("\0".join(values.values()).encode("utf-8", "surrogatepass")).hexdigest()
    replace = {**values, "mark": mark[:12]}
    return _NAME.sub(lambda name: replace.get(name.group(1), name.group(0)), template)


def empty_cell(row: Row, column: str) -> Unscored | None:
    """Why a row whose cell is blank is never sent; None for one that has a text."""
    if row[column].strip():
        return None
    return Unscored("empty_" + column, f"the {column} is empty")


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
        if path.is_symlink():
            path = path.resolve()  # the file it stands for is written, not the link replaced
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is no file; name a CSV file")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    return path


def check_outputs(stage: "Stage") -> None:
    """Raise UserError where a run would write over its own input, or could not write at all."""
    outputs = [stage.output, *(stage.split or {}).values()]
    outputs.append(beside(stage.output, "_failed.csv"))
    outputs.append(beside(stage.output, ".partial.csv"))
    outputs += [record.path_of(path) for path in outputs[:-2]]
    outputs += [path.with_name(path.name + ".tmp") for path in outputs]
    for path in outputs:
        try:
            if path.is_dir():
                raise UserError(f"{path} is a folder, and would have to be a file of this run")
        except OSError as error:  # a name that is too long
            raise UserError(f"{path} cannot be written: {error.strerror}") from None
    if stage.table.path.resolve() in (path.resolve() for path in outputs):
        raise UserError(
            f"{stage.table.path} is the input and would be written over; choose another "
            "--output_path"
        )


def split_paths(output: Path, given: str | None, names: Mapping[str, str]) -> dict[str, Path]:
    """The files of `--merge_result=False`. names: label -> default file name; a given output path
    gets the label behind its stem instead."""
    if given:
        return {label: output.with_name(f"{output.stem}_{label}.csv") for label in names}
    return {label: output.with_name(name) for label, name in names.items()}


def beside(output: Path, ending: str) -> Path:
    """A file that belongs to an output: `<output stem><ending>`."""
    return output.with_name(output.stem + ending)


def make_folder(folder: Path) -> None:
    """Make the output folder. Raises UserError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the folder {folder} cannot be made: {error.strerror}") from None
