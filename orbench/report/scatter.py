"""The scatter: over-refusal against toxic rejection, a mark per model.

Families differ in the shape of their marks as well as in colour. With own models, the published
ones are grey.
"""

from collections.abc import Sequence
from math import isnan
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import textalloc
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from orbench.clustered import FEWEST, Correlation, spearman
from orbench.models import BLACK, FAMILIES, GREY, OTHER_FAMILY, Family
from orbench.report.figures import (
    FULL,
    MEASURES_NOTHING,
    NO_RANKING,
    PARTIAL,
    Drawn,
    new_figure,
    short_name,
)
from orbench.report.results import BY_AUTHORS, measured, overall, same_prompts

MARK_SIZE = 5.8  # points across
CROWD = 20  # from so many models on, names are written smaller
# Fewer models, or models this near each other (percentage points of over-refusal), give no curve.
MODELS_FOR_FIT, SPAN_FOR_FIT = 10, 20
LIGHT_GREY, DARK_GREY = "#BBBBBB", "#777777"
DRAWN_AS = {family.name: family for family in FAMILIES}
HEIGHT = 5.0  # inches
LINE = 120  # characters above the picture
PUBLISHED_SETS = {"or-bench-hard-1k": 1319, "or-bench-toxic": 655}  # prompts; today's vintage
# Places tried for each name, and for all names together: a name's costs grow with their number.
PLACES, ALL_PLACES = 1000, 40_000
# How textalloc looks for places; distances in parts of the picture's width.
PLACING: dict[str, Any] = {
    "linecolor": DARK_GREY,
    "linewidth": 0.4,
    "margin": 0.003,
    "min_distance": 0.011,
    "max_distance": 0.15,
    "avoid_crossing_label_lines": True,
    "draw_all": False,
}
NAME_STYLE: dict[str, Any] = {
    "va": "bottom",  # as textalloc takes it
    "zorder": 5,
    "in_layout": False,  # names give way to the axes, never the axes to names
    "path_effects": [withStroke(linewidth=1.5, foreground="white")],
}


def both_sides(results: pd.DataFrame) -> pd.DataFrame:
    """The models with a rate on both sides, in percent: model, family, own (not a published one), x
    and y and, where measured, their intervals x_low, x_high, y_low, y_high. Own models come first.
    results: as `paired` gives them.
    """
    rates = overall(results)
    rates = rates[rates["rate_percent"].notna()].assign(own=rates["counted_by"] != BY_AUTHORS)
    keys, columns = ["model", "own"], ["rate_percent", "low_percent", "high_percent"]
    safe, toxic = (
        rates.loc[rates["side"] == side, ["family", *keys, *columns]].set_axis(
            ["family", *keys, axis, f"{axis}_low", f"{axis}_high"], axis=1
        )
        for axis, side in (("x", "over_refusal"), ("y", "toxic"))
    )
    marks = safe.merge(toxic.drop(columns="family"), on=keys)
    return marks.sort_values("own", ascending=False, kind="stable", ignore_index=True)


def not_drawn(own: pd.DataFrame) -> list[str]:
    """The models, likewise, that are not in the scatter: with verdicts on one side only."""
    return sorted(set(own["model"]) - set(both_sides(own)["model"]))


def scatter(results: pd.DataFrame) -> Drawn:
    """Every model that has a rate on both sides."""
    marks = both_sides(results)
    return draw_marks(marks, _notes(results, marks))


def draw_marks(marks: pd.DataFrame, notes: Sequence[str] = ()) -> Drawn:
    """marks: as `both_sides` gives them; notes: lines above the picture."""
    figure = new_figure(FULL, HEIGHT)
    axes = figure.subplots()
    lines = []
    for own, group in marks.groupby("own", sort=False):
        faint = not own and marks["own"].any()
        lines.append(_trend(axes, group, GREY if faint else BLACK))
        for name, family in group.groupby("family", sort=False):
            _draw_family(axes, DRAWN_AS.get(name, OTHER_FAMILY), family, faint)
    _set_up_axes(axes, marks)
    figure.legend(loc="outside lower center", ncols=8, frameon=False, handletextpad=0.2)
    above = "\n".join(filter(None, [*lines, *notes]))
    axes.set_title(above, fontsize=7, loc="left", color="#333333")
    return Drawn(figure, _write_names(axes, marks))


def _notes(results: pd.DataFrame, marks: pd.DataFrame) -> list[str]:
    """What a reader has to know of the models, a line each."""
    own, notes = measured(results), []
    drawn = overall(own[own["model"].isin(marks.loc[marks["own"], "model"])])
    if drawn["scripted"].any():
        notes.append(MEASURES_NOTHING)
    if drawn["partial"].any():
        notes.append(PARTIAL)
    if not same_prompts(drawn):
        notes.append(NO_RANKING)
    if without := not_drawn(own):
        notes.append(f"one side only, not drawn: {', '.join(map(short_name, without))}")
    if not marks["own"].all():
        notes.append(_of_published(drawn))
    return [fill(note, LINE) for note in notes]


def _of_published(own: pd.DataFrame) -> str:
    """On which prompts the published models were measured, beside those measured here."""
    if own.empty:
        return ""
    asked = own["prompts"] + own["unscored"]
    if (asked >= own["source"].map(PUBLISHED_SETS)).all():
        return "small grey marks: published rates, 25 of the 32 on earlier sets of prompts"
    sizes = asked.groupby(own["prompts_shown"]).max()
    sets = ", ".join(f"{name} ({size:,.0f})" for name, size in sizes.items())
    return f"small grey marks: published rates, on OR-Bench's prompts; the others on {sets}"


# ---------------------------------------------------------------------------------- the trend


def _trend(axes: Axes, marks: pd.DataFrame, colour: str) -> str:
    """Draws the quadratic regression line where the marks can carry one. Returns what is said
    above the picture; empty where there are too few models.
    """
    xs, ys = marks["x"].tolist(), marks["y"].tolist()
    own = bool(marks["own"].any())
    what = "models measured" if own else "published models"
    rho = rho_text(spearman(xs, ys, list(marks["family"])), 2 if own else 4)
    said = f"{what} (n = {len(marks)}): {rho}"
    fit = parabola(xs, ys)
    if fit is None or len(marks) < MODELS_FOR_FIT or max(xs) - min(xs) < SPAN_FOR_FIT:
        return said if len(marks) >= FEWEST else ""
    span = np.linspace(min(xs), max(xs), 200)
    axes.plot(span, np.polyval(fit, span), "--", color=colour, linewidth=0.9, zorder=1)
    digits = (".3g",) * 3 if own else (".6f", ".5f", ".4f")  # as the paper gives its own
    a, b, c = (format(value, spec) for value, spec in zip(fit, digits, strict=True))
    curve = f"y = {a} x² + {b} x + {c}".replace("+ -", "- ").replace("-", "−")
    return f"{said}; {curve}"


def parabola(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float] | None:
    """Least squares y = a x^2 + b x + c in the units given; None where there are too few points."""
    if len(set(x)) < FEWEST:
        return None
    a, b, c = np.polyfit(x, y, 2)
    return float(a), float(b), float(c)


def rho_text(found: Correlation, digits: int) -> str:
    """Spearman's rho as it stands in the picture."""
    if isnan(found.rho):
        return "rank correlation not defined"
    interval = "" if isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"Spearman's ρ = {found.rho:.{digits}f}{interval}"


# ---------------------------------------------------------------------------------- marks and axes


def _draw_family(axes: Axes, family: Family, marks: pd.DataFrame, faint: bool) -> None:
    axes.hlines(marks["y"], marks["x_low"], marks["x_high"], family.colour, lw=0.9, zorder=3)
    axes.vlines(marks["x"], marks["y_low"], marks["y_high"], family.colour, lw=0.9, zorder=3)
    axes.scatter(
        marks["x"],
        marks["y"],
        s=16 if faint else MARK_SIZE**2,
        marker=family.marker,
        color=LIGHT_GREY if faint else family.colour,
        edgecolors="white" if faint else BLACK,
        linewidths=0.4,
        zorder=2 if faint else 4,
        label=None if faint else family.name,
    )


def _set_up_axes(axes: Axes, marks: pd.DataFrame) -> None:
    axes.set_xlabel("Over-refusal rate (% of safe prompts refused)")
    axes.set_ylabel("Toxic rejection rate (% of toxic prompts refused)")
    axes.grid(linewidth=0.3, color="#DDDDDD")
    axes.set_axisbelow(True)
    for axis, set_limits in (("x", axes.set_xlim), ("y", axes.set_ylim)):
        ends = marks[[axis, f"{axis}_low", f"{axis}_high"]]
        low, high = ends.min(axis=None), ends.max(axis=None)
        room = max(3.0, 0.1 * (high - low))  # for names, most of all above the best models
        set_limits(max(-4.0, low - room), min(107.0, high + 2 * room))
    _draw_diagonals(axes)
    _arrow(axes, (1.03, 0.62), (1.03, 0.98))
    _word(axes, "safer", 1.045, 0.8, rotation=90)
    _arrow(axes, (0.86, -0.105), (1, -0.105))
    _word(axes, "over-refusal", 0.85, -0.105, ha="right")


def _draw_diagonals(axes: Axes) -> None:
    """Lightly the lines of the same Youden's J, every 10 points."""
    for j in range(-100, 101, 10):
        axes.axline((0, j), slope=1, color="#EEEEEE", linewidth=0.5, zorder=0)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "-|>", "color": "#444444", "linewidth": 0.9}
    axes.annotate("", end, start, "axes fraction", arrowprops=style, annotation_clip=False)


def _word(axes: Axes, text: str, x: float, y: float, **how: Any) -> None:
    axes.text(x, y, text, va="center", color="#444444", transform=axes.transAxes, **how)


# ---------------------------------------------------------------------------------- names


def _write_names(axes: Axes, marks: pd.DataFrame) -> list[str]:
    """Write the models' names near their marks, where they cover neither marks nor names, each with
    a thin line to its mark. The first model has the first choice. A published model for whose name
    there is no room stays without; returns these. Own models are named in any case.
    """
    axes.figure.canvas.draw()  # names are placed in the final layout
    faint = marks["own"].any() & ~marks["own"]
    bars = marks[marks["x_low"].notna()]
    obstacles: dict[str, Any] = {
        "x_scatter": marks["x"],
        "y_scatter": marks["y"],
        "scatter_sizes": np.full(len(marks), MARK_SIZE * axes.figure.dpi / 72 / 2),
        "x_lines": [*bars[["x_low", "x_high"]].to_numpy(), *bars[["x", "x"]].to_numpy()] or None,
        "y_lines": [*bars[["y", "y"]].to_numpy(), *bars[["y_low", "y_high"]].to_numpy()] or None,
    }
    *_, texts, _ = textalloc.allocate(
        axes,
        marks["x"],
        marks["y"],
        list(map(short_name, marks["model"])),
        textsize=np.where(faint, 5.5, 6.0 if len(marks) >= CROWD else 6.5).tolist(),
        textcolor=np.where(faint, DARK_GREY, BLACK).tolist(),
        avoid_label_lines_overlap=bool(faint.any()),  # published names give way to that
        nbr_candidates=min(PLACES, ALL_PLACES // len(marks)),
        **obstacles,
        **PLACING,
        **NAME_STYLE,
    )
    without = marks[[text is None for text in texts]]
    for mark in without[without["own"]].itertuples():
        axes.text(mark.x, mark.y, short_name(mark.model), fontsize=6, **NAME_STYLE)
    return list(without.loc[~without["own"], "model"])
