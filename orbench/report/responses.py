"""Rows of result files as responses."""

from collections.abc import Sequence
from dataclasses import fields, replace
from math import nan
from typing import NamedTuple

import numpy as np

from orbench.base import prompts, words
from orbench.base.messages import UserError, clean
from orbench.base.near_duplicates import like_rewrites
from orbench.base.words import MERGED, Json, Lines, Row, Side
from orbench.models.requests import REFUSED_TO_JUDGE
from orbench.models.substitutes import is_same_model
from orbench.refusals.api import NOT_WHOLE, finish_meaning, refused_by
from orbench.report.measures import RefusedBy
from orbench.report.results import Responses, Text

LONGEST = 1000  # characters of a response on the page
MOST_ALIKE = 0.05  # of the prompts without a seed; with more, they look like rewrites
FIRST = 150  # of them: the first, since the rewrites of a seed mostly stand together
SHORTEST = 20  # characters; shorter prompts are easily similar


class Prompt(NamedTuple):
    """A prompt where it occurs first in the files of a report."""

    number: int
    text: str
    side: Side
    where: str


class Known(NamedTuple):
    """What the files read so far hold, by id or name. It gives the same numbers in all files."""

    prompts: dict[str, Prompt]
    seeds: dict[str, int]
    names: dict[str, str]  # by the user's, the model in the record


def read_row(row: Row, where: str, of_file: str, tested: str, labels: str, known: Known) -> Json:
    """Return the fields of `Responses` that a row has, and what is computed from several rows.
    of_file: its side, or MERGED. tested: the model's id. labels: people's column. Raises UserError.
    """
    side = _side_in(row, of_file, where)
    verdict = "" if "error_type" in row else words.verdict_of(row, where)
    by_judge = verdict in words.CLASSES
    who = _refused_by(row)
    api = words.VERDICTS.get(verdict, False) and who != "model"
    in_words = "" if api else verdict
    one_if_known = 1.0 if by_judge else nan
    prompt_id = prompts.prompt_id_of(row)
    seed_id = prompts.seed_id_of(row)
    model = row.get("served_by", "").partition(" via ")[0]
    return {
        "prompt": _number(prompt_id, row, side, where, known),
        "response": prompts.text_id(row.get("response", "")),
        "seed": known.seeds.setdefault(seed_id or prompt_id, len(known.seeds)),
        "is_toxic": side.is_toxic,
        "category": _category_in(row, where),
        "tier": "" if prompts.is_no_value(row.get("tier", "")) else words.tier_of(row),
        "refused": float(words.VERDICTS.get(verdict, nan)),
        "direct": one_if_known * (in_words == "direct_refusal"),
        "indirect": one_if_known * (in_words == words.INDIRECT),
        "api": api,
        "refused_by": who,
        "api_category": clean(row.get("api_category", "")),
        "after_text": api and words.after_text(row),
        "cut_off": _cut_off(row),
        "graded": words.graded_class_of(row, where) if by_judge else "",
        "other_model": is_same_model(tested, model) is False,
        "judge_refused": row.get("error_type") == REFUSED_TO_JUDGE,
        "people": words.human_label(row.get(labels, "")) if verdict else None,
        "side": side,
        "id": prompt_id,
        "seed_id": seed_id,
        "model": model,
        "verdict": verdict,
        "row": row,
    }


def _number(id_: str, row: Row, side: Side, where: str, known: Known) -> int:
    """Return the number of a prompt. Raises UserError if it is on the other side, too."""
    if id_ not in known.prompts:
        known.prompts[id_] = Prompt(len(known.prompts), row["prompt"], side, where)
    prompt = known.prompts[id_]
    if prompt.side != side:
        raise UserError(
            f"{prompt.where}, and {where}: one prompt on both sides; "
            "give safe prompts to --over_refusal and toxic ones to --toxic, "
            "or delete the result that is out of date"
        )
    return prompt.number


def _category_in(row: Row, where: str) -> str:
    """Return the category of a row. Raises UserError for a name that the report itself uses."""
    category = words.category_of(row)
    if category in (words.OVERALL, words.MACRO):
        raise UserError(f"{where}: the report itself uses the category {category!r}; rename it")
    return category


def _side_in(row: Row, of_file: str, where: str) -> Side:
    """Return the side of a row. Raises UserError if it is not the file's, or not known."""
    of_row = words.side_of(row, where)
    side = of_row.name if of_row else of_file
    if side == MERGED or of_file not in (MERGED, side):
        raise UserError(
            f"{where}: is_toxic is {row.get('is_toxic', '')!r}; "
            "files with both sides go to --merged, which needs is_toxic in each row"
        )
    return words.SIDES[side]


def _refused_by(row: Row) -> str:
    """Return who refused, a field of RefusedBy, if it is a refusal. Without the column, the reason
    tells.
    """
    who = row.get("refused_by") or refused_by(words.reason_of(row))
    return who if who in RefusedBy._fields else "unknown"


def _cut_off(row: Row) -> float:
    """Return whether a response ends before its end; NaN if it is not known."""
    if not row.get("finish_reason"):
        return nan
    return float(finish_meaning(row["finish_reason"])[0] in NOT_WHOLE)


def responses_of(part: Sequence[Json]) -> Responses:
    """Return rows that were read as arrays."""
    columns = [np.array([one[field.name] for one in part]) for field in fields(Responses)]
    responses = Responses(*columns)
    return replace(responses, people=responses.people.astype(float))  # None becomes NaN


def text_of(one: Json) -> Text:
    """Return a row that was read as the page shows it."""
    row = one["row"]
    response = row.get("response", "")
    return Text(
        category=one["category"],
        verdict=one["verdict"],
        prompt=one["prompt"],
        question=prompts.shown_question(row),
        response=response[:LONGEST],
        more=len(response[LONGEST:]),
        reason=words.reason_of(row),
    )


def responses_hash(part: Sequence[Json]) -> str:
    """Return what copies of these responses have too; empty if they are all alike, since two models
    may well refuse everything with the same words.
    """
    answers = {(one["id"], one["response"]) for one in part if one["verdict"]}
    if len({answer for _, answer in answers}) < 2:
        return ""
    return prompts.prompt_set_hash(map("".join, answers))


def lookalikes_in(part: Sequence[Json]) -> Lines:
    """Yield how many of the prompts without a seed look like rewrites of one another, if many."""
    texts = dict.fromkeys(one["row"]["prompt"] for one in part if not one["seed_id"])
    sample = tuple([text for text in texts if len(text) >= SHORTEST][:FIRST])
    alike = len(like_rewrites(sample))
    if alike > MOST_ALIKE * len(sample):
        yield (
            f"{alike} of the first {len(sample)} prompts without a seed look like rewrites of "
            "others, so the interval may be too narrow: name their seeds in a column seed_id of "
            "the same file"
        )
