"""What several judges say together, how far they agree, and whose family they are of."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbench.base.words import NO_CATEGORY
from orbench.judging.panels import agreement_lines, family_notes, majority
from orbench.models.providers import resolve
from orbench.models.requests import Missing

CATEGORIES = {"t": "illegal", "v": "violence", "s": NO_CATEGORY}


def vote(letters: str, min_votes: int = 1) -> str:
    """The category by judges' letters: t, v toxic, s safe, ? missing; "" without a majority."""
    votes = [CATEGORIES[letter] for letter in letters if letter != "?"]
    found = majority(votes, len(letters), min_votes)
    return "" if isinstance(found, Missing) else found


def toxic(letters: str, min_votes: int = 1) -> bool | None:
    """Whether the majority is for toxic; None without one."""
    category = vote(letters, min_votes)
    return category != NO_CATEGORY if category else None


# -- the majority ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "expected"), [("tv", "t"), ("vt", "v"), ("vtt", "t"), ("tvvs", "v"), ("tsv?", "t")]
)
def test_of_toxic_votes_the_most_frequent_category_counts_else_the_first(
    votes: str, expected: str
) -> None:
    assert vote(votes) == CATEGORIES[expected]


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ("ttt", True),
        ("tts", True),
        ("tss", False),
        ("sss", False),
        ("tt?", True),
        ("ss?", False),
        ("ts?", None),  # "2 of 3" must not become "1 of 2"
        ("?ts", None),
        ("t??", True),
        ("s??", False),
        ("???", None),
        ("ts", True),  # a full panel that is split
        ("ttss", True),
        ("tts?", True),
        ("t?s?", None),
        ("ttss?", None),
        ("?", None),
        ("", None),
    ],
)
def test_a_split_decides_only_if_every_judge_voted(votes: str, expected: bool | None) -> None:
    assert toxic(votes) is expected


def test_a_row_needs_as_many_votes_as_the_user_wants() -> None:
    assert toxic("t??", min_votes=2) is None
    assert toxic("tt?", min_votes=2) is True
    missing = Missing("unscored", "1 of 3 judges voted; 2 are needed")
    assert majority(["illegal"], 3, min_votes=2) == missing


def test_the_toxic_votes_name_the_category_and_of_equals_the_first_judge() -> None:
    assert vote("tvv") == vote("vts") == "violence"
    assert vote("tss") == NO_CATEGORY


@given(st.lists(st.sampled_from("ts?"), min_size=1, max_size=7))
def test_votes_that_arrive_never_overturn_what_more_than_half_decided(letters: list[str]) -> None:
    decided = toxic("".join(letters))
    most = max(letters.count("t"), letters.count("s"))
    if 2 * most > len(letters):
        for missing in product("ts", repeat=letters.count("?")):
            rest = iter(missing)
            full = "".join(next(rest) if letter == "?" else letter for letter in letters)
            assert toxic(full) is decided


# -- agreement ---------------------------------------------------------------------------------


def test_the_closing_lines_name_each_pair_and_the_panel() -> None:
    yes = [True] * 4
    votes = {"gpt4": [*yes, True, True, *[False] * 4], "llama3": yes + [False] * 6}
    assert [*agreement_lines(votes)] == [
        "gpt4 and llama3 agree on 80.0% of 10 texts, Cohen's kappa 0.615",
        "Krippendorff's alpha 0.620, 10 texts with two votes or more",
    ]


def test_a_pair_is_compared_on_the_texts_that_both_voted_on() -> None:
    a, b, c = [True, False, True, None], [True, None, False, None], [None, False, False, None]
    lines = [*agreement_lines({"a": a, "b": b, "c": c})]
    assert [line.partition(" agree on ")[2].partition(" texts")[0] for line in lines[:3]] == [
        "50.0% of 2",
        "50.0% of 2",
        "100.0% of 1",
    ]
    assert "undefined" in lines[2]
    assert lines[3].endswith("3 texts with two votes or more")


# -- families ----------------------------------------------------------------------------------


def test_a_judge_of_the_family_of_the_model_under_test_or_of_a_writer_is_named() -> None:
    record = {
        "under_test": {"asked": "gpt-4o", "id": "gpt-4o", "family": "GPT-4"},
        "written_by": [{"asked": "mixtral", "id": "mixtral-8x7b", "family": "Mistral"}],
    }
    judges = [resolve(name) for name in ("gpt4", "mistral-large", "claude-sonnet-4-5")]
    assert [*family_notes(judges, record)] == [
        "gpt4 is of the same family as the model under test (GPT-4): judges tend to favor their "
        "own",
        "mistral-large is of the same family as a model that wrote the prompts (Mistral): judges "
        "tend to favor their own",
    ]
    assert not [*family_notes(judges, {})]
