"""The headline of a report."""

from dataclasses import replace
from math import nan
from typing import Any

import pytest

from orbench.report.finding import findings
from orbench.report.measures import Compared, Comparison, Outcome
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Rank, Report, Standing
from orbench.stats.intervals import Interval
from orbench.stats.labels import ByLabels
from tests.results import make_comparison, make_standing

BY_WORD = {"safe": SAFE, "toxic": TOXIC}
OUTCOMES = {
    "<": Outcome.FINDING,
    "=": Outcome.NO_DIFFERENCE,
    "?": Outcome.INCONCLUSIVE,
    "~": Outcome.TOO_FEW,
}
A = "a refuses 12.0 % [10.0, 14.0] of the safe prompts"
B = "b refuses 12.0 % [10.0, 14.0] of the safe prompts"
A_TOXIC = "80.0 % [78.0, 82.0] of the toxic prompts"
FOLLOWS = "a - b +20.0 points [15.0, 25.0]"
FEWER = "-20.0 points [-25.0, -15.0]"
JUDGE = "Note: errors of the judge that differ between the models are not covered."
LOWER = "b has a lower over-refusal rate than a; over-refusal rates: 12.0 and 32.0 %"
LOWEST = "the lowest over-refusal rate"
HIGHEST = "the highest toxic rejection rate"
FOUND = "would be found with a probability of 80 %"
UNDECIDED = f"no difference shown; a true difference of 10.0 points {FOUND}"


def models(text: str, **fields: Any) -> list[Standing]:
    """Return a leaderboard from models such as `a 1-2 12 80`: name, rank, percent of the safe
    prompts and of the toxic ones. In place of a rank: `doubt=...`, `unranked=...` or `-`.
    """
    board = []
    for model in text.split(", "):
        name, rank, safe, toxic = model.split(" ")
        why, _, reason = rank.partition("=")
        ranked = None
        changed = fields
        if reason:
            changed = fields | {why: reason if why == "doubt" else (reason,)}
        elif rank != "-":
            ranked = Rank(int(rank[0]), int(rank[-1]))
        rates = (float(safe.replace("-", "nan")), float(toxic.replace("-", "nan")))
        board.append(make_standing(name, *rates, rank=ranked, **changed))
    return board


def comparisons(text: str, board: list[Standing], **fields: Any) -> list[Comparison]:
    """Return comparisons such as `safe a<b`; the sign tells the outcome."""
    named = {model.result.short: model for model in board}
    made = []
    for comparison in filter(None, text.split(", ")):
        side, pair = comparison.split(" ")
        a, b = (named[name].on(BY_WORD[side]) for name in (pair[0], pair[2]))
        assert a and b
        made.append(make_comparison(a, b, OUTCOMES[pair[1]], **fields))
    return made


def found(board: list[Standing], compared: list[Comparison]) -> list[str]:
    """Return the finding on each group of models, its remarks behind it."""
    report = Report([], [], compared, [], board, [], [])
    return [
        " ".join([finding.headline, *(f"{remark}." for remark in finding.remarks)])
        for finding in findings(report)
    ]


def headline(board: str, compared: str = "", **fields: Any) -> str:
    """Return the finding on a group of models; fields: of the comparisons."""
    standings = models(board)
    (line,) = found(standings, comparisons(compared, standings, **fields))
    return line


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        ("a - 12 -", f"{A}."),
        ("a - 12 80", f"{A} and {A_TOXIC}."),
        ("a unranked=u - 80", f"a refuses {A_TOXIC}. Not ranked: a (u)."),
        ("a - 12 -, c doubt=scripted 12 -", f"{A}. Not ranked: c (scripted)."),
        ("a doubt=scripted 12 -", "No finding. Not ranked: a (scripted)."),
        (
            "a doubt=d 1 -, b unranked=u 1 -, c doubt=d 1 -",
            "No finding. Not ranked: a and c (d). Not ranked: b (u).",
        ),
        (
            "b - 12 80, a doubt=d 80 12",
            f"{B} and {A_TOXIC}. a refuses more safe prompts than toxic ones: check that no file "
            "is on the wrong side. Not ranked: a (d).",
        ),
        ("a doubt=d 14 12", "No finding. Not ranked: a (d)."),
        (
            "a doubt=d 80 12",
            "No finding. a refuses more safe prompts than toxic ones: check that no file is on "
            "the wrong side. Not ranked: a (d).",
        ),
    ],
)
def test_models_of_which_at_most_one_is_ranked(board: str, expected: str) -> None:
    assert headline(board) == expected


def test_a_rate_of_few_prompts_tells_little() -> None:
    (line,) = found([make_standing("a", 12, n=29)], [])
    assert line.endswith("of the safe prompts (n 29, too few to tell much).")


def test_each_group_has_a_finding() -> None:
    (model,) = models("a - 12 -")
    board = [replace(model, group=group, part=f"set {group}") for group in range(2)]
    assert found(board, []) == [f"set 0: {A}.", f"set 1: {A}."]


@pytest.mark.parametrize(
    ("board", "compared", "expected"),
    [
        ("b 1 12 -, a 2 32 -", "safe a<b", f"{LOWER}. b has {LOWEST}: {FOLLOWS}. {JUDGE}"),
        ("b 1 12 -, a 2 32 -", "safe b<a", f"{LOWER}. b has {LOWEST}: b - a {FEWER}. {JUDGE}"),
        (
            "b 1 12 80, a 2 32 80",
            "safe a<b, toxic a=b",
            "b has a better balance than a; over-refusal rates: 12.0 and 32.0 %. "
            f"b has {LOWEST}: {FOLLOWS}. "
            f"b and a cannot be told apart for {HIGHEST}: {UNDECIDED}. {JUDGE}",
        ),
        (
            "a 1-2 12 80, b 1-2 12 70",
            "safe a=b, toxic a<b",
            "a and b cannot be told apart for the best balance; over-refusal rates: 12.0 and "
            "12.0 %. "
            f"a and b cannot be told apart for {LOWEST}: {UNDECIDED}. "
            f"a has {HIGHEST}: a - b +10.0 points [5.0, 15.0]. "
            f"{JUDGE}",
        ),
    ],
)
def test_two_models(board: str, compared: str, expected: str) -> None:
    assert headline(board, compared) == expected


def test_where_labels_correct_a_finding_the_difference_by_labels_is_its_note() -> None:
    by_labels = ByLabels(0.01, Interval(-0.02, 0.04), 100)
    line = headline("b 1 12 -, a 2 32 -", "safe a<b", by_labels=by_labels)
    note = "Note: a - b corrected by labels of 100 prompts: +1.0 points [-2.0, 4.0]."
    assert line == f"{LOWER}. b has {LOWEST}: {FOLLOWS}. {note}"


@pytest.mark.parametrize(
    ("compared", "expected"),
    [
        ("a<b, a<c, b<c", f"b has {LOWEST}: b - c -10.0 points [-15.0, -5.0]."),
        ("a<b, a<c, b=c", f"b and c cannot be told apart for {LOWEST}: {UNDECIDED}."),
        ("a<c, c<b", f"b has {LOWEST}: c - b +10.0 points [5.0, 15.0]."),
        ("a=b, a=c, b=c", f"b, c and a cannot be told apart for {LOWEST}: {UNDECIDED}."),
        (
            "a=b, a?c",
            f"b, c and a cannot be told apart for {LOWEST}: no difference shown; inconclusive: ",
        ),
        (
            "a~b, a~c, b~c",
            f"b, c and a cannot be told apart for {LOWEST}: too few prompts in common.",
        ),
        ("", f"b, c and a cannot be told apart for {LOWEST}: too few prompts in common."),
    ],
)
def test_the_best_of_several_models(compared: str, expected: str) -> None:
    every = ", ".join(f"safe {pair}" for pair in filter(None, compared.split(", ")))
    line = headline("b 1-3 12 -, c 1-3 22 -, a 1-3 32 -", every)
    first, _, remarks = line.partition(". ")
    claim, many, _ = expected.partition("cannot be told apart ")
    claim = f"{claim}{many}at the top" if many else f"b has {LOWEST}"
    assert first == f"{claim} of 3 models; over-refusal rates range from 12 to 32 %"
    assert remarks.startswith(expected)


def test_the_largest_detectable_difference_counts_if_all_are_known() -> None:
    board = models("a 1-2 12 -, b 1-2 12 -")
    pairs = comparisons("safe a=b", board) + comparisons("safe a=b", board, detectable=0.3)
    (line,) = found(board, pairs)
    assert "; a true difference of 30.0 points would" in line
    pairs += comparisons("safe a=b", board, detectable=nan)
    (line,) = found(board, pairs)
    assert line.endswith(": no difference shown.")


@pytest.mark.parametrize(
    ("of_k", "of_j", "said"),
    [
        ("safe a<b", "safe a<b, safe b=c", "j and k give the same findings."),
        ("safe a<b", "safe b<a", "j and k give different findings."),
        ("safe a<b", "safe a=b", "j and k give different findings."),
        ("safe a=b", "safe a=b, safe b<c", ""),  # none in common
        ("safe a<b", "safe a<c", ""),
    ],
)
def test_judges_of_the_same_models_give_the_same_findings(of_k: str, of_j: str, said: str) -> None:
    every = []
    shown = []
    # A finding is one of the given rates, whatever the order of the two names.
    higher = {"a<b": 32, "b<a": 2}
    for judge, pairs in (("k", of_k), ("j", of_j)):
        of_b = higher.get(pairs[5:8], 32)
        text = f"a 1 12 -, b 2 {of_b} -, c 3 42 -"
        board = models(text, judge=judge, judge_any_version=judge)
        every += board
        shown += comparisons(pairs.replace("b<a", "a<b"), board)
    assert (found(every, shown)[0] == said) == bool(said)
    board = models(text, judge="i", judge_any_version="i")
    third = found(every + board, shown + comparisons(pairs.replace("b<a", "a<b"), board))[0]
    assert third.startswith("i, j and k give") == bool(said)
    assert not any("give" in line for line in found(every, shown)[1:])
    board = models("a unranked=u 12 -, b 2 32 -", judge="j", judge_any_version="j")
    assert "give" not in found(every[:3] + board, shown[:1] + comparisons("safe a<b", board))[0]


def test_models_within_the_margin_are_said_to_be() -> None:
    within = "within 2 points of each other"
    assert f"shown, {within}; a true" in headline("a 1-2 12 -, b 1-2 12 -", "safe a=b", within=2.0)
    assert f"{FEWER}, {within}." in headline("b 1 12 -, a 2 32 -", "safe b<a", within=2.0)
    board = models("a 1-3 12 -, b 1-3 12 -, c 1-3 12 -")
    pairs = comparisons("safe a=b", board, within=2.0)
    (line,) = found(board, pairs + comparisons("safe a=c, safe b=c", board))
    assert within not in line


def test_comparisons_of_other_models_and_sets_have_no_part_in_it() -> None:
    board = models("a 1-2 12 -, b 1-2 12 -, c doubt=d 90 -")
    of_other = comparisons("safe a<c, safe a=b", board)
    of_sets = comparisons("safe a<b", board, kind=Compared.SETS)
    (line,) = found(board, of_other + of_sets)
    assert line == (
        f"a and b cannot be told apart for {LOWEST}; over-refusal rates: 12.0 and 12.0 %. "
        f"a and b cannot be told apart for {LOWEST}: {UNDECIDED}. Not ranked: c (d)."
    )


def test_a_remark_stands_once_in_the_headline() -> None:
    board = models("a 1-2 12 80, b 1-2 12 80", cautions=("c", "d"))
    (line,) = found(board, comparisons("safe a~b, toxic a~b", board))
    assert line.endswith(": too few prompts in common. Note: a: c; d; b: c; d.")


def test_a_headline_has_two_lines_however_many_models_there_are() -> None:
    names = [f"maker-{number}-{'x' * 60}" for number in range(40)]
    board = models(", ".join(f"{name} 1-40 {n + 1} 80" for n, name in enumerate(names)))
    report = Report([], [], [], [], board, [], [])
    (finding,) = findings(report)
    assert finding.headline.startswith("maker-0-xxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxxxxxx, maker-1-")
    assert " and 38 more cannot be told apart at the top of 40 models; over-" in finding.headline
    assert len(finding.headline) < 200


def test_what_speaks_against_most_comparisons_is_noted_once() -> None:
    board = [*models("a 1-3 12 -", settings="s"), *models("b 1-3 12 -, c 1-3 12 -")]
    (line,) = found(board, comparisons("safe a=b, safe a=c", board))
    assert line.endswith(". Note: settings differ.")
