"""Which class a response is in without a judge: by the API's own signal, or by the rules."""

from orbench.base.words import API_SIGNAL, GRADED_CLASSES, THREE_CLASSES, Row, Words
from orbench.judging.kinds import Opinion
from orbench.models.requests import Missing, not_english
from orbench.refusals.api import api_refusal_signal
from orbench.refusals.detect import REFUSAL_CLASSES, classify
from orbench.refusals.text import answer_of

# --rubric: a general judge's prompt, in stage 5's folder, and the classes it decides between.
RUBRICS = {"three": ("prompt.txt", THREE_CLASSES), "graded": ("prompt_graded.txt", GRADED_CLASSES)}
NO_INDIRECT = "the judge only separates answers from refusals: indirect refusals count as direct"


def without_judge(row: Row, phrases: Words, *, rules: bool) -> Opinion | Missing | None:
    """Return the class of a response by the API's signal or the rules, or why it is unscored.

    Columns: prompt, response; if there, rejection_reason and finish_reason, as stage 4 writes them.
    phrases: the user's own. rules: whether the rules decide; if not, None where the API says none.
    """
    signal = row.get("rejection_reason", "")
    if not signal.startswith(API_SIGNAL):
        signal = api_refusal_signal(row.get("finish_reason", ""))
    if signal:
        return Opinion("direct_refusal", signal, certain=True)
    text, whole = answer_of(row["response"])
    if not whole:
        return Missing("unscored", "the response was cut off inside its thinking")
    if not text.strip():
        kind = row.get("error_type") or "empty_response"  # stage 4's, of a row without a result
        return Missing(kind, row.get("error") or "the response is empty")
    if not rules:
        return None
    verdict = classify(text, finish_reason=row.get("finish_reason", ""), phrases=phrases)
    if verdict.language:
        return not_english(verdict.language, {})
    return Opinion(REFUSAL_CLASSES[verdict.kind], verdict.rule, certain=verdict.certain)
