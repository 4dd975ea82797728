"""Words that go with refusals: which terms there are, and their log-odds."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.stats import binom, norm  # type: ignore[import-untyped]
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from orbench.report.analyses.trigger_words import terms_in, trigger_words
from orbench.report.measures import Association, Outcome
from orbench.stats import association
from orbench.stats.core import Array, Verdicts, difference
from tests.results import prompts_of
from tests.units.read_results import cells_of, read_board

PRIOR = 10.0
ANY = float("inf")
WORDS = {"0": "", "1": " kill", "2": " fold", "3": " kill fold"}


def found_in(words: str, board: str, **about: Any) -> list[Association]:
    """The terms in prompts of a word of their own each, and of WORDS."""
    texts = [f"own{place}{WORDS[word]}" for place, word in enumerate(cells_of(words))]
    return list(trigger_words(prompts_of(texts), read_board(board, **about)).associations)


def lines(found: list[Association]) -> list[str]:
    """Terms, what they go with, prompts, and those with the term that are refused and answered."""
    shown = []
    for one in found:
        assert (one.z > 0) == (one.estimate > 0)
        assert one.outcome is Outcome.FINDING
        shown.append(f"{one.value} {one.z > 0:d}: {one.n}, {one.refused} {one.answered}")
    return shown


def log_odds(has: Array, refused: Array, cluster: Array) -> tuple[float, float]:
    """Monroe's log-odds with the prior, and its z, written out; of seeds with their design effect
    within the prompts that have the word, and those that don't; of less than 20 with core's test.
    """
    share = has.mean()
    odds = variance = 0.0
    for sign, group in ((1, refused), (-1, ~refused)):
        yes = has[group].sum() + PRIOR * share
        no = (~has[group]).sum() + PRIOR * (1 - share)
        odds += sign * np.log(yes / no)
        variance += 1 / yes + 1 / no
    part = np.zeros(len(has))
    fewest = ANY
    for sign, group in ((1, has), (-1, ~has)):
        part[group] = sign * (refused[group] - refused[group].mean()) / group.sum()
        seeds = np.bincount(cluster[group])
        if seeds.max() > 1:
            fewest = min(fewest, seeds.sum() ** 2 / (seeds**2).sum())
    effect = np.square(np.bincount(cluster, part)).sum() / max(1e-99, (part**2).sum())
    z = odds / (variance * max(1, effect)) ** 0.5
    p = 2 * norm.sf(abs(z))
    if fewest < 20:
        rows = Verdicts(refused * 1.0, np.arange(len(has)), cluster)
        p = max(p, difference(rows.where(has), rows.where(~has), paired=False).p)
    return odds, np.sign(z) * norm.isf(p / 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fold it", "fold it,fold,it"),
        ("don’t, don't!", "don't,don't don't"),
        ("'tis 2 o'clock", "tis,2,o'clock,tis 2,2 o'clock"),
        ("Größe - größe.", "größe,größe größe"),
    ],
)
def test_terms_are_words_and_neighbors(text: str, expected: str) -> None:
    assert terms_in(text) == {*expected.split(",")} and terms_in("") == set()


# -- a model ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 4])  # 4: "kill" is in 18 seeds
def test_log_odds_are_those_of_the_formula(size: int) -> None:
    words = "1*50+3*10+2*10+0*20+1*10+2*80+0*60"
    cells = np.array(list(cells_of(words)))
    refused = np.arange(240) < 80
    seed = np.arange(240) // size
    found = found_in(words, "1*80+0*160", seed=seed)
    has = {"kill": np.isin(cells, ["1", "3"]), "fold": cells > "1", "kill fold": cells == "3"}
    expected = {name: log_odds(one, refused, seed) for name, one in has.items()}
    p = [2 * norm.sf(abs(z)) for _, z in expected.values()]
    q = dict(zip(has, multipletests(p, method="fdr_bh")[1], strict=True))
    assert [one.value for one in found] == [name for name in has if q[name] < 0.05]
    for one in found:
        shown = (one.estimate, one.z, one.p_adjusted)
        assert shown == pytest.approx((*expected[one.value], q[one.value]))
        assert (one.result.side.name, one.against) == ("over_refusal", None)
    assert lines(found)[0] == "kill 1: 240, 60 10"


@pytest.mark.parametrize("flipped", [False, True])
def test_a_rare_word_needs_a_binomial_test(flipped: bool) -> None:
    # 40 of 1,300 prompts are refused; of 12 with the word .37 are expected, of 130 four.
    refused = np.arange(1300) < 40
    rare = np.isin(np.arange(1300), [*range(4), *range(100, 108)])
    common = np.isin(np.arange(1300), [*range(12), *range(200, 318)])
    features = csr_array(np.column_stack([rare, common]) * 1)
    share = 40 / 1300
    p = 2 * (binom.sf(4, 12, share) + binom.pmf(4, 12, share) / 2)
    z = association.log_odds(features, refused ^ flipped, np.arange(1300)).z
    sign = -1 if flipped else 1
    assert sign * z[0] == pytest.approx(norm.isf(p / 2)) and sign * z[0] < 4
    _, of_common = log_odds(common, refused, np.arange(1300))
    assert sign * z[1] == pytest.approx(of_common) and norm.sf(of_common) < 0.001


@pytest.mark.parametrize(
    ("words", "board", "expected"),
    [
        ("1*5+0*45+1*40+0*10", "1*50+0*50", "kill 0: 100, 5 40"),
        ("1*5+0*45+1*40+0*10", "0*50+1*50", "kill 1: 100, 40 5"),
        ("3*30+1*15+0*55", "1*50+0*50", "kill 1: 100, 45 0; fold 1: 100, 30 0; "
         "kill fold 1: 100, 30 0"),  # the strongest first, equals by name
        ("1*10+0*90", "1*50+0*50", "kill 1: 100, 10 0"),
        ("1*9+0*91", "1*50+0*50", ""),  # of ten prompts at least
        ("0*10+1*20", "1*10+0*20", "kill 0: 30, 0 20"),
        ("0*9+1*20", "1*9+0*20", ""),  # ten must be refused, ...
        ("0*9+1*20", "0*9+1*20", ""),  # ... and ten answered
        ("1*60", "1*30+0*30", ""),  # of all prompts
    ],
)  # fmt: skip
def test_a_term_needs_prompts_that_differ(words: str, board: str, expected: str) -> None:
    assert "; ".join(lines(found_in(words, board))) == expected


def test_toxic_prompts_have_no_words() -> None:
    assert not found_in("1*20+0*40", "& 1*20+0*40", prompt=range(60))


def test_examples_are_of_the_side_that_a_term_goes_with() -> None:
    for board in ("1*50+0*50", "0*50+1*50"):
        (found,) = found_in("1*5+0*45+1*40+0*10", board)
        assert found.examples == ("own50 kill", "own51 kill", "own52 kill")


def test_a_prompt_counts_once_as_most_of_its_responses() -> None:
    prompt = np.repeat(np.arange(60), 3)
    about = {"prompt": prompt, "seed": prompt}
    (once,) = found_in("1*20+0*40", "1*20+0*40")
    (thrice,) = found_in("1*20+0*40", "110*20+010*40", **about)
    assert lines([once]) == lines([thrice]) == ["kill 1: 60, 20 0"]
    assert thrice.estimate == pytest.approx(once.estimate)
    # A tie and a prompt without a verdict are neither.
    less = found_in("1*20+0*40", "10????+110*18+010*40", **about)
    assert lines(less) == ["kill 1: 58, 18 0"]


# -- two models ------------------------------------------------------------------------------------


def test_words_that_only_one_of_two_refuses_are_of_their_difference() -> None:
    models = ["1*20+0*20+1*20+0*20", "0*20+1*20+1*20+0*20"]
    found = []
    for board in (models, models[::-1]):
        found += [one for one in found_in("1*20+0*60", ";".join(board)) if one.against]
    assert lines(found) == ["kill 1: 40, 20 0", "kill 0: 40, 0 20"]
    kill, back = found
    assert kill.against and (kill.result.model, kill.against.model) == ("m0", "m1")
    only = np.arange(40) < 20
    assert kill.estimate == pytest.approx(log_odds(only, only, np.arange(40))[0])
    assert back.z == pytest.approx(-kill.z)


@pytest.mark.parametrize("judges", ["xy", ("unknown_judge", "unknown_judge")])
def test_only_models_with_one_known_judge_have_words_against_another(judges: str) -> None:
    found = found_in("1*20+0*60", "1*20+0*60 judge={}; 0*60+1*20 judge={}".format(*judges))
    assert [(one.result.model, one.against) for one in found] == [("m0", None), ("m1", None)]
