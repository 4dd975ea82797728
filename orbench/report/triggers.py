"""Words and pairs of neighboring words that go with refusals of safe prompts."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
from pandas import Categorical, DataFrame, Series, factorize  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from orbench.report.about import UNKNOWN_JUDGE
from orbench.report.frames import Behind, Entry
from orbench.report.rates import label
from orbench.stats.association import log_odds
from orbench.stats.core import ALPHA, Array

FEWEST_PROMPTS = 10  # that a term must be in, and that must be refused and answered
EXAMPLES = ["example_1", "example_2", "example_3"]  # prompts with the term, on its side
# Columns of triggers.csv, a row per term with q below ALPHA, the strongest first.
TRIGGER_COLUMNS = [
    "model",
    "settings",
    "judge",
    "prompts",
    "part",
    "against",  # a second model, or empty
    "side",  # refused or answered, where the term is over-represented
    "term",
    "refused",  # prompts with the term; with a second model: those that it answers itself
    "answered",  # likewise; with a second model: those that it refuses itself
    "log_odds",
    "z",
    "q",
    *EXAMPLES,
]
_WORD = re.compile(r"\w+(?:'\w+)*")


def triggers(rows: DataFrame, board: DataFrame) -> Behind:
    """Return the frame triggers (TRIGGER_COLUMNS), without models that refuse or answer fewer than
    FEWEST_PROMPTS safe prompts; and no lines.

    rows: of `load_results`; board: `leaderboard`.
    """
    models = board.dropna(subset="safe").to_dict("records")
    safe = rows[rows["side"] == "over_refusal"]
    prompts = safe.groupby("prompt")[["seed", "text"]].first()
    prompts["terms"] = prompts["text"].map(terms_in)
    # A prompt counts once, as most of its responses.
    shares = safe.groupby(["prompt", "result"])["refused"].mean().unstack()
    refused = shares > 0.5
    answered = shares < 0.5
    groups = []  # of prompts: what they are, and which ones go with refusals and with answers
    for model in models:
        a = model["safe"]
        groups.append((model | {"against": ""}, refused[a], answered[a]))
    for model, other in combinations(models, 2):
        if model["judge"] == other["judge"] != UNKNOWN_JUDGE:
            a = model["safe"]
            b = other["safe"]
            about = model | {"against": label(other)}
            groups.append((about, refused[a] & answered[b], answered[a] & refused[b]))
    terms = list[Entry]()
    for about, is_refused, is_answered in groups:
        if min(is_refused.sum(), is_answered.sum()) >= FEWEST_PROMPTS:
            terms.extend(_terms(prompts, is_refused, is_answered, about))
    return {"triggers": DataFrame(terms, columns=TRIGGER_COLUMNS)}, []


def terms_in(text: str) -> set[str]:
    """Return the words of a text, in small letters, and the pairs of neighbors."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return {*words, *map(" ".join, pairwise(words))}


def _terms(prompts: DataFrame, refused: Series, answered: Series, about: Entry) -> Iterator[Entry]:
    """The rows of a model, or of two."""
    both = prompts[refused | answered]
    is_refused = refused[both.index].to_numpy()
    names, features = _features(both)
    seeds, _ = factorize(both["seed"])
    table = DataFrame(log_odds(features, is_refused, seeds)).assign(term=names)
    table = table[table["q"] < ALPHA].sort_values("z", key=abs, ascending=False, kind="stable")
    for row in table.to_dict("records"):
        goes_with_refusals = row["z"] > 0
        of_side = both[is_refused == goes_with_refusals]
        has_term = [row["term"] in terms for terms in of_side["terms"]]
        examples = zip(EXAMPLES, of_side["text"][has_term], strict=False)
        side = "refused" if goes_with_refusals else "answered"
        yield {**about, **row, "side": side, **dict(examples)}


def _features(prompts: DataFrame) -> tuple[list[str], Array]:
    """The terms in FEWEST_PROMPTS or more, but not in all; which prompt has which."""
    terms = prompts["terms"].reset_index(drop=True).explode()
    counts = terms.value_counts()
    kept = sorted(counts.index[counts.between(FEWEST_PROMPTS, len(prompts) - 1)])
    terms = terms[terms.isin(kept)]
    columns = Categorical(terms, kept).codes
    cells = (np.ones(len(terms)), (terms.index, columns))
    return kept, csr_array(cells, shape=(len(prompts), len(kept)))
