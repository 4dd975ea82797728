"""What the flags of a stage mean for its models and its requests."""

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from orbench.base.messages import say
from orbench.base.words import Json, Values
from orbench.models.providers import MESSAGES_API, THINKS, Model, resolve

THINKERS_MAX_TOKENS = 16_000  # an answer's 1,000, the rest for the thinking before it
JUDGE_MAX_TOKENS = 4096  # the most that the oldest Claude takes; a verdict is some 300


def model_of(
    name: str, args: Namespace, own_server: str = "--base_url or OPENAI_BASE_URL"
) -> Model:
    """Return the model a flag names, at the endpoint that other flags name. Raises UserError.

    own_server: see `resolve`.
    """
    key = args.api_key_env
    return resolve(name, base_url=args.base_url, key_variable=key, own_server=own_server)


def parameters_of(args: Namespace, model: Model, needed: Values = MappingProxyType({})) -> Json:
    """Return what a model is asked with beside the messages: part of each request's key.

    needed: what its kind needs; a limit of the user's takes precedence. Reports a limit that is not
    the usual one.
    """
    extra = dict(model.settings.extra_body)
    for name, value in (args.extra_body or {}).items():
        if isinstance(value, dict):
            value = extra.get(name, {}) | value
        extra[name] = value
    parameters = dict(needed)
    for name in ("temperature", "seed", "reasoning_effort"):
        value = getattr(args, name)
        if value is not None:
            parameters[name] = value
    limit = _max_tokens(args, model, needed, extra)
    if limit is not None:
        parameters["max_tokens"] = limit
    return parameters | extra


def _max_tokens(args: Namespace, model: Model, needed: Values, extra: Json) -> int | None:
    usual: int | None = needed.get("max_tokens", args.usual_max_tokens)
    if args.max_tokens is not None or "max_tokens" in needed:
        return args.max_tokens or usual
    if usual is None:  # a judge: only Anthropic's protocol requires a limit
        if model.protocol != MESSAGES_API:
            return None
        usual = JUDGE_MAX_TOKENS
    if usual < THINKERS_MAX_TOKENS and _thinks(args, model, extra):
        say(f"{model.asked} is a reasoning model: --max_tokens is {THINKERS_MAX_TOKENS:,}")
        return THINKERS_MAX_TOKENS
    return usual


def _thinks(args: Namespace, model: Model, extra: Json) -> bool:
    """Return whether the model will think: as its flags say, else as its name does."""
    if args.reasoning_effort:
        return bool(args.reasoning_effort != "none")
    for name, value in _leaves("", extra):
        if name in ("thinking.type", "enable_thinking", "chat_template_kwargs.enable_thinking"):
            return value not in ("disabled", "false")
    return bool(THINKS.search(model.id))


def described(args: Namespace) -> str:
    """Return the settings a model is measured with, in words; "" for the usual ones."""
    settings = {"effort": args.reasoning_effort}
    if args.temperature is None:
        settings["temperature"] = "none"
    elif args.temperature:
        settings["temperature"] = f"{args.temperature:g}"
    if args.max_tokens != args.usual_max_tokens:
        settings["max_tokens"] = args.max_tokens
    if args.samples > 1:
        settings["samples"] = args.samples
    settings["random seed"] = args.seed
    given = {name: value for name, value in settings.items() if value is not None}
    return in_words(given | (args.extra_body or {}))


def in_words(settings: Json) -> str:
    """Return settings in words: `effort low, thinking.type enabled`."""
    return ", ".join(f"{name} {value}" for name, value in _leaves("", settings))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the members of an object and of those in it, by path: (`thinking.type`, value)."""
    if isinstance(value, Mapping):
        for inner in value:
            yield from _leaves(f"{name}.{inner}".removeprefix("."), value[inner])
    else:
        yield name, value if isinstance(value, str) else json.dumps(value)
