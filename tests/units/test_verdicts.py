"""Reading a judge's choice: what is plain to a person is read, nothing else is, and never wrongly.

judge_replies/ holds the replies and what each must be read as.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orbench.base.words import (
    CATEGORIES_OR_NONE,
    GRADED_CLASSES,
    THREE_CLASSES,
    Choice,
    choices_of,
    numbered_list,
)
from orbench.judging.verdicts import read_choice

ROOT = Path(__file__).resolve().parents[2]
CATEGORIES = choices_of(CATEGORIES_OR_NONE, numbered=True)
CLASSES = choices_of(THREE_CLASSES, numbered=True)
GRADED = choices_of(GRADED_CLASSES, numbered=True)
UNNUMBERED = choices_of(THREE_CLASSES, numbered=False)
TABLES = {"classes": CLASSES, "categories": CATEGORIES, "graded": GRADED}
FOLDER = Path(__file__).with_name("judge_replies")
REPLIES: list[dict[str, str]] = []
for path in sorted(FOLDER.glob("*.toml")):
    REPLIES += tomllib.loads(path.read_text(encoding="utf-8"))["reply"]
READ = [(TABLES[one["choices"]], one["text"]) for one in REPLIES if one["expected"]]


# -- the table of replies ----------------------------------------------------------------------


@pytest.mark.parametrize("style", ["openai", "anthropic", "open", "quote", "short"])
def test_replies_are_read_as_a_person_reads_them_or_not_at_all(style: str) -> None:
    shares = {}
    for refusal in (True, False):
        names = [name for one, name in read_of(style) if one.endswith("refusal") is refusal]
        shares[refusal] = sum(map(bool, names)) / len(names)
    assert min(shares.values()) >= 0.95, shares
    assert abs(shares[True] - shares[False]) <= 0.02, shares


def test_sixty_new_replies_to_the_graded_prompt_are_read() -> None:
    names = [name for _, name in read_of("graded")]
    assert len(names) == 50  # the other 10 say nothing that could be read
    assert sum(map(bool, names)) / len(names) >= 0.95


def read_of(style: str) -> list[tuple[str, str | None]]:
    """What readable replies say and what is read in them; none of any reply is misread."""
    replies = [one for one in REPLIES if one["style"] == style]
    said = [(one, read_choice(one["text"], TABLES[one["choices"]])[0]) for one in replies]
    assert not [one for one, name in said if name and name != one["expected"]]
    return [(one["expected"], name) for one, name in said if one["expected"]]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"reason": "I cannot judge this.", "verdict": "direct_refusal"}', "direct_refusal"),
        ('{"reason": "[[1. direct_answer]]", "verdict": 2}', "direct_refusal"),
        ('{"verdict": "2", "reason": "Not a direct_answer. Wait."}', "direct_refusal"),
        ('{"alternative": "direct_answer", "verdict": "direct_refusal"}', "direct_refusal"),
        ('{"reason": "\\"verdict\\": \\"direct_answer\\"", "verdict": "unsure"}', None),
        ('{"verdict": "2. direct_answer"}', None),
        ('{"verdict": "direct_answer"} {"verdict": "direct_refusal"}', None),
        ('{"verdict": null}', None),
        ("{}", None),
    ],
)
def test_in_json_the_verdict_decides_whatever_the_reason_says(
    reply: str, verdict: str | None
) -> None:
    assert read_choice(reply, CLASSES)[0] == verdict
    assert read_choice('{"verdict": null}', CATEGORIES)[0] is None  # not the category none


@pytest.mark.parametrize("reply", ["[[2. direct_refusal]]", "Choice: 2", '{"verdict": 2}', "[[1]]"])
def test_a_number_that_the_judge_was_never_shown_means_nothing(reply: str) -> None:
    assert read_choice(reply, UNNUMBERED)[0] is None
    assert read_choice("It says no.\n[[direct_refusal]]", UNNUMBERED) == ("direct_refusal", "")


def test_a_reply_that_is_not_read_says_why() -> None:
    replies = ["Hm.", "[[direct_answer]]\n[[2]]", "[[direct_answer]]\nWait."]
    whys = ["gives one of the choices", "two choices", "not plainly give it"]
    for reply, why in zip(replies, whys, strict=True):
        assert why in read_choice(reply, CLASSES)[1]


# -- the words around a choice -----------------------------------------------------------------

WORDS = tomllib.loads(FOLDER.with_name("verdict_words.toml").read_text(encoding="utf-8"))
AROUND = [(f"{words}: hate", "hate") for words in WORDS["names"]]
AROUND += [(f"{words} [[privacy]]", "privacy") for words in WORDS["gives"] + WORDS["plain"]]
AROUND += [(text, name) for name, texts in WORDS["reads"].items() for text in texts]


@pytest.mark.parametrize(("reply", "name"), AROUND)
def test_words_that_only_give_the_verdict_do_not_hide_it(reply: str, name: str) -> None:
    assert read_choice(reply, CATEGORIES) == (name, "")


@pytest.mark.parametrize("why", [words for words in WORDS if " " in words])
def test_words_that_leave_a_doubt_make_a_reply_unreadable(why: str) -> None:
    for reply in WORDS[why]["replies"]:
        assert read_choice(reply, CATEGORIES) == (None, why), reply


def test_a_choice_far_above_the_end_is_not_read() -> None:
    remark = "\nIt names a street. " * 250
    assert read_choice("[[privacy]]" + remark[:3900], CATEGORIES) == ("privacy", "")
    assert read_choice("[[privacy]]" + remark[:4200], CATEGORIES)[0] is None


# -- the prompts -------------------------------------------------------------------------------

PROMPTS = {
    "moderator/prompt.txt": CATEGORIES,
    "moderator/policy.txt": CATEGORIES,
    "response_checker/prompt.txt": CLASSES,
    "response_checker/prompt_graded.txt": GRADED,
}


@pytest.mark.parametrize(("file", "choices"), PROMPTS.items())
def test_a_judge_that_repeats_its_instructions_has_said_nothing(
    file: str, choices: Sequence[Choice]
) -> None:
    classes = numbered_list(GRADED_CLASSES if "graded" in file else THREE_CLASSES)
    text = (ROOT / file).read_text(encoding="utf-8")
    categories = numbered_list(CATEGORIES_OR_NONE)
    text = text.replace("{categories}", categories).replace("{classes}", classes)
    lines = text.splitlines()
    assert ('"quote"' in text and '"verdict"' in text) or "policy" in file  # of the schema
    for end in range(1, len(lines) + 1):
        for repeated in ("\n".join(lines[:end]), lines[end - 1]):
            assert read_choice(repeated, choices)[0] is None, lines[end - 1]
    assert re.findall(r"\[\[.*?\]\]", text) == ["[[number. name]]"] * text.count("[[")
    assert "[[number. name]]" in text


# -- any reply ---------------------------------------------------------------------------------

STYLES = ("[[{}]]", "**[[{}]]**", "{}", "**{}**", "[{}]", "`{}`", '{{"verdict": "{}"}}')
BETWEEN = (" ", "\n", "\n\n", " or ", " and ", ", ", " / ", "/", "; ", ". ", " - ")
TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("[[[]]]{}\"'*_`\\:.\n12 "))
PIECES = [
    *(choice.name for choices in TABLES.values() for choice in choices),
    *("[[", "]]", "\n", " ", "Choice:", "not", "1.", "2", "so", '{"verdict": "', '"}', "\\", "**"),
]
MIXED = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=12).map(" ".join)
SOME_TABLE = st.sampled_from(list(TABLES.values()))
PLAIN = st.sampled_from(READ)


@settings(deadline=None, max_examples=300)
@given(SOME_TABLE, st.data())
def test_a_reply_that_names_two_choices_at_its_end_has_no_verdict(
    choices: Sequence[Choice], data: st.DataObject
) -> None:
    first, second = data.draw(st.permutations(choices))[:2]
    numbered = data.draw(st.booleans())
    one, other = (
        data.draw(st.sampled_from(STYLES)).format(f"{c.number}. {c.name}" if numbered else c.name)
        for c in (first, second)
    )
    reply = "It was read with care.\n" + one + data.draw(st.sampled_from(BETWEEN)) + other
    assert read_choice(reply, choices)[0] is None


@settings(deadline=None, max_examples=250)
@given(PLAIN, TEXT | MIXED, st.sampled_from([" ", "\n"]))
def test_text_in_front_may_make_a_reply_unreadable_and_never_turns_it(
    case: tuple[Sequence[Choice], str], front: str, between: str
) -> None:
    choices, reply = case
    name, _ = read_choice(reply, choices)
    assert read_choice(front + between + reply, choices)[0] in (None, name)


@settings(deadline=None, max_examples=250)
@given(PLAIN | st.tuples(SOME_TABLE, MIXED), st.data())
def test_escaping_marks_as_markdown_does_never_changes_what_is_read(
    case: tuple[Sequence[Choice], str], data: st.DataObject
) -> None:
    choices, reply = case
    assume("\\" not in reply)
    marks = data.draw(st.sampled_from(["_", "[]", "[]_*", "[]_*`#.-(){}!>"]))
    escaped = re.sub(f"[{re.escape(marks)}]", lambda mark: "\\" + mark[0], reply)
    assert read_choice(escaped, choices) == read_choice(reply, choices)


@settings(deadline=None, max_examples=300)
@given(SOME_TABLE, TEXT | MIXED)
def test_no_text_is_too_odd(choices: Sequence[Choice], text: str) -> None:
    name, why = read_choice(text, choices)
    assert name in {None, *(choice.name for choice in choices)}
    assert (name is None) is bool(why)


LONG = 1 << 19


# Time that grows with the square of the text would show here: hours instead of a blink.
@pytest.mark.parametrize(
    "text",
    [
        *("[[" * (LONG // 2), "[[" * (LONG // 4) + "]]" * (LONG // 4)),
        *("[[a]] " * (LONG // 32), "[[1]]\n" * (LONG // 32)),
        *("{" * LONG + "}", '{"a":' * (LONG // 5) + "}"),
        *("[[" + " " * LONG + "]]", "[[" + "1" * LONG + "]]", "\\" * LONG + "["),
        *("hate " * (LONG // 5) + "[[x]]", "*" * LONG + "x", '"' * LONG),
        *("“" * LONG, "if " * (LONG // 3) + "[[hate]]", "self-" * 200_000),
        *("Choice: " * (LONG // 8), "\n```" * (LONG // 4), "<|" * (LONG // 2)),
        *("it is " * (LONG // 6) + "[[hate]]", "so, " * (LONG // 4) + "[[hate]]"),
        *(
            ". " * (LONG // 2) + "x",
            "sorry, " * (LONG // 7),
            "as an ai " * (LONG // 9),
            "'a " * 350_000,
        ),
    ],
    ids=lambda text: text[:12] + ".." + text[-3:],
)
def test_the_time_grows_with_the_text_and_not_faster(text: str) -> None:
    assert read_choice(text, CATEGORIES)[0] in (None, "hate")
    assert read_choice("[[7. illegal]]\n" + text, CATEGORIES)[0] in (None, "hate", "illegal")
