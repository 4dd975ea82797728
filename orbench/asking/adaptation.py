"""What models turn out to reject: a parameter is renamed or left out, for the whole run."""

import re
from typing import TYPE_CHECKING, Any

from orbench.asking.models import Model
from orbench.asking.protocols import PROTOCOLS
from orbench.asking.requests import Request

if TYPE_CHECKING:
    from openai import APIStatusError

TOKEN_LIMIT = "max_tokens"
TOKEN_LIMIT_OF_REASONING = "max_completion_tokens"
ADAPTABLE = (TOKEN_LIMIT, TOKEN_LIMIT_OF_REASONING, "temperature", "top_p", "seed")
# How a 400 says that a model does not take a parameter at all, or only its default value: a word of
# rejection close to the parameter's name. A value out of range is the user's to change.
REJECTION = (
    r"unsupported|not supported|not support|not accept|not permitted|not allowed|only the default|"
    r"unrecognized request argument supplied|unrecognized|unknown|deprecated|extra inputs|"
    r"unexpected"
)
OUT_OF_RANGE = re.compile(
    r"must be|at most|at least|above|below|less than|greater|between", re.IGNORECASE
)


class Adaptation:
    """What the models of a run reject. notes: lines for the user, each once."""

    def __init__(self) -> None:
        # (address, model id) -> a rejected parameter -> the name it has instead, or ""
        self._names: dict[tuple[str, str], dict[str, str]] = {}
        self.notes: list[str] = []

    def fit(self, request: Request) -> dict[str, Any]:
        """The body with what this model is known to reject renamed or left out."""
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
        """The parameters that are left out for a model."""
        return tuple(name for name, new_name in self._of(model).items() if not new_name)

    def adapt(self, model: Model, name: str) -> None:
        """Note that a model rejects this parameter, for all bodies from here on."""
        names = self._names.setdefault((model.address, model.id), {})
        if name in names:
            return
        names[name] = TOKEN_LIMIT_OF_REASONING if name == TOKEN_LIMIT else ""
        instead = f"{names[name]} is sent instead" if names[name] else "it is left out"
        self.notes.append(f"{model.id} rejects {name}: {instead} for the whole run")

    def _of(self, model: Model) -> dict[str, str]:
        return self._names.get((model.address, model.id), {})


def rejected_parameter(error: "APIStatusError", message: str, sent: dict[str, Any]) -> str:
    """The sent parameter that a 400 says this model does not take; "" if it names none."""
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
