"""Tables in, CSV files out, and other small files written whole.

Tables are CSV (with commas, tabs, or semicolons as Excel writes them), JSON lines or parquet; the
first bytes of a file tell. Cells are text and stay what they were: `007` and `1e5` are strings,
nothing is stripped. Files are UTF-8 with or without a BOM; a lone surrogate becomes U+FFFD.
"""

import codecs
import csv
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Self

from orbench.base.messages import UserError, clean, one_line, storable
from orbench.base.prompts import MESSAGES, with_prompt
from orbench.base.secrets import masked
from orbench.base.words import Json, Row, Rows, Words

csv.field_size_limit(sys.maxsize)  # the default rejects cells over 131,072 characters

Columns = Words  # of a table, in order
Paths = Sequence[Path]

NO_NAME = "the input file's name is empty; did the stage before fail?"
PARQUET = b"PAR1"  # what the file begins with
# What Python, json and pyarrow raise for what they cannot read.
NOT_READABLE = (ValueError, OSError, AttributeError, TypeError, RuntimeError, OverflowError)


@dataclass
class Table:
    """A CSV file in memory."""

    path: Path
    columns: list[str]
    rows: list[Row]  # in file order
    source: Json = field(default_factory=dict)  # of a public prompt set

    @property
    def file(self) -> Path:
        """Return the file that was read; an empty path for a prompt set, which has its source."""
        return Path() if "name" in self.source else self.path


def read_csv(path: str | Path, needed: Columns = (), *, hint: str = "") -> Table:
    """Read a table. Blank lines are skipped.

    needed: columns that must be there; `prompt` may come from `messages`, see orbench.base.prompts.
    hint: added to the message if the file does not fit. Raises UserError for a file that is
    malformed or lacks a column, OSError for one that cannot be read.
    """
    if not str(path):
        raise UserError(NO_NAME)
    path = Path(path)
    try:
        lines = _lines(path)
        _, columns = next(lines, (0, []))
        rows = []
        for number, cells in lines:
            if len(cells) != len(columns):
                raise UserError(
                    f"{path}, line {number}: {len(cells)} cells, but the header has "
                    f"{len(columns)}; is a quote or a comma missing?"
                )
            rows.append(dict(zip(columns, cells, strict=False)))
    except UnicodeDecodeError:
        raise UserError(
            f"{path} is not UTF-8 text; save it as CSV UTF-8 and run again{hint}"
        ) from None
    if "prompt" in needed and MESSAGES in columns:
        rows = [with_prompt(row, place) for place, row in placed_rows(path, rows)]
        columns = columns_in([columns, ["prompt"]])
    _check_columns(path, columns, needed, hint)
    return Table(path, columns, rows)


def placed_rows(path: str | Path, rows: Rows) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a file, each after its place in it, for messages."""
    for number, row in enumerate(rows, start=1):
        yield f"{path}, row {number}", row


def check_single(table: Table) -> None:
    """Raise UserError for a file of conversations where a prompt must stand for itself."""
    if MESSAGES in table.columns:
        raise UserError(
            f"{table.path} has a column {MESSAGES!r}; only single prompts are read here"
        )


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line that is not blank, after the number that it begins with."""
    records = records_in(path)
    if records is not None:
        columns = columns_in(records)
        yield 1, list(map(storable, columns))
        for number, record in enumerate(records, start=2):
            yield number, [cell_text(record.get(column)) for column in columns]
        return
    with path.open(encoding="utf-8-sig", errors="surrogatepass", newline="") as file:
        header = file.readline()
        file.seek(0)
        marks = "\t" if path.suffix.lower() == ".tsv" else ",\t;"
        delimiter = next((mark for mark in marks if mark in header), marks[0])
        reader = csv.reader(map(storable, file), strict=True, delimiter=delimiter)
        number = 1
        try:
            for cells in reader:
                if cells:
                    yield number, cells
                number = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{path}, line {number}: {error}; is a quote not closed?") from None


def start_of(path: Path) -> bytes:
    """Return what a file begins with, without a byte order mark and blanks. Raises OSError."""
    with path.open("rb") as file:
        return file.read(100).removeprefix(codecs.BOM_UTF8).lstrip()


def records_in(path: Path) -> list[Json] | None:
    """Return the rows of a parquet file or of JSON, lines or a list; None for another file. Raises
    UserError.
    """
    start = start_of(path)
    is_parquet = start.startswith(PARQUET)
    if not (is_parquet or start.startswith((b"{", b"["))):
        return None
    kind = "JSON lines, one object per line"
    records: list[Json]
    try:
        if is_parquet:
            from pyarrow import parquet  # type: ignore[import-untyped]

            kind = "a parquet file"
            records = parquet.read_table(path).to_pylist()
        else:
            text = path.read_text("utf-8-sig")
            if not start.startswith(b"["):
                text = "[" + ",".join(filter(str.strip, text.split("\n"))) + "]"
            records = json.loads(text)
        for number, record in enumerate(records, start=1):
            if not isinstance(record, dict):
                raise UserError(f"{path}, row {number} is no JSON object: {one_line(str(record))}")
    except NOT_READABLE as error:
        raise UserError(f"{path} is not {kind}: {clean(str(error))[:200]}") from None
    return records


def columns_in(rows: Iterable[Iterable[str]], first: Columns = ()) -> list[str]:
    """Return the columns of all rows in the order in which they appear, after the first ones."""
    return list(dict.fromkeys(chain(first, *rows)))


def cell_text(value: Any) -> str:
    """Return a value as text: nothing for null, JSON for lists and objects."""
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        value = json.dumps(value, default=str)
    return storable(str(value))


def _check_columns(path: Path, columns: Columns, needed: Columns, hint: str) -> None:
    if not columns:
        raise UserError(f"{path} is empty; it needs a header line")
    for column in columns:
        if columns.count(column) > 1:
            raise UserError(f"{path} names the column {column!r} twice")
    missing = [repr(column) for column in needed if column not in columns]
    if missing:
        there = clean(", ".join(columns))[:300]
        raise UserError(f"{path} has no column {', '.join(missing)}; it has: {there}{hint}")


# -- writing -----------------------------------------------------------------------------------


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise UserError if an output is an input, by whatever path: it is never overwritten."""
    known = {path.resolve() for path in inputs if path.exists()}
    for path in outputs:
        if path.resolve() in known:
            raise UserError(f"{path} is an input and would be overwritten; name another output")


class WholeFile:
    """A file that appears under its name, whole, at `commit`; else nothing stays."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        half = path.with_name(f"{path.name}.{os.getpid()}.tmp")  # no two runs write to the same one
        self.file = half.open("w", encoding="utf-8", newline="")

    def commit(self) -> None:
        """Put the file on disk and under its name: a power cut must not leave an empty one.

        Raises OSError.
        """
        self.file.flush()
        os.fsync(self.file.fileno())
        os.replace(self.file.name, self._path)
        sync_folder(self._path.parent)
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: object, __: object) -> None:
        if isinstance(error, OSError):  # a full disk has no name
            error.filename = self._path
        Path(self.file.name).unlink(missing_ok=True)  # if it was not committed
        with suppress(OSError):  # a full disk fails here once more
            self.file.close()


class CsvWriter(WholeFile):
    """Writes rows to a CSV."""

    def __init__(self, path: Path, columns: Columns) -> None:
        """Raises OSError."""
        super().__init__(path)
        self._columns = list(columns)
        self.write({column: column for column in self._columns})

    def write(self, row: Row) -> None:
        """Append a row; a missing cell is empty. Raises OSError."""
        cells = [masked(row.get(column, "")) for column in self._columns]
        # Python 3.11 leaves a lone \r unquoted if lines end in \n; readers would split the row.
        writer = csv.writer(
            self.file,
            lineterminator="\n",
            quoting=csv.QUOTE_ALL if "\r" in "".join(cells) else csv.QUOTE_MINIMAL,
        )
        writer.writerow(cells)

    def sha256(self) -> str:
        """Return the SHA-256 of what was written so far. Raises OSError."""
        self.file.flush()
        return sha256_of(Path(self.file.name))


def write_csv(path: Path, columns: Columns, rows: Iterable[Row]) -> None:
    """Write a CSV whole. Raises OSError."""
    with CsvWriter(path, columns) as writer:
        for row in rows:
            writer.write(row)
        writer.commit()


def write_json(path: Path, value: object) -> None:
    """Write a small file of JSON, as `write_text` does."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_yaml(path: Path, value: object) -> None:
    """Write a small file of YAML, as `write_text` does."""
    import yaml  # type: ignore[import-untyped]

    write_text(path, yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a small file whole. Raises OSError."""
    with WholeFile(path) as whole:
        whole.file.buffer.write(content)
        whole.commit()


def write_text(path: Path, text: str) -> None:
    """Write a small text file whole, as `write_bytes` does."""
    write_bytes(path, masked(text).encode())


def make_folder(folder: Path) -> None:
    """Make a folder and those above it. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk. Network file systems may not be able to."""
    descriptor = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


def beside(csv_path: Path, ending: str) -> Path:
    """Return a file that belongs to a CSV: `<stem><ending>` in its folder."""
    return csv_path.with_name(csv_path.stem + ending)


def file_name_part(text: str) -> str:
    """Return a user's word (a model id, a category) made safe for a file name: a_b for `a/b`."""
    return re.sub(r"[^\w.+-]", "_", text).lstrip(".") or "_"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
