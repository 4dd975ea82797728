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

    def averaged(self) -> "Verdicts":
        """Return a row for each scored prompt, sorted by id: its share of refusals."""
        scored = self.where(np.isfinite(self.refused))
        _, first, place = np.unique(scored.prompt, return_index=True, return_inverse=True)
        rows = np.bincount(place)
        share = np.bincount(place, scored.refused) / rows
        return scored.where(first)._replace(refused=share, rows=rows)

    @cached_property
    def prompts(self) -> "Verdicts":
        """The averaged verdicts, kept: a result is compared many times."""
        return self.averaged()

    def imputed(self, refused: float) -> "Verdicts":
        """Return the same rows with all unscored ones refused (1) or answered (0)."""
        rows = np.where(np.isnan(self.refused), refused, self.refused)
        return self._replace(refused=rows)

    @cached_property
    def with_refusals(self) -> "Verdicts":
        """The verdicts with all unscored rows refused."""
        return self.imputed(1)

    @cached_property
    def with_answers(self) -> "Verdicts":
        """The verdicts with all unscored rows answered."""
        return self.imputed(0)


class Mean(NamedTuple):
    """A rate and its 95 % interval, as fractions; NaN, 0 and 1 where nothing is scored."""

    rate: float
    low: float
    high: float
    prompts: int
    rows: int  # scored ones
    effective: float  # the number of independent rows that would say as much
    variance: float  # of the rate, by the spread of the clusters
    df: float  # degrees of freedom of the variance
    assumed: bool = False  # whether the interval is that of ASSUMED_ICC

    @property
    def interval(self) -> Interval:
        """The 95 % interval."""
        return Interval(self.low, self.high)

    @property
    def design_effect(self) -> float:
        """Rows per independent observation; NaN where nothing is scored."""
        if not self.rows:
            return np.nan
        return self.rows / self.effective


NOTHING_SCORED = Mean(np.nan, 0.0, 1.0, 0, 0, 0.0, 0.0, 0.0)


class Sample(NamedTuple):
    """The prompts of a mean, as it weighs them."""

    prompts: Verdicts  # averaged, the clusters numbered from 0
    clusters: int  # those of the other sample are counted, too
    stratum: Array  # of each prompt: its category, numbered from 0
    means: Array  # of the strata
    weights: Array  # of each prompt in the mean: 1 in all, each stratum alike

    @property
    def rate(self) -> float:
        """The mean of the strata's means."""
        return float(self.means.mean())

    def by_cell(self, values: Array) -> Array:
        """Return the sums of the prompts' values, as clusters x strata."""
        strata = len(self.means)
        cell = self.prompts.cluster * strata + self.stratum
        sums = np.bincount(cell, values, self.clusters * strata)
        return sums.reshape(self.clusters, strata)


class Estimate(NamedTuple):
    """A mean, and what its clusters contribute."""

    sample: Sample
    mean: Mean
    parts: Array  # of the clusters in its deviation: their squares sum to the variance
    sums: Array  # of the clusters in the mean itself


def mean(verdicts: Verdicts) -> Mean:
    """Return the mean of the prompts' shares, with Wilson's interval at the effective size.

    Any values from 0 to 1 may stand in place of the verdicts.
    """
    prompts = verdicts.averaged()
    seeds, cluster = np.unique(prompts.cluster, return_inverse=True)
    sample = weigh(prompts._replace(cluster=cluster), len(seeds))
    return estimate(sample).mean


def with_unscored(verdicts: Verdicts) -> Interval:
    """Return the 95 % interval whatever the unscored rows are: all answered, up to all refused."""
    answered = mean(verdicts.imputed(0))
    refused = mean(verdicts.imputed(1))
    return Interval(answered.low, refused.high)


def weigh(prompts: Verdicts, clusters: int) -> Sample:
    """Return the prompts with their weights in the mean. clusters: their number, with those of the
    other mean in a difference.
    """
    weight = prompts.weight
    _, stratum = np.unique(prompts.category, return_inverse=True)
    totals = np.bincount(stratum, weight)
    means = np.bincount(stratum, weight * prompts.refused) / totals
    weights = weight / (len(totals) * totals[stratum])
    return Sample(prompts, clusters, stratum, means, weights)


def estimate(sample: Sample) -> Estimate:
    """Return the mean, its interval and the clusters' parts in it."""
    prompts = sample.prompts
    cluster = prompts.cluster
    if not len(cluster):
        none = np.zeros(sample.clusters)
        return Estimate(sample, NOTHING_SCORED, none, none)
    leverage = sample.by_cell(sample.weights * len(sample.means))
    cluster_weights = np.bincount(cluster, sample.weights)
    parts = _cr2_parts(sample, leverage)
    variance = sum_of_squares(parts)
    df = degrees_of_freedom(leverage, cluster_weights)
    rows = int(np.sum(prompts.rows))
    size = _size_by_spread(sample, variance, df, rows)
    assumed = False
    if _is_spread_doubtful(sample, leverage, cluster_weights):
        between = sum_of_squares(cluster_weights)
        within = sum_of_squares(sample.weights)
        by_assumption = 1 / (ASSUMED_ICC * between + (1 - ASSUMED_ICC) * within)
        assumed = by_assumption < size and between > within + ROUNDING
        size = min(size, by_assumption)
    low, high = wilson(sample.rate * size, size)
    found = Mean(sample.rate, low, high, len(cluster), rows, size, variance, df, assumed)
    sums = np.bincount(cluster, sample.weights * prompts.refused, sample.clusters)
    return Estimate(sample, found, parts, sums)


def _cr2_parts(sample: Sample, leverage: Array) -> Array:
    """Return the clusters' deviations, enlarged for what each pulls the mean toward itself (CR2).

    leverage: clusters x strata, the share of the stratum's weight that the cluster has.
    """
    deviations = sample.prompts.refused - sample.means[sample.stratum]
    centered = sample.by_cell(sample.weights * deviations)
    # A cluster that is a whole stratum shows no deviation.
    others = np.where(leverage < 1 - ROUNDING, 1 - leverage, np.inf)
    enlarged = centered / np.sqrt(others)
    parts: Array = enlarged.sum(axis=1)
    return parts


def _size_by_spread(sample: Sample, variance: float, df: float, rows: int) -> float:
    """Return the number of independent rows whose mean varies as much; all rows at most."""
    if variance <= ROUNDING**2:
        return float(rows)
    prompts = len(sample.weights)
    rate = sample.rate
    spread = rate * (1 - rate) * prompts / (prompts - 1)
    return min(float(rows), spread / variance / t_inflation(df, rows))


def _is_spread_doubtful(sample: Sample, leverage: Array, cluster_weights: Array) -> bool:
    """Return whether a cluster is a whole stratum, or few clusters hold the rarer outcome."""
    if np.any(leverage >= 1 - ROUNDING):
        return True
    share = sample.prompts.refused
    for outcome in (share, 1 - share):
        holders = np.bincount(sample.prompts.cluster, outcome) > ROUNDING
        if kish(cluster_weights[holders]) < FEW_CLUSTERS - ROUNDING:
            return True
    return False
