"""Requests and answers, as all of the suite sees them."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from orbench.asking.models import Model
from orbench.asking.protocols import PROTOCOLS
from orbench.base.prompts import Turn
from orbench.base.tables import storable
from orbench.refusals.api import api_refusal_signal
from orbench.refusals.text import answer_of

Message = dict[str, str]  # role, content
Parameters = dict[str, Any]  # temperature, max_tokens, ... as the user wants them


def message(role: str, text: str) -> Message:
    """A message. A lone surrogate, which no request body can hold, is sent as U+FFFD."""
    return {"role": role, "content": storable(text)}


def user(text: str) -> Message:
    """A user message."""
    return message("user", text)


def messages_of(turns: Iterable[Turn]) -> list[Message]:
    """The turns of a conversation as messages."""
    return [message(turn["role"], turn["content"]) for turn in turns]


@dataclass(slots=True)
class Request:
    """One request to a model. Equal requests have equal keys, and a key is answered once."""

    model: Model
    messages: list[Message]
    parameters: Parameters
    sample: int = 0  # repeated samples of one request differ here
    protocol: str = ""  # a key of PROTOCOLS; the model's if empty
    attempt: int = 0  # how many unreadable answers came before
    substitute: "Request | None" = None  # asked if this one brings no readable answer
    key: bytes = b""  # 16 bytes that stand for exactly this request to exactly this endpoint

    def __post_init__(self) -> None:
        self.protocol = self.protocol or self.model.protocol
        if not self.key:
            exact = [self.model.address, self.protocol, self.body(self.wanted()), self.sample]
            self.key = _hash(json.dumps(exact, sort_keys=True).encode())

    def wanted(self) -> Parameters:
        """The parameters as the user wants them; each sample has a random seed of its own."""
        lacks = PROTOCOLS[self.protocol].lacks
        values = {name: value for name, value in self.parameters.items() if name not in lacks}
        if "seed" in values:
            values["seed"] += self.sample
        return values

    def body(self, values: Parameters | None = None) -> dict[str, Any]:
        """The JSON body, with all that is wanted unless `Adaptation` fitted it to the model."""
        sent = self.model.named(self.wanted()) if values is None else values
        return PROTOCOLS[self.protocol].body(self.model.id, self.messages, sent)

    def again(self, more: Sequence[Message] = ()) -> "Request":
        """The request after one more unreadable answer. more: messages that say what was wrong."""
        key = _hash(self.key + b" again")
        attempt = self.attempt + 1
        return replace(self, messages=[*self.messages, *more], attempt=attempt, key=key)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


class Answer(NamedTuple):
    """What the API returned for a request."""

    text: str
    finish_reason: str = ""
    refusal: str = ""  # the API's own refusal: the text of its refusal field
    model: str = ""  # the model id as returned
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dropped: tuple[str, ...] = ()  # sampling parameters that the model rejects
    cached_tokens: int = 0  # of the prompt's
    reasoning_tokens: int = 0  # of the completion's
    provider: str = ""  # behind a gateway that names it
    api_category: str = ""  # of the API's own refusal, see orbench.refusals.api

    @property
    def served_by(self) -> str:
        """The model id as returned, with the provider behind a gateway: `id via provider`."""
        return " via ".join(name for name in (self.model, self.provider) if name)

    @property
    def refused_by_api(self) -> bool:
        """Whether the API itself declared a refusal."""
        return bool(self.refusal or api_refusal_signal(self.finish_reason))

    @property
    def cut_off(self) -> bool:
        """Whether the API says that the answer ran into its token limit."""
        return self.finish_reason.lower() in ("length", "max_tokens")

    @property
    def says_nothing(self) -> bool:
        """Whether it is empty, its thinking aside, and does not even say why."""
        return not (answer_of(self.text)[0].strip() or self.refused_by_api or self.cut_off)


class Missing(NamedTuple):
    """Why a request has no usable answer, or a row no result."""

    # empty_... (never sent), unscored (an answer that cannot be read), bad_request, gave_up
    # (faults), not_asked. The column error_type of a failed file.
    kind: str
    why: str  # one line
    said: str = ""  # the answer that cannot be read


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
