"""Names that tell results apart, and what repeats another result."""

from dataclasses import replace
from typing import Any

import pytest

from orbench.base.messages import UserError
from orbench.report.names import told_apart
from orbench.report.results import BOTH, TOXIC, Result, merged
from tests.results import responses, result_of

Fields = dict[str, Any]
SET_A, SET_B = "aaaaaaaa11111111", "bbbbbbbb22222222"


def models(*about: Fields) -> list[Result]:
    """Results with these fields, each of a model of its own if not said otherwise."""
    found = []
    for number, fields in enumerate(about):
        usual = {"file": f"f{number}.csv", "prompt_set": SET_A}
        found.append(result_of(responses([1.0]), number, **usual | fields))
    return found


def named(*about: Fields) -> list[Result]:
    return told_apart(models(*about))


def test_sets_of_one_name_get_the_beginning_of_their_hash_on_the_side_where_they_differ() -> None:
    found = named({}, {"prompt_set": SET_B}, {"side": TOXIC}, {"prompts": "q"})
    assert [one.prompts for one in found] == ["p aaaaaaaa", "p bbbbbbbb", "p", "q"]


def test_judges_of_one_name_are_told_apart_by_prompt_then_by_version_of_the_rules() -> None:
    found = named({"template": "0123456789"}, {"template": "abcdefabcdef"}, {"judge": "k"})
    assert [one.judge for one in found] == [
        "gpt4, prompt 01234567",
        "gpt4, prompt abcdefab",
        "k",
    ]
    assert [one.judge_any_version for one in found] == [one.judge for one in found]
    rules = {"judge": "rules", "judge_any_version": "rules"}
    found = named(rules | {"judge_version": "7"}, rules | {"judge_version": "8"}, {})
    assert [one.judge for one in found] == ["rules, rules 7", "rules, rules 8", "gpt4"]
    assert [one.judge_any_version for one in found] == ["rules", "rules", "gpt4"]
    both = named(
        {"template": "x", "judge_version": "7"},
        {"template": "y", "judge_version": "7"},
        {"template": "y", "judge_version": "8"},
    )
    assert [one.judge for one in both] == [
        "gpt4, prompt x",
        "gpt4, prompt y, rules 7",
        "gpt4, prompt y, rules 8",
    ]


SHORT: list[tuple[list[Fields], list[str]]] = [
    ([{"model": "east/x"}, {"model": "west/y"}], ["x", "y"]),
    ([{"model": "east/x"}, {"model": "west/x"}, {"model": "a/b/y"}], ["east/x", "west/x", "y"]),
    ([{"settings": "low"}, {"model": "a/m", "settings": "low"}], ["m0", "m"]),
    ([{"settings": "low"}, {"model": "a/m"}], ["m0 (low)", "m"]),
]


@pytest.mark.parametrize(("about", "short"), SHORT)
def test_short_names_lack_what_tells_nothing(about: list[Fields], short: list[str]) -> None:
    assert [one.short for one in named(*about)] == short


def test_a_result_given_twice_stops_the_report_with_all_the_files() -> None:
    twice: Fields = {"model": "m", "settings": "low"}
    with pytest.raises(UserError) as stop:
        named(twice, {}, twice)
    assert str(stop.value) == (
        "f0.csv and f2.csv: the same model, prompts and judge; remove one, or rename it with "
        "MODEL=FILE"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"model": "n"},
        {"settings": "low"},
        {"side": TOXIC},
        {"prompt_set": SET_B},
        {"judge": "k"},
        {"judge_version": "8"},
    ],
)
def test_results_that_differ_in_one_thing_are_both_shown(other: Fields) -> None:
    assert len(named({"model": "m"}, {"model": "m"} | other)) == 2


COPY = "the same responses as m0 throughout, a copy or an ignored setting"
SAME = "the same model as m0, by the returned ids"


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({"responses_hash": "h"}, {"responses_hash": "h"}, (COPY,)),
        ({"responses_hash": "h"}, {"responses_hash": "h", "unranked": ("old",)}, (COPY,)),
        ({"responses_hash": "h"}, {"responses_hash": "i"}, ()),
        ({"responses_hash": ""}, {"responses_hash": ""}, ()),
        ({"responses_hash": "h"}, {"responses_hash": "h", "side": TOXIC}, ()),
        ({"responses_hash": "h"}, {"responses_hash": "h", "is_baseline": True}, ()),
        ({"responses_hash": "h", "is_baseline": True}, {"responses_hash": "h"}, ()),
        ({"responses_hash": "h"}, {"responses_hash": "h", "judge": "k"}, (COPY,)),
        (
            {"responses_hash": "h"},
            {"responses_hash": "h", "model": "m0", "prompt_set": SET_B},
            (),
        ),
        ({"ids": "a"}, {"ids": "a"}, (SAME,)),
        ({"ids": "a", "responses_hash": "h"}, {"ids": "a", "responses_hash": "h"}, (SAME,)),
        ({"ids": "a"}, {"ids": "b"}, ()),
        ({"ids": ""}, {"ids": ""}, ()),
        ({"ids": "a"}, {"ids": "a", "settings": "low"}, ()),
        ({"ids": "a"}, {"ids": "a", "side": TOXIC}, ()),
        ({"ids": "a"}, {"ids": "a", "prompt_set": SET_B}, ()),
        ({"ids": "a"}, {"ids": "a", "judge": "k"}, ()),
        ({"ids": "a"}, {"ids": "a", "is_baseline": True}, ()),
        ({"ids": "a", "is_baseline": True}, {"ids": "a"}, ()),
        ({"ids": "a"}, {"ids": "b", "unranked": ("old",)}, ("old",)),
    ],
)
def test_what_repeats_another_models_result_is_not_ranked(
    first: Fields, second: Fields, why: tuple[str, ...]
) -> None:
    a, b = named(first, second)
    assert (a.unranked, b.unranked) == ((), why)


def test_a_third_copy_is_told_to_be_one_of_the_first() -> None:
    repeated: Fields = {"responses_hash": "h", "settings": "low"}
    *_, third = named(*[repeated] * 3)
    assert third.unranked == (COPY.replace("m0", "m0 (low)"),)


def test_a_name_stands_with_its_settings_and_notes_with_the_most_important_first() -> None:
    (result,) = named({"model": "east/x", "settings": "low"})
    assert (result.label, result.short) == ("east/x (low)", "x")
    notes: Fields = {"unranked": ("why",), "cautions": ("care",), "notes": ("note", "two")}
    assert result_of(responses([1.0]), **notes).all_notes == ["why", "care", "note", "two"]
    doubtful = replace(result_of(responses([1.0]), **notes), doubt="doubt")
    assert doubtful.all_notes[:2] == ["doubt", "why"]


def test_both_sides_of_a_model_are_one_result_where_it_is_measured_across_them() -> None:
    safe, toxic = responses([1.0, 0.0]), responses([1.0], category="c")
    a = result_of(safe, prompts="p", model="m")
    b = result_of(toxic, 1, prompts="q", model="m", side=TOXIC)
    both = merged([a, b, a])
    assert (both.model, both.number, both.side, both.prompts) == ("m", 0, BOTH, "p, q")
    assert list(both.responses.refused) == [1, 0, 1, 1, 0]
    assert list(both.responses.category) == ["a", "a", "c", "a", "a"]
    assert merged([b], TOXIC).responses is toxic and merged([b], TOXIC).side == TOXIC
