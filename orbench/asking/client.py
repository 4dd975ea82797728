"""One request through the openai package: what is an answer, what a refusal, what a fault.

Nothing else in the suite knows that package. Its retries are off: `orbench.asking.live` retries.
Answers are read as plain data (`client.post(..., cast_to=object)`): that takes half the CPU time of
`chat.completions.create`, and a malformed answer cannot raise from inside the package.
"""

import gc
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from orbench.asking import local
from orbench.asking.adaptation import Adaptation, rejected_parameter
from orbench.asking.faults import (
    Passing,
    bare_key,
    fault_of,
    is_policy_block,
    masked,
    message_of,
    said_in,
    shown,
)
from orbench.asking.models import IN_PROCESS, Model
from orbench.asking.protocols import PROTOCOLS, Protocol
from orbench.asking.requests import Answer, Request
from orbench.base.messages import UserError, one_line
from orbench.refusals.api import NO_REFUSAL, api_refusal_signal, category_in, declares_policy

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI


class Client:
    """Sends the requests of a run: one openai client per endpoint, opened when needed.

    sent_again: requests sent once more without a rejected parameter.
    """

    def __init__(self, timeout: float, adaptation: Adaptation, stage: str = "") -> None:
        """timeout: seconds for each read. stage: whose requests these are, for `scripted`."""
        self._timeout, self._adaptation, self._stage = timeout, adaptation, stage
        self._clients: dict[tuple[str, str], AsyncOpenAI] = {}
        self._answered: set[tuple[str, str]] = set()  # (address, model id)
        self._servers: list[local.Server] = []
        self.sent_again = 0

    async def send(self, request: Request) -> Answer:
        """Send one request once. Raises Passing, Limited, BadRequest or Fatal."""
        import aiohttp
        import openai

        model, protocol = request.model, PROTOCOLS[request.protocol]
        client = await self.open(model)
        body, dropped = self._adaptation.fit(request), self._adaptation.dropped(model)
        if model.scripted:
            body["sample"] = request.sample  # its texts follow from the request alone
        options: Any = {"headers": headers_of(protocol, client.api_key)}
        try:
            data = await client.post(protocol.path, body=body, cast_to=object, options=options)
        except openai.APIStatusError as error:
            return await self._after_error(request, body, error)
        except openai.APIConnectionError as error:  # timeouts are among these
            cause = str(error.__cause__ or "") or "timeout"
            raise Passing(f"no answer: {shown(cause, model)}") from error
        except aiohttp.ClientError as error:  # openai lets an answer that is no HTTP through
            raise Passing(f"no HTTP answer: {shown(str(error), model)}") from error
        except (ValueError, RecursionError) as error:  # JSON and UTF-8 errors among them
            raise Passing("the body is not JSON, or was cut off") from error
        answer = read_answer(protocol.read(data), model)
        # From here on a 400 about an odd prompt can no longer change how the others are asked.
        self._answered.add((model.address, model.id))
        return without_key(answer, model)._replace(dropped=dropped)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.close()
        for server in self._servers:
            await server.close()

    async def open(self, model: Model) -> "AsyncOpenAI":
        """The openai client of a model's endpoint. Raises UserError if its key is not set."""
        endpoint = (model.base_url, model.key_variable)
        if endpoint not in self._clients:
            base_url = model.base_url
            if model.base_url in IN_PROCESS:
                self._servers.append(await local.start(model.base_url, self._stage))
                base_url = self._servers[-1].base_url
            self._clients[endpoint] = connect(model, base_url, self._timeout)
        return self._clients[endpoint]

    async def _after_error(
        self, request: Request, sent: dict[str, Any], error: "APIStatusError"
    ) -> Answer:
        model = request.model
        if is_policy_block(error):
            return blocked_by_policy(said_in(error))
        if error.status_code == 400 and (
            name := rejected_parameter(error, message_of(error), sent)
        ):
            # Known already: this request was sent before another one's 400 revealed it.
            late = self._adaptation.knows(model, name)
            if late or (model.address, model.id) not in self._answered:
                self._adaptation.adapt(model, name)
                self.sent_again += 1
                return await self.send(request)
        raise fault_of(error, model)


def headers_of(protocol: Protocol, key: str) -> dict[str, Any]:
    """The headers that a protocol needs beside the package's own."""
    if not protocol.key_header:
        return dict(protocol.headers)
    import openai

    return {"Authorization": openai.omit, protocol.key_header: key, **protocol.headers}


def connect(model: Model, base_url: str, timeout: float) -> "AsyncOpenAI":
    """An openai client for an endpoint. Raises UserError for an unusable key or environment."""
    key = key_of(model)
    # The package makes thousands of types that live to the end: not to look for garbage among them
    # saves a tenth of its loading time, and later some of each collection.
    gc.disable()
    try:
        import httpx2
        import openai
    finally:
        gc.freeze()
        gc.enable()
    try:  # without redirects, which turn a POST into a GET and lose the request
        http_client = openai.DefaultAioHttpClient(follow_redirects=False)
    except (OSError, ValueError, httpx2.InvalidURL) as error:
        raise UserError(
            f"no connection can be set up: {one_line(str(error))}; check the environment's "
            "SSL_CERT_FILE, SSL_CERT_DIR and proxy variables"
        ) from None
    return openai.AsyncOpenAI(
        api_key=key, base_url=base_url, max_retries=0, timeout=timeout, http_client=http_client
    )


def key_of(model: Model) -> str:
    """The key for a model's endpoint. Raises UserError naming the variable that is not set."""
    key = bare_key(os.environ.get(model.key_variable, "")) if model.key_variable else ""
    if not key and model.key_variable and model.key_needed:
        raise UserError(
            f"{model.key_variable} is not set: {model.asked} is served by {model.provider}, whose "
            "key belongs there (environment or .env)"
        )
    if not (key.isascii() and (key.isprintable() or not key)):
        raise UserError(f"{model.key_variable} holds characters that no key has; copy it again")
    return key or "none"  # the openai package requires one


# -- reading an answer -------------------------------------------------------------------------


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
    blank = tokens_in(data.get("usage"))._replace(
        model=_text(data.get("model")), provider=_text(data.get("provider"))
    )
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    choice = first if isinstance(first, dict) else {}
    finish_reason = _text(choice.get("finish_reason"))
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
    if model.settings.empty_is_refusal and message.get("content") is None and not told:
        finish_reason = "no_candidate"
    return _with_message(blank, message, finish_reason, category_in(choice, finish_reason), data)


def _with_message(
    blank: Answer, message: dict[str, Any], finish_reason: str, category: str, data: Any
) -> Answer:
    """The answer with what its message says."""
    content = message.get("content")
    refusal = message.get("refusal") or _parts(content, "refusal")
    if not isinstance(refusal, str) or refusal.strip().lower() in NO_REFUSAL:
        refusal = ""
    if not (refusal or api_refusal_signal(finish_reason)):
        category = ""
    elif not category:
        category = category_in(data)
    text = content if isinstance(content, str) else _parts(content, "text")
    return blank._replace(
        text=text, finish_reason=finish_reason, refusal=refusal, api_category=category
    )


def tokens_in(usage: object) -> Answer:
    """An answer with nothing but its tokens, as they are billed.

    If the total exceeds prompt and completion, the rest is thinking, billed as output: Gemini's and
    xAI's compatible endpoints count it nowhere else.
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
    """The answer without the key, if an endpoint echoes it."""
    texts: dict[str, Any] = {
        name: masked(value, model)
        for name, value in answer._asdict().items()
        if isinstance(value, str)
    }
    return answer._replace(**texts)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parts(content: object, kind: str) -> str:
    """The parts of one kind (text, refusal) in a content that is a list of parts."""
    parts = content if isinstance(content, list) else []
    texts = [
        part.get(kind) for part in parts if isinstance(part, dict) and part.get("type") == kind
    ]
    return "".join(text for text in texts if isinstance(text, str))


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 10**12 else 0
