"""What models turn out to reject: a parameter is renamed or left out, for the whole run."""

import re
from collections import defaultdict
from collections.abc import Container, Iterable

from orbench.models.errors import ErrorReply
from orbench.models.providers import Model
from orbench.models.requests import PROTOCOLS, Answer, Parameters, Request

# Each is sent in the other's place, unless both are rejected.
RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
# If an error names several, the first one here is rejected. Reasoning effort is the user's matter.
OURS = ("top_p", "temperature", "seed", "random_seed", *RENAMED, "logprobs", "response_format")
# How errors call one that has no value to be wrong.
NAMES = {
    "response_format": r"(?:response|output).?format|text\.format|output_config(?!\.effort)|"
    r"response_schema|json_schema|json.?mode|structured.outputs?"
}
# How they say that only the value is wrong, which the user must change.
WRONG_VALUE = (
    r"[<>≤≥]=? ?-?\d|between|\brange\b|at (?:most|least)|"
    r"(?:less|(?<!oth|ath)er|more) than|or (?:higher|more|less)|"
    r"maximum|minimum|exceed|(?:above|below) \d|too (?:large|big|high|low|small|long)|"
    r"limit(?:ed)? (?:of|to|is|was)|positive|negative|"
    r"invalid type|expected an? |(?:must|should) be (?:an?|in|within) "
)


class Adaptation:
    """What the models of a run reject. notes: lines for the user, each once."""

    def __init__(self) -> None:
        self.rejected = defaultdict[Model, list[str]](list)  # of models that were asked
        self.answered = set[Model]()
        self.notes = list[str]()

    def fit(self, request: Request) -> Parameters:
        """Return the parameters, as far as this model is known to take them."""
        model = request.model
        self.reject(model, request.parameters.keys() & PROTOCOLS[request.protocol].lacks)
        values = model.named(request.wanted())
        dropped = self.dropped(model)
        for name in self.rejected[model]:
            if name in values:
                value = values.pop(name)
                if name not in dropped:
                    values[RENAMED[name]] = value
        return values

    def dropped(self, model: Model) -> list[str]:
        """Return the parameters that are left out for a model."""
        rejected = self.rejected[model]
        return [name for name in rejected if RENAMED.get(name, name) in rejected]

    def reject(self, model: Model, names: Iterable[str]) -> None:
        """Note that a model rejects these parameters, for all requests from here on."""
        known = self.rejected[model]
        for name in names:
            if name in known:
                continue
            known.append(name)
            instead = "it is left out"
            if name not in self.dropped(model):
                instead = f"{RENAMED[name]} is sent instead"
            self.notes.append(f"{model.id} rejects {name}: {instead} for the whole run")

    def recall(self, model: Model, answer: Answer) -> None:
        """Note what an earlier run's answer tells about a model that was not asked yet."""
        if model not in self.rejected:
            self.reject(model, answer.dropped)

    def learns(self, model: Model, reply: ErrorReply, sent: Container[str]) -> bool:
        """Return whether the request behind this reply is to be sent again, with less."""
        name = rejected_parameter(reply, sent)
        # Once a model has answered, one odd prompt cannot change how the others are asked; but a
        # request may have been sent before another one's reply revealed the parameter.
        if not name or (model in self.answered and name not in self.rejected[model]):
            return False
        self.reject(model, [name])
        return True


def rejected_parameter(reply: ErrorReply, sent: Container[str]) -> str:
    """Return the sent parameter that an error says this model does not take; "" for none."""
    message = reply.message
    if reply.status == 404 and "requested param" in message and "response_format" in sent:
        return "response_format"  # no provider of OpenRouter's takes it
    if reply.status not in (400, 422):
        return ""
    for name in OURS:
        called = NAMES.get(name, name.replace("_", "_?"))
        named = rf"(?<![\w-])(?:{called})(?![\w-])"
        if name in sent and re.search(named, f"{reply.error.get('param')} {message}", re.I):
            has_value = name not in NAMES and "unset" not in message
            if has_value and re.search(WRONG_VALUE, message, re.I):
                return ""
            return name
    return ""
