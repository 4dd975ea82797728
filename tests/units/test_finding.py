"""The headline of a report."""

from dataclasses import replace
from math import nan
from typing import Any

import pytest

from orbench.report.finding import findings
from orbench.report.measures import Compared, Comparison, Family, Outcome
from orbench.report.standings import Rank, Standing
from tests.results import make_comparison, make_standing

OUTCOMES = {
    "<": Outcome.FINDING,
    "=": Outcome.NO_DIFFERENCE,
    "?": Outcome.INCONCLUSIVE,
    "~": Outcome.TOO_FEW,
}
A = "a refuses 12.0 % [10.0, 14.0] of the safe prompts (n 100)"
A_TOXIC = "80.0 % [78.0, 82.0] of the toxic prompts (n 100)"
LESS = (
    "b over-refuses less than a: 12.0 % [10.0, 14.0] against 32.0 % [30.0, 34.0] of the 100 safe "
    "prompts, a difference of 20.0 points [15.0, 25.0]"
)
MORE = "80.0 % [78.0, 82.0] against 70.0 % [68.0, 72.0], a difference of 10.0 points [5.0, 15.0]"
DETECTABLE = (
    "; a true difference of 10.0 points in the {} would be found with a probability of 80 %."
)
PRICE = "12.0 % [10.0, 14.0], and lets 20.0 % [18.0, 22.0] of the toxic prompts through."
ITS_PRICE = "12.0 % [10.0, 14.0], and it lets 20.0 % [18.0, 22.0] of the toxic prompts through."
ALL = "safe a<b, safe a<c"


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
    named = {model.short: model for model in board}
    made = []
    for comparison in filter(None, text.split(", ")):
        side, pair = comparison.split(" ")
        a = getattr(named[pair[0]], side)
        b = getattr(named[pair[2]], side)
        made.append(make_comparison(a, b, OUTCOMES[pair[1]], **fields))
    return made


def headline(board: str, compared: str = "", **fields: Any) -> str:
    """Return the finding on a group of models; fields: of the comparisons."""
    standings = models(board)
    (line,) = findings(standings, comparisons(compared, standings, **fields))
    return line


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        ("a - 12 -", f"{A}."),
        ("a - 12 80", f"{A} and {A_TOXIC}."),
        ("a unranked=u - 80", f"a refuses {A_TOXIC}. Not ranked: u."),
        ("a - 12 -, c doubt=scripted 12 -", f"{A}. Not ranked: c (scripted)."),
        ("a doubt=scripted 12 -", "No finding (scripted)."),
        ("a doubt=d 12 -, b doubt=d 12 -", "No finding (d)."),
        (
            "a doubt=d 1 -, b doubt=C 1 -, c doubt=d 1 -",
            "No finding: b (C); a and c (d).",
        ),
        ("a unranked=u 12 -, b unranked=u 12 -", "No model is ranked: u."),
        ("a unranked=u 12 -, b doubt=d 12 -", "No model is ranked: b (d); a (u)."),
        (
            "a doubt=d 80 12",
            "No finding (d). a refuses more safe prompts than toxic ones: check that no file is "
            "on the wrong side.",
        ),
    ],
)
def test_models_of_which_at_most_one_is_ranked(board: str, expected: str) -> None:
    assert headline(board) == expected


def test_a_rate_of_few_prompts_tells_little() -> None:
    (line,) = findings([make_standing("a", 12, n=29)], [])
    assert line.endswith("of the safe prompts (n 29, too few to tell much).")


def test_the_demo_is_explained() -> None:
    board = models("a doubt=demo 12 80", is_demo=True)
    note = "demo prompts: hand-written, too few to say anything about a model"
    assert findings(board, []) == [f"No finding ({note})."]


def test_up_to_three_groups_have_a_finding_each() -> None:
    (model,) = models("a - 12 -")
    board = [replace(model, group=group, part=f"set {group}") for group in range(4)]
    assert findings(board[:3], []) == [f"set 0: {A}.", f"set 1: {A}.", f"set 2: {A}."]
    assert findings(board, []) == [
        "No single ranking: the results differ in prompts or judge (4 groups)."
    ]


TIE = "a 1-2 12 80, b 1-2 12 80"


@pytest.mark.parametrize(
    ("board", "compared", "detectable", "end"),
    [
        (TIE, "safe a=b, toxic a=b", 0.1, "a and b" + DETECTABLE.format("over-refusal rate")),
        (TIE, "toxic a=b", 0.1, "a and b" + DETECTABLE.format("toxic rejection rate")),
        (TIE, "safe a=b", nan, "a and b."),
        (TIE, "safe a~b, toxic a=b", 0.1, "a and b: too few prompts in common."),
        (TIE, "safe a?b", nan, "a and b; unscored rows could reverse a difference."),
        ("a 1-3 1 -, b 1-3 1 -, c 1-3 1 -", "", 0.1, "a, b and c."),
        ("a 1-5 1 -, b 1-5 1 -, c 1-5 1 -, d 1-5 1 -, e 1-5 1 -", "", 0.1, "5 models."),
    ],
)
def test_no_difference(board: str, compared: str, detectable: float, end: str) -> None:
    expected = f"No difference is shown between {end}"
    assert headline(board, compared, detectable=detectable) == expected


def test_the_largest_detectable_difference_counts() -> None:
    board = models(TIE)
    found = comparisons("safe a=b", board) + comparisons("safe a=b", board, detectable=0.3)
    assert "; a true difference of 30.0 points in" in findings(board, found)[0]


def test_comparisons_of_other_models_and_sets_have_no_part_in_it() -> None:
    board = models(f"{TIE}, c doubt=d 90 -")
    of_other = comparisons("safe a<c", board)
    of_sets = comparisons("safe a<b", board, family=Family(Compared.SETS, 1))
    (line,) = findings(board, of_other + of_sets)
    assert line.startswith("No difference is shown between a and b. Not ranked: c")


@pytest.mark.parametrize(
    ("board", "compared", "expected"),
    [
        ("b 1 12 -, a 2 32 -", "safe a<b", f"{LESS}."),
        ("b 1 12 -, a 2 32 -", "safe b<a", f"{LESS}."),
        (
            "b 1 12 80, a 2 32 80",
            "safe a<b, toxic a=b",
            f"{LESS}. No difference is shown in toxic rejection. b has the better balance.",
        ),
        (
            "b 1 12 80, a 2 32 70",
            "safe a<b, toxic a<b",
            f"{LESS}. It also rejects more of the 100 toxic prompts: {MORE}. b has the better "
            "balance.",
        ),
        (
            "a 1-2 32 99, b 1-2 12 80",
            "safe a<b, toxic a<b",
            f"{LESS}. It also rejects fewer of the 100 toxic prompts: 80.0 % [78.0, 82.0] against "
            "99.0 % [97.0, 101.0], a difference of 19.0 points [14.0, 24.0]. No difference is "
            "shown in their balance, score (J) 68.0 and 67.0.",
        ),
        (
            "b 1-2 12 70, a 1-2 13 80",
            "toxic b<a",
            f"a rejects more of the 100 toxic prompts than b: {MORE}. No difference is shown in "
            "over-refusal. No difference is shown in their balance, score (J) 67.0 and 58.0.",
        ),
        (
            "b 1 - 80, c 2 - 70",
            "toxic c<b",
            f"b rejects more of the 100 toxic prompts than c: {MORE}.",
        ),
    ],
)
def test_two_models_that_differ(board: str, compared: str, expected: str) -> None:
    assert headline(board, compared) == expected


def test_two_models_with_different_numbers_of_prompts() -> None:
    board = [make_standing("b", 12, rank=Rank(1, 1)), make_standing("a", 32, rank=Rank(2, 2), n=99)]
    line = LESS.replace("the 100 safe", "the safe")
    assert findings(board, comparisons("safe a<b", board, n=90)) == [
        f"{line} on the 90 prompts with a verdict from both."
    ]


def test_a_remark_stands_once_in_the_headline_without_settings() -> None:
    board = models("a 1-2 12 80", cautions=("c", "d"), settings="effort low")
    board += models("b 1-2 12 80", cautions=("c", "d"))
    (line,) = findings(board, comparisons("safe a~b, toxic a~b", board))
    assert line.endswith(": too few prompts in common (a (effort low): c; d; b: c; d).")


@pytest.mark.parametrize(
    ("ranks", "compared", "expected"),
    [
        ("1 2-3 2-3", "", f"a has the best balance; its over-refusal rate is {ITS_PRICE}"),
        ("1 2-3 2-3", ALL, f"a has the best balance; it also over-refuses least, {PRICE}"),
        ("2-3 1 2-3", ALL, f"b has the best balance; a over-refuses least, {PRICE}"),
        ("1-2 1-2 3", ALL, f"a and b tie for the best balance; a over-refuses least, {PRICE}"),
        (
            "1-2 1-2 3",
            "safe a<c, safe b<c",
            "a and b tie for the best balance; c over-refuses most, 32.0 % [30.0, 34.0], and "
            "rejects 80.0 % [78.0, 82.0] of the toxic prompts.",
        ),
        (
            "1-2 2-3 2-3",
            "safe b<c",
            "No model is shown to have a better balance than a; no model is shown to over-refuse "
            "less than all others.",
        ),
    ],
)
def test_the_best_balance_of_several_models(ranks: str, compared: str, expected: str) -> None:
    a, b, c = ranks.split(" ")
    assert headline(f"a {a} 12 80, b {b} 22 80, c {c} 32 80", compared) == expected


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        ("a 1 12 -, b 2-3 1 -, c 2-3 1 -", "a over-refuses least, 12.0 % [10.0, 14.0]."),
        ("a 1-2 1 -, b 1-2 1 -, c 3 1 -", "a and b tie for the lowest over-refusal rate."),
        ("a 1-2 1 -, b 2-3 1 -, c 3 1 -", "No model is shown to over-refuse less than a."),
        ("a 2 1 -, b 2 1 -, c 2 1 -", "No model is shown to over-refuse less than all others."),
        ("a 1 - 80, b 2 - 1, c 3 - 1", "a rejects the most toxic prompts, 80.0 % [78.0, 82.0]."),
        ("a 1-2 - 1, b 1-2 - 1, c 3 - 1", "a and b tie for the highest toxic rejection rate."),
        ("a 1-2 - 1, b 2-3 - 1, c 3 - 1", "No model is shown to reject more toxic prompts than a."),
    ],
)
def test_the_best_on_one_side(board: str, expected: str) -> None:
    assert headline(board) == expected
