"""Tables in, CSV files out, and other small files written whole.

Tables are CSV (with commas, or semicolons as Excel writes them), JSON lines or parquet; the first
bytes of a file tell. Cells are text and stay what they were: `007` and `1e5` are strings, nothing
is stripped. Files are UTF-8 with or without a BOM; a lone surrogate passes through.
"""

import codecs
import csv
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from orbench.base.messages import UserError, clean
from orbench.base.prompts import MESSAGES, with_prompt
from orbench.base.words import Row

csv.field_size_limit(sys.maxsize)  # the default rejects cells over 131,072 characters

_UNCHANGED: Any = {"errors": "surrogatepass", "newline": ""}  # the csv module sees line ends
NO_NAME = "the input file's name is empty; did the stage before fail?"
PARQUET = b"PAR1"  # what the file begins with
_inputs: set[Path] = set()  # the files that this process has read as tables
written: set[Path] = set()  # the files that this process has written


@dataclass
class Table:
    """A CSV file in memory."""

    path: Path
    columns: list[str]
    rows: list[Row]  # in file order
    source: dict[str, Any] = field(default_factory=dict)  # of a public prompt set


def read_csv(
    path: str | Path, needed: Sequence[str] = (), *, is_input: bool = True, hint: str = ""
) -> Table:
    """Read a table. Blank lines are skipped.

    needed: columns that must be there; `prompt` may come from `messages`, see orbench.base.prompts.
    is_input: this process must not overwrite the file. hint: added to the message if the file does
    not fit. Raises UserError for a file that cannot be read, is malformed or lacks a column.
    """
    if not str(path):
        raise UserError(NO_NAME)
    path = Path(path)
    try:
        lines = _lines(path)
        _, header = next(lines, (0, []))
        columns = [sys.intern(column) for column in header]
        rows = []
        for number, cells in lines:
            if len(cells) != len(columns):
                raise UserError(
                    f"{path}, line {number}: {len(cells)} cells, but the header has "
                    f"{len(columns)}; is a quote or a comma missing?"
                )
            rows.append(dict(zip(columns, cells, strict=True)))
    except UnicodeDecodeError:
        raise UserError(
            f"{path} is not UTF-8 text; save it as CSV UTF-8 and run again{hint}"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: {str(error.strerror).lower()}") from None
    if is_input:
        _inputs.add(path.resolve())
    if "prompt" in needed and MESSAGES in columns:
        rows = [with_prompt(row, f"{path}, row {n}") for n, row in enumerate(rows, start=1)]
        columns += [] if "prompt" in columns else ["prompt"]
    _check_columns(path, columns, needed, hint)
    return Table(path, columns, rows)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that is not blank, and the number that it begins with."""
    with path.open("rb") as binary:
        start = binary.read(8).removeprefix(codecs.BOM_UTF8)
    if start.startswith((PARQUET, b"{", b"[")):
        yield from enumerate(_records(path, start.startswith(PARQUET)), start=1)
        return
    with path.open(encoding="utf-8-sig", **_UNCHANGED) as file:
        header = file.readline()
        file.seek(0)
        delimiter = ";" if ";" in header and "," not in header else ","
        reader = csv.reader(file, strict=True, delimiter=delimiter)
        number = 1
        try:
            for cells in reader:
                if cells:
                    yield number, cells
                number = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{path}, line {number}: {error}; is a quote not closed?") from None


def _records(path: Path, is_parquet: bool) -> Iterator[list[str]]:
    """Header and cells of a parquet file or of JSON lines: texts as they are, null as an empty
    cell, lists and objects as JSON. Raises UserError.
    """
    try:
        if is_parquet:
            from pyarrow import parquet  # type: ignore[import-untyped]

            found = parquet.read_table(path).to_pylist()
        else:
            text = path.read_text("utf-8-sig")
            lines = [line for line in text.split("\n") if line.strip()]
            found = json.loads(text) if text.startswith("[") else list(map(json.loads, lines))
        columns = list(dict.fromkeys(name for one in found for name in one.keys()))  # noqa: SIM118
        yield columns
        for one in found:
            values = [one.get(name) for name in columns]
            nested = [json.dumps(v) if isinstance(v, (list, dict)) else v for v in values]
            yield ["" if value is None else str(value) for value in nested]
    except (ValueError, OSError, AttributeError, RecursionError) as error:
        kind = "a parquet file" if is_parquet else "JSON lines, one object per line"
        raise UserError(f"{path} is not {kind}: {clean(str(error))[:200]}") from None


def _check_columns(path: Path, columns: Sequence[str], needed: Sequence[str], hint: str) -> None:
    if not columns:
        raise UserError(f"{path} is empty; it needs a header line")
    if twice := [column for column in columns if columns.count(column) > 1]:
        raise UserError(f"{path} names the column {twice[0]!r} twice")
    if missing := [column for column in needed if column not in columns]:
        there = clean(", ".join(columns))[:300]
        lacks = f"{path} has no column {', '.join(map(repr, missing))}"
        raise UserError(f"{lacks}; it has: {there}{hint}")


# -- writing -----------------------------------------------------------------------------------


def check_no_input(path: Path) -> None:
    """Raise UserError for a file that this process has read: it is never overwritten."""
    if path.resolve() in _inputs and path.exists():
        raise UserError(f"{path} is an input and would be overwritten; name another output")


class CsvWriter(AbstractContextManager["CsvWriter"]):
    """Writes rows to a CSV that appears under its name, whole, at `commit`; else nothing stays."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        """Raises OSError, and UserError for an input."""
        self._path = path
        self._columns = list(columns)
        self._file = _temporary(path).open("w", encoding="utf-8", **_UNCHANGED)
        self._plain = csv.writer(self._file, lineterminator="\n")
        self._quoted = csv.writer(self._file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        self.write({column: column for column in self._columns})

    def write(self, row: Mapping[str, str]) -> None:
        """Append a row; a missing cell is empty. Raises OSError."""
        cells = [row.get(column, "") for column in self._columns]
        # Python 3.11 leaves a lone \r unquoted if lines end in \n; readers would split the row.
        lone = any("\r" in cell for cell in cells)
        (self._quoted if lone else self._plain).writerow(cells)

    def sha256(self) -> str:
        """Of what was written so far. Raises OSError."""
        self._file.flush()
        return sha256_of(Path(self._file.name))

    def commit(self) -> None:
        """Put the file on disk and under its name. Raises OSError."""
        _publish(self._file, self._path)

    def __exit__(self, *_: object) -> None:
        if not self._file.closed:
            Path(self._file.name).unlink(missing_ok=True)
            self._file.close()


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    """Write a CSV whole. Raises OSError and UserError."""
    with CsvWriter(path, columns) as writer:
        for row in rows:
            writer.write(row)
        writer.commit()


def write_bytes(path: Path, content: bytes) -> None:
    """Write a small file whole. Raises OSError, and UserError for an input."""
    half = _temporary(path)
    try:
        with half.open("wb") as file:
            file.write(content)
            _publish(file, path)
    finally:
        half.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """As `write_bytes`."""
    write_bytes(path, text.encode())


def make_folder(folder: Path) -> None:
    """Make a folder and those above it. Raises UserError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the folder {folder} cannot be created: {error.strerror}") from None


def _temporary(path: Path) -> Path:
    """Where a file is written before it gets its name. Raises UserError for an input."""
    check_no_input(path)
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")  # two runs never write to the same one


def _publish(file: IO[Any], path: Path) -> None:
    """Close a temporary file and give it its name; a power cut must not leave an empty one."""
    file.flush()
    os.fsync(file.fileno())
    os.replace(file.name, path)
    sync_folder(path.parent)
    file.close()
    written.add(path.resolve())


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk. Network file systems may not be able to."""
    descriptor = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


def beside(csv_path: Path, ending: str) -> Path:
    """A file that belongs to a CSV: `<stem><ending>` in its folder."""
    return csv_path.with_name(csv_path.stem + ending)


def file_name_part(text: str) -> str:
    """A user's word (a model id, a category) made safe for a file name: `a/b` becomes `a_b`."""
    safe = "".join(c if c.isalnum() or c in "._+-" else "_" for c in text)
    return safe.lstrip(".") or "_"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def storable(text: str) -> str:
    """A model's text as a CSV can hold it: lone surrogates become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
