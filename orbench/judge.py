"""What an answer is before anybody reads its words: refused by the API, cut off, all thinking."""

from orbench.answers import Answer, Missing
from orbench.refusal import answer_of, api_refusal_signal
from orbench.terminal import one_line

JUDGE_TEMPERATURE = 0.0  # the paper's
VERDICT_ASKS = 3  # for an unreadable verdict: once, and up to two more times


def words_of(answer: Answer) -> str | Missing:
    """What a judge wrote, without its thinking; or why there is nothing to read."""
    if is_refused_by_api(answer):
        return Missing("unscored", "the judge's API refused")
    text, whole = answer_of(answer.text)
    if not whole:
        return Missing(
            "unscored",
            "the judge's reply was cut off inside its thinking; try a higher --max_tokens",
            answer.text,
        )
    return text


def unreadable(answer: Answer, why: str) -> Missing:
    """What becomes of a judge's reply that holds no verdict."""
    end = one_line(answer.text[-150:])
    return Missing("unscored", f"{why}; the reply ends: {end!r}", answer.text)


def is_refused_by_api(answer: Answer) -> bool:
    """Whether the API itself declared a refusal."""
    return bool(answer.refusal or api_refusal_signal(answer.finish_reason))


def is_cut_off(answer: Answer) -> bool:
    """Whether the API says that the answer ran into its token limit."""
    return answer.finish_reason.lower() in ("length", "max_tokens")


def says_nothing(answer: Answer) -> bool:
    """Whether an answer is empty and nothing explains it: some gateways make that of a refusal."""
    text, _ = answer_of(answer.text)
    return not (text.strip() or is_refused_by_api(answer) or is_cut_off(answer))
