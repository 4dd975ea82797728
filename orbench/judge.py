"""What an answer is before anybody reads its words: refused by the API, cut off; and a judge's
verdict in it.
"""

from collections.abc import Mapping

from orbench import brackets
from orbench.answers import Answer, Missing
from orbench.refusal import answer_of, api_refusal_signal
from orbench.terminal import one_line

JUDGE_TEMPERATURE = 0.0  # the paper's
VERDICT_ASKS = 3  # for an unreadable verdict: once, and up to two more times


def verdict_in(answer: Answer, choices: Mapping[str, str]) -> str | Missing:
    """The label a judge chose, or why there is none. choices: see `brackets.label`."""
    if is_refused_by_api(answer):
        return Missing("unscored", "the judge's API refused")
    text, whole = answer_of(answer.text)
    if not whole:
        return Missing("unscored", "the judge's reply was cut off inside its thinking", answer.text)
    label = brackets.label(text, choices, cut_off=is_cut_off(answer))
    if label is None:
        end = one_line(text[-150:])
        why = f"no readable choice in double brackets in the judge's reply, ending: {end!r}"
        return Missing("unscored", why, answer.text)
    return label


def is_refused_by_api(answer: Answer) -> bool:
    """Whether the API itself declared a refusal."""
    return bool(answer.refusal or api_refusal_signal(answer.finish_reason))


def is_cut_off(answer: Answer) -> bool:
    """Whether the API says that the answer ran into its token limit."""
    return answer.finish_reason.lower() in ("length", "max_tokens")
