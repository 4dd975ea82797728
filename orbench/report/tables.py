"""The tables of a report: as CSV for programs; as grids for Markdown, LaTeX and the page."""

from collections.abc import Iterator, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd  # type: ignore[import-untyped]

from orbench.base.tables import write_text
from orbench.base.words import MACRO, OVERALL, SIDES
from orbench.report.rates import FEW_PROMPTS, by_category, label, overall

DASH = "–"  # not measured
# Columns of the grids: those of the CSVs, `rate` for rate_percent with its interval, and so on.
LEADERBOARD = ["rank", "model", "over_refusal", "toxic", "youden", "judge", "prompts", "notes"]
ONE_SIDE = [
    *("model", "rate", "n", "design_effect", "unscored", "low_bound", "high_bound", "direct"),
    *("indirect", "api", "cut_off", "flip", "rules", "judge", "prompts", "notes"),
]
COMPARISON = [
    *("side", "model_a", "model_b", "judge", "n", "rate_a", "rate_b", "difference", "detectable"),
    *("p", "p_holm", "unscored_a", "unscored_b", "p_worst", "finding"),
]
TITLES = {
    **{"over_refusal": "Over-refusal", "toxic": "Toxic rejection", "youden": "Joint score"},
    **{"model_a": "A", "model_b": "B", "rate_a": "Rate A", "rate_b": "Rate B"},
    **{"unscored_a": "Unscored A", "unscored_b": "Unscored B", "difference": "A - B"},
    **{"n": "n", "api": "By the API"},
    **{"p": "p", "p_holm": "p (Holm)", "p_worst": "p (worst case)"},
}
P_VALUES = {"p": 4, "p_holm": 4, "p_worst": 4}
DIGITS = {**P_VALUES, "design_effect": 2}
HOW_TO_READ = f"Percent refused, with 95 % intervals. † fewer than {FEW_PROMPTS} prompts."
# Column -> the column with the number of the result whose rows stand behind its cells.
BEHIND = {"over_refusal": "safe", "toxic": "toxic", "rate": "result"}


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
    published: int = 0  # the number of rows at the end that are of published models


def grids(results: pd.DataFrame, board: pd.DataFrame, pairs: pd.DataFrame) -> list[Grid]:
    """Every table that there is something to put in, the leaderboard first.

    results: the measured rates; board, pairs: of `leaderboard` and `compare`.
    """
    published = int(board["published"].sum())
    found = [_grid("Leaderboard", LEADERBOARD, board)._replace(published=published)]
    for side in SIDES.values():
        rows = overall(results[results["side"] == side.name])
        found.append(_grid(side.rate.capitalize(), ONE_SIDE, rows))
    found += [_category_grid(title, rows) for title, rows in category_tables(results)]
    found.append(_grid("Comparison on the same prompts", COMPARISON, pairs))
    return [grid for grid in found if grid.rows]


def _grid(title: str, columns: Sequence[str], table: pd.DataFrame) -> Grid:
    """Columns in which nothing stands are left out."""
    rows = table.to_dict("records")
    cells = {name: [_cell(row, name) for row in rows] for name in columns}
    cells = {name: of for name, of in cells.items() if any(c.text not in ("", DASH) for c in of)}
    titles = [TITLES.get(name, name.replace("_", " ").capitalize()) for name in cells]
    return Grid(title, titles, list(zip(*cells.values(), strict=True)))


def _cell(row: dict[str, Any], name: str) -> Cell:
    """The cell of a column: a text, a number, or a figure with its interval if there is one."""
    if name.startswith("model"):
        return Cell(label(row, name.removeprefix("model")))
    if name == "side":
        return Cell(SIDES[row["side"]].rate)
    unit = next((unit for unit in ("percent", "points") if f"{name}_{unit}" in row), "")
    value = row[f"{name}_{unit}" if unit else name]
    if isinstance(value, str):
        return Cell(value)
    digits = DIGITS.get(name, 1 if unit else 0)
    text = DASH if isnan(value) else f"{value:.{digits}f}"
    text = f"< {10**-digits}" if name in P_VALUES and value < 10**-digits else text
    prefix = "" if name in ("rate", "difference") else f"{name}_"
    low, high = (row.get(f"{prefix}{end}_{unit}", nan) for end in ("low", "high"))
    text += "" if isnan(low) else f" [{low:.1f}, {high:.1f}]"
    result, category = row.get(BEHIND.get(name, ""), nan), row.get("category", OVERALL)
    none = isnan(result) or result < 0 or category == MACRO  # of published models there are none
    behind = None if none else (int(result), "" if category == OVERALL else category)
    return Cell(text, value, behind)


def category_tables(results: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(title, rows of results) of each side, prompt set and judge; results without categories are
    left out. The title names the prompts and the judge if there are several.
    """
    own = results[results["result"].isin(results[results["category"] == MACRO]["result"])]
    for name, of_side in own.groupby("side", sort=False):
        parts = [rows for _, rows in of_side.groupby(["prompt_set", "judge"], sort=False)]
        for rows in parts:
            which = f": {rows['prompts'].iat[0]}, {rows['judge'].iat[0]}" if len(parts) > 1 else ""
            yield f"{SIDES[str(name)].rate.capitalize()} by category{which}", rows


def _category_grid(title: str, results: pd.DataFrame) -> Grid:
    """A row per category, a column per result."""
    rows = {(row["category"], row["result"]): row for row in results.to_dict("records")}
    models = {row["result"]: label(row) for row in overall(results).to_dict("records")}
    categories = sorted(set(by_category(results)["category"]))
    body = []
    for name in [*categories, MACRO, OVERALL]:
        row = [Cell(name)]
        for number in models:
            of = rows.get((name, number), {"rate_percent": nan, "n": nan})
            cell, few = _cell(of, "rate"), name in categories and of["n"] < FEW_PROMPTS
            row.append(cell._replace(text=cell.text + " †") if few else cell)
        body.append(row)
    return Grid(title, ["Category", *models.values()], body)


def warnings(results: pd.DataFrame) -> list[str]:
    """What a reader must know before reading any number, a line each."""
    lines = [
        f"{label(row)}, {SIDES[row['side']].rate}: {note}"
        for row in overall(results).to_dict("records")
        for note in row["notes"].split("; ")
        if note
    ]
    for side in SIDES.values():
        rows = results[results["side"] == side.name]
        if rows["prompt_set"].nunique() > 1:
            lines.append(f"the {side.prompts} differ between results: there is no single ranking")
        if len(judges := sorted(set(rows["judge"]))) > 1:
            lines.append(f"the {side.rate}s have different judges: {', '.join(judges)}")
    return lines


def write_table(path: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """A table for programs, with empty cells for NaN. Raises OSError and UserError."""
    text = table.reindex(columns=columns).to_csv(index=False, float_format="%.7g")
    write_text(path, text)


def write_documents(stem: Path, tables: Sequence[Grid], lines: Sequence[str]) -> None:
    """The grids for people, as Markdown and as LaTeX. lines: what they must know. Raises OSError
    and UserError.
    """
    parts = ["# Results", *(f"**Note:** {_escaped(line)}" for line in lines), HOW_TO_READ]
    texts = list[str]()
    for grid in tables:
        cells = [[cell.text for cell in row] for row in grid.rows]
        table = pd.DataFrame(cells, columns=grid.columns)
        texts.append(table.to_latex(index=False, escape=True, caption=grid.title))
        table = table.map(_escaped).rename(columns=_escaped)
        text = table.to_markdown(index=False, disable_numparse=True)
        parts += [f"## {_escaped(grid.title)}", text]
    write_text(stem.with_suffix(".md"), "\n\n".join(parts) + "\n")
    write_text(stem.with_suffix(".tex"), "\n".join(texts))


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: names come from users and models."""
    return text.translate({ord(mark): f"\\{mark}" for mark in "\\`*_[]|<>#~&$"})
