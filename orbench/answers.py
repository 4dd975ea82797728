"""The answer log: `<output stem>.answers.jsonl`, one JSON line an answer, appended as it arrives.

Everything that was paid for is in it: a killed run goes on where it was, new rules and parsers
are run over it for nothing, and a CSV is only derived from it. A line holds what the API returned
for a request, under the request's key; no API key, no header, no prompt. In memory stands an
index, 16 bytes of key and a file offset an answer.
"""

import fcntl
import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from orbench.chat import Answer

BEGINNING = b'{"key": "'  # of a line
RESERVE = 1 << 20  # bytes kept free so that answers in flight can be stored when the disk fills up


class LogError(Exception):
    """The log cannot be used; the message is one line and says what to do."""


class DiskFull(LogError):
    """An answer could not be stored without the reserve; it is stored, but the run must stop."""


class AnswerLog:
    """Answers by request key. `garbled`: lines that could not be read and were passed over."""

    def __init__(self, path: Path, *, write: bool) -> None:
        """Open a log, and with `write` lock it for this process and mend a torn last line.

        Raises LogError when another run holds it, or it cannot be read or written.
        """
        self.path = path
        self.garbled = 0
        self._size_at_opening = 0
        self._offsets: dict[bytes, int] = {}
        self._file: IO[bytes] | None = None
        self._fd = -1
        self._reserve: IO[bytes] | None = None
        try:
            if write:
                self._open_for_writing()
            if path.exists():
                self._read_index(mend=write)
                self._file = path.open("rb")
        except OSError as error:
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
        # A file without a name: gone with this process, however that ends.
        self._reserve = tempfile.TemporaryFile(dir=self.path.parent)  # noqa: SIM115 - stays open
        self._reserve.write(bytes(RESERVE))
        self._reserve.flush()

    def _read_index(self, *, mend: bool) -> None:
        offset, line, entry = 0, b"\n", None
        with self.path.open("rb") as file:
            for line in file:
                entry, start = _entry_of(line), 0
                if entry is None:
                    self.garbled += 1
                    # Logs that were put together: a torn last line has the next one's first in it.
                    start = max(0, line.rfind(BEGINNING))
                    entry = _entry_of(line[start:]) if start else None
                if entry is not None:
                    self._offsets.setdefault(entry[0], offset + start)
                offset += len(line)
        self._size_at_opening = offset
        if mend and not line.endswith(b"\n"):
            if entry is None:  # torn by a kill: the answer never arrived whole
                self.garbled -= 1
                os.ftruncate(self._fd, offset - len(line))
            else:
                os.write(self._fd, b"\n")

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: bytes) -> bool:
        return key in self._offsets

    def was_there(self, key: bytes) -> bool:
        """Whether an answer was in the log when it was opened."""
        return self._offsets.get(key, -1) < self._size_at_opening

    def was_before(self, key: bytes, size: int) -> bool:
        """Whether an answer stood in the log when it had that many bytes."""
        return self._offsets.get(key, size) < size

    @property
    def size(self) -> int:
        """The log's bytes now."""
        return self.path.stat().st_size if self.path.exists() else 0

    def get(self, key: bytes) -> Answer | None:
        """The answer to a request, or None."""
        offset = self._offsets.get(key)
        if offset is None:
            return None
        assert self._file is not None
        self._file.seek(offset)
        entry = _entry_of(self._file.readline())
        return entry[1] if entry else None

    def append(self, key: bytes, answer: Answer) -> None:
        """Store an answer at once. Raises DiskFull, with the answer stored, when the disk is
        full.
        """
        if key in self._offsets:
            return
        entry: dict[str, Any] = {"key": key.hex()}
        entry |= {name: value for name, value in answer._asdict().items() if value}
        entry.setdefault("text", "")
        entry["time"] = datetime.now(UTC).isoformat(timespec="seconds")
        line = (json.dumps(entry) + "\n").encode()
        offset = os.lseek(self._fd, 0, os.SEEK_END)
        try:
            self._write(line, offset)
            full = False
        except OSError as error:
            if self._reserve is None:
                raise LogError(f"{self.path} cannot be written: {error.strerror}") from None
            self._reserve.close()
            self._reserve = None
            self._write_or_fail(line, offset)
            full = True
        self._offsets[key] = offset
        if full:
            raise DiskFull(
                f"no room left to write {self.path}; make room, then the same command goes on"
            )

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
        except OSError:
            os.ftruncate(self._fd, offset)
            raise

    def close(self) -> None:
        """Put the log safely on disk and let go of it."""
        if self._file is not None:
            self._file.close()
        if self._reserve is not None:
            self._reserve.close()
        if self._fd >= 0:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1


def _entry_of(line: bytes) -> tuple[bytes, Answer] | None:
    """The key and the answer of a log line; None for a line that is none."""
    try:
        entry = json.loads(line)
        key = bytes.fromhex(entry["key"])
        answer = Answer(
            entry["text"],
            entry.get("finish_reason", ""),
            entry.get("refusal", ""),
            entry.get("model", ""),
            entry.get("prompt_tokens", 0),
            entry.get("completion_tokens", 0),
            tuple(entry.get("dropped", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    whole = len(key) == 16 and all(isinstance(part, str) for part in (*answer[:4], *answer.dropped))
    numbers = isinstance(answer.prompt_tokens, int) and isinstance(answer.completion_tokens, int)
    return (key, answer) if whole and numbers else None
