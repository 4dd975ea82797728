"""The flags that the scripts share.

Imports nothing heavy: `--help` and a wrong command line answer at once.
"""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from orbench.columns import CONVENTIONS
from orbench.models import Model, resolve
from orbench.protocols import MESSAGES, PROTOCOLS
from orbench.refusal import read_phrases
from orbench.run import Limits
from orbench.table import NO_NAME
from orbench.terminal import UserError, did_you_mean, one_line, say

DAY_S = 86_400.0
THINKERS_MAX_TOKENS = 16_000  # an answer's 1,000, the rest for the thinking before it
JUDGE_MAX_TOKENS = 4096  # the most that the oldest Claude takes; a verdict is some 300


class Parser(argparse.ArgumentParser):
    """argparse with the script's docstring as its description, as it was written."""

    def __init__(self, doc: str) -> None:
        super().__init__(
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, but a flag that is none is said before one that is missing."""
        words = [word.partition("=")[0] for word in args if re.match("--?[A-Za-z]", word)]
        known = self._option_string_actions
        # The names alone: a value may be a key that was meant for the environment.
        if flags := [word for word in words if word not in known and " " not in word]:
            meant = did_you_mean(flags[0], known)
            self.error(f"unrecognized arguments: {' '.join(flags)}{meant}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """One line of usage, one that says what is wrong; status 2."""
        self.exit(2, f"usage: {self.prog} [flags], see --help\nerror: {message}\n")


def true_or_false(text: str) -> bool:
    """An argparse type: true or false, in any letter case."""
    word = text.lower()
    if word in ("true", "1", "yes"):
        return True
    if word in ("false", "0", "no"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def input_path(text: str) -> Path:
    """An argparse type: the path of an input file. Raises UserError, which argparse lets pass, for
    an empty one: `--input "$csv"` after a step that failed."""
    if not text:
        raise UserError(NO_NAME)
    return Path(text)


def given(text: str) -> str:
    """An argparse type: a text that is not empty, as "$unset" in a shell is."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text


def variable_name(text: str) -> str:
    """An argparse type: the name of an environment variable. What is none is not shown: it may be
    the key itself, which may be spelt like a name that is not set.
    """
    like_a_key = re.search("[0-9]", text) and (re.search("[a-z]", text) or len(text) >= 20)
    is_name = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text)
    if not is_name or (like_a_key and text not in os.environ):
        raise argparse.ArgumentTypeError(
            "this is not the name of an environment variable; put the key in one and give its name"
        )
    return text


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """An argparse type: a whole number within bounds."""

    def number(text: str) -> int:
        value = int(text)
        if value < least or (most is not None and value > most):
            bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"
            raise argparse.ArgumentTypeError(f"{text} is not a whole number {bounds}")
        return value

    number.__name__ = "whole number"
    return number


def positive(text: str) -> float:
    """An argparse type: a number above zero."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


def seconds(text: str) -> float:
    """An argparse type: a duration in seconds, at most a day."""
    value = positive(text)
    if value > DAY_S:
        raise argparse.ArgumentTypeError(f"{text} s is more than a day")
    return value


def not_negative(text: str) -> float:
    """An argparse type: a number of at least zero."""
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 0")
    return value


def temperature(text: str) -> float | None:
    """An argparse type: a temperature, or `none` to send none."""
    return None if text.lower() == "none" else not_negative(text)


# What the suite sets itself, in each protocol's words; and what would bring another model's answers
# (openrouter.ai/docs/features/model-routing; Anthropic's fallbacks).
OWN_FIELDS = {
    *("model", "messages", "prompt", "input", "system", "instructions", "stream", "n"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "temperature", "top_p", "seed"),
    *("reasoning_effort", "response_format", "fallbacks", "models", "route", "background"),
}


def extra_body(text: str) -> dict[str, Any]:
    """An argparse type: a JSON object whose members go into each request's body."""
    try:
        value = json.loads(text, parse_constant=_no_number)
        # ValueError for half a surrogate pair, and for 1e400, which is read as infinity
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {one_line(str(error))}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('this is not a JSON object, such as {"top_k": 40}')
    if own := sorted(OWN_FIELDS & value.keys()):
        raise argparse.ArgumentTypeError(f"{own[0]} cannot be set here: the suite sets it itself")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def add_asking(
    parser: argparse.ArgumentParser, temperature_: float | None, max_tokens: int | None = None
) -> None:
    """In which state a model is asked.

    max_tokens: how long an answer may be by default; one that rambles would go on until its context
    is full. None is for judges, who have a fixed temperature, and leaves it to the endpoint: one
    that thinks first needs many thousands, GPT-4 Turbo takes no more than 4,096, and Llama 3's
    whole context is 8,192.
    """
    group = parser.add_argument_group("the model")
    if max_tokens is None:
        parser.set_defaults(temperature=temperature_)
    else:
        group.add_argument(
            "--temperature",
            type=temperature,
            default=temperature_,
            help="none sends none (default %(default)s)",
        )
    group.add_argument(
        "--max_tokens",
        type=whole_number(1),
        help="tokens of an answer at most, thinking included (default "
        f"{max_tokens or 'the endpoint decides'}, {THINKERS_MAX_TOKENS} for models that think)",
    )
    parser.set_defaults(usual_max_tokens=max_tokens)
    group.add_argument("--top_p", type=positive, help="nucleus sampling (default: not sent)")
    group.add_argument(
        "--seed", type=whole_number(0), help="of sampling; each further sample has the next one"
    )
    group.add_argument(
        "--reasoning_effort",
        type=given,
        metavar="WORD",
        help="how much it is to think: low, medium, high or what the provider calls it",
    )
    group.add_argument(
        "--extra_body",
        type=extra_body,
        metavar="JSON",
        help="""more of a request's body: '{"chat_template_kwargs": {"enable_thinking": false}}'""",
    )


def parameters_of(
    args: argparse.Namespace, model: Model, own: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """What a model is asked with beside the messages: part of each request's key, and of the
    record. Says where its limit is not the usual one. own: what its kind needs; a limit of the
    user's comes before that.
    """
    extra = dict(model.settings.extra_body)
    for name, value in (args.extra_body or {}).items():
        mine: Any = extra.get(name)
        both = isinstance(mine, dict) and isinstance(value, dict)
        extra[name] = mine | value if both else value
    limit, usual = args.max_tokens, own.get("max_tokens", args.usual_max_tokens)
    effort = args.reasoning_effort
    for name in ("reasoning", "output_config"):
        if effort and isinstance(extra.get(name), dict) and "effort" in extra[name]:
            raise UserError(
                f"--reasoning_effort and {name}.effort of --extra_body: give one of them"
            )
    thinks = effort != "none" if effort else model.thinks or "thinking" in extra
    thinks = thinks and "max_tokens" not in own
    if limit is None and usual is None and model.protocol == MESSAGES:
        usual = JUDGE_MAX_TOKENS  # it wants one
    if limit is None and usual is not None and thinks and usual < THINKERS_MAX_TOKENS:
        limit = THINKERS_MAX_TOKENS
        say(f"{model.asked} may think before it answers: --max_tokens is {limit:,}, not {usual:,}")
    named = {
        "temperature": args.temperature,
        "max_tokens": limit or usual,
        "top_p": args.top_p,
        "seed": args.seed,
        "reasoning_effort": effort,
    }
    sent = {name: value for name, value in named.items() if value is not None}
    return {**own, **sent, **extra}


def state_of(args: argparse.Namespace) -> str:
    """The state in which a model is measured, in words; "" for the usual one."""
    said = [f"effort {args.reasoning_effort}"] if args.reasoning_effort else []
    return ", ".join([*said, *_leaves("", args.extra_body or {})])


def _leaves(name: str, value: Any) -> Iterator[str]:
    """`thinking.type disabled`: the members of an object and of those in it, with their path."""
    if isinstance(value, dict):
        for inner in value:
            yield from _leaves(f"{name}.{inner}".removeprefix("."), value[inner])
    else:
        yield f"{name} {value if isinstance(value, str) else json.dumps(value)}"


def add_merge_result(parser: argparse.ArgumentParser, files: str) -> None:
    """The flag that chooses between one output CSV and one a verdict."""
    parser.add_argument(
        "--merge_result",
        type=true_or_false,
        default=True,
        metavar="true|false",
        help=f"one CSV with all rows (true, the default), or {files} (false)",
    )


def add_output_path(parser: argparse.ArgumentParser, default: str) -> None:
    """Where the CSV goes."""
    parser.add_argument("--output_path", type=given, help=f"the CSV to write (default {default})")


def add_refusal_phrases(parser: argparse.ArgumentParser) -> None:
    """The user's own phrases for the refusal rules."""
    parser.add_argument(
        "--refusal_phrases",
        type=given,
        metavar="FILE",
        help="a text file of your own phrases that mark a refusal, one a line, # for comments",
    )


def add_partial(parser: argparse.ArgumentParser) -> None:
    """How the rules count a response that is partly refused."""
    parser.add_argument(
        "--partial",
        choices=tuple(CONVENTIONS),
        default="answer",
        help="how the rules count a response that says no and then does part of what was "
        "asked: an answer (default, as in the paper) or a refusal (as in XSTest)",
    )


def phrases_of(args: argparse.Namespace) -> list[str]:
    """The phrases of `--refusal_phrases`. Raises UserError for a file that cannot be used."""
    if not args.refusal_phrases:
        return []
    try:
        phrases = read_phrases(args.refusal_phrases)
    except OSError as error:
        raise UserError(f"{args.refusal_phrases} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{args.refusal_phrases} is not UTF-8") from None
    for phrase in phrases:
        if not any(character.isalpha() for character in phrase):  # it would be found everywhere
            raise UserError(
                f"{args.refusal_phrases}: {phrase!r} is no phrase; each line is taken as it stands "
                "and needs a word in it"
            )
    return phrases


def phrases_mark(phrases: Sequence[str]) -> str:
    """What stands for the user's own phrases in a run record; "" where there are none."""
    return sha256("\n".join(phrases).encode()).hexdigest()[:8] if phrases else ""


def add_structured(parser: argparse.ArgumentParser) -> None:
    """Whether judges answer in JSON."""
    parser.add_argument(
        "--structured",
        action="store_true",
        help="ask judges for JSON (response_format, a schema with the reason first), where the "
        "provider has it; the default is free text",
    )


def add_endpoint(parser: argparse.ArgumentParser) -> None:
    """Any endpoint beside the table's."""
    group = parser.add_argument_group("endpoint")
    group.add_argument(
        "--base_url", default="", help="any other OpenAI-compatible endpoint, http://host:port/v1"
    )
    group.add_argument(
        "--api_key_env",
        type=variable_name,
        metavar="VARIABLE",
        help="the environment variable that holds the key (default: the provider's)",
    )
    group.add_argument(
        "--protocol",
        choices=tuple(PROTOCOLS),
        default="",
        help="how the endpoint is asked (default: as its provider is; chat with --base_url)",
    )


def add_run(parser: argparse.ArgumentParser, *, samples: bool = False, limit: bool = True) -> None:
    """How the requests of a run are sent, and what is done without sending any."""
    group = parser.add_argument_group("run")
    group.add_argument(
        "--concurrency",
        type=whole_number(1, 1000),
        help="requests in flight at once (default 64; 4 for ollama)",
    )
    group.add_argument(
        "--max_retries",
        type=whole_number(0),
        default=Limits().max_retries,
        help="retries of a request after transient faults (default %(default)s)",
    )
    group.add_argument(
        "--timeout",
        type=seconds,
        default=Limits().timeout,
        help="seconds for one whole attempt (default %(default)g)",
    )
    group.add_argument("--requests_per_minute", type=positive, help="never send more than this")
    group.add_argument("--tokens_per_minute", type=positive, help="never use more than this")
    if limit:
        group.add_argument("--limit", type=whole_number(0), help="only the first LIMIT rows")
        group.add_argument(
            "--shuffle",
            type=whole_number(0),
            metavar="SEED",
            help="with --limit: not the first rows but a sample, spread over the categories",
        )
    if samples:
        group.add_argument(
            "--samples",
            type=whole_number(1),
            default=1,
            help="answers per row (default 1); more than one adds a column `sample`",
        )
    group.add_argument(
        "--dry_run", action="store_true", help="send nothing; say what would be sent"
    )
    group.add_argument(
        "--from_log", action="store_true", help="send nothing; write the CSV from the answer log"
    )
    group.add_argument(
        "--overwrite",
        action="store_true",
        help="replace results that were made with other settings, or from another input",
    )
    group.add_argument("--price_in", type=not_negative, help="price per million prompt tokens")
    group.add_argument("--price_out", type=not_negative, help="price per million answer tokens")
    group.add_argument(
        "--price_cached",
        type=not_negative,
        help="price per million prompt tokens read from a cache (default: --price_in)",
    )
    group.add_argument("--quiet", action="store_true", help="no progress on stderr")


def limits_of(args: argparse.Namespace) -> Limits:
    """The run's limits as given on the command line."""
    return Limits(
        args.concurrency,
        args.max_retries,
        args.timeout,
        args.requests_per_minute,
        args.tokens_per_minute,
    )


def model_of(name: str, args: argparse.Namespace) -> Model:
    """The model a flag names, at the endpoint that the other flags name."""
    return resolve(
        name,
        base_url=args.base_url,
        key_variable=args.api_key_env or "",
        protocol=args.protocol,
    )
