"""What is computed from responses: rates, comparisons, associations.

Analyses make these objects; tables, sentences and pictures are views of them. They are never
compared with `==`, which would compare arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import nan
from typing import NamedTuple

import numpy as np

from orbench.base.words import MACRO as MACRO_NAME
from orbench.base.words import OVERALL as OVERALL_NAME
from orbench.base.words import Side
from orbench.report.results import UNCORRECTED, Corrected, Result
from orbench.stats.core import Difference, Mean, Verdicts, difference
from orbench.stats.intervals import Interval
from orbench.stats.labels import ByLabels
from orbench.stats.power import detectable_difference

FEW_PROMPTS = 30  # rates from fewer are marked
FEWEST_MODELS = 7  # with fewer, a correlation or a trend says nothing
WIDENED = " ‡"  # the mark of an interval that unscored rows make much wider
WIDER = 1.5  # so much wider through unscored rows, an interval is marked


# -- rates -------------------------------------------------------------------------------------


class Kind(StrEnum):
    """What tells a subset of a result's prompts apart."""

    OVERALL = OVERALL_NAME
    MACRO = MACRO_NAME  # all prompts, each category alike
    CATEGORY = "category"
    TIER = "tier"
    LABEL = "label"  # how far judges or people agree with the prompts' side
    SCORE = "score"  # of toxicity
    PAIRS = "pairs"  # of a seed and its rewrite, or of prompts in two tiers


class Subset(NamedTuple):
    """Some of a result's prompts: all; those of a category, a tier, ..."""

    kind: Kind
    value: str = ""  # the category, the tier, ...; of pairs of tiers `lower < higher`
    category: str = ""  # of pairs; empty: all

    @property
    def name(self) -> str:
        """Return the value, or what all prompts are called."""
        return self.value or self.kind


OVERALL = Subset(Kind.OVERALL)
MACRO = Subset(Kind.MACRO)


class Counted(StrEnum):
    """What a rate counts."""

    REFUSED = "refused"
    # The classes of graded results; with the refusals, they add up to all responses.
    HELPED = "helped"
    PARTIAL = "partial"
    SAFE_COMPLETION = "safe_completion"
    DIRECT = "direct"
    INDIRECT = "indirect"
    API = "api"
    HEDGED = "hedged"  # partial or safe completion: something is done, something is left out
    REJECTED_OR_SAFE = "rejected_or_safe"
    # What may happen to a pair; the seed is the higher one, and the rewrite the lower.
    HIGHER_REFUSED = "higher_refused"  # and the lower one answered
    BOTH_REFUSED = "both_refused"
    BOTH_ANSWERED = "both_answered"
    REVERSE = "reverse"


class RefusedBy(NamedTuple):
    """The shares of responses that each refused. They add up to the rate."""

    model: float  # in words
    model_api: float
    filter: float
    gateway: float
    unknown: float  # an API that does not say who


@dataclass(frozen=True, eq=False)
class Details:
    """What else is known of responses; shares are means of the prompts' shares, as fractions.

    Rates that `refusal_rate` makes have them; not macro averages, labels, pairs or classes.
    """

    rows: int = 0  # scored or not; 0: nothing else is known
    refused: int = 0  # rows
    refused_to_judge: int = 0  # rows that the judge refused to judge
    not_about_safety: int = 0  # refused by the API for the provider's terms
    other_model: int = 0  # rows that another model answered
    direct: float = nan
    indirect: float = nan
    cut_off: float = nan
    refused_by: RefusedBy | None = None
    api_categories: str = ""  # how often the API named which: `cyber 12, bio 3`
    after_text: float = nan  # of the refusals by the API, those that cut off a text
    flips: float = nan  # prompts whose responses have different verdicts
    # Of all prompts alone.
    certain: float = nan  # verdicts of the rules that are
    corrected: Corrected = UNCORRECTED


@dataclass(frozen=True, eq=False)
class Rate:
    """The share of what is counted in a subset of a result."""

    result: Result
    subset: Subset
    counted: Counted
    verdicts: Verdicts
    mean: Mean
    with_unscored: Interval | None = None  # whatever they are; None: their number is not known
    details: Details = Details()
    unpaired: int | None = None  # of pairs: prompts without a partner

    def __str__(self) -> str:
        """Return it in percent: `12.3 % [10.0, 14.6]`, and a mark if unscored rows widen it."""
        return f"{100 * self.mean.rate:.1f} % {self.interval}" + WIDENED * self.is_widened

    @property
    def n(self) -> int:
        """Return the number of prompts with a verdict."""
        return self.mean.prompts

    @property
    def side(self) -> Side:
        """Return the side of the prompts."""
        return self.result.side

    @property
    def interval(self) -> Interval:
        """Return the interval that is shown: with unscored rows, if they are known."""
        return self.with_unscored or self.mean.interval

    @property
    def is_widened(self) -> bool:
        """Return whether unscored rows make the interval much wider."""
        return self.interval.width > WIDER * self.mean.interval.width

    @property
    def is_small(self) -> bool:
        """Return whether it is of few prompts."""
        return self.n < FEW_PROMPTS

    @property
    def unscored(self) -> int | None:
        """Return the number of unscored rows; None: not known."""
        if not self.details.rows or not self.result.unscored_known:
            return None
        return self.details.rows - self.mean.rows


Rates = Sequence[Rate]
Pair = tuple[Rate, Rate]  # to be compared


# -- comparisons and associations --------------------------------------------------------------


class Outcome(StrEnum):
    """What a test shows."""

    FINDING = "finding"
    NO_DIFFERENCE = "no difference shown"
    INCONCLUSIVE = "inconclusive: unscored rows could reverse this"
    TOO_FEW = "too few prompts in common"
    DOUBTFUL = "doubtful"
    DIFFICULTY = "no finding: the prompts may differ in difficulty"


class Compared(StrEnum):
    """What two rates are compared for."""

    MODELS = "models"  # two models on the same prompts
    SETS = "sets"  # a model on two prompt sets
    CHANGES = "changes"  # two models on two prompt sets
    PAIRS = "pairs"  # two models on the same pairs


class Robustness(NamedTuple):
    """In how many of the analyses that the files allow a finding stands."""

    held: int
    analyses: int

    def __str__(self) -> str:
        """Return `14 of 16`."""
        return f"{self.held} of {self.analyses}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two rates, and how they differ: a minus b."""

    a: Rate
    b: Rate
    kind: Compared
    gap: Difference
    family: int = 1  # the number of tests that Holm's correction is over
    p_adjusted: float = nan  # Holm's
    p_worst: float = nan  # Holm's too, with the unscored rows against the difference; of models
    outcome: Outcome = Outcome.NO_DIFFERENCE
    robustness: Robustness | None = None
    by_labels: ByLabels | None = None  # of models
    within: float | None = None  # points that two models are shown to be within; None: not shown

    @property
    def p(self) -> float:
        """Return p of the difference, uncorrected."""
        return self.gap.p

    def imputed(self, a: float, b: float) -> Difference:
        """Return the difference of two models with the unscored rows of each as answered (0) or
        refused (1); NaN: as they are.
        """
        return difference(self.a.verdicts.imputed(a), self.b.verdicts.imputed(b), paired=True)

    @property
    def with_unscored(self) -> Interval:
        """Return the interval of the difference of two models, whatever unscored rows are."""
        return Interval(self.imputed(0, 1).interval.low, self.imputed(1, 0).interval.high)

    @cached_property
    def detectable(self) -> float:
        """The difference between models that is a finding with a probability of 80 %, or NaN."""
        if self.kind is not Compared.MODELS:
            return nan
        unscored = sum(np.isnan(rate.verdicts.refused).mean() for rate in (self.a, self.b)) / 2
        return detectable_difference(self.gap, self.family, unscored)

    @property
    def is_finding(self) -> bool:
        """Return whether the tests show a difference."""
        return self.outcome is Outcome.FINDING

    @property
    def judge(self) -> str:
        """Return the judge of both. Models may be compared across versions of the rules."""
        if self.kind is Compared.MODELS:
            return self.a.result.judge_any_version
        return self.a.result.judge

    @property
    def fewer(self) -> Rate:
        """Return the lower rate of the two."""
        return self.b if self.gap.difference > 0 else self.a

    @property
    def more(self) -> Rate:
        """Return the higher rate of the two."""
        return self.a if self.gap.difference > 0 else self.b

    @property
    def worse(self) -> Rate:
        """Return the rate of the two that is further from what is wanted."""
        return self.fewer if self.a.side.is_toxic else self.more


Comparisons = Sequence[Comparison]


class Associated(StrEnum):
    """What refusals may go with."""

    TREND = "trend"  # the tier of the prompt
    AUC = "auc"  # the toxicity of the prompt
    WORD = "word"


@dataclass(frozen=True, eq=False)
class Association:
    """How refusals go with tiers, a toxicity score or a word of the prompt."""

    kind: Associated
    result: Result
    value: str  # the tiers in their order, or the word
    n: int  # seeds of a trend, else prompts
    estimate: float  # the rise, a fraction; the AUC; log-odds
    interval: Interval | None = None
    p: float = nan  # NaN: no test
    p_adjusted: float = nan  # Holm's, of a trend; q by Benjamini and Hochberg, of a word
    p_worst: float = nan
    family: int = 1  # the number of tests that Holm's correction is over
    outcome: Outcome = Outcome.NO_DIFFERENCE
    higher: float = nan  # the rates above and below the seeds' mean tiers
    lower: float = nan
    # Of a trend, by their upper tier: from each tier to the next one.
    steps: Mapping[str, "Association"] = field(default_factory=dict)
    against: Result | None = None  # a second model: words of what only one of both refuses
    z: float = nan
    refused: int | None = None  # prompts with the word
    answered: int | None = None
    examples: tuple[str, ...] = ()


class Analysis(NamedTuple):
    """What an analysis adds to a report."""

    rates: Rates = ()
    comparisons: Comparisons = ()
    associations: Sequence[Association] = ()
