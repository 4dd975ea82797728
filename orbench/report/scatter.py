"""The scatter: over-refusal against toxic rejection, a mark per model.

Families differ in the shape of their marks as well as in colour. With own models, the published
ones are grey.
"""

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import textalloc
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from orbench.models import BLACK, FAMILIES, GREY, OTHER_FAMILY
from orbench.report.figures import (
    FULL,
    NO_RANKING,
    PARTIAL,
    SCRIPTED,
    Drawn,
    new_figure,
    short_name,
)
from orbench.report.results import BY_AUTHORS, measured, overall, same_prompts
from orbench.report.trend import FEWEST_MODELS, Correlation, parabola, spearman

MARK_SIZE = 5.8  # points across
CROWD = 20  # from so many models on, names are written smaller
# Fewer models, or models this near each other (percentage points of over-refusal), give no curve.
MODELS_FOR_FIT, SPAN_FOR_FIT = 10, 20
LIGHT_GREY, DARK_GREY = "#BBBBBB", "#777777"
DRAWN_AS = {family.name: family for family in FAMILIES}
HEIGHT = 5.0  # inches
NAME_STYLE: dict[str, Any] = {
    "zorder": 5,
    "in_layout": False,  # names give way to the axes, never the axes to names
    "path_effects": [withStroke(linewidth=1.5, foreground="white")],
}


def both_sides(results: pd.DataFrame) -> pd.DataFrame:
    """The models with a rate on both sides, in percent: model, family, counted_by, x, y and, where
    measured, their intervals x_low, x_high, y_low, y_high. Own models come first.
    """
    names = {"rate_percent": "", "low_percent": "_low", "high_percent": "_high"}
    rates = overall(results)
    rates = rates[rates["rate_percent"].notna()].assign(own=rates["counted_by"] != BY_AUTHORS)
    parts = []
    for axis, side in (("x", "over_refusal"), ("y", "toxic")):
        one = rates[rates["side"] == side]
        parts.append(one.rename(columns={old: axis + new for old, new in names.items()}))
    keys = ["model", "own"]
    marks = parts[0].merge(parts[1][[*keys, "y", "y_low", "y_high"]], on=keys)
    return marks.sort_values("own", ascending=False, kind="stable", ignore_index=True)


def scatter(results: pd.DataFrame) -> Drawn:
    """Every model that has a rate on both sides."""
    return draw_marks(both_sides(results), _notes(results))


def draw_marks(marks: pd.DataFrame, notes: Sequence[str] = ()) -> Drawn:
    """marks: as `both_sides` gives them; notes: lines above the picture."""
    figure = new_figure(FULL, HEIGHT)
    axes = figure.subplots()
    own, published = marks[marks["own"]], marks[~marks["own"]]
    trends = [
        _trend(axes, group, GREY if len(own) and not group["own"].any() else BLACK)
        for group in (own, published)
        if len(group)
    ]
    for mark in marks.itertuples():
        _draw_mark(axes, mark, grey=bool(len(own)) and not mark.own)
    _set_up_axes(axes, marks)
    families = (own if len(own) else published)["family"].unique()
    handles = list(map(_legend_entry, families))
    figure.legend(handles=handles, loc="outside lower center", ncols=8, frameon=False)
    lines = [*filter(None, trends), *notes]
    axes.set_title("\n".join(lines), fontsize=7, loc="left", color="#333333")
    return Drawn(figure, _write_names(axes, marks))


def _notes(results: pd.DataFrame) -> list[str]:
    """What a reader has to know of the models, a line each."""
    own = overall(measured(results))
    notes = []
    if own["scripted"].any():
        notes.append(SCRIPTED)
    if own["partial"].any():
        notes.append(PARTIAL)
    if not same_prompts(own):
        notes.append(NO_RANKING)
    if 0 < len(own) < len(overall(results)):
        notes.append("grey: published rates, on the paper's prompts")
    return notes


# ---------------------------------------------------------------------------------- the trend


def _trend(axes: Axes, marks: pd.DataFrame, colour: str) -> str:
    """Draws the quadratic regression line where the marks can carry one. Returns what is said
    above the picture; empty where there are too few models.
    """
    xs, ys = marks["x"].tolist(), marks["y"].tolist()
    own = bool(marks["own"].any())
    what = "models measured" if own else "published models"
    said = f"{what} (n = {len(marks)}): {rho_text(spearman(xs, ys), 2 if own else 4)}"
    fit = parabola(xs, ys)
    if fit is None or len(marks) < MODELS_FOR_FIT or max(xs) - min(xs) < SPAN_FOR_FIT:
        return said if len(marks) >= FEWEST_MODELS else ""
    span = np.linspace(min(xs), max(xs), 200)
    axes.plot(span, np.polyval(fit, span), "--", color=colour, linewidth=0.9, zorder=1)
    digits = (".3g",) * 3 if own else (".6f", ".5f", ".4f")  # as the paper gives its own
    a, b, c = (format(value, spec) for value, spec in zip(fit, digits, strict=True))
    curve = f"y = {a} x² + {b} x + {c}".replace("+ -", "- ").replace("-", "−")
    return f"{said}; {curve}"


def rho_text(found: Correlation, digits: int) -> str:
    """Spearman's rho as it stands in the picture."""
    if isnan(found.rho):
        return "rank correlation not defined"
    interval = "" if isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"Spearman's ρ = {found.rho:.{digits}f}{interval}"


# ---------------------------------------------------------------------------------- marks and axes


def _draw_mark(axes: Axes, mark: Any, grey: bool) -> None:
    family = DRAWN_AS.get(mark.family, OTHER_FAMILY)
    for line in _error_bars(mark):
        axes.plot(*line, color=family.colour, linewidth=0.9, zorder=3)
    axes.scatter(
        mark.x,
        mark.y,
        s=16 if grey else MARK_SIZE**2,
        marker=family.marker,
        color=LIGHT_GREY if grey else family.colour,
        edgecolors="white" if grey else BLACK,
        linewidths=0.4,
        zorder=2 if grey else 4,
    )


def _error_bars(mark: Any) -> list[NDArray[np.float64]]:
    """Their xs and ys: across and upright; none for published rates."""
    if isnan(mark.x_low):
        return []
    across = np.array([[mark.x_low, mark.x_high], [mark.y, mark.y]])
    return [across, np.array([[mark.x, mark.x], [mark.y_low, mark.y_high]])]


def _legend_entry(name: str) -> Line2D:
    family = DRAWN_AS.get(name, OTHER_FAMILY)
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=family.marker,
        markersize=5,
        markerfacecolor=family.colour,
        markeredgecolor=BLACK,
        markeredgewidth=0.4,
        label=family.name,
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
    _arrow(axes, (1.03, 0.62), (1.03, 0.98))
    _word(axes, "safer", 1.045, 0.8, rotation=90)
    _arrow(axes, (0.86, -0.105), (1, -0.105))
    _word(axes, "over-refusal", 0.85, -0.105, ha="right")


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
    grey = marks["own"].any() & ~marks["own"]
    colours = np.where(grey, DARK_GREY, BLACK).tolist()
    sizes = np.where(grey, 5.5, 6.0 if len(marks) >= CROWD else 6.5).tolist()
    names = list(map(short_name, marks["model"]))
    bars = [bar for mark in marks.itertuples() for bar in _error_bars(mark)]
    *_, texts, _ = textalloc.allocate(
        axes,
        marks["x"],
        marks["y"],
        names,
        x_scatter=marks["x"],
        y_scatter=marks["y"],
        scatter_sizes=np.full(len(marks), MARK_SIZE * axes.figure.dpi / 72 / 2),  # type: ignore[arg-type]
        x_lines=[bar[0] for bar in bars] or [[]],
        y_lines=[bar[1] for bar in bars] or [[]],
        textsize=sizes,
        textcolor=colours,
        linecolor=DARK_GREY,
        linewidth=0.4,
        margin=0.003,
        min_distance=0.011,
        max_distance=0.3,
        nbr_candidates=1000,
        avoid_crossing_label_lines=True,
        draw_all=False,
        **NAME_STYLE,
    )
    without = marks[[text is None for text in texts]]
    for mark in without[without["own"]].itertuples():
        axes.text(mark.x, mark.y, short_name(mark.model), fontsize=6, **NAME_STYLE)
    return list(without.loc[~without["own"], "model"])
