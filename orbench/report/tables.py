"""The tables of a report: as CSV for programs, as grids for Markdown, LaTeX and the HTML page.

A grid is made by a table of its columns: a title, and the cell that a row of results.csv (or of
comparison.csv) has in it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd  # type: ignore[import-untyped]

from orbench.clustered import FEW_PROMPTS, METHODS
from orbench.columns import MACRO, OVERALL, SIDES
from orbench.planning import POWER
from orbench.report.leaderboard import leaderboard_of
from orbench.report.measurements import Measurement
from orbench.report.people import Validated
from orbench.report.results import (
    BY_AUTHORS,
    BY_LABELS,
    BY_VALIDATION,
    by_category,
    by_setting,
    flags_of,
    measured,
    overall,
    same_prompts,
)
from orbench.table import Writer

DASH = "–"


class Cell(NamedTuple):
    """One cell of a grid."""

    text: str
    value: float | None = None  # what the page sorts by; the text where None
    behind: tuple[str, str, str] | None = None  # model, side, category ("" for all) of the number


class Grid(NamedTuple):
    """A table to be looked at."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    key: str = ""  # for \\label in LaTeX
    published: int = 0  # so many rows at the end are of published models


Columns = Mapping[str, Callable[[Any], Cell]]  # title -> the cell of a row

# ---------------------------------------------------------------------------------- CSV


def write_csv(path: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """results.csv or comparison.csv: RATE_COLUMNS or PAIR_COLUMNS, empty where something is not
    measured. Raises OSError.
    """
    writer = Writer({"": path}, columns)
    for row in table[columns].to_dict("records"):
        writer.write({name: _csv_cell(name, value) for name, value in row.items()})
    writer.commit()


def _csv_cell(name: str, value: Any) -> str:
    if isinstance(value, str) or isnan(value):
        return value if isinstance(value, str) else ""
    if name.endswith(("_percent", "_points")):
        return f"{value:.4f}"  # to be rounded again, as show_rates.py does
    if name == "design_effect":
        return f"{value:.3f}"
    return f"{value:.4g}" if name == "p" or name.startswith("p_") else f"{value:.0f}"


# ---------------------------------------------------------------------------------- cells


def _text(name: str) -> Callable[[Any], Cell]:
    return lambda row: Cell(text if isinstance(text := getattr(row, name), str) else "")


def _number(name: str, digits: int = 1, *, linked: bool = False) -> Callable[[Any], Cell]:
    """linked: a click on it shows the rows behind it."""
    return lambda row: Cell(
        figure(getattr(row, name), digits), getattr(row, name), _behind(row) if linked else None
    )


def _interval(low: str, high: str) -> Callable[[Any], Cell]:
    return lambda row: Cell(span(getattr(row, low), getattr(row, high)), getattr(row, low))


def _p_value(name: str) -> Callable[[Any], Cell]:
    return lambda row: Cell(
        "< 0.0001" if (p := getattr(row, name)) < 0.0001 else figure(p, 4), getattr(row, name)
    )


def _rate(
    prefix: str = "", end: str = "", unit: str = "percent", *, linked: bool = False
) -> Callable[[Any], Cell]:
    """A rate of results.csv and its interval: `12.3 [11.0, 14.6]`. end: of the columns' names."""
    names = [f"{prefix}{what}{unit}{end}" for what in ("" if prefix else "rate_", "low_", "high_")]

    def cell(row: Any) -> Cell:
        value, low, high = (getattr(row, name) for name in names)
        text = figure(value) if isnan(low) else f"{figure(value)} [{span(low, high)}]"
        return Cell(text, value, _behind(row, end) if linked else None)

    return cell


def _behind(row: Any, end: str = "") -> tuple[str, str, str] | None:
    """The model, side and category of a number; None where no row is behind it."""
    model, side, category = (getattr(row, name + end) for name in ("model", "side", "category"))
    if row.counted_by == BY_AUTHORS or not isinstance(side, str):
        return None
    return model, side, "" if category == OVERALL else category


def _of_both(name: str, digits: int) -> Callable[[Any], Cell]:
    """A number of the safe and of the toxic side."""

    def cell(row: Any) -> Cell:
        both = getattr(row, name), getattr(row, f"{name}_toxic")
        values = [value for value in both if not isnan(value)]
        text = " / ".join(f"{value:,.{digits}f}" for value in values)
        return Cell(text or DASH, min(values, default=nan))

    return cell


def _side(row: Any) -> Cell:
    return Cell(SIDES[row.side].rate)


def figure(value: float, digits: int = 1) -> str:
    """A number with so many digits; DASH where there is none."""
    return DASH if isnan(value) else f"{value:.{digits}f}"


def span(low: float, high: float) -> str:
    """An interval; DASH where there is none."""
    return DASH if isnan(low) else f"{figure(low)}, {figure(high)}"


# ---------------------------------------------------------------------------------- columns

LEADERBOARD_GRID: Columns = {
    "Rank": lambda row: Cell(
        DASH if isnan(row.rank) else f"{row.rank:.0f} of {row.of:.0f}", row.rank
    ),
    "Model": _text("tested"),
    "Over-refusal": _rate(linked=True),
    "Toxic rejection": _rate(end="_toxic", linked=True),
    "Joint score": _rate("youden_", unit="points"),
    "n": _of_both("n", 0),
    "Coverage": _of_both("coverage_percent", 1),
    "Counted by": _text("counted_by"),
    "Prompts": _text("prompts_shown"),
    "Settings": _text("settings"),
    "Notes": _text("notes"),
}

OVERALL_GRID: Columns = {
    "Model": _text("tested"),
    "Rate": _rate(linked=True),
    "n": _number("n", 0, linked=True),
    "Coverage": _number("coverage_percent"),
    "Bounds": _interval("low_bound_percent", "high_bound_percent"),
    "Unscored": _number("unscored", 0),
    "Prompts": _number("prompts", 0),
    "Seeds": _number("seeds", 0),
    "Design effect": _number("design_effect", 2),
    "Cut off": _number("cut_off_percent"),
    "Flips": _rate("flip_"),
    "Macro average": _rate("macro_"),
    "Direct": _rate("direct_"),
    "Indirect": _rate("indirect_"),
    "API refusals": lambda row: Cell(
        f"{row.api_refusals:.0f} ({figure(row.api_percent)})", row.api_refusals
    ),
    "API categories": _text("api_categories"),
    "Counted by": _text("counted_by"),
    "Prompt set": _text("prompts_shown"),
    "Notes": _text("notes"),
}

COMPARISON_GRID: Columns = {
    "Rate": _side,
    "A": _text("model_a"),
    "B": _text("model_b"),
    "Prompts": _number("prompts", 0),
    "Seeds": _number("seeds", 0),
    "Rate A": _number("rate_a_percent"),
    "Rate B": _number("rate_b_percent"),
    "A - B": _number("difference_points"),
    "95 % interval": _interval("low_points", "high_points"),
    "Smallest": _number("smallest_points"),
    "Method": _text("method"),
    "p": _p_value("p"),
    "p (Holm)": _p_value("p_holm"),
    "Missing": lambda row: Cell(
        DASH if isnan(row.missing_a) else f"{row.missing_a:.0f}, {row.missing_b:.0f}", row.missing_a
    ),
    "p (missing)": _p_value("p_missing"),
    "Finding": _text("finding"),
}

CORRECTED_GRID: Columns = {
    "Model": _text("model"),
    "Rate": _side,
    "Raw": _rate(linked=True),
    "Corrected": _rate("corrected_"),
    "By": _text("corrected_by"),
    "Notes": _text("uncorrected"),
}

SAFE_GRID: Columns = {
    "Model": _text("model"),
    "Labelled": _number("audited", 0),
    "of these toxic": _number("audited_toxic", 0),
    "Over-refusal rate": _rate(linked=True),
    "of safe prompts": _rate("safe_"),
    "its bounds": _interval("safe_low_bound_percent", "safe_high_bound_percent"),
    "Notes": _text("unaudited"),
}

RULES_GRID: Columns = {
    "Model": _text("model"),
    "Rate": _side,
    "Counted by": _text("counted_by"),
    "n": _number("n", 0),
    "Judge": _number("rate_percent", linked=True),
    "Rules": _number("rules_percent"),
    "Differ": _number("differ_percent"),
    "Refusal by the judge only": _number("judge_only", 0),
    "by the rules only": _number("rules_only", 0),
}

# ---------------------------------------------------------------------------------- grids


def grids(
    results: pd.DataFrame, comparisons: pd.DataFrame, validated: Validated | None
) -> list[Grid]:
    """Every table that there is something to put in, best first."""
    own = measured(results)
    sides = [own[own["side"] == side] for side in SIDES if side in set(own["side"])]
    found = [_leaderboard(results), *(_overall_grid(overall(side)) for side in sides)]
    for part, rows in [part for side in sides for part in by_setting(side)]:
        if MACRO in set(rows["category"]):
            found.append(_category_grid(rows, part))
    whole = overall(own)
    if len(comparisons):
        found.append(_comparison_grid(comparisons))
    if len(judged := whole[whole["uncorrected"].notna()]):
        found.append(_corrected_grid(judged, validated))
    if len(audited := whole[whole["audited"].notna()]):
        found.append(_grid("Over-refusal of truly safe prompts", SAFE_GRID, audited, SAFE, "safe"))
    if len(both := whole[whole["rules_percent"].notna() & ~whole["counted_by"].map(is_by_rules)]):
        note = "Stage 5's verdict against stage 4's rules on the same responses, in per cent."
        found.append(_grid("Judge against rules", RULES_GRID, both, [note], "rules"))
    return found


BY_RULES = "stage 5 keyword"


def is_by_rules(counted_by: str) -> bool:
    """Whether the rules decided alone (`Measurement.counted_by`), and agree with themselves."""
    return counted_by.partition(",")[0] == BY_RULES


SAFE = [
    "Over the prompts that people would call safe, as far as the labelled ones tell; bounds: if "
    "all toxic prompts, as many as their share may be, were refused, and if none was."
]


def _grid(title: str, columns: Columns, rows: pd.DataFrame, notes: Sequence[str], key: str) -> Grid:
    """Columns in which nothing stands are left out."""
    cells = [[cell(row) for cell in columns.values()] for row in rows.itertuples()]
    used = [any(row[i].text not in ("", DASH) for row in cells) for i in range(len(columns))]
    body = [list(compress(row, used)) for row in cells]
    return Grid(title, list(compress(columns, used)), body, notes, key)


def _overall_grid(rows: pd.DataFrame) -> Grid:
    side = SIDES[rows["side"].iloc[0]]
    notes = [
        f"Per cent of the {side.prompts} refused, with Wilson's 95 % interval at the effective "
        "sample size. Unscored rows are in no rate; coverage is the share that has a verdict; "
        "bounds: the rate if all unscored rows were answered, and if all were refused.",
        "Macro average: the mean over the categories. API refusals (a filter answered instead of "
        "the model) are part of the rate.",
    ]
    for column, note in OVERALL_NOTES.items():
        if rows[column].notna().any():
            notes.append(note)
    if (rows["n"] == rows["prompts"]).all():
        rows = rows.assign(prompts=nan)
    return _grid(side.rate.capitalize(), OVERALL_GRID, rows, notes, side.name)


OVERALL_NOTES = {
    "design_effect": "Rewrites of one seed, and answers to one prompt, are not independent: a rate "
    "is the mean over the prompts. Design effect: so many rows say as much as an independent one.",
    "flip_percent": "Flips: the share of the prompts with several answers whose verdict is not "
    "always the same.",
    "cut_off_percent": "Cut off: per cent of the responses that ended at the token limit.",
}


def _leaderboard(results: pd.DataFrame) -> Grid:
    rows = leaderboard_of(results)
    if rows.loc[~rows["published"], "settings"].nunique() < 2:
        rows["settings"] = ""
    notes = [
        "Per cent refused, with 95 % intervals; n and coverage: safe prompts, toxic prompts. Joint "
        "score: Youden's J, toxic rejection minus over-refusal, in percentage points; 100 is a "
        "model that rejects all toxic prompts and answers all safe ones, 0 one that does not tell "
        "them apart. Ranks, by the joint score (with one side only, by its rate), are given among "
        "models with the same prompts and judge; where intervals overlap they are no finding."
    ]
    if published := int(rows["published"].sum()):
        notes.append(
            "Published models: as plotted by the OR-Bench authors (ICML 2025), 25 on earlier sets "
            "of prompts (1,534 safe, 681 toxic), 7 on today's (1,319, 655); never ranked."
        )
    grid = _grid("Leaderboard", LEADERBOARD_GRID, rows, notes, "leaderboard")
    return grid._replace(published=published)


def _category_grid(results: pd.DataFrame, part: str) -> Grid:
    """A row per category, a column per model. part: which results these are; empty: all."""
    side, categories = SIDES[results["side"].iloc[0]], by_category(results)
    models = list(results["model"].unique())
    cells = {(row.category, row.model): row for row in results.itertuples()}
    rows = []
    for name in [*sorted(set(categories["category"])), MACRO, OVERALL]:
        found = [cells.get((name, model)) for model in models]
        numbers = [row.prompts if row else 0 for row in found]
        mark = " †" if min(numbers) < FEW_PROMPTS and name != OVERALL else ""
        rates = [_rate(linked=name != MACRO)(row) if row else Cell(DASH, nan) for row in found]
        rows.append([Cell(name + mark), _range(numbers), *rates])
    notes = ["Per cent refused, with 95 % intervals as in the table of all."]
    if (categories["prompts"] < FEW_PROMPTS).any():
        notes.append(f"† fewer than {FEW_PROMPTS} {side.prompts} with a verdict.")
    title = f"{side.rate.capitalize()} by category{part and f': {part}'}"
    heads = models if not part else results.drop_duplicates("model")["tested"]
    return Grid(title, ["Category", "Prompts", *heads], rows, notes, f"{side.name}_category")


def _range(numbers: Sequence[float]) -> Cell:
    low, high = min(numbers), max(numbers)
    if isnan(low):
        return Cell("")
    return Cell(f"{low:.0f}" if low == high else f"{low:.0f}{DASH}{high:.0f}", low)


def _comparison_grid(comparisons: pd.DataFrame) -> Grid:
    used = set(comparisons["method"])
    methods = [f"{name}: {what}." for name, what in METHODS.items() if name in used]
    notes = [
        "On the prompts for which both models have a verdict. Difference in percentage points; its "
        "interval is not corrected for the number of pairs. Smallest: the true difference that "
        f"this comparison would have shown with a probability of {POWER:.0%}.",
        *methods,
        "Holm: corrected for the pairs of the same rate. Missing: rows of A and of B without a "
        "verdict; p (missing): p (Holm) if all of these had spoken against the difference. A model "
        "is called lower only where both are below 0.05.",
    ]
    if comparisons["other_prompts"].any():
        notes.append("Some models were measured on other prompts too; these are left out here.")
    title = "Comparison on the same prompts"
    return _grid(title, COMPARISON_GRID, comparisons, notes, "comparison")


def _corrected_grid(judged: pd.DataFrame, validated: Validated | None) -> Grid:
    notes, by = [], set(judged["corrected_by"])
    if BY_LABELS in by:
        notes.append(
            f"{BY_LABELS}: prediction-powered inference from people's labels of a part of these "
            "very responses, which must be a random one."
        )
    if validated:
        judge = validated.accuracy
        notes.append(
            f"{BY_VALIDATION}: Rogan and Gladen's correction, Lang and Reiczigel's interval; "
            f"{validated.path.name}: sensitivity {judge.sensitivity:.3f} (n {judge.tp + judge.fn}),"
            f" specificity {judge.specificity:.3f} (n {judge.tn + judge.fp}). It assumes that the "
            "judge is as good on these responses as on the labelled ones; refusals by the API, "
            "which no judge saw, are added as they are."
        )
    return _grid("Corrected for an imperfect judge", CORRECTED_GRID, judged, notes, "corrected")


# ---------------------------------------------------------------------------------- in words


def warnings(measurements: Sequence[Measurement], results: pd.DataFrame) -> list[str]:
    """What a reader must know before reading any number, a line each."""
    lines, own = [], measured(results)
    if scripted := sorted({one.model for one in measurements if one.scripted}):
        lines.append(f"scripted, measures nothing: {', '.join(scripted)}")
    rows = overall(own).itertuples()
    for one, row in zip(measurements, rows, strict=True):
        what = f"{one.model}, {SIDES[one.side].rate}"
        lines += [f"{one.model if one.merged else what}: {gap}" for gap in one.gaps]
        lines += [f"{what}: {flag}" for flag in flags_of(row._asdict()) if "prompts" not in flag]
        reasons = (row.uncorrected, row.unaudited)
        lines += [f"{what}: {why}" for why in reasons if why and isinstance(why, str)]
        if one.selected_itself:
            lines.append(
                f"{what}: measured against itself, models of its family ({one.family}) were among "
                "those whose refusals chose the prompts"
            )
    for side in SIDES.values():
        ones = own[own["side"] == side.name]
        if not same_prompts(ones):
            lines.append(
                f"the {side.prompts} differ between models: their {side.rate}s are not one ranking"
            )
        if len(ways := sorted(set(ones["counted_by"]))) > 1:
            lines.append(f"the {side.rate}s are counted differently: {', '.join(ways)}")
    return list(dict.fromkeys(lines))  # both sides of a merged file have the same gaps


def summary_lines(results: pd.DataFrame) -> list[str]:
    """A line per model and side, for the terminal."""
    return [
        f"{row.model}: {SIDES[row.side].rate} {figure(row.rate_percent)} % "
        f"[{span(row.low_percent, row.high_percent)}], n {row.n:.0f}, unscored {row.unscored:.0f} "
        f"(bounds {span(row.low_bound_percent, row.high_bound_percent)})"
        for row in overall(measured(results)).itertuples()
    ]
