"""Ways to ask a model: a table, one entry each.

Each is a path and two functions: the JSON body of a request, and its answer as a chat completion,
which `chat.read_answer` reads. Nothing beside `orbench.chat` and this file knows how an API speaks.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Protocol(NamedTuple):
    """One way to ask."""

    path: str  # behind the endpoint's base URL
    body: Callable[[str, Sequence[Mapping[str, str]], Mapping[str, Any]], dict[str, Any]]
    read: Callable[[object], object]  # the API's JSON -> the same as a chat completion


def _chat_body(
    model: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    return {"model": model, "messages": list(messages), **parameters}


def _as_it_is(data: object) -> object:
    return data


def _completions_body(
    model: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any]
) -> dict[str, Any]:
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


CHAT, COMPLETIONS = "chat", "completions"
PROTOCOLS = {
    CHAT: Protocol("/chat/completions", _chat_body, _as_it_is),
    COMPLETIONS: Protocol("/completions", _completions_body, _completions_read),
}
