"""Statistics over measurements: paired comparison, correlation, correction for the judge."""

import json
from collections.abc import Sequence
from itertools import combinations
from math import nan, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orbench.rates import Z95, wilson
from orbench.report.results import SIDES, STAGE5_BY, Measurement, Rate
from orbench.terminal import UserError, clean

Floats = NDArray[np.float64]

ALPHA = 0.05
RESAMPLES = 9999
SEED = 2405  # of the bootstrap, so that the same input gives the same interval
# How a paired interval was had -> what that is, and when.
INTERVALS = {
    "Newcombe": "his method 10 for pairs, where each prompt was refused always or never",
    "t": "Student's, over the prompts' differences, where some were refused in part of the samples",
    "Wilson": "both rates' own, put together as for independent ones, where all differences agree",
}
SAME = 1e-9  # differences of shares that are nearer than this are rounding
MODELS_FOR_RHO = 4  # with fewer marks neither a rank correlation nor a parabola says anything


class Comparison(NamedTuple):
    """Two models on the prompts that both have a verdict for. Rates are fractions."""

    side: str
    a: Measurement
    b: Measurement
    prompts: int  # in common
    rate_a: float  # on these
    rate_b: float
    a_only: int  # prompts that a refuses more often than b
    b_only: int
    low: float  # 95 % interval of rate_a - rate_b
    high: float
    method: str  # of the interval, a key of INTERVALS; empty where there is none
    p: float  # McNemar's exact test, two-sided
    p_holm: float = nan  # corrected for the pairs of the side
    doubt: str = ""  # why no finding is claimed, in words

    @property
    def difference(self) -> float:
        """rate_a - rate_b."""
        return self.rate_a - self.rate_b

    @property
    def finding(self) -> str:
        """`A is lower than B` where that holds, else that it is not shown."""
        if self.doubt:
            return self.doubt
        holds = self.p_holm < ALPHA and self.difference * (self.a_only - self.b_only) > 0
        if not holds:
            return "no difference shown"
        lower, higher = (self.a, self.b) if self.difference < 0 else (self.b, self.a)
        return f"{lower.model} is lower than {higher.model}"


class Correlation(NamedTuple):
    """Spearman's rho with its bootstrap 95 % interval (NaN where it cannot be had)."""

    rho: float
    low: float
    high: float
    n: int


class Corrected(NamedTuple):
    """A rate corrected for an imperfect judge, with its 95 % interval; fractions."""

    rate: float
    low: float
    high: float


class Validation(NamedTuple):
    """How a judge did against people's labels; positive is a refusal."""

    path: Path
    check_model: str  # empty: not told
    tp: int
    fn: int
    tn: int
    fp: int

    @property
    def sensitivity(self) -> float:
        """The share of people's refusals that the judge calls so."""
        return self.tp / (self.tp + self.fn)

    @property
    def specificity(self) -> float:
        """The share of the other responses that the judge calls so."""
        return self.tn / (self.tn + self.fp)

    @property
    def smoothed(self) -> tuple[float, float]:
        """Sensitivity and specificity with one more success and one more failure in each."""
        return (self.tp + 1) / (self.tp + self.fn + 2), (self.tn + 1) / (self.tn + self.fp + 2)


# ---------------------------------------------------------------------------------- comparison


def compare(measurements: Sequence[Measurement]) -> list[Comparison]:
    """Every pair of models on a side; p corrected over the pairs of the side."""
    found = []
    for side in SIDES:
        ones = [one for one in measurements if one.side == side]
        pairs = [_pair(a, b) for a, b in combinations(ones, 2)]
        tested = [pair.p for pair in pairs if pair.prompts]
        corrected = iter(holm(tested))
        found += [p._replace(p_holm=next(corrected)) if p.prompts else p for p in pairs]
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: p values that control the family-wise error rate.

    S. Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


def newcombe(both: int, a_only: int, b_only: int, neither: int) -> tuple[float, float]:
    """The 95 % interval of a difference of paired proportions, a minus b.

    Method 10 of R. G. Newcombe, Statistics in Medicine 17 (1998) 2635-2650: the two Wilson
    intervals, put together with the correlation phi, its numerator corrected for continuity.
    """
    n = both + a_only + b_only + neither
    a, b = both + a_only, both + b_only
    numerator: float = both * neither - a_only * b_only
    if numerator > 0:
        numerator = max(numerator - n / 2, 0)
    denominator = sqrt(a * (n - a) * b * (n - b))
    return _wilsons_together(a / n, b / n, n, numerator / denominator if denominator else 0.0)


def _wilsons_together(a: float, b: float, n: int, phi: float) -> tuple[float, float]:
    """The interval of a - b, shares of n each, from Wilson's two and the correlation."""
    low_a, high_a = wilson(a * n, n)
    low_b, high_b = wilson(b * n, n)

    def reach(from_a: float, from_b: float) -> float:
        return sqrt(max(0.0, from_a**2 - 2 * phi * from_a * from_b + from_b**2))

    low = a - b - reach(a - low_a, high_b - b)
    high = a - b + reach(high_a - a, b - low_b)
    return max(-1.0, low), min(1.0, high)


def mcnemar(a_only: int, b_only: int) -> float:
    """p of McNemar's exact test, two-sided; with several rows a prompt, of the sign test."""
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # half a second to load

    return float(binomtest(a_only, a_only + b_only).pvalue) if a_only + b_only else 1.0


def _pair(a: Measurement, b: Measurement) -> Comparison:
    prompts_a, shares_a = _share_per_prompt(a)
    prompts_b, shares_b = _share_per_prompt(b)
    _, in_a, in_b = np.intersect1d(prompts_a, prompts_b, assume_unique=True, return_indices=True)
    x, y = shares_a[in_a], shares_b[in_b]
    if not len(x):
        none = "no common prompt"
        return Comparison(a.side, a, b, 0, nan, nan, 0, 0, nan, nan, "", nan, doubt=none)
    a_only, b_only = int(np.count_nonzero(x > y)), int(np.count_nonzero(x < y))
    p = mcnemar(a_only, b_only)
    low, high, method = paired_interval(x, y)
    doubt = _doubt(a, b)
    return Comparison(
        a.side, a, b, len(x), x.mean(), y.mean(), a_only, b_only, low, high, method, p, doubt=doubt
    )


def _share_per_prompt(one: Measurement) -> tuple[NDArray[np.uint64], Floats]:
    """The prompts, each once, and the share of its rows that is refused."""
    prompts, index, rows = np.unique(one.rows.prompt, return_inverse=True, return_counts=True)
    return prompts, np.bincount(index, one.refused, len(prompts)) / rows


def paired_interval(x: Floats, y: Floats) -> tuple[float, float, str]:
    """The 95 % interval of mean(x) - mean(y), and its method (a key of INTERVALS).

    x, y: the share of a prompt's answers that is refused, 0..1, the same prompts in both. Where all
    the differences are the same their spread says nothing: a t interval would have no width.
    """
    if np.isin(x, (0, 1)).all() and np.isin(y, (0, 1)).all():
        cells = (np.count_nonzero((x == i) & (y == j)) for i, j in ((1, 1), (1, 0), (0, 1), (0, 0)))
        return *newcombe(*map(int, cells)), "Newcombe"
    if np.ptp(x - y) < SAME:
        return *_wilsons_together(x.mean(), y.mean(), len(x), 0.0), "Wilson"
    from scipy.stats import ttest_rel

    low, high = ttest_rel(x, y).confidence_interval(1 - ALPHA)
    return max(-1.0, float(low)), min(1.0, float(high)), "t"


def _doubt(a: Measurement, b: Measurement) -> str:
    if a.scripted or b.scripted:
        return "scripted: measures nothing"
    if a.counted_by != b.counted_by:
        return f"counted differently: {a.counted_by}, {b.counted_by}"
    return ""


# ---------------------------------------------------------------------------------- scatter


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Spearman's rank correlation over models, with a bootstrap interval.

    Percentile interval, RESAMPLES resamples of the models, fixed seed; resamples in which all the
    values are the same have no rho and are left out.
    """
    if len(x) < MODELS_FOR_RHO:
        return Correlation(nan, nan, nan, len(x))
    pairs = np.array([x, y], dtype=float)
    drawn = np.random.default_rng(SEED).integers(len(x), size=(RESAMPLES, len(x)))
    rhos = _rank_correlation(pairs[0][drawn], pairs[1][drawn])
    low, high = np.nanpercentile(rhos, [2.5, 97.5]) if np.isfinite(rhos).any() else (nan, nan)
    return Correlation(float(_rank_correlation(*pairs)), float(low), float(high), len(x))


def parabola(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float] | None:
    """Least squares y = a x^2 + b x + c in the units given; None where there are too few points."""
    if len(set(x)) < MODELS_FOR_RHO:
        return None
    a, b, c = np.polyfit(x, y, 2)
    return float(a), float(b), float(c)


def _rank_correlation(x: Floats, y: Floats) -> Floats:
    """Spearman's rho along the last axis: Pearson's of the ranks, ties at their mean rank."""
    from scipy.stats import rankdata

    a, b = (rankdata(values, axis=-1) for values in (x, y))
    a -= a.mean(axis=-1, keepdims=True)
    b -= b.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        rho: Floats = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return rho


# ---------------------------------------------------------------------------------- judge


def read_validation(path: Path) -> Validation:
    """The judge against people: `check_model`, and in `overall` the counts tp, fp, fn, tn.

    Raises UserError for a file that is not that, or a judge no better than chance.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        overall = content["overall"]
        counts = {name: overall[name] for name in ("tp", "fn", "tn", "fp")}
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        counts = {}
    if not counts or any(not isinstance(n, int) or n < 0 for n in counts.values()):
        raise UserError(
            f"{path} is not a validation (JSON with the counts tp, fp, fn, tn in 'overall'); "
            "stage 5 writes one with --validate_against"
        )
    found = Validation(path, clean(str(content.get("check_model") or "")), **counts)
    if not found.tp + found.fn or not found.tn + found.fp:
        raise UserError(f"{path}: people's labels hold only one class, so nothing to correct by")
    if found.sensitivity + found.specificity <= 1:
        raise UserError(
            f"{path}: the judge is no better than chance (sensitivity {found.sensitivity:.3f}, "
            f"specificity {found.specificity:.3f}), so no rate can be corrected by it"
        )
    return found


def corrected(rate: Rate, validation: Validation) -> Corrected | None:
    """The rate that people would have found (Rogan and Gladen, Am. J. Epidemiology 107, 1978).

    (p + specificity - 1) / (sensitivity + specificity - 1), inside 0..1. The interval is that of
    Lang and Reiczigel, Preventive Veterinary Medicine 113 (2014) 13-22: it carries the uncertainty
    of the rate, of the sensitivity and of the specificity, each counted with its own n.
    None where nothing is scored, or for the reason that `why_not_corrected` gives.
    """
    if not rate.n or why_not_corrected(rate, validation):
        return None
    point = (rate.rate + validation.specificity - 1) / (
        validation.sensitivity + validation.specificity - 1
    )
    n = rate.prompts + Z95**2  # rows with the same prompt are not independent
    n_se, n_sp = validation.tp + validation.fn + 2, validation.tn + validation.fp + 2
    p = (rate.prompts * rate.rate + Z95**2 / 2) / n
    se, sp = validation.smoothed
    youden = se + sp - 1
    r = (p + sp - 1) / youden
    var_se, var_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    shift = 2 * Z95**2 * (r * var_se - (1 - r) * var_sp)
    half = Z95 * sqrt(p * (1 - p) / n + r * r * var_se + (1 - r) ** 2 * var_sp) / youden
    low, high = r + shift - half, r + shift + half
    return Corrected(_inside(point), _inside(low), _inside(high))


def why_not_corrected(rate: Rate, validation: Validation) -> str:
    """Why a rate cannot be corrected by that judge, in words; empty where it can.

    A judge calls between 1 - specificity and sensitivity of any responses refusals. Beyond that the
    formula leaves 0..1, and cut off there it would read as certainty.
    """
    reason = ""
    if rate.rate > validation.sensitivity:
        reason = "observed rate above the judge's sensitivity"
    elif rate.rate < validation.fp / (validation.tn + validation.fp):
        reason = "observed rate below the judge's share of false alarms (1 - specificity)"
    elif sum(validation.smoothed) <= 1:
        reason = "the judge is not surely better than chance"
    return reason and f"{reason}: cannot be corrected"


def judged_by(one: Measurement, validation: Validation) -> bool:
    """Whether the validation is of the judge that counted this file."""
    if not validation.check_model or one.counted_by == STAGE5_BY:
        return one.stage == 5  # the record does not say which judge; the user does
    return one.counted_by == f"{STAGE5_BY} {validation.check_model}"


def _inside(share: float) -> float:
    return min(1.0, max(0.0, share))
