"""What the tests share: scripts run as a user runs them, against a server on loopback."""

import csv
import fcntl
import json
import os
import pty
import runpy
import signal
import ssl
import struct
import subprocess
import sys
import tempfile
import termios
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

from orbench import table
from tests.server import Body, Reply, Server

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"
KEY = "sk-loopback-0123456789"

GENERATE = "toxic_prompt_generator/generate_toxic_promt_from_category.py"
REWRITE = "rewritter/mixtral_rewrite_only.py"
MODERATE = "moderator/moderate_only.py"
ALIGN = "alignment_checker/gpt3_4_alignment_checker.py"
CHECK = "response_checker/check_response.py"
STAGES = (GENERATE, REWRITE, MODERATE, ALIGN, CHECK)

Cells = Sequence[str]

# How long an example takes says nothing here: machines are slow at times, and shared.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def environment(url: str = "", **more: str) -> dict[str, str]:
    """Nothing set but what a user sets."""
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    env |= {"PYTHONDONTWRITEBYTECODE": "1"}
    if url:
        env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url}
    return env | more


def run(
    script: str | Path,
    *args: str | Path,
    cwd: Path,
    url: str = "",
    env: Mapping[str, str] | None = None,
    timeout: float = 60,
    own_process: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """Run a script of the repository to its end.

    In this process, as `python script args` would, because starting one and importing everything
    takes longer than most of what is tested. own_process: for what is read while packages are
    imported, and for what the process itself is to show. timeout: in seconds.
    """
    command = [str(ROOT / script), *map(str, args)]
    variables = environment(url, **(env or {}))
    if not own_process:
        with _as_if_started(command, cwd, variables, timeout) as (stdout, stderr):
            status = _run_as_main(command[0])
            said = [_text_in(stream) for stream in (stdout, stderr)]
        return subprocess.CompletedProcess(command, status, *said)
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@contextmanager
def _as_if_started(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
) -> Iterator[tuple[TextIO, TextIO]]:
    """This process in the state in which a script finds a new one. Gives its stdout and stderr:
    files, as a script may want the number of a stream.
    """
    path = [str(Path(command[0]).parent), *sys.path]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogateescape") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as stderr,
        chdir(cwd),
        mock.patch.dict(os.environ, env, clear=True),
        mock.patch.multiple(sys, argv=list(command), path=path, stdout=stdout, stderr=stderr),
        mock.patch.object(table, "_inputs", set()),
        _warnings_on(stderr),
        _handlers_kept(),
    ):
        late = f"{command} takes more than {timeout} s"
        signal.signal(signal.SIGALRM, lambda number, frame: pytest.fail(late))
        signal.setitimer(signal.ITIMER_REAL, timeout)
        try:
            yield stdout, stderr
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _warnings_on(stream: TextIO) -> Iterator[None]:
    """Warnings as Python itself shows them; pytest would keep them to itself."""
    quiet = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        for kind in quiet:
            warnings.simplefilter("ignore", kind)
        warnings.showwarning = lambda *what: print(warnings.formatwarning(*what[:4]), file=stream)
        yield


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """The handlers of signals, as they were."""
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_as_main(script: str) -> int:
    """What `python script` does with a file, and its exit status."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _text_in(stream: TextIO) -> str:
    """What was written to a stream, line ends as text has them."""
    stream.flush()
    stream.seek(0)
    return stream.buffer.read().decode().replace("\r\n", "\n").replace("\r", "\n")


def start(
    script: str, *args: str | Path, cwd: Path, url: str = "", env: Mapping[str, str] | None = None
) -> "subprocess.Popen[str]":
    """Start a script and let it run."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / script), *map(str, args)],
        cwd=cwd,
        env=environment(url, **(env or {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_terminal(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> str:
    """What a command writes to stderr, where that is a terminal of 80 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    said = b""
    try:
        while part := os.read(master, 4096):
            said += part
    except OSError:  # as Linux says that nobody writes any more
        pass
    os.close(master)
    process.communicate()
    assert process.returncode == 0, said
    return said.decode()


def write_csv(path: Path, columns: Cells, rows: Sequence[Cells]) -> Path:
    """A CSV as pandas would write it."""
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV, cells as they are."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8", errors="surrogatepass", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def read_record(path: Path) -> dict[str, Any]:
    """The run record beside a CSV."""
    record = json.loads(path.with_name(path.stem + ".run.json").read_text())
    assert isinstance(record, dict)
    return record


def prompts_csv(path: Path, n: int) -> Path:
    """n different harmless prompts with two categories."""
    rows = [(f"How do I fold paper bird number {i}?", "ab"[i % 2]) for i in range(n)]
    return write_csv(path, ("prompt", "category"), rows)


class DiskOrder:
    """What is on disk for good, as os.fsync, os.replace and os.unlink are called in this process.

    A file that gets its name before all of it is on disk is an error. moved: names in the order in
    which they were given; removed: likewise; lost: names that a power cut could still undo.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._sizes: dict[int, int] = {}
        self.moved: list[str] = []
        self.removed: list[str] = []
        self.lost: set[tuple[str, int]] = set()
        self._fsync, self._replace, self._unlink = os.fsync, os.replace, os.unlink
        for name in ("fsync", "replace", "unlink"):
            monkeypatch.setattr(os, name, getattr(self, name))

    def fsync(self, fd: int) -> None:
        self._fsync(fd)
        status = os.fstat(fd)
        self._sizes[status.st_ino] = status.st_size
        self.lost = {(name, folder) for name, folder in self.lost if folder != status.st_ino}

    def replace(self, source: Path, target: Path) -> None:
        assert self.is_safe(Path(source)), f"{target} gets its name before it is on disk"
        self._replace(source, target)
        self.moved.append(Path(target).name)
        self.lost.add((Path(target).name, os.stat(Path(target).parent).st_ino))

    def unlink(self, path: Path, **more: Any) -> None:
        self._unlink(path, **more)
        self.removed.append(Path(path).name)
        self.lost.add((Path(path).name, os.stat(Path(path).parent).st_ino))

    def is_safe(self, path: Path) -> bool:
        """Whether all that is in a file now would outlive a power cut."""
        status = os.stat(path)
        return self._sizes.get(status.st_ino) == status.st_size


@pytest.fixture(autouse=True, scope="session")
def _certificates_read_once() -> Iterator[None]:
    """Those of the system: each client reads them, also for loopback, and it takes a while."""
    with mock.patch.object(ssl, "create_default_context", cache(ssl.create_default_context)):
        yield


@pytest.fixture
def disk_order(monkeypatch: pytest.MonkeyPatch) -> DiskOrder:
    """See `DiskOrder`."""
    return DiskOrder(monkeypatch)


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server that answers with `reply(body, seen)`; it ends with the test."""
    with ExitStack() as stack:

        def server(reply: Callable[[Body, int], Reply], latency: float = 0.0) -> Server:
            return stack.enter_context(Server(reply, latency))

        yield server
