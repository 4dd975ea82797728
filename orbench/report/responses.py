"""Rows of result files as responses."""

from collections.abc import Iterable, Iterator, Sequence
from math import nan
from typing import NamedTuple

import numpy as np

from orbench.base import prompts, words
from orbench.base.messages import UserError, clean
from orbench.base.near_duplicates import like_rewrites
from orbench.base.words import Row, Side
from orbench.models.providers import is_same_model
from orbench.models.requests import REFUSED_TO_JUDGE
from orbench.refusals.api import CUT_OFF
from orbench.report.results import Lookalikes, Responses, Text
from orbench.stats.core import Array

MERGED = "merged"  # a file with both sides
MOST_ALIKE = 0.05  # of the prompts without a seed; with more, they look like rewrites
FIRST = 150  # of them: the first, since the rewrites of a seed mostly stand together
SHORTEST = 20  # characters; shorter prompts are easily similar


class Numbers(NamedTuple):
    """The numbers of prompts and seeds by their ids, the same in all files."""

    of_prompt: dict[str, int]
    of_seed: dict[str, int]
    texts: dict[str, str]  # of prompts by their ids, in the order of their numbers


class Judged(NamedTuple):
    """A row of a result file, checked."""

    row: Row
    verdict: str  # empty: unscored
    graded: str  # the class; empty: another rubric
    id: str  # of the prompt
    prompt: int
    seed: int
    has_seed: bool
    model: str  # the id of the one that answered; empty: not known
    is_shown: bool  # on the page


def judged(row: Row, is_scored: bool, is_shown: bool, where: str, numbers: Numbers) -> Judged:
    """Return a row, checked. Raises UserError for what cannot be read."""
    verdict = words.verdict_of(row, where) if is_scored else ""
    graded = ""
    if verdict in words.CLASSES and "graded_category" in row:
        graded = words.graded_class_of(row, where)
    id_ = prompts.prompt_id_of(row)
    seed_id = prompts.seed_id_of(row)
    prompt = numbers.of_prompt.setdefault(id_, len(numbers.of_prompt))
    seed = numbers.of_seed.setdefault(seed_id or id_, len(numbers.of_seed))
    numbers.texts.setdefault(id_, row["prompt"])
    model = row.get("served_by", "").partition(" via ")[0]
    return Judged(row, verdict, graded, id_, prompt, seed, bool(seed_id), model, is_shown)


def side_in(row: Row, of_file: str, where: str) -> Side:
    """Return the side of a row. Raises UserError if it is not the file's, or not known."""
    of_row = words.side_of(row, where)
    side = of_row.name if of_row else of_file
    if side == MERGED or of_file not in (MERGED, side):
        cell = f"{where}: is_toxic is {row.get('is_toxic', '')!r}"
        needed = "files with both sides go to --merged, which needs is_toxic in each row"
        raise UserError(f"{cell}; {needed}")
    return words.SIDES[side]


def responses_of(part: Sequence[Judged], tested: str) -> Responses:
    """Return rows as arrays. tested: the id of the model under test."""
    rows, verdicts, graded, _, prompt, seed, _, models, _ = zip(*part, strict=True)
    verdict = np.array(verdicts)
    refused = np.array([words.VERDICTS.get(name, nan) for name in verdicts], float)
    api = (refused == 1) & [*map(words.refused_by_api, rows)]
    is_class = np.isin(verdict, [*words.CLASSES])
    return Responses(
        prompt=np.array(prompt),
        seed=np.array(seed),
        category=_texts(map(words.category_of, rows)),
        tier=_texts(map(_tier_of, rows)),
        refused=refused,
        direct=np.where(is_class, (verdict == "direct_refusal") & ~api, nan),
        indirect=np.where(is_class, (verdict == words.INDIRECT) & ~api, nan),
        api=api,
        api_category=np.where(api, _texts(clean(row.get("api_category", "")) for row in rows), ""),
        after_text=api & [*map(words.after_text, rows)],
        cut_off=np.array([*map(_cut_off, rows)]),
        graded=_texts(graded),
        other_model=np.array([not is_same_model(tested, id_) for id_ in models]),
        judge_refused=np.array([row.get("error_type") == REFUSED_TO_JUDGE for row in rows]),
    )


def _texts(texts: Iterable[str]) -> Array:
    return np.array([*texts], object)


def _tier_of(row: Row) -> str:
    if prompts.is_no_value(row.get("tier", "")):
        return ""
    return words.tier_of(row)


def _cut_off(row: Row) -> float:
    """Return whether a response ends at the token limit; NaN if it is not known."""
    if "finish_reason" not in row:
        return nan
    return float(row["finish_reason"].lower() in CUT_OFF)


def texts_of(part: Sequence[Judged]) -> Iterator[Text]:
    """Yield rows as the page shows them."""
    for one in part:
        if one.is_shown:
            yield Text(
                category=words.category_of(one.row),
                verdict=one.verdict,
                question=prompts.shown_question(one.row),
                response=one.row.get("response", ""),
                reason=words.reason_of(one.row),
            )


def responses_hash(part: Sequence[Judged]) -> str:
    """Return what copies of these responses have too; empty if they are all alike, since two models
    may well refuse everything with the same words.
    """
    scored = [one for one in part if one.verdict]
    hashes = [prompts.text_id(one.row.get("response", "")) for one in scored]
    if len(set(hashes)) < 2:
        return ""
    return prompts.prompt_set_hash(
        one.id + hash_ for one, hash_ in zip(scored, hashes, strict=True)
    )


def lookalikes_in(part: Sequence[Judged], numbers: Numbers) -> Lookalikes | None:
    """Return how many of the prompts without a seed look like rewrites of one another, if many."""
    texts = dict.fromkeys(numbers.texts[one.id] for one in part if not one.has_seed)
    sample = tuple([text for text in texts if len(text) >= SHORTEST][:FIRST])
    alike = len(like_rewrites(sample))
    if alike <= MOST_ALIKE * len(sample):
        return None
    return Lookalikes(alike, len(sample))
