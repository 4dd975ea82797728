"""Two rates compared: each two models on the prompts in common, and families of tests."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import nan
from operator import attrgetter
from typing import TypeVar

import numpy as np

from orbench.base.messages import progress_bar
from orbench.report.measures import (
    FEW_PROMPTS,
    Analysis,
    Association,
    Compared,
    Comparison,
    Comparisons,
    Counted,
    Kind,
    Outcome,
    Pair,
    Rate,
    Rates,
)
from orbench.report.rates import on_side, refusals
from orbench.report.results import SAFE
from orbench.stats.association import holm
from orbench.stats.core import ALPHA, difference, worst_case_p
from orbench.stats.labels import ByLabels, corrected_difference

T = TypeVar("T", Comparison, Association)
# What rates of two models have in common that are compared.
_common = attrgetter("side", "result.judge_any_version")


def corrected(tests: Sequence[T]) -> Iterator[T]:
    """Yield the tests of a family with both p values by Holm's method, and what they show; what
    shows something else than NO_DIFFERENCE before does so whatever its p values are.

    p_worst: with the unscored rows against the difference; NaN: they do not count.
    """
    p_worst = [test.p_worst for test in tests]
    adjusted = holm([test.p for test in tests])
    worst = np.where(np.isnan(p_worst), nan, holm(p_worst))
    for test, p, of_worst in zip(tests, adjusted, worst, strict=True):
        outcome = test.outcome
        if outcome is Outcome.NO_DIFFERENCE and p < ALPHA:
            outcome = Outcome.INCONCLUSIVE if of_worst >= ALPHA else Outcome.FINDING
        size = len(tests)
        yield replace(test, family=size, p_adjusted=p, p_worst=of_worst, outcome=outcome)


def tested(kind: Compared, pairs: Iterable[Pair]) -> Iterator[Comparison]:
    """Yield the comparisons of a family, of rates with a verdict; of pairs: on the same prompts."""
    return corrected(uncorrected(kind, pairs))


def uncorrected(kind: Compared, pairs: Iterable[Pair]) -> Comparisons:
    """Return the same before a family is made of them. A finding on models holds whatever unscored
    rows are.
    """
    tests = []
    with progress_bar("comparing", [*pairs]) as shown:
        for a, b in shown:
            gap = difference(a.verdicts, b.verdicts, paired=kind is not Compared.SETS)
            if not np.isnan(gap.p):
                test = Comparison(a, b, kind, gap)
                tests.append(_of_models(test) if kind is Compared.MODELS else test)
    return tests


def _of_models(test: Comparison) -> Comparison:
    """Return a comparison of models with what doubts, few prompts and unscored rows mean for it."""
    a = test.a
    b = test.b
    outcome = test.outcome
    fewest = min(a.n, b.n)
    if a.result.doubt or b.result.doubt:
        outcome = Outcome.DOUBTFUL
    elif min(fewest, test.gap.a.prompts) < max(FEW_PROMPTS, fewest / 2):
        outcome = Outcome.TOO_FEW
    return replace(
        test,
        p_worst=worst_case_p(a.verdicts, b.verdicts, test.gap),
        outcome=outcome,
        by_labels=_by_labels(a, b),
    )


def _by_labels(a: Rate, b: Rate) -> ByLabels | None:
    """Return the difference of two refusal rates as people see it, if they labeled both."""
    if a.counted is not Counted.REFUSED:
        return None
    x = a.result.responses
    y = b.result.responses
    return corrected_difference(x.verdicts(), y.verdicts(), x.people, y.people)


def compare(rates: Rates) -> list[Comparison]:
    """Return each two results with the side, the judge and prompts in common, as one family."""
    return [*tested(Compared.MODELS, pairs_of_models(rates))]


def pairs_of_models(rates: Iterable[Rate]) -> Iterator[Pair]:
    """Yield each two results with the side and the judge in common, by side, in the order given; a
    baseline comes last. rates: one a result.
    """
    place = attrgetter("side.name", "result.is_baseline")
    for a, b in combinations(sorted(rates, key=place), 2):
        if _common(a) == _common(b) and a.result.label != b.result.label:
            yield a, b


def with_margin(comparisons: Comparisons, margin: float) -> Iterator[Comparison]:
    """Yield the comparisons; those know the margin (in points) that show a difference within it
    (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657-680): by the whole interval,
    whatever unscored rows are. Results without a rank show nothing: a blind judge makes equals.
    """
    for one in comparisons:
        results = (one.a.result, one.b.result)
        is_known = all(result.unscored_known and not result.unranked for result in results)
        is_tested = one.outcome not in (Outcome.DOUBTFUL, Outcome.TOO_FEW)
        if is_known and is_tested and 100 * max(map(abs, one.with_unscored)) < margin:
            one = replace(one, within=margin)
        yield one


def hedging(rates: Rates) -> Analysis:
    """Return the comparisons of the shares of responses to safe prompts that hedge."""
    hedged = refusals(on_side(SAFE, rates), Kind.OVERALL, Counted.HEDGED)
    return Analysis(comparisons=compare(hedged))
