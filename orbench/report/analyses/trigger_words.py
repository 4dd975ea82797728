"""Words and pairs of neighboring words that go with refusals of safe prompts."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import nan
from typing import NamedTuple

import numpy as np
from pandas import factorize  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from orbench.report.about import UNKNOWN_JUDGE
from orbench.report.measures import Analysis, Associated, Association, Outcome
from orbench.report.results import SAFE, Prompts, Result
from orbench.report.standings import Standing
from orbench.stats.association import log_odds
from orbench.stats.core import ALPHA, Array

FEWEST_PROMPTS = 10  # that a term must be in, and that must be refused and answered
EXAMPLES = 3  # prompts with the term, on its side
_WORD = re.compile(r"\w+(?:'\w+)*")


class _Terms(NamedTuple):
    """Which prompts have which terms: a sparse matrix, made once for all models."""

    prompts: list[str]
    seeds: Array  # of the prompts
    names: Array  # sorted
    has: csr_array  # prompts x terms, 1 where a prompt has one


def trigger_words(prompts: Prompts, board: Sequence[Standing]) -> Analysis:
    """Return the words of each model, and of what only one of two models refuses; nothing where
    fewer than FEWEST_PROMPTS safe prompts are refused, or answered.
    """
    results = [standing.safe.result for standing in board if standing.safe]
    terms = _terms(prompts, results)
    models = [(result, _majority(result, terms)) for result in results]
    found: list[Association] = []
    for result, majority in models:
        found += _associations(terms, majority, result, None)
    for (a, of_a), (b, of_b) in combinations(models, 2):
        if a.judge == b.judge != UNKNOWN_JUDGE:
            apart = np.where(of_a == -of_b, of_a, 0)
            found += _associations(terms, apart, a, b)
    return Analysis(associations=found)


def terms_in(text: str) -> set[str]:
    """Return the words of a text, in small letters, and the pairs of neighbors."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return {*words, *map(" ".join, pairwise(words))}


def _terms(prompts: Prompts, results: Sequence[Result]) -> _Terms:
    """Return the terms of all safe prompts."""
    seeds = np.full(len(prompts.id), -1)
    for result in reversed(results):  # a prompt with several seeds belongs to the first
        seeds[result.responses.prompt[::-1]] = result.responses.seed[::-1]
    rows: list[int] = []
    terms: list[str] = []
    for number in np.flatnonzero(seeds >= 0).tolist():
        of_prompt = terms_in(prompts.text[number])
        rows += [number] * len(of_prompt)
        terms += of_prompt
    columns, names = factorize(np.array(terms, object), sort=True)
    shape = (len(seeds), len(names))
    has = csr_array((np.ones(len(rows), int), (rows, columns)), shape=shape)
    return _Terms(prompts.text, seeds, names, has)


def _majority(result: Result, terms: _Terms) -> Array:
    """Return of each prompt whether most of its responses refuse (1) or answer (-1); 0 if they are
    even, or there are none.
    """
    scored = result.responses.where(result.responses.scored)
    balance = np.bincount(scored.prompt, 2 * scored.refused - 1, len(terms.prompts))
    return np.sign(balance)


def _associations(
    terms: _Terms, majority: Array, result: Result, against: Result | None
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
    seed = np.unique(terms.seeds[chosen], return_inverse=True)[1]
    odds = log_odds(features, is_refused, seed)
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
            interval=None,
            p=nan,
            p_adjusted=q,
            p_worst=nan,
            outcome=Outcome.FINDING,
            of_side=SAFE.name,
            against=against,
            z=z,
            refused=refused,
            answered=answered,
            examples=tuple(terms.prompts[row] for row in chosen[on_side[:EXAMPLES]]),
        )
