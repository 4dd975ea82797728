"""Reading [[...]] lists and labels: what counts is in the brackets, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbench import brackets

NO_BRACKETS = st.text(st.characters(exclude_characters="[]"), max_size=20)
WORDS = st.lists(
    st.text(st.characters(categories=("Lu", "Ll", "Lo")), min_size=1, max_size=6), min_size=1
).map(" ".join)
TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("[[[]]] *\"'1.\n"))


# -- lists -------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.tuples(NO_BRACKETS, WORDS)), NO_BRACKETS)
def test_items_are_read_one_by_one_whatever_stands_between_them(
    pairs: list[tuple[str, str]], end: str
) -> None:
    text = "".join(f"{between}[[{item}]]" for between, item in pairs) + end
    assert brackets.items(text) == [item for _, item in pairs]


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("[[a]] [[b]]", ["a", "b"]),
        ("1. [[a]], 2. [[b]]\n\n- [[c]]", ["a", "b", "c"]),
        ("[[a\n  b]]", ["a b"]),
        ("[[a [b]]]", ["a [b]"]),
        ("[[[a] b]]", ["[a] b"]),
        ("[[[a]]]", ["a"]),
        ("[[fill in [name] and [date] here]]", ["fill in [name] and [date] here"]),
        ("[[an x[0][1] in code]]", ["an x[0][1] in code"]),
        ("[[never closed, then [[a]]", ["a"]),
        ("[[a]] and [[never closed", ["a"]),
        ("closed ]] first [[a]]", ["a"]),
        ("[[a]]]", ["a"]),
        ("[[]] [[ ]] [[a]]", ["a"]),
        ("no brackets at all, [one] pair", []),
    ],
)
def test_brackets_in_brackets_and_broken_brackets(text: str, items: list[str]) -> None:
    assert brackets.items(text) == items


@pytest.mark.parametrize(
    "written",
    [
        "Who took it?",
        "1. Who took it?",
        "12) Who took it?",
        "(3) Who took it?",
        "- Who took it?",
        "• Who took it?",
        '"Who took it?"',
        "“Who took it?”",
        "«Who took it?»",
        "„Who took it?“",
        "'Who took it?'",
        "**Who took it?**",
        "***Who took it?***",
        '2. **"Who  took\nit?"**',
        "`Who took it?`",
        " __ Who took it? __ ",
    ],
)
def test_numbering_quotes_and_bold_marks_around_an_item_are_taken_off(written: str) -> None:
    assert brackets.items(f"[[{written}]]") == ["Who took it?"]


@pytest.mark.parametrize(
    "item",
    [
        '"Sweet" or "salt"',
        "**Sweet** or **salt**",
        "'Sweet' or 'salt'",
        "“Sweet” or “salt”",
        "1984 was what kind of year?",
        "3.5 litres of what?",
        "Why is it called *umami*?",
        'Who said "hello"',
        "-5 degrees: too cold for oranges?",
        "2 + 2?",
    ],
)
def test_marks_and_numbers_that_belong_to_the_text_stay(item: str) -> None:
    assert brackets.items(f"[[{item}]]") == [item]


def test_an_apostrophe_within_quotes_does_not_keep_the_quotes() -> None:
    assert brackets.items("[['It's whose?']]") == ["It's whose?"]


# -- any text ----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=300)
@given(TEXT)
def test_no_text_is_too_odd(text: str) -> None:
    found = list(brackets.spans(text))
    ends = [0]
    for start, end in found:
        assert ends[-1] <= start < end <= len(text)
        assert text[start : start + 2] == "[["
        assert text[end - 2 : end] == "]]"
        ends.append(end)
    assert all(item == item.strip() != "" for item in brackets.items(text))


MEGABYTE = 1 << 20


# Time that grows with the square of the text would show here: hours in place of a blink.
@pytest.mark.parametrize(
    "text",
    [
        "[[" * (MEGABYTE // 2),
        "]]" * (MEGABYTE // 2),
        "[" * MEGABYTE,
        "[[" * (MEGABYTE // 4) + "]]" * (MEGABYTE // 4),
        "[[" * (MEGABYTE // 2) + "]]",
        "[[" + "]" * MEGABYTE,
        "[[ " * (MEGABYTE // 3) + "]]",
        "[[]]" * (MEGABYTE // 32),
        "[[a] " * (MEGABYTE // 5),
        "[[" + " " * MEGABYTE + "]]",
        *(
            "[[" + mark * (MEGABYTE // len(mark)) + "]]"
            for mark in ("1. ", "- ", "*", "** ", '"', "'", "_", "(1) ")
        ),
        "[[" + "'" + "a'b" * (MEGABYTE // 3) + "'" + "]]",
        "[[" + "1" * MEGABYTE + "]]",
    ],
    ids=lambda text: text[:12] + ".." + text[-3:],
)
def test_the_time_grows_with_the_text_and_not_faster(text: str) -> None:
    assert len(brackets.items(text)) <= MEGABYTE


# -- same --------------------------------------------------------------------------------------


def test_case_spacing_and_end_punctuation_do_not_make_a_prompt_another() -> None:
    same = {
        brackets.same(prompt)
        for prompt in (
            "Who took it?",
            " who  TOOK\nit",
            "Who took it?!",
            'Who took it. "',
            "Who took it…",
        )
    }
    assert len(same) == 1


@pytest.mark.parametrize("other", ["Who took them?", "Whotook it?", "Who, took it?", "It took"])
def test_other_words_make_another_prompt(other: str) -> None:
    assert brackets.same(other) != brackets.same("Who took it?")


@given(WORDS, st.sampled_from(["", " ", ".", "?", "!?", "…", "。", "\n"]))
def test_any_script_has_the_same_prompt_with_other_ends(words: str, end: str) -> None:
    assert brackets.same(words + end) == brackets.same(f"  {words}")
