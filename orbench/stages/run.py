"""What programs that run stages share: a stage in the same process, and settings on resume."""

from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, NoReturn, TextIO

from orbench.base.messages import SAYS_TO, UserError, run_script, say, tell
from orbench.base.tables import write_text
from orbench.base.words import Json, Values, Words
from orbench.models.providers import Models
from orbench.stages.flags import Parser

LINE = "{:<24}{:>10}{:>9}{:>13}{:>12}{:>12}"  # the 80 columns of a terminal
HEADER = LINE.format("", "answered", "to send", "tokens in ~", "out at most", "cost")


class Outcome(NamedTuple):
    """What came of a run of a stage."""

    status: int  # the exit status: 0, 1, 3, 130
    path: Path | None = None  # the main CSV, if there is one
    written: int = 0  # output rows
    title: str = ""  # of a dry run
    to_send: int = 0  # requests that a dry run would send
    tokens: int = 0  # estimated, in the prompts of these
    most: int = 0  # tokens in the answers to these; 0: not known
    cost: float = 0.0  # of these, at most
    models: Models = ()  # that these go to
    stored: int = 0  # requests that the log answers
    stopped: str = ""  # why the run asked no further

    @property
    def line(self) -> str:
        """Return the requests, tokens and cost of a dry run, below HEADER."""
        most = cost = "-"
        limit = "≥"  # the prompts alone
        if self.most:
            most = f"{self.most:,}"
            limit = "≤"
        if self.cost:
            cost = f"{limit} ${self.cost:,.2f}"
        numbers = map("{:,}".format, (self.stored, self.to_send, self.tokens))
        return LINE.format(self.title, *numbers, most, cost)


def words_of(flags: Json) -> Words:
    """Return flags as words of a command line: True is a switch, None and False are not given."""
    words = []
    for name, value in flags.items():
        if value is True:
            words.append(f"--{name}")
        elif isinstance(value, list):
            words += [f"--{name}", *map(str, value)]
        elif value is not None and value is not False:
            words.append(f"--{name}={value}")
    return words


def run(script: str, flags: Json, log: TextIO | None = None, prompts: str = "") -> Outcome:
    """Run a stage script (path from the repository root) in this process.

    flags: see `words_of`. log: takes what it says in place of stderr. prompts: what measure.py
    calls them: `safe prompts`. Raises UserError, KeyboardInterrupt.
    """
    outer = SAYS_TO.set(log or SAYS_TO.get())
    try:
        module = load(script)
        args = module.parser().parse_args(words_of(flags))
        if prompts:
            args.prompts = prompts
        outcome: Outcome = module.run(args)
    finally:
        SAYS_TO.reset(outer)
    if outcome.status == 130:  # interrupted, and closed in good order
        raise KeyboardInterrupt
    return outcome


def check_settings(path: Path, settings: Values, flag: str) -> None:
    """Keep the settings of a program in a file of its folder; compare them when it resumes.

    Raises UserError if they differ. flag: the one that names another folder.
    """
    lines = [f"--{name} {value}" for name, value in settings.items()]
    if not path.exists():
        write_text(path, "\n".join(lines))
    before = path.read_text(encoding="utf-8", errors="replace").split("\n")
    others = [line for line in before if line not in lines]
    if others:
        raise UserError(
            f"{path.parent} was begun with {', '.join(others)}; use that, or choose another {flag}"
        )


def load(script: str) -> ModuleType:
    """Return a script of the repository as a module."""
    return import_module(script.removesuffix(".py").replace("/", "."))


def as_script(run: Callable[[Namespace], Outcome], parser: Callable[[], Parser]) -> NoReturn:
    """Run a stage as a script of its own, and exit with its status. parser: of its flags.

    stdout gets one line, the path of the CSV.
    """

    def main(argv: Words) -> int:
        outcome = run(parser().parse_args(argv))
        if outcome.title:
            say(HEADER)
            say(outcome.line)
        if outcome.path:
            tell(outcome.path)
        return outcome.status

    run_script(main)
