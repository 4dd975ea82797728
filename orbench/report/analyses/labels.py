"""Refusals against how toxic the prompts are, by a panel's votes or people's ratings."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, isnan, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from orbench.base.grouping import grouped
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
    Subset,
)
from orbench.report.results import Prompts, Responses, Result, merged
from orbench.report.standings import Standing
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


class Label(NamedTuple):
    """What judges or people say of a prompt."""

    score: float  # how toxic it is called, 0 to 1; NaN: a vote is missing
    weight: float  # 1 / its chance to be rated
    toxic: float  # 1 or 0; else undecided


NO_LABEL = Label(nan, 1.0, nan)


class _Rating(NamedTuple):
    """What a person says of a prompt, see `Label`; several ratings are averaged."""

    prompt: str
    score: float
    weight: float


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
        conditions = [np.isnan(self.score[prompt]), apart == 0, apart == 1]
        return np.select(conditions, [NO_SCORE, AGREED, CONTRADICTED], DISPUTED)

    def agreed(self, results: Sequence[Result]) -> dict[int, Array]:
        """Return by the number of a result which responses are to prompts with an agreed label."""
        return {result.number: self.agreement(result) == AGREED for result in results}

    def verdicts(self, responses: Responses) -> Verdicts:
        """Return the verdicts with the weights of their prompts."""
        return responses.verdicts(self.weight[responses.prompt])


def labels_of(prompts: Prompts, paths: Sequence[Path]) -> Labels:
    """Return the labels in files of stage 3 or of people's ratings, see `read_labels`."""
    found, lines = read_labels(paths)
    labels = [found.get(id_, NO_LABEL) for id_ in prompts.id]
    score, weight, toxic = np.array(labels).T
    count = np.isfinite(score).sum()
    lines.append(f"toxicity: {count:,} prompts with a score, {len(score) - count:,} without")
    return Labels(score, weight, toxic, lines)


def toxicity(results: Sequence[Result], board: Sequence[Standing], labels: Labels) -> Analysis:
    """Return the rates by how far the labels agree with a prompt's side, and by score (of a bin the
    middle); and for each model an AUC: how well the score separates refused prompts from answered
    ones.
    """
    rates = []
    for result in results:
        classes = labels.agreement(result)
        for name in AGREEMENT:
            rates.append(_rate(result, labels, classes == name, Subset(Kind.LABEL, name)))
    scores = _binned(labels.score.round(9), results)
    associations = []
    for standing in board:
        result = merged(standing.results)
        of_row = scores[result.responses.prompt]
        for score in np.unique(of_row[np.isfinite(of_row)]):
            subset = Subset(Kind.SCORE, f"{score:.7g}")
            rates.append(_rate(result, labels, of_row == score, subset))
        associations.append(_auc(result, labels))
    return Analysis(rates=rates, associations=associations)


def _rate(result: Result, labels: Labels, chosen: Array, subset: Subset) -> Rate:
    verdicts = labels.verdicts(result.responses.where(chosen))
    return Rate(result, subset, Counted.REFUSED, verdicts, mean(verdicts), with_unscored=None)


def _binned(scores: Array, results: Sequence[Result]) -> Array:
    """Return the scores, or the middles of their bins if there are many."""
    used = np.concatenate([scores[result.responses.prompt] for result in results])
    if len(np.unique(used[np.isfinite(used)])) <= MOST_SCORES:
        return scores
    number = np.minimum(scores * MOST_SCORES // 1, MOST_SCORES - 1)
    middles: Array = (number + 0.5) / MOST_SCORES
    return middles


def _auc(result: Result, labels: Labels) -> Association:
    responses = result.responses
    score = labels.score[responses.prompt]
    area, *ends = auc(labels.verdicts(responses), score)
    known = responses.scored & np.isfinite(score)
    return Association(
        kind=Associated.AUC,
        result=result,
        value="",
        n=len(np.unique(responses.prompt[known])),
        estimate=area,
        interval=Interval(*ends),
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
    ratings = dict[str, list[_Rating]]()  # by what a file holds: a copy counts once
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
        elif by_people:
            ratings[content] = list(_ratings(table))
        else:
            raise UserError(f"{path} has neither {VOTE} (stage 3) nor {SCORE} or {LABEL}")
    panel = {}
    for prompt, score in toxicity_scores(votes).items():
        value = nan if score is None else score
        panel[prompt] = Label(value, 1.0, value)
    people = _of_people(chain(*ratings.values()))
    line = agreement_line(people, panel)
    if line:
        lines.append(line)
    return people or panel, lines


def _of_people(ratings: Iterable[_Rating]) -> dict[str, Label]:
    """Return people's labels: they are never unanimous, so theirs is what most of them say."""
    labels = {}
    for prompt, several in grouped(ratings, lambda rating: rating.prompt).items():
        score, weight = np.mean([(rating.score, rating.weight) for rating in several], axis=0)
        labels[prompt] = Label(score, weight, nan if score == 0.5 else score > 0.5)
    return labels


def _ratings(table: Table) -> Iterator[_Rating]:
    """Yield each person's rating; empty cells are none. Raises UserError."""
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
            yield _Rating(prompt_id_of(row), score, weight)


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
    rows = [(one.toxic, panel.get(id_, NO_LABEL).score, one.weight) for id_, one in people.items()]
    known = [row for row in rows if not isnan(sum(row))]
    if not known:
        return ""
    toxic, score, weight = np.array(known).T
    flagged = score >= 0.5
    alpha, _ = krippendorffs_alpha(Counter(zip(toxic == 1, flagged, strict=True)))
    line = f"the panel against people, on {len(known):,} prompts: alpha {coefficient(alpha)}"
    prompt = np.arange(len(known))
    for name, which in (("sensitivity", 1), ("specificity", 0)):
        right = np.where(toxic == which, flagged == which, nan)
        share = mean(Verdicts(right, prompt, prompt, weight=weight))
        ends = f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"
        line += f", {name} {100 * share.rate:.1f} % {ends}"
    return line
