"""One request through the openai package: what is an answer, what a refusal, what a fault.

Its retries are off: `orbench.asking.live` retries. Answers are read as plain data, in half the CPU
time of `chat.completions.create`; a malformed one cannot raise from inside the package.
"""

import gc
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from orbench.asking import faults, local
from orbench.asking.adaptation import Adaptation
from orbench.asking.models import IN_PROCESS, Model
from orbench.asking.protocols import PROTOCOLS, Protocol
from orbench.asking.requests import Answer, Request
from orbench.base.messages import UserError, one_line
from orbench.refusals.api import NO_REFUSAL, api_refusal_signal, category_in, declares_policy

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class Client:
    """Sends the requests of a run: one openai client per endpoint, opened when needed."""

    def __init__(self, timeout: float, adaptation: Adaptation, stage: str = "") -> None:
        """timeout: seconds for each read. stage: whose requests these are, for `scripted`."""
        self._timeout = timeout
        self._adaptation = adaptation
        self._stage = stage
        self._clients: dict[tuple[str, str], AsyncOpenAI] = {}
        self._close = list[Callable[[], object]]()  # servers of this run
        self.sent_again = 0  # requests, without a rejected parameter

    async def send(self, request: Request) -> Answer:
        """Send one request once. Raises Passing, Limited, BadRequest or Fatal."""
        import openai

        model = request.model
        protocol = PROTOCOLS[request.protocol]
        client = await self.open(model)
        values = self._adaptation.fit(request)
        body = request.body(values)
        dropped = self._adaptation.dropped(model)
        if model.scripted:
            body["sample"] = request.sample  # its texts follow from the request alone
        options: Any = {"headers": headers_of(protocol, client.api_key)}
        try:
            with faults.passing_faults(model):
                data = await client.post(protocol.path, body=body, cast_to=object, options=options)
        except openai.APIStatusError as error:
            said = faults.error_in(error.body)
            reply = faults.ErrorReply(error.status_code, said, error.response.headers)
            if not reply.is_policy_block and self._adaptation.learns(model, reply, values):
                self.sent_again += 1
                return await self.send(request)
            return answer_to_error(reply, model)
        answer = read_answer(data, protocol, model)
        self._adaptation.answered.add(model)
        return answer._replace(dropped=dropped)

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            await client.close()
        for close in self._close:
            close()

    async def open(self, model: Model) -> "AsyncOpenAI":
        """The openai client of a model's endpoint. Raises UserError if its key is not set."""
        endpoint = (model.base_url, model.key_variable)
        if endpoint not in self._clients:
            base_url = model.base_url
            if base_url in IN_PROCESS:
                base_url, close = await local.start(base_url, self._stage)
                self._close.append(close)
            self._clients[endpoint] = connect(model, base_url, self._timeout)
        return self._clients[endpoint]


def headers_of(protocol: Protocol, key: str) -> dict[str, Any]:
    """The headers that a protocol needs beside the package's own."""
    if not protocol.key_header:
        return dict(protocol.headers)
    import openai

    return {"Authorization": openai.omit, protocol.key_header: key, **protocol.headers}


def connect(model: Model, base_url: str, timeout: float, retries: int = 0) -> "AsyncOpenAI":
    """An openai client for an endpoint. Raises UserError for an unusable key or environment."""
    key = _key_of(model)
    # Without garbage collection the package loads a fifth faster.
    gc.disable()
    import httpx2
    import openai

    gc.freeze()
    gc.enable()
    try:  # without redirects, which turn a POST into a GET and lose the request
        http_client = openai.DefaultAioHttpClient(follow_redirects=False)
    except (OSError, ValueError, httpx2.InvalidURL) as error:
        why = one_line(str(error))
        raise UserError(f"check SSL_CERT_FILE, SSL_CERT_DIR and proxy variables: {why}") from None
    return openai.AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        max_retries=retries,
        timeout=timeout,
        http_client=http_client,
    )


def _key_of(model: Model) -> str:
    key = faults.bare_key(os.environ.get(model.key_variable, "")) if model.key_variable else ""
    if not key and model.key_variable and model.key_needed:
        raise UserError(
            f"{model.key_variable} is not set: put the key for {model.asked} at {model.address} "
            "into the environment or .env"
        )
    if not (key.isascii() and (key.isprintable() or not key)):
        raise UserError(f"{model.key_variable} holds invalid characters; copy the key again")
    return key or "none"  # the openai package requires one


def read_answer(data: Any, protocol: Protocol, model: Model) -> Answer:
    """Read an answer out of the API's JSON, without an echoed key. Raises Passing."""
    try:
        answer = _answer_in(protocol.read(data), model)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise faults.Passing("the body is not an API answer (a gateway's page?)") from error
    texts = [(name, one) for name, one in answer._asdict().items() if one and isinstance(one, str)]
    fields: dict[str, Any] = {name: faults.masked(one, model) for name, one in texts}
    return answer._replace(**fields)


def _answer_in(data: Any, model: Model) -> Answer:
    """The answer in a chat completion. Data of another shape raises what Python raises for it."""
    error = data.get("error")
    choices = data.get("choices")
    if isinstance(error, dict) and declares_policy(error):
        return _blocked_by_policy(error)
    choice = choices[0] if choices else {}
    finish_reason = str(choice.get("finish_reason") or "")
    # In a choice: a gateway whose provider failed half-way.
    if error := error or choice.get("error") or finish_reason == "error":
        raise faults.Passing(f"status 200 with an error: {faults.shown(json.dumps(error), model)}")
    told = finish_reason.lower() not in ("", "stop", "null")  # a finish reason can say it all
    message = choice.get("message")
    content = message.get("content") if message else None
    if content is None and not told and model.settings.empty_is_refusal:
        finish_reason = "no_candidate"
    elif message is None and not told:
        raise faults.Passing("an answer without choices")
    refusal = (message or {}).get("refusal") or _parts(content, "refusal")
    if not isinstance(refusal, str) or refusal.strip().lower() in NO_REFUSAL:
        refusal = ""
    refused = refusal or api_refusal_signal(finish_reason)
    return _tokens_in(data.get("usage") or {})._replace(
        text=content if isinstance(content, str) else _parts(content, "text"),
        finish_reason=finish_reason,
        refusal=refusal,
        api_category=category_in(choice, finish_reason) or category_in(data) if refused else "",
        model=str(data.get("model") or ""),
        provider=str(data.get("provider") or ""),
    )


def _parts(content: Any, kind: str) -> str:
    """The parts of one kind (text, refusal) in a content that is a list of parts."""
    parts = content if isinstance(content, list) else []
    kinds = (kind, f"output_{kind}")  # the second one in OpenAI's responses
    return "".join(part[kind] for part in parts if part.get("type") in kinds)


def _tokens_in(usage: dict[str, Any]) -> Answer:
    """An answer with nothing but its tokens, as they are billed.

    Gemini's and xAI's endpoints count thinking nowhere but in the total.
    """
    prompt, completion, total = (
        usage.get(f"{name}_tokens") or 0 for name in ("prompt", "completion", "total")
    )
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    thinking = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    hidden = max(0, total - prompt - completion) if prompt else 0
    return Answer(
        "",
        prompt_tokens=prompt,
        completion_tokens=completion + hidden,
        cached_tokens=cached or usage.get("prompt_cache_hit_tokens") or 0,  # DeepSeek's name
        reasoning_tokens=max(thinking, hidden),
    )


def _blocked_by_policy(error: dict[str, Any]) -> Answer:
    return Answer("", "content_filter", api_category=category_in(error))


def answer_to_error(reply: faults.ErrorReply, model: Model) -> Answer:
    """What an error status stands for: a block by policy is an answer. Raises all other faults."""
    if reply.is_policy_block:
        return _blocked_by_policy(reply.error)
    raise faults.fault_of(reply, model)
