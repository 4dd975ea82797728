"""The answer log, `<output stem>.answers.jsonl`: one JSON line per answer, appended on arrival.

Everything that was paid for is in it. A killed run resumes from it, new rules read it again at no
cost, and every CSV is derived from it. A line holds what the API returned, under the request's key:
no API key, no header, no prompt. In memory is an index: per answer 16 bytes of key and an offset.
"""

import fcntl
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from orbench.asking.requests import Answer
from orbench.base.messages import UserError, counted, say
from orbench.base.tables import sync_folder

SYNC_EVERY_S = 1.0  # what a power cut may lose


class AnswerLog:
    """Answers by request key."""

    def __init__(self, path: Path, *, write: bool) -> None:
        """Open a log; with `write`, lock it for this process and repair a torn last line.

        Raises UserError if another run holds it, or it cannot be read or written.
        """
        self.path = path
        self._offsets: dict[bytes, int] = {}
        self._end = 0  # bytes, where the next line goes
        self._file: IO[bytes] | None = None
        self._fd = -1
        self._synced = time.monotonic()
        try:
            if write:
                self._open_for_writing()
            if path.exists():
                self._file = path.open("rb")
                self._read_index()
                if write:
                    os.ftruncate(self._fd, self._end)  # a torn line: its answer never arrived
        except OSError as error:
            raise self._fault(error) from None
        self._size_at_opening = self._end

    def _open_for_writing(self) -> None:
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another run is writing to {self.path}; wait for it, or choose another "
                "--output_path"
            ) from None
        sync_folder(self.path.parent)  # or a power cut takes a new log with all its answers

    def _read_index(self) -> None:
        assert self._file is not None
        unreadable = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            if entry := _entry_of(line):
                self._offsets.setdefault(entry[0], self._end)
            else:
                unreadable += 1
            self._end += len(line)
        if unreadable:
            say(f"{self.path}: {counted(unreadable, 'unreadable line')} skipped")

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: bytes) -> bool:
        return key in self._offsets

    def was_there(self, key: bytes) -> bool:
        """Whether an answer was in the log when it was opened."""
        return self._offsets.get(key, self._end) < self._size_at_opening

    def get(self, key: bytes) -> Answer | None:
        """The answer to a request. Raises UserError if the log can no longer be read."""
        offset = self._offsets.get(key)
        if offset is None:
            return None
        try:
            if self._file is None:
                self._file = self.path.open("rb")
            self._file.seek(offset)
            entry = _entry_of(self._file.readline())
        except OSError as error:
            raise self._fault(error) from None
        return entry[1] if entry else None

    def append(self, key: bytes, answer: Answer) -> None:
        """Store an answer at once. Raises UserError if it cannot be stored."""
        if key in self._offsets:
            return
        values = {name: value for name, value in answer._asdict().items() if value}
        line = json.dumps({"key": key.hex(), "text": "", **values}).encode() + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.write(self._fd, line[written:])
            if time.monotonic() - self._synced > SYNC_EVERY_S:
                os.fsync(self._fd)
                self._synced = time.monotonic()
        except OSError as error:
            raise self._fault(error) from None
        self._offsets[key] = self._end
        self._end += len(line)

    def _fault(self, error: OSError) -> UserError:
        with suppress(OSError):
            self._close_files()
        return UserError(
            f"{self.path} cannot be used: {error.strerror}; the answers in it are kept, mend this "
            "and run the same command again"
        )

    def _close_files(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def close(self) -> None:
        """Put the log on disk and let go of it. Raises UserError."""
        try:
            if self._fd >= 0:
                os.fsync(self._fd)
            self._close_files()
        except OSError as error:
            raise self._fault(error) from None

    def __enter__(self) -> "AnswerLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()


def _entry_of(line: bytes) -> tuple[bytes, Answer] | None:
    """Key and answer of a line; None if it is not an entry."""
    try:
        found: dict[str, Any] = json.loads(line)
        values = {name: found[name] for name in Answer._fields if name in found}
        answer = Answer(**(values | {"dropped": tuple(values.get("dropped", ()))}))
        key = bytes.fromhex(found["key"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    alike = all(type(one) is type(other) for one, other in zip(answer, Answer(""), strict=True))
    return (key, answer) if alike and len(key) == 16 else None
