"""What a script tells its user, and how it ends."""

import gc
import os
import re
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TextIO

from orbench.base.secrets import keep_environment_secret, masked

# Where messages go; stderr, unless a program keeps what a stage says in a file.
SAYS_TO: ContextVar[TextIO | None] = ContextVar("SAYS_TO", default=None)
# No progress bars; False: also where stderr is no terminal.
QUIET = ContextVar[bool | None]("QUIET", default=None)
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt} [{elapsed}{postfix}]"
ROOT = Path(__file__).resolve().parents[2]  # of the repository
FROM_FILE: dict[str, Path] = {}  # environment variables -> the `.env` that set them


class UserError(Exception):
    """Something the user can mend. The message is one line and says what to do."""


def say(line: str) -> None:
    """Print a line on stderr, or where `SAYS_TO` points. If nobody can read it (full disk, closed
    pipe), the work goes on.
    """
    stream = SAYS_TO.get() or sys.stderr
    try:
        print(masked(clean(line)), file=stream, flush=True)
    except OSError:
        _silence(stream)


def progress_bar(title: str, items: Any, *, quiet: bool = False, leave: bool = False) -> Any:
    """Return a bar on stderr, none if quiet or where that is no terminal. items: what it iterates
    over; how many it counts.
    """
    from tqdm import tqdm

    off = quiet or QUIET.get()
    return tqdm(items, title, leave=leave, disable=off, dynamic_ncols=True, bar_format=BAR)


def without_query(text: str) -> str:
    """Return a text with web addresses without user, password, query and fragment: secrets.

    The query of a dataset's address on the Hub stays: it holds none.
    """
    return re.sub(r"\b(?!hf://datasets/)(\w+://)(?:[^/\s]*@)?([^\s?#]*)\S*", r"\1\2", text)


def tell(path: Path) -> None:
    """Print the path of the CSV, the one line on stdout. Raises UserError if that fails."""
    try:
        print(path, flush=True)
    except OSError as error:
        _silence(sys.stdout)
        raise UserError(f"{path} was written, but stdout failed: {error.strerror}") from None


def clean(text: str) -> str:
    """Return the text without control, format and surrogate characters, for messages, pictures."""
    unsafe = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(" " if unicodedata.category(c) in unsafe else c for c in text)


def storable(text: str) -> str:
    """Return a text as files and requests can hold it: lone surrogates become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str) -> str:
    """Return a text for a message: one printable line of at most 300 characters."""
    text = " ".join(clean(text).split())
    return text if len(text) <= 300 else text[:299] + "…"


def counted(n: int, noun: str) -> str:
    """Return `1 row`, `2,000 rows`."""
    plural = "" if n == 1 else "s"
    return f"{n:,} {noun}{plural}"


def listed(names: Sequence[str]) -> str:
    """Return `a, b and c`; of more than three names `a, b and 2 more`."""
    *others, last = names
    if len(others) > 2:
        others = others[:2]
        last = f"{len(names) - 2} more"
    return f"{', '.join(others)} and {last}" if others else last


def shortened(name: str, width: int) -> str:
    """Return a name in at most `width` columns, cut in the middle."""
    if len(name) <= width:
        return name
    return f"{name[: width // 2]}…{name[len(name) - (width - 1) // 2 :]}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `. Did you mean gpt4?` if one of the known words is close, else nothing."""
    close = get_close_matches(word, known, 1)
    return f". Did you mean {close[0]}?" if close else ""


def read_environment_file() -> None:
    """Load `.env` in the working directory, then that in the repository's root.

    Variables that are already set win. Raises UserError for an unreadable file.
    """
    FROM_FILE.clear()
    for path in filter(Path.is_file, (Path(".env"), ROOT / ".env")):
        from dotenv import load_dotenv

        before = set(os.environ)
        try:
            load_dotenv(path)
        except (OSError, ValueError) as error:  # not UTF-8, or a NUL byte
            raise UserError(f"{path} cannot be read: {error}") from None
        FROM_FILE.update(dict.fromkeys(os.environ.keys() - before, path))


def run_script(main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a script's main and exit with its status; errors become one line on stderr."""
    status = 1
    _on_signals(_interrupt)
    # Python looks for reference cycles every 700 new objects, a tenth of the time; there are few.
    gc.set_threshold(500_000)
    if sys.stderr is None:  # closed; progress bars need one
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    try:
        read_environment_file()
        keep_environment_secret()
        status = main(list(map(storable, sys.argv[1:])))
    except UserError as error:
        say(f"error: {error}")
    except OSError as error:
        say(f"error: {error.filename or 'a file cannot be used'}: {error.strerror or error}")
    except ModuleNotFoundError as error:
        say(
            f"error: {error.name} is not installed here: "
            "activate the environment (after make demo: . .venv/bin/activate)"
        )
    except KeyboardInterrupt:
        say("interrupted; run the same command to resume")
        status = 130
    finally:
        gc.freeze()  # else Python looks for them at exit
        _on_signals(_leave)
    sys.exit(status)


def _silence(stream: TextIO) -> None:
    """Send a stream that cannot be written to nowhere: Python flushes it once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _on_signals(act: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, act)


def _interrupt(*_: object) -> None:
    _on_signals(_leave)  # a second signal ends the process at once
    raise KeyboardInterrupt


def _leave(*_: object) -> None:
    os._exit(130)
