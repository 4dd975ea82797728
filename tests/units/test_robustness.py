"""In how many analyses a finding stands: judges x prompts x what unscored rows are."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orbench.report.analyses.labels import AGREED, labels_of
from orbench.report.analyses.robustness import with_robustness
from orbench.report.compare import compare
from orbench.report.load import load_results, sources_of
from orbench.report.measures import Comparison, Outcome, Robustness
from orbench.report.rates import overall, rates
from orbench.report.results import Result
from orbench.stats.core import Array
from tests.conftest import Desk, write_csv
from tests.results import ANSWER, DIRECT, lost, numbered, responses, result_of, written

N = 60
NAN = float("nan")
JUDGES = ("gpt4", "guard")


def judged(number: int, model: str, refused: int, **about: Any) -> Result:
    """A result in which the first prompts are refused."""
    values = [1.0] * refused + [0.0] * (N - refused)
    judge = about.get("judge", "gpt4")
    return result_of(responses(values), number, model=model, judge_any_version=judge, **about)


def found_in(results: Sequence[Result], agreed: dict[int, Array] | None = None) -> list[Comparison]:
    return with_robustness(compare(overall(rates(results))), results, agreed or {})


def without_some(result: Result, *places: int) -> Result:
    """The same with unscored rows."""
    refused = result.responses.refused.copy()
    refused[list(places)] = NAN
    return replace(result, responses=replace(result.responses, refused=refused))


def four(a: int, b: int, a2: int, b2: int) -> list[Result]:
    """Two models by two judges, one response of the first unscored."""
    results = [judged(0, "a", a), judged(1, "b", b)]
    results += [judged(2, "a", a2, judge="guard"), judged(3, "b", b2, judge="guard")]
    return [without_some(results[0], N - 1), *results[1:]]


# -- how many analyses there are -----------------------------------------------------------------


def files_of(folder: Path, names: tuple[str, ...] = ("a", "b"), judges: Any = JUDGES) -> list[str]:
    """Files of models with 40 and 6 of 60 prompts refused, by each judge; 2 rows are unscored."""
    paths = []
    for judge in judges:
        for name, refused in zip(names, (40, 6), strict=True):
            verdicts = [DIRECT] * refused + [ANSWER] * (N - refused)
            path = written(folder, f"{judge}/{name}.csv", verdicts, f"m/{name}", judge=judge)
            lost(path, ["Prompt 60", "Prompt 61"])
            paths.append(str(path))
    return paths


def labels_in(folder: Path, agreed: int) -> Path:
    """A panel's labels: the first prompts are called safe, the others toxic."""
    rows = [[text, str(place >= agreed)] for place, text in enumerate(numbered(N + 2))]
    return write_csv(folder / "labels.csv", ("prompt", "is_toxic"), rows)


@pytest.mark.parametrize(
    ("judges", "with_labels", "count"),
    [(JUDGES, True, 12), (JUDGES, False, 6), (JUDGES[:1], True, 6), (JUDGES[:1], False, None)],
)
def test_judges_labels_and_unscored_rows_multiply(
    tmp_path: Path, judges: tuple[str, ...], with_labels: bool, count: int | None
) -> None:
    sources = []
    for path in files_of(tmp_path, judges=judges):
        sources += sources_of(path, "over_refusal")
    results, prompts = load_results(sources)
    agreed = {}
    if with_labels:
        agreed = labels_of(prompts, [labels_in(tmp_path, 50)]).agreed(results)
        assert {int(one.sum()) for one in agreed.values()} == {50}
    comparisons = found_in(results, agreed)
    assert len(comparisons) == len(judges)
    for one in comparisons:
        assert one.is_finding
        assert one.robustness == (Robustness(count, count) if count else None)


def test_the_report_counts_the_analyses_of_the_files_given(desk: Desk) -> None:
    paths = files_of(desk.folder)
    labels = labels_in(desk.folder, 50)
    flags = ["--over_refusal", *paths, "--toxicity", str(labels), "--table"]
    done = desk.run("response_checker/plot_results.py", *flags)
    assert done.returncode == 0, done.stderr
    shown = [row["stands_in"] for row in desk.rows("results/comparison.csv")]
    assert shown == ["12 of 12"] * 2
    assert "12 of 12" in (desk.folder / "results/results.md").read_text()


# -- what holds ----------------------------------------------------------------------------------


def test_an_analysis_counts_if_it_shows_the_same_difference() -> None:
    by_first, by_second = found_in(four(40, 6, 8, 6))
    assert by_first.robustness == Robustness(3, 4)
    assert by_second.robustness is None and by_second.outcome is Outcome.NO_DIFFERENCE
    by_first, by_second = found_in(four(40, 6, 6, 40))
    assert (by_first.robustness, by_second.robustness) == (Robustness(3, 4), Robustness(1, 4))


def test_prompts_with_an_agreed_label_may_show_another_difference() -> None:
    results = [without_some(judged(0, "a", 40), N - 1), judged(1, "b", 6)]
    answered = {one.number: np.arange(N) >= 40 for one in results}
    (found,) = found_in(results, answered)
    assert found.robustness == Robustness(3, 6)
    refused = {one.number: np.arange(N) < 50 for one in results}
    (found,) = found_in(results, refused)
    assert found.robustness == Robustness(6, 6)


def test_unscored_rows_of_either_model_are_filled() -> None:
    for place in range(4):
        results = [judged(0, "a", 40), judged(1, "b", 6)]
        results += [judged(2, "a", 40, judge="guard"), judged(3, "b", 6, judge="guard")]
        results[place] = without_some(results[place], 0, N - 1)
        for one in found_in(results):
            assert one.robustness == Robustness(4, 4)


def test_filled_rows_can_undo_a_difference() -> None:
    results = [judged(0, "a", 12), judged(1, "b", 0)]
    results[1] = without_some(results[1], *range(12, 20))
    results += [judged(2, "a", 12, judge="guard"), judged(3, "b", 0, judge="guard")]
    by_first, by_second = found_in(results)
    assert by_first.outcome is Outcome.INCONCLUSIVE and by_first.robustness is None
    assert by_second.robustness == Robustness(3, 4)


@pytest.mark.parametrize(
    "about", [{"prompt_set": "other"}, {"settings": "effort low"}, {"judge": "third"}]
)
def test_only_the_same_model_and_prompts_are_another_analysis(about: dict[str, Any]) -> None:
    results = four(40, 6, 40, 6)
    results[3] = replace(results[3], **about | {"judge_any_version": about.get("judge", "guard")})
    by_first = found_in(results)[0]
    assert by_first.is_finding and by_first.robustness is None


def test_labels_are_agreed_as_the_side_says(tmp_path: Path) -> None:
    path = files_of(tmp_path, judges=JUDGES[:1])[0]
    results, prompts = load_results(sources_of(path, "over_refusal"))
    labels = labels_of(prompts, [labels_in(tmp_path, 7)])
    assert labels.agreement(results[0]).tolist().count(AGREED) == 7
