"""The tables of a report: cells and marks, which columns are shown, Markdown, LaTeX and CSVs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orbench.report.analyses.drift import drift
from orbench.report.analyses.graded import hedging
from orbench.report.analyses.pairs import pairs
from orbench.report.analyses.tiers import tiers
from orbench.report.behind import sections
from orbench.report.columns import Behind, Column, Figure, Shown
from orbench.report.compare import compare
from orbench.report.load import load_results, sources_of
from orbench.report.page_tables import differences, heat_maps
from orbench.report.published import published_models
from orbench.report.ranking import leaderboard
from orbench.report.rates import overall, rates
from orbench.report.results import TOXIC, Result
from orbench.report.standings import Report
from orbench.report.tables import Cell, cell_of, grid, grids, text_of, write_csvs, write_documents
from orbench.stats.intervals import Interval
from tests.conftest import read_csv
from tests.results import ANSWER, DIRECT, prompts_of, responses, result_of, written

NAN = float("nan")
N = 40


def made(results: list[Result], **changed: Any) -> Report:
    """A report with what stands behind the rates."""
    measured = rates(results)
    board = leaderboard(overall(measured))
    found = [hedging(measured), pairs(board), tiers(board), drift(overall(measured))]
    comparisons = compare(overall(measured))
    associations: list[Any] = []
    for one in found:
        measured += one.rates
        comparisons += one.comparisons
        associations += one.associations
    report = Report(prompts_of([]), results, measured, comparisons, associations, board, [], [])
    return replace(report, **changed)


def judged(folder: Path, name: str, refused: int, side: str = "over_refusal", **about: Any) -> Any:
    """The source of a result of maker/NAME."""
    verdicts = [DIRECT] * refused + [ANSWER] * (N - refused)
    file = about.pop("file", f"{name}.csv")
    path = written(folder, file, verdicts, f"maker/{name}", **about)
    return sources_of(str(path), side)[0]


def two(folder: Path, **about: Any) -> list[Result]:
    sources = [judged(folder, "a", 4, **about), judged(folder, "b", 30, **about)]
    return load_results(sources)[0]


# -- cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text", "in_csv"),
    [
        (None, "–", ""),
        (NAN, "–", ""),
        (3, "3", "3"),
        (3.0, "3", "3"),
        (1 / 3, "0.33", "0.3333333"),
        (0.00012345, "0.00012", "0.00012345"),
        ("name", "name", "name"),
        (Figure(NAN), "–", ""),
        (Figure(1 / 3), "33.3", "33.33333"),
        (Figure(0.5, Interval(0.25, 1)), "50.0 [25.0, 100.0]", "50"),
        (Figure(0.5, Interval(0, 1), is_small=True), "50.0 [0.0, 100.0] †", "50"),
        (Figure(0.5, is_small=True, is_widened=True), "50.0 ‡ †", "50"),
    ],
)
def test_values_are_short_for_people_and_exact_for_programs(
    value: object, text: str, in_csv: str
) -> None:
    assert cell_of(value).text == text
    assert text_of(value) == in_csv


def test_a_cell_is_sorted_by_its_value_and_knows_its_rows() -> None:
    cell = cell_of(Figure(0.5, None, True, False, Behind(3, "a")))
    assert cell == Cell("50.0 †", 50, Behind(3, "a"), True)
    assert cell_of("name").value is None and cell_of(7).value == 7
    assert cell_of(None).value != cell_of(None).value
    assert [cell_of(one).is_filled for one in (None, "", 0, "x")] == [False, False, True, True]


def columns_shown(shown: Shown, *values: object) -> tuple[list[str], list[str]]:
    """The titles of a column of these values in documents, and on the page."""
    column = Column[object]("c", lambda one: one, "Title", shown)
    found = grid("G", [column, Column("", lambda one: "x", "Other")], values)
    return [one.title for one in found.columns], [one.title for one in found.on_page.columns]


@pytest.mark.parametrize(
    ("shown", "values", "documents", "page"),
    [
        (Shown.EVERYWHERE, ["a", "a"], True, True),
        (Shown.EVERYWHERE, ["", None], False, False),
        (Shown.EVERYWHERE, ["", "a"], True, True),
        (Shown.IN_DOCUMENTS, ["a", "b"], True, False),
        (Shown.IF_VARIED, ["a", "A"], True, False),
        (Shown.IF_VARIED, ["a", "b"], True, True),
        (Shown.ONLY_VARIED, ["a", "a"], False, False),
        (Shown.ONLY_VARIED, ["a", "b"], True, True),
    ],
)
def test_columns_are_left_out_that_tell_nothing(
    shown: Shown, values: list[object], documents: bool, page: bool
) -> None:
    found = columns_shown(shown, *values)
    assert ["Title" in titles for titles in found] == [documents, page]


@pytest.mark.parametrize(("rows", "is_long"), [(12, False), (13, True)])
def test_long_and_wide_grids_are_marked(rows: int, is_long: bool) -> None:
    columns = [Column[int]("", lambda one: one, str(number)) for number in range(7)]
    found = grid("G", columns, range(rows))
    assert (found.is_long, found.is_dense, found.has_small) == (is_long, False, False)
    columns.append(Column("", lambda one: Figure(one, is_small=one == 3), "few"))
    found = grid("G", columns, range(rows))
    assert (found.is_dense, found.has_small) == (True, True)


# -- the grids of a report -------------------------------------------------------------------------


def titles(report: Report) -> list[str]:
    return [one.title for one in grids(report).filled]


def test_each_grid_stands_if_it_has_rows(tmp_path: Path) -> None:
    results = two(tmp_path)
    assert titles(made(results)) == [
        "Leaderboard",
        "Over-refusal rate",
        "Over-refusal rate by category",
        "Comparisons on the same prompts",
    ]
    assert titles(made(results[:1]))[-1] == "Over-refusal rate by category"
    graded = {"graded_category": ["direct_refusal"] * 4 + ["partial"] * 36}
    api = {"api_category": ["cyber"] * N, "answer_type_response": ["api:refusal"] * N}
    source = judged(tmp_path, "c", 4, columns=graded | api)
    found = titles(made(load_results([source])[0]))
    assert "Shares of graded responses" in found
    alone = Report(prompts_of([]), [], [], [], [], [], published_models(), [])
    assert titles(alone) == ["Leaderboard"] and len(grids(alone).leaderboard.rows) == 32


def test_categories_stand_in_rows_and_results_in_columns(tmp_path: Path) -> None:
    (by_category,) = grids(made(two(tmp_path))).by_category
    assert [one.title for one in by_category.columns] == ["Category", "maker/a", "maker/b"]
    names = [row[0].text for row in by_category.rows]
    assert names == ["a", "b", "macro average", "overall"]
    assert by_category.rows[3][1].text.startswith("10.0 [")
    assert by_category.rows[0][1].text.endswith("†") and by_category.has_small
    assert by_category.rows[0][1].behind == Behind(0, "a")
    assert by_category.rows[2][1].behind is None


# -- files -----------------------------------------------------------------------------------------


def test_names_stand_in_documents_as_they_are(tmp_path: Path) -> None:
    source = judged(tmp_path, "a", 4)._replace(model="m&k/b$_1 [x](y) <b>*c*|d#~`")
    report = made(load_results([source])[0])
    (tmp_path / "o").mkdir()
    paths = write_documents(tmp_path / "o" / "results.csv", report, ["a line of 5 % | x_y"])
    markdown, tex = (path.read_text() for path in paths)
    assert r"m\&k/b\$\_1 \[x\](y) \<b\>\*c\*\|d\#\~\`" in markdown
    assert "**Note:** a line of 5 % \\| x\\_y" in markdown
    assert r"m\&k/b\$\_1 [x](y) " in tex and r"\caption{Over-refusal rate}" in tex
    assert markdown.startswith("# Results\n\n**Note:** ")
    assert markdown.index("\n\nPercent refused, with 95 %") < markdown.index("## Leaderboard")


def test_the_four_csvs_have_a_row_for_everything(tmp_path: Path) -> None:
    report = made(two(tmp_path), published=published_models())
    tables = [read_csv(path) for path in write_csvs(tmp_path, report)]
    counts = [len(report.rates), len(report.comparisons), len(report.associations), 2 + 32]
    assert [len(rows) for rows in tables] == counts
    results, comparison, _, board = tables
    overall_row = next(row for row in results if row["subset"] == "overall")
    assert (overall_row["rate_percent"], overall_row["n"]) == ("10", "40")
    assert comparison[0]["difference_points"] == "-65"
    assert [row["rank"] for row in board[:3]] == ["1", "2", ""]
    assert board[2]["judge"] == "published" and board[2]["over_refusal_low_percent"] == ""


# -- parts of the page -----------------------------------------------------------------------------


def test_a_section_stands_if_there_is_something_behind_the_rates(tmp_path: Path) -> None:
    assert [one.name for one in sections(made(two(tmp_path)))] == ["pairs"]
    columns = {"tier": ["1", "2"] * 20, "seed_id": [str(n // 2) for n in range(N)]}
    columns["graded_category"] = ["direct_refusal"] * 4 + ["partial"] * 36
    first = judged(tmp_path, "a", 4, columns=dict(columns))
    second = judged(tmp_path, "b", 4, columns=dict(columns))
    later = columns | {"prompt": [f"Later {n}" for n in range(N)]}
    third = judged(tmp_path, "a", 4, columns=later, file="later.csv")
    report = made(load_results([first, second, third])[0])
    found = sections(report)
    names = ["hedging", "pairs", "pairs_comparison", "tiers", "tiers_trend", "drift"]
    assert [one.name for one in found] == names
    assert not any(one.is_folded for one in found) and all(one.about for one in found)
    of_tiers = found[3].tiers
    assert of_tiers and [value for _, value in of_tiers.steps] == ["1", "2"]
    assert [len(row.rates[0]) for row in of_tiers.rows] == [2, 1]
    assert not of_tiers.has_both_sides and not of_tiers.has_judges


@pytest.mark.parametrize(
    ("percent", "of_safe", "of_toxic"),
    [(0, 0, 10), (0.9, 0, 10), (1, 1, 10), (10, 3, 10), (10.1, 3, 9), (90, 10, 3), (100, 10, 0)],
)
def test_worse_rates_are_darker(
    percent: float, of_safe: int, of_toxic: int, tmp_path: Path
) -> None:
    results = two(tmp_path)
    (safe,) = heat_maps(made(results))
    rate = safe.rows[0].rates[-1]
    assert rate
    same = replace(rate, mean=rate.mean._replace(rate=percent / 100))
    assert safe.shade(same) == of_safe
    toxic = safe._replace(table=replace(safe.table, side=TOXIC))
    assert toxic.shade(same) == of_toxic


def test_a_heat_map_has_a_row_per_model_and_the_overall_rate_last(tmp_path: Path) -> None:
    (found,) = heat_maps(made(two(tmp_path)))
    assert found.categories == ["a", "b", "overall"]
    assert [row.result.model for row in found.rows] == ["maker/a", "maker/b"]
    assert [rate.mean.rate for rate in found.rows[1].rates if rate] == [0.75] * 3
    assert found.small == [True, True, False] * 2


def test_a_category_without_a_verdict_has_no_cell() -> None:
    refused = [1.0] * 20 + [NAN] * 20
    result = result_of(responses(refused, category=["a"] * 20 + ["b"] * 20))
    (found,) = heat_maps(made([result]))
    assert [bool(rate) for rate in found.rows[0].rates] == [True, False, True]


def test_a_matrix_shows_each_comparison_from_both_sides(tmp_path: Path) -> None:
    results = two(tmp_path)
    found = differences(made(results), results)
    (matrix,) = found.matrices
    assert found.are_all_drawn and not found.have_robustness
    assert (matrix.judge, matrix.has_several_sets, matrix.remarks) == ("", True, [])
    (none, a_to_b), (b_to_a, _) = matrix.rows
    assert none is None and a_to_b and b_to_a
    assert [a_to_b.points, b_to_a.points] == pytest.approx([-65, 65])
    assert a_to_b.ends == pytest.approx([-end for end in b_to_a.ends[::-1]])
    assert (a_to_b.words, b_to_a.words) == ("refuses fewer", "refuses more")
    assert (a_to_b.is_better, b_to_a.is_better) == (True, False)


def many(count: int, judges: int = 1) -> list[Result]:
    found: list[Result] = []
    for judge in range(judges):
        for number in range(count):
            values = [1.0] * (4 + number) + [0.0] * (36 - number)
            name = f"j{judge}"
            about = {"judge": name, "judge_any_version": name, "model": f"m{number}"}
            found.append(result_of(responses(values), len(found), **about))
    return found


@pytest.mark.parametrize(("count", "drawn"), [(6, True), (7, False)])
def test_a_matrix_of_too_many_models_is_not_drawn(count: int, drawn: bool) -> None:
    results = many(count)
    found = differences(made(results), results)
    assert (len(found.matrices), found.are_all_drawn) == (int(drawn), drawn)


def test_each_judge_has_a_matrix() -> None:
    results = many(2, judges=2)
    found = differences(made(results), results)
    assert [one.judge for one in found.matrices] == ["j0", "j1"]
    assert not found.matrices[0].has_several_sets
    equal = found.matrices[0].rows[0][1]
    assert equal and equal.words == "no difference shown"


def test_a_doubt_about_a_comparison_is_a_remark() -> None:
    results = [replace(one, doubt="scripted: measures nothing") for one in many(2)]
    (matrix,) = differences(made(results), results).matrices
    cell = matrix.rows[0][1]
    assert cell and (cell.words, cell.is_finding) == ("doubtful", False)
    assert matrix.remarks == [cell.remarks] == ["scripted: measures nothing"]
