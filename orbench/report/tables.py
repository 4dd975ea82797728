"""The tables of a report: as CSV for programs; as grids for Markdown, LaTeX and the page."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd  # type: ignore[import-untyped]

from orbench.base.tables import write_text
from orbench.base.words import MACRO, OVERALL, SIDES
from orbench.report.rates import FEW_PROMPTS, WIDER, by_category, label, overall, short_label

DASH = "–"  # not measured
# Columns of the grids: those of the CSVs, `rate` for rate_percent with its interval, and so on.
LEADERBOARD = ["rank", "model", "over_refusal", "toxic", "youden", "judge", "prompts"]
ONE_SIDE = [
    *("model", "rate", "n", "rows", "design_effect", "unscored", "direct", "indirect", "api"),
    *("cut_off", "flip", "certain", "judge", "prompts", "date", "notes"),
]
COMPARISON = [
    *("model_a", "model_b", "finding", "difference", "side", "rate_a", "rate_b", "n"),
    *("detectable", "p", "p_holm", "p_worst", "judge"),
]
TITLES = {
    "over_refusal": "Over-refusal",
    "toxic": "Toxic rejection",
    "youden": "Difference",
    "over_refusal_agreed": "Over-refusal, agreed labels",
    "over_refusal_own_label": "Over-refusal, all",
    "toxic_agreed": "Toxic rejection, agreed labels",
    "toxic_own_label": "Toxic rejection, all",
    "auc": "AUC",
    "model_a": "A",
    "model_b": "B",
    "rate_a": "Rate A",
    "rate_b": "Rate B",
    "difference": "A - B",
    "n": "n",
    "api": "By the API",
    "p": "p",
    "p_holm": "p (Holm)",
    "p_worst": "p (worst case)",
}
LEGEND = (
    "Percent refused, with 95 % intervals that include unscored rows, as answers or as refusals. "
    f"† fewer than {FEW_PROMPTS} prompts. ‡ over {WIDER} times as wide because of unscored rows."
)
SAME_PROMPTS = "Comparisons on the same prompts"
ABOUT_PAIRS = (
    "A paired test on the prompts that both models share decides; overlapping intervals do not. "
    "p (Holm) is corrected for the number of pairs. p (worst case) counts all unscored rows "
    "against the difference. A finding needs both p values below 0.05. Detectable: the smallest "
    "true difference that the test detects with a probability of 80 %."
)
ABOUT_DETAILS = (
    "n: prompts with a verdict. Design effect: rows per independent observation; rewrites of one "
    "seed and several responses to one prompt are not independent. Direct, indirect, by the API, "
    "cut off at the token limit: percent of the responses. Flip: percent of the prompts whose "
    "responses received different verdicts. Certain: percent of the rules' verdicts that are "
    "certain. Macro average: the mean of the categories.",
    "Published models: as plotted by the OR-Bench authors (ICML 2025), 25 of the 32 on earlier "
    "prompt sets; never ranked.",
)
# Frame -> title, how to read it, and columns: what stands behind the rates.
BEHIND_RATES = {
    "toxicity": (
        "Refusals by prompt toxicity",
        "A prompt's toxicity score is the share of judges or people who call it toxic. "
        "Agreed: the rate over prompts whose label all judges, or most people, agree with. "
        "Threshold: the score, in percent, at which the model refuses half the prompts. AUC: how "
        "well the score separates refused prompts from answered ones, in percent.",
        ["model"]
        + [f"{side}_{name}" for side in SIDES for name in ("agreed", "own_label")]
        + ["threshold", "threshold_note", "auc"],
    ),
    "pairs": (
        "Seeds and their rewrites",
        "Right: the model refuses the toxic seed and answers its safe rewrite.",
        ["model", "category", "right", "both_refused", "both_answered", "reverse", "unpaired"],
    ),
    "pairs_comparison": (
        "Which model tells seeds from rewrites better?",
        "A paired test on the pairs that both models share. p (Holm): corrected for all tests.",
        ["model_a", "model_b", "category", "difference", "right_a", "right_b", "n", "p_holm"],
    ),
    "drift": (
        "Change between prompt sets",
        "The prompts differ, so a change can come from the prompt sets or from the model.",
        ["model", "side", "from", "to", "change", "p", "judge"],
    ),
    "triggers": (
        "Words associated with refusals",
        "Words and word pairs that are over-represented in the safe prompts that a model refuses "
        "or answers. With a second model: in the prompts that only one of the two refuses.",
        ["model", "against", "side", "term", "refused", "answered", "log_odds", "q"]
        + [f"example_{n}" for n in (1, 2, 3)],
    ),
}


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
    """All tables with content. board, pairs: of `leaderboard` and `compare`."""
    published = int(board["published"].sum())
    found = [_grid("Leaderboard", LEADERBOARD, board)._replace(published=published)]
    for side in SIDES.values():
        rows = overall(results[results["side"] == side.name])
        found.append(_grid(side.rate.capitalize(), ONE_SIDE, rows))
    for title, part, rows in category_tables(results):
        found.append(_category_grid(f"{title}: {part}" if part else title, rows))
    found.append(_grid(SAME_PROMPTS, COMPARISON, pairs))
    return [grid for grid in found if grid.rows]


def behind_rates(frames: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, str, str, Grid]]:
    """Frame, title, how to read it, and its grid, for each of BEHIND_RATES that there is."""
    for name, (title, about, columns) in BEHIND_RATES.items():
        if name in frames:
            yield name, title, about, _grid(title, columns, frames[name])


def _grid(title: str, columns: Sequence[str], table: pd.DataFrame) -> Grid:
    """Empty columns are left out."""
    rows = table.to_dict("records")
    cells = {name: [_cell(row, name) for row in rows] for name in columns}
    cells = {name: of for name, of in cells.items() if any(c.text not in ("", DASH) for c in of)}
    titles = [TITLES.get(name, name.replace("_", " ").capitalize()) for name in cells]
    return Grid(title, titles, list(zip(*cells.values(), strict=True)))


def _cell(row: dict[str, Any], name: str) -> Cell:
    """A text, a number, or a figure with its interval if there is one."""
    if name.startswith("model"):
        end = name.removeprefix("model")
        return Cell(label(row) if not end else short_label(row, end))
    if name == "side":
        return Cell(SIDES[row["side"]].rate if row["side"] in SIDES else row["side"])
    key = next(key for key in (f"{name}_percent", f"{name}_points", name) if key in row)
    value = row[key]
    unit = key.removeprefix(name)
    if isinstance(value, str):  # ranks are sorted by the better one
        return Cell(value, float(value.split("-")[0])) if name == "rank" and value else Cell(value)
    if isnan(value):
        return Cell(DASH, value)
    text = f"{value:.1f}"
    if not unit:
        text = f"{value:.0f}" if value == int(value) else f"{value:.2g}"
    text += _interval(row, name)
    if name != "rate" or row["category"] == MACRO:
        return Cell(text, value)
    category = "" if row["category"] == OVERALL else row["category"]
    return Cell(text, value, (row["result"], category))


def _interval(row: dict[str, Any], name: str) -> str:
    """What stands behind a figure: its interval, if it has one, and a mark."""
    mark = " †" if name == "rate" and row["n"] < FEW_PROMPTS else ""
    if text := row.get("interval" if name == "rate" else f"{name}_interval"):
        return f" {text}{mark}"
    prefix = "" if name in ("difference", "change") else f"{name}_"
    unit = "percent" if f"{name}_percent" in row else "points"
    low, high = (row.get(f"{prefix}{end}_{unit}", nan) for end in ("low", "high"))
    return "" if isnan(low) else f" [{low:.1f}, {high:.1f}]"


def category_tables(results: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Title, part (the prompts and the judge, if there are several) and rates of each side, prompt
    set and judge. Results without categories are left out.
    """
    own = results[results["result"].isin(results[results["category"] == MACRO]["result"])]
    for side, rates in own.groupby("side", sort=False):
        parts = [rows for _, rows in rates.groupby(["prompt_set", "judge"], sort=False)]
        for rows in parts:
            part = f"{rows['prompts'].iat[0]}, {rows['judge'].iat[0]}" if len(parts) > 1 else ""
            yield f"{SIDES[str(side)].rate.capitalize()} by category", part, rows


def _category_grid(title: str, results: pd.DataFrame) -> Grid:
    """A row per category, a column per result."""
    rows = {(row["category"], row["result"]): row for row in results.to_dict("records")}
    models = {row["result"]: label(row) for row in overall(results).to_dict("records")}
    categories = sorted(set(by_category(results)["category"]))
    none = {"rate_percent": nan}
    body = [
        [Cell(name), *(_cell(rows.get((name, number), none), "rate") for number in models)]
        for name in [*categories, MACRO, OVERALL]
    ]
    return Grid(title, ["Category", *models.values()], body)


def warnings(results: pd.DataFrame) -> list[str]:
    """What a reader must know before any number: each note, behind the results it is of."""
    of = defaultdict[str, dict[str, str]](dict)
    for row in overall(results).to_dict("records"):
        for note in filter(None, row["notes"].split("; ")):
            rate = SIDES[row["side"]].rate
            before = of[note].get(label(row), rate)
            of[note][label(row)] = before if rate in before else f"{before} and {rate}"
    named = {note: [", ".join(one) for one in names.items()] for note, names in of.items()}
    lines = [f"{'; '.join(names)}: {note}" for note, names in named.items()]
    if results.groupby("side")[["prompt_set", "judge"]].nunique().gt(1).any(axis=None):
        lines.append("results differ in prompts or judge: there is no single ranking")
    return lines


def write_table(path: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """A table for programs; NaN is empty. Raises OSError and UserError."""
    table = table.reindex(columns=columns).infer_objects()  # objects are not formatted
    write_text(path, table.to_csv(index=False, float_format="%.7g"))


def write_documents(stem: Path, tables: Sequence[Grid], lines: Sequence[str]) -> None:
    """The grids as Markdown and as LaTeX. lines: `warnings`. Raises OSError and UserError."""
    parts = ["# Results", *(f"**Note:** {_escaped(line)}" for line in lines)]
    parts.append(LEGEND)
    latex = ""
    for grid in tables:
        cells = [[cell.text for cell in row] for row in grid.rows]
        table = pd.DataFrame(cells, columns=grid.columns)
        latex += table.to_latex(index=False, escape=True, caption=grid.title)
        table = table.map(_escaped).rename(columns=_escaped)
        text = table.to_markdown(index=False, disable_numparse=True)
        parts += [f"## {_escaped(grid.title)}", text]
    write_text(stem.with_suffix(".md"), "\n\n".join(parts) + "\n")
    write_text(stem.with_suffix(".tex"), latex)


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: names come from users and models."""
    return text.translate({ord(mark): f"\\{mark}" for mark in "\\`*_[]|<>#~&$"})
