"""What can go wrong with a request, and what an error status means for it and for the run."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, NamedTuple

from orbench.base.messages import one_line, storable
from orbench.base.secrets import MASK, keep_secret
from orbench.base.toml_files import toml_beside
from orbench.base.words import Json
from orbench.models.providers import ALIASES, Model, alias_variable
from orbench.refusals.api import Declared, entry_of, refusal_in_error


class TransientError(Exception):
    """A fault that can pass by itself: the same request may be sent again.

    wait: seconds that the endpoint asks to wait, 0 if it does not say. kind: what the request was.
    """

    kind = "unreadable"

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class RateLimited(TransientError):
    """The endpoint asks for fewer requests."""

    kind = "throttled"


class ServerError(TransientError):
    """The endpoint reports a fault of its own."""

    kind = "failed at the server"


class ConnectionLost(TransientError):
    """No connection, or one that ended without an answer."""

    kind = "disconnected"


class NotReached(ConnectionLost):
    """No connection came about: no server listens there."""


class TimedOut(TransientError):
    """No answer in time."""

    kind = "timed out"


class BadRequest(Exception):
    """This request can never succeed; others may."""


class Forbidden(BadRequest):
    """A 403: the key is rejected, or a firewall blocks this text. Earlier answers tell which."""


class Fatal(Exception):
    """No request to this model can succeed: wrong key, unknown model, no quota left.

    by_words: no code says so, only a text, which may be about this prompt. Earlier answers tell.
    """

    def __init__(self, message: str, by_words: bool = False) -> None:
        super().__init__(message)
        self.by_words = by_words


_TABLES = toml_beside(__file__)
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION = r"(?:\d+(?:\.\d+)?\s*(?:ms|[smh])[a-z]*[\s,]*)+"
# In an error: "try again in 1m30s", or Google's RetryInfo.
WAIT = rf"(?:try again in|retry (?:in|after)|retrydelay)\W*({DURATION})"
LONG_KEY = 8  # characters; a shorter key can be a part of a word, and is masked as a whole one
PLACEHOLDERS = ("", "none", "empty")  # keys that are none; judges say "none" too
# What reading JSON raises that has another shape than expected.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
WORDS = r"(\W+)"  # and what stands between them
QUOTED = 7  # of both in a row: four words
DEEPEST = 40  # levels of a server's JSON that are read


class ErrorReply(NamedTuple):
    """An error status of an endpoint, live or in a batch."""

    status: int
    error: Json  # see `error_in`
    headers: Mapping[str, str] = {}

    @property
    def message(self) -> str:
        """Return what the server said."""
        return reason_in(self.error) or str(self.error or "no text")

    @property
    def refused(self) -> Declared | None:
        """Return the refusal that it is, see `orbench.refusals.api`."""
        return refusal_in_error(self.status, self.error, self.message)


def error_in(body: Any) -> Json:
    """Return the error object in a body: xAI's is a bare text, Gemini's is in a list."""
    while body:
        if isinstance(body, list):
            body = body[0]
        elif isinstance(body, dict):
            if not body.get("error"):
                return body
            body = body["error"]
        else:
            return {"message": str(body)}
    return {}


def reason_in(value: Any) -> str:
    """Return the text in an error: Mistral's, FastAPI's and OpenRouter's lie deeper."""
    if isinstance(value, list):
        mark = "; " if dict in map(type, value) else "."
        return mark.join(map(reason_in, value))
    if not isinstance(value, dict):
        return str(value)
    names = ("loc", "message", "msg", "detail", "metadata", "raw")
    reasons = [reason_in(value[name]) for name in names if value.get(name)]
    return ": ".join(dict.fromkeys(filter(None, reasons)))


def reply_of(
    status: int, body: Any, model: Model, headers: Any = None, sent: str = ""
) -> ErrorReply:
    """Return an error status with what its body, JSON or a bare text, says.

    sent: the messages. What the server quotes of them says nothing about the run.
    """
    if status == 429:  # which may come often
        sent = ""
    return ErrorReply(status, error_in(cleaned(body, key_of(model), sent)), headers or {})


@contextmanager
def transient_errors(model: Model) -> Iterator[None]:
    """Raise TransientError for what the openai package raises, except for error statuses.

    Its timeout errors are of the connection: an attempt has a time limit of its own.
    """
    import aiohttp
    import openai

    try:
        yield
    except (openai.APIConnectionError, aiohttp.ClientError) as error:
        # openai lets aiohttp's error for an answer that is no HTTP through.
        cause = error.__cause__ or error
        fault = ConnectionLost
        if isinstance(cause.__cause__, aiohttp.ClientConnectorError):
            fault = NotReached
        raise fault(f"no answer: {shown(str(cause), model)}") from error
    except (ValueError, RecursionError) as error:  # JSON and UTF-8 errors among them
        raise TransientError("the body is not JSON (a gateway's page?), or was cut off") from error


def fault_of(reply: ErrorReply, model: Model) -> Exception:
    """Return what an error status means for the request and for the run."""
    status = reply.status
    reason = f"{status}: {one_line(reply.message).rstrip('.')}"
    if status < 400:
        return Fatal(f"{model.address} redirects requests ({status}); give the final --base_url")
    key = model.key_variable or "--api_key_env"
    error = [reply.error, {"code": reply.error.get("param")}]
    entry = entry_of(_TABLES["errors"], status, error, reply.message)
    if entry:
        line = _TABLES["told"][entry["means"]].format(model=model, reason=reason, key=key)
        if entry["means"] == "model" and model.asked in ALIASES:
            line += (
                f", or point the alias elsewhere: {alias_variable(model.asked)}=provider/model-id"
            )
        return Fatal(line, "message" in entry and entry["means"] != "spent")
    if status == 403:
        return Forbidden(f"{model.provider} rejected the key in {key}, or this prompt ({reason})")
    # 498: Groq is full. 499: the request was cancelled on its way.
    if status < 500 and status not in (408, 409, 424, 429, 498, 499):
        return BadRequest(reason)
    wait = _wait_in(reply)
    if status == 429 or wait:
        return RateLimited(reason, wait)
    return ServerError(reason)


def _wait_in(reply: ErrorReply) -> float:
    """Return the seconds to wait by retry-after-ms, retry-after or the error; 0 if none says a
    finite number.
    """
    from email.utils import parsedate_to_datetime

    headers = reply.headers
    waits = [headers.get("retry-after-ms", "") + "ms", headers.get("retry-after", "") + "s"]
    for wait in waits + re.findall(WAIT, str(reply.error).lower()):
        seconds = 0.0
        if re.fullmatch(DURATION, wait):
            for number, unit in re.findall(r"([\d.]+)\s*(ms|[smh])", wait):
                seconds += float(number) * UNITS[unit]
        if seconds:
            return seconds
    with suppress(KeyError, ValueError):  # HTTP allows a date, too (RFC 9110, 10.2.3)
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    return 0.0


# -- what servers say, without the key ---------------------------------------------------------


COPIED_ALONG = re.compile(r"^[\s\"']*(?:Bearer\s+)?|[\s\"']+$", re.I)  # with a key


def key_of(model: Model) -> str:
    """Return the key of a model's endpoint from the environment, "" if it is not set."""
    return keep_secret(COPIED_ALONG.sub("", os.environ.get(model.key_variable, "")))


@lru_cache  # most texts in a server's JSON are names, the same in each
def masked(text: str, key: str) -> str:
    """Return a text without lone surrogates and a key: a long one anywhere, a short one as a whole
    word.
    """
    text = storable(text)
    if key.lower() in PLACEHOLDERS:
        return text
    if len(key) >= LONG_KEY:
        return text.replace(key, MASK)
    return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", MASK, text)


def cleaned(value: Any, key: str, sent: str = "", levels: int = DEEPEST) -> Any:
    """Return a server's JSON as the suite may see it: without the key, without lone surrogates.

    All of a server's JSON passes through here before anything reads it. sent: what it may quote,
    which is left out. levels: how deep to go.
    """
    if isinstance(value, str):
        return _unquoted(masked(value, key), sent)
    if levels == 0:
        return "(nested too deeply)"
    levels -= 1
    if isinstance(value, list):
        return [cleaned(item, key, sent, levels) for item in value]
    if isinstance(value, dict):
        items = value.items()
        return {masked(name, key): cleaned(item, key, sent, levels) for name, item in items}
    return value


def _unquoted(text: str, sent: str) -> str:
    """Return a text with "[...]" for each part that it has in common with what was sent."""
    if not sent:
        return text
    from difflib import SequenceMatcher

    words = re.split(WORDS, text)
    matcher = SequenceMatcher(None, words, re.split(WORDS, sent), autojunk=False)
    for start, _, size in reversed(matcher.get_matching_blocks()):
        if size >= QUOTED:
            words[start : start + size] = ["[...]"]
    return "".join(words)


def shown(text: str, model: Model) -> str:
    """Return a server's text that is no JSON for a message: one line, without the key."""
    return one_line(masked(text, key_of(model)))
