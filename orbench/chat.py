"""One chat request through the openai package: what an answer is, what a refusal, what a fault.

Nothing else in the suite knows that package. Its own retries are off: `orbench.run` retries,
under one back-off for the whole run. The answer is read as plain data (`client.post(...,
cast_to=object)`): half the CPU of `chat.completions.create`, and a malformed answer cannot raise
from inside the package.
"""

import gc
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from orbench.answers import Answer
from orbench.api_category import POLICIES, category_in
from orbench.models import ALIASES, PROVIDERS, Model, alias_variable, public_url
from orbench.protocols import PROTOCOLS, Protocol
from orbench.refusal import api_refusal_signal
from orbench.table import storable
from orbench.terminal import UserError, one_line

if TYPE_CHECKING:
    import httpx2
    from openai import APIStatusError, AsyncOpenAI

    from orbench.local import Server

Message = dict[str, str]
Parameters = dict[str, Any]


def user(text: str) -> Message:
    """A user message. A lone surrogate, which no request body can hold, is sent as U+FFFD."""
    return {"role": "user", "content": storable(text)}


def assistant(text: str) -> Message:
    """An assistant message."""
    return {"role": "assistant", "content": storable(text)}


def system(text: str) -> Message:
    """A system message."""
    return {"role": "system", "content": storable(text)}


@dataclass(slots=True)
class Request:
    """One chat request. Equal requests have equal keys, and a key is answered once."""

    model: Model
    messages: list[Message]
    parameters: Parameters  # temperature, max_tokens, ... as the user wants them
    sample: int = 0  # repeated samples of one request differ here
    protocol: str = ""  # a key of PROTOCOLS; the model's if empty
    ask: int = 0  # how many unreadable answers to it came before
    more: Sequence[Message] = ()  # that say what was wrong with the last of them
    _first: bytes = b""

    def __post_init__(self) -> None:
        self.protocol = self.protocol or self.model.protocol

    def body(self) -> dict[str, Any]:
        """The JSON body, as the user wants it (`Adaptation` fits it to what the model takes).

        Each sample has a seed of its own, or all would be alike.
        """
        protocol = PROTOCOLS[self.protocol]
        values = {k: v for k, v in self.parameters.items() if k not in protocol.lacks}
        if "seed" in values:
            values["seed"] += self.sample
        return protocol.body(self.model.id, [*self.messages, *self.more], values)

    def first(self) -> bytes:
        """The key of its first ask: 16 bytes that stand for exactly this request to exactly this
        endpoint.
        """
        if not self._first:
            exact = [self.model.address, self.protocol, self.body(), self.sample]
            self._first = hashlib.sha256(json.dumps(exact, sort_keys=True).encode()).digest()[:16]
        return self._first

    def key(self) -> bytes:
        """The key of its answer in the log."""
        return ask_key(self.first(), self.ask)

    def again(self, ask: int, more: Sequence[Message] = ()) -> "Request":
        """The request after so many unreadable answers; more: what is said of the last one."""
        return replace(self, ask=ask, more=more, _first=self.first())


def ask_key(first: bytes, ask: int) -> bytes:
    """The key of a request's repeat after `ask` unreadable answers; 0 is the request itself."""
    return hashlib.sha256(b"%s %d" % (first, ask)).digest()[:16] if ask else first


class Passing(Exception):
    """A fault that can pass by itself: the same request may be sent again."""


class Limited(Exception):
    """The endpoint asks for fewer requests. wait: seconds it asked to wait, None if it did not
    say.
    """

    def __init__(self, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.wait = wait


class BadRequest(Exception):
    """The request itself is at fault; sending it again is useless, other requests may succeed."""


class TurnedAway(BadRequest):
    """It did not get as far as the model: for its key or address, as then all others do, or for its
    text, by a firewall. Who has had answers knows which.
    """


class Fatal(Exception):
    """No request of this run can succeed: wrong key, unknown model, no money left."""


# Error codes with which an API declares that its content policy blocked the request.
POLICY_CODES = {
    "content_filter",
    "content_policy_violation",
    "ResponsibleAIPolicyViolation",
    "moderation_blocked",
    "data_inspection_failed",  # Qwen at DashScope
    *POLICIES,
}
# What they write where they have no code of their own for it (DeepSeek, Anthropic, OpenAI, Azure,
# xAI).
POLICY_MESSAGE = re.compile(
    r"content exists risk|content filtering policy|violating our usage polic|"
    r"content management policy|content violates usage guidelines",
    re.IGNORECASE,
)
NO_REFUSAL = ("", "none", "null")  # a refusal field that says nothing, in small letters
# How gateways, in a plain 429, and Anthropic, in a 400 too, say that the money is spent: no waiting
# helps.
SPENT_MESSAGE = re.compile(
    r"(?:crossed|exceeded|over)\W{0,2}(?:the |its |your )?budget|budget has been exceeded|"
    r"credit balance is too low|reached your specified (?:\w+ )?api usage limits",
    re.I,
)
OVERLOADED = (503, 529)  # 529: Anthropic's; asks for fewer requests where it says how long
# OpenRouter, with require_parameters, where none of its providers takes all of a request.
NO_PROVIDER = re.compile(
    r"no endpoints found that (?:can handle|support) the requested param", re.I
)
# How a 404 says that the path is wrong, where it does not name the model.
NO_SUCH_PATH = re.compile(r"not found|invalid url|cannot post|\b(?:page|path|route|url)\b", re.I)
TOKEN_LIMIT = "max_tokens"
TOKEN_LIMIT_OF_REASONING = "max_completion_tokens"
# How a 400 says that a model does not take a parameter at all (or no other value than its own): a
# word of rejection close to the parameter's name. A value out of range is the user's to mend.
REJECTION = (
    r"unsupported|not supported|not support|not accept|not permitted|not allowed|only the default|"
    r"unrecognized request argument supplied|unrecognized|unknown|deprecated|extra inputs|"
    r"unexpected"
)
OUT_OF_RANGE = re.compile(
    r"must be|at most|at least|above|below|less than|greater|between", re.IGNORECASE
)
LARGEST_BODY = 16 << 20  # bytes, unpacked: an answer of 4 million tokens
LOSE_THE_BODY = (301, 302, 303)  # redirects that clients follow with a GET
LIKE = {"reasoning_effort": "reasoning", "max_completion_tokens": "max_tokens"}  # at OpenRouter
SHORTEST_KEY = 16  # characters; anything shorter (EMPTY, none) is a placeholder, common in answers
# What openai's HTTP clients read of the environment when they are made.
CONNECTION_VARIABLES = [
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
]
ADAPTABLE = (TOKEN_LIMIT, TOKEN_LIMIT_OF_REASONING, "temperature", "top_p", "seed")


class Adaptation:
    """What the models of a run turned out not to take, for all its requests, live or in a batch.

    notes: what the run's user must hear of it, each once.
    """

    def __init__(self) -> None:
        # (endpoint, model id) -> a parameter it rejects -> the name it takes in its place, or "".
        self._names: dict[tuple[str, str], dict[str, str]] = {}
        self.notes: list[str] = []

    def fit(self, request: Request) -> dict[str, Any]:
        """The body with what this model is known to reject renamed or dropped."""
        body = request.body()
        for name in PROTOCOLS[request.protocol].lacks:
            if name in request.parameters:
                self.adapt(request.model, name)
        for name, new_name in self._of(request.model).items():
            if name in body:
                value = body.pop(name)
                if new_name:
                    body[new_name] = value
        return body

    def knows(self, model: Model, name: str) -> bool:
        """Whether a model is known to reject a parameter."""
        return name in self._of(model)

    def dropped(self, model: Model) -> tuple[str, ...]:
        """The sampling parameters that are left out for a model."""
        return tuple(name for name, new_name in self._of(model).items() if not new_name)

    def adapt(self, model: Model, name: str) -> None:
        """Note that this model does not take a parameter, for all bodies from here on."""
        names = self._names.setdefault((model.endpoint, model.id), {})
        if name in names:
            return
        names[name] = TOKEN_LIMIT_OF_REASONING if name == TOKEN_LIMIT else ""
        if names[name]:
            self.notes.append(f"{model.id} takes {names[name]} in place of {name}")
        else:
            self.notes.append(f"{model.id} rejects {name}: left out for the whole run")

    def _of(self, model: Model) -> dict[str, str]:
        return self._names.get((model.endpoint, model.id), {})


class Chat:
    """Sends requests to the endpoints of a run; one openai client an endpoint, opened when
    needed.
    """

    def __init__(self, timeout: float, adaptation: Adaptation, stage: str = "") -> None:
        """timeout: seconds for each read; `orbench.run` bounds a whole attempt by the same
        figure. adaptation: what the models reject; added to here. stage: whose requests they are,
        for the scripted model.
        """
        self._timeout, self._stage = timeout, stage
        self._adaptation = adaptation
        self._clients: dict[tuple[str, str], AsyncOpenAI] = {}
        self.sent_again = 0  # requests sent once more without a parameter
        self._answered: set[tuple[str, str]] = set()  # (endpoint, model id)
        self._servers: list[Server] = []  # of models that this run serves itself

    async def send(self, request: Request) -> Answer:
        """Send one request once. Raises Passing, Limited, BadRequest or Fatal."""
        client, protocol = await self.open(request.model), PROTOCOLS[request.protocol]
        body, dropped = self._adaptation.fit(request), self._adaptation.dropped(request.model)
        if request.model.scripted:
            body["sample"] = request.sample  # its texts follow from the request alone
        import openai

        try:
            data = await client.post(
                protocol.path,
                body=body,
                cast_to=object,
                options={"headers": headers_of(protocol, client.api_key)},
            )
        except openai.APIStatusError as error:
            return await self._after_error(request, body, error)
        except openai.APIConnectionError as error:  # its timeouts are among these
            cause = str(error.__cause__ or "") or "timeout"
            raise Passing(f"no answer: {shown(cause, request.model)}") from error
        except transport_faults() as error:
            raise Passing(f"no HTTP answer: {shown(str(error), request.model)}") from error
        except (ValueError, RecursionError) as error:  # JSON and UTF-8 errors among them
            raise Passing("the body is not JSON, or was cut off") from error
        answer = without_key(read_answer(protocol.read(data), request.model), request.model)
        # From here on this model is known to take these parameters: a 400 over an odd prompt
        # can no longer change how the others are asked.
        self._answered.add((request.model.endpoint, request.model.id))
        return answer._replace(dropped=dropped)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.close()
        for server in self._servers:
            await server.close()

    async def open(self, model: Model) -> "AsyncOpenAI":
        """The client of a model's endpoint. Raises UserError when its key is not set."""
        endpoint = (model.base_url, model.key_variable)
        if endpoint not in self._clients:
            base_url = model.base_url
            if model.in_process:
                from orbench import local

                self._servers.append(await local.start(model.base_url, self._stage))
                base_url = self._servers[-1].base_url
            self._clients[endpoint] = connect(model, base_url, self._timeout)
        return self._clients[endpoint]

    async def _after_error(
        self, request: Request, sent: dict[str, Any], error: "APIStatusError"
    ) -> Answer:
        status, model = error.status_code, request.model
        if is_policy_block(error):
            return blocked_by_policy(said_in(error))
        if status == 404 and NO_PROVIDER.search(message_of(error)):
            raise Fatal(no_provider(model, sent, await self._supported(model)))
        if status == 400 and (name := rejected_parameter(error, sent)):
            answered = (model.endpoint, model.id) in self._answered
            # Sent before another request's 400 revealed this; its own 400 arrived later.
            late = self._adaptation.knows(model, name)
            if late or not answered:
                self._adaptation.adapt(model, name)
                self.sent_again += 1
                return await self.send(request)
        raise fault_of(error, model)

    async def _supported(self, model: Model) -> list[set[str]]:
        """Which parameters each provider of a model takes, by OpenRouter's list of endpoints
        (openrouter.ai/docs/api/api-reference/endpoints/list-endpoints); [] where there is none.
        """
        import openai

        client = await self.open(model)
        path = f"/models/{quote(model.id)}/endpoints"
        try:
            found = await client.get(path, cast_to=object)
            endpoints = found["data"]["endpoints"]  # type: ignore[index]
            return [set(map(str, endpoint["supported_parameters"])) for endpoint in endpoints]
        except (openai.OpenAIError, Passing, TurnedAway, ValueError, KeyError, TypeError):
            return []  # there is none, or it is not what its page says
        except transport_faults():
            return []


def headers_of(protocol: Protocol, key: str) -> dict[str, Any]:
    """The headers that a protocol needs beside the package's own."""
    if not protocol.key_header:
        return dict(protocol.headers)
    import openai

    return {"Authorization": openai.omit, protocol.key_header: key, **protocol.headers}


async def look_at(response: "httpx2.Response") -> None:
    """Read a response as far as it may be read. Raises TurnedAway for a redirect that would lose
    the request, and Passing for a body without end.
    """
    check_redirect(response)
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        check_size(len(body))
    response._content = bytes(body)  # where `aread` puts what it has read


def check_redirect(response: "httpx2.Response") -> None:
    """Raise TurnedAway for a redirect that clients follow with a GET, which loses the request."""
    if response.status_code in LOSE_THE_BODY and response.request.method == "POST":
        address = public_url(response.headers.get("location", ""))
        raise TurnedAway(
            f"{response.status_code}: requests are sent on to {one_line(address)!r} and would be "
            "lost on the way; give the address itself (--base_url)"
        )


def check_size(size: int, most: int = 0) -> None:
    """Raise Passing for a body of more bytes than `most`, or than any answer can have."""
    most = most or LARGEST_BODY
    if size > most:
        raise Passing(f"an answer of more than {most >> 20} MB")


def connect(model: Model, base_url: str, timeout: float) -> "AsyncOpenAI":
    """An openai client for a model's endpoint. Raises UserError when its key is not set, and where
    the environment does not let one be made.
    """
    key = key_of(model)
    check_headers()
    hooks: dict[str, list[Any]] = {"response": [look_at]}
    with connecting():
        # The package makes thousands of types that live to the end; to look for garbage among them
        # meanwhile takes a tenth of its loading time, and later some of each collection.
        gc.disable()
        try:
            import openai
        finally:
            gc.freeze()
            gc.enable()
        try:
            http_client = openai.DefaultAioHttpClient(event_hooks=hooks)
        except RuntimeError:  # aiohttp is not installed: the default transport works, only slower
            http_client = openai.DefaultAsyncHttpxClient(event_hooks=hooks)
    return openai.AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        max_retries=0,
        timeout=timeout,
        http_client=http_client,
    )


@contextmanager
def connecting() -> Iterator[None]:
    """Says in one line which variable keeps a client from being made."""
    import httpx2

    try:
        yield
    except (OSError, ValueError, httpx2.InvalidURL) as error:
        names = [name for name in CONNECTION_VARIABLES if os.environ.get(name)]
        raise UserError(
            f"no connection can be set up: {one_line(str(error))}; look at what the environment "
            f"says in {', '.join(names) or 'its variables'}"
        ) from None


def check_headers() -> None:
    """Raise UserError for a variable that the openai package sends as a header and that is none."""
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        value = os.environ.get(name, "")
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            raise UserError(f"{name} holds characters that no header can have; set it anew")


def transport_faults() -> tuple[type[Exception], ...]:
    """What openai's aiohttp transport lets through unwrapped: answers that are no valid HTTP."""
    try:
        import aiohttp
    except ImportError:
        return ()
    return (aiohttp.ClientError,)


def key_of(model: Model) -> str:
    """The key for a model's endpoint, from the environment. Raises UserError naming the
    variable.
    """
    if not model.key_variable:
        return "none"  # the openai package wants one; a local server ignores it
    key = bare_key(os.environ.get(model.key_variable, ""))
    if not key and not model.key_needed:
        return "none"
    if not key:
        raise UserError(
            f"{model.key_variable} is not set: {model.asked} is served by {model.provider}, whose "
            "key belongs there (environment or .env)"
        )
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"{model.key_variable} holds characters that no key has; copy it again")
    return key


def bare_key(value: str) -> str:
    """A key without what is copied along with one: blanks, quotes, `Bearer `."""
    return re.sub(r"^Bearer\s+", "", value.strip().strip("\"'").strip(), flags=re.I).strip("\"' ")


def read_answer(data: object, model: Model) -> Answer:
    """Read an answer out of the API's JSON, whatever its shape. Raises Passing for a faulty one."""
    if isinstance(data, str):  # the package parses only what is declared as JSON
        with suppress(ValueError, RecursionError):
            data = json.loads(data)
    if not isinstance(data, dict):
        raise Passing("the body is not a JSON object (a gateway's page?)")
    error = data.get("error")
    if isinstance(error, dict) and declares_policy(error):
        return blocked_by_policy(error)
    if error:
        raise Passing(f"status 200 with an error: {shown(json.dumps(error), model)}")
    returned, provider = (data.get(name) for name in ("model", "provider"))
    blank = tokens_in(data.get("usage"))._replace(
        model=returned if isinstance(returned, str) else "",
        provider=provider if isinstance(provider, str) else "",
    )
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    choice = choice if isinstance(choice, dict) else {}
    finish_reason = choice.get("finish_reason")
    finish_reason = finish_reason if isinstance(finish_reason, str) else ""
    if choice.get("error") or finish_reason == "error":  # a gateway whose provider failed half-way
        said = shown(json.dumps(choice.get("error")), model)
        raise Passing(f"status 200 with an error in the answer: {said}")
    told = finish_reason.lower() not in ("", "stop", "null")
    message = choice.get("message")
    if message is None and told:  # a finish reason can say it all
        message = {}
    if not isinstance(message, dict):
        if model.settings.empty_is_refusal and isinstance(choices, list | None):
            return blank._replace(finish_reason="no_candidate", api_category=category_in(data))
        raise Passing("an answer without choices")
    content = message.get("content")
    text = _text(content)
    refusal = message.get("refusal") or _parts(content, "refusal")
    if not isinstance(refusal, str) or refusal.strip().lower() in NO_REFUSAL:
        refusal = ""
    if model.settings.empty_is_refusal and content is None and not told:
        finish_reason = "no_candidate"
    answer = blank._replace(text=text, finish_reason=finish_reason, refusal=refusal)
    if refusal or api_refusal_signal(finish_reason):
        found = category_in(choice, finish_reason) or category_in(data)
        answer = answer._replace(api_category=found)
    return answer


def tokens_in(usage: object) -> Answer:
    """An answer with nothing but its tokens, as they are billed.

    Where the total is more than prompt and completion, the rest is thinking, billed as output:
    Gemini's and xAI's compatible endpoints count it nowhere else.
    """
    usage = usage if isinstance(usage, dict) else {}
    prompt, completion, total = (
        _count(usage.get(f"{name}_tokens")) for name in ("prompt", "completion", "total")
    )
    inside, outside = (usage.get(f"{name}_tokens_details") for name in ("prompt", "completion"))
    cached = _count(inside.get("cached_tokens")) if isinstance(inside, dict) else 0
    thinking = _count(outside.get("reasoning_tokens")) if isinstance(outside, dict) else 0
    hidden = max(0, total - prompt - completion) if prompt else 0
    return Answer(
        "",
        prompt_tokens=prompt,
        completion_tokens=completion + hidden,
        cached_tokens=cached or _count(usage.get("prompt_cache_hit_tokens")),  # DeepSeek
        reasoning_tokens=max(thinking, hidden),
    )


def blocked_by_policy(error: dict[str, Any]) -> Answer:
    """The answer that an error object stands for: blocked by the provider's content policy."""
    return Answer("", "content_filter", api_category=category_in(error))


def without_key(answer: Answer, model: Model) -> Answer:
    """The answer without the key, should an endpoint echo the header: no file of ours holds one."""
    texts: dict[str, Any] = {
        name: masked(value, model)
        for name, value in answer._asdict().items()
        if isinstance(value, str)
    }
    return answer._replace(**texts)


def masked(text: str, model: Model, shortest: int = SHORTEST_KEY) -> str:
    """The text without the key of the model's endpoint, should it hold so many characters."""
    value = os.environ.get(model.key_variable, "").strip()
    for key in (value, bare_key(value)):
        text = text.replace(key, "[key]") if len(key) >= shortest else text
    return text


def _text(content: object) -> str:
    """The text of a message's content: a string, nothing, or a list of parts."""
    return content if isinstance(content, str) else _parts(content, "text")


def _parts(content: object, kind: str) -> str:
    """The parts of one kind (text, refusal) in a content that is a list of parts."""
    parts = content if isinstance(content, list) else []
    texts = [
        part.get(kind) for part in parts if isinstance(part, dict) and part.get("type") == kind
    ]
    return "".join(text for text in texts if isinstance(text, str))


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 10**12 else 0


def is_policy_block(error: "APIStatusError") -> bool:
    """Whether an error status says that the provider's content policy blocked the request."""
    if error.status_code not in (400, 403, 422):
        return False
    return declares_policy(said_in(error)) or bool(POLICY_MESSAGE.search(message_of(error)))


def declares_policy(error: dict[str, Any]) -> bool:
    """Whether an API's error object says that a content policy blocked the request."""
    codes = [error.get("code"), error.get("type")]
    for name in ("innererror", "inner_error"):
        inner = error.get(name)
        codes.append(inner.get("code") if isinstance(inner, dict) else None)
    metadata = error.get("metadata")  # OpenRouter's moderation: a 403 with what was flagged
    return any(code in POLICY_CODES for code in codes if isinstance(code, str)) or (
        isinstance(metadata, dict) and "flagged_input" in metadata
    )


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


def fault_of(error: "APIStatusError", model: Model) -> Passing | Limited | BadRequest | Fatal:
    """What an error status means for the request and for the run."""
    status = error.status_code
    said = f"{status}: {shown(message_of(error), model)}"
    spent = status in (400, 429) and SPENT_MESSAGE.search(message_of(error))
    if "insufficient_quota" in (error.code, error.type) or status == 402 or spent:
        return Fatal(f"{model.provider} says that the account has no quota left ({said})")
    if status in (401, 403):
        refused = f"{model.provider} refused the key in {model.key_variable or '--api_key_env'}"
        if status == 401:
            return Fatal(f"{refused} ({said})")
        return TurnedAway(f"{refused}, or this prompt ({said})")
    if status == 404:
        return Fatal(not_found(error, model, said))
    if status == 429 or (status in OVERLOADED and "retry-after" in error.response.headers):
        return Limited(said, retry_after(error.response.headers))
    if status in (408, 409) or status >= 500:
        return Passing(said)
    return BadRequest(said)


def message_of(error: "APIStatusError") -> str:
    """What the server said, without the package's preamble."""
    message = said_in(error).get("message")
    return message if isinstance(message, str) else error.message


def rejected_parameter(error: "APIStatusError", sent: dict[str, Any]) -> str:
    """The sent sampling parameter that a 400 says this model does not take; "" if it names
    none.
    """
    message = message_of(error)
    if OUT_OF_RANGE.search(message):
        return ""
    for name in ADAPTABLE:
        if name not in sent or error.param not in (None, "", name):
            continue
        near = rf"(?:{REJECTION}).{{0,16}}\b{name}\b|\b{name}\b.{{0,16}}(?:{REJECTION})"
        told = error.param == name and re.search(REJECTION, f"{error.code} {message}", re.I)
        if told or re.search(near, message, re.I):
            return name
    return ""


def not_found(error: "APIStatusError", model: Model, said: str) -> str:
    """What to do about a 404, in one line: it is the model's or the address's, as its text says."""
    about = f"{error.code} {message_of(error)} {error.body}"
    known = "model" in about.lower() or model.id in about
    if not said_in(error) or (NO_SUCH_PATH.search(about) and not known):
        variable = f"{model.provider.upper()}_BASE_URL" * (model.provider in PROVIDERS)
        return (
            f"{model.endpoint} is not the address of an API ({said}): many end in /v1; look at "
            f"{' or '.join(filter(None, ['--base_url', variable]))}"
        )
    line = f"{model.endpoint} does not know the model {model.id!r} ({said}); name another"
    if model.asked in ALIASES:
        line += f", or point the alias elsewhere: {alias_variable(model.asked)}=provider/model-id"
    return line


def no_provider(model: Model, sent: dict[str, Any], supported: Sequence[set[str]]) -> str:
    """What to leave out where none of OpenRouter's providers takes all of a request, in one line.

    supported: what each of them takes; [] where that is not known.
    """
    aside = ("model", "messages", "provider")
    names = [name for name in sent if name not in aside]
    lacking = [
        [name for name in names if not (name in one or LIKE.get(name) in one)] for one in supported
    ]
    lacking = [those for those in lacking if those]
    least = min(lacking, key=len, default=names)
    leave = ", ".join(map(one_line, least))
    what = f"leave out {leave}" if lacking else f"leave out one of {leave}"
    return (
        f"no provider that {model.endpoint} has for {model.id} takes all that is asked of it: "
        f"{what} (--temperature none leaves out the temperature), or let it be dropped: "
        """--extra_body '{"provider": {"require_parameters": false}}'"""
    )


def retry_after(headers: Any) -> float | None:
    """Seconds to wait as a response asks (retry-after-ms, or retry-after in seconds or as a
    date).
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    try:
        date = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def shown(text: str, model: Model) -> str:
    """A server's text fit for a message, see `one_line`, without the key."""
    return one_line(masked(text, model, shortest=1))
