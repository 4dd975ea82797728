"""Rows of result files as responses."""

from collections.abc import Callable, Sequence
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
from orbench.report.results import Lookalikes, Prompts, Responses, Text
from orbench.stats.core import Array

MERGED = "merged"  # a file with both sides
MOST_ALIKE = 0.05  # of the prompts without a seed; with more, they look like rewrites
FIRST = 150  # of them: the first, since the rewrites of a seed mostly stand together
SHORTEST = 20  # characters; shorter prompts are easily similar


class Response(NamedTuple):
    """A row of a result file. Flags are 1, 0 or NaN (not known)."""

    side: Side
    category: str
    tier: str
    prompt: int
    seed: int
    seedless: bool
    verdict: str
    refused: float
    direct: float
    indirect: float
    api: bool
    api_category: str
    after_text: bool
    cut_off: float
    graded: str
    response_hash: str
    served_by: str
    other_model: bool
    judge_refused: bool
    text: Text | None


class Numbers:
    """The numbers of prompts and seeds, the same in all files."""

    def __init__(self) -> None:
        self.prompts = Prompts([], [])
        self._of_prompt: dict[str, int] = {}
        self._of_seed: dict[str, int] = {}

    def of_prompt(self, id_: str, text: str) -> int:
        if id_ not in self._of_prompt:
            self._of_prompt[id_] = len(self._of_prompt)
            self.prompts.id.append(id_)
            self.prompts.text.append(text)
        return self._of_prompt[id_]

    def of_seed(self, name: str) -> int:
        return self._of_seed.setdefault(name, len(self._of_seed))


def response_of(
    row: Row, side: Side, verdict: str, where: str, tested: str, numbers: Numbers
) -> Response:
    """Return a row; verdict: empty if it is unscored. Raises UserError for what cannot be read."""
    refused = words.VERDICTS.get(verdict, nan)
    id_ = prompts.prompt_id_of(row)
    seed = prompts.seed_id_of(row)
    api = refused is True and words.refused_by_api(row)
    by_judge = "answer_category" in row
    is_graded = by_judge and "graded_category" in row
    served_by = row.get("served_by", "").partition(" via ")[0]
    return Response(
        side=side,
        category=words.category_of(row),
        tier="" if prompts.is_no_value(row.get("tier", "")) else words.tier_of(row),
        prompt=numbers.of_prompt(id_, row["prompt"]),
        seed=numbers.of_seed(seed or id_),
        seedless=not seed,
        verdict=verdict,
        refused=refused,
        direct=float(verdict == "direct_refusal" and not api) if by_judge else nan,
        indirect=float(verdict == words.INDIRECT and not api) if by_judge else nan,
        api=api,
        api_category=clean(row.get("api_category", "")) if api else "",
        after_text=api and words.after_text(row),
        cut_off=float(row["finish_reason"].lower() in CUT_OFF) if "finish_reason" in row else nan,
        graded=words.graded_class_of(row, where) if is_graded else "",
        response_hash=prompts.text_id(row.get("response", "")),
        served_by=served_by,
        other_model=not is_same_model(tested, served_by),
        judge_refused=row.get("error_type") == REFUSED_TO_JUDGE,
        text=None,
    )


def side_in(row: Row, of_file: str, where: str) -> Side:
    """Return the side of a row. Raises UserError if it is not the file's, or not known."""
    of_row = words.side_of(row, where)
    side = of_row.name if of_row else of_file
    if side == MERGED or of_file not in (MERGED, side):
        cell = f"{where}: is_toxic is {row.get('is_toxic', '')!r}"
        needed = "files with both sides go to --merged, which needs is_toxic in each row"
        raise UserError(f"{cell}; {needed}")
    return words.SIDES[side]


def text_of(row: Row, verdict: str) -> Text:
    """Return a row as the page shows it."""
    return Text(
        category=words.category_of(row),
        verdict=verdict,
        question=prompts.shown_question(row),
        response=row.get("response", ""),
        reason=words.reason_of(row),
    )


def columns_of(rows: Sequence[Response]) -> Responses:
    """Return the rows as arrays."""

    def column(value: Callable[[Response], object], kind: type) -> Array:
        return np.array([value(row) for row in rows], kind)

    return Responses(
        prompt=column(lambda row: row.prompt, int),
        seed=column(lambda row: row.seed, int),
        category=column(lambda row: row.category, object),
        tier=column(lambda row: row.tier, object),
        refused=column(lambda row: row.refused, float),
        direct=column(lambda row: row.direct, float),
        indirect=column(lambda row: row.indirect, float),
        api=column(lambda row: row.api, bool),
        api_category=column(lambda row: row.api_category, object),
        after_text=column(lambda row: row.after_text, bool),
        cut_off=column(lambda row: row.cut_off, float),
        graded=column(lambda row: row.graded, object),
        other_model=column(lambda row: row.other_model, bool),
        judge_refused=column(lambda row: row.judge_refused, bool),
    )


def responses_hash(rows: Sequence[Response], known: Prompts) -> str:
    """Return what copies of these responses have too; empty if they are all alike, since two models
    may well refuse everything with the same words.
    """
    scored = [row for row in rows if row.verdict]
    if len({row.response_hash for row in scored}) < 2:
        return ""
    return prompts.prompt_set_hash(known.id[row.prompt] + row.response_hash for row in scored)


def lookalikes_in(rows: Sequence[Response], known: Prompts) -> Lookalikes | None:
    """Return how many of the prompts without a seed look like rewrites of one another, if many."""
    seedless = dict.fromkeys(row.prompt for row in rows if row.seedless)
    texts = dict.fromkeys(known.text[number] for number in seedless)
    sample = tuple([text for text in texts if len(text) >= SHORTEST][:FIRST])
    alike = len(like_rewrites(sample))
    if alike <= MOST_ALIKE * len(sample):
        return None
    return Lookalikes(alike, len(sample))
