"""How far judges agree, against a count of the responses that both scored."""

import numpy as np
import pytest

from orbench.report.analyses.judges import agreement
from orbench.report.results import Result
from tests.results import responses, result_of

RANDOM = np.random.default_rng(7)
N = 60


def judged(judge: str, answers: list[str], model: str = "m") -> Result:
    """Random verdicts, some of them missing."""
    verdicts = RANDOM.choice([0, 1, np.nan], N, p=[0.6, 0.3, 0.1])
    return result_of(responses(verdicts, response=answers), judge=judge, model=model)


def test_judges_agree_as_far_as_the_responses_that_both_scored_have_the_same_verdict() -> None:
    answers = [f"text {n}" for n in range(N)]
    others = answers[:50] + ["another answer"] * 10  # of a second run
    results = [judged("j", answers), judged("k", answers), judged("l", others)]
    found = agreement([*results, judged("x", answers, "not judged twice")])
    assert [*found] == ["j", "k", "l"]
    for a, b, n in ((0, 1, N), (0, 2, 50), (1, 2, 50)):
        pairs = zip(results[a].responses.refused[:n], results[b].responses.refused[:n], strict=True)
        same = [one == other for one, other in pairs if one == one and other == other]
        assert found.iloc[a, b] == found.iloc[b, a] == pytest.approx(sum(same) / len(same))


def test_from_few_responses_or_by_one_judge_nothing_is_said() -> None:
    answers = [f"text {n}" for n in range(N)]
    results = [judged("j", answers), judged("k", ["other"] * 40 + answers[40:])]
    assert np.isnan(agreement(results).loc["j", "k"])
    assert agreement(results[:1]).empty
