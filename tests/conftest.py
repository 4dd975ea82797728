"""What the tests share: scripts run as users run them, against a server on loopback.

Most tests take `desk`, a working directory with a server:

    def test_a_row_at_fault_fails_alone(desk: Desk) -> None:
        desk.prompts(3)                            # p.csv: prompt, category
        desk.serve(by_number({1: error(400)}))     # tests/server.py says what can be answered
        desk.stage(ALIGN, "--samples=2", status=3) # with USUAL flags; of two, the later one counts
        assert desk.tally() == "4 rows, bad_request 2, 6 sent"
        assert len(desk.rows()) == 4               # of o.csv, USUAL's --output_path

A run must end with exit status 0 or the one that is given, and without a traceback. `desk.run` adds
no flags, `desk.stopped` gives the one line of a run that stops, `desk.start`, `desk.signaled` and
`desk.shell` take real processes. Without a desk: `run`, `write_csv`, `read_csv`, `serve`.
"""

import csv
import json
import os
import re
import runpy
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

import httpcore2
import pytest
from hypothesis import HealthCheck, settings

from tests.server import KEY, Script, Server

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"

GENERATE = "toxic_prompt_generator/generate_toxic_promt_from_category.py"
REWRITE = "rewritter/mixtral_rewrite_only.py"
MODERATE = "moderator/moderate_only.py"
ALIGN = "alignment_checker/gpt3_4_alignment_checker.py"
CHECK = "response_checker/check_response.py"
STAGES = (GENERATE, REWRITE, MODERATE, ALIGN, CHECK)
OUT = "--output_path=o.csv"
USUAL = {
    GENERATE: ("--model=gpt-x", "--category=harmful", "--num_toxic_prompts=20", OUT),
    REWRITE: ("--model=gpt-x", "--toxic_seed_path=p.csv", OUT),
    MODERATE: ("--moderator_model=gpt-x", "--input_file_path=p.csv", OUT),
    ALIGN: ("--model=gpt-x", "--input_file=p.csv", OUT),
    CHECK: ("--check_model=gpt-x", "--input_file=r.csv", OUT),
}
Cells = Sequence[str]
Done = subprocess.CompletedProcess[str]

# How long an example takes says nothing here: machines are slow at times, and shared.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
# A shell's background job ignores Ctrl-C, and so would every process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


# -- running scripts ---------------------------------------------------------------------------


def environment(url: str = "", **more: str) -> dict[str, str]:
    """Nothing set but what a user sets, and this Python first on the path."""
    env = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    env["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for provider in ("OPENAI", "ANTHROPIC") if url else ():
        env |= {f"{provider}_API_KEY": KEY, f"{provider}_BASE_URL": url}
    return env | more


def run(
    script: str | Path,
    *flags: str | Path,
    cwd: Path,
    url: str = "",
    env: Mapping[str, str] | None = None,
    own_process: bool = False,
    status: int | None = 0,
) -> Done:
    """Run a script of the repository to its end, as `python script flags` would, but in this
    process: starting one takes longer than most of what is tested.

    own_process: for what is read while packages are imported. status: what it must end with; None
    for any.
    """
    command = [str(ROOT / script), *map(str, flags)]
    variables = environment(url, **(env or {}))
    if own_process:
        return process([sys.executable, *command], cwd, variables, status)
    with _as_if_started(command, cwd, variables) as streams:
        ended = _run_as_main(command[0])
        said = [_text_in(stream) for stream in streams]
    return _checked(Done(command, ended, *said), status)


def process(command: Cells, cwd: Path, env: Mapping[str, str], status: int | None = 0) -> Done:
    """Run a command to its end."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)
    return _checked(done, status)


def _checked(done: Done, status: int | None) -> Done:
    assert status in (None, done.returncode), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done


@contextmanager
def _as_if_started(
    command: Cells, cwd: Path, env: Mapping[str, str]
) -> Iterator[tuple[TextIO, TextIO]]:
    """This process in the state in which a script finds a new one. Yields stdout and stderr:
    files, as a script may need the number of a stream.
    """
    path = [str(Path(command[0]).parent), *sys.path]
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogateescape") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace") as stderr,
        chdir(cwd),
        mock.patch.dict(os.environ, env, clear=True),
        mock.patch.multiple(sys, argv=list(command), path=path, stdout=stdout, stderr=stderr),
    ):
        signal.signal(signal.SIGALRM, lambda number, frame: pytest.fail(f"{command} hangs"))
        signal.alarm(300)  # as for `process`: machines are shared
        try:
            yield stdout, stderr
        finally:
            signal.alarm(0)
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _run_as_main(script: str) -> int:
    """What `python script` does with a file, and its exit status."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code
    except Exception:
        traceback.print_exc()
    return 1


def _text_in(stream: TextIO) -> str:
    stream.flush()
    stream.seek(0)
    return stream.buffer.read().decode().replace("\r\n", "\n").replace("\r", "\n")


def error_line(done: Done) -> str:
    """The line that a run stopped with, after exit status 1 and without a path."""
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    (line,) = re.findall("^error: .*", done.stderr, re.MULTILINE)
    assert done.stderr.endswith(f"{line}\n"), done.stderr
    return str(line)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


# -- files -------------------------------------------------------------------------------------


def write_csv(path: Path, columns: Cells, rows: Sequence[Cells]) -> Path:
    """A CSV as pandas would write it, every cell quoted."""
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


# -- fixtures ----------------------------------------------------------------------------------


class Desk:
    """A user's working directory, and the server that OPENAI_BASE_URL points to."""

    server: Server

    def __init__(self, folder: Path, serve: Callable[..., Server]) -> None:
        self.folder, self._serve = folder, serve
        self.url = ""  # without a server there is no key either

    def serve(self, reply: Script = "Fold it.", latency: float = 0.0) -> Server:
        """Start a server that answers so; the runs from now on use it."""
        self.server = self._serve(reply, latency)
        self.url = self.server.url
        return self.server

    def run(self, script: str | Path, *flags: str | Path, **more: Any) -> Done:
        """`run` in this folder against this server."""
        return run(script, *flags, **{"cwd": self.folder, "url": self.url, **more})

    def stage(self, script: str, *flags: str | Path, **more: Any) -> Done:
        """Run a stage with its USUAL flags in front of these."""
        return self.run(script, *USUAL[script], *flags, **more)

    def stopped(self, script: str, *flags: str | Path, **more: Any) -> str:
        """The `error_line` of a stage that stops."""
        return error_line(self.stage(script, *flags, status=1, **more))

    def start(self, script: str, *flags: str) -> "subprocess.Popen[str]":
        """Start a script with its USUAL flags and let it run."""
        command = [sys.executable, str(ROOT / script), *USUAL.get(script, ()), *flags]
        env, pipe = environment(self.url), subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=env, stdout=pipe, stderr=pipe, text=True
        )

    def signaled(self, number: int, at: int, script: str, *flags: str) -> Done:
        """`start` a script, and send it a signal at its at-th request."""
        process = self.start(script, *flags)
        wait_for(lambda: self.sent >= at)
        process.send_signal(number)
        said = process.communicate(timeout=20)
        return _checked(Done([], process.returncode, *said), None)

    def shell(self, line: str, folder: str = ".", status: int | None = 0, **variables: str) -> Done:
        """Run what is typed into a shell."""
        env = environment(self.url, **variables)
        return process(["sh", "-c", line], self.folder / folder, env, status)

    def csv(self, name: str, columns: Cells, rows: Sequence[Cells]) -> Path:
        return write_csv(self.folder / name, columns, rows)

    def write(self, name: str, text: str) -> None:
        """Write a file, and the folders above it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def text(self, name: str) -> str:
        """What is in a file, line ends as they are."""
        return (self.folder / name).read_bytes().decode()

    def remove(self, *names: str) -> None:
        for name in names:
            (self.folder / name).unlink()

    def prompts(self, n: int, name: str = "p.csv") -> Path:
        """n different harmless prompts of two categories; `number_of` tells them apart."""
        rows = [(f"How do I fold paper bird number {i}?", "ab"[i % 2]) for i in range(n)]
        return self.csv(name, ("prompt", "category"), rows)

    def rows(self, name: str = "o.csv") -> list[dict[str, str]]:
        return read_csv(self.folder / name)

    def cells(self, columns: str, name: str = "o.csv") -> list[str]:
        """The cells of columns, named in a word each: a text for each row of a CSV."""
        names = columns.split()
        return [" ".join(row[column] for column in names) for row in self.rows(name)]

    def failed(self) -> list[dict[str, str]]:
        """The rows of o_failed.csv; none if there is no such file."""
        return self.rows("o_failed.csv") if (self.folder / "o_failed.csv").exists() else []

    @property
    def sent(self) -> int:
        """How many requests the server has had."""
        return self.server.sent

    def tally(self) -> str:
        """What came of a run, such as "4 rows, bad_request 1, 5 sent": the rows of o.csv, those of
        o_failed.csv by their kind, and all requests to the server.
        """
        rows = self.rows() if (self.folder / "o.csv").exists() else []
        parts = [f"{len(rows)} rows"]
        for kind, number in sorted(Counter(row["error_type"] for row in self.failed()).items()):
            parts.append(f"{kind} {number}")
        return ", ".join([*parts, f"{self.sent} sent"])

    def record(self, name: str = "o.csv") -> dict[str, Any]:
        """The run record beside a CSV."""
        record = json.loads((self.folder / name).with_suffix(".run.json").read_text())
        assert isinstance(record, dict)
        return record

    def files(self) -> dict[str, bytes]:
        """Every file by its path from here, with its bytes."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}


@pytest.fixture(autouse=True, scope="session")
def _certificates_read_once() -> Iterator[None]:
    """Those of the system: each client reads them, also for loopback, and it takes a while."""
    read = httpcore2.default_ssl_context
    once = cache(lambda file: read())

    def context(**trust: bool) -> ssl.SSLContext:
        return once(os.environ.get("SSL_CERT_FILE"))

    with mock.patch.object(httpcore2, "default_ssl_context", context):
        yield


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server that answers with `reply(body, seen)`; it ends with the test."""
    with ExitStack() as stack:
        yield lambda *reply: stack.enter_context(Server(*reply))


@pytest.fixture
def desk(tmp_path: Path, serve: Callable[..., Server]) -> Desk:
    """See `Desk`."""
    return Desk(tmp_path, serve)
