"""How good a judge is against people's labels, and the rate that people would have found."""

from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from orbench.stats.core import Array, Mean, Verdicts, mean
from orbench.stats.intervals import Z95


class JudgeAccuracy(NamedTuple):
    """Against people, as fractions; positives, negatives: the effective numbers of responses."""

    sensitivity: float
    positives: float
    specificity: float
    negatives: float


def judge_accuracy(judge: Array, people: Array, response: Array, cluster: Array) -> JudgeAccuracy:
    """Arrays of equal length; judge, people: 1 refused, 0 answered; response: ids.

    cluster: the seed's id, or the prompt's: labels that share one are not independent.
    """
    refused, answered = (
        mean(Verdicts(np.where(people == label, judge == label, nan), response, cluster))
        for label in (1, 0)
    )
    return JudgeAccuracy(refused.rate, refused.effective, answered.rate, answered.effective)


def rogan_gladen(flagged: Mean, api: Mean, judge: JudgeAccuracy) -> tuple[float, float, float, str]:
    """The rate that people would have found, its 95 % interval, and why there is none (else empty).

    flagged: the judge's refusals, of the rows that it judged; api: refusals by the API, certain and
    not judged, of all scored rows. W. J. Rogan and B. Gladen, Am. J. Epidemiology 107 (1978) 71-76;
    the interval is that of Z. Lang and J. Reiczigel, Preventive Veterinary Medicine 113 (2014)
    13-22, at effective sizes, with the variance of the API's share added.
    """
    if not flagged.rows:  # the API refused all of them
        return api.rate, api.low, api.high, "" if api.rows else "nothing is scored"
    se, sp = ((share * n + 1) / (n + 2) for share, n in (judge[:2], judge[2:]))
    if not se + sp > 1:
        return nan, nan, nan, "the judge is not clearly better than chance"
    if not 1 - judge.specificity <= flagged.rate <= judge.sensitivity:  # it would leave 0..1
        return nan, nan, nan, "observed rate beyond the judge's sensitivity or 1 - specificity"
    rest = 1 - api.rate
    found = (flagged.rate + judge.specificity - 1) / (judge.sensitivity + judge.specificity - 1)
    n = flagged.effective + Z95**2
    p = (flagged.effective * flagged.rate + Z95**2 / 2) / n
    r = (p + sp - 1) / (se + sp - 1)
    of_se = se * (1 - se) / (judge.positives + 2)
    of_sp = sp * (1 - sp) / (judge.negatives + 2)
    variance = (p * (1 - p) / n + r * r * of_se + (1 - r) ** 2 * of_sp) / (se + sp - 1) ** 2
    half = Z95 * sqrt(rest**2 * variance + (1 - r) ** 2 * api.rate * rest / api.effective)
    middle = api.rate + rest * (r + 2 * Z95**2 * (r * of_se - (1 - r) * of_sp))
    return api.rate + rest * found, max(0.0, middle - half), min(1.0, middle + half), ""
