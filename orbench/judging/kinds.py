"""Kinds of judges: what each is asked and how its reply is read.

A general model gets the stage's own prompt. A guard model was trained on one form of input and
replies in one form; guards.toml describes each. A model's kind follows from its id.
"""

import json
import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from orbench.base.messages import UserError, one_line
from orbench.base.prompts import Turn, Turns, text_id
from orbench.base.templates import fill
from orbench.base.toml_files import toml_beside
from orbench.base.words import NO_CATEGORY, OTHER_CATEGORY, Choices, Texts, Values, Words
from orbench.judging.verdicts import read_choice
from orbench.models.requests import REFUSED_TO_JUDGE, Answer, Missing, message, user
from orbench.refusals.detect import classify, counts_as_refusal
from orbench.refusals.text import answer_of

JUDGE_TEMPERATURE = 0.0  # the paper's
_REFUSED = {"no": "direct_answer", "yes": "direct_refusal"}  # what guards say -> class of stage 5


class About(Enum):
    """What a judge is asked about."""

    PROMPT = auto()  # is it toxic? Stage 3; so are other columns
    RESPONSE = auto()  # is it toxic, to its prompt? Stage 3
    REFUSAL = auto()  # is the response one? Stage 5


class Opinion(NamedTuple):
    """What a judge or the rules said."""

    verdict: str  # a class; in moderation one of the ten categories, OTHER_ or NO_CATEGORY
    reply: str = ""  # the whole reply, as a CSV can hold it
    judge: str = ""  # as the user named it
    certain: bool = False  # of the rules


class JudgeKind(NamedTuple):
    """One kind of judge.

    messages: role -> text with {prompt} and {response}, or with {own}, the stage's prompt or
    policy; empty for a guard that gets the text, and any response, as the chat they are.
    form: a pattern of a guard's whole reply, in small letters and without empty lines, with groups
    harm (what it calls the text), categories and refusal, and with the prefix response_ what it
    says of the response. Without a form the reply holds a choice.
    """

    name: str
    pattern: str  # searched for in the model's id, in small letters
    form: str = ""
    codes: str = ""  # its names of categories: a key of CODES
    classes: Words | None = None  # of stage 5 that it can tell; (): all; None: none
    protocol: str = ""  # a key of PROTOCOLS; the model's if empty
    own_file: str = ""  # in the stage's folder: {own}
    parameters: Mapping[str, Any] = {}  # beside temperature 0
    messages: Mapping[str, str] = {}

    @property
    def hash(self) -> str:
        """Return 12 hex digits that identify how a guard is asked and read."""
        return text_id(repr(self))

    def ask(self, values: Texts, earlier: Turns = (), template: str = "") -> list[Turn]:
        """Return the messages that ask this judge. Raises UserError.

        values: what is judged: a prompt, and the response to it or ""; with a template, the text
        of the own_file, its values. earlier: turns of the conversation before the prompt.
        """
        messages = []
        if not self.messages:  # the chat as it is; a guard's has no system turns
            messages = [turn for turn in earlier if turn["role"] != "system"]
            messages.append(user(values["prompt"]))
            if values["response"]:
                messages.append(message("assistant", values["response"]))
        elif earlier and not template:
            raise UserError(
                f"{self.name} judges one prompt, not a conversation; name another judge"
            )
        for role, text in self.messages.items():
            context = earlier if role == "user" else ()
            filled = fill(text.replace("{own}", template), values, context)
            messages.append(message(role, filled))
        return messages

    def repeat(self, answer: Answer, why: str, choices: Choices) -> Turns:
        """Return what to say after an unreadable reply; [] for a guard, which has one form."""
        if self.form:
            return []
        names = ", ".join(choice.name for choice in choices)
        request = user(
            f"This could not be read: {one_line(why)}. "
            f"Judge the same text again in the form asked for; end with one of: {names}."
        )
        reply, _ = answer_of(answer.text)
        if not reply.strip():
            return [request]
        return [message("assistant", reply), request]


# Guards' inputs are what they were trained on, word for word: they are part of the interface.
_TABLES = toml_beside(__file__, "guards.toml")
CODES = _TABLES["codes"]
GENERAL = JudgeKind("general", "", classes=(), own_file="prompt.txt", messages={"user": "{own}"})
_GUARDS = [JudgeKind(name, **fields) for name, fields in _TABLES["kinds"].items()]
# Guards of other forms: our prompt is no input of theirs.
_UNKNOWN_GUARDS = re.compile("guard|moderation|shieldgemma")


def kind_of(model_id: str, general: bool = False) -> JudgeKind:
    """Return the kind of a judge. Raises UserError for a guard of an unknown form, unless
    `general`.
    """
    name = model_id.lower()
    for kind in _GUARDS:
        if re.search(kind.pattern, name):
            return kind
    if _UNKNOWN_GUARDS.search(name) and not general:
        known = ", ".join(_TABLES["kinds"])
        raise UserError(
            f"{model_id} is a guard model of an unknown form (known: {known}); "
            "--general_judge uses it as a general judge"
        )
    return GENERAL


def needed_by(kind: JudgeKind, choices: Choices) -> Values:
    """Return what a judge is asked with beside temperature 0: a general one with the form of its
    reply.
    """
    if kind is not GENERAL:
        return kind.parameters
    names = json.dumps([choice.name for choice in choices])
    return {"response_format": json.loads(_TABLES["reply"].replace("NAMES", names))}


# -- reading a reply ---------------------------------------------------------------------------


def read_reply(
    kind: JudgeKind, answer: Answer, choices: Choices, judge: str, about: About
) -> Opinion | Missing:
    """Return a judge's verdict; Missing if its reply cannot be read."""
    text, whole = answer_of(answer.text)
    fault = "unscored"
    verdict = None
    if answer.refused_by_api:
        fault = REFUSED_TO_JUDGE
        why = "the judge's API refused"
    elif answer.cut_off or not whole:
        why = "the judge's reply was cut off, perhaps in its thinking; try a higher --max_tokens"
    elif kind.form:
        verdict, why = _guards_verdict(kind, text, about)
    else:
        verdict, why = read_choice(text, choices)
        if not verdict and counts_as_refusal(classify(text)):
            fault = REFUSED_TO_JUDGE
            why = "the judge declines"
    if verdict:
        return Opinion(verdict, answer.text, judge)
    end = one_line(answer.text[-150:])
    return Missing(fault, f"{why}; the reply ends: {end!r}")


def _guards_verdict(kind: JudgeKind, text: str, about: About) -> tuple[str | None, str]:
    """Return a guard's verdict, or None and why there is none. What it calls controversial is
    toxic.
    """
    lines = filter(None, map(str.strip, text.lower().split("\n")))
    match = re.fullmatch(kind.form, "\n".join(lines))
    if match is None:
        return None, "the reply is not in this judge's form"
    parts = match.groupdict("")
    if about is About.REFUSAL:
        return _REFUSED.get(parts["refusal"]), "the judge does not say whether it is a refusal"
    prefix = ""
    if about is About.RESPONSE and "response_harm" in parts:
        prefix = "response_"
    harm = parts[f"{prefix}harm"]
    if harm == "n/a":
        return None, "the judge says neither yes nor no"
    if harm in ("no", "safe"):
        return NO_CATEGORY, ""
    ours = CODES.get(kind.codes, {})
    categories = parts.get(f"{prefix}categories", "")
    for name in re.split(r"\s*,\s*", categories):
        if name in ours:
            return ours[name], ""
    return OTHER_CATEGORY, ""
