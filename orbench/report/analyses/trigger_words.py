"""Words and pairs of neighboring words that go with refusals of safe prompts."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from pandas import Series, factorize  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from orbench.base.words import Texts, Words
from orbench.report.about import UNKNOWN_JUDGE
from orbench.report.measures import Analysis, Associated, Association, Outcome
from orbench.report.results import Result
from orbench.report.standings import Board
from orbench.stats.association import log_odds
from orbench.stats.core import ALPHA, Array, Verdicts, in_common

FEWEST_PROMPTS = 10  # that a term must be in, and that must be refused and answered
EXAMPLES = 3  # prompts with the term, on its side
_WORD = re.compile(r"\w+(?:'\w+)*")


class _Terms(NamedTuple):
    """Which prompts have which terms of at least FEWEST_PROMPTS, for all models."""

    prompts: Words
    names: Array  # sorted
    has: csr_array  # prompts x terms, sparse: 1 where a prompt has one


def trigger_words(prompts: Texts, board: Board) -> Analysis:
    """Return the words of each model, and of what only one of two models refuses; nothing where
    fewer than FEWEST_PROMPTS safe prompts are refused, or answered.
    """
    terms = _terms([*prompts.values()])
    models = []
    found: list[Association] = []
    for standing in board:
        rate = standing.safe
        if rate:
            result = rate.result
            verdicts = rate.verdicts.prompts
            decided = verdicts.where(verdicts.refused != 0.5)  # else as many refuse as answer
            models.append((result, decided))
            found += _associations(terms, decided, result)
    for (a, of_a), (b, of_b) in combinations(models, 2):
        if a.judge == b.judge != UNKNOWN_JUDGE:
            in_a, in_b = in_common(of_a, of_b)
            apart = in_a.where((in_a.refused > 0.5) != (in_b.refused > 0.5))
            found += _associations(terms, apart, a, b)
    return Analysis(associations=found)


def terms_in(text: str) -> set[str]:
    """Return the words of a text, in small letters, and the pairs of neighbors."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    pairs = map(" ".join, pairwise(words))
    return {*words, *pairs}


def _terms(prompts: Words) -> _Terms:
    terms = Series(prompts, dtype=object).map(terms_in).explode().dropna()
    columns, names = factorize(terms.to_numpy(object), sort=True)
    ones = np.ones(len(terms), int)
    shape = (len(prompts), len(names))
    has = csr_array((ones, (terms.index, columns)), shape=shape)
    frequent = has.sum(axis=0) >= FEWEST_PROMPTS  # few are
    return _Terms(prompts, names[frequent], has[:, frequent])


def _associations(
    terms: _Terms, verdicts: Verdicts, result: Result, against: Result | None = None
) -> Iterator[Association]:
    """Yield the terms with q below ALPHA of a model, or of two, the strongest first.

    verdicts: a row for each prompt that more than half of the responses refuse, or answer.
    """
    chosen = verdicts.prompt
    is_refused = verdicts.refused > 0.5
    has = terms.has[chosen]
    counts = has.sum(axis=0)
    kept = np.flatnonzero((counts >= FEWEST_PROMPTS) & (counts < len(chosen)))
    if np.bincount(is_refused, minlength=2).min() < FEWEST_PROMPTS:
        return
    odds = log_odds(has[:, kept], is_refused, verdicts.cluster).set_axis(kept)
    found = odds[odds.q < ALPHA]
    strongest = found.sort_values("z", key=abs, ascending=False, kind="stable")
    for term, refused, answered, estimate, z, q in strongest.itertuples():
        with_term, _ = has[:, [term]].nonzero()
        on_side = with_term[is_refused[with_term] == (z > 0)]
        examples = [terms.prompts[row] for row in chosen[on_side[:EXAMPLES]]]
        yield Association(
            kind=Associated.WORD,
            result=result,
            value=terms.names[term],
            n=len(chosen),
            estimate=estimate,
            p_adjusted=q,
            outcome=Outcome.FINDING,
            against=against,
            z=z,
            refused=refused,
            answered=answered,
            examples=tuple(examples),
        )
