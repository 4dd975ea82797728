"""The tables of a report: as CSV for programs; as grids for Markdown, LaTeX and the page.

Their columns, titles and texts are in tables.toml.
"""

import re
from collections.abc import Iterator, Sequence
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.tables import write_text
from orbench.base.toml_files import toml_beside
from orbench.base.words import MACRO, OVERALL, SIDES
from orbench.report.frames import Entry, Frames
from orbench.report.lines import lines_of
from orbench.report.rates import FEW_PROMPTS, WIDER, categories_of, label, overall, short_label

DASH = "–"  # not measured
UNITS = ("percent", "points")  # of figures, in the names of their columns
GRIDS = toml_beside(__file__)
BEHIND = GRIDS["behind_rates"]  # by frame
LEGEND = (
    "Percent refused, with 95 % intervals that include unscored rows, as answers or as refusals. "
    f"† fewer than {FEW_PROMPTS} prompts. ‡ over {WIDER} times as wide because of unscored rows."
)
ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]|<>#~&$"})  # of Markdown
SAME_PROMPTS = "Comparisons on the same prompts"
BY_API = "Refusals by the API"


class Cell(NamedTuple):
    """One cell of a grid."""

    text: str
    value: float | None = None  # what the page sorts by; None: the text
    behind: tuple[int, str] | None = None  # result and category ("": all) of the rows behind it


class Grid(NamedTuple):
    """A table to be looked at."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    side: str = ""  # of rates by category


def grids(results: DataFrame, board: DataFrame, pairs: DataFrame) -> list[Grid]:
    """Return all tables with content. board, pairs: of `leaderboard` and `compare`."""
    columns = GRIDS["columns"]
    every = [grid("Leaderboard", columns["leaderboard"], board)]
    for side in SIDES.values():
        rows = overall(results[results["side"] == side.name])
        every.append(grid(side.rate.capitalize(), columns["one_side"], rows))
    rows = overall(results)
    every.append(grid(BY_API, columns["by_api"], rows[rows["api_percent"] > 0]))
    for title, part, rows in category_tables(results):
        if part:
            title += f": {part}"
        every.append(_category_grid(title, rows))
    every.append(grid(SAME_PROMPTS, columns["comparison"], pairs))
    return [grid for grid in every if grid.rows]


def behind(frames: Frames) -> dict[str, Grid]:
    """Return what stands behind the rates, by frame."""
    grids = dict[str, Grid]()
    for name, texts in BEHIND.items():
        if name in frames:
            grids[name] = grid(texts["title"], texts["columns"], frames[name])
    return grids


def grid(title: str, columns: Sequence[str], table: DataFrame) -> Grid:
    """Return a grid without the columns that are empty."""
    rows = table.to_dict("records")
    titles = []
    kept = []
    for name in columns:
        cells = [_cell(row, name) for row in rows]
        if not {cell.text for cell in cells} <= {"", DASH}:
            words = name.replace("_", " ").capitalize()
            titles.append(GRIDS["titles"].get(name, words))
            kept.append(cells)
    return Grid(title, titles, list(zip(*kept, strict=True)))


def _cell(row: Entry, name: str) -> Cell:
    """Return a text, a number, or a figure with its interval if there is one."""
    if name == "model":
        return Cell(label(row))
    if name.startswith("model"):
        return Cell(short_label(row, name.removeprefix("model")))
    if name == "side" and row.get("side") in SIDES:
        return Cell(SIDES[row["side"]].rate)
    key = name
    for unit in UNITS:
        if f"{name}_{unit}" in row:
            key = f"{name}_{unit}"
            break
    value = row.get(key, "")
    if name == "rank" and value:  # sorted by the better one
        return Cell(value, float(value.split("-")[0]))
    if isinstance(value, str):
        return Cell(value)
    if isnan(value):
        return Cell(DASH, value)
    if key != name:
        text = f"{value:.1f}{_interval(row, name, unit)}"
    elif value == int(value):
        text = f"{value:.0f}"
    else:
        text = f"{value:.2g}"
    if name != "rate" or row["category"] == MACRO:
        return Cell(text, value)
    category = "" if row["category"] == OVERALL else row["category"]
    return Cell(text, value, (row["result"], category))


def _interval(row: Entry, name: str, unit: str) -> str:
    """Return what stands behind a figure: its interval, if it has one, and a mark."""
    if name == "rate":
        return f" {row['interval']}{_mark(row['n'])}"
    if row.get(f"{name}_interval"):
        return f" {row[f'{name}_interval']}"
    prefix = ""
    if name not in ("difference", "change"):
        prefix = f"{name}_"
    low = row.get(f"{prefix}low_{unit}", nan)
    if isnan(low):
        return ""
    mark = _mark(row.get(f"{name}_n", FEW_PROMPTS))
    return f" [{low:.1f}, {row[f'{prefix}high_{unit}']:.1f}]{mark}"


def _mark(n: float) -> str:
    """Return the mark of a figure from few prompts."""
    return " †" if n < FEW_PROMPTS else ""


def category_tables(results: DataFrame) -> Iterator[tuple[str, str, DataFrame]]:
    """Yield the title, the part (the prompts and the judge, if there are several) and the rates of
    each side, prompt set and judge. Results without categories are left out.
    """
    with_macro = results[results["category"] == MACRO]["result"]
    kept = results[results["result"].isin(with_macro)]
    for side, rates in kept.groupby("side", sort=False):
        title = f"{SIDES[str(side)].rate.capitalize()} by category"
        parts = rates.groupby(["prompt_set", "judge"], sort=False)
        for _, rows in parts:
            part = ""
            if len(parts) > 1:
                part = f"{rows['prompts'].iat[0]}, {rows['judge'].iat[0]}"
            yield title, part, rows


def _category_grid(title: str, results: DataFrame) -> Grid:
    """Return a row per category, a column per result."""
    cells = {}
    for row in results.to_dict("records"):
        cells[row["category"], row["result"]] = _cell(row, "rate")
    models = {row["result"]: label(row) for row in overall(results).to_dict("records")}
    body = []
    for name in [*categories_of(results), MACRO, OVERALL]:
        rates = [cells.get((name, number), Cell(DASH, nan)) for number in models]
        body.append([Cell(name), *rates])
    return Grid(title, ["Category", *models.values()], body, results["side"].iat[0])


def warnings(results: DataFrame) -> list[str]:
    """Return what a reader must know before any number: each note, behind the results it is of."""
    return lines_of("notes.txt", results=overall(results).to_dict("records"))


def write_table(path: Path, table: DataFrame) -> None:
    """Write a table for programs; NaN is empty. Raises OSError."""
    table = table.infer_objects()  # objects are not formatted
    write_text(path, table.to_csv(index=False, float_format="%.7g"))


def write_documents(output: Path, grids: Sequence[Grid], lines: Sequence[str]) -> list[Path]:
    """Write the grids as Markdown and as LaTeX, beside `output`, and return the paths.

    lines: what to know before the figures. Raises OSError.
    """
    parts = ["# Results"]
    for line in lines:
        parts.append(f"**Note:** {_escaped(line)}")
    parts.append(LEGEND)
    latex = ""
    for grid in grids:
        texts = [[cell.text for cell in row] for row in grid.rows]
        table = DataFrame(texts, columns=grid.columns)
        caption = re.sub(r"([_%&#$])", r"\\\1", grid.title)  # pandas leaves it as it is
        latex += table.to_latex(index=False, escape=True, caption=caption)
        table = table.map(_escaped).rename(columns=_escaped)
        parts.append(f"## {_escaped(grid.title)}")
        parts.append(table.to_markdown(index=False, disable_numparse=True))
    markdown = output.with_suffix(".md")
    write_text(markdown, "\n\n".join(parts) + "\n")
    tex = output.with_suffix(".tex")
    write_text(tex, latex)
    return [markdown, tex]


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is: names come from users and models."""
    return text.translate(ESCAPES)
