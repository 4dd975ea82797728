"""The flags that the scripts share, and what they mean for a request. Imports nothing heavy."""

import argparse
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from orbench.asking.inquiry import Limits
from orbench.base.messages import UserError, did_you_mean, one_line
from orbench.base.tables import NO_NAME
from orbench.base.words import Json
from orbench.stages.settings import THINKERS_MAX_TOKENS

# What the suite sets itself, in each protocol's words, and what would bring another model's answers
# (openrouter.ai/docs/features/model-routing; Anthropic's fallbacks).
OWN_FIELDS = {
    *("model", "messages", "prompt", "input", "system", "instructions", "stream", "n"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "temperature", "top_p", "seed"),
    *("reasoning_effort", "response_format", "background", "fallbacks", "models", "route"),
}


class Parser(argparse.ArgumentParser):
    """argparse with the script's docstring as its description, as it was written."""

    def __init__(self, doc: str | None) -> None:
        as_written = argparse.RawDescriptionHelpFormatter
        super().__init__(description=doc, formatter_class=as_written, allow_abbrev=False)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, but report an unknown flag before a missing one.

        `command` of the result holds the words of the command line, for run records.
        """
        words = list(args)
        known = set(re.findall(r"(?<![\w-])--?[A-Za-z]\w*", self.format_help()))
        # The names alone: a value may be a key that was meant for the environment.
        names = [word.partition("=")[0] for word in words if re.match("--?[A-Za-z]", word)]
        unknown = [name for name in names if name not in known and " " not in name]
        if unknown:
            meant = did_you_mean(unknown[0], known)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        parsed = super().parse_args(words, namespace)
        parsed.command = [self.prog, *words]
        return parsed

    def error(self, message: str) -> NoReturn:
        """Print one line of usage and one that says what is wrong; status 2."""
        self.exit(2, f"usage: {self.prog} [flags], see --help\nerror: {message}\n")


# -- argparse types ----------------------------------------------------------------------------


def true_or_false(text: str) -> bool:
    """Read true or false, in any letter case."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def input_path(text: str) -> Path:
    """Return the path of an input file. Raises UserError for "", as `--input "$csv"` may give."""
    if not text:
        raise UserError(NO_NAME)
    return Path(text)


def given(text: str) -> str:
    """Accept a text that is not empty, as "$unset" in a shell is."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def variable_name(text: str) -> str:
    """Accept the name of an environment variable; never show anything else: it may be the key."""
    if text not in os.environ and not re.fullmatch(r"[A-Z_][A-Z0-9_]{1,40}", text):
        raise argparse.ArgumentTypeError("put the key in an environment variable and give its name")
    return text


def whole_number(least: int) -> Callable[[str], int]:
    """Return a type: a whole number of at least `least`."""

    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least {least}")
        return int(text)

    number.__name__ = "whole number"
    return number


def positive(text: str) -> float:
    """Read a number above zero."""
    if not 0 < float(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return float(text)


def temperature(text: str) -> float | None:
    """Read a temperature, or `none` to omit the parameter."""
    if text.lower() == "none":
        return None
    return 0.0 if float(text) == 0 else positive(text)


class Prices(NamedTuple):
    """Prices per million tokens, in any currency. cached: of prompt tokens read from a cache."""

    prompt: float
    completion: float
    cached: float


def prices(text: str) -> Prices:
    """Read `IN,OUT` or `IN,OUT,CACHED`."""
    values = [float(word) for word in text.split(",")]
    if len(values) not in (2, 3) or min(values) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not IN,OUT[,CACHED] such as 2.5,10,1.25")
    return Prices(values[0], values[1], values[-1] if len(values) == 3 else values[0])


def extra_body(text: str) -> Json:
    """Read a JSON object whose members go into each request's body."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {one_line(str(error))}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('this is not a JSON object, such as {"top_k": 40}')
    if own := sorted(OWN_FIELDS & value.keys()):
        raise argparse.ArgumentTypeError(f"{own[0]} cannot be set here: the suite sets it itself")
    return value


# -- groups of flags ---------------------------------------------------------------------------


def add_model_flags(
    parser: argparse.ArgumentParser, temperature_: float | None, max_tokens: int | None = None
) -> None:
    """Add how a model is asked, and where. max_tokens: the default limit of an answer; None is for
    judges, whose temperature is fixed, and leaves the limit to the endpoint.
    """
    add = parser.add_argument_group("model").add_argument
    parser.set_defaults(temperature=temperature_, usual_max_tokens=max_tokens)
    if max_tokens is not None:
        add(
            "--temperature",
            type=temperature,
            default=temperature_,
            help="`none` omits the parameter (default %(default)s)",
        )
    else:
        add("--general_judge", action="store_true", help="ask any guard model as a general judge")
    usual = f"{max_tokens}; {THINKERS_MAX_TOKENS} for reasoning models"
    usual = usual if max_tokens else "set by the endpoint"
    add(
        "--max_tokens",
        type=whole_number(1),
        help=f"maximum tokens per answer, including thinking (default {usual})",
    )
    add("--top_p", type=positive, help="nucleus sampling (default: not sent)")
    add("--seed", type=whole_number(0), help="random seed; sample k uses seed + k")
    add("--reasoning_effort", type=given, metavar="WORD", help="low, medium, high, ...")
    example = """'{"chat_template_kwargs": {"enable_thinking": false}}'"""
    add(
        "--extra_body",
        type=extra_body,
        metavar="JSON",
        help=f"extra fields for the request body, e.g. {example}",
    )
    add("--base_url", default="", help="an OpenAI-compatible endpoint, http://host:port/v1")
    add("--api_key_env", type=variable_name, metavar="NAME", help="environment variable of the key")


def add_run_flags(
    parser: argparse.ArgumentParser, *, samples: str = "", limit: bool = True
) -> None:
    """Add how the requests of a run are sent, and what is done without sending any.

    samples: the column that numbers several answers per row; "" for a stage without samples.
    """
    add = parser.add_argument_group("run").add_argument
    usual = Limits()
    number = whole_number(0)
    add(
        "--concurrency",
        type=whole_number(1),
        help="requests in flight at once (default 64; ollama 4, smollm2 8)",
    )
    add(
        "--max_retries",
        type=number,
        default=usual.max_retries,
        help="retries per request after transient errors (default %(default)s)",
    )
    add(
        "--timeout",
        type=positive,
        default=usual.timeout,
        help="seconds per attempt (default %(default)g)",
    )
    add("--requests_per_minute", type=positive, help="your own rate limit")
    _add_rows(add, samples, limit)
    add("--dry_run", action="store_true", help="send nothing; estimate requests, tokens and cost")
    add(
        "--overwrite",
        action="store_true",
        help="replace results made with other settings or from another input",
    )
    add("--prices", type=prices, metavar="IN,OUT[,CACHED]", help="prices per million tokens")
    add("--quiet", action="store_true", help="no progress on stderr")
    _add_instead(parser)


def _add_rows(add: Callable[..., Any], samples: str, limit: bool) -> None:
    """Add which rows are asked, and how often."""
    number = whole_number(0)
    if limit:
        add("--limit", type=number, help="only the first LIMIT rows")
        add(
            "--shuffle",
            type=number,
            metavar="SEED",
            help="with --limit: a random sample, proportional by category",
        )
    if samples:
        add(
            "--samples",
            type=whole_number(1),
            default=1,
            help=f"answers per row (default 1); more than one adds a column `{samples}`",
        )


def _add_instead(parser: argparse.ArgumentParser) -> None:
    """Add what a run can do instead of live requests."""
    ways = parser.add_argument_group("instead of live requests").add_mutually_exclusive_group()
    add = ways.add_argument
    add(
        "--batch",
        nargs="?",
        const="wait",
        choices=("wait", "submit"),
        help="the provider's batch service (about half the price, within 24 hours); after "
        "`submit`, the same command later collects the answers",
    )
    add(
        "--export_requests",
        type=given,
        metavar="FILE",
        help="send nothing; write the missing requests as a batch file, one per judge",
    )
    add(
        "--import_answers",
        type=given,
        nargs="+",
        metavar="FILE",
        help="send nothing; read answers from result files",
    )
    add("--from_log", action="store_true", help="send nothing; write the CSV from the answer log")


def add_output_flags(parser: argparse.ArgumentParser, default: str, parts: str = "") -> None:
    """Add where the CSV goes. parts: what --merge_result=False writes instead, in words."""
    add = parser.add_argument
    if parts:
        add(
            "--merge_result",
            type=true_or_false,
            default=True,
            metavar="BOOL",
            help=f"one CSV with all rows (true, the default), or {parts} (false)",
        )
    add("--output_path", type=given, help=f"the CSV to write (default {default})")


def add_refusal_phrases(parser: argparse.ArgumentParser) -> None:
    """Add the user's own phrases for the refusal rules."""
    parser.add_argument(
        "--refusal_phrases",
        type=given,
        metavar="FILE",
        help="a text file of your own refusal phrases, one per line; # starts a comment",
    )
