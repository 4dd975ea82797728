"""Intervals cover and tests err as often as they say: few draws of every simulated case."""

import pytest

from tests.benchmark.coverage import CASES, COVERED, ERRS, NEVER, Case, measure

DRAWS = 300
SLACK = 0.045  # 3.5 standard errors of a share of .95 in that many draws
# What was wrong must be seen to be wrong, or the simulation shows nothing.
WAS_WRONG = ("seeds x 5", "60 % of", "40 % API", "18 % of", "Youden", "macro", "contradiction")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_intervals_cover_and_tests_err_as_they_say(case: Case) -> None:
    line = measure(case, DRAWS)
    wrong = any(word in case.name for word in WAS_WRONG)
    if case.wanted == COVERED:
        assert line.after >= 0.95 - SLACK
        assert not wrong or line.before < 0.9
    elif case.wanted == NEVER:
        assert line.after == 0 and line.before > 0
    elif case.wanted in (ERRS, "<.05"):
        assert line.after <= 0.05 + SLACK
        assert not wrong or line.before > 0.1
    elif case.wanted == "less":
        assert line.after < 0.8 * line.before
    else:
        assert line.after == pytest.approx(float(case.wanted), abs=0.05)
