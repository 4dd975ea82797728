"""The pictures: a scatter of both sides, heat maps and radars by category.

Every rate is of refused prompts: a good model is low in over-refusal and high in toxic rejection.
"""

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from itertools import cycle
from math import isnan, pi
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import textalloc
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from orbench.asking.models import FAMILIES
from orbench.base.messages import shortened
from orbench.base.tables import file_name_part
from orbench.base.words import OVERALL, SIDES
from orbench.report.rates import FEW_PROMPTS, by_category, label
from orbench.report.tables import category_tables
from orbench.stats.intervals import spearman

FULL, COLUMN = 6.9, 3.4  # inches: both columns of a paper, and one
LONGEST_NAME = 32  # characters
BLACK, DARK_GREY, GREY, LIGHT_GREY, PALE = "#000000", "#666666", "#999999", "#BBBBBB", "#DDDDDD"
BLUE, ORANGE = "#0072B2", "#E69F00"
# Everybody tells these apart (M. Okabe and K. Ito, Color Universal Design, 2008).
COLOURS = (BLUE, "#009E73", BLACK, "#D55E00", ORANGE, "#CC79A7", "#56B4E9")
# Family -> colour and marker; no two are alike.
MARKS = dict(zip(FAMILIES, zip(cycle(COLOURS), cycle("*^vosDPX>hd"), strict=False), strict=False))
OTHER_MARK = GREY, "o"
SIDE_COLOURS = {"over_refusal": ORANGE, "toxic": BLUE}
STYLE: dict[Any, Any] = {
    **{"font.size": 7.5, "axes.titlesize": 8.5, "xtick.labelsize": 7, "ytick.labelsize": 7},
    **{"axes.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False},
    **{"legend.frameon": False, "savefig.dpi": 300},
    "text.parse_math": False,  # a model may be called a$b$c
    "pdf.fonttype": 42,  # publishers refuse Type 3 fonts
    "svg.hashsalt": "orbench",  # the same input gives the same file
}
NO_DATE: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
AROUND = range(3, 11)  # the number of categories of a radar
WHITE_FROM = 72  # percent; on the blue from there on, white has more contrast than black (WCAG 2)
GREY_ONES = "grey: published with OR-Bench, 25 of the 32 measured on earlier prompts"
MARK_SIZE = 5.8  # points across
MODELS_FOR_FIT, SPAN_FOR_FIT = 10, 20  # a curve needs that many, over as many points of the x axis
MOST_PLACES = 40_000  # tried for all names together: a name's cost grows with their number
# How textalloc places names; distances in parts of the picture's width.
PLACING: dict[str, Any] = {
    "linecolor": DARK_GREY,
    "linewidth": 0.4,
    **{"margin": 0.003, "min_distance": 0.011, "max_distance": 0.15},
    "avoid_crossing_label_lines": True,
    "draw_all": False,
    "va": "bottom",
    "zorder": 5,
    "in_layout": False,  # names give way to the axes, never the axes to names
    "path_effects": [withStroke(linewidth=1.5, foreground="white")],
}


def as_file(figure: Figure, kind: str) -> bytes:
    """A figure as png, svg or pdf."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=NO_DATE[kind])
    return file.getvalue()


def pictures(results: pd.DataFrame, board: pd.DataFrame) -> Iterator[tuple[str, str, Figure]]:
    """The file name (without its ending), title and figure of all there is something to draw for.

    results: the measured rates; board: `leaderboard`.
    """
    mpl.rcParams.update(STYLE)
    warnings.filterwarnings("ignore", "Glyph .* missing from")  # it is drawn as a box
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    published, own = board[board["published"]], board[~board["published"]]
    both = own[own["over_refusal_percent"].notna() & own["toxic_percent"].notna()]
    for _, rows in (both if len(both) else published).groupby("group", sort=False):
        notes = [f"{rows['prompts'].iat[0]}; {rows['judge'].iat[0]}"] if len(both) else []
        notes += [GREY_ONES] if len(both) and len(published) else []
        notes += _doubts(results[results["result"].isin([*rows["safe"], *rows["toxic"]])])
        figure = scatter(pd.concat([rows, published]).drop_duplicates(), notes)
        yield _named("scatter", "Over-refusal and toxic rejection", rows["part"].iat[0], figure)
    for title, rows in category_tables(results):
        which, name = title.partition(": ")[2], f"heatmap_{rows['side'].iat[0]}"
        yield _named(name, title, which, heat_map(rows, title))
    for row in own.to_dict("records"):
        rows = results[results["result"].isin([row["safe"], row["toxic"]])]
        sides = by_category(rows).groupby("category").size()
        if len(sides) in AROUND and (sides == rows["result"].nunique()).all():
            yield _named(f"radar_{label(row)}", label(row), row["part"], radar(rows, label(row)))


def _named(name: str, title: str, part: str, figure: Figure) -> tuple[str, str, Figure]:
    """part: the prompts and the judge, if the results have several."""
    title = title if part in title else f"{title}: {part}"
    return file_name_part(f"{name}_{part}" if part else name), title, figure


def _doubts(results: pd.DataFrame) -> list[str]:
    return sorted(set(filter(None, results["doubt"])))


def heat_map(results: pd.DataFrame, title: str) -> Figure:
    """Models x categories, the overall rate last. results: of one side, prompt set and judge."""
    models = {row["result"]: label(row) for row in results.to_dict("records")}
    columns = [*sorted(set(by_category(results)["category"])), OVERALL]
    shares, n = (
        results.pivot(index="result", columns="category", values=name).loc[list(models), columns]
        for name in ("rate_percent", "n")
    )
    figure = Figure((FULL, 1.35 + 0.27 * len(models)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for (i, j), share in np.ndenumerate(shares):
        text = "–" if isnan(share) else f"{share:.1f}" + "†" * int(n.iat[i, j] < FEW_PROMPTS)
        colour = "white" if share >= WHITE_FROM else BLACK
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
    names = [shortened(name, LONGEST_NAME) for name in columns]
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    names = [shortened(name, LONGEST_NAME) for name in models.values()]
    axes.set_yticks(range(len(names)), names)
    axes.axvline(len(columns) - 1.5, color="white", linewidth=2)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=12, label="% refused")
    bar.outline.set_visible(False)
    few = [f"† fewer than {FEW_PROMPTS} prompts"] if (n < FEW_PROMPTS).any(axis=None) else []
    axes.set_title("\n".join([title, *few, *_doubts(results)]), loc="left")
    return figure


def radar(results: pd.DataFrame, model: str) -> Figure:
    """A model's rates by category, around a circle. results: of one side or both."""
    rates = by_category(results).pivot(index="category", columns="side", values="rate_percent")
    names = [shortened(name, LONGEST_NAME) for name in rates.index]
    angles = np.arange(len(names)) / len(names) * 2 * pi
    width = COLUMN + 0.05 * max(map(len, names))
    figure = Figure((width, COLUMN), layout="constrained")
    axes: Any = figure.add_subplot(projection="polar", theta_offset=pi / 2, theta_direction=-1)
    for side in SIDES.values():
        if side.name in rates:
            shares, colour = rates[side.name].to_numpy(float), SIDE_COLOURS[side.name]
            closed = np.append(angles, angles[0]), np.append(shares, shares[0])
            line = "o--" if side.is_toxic else "o-"
            axes.plot(*closed, line, color=colour, markersize=2.5, label=side.rate)
            axes.fill(angles, shares, color=colour, alpha=0.15)
    axes.set_xticks(angles, names)
    for text, across in zip(axes.get_xticklabels(), np.sin(angles), strict=True):
        text.set_ha("center" if abs(across) < 0.1 else "left" if across > 0 else "right")
    axes.tick_params(axis="x", pad=1)
    axes.set_ylim(0, 100)
    axes.set_yticks([20, 40, 60, 80, 100], ["20", "40", "60", "80", "100 %"], color=DARK_GREY)
    axes.set_rlabel_position(180 / len(names))
    axes.grid(linewidth=0.4, color=PALE)
    figure.legend(loc="outside lower center", ncols=2)
    figure.suptitle("\n".join([shortened(model, LONGEST_NAME), *_doubts(results)]), fontsize=8.5)
    return figure


def scatter(board: pd.DataFrame, notes: Sequence[str] = ()) -> Figure:
    """A mark per model. Families differ in marker as well as in colour; beside measured models the
    published ones are grey.

    board: rows of `leaderboard` with both rates. notes: lines above the picture.
    """
    marks = board.sort_values("published", ignore_index=True, kind="stable")
    for side, axis in (("over_refusal", "x"), ("toxic", "y")):
        for end in ("", "_low", "_high"):
            marks[axis + end] = marks[f"{side}{end}_percent"].astype(float)
    marks["faint"] = marks["published"] & ~marks["published"].all()
    figure = Figure((FULL, 5.0), layout="constrained")
    FigureCanvasAgg(figure)  # names are placed where they are drawn
    axes, lines = figure.subplots(), []
    for faint, group in marks.groupby("faint"):
        lines.append(_trend(axes, group, GREY if faint else BLACK))
        for family, models in group.groupby("family", sort=False):
            _draw_family(axes, str(family), models, bool(faint))
    axes.set_xlabel("Over-refusal rate (% of safe prompts refused)")
    axes.set_ylabel("Toxic rejection rate (% of toxic prompts refused)")
    axes.grid(linewidth=0.3, color=PALE)
    axes.set_axisbelow(True)
    axes.margins(0.07, 0.1)  # room for names
    figure.legend(loc="outside lower center", ncols=8, handletextpad=0.2)
    axes.set_title("\n".join(filter(None, [*lines, *notes])), fontsize=7, loc="left")
    _write_names(axes, marks)
    return figure


def _trend(axes: Axes, marks: pd.DataFrame, colour: str) -> str:
    """Draw the quadratic regression line. Returns the rank correlation. Both only for enough models
    that differ enough.
    """
    x, y = marks["x"].tolist(), marks["y"].tolist()
    rho, low, high = spearman(x, y)
    if isnan(low):
        return ""
    if len(x) >= MODELS_FOR_FIT and max(x) - min(x) >= SPAN_FOR_FIT:
        span = np.linspace(min(x), max(x), 200)
        curve = np.polyval(np.polyfit(x, y, 2), span)
        axes.plot(span, curve, "--", color=colour, linewidth=0.9, zorder=1)
    kind = "published" if marks["published"].all() else "measured"
    return f"{len(x)} {kind} models: Spearman's ρ = {rho:.4f} [{low:.2f}, {high:.2f}]"


def _draw_family(axes: Axes, family: str, marks: pd.DataFrame, faint: bool) -> None:
    colour, marker = MARKS.get(family, OTHER_MARK)
    axes.hlines(marks["y"], marks["x_low"], marks["x_high"], colour, lw=0.9, zorder=3)
    axes.vlines(marks["x"], marks["y_low"], marks["y_high"], colour, lw=0.9, zorder=3)
    axes.scatter(
        marks["x"],
        marks["y"],
        s=16 if faint else MARK_SIZE**2,
        marker=marker,
        color=LIGHT_GREY if faint else colour,
        edgecolors="white" if faint else BLACK,
        linewidths=0.4,
        zorder=2 if faint else 4,
        label=None if faint else family or "other",
    )


def _write_names(axes: Axes, marks: pd.DataFrame) -> None:
    """Write the models' names where they cover neither marks nor names, each with a thin line to
    its mark. The first model chooses first. A grey name without room is left out.
    """
    axes.figure.canvas.draw()  # names are placed in the final layout
    names = [shortened(label(row), LONGEST_NAME) for row in marks.to_dict("records")]
    x, y, faint = marks["x"], marks["y"], marks["faint"]
    sizes: Any = np.full(len(marks), MARK_SIZE * axes.figure.dpi / 72 / 2)  # radii in pixels
    *_, texts, _ = textalloc.allocate(
        axes,
        x,
        y,
        names,
        x_scatter=x,
        y_scatter=y,
        scatter_sizes=sizes,
        textsize=np.where(faint, 5.5, 6.0).tolist(),
        textcolor=np.where(faint, DARK_GREY, BLACK).tolist(),
        avoid_label_lines_overlap=bool(faint.any()),  # published names give way to that
        nbr_candidates=min(1000, MOST_PLACES // len(marks)),
        **PLACING,
    )
    for number, text in enumerate(texts):
        if text is None and not faint[number]:
            axes.text(x[number], y[number], names[number], fontsize=6, in_layout=False)
