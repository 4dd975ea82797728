"""What a generator's reply holds: prompts in double brackets, marks, excuses, copies."""

from typing import Any

import pytest

from orbench.models.requests import Answer
from orbench.stages.generators import Generated, is_excuse, only_new, prompts_in, without_marks
from orbench.stages.stage import Result
from tests.units.test_answers import table

REPLIES = table("generated.toml")
SENT = "The text sent"


def each(name: str) -> list[tuple[str, str]]:
    """The cases of a table that lists several for each key."""
    return [(key, value) for key, values in REPLIES[name].items() for value in values]


@pytest.mark.parametrize(("item", "prompt"), REPLIES["marks"].items())
def test_numbering_and_marks_around_a_prompt_are_no_part_of_it(item: str, prompt: str) -> None:
    assert without_marks(item) == prompt


@pytest.mark.parametrize(("reply", "prompts"), REPLIES["brackets"].items())
def test_prompts_stand_in_double_brackets(reply: str, prompts: list[str]) -> None:
    assert prompts_in(Answer(reply), SENT).prompts == prompts


@pytest.mark.parametrize(("fate", "item"), each("placeholders"))
def test_what_only_stands_for_a_prompt_is_none(fate: str, item: str) -> None:
    assert prompts_in(Answer(f"[[{item}]]"), SENT).copies == (fate == "dropped")


@pytest.mark.parametrize(("sent", "item"), each("copies"))
def test_a_copy_of_what_was_sent_is_no_prompt(sent: str, item: str) -> None:
    assert prompts_in(Answer(f"[[{item}]]"), sent) == Generated([], copies=1)


@pytest.mark.parametrize(("sent", "item"), each("no_copies"))
def test_what_shares_fewer_words_with_each_line_sent_is_no_copy(sent: str, item: str) -> None:
    assert prompts_in(Answer(f"[[{item}]]"), sent) == Generated([item])


@pytest.mark.parametrize(("which", "text"), each("excuses"))
def test_an_excuse_refuses_to_write_and_a_prompt_asks_for_something(which: str, text: str) -> None:
    assert is_excuse(text) == (which == "yes")


def test_an_excuse_is_told_by_its_first_1000_characters() -> None:
    birds = "I cannot assist with this. " + "Birds fly. " * 100
    assert is_excuse(f"{birds} Is it so?")
    assert not is_excuse(f"{birds[:990]}  a b?")


@pytest.mark.parametrize(("first", "second"), each("equal"))
def test_a_prompt_that_equals_an_earlier_one_or_its_seed_is_not_new(
    first: str, second: str
) -> None:
    twice = Result({}, [{"prompt": first}, {"prompt": second}], [], [])
    assert [result.rows for result in only_new(iter([twice]))] == [[{"prompt": first}]]
    of_seed = Result({}, [{"prompt": second, "toxic_seed": first}], [], [])
    assert [result.rows for result in only_new(iter([of_seed]))] == [[]]


@pytest.mark.parametrize(("first", "second"), each("other"))
def test_another_prompt_is_new(first: str, second: str) -> None:
    result = Result({}, [{"prompt": first}, {"prompt": second}], [], [])
    assert list(only_new(iter([result]))) == [result]
    assert len(next(only_new(iter([result]), wanted=1)).rows) == 1


@pytest.mark.parametrize(("reply", "more"), REPLIES["replies"].items())
def test_a_reply_may_refuse_or_hold_excuses_and_copies(reply: str, more: dict[str, Any]) -> None:
    given = prompts_in(Answer(reply), SENT)
    assert given._replace(prompts=[]) == Generated([], **more)
    filtered = Answer(reply, finish_reason="content_filter")
    assert prompts_in(filtered, SENT)[:2] == ([], True)
