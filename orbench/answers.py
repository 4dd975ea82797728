"""The answer log: `<output stem>.answers.jsonl`, one JSON line an answer, appended as it arrives.

Everything that was paid for is in it: a killed run resumes from it, new rules and parsers are run
over it at no cost, and a CSV is only derived from it. A line holds what the API returned for a
request, under the request's key, and the round it was asked in; no API key, no header, no prompt.
A request that failed has a line too, which says why. In memory is an index: 16 bytes of key and a
file offset per answer.
"""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from orbench.table import sync_folder
from orbench.terminal import UserError, counted, say

BEGINNING = b'{"key": "'  # of an entry; inside a JSON string its quotes would be escaped
RESERVE = 1 << 20  # bytes kept free so that answers in flight can be stored when the disk fills up
SYNC_EVERY_S = 1.0  # what a power cut may lose


class LogError(UserError):
    """The log cannot be used."""


class DiskFull(LogError):
    """An answer could not be stored without the reserve; it is stored, but the run must stop."""


class Answer(NamedTuple):
    """What the API returned for a request."""

    text: str
    finish_reason: str = ""
    refusal: str = ""  # the API's own refusal: the text of its refusal field, or what it declared
    model: str = ""  # the model id as returned
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dropped: tuple[str, ...] = ()  # sampling parameters that the model rejects
    cached_tokens: int = 0  # of the prompt's
    reasoning_tokens: int = 0  # of the completion's
    provider: str = ""  # behind a gateway that names it
    api_category: str = ""  # of the API's own refusal, see `orbench.api_category`

    @property
    def served_by(self) -> str:
        """The model id as returned and, where it is named, the provider behind a gateway."""
        return " via ".join(name for name in (self.model, self.provider) if name)


@dataclass
class Tokens:
    """The tokens of answers, as they are billed."""

    prompt: int = 0
    cached: int = 0  # of the prompts'
    completion: int = 0
    reasoning: int = 0  # of the completions'

    def add(self, answer: Answer) -> None:
        """Count an answer's in."""
        self.prompt += answer.prompt_tokens
        self.cached += answer.cached_tokens
        self.completion += answer.completion_tokens
        self.reasoning += answer.reasoning_tokens


class Missing(NamedTuple):
    """Why a request has no usable answer, or a row no result."""

    # empty_... (never sent), unscored (an answer that cannot be read), bad_request, gave_up
    # (faults), not_asked. The column error_type of a failed file.
    kind: str
    why: str  # one line
    said: str = ""  # the answer that cannot be read


class Entry(NamedTuple):
    """A line of the log."""

    key: bytes
    answer: Answer | Missing
    round: int
    settings: dict[str, Any] | None = None  # of its run, where it is the first of one


class AnswerLog:
    """Answers by request key, appended in `round`.

    garbled: lines that could not be read and were skipped; failed: why requests without an answer
    failed, by key.
    """

    def __init__(
        self,
        path: Path,
        *,
        write: bool,
        round_: int = 1,
        also: Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ):
        """Open a log, and with `write` lock it for this process and mend a torn last line.

        also: another log whose answers count too; it is only read. settings: what the run's
        requests are made with; its first line says so.
        Raises LogError when another run holds it, it cannot be read or written, or is of an older
        version.
        """
        self.path, self.round = path, round_
        self.garbled = 0
        self.made_with: Mapping[str, Any] | None = None  # the last settings in it
        self._settings = settings
        self.failed: dict[bytes, Missing] = {}
        self._size_at_opening = 0
        self._offsets: dict[bytes, int] = {}
        self._file: IO[bytes] | None = None
        self._fd = -1
        self._reserve: IO[bytes] | None = None
        self._also: AnswerLog | None = None
        self._synced = time.monotonic()
        try:
            if write:
                self._open_for_writing()
            if path.exists():
                self._read_index(mend=write)
                self._file = path.open("rb")
            self._also = AnswerLog(also, write=False) if also else None
        except (OSError, LogError) as error:
            self.close()
            if isinstance(error, LogError):
                raise
            raise LogError(f"{path} cannot be used: {error.strerror}") from None

    def _open_for_writing(self) -> None:
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LogError(
                f"another run is writing to {self.path}; wait for it, or choose another "
                "--output_path"
            ) from None
        sync_folder(self.path.parent)  # or a power cut takes a new log with all its answers
        # A file without a name disappears with this process, however that ends.
        self._reserve = tempfile.TemporaryFile(dir=self.path.parent)  # noqa: SIM115 - stays open
        self._reserve.write(bytes(RESERVE))
        self._reserve.flush()

    def _read_index(self, *, mend: bool) -> None:
        offset, line, found = 0, b"\n", False
        with self.path.open("rb") as file:
            for line in file:
                found = False
                for start, entry in _entries_in(line, self.path):
                    found = True
                    self._note(entry, offset + start)
                self.garbled += not found
                offset += len(line)
        if mend and not line.endswith(b"\n"):
            if found:
                os.write(self._fd, b"\n")
            else:  # torn by a kill: the answer never arrived whole
                self.garbled -= 1
                offset -= len(line)
                os.ftruncate(self._fd, offset)
        self._size_at_opening = offset
        if self.garbled:
            say(f"{self.path}: {counted(self.garbled, 'line')} skipped: not readable")

    def _note(self, entry: Entry, offset: int) -> None:
        self.made_with = entry.settings or self.made_with
        if isinstance(entry.answer, Missing):
            if entry.key not in self._offsets:
                self.failed[entry.key] = entry.answer
        elif entry.key not in self._offsets:
            self._offsets[entry.key] = offset
            self.failed.pop(entry.key, None)

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: bytes) -> bool:
        return key in self._offsets or (self._also is not None and key in self._also)

    def was_there(self, key: bytes) -> bool:
        """Whether an answer was in the log when it was opened."""
        return self._offsets.get(key, -1) < self._size_at_opening

    def get(self, key: bytes) -> tuple[Answer, int] | None:
        """The answer to a request and the round it was asked in, or None."""
        offset = self._offsets.get(key)
        if offset is None:
            return self._also.get(key) if self._also else None
        assert self._file is not None
        self._file.seek(offset)
        for _, entry in _entries_in(self._file.readline(), self.path):
            if isinstance(entry.answer, Answer):
                return entry.answer, entry.round
            break
        return None  # the file was changed under a running process

    def append(self, key: bytes, answer: Answer) -> None:
        """Store an answer at once. Raises DiskFull, with the answer stored, when the disk is
        full.
        """
        if key not in self._offsets:
            values = {name: value for name, value in answer._asdict().items() if value}
            self._offsets[key], full = self._store(key, {"text": "", **values})
            self.failed.pop(key, None)
            if full:
                raise full

    def append_failure(self, key: bytes, missing: Missing) -> None:
        """Note that a request has no answer, and why. Raises DiskFull like `append`."""
        self.failed[key] = missing
        _, full = self._store(key, {"failed": [missing.kind, missing.why]})
        if full:
            raise full

    def _store(self, key: bytes, values: dict[str, Any]) -> tuple[int, DiskFull | None]:
        """Append an entry; its offset, and the error to raise once it is noted."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = {"key": key.hex(), **values, "round": self.round, "time": now}
        if self._settings and self._settings != self.made_with:
            entry["settings"] = self.made_with = self._settings
        line = (json.dumps(entry) + "\n").encode()
        offset = os.lseek(self._fd, 0, os.SEEK_END)
        try:
            self._write(line, offset)
        except OSError as error:
            if self._reserve is None:
                raise LogError(f"{self.path} cannot be written: {error.strerror}") from None
            self._reserve.close()
            self._reserve = None
            self._write_or_fail(line, offset)
            return offset, DiskFull(
                f"no room left to write {self.path}; make room, then run the same command again"
            )
        return offset, None

    def _write_or_fail(self, line: bytes, offset: int) -> None:
        try:
            self._write(line, offset)
        except OSError as error:
            raise LogError(f"{self.path} cannot be written: {error.strerror}") from None

    def _write(self, line: bytes, offset: int) -> None:
        """Write a whole line or, where that fails, none of it."""
        done = 0
        try:
            while done < len(line):
                done += os.write(self._fd, line[done:])
            if time.monotonic() - self._synced > SYNC_EVERY_S:
                self.sync()
        except OSError:
            os.ftruncate(self._fd, offset)
            raise

    def sync(self) -> None:
        """Make sure that all answers are on disk. Raises OSError."""
        os.fsync(self._fd)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Put the log safely on disk and let go of it."""
        for file in (self._file, self._reserve, self._also):
            if file is not None:
                file.close()
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1


def _entries_in(line: bytes, path: Path) -> Iterator[tuple[int, Entry]]:
    """The entries of a line and where each begins: one, unless logs were concatenated and one
    ended without a line end, or in a torn line. Raises LogError for one of an older version.
    """
    start = line.find(BEGINNING)
    while start >= 0:
        end = line.find(BEGINNING, start + 1)
        entry = _entry_of(line[start : end if end >= 0 else None])
        if entry is not None:
            if not entry.round:
                raise LogError(
                    f"{path} was written by an older version of this suite; delete it (its "
                    "requests are then asked and paid for again) or choose another --output_path"
                )
            yield start, entry
        start = end


def _entry_of(line: bytes) -> Entry | None:
    """The entry in a piece of a line; None if it is not one."""
    try:
        found = json.loads(line)
        key, round_ = bytes.fromhex(found["key"]), found.get("round", 0)
        settings = dict(found.get("settings") or ())
        if "failed" in found:
            kind, why = found["failed"]
            return Entry(key, Missing(str(kind), str(why)), round_, settings)
        values = {name: found[name] for name in Answer._fields if name in found}
        answer = Answer(**(values | {"dropped": tuple(values.get("dropped", ()))}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    blank = Answer("")
    alike = all(type(one) is type(other) for one, other in zip(answer, blank, strict=True))
    whole = alike and isinstance(round_, int) and all(isinstance(n, str) for n in answer.dropped)
    return Entry(key, answer, round_, settings) if len(key) == 16 and whole else None
