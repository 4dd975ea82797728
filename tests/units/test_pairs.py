"""Pairs of a seed and its rewrite: who has one, what happens to it, and models compared by it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.base.words import UNCATEGORIZED
from orbench.report.analyses.pairs import pairs
from orbench.report.measures import Analysis, Compared, Counted, Outcome, Rate
from orbench.report.results import TOXIC
from orbench.report.standings import Standing
from tests.results import responses, result_of, standing_of

NAN = float("nan")
OUTCOMES = (Counted.RIGHT, Counted.BOTH_REFUSED, Counted.BOTH_ANSWERED, Counted.REVERSE)
FIRST_SEED = 500  # the number of a seed's prompt, less its seed


def model(
    rewrites: Sequence[float], seeds: Sequence[float], number: int = 0, **columns: Any
) -> Standing:
    """A model with a rewrite of each seed, in order. columns: of the rewrites."""
    about = columns.pop("about", {})
    columns = {"category": UNCATEGORIZED} | columns
    of_seeds = np.arange(len(seeds))
    safe = responses(list(rewrites), **columns)
    toxic = responses(list(seeds), prompt=of_seeds + FIRST_SEED, seed=of_seeds)
    name = f"m{number}"
    return standing_of(
        result_of(safe, 2 * number, model=name, **about),
        result_of(toxic, 2 * number + 1, model=name, side=TOXIC, **about),
    )


def shares(found: Analysis, category: str = "", value: str = "") -> list[float]:
    """The shares of OUTCOMES of the first model."""
    rates = of(found, category, value)
    assert tuple(rate.counted for rate in rates[:4]) == OUTCOMES
    return [rate.mean.rate for rate in rates[:4]]


def of(found: Analysis, category: str = "", value: str = "") -> list[Rate]:
    subset = (value, category)
    return [one for one in found.rates if (one.subset.value, one.subset.category) == subset]


def steps(found: Analysis) -> list[str]:
    return list(dict.fromkeys(one.subset.value for one in found.rates))


# -- what happens to a pair ------------------------------------------------------------------------


def test_each_pair_has_one_of_four_outcomes() -> None:
    rewrites = [0, 0, 0, 1, 1, 0, 0, 1]
    seeds = [1, 1, 1, 1, 1, 0, 0, 0]
    found = pairs([model(rewrites, seeds)])
    assert shares(found) == [3 / 8, 2 / 8, 2 / 8, 1 / 8]
    assert [(one.mean.prompts, one.unpaired) for one in found.rates] == [(8, 0)] * 4
    assert {one.result.side.name for one in found.rates} == {"both"}


def test_shares_of_several_responses_are_probabilities() -> None:
    # Seed 0 is refused in 2 of 3 known responses; its rewrites in 1 of 2 and in 0 of 1.
    safe = responses([1.0, 0, 0], prompt=[0, 0, 1], seed=[0, 0, 0])
    toxic = responses([1.0, 1, 0, NAN], prompt=[9] * 4, seed=[0] * 4)
    board = [standing_of(result_of(safe), result_of(toxic, 1, side=TOXIC))]
    p = 2 / 3
    expected = [(p / 2 + p) / 2, p / 2 / 2, ((1 - p) / 2 + (1 - p)) / 2, (1 - p) / 2 / 2]
    found = pairs(board)
    assert shares(found) == pytest.approx(expected)
    assert sum(expected) == pytest.approx(1)
    assert found.rates[0].mean.prompts == 2 and found.rates[0].with_unscored is None


def test_a_pair_needs_both_verdicts_but_is_still_one() -> None:
    found = pairs([model([0, NAN, 0, 0], [1, 1, NAN, 0])])
    rate = found.rates[0]
    assert (rate.mean.prompts, rate.unpaired, rate.mean.rate) == (2, 0, 1 / 2)


@pytest.mark.parametrize(
    ("seed", "unpaired"),
    [([0, 1, 2, 3], 0), ([0, 1, 2, 9], 1), ([7, 8, 9, 99], 4), ([-5, 0, 1, 1], 1)],
)
def test_rewrites_without_a_result_of_their_seed_are_counted(
    seed: list[int], unpaired: int
) -> None:
    found = pairs([model([0, 0, 1, 1], [1, 1, 1, 1], seed=seed)])
    assert {rate.unpaired for rate in found.rates} == {unpaired}
    assert found.rates[0].mean.prompts == 4 - unpaired


def test_a_prompt_counts_once_among_the_unpaired() -> None:
    board = [model([0, 0, 1], [1], prompt=[0, 1, 1], seed=[0, 9, 9])]
    assert pairs(board).rates[0].unpaired == 1


def test_a_seed_of_two_toxic_prompts_is_none_and_no_prompt_is_its_own() -> None:
    board = [model([0, 0, 0], [1, 1, 1])]
    toxic = board[0].toxic
    assert board[0].safe and toxic
    shared = replace(toxic.result.responses, seed=np.array([0, 0, 2]))
    own = replace(board[0], toxic=replace(toxic, result=replace(toxic.result, responses=shared)))
    rate = pairs([own]).rates[0]
    assert (rate.mean.prompts, rate.unpaired) == (1, 2)
    as_own = replace(toxic.result.responses, prompt=np.array([0, 501, 502]))
    own = replace(board[0], toxic=replace(toxic, result=replace(toxic.result, responses=as_own)))
    assert pairs([own]).rates[0].unpaired == 1


def test_without_seeds_a_model_has_no_pair_but_others_have() -> None:
    alone = standing_of(result_of(responses([0.0, 1.0], category=UNCATEGORIZED), 8, model="x"))
    found = pairs([model([0, 0], [1, 1]), alone])
    assert [(one.result.model, one.mean.prompts, one.unpaired) for one in found.rates[::4]] == [
        ("m0", 2, 0),
        ("x", 0, 2),
    ]
    toxic = standing_of(None, result_of(responses([1.0, 1.0]), 9, model="y", side=TOXIC))
    found = pairs([toxic])
    assert (found.rates[0].mean.prompts, found.rates[0].unpaired) == (0, 0)
    assert pairs([alone]).rates[0].unpaired == 2


def test_categories_are_those_of_the_rewrites() -> None:
    found = pairs([model([0, 1, 0, 0], [1, 1, 1, 0], category=["b", "a", "b", "a"])])
    assert shares(found, "a") == [0, 1 / 2, 1 / 2, 0]
    assert shares(found, "b") == [1, 0, 0, 0]
    names = list(dict.fromkeys(rate.subset.category for rate in found.rates))
    assert names == ["", "a", "b"]
    found = pairs([model([0], [1], category=UNCATEGORIZED)])
    assert {rate.subset.category for rate in found.rates} == {""}


# -- tiers -----------------------------------------------------------------------------------------


def tiered(refused: list[float], tiers: str, number: int = 0, **about: Any) -> Standing:
    """A model with a prompt in each tier (a letter or digit) of each seed."""
    n = len(refused)
    columns: dict[str, Any] = {"category": UNCATEGORIZED}
    columns |= {"tier": list(tiers) * (n // len(tiers)), "seed": np.arange(n) // len(tiers)}
    return standing_of(
        result_of(responses(refused, **columns), number, model=f"m{number}", **about)
    )


def test_each_two_tiers_are_pairs_the_lower_one_the_rewrite() -> None:
    found = pairs([tiered([0, 0, 1, 0, 1, 1, 1, 0, 0], "123")])
    assert steps(found) == ["1 < 2", "1 < 3", "2 < 3"]
    assert shares(found, value="1 < 2") == [1 / 3, 0, 1 / 3, 1 / 3]
    assert shares(found, value="1 < 3") == [2 / 3, 0, 0, 1 / 3]
    assert shares(found, value="2 < 3") == [1 / 3, 1 / 3, 1 / 3, 0]


def test_tiers_and_seeds_may_both_have_pairs() -> None:
    both = model([0, 0, 1, 1], [1, 1], tier=["1", "2"] * 2, seed=[0, 0, 1, 1])
    found = pairs([both])
    assert steps(found) == ["", "1 < 2"]
    assert shares(found) == [1 / 2, 1 / 2, 0, 0]
    assert steps(pairs([tiered([0, 1], "12"), model([0], [1], 1)])) == ["", "1 < 2"]


def test_tiers_of_both_sides_are_paired_within_each() -> None:
    safe, toxic = (tiered([0.0, 1.0] * 2, "12").first for _ in range(2))
    of_toxic = replace(toxic.responses, prompt=toxic.responses.prompt + 100)
    board = [standing_of(safe, replace(toxic, number=1, side=TOXIC, responses=of_toxic))]
    found = pairs(board)
    sides = [rate.result.side.name for rate in of(found, value="1 < 2")[::4]]
    assert sides == ["over_refusal", "toxic"]


# -- models compared -----------------------------------------------------------------------------


def two(right_a: int, right_b: int, n: int = 30) -> list[Standing]:
    """Two models that refuse all seeds, and answer the last rewrites."""
    rewrites = [[1.0] * (n - right) + [0.0] * right for right in (right_a, right_b)]
    category = ["ab"[number % 2] for number in range(n)]
    return [model(one, [1.0] * n, k, category=category) for k, one in enumerate(rewrites)]


def test_models_are_compared_by_their_right_pairs() -> None:
    (found, *by_category) = pairs(two(20, 11)).comparisons
    assert found.a.counted is found.b.counted is Counted.RIGHT
    assert (found.a.result.model, found.b.result.model) == ("m0", "m1")
    assert found.gap.p == pytest.approx(mcnemar([[11, 9], [0, 10]], exact=True).pvalue)
    assert (found.p_holm, found.outcome) == (found.gap.p, Outcome.FINDING)
    assert found.family == (Compared.PAIRS, "", 1)
    assert np.isnan([found.p_worst, found.detectable]).all()
    assert [one.a.subset.category for one in by_category] == ["a", "b"]


def test_all_pairs_are_a_family_and_the_categories_another_one() -> None:
    third = model([1.0] * 30, [1.0] * 30, 2, category=["ab"[number % 2] for number in range(30)])
    found = pairs([*two(20, 11), third]).comparisons
    for name, size in (("", 3), ("category", 6)):
        family = [one for one in found if one.family.name == name]
        assert {one.family.size for one in family} == {size} and len(family) == size
        assert {bool(one.a.subset.category) for one in family} == {bool(name)}
        p = [one.gap.p for one in family]
        assert [one.p_holm for one in family] == pytest.approx(multipletests(p, method="holm")[1])
        for one in family:
            finding = one.p_holm < 0.05
            assert one.outcome is (Outcome.FINDING if finding else Outcome.NO_DIFFERENCE)
    assert len({one.outcome for one in found}) == 2
    order = [(one.a.result.model, one.b.result.model, one.a.subset.category) for one in found]
    assert order[:4] == [("m0", "m1", ""), ("m0", "m1", "a"), ("m0", "m1", "b"), ("m0", "m2", "")]


@pytest.mark.parametrize(
    ("judges", "count"), [(("x", "x"), 1), (("x", "y"), 0), (("unknown judge",) * 2, 0)]
)
def test_models_are_compared_by_one_known_judge(judges: tuple[str, str], count: int) -> None:
    board = []
    for number, judge in enumerate(judges):
        board.append(model([0.0, 1.0] * 5, [1.0] * 10, number, about={"judge": judge}))
    assert len(pairs(board).comparisons) == count


def test_models_without_pairs_in_common_are_not_compared() -> None:
    a = model([0.0, 1.0], [1.0, 1.0])
    b = model([0.0, 1.0], [1.0, 1.0], 1, prompt=[50, 51])
    assert not pairs([a, b]).comparisons
