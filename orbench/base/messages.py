"""What a script tells its user, and how it ends."""

import json
import os
import re
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import TextIO

# Set by measure.py: a JSON object of flags and of the variables that its users set instead.
VARIABLES = "ORBENCH_VARIABLES"


class UserError(Exception):
    """Something the user can mend. The message is one line and says what to do."""


def say(line: str) -> None:
    """Print a line on stderr. If nobody can read it (full disk, closed pipe), the work goes on."""
    try:
        print(clean(in_variables(line)), file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)


def in_variables(text: str) -> str:
    """The text with variables in place of flags, if `make measure` runs the script."""
    for flag, variable in json.loads(os.environ.get(VARIABLES, "{}")).items():
        text = text.replace(flag, variable)
    return text


def without_query(text: str) -> str:
    """A web address without user, password, query and fragment: these may be secret."""
    return re.sub(r"(https?://)(?:[^/\s]*@)?([^\s?#]*)\S*", r"\1\2", text)


def tell(path: Path) -> None:
    """Print the path of the CSV, the one line on stdout. Raises UserError if that fails."""
    try:
        print(path, flush=True)
    except OSError as error:
        _silence(sys.stdout)
        raise UserError(f"{path} was written, but stdout failed: {error.strerror}") from None


def clean(text: str) -> str:
    """The text without control, format and surrogate characters, for messages and pictures."""
    if text.isprintable():
        return text
    unseen = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(" " if unicodedata.category(c) in unseen else c for c in text)


def one_line(text: str) -> str:
    """A server's or model's text for a message: one printable line of at most 300 characters."""
    text = " ".join(clean(text).split())
    return text if len(text) <= 300 else text[:299] + "…"


def counted(n: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def shortened(name: str, width: int) -> str:
    """A name in at most `width` columns, cut in the middle."""
    if len(name) <= width:
        return name
    return f"{name[: width // 2]}…{name[len(name) - (width - 1) // 2 :]}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`. Did you mean gpt4?` if one of the known words is close, else nothing."""
    close = get_close_matches(word, known, 1)
    return f". Did you mean {close[0]}?" if close else ""


def read_environment_file() -> None:
    """Load the nearest `.env`: in the working directory, above it, or in the repository.

    Variables that are already set win. Raises UserError for an unreadable file.
    """
    folders = (Path.cwd(), *Path.cwd().parents, Path(__file__).resolve().parents[2])
    path = next((folder / ".env" for folder in folders if os.path.isfile(folder / ".env")), None)
    if path:
        from dotenv import load_dotenv

        try:
            load_dotenv(path)
        except (OSError, ValueError) as error:  # not UTF-8, or a NUL byte
            raise UserError(f"{path} cannot be read: {error}") from None


def run_script(main: Callable[[Sequence[str]], int]) -> int:
    """Run a script's main and return the exit status; errors become one line on stderr."""
    _on_signals(_interrupt)
    if sys.stderr is None:  # closed; progress bars need one
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    try:
        read_environment_file()
        return main(sys.argv[1:])
    except (UserError, OSError) as error:
        say(f"error: {error}")
        return 1
    except ModuleNotFoundError as error:
        mend = "activate the environment (after make demo: . .venv/bin/activate)"
        say(f"error: {error.name} is not installed here: {mend}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; run the same command to resume")
        return 130
    finally:
        _on_signals(_leave)


def _silence(stream: TextIO) -> None:
    """Send a stream that cannot be written to nowhere: Python flushes it once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _on_signals(act: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, act)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _on_signals(_leave)  # a second signal ends the process at once
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(130)
