"""What can go wrong with a request, and what an error status means for it and for the run."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

from orbench.asking.models import ALIASES, Model, alias_variable
from orbench.base.messages import one_line
from orbench.refusals.api import POLICY_MESSAGE, declares_policy


class Passing(Exception):
    """A fault that can pass by itself: the same request may be sent again."""


class Limited(Exception):
    """The endpoint asks for fewer requests. wait: seconds it asked to wait, None if not said."""

    def __init__(self, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.wait = wait


class BadRequest(Exception):
    """This request can never succeed; others may."""


class TurnedAway(BadRequest):
    """A 403: the key is rejected, or a firewall blocks this text. Earlier answers tell which."""


class Fatal(Exception):
    """No request to this model can succeed: wrong key, unknown model, no quota left."""


# How gateways, in a plain 429, and Anthropic, in a 400 too, say that the money is spent.
SPENT_MESSAGE = re.compile(
    r"(?:crossed|exceeded|over)\W{0,2}(?:the |its |your )?budget|budget has been exceeded|"
    r"credit balance is too low|reached your specified (?:\w+ )?api usage limits",
    re.I,
)
SHORTEST_KEY = 16  # characters; anything shorter (EMPTY, none) is a placeholder, common in answers


class ErrorReply(NamedTuple):
    """An error status of an endpoint, live or in a batch."""

    status: int
    error: dict[str, Any]  # see `error_in`
    headers: Mapping[str, str] = {}

    @property
    def message(self) -> str:
        """What the server said."""
        return reason_in(self.error) or str(self.error or "no text")

    @property
    def is_policy_block(self) -> bool:
        """Whether the provider's content policy blocked the request."""
        policy = declares_policy(self.error) or POLICY_MESSAGE.search(self.message)
        return self.status in (400, 403, 422) and bool(policy)


def error_in(body: Any) -> dict[str, Any]:
    """The error object in a body: xAI's is a bare text, Gemini's is in a list."""
    while body and (isinstance(body, list) or (isinstance(body, dict) and body.get("error"))):
        body = body[0] if isinstance(body, list) else body["error"]
    if isinstance(body, dict):
        return body
    return {"message": str(body)} if body else {}


def reason_in(value: Any) -> str:
    """The text in an error: Mistral's, FastAPI's and OpenRouter's lie deeper."""
    if isinstance(value, list):
        return ("; " if dict in map(type, value) else ".").join(map(reason_in, value))
    if not isinstance(value, dict):
        return str(value)
    names = ("loc", "message", "msg", "detail", "metadata", "raw")
    reasons = (reason_in(value[name]) for name in names if value.get(name))
    return ": ".join(dict.fromkeys(filter(None, reasons)))


@contextmanager
def passing_faults(model: Model) -> Iterator[None]:
    """Raise Passing for what the openai package raises, except for error statuses."""
    import aiohttp
    import openai

    try:
        yield
    except openai.APIConnectionError as error:  # timeouts are among these
        cause = str(error.__cause__ or "") or "timeout"
        raise Passing(f"no answer: {shown(cause, model)}") from error
    except aiohttp.ClientError as error:  # openai lets an answer that is no HTTP through
        raise Passing(f"no HTTP answer: {shown(str(error), model)}") from error
    except (ValueError, RecursionError) as error:  # JSON and UTF-8 errors among them
        raise Passing("the body is not JSON, or was cut off") from error


def fault_of(reply: ErrorReply, model: Model) -> Passing | Limited | BadRequest | Fatal:
    """What an error status means for the request and for the run."""
    status = reply.status
    error = reply.error
    said = f"{status}: {shown(reply.message, model)}"
    key = f"{model.provider} rejected the key in {model.key_variable or '--api_key_env'}"
    spent = status in (400, 429) and SPENT_MESSAGE.search(reply.message)
    if status == 402 or spent or "insufficient_quota" in (error.get("code"), error.get("type")):
        return Fatal(f"{model.provider} reports that the account has no quota left ({said})")
    if status < 400:
        return Fatal(f"{model.address} redirects requests ({status}); give the final --base_url")
    if status == 401:
        return Fatal(f"{key} ({said})")
    if status == 403:
        return TurnedAway(f"{key}, or this prompt ({said})")
    if status == 404:
        return Fatal(f"{said}; {_after_404(reply, model)}")
    if status < 500 and status not in (408, 409, 429):
        return BadRequest(said)
    if status == 429 or "retry-after" in reply.headers:
        return Limited(said, _retry_after(reply.headers))
    return Passing(said)


def _after_404(reply: ErrorReply, model: Model) -> str:
    """What to do about a 404."""
    if "requested param" in reply.message:  # none of OpenRouter's providers takes all of them
        drop = """--extra_body '{"provider": {"require_parameters": false}}'"""
        return f"leave a parameter out (--temperature none), or let OpenRouter drop some: {drop}"
    line = f"check the model id {model.id!r} and the address {model.address} (many end in /v1)"
    if model.asked in ALIASES:
        line += f", or point the alias elsewhere: {alias_variable(model.asked)}=provider/model-id"
    return line


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by retry-after-ms or retry-after; None if neither says."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) * scale)
    return None


@cache
def bare_key(value: str) -> str:
    """A key without what is often copied along: blanks, quotes, `Bearer `."""
    return re.sub(r"^[\s\"']*(?:Bearer\s+)?|[\s\"']+$", "", value, flags=re.I)


def masked(text: str, model: Model, shortest: int = SHORTEST_KEY) -> str:
    """The text without the key of the model's endpoint, if the key has so many characters."""
    key = bare_key(os.environ.get(model.key_variable, ""))
    return text.replace(key, "[key]") if len(key) >= shortest else text


def shown(text: str, model: Model) -> str:
    """A server's text for a message: one line, without the key."""
    return one_line(masked(text, model, shortest=1))
