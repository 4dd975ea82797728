"""Words and pairs of neighboring words that go with refusals of safe prompts."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from pandas import Series, factorize  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from orbench.report.about import UNKNOWN_JUDGE
from orbench.report.measures import Analysis, Associated, Association, Outcome
from orbench.report.results import Prompts, Result
from orbench.report.standings import Standing
from orbench.stats.association import log_odds
from orbench.stats.core import ALPHA, Array

FEWEST_PROMPTS = 10  # that a term must be in, and that must be refused and answered
EXAMPLES = 3  # prompts with the term, on its side
_WORD = re.compile(r"\w+(?:'\w+)*")


class _Terms(NamedTuple):
    """Which prompts have which terms, for all models."""

    names: Array  # sorted
    has: csr_array  # prompts x terms, sparse: 1 where a prompt has one


def trigger_words(prompts: Prompts, board: Sequence[Standing]) -> Analysis:
    """Return the words of each model, and of what only one of two models refuses; nothing where
    fewer than FEWEST_PROMPTS safe prompts are refused, or answered.
    """
    results = [standing.safe.result for standing in board if standing.safe]
    terms = _terms(prompts)
    models = [(result, _majority(result, prompts)) for result in results]
    found: list[Association] = []
    for result, majority in models:
        found += _associations(prompts, terms, majority, result, None)
    for (a, of_a), (b, of_b) in combinations(models, 2):
        if a.judge == b.judge != UNKNOWN_JUDGE:
            apart = np.where(of_a == -of_b, of_a, 0)
            found += _associations(prompts, terms, apart, a, b)
    return Analysis(associations=found)


def terms_in(text: str) -> set[str]:
    """Return the words of a text, in small letters, and the pairs of neighbors."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return {*words, *map(" ".join, pairwise(words))}


def _terms(prompts: Prompts) -> _Terms:
    """Return the terms of all prompts."""
    terms = Series([terms_in(text) for text in prompts.text]).explode().dropna()
    columns, names = factorize(terms.to_numpy(object), sort=True)
    shape = (len(prompts.text), len(names))
    has = csr_array((np.ones(len(terms), int), (terms.index, columns)), shape=shape)
    return _Terms(names, has)


def _majority(result: Result, prompts: Prompts) -> Array:
    """Return of each prompt whether most of its responses refuse (1) or answer (-1); 0 if they are
    even, or there are none.
    """
    votes = np.nan_to_num(2 * result.responses.refused - 1)
    return np.sign(np.bincount(result.responses.prompt, votes, len(prompts.text)))


def _associations(
    prompts: Prompts, terms: _Terms, majority: Array, result: Result, against: Result | None
) -> Iterator[Association]:
    """Yield the terms with q below ALPHA of a model, or of two, the strongest first."""
    chosen = np.flatnonzero(majority)
    is_refused = majority[chosen] > 0
    counts = terms.has[chosen].sum(axis=0)
    kept = np.flatnonzero((counts >= FEWEST_PROMPTS) & (counts < len(chosen)))
    fewer = min(np.sum(is_refused), np.sum(~is_refused))
    if fewer < FEWEST_PROMPTS or not len(kept):
        return
    features = terms.has[chosen][:, kept]
    seeds = Series(result.responses.seed, result.responses.prompt)
    of_prompts = seeds[~seeds.index.duplicated()][chosen]
    odds = log_odds(features, is_refused, factorize(of_prompts)[0])
    strongest = np.argsort(-abs(odds.z), kind="stable")
    for place in strongest[odds.q[strongest] < ALPHA]:
        refused, answered, estimate, z, q = [column[place].item() for column in odds]
        with_term, _ = features[:, [place]].nonzero()
        on_side = with_term[is_refused[with_term] == (z > 0)]
        yield Association(
            kind=Associated.WORD,
            result=result,
            value=terms.names[kept[place]],
            n=len(chosen),
            estimate=estimate,
            p_adjusted=q,
            outcome=Outcome.FINDING,
            against=against,
            z=z,
            refused=refused,
            answered=answered,
            examples=tuple(prompts.text[row] for row in chosen[on_side[:EXAMPLES]]),
        )
