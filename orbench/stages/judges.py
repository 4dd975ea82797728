"""What stages 3 and 5 share: judges answer, each asked and read in its own way."""

from typing import NamedTuple

from orbench.base.prompts import Turns
from orbench.base.templates import prompt_template
from orbench.base.words import Choices, Json, Texts, numbered
from orbench.judging.kinds import (
    GENERAL,
    About,
    JudgeKind,
    Opinion,
    kind_of,
    needed_by,
    read_reply,
)
from orbench.judging.panels import family_notes
from orbench.models.providers import Model
from orbench.models.requests import Answer, Missing, Request
from orbench.stages.settings import parameters_of
from orbench.stages.stage import Stage


class Seat(NamedTuple):
    """A judge, and how it is asked and read."""

    kind: JudgeKind
    choices: Choices
    parameters: Json
    template: str = ""  # of kinds with a prompt file of their own


class JudgedStage(Stage):
    """A stage that asks judges."""

    asks = 3  # requests per verdict: the first, and two more after unreadable replies
    about = About.PROMPT
    seats: dict[Model, Seat]

    def seat_judges(self, choices: Choices, script: str, file: str = "") -> None:
        """Set how the judges are asked, and note whom they may favor. file: a prompt beside the
        script, if not their kind's own.

        Raises UserError.
        """
        self.notes += family_notes(self.models, self.input_record)
        self.seats = {}
        hashes = set()
        for judge in self.models:
            kind = kind_of(judge.id, self.args.general_judge)
            template = ""
            if kind.own_file:
                prompt_file, template = prompt_template(script, file or kind.own_file)
                hashes.add(prompt_file)
            if kind is not GENERAL:
                hashes.add(kind.hash)
            listed = choices
            # Numbers count only if the prompt lists the choices.
            if "{categories}" in template or "{classes}" in template:
                listed = numbered(choices)
            parameters = parameters_of(self.args, judge, needed_by(kind, listed))
            self.seats[judge] = Seat(kind, listed, parameters, template)
        self.prompt_file = ", ".join(sorted(hashes))  # whatever the order of the judges

    def request(self, judge: Model, values: Texts, earlier: Turns, sample: int = 0) -> Request:
        """Return the request that asks a judge, see `JudgeKind.ask`. Raises UserError."""
        seat = self.seats[judge]
        messages = seat.kind.ask(values, earlier, seat.template)
        return Request(judge, messages, seat.parameters, sample, seat.kind.protocol)

    def read(self, request: Request, answer: Answer) -> Opinion | Missing:
        judge = request.model
        seat = self.seats[judge]
        return read_reply(seat.kind, answer, seat.choices, judge.asked, self.about)

    def again(self, request: Request, answer: Answer, missing: Missing) -> Request:
        seat = self.seats[request.model]
        return request.again(seat.kind.repeat(answer, missing.why, seat.choices))
