"""Names that tell results apart, and what repeats another result."""

from dataclasses import replace

import pytest

from orbench.base.messages import UserError
from orbench.report.names import with_distinct_names
from orbench.report.results import BOTH, TOXIC, Result, merged
from tests.results import models, responses, result_of

COPY = "the same responses as {} throughout, a copy or an ignored setting"
SAME = "the same model as a, by the returned ids"


def named(text: str) -> list[Result]:
    """The results of models with these fields; T stands in front of a toxic side."""
    results = []
    for model in text.split(", "):
        name, _, about = model.partition(" ")
        side = "1/1" if name[0] != "T" else "- 1/1"
        (rate,) = models(f"{name.removeprefix('T')} {side} prompts=p {about}".rstrip())
        results.append(rate.result)
    return with_distinct_names(results)


@pytest.mark.parametrize(
    ("text", "field", "shown"),
    [
        (
            "a prompt_set=aaaaaaaa1, b prompt_set=bbbbbbbb2, Tc prompt_set=c, d prompts=q",
            "prompts",
            ["p aaaaaaaa", "p bbbbbbbb", "p", "q"],
        ),
        (
            "a template=0123456789, b template=abcdefabcdef, c judge=k",
            "judge",
            ["gpt4, prompt 01234567", "gpt4, prompt abcdefab", "k"],
        ),
        ("a template=x, b template=y", "judge_any_version", ["gpt4, prompt x", "gpt4, prompt y"]),
        ("a judge_version=7, b judge_version=8", "judge", ["gpt4, rules 7", "gpt4, rules 8"]),
        ("a judge_version=7, b judge_version=8", "judge_any_version", ["gpt4", "gpt4"]),
        (
            "a template=x judge_version=7, b template=y judge_version=7, "
            "c template=y judge_version=8",
            "judge",
            ["gpt4, prompt x", "gpt4, prompt y, rules 7", "gpt4, prompt y, rules 8"],
        ),
        ("east/x, west/y", "short", ["x", "y"]),
        ("east/x, west/x, a/b/y", "short", ["east/x", "west/x", "y"]),
        ("a settings=low, b/c settings=low", "short", ["a", "c"]),
        ("a settings=low, b/c", "short", ["a (low)", "c"]),
        ("a, b", "number", [0, 1]),
    ],
)
def test_names_have_what_tells_them_apart(text: str, field: str, shown: list[str]) -> None:
    assert [getattr(one, field) for one in named(text)] == shown


def test_a_result_given_twice_stops_the_report_with_all_the_files() -> None:
    with pytest.raises(UserError) as stop:
        named("m settings=low file=f0, n, m settings=low file=f2")
    assert str(stop.value) == (
        "f0 and f2: the same model, prompts and judge; remove one, or rename it with MODEL=FILE"
    )


@pytest.mark.parametrize(
    "other", ["n", "m settings=low", "Tm", "m prompt_set=b", "m judge=k", "m judge_version=8"]
)
def test_results_that_differ_in_one_thing_are_both_shown(other: str) -> None:
    assert len(named(f"m, {other}")) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a responses_hash=h, b responses_hash=h", COPY.format("a")),
        ("a responses_hash=h, b responses_hash=h unranked=old", COPY.format("a")),
        ("a responses_hash=h, b responses_hash=i", ""),
        ("a, b", ""),
        ("a responses_hash=h, Tb responses_hash=h", ""),
        ("a responses_hash=h, b responses_hash=h is_baseline=yes", ""),
        ("a responses_hash=h is_baseline=yes, b responses_hash=h", ""),
        ("a responses_hash=h, b responses_hash=h judge=k", COPY.format("a")),
        ("a responses_hash=h, a responses_hash=h prompt_set=b", ""),
        ("a ids=a, b ids=a", SAME),
        ("a ids=a responses_hash=h, b ids=a responses_hash=h", SAME),
        ("a ids=a, b ids=b", ""),
        ("a ids=a, b ids=a settings=low", ""),
        ("a ids=a, Tb ids=a", ""),
        ("a ids=a, b ids=a prompt_set=b", ""),
        ("a ids=a, b ids=a judge=k", ""),
        ("a ids=a, b ids=a is_baseline=yes", ""),
        ("a ids=a is_baseline=yes, b ids=a", ""),
        ("a ids=a, b ids=b unranked=old", "old"),
        (
            "a responses_hash=h settings=low, b settings=low, c responses_hash=h settings=low",
            COPY.format("a (low)"),
        ),
    ],
)
def test_what_repeats_another_models_result_is_not_ranked(text: str, why: str) -> None:
    *others, last = named(text)
    assert last.unranked == tuple(filter(None, [why]))
    assert {one.unranked for one in others} == {()}


def test_notes_stand_with_the_most_important_first() -> None:
    notes = result_of(unranked=("why",), cautions=("care",), notes=("note", "two"))
    assert notes.against == ["why", "care"]
    assert replace(notes, doubt="doubt").against[:2] == ["doubt", "why"]


def test_both_sides_of_a_model_are_one_result_where_it_is_measured_across_them() -> None:
    a = result_of(responses([1.0, 0.0]), 5, model="m")
    b = result_of(responses([1.0], category="c"), prompts="b", side=TOXIC)
    both = merged([a, b, a])
    assert (both.model, both.number, both.side, both.prompts) == ("m", 5, BOTH, "p, b")
    assert list(both.responses.refused) == [1, 0, 1, 1, 0]
    assert list(both.responses.category) == ["a", "a", "c", "a", "a"]
