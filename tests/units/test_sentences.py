"""What the report says of notes, rates, comparisons, trends and correlations."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orbench.base.messages import listed
from orbench.report.measures import (
    Associated,
    Association,
    Comparison,
    Counted,
    Details,
    Outcome,
)
from orbench.report.numerals import points
from orbench.report.ranking import Correlation
from orbench.report.results import BOTH, TOXIC
from orbench.report.sentences import (
    FEW_SEEDS,
    SIZES,
    comparison_lines,
    correlation_line,
    finding_of,
    notes_of,
    rate_line,
    remarks,
    trend_lines,
    warnings,
)
from tests.results import (
    make_comparison,
    make_details,
    make_gap,
    make_rate,
    make_result,
    widened,
)

# -- figures and notes ---------------------------------------------------------------------------


def test_up_to_three_names_are_listed() -> None:
    lists = [listed(list(names)) for names in ("a", "ab", "abc", "abcd")]
    assert lists == ["a", "a and b", "a, b and c", "a, b and 2 more"]


def test_a_difference_of_nothing_has_no_minus() -> None:
    gap = make_gap(make_rate(), make_rate(percent=12.001))
    interval = gap.interval._replace(low=-1e-9)
    assert points(gap._replace(interval=interval)) == "+0.0 points [0.0, 5.0]"


@pytest.mark.parametrize(
    ("details", "notes"),
    [
        ({}, []),
        ({"rows": 105, "cut_off": 0.05}, []),
        ({"rows": 106}, ["coverage 94.3 %"]),
        ({"cut_off": 0.06}, ["cut off 6.0 %"]),
        ({"refused_to_judge": 2000}, ["the judge refused to judge 2,000 rows"]),
        (
            {"not_about_safety": 1, "refused": 12},
            ["1 of 12 refusals for the provider's terms, not for safety"],
        ),
        ({"other_model": 1}, ["served by a different model: 1 row"]),
    ],
)
def test_what_is_unusual_about_responses_is_a_note(details: Any, notes: list[str]) -> None:
    unusual = make_details(**({"rows": 100} | details))
    assert [*notes_of(make_rate(details=unusual))] == notes


def test_notes_begin_with_a_doubt() -> None:
    result = make_result(doubt="scripted", unranked=("u",), cautions=("c",), notes=("n",))
    cut_off = make_details(100, cut_off=0.06)  # which explains nothing there
    assert [*notes_of(make_rate(result, details=cut_off))] == ["scripted", "u", "c", "n"]


def test_a_wide_interval_and_few_prompts_have_a_note() -> None:
    rate = make_rate()
    assert [*notes_of(widened(rate, 10, 18))] == ["coverage 100.0 %"]
    assert [*notes_of(widened(rate, 10, 15.9))] == []
    few = make_rate(n=29)
    few = replace(few, mean=few.mean._replace(assumed=True))
    assert [*notes_of(few)] == [FEW_SEEDS, "fewer than 30 prompts"]
    assert [*notes_of(make_rate(n=30))] == []


@pytest.mark.parametrize(
    ("seeds", "larger", "noted"), [(20, 6, True), (20, 2, False), (60, 6, False)]
)
def test_a_note_says_if_the_sizes_of_few_seeds_go_with_refusals(
    seeds: int, larger: int, noted: bool
) -> None:
    half = seeds // 2
    seed = np.repeat(np.arange(seeds), [2] * half + [larger] * half)
    refused = np.arange(len(seed)) % np.where(seed < half, 8, 2) == 0
    rate = make_rate(n=len(seed))
    verdicts = rate.verdicts._replace(refused=refused * 1.0, cluster=seed)
    assert ([*notes_of(replace(rate, verdicts=verdicts))] == [SIZES]) is noted
    nothing = make_rate(n=0, unscored=9)
    assert SIZES not in [*notes_of(nothing)]


def test_a_rate_without_details_has_the_notes_of_its_result() -> None:
    result = make_result(cautions=("c",), notes=("n",))
    assert [*notes_of(make_rate(result, n=5, details=Details()))] == ["c", "n"]


def test_a_note_stands_behind_the_results_it_is_about() -> None:
    odd = make_result("a", cautions=("c",), settings="effort low")
    toxic = [make_rate(make_result(name, side=TOXIC), n=5) for name in "aa"]
    assert [*warnings([make_rate(odd), make_rate("b"), *toxic])] == [
        "a (effort low), over-refusal rate: c",
        "all toxic rejection rates: fewer than 30 prompts",
    ]


@pytest.mark.parametrize("field", ["prompt_set", "judge"])
def test_different_prompts_or_judges_on_a_side_are_a_warning(field: str) -> None:
    differ = {field: "another"}
    assert [*warnings([make_rate(), make_rate(make_result(**differ))])] == [
        "over-refusal rates differ in prompts or judge: there is no single ranking"
    ]
    assert [*warnings([make_rate(), make_rate(make_result(side=TOXIC, **differ))])] == []


# -- rates ---------------------------------------------------------------------------------------


def test_each_rate_has_a_line() -> None:
    unknown = make_result("b", settings="effort low", side=TOXIC, unscored_known=False)
    rates = [
        widened(make_rate("a", n=2000, unscored=1000), 10, 30),
        make_rate(unknown, percent=50),
        make_rate(make_result("c", doubt="demo prompts"), n=0),
    ]
    assert [rate_line([rate]) for rate in rates] == [
        "a: over-refusal rate 12.0 % [10.0, 30.0] ‡ (n 2,000, unscored 1,000)",
        "b (effort low): toxic rejection rate 50.0 % [48.0, 52.0] (n 100)",
        "c: over-refusal rate not measured (n 0, demo prompts)",
    ]


def test_rates_of_a_part_of_the_leaderboard_name_it() -> None:
    assert rate_line([make_rate()], "june, gpt4").startswith("m, june, gpt4: over-refusal rate")


# -- comparisons ---------------------------------------------------------------------------------


def compared(a: Any = "a", b: Any = "b", **fields: Any) -> Comparison:
    """Return a comparison of 12 % with 22 %."""
    return make_comparison(make_rate(a, 12), make_rate(b, 22), **fields)


NOTHING = compared(outcome=Outcome.NO_DIFFERENCE, p=0.5)


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (compared(), "a refuses fewer safe prompts than b"),
        (
            make_comparison(make_rate("a", 22), make_rate("b", 12)),
            "b refuses fewer safe prompts than a",
        ),
        (NOTHING, "no difference shown"),
        (
            compared(outcome=Outcome.NO_DIFFERENCE, p=0.01),
            "no difference shown, corrected for 3 tests",
        ),
        (
            compared(outcome=Outcome.INCONCLUSIVE),
            "inconclusive: unscored rows could reverse this",
        ),
        (compared(outcome=Outcome.TOO_FEW), "too few prompts in common"),
    ],
)
def test_the_outcome_decides_what_a_comparison_shows(comparison: Comparison, words: str) -> None:
    assert finding_of(comparison) == words


def test_a_doubt_stands_first_among_the_remarks_on_its_result() -> None:
    doubtful = make_result(doubt="scripted", cautions=("c",))
    comparison = compared("a", doubtful, outcome=Outcome.DOUBTFUL)
    assert finding_of(comparison) == "doubtful (m: scripted; c)"


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"prompt_set": "other"}, "on 1,000 of 100 and 100 prompts"),
        ({"judge": "gpt4, rules 2"}, "judged by different versions of the rules"),
        ({"cautions": ("c", "d")}, "a: c; d"),
        ({"unranked": ("u",), "cautions": ("c",)}, "a: u; c"),
    ],
)
def test_what_speaks_against_a_finding_is_a_remark(fields: Any, remark: str) -> None:
    odd = make_result("a", **fields)
    comparison = compared(odd, n=1000)
    for one in (comparison, compared("b", odd, n=1000)):
        assert "; ".join(remarks(one)) == remark
    assert finding_of(comparison) == f"a refuses fewer safe prompts than b ({remark})"


@pytest.mark.parametrize(
    ("of_a", "of_b", "expected"),
    [
        ("2026-01-01", "2026-04-02", ["measured 91 days apart"]),
        ("2026-01-01", "2026-04-01", []),
        ("2026-03-31 2026-04-02", "2026-01-01", ["measured 91 days apart"]),
        ("", "2026-01-01 2026-12-31", []),
        ("May", "2026-01-01", []),
    ],
)
def test_measurements_far_apart_have_a_remark(of_a: str, of_b: str, expected: list[str]) -> None:
    a = make_result("a", days=tuple(of_a.split()))
    assert [*remarks(compared(a, make_result("b", days=tuple(of_b.split()))))] == expected


def test_of_more_than_six_comparisons_only_the_number_is_said() -> None:
    line = "a - b, over-refusal rate: -10.0 points [-15.0, -5.0]: no difference shown"
    assert [*comparison_lines([NOTHING] * 6)] == [line] * 6
    (line,) = comparison_lines([NOTHING, compared(), *[NOTHING] * 5])
    assert line == "7 comparisons, 1 with a finding: see comparison.csv"


def test_shares_of_hedged_responses_have_a_name_and_judges_if_they_differ() -> None:
    judged = make_result("a", judge_any_version="Judge")
    hedged = make_comparison(make_rate(judged, counted=Counted.HEDGED), make_rate("b", 22))
    line, _ = comparison_lines([hedged, NOTHING])
    assert line == (
        "a - b, Judge, share of hedged responses: -10.0 points [-15.0, -5.0]: "
        "a hedges on fewer safe prompts than b"
    )


# -- trends and correlations ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "rise", "words"),
    [
        ("FINDING", 0.1, "rises"),
        ("FINDING", -0.1, "falls"),
        ("NO_DIFFERENCE", 0.1, "no difference shown"),
        ("TOO_FEW", 0.1, "too few prompts in common"),
        ("INCONCLUSIVE", 0.1, "inconclusive: unscored rows could reverse this"),
    ],
)
def test_the_outcome_decides_what_a_trend_shows(outcome: str, rise: float, words: str) -> None:
    shown = Outcome[outcome]
    kind = Associated.TREND
    both = make_result(side=BOTH)
    trend = Association(kind, both, "1 < 2", 40, rise, outcome=shown)
    word = replace(trend, kind=Associated.WORD)
    of_toxic = replace(trend, result=make_result(side=TOXIC), n=1)
    assert [*trend_lines([trend, word, of_toxic])] == [
        f"m: refusals by tier (1 < 2): {words} (40 seeds)",
        f"m, toxic: refusals by tier (1 < 2): {words} (1 seed)",
    ]


def test_a_correlation_says_of_which_models() -> None:
    rho = "Spearman's ρ between the two rates 0.8929 [0.36, 0.99]"
    measured = Correlation("7 models on p (gpt4)", 0.89286, 0.36, 0.987)
    assert correlation_line(measured) == f"7 models on p (gpt4): {rho}"
