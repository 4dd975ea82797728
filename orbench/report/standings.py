"""The leaderboard, and the whole report."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from typing import NamedTuple

from orbench.base.words import SIDES, Side, Words
from orbench.report.measures import (
    OVERALL,
    Association,
    Compared,
    Comparisons,
    Counted,
    Rate,
    Rates,
)
from orbench.report.rates import overall
from orbench.report.results import SAFE, TOXIC, Result, Results, merged
from orbench.stats.core import Difference


class Rank(NamedTuple):
    """The best and the worst rank that the tests leave a model."""

    best: int
    worst: int

    def __str__(self) -> str:
        """Return `1-3`, or `2`."""
        return "-".join(map(str, sorted({self.best, self.worst})))


@dataclass(frozen=True, eq=False)
class Standing:
    """A row of the leaderboard: both sides of a model, one of which may be missing."""

    sides: Rates  # that were measured, the safe one first
    youden: Difference | None = None  # Youden's J: toxic rejection minus over-refusal
    group: int = 0  # the same for the same prompts and judge
    part: str = ""  # these two, as its first model names them, if there are several groups
    rank: Rank | None = None

    @property
    def results(self) -> Results:
        """Return the results behind them."""
        return [rate.result for rate in self.sides]

    @cached_property
    def result(self) -> Result:
        """Both results as one."""
        return merged(self.results)

    @cached_property
    def decisive(self) -> Rate:
        """The rate that ranks it: the only one, or the share of what is not wanted, refused if safe
        and answered if toxic. With each side alike, that is (1 - Youden's J) / 2. It knows the
        number of prompts of the smaller side.
        """
        if not self.youden:
            return self.sides[0]
        responses = self.result.responses
        unwanted = abs(responses.refused - responses.is_toxic)
        verdicts = responses.verdicts()._replace(refused=unwanted, category=responses.is_toxic)
        smaller = min(self.sides, key=lambda rate: rate.n)
        return replace(smaller, result=self.result, verdicts=verdicts)

    def on(self, side: Side) -> Rate | None:
        """Return the rate of a side."""
        for rate in self.sides:
            if rate.side == side:
                return rate
        return None

    @property
    def safe(self) -> Rate | None:
        """Return the rate of over-refusal."""
        return self.on(SAFE)

    @property
    def toxic(self) -> Rate | None:
        """Return the rate of toxic rejection."""
        return self.on(TOXIC)

    def rate(self, side: Side) -> float:
        """Return the rate of a side, as a fraction; 0 if it was not measured."""
        rate = self.on(side)
        return rate.mean.rate if rate else 0.0

    @property
    def has_both_sides(self) -> bool:
        """Return whether both sides have a verdict, and the score is known."""
        return bool(self.youden and not isnan(self.youden.p))

    @property
    def score(self) -> float:
        """Return what ranks it: Youden's J, or the only rate (of over-refusal less than 0)."""
        return self.rate(TOXIC) - self.rate(SAFE)

    @property
    def is_ranked(self) -> bool:
        """Return whether nothing speaks against ranking it."""
        return not self.why

    @property
    def why(self) -> list[str]:
        """Return why it is not ranked."""
        reasons: list[str] = []
        for result in self.results:
            reasons += [result.doubt] if result.doubt else result.unranked
        if not all(rate.n for rate in self.sides):
            reasons.append("nothing is scored")
        return [*dict.fromkeys(reasons)]


Board = Sequence[Standing]  # the leaderboard, or some of its rows


def in_order(rates: Rates, board: Board) -> list[Rate]:
    """Return rates in the order of the leaderboard."""
    results = [result for standing in board for result in standing.results]
    return sorted(rates, key=lambda rate: results.index(rate.result))


class Published(NamedTuple):
    """A model of the paper: rates as fractions, without intervals."""

    model: str
    prompts: str
    safe: float
    toxic: float
    judge: str = "published"
    has_both_sides: bool = True

    def rate(self, side: Side) -> float:
        """Return the rate of a side, as a fraction."""
        return self.toxic if side.is_toxic else self.safe

    @property
    def result(self) -> "Published":
        """Return what names the model and the prompts, as in a measured row."""
        return self

    @property
    def label(self) -> str:
        """Return the model."""
        return self.model

    @property
    def short(self) -> str:
        """Return the model."""
        return self.model

    @property
    def score(self) -> float:
        """Return Youden's J, with the digits that the rates have."""
        return round(self.toxic - self.safe, 4)

    @property
    def youden(self) -> float:
        """Return Youden's J."""
        return self.score


Placed = Standing | Published  # a row of the leaderboard


class Report(NamedTuple):
    """All that a report shows, complete before anything is written."""

    results: Results
    rates: Rates
    comparisons: Comparisons
    associations: list[Association]
    board: Board
    published: list[Published]  # empty: not wanted, or about other prompts
    label_lines: Words  # what to know about the labels of --toxicity

    @property
    def placed(self) -> list[Placed]:
        """Return the rows of the leaderboard, published models last."""
        return [*self.board, *self.published]

    @property
    def sides(self) -> list[Side]:
        """Return the sides that some models have a rate on, over-refusal first."""
        if self.published:
            return [*SIDES.values()]
        return [side for side in SIDES.values() if any(row.on(side) for row in self.board)]

    @property
    def whole(self) -> Rates:
        """Return the refusal rates over all prompts, in the leaderboard's order."""
        return in_order(overall(self.rates), self.board)

    @property
    def shares(self) -> list[Rate]:
        """Return the shares of graded classes over all prompts, in the leaderboard's order."""
        whole = [rate for rate in self.rates if rate.subset == OVERALL]
        graded = [rate for rate in whole if rate.counted is not Counted.REFUSED]
        return in_order(graded, self.board)

    def of_models(self, counted: Counted = Counted.REFUSED) -> Comparisons:
        """Return the comparisons of models by their refusals, or by another rate."""
        return [
            one
            for one in self.comparisons
            if one.kind is Compared.MODELS and one.a.counted is counted
        ]
