"""What can go wrong with a request, and what an error status means for it and for the run."""

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from orbench.asking.models import ALIASES, PROVIDERS, Model, alias_variable
from orbench.base.messages import one_line
from orbench.refusals.api import POLICY_MESSAGE, declares_policy

if TYPE_CHECKING:
    from openai import APIStatusError


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
    """A 403: the key or the address is rejected, as for all others, or a firewall blocks this text.
    Earlier answers tell the two apart.
    """


class Fatal(Exception):
    """No request to this model can succeed: wrong key, unknown model, no quota left."""


# How gateways, in a plain 429, and Anthropic, in a 400 too, say that the money is spent.
SPENT_MESSAGE = re.compile(
    r"(?:crossed|exceeded|over)\W{0,2}(?:the |its |your )?budget|budget has been exceeded|"
    r"credit balance is too low|reached your specified (?:\w+ )?api usage limits",
    re.I,
)
OVERLOADED = (503, 529)  # a rate limit if they say how long to wait; 529 is Anthropic's
# OpenRouter, with require_parameters, if none of its providers takes all parameters of a request.
NO_PROVIDER = re.compile(
    r"no endpoints found that (?:can handle|support) the requested param", re.I
)
# How a 404 says that the path is wrong, unless it names the model.
NO_SUCH_PATH = re.compile(r"not found|invalid url|cannot post|\b(?:page|path|route|url)\b", re.I)
SHORTEST_KEY = 16  # characters; anything shorter (EMPTY, none) is a placeholder, common in answers


def is_policy_block(error: "APIStatusError") -> bool:
    """Whether an error status says that the provider's content policy blocked the request."""
    if error.status_code not in (400, 403, 422):
        return False
    return declares_policy(said_in(error)) or bool(POLICY_MESSAGE.search(message_of(error)))


def said_in(error: "APIStatusError") -> dict[str, Any]:
    """The error object of a body: an object, xAI's bare text, or Gemini's list of one; empty for a
    gateway's page.
    """
    body = error.body
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = body[0].get("error", body[0])
    if isinstance(body, str) and not body.startswith("<"):
        body = {"message": body}
    return body if isinstance(body, dict) else {}


def message_of(error: "APIStatusError") -> str:
    """What the server said, without the package's preamble."""
    message = said_in(error).get("message")
    return message if isinstance(message, str) else error.message


def fault_of(error: "APIStatusError", model: Model) -> Passing | Limited | BadRequest | Fatal:
    """What an error status means for the request and for the run."""
    status, message = error.status_code, message_of(error)
    said = f"{status}: {shown(message, model)}"
    spent = status in (400, 429) and SPENT_MESSAGE.search(message)
    if "insufficient_quota" in (error.code, error.type) or status == 402 or spent:
        return Fatal(f"{model.provider} says that the account has no quota left ({said})")
    if status < 400:
        return Fatal(f"{model.address} redirects requests ({status}); give the final --base_url")
    if status == 401:
        return Fatal(f"{_rejected_key(model)} ({said})")
    if status == 403:
        return TurnedAway(f"{_rejected_key(model)}, or this prompt ({said})")
    if status == 404:
        return Fatal(_not_found(error, model, said))
    if status == 429 or (status in OVERLOADED and "retry-after" in error.response.headers):
        return Limited(said, retry_after(error.response.headers))
    if status in (408, 409) or status >= 500:
        return Passing(said)
    return BadRequest(said)


def _rejected_key(model: Model) -> str:
    return f"{model.provider} rejected the key in {model.key_variable or '--api_key_env'}"


def _not_found(error: "APIStatusError", model: Model, said: str) -> str:
    """What to do about a 404: its text shows whether the model or the address is wrong."""
    about = f"{error.code} {message_of(error)} {error.body}"
    if NO_PROVIDER.search(about):
        return (
            f"no provider of {model.id} takes all parameters ({said}): leave one out, e.g. "
            "--temperature none, or let OpenRouter drop them: "
            """--extra_body '{"provider": {"require_parameters": false}}'"""
        )
    known = "model" in about.lower() or model.id in about
    if not said_in(error) or (NO_SUCH_PATH.search(about) and not known):
        variable = f"{model.provider.upper()}_BASE_URL" * (model.provider in PROVIDERS)
        return (
            f"{model.address} is not the address of an API ({said}): many end in /v1; check "
            f"{' or '.join(filter(None, ['--base_url', variable]))}"
        )
    line = f"{model.address} does not know the model {model.id!r} ({said}); name another"
    if model.asked in ALIASES:
        line += f", or point the alias elsewhere: {alias_variable(model.asked)}=provider/model-id"
    return line


def retry_after(headers: Any) -> float | None:
    """Seconds to wait by retry-after-ms or retry-after; None if neither says."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) * scale)
    return None


def bare_key(value: str) -> str:
    """A key without what is often copied along: blanks, quotes, `Bearer `."""
    return re.sub(r"^Bearer\s+", "", value.strip().strip("\"'").strip(), flags=re.I).strip("\"' ")


def masked(text: str, model: Model, shortest: int = SHORTEST_KEY) -> str:
    """The text without the key of the model's endpoint, if the key has so many characters."""
    value = os.environ.get(model.key_variable, "").strip()
    for key in (value, bare_key(value)):
        text = text.replace(key, "[key]") if len(key) >= shortest else text
    return text


def shown(text: str, model: Model) -> str:
    """A server's text for a message: one line, without the key."""
    return one_line(masked(text, model, shortest=1))
