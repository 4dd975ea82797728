"""Reading an answer: whether the API refused or cut it off, and which choice in double brackets a
judge made.
"""

from collections.abc import Mapping, Sequence

from orbench import brackets
from orbench.chat import Answer, one_line
from orbench.refusal import answer_of, api_refusal_signal
from orbench.verdict_reading import Choice, read_choice

ASKS = 3  # for an unreadable verdict: once, and up to two more times


def verdict_in(answer: Answer, choices: Mapping[str, str]) -> tuple[str | None, str]:
    """The label a judge chose; or None and why there is none. choices: see `brackets.label`."""
    if is_refused_by_api(answer):
        return None, "the judge's API refused"
    text, whole = answer_of(answer.text)
    if not whole:
        return None, "the judge's reply was cut off inside its thinking"
    label = brackets.label(text, choices, cut_off=is_cut_off(answer))
    if label is None:
        end = one_line(text[-150:])
        return None, f"no readable choice in double brackets in the judge's reply, ending: {end!r}"
    return label, ""


def choice_in(answer: Answer, choices: Sequence[Choice]) -> tuple[str | None, str]:
    """The choice a judge made; or None and why there is none."""
    if is_refused_by_api(answer):
        return None, "the judge's API refused"
    text, whole = answer_of(answer.text)
    if not whole:
        return None, "the judge's reply was cut off inside its thinking"
    name, why = read_choice(text, choices, cut_off=is_cut_off(answer))
    return (name, "") if name else (None, f"{why}; the reply ends: {one_line(text[-150:])!r}")


NO_REFUSAL = ("", "none", "null")  # a refusal field that says nothing, in small letters


def is_refused_by_api(answer: Answer) -> bool:
    """Whether the API itself declared a refusal; a blank field, or a "None" in it, is none."""
    declared = answer.refusal.strip().lower() not in NO_REFUSAL
    return declared or bool(api_refusal_signal(answer.finish_reason))


def is_cut_off(answer: Answer) -> bool:
    """Whether the API says that the answer ran into its token limit."""
    return answer.finish_reason.lower() in ("length", "max_tokens")
