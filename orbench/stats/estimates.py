"""From rows to prompts to a mean and what each cluster contributes to it."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from orbench.stats.inference import (
    FEW_CLUSTERS,
    ROUNDING,
    Array,
    degrees_of_freedom,
    kish,
    sum_of_squares,
    t_inflation,
)
from orbench.stats.intervals import Interval, wilson

# The intra-seed correlation assumed for few clusters: above the .3 of rewrites at medium rates, and
# that of a binary outcome shrinks toward 0 and 100 % (Gulliford et al., J. Clin. Epidemiol. 58
# (2005) 246).
ASSUMED_ICC = 0.5


class _Columns(NamedTuple):
    """Arrays of equal length; one number: the same in all rows."""

    refused: Array
    prompt: Array
    cluster: Array
    category: Array | int = 0
    weight: Array | float = 1.0
    rows: Array | int = 1


class Verdicts(_Columns):
    """The rows behind a mean: ids as integers (texts are slow).

    refused: 1 refused, 0 answered, NaN unscored. cluster: the seed, or the prompt where there is no
    seed; a prompt with several belongs to the first. category: for a macro average, in which each
    category counts alike; one number: each prompt does. weight: of the prompt, such as 1 / its
    chance to be in the sample. rows: how many a row stands for. Verdicts that are compared take
    their ids from the same numbering.
    """

    def where(self, chosen: Array) -> "Verdicts":
        """Return some of the rows. chosen: booleans, or places."""
        columns = np.broadcast_arrays(*self)
        return Verdicts(*[column[chosen] for column in columns])

    @cached_property
    def prompts(self) -> "Verdicts":
        """A row for each scored prompt, sorted by id: its share of refusals. Kept: a result is
        compared many times.
        """
        scored = self.where(np.isfinite(self.refused))
        _, first, place = np.unique(scored.prompt, return_index=True, return_inverse=True)
        rows = np.bincount(place)
        share = np.bincount(place, scored.refused) / rows
        return scored.where(first)._replace(refused=share, rows=rows)

    @cached_property
    def estimate(self) -> "Estimate":
        """Of a row for each prompt: their mean. Kept for the same reason."""
        return estimate(self, np.unique(self.cluster))

    @property
    def are_scored(self) -> bool:
        """Return whether all rows are."""
        return not np.isnan(self.refused).any()

    def imputed(self, refused: float) -> "Verdicts":
        """Return the same rows with all unscored ones refused (1) or answered (0); NaN: as is."""
        if self.are_scored:
            return self
        return self._replace(refused=np.nan_to_num(self.refused, nan=refused))


class Mean(NamedTuple):
    """A rate and its 95 % interval, as fractions; NaN, and 0 to 1, where nothing is scored."""

    rate: float
    interval: Interval
    prompts: int
    rows: int  # scored ones
    effective: float  # the number of independent rows that would say as much
    variance: float  # of the rate, by the spread of the clusters
    df: float  # degrees of freedom of the variance
    design_effect: float  # rows per independent observation
    assumed: bool = False  # whether the interval is that of ASSUMED_ICC


class Estimate(NamedTuple):
    """A mean, and what its clusters contribute."""

    mean: Mean
    weights: Array  # of each prompt in the mean: 1 in all, each category alike
    parts: Array  # of the clusters in its deviation: their squares sum to the variance
    sums: Array  # of the clusters in the mean itself


def mean(verdicts: Verdicts) -> Mean:
    """Return the mean of the prompts' shares, with Wilson's interval at the effective size.

    Any values from 0 to 1 may stand in place of the verdicts.
    """
    return verdicts.prompts.estimate.mean


def with_unscored(verdicts: Verdicts) -> Interval:
    """Return the 95 % interval whatever the unscored rows are: all answered, up to all refused."""
    answered = mean(verdicts.imputed(0))
    refused = mean(verdicts.imputed(1))
    return Interval(answered.interval.low, refused.interval.high)


def estimate(prompts: Verdicts, clusters: Array) -> Estimate:
    """Return the mean, its interval and the clusters' parts in it.

    prompts: averaged. clusters: sorted; in a difference, those of both means.
    """
    if not len(prompts.refused):
        none = np.zeros(len(clusters))
        nothing = Mean(np.nan, wilson(0, 0), 0, 0, 0.0, 0.0, 0.0, np.nan)
        return Estimate(nothing, none, none, none)
    _, stratum = np.unique(prompts.category, return_inverse=True)
    counts, refused = by_cluster(prompts, clusters, stratum)
    totals = counts.sum(axis=0)
    leverage = counts / totals  # clusters x strata: the share of the stratum's weight
    shares = refused / totals
    means = refused.sum(axis=0) / totals
    rate = float(means.mean())
    weights = prompts.weight / (totals[stratum] * len(totals))
    # CR2: enlarged for what a cluster pulls the mean toward itself; a whole stratum shows nothing.
    others = np.where(leverage < 1 - ROUNDING, 1 - leverage, np.inf)
    deviations = (shares - leverage * means) / np.sqrt(others)
    parts = deviations.mean(axis=1)
    sums = shares.mean(axis=1)
    variance = sum_of_squares(parts)
    df = degrees_of_freedom(leverage)
    n = len(weights)
    rows = int(np.sum(prompts.rows))
    size = float(rows)
    if variance > ROUNDING**2:
        spread = rate * (1 - rate) * n / (n - 1)
        size = min(size, spread / variance / t_inflation(df, rows))
    assumed = False
    if _is_spread_doubtful(leverage, sums):
        between = sum_of_squares(leverage.mean(axis=1))
        within = sum_of_squares(weights)
        by_assumption = 1 / (ASSUMED_ICC * between + (1 - ASSUMED_ICC) * within)
        assumed = by_assumption < size and between > within + ROUNDING
        size = min(size, by_assumption)
    interval = wilson(rate * size, size)
    found = Mean(rate, interval, n, rows, size, variance, df, rows / size, assumed)
    return Estimate(found, weights, parts, sums)


def by_cluster(prompts: Verdicts, clusters: Array, group: Array) -> Array:
    """Return the weights of all prompts and of the refused ones, both as clusters x groups.

    group: of each prompt, numbered from 0.
    """
    sums = np.zeros((2, len(clusters), group.max(initial=0) + 1))
    cell = np.searchsorted(clusters, prompts.cluster), group
    np.add.at(sums[0], cell, prompts.weight)
    np.add.at(sums[1], cell, prompts.weight * prompts.refused)
    return sums


def _is_spread_doubtful(leverage: Array, refused: Array) -> bool:
    """Return whether a cluster is a whole stratum, or few clusters hold the rarer outcome.

    refused: the part of each cluster in the mean.
    """
    if leverage.max() >= 1 - ROUNDING:
        return True
    weights = leverage.mean(axis=1)
    for outcome in (refused, weights - refused):
        holders = weights[outcome > ROUNDING]
        if kish(holders) < FEW_CLUSTERS - ROUNDING:
            return True
    return False
