"""What is said to the user, and how a command ends.

Imports nothing of the suite and nothing heavy: every other module may import this one.
"""

import io
import os
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

COLUMNS = 80  # of a terminal, which tables fit


class UserError(Exception):
    """Something the user can mend; the message is one line and says what to do."""


def say(line: str) -> None:
    """A line for the user, on stderr: stdout carries the path of the CSV alone.

    Where nobody can read it (a full disk, a pipe whose reader is gone) the work goes on.
    """
    if sys.stderr is None:  # closed: print would take stdout in its place
        return
    try:
        print(clean(line), file=sys.stderr, flush=True)
    except OSError:
        _forget(sys.stderr)


def tell(path: Path) -> None:
    """The path of what was written, on stdout. Raises UserError where it cannot be put there."""
    try:
        print(path, flush=True)
    except OSError as error:
        _forget(sys.stdout)
        raise UserError(f"{path} is written, but stdout is not: {error.strerror}") from None


def clean(text: str) -> str:
    """A name as it can be printed and drawn: no control, format or surrogate characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        " " if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in text
    )


def one_line(text: str) -> str:
    """A server's or model's text fit for a message: one line, printable, at most 300 characters."""
    text = "".join(c if c.isprintable() else " " for c in text)
    text = " ".join(text.split())
    return text if len(text) <= 300 else text[:299] + "…"


def counted(n: int, noun: str) -> str:
    """`1 row`, `2,000 rows`; noun: one whose plural ends in s."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def shortened(name: str, width: int) -> str:
    """A name in at most so many columns: its middle is left out, the ends tell names apart."""
    if len(name) <= width:
        return name
    return f"{name[: width // 2]}…{name[len(name) - (width - 1) // 2 :]}"


def table_lines(frame: Any) -> list[str]:
    """A pandas table in lines of at most COLUMNS; one that is wider is continued below."""
    lines: list[str] = frame.to_string(line_width=COLUMNS).splitlines()
    return [line.rstrip() for line in lines]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`. Did you mean gpt4?` where a misspelt word is close to one of these, else nothing."""
    close = get_close_matches(word, known, 1)
    return f". Did you mean {close[0]}?" if close else ""


def read_environment_file() -> None:
    """Read `.env` of the working directory, of a folder above it or of the repository.

    Variables that are already set win. Raises UserError for a file that cannot be read, and for a
    working directory that no longer exists.
    """
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        raise UserError("the working directory no longer exists; change to another one") from None
    for place in (folder, *folder.parents, Path(__file__).resolve().parents[1]):
        path = place / ".env"
        if os.path.isfile(path):  # False for a folder that may not be searched
            from dotenv import load_dotenv

            try:
                load_dotenv(path)
            except (OSError, ValueError) as error:  # not UTF-8, or a NUL byte
                raise UserError(f"{path} cannot be read: {error}") from None
            return


def run_script(main: Callable[[Sequence[str]], int]) -> int:
    """Run a script's main: whatever a user can cause ends in one line on stderr.

    Gives the exit status: main's own, 1 for an error, 130 when interrupted. argparse exits with 2.
    """
    # Our own handler for SIGINT too: asyncio's would cancel a run that is still being set up.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a path is written as the bytes that it is
        sys.stdout.reconfigure(encoding=sys.getfilesystemencoding(), errors="surrogateescape")
    if sys.stderr is None:  # closed; progress bars want one
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    status = _status_of(main)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    return status


def _status_of(main: Callable[[Sequence[str]], int]) -> int:
    """The exit status of main; what ended it is said."""
    try:
        read_environment_file()
        return main(sys.argv[1:])
    except UserError as error:
        say(f"error: {error}")
        return 1
    except ModuleNotFoundError as error:
        say(
            f"error: {error.name} is not installed here: activate the environment "
            '(. .venv/bin/activate), or pip install -e ".[results]"'
        )
        return 1
    except KeyboardInterrupt:
        say("interrupted; run the same command to resume")
        return 130
    except BrokenPipeError:  # the reader of stdout went away: `... --help | head -0`
        _forget(sys.stdout)
        return 1


def _forget(stream: TextIO) -> None:
    """Let go what cannot be written: Python flushes its streams once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _interrupt(number: int, frame: FrameType | None) -> None:
    # The next one finds nobody who could still end anything in an orderly way.
    signal.signal(number, _leave)
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(130)
