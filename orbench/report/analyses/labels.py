"""Refusals against how toxic the prompts are, by a panel's votes or people's ratings."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from orbench.base.messages import UserError
from orbench.base.prompts import prompt_id_of
from orbench.base.records import read_record
from orbench.base.tables import Table, read_csv, sha256_of
from orbench.judging.panels import PanelVotes, add_votes, coefficient, judges_of, toxicity_scores
from orbench.report.measures import (
    Analysis,
    Associated,
    Association,
    Counted,
    Kind,
    Outcome,
    Rate,
    Standing,
    Subset,
)
from orbench.report.results import Prompts, Responses, Result, merged
from orbench.stats.agreement import krippendorffs_alpha
from orbench.stats.association import auc
from orbench.stats.core import Array, Verdicts, mean
from orbench.stats.intervals import Interval

VOTE = "is_toxic"  # stage 3's column
SCORE = "score"  # people's columns
LABEL = "label"
MOST_SCORES = 5  # with more, the curve has that many bins of equal width
# Of scores with the label of a prompt's side. Agreed: all of a panel, or most people.
AGREED, DISPUTED, CONTRADICTED, NO_SCORE = "agreed", "disputed", "contradicted", "no_score"
AGREEMENT = (AGREED, DISPUTED, CONTRADICTED, NO_SCORE)
LABELS = {"safe": "0", "toxic": "1"}  # people's labels as scores


class Rating(NamedTuple):
    """How toxic a prompt is called; several ratings of a prompt are averaged."""

    score: float  # 0 to 1; NaN: a vote is missing
    weight: float  # 1 / its chance to be rated


class Label(NamedTuple):
    """What judges or people say of a prompt."""

    score: float
    weight: float
    toxic: float  # 1 or 0; else undecided


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a report's prompts, by their number."""

    score: Array  # NaN: none
    weight: Array
    toxic: Array
    lines: list[str]  # what to know about them

    def agreement(self, result: Result) -> Array:
        """Return of AGREEMENT how far the labels of a result's prompts agree with its side."""
        prompt = result.responses.prompt
        apart = abs(self.toxic[prompt] - result.side.is_toxic)
        classes = np.full(len(prompt), DISPUTED, object)
        classes[apart == 0] = AGREED
        classes[apart == 1] = CONTRADICTED
        classes[np.isnan(self.score[prompt])] = NO_SCORE
        return classes

    def agreed(self, results: Sequence[Result]) -> dict[int, Array]:
        """Return by the number of a result which responses are to prompts with an agreed label."""
        return {result.number: self.agreement(result) == AGREED for result in results}

    def verdicts(self, responses: Responses) -> Verdicts:
        """Return the verdicts with the weights of their prompts."""
        return responses.verdicts(self.weight[responses.prompt])


def labels_of(prompts: Prompts, paths: Sequence[Path]) -> Labels:
    """Return the labels in files of stage 3 or of people's ratings, see `read_labels`."""
    found, lines = read_labels(paths)
    none = Label(nan, 1.0, nan)
    labels = [found.get(id_, none) for id_ in prompts.id]
    score = np.array([label.score for label in labels])
    count = int(np.isfinite(score).sum())
    lines.append(f"toxicity: {count:,} prompts with a score, {len(score) - count:,} without")
    weight = np.array([label.weight for label in labels])
    return Labels(score, weight, np.array([label.toxic for label in labels]), lines)


def toxicity(results: Sequence[Result], board: Sequence[Standing], labels: Labels) -> Analysis:
    """Return the rates by how far the labels agree with a prompt's side, and by score (of a bin the
    middle); and for each model an AUC: how well the score separates refused prompts from answered
    ones.
    """
    rates: list[Rate] = []
    for result in results:
        rates += _by_agreement(result, labels)
    scores = _binned(labels.score.round(9), results)
    associations = []
    for standing in board:
        result = merged(standing.results)
        rates += _by_score(result, scores, labels)
        associations.append(_auc(result, labels))
    return Analysis(rates=rates, associations=associations)


def _by_agreement(result: Result, labels: Labels) -> Iterator[Rate]:
    classes = labels.agreement(result)
    for name in AGREEMENT:
        part = result.responses.where(classes == name)
        yield _rate(result, labels.verdicts(part), Subset(Kind.LABEL, name))


def _by_score(result: Result, scores: Array, labels: Labels) -> Iterator[Rate]:
    of_row = scores[result.responses.prompt]
    for score in np.unique(of_row[np.isfinite(of_row)]):
        part = result.responses.where(of_row == score)
        yield _rate(result, labels.verdicts(part), Subset(Kind.SCORE, f"{score:.7g}"))


def _rate(result: Result, verdicts: Verdicts, subset: Subset) -> Rate:
    return Rate(result, subset, Counted.REFUSED, verdicts, mean(verdicts), with_unscored=None)


def _binned(scores: Array, results: Sequence[Result]) -> Array:
    """Return the scores, or the middles of their bins if there are many."""
    used = [scores[result.responses.prompt] for result in results]
    different = np.unique(np.concatenate(used))
    if np.isfinite(different).sum() <= MOST_SCORES:
        return scores
    number = np.minimum(scores * MOST_SCORES // 1, MOST_SCORES - 1)
    middles: Array = (number + 0.5) / MOST_SCORES
    return middles


def _auc(result: Result, labels: Labels) -> Association:
    responses = result.responses
    score = labels.score[responses.prompt]
    area, low, high = auc(labels.verdicts(responses), score)
    known = responses.scored & np.isfinite(score)
    return Association(
        kind=Associated.AUC,
        result=result,
        value="",
        n=len(np.unique(responses.prompt[known])),
        estimate=area,
        interval=Interval(low, high),
        p=nan,
        p_adjusted=nan,
        p_worst=nan,
        outcome=Outcome.NO_DIFFERENCE,
    )


# -- files ---------------------------------------------------------------------------------------


def read_labels(paths: Sequence[Path]) -> tuple[Mapping[str, Label], list[str]]:
    """Return the labels in files of stage 3, or of people's ratings, by prompt id: people decide
    where both are given. Votes in several files are joined by judge. Also returns lines for the
    reader.

    Columns of ratings: prompt; score (0 to 1) or label (toxic or safe, a row per annotator and
    prompt); weight, where prompts had unequal chances to be rated. Raises UserError.
    """
    votes = PanelVotes()
    ratings = dict[str, list[tuple[str, Rating]]]()  # by what a file holds: a copy counts once
    lines = []
    for path in paths:
        table = read_csv(path, ["prompt"])
        content = sha256_of(path)
        judges = judges_of(read_record(path))
        by_judges = VOTE in table.columns
        by_people = not {SCORE, LABEL}.isdisjoint(table.columns)
        if by_judges and by_people:
            kind = "the judges' votes" if judges else "people's ratings"
            lines.append(f"{path} has {VOTE} and people's columns: read as {kind}")
        if by_judges and (judges or not by_people):
            add_votes(votes, table, judges or {VOTE: content})
        else:
            ratings[content] = list(_ratings(table))
    panel = _of_panel(votes)
    people = _of_people(chain(*ratings.values()))
    if not people:
        return panel, lines
    line = agreement_line(people, panel)
    return people, [*lines, line] if line else lines


def _of_panel(votes: PanelVotes) -> dict[str, Label]:
    labels = {}
    for prompt, score in toxicity_scores(votes).items():
        value = nan if score is None else score
        labels[prompt] = Label(value, 1.0, value)
    return labels


def _of_people(ratings: Iterator[tuple[str, Rating]]) -> dict[str, Label]:
    """Return people's labels: they are never unanimous, so theirs is what most of them say."""
    by_prompt = defaultdict[str, list[Rating]](list)
    for prompt, rating in ratings:
        by_prompt[prompt].append(rating)
    labels = {}
    for prompt, several in by_prompt.items():
        score = sum(rating.score for rating in several) / len(several)
        weight = sum(rating.weight for rating in several) / len(several)
        toxic = nan if score == 0.5 else float(score > 0.5)
        labels[prompt] = Label(score, weight, toxic)
    return labels


def _ratings(table: Table) -> Iterator[tuple[str, Rating]]:
    """Yield each person's rating by prompt id; empty cells are none. Raises UserError."""
    if {SCORE, LABEL}.isdisjoint(table.columns):
        raise UserError(f"{table.path} has neither {VOTE} (stage 3) nor {SCORE} or {LABEL}")
    for number, row in enumerate(table.rows, start=1):
        word = row.get(LABEL, "").strip().lower()
        cell = row.get(SCORE, "").strip() or LABELS.get(word, word)
        if not cell:
            continue
        score = _number(cell)
        weight = _number(row.get("weight", "").strip() or "1")
        if not (0 <= score <= 1 and 0 <= weight < inf):
            needed = "needs label toxic/safe or score 0..1; weight >= 0"
            raise UserError(f"{table.path}, row {number}: {needed}")
        if weight:
            yield prompt_id_of(row), Rating(score, weight)


def _number(cell: str) -> float:
    """Return a number; NaN for another text."""
    try:
        return float(cell)
    except ValueError:
        return nan


def agreement_line(people: Mapping[str, Label], panel: Mapping[str, Label]) -> str:
    """Return how far a panel agrees with people, on the prompts that both decide; a tie of the
    panel is toxic, as in stage 3. Empty if there are none.
    """
    toxic = []
    flagged = []
    weight = []
    for prompt, label in people.items():
        if prompt in panel and not isnan(label.toxic) and not isnan(panel[prompt].score):
            toxic.append(label.toxic == 1)
            flagged.append(panel[prompt].score >= 0.5)
            weight.append(label.weight)
    if not toxic:
        return ""
    alpha, _ = krippendorffs_alpha(Counter(zip(toxic, flagged, strict=True)))
    line = f"the panel against people, on {len(toxic):,} prompts: alpha {coefficient(alpha)}"
    right = np.array(toxic) == np.array(flagged)
    for name, which in (("sensitivity", True), ("specificity", False)):
        chosen = np.array(toxic) == which
        numbers = np.arange(len(toxic))[chosen]
        share = mean(
            Verdicts(right[chosen].astype(float), numbers, numbers, weight=np.array(weight)[chosen])
        )
        ends = f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"
        line += f", {name} {100 * share.rate:.1f} % {ends}"
    return line
