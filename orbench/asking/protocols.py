"""Ways to ask a model: a table with one entry each.

An entry is a path, the headers it needs and two pure functions: the JSON body of a request, and its
answer in the shape of a chat completion, which `orbench.asking.client` reads. Parameters have a
chat's names here (`max_tokens`, `reasoning_effort`, `response_format`); unknown ones go out as they
are (`--extra_body`). An answer of another shape raises what Python raises for it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Messages = Sequence[Mapping[str, str]]
Values = Mapping[str, Any]
Body = dict[str, Any]


class Protocol(NamedTuple):
    """One way to ask."""

    path: str  # behind the endpoint's base URL
    body: Callable[[str, Messages, Values], Body]
    read: Callable[[Any], Any]  # the API's JSON -> the same as a chat completion
    lacks: tuple[str, ...] = ()  # parameters that it has no place for
    key_header: str = ""  # in place of Authorization
    headers: Mapping[str, str] = {}


def _put(values: Body, name: str, **more: Any) -> None:
    """Put what is not None into an object among the values."""
    more = {key: value for key, value in more.items() if value is not None}
    if more:
        values[name] = {**values.get(name, {}), **more}


def _chat_body(model: str, messages: Messages, parameters: Values) -> Body:
    """OpenAI's chat, which most servers speak."""
    return {"model": model, "messages": list(messages), **parameters}


def _completions_body(model: str, messages: Messages, parameters: Values) -> Body:
    """For guard models that were trained on a raw text: no template is put around it."""
    (message,) = messages
    return {"model": model, "prompt": message["content"], **parameters}


def _completions_read(data: Any) -> Any:
    choices = data.get("choices") or ()
    return {**data, "choices": [{**one, "message": {"content": one["text"]}} for one in choices]}


def _responses_body(model: str, messages: Messages, parameters: Values) -> Body:
    """OpenAI's responses: ResponseCreateParams and Response in openai/types/responses."""
    values = dict(parameters)
    effort = values.pop("reasoning_effort", None)
    form = values.pop("response_format", None)
    if "max_tokens" in values:
        values["max_output_tokens"] = values.pop("max_tokens")
    _put(values, "reasoning", effort=effort)
    if form:  # the same schema, one level up
        _put(values, "text", format={"type": form["type"], **form["json_schema"]})
    # A response is kept at OpenAI unless one says otherwise, a chat is not.
    return {"model": model, "input": list(messages), "store": False, **values}


RESPONSE_ENDS = {"completed": "stop", "max_output_tokens": "length"}


def _responses_read(data: Any) -> Any:
    """The messages' parts in `output` are the content; reasoning items are no part of it."""
    if data.get("error"):
        return data
    messages = [item for item in data["output"] if item["type"] == "message"]
    parts = [part for message in messages for part in message["content"]]
    why = (data.get("incomplete_details") or {}).get("reason") or data["status"]
    choice = {"finish_reason": RESPONSE_ENDS.get(why, why), "message": {"content": parts}}
    usage = {
        name.replace("input", "prompt").replace("output", "completion"): tokens
        for name, tokens in (data.get("usage") or {}).items()
    }
    return {**data, "choices": [choice], "usage": usage}


def _messages_body(model: str, messages: Messages, parameters: Values) -> Body:
    """Anthropic's messages: platform.claude.com/docs/en/api/messages, .../build-with-claude/effort.

    System messages go into a field of their own; effort and schema into `output_config`.
    """
    values = dict(parameters)
    effort = values.pop("reasoning_effort", None)
    form = values.pop("response_format", None)
    _put(values, "output_config", effort=effort)
    if form:
        schema = form["json_schema"]["schema"]
        _put(values, "output_config", format={"type": form["type"], "schema": schema})
    system = [message["content"] for message in messages if message["role"] == "system"]
    said = [message for message in messages if message["role"] != "system"]
    if system:
        values["system"] = "\n\n".join(system)
    return {"model": model, "messages": said, **values}


MESSAGE_ENDS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


def _messages_read(data: Any) -> Any:
    """Its text blocks are the content; `thinking` blocks are no part of it."""
    if "stop_reason" not in data:
        return data
    usage = data.get("usage") or {}
    reason = data["stop_reason"]
    # input_tokens are those that were neither read from a cache nor written to one.
    sent = [usage.get(f"{name}input_tokens") for name in ("", "cache_read_", "cache_creation_")]
    thinking = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
    choice = {
        "finish_reason": MESSAGE_ENDS.get(reason, reason),
        "message": {"content": data["content"]},
        "stop_details": data.get("stop_details"),
    }
    tokens = {
        "prompt_tokens": sum(n or 0 for n in sent),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": {"cached_tokens": usage.get("cache_read_input_tokens")},
        "completion_tokens_details": {"reasoning_tokens": thinking},
    }
    return {**data, "choices": [choice], "usage": tokens}


CHAT = "chat"
COMPLETIONS = "completions"
RESPONSES = "responses"
MESSAGES_API = "messages"
PROTOCOLS = {
    CHAT: Protocol("/chat/completions", _chat_body, lambda data: data),
    COMPLETIONS: Protocol("/completions", _completions_body, _completions_read),
    RESPONSES: Protocol("/responses", _responses_body, _responses_read, lacks=("seed",)),
    MESSAGES_API: Protocol(
        "/messages",
        _messages_body,
        _messages_read,
        lacks=("seed",),
        key_header="x-api-key",
        headers={"anthropic-version": "2023-06-01"},
    ),
}
