"""What stages 3 and 5 share: judges answer, each asked and read in its own way."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from orbench.base.prompts import Turn
from orbench.base.templates import prompt_template
from orbench.base.words import Choice, Json, Texts, choices_of
from orbench.judging.kinds import (
    VERDICT_ASKS,
    About,
    JudgeKind,
    Opinion,
    kind_of,
    needed_by,
    read_reply,
)
from orbench.models.providers import Model
from orbench.models.requests import Answer, Missing, Request
from orbench.stages.settings import parameters_of
from orbench.stages.stage import Stage


class Seat(NamedTuple):
    """A judge, and how it is asked and read."""

    kind: JudgeKind
    choices: Sequence[Choice]
    parameters: Json
    prompt_file: Path | None = None  # for kinds with a file of their own
    template: str = ""  # its text


class JudgedStage(Stage):
    """A stage that asks judges."""

    asks = VERDICT_ASKS
    about = About.PROMPT
    seats: dict[Model, Seat]

    def seat(self, judge: Model, choices: Sequence[Choice], script: str, file: str = "") -> Seat:
        """Return how a judge is asked. file: its prompt beside the script, if not its kind's own.

        Raises UserError.
        """
        kind = kind_of(judge.id, self.args.general_judge)
        path = None
        template = ""
        if kind.own_file:
            path, template = prompt_template(script, file or kind.own_file)
        # Numbers count only if the prompt lists the choices.
        numbered = "{categories}" in template or "{classes}" in template
        choices = choices_of(choices, numbered=numbered)
        needed = needed_by(kind, choices)
        parameters = parameters_of(self.args, judge, needed)
        return Seat(kind, choices, parameters, path, template)

    def request(
        self, judge: Model, values: Texts, earlier: Sequence[Turn], sample: int = 0
    ) -> Request:
        """Return the request that asks a judge, see `JudgeKind.ask`. Raises UserError."""
        kind, _, parameters, _, template = self.seats[judge]
        messages = kind.ask(values, earlier, template)
        return Request(judge, messages, parameters, sample, kind.protocol)

    def read(self, request: Request, answer: Answer) -> Opinion | Missing:
        judge = request.model
        kind, choices, *_ = self.seats[judge]
        return read_reply(kind, answer, choices, judge.asked, self.about)

    def again(self, request: Request, answer: Answer, missing: Missing) -> Request:
        kind, choices, *_ = self.seats[request.model]
        return request.again(kind.repeat(answer, missing.why, choices))
