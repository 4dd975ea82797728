"""Rates corrected for a judge's mistakes, as far as people's labels tell of them."""

import json
from math import nan, sqrt
from pathlib import Path
from typing import NamedTuple

from orbench.rates import Z95
from orbench.terminal import UserError, clean


class JudgeAccuracy(NamedTuple):
    """How a judge did against people's labels, in responses; positive is a refusal."""

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


class Validated(NamedTuple):
    """A judge that was compared with people."""

    path: Path
    judge: str  # stage 5's --check_model; empty: the file does not say
    accuracy: JudgeAccuracy

    def applies_to(self, by_stage5: bool, judge: str) -> bool:
        """Whether it is of the judge of a file; where that is not known, the user says so."""
        return by_stage5 and (not self.judge or not judge or judge == self.judge)


class Corrected(NamedTuple):
    """A corrected rate with its 95 % interval, as fractions; NaN where there is a reason."""

    rate: float
    low: float
    high: float
    reason: str = ""  # why it cannot be corrected, in words


def read_validation(path: Path) -> Validated:
    """What stage 5 writes with --validate_against: `check_model`, and in `overall` tp, fp, fn, tn.

    Raises UserError for a file that is not that, and for a judge no better than chance.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        counts = [content["overall"][name] for name in JudgeAccuracy._fields]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        counts = []
    if not counts or any(not isinstance(n, int) or n < 0 for n in counts):
        raise UserError(
            f"{path} is not a validation (JSON with the counts tp, fp, fn, tn in 'overall'); "
            "stage 5 writes one with --validate_against"
        )
    found = JudgeAccuracy(*counts)
    if not found.tp + found.fn or not found.tn + found.fp:
        raise UserError(f"{path}: people's labels hold only one class, so nothing to correct by")
    if found.sensitivity + found.specificity <= 1:
        raise UserError(
            f"{path}: the judge is no better than chance (sensitivity {found.sensitivity:.3f}, "
            f"specificity {found.specificity:.3f}), so no rate can be corrected by it"
        )
    return Validated(path, clean(str(content.get("check_model") or "")), found)


def correct(rate: float, prompts: float, judge: JudgeAccuracy) -> Corrected:
    """The rate that people would have found (Rogan and Gladen, Am. J. Epidemiology 107, 1978).

    (p + specificity - 1) / (sensitivity + specificity - 1), inside 0..1. The interval is that of
    Lang and Reiczigel, Preventive Veterinary Medicine 113 (2014) 13-22: it carries the uncertainty
    of the rate, of the sensitivity and of the specificity, each counted with its own n; that of the
    rate is the number of distinct prompts.
    """
    if reason := _why_not(rate, judge):
        return Corrected(nan, nan, nan, f"{reason}: cannot be corrected")
    point = (rate + judge.specificity - 1) / (judge.sensitivity + judge.specificity - 1)
    n = prompts + Z95**2
    p = (prompts * rate + Z95**2 / 2) / n
    se, sp = judge.smoothed
    youden = se + sp - 1
    r = (p + sp - 1) / youden
    var_se = se * (1 - se) / (judge.tp + judge.fn + 2)
    var_sp = sp * (1 - sp) / (judge.tn + judge.fp + 2)
    middle = r + 2 * Z95**2 * (r * var_se - (1 - r) * var_sp)
    half = Z95 * sqrt(p * (1 - p) / n + r * r * var_se + (1 - r) ** 2 * var_sp) / youden
    return Corrected(_inside(point), _inside(middle - half), _inside(middle + half))


def _why_not(rate: float, judge: JudgeAccuracy) -> str:
    """Why a rate cannot be corrected by that judge, in words; empty where it can.

    A judge calls between 1 - specificity and sensitivity of any responses refusals. Beyond that the
    formula leaves 0..1, and cut off there it would read as certainty.
    """
    if rate > judge.sensitivity:
        return "observed rate above the judge's sensitivity"
    if rate < judge.fp / (judge.tn + judge.fp):
        return "observed rate below the judge's share of false alarms (1 - specificity)"
    if sum(judge.smoothed) <= 1:
        return "it is not certain that the judge is better than chance"
    return ""


def _inside(share: float) -> float:
    return min(1.0, max(0.0, share))
