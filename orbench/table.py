"""CSV in and out.

Reading is a stream: a table is checked whole before a run starts (a broken file costs nothing),
then read again row by row, so that memory does not grow with it. Writing is atomic: a CSV stands
under its final name only when it is complete.

Cells are text and stay what they were: `NA`, `007` and `1e5` are strings, nothing is stripped.
Files are UTF-8 with or without a BOM; a lone surrogate, for which strict UTF-8 has no bytes,
passes through.
"""

import csv
import errno
import fcntl
import hashlib
import io
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from orbench.columns import Row as Row
from orbench.terminal import UserError, clean

if TYPE_CHECKING:
    from _csv import Reader

csv.field_size_limit(sys.maxsize)  # the default refuses cells over 131,072 characters


NO_NAME = "the input file's name is empty; did the stage before fail?"
_inputs: set[Path] = set()  # what this process has read as a table


def check_no_input(path: Path) -> None:
    """Raise UserError for a file that this process has read: it is never written over."""
    if path.resolve() in _inputs and path.exists():
        raise UserError(f"{path} is an input and would be written over; name another output")


class Table:
    """A checked CSV file. Iterating gives its rows, dicts of text in file order, as often as
    wanted.

    path; columns: their names in order; n: rows, the header not counted, `limit` applied;
    in_file: rows without the limit; sha256: of the file's bytes, in hex.
    """

    def __init__(
        self,
        path: str | Path,
        needed: Sequence[str] = (),
        limit: int | None = None,
        check: Callable[[Row, str], object] | None = None,
    ) -> None:
        """Read the file once, to check and hash it.

        needed: columns that must be there. limit: only the first so many rows. check: is called
        with each of these rows and where it stands, and raises UserError for one that cannot be
        used.

        Raises UserError for a file that is missing, a folder, empty, not UTF-8 or malformed
        (unclosed quote, ragged line), that lacks a needed column or names a column twice.
        """
        if not str(path):
            raise UserError(NO_NAME)
        self.path, self.limit = Path(path), limit
        try:
            if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
                raise UserError(
                    f"{path} is no file and can be read only once; save it as a CSV file"
                )
            with _Hashed(self.path) as file:
                self._stamp = _stamp(self.path)
                reader = csv.reader(file.text, strict=True)
                self.columns = self._header(reader, needed)
                self.n = sum(1 for _ in self._checked(reader, check))
                self.sha256 = file.digest.hexdigest()
            _inputs.add(self.path.resolve())
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except IsADirectoryError:
            raise UserError(f"{path} is a folder; give a CSV file") from None
        except UnicodeDecodeError:
            raise UserError(f"{path} is not UTF-8; save it as UTF-8 and run again") from None
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        self.in_file = self.n
        if limit is not None:
            self.n = min(limit, self.n)

    def __iter__(self) -> Iterator[Row]:
        with self.path.open(**_TEXT) as file:
            reader = csv.reader(file, strict=True)
            next(reader, None)
            for cells in self._taken(self._records(reader)):
                yield dict(zip(self.columns, cells, strict=True))

    def _taken(self, records: Iterator[list[str]]) -> Iterator[list[str]]:
        """Those of the file's records that are this table's rows."""
        return itertools.islice(records, self.n)

    def changed(self) -> bool:
        """Whether the file's content has changed since it was checked. Raises OSError."""
        return _stamp(self.path) != self._stamp and sha256_of(self.path) != self.sha256

    def _header(self, reader: "Reader", needed: Sequence[str]) -> list[str]:
        try:
            columns = next(reader, [])
        except csv.Error as error:
            raise UserError(f"{self.path}, header: {error}; is a quote not closed?") from None
        if not columns:
            raise UserError(f"{self.path} is empty; it needs a header line")
        twice = {column for column in columns if columns.count(column) > 1}
        if twice:
            raise UserError(f"{self.path} names the column {sorted(twice)[0]!r} twice")
        missing = [column for column in needed if column not in columns]
        if missing:
            names = ", ".join(map(repr, missing))
            there = clean(", ".join(columns))
            hint = "; is it separated by semicolons?" if there.count(";") else ""
            raise UserError(f"{self.path} has no column {names}; it has: {there}{hint}")
        return columns

    def _checked(
        self, reader: "Reader", check: Callable[[Row, str], object] | None
    ) -> Iterator[list[str]]:
        for number, cells in enumerate(self._records(reader), start=1):
            if check and (self.limit is None or number <= self.limit):
                check(dict(zip(self.columns, cells, strict=True)), f"{self.path}, row {number}")
            yield cells

    def _records(self, reader: "Reader") -> Iterator[list[str]]:
        """The lines after the header; blank lines are no rows."""
        width, start = len(self.columns), reader.line_num + 1
        try:
            for cells in reader:
                if cells:
                    if len(cells) != width:
                        raise UserError(
                            f"{self.path}, line {start}: {len(cells)} cells where the header "
                            f"has {width}; is a quote or a comma missing?"
                        )
                    yield cells
                start = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{self.path}, line {start}: {error}; is a quote not closed?") from None


# A BOM is dropped, line ends are left to the csv module, lone surrogates pass through.
_TEXT: Any = {"encoding": "utf-8-sig", "errors": "surrogatepass", "newline": ""}


class _Hashed(io.RawIOBase):
    """A file that is hashed while it is read as text."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.digest = hashlib.sha256()
        self.text = io.TextIOWrapper(io.BufferedReader(self, 1 << 16), **_TEXT)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self._file.readinto(buffer)
        self.digest.update(memoryview(buffer)[:n])
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


def _stamp(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written to."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


class Waves:
    """A table of nothing but numbers, for a stage that has no input; it grows by raising `n`."""

    def __init__(self, column: str) -> None:
        """column: the name of the one column, which counts from 0."""
        self.path, self.columns, self.sha256 = Path(), [column], ""
        self.n = self.in_file = 0

    def __iter__(self) -> Iterator[Row]:
        for number in range(self.n):
            yield {self.columns[0]: str(number)}

    def changed(self) -> bool:
        """Never: there is no file."""
        return False


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def prompt_id(prompt: str) -> bytes:
    """16 bytes that stand for a prompt."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()[:16]


SEED_COLUMNS = ("seed_id", "toxic_seed")


def seed_id_of(row: Mapping[str, str]) -> str:
    """What tells the seed of a rewrite from others: 12 hex digits; empty where none is known.

    Columns: seed_id, as the datasets have it, or toxic_seed, as stage 2 writes it.
    """
    if seed_id := row.get("seed_id", "").strip():
        return seed_id
    seed = row.get("toxic_seed", "").strip()
    return prompt_id(seed).hex()[:12] if seed else ""


class PromptSet:
    """A hash of the prompts of a table, whatever their order and number of repeats.

    Two result files with the same hash were measured on the same prompts.
    """

    def __init__(self) -> None:
        self._each: set[bytes] = set()

    def add(self, prompt: str) -> None:
        """Count a prompt in."""
        self.add_id(prompt_id(prompt))

    def add_id(self, id_: bytes) -> None:
        """Count in a prompt of which only the `prompt_id` is known."""
        self._each.add(id_)

    def hexdigest(self) -> str:
        """The hash, 16 hex digits; empty without a prompt."""
        if not self._each:
            return ""
        return hashlib.sha256(b"".join(sorted(self._each))).hexdigest()[:16]


def prompt_set_hash(prompts: Iterable[str]) -> str:
    """The hash of a set of prompts, see `PromptSet`."""
    prompt_set = PromptSet()
    for prompt in prompts:
        prompt_set.add(prompt)
    return prompt_set.hexdigest()


class Writer:
    """Writes rows to one or more CSVs, which appear under their names, whole, at `commit`.

    Missing cells are written empty. A cell that another program could misread (a lone carriage
    return) is quoted with its whole line.
    """

    def __init__(self, paths: Mapping[str, Path], columns: Sequence[str]) -> None:
        """paths: a label -> the file for the rows with that label. Raises OSError, and UserError
        for a file that is an input.
        """
        self.columns = list(columns)
        self._paths = dict(paths)
        self._stack = ExitStack()
        self._committed = False
        self._plain: dict[str, Callable[[Sequence[str]], object]] = {}
        self._quoted: dict[str, Callable[[Sequence[str]], object]] = {}
        self._files: list[IO[str]] = []
        for label, path in self._paths.items():
            try:
                check_no_input(path)
                file = self._stack.enter_context(_locked(_temporary(path)))
            except (OSError, UserError):
                self._stack.close()
                raise
            self._files.append(file)
            self._plain[label] = csv.writer(file, lineterminator="\n").writerow
            self._quoted[label] = csv.writer(
                file, lineterminator="\n", quoting=csv.QUOTE_ALL
            ).writerow
            self.write({column: column for column in self.columns}, label)

    def write(self, row: Mapping[str, str], label: str = "") -> None:
        """Append one row to the file of that label."""
        cells = [row.get(column, "") for column in self.columns]
        # Python 3.11 leaves a lone \r unquoted when lines end in \n; a reader would split the row.
        lone = any("\r" in cell for cell in cells)
        (self._quoted if lone else self._plain)[label](cells)

    def commit(self, *, lasting: bool = True) -> None:
        """Put the finished files under their names, once they are on disk. Raises OSError.

        lasting: they must outlive a power cut.
        """
        for file in self._files:
            sync(file) if lasting else file.flush()
        for path in self._paths.values():
            os.replace(_temporary(path), path)
        self._committed = True
        for folder in {path.parent for path in self._paths.values()} if lasting else ():
            sync_folder(folder)
        self._stack.close()  # and with the files their locks

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Leave nothing behind; after a commit there is nothing to discard."""
        if not self._committed:
            for path in self._paths.values():
                _temporary(path).unlink(missing_ok=True)
        self._stack.close()


def _locked(path: Path) -> IO[str]:
    """A file opened for writing by this process alone. Raises UserError when another has it."""
    file = path.open("a", encoding="utf-8", errors="surrogatepass", newline="")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UserError(f"another run is writing {path.with_suffix('')}; wait for it") from None
    file.truncate(0)
    return file


def _temporary(path: Path) -> Path:
    # A fixed name: what a killed run left is overwritten by the next one.
    return path.with_name(path.name + ".tmp")


def beside(csv_path: Path, ending: str) -> Path:
    """A file that belongs to a CSV: `<stem><ending>` in its folder."""
    return csv_path.with_name(csv_path.stem + ending)


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically. Raises OSError."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a small file atomically. Raises OSError, and UserError for one that is an input."""
    check_no_input(path)
    with _temporary(path).open("wb") as file:
        file.write(content)
        sync(file)
    os.replace(_temporary(path), path)
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Remove a file, if it is there, for good. Raises OSError."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync(file: IO[Any]) -> None:
    """Put what was written to a file on disk: only then may it get its name, or a full disk or a
    power cut leaves an empty file under it. Raises OSError.
    """
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # as network file systems say
            raise
    finally:
        os.close(descriptor)


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    """Write a CSV whole. Raises OSError."""
    with Writer({"": path}, columns) as writer:
        for row in rows:
            writer.write(row)
        writer.commit()


def storable(text: str) -> str:
    """A model's text as a CSV can hold it: lone surrogates become U+FFFD, all else stays."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def file_name_part(text: str) -> str:
    """A user's word (a model id, a category) made safe for a file name: `a/b` becomes `a_b`."""
    safe = "".join(c if c.isalnum() or c in "._+-" else "_" for c in text)
    return safe.lstrip(".") or "_"
