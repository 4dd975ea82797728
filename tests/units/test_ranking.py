"""The leaderboard: both sides of each model, ranks, groups, and Spearman's rho."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, spearmanr  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.report.measures import OVERALL, Rate
from orbench.report.ranking import in_order, leaderboard, rank_correlations
from orbench.report.rates import rate
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Published, Rank, Standing
from orbench.stats.core import Array, Verdicts, difference, worst_case_p
from tests.results import responses, result_of

NAN = float("nan")


def measured(refused: Array | list[float], model: str = "m", /, **about: Any) -> Rate:
    """An overall rate; toxic prompts have other numbers than safe ones."""
    side = about.setdefault("side", SAFE)
    numbers = np.arange(len(refused)) + 10_000 * side.is_toxic
    given = responses(refused, prompt=numbers, seed=numbers)
    about = {"number": 0, "home": "h", "prompts": side.name, "prompt_set": side.name} | about
    return rate(result_of(given, model=model, **about), given.verdicts(), OVERALL)


def numbered(rates: list[Rate]) -> list[Rate]:
    """The rates with results that are numbered in this order."""
    for number, one in enumerate(rates):
        object.__setattr__(one.result, "number", number)
    return rates


def of(refused: int, n: int = 100) -> list[float]:
    return [1.0] * refused + [0.0] * (n - refused)


def both(model: str, safe: int, toxic: int, n: int = 100, **about: Any) -> list[Rate]:
    """Both sides of a model that refuses so many of N prompts each."""
    return [
        measured(of(safe, n), model, **about),
        measured(of(toxic, n), model, side=TOXIC, **about),
    ]


def board_of(*models: list[Rate]) -> list[Standing]:
    return leaderboard(numbered([one for rates in models for one in rates]))


def ranks(board: list[Standing]) -> dict[str, str]:
    return {standing.label: str(standing.rank or "") for standing in board}


# -- both sides ------------------------------------------------------------------------------------


def test_a_models_sides_stand_in_a_row_with_youdens_j() -> None:
    (row,) = board_of(both("a", 20, 90))
    assert row.safe and row.toxic and row.youden
    assert (row.safe.mean.rate, row.toxic.mean.rate) == (0.2, 0.9)
    assert row.score == pytest.approx(0.7) == row.youden.difference
    assert row.youden == difference(row.toxic.verdicts, row.safe.verdicts, paired=False)
    assert row.has_both_sides and row.rank is None and row.prompts == "over_refusal, toxic"


TOXIC_SIDES: list[tuple[list[dict[str, Any]], int | None]] = [
    ([{}], 0),
    ([{"home": "other"}], 0),  # the only one
    ([{"home": "other"}, {"home": "third"}], None),
    ([{"home": "other"}, {}], 1),
    ([{}, {}], None),
    ([{"settings": "low"}], None),
    ([{"settings": "low"}, {"home": "other"}], 1),
    ([{"judge": "k"}], None),
    ([{"model": "b"}], None),
    ([], None),
]


@pytest.mark.parametrize(("toxic", "partner"), TOXIC_SIDES)
def test_the_toxic_side_is_of_the_same_model_judge_and_place_or_the_only_one(
    toxic: list[dict[str, Any]], partner: int | None
) -> None:
    safe = measured(of(20), "a")
    others = [measured(of(90), about.pop("model", "a"), side=TOXIC, **about) for about in toxic]
    board = board_of([safe, *others])
    (row,) = (one for one in board if one.safe)
    assert row.toxic is (others[partner] if partner is not None else None)
    alone = [one.toxic for one in board if not one.safe]
    assert len(alone) == len(others) - (partner is not None)
    assert all(one.youden is None for one in board if not (one.safe and one.toxic))


def test_two_safe_sets_may_share_a_toxic_one() -> None:
    safe = [measured(of(20), "a", prompt_set="x"), measured(of(30), "a", prompt_set="y")]
    board = board_of([*safe, measured(of(90), "a", side=TOXIC)])
    assert [round(one.score, 9) for one in board] == [0.7, 0.6]
    assert [one.group for one in board] == [0, 1]


# -- groups and order ------------------------------------------------------------------------------


def test_models_of_the_same_prompts_and_judge_make_a_group_the_best_first() -> None:
    board = board_of(
        both("a", 20, 80, judge="k"),
        both("b", 20, 80),
        [measured(of(10), "c")],
        both("d", 10, 90),
        both("e", 10, 80, judge="k"),
        both("f", 5, 99, judge="k", doubt="demo"),
    )
    assert [(one.label, one.group, one.look) for one in board] == [
        ("e", 0, 0),
        ("a", 0, 1),
        ("f", 0, 2),
        ("d", 1, 0),
        ("b", 1, 1),
        ("c", 2, 0),
    ]
    assert board[0].part == "over_refusal, toxic, k" and board[5].part == "over_refusal, gpt4"
    alone = board_of(both("b", 20, 80), both("d", 10, 90))
    assert {one.part for one in alone} == {""}


def test_equal_scores_keep_the_order_given_whatever_the_rounding() -> None:
    board = board_of(both("a", 10, 80), both("b", 20, 90), both("c", 0, 70))
    assert [one.label for one in board] == ["a", "b", "c"]
    nothing = board_of([measured([NAN] * 3, "x")], both("a", 10, 80), [measured(of(1), "y")])
    assert [one.label for one in nothing] == ["y", "x", "a"]
    assert nothing[1].why == ["nothing is scored"]


@pytest.mark.parametrize(
    ("rates", "score"),
    [
        ([measured(of(20))], -0.2),
        ([measured(of(90), side=TOXIC)], 0.9),
        (both("a", 20, 90), 0.7),
    ],
)
def test_the_score_of_one_side_is_its_rate(rates: list[Rate], score: float) -> None:
    assert board_of(rates)[0].score == pytest.approx(score)


def test_rates_follow_the_order_of_the_board() -> None:
    board = board_of(both("a", 20, 80), both("b", 10, 90), both("c", 5, 95))
    given = [rate for one in board for rate in one.sides]
    assert [one.result.label for one in in_order(given[::-1], board)] == list("ccbbaa")


# -- ranks -----------------------------------------------------------------------------------------


def expected_ranks(models: list[list[Rate]]) -> list[Rank]:
    """The ranks by a second computation: each pair by the test of the balanced verdicts."""
    verdicts = []
    for safe, toxic in models:
        of_safe, of_toxic = safe.verdicts, toxic.verdicts
        right = np.concatenate([1 - of_safe.refused, of_toxic.refused])
        category = np.array([0] * len(of_safe.refused) + [1] * len(of_toxic.refused))
        prompt = np.concatenate([of_safe.prompt, of_toxic.prompt])
        verdicts.append(Verdicts(right, prompt, prompt, category=category))
    pairs = list(combinations(range(len(models)), 2))
    p = [difference(verdicts[a], verdicts[b], paired=True).p for a, b in pairs]
    p_worst = [worst_case_p(verdicts[a], verdicts[b]) for a, b in pairs]
    shown = [multipletests(each, method="holm")[1] < 0.05 for each in (p, p_worst)]
    scores = [toxic.mean.rate - safe.mean.rate for safe, toxic in models]
    beats = np.zeros((len(models), len(models)), bool)
    for (a, b), is_shown in zip(pairs, shown[0] & shown[1], strict=True):
        if is_shown:
            beats[(a, b) if scores[a] > scores[b] else (b, a)] = True
    best = 1 + beats.sum(axis=0)
    worst = len(models) - beats.sum(axis=1)
    return [Rank(int(low), int(high)) for low, high in zip(best, worst, strict=True)]


def drawn(seed: int, lost: float = 0.0) -> list[list[Rate]]:
    """Both sides of models that are far apart and near."""
    random = np.random.default_rng(seed)
    models = []
    for number, share in enumerate((0.1, 0.15, 0.3, 0.32, 0.6)):
        sides = []
        for side, of_side in ((SAFE, share), (TOXIC, 1 - share)):
            refused = (random.random(150) < of_side).astype(float)
            refused[random.random(150) < lost] = NAN
            sides.append(measured(refused, f"m{number}", side=side))
        models.append(sides)
    return models


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lost", [0, 0.06])
def test_ranks_are_what_the_paired_tests_leave(seed: int, lost: float) -> None:
    models = drawn(seed, lost)
    found = {standing.label: standing.rank for standing in board_of(*models)}
    wanted = expected_ranks(models)
    assert [found[f"m{number}"] for number in range(5)] == wanted
    assert len(set(wanted)) > 2


@pytest.mark.parametrize(
    ("n", "wanted"), [(29, {"a": "1-2", "b": "1-2"}), (30, {"a": "1", "b": "2"})]
)
def test_fewer_than_30_prompts_rank_nobody(n: int, wanted: dict[str, str]) -> None:
    assert ranks(board_of(both("a", 0, n, n), both("b", n, 0, n))) == wanted
    # The smaller side counts, of either model.
    few = [measured(of(0), "a"), measured(of(n, n), "a", side=TOXIC)]
    found = ranks(board_of(few, both("b", 100, 0)))
    assert found == wanted
    assert ranks(board_of(both("b", 100, 0), few)) == wanted


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"doubt": "demo"}, ["demo"]),
        ({"unranked": ("judged by itself", "x")}, ["judged by itself", "x"]),
        ({"doubt": "demo", "unranked": ("x",)}, ["demo"]),
        ({"cautions": ("x",), "notes": ("y",)}, []),
    ],
)
def test_what_is_not_ranked_stands_last_with_the_reason(
    about: dict[str, Any], why: list[str]
) -> None:
    board = board_of(both("a", 5, 95, **about), both("b", 10, 90), both("c", 60, 40))
    (a,) = (one for one in board if one.label == "a")
    assert a.why == why and a.is_ranked == (not why)
    assert a.doubts == (["demo"] if "doubt" in about else [])
    if why:
        assert ranks(board) == {"b": "1", "c": "2", "a": ""}
        assert board[2] is a
        assert set(ranks(board_of(both("a", 5, 95, **about), both("b", 10, 90))).values()) == {""}


def test_one_doubtful_side_is_enough_and_both_are_named() -> None:
    sides = [measured(of(5), "a", doubt="x"), measured(of(95), "a", side=TOXIC, unranked=("y",))]
    (row,) = board_of(sides)
    assert (row.why, row.doubts) == (["x", "y"], ["x"])
    (half,) = board_of([measured(of(5), "a"), measured([NAN] * 3, "a", side=TOXIC)])
    assert half.why == ["nothing is scored"] and not half.has_both_sides


# -- Spearman's rho --------------------------------------------------------------------------------

SAFES, TOXICS = (3, 8, 5, 12, 20, 9, 30, 33), (40, 55, 60, 52, 90, 70, 85, 99)


def published(models: int, prompts: str = "old") -> list[Published]:
    pairs = zip(SAFES, TOXICS, strict=True)
    return [Published(f"p{a}", prompts, a / 100, b / 100) for a, b in pairs][:models]


@pytest.mark.parametrize("models", [6, 7, 8])
def test_seven_models_have_a_correlation_with_bonett_and_wrights_interval(models: int) -> None:
    rates = [both(f"m{a}", a, b) for a, b in zip(SAFES, TOXICS, strict=True)][:models]
    found = list(rank_correlations(board_of(*rates), published(models)))
    assert len(found) == (2 if models > 6 else 0)
    for one, name in zip(found, ("", "old"), strict=False):
        rho = spearmanr(SAFES[:models], TOXICS[:models]).statistic
        half = norm.ppf(0.975) * np.sqrt((1 + rho**2 / 2) / (models - 3))
        assert (one.models, one.published_on) == (models, name)
        assert one.rho == pytest.approx(rho)
        ends = np.tanh([np.arctanh(rho) - half, np.arctanh(rho) + half])
        assert (one.low, one.high) == pytest.approx(tuple(ends), rel=1e-6)


def test_groups_and_published_sets_have_correlations_of_their_own() -> None:
    rates = [both(f"m{a}", a, b) for a, b in zip(SAFES, TOXICS, strict=True)]
    other = [both(f"m{a}", a, b, judge="k") for a, b in zip(SAFES[:7], TOXICS[:7], strict=True)]
    several = published(7, "new") + published(8, "old")
    found = rank_correlations(board_of(*rates, *other), several)
    assert [(one.models, one.published_on) for one in found] == [
        (8, ""),
        (7, ""),
        (7, "new"),
        (8, "old"),
    ]


@pytest.mark.parametrize("turned", [False, True])
def test_a_perfect_correlation_and_models_of_one_side_are_left_out(turned: bool) -> None:
    toxic = range(50, 60)
    pairs = zip(range(10), reversed(toxic) if turned else toxic, strict=True)
    perfect = [both(f"m{a}", a, b) for a, b in pairs]
    assert not list(rank_correlations(board_of(*perfect), []))
    one_side = [[measured(of(a), f"m{a}")] for a in SAFES]
    empty = [[measured(of(a), f"m{a}"), measured([NAN] * 5, f"m{a}", side=TOXIC)] for a in SAFES]
    assert not list(rank_correlations(board_of(*one_side), []))
    assert not list(rank_correlations(board_of(*empty), []))
