"""In how many analyses a finding stands: judges x prompts x what unscored rows are."""

from pathlib import Path

import numpy as np
import pytest

from orbench.report.analyses.labels import Labels
from orbench.report.analyses.robustness import with_robustness
from orbench.report.build import report
from orbench.report.compare import compare
from orbench.report.rates import overall, rates
from orbench.report.results import Result
from orbench.stats.core import Array
from tests.conftest import read_csv, write_csv
from tests.results import ANSWER, DIRECT, lost, numbered, written
from tests.units.read_results import cells_of, read_result
from tests.units.reported import options

N = 60
JUDGES = ("gpt4", "guard")


def four(*texts: str, fields: str = "") -> list[Result]:
    """Models a and b by two judges; the rest of N prompts is answered. fields: of the last."""
    results = []
    for number, text in enumerate(texts):
        judge = JUDGES[number // 2]
        words = f"{text}+0*{N - len(cells_of(text))} model={'ab'[number % 2]} judge={judge}"
        words += f" judge_any_version={judge}"
        if number == 3:
            words += f" {fields}"
        results.append(read_result(words, number))
    return results


def stands(results: list[Result], toxic: Array | None = None) -> str:
    """Of each comparison, in how many analyses it stands. toxic: labels of the prompts."""
    labels = None if toxic is None else Labels(toxic, np.ones(N), toxic, [])
    found = with_robustness(compare(overall(rates(results))), results, labels)
    return ", ".join("{}/{}".format(*one.robustness or "--") for one in found)


@pytest.mark.parametrize(
    ("judges", "labeled", "expected"),
    [(2, 50, "12 of 12"), (2, 0, "6 of 6"), (1, 50, "6 of 6"), (1, 0, "")],
)
def test_judges_agreed_labels_and_unscored_rows_multiply(
    tmp_path: Path, judges: int, labeled: int, expected: str
) -> None:
    paths = []
    for judge in JUDGES[:judges]:
        for name, refused in (("a", 40), ("b", 6)):
            verdicts = [DIRECT] * refused + [ANSWER] * (N - refused)
            path = written(tmp_path, f"{judge}/{name}.csv", verdicts, f"m/{name}", judge=judge)
            lost(path, ["Prompt 60", "Prompt 61"])
            paths.append(str(path))
    rows = [[text, str(place >= labeled)] for place, text in enumerate(numbered(N + 2))]
    labels = [write_csv(tmp_path / "labels.csv", ("prompt", "is_toxic"), rows)]
    report(options(tmp_path, *paths, toxicity=labels[: bool(labeled)]))
    found = read_csv(tmp_path / "results/comparison.csv")
    assert [row["stands_in"] for row in found] == [expected] * judges


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # An analysis counts if it shows the same difference.
        ("1*40+0*19+? 1*6 1*8 1*6", "3/4, -/-"),
        ("1*40+0*19+? 1*6 1*6 1*40", "3/4, 1/4"),
        # Unscored rows of either model are filled, which can undo a difference.
        ("?+1*39+0*19+? 1*6 1*40 1*6", "4/4, 4/4"),
        ("1*40 ?+1*5+0*53+? 1*40 1*6", "4/4, 4/4"),
        ("1*40 1*6 ?+1*39+0*19+? 1*6", "4/4, 4/4"),
        ("1*40 1*6 1*40 ?+1*5+0*53+?", "4/4, 4/4"),
        ("1*12 0*12+?*8 1*12 0", "-/-, 3/4"),
    ],
)
def test_an_analysis_is_a_judge_and_a_filling(texts: str, expected: str) -> None:
    assert stands(four(*texts.split())) == expected


def test_prompts_with_an_agreed_label_may_show_another_difference() -> None:
    results = four("1*40+0*19+?", "1*6")
    place = np.arange(N)
    assert stands(results, 1.0 * (place < 40)) == "3/6"
    assert stands(results, 1.0 * (place >= 50)) == "6/6"


@pytest.mark.parametrize("fields", ["prompt_set=other", "settings=low", "judge=third"])
def test_only_the_same_model_and_prompts_are_another_analysis(fields: str) -> None:
    results = four("1*40+0*19+?", "1*6", "1*40", "1*6", fields=fields)
    assert stands(results).startswith("-/-")
