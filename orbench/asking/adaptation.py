"""What models turn out to reject: a parameter is renamed or left out, for the whole run."""

import re
from collections import defaultdict
from collections.abc import Container

from orbench.asking.faults import ErrorReply
from orbench.asking.models import Model
from orbench.asking.protocols import PROTOCOLS
from orbench.asking.requests import Answer, Parameters, Request

# Each is sent in the other's place, unless both are rejected.
RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
# What can be left out or renamed. If an error names several, the first one here is rejected: top_p
# and not the temperature. Reasoning effort is the user's to change.
OURS = ("top_p", "temperature", "seed", "random_seed", *RENAMED, "logprobs", "response_format")
FORMAT = (  # response_format by any other name
    r"(?:response|output).?format|response_schema|output_config(?!\.effort)|text\.format|"
    r"json_schema|json.?mode|structured.outputs?"
)
# How an error says that a value is wrong, which is the user's to change.
WRONG_VALUE = (
    r"[<>≤≥]=? ?-?\d|(?:less|greater|lower|higher|smaller|larger|more) than|at (?:most|least)|"
    r"too (?:large|big|high|low|small|long)|(?:above|below) \d|between|exceed|\brange\b|"
    r"maximum|minimum|positive|negative|or (?:higher|more|less)|limit(?:ed)? (?:of|to|is|was)|"
    r"invalid type|expected an? |(?:must|should) be (?:an?|in|within) "
)


class Adaptation:
    """What the models of a run reject. notes: lines for the user, each once."""

    def __init__(self) -> None:
        self.rejected = defaultdict[Model, list[str]](list)  # of models that were asked
        self.answered = set[Model]()
        self.notes = list[str]()

    def fit(self, request: Request) -> Parameters:
        """The parameters with those that this model is known to reject renamed or left out."""
        model = request.model
        for name in PROTOCOLS[request.protocol].lacks:
            if name in request.parameters:
                self.reject(model, name)
        values = model.named(request.wanted())
        for name in self.rejected[model]:
            if name in values:
                value = values.pop(name)
                if name not in self.dropped(model):
                    values[RENAMED[name]] = value
        return values

    def dropped(self, model: Model) -> tuple[str, ...]:
        """The parameters that are left out for a model."""
        rejected = self.rejected[model]
        return tuple(name for name in rejected if RENAMED.get(name, name) in rejected)

    def reject(self, model: Model, name: str) -> None:
        """Note that a model rejects this parameter, for all requests from here on."""
        if name not in self.rejected[model]:
            self.rejected[model].append(name)
            left_out = name in self.dropped(model)
            instead = "it is left out" if left_out else f"{RENAMED[name]} is sent instead"
            self.notes.append(f"{model.id} rejects {name}: {instead} for the whole run")

    def recall(self, model: Model, answer: Answer) -> None:
        """Note what an earlier run's answer tells about a model that was not asked yet."""
        if model not in self.rejected:
            self.rejected[model] = []
            for name in answer.dropped:
                self.reject(model, name)

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
    """The sent parameter that an error says this model does not take; "" if it names none."""
    if reply.status not in (400, 422):
        return ""
    message = reply.message
    param = str(reply.error.get("param") or "")
    about_param = param and re.search(rf"['\"`]{re.escape(param)}\b", message)
    for text in (param, "" if about_param else message):
        for name in OURS:
            called = FORMAT if name == "response_format" else name.replace("_", "_?")
            if name in sent and re.search(rf"(?<![\w-])(?:{called})(?![\w-])", text, re.I):
                has_size = name != "response_format" and "unset" not in message
                return "" if has_size and re.search(WRONG_VALUE, message, re.I) else name
    return ""
