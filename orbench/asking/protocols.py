"""Ways to ask a model: a table with one entry each.

An entry is a path, the headers it needs and two pure functions: the JSON body of a request, and its
answer in the shape of a chat completion, which `orbench.asking.client` reads. Parameters have a
chat's names here (`max_tokens`, `reasoning_effort`, `response_format`); unknown ones go out as they
are (`--extra_body`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Messages = Sequence[Mapping[str, str]]
Values = Mapping[str, Any]


class Protocol(NamedTuple):
    """One way to ask."""

    path: str  # behind the endpoint's base URL
    body: Callable[[str, Messages, Values], dict[str, Any]]
    read: Callable[[object], object]  # the API's JSON -> the same as a chat completion
    lacks: tuple[str, ...] = ()  # parameters that it has no place for
    key_header: str = ""  # in place of Authorization
    headers: Mapping[str, str] = {}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _with(values: Values, name: str, **more: Any) -> dict[str, Any]:
    """The values with what belongs into one of their objects put there; None is left out."""
    more = {key: value for key, value in more.items() if value is not None}
    return {**values, name: {**_object(values.get(name)), **more}} if more else dict(values)


# -- OpenAI's chat, which most servers speak ---------------------------------------------------


def _chat_body(model: str, messages: Messages, parameters: Values) -> dict[str, Any]:
    return {"model": model, "messages": list(messages), **parameters}


def _as_it_is(data: object) -> object:
    return data


# -- OpenAI's legacy completions, for guard models that were trained on a raw text --------------


def _completions_body(model: str, messages: Messages, parameters: Values) -> dict[str, Any]:
    """The one message's text as a plain prompt: no template is put around it."""
    (message,) = messages
    return {"model": model, "prompt": message["content"], **parameters}


def _completions_read(data: object) -> object:
    """`choices[0].text` becomes `choices[0].message.content`; all else is as in a chat."""
    choices = data.get("choices") if isinstance(data, dict) else None
    if not (isinstance(data, dict) and isinstance(choices, list)):
        return data
    return {**data, "choices": [_with_message(choice) for choice in choices]}


def _with_message(choice: object) -> object:
    if not (isinstance(choice, dict) and "text" in choice):
        return choice
    return {**choice, "message": {"role": "assistant", "content": choice["text"]}}


# -- OpenAI's responses ------------------------------------------------------------------------

# The installed package's ResponseCreateParams and Response (openai/types/responses).


def _responses_body(model: str, messages: Messages, parameters: Values) -> dict[str, Any]:
    values = dict(parameters)
    effort, form = values.pop("reasoning_effort", None), values.pop("response_format", None)
    if "max_tokens" in values:
        values["max_output_tokens"] = values.pop("max_tokens")
    if form:  # the same schema, one level up
        form = {"type": form["type"], **form["json_schema"]}
    values = _with(_with(values, "reasoning", effort=effort), "text", format=form)
    # A response is kept at OpenAI unless one says otherwise, a chat is not.
    return {"model": model, "input": list(messages), "store": False, **values}


RESPONSE_ENDS = {"completed": "stop", "max_output_tokens": "length"}


def _responses_read(data: object) -> object:
    """The messages' parts in `output` are the content; reasoning items are no part of it."""
    if not (isinstance(data, dict) and "output" in data) or data.get("error"):
        return data
    status, output = data.get("status"), data.get("output")
    if status not in ("completed", "incomplete"):
        return {"error": {"message": f"the response is {status}"}}
    items = [_object(item) for item in (output if isinstance(output, list) else ())]
    contents = [item.get("content") for item in items if item.get("type") == "message"]
    parts = [
        {**part, "type": "text"} if part.get("type") == "output_text" else part
        for content in contents
        for part in (map(_object, content) if isinstance(content, list) else ())
    ]
    why = _object(data.get("incomplete_details")).get("reason") or status
    usage = _object(data.get("usage"))
    return {
        **data,
        "choices": [
            {"finish_reason": RESPONSE_ENDS.get(str(why), why), "message": {"content": parts}}
        ],
        "usage": {
            "prompt_tokens": usage.get("input_tokens"),
            "completion_tokens": usage.get("output_tokens"),
            "prompt_tokens_details": usage.get("input_tokens_details"),
            "completion_tokens_details": usage.get("output_tokens_details"),
        },
    }


# -- Anthropic's messages ----------------------------------------------------------------------

# https://platform.claude.com/docs/en/api/messages, .../api/errors (529 overloaded_error),
# .../handle-streaming-refusals (stop_details), .../build-with-claude/effort, and the types of its
# own package (Message, Usage, OutputConfig, RefusalStopDetails).


def _messages_body(model: str, messages: Messages, parameters: Values) -> dict[str, Any]:
    """System messages go into a field of their own; effort and schema into `output_config`."""
    values = dict(parameters)
    effort, form = values.pop("reasoning_effort", None), values.pop("response_format", None)
    if form:
        form = {"type": form["type"], "schema": form["json_schema"]["schema"]}
    values = _with(values, "output_config", effort=effort, format=form)
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


def _messages_read(data: object) -> object:
    """Its text blocks are the content; `thinking` blocks are no part of it."""
    if not (isinstance(data, dict) and "stop_reason" in data):
        return data
    usage, reason = _object(data.get("usage")), data["stop_reason"]
    cached = usage.get("cache_read_input_tokens")
    # input_tokens are those that were neither read from a cache nor written to one.
    sent = [usage.get("input_tokens"), cached, usage.get("cache_creation_input_tokens")]
    thinking = _object(usage.get("output_tokens_details")).get("thinking_tokens")
    choice = {
        "finish_reason": MESSAGE_ENDS.get(str(reason), reason),
        "message": {"content": data.get("content")},
        "stop_details": data.get("stop_details"),
    }
    return {
        **data,
        "choices": [choice],
        "usage": {
            "prompt_tokens": sum(n for n in sent if isinstance(n, int)),
            "completion_tokens": usage.get("output_tokens"),
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": thinking},
        },
    }


# -- the table ---------------------------------------------------------------------------------

CHAT, COMPLETIONS, RESPONSES, MESSAGES_API = "chat", "completions", "responses", "messages"
PROTOCOLS = {
    CHAT: Protocol("/chat/completions", _chat_body, _as_it_is),
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
