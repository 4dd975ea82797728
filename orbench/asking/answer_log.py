"""The answer log, `<output stem>.answers.jsonl`: one JSON line per answer, appended on arrival.

Everything that was paid for is in it. A killed run resumes from it, new rules read it again at no
cost, and every CSV is derived from it. A line holds what the API returned, under the request's key:
no API key, no header, no prompt. In memory are only keys and offsets.
"""

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from orbench.asking.requests import Answer
from orbench.base.messages import UserError
from orbench.base.tables import sync_folder

SYNC_EVERY_S = 1.0  # what a power cut may lose
ROOM = 2**20  # bytes on the disk, for the answers to what is sent at once


class AnswerLog(AbstractContextManager["AnswerLog"]):
    """Answers by request key."""

    def __init__(self, path: Path, *, write: bool) -> None:
        """Open a log; with `write`, lock it for this process and repair a torn last line.

        Raises UserError if another run holds it, or it cannot be read or written.
        """
        self.path = path
        self._offsets: dict[bytes, int] = {}
        self._end = 0  # bytes, where the next line goes
        self._synced = time.monotonic()
        self._files = ExitStack()
        with self._disk_faults():
            if write:
                self._lock()
            self._reader = path.open("rb") if path.exists() else BytesIO()
            self._files.callback(self._reader.close)
            for line in self._reader:
                if not line.endswith(b"\n"):
                    break
                if entry := _entry_of(line):
                    self._offsets.setdefault(entry[0], self._end)
                self._end += len(line)
            if write:  # a full disk shows before anything is paid for
                there = os.write(self._fd, bytes(ROOM))
                os.ftruncate(self._fd, self._end)  # a torn line, too: its answer never arrived
                if there < ROOM:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size_at_opening = self._end

    def _lock(self) -> None:
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._files.callback(os.close, self._fd)
        self._files.callback(os.fsync, self._fd)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            line = f"another run is writing to {self.path}; wait for it, or choose another"
            raise UserError(f"{line} --output_path") from None
        sync_folder(self.path.parent)  # or a power cut takes a new log with all its answers

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: bytes) -> bool:
        return key in self._offsets

    def was_there(self, key: bytes) -> bool:
        """Whether an answer was in the log when it was opened."""
        return self._offsets.get(key, self._end) < self._size_at_opening

    def get(self, key: bytes) -> Answer | None:
        """The answer to a request. Raises UserError if the log can no longer be read."""
        if key not in self._offsets:
            return None
        with self._disk_faults():
            self._reader.seek(self._offsets[key])
            entry = _entry_of(self._reader.readline())
        return entry[1] if entry else None

    def append(self, key: bytes, answer: Answer) -> None:
        """Store an answer at once. Raises UserError if it cannot be stored."""
        if key in self._offsets:
            return
        values = {name: value for name, value in answer._asdict().items() if value}
        line = left = json.dumps({"key": key.hex(), "text": "", **values}).encode() + b"\n"
        with self._disk_faults():
            while left:
                left = left[os.write(self._fd, left) :]
            if time.monotonic() - self._synced > SYNC_EVERY_S:
                os.fsync(self._fd)
                self._synced = time.monotonic()
        self._offsets[key] = self._end
        self._end += len(line)

    @contextmanager
    def _disk_faults(self) -> Iterator[None]:
        """Raise a UserError for a fault of the disk."""
        try:
            yield
        except OSError as error:
            with suppress(OSError):
                self._files.close()
            raise UserError(
                f"{self.path} cannot be used: {error.strerror}; its answers are kept. Fix this "
                "and rerun the same command"
            ) from None

    def __exit__(self, *_: object) -> None:
        with self._disk_faults():
            self._files.close()


def _entry_of(line: bytes) -> tuple[bytes, Answer] | None:
    """Key and answer of a line; None if it is not an entry."""
    try:
        found: dict[str, Any] = json.loads(line)
        values = {name: found[name] for name in Answer._fields if name in found}
        answer = Answer(**(values | {"dropped": tuple(values.get("dropped", ()))}))
        return bytes.fromhex(found["key"]), answer
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
