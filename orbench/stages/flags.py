"""The flags of the scripts, which are in flags.toml, and their types. Imports nothing heavy."""

import json
import os
import re
from argparse import Action, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from sys import float_info
from typing import Any, NoReturn

from orbench.base.messages import UserError, did_you_mean, one_line
from orbench.base.tables import NO_NAME
from orbench.base.templates import text_in
from orbench.base.toml_files import toml_beside
from orbench.base.words import NOT_WORSE, WORSE, Json, new_category
from orbench.models.providers import OWN_FIELDS
from orbench.models.requests import Prices
from orbench.stages.settings import THINKERS_MAX_TOKENS

RULES = "rules"  # as a judge
FORMATS = ("png", "svg", "pdf")  # of pictures
# In percent: a limit below 1 is meant as a fraction, and would not be what the user wants.
ONE_GATE = rf"({WORSE}|(over_refusal >|toxic <) [1-9]\d?(\.\d+)?)"
ONE_REQUIREMENT = rf"{NOT_WORSE} (?=.*[1-9])\d\d?(\.\d+)?"
FLAGS = toml_beside(__file__)
FLAG = re.compile(r"(--?[A-Za-z][^= ]*)(=.*)?", re.DOTALL)  # a word of a command line


class Parser(ArgumentParser):
    """argparse with the script's docstring as its description, as it was written."""

    def __init__(self, doc: str | None, *groups: str, **marks: str) -> None:
        """groups: of flags.toml, which come first. marks: what stands for {mark} in their help."""
        super().__init__(
            description=doc,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.marks = marks
        self.advanced: list[Action] = []
        self.add(self, *groups)

    def add(self, to: Any, *groups: str, as_typed: bool = False) -> None:
        """Add groups of flags.toml to one of argparse's.

        as_typed: values stay texts, to be passed on to a script that checks them, and advanced
        flags stay in this group.
        """
        for group in groups:
            for name, entry in FLAGS[group].items():
                options = dict(entry)
                names = [name, *options.pop("aliases", [])]
                advanced = options.pop("advanced", False)
                kind = options.pop("type", None)
                if kind and not as_typed:
                    options["type"] = TYPES[kind]
                for mark, text in self.marks.items():
                    options["help"] = options["help"].replace(f"{{{mark}}}", text)
                action = to.add_argument(*[f"--{name}" for name in names], **options)
                if advanced and not as_typed:
                    self.advanced.append(action)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, but report an unknown flag before a missing one.

        `command` of the result holds the words of the command line, for run records.
        """
        known = self._option_string_actions.keys()
        # The names alone: a value may be a key that was meant for the environment.
        names = [name[1] for word in args if (name := FLAG.fullmatch(word))]
        unknown = [name for name in names if name not in known]
        if unknown:
            self.error(
                f"unrecognized arguments: {' '.join(unknown)}{did_you_mean(unknown[0], known)}"
            )
        parsed = super().parse_args(args, namespace)
        parsed.command = [self.prog, *args]
        if "baseline" in parsed:
            gates = parsed.fail_if + parsed.require
            if WORSE in str(gates) and not parsed.baseline:  # or NOT_WORSE
                self.error(f"{WORSE} and {NOT_WORSE} need --baseline")
            if parsed.junit and not gates:
                self.error("--junit needs --fail_if or --require")
        return parsed

    def format_help(self) -> str:
        """Return the help with rare flags last, in a group of their own."""
        # Moved only for the help: argparse also keeps which flags exclude each other by group.
        for group in self._action_groups:
            actions = group._group_actions
            group._group_actions = [action for action in actions if action not in self.advanced]
        self.add_argument_group("advanced")._group_actions = self.advanced
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Print one line of usage and one that says what is wrong; status 2."""
        self.exit(2, f"usage: {self.prog} [flags], see --help\nerror: {message}\n")


# -- argparse types ----------------------------------------------------------------------------


def true_or_false(text: str) -> bool:
    """Read true or false, in any letter case."""
    if text.lower() not in ("true", "false"):
        raise ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def input_path(text: str) -> Path:
    """Return the path of an input file. Raises UserError for "", as `--input "$csv"` may give."""
    if not text:
        raise UserError(NO_NAME)
    return Path(text)


def given(text: str) -> str:
    """Reject empty text, such as an unset shell variable, and a list of nothing but commas."""
    if not text.strip(", \t\n\r"):
        raise ArgumentTypeError("it is empty")
    return text


def phrases(text: str) -> list[str]:
    """Read the refusal phrases in a file. Raises UserError for an unusable one."""
    lines = map(str.strip, text_in(Path(given(text))).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def variable_name(text: str) -> str:
    """Accept the name of an environment variable; never show anything else: it may be the key."""
    if text not in os.environ and not re.fullmatch(r"[A-Z_][A-Z0-9_]{1,40}", text):
        raise ArgumentTypeError("put the key in an environment variable and give its name")
    return text


def number(read: type[float], least: float, most: float, limits: str) -> Callable[[str], Any]:
    """Return a type: a number from `least` to `most`. limits: the two in words."""
    kind = "whole number" if read is int else "number"

    def value(text: str) -> float:
        if not least <= read(text) <= most:
            raise ArgumentTypeError(f"{text} is not a {kind} {limits}")
        return read(text)

    value.__name__ = kind
    return value


positive = number(float, float_info.min, float_info.max, "above 0")


def temperature(text: str) -> float | None:
    """Read a temperature, or `none` to omit the parameter."""
    if text.lower() == "none":
        return None
    return 0.0 if float(text) == 0 else positive(text)


def prices(text: str) -> Prices:
    """Read `IN,OUT` or `IN,OUT,CACHED`."""
    values = [float(word) for word in text.split(",")]
    if len(values) not in (2, 3) or min(values) < 0:
        raise ArgumentTypeError(f"{text!r} is not IN,OUT[,CACHED] such as 2.5,10,1.25")
    values.append(values[0])  # what cached tokens cost if no third price says otherwise
    return Prices(*values[:3])


def extra_body(text: str) -> Json:
    """Read a JSON object whose members go into each request's body."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ArgumentTypeError(f"this is not JSON: {one_line(str(error))}") from None
    if not isinstance(value, dict):
        raise ArgumentTypeError('this is not a JSON object, such as {"top_k": 40}')
    if reserved := sorted(OWN_FIELDS & value.keys()):
        raise ArgumentTypeError(f"{reserved[0]} cannot be set here: the suite sets it itself")
    return value


def gates(one: str, allowed: str, text: str) -> str:
    """Accept what --fail_if or --require may say; several with semicolons between.

    one: the pattern of one. allowed: what that is in words.
    """
    gates = re.sub(r"\s*([<>;])\s*", r" \1 ", text.replace("%", "").strip()).replace(" ;", ";")
    if not re.fullmatch(f"{one}(; {one})*", gates):
        raise ArgumentTypeError(f"{text!r} is no gate; write {allowed}")
    return gates


def picture_formats(text: str) -> tuple[str, ...]:
    """`png,pdf` -> ("png", "pdf")."""
    names = tuple(dict.fromkeys(text.lower().replace(" ", "").split(",")))
    for unknown in set(names).difference(FORMATS):
        raise ArgumentTypeError(f"{unknown!r} is not one of {', '.join(FORMATS)}")
    return names


# By the name that flags.toml uses.
TYPES = {
    "count": number(int, 1, inf, "of at least 1"),
    "extra_body": extra_body,
    "folder": Path,
    "gates": partial(
        gates,
        ONE_GATE,
        f"'over_refusal > PERCENT', 'toxic < PERCENT' or {WORSE}, PERCENT from 1 to below 100",
    ),
    "given": given,
    "integer": int,
    "new_category": new_category,
    "number": number(int, 0, inf, "of at least 0"),
    "path": input_path,
    "phrases": phrases,
    "picture_formats": picture_formats,
    "positive": positive,
    "prices": prices,
    "requirements": partial(
        gates, ONE_REQUIREMENT, f"'{NOT_WORSE} POINTS', POINTS above 0 and below 100"
    ),
    "similarity": number(float, 0.5, 1, "from 0.5 to 1"),
    "temperature": temperature,
    "true_or_false": true_or_false,
    "variable_name": variable_name,
}


# -- the flags of a stage ----------------------------------------------------------------------


def stage_parser(
    doc: str | None,
    *groups: str,
    temperature: float,
    max_tokens: int | None = None,
    **marks: str,
) -> Parser:
    """Return a stage's parser: its own groups of flags, how a model is asked, how requests are sent
    and what is done in their place.

    max_tokens: the default limit of an answer; None is for judges, whose temperature is fixed, and
    leaves the limit to the endpoint.
    """
    asked = "temperature"
    usual = f"{max_tokens}; {THINKERS_MAX_TOKENS} for reasoning models"
    if max_tokens is None:
        asked = "judge"
        usual = "set by the endpoint"
    parser = Parser(doc, *groups, usual=usual, **marks)
    parser.add(parser.add_argument_group("model"), asked, "request")
    parser.add(parser.add_argument_group("run"), "sending", "run")
    instead = parser.add_argument_group("instead of live requests")
    parser.add(instead.add_mutually_exclusive_group(), "batch", "instead")
    parser.set_defaults(temperature=temperature, usual_max_tokens=max_tokens, prompts="")
    return parser
