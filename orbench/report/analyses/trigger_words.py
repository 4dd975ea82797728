"""Words and pairs of neighboring words that go with refusals of safe prompts."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import nan
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from orbench.report.about import UNKNOWN_JUDGE
from orbench.report.measures import Analysis, Associated, Association, Outcome, Standing
from orbench.report.results import SAFE, Prompts, Result
from orbench.stats.association import log_odds
from orbench.stats.core import ALPHA, Array

FEWEST_PROMPTS = 10  # that a term must be in, and that must be refused and answered
EXAMPLES = 3  # prompts with the term, on its side
_WORD = re.compile(r"\w+(?:'\w+)*")


class _Terms(NamedTuple):
    """Which prompts have which terms: a sparse matrix, made once for all models."""

    names: list[str]  # sorted
    has: csr_array  # prompts x terms, 1 where a prompt has one


class _Verdicts(NamedTuple):
    """What most responses to each prompt are; neither if they are even, or there are none."""

    refused: Array
    answered: Array


def trigger_words(prompts: Prompts, board: Sequence[Standing]) -> Analysis:
    """Return the words of each model, and of what only one of two models refuses; nothing where
    fewer than FEWEST_PROMPTS safe prompts are refused, or answered.
    """
    results = [standing.safe.result for standing in board if standing.safe]
    count = len(prompts.id)
    terms = _terms(prompts, results)
    seeds = np.zeros(count, int)
    for result in reversed(results):  # a prompt with several seeds belongs to the first
        seeds[result.responses.prompt[::-1]] = result.responses.seed[::-1]
    verdicts = {result.number: _verdicts(result, count) for result in results}
    found: list[Association] = []
    for a in results:
        found += _associations(prompts, terms, seeds, verdicts[a.number], a, None)
    for a, b in combinations(results, 2):
        if a.judge == b.judge != UNKNOWN_JUDGE:
            of_a = verdicts[a.number]
            of_b = verdicts[b.number]
            apart = _Verdicts(of_a.refused & of_b.answered, of_a.answered & of_b.refused)
            found += _associations(prompts, terms, seeds, apart, a, b)
    return Analysis(associations=found)


def terms_in(text: str) -> set[str]:
    """Return the words of a text, in small letters, and the pairs of neighbors."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return {*words, *map(" ".join, pairwise(words))}


def _terms(prompts: Prompts, results: Sequence[Result]) -> _Terms:
    """Return the terms of all safe prompts, without those in fewer than FEWEST_PROMPTS."""
    used = {number for result in results for number in result.responses.prompt.tolist()}
    by_prompt = {number: terms_in(prompts.text[number]) for number in used}
    counts = Counter[str]()
    for terms in by_prompt.values():
        counts.update(terms)
    names = sorted(term for term, n in counts.items() if n >= FEWEST_PROMPTS)
    place = {name: number for number, name in enumerate(names)}
    rows: list[int] = []
    columns: list[int] = []
    for number, terms in by_prompt.items():
        kept = [place[term] for term in terms if term in place]
        rows += [number] * len(kept)
        columns += kept
    shape = (len(prompts.id), len(names))
    return _Terms(names, csr_array((np.ones(len(rows)), (rows, columns)), shape=shape))


def _verdicts(result: Result, count: int) -> _Verdicts:
    """Return the verdicts by prompt: a prompt counts once, as most of its responses."""
    scored = result.responses.where(result.responses.scored)
    rows = np.bincount(scored.prompt, minlength=count)
    refused = np.bincount(scored.prompt, scored.refused, count)
    return _Verdicts(refused > rows / 2, refused < rows / 2)


def _associations(
    prompts: Prompts,
    terms: _Terms,
    seeds: Array,
    verdicts: _Verdicts,
    result: Result,
    against: Result | None,
) -> Iterator[Association]:
    """Yield the terms with q below ALPHA of a model, or of two, the strongest first."""
    if min(verdicts.refused.sum(), verdicts.answered.sum()) < FEWEST_PROMPTS:
        return
    chosen = np.flatnonzero(verdicts.refused | verdicts.answered)
    is_refused = verdicts.refused[chosen]
    of_chosen = terms.has[chosen]
    counts = of_chosen.sum(axis=0)
    kept = np.flatnonzero((counts >= FEWEST_PROMPTS) & (counts < len(chosen)))
    if not len(kept):
        return
    features = of_chosen[:, kept]
    seed = np.unique(seeds[chosen], return_inverse=True)[1]
    odds = log_odds(features, is_refused, seed)
    strongest = np.argsort(-abs(odds.z), kind="stable")
    columns = features.tocsc()
    for place in strongest[odds.q[strongest] < ALPHA]:
        goes_with_refusals = bool(odds.z[place] > 0)
        with_term = np.sort(columns.indices[columns.indptr[place] : columns.indptr[place + 1]])
        on_side = with_term[is_refused[with_term] == goes_with_refusals]
        yield Association(
            kind=Associated.WORD,
            result=result,
            value=terms.names[kept[place]],
            n=len(chosen),
            estimate=float(odds.log_odds[place]),
            interval=None,
            p=nan,
            p_adjusted=float(odds.q[place]),
            p_worst=nan,
            outcome=Outcome.FINDING,
            of_side=SAFE.name,
            against=against,
            z=float(odds.z[place]),
            refused=int(odds.refused[place]),
            answered=int(odds.answered[place]),
            examples=tuple(prompts.text[chosen[row]] for row in on_side[:EXAMPLES]),
        )
