"""The responses of a model on one side of a report, and what is known about them.

Results are never compared with `==`, which would compare arrays: two are the same if their numbers
are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from orbench.base.words import SIDES, Side, Words
from orbench.stats.core import Array, Verdicts
from orbench.stats.intervals import Interval

SAFE = SIDES["over_refusal"]
TOXIC = SIDES["toxic"]
BOTH = Side("both", False, "refusal rate", "prompts")  # of what is measured across both sides


@dataclass(frozen=True, eq=False)
class Responses:
    """The responses of a result, scored or not: arrays of equal length.

    Flags are 1, 0 or NaN (not known), or booleans.
    """

    prompt: Array  # its number among those of the report
    response: Array  # what identifies its text
    seed: Array  # a number, the same in all results; without a seed the prompt is its own
    is_toxic: Array  # its side
    category: Array  # text
    tier: Array  # text; empty: none
    refused: Array  # NaN: unscored
    direct: Array  # refused in words, neither by the API itself nor indirectly
    indirect: Array
    api: Array  # refused by the API itself
    refused_by: Array  # text: a field of RefusedBy, if it is a refusal
    api_category: Array  # text: what the API named
    after_text: Array  # the API cut off a text
    cut_off: Array  # at the token limit, or stopped otherwise
    graded: Array  # text: the class; empty: another rubric
    other_model: Array  # another model answered than the one asked
    judge_refused: Array  # to judge it
    people: Array  # whether people call it a refusal; NaN: not known, or labels have weights

    def where(self, chosen: Array) -> "Responses":
        """Return some of them. chosen: booleans, or places in their order."""
        return Responses(*[column[chosen] for column in vars(self).values()])

    @property
    def scored(self) -> Array:
        """Return which ones have a verdict."""
        return np.isfinite(self.refused)

    def verdicts(self) -> Verdicts:
        """Return what `orbench.stats.core` takes."""
        return Verdicts(self.refused, self.prompt, self.seed)


class Source(NamedTuple):
    """A result file as the user named it."""

    path: Path
    model: str  # empty: as the run record says
    side: str  # a key of SIDES; MERGED: the column is_toxic tells the sides apart
    baseline: bool = False  # what others are compared with


class Text(NamedTuple):
    """A response as the page shows it."""

    category: str
    verdict: str  # of VERDICTS
    prompt: int  # its number among those of the report
    question: str
    response: str  # its first characters
    more: int  # characters that are left out
    reason: str


class Corrected(NamedTuple):
    """The rate by people's labels on some of the responses, as fractions."""

    rate: float
    interval: Interval


UNCORRECTED = Corrected(nan, Interval(nan, nan))


@dataclass(frozen=True, eq=False)
class About:
    """What the results in a file share."""

    file: str
    model: str
    called: str  # as the user calls it; without the provider, if that is clear
    is_baseline: bool  # what others are compared with
    settings: str
    family: str
    prompts_from: str  # the repository of the prompts, else their file
    judge: str
    judge_version: str  # of the rules; empty where they do not decide
    template: str  # of the judge's prompt, a hash
    days: tuple[str, ...]  # of the first answer, and of the last one if that is another
    certain: float  # the share of the rules' verdicts that are; NaN: not known
    unscored_known: bool  # whether unscored rows are: their file may have been removed
    doubt: str  # why it is neither ranked nor compared
    is_demo: bool  # whether that is because of the demo's prompts
    is_edited: bool  # whether the file is another than its stage wrote
    unranked: tuple[str, ...]  # why it is not ranked
    cautions: tuple[str, ...]  # stand in findings
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Result(About):
    """A model's responses to prompts of one side, in one file, by one judge."""

    side: Side
    prompts: str  # the name of their set
    prompt_set: str  # a hash of the ids of the prompts
    ids: str  # of the models that answered, as returned
    corrected: Corrected
    responses_hash: str  # the same for a copy; empty if they are all alike
    responses: Responses
    texts: list[Text]  # of the responses with a verdict, for the page
    # What follows from all results of a report.
    number: int = 0  # in the order given
    short: str = ""  # as called; with settings, if they differ
    judge_any_version: str = ""  # the judge, whatever the version of its rules

    @property
    def label(self) -> str:
        """Return the model with its settings, in one name that can stand in a list."""
        return named(self.model, self.settings)

    @property
    def measured_by(self) -> str:
        """Return the prompts and the judge."""
        return f"{self.prompts}, {self.judge}"

    @property
    def date(self) -> str:
        """Return the days: `DAY to DAY`."""
        return " to ".join(self.days)

    @property
    def against(self) -> Words:
        """Return what speaks against it, the most important first."""
        return [*filter(None, [self.doubt]), *self.unranked, *self.cautions]


Results = Sequence[Result]


def merged(results: Results) -> Result:
    """Return the results of a model as one, for what is measured across them."""
    sets = dict.fromkeys(result.prompts for result in results)
    doubt = max(result.doubt for result in results)  # of either side
    columns = zip(*[vars(result.responses).values() for result in results], strict=True)
    responses = Responses(*map(np.concatenate, columns))
    names = ", ".join(sets)
    return replace(results[0], side=BOTH, prompts=names, doubt=doubt, responses=responses)


def named(model: str, settings: str) -> str:
    """Return a model with its settings."""
    return f"{model} ({settings})" if settings else model
