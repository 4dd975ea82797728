"""Words that go with refusals: which terms there are, and their log-odds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.report.analyses.trigger_words import terms_in, trigger_words
from orbench.report.measures import Association, Outcome
from orbench.report.results import TOXIC
from orbench.report.standings import Standing
from orbench.stats.core import Array
from tests.results import prompts_of, responses, result_of, standing_of

NAN = float("nan")
PRIOR = 10.0


def found_in(texts: list[str], *board: Standing) -> list[Association]:
    return list(trigger_words(prompts_of(texts), board).associations)


def model(refused: list[float], number: int = 0, **columns: Any) -> Standing:
    about = columns.pop("about", {})
    return standing_of(result_of(responses(refused, **columns), number, **about))


def texts_with(word: str, where: list[int], n: int) -> list[str]:
    """Prompts of a word of their own each, and of another one at some places."""
    return [f"own{place} {word}" if place in where else f"own{place}" for place in range(n)]


def log_odds(has: Array, refused: Array, cluster: Array | None = None) -> tuple[float, float]:
    """Monroe's log-odds with the prior, and its z with the design effect, written out.

    has: 1 for each prompt with the word. cluster: seeds; each prompt is its own without.
    """
    cluster = np.arange(len(has)) if cluster is None else cluster
    share = has.mean()
    odds = 0.0
    variance = 0.0
    signs = np.where(refused, 1 / refused.sum(), -1 / (~refused).sum())
    for sign, group in ((1, refused), (-1, ~refused)):
        yes = has[group].sum() + PRIOR * share
        no = (~has[group]).sum() + PRIOR * (1 - share)
        odds += sign * np.log(yes / no)
        variance += 1 / yes + 1 / no
    parts = signs * (has - share)
    between = sum(parts[cluster == seed].sum() ** 2 for seed in set(cluster))
    effect = between / (share * (1 - share) * (signs**2).sum())
    return odds, odds / (variance * max(1, effect)) ** 0.5


def among(n: int, places: Iterable[int]) -> Array:
    """Which of n prompts stand at these places."""
    return np.isin(np.arange(n), list(places))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fold it", {"fold", "it", "fold it"}),
        ("don’t, don't!", {"don't", "don't don't"}),
        ("'tis 2 o'clock", {"tis", "2", "o'clock", "tis 2", "2 o'clock"}),
        ("Größe - größe.", {"größe", "größe größe"}),
        ("", set()),
    ],
)
def test_terms_are_words_and_neighbors(text: str, expected: set[str]) -> None:
    assert terms_in(text) == expected


# -- a model ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4])
def test_log_odds_are_those_of_the_formula(size: int) -> None:
    n = 240
    refused = among(n, range(80))
    kill = among(n, [*range(60), *range(90, 100)])
    fold = among(n, [*range(50, 70), *range(100, 180)])
    texts = []
    for place in range(n):
        texts.append(f"own{place}" + " kill" * int(kill[place]) + " fold" * int(fold[place]))
    seed = np.arange(n) // size
    found = found_in(texts, model(list(refused.astype(float)), seed=seed))
    expected = {}
    for name, has in {"kill": kill, "fold": fold, "kill fold": kill & fold}.items():
        expected[name] = (*log_odds(has, refused, seed), has)
    z = np.array([one[1] for one in expected.values()])
    q = dict(zip(expected, multipletests(2 * norm.sf(np.abs(z)), method="fdr_bh")[1], strict=True))
    assert [one.value for one in found] == [
        name for name in ("kill", "fold", "kill fold") if q[name] < 0.05
    ]
    for one in found:
        odds, score, has = expected[one.value]
        assert one.estimate == pytest.approx(odds)
        assert one.z == pytest.approx(score)
        assert one.p_adjusted == pytest.approx(q[one.value])
        assert (one.refused, one.answered) == ((has & refused).sum(), (has & ~refused).sum())
        assert (one.n, one.of_side, one.interval) == (n, "over_refusal", None)
        assert one.outcome is Outcome.FINDING and one.against is None


def test_a_word_may_go_with_answers_and_its_examples_are_of_its_side() -> None:
    texts = texts_with("paper", [*range(5), *range(50, 90)], 100)
    (found,) = found_in(texts, model([1.0] * 50 + [0.0] * 50))
    assert (found.value, found.refused, found.answered) == ("paper", 5, 40)
    assert found.z < 0 and found.estimate < 0
    assert found.examples == ("own50 paper", "own51 paper", "own52 paper")
    (found,) = found_in(texts, model([0.0] * 50 + [1.0] * 50))
    assert found.z > 0 and found.examples == ("own50 paper", "own51 paper", "own52 paper")


def test_the_strongest_word_comes_first_and_equals_by_name() -> None:
    texts = texts_with("strong", [*range(45)], 100)
    texts = [f"{text} b {place} a" if place < 30 else text for place, text in enumerate(texts)]
    found = found_in(texts, model([1.0] * 50 + [0.0] * 50))
    assert [one.value for one in found] == ["strong", "a", "b", "strong b"]


@pytest.mark.parametrize(("count", "words"), [(10, ["kill"]), (9, [])])
def test_a_word_needs_ten_prompts(count: int, words: list[str]) -> None:
    texts = texts_with("kill", [*range(count)], 100)
    assert [one.value for one in found_in(texts, model([1.0] * 50 + [0.0] * 50))] == words


@pytest.mark.parametrize("few", [10, 9])
@pytest.mark.parametrize("refusals", [True, False])
def test_ten_prompts_must_be_refused_and_ten_answered(few: int, refusals: bool) -> None:
    values = [float(refusals)] * few + [float(not refusals)] * 20
    texts = texts_with("kill", [*range(few, few + 20)], few + 20)
    found = found_in(texts, model(values))
    assert [one.value for one in found] == (["kill"] if few == 10 else [])


def test_a_word_of_all_prompts_tells_nothing() -> None:
    texts = texts_with("kill", [*range(60)], 60)
    assert found_in(texts, model([1.0] * 30 + [0.0] * 30)) == []


def test_a_prompt_counts_once_as_most_of_its_responses() -> None:
    texts = texts_with("kill", [*range(20)], 60)
    once = found_in(texts, model([1.0] * 20 + [0.0] * 40))
    # Of three responses two are refused, or one; a tie and a prompt without a verdict are neither.
    prompt = np.repeat(np.arange(60), 3)
    refused = np.tile([1.0, 1.0, 0.0], 60)
    refused[60:] = np.tile([0.0, 1.0, 0.0], 40)
    (thrice,) = found_in(texts, model(list(refused), prompt=prompt, seed=prompt))
    assert [(thrice.n, thrice.refused, thrice.answered)] == [(60, 20, 0)]
    assert thrice.estimate == pytest.approx(once[0].estimate)
    refused[0:3] = [1.0, 0.0, NAN]
    refused[3:6] = NAN
    (less,) = found_in(texts, model(list(refused), prompt=prompt, seed=prompt))
    assert (less.n, less.refused) == (58, 18)


def test_toxic_prompts_have_no_words() -> None:
    texts = texts_with("kill", [*range(20)], 60)
    toxic = result_of(responses([1.0] * 20 + [0.0] * 40), side=TOXIC)
    assert found_in(texts, standing_of(None, toxic)) == []


# -- two models ------------------------------------------------------------------------------------


def test_words_that_only_one_of_two_refuses_are_of_their_difference() -> None:
    texts = texts_with("kill", [*range(20)], 80)
    a = model([1.0] * 20 + [0.0] * 20 + [1.0] * 20 + [0.0] * 20)
    b = model([0.0] * 20 + [1.0] * 20 + [1.0] * 20 + [0.0] * 20, 1)
    found = [one for one in found_in(texts, a, b) if one.against]
    (kill,) = found
    assert kill.against and (kill.result.model, kill.against.model) == ("m0", "m1")
    assert (kill.n, kill.refused, kill.answered) == (40, 20, 0)
    only_a = among(40, range(20))
    assert kill.estimate == pytest.approx(log_odds(only_a, only_a)[0])
    (back,) = [one for one in found_in(texts, b, a) if one.against]
    assert (back.refused, back.answered) == (0, 20)
    assert back.z == pytest.approx(-kill.z)


@pytest.mark.parametrize("judges", [("x", "y"), ("unknown judge", "unknown judge")])
def test_only_models_with_one_known_judge_have_words_against_another(
    judges: tuple[str, str],
) -> None:
    texts = texts_with("kill", [*range(20)], 80)
    values = [1.0] * 20 + [0.0] * 60
    board = [
        model(values, 0, about={"judge": judges[0]}),
        model(values[::-1], 1, about={"judge": judges[1]}),
    ]
    found = found_in(texts, *board)
    assert [(one.result.model, one.against) for one in found] == [("m0", None), ("m1", None)]
