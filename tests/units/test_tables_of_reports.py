"""The tables of a report: cells and marks, which columns are shown, Markdown, LaTeX and CSVs."""

import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

from orbench.report.behind import sections
from orbench.report.build import build, find_sources
from orbench.report.columns import RATES, Column, Shown, cell_of, percent_cell
from orbench.report.measures import Details, RefusedBy
from orbench.report.page import JINJA
from orbench.report.published import published_models
from orbench.report.results import SAFE, TOXIC, Corrected
from orbench.report.standings import Report
from orbench.report.tables import csv_row, grid, grids, text_of, write_csvs
from orbench.stats.intervals import Interval
from tests.conftest import read_csv
from tests.results import make_rate
from tests.units.reported import TIERS, model, options

NAN = float("nan")
GRADED = {"graded_category": ["direct_refusal"] * 4 + ["partial"] * 36}


def made(*paths: Path | str) -> Report:
    """A report with what stands behind the rates."""
    given = options(Path(), *paths, pairs=True, with_published=not paths)
    return build(find_sources(given), given)


def two(folder: Path, a: int = 4, b: int = 30) -> list[Path]:
    return [model(folder, "a", a), model(folder, "b", b)]


# -- cells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text", "in_csv"),
    [
        (None, "–", ""),
        (NAN, "–", ""),
        (3.0, "3", "3"),
        (1 / 3, "0.33", "0.3333333"),
        (0.00012345, "< 0.001", "0.00012345"),
        (1319, "1,319", "1319"),
        ("name", "name", "name"),
        (percent_cell(NAN), "–", ""),
        (percent_cell(1 / 3), "33.3", "33.33333"),
        (percent_cell(0.5, Interval(0.25, 1)), "50.0 [25.0, 100.0]", "50"),
        (percent_cell(0.5, marks=" ‡ †"), "50.0 ‡ †", "50"),
    ],
)
def test_values_are_short_for_people_and_exact_for_programs(
    value: object, text: str, in_csv: str
) -> None:
    cell = cell_of(value)
    assert (cell.text, text_of(cell)) == (text, in_csv)


def test_a_cell_is_sorted_by_its_value() -> None:
    assert percent_cell(0.5).value == 50
    assert cell_of("name").value == "name" and cell_of(7).value == 7


@pytest.mark.parametrize(
    "case",
    [
        "EVERYWHERE: a,a -> documents page",
        "EVERYWHERE: , -> ",
        "EVERYWHERE: ,a -> documents page",
        "IN_DOCUMENTS: a,b -> documents",
        "IF_VARIED: a,A -> documents",
        "IF_VARIED: a,b -> documents page",
        "ONLY_VARIED: a,a -> ",
        "ONLY_VARIED: a,b -> documents page",
    ],
)
def test_columns_are_left_out_that_tell_nothing(case: str) -> None:
    shown, values, expected = re.split(": | -> ", case)
    columns = [Column("c", "text", "Title", Shown[shown]), Column("", "other", "Other")]
    items = [SimpleNamespace(text=value, other="x") for value in values.split(",")]
    found = grid("G", columns, items)
    on_page = [one for one in found.columns if one.is_on_page]
    views = {"documents": found.columns, "page": on_page}
    shown_in = [name for name, view in views.items() if view[0].title == "Title"]
    assert shown_in == expected.split()


def test_long_grids_are_folded() -> None:
    page = JINJA.from_string(
        """{% from "sections/macros.html" import grid with context %}{{ grid(one) }}"""
    )
    items = [SimpleNamespace(n=n) for n in range(13)]
    for rows, is_folded in ((12, False), (13, True)):
        shown = page.render(shown={}, one=grid("G", [Column("", "n", "n")], items[:rows]))
        assert ("<details>" in shown) is is_folded


# -- the grids of a report -------------------------------------------------------------------------


def titles(report: Report) -> str:
    return ", ".join(one.title for one in chain(*grids(report).values()) if one.rows)


def test_each_grid_stands_if_it_has_rows(tmp_path: Path) -> None:
    of_one = "Leaderboard, Over-refusal rate, Over-refusal rate by category"
    a, b = two(tmp_path)
    assert titles(made(a)) == of_one
    assert titles(made(a, b)) == f"{of_one}, Comparisons on the same prompts"
    c = model(tmp_path, "c", 4, columns=GRADED)
    assert "Shares of graded responses" in titles(made(c))
    alone = made()
    assert titles(alone) == "Leaderboard" and grids(alone)["leaderboard"][0].rows == 32


def test_categories_stand_in_rows_and_results_in_columns(tmp_path: Path) -> None:
    (by_category,) = grids(made(*two(tmp_path)))["categories"]
    assert [one.title for one in by_category.columns] == ["Category", "a", "b"]
    names, rates, _ = by_category.columns
    assert names.texts == ["a", "b", "overall", "macro average"]
    cells = rates.cells
    assert cells[2].text.startswith("10.0 [") and cells[0].text.endswith("†")
    assert cells[0].rate and cells[0].rate.subset.value == "a"
    assert cells[3].rate is None


# -- files -----------------------------------------------------------------------------------------


def test_the_four_csvs_have_a_row_for_everything(tmp_path: Path) -> None:
    report = made(*two(tmp_path))._replace(published=published_models())
    write_csvs(tmp_path, report)
    tables = list(map(read_csv, sorted(tmp_path.glob("??*.csv"))))  # not a.csv and b.csv
    counts = [len(report.associations), len(report.comparisons), 2 + 32, len(report.rates)]
    assert [len(rows) for rows in tables] == counts
    _, comparison, board, results = tables
    overall = {"subset": "overall", "rate_percent": "10", "n": "40"}
    assert overall.items() < results[0].items()
    assert comparison[0]["difference_points"] == "-65"
    shown = ["{rank} {judge} {over_refusal_low_percent}".format(**row) for row in board[1:3]]
    assert shown == ["2 gpt4 59.80604", " published "]


def test_each_figure_of_a_rate_stands_in_its_own_column() -> None:
    corrected = Corrected(0.08, Interval(0.07, 0.09))
    by = RefusedBy(0.21, 0.22, 0.23, 0.24, 0.25)
    known = Details(60, 0, 0, 0, 0, 0.01, 0.02, 0.04, by, "bio 9", 0.05, 0.06, 0.1, corrected)
    rate = replace(make_rate("m", 12, n=50), details=known, with_unscored=Interval(0.11, 0.13))
    cells = csv_row(RATES, rate)
    shares = "direct 1, indirect 2, cut_off 4, after_text 5, flip 6, certain 10, rate 12"
    shares += ", corrected 8, corrected_low 7, corrected_high 9, low_all 11, high_all 13"
    shares += ", by_model 21, by_model_api 22, by_filter 23, by_gateway 24, by_unknown 25"
    for name, percent in (share.split() for share in shares.split(", ")):
        assert cells[f"{name}_percent"] == percent, name
    assert (cells["n"], cells["unscored"], cells["api_categories"]) == ("50", "10", "bio 9")


# -- parts of the page -----------------------------------------------------------------------------


def parts(report: Report) -> list[str]:
    return [*sections(report, ["shares"])]


def test_a_section_stands_if_there_is_something_behind_the_rates(tmp_path: Path) -> None:
    always = {"shares", "differences", "categories", "details"}
    assert {*parts(made(*two(tmp_path)))} == {"pairs"} | always
    columns = TIERS | GRADED
    paths = [model(tmp_path, name, 4, columns=columns) for name in "ab"]
    paths.append(model(tmp_path, "a", 4, columns=columns, texts="Later", file="later.csv"))
    report = made(*paths)
    names = ["hedging", "pairs", "pairs_comparison", "tiers", "tiers_trend", "drift"]
    assert [name for name in parts(report) if name not in always] == names
    (table,) = sections(report, ())["tiers"].tables
    of_tiers = {column.title: column.texts for column in table.columns}
    assert of_tiers["Subset"] == ["1", "2"] * 3


def test_only_sides_with_rates_have_an_axis_and_published_ones_none(tmp_path: Path) -> None:
    report = made(model(tmp_path, "a", 4))
    assert report.sides == [SAFE]
    assert report._replace(published=published_models()).sides == [SAFE, TOXIC]
