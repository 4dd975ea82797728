"""A request, its body and its answer in each protocol, as all of the suite sees them.

A protocol is a path and two pure functions: the JSON body of a request, and its answer in the shape
of a chat completion, which `orbench.models.client` reads. Parameters have a chat's names here
(`max_tokens`, `reasoning_effort`, `response_format`); unknown ones go out as they are
(`--extra_body`). An answer of another shape raises what Python raises for it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from orbench.base.prompts import Turn, Turns, json_in
from orbench.base.words import Json, Texts, Words
from orbench.models.providers import CHAT, COMPLETIONS, MESSAGES_API, RESPONSES, Model
from orbench.refusals.api import NOT_WHOLE, api_refusal_signal, finish_meaning

Parameters = Json  # temperature, max_tokens, ... as the user wants them
Messages = list[Turn]


def message(role: str, text: str) -> Turn:
    """Return a message."""
    return {"role": role, "content": text}


def user(text: str) -> Turn:
    """Return a user message."""
    return message("user", text)


# -- protocols -----------------------------------------------------------------------------------


class Protocol(NamedTuple):
    """One way to ask."""

    path: str  # behind the endpoint's base URL
    body: Callable[..., Json]  # of model id, messages, parameters
    # the API's JSON -> the same as a chat completion, but for its usage
    read: Callable[[Any], Any] = copy
    tool: Callable[..., Json] = copy  # as a chat offers it -> in this protocol's form
    lacks: Words = ()  # parameters that it has no place for


def _put(values: Json, name: str, member: str, value: Any) -> None:
    """Put what is not None into an object among the values."""
    if value is not None:
        values[name] = {**values.get(name, {}), member: value}


def _chat_body(model: str, messages: Messages, parameters: Parameters) -> Json:
    """Return the body for OpenAI's chat, which most servers speak."""
    return {"model": model, "messages": messages, **parameters}


def _completions_body(model: str, messages: Messages, parameters: Parameters) -> Json:
    """Return the body for guard models trained on a raw text: no template is put around it."""
    (message,) = messages
    return {"model": model, "prompt": message["content"], **parameters}


def _responses_body(model: str, messages: Messages, parameters: Parameters) -> Json:
    """Return the body for OpenAI's responses: ResponseCreateParams in openai/types/responses."""
    values = dict(parameters)
    if "max_tokens" in values:
        values["max_output_tokens"] = values.pop("max_tokens")
    _put(values, "reasoning", "effort", values.pop("reasoning_effort", None))
    form = values.pop("response_format", None)
    if form:  # the same schema, one level up
        _put(values, "text", "format", {"type": form["type"], **form["json_schema"]})
    # A response is kept at OpenAI unless one says otherwise, a chat is not.
    return {"model": model, "input": [*_items(messages)], "store": False, **values}


def _items(turns: Messages) -> Iterator[Json]:
    """Yield turns as items of responses: ResponseInputItemParam in openai/types/responses."""
    for turn in turns:
        match turn:
            case {"tool_call_id": id_, "content": text}:
                yield {"type": "function_call_output", "call_id": id_, "output": text}
            case {"tool_calls": calls}:
                if turn.get("content"):
                    yield message("assistant", turn["content"])
                for call in calls:
                    yield {"type": "function_call", "call_id": call["id"], **call["function"]}
            case _:
                yield turn


def _responses_tool(tool: Json) -> Json:
    """Return a tool for responses, where it is strict unless one says otherwise."""
    return {"type": "function", "strict": False, **tool["function"]}


def _responses_read(data: Any) -> Any:
    """Return the messages' parts in `output` as the content; reasoning items have none there."""
    if str(data.get("type")).startswith("response."):  # an event around it
        data = data["response"]
    items = data.get("output") or ()
    parts = []
    for item in items:
        parts.append(item)  # so that each message begins a new line
        # What a model says before its answer has the phase `commentary`.
        if item["type"] == "message" and item.get("phase") != "commentary":
            parts += item.get("content") or ()
    calls = [item for item in items if item["type"].endswith("_call")]
    details = data.get("incomplete_details") or {}
    why = str(details.get("reason") or data.get("status", ""))
    message = {"content": parts, "tool_calls": calls}
    choice = {"finish_reason": why, "message": message}
    return {**data, "choices": [choice]}


def _messages_body(model: str, messages: Messages, parameters: Parameters) -> Json:
    """Return the body for Anthropic's messages.

    platform.claude.com/docs/en/api/messages, .../build-with-claude/effort,
    .../agents-and-tools/tool-use. System messages go into a field of their own; effort and schema
    into `output_config`.
    """
    values = dict(parameters)
    _put(values, "output_config", "effort", values.pop("reasoning_effort", None))
    form = values.pop("response_format", None)
    if form:
        schema = form["json_schema"]["schema"]
        _put(values, "output_config", "format", {"type": form["type"], "schema": schema})
    system = [message["content"] for message in messages if message["role"] == "system"]
    turns = [message for message in messages if message["role"] != "system"]
    if "tools" in values:  # all results of a turn's calls stand in one message, or are rejected
        groups = groupby(map(_block, _items(turns)), itemgetter(0))
        turns = [{"role": role, "content": [block for _, block in parts]} for role, parts in groups]
    if system:
        values["system"] = "\n\n".join(system)
    return {"model": model, "messages": turns, **values}


def _block(item: Json) -> tuple[str, Json]:
    """Return whose it is and the block that an item of responses is in messages."""
    match item:
        case {"call_id": id_, "output": text}:
            return "user", {"type": "tool_result", "tool_use_id": id_, "content": text}
        case {"call_id": id_, "name": name, "arguments": text}:
            return "assistant", {
                "type": "tool_use",
                "id": id_,
                "name": name,
                "input": json_in(text),
            }
    return item["role"], {"type": "text", "text": item["content"]}


def _messages_tool(tool: Json) -> Json:
    """Return a tool for messages."""
    function = dict(tool["function"])
    schema = function.pop("parameters")
    return {**function, "input_schema": schema}


def _messages_read(data: Any) -> Any:
    """Return the blocks as the content, of which text and calls are read."""
    if "stop_reason" not in data:
        return data
    reason = data["stop_reason"] or "unfinished"
    choice = {
        "finish_reason": reason,
        "message": {
            "content": data["content"],
            "tool_calls": [block for block in data["content"] or () if "input" in block],
        },
        "stop_details": data.get("stop_details"),
    }
    return {**data, "choices": [choice]}


PROTOCOLS = {
    CHAT: Protocol("/chat/completions", _chat_body),
    COMPLETIONS: Protocol("/completions", _completions_body),
    RESPONSES: Protocol(
        "/responses", _responses_body, _responses_read, _responses_tool, lacks=("seed",)
    ),
    MESSAGES_API: Protocol(
        "/messages", _messages_body, _messages_read, _messages_tool, lacks=("seed",)
    ),
}


# -- requests and answers ------------------------------------------------------------------------


@dataclass(slots=True)
class Request:
    """One request to a model. Equal requests have equal keys, and a key is answered once."""

    model: Model
    messages: Messages
    parameters: Parameters
    sample: int = 0  # repeated samples of one request differ here
    protocol: str = ""  # a key of PROTOCOLS; the model's if empty
    tools: Sequence[Json] = ()  # that are offered, in the form of a chat
    key: bytes = b""  # 16 bytes that stand for exactly this request to exactly this endpoint

    def __post_init__(self) -> None:
        self.protocol = self.protocol or self.model.protocol
        if not self.key:
            exact = [self.model.address, self.protocol, self.body(self.wanted()), self.sample]
            self.key = _hash(json.dumps(exact, sort_keys=True).encode())

    def wanted(self) -> Parameters:
        """Return the parameters as the user wants them; each sample has its own random seed."""
        protocol = PROTOCOLS[self.protocol]
        values = {n: value for n, value in self.parameters.items() if n not in protocol.lacks}
        if self.tools:
            values["tools"] = list(map(protocol.tool, self.tools))
        if "seed" in values:
            values["seed"] += self.sample
        return values

    def body(self, values: Parameters) -> Json:
        """Return the JSON body. values: the parameters as they are to be sent."""
        return PROTOCOLS[self.protocol].body(self.model.id, self.messages, values)

    def again(self, more: Turns = ()) -> "Request":
        """Return the request after one more unreadable answer. more: messages on what was wrong."""
        key = _hash(self.key + b" again")
        return replace(self, messages=[*self.messages, *more], key=key)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


class Answer(NamedTuple):
    """What the API returned for a request."""

    text: str
    finish_reason: str = ""
    refusal: str = ""  # the API's own refusal: the text of its refusal field
    model: str = ""  # the model id as returned, behind FALLBACK if the API declares one
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dropped: Words = ()  # sampling parameters that the model rejects
    cached_tokens: int = 0  # of the prompt's
    reasoning_tokens: int = 0  # of the completion's
    provider: str = ""  # behind a gateway that names it
    api_category: str = ""  # of the API's own refusal, see orbench.refusals.api
    tool_calls: Sequence[Json] = ()  # as the API returned them

    @property
    def served_by(self) -> str:
        """Return the model id as returned, `id via provider` behind a gateway."""
        return " via ".join(filter(None, (self.model, self.provider)))

    @property
    def refused_by_api(self) -> bool:
        """Return whether the API itself declared a refusal."""
        return bool(self.refusal or api_refusal_signal(self.finish_reason))

    @property
    def cut_off(self) -> bool:
        """Return whether the API says that the answer is not whole."""
        return self.meaning in NOT_WHOLE

    @property
    def meaning(self) -> str:
        """Return what the finish reason means, a key of FINISH in orbench.refusals.api, or ""."""
        return finish_meaning(self.finish_reason)[0]


REFUSED_TO_JUDGE = "judge_refused"
NOT_ENGLISH = "not_english"


class Missing(NamedTuple):
    """Why a request has no usable answer, or a row no result."""

    # empty_... (never sent), unscored (an answer that cannot be read), not_english, judge_refused,
    # bad_request, gave_up (faults), not_asked. The column error_type of a failed file.
    kind: str
    why: str  # one line
    known: Texts = MappingProxyType({})  # what is known nonetheless, by column


def not_english(language: str, cells: Texts) -> Missing:
    """Return why the rules leave a response unscored. language: ISO 639. cells: of its row."""
    why = f"the response is in another language ({language}); the rules read English"
    return Missing(NOT_ENGLISH, why, {**cells, "response_language": language})


class Prices(NamedTuple):
    """Dollars per million tokens. cached: of prompt tokens read from a cache."""

    prompt: float
    completion: float
    cached: float


@dataclass
class Tokens:
    """The tokens of answers, as they are billed."""

    prompt: int = 0
    cached: int = 0  # of the prompts'
    completion: int = 0
    reasoning: int = 0  # of the completions'

    def add(self, answer: Answer) -> None:
        """Count an answer's tokens."""
        self.prompt += answer.prompt_tokens
        self.cached += answer.cached_tokens
        self.completion += answer.completion_tokens
        self.reasoning += answer.reasoning_tokens

    def cost(self, prices: Prices | None, times: float = 1) -> str:
        """Return `cost $0.0123`, of so many times these; "" without prices."""
        if prices is None:
            return ""
        cost = (self.prompt - self.cached) * prices.prompt
        cost += self.cached * prices.cached + self.completion * prices.completion
        return f"cost ${cost * times / 1e6:.4f}"
