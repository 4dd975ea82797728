"""The flags that the scripts share, and what they mean for a request. Imports nothing heavy."""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from orbench.asking.asked import Limits
from orbench.asking.models import THINKS, Model, resolve
from orbench.asking.protocols import MESSAGES_API
from orbench.base.messages import VARIABLES, UserError, did_you_mean, in_variables, one_line, say
from orbench.base.tables import NO_NAME
from orbench.stages.templates import text_in

THINKERS_MAX_TOKENS = 16_000  # an answer's 1,000, the rest for the thinking before it
JUDGE_MAX_TOKENS = 4096  # the most that the oldest Claude takes; a verdict is some 300
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

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, but an unknown flag is reported before a missing one."""
        words = [word.partition("=")[0] for word in args if re.match("--?[A-Za-z]", word)]
        known = self._option_string_actions
        # The names alone: a value may be a key that was meant for the environment.
        if unknown := [word for word in words if word not in known and " " not in word]:
            meant = did_you_mean(unknown[0], known)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """One line of usage and one that says what is wrong; status 2."""
        usage = "" if VARIABLES in os.environ else f"usage: {self.prog} [flags], see --help\n"
        self.exit(2, f"{usage}{in_variables(f'error: {message}')}\n")


# -- argparse types ----------------------------------------------------------------------------


def true_or_false(text: str) -> bool:
    """true or false, in any letter case."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def input_path(text: str) -> Path:
    """The path of an input file. Raises UserError for "", as `--input "$csv"` may give."""
    if not text:
        raise UserError(NO_NAME)
    return Path(text)


def given(text: str) -> str:
    """A text that is not empty, as "$unset" in a shell is."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def variable_name(text: str) -> str:
    """The name of an environment variable. Anything else is not shown: it may be the key itself."""
    if text not in os.environ and not re.fullmatch(r"[A-Z_][A-Z0-9_]{1,40}", text):
        raise argparse.ArgumentTypeError("put the key in an environment variable and give its name")
    return text


def whole_number(least: int) -> Callable[[str], int]:
    """A whole number of at least `least`."""

    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least {least}")
        return int(text)

    number.__name__ = "whole number"
    return number


def positive(text: str) -> float:
    """A number above zero."""
    if not 0 < float(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return float(text)


def temperature(text: str) -> float | None:
    """A temperature, or `none` to omit the parameter."""
    if text.lower() == "none":
        return None
    return 0.0 if float(text) == 0 else positive(text)


class Prices(NamedTuple):
    """Prices per million tokens, in any currency. cached: of prompt tokens read from a cache."""

    prompt: float
    completion: float
    cached: float


def prices(text: str) -> Prices:
    """`IN,OUT` or `IN,OUT,CACHED`."""
    values = [float(word) for word in text.split(",")]
    if len(values) not in (2, 3) or min(values) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not IN,OUT[,CACHED] such as 2.5,10,1.25")
    return Prices(values[0], values[1], values[-1] if len(values) == 3 else values[0])


def extra_body(text: str) -> dict[str, Any]:
    """A JSON object whose members go into each request's body."""
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
    """How a model is asked, and where. max_tokens: the default limit of an answer; None is for
    judges, whose temperature is fixed, and leaves the limit to the endpoint.
    """
    add = parser.add_argument_group("model").add_argument
    parser.set_defaults(temperature=temperature_, usual_max_tokens=max_tokens)
    if max_tokens is not None:
        meaning = "`none` omits the parameter (default %(default)s)"
        add("--temperature", type=temperature, default=temperature_, help=meaning)
    else:
        meaning = "ask an unknown guard model as a general judge"
        add("--general_judge", action="store_true", help=meaning)
    usual = f"{max_tokens}; {THINKERS_MAX_TOKENS} for reasoning models"
    usual = usual if max_tokens else "set by the endpoint"
    meaning = f"maximum tokens per answer, including thinking (default {usual})"
    add("--max_tokens", type=whole_number(1), help=meaning)
    add("--top_p", type=positive, help="nucleus sampling (default: not sent)")
    add("--seed", type=whole_number(0), help="random seed; sample k uses seed + k")
    add("--reasoning_effort", type=given, metavar="WORD", help="low, medium, high, ...")
    example = """'{"chat_template_kwargs": {"enable_thinking": false}}'"""
    meaning = f"extra fields for the request body, e.g. {example}"
    add("--extra_body", type=extra_body, metavar="JSON", help=meaning)
    add("--base_url", default="", help="an OpenAI-compatible endpoint, http://host:port/v1")
    meaning = "environment variable that holds the key (default: the provider's)"
    add("--api_key_env", type=variable_name, metavar="VARIABLE", help=meaning)


def add_run_flags(
    parser: argparse.ArgumentParser, *, samples: bool = False, limit: bool = True
) -> None:
    """How the requests of a run are sent, and what is done without sending any."""
    add = parser.add_argument_group("run").add_argument
    usual = Limits()
    number = whole_number(0)
    meaning = "requests in flight at once (default 64; ollama 4, smollm2 8)"
    add("--concurrency", type=whole_number(1), help=meaning)
    meaning = "retries per request after transient errors (default %(default)s)"
    add("--max_retries", type=number, default=usual.max_retries, help=meaning)
    meaning = "seconds per attempt (default %(default)g)"
    add("--timeout", type=positive, default=usual.timeout, help=meaning)
    add("--requests_per_minute", type=positive, help="your own rate limit")
    if limit:
        add("--limit", type=number, help="only the first LIMIT rows")
        meaning = "with --limit: a random sample, proportional by category"
        add("--shuffle", type=number, metavar="SEED", help=meaning)
    if samples:
        meaning = "answers per row (default 1); more than one adds a column `sample`"
        add("--samples", type=whole_number(1), default=1, help=meaning)
    add("--dry_run", action="store_true", help="send nothing; estimate requests, tokens and cost")
    add("--preflight", type=number, help=argparse.SUPPRESS)  # see `engine.foresee`
    meaning = "replace results made with other settings or from another input"
    add("--overwrite", action="store_true", help=meaning)
    add("--prices", type=prices, metavar="IN,OUT[,CACHED]", help="prices per million tokens")
    add("--quiet", action="store_true", help="no progress on stderr")
    ways = parser.add_argument_group("instead of live requests").add_mutually_exclusive_group()
    add = ways.add_argument
    meaning = "the provider's batch service (about half the price, within 24 hours); after "
    meaning += "`submit`, the same command later collects the answers"
    add("--batch", nargs="?", const="wait", choices=("wait", "submit"), help=meaning)
    meaning = "send nothing; write the missing requests as a batch file, one per judge"
    add("--export_requests", type=given, metavar="FILE", help=meaning)
    meaning = "send nothing; read answers from result files"
    add("--import_answers", type=given, nargs="+", metavar="FILE", help=meaning)
    add("--from_log", action="store_true", help="send nothing; write the CSV from the answer log")


def add_output_flags(parser: argparse.ArgumentParser, default: str, parts: str = "") -> None:
    """Where the CSV goes. parts: what --merge_result=False writes instead, in words."""
    add = parser.add_argument
    if parts:
        meaning = f"one CSV with all rows (true, the default), or {parts} (false)"
        add("--merge_result", type=true_or_false, default=True, metavar="BOOL", help=meaning)
    add("--output_path", type=given, help=f"the CSV to write (default {default})")


def add_refusal_phrases(parser: argparse.ArgumentParser) -> None:
    """The user's own phrases for the refusal rules."""
    meaning = "a text file of your own refusal phrases, one per line; # starts a comment"
    parser.add_argument("--refusal_phrases", type=given, metavar="FILE", help=meaning)


# -- what flags mean ---------------------------------------------------------------------------


def phrases_of(args: argparse.Namespace) -> list[str]:
    """The phrases of --refusal_phrases. Raises UserError for a file that cannot be used."""
    text = text_in(Path(args.refusal_phrases)) if args.refusal_phrases else ""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def model_of(name: str, args: argparse.Namespace) -> Model:
    """The model a flag names, at the endpoint that the other flags name. Raises UserError."""
    return resolve(name, base_url=args.base_url, key_variable=args.api_key_env or "")


def parameters_of(
    args: argparse.Namespace, model: Model, own: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """What a model is asked with beside the messages: part of each request's key. own: what its
    kind needs; a limit of the user's takes precedence. Reports a limit that is not the usual one.
    """
    extra = dict(model.settings.extra_body)
    for name, value in (args.extra_body or {}).items():
        mine: Any = extra.get(name)
        both = isinstance(mine, dict) and isinstance(value, dict)
        extra[name] = mine | value if both else value
    named = {
        "temperature": args.temperature,
        "max_tokens": _max_tokens(args, model, own, extra),
        "top_p": args.top_p,
        "seed": args.seed,
        "reasoning_effort": args.reasoning_effort,
    }
    sent = {name: value for name, value in named.items() if value is not None}
    return {**own, **sent, **extra}


def _max_tokens(
    args: argparse.Namespace, model: Model, own: Mapping[str, Any], extra: Mapping[str, Any]
) -> int | None:
    usual: int | None = own.get("max_tokens", args.usual_max_tokens)
    if args.max_tokens is not None or "max_tokens" in own:
        return args.max_tokens or usual
    if usual is None:  # a judge: only Anthropic's protocol requires a limit
        usual = JUDGE_MAX_TOKENS if model.protocol == MESSAGES_API else None
    if usual is not None and usual < THINKERS_MAX_TOKENS and _thinks(args, model, extra):
        say(f"{model.asked} is a reasoning model: --max_tokens is {THINKERS_MAX_TOKENS:,}")
        return THINKERS_MAX_TOKENS
    return usual


def _thinks(args: argparse.Namespace, model: Model, extra: Mapping[str, Any]) -> bool:
    """Whether the model will think: as its flags say, else as its name does."""
    if args.reasoning_effort:
        return bool(args.reasoning_effort != "none")
    for name, value in _leaves("", extra):
        if name in ("thinking.type", "enable_thinking", "chat_template_kwargs.enable_thinking"):
            return value not in ("disabled", "false")
    return bool(THINKS.search(model.id))


def settings_in_words(args: argparse.Namespace) -> str:
    """The settings a model is measured with, in words; "" for the usual ones."""
    named = {
        "effort": args.reasoning_effort,
        "temperature": "none" if args.temperature is None else f"{args.temperature:g}",
        "top_p": args.top_p,
        "max_tokens": args.max_tokens,
    }
    usual = (None, "0", args.usual_max_tokens)
    said = {name: value for name, value in named.items() if value not in usual}
    leaves = _leaves("", said | (args.extra_body or {}))
    return ", ".join(f"{name} {value}" for name, value in leaves)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The members of an object and of those in it, with their paths: (`thinking.type`, value)."""
    if isinstance(value, Mapping):
        for inner in value:
            yield from _leaves(f"{name}.{inner}".removeprefix("."), value[inner])
    elif name:
        yield name, value if isinstance(value, str) else json.dumps(value)
