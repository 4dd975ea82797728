"""What models turn out to reject: a parameter is renamed or left out, for the whole run."""

import re
from collections import defaultdict
from collections.abc import Container
from typing import Any

from orbench.asking.faults import ErrorReply
from orbench.asking.models import Model
from orbench.asking.protocols import PROTOCOLS
from orbench.asking.requests import Request

ADAPTABLE = ("max_tokens", "max_completion_tokens", "temperature", "top_p", "seed")
RENAMED = {"max_tokens": "max_completion_tokens"}  # the others are left out
# How a 400 says that a model does not take a parameter at all, or only its default value: a word of
# rejection close to the parameter's name. A value out of range is the user's to change.
REJECTION = (
    r"unsupported|not supported|not support|not accept|not permitted|not allowed|only the default|"
    r"unrecognized request argument supplied|unrecognized|unknown|deprecated|extra inputs|"
    r"unexpected"
)
OUT_OF_RANGE = r"must be|at most|at least|above|below|less than|greater|between"


class Adaptation:
    """What the models of a run reject. notes: lines for the user, each once."""

    def __init__(self) -> None:
        self.rejected = defaultdict[Model, list[str]](list)
        self.answered = set[Model]()
        self.notes = list[str]()

    def fit(self, request: Request) -> dict[str, Any]:
        """The body with what this model is known to reject renamed or left out."""
        body = request.body()
        for name in PROTOCOLS[request.protocol].lacks:
            if name in request.parameters:
                self.reject(request.model, name)
        for name in self.rejected[request.model]:
            if name in body:
                value = body.pop(name)
                if name in RENAMED:
                    body[RENAMED[name]] = value
        return body

    def dropped(self, model: Model) -> tuple[str, ...]:
        """The parameters that are left out for a model."""
        return tuple(name for name in self.rejected[model] if name not in RENAMED)

    def reject(self, model: Model, name: str) -> None:
        """Note that a model rejects this parameter, for all bodies from here on."""
        if name not in self.rejected[model]:
            self.rejected[model].append(name)
            instead = f"{RENAMED[name]} is sent instead" if name in RENAMED else "it is left out"
            self.notes.append(f"{model.id} rejects {name}: {instead} for the whole run")

    def learns(self, model: Model, reply: ErrorReply, sent: Container[str]) -> bool:
        """Whether the request behind this reply is to be sent again, without a parameter."""
        name = rejected_parameter(reply, sent)
        # Once a model has answered, one odd prompt cannot change how the others are asked; but a
        # request may have been sent before another one's reply revealed the parameter.
        if not name or (model in self.answered and name not in self.rejected[model]):
            return False
        self.reject(model, name)
        return True


def rejected_parameter(reply: ErrorReply, sent: Container[str]) -> str:
    """The sent parameter that a 400 says this model does not take; "" if it names none."""
    message = reply.message
    param = reply.error.get("param")
    if reply.status != 400 or re.search(OUT_OF_RANGE, message, re.I):
        return ""
    for name in ADAPTABLE:
        if name in sent and param in (None, "", name):
            near = rf"(?:{REJECTION}).{{0,16}}\b{name}\b|\b{name}\b.{{0,16}}(?:{REJECTION})"
            if re.search(near, message, re.I):
                return name
    return ""
