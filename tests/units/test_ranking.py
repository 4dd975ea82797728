"""The leaderboard: both sides of each model, ranks, groups, and Spearman's rho."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm, spearmanr  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.report.ranking import rank_correlations, ranking
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Published, Report, Standing
from orbench.stats.core import Verdicts, difference, worst_case_p
from tests.results import measured, models, responses

PAIRS = ["3 40", "8 55", "5 60", "12 52", "20 90", "9 70", "30 85", "33 99"]


def board(text: str) -> list[Standing]:
    return ranking(models(text))[0]


def ranks(text: str) -> str:
    """The models in the order of their board, with their ranks."""
    return ", ".join(f"{one.result.label} {one.rank or '-'}" for one in board(text))


# -- both sides ------------------------------------------------------------------------------------


def test_a_models_sides_stand_in_a_row_with_youdens_j() -> None:
    (row,) = board("a 20/100 90/100")
    safe, toxic = row.sides
    assert (safe.mean.rate, toxic.mean.rate, row.result.prompts) == (
        0.2,
        0.9,
        "over_refusal, toxic",
    )
    assert row.youden == difference(toxic.verdicts, safe.verdicts, paired=False)
    assert row.has_both_sides and row.rank is None
    assert row.score == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("toxic", "partner"),
    [
        ("T prompts_from=h", "h"),
        ("T prompts_from=o", "o"),  # the only one
        ("T prompts_from=o, T prompts_from=p", ""),
        ("T prompts_from=o, T prompts_from=h", "h"),
        ("T prompts_from=h, T prompts_from=h", ""),
        ("T prompts_from=h settings=low", ""),
        ("T prompts_from=h settings=low, T prompts_from=o", "o"),
        ("T prompts_from=h judge=k", ""),
    ],
)
def test_the_toxic_side_is_of_the_same_model_judge_and_place_or_the_only_one(
    toxic: str, partner: str
) -> None:
    rows = board("a 20/100 prompts_from=h, " + toxic.replace("T", "a - 90/100"))
    (row,) = [one for one in rows if one.on(SAFE)]
    assert [one.result.prompts_from for one in row.sides] == ["h", partner][: 1 + bool(partner)]
    assert len(rows) == 1 + toxic.count("T") - bool(partner)
    assert [one for one in rows if one.youden] == [row] * bool(partner)


def test_two_safe_sets_may_share_a_toxic_one() -> None:
    a = "a 20/100 prompt_set=x, a 30/100 prompt_set=y, a - 90/100"
    b = "b 20/100 prompt_set=x, b 80/100 prompt_set=y, b - 95/100"
    rows = board(a)
    assert [(one.group, round(one.score, 9)) for one in rows] == [(0, 0.7), (1, 0.6)]
    rows, found = ranking(models(f"{a}, {b}"))
    assert [one.result.label for one in rows] == ["b", "a", "a", "b"]
    on_toxic = [one for one in found if one.a.side == TOXIC]
    assert len(on_toxic) == 1


# -- groups and order ------------------------------------------------------------------------------


def test_models_of_the_same_prompts_and_judge_make_a_group_the_best_first() -> None:
    rows = board(
        "a 20/100 80/100 judge=k prompts=a, b 20/100 80/100, c 10/100, d 10/100 90/100, "
        "e 10/100 80/100 judge=k, f 5/100 99/100 judge=k doubt=demo"
    )
    assert [f"{one.result.label} {one.group} {one.part}" for one in rows] == [
        "e 0 over_refusal, toxic, k",
        "a 0 over_refusal, toxic, k",
        "f 0 over_refusal, toxic, k",
        "d 1 over_refusal, toxic, gpt4",
        "b 1 over_refusal, toxic, gpt4",
        "c 2 over_refusal, gpt4",
    ]
    assert [one.part for one in board("b 20/100, d 10/100")] == ["", ""]


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("a 10/100 80/100, b 20/100 90/100, c 0/100 70/100", "a- b- c-"),  # equal but for rounding
        ("b 10/100 90/100, a 10/100 90/100", "a- b-"),
        ("x 0/0?3, y 1/100", "y- x-nothing is scored"),
        ("a 5/100 95/100 doubt=demo, b 10/100 90/100", "b- a-demo"),
        ("a 5/100 unranked=own, b 10/100", "b- a-own"),
        ("a 5/100 doubt=demo unranked=own, b 10/100", "b- a-demo"),
        ("a 5/100 cautions=x notes=y, b 10/100", "a- b-"),
        ("a 5/100 doubt=x, a - 95/100 unranked=y", "a-x; y"),
        ("a 5/100 0/0?3", "a-nothing is scored"),
    ],
)
def test_the_best_stands_first_and_what_is_not_ranked_last_with_the_reasons(
    text: str, order: str
) -> None:
    rows = board(text)
    assert " ".join(f"{one.result.label}-{'; '.join(one.why)}" for one in rows) == order
    assert [one.result.label for one in rows if one.result.doubt] == ["a"] * ("doubt" in text)


def test_rates_and_comparisons_follow_the_order_of_the_board() -> None:
    rates = models("a 20/100 80/100, b 10/100 90/100, c 5/100 95/100")
    board, found = ranking(rates)
    ordered = Report([], rates, [], [], board, [], []).whole
    assert [one.result.label for one in ordered] == list("ccbbaa")
    pairs = [one.a.result.label + one.b.result.label for one in found]
    assert pairs == ["cb", "ca", "ba"] * 2


# -- ranks -----------------------------------------------------------------------------------------


def test_tests_of_a_group_are_a_family_and_those_of_a_model_leave_its_ranks() -> None:
    random = np.random.default_rng(4)
    sides = []
    for first, rates in ((0, (0.1, 0.15, 0.3, 0.34)), (1_000, (0.8, 0.7, 0.7, 0.4))):
        refused = (random.random((4, 200)) < np.array([rates]).T).astype(float)
        refused[random.random((4, 200)) < 0.02] = np.nan
        prompt = np.arange(200) + first
        sides.append([Verdicts(one, prompt, prompt) for one in refused])
    given = []
    balances = []
    for name, safe, toxic in zip("abcd", *sides, strict=True):
        for side, of_side in ((SAFE, safe), (TOXIC, toxic)):
            answered = responses(of_side.refused, prompt=of_side.prompt, seed=of_side.prompt)
            given.append(measured(answered, name, side=side, prompt_set=side.name))
        wrong = np.append(safe.refused, 1 - toxic.refused)
        number = np.append(safe.prompt, toxic.prompt)
        balances.append(Verdicts(wrong, number, number, number >= 1_000))
    board, comparisons = ranking(given)
    p, beaten = [], []
    for verdicts in (*sides, balances):
        for a, b in combinations(verdicts, 2):
            gap = difference(a, b, paired=True)
            p.append((gap.p, worst_case_p(a, b, gap)))
            beaten.append(gap.difference > 0)
    holm = np.array([multipletests(values, method="holm")[1] for values in zip(*p, strict=True)])
    assert [one.family for one in comparisons] == [18] * 12
    found = [(one.p_adjusted, one.p_worst) for one in comparisons]
    assert pytest.approx(holm[:, :12]) == np.array(found).T
    ranks = {one.result.label: one.rank for one in board}
    pairs = [*combinations("abcd", 2)]
    for name in "abcd":
        own = [place for place in range(18) if name in pairs[place % 6]]
        of_own = zip(*[p[place] for place in own], strict=True)
        rejected = np.all([multipletests(values, method="holm")[0] for values in of_own], axis=0)
        of_balance = [place for place in np.array(own)[rejected] if place >= 12]
        worse = sum(beaten[place] == (pairs[place % 6][0] == name) for place in of_balance)
        assert ranks[name] == (1 + worse, 4 - len(of_balance) + worse)
    assert len({*ranks.values()}) > 2


def test_tests_across_groups_are_a_family_of_their_own() -> None:
    _, found = ranking(models("a 9/50, b 9/50, c 9/50 prompt_set=x, d 9/50 prompt_set=x"))
    pairs = {one.a.result.label + one.b.result.label: one.family for one in found}
    assert pairs == {"ab": 1, "cd": 1, "ac": 4, "ad": 4, "bc": 4, "bd": 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 30/100, b 24/100, c 22/100", "c 1-2, b 1-3, a 3"),
        # Each side counts alike, however many prompts it has.
        ("b 25/40 240/400, a 5/40 200/400", "a 1, b 2"),
        ("a 0/29 29/29, b 29/29 0/29", "a 1-2, b 1-2"),
        ("a 0/30 30/30, b 30/30 0/30", "a 1, b 2"),
        ("a 0/100 29/29, b 100/100 0/100", "a 1-2, b 1-2"),
        ("b 100/100 0/100, a 0/100 29/29", "a 1-2, b 1-2"),
        ("a 5/100 doubt=x, b 10/100, c 60/100", "b 1, c 2, a -"),
        ("a 5/100 doubt=x, b 10/100", "b -, a -"),
    ],
)
def test_ranks_are_of_those_with_enough_prompts_and_nothing_against_them(
    text: str, expected: str
) -> None:
    assert ranks(text) == expected


# -- Spearman's rho --------------------------------------------------------------------------------


def numbered(pairs: list[str], about: str = "") -> str:
    """Models with so many refusals on each side."""
    named = enumerate(pair.replace(" ", "/100 ") for pair in pairs)
    return ", ".join(f"m{number} {sides}/100{about}" for number, sides in named)


def published(n: int, prompts: str) -> list[Published]:
    models = []
    for pair in PAIRS[:n]:
        safe, toxic = map(float, pair.split(" "))
        models.append(Published("p", prompts, safe, toxic))
    return models


@pytest.mark.parametrize("models", [7, 8])
def test_a_correlation_has_bonett_and_wrights_interval(models: int) -> None:
    (found,) = rank_correlations([], published(models, "old"))
    rho = spearmanr([[*map(int, pair.split(" "))] for pair in PAIRS[:models]]).statistic
    half = norm.ppf(0.975) * np.sqrt((1 + rho**2 / 2) / (models - 3))
    ends = np.tanh(np.arctanh(rho) + np.array([0, -half, half]))
    assert found.models == f"{models} models on old (published)"
    assert found[1:] == pytest.approx(ends, rel=1e-6)


def test_groups_and_published_sets_have_correlations_of_their_own() -> None:
    boards = f"{numbered(PAIRS)}, {numbered(PAIRS[:7], ' judge=k')}"
    several = published(7, "new") + published(8, "old") + published(6, "few")
    found = rank_correlations(board(boards), several)
    assert [one.models for one in found] == [
        "8 models on over_refusal, toxic (gpt4)",
        "7 models on over_refusal, toxic (k)",
        "7 models on new (published)",
        "8 models on old (published)",
    ]


@pytest.mark.parametrize(
    "sides",
    ["{0}/100 5{0}/100", "{0}/100 1{1}/100", "{2}/100", "{2}/100 0/0?5"],
)
def test_a_perfect_correlation_and_models_of_one_side_are_left_out(sides: str) -> None:
    text = ", ".join(f"m{n} {sides.format(n, 9 - n, n * 7 % 10)}" for n in range(10))
    assert not list(rank_correlations(board(text), []))
