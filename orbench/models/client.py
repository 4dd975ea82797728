"""One request through the openai package: what is an answer, what a refusal, what a fault.

Its retries are off: `orbench.asking.live` retries. Answers are read as plain data, in half the CPU
time of `chat.completions.create`; a malformed one cannot raise from inside the package.
"""

import asyncio
import json
import re
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orbench.base.messages import UserError, one_line
from orbench.base.words import Json
from orbench.models.adaptation import Adaptation
from orbench.models.errors import (
    MALFORMED,
    ErrorReply,
    TimedOut,
    TransientError,
    cleaned,
    error_in,
    fault_of,
    key_of,
    reply_of,
    transient_errors,
)
from orbench.models.providers import IN_PROCESS, MESSAGES_API, Model
from orbench.models.requests import PROTOCOLS, Answer, Request
from orbench.refusals.api import (
    NO_REFUSAL,
    api_refusal_signal,
    category_in,
    fallback_mark,
    finish_meaning,
    refusal_in_body,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

# The system_fingerprint of Ollama, and of llama.cpp (a build's number).
QUEUES = re.compile(r"fp_ollama|b\d+-")
MOST_TOKENS = 10**9  # of a plausible count


@dataclass
class Client:
    """Sends the requests of a run: one openai client per endpoint, opened when needed."""

    timeout: float  # seconds for an attempt
    adaptation: Adaptation
    stage: str = ""  # whose requests these are, for `scripted`
    sent_again: int = 0  # requests, without a rejected parameter
    clients: dict[tuple[str, str], "AsyncOpenAI"] = field(default_factory=dict)
    queueing: set[Model] = field(default_factory=set)  # on servers that have slots and a queue
    to_close: AsyncExitStack = field(default_factory=AsyncExitStack)  # and servers of this run

    async def send(self, request: Request) -> Answer:
        """Send one request once. Raises TransientError, BadRequest or Fatal."""
        import openai

        model = request.model
        path = PROTOCOLS[request.protocol].path
        client = await self.open(model)
        values = self.adaptation.fit(request)
        body = request.body(values)
        dropped = self.adaptation.dropped(model)
        if model.provider == "scripted":
            body["sample"] = request.sample  # its texts follow from the request alone
        try:
            with transient_errors(model):
                async with asyncio.timeout(self.timeout):
                    content = await client.post(
                        path, body=body, cast_to=bytes, options=options_of(model)
                    )
                data = json.loads(content)
        except TimeoutError:
            raise TimedOut(f"no answer in {self.timeout:g} s") from None
        except openai.APIStatusError as error:
            headers = error.response.headers
            sent = str(request.messages)
            reply = reply_of(error.status_code, error.body, model, headers, sent)
            if reply.refused is None and self.adaptation.learns(model, reply, values):
                self.sent_again += 1
                return await self.send(request)
            return answer_to_error(reply, model)
        answer = read_answer(data, model)
        self.adaptation.answered.add(model)
        if QUEUES.match(str(data.get("system_fingerprint"))):
            self.queueing.add(model)
        return answer._replace(dropped=dropped)

    async def close(self) -> None:
        """Close the connections."""
        await self.to_close.aclose()

    async def open(self, model: Model) -> "AsyncOpenAI":
        """Return the client of a model's endpoint. Raises UserError if its key is not set."""
        endpoint = (model.base_url, model.key_variable)
        if endpoint not in self.clients:
            base_url = model.base_url
            if base_url in IN_PROCESS:
                from orbench.models import local

                base_url, close = await local.serve(base_url, self.stage)
                self.to_close.callback(close)
            client = connect(model, base_url, self.timeout)
            self.clients[endpoint] = await self.to_close.enter_async_context(client)
        return self.clients[endpoint]


def options_of(model: Model) -> Any:
    """Return the options of a call: Anthropic takes the key in a header of its own."""
    import openai

    if model.protocol != MESSAGES_API:
        return {}
    key = {"Authorization": openai.omit, "x-api-key": key_of(model)}
    return {"headers": {**key, "anthropic-version": "2023-06-01"}}


def connect(model: Model, base_url: str, timeout: float, retries: int = 0) -> "AsyncOpenAI":
    """Return a client for an endpoint. Raises UserError for an unusable key or environment."""
    key = key_of(model)
    if model.key_needed and not key:
        raise UserError(
            f"{model.key_variable} is not set: put the key for {model.asked} at {model.address} "
            "into the environment or .env"
        )
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"{model.key_variable} holds invalid characters; copy the key again")
    import httpx2
    import openai

    try:  # without redirects, which turn a POST into a GET and lose the request
        http_client = openai.DefaultAioHttpClient(follow_redirects=False)
    except OSError as error:
        why = one_line(str(error))
        raise UserError(f"check SSL_CERT_FILE and SSL_CERT_DIR: {why}") from None
    except (ValueError, httpx2.InvalidURL):  # what it says can hold a part of a password
        example = "a URL such as http://host:3128"
        raise UserError(f"HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not {example}") from None
    return openai.AsyncOpenAI(
        api_key=key or "none",  # the package requires one
        base_url=base_url,
        max_retries=retries,
        timeout=timeout,
        http_client=http_client,
    )


def read_answer(data: Any, model: Model) -> Answer:
    """Return the answer in the API's JSON. Raises TransientError."""
    try:
        chat = PROTOCOLS[model.protocol].read(cleaned(data, key_of(model)))
        return _answer_in(chat, model)
    except MALFORMED as error:
        raise TransientError("the body is not an API answer (a gateway's page?)") from error


def _answer_in(data: Any, model: Model) -> Answer:
    """Return the answer in a chat completion or a raw one. Other data raises what it may."""
    choice = (data.get("choices") or [{}])[0]
    message = choice.get("message") or {}
    content = message.get("content", choice.get("text"))
    text = content if isinstance(content, str) else parts(content, "text")
    refusal = message.get("refusal") or parts(content, "refusal")
    if not isinstance(refusal, str) or refusal.strip().lower() in NO_REFUSAL:
        refusal = ""
    finish_reason, category = _finish(data, choice, content, text, model)
    if not category and (refusal or api_refusal_signal(finish_reason)):
        category = category_in(choice, finish_reason) or category_in(data)
    calls = message.get("tool_calls") or ()
    return Answer(
        text,
        finish_reason=finish_reason,
        refusal=refusal,
        api_category=category,
        tool_calls=[call for call in calls if isinstance(call, dict)] or (),
        model=fallback_mark(data) + str(data.get("model") or ""),
        provider=str(data.get("provider") or ""),
        **_tokens_in(data.get("usage")),
    )


def _finish(data: Any, choice: Any, content: Any, text: str, model: Model) -> tuple[str, str]:
    """Return the finish reason, and the category of a refusal if an error or a mark names one.

    Raises TransientError for any other error, a reason that is a fault, and a body without an
    answer.
    """
    finish_reason = str(choice.get("finish_reason") or "")
    native = str(choice.get("native_finish_reason") or "")  # of the provider behind a gateway
    if api_refusal_signal(native):
        return native, ""
    if finish_meaning(native)[0] == "stopped":  # whatever the gateway calls it
        finish_reason = native
    # In a choice: a gateway whose provider failed half-way.
    error = data.get("error") or choice.get("error")
    refusal = refusal_in_body(data, text)
    if error:
        refusal = ErrorReply(200, error_in(error)).refused
    if refusal is not None:
        return refusal
    meaning, _ = finish_meaning(finish_reason)
    if error or meaning == "fault":
        what = one_line(json.dumps(error or finish_reason))
        raise TransientError(f"status 200 with an error: {what}")
    if text or meaning != "answer":
        return finish_reason, ""
    message = choice.get("message") or {}
    if message.get("tool_calls"):
        return "tool_calls", ""
    if content is None:
        if model.settings.empty_is_refusal:
            return "no_candidate", ""
        if not message:
            raise TransientError("an answer without choices")
    return finish_reason, ""


def parts(content: Any, kind: str) -> str:
    """Return the parts of one kind (text, refusal) in a content that is a list of parts.

    What follows something else begins a new line, as after a search for which the model paused.
    """
    if not isinstance(content, list):
        return ""
    kinds = (kind, f"output_{kind}")  # the second one in OpenAI's responses
    joined = ""
    gap = ""
    for part in content:
        name = part.get("type")
        if name in kinds:
            joined += gap + part[kind]
            gap = ""
        elif joined and name != "reference":  # Mistral's citations stand inside a sentence
            gap = "\n"
    return joined


def _tokens_in(usage: Any) -> Json:
    """Return the tokens of an answer as they are billed, under the names of `Answer`.

    The names are those of chat completions, responses and messages, and DeepSeek's for its cache.
    Anthropic's input_tokens were neither read from a cache nor written to one. Gemini's and xAI's
    endpoints count thinking nowhere but in the total, Mistral the tokens of audio.
    """
    n = Counter[str]()
    objects = [usage]
    for counts in objects:  # which grow by the details
        if not isinstance(counts, dict):
            continue
        for name, value in counts.items():
            if name.endswith("_tokens_details"):  # others count searches and what they read
                objects.append(value)
            elif type(value) is int and 0 <= value <= MOST_TOKENS:  # else it is odd
                n.setdefault(name, value)  # a total stands before its details
    sent = n["input_tokens"] + n["cache_creation_input_tokens"] + n["cache_read_input_tokens"]
    prompt = n["prompt_tokens"] or sent
    completion = n["completion_tokens"] or n["output_tokens"]
    hidden = 0
    if prompt:
        hidden = max(0, n["total_tokens"] - prompt - completion)
    if n["prompt_audio_seconds"]:
        prompt += hidden
        hidden = 0
    cached = n["cached_tokens"] or n["prompt_cache_hit_tokens"] or n["cache_read_input_tokens"]
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion + hidden,
        "cached_tokens": cached,
        "reasoning_tokens": max(n["reasoning_tokens"], n["thinking_tokens"], hidden),
    }


def answer_to_error(reply: ErrorReply, model: Model) -> Answer:
    """Return the answer that a refusal is. Raises all other faults."""
    refusal = reply.refused
    if refusal is None:
        raise fault_of(reply, model)
    reason, category = refusal
    return Answer("", reason, api_category=category)
