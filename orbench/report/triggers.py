"""Words and pairs of neighbouring words that go with refusals of safe prompts."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from orbench.report.rates import label
from orbench.stats.association import log_odds
from orbench.stats.core import ALPHA, Array

FEWEST_PROMPTS = 10  # that a term must be in, and that must be refused and answered
EXAMPLES = ["example_1", "example_2", "example_3"]  # prompts with the term, on its side
# Columns of triggers.csv, a row per term with q below ALPHA, the strongest first. against: empty,
# or a second model. refused, answered: prompts with the term; with a second model: those that it
# answers and refuses itself. side: refused or answered, where the term is over-represented.
WHO = ["model", "settings", "judge", "prompts", "part", "against"]
TRIGGER_COLUMNS = [*WHO, "side", "term", "refused", "answered", "log_odds", "z", "q", *EXAMPLES]
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def triggers(rows: pd.DataFrame, board: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The frame triggers (TRIGGER_COLUMNS), and lines where prompts are too few. rows: of `load`;
    board: `leaderboard`.
    """
    own = board[board["safe"].notna()].to_dict("records")
    safe = rows[rows["result"].isin([one["safe"] for one in own])]
    prompts = safe.groupby("prompt")[["seed", "text"]].first()
    prompts["terms"] = [terms_in(text) for text in prompts["text"]]
    shares = safe.groupby(["prompt", "result"])["refused"].mean().unstack()
    models = [(one, shares[one["safe"]]) for one in own]
    found = list[dict[str, Any]]()
    lines = list[str]()
    for one, share in models:
        # A prompt counts once, as most of its responses.
        if min((share > 0.5).sum(), (share < 0.5).sum()) < FEWEST_PROMPTS:
            few = f"fewer than {FEWEST_PROMPTS} safe prompts refused or answered"
            lines.append(f"{label(one)}: no trigger words: {few}")
        found += _terms(prompts, share > 0.5, share < 0.5, one | {"against": ""})
    for (one, a), (other, b) in combinations(models, 2):
        if one["judge"] == other["judge"]:
            about = one | {"against": label(other)}
            found += _terms(prompts, (a > 0.5) & (b < 0.5), (a < 0.5) & (b > 0.5), about)
    return {"triggers": pd.DataFrame(found, columns=TRIGGER_COLUMNS)}, lines


def terms_in(text: str) -> set[str]:
    """The words of a text, in small letters, and the pairs of neighbours."""
    words = [word.replace("’", "'") for word in _WORD.findall(text.lower())]
    return {*words, *map(" ".join, pairwise(words))}


def _terms(
    prompts: pd.DataFrame, refused: pd.Series, answered: pd.Series, about: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The rows of a model, or of two."""
    if min(refused.sum(), answered.sum()) < FEWEST_PROMPTS:
        return
    both = prompts[refused | answered]
    in_first = refused[refused | answered].to_numpy()
    terms, features = _features(both)
    found = log_odds(features, in_first, pd.factorize(both["seed"])[0])
    table = pd.DataFrame(found).assign(term=terms)
    table = table[table["q"] < ALPHA].sort_values("z", key=abs, ascending=False)
    for row in table.to_dict("records"):
        of_side = both[in_first == (row["z"] > 0)]
        texts = of_side["text"][[row["term"] in one for one in of_side["terms"]]]
        side = "refused" if row["z"] > 0 else "answered"
        yield about | row | {"side": side, **dict(zip(EXAMPLES, texts, strict=False))}


def _features(prompts: pd.DataFrame) -> tuple[list[str], Array]:
    """The terms in FEWEST_PROMPTS or more, but not in all; which prompt has which."""
    flat = prompts["terms"].reset_index(drop=True).explode()
    counts = flat.value_counts()
    kept = sorted(counts.index[counts.between(FEWEST_PROMPTS, len(prompts) - 1)])
    flat = flat[flat.isin(kept)]
    cells = np.ones(len(flat)), (flat.index, pd.Categorical(flat, kept).codes)
    return kept, csr_array(cells, shape=(len(prompts), len(kept)))
