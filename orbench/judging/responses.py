"""Which class a response is in: by the API's own signal, by the rules, or by a judge's rubric."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from orbench.asking.requests import Missing
from orbench.base.words import (
    API_SIGNAL,
    GRADED_CLASSES,
    THREE_CLASSES,
    Choice,
    ResponseClass,
    class_choices,
)
from orbench.judging.kinds import Opinion
from orbench.refusals.api import api_refusal_signal
from orbench.refusals.detect import REFUSAL_CLASSES, classify
from orbench.refusals.text import answer_of


class Rubric(NamedTuple):
    """What a general judge decides between. prompt_file: in stage 5's folder."""

    prompt_file: str
    classes: Sequence[ResponseClass]

    def choices(self, template: str) -> Sequence[Choice]:
        """What the judge may choose. Numbers count only if its prompt shows the list."""
        return class_choices(self.classes, numbered="{classes}" in template)

    def of_three(self, name: str) -> str:
        """The class of the three that a class belongs to."""
        found = {one.name: one.of_three for one in self.classes}
        return found.get(name) or name


RUBRICS = {
    "three": Rubric("prompt.txt", THREE_CLASSES),
    "graded": Rubric("prompt_graded.txt", GRADED_CLASSES),
}


def without_judge(
    row: Mapping[str, str], phrases: Sequence[str], *, rules: bool, certain: bool
) -> Opinion | Missing | None:
    """The class of a response that needs no judge, or why it is unscored; None: ask the judge.

    Columns: prompt, response; if there, rejection_reason and finish_reason, as stage 4 writes them.
    phrases: the user's own. rules: whether the rules decide. certain: only if they are certain.
    """
    signal = row.get("rejection_reason", "")
    if not signal.startswith(API_SIGNAL):
        signal = api_refusal_signal(row.get("finish_reason", ""))
    if signal:
        return Opinion("direct_refusal", reply=signal)
    if not row["prompt"].strip():
        return Missing("empty_prompt", "the prompt is empty")
    text, whole = answer_of(row["response"])
    if not whole:
        return Missing("unscored", "the response was cut off inside its thinking")
    if not text.strip():
        return Missing("empty_response", "the response is empty")
    if not rules:
        return None
    verdict = classify(text, phrases=phrases, prompt=row["prompt"])
    if certain and not verdict.certain:
        return None
    return Opinion(REFUSAL_CLASSES[verdict.kind], reply=verdict.rule)
