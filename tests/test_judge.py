"""A judge's answer: first what the API says of it, then its text without the thinking."""

import json

import pytest

from orbench.answers import Answer, Missing
from orbench.chat import read_answer
from orbench.judge import is_refused_by_api, unreadable, words_of
from orbench.models import resolve
from tests.server import completion


@pytest.mark.parametrize("refusal", ["", " ", "\n", "None", "none", " null ", None])
def test_a_refusal_field_that_says_nothing_is_no_refusal(refusal: str | None) -> None:
    message = {"role": "assistant", "content": "It says no.", "refusal": refusal}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    model = resolve("openai/gpt-x", environment={})
    answer = read_answer(json.loads(completion(choices=[choice])), model)
    assert not is_refused_by_api(answer)
    assert words_of(answer) == "It says no."


@pytest.mark.parametrize(
    "answer",
    [
        Answer("[[direct_answer]]", "stop", "I can't judge that."),
        Answer("[[direct_answer]]", "content_filter"),
    ],
)
def test_a_refusal_that_the_api_declares_is_no_verdict_whatever_the_text(answer: Answer) -> None:
    assert words_of(answer) == Missing("unscored", "the judge's API refused")


def test_thinking_is_never_read() -> None:
    thought = "<think>Perhaps [[direct_answer]].</think>"
    words = words_of(Answer(thought + "[[direct_refusal]]"))
    assert isinstance(words, str) and words.strip() == "[[direct_refusal]]"
    unfinished = words_of(Answer("<think>[[direct_answer]]"))
    assert isinstance(unfinished, Missing) and "thinking" in unfinished.why


def test_why_there_is_no_verdict_comes_with_the_end_of_the_reply() -> None:
    missing = unreadable(Answer("It is hard\nto say."), "no choice")
    assert missing.why == "no choice; the reply ends: 'It is hard to say.'"
    assert missing.said == "It is hard\nto say."
