"""The answer log, `<output stem>.answers.jsonl`: one JSON line per answer, appended on arrival.

Everything that was paid for is in it. A killed run resumes from it, new rules read it again at no
cost, and every CSV is derived from it. A line holds what the API returned, under the request's key:
no API key, no header, no prompt. In memory are only keys and offsets.

Covered: a kill at any time (a torn last line is cut off, its request is sent again), a full disk
(room for the answers in flight is reserved in the file, as NULs or spaces at its end while a run
asks; without it nothing is sent), a power cut (at most the last second is lost), damaged lines
(they count as no answer), a second run on the same log (it stops). Not covered: a line that was
changed into another valid one, answers of more than `ROOM` that are in flight when the disk fills
up, and file systems that have no locks or reserve nothing.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from io import BytesIO
from pathlib import Path

from orbench.base.messages import UserError, counted, say
from orbench.base.secrets import masked
from orbench.base.tables import sync_folder
from orbench.base.words import Json
from orbench.models.errors import MALFORMED, cleaned
from orbench.models.requests import Answer

SYNC_EVERY_S = 1.0  # what a power cut may lose
# They show the type of each field.
DEFAULTS: Json = Answer("")._asdict() | {"dropped": [], "tool_calls": []}
ROOM = 260 * 2**10  # bytes reserved for an answer: 256 kB, and what stands beside it in its line


class AnswerLog(dict[bytes, int], AbstractContextManager["AnswerLog"]):
    """Request keys in the order in which their answers arrived -> where each is in the file."""

    _end = 0  # bytes, where the next line goes
    _newline = b""  # that the last line lacks

    def __init__(self, path: Path, *, write: bool) -> None:
        """Open a log; with `write`, lock it for this process and repair its last line.

        Raises UserError if another run holds it, or it cannot be read or written.
        """
        self.path = path
        self._synced = time.monotonic()
        with self._disk_faults(), ExitStack() as files:
            if write:
                self._lock(files)
            reader = path.open("rb") if path.exists() else BytesIO()
            self._reader = files.enter_context(reader)
            self._note_offsets()
            if write:
                files.callback(self.release)  # not before: what cannot be read would be cut off
                self.release()
                self._write(self._newline)
            self._files = files.pop_all()
        self.old = set(self)  # keys of the answers that were there at the start

    def _lock(self, files: ExitStack) -> None:
        # Readable, too: glibc reads where it emulates posix_fallocate.
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        files.callback(os.close, self._fd)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another run is writing to {self.path}; wait for it, or choose another "
                "--output_path"
            ) from None
        sync_folder(self.path.parent)  # or a power cut takes a new log with all its answers
        files.callback(os.fsync, self._fd)

    def _note_offsets(self) -> None:
        """Note where each answer is, and whether the last line has its newline."""
        unreadable = 0
        for line in self._reader:
            key, answer = _read(line)
            whole = line.endswith(b"\n")
            if answer:
                self.setdefault(key, self._end)
                self._newline = b"" if whole else b"\n"
            elif whole:
                unreadable += 1
            else:  # torn, so that its answer never arrived, or reserved
                break
            self._end += len(line)
        if unreadable:
            say(f"{self.path}: {counted(unreadable, 'line')} cannot be read and count as no answer")

    def answer(self, key: bytes) -> Answer | None:
        """Return the answer to a request. Raises UserError if the log can no longer be read."""
        if key not in self:
            return None
        with self._disk_faults():
            self._reader.seek(0, os.SEEK_END)  # drops its buffer, which may hold reserved room
            self._reader.seek(self[key])
            _, answer = _read(self._reader.readline())
        return answer

    def append(self, key: bytes, answer: Answer) -> None:
        """Store an answer at once. Raises UserError if it cannot be stored."""
        values = {name: value for name, value in answer._asdict().items() if value}
        line = masked(json.dumps({"key": key.hex(), "text": "", **values})).encode() + b"\n"
        with self._disk_faults():
            self[key] = self._write(line)
            if time.monotonic() - self._synced > SYNC_EVERY_S:
                os.fsync(self._fd)
                self._synced = time.monotonic()

    def _write(self, line: bytes) -> int:
        """Write at the end of the lines. Return where. Raises OSError."""
        written = 0
        while written < len(line):
            written += os.pwrite(self._fd, line[written:], self._end + written)
        self._end += written  # only a whole line counts
        return self._end - written

    def reserve(self, answers: int) -> None:
        """Reserve room for answers to come. Raises UserError if there is too little; those in
        flight still find the room that was reserved before.
        """
        needed = answers * ROOM
        with self._disk_faults(f" (the answers in flight need {needed / 1e6:.1f} MB)"):
            while (size := os.fstat(self._fd).st_size) < self._end + needed:
                try:
                    os.posix_fallocate(self._fd, size, ROOM)  # type: ignore[attr-defined, unused-ignore]
                except (AttributeError, OSError):  # macOS has none; a full disk may take a part
                    os.pwrite(self._fd, b" " * ROOM, size)

    def release(self) -> None:
        """Give back the room that is reserved. Raises OSError."""
        os.ftruncate(self._fd, self._end)

    @contextmanager
    def _disk_faults(self, needs: str = "") -> Iterator[None]:
        """Raise a UserError for a fault of the disk. needs: what there was no room for."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self.path} cannot be used: {error.strerror}{needs}; its answers are kept. Fix "
                "this and rerun the same command"
            ) from None

    def __exit__(self, *_: object) -> None:
        with self._disk_faults():
            self._files.close()


def _read(line: bytes) -> tuple[bytes, Answer | None]:
    """Return the key and the answer in a line; no answer if it is not one."""
    try:
        # NULs are reserved room; half an emoji is in an older or edited log.
        entry: Json = cleaned(json.loads(line.strip(b"\0")), "")
        key = bytes.fromhex(entry["key"])
        values: Json = {name: entry.get(name, default) for name, default in DEFAULTS.items()}
        for name, default in DEFAULTS.items():
            if type(values[name]) is not type(default):
                return b"", None
        "".join([entry["text"], *values["dropped"]])
    except MALFORMED:
        return b"", None
    return key, Answer(**values)
