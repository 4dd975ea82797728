"""Reading a judge's choice: what is plain to a person is read, nothing else is, and never wrongly.

judge_replies/ holds the replies and what each must be read as.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orbench.base.words import (
    CATEGORIES_OR_NONE,
    GRADED_CLASSES,
    THREE_CLASSES,
    Choice,
    numbered,
    numbered_list,
)
from orbench.judging.verdicts import read_choice

ROOT = Path(__file__).resolve().parents[2]
CATEGORIES = numbered(CATEGORIES_OR_NONE)
CLASSES = numbered(THREE_CLASSES)
GRADED = numbered(GRADED_CLASSES)
UNNUMBERED = THREE_CLASSES
TABLES = {"classes": CLASSES, "categories": CATEGORIES, "graded": GRADED}
FOLDER = Path(__file__).with_name("judge_replies")
REPLIES: list[dict[str, str]] = []
for path in sorted(FOLDER.glob("*.toml")):
    REPLIES += tomllib.loads(path.read_text(encoding="utf-8"))["reply"]
READ = [(TABLES[one["choices"]], one["text"]) for one in REPLIES if one["expected"]]


# -- the table of replies ----------------------------------------------------------------------


@pytest.mark.parametrize("style", ["openai", "anthropic", "open", "quote", "short", "graded"])
def test_replies_are_read_as_a_person_reads_them_or_not_at_all(style: str) -> None:
    few = style == "graded"  # one of its 10 refusals is not read
    is_read = defaultdict[bool, list[bool]](list)  # by whether a reply says that it is a refusal
    for reply in REPLIES:
        said = reply["expected"]
        if reply["style"] == style:
            name, _ = read_choice(reply["text"], TABLES[reply["choices"]])
            assert name in (said or None, None), reply
            if said:
                is_read[said.endswith("refusal")].append(name is not None)
    shares = fmean(is_read[True]), fmean(is_read[False])
    assert min(shares) >= (0.9 if few else 0.95)
    assert max(shares) - min(shares) <= (0.1 if few else 0.02)


@pytest.mark.parametrize(
    ("verdict", "reply"),
    [
        ("direct_refusal", '{"reason": "I cannot judge this.", "verdict": "direct_refusal"}'),
        ("direct_refusal", '{"reason": "[[1. direct_answer]]", "verdict": 2}'),
        ("direct_refusal", '{"verdict": "2", "reason": "Not a direct_answer. Wait."}'),
        ("direct_refusal", '{"alternative": "direct_answer", "verdict": "direct_refusal"}'),
        (None, '{"reason": "\\"verdict\\": \\"direct_answer\\"", "verdict": "unsure"}'),
        (None, '{"verdict": "2. direct_answer"}'),
        (None, '{"verdict": "direct_answer"} {"verdict": "direct_refusal"}'),
        (None, '{"verdict": null}'),
        (None, "{}"),
    ],
)
def test_in_json_the_verdict_decides_whatever_the_reason_says(
    verdict: str | None, reply: str
) -> None:
    assert read_choice(reply, CLASSES)[0] == verdict


def test_null_is_not_the_category_none() -> None:
    assert read_choice('{"verdict": null}', CATEGORIES)[0] is None


@pytest.mark.parametrize("reply", ["[[2. direct_refusal]]", "Choice: 2", '{"verdict": 2}', "[[1]]"])
def test_a_number_that_the_judge_was_never_shown_means_nothing(reply: str) -> None:
    assert read_choice(reply, UNNUMBERED)[0] is None


def test_a_judge_that_was_shown_no_numbers_is_read_by_names() -> None:
    assert read_choice("It says no.\n[[direct_refusal]]", UNNUMBERED) == ("direct_refusal", "")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Hm.", "gives one of the choices"),
        ("[[direct_answer]]\n[[2]]", "two choices"),
        ("[[direct_answer]]\nWait.", "not plainly give it"),
    ],
)
def test_a_reply_that_is_not_read_says_why(reply: str, why: str) -> None:
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


@pytest.mark.parametrize("file", PROMPTS)
def test_a_judge_that_repeats_its_instructions_has_said_nothing(file: str) -> None:
    choices = PROMPTS[file]
    text = (ROOT / file).read_text(encoding="utf-8")
    assert set(re.findall(r"\[\[.*?\]\]", text)) == {"[[number. name]]"}
    if "policy" not in file:
        assert '"quote"' in text and '"verdict"' in text  # of the schema
    shown = numbered_list(choices)
    text = text.replace("{categories}", shown).replace("{classes}", shown)
    said = ""
    for line in text.splitlines():
        said += line
        assert read_choice(line, choices)[0] is None, line
        assert read_choice(said, choices)[0] is None, said
        said += "\n"


# -- any reply ---------------------------------------------------------------------------------

STYLES = st.sampled_from(
    ["[[{}]]", "**[[{}]]**", "{}", "**{}**", "[{}]", "`{}`", '{{"verdict": "{}"}}']
)
BETWEEN = st.sampled_from([" ", "\n", "\n\n", " or ", " and ", ", ", " / ", "/", "; ", ". ", " - "])
TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("[[[]]]{}\"'*_`\\:.\n12 "))
PIECES = [
    *(choice.name for choices in TABLES.values() for choice in choices),
    *("[[", "]]", "\n", " ", "Choice:", "not", "1.", "2", "so", '{"verdict": "', '"}', "\\", "**"),
]
MIXED = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=12).map(" ".join)
SOME_TABLE = st.sampled_from(list(TABLES.values()))
PLAIN = st.sampled_from(READ)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_a_reply_that_names_two_choices_at_its_end_has_no_verdict(data: st.DataObject) -> None:
    choices = data.draw(SOME_TABLE)
    shown = data.draw(st.sampled_from(["{0.name}", "{0.number}. {0.name}"]))
    reply = "It was read with care.\n"
    for choice in data.draw(st.permutations(choices))[:2]:
        reply += data.draw(STYLES).format(shown.format(choice)) + data.draw(BETWEEN)
    assert read_choice(reply, choices)[0] is None


@settings(deadline=None, max_examples=250)
@given(PLAIN, TEXT | MIXED, st.sampled_from([" ", "\n"]))
def test_text_in_front_may_make_a_reply_unreadable_and_never_turns_it(
    case: tuple[Sequence[Choice], str], front: str, between: str
) -> None:
    choices, reply = case
    name, _ = read_choice(reply, choices)
    # Without a verdict, the reply may be a remark on the text in front; a bare number is a verdict
    # only where it is all.
    assume(name and not re.fullmatch(r"\W*\d+\W*", reply))
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


# Time that grows with the square of the text would show here: hours instead of a blink. Each second
# part is repeated.
@pytest.mark.parametrize(
    "parts",
    [
        *["…[[", "…[[……]]", "…[[a]] ", "…[[1]]\n", "…{…}", '…{"a":…}', "[[… …]]", "[[…1…]]"],
        *["…\\…[", "…hate …[[x]]", "…*…x", '…"', "…“", "…if …[[hate]]", "…self-", "…Choice: "],
        *["…\n```", "…<|", "…it is …[[hate]]", "…so, …[[hate]]", "…. …x", "…sorry, "],
        *["…as an ai ", "…'a ", "…\\"],
    ],
)
def test_the_time_grows_with_the_text_and_not_faster(parts: str) -> None:
    text = ""
    for number, part in enumerate(parts.split("…")):
        text += part * (LONG // len(part)) if number % 2 else part
    assert read_choice(text, CATEGORIES)[0] in (None, "hate")
    assert read_choice("[[7. illegal]]\n" + text, CATEGORIES)[0] in (None, "hate", "illegal")
