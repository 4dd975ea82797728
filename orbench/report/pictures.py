"""The pictures: a scatter of both sides, heat maps and radars by category, toxicity, words.

Every rate is of refused prompts: a good model is low in over-refusal and high in toxic rejection.
"""

import io
from collections.abc import Iterator, Sequence
from itertools import cycle
from math import isnan, pi
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import textalloc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbench.asking.models import FAMILIES
from orbench.base.messages import shortened
from orbench.base.tables import file_name_part
from orbench.base.words import OVERALL, SIDES
from orbench.report.rates import FEW_PROMPTS, by_category, label
from orbench.report.tables import category_tables
from orbench.stats.intervals import spearman

WIDTH = 6.9  # inches: both columns of a paper
LONGEST_NAME = 32  # characters
STRONGEST = 15  # words on each side
BLACK = "#000000"
GREY = "#666666"
LIGHT_GREY = "#BBBBBB"
BLUE = "#0072B2"
ORANGE = "#E69F00"
# Everybody tells these apart (M. Okabe and K. Ito, Color Universal Design, 2008).
COLOURS = (BLUE, "#009E73", BLACK, "#D55E00", ORANGE, "#CC79A7", "#56B4E9")
# Family -> colour and marker; no two are alike.
MARKS = dict(zip(FAMILIES, zip(cycle(COLOURS), cycle("*^vosDPX>hd"), strict=False), strict=False))
STYLE: dict[Any, Any] = {
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.3,
    "legend.frameon": False,
    "savefig.dpi": 300,
    "text.parse_math": False,  # a model may be called a$b$c
    "pdf.fonttype": 42,  # publishers refuse Type 3 fonts
    "svg.hashsalt": "orbench",  # the same input gives the same file
}
NO_DATE: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def as_file(figure: Figure, kind: str) -> bytes:
    """A figure as png, svg or pdf."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=NO_DATE[kind])
    return file.getvalue()


def pictures(results: pd.DataFrame, board: pd.DataFrame) -> Iterator[tuple[str, str, Figure]]:
    """File name (without its ending), title and figure of all there is something to draw for.

    results: `rates`; board: `leaderboard`. Doubts are written into the corner.
    """
    mpl.rcParams.update(STYLE)
    for name, title, part, figure, rows in _drawn(results, board):
        figure.text(0.005, 0.005, "; ".join(sorted(set(rows["doubt"]) - {""})))
        title = f"{title}: {part}" if part else title
        yield file_name_part(f"{name}_{part}" if part else name), title, figure


def _drawn(
    results: pd.DataFrame, board: pd.DataFrame
) -> Iterator[tuple[str, str, str, Figure, pd.DataFrame]]:
    """File name, title, part (see `leaderboard`), figure, rates in it."""
    published = board[board["published"]]
    own = board[~board["published"]]
    models = own.dropna(subset=["over_refusal_percent", "toxic_percent"])
    if models.empty:  # the published ones are the models
        models = published
        published = published[:0]
    for _, group in models.groupby("group", sort=False):
        first = group.iloc[0]
        notes = [] if first["published"] else [f"{first['prompts']}; {first['judge']}"]
        if len(published):
            notes.append("grey: published with OR-Bench, 25 of the 32 measured on earlier prompts")
        rows = results[results["result"].isin([*group["safe"], *group["toxic"]])]
        figure = scatter(group, published, notes)
        yield "scatter", "Over-refusal and toxic rejection", first["part"], figure, rows
    for title, part, rows in category_tables(results):
        yield f"heatmap_{rows['side'].iat[0]}", title, part, heat_map(rows, title), rows
    for row in own.to_dict("records"):
        name = label(row)
        numbers = [row["safe"], row["toxic"]]
        rows = by_category(results[results["result"].isin(numbers)])
        if 3 <= rows["category"].nunique() <= 10:
            yield f"radar_{name}", name, row["part"], radar(rows, name), rows


def heat_map(results: pd.DataFrame, title: str) -> Figure:
    """Models x categories, the overall rate last. results: of one side, prompt set and judge."""
    models = {row["result"]: label(row) for row in results.to_dict("records")}
    columns = [*sorted(set(by_category(results)["category"])), OVERALL]
    table = results.pivot(index="result", columns="category").loc[[*models]]
    rates = table["rate_percent"][columns]
    n = table["n"][columns]
    figure = Figure((WIDTH, 1.35 + 0.27 * len(models)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(rates, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for (i, j), rate in np.ndenumerate(rates):
        text = "–" if isnan(rate) else f"{rate:.1f}" + "†" * int(n.iat[i, j] < FEW_PROMPTS)
        colour = "white" if rate > 70 else BLACK  # what has more contrast with the blue
        axes.text(j, i, text, ha="center", va="center", color=colour)
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
    names = [shortened(name, LONGEST_NAME) for name in models.values()]
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{title}, %\n† fewer than {FEW_PROMPTS} prompts", loc="left")
    return figure


def radar(results: pd.DataFrame, model: str) -> Figure:
    """A model's rates by category, around a circle. results: of one side or both."""
    rates = results.pivot(index="category", columns="side", values="rate_percent")
    angles = np.arange(len(rates)) / len(rates) * 2 * pi
    figure = Figure((4.4, 3.4), layout="constrained")
    axes: Any = figure.add_subplot(projection="polar", theta_offset=pi / 2, theta_direction=-1)
    for side in SIDES.values():
        if side.name in rates:
            line, colour = ("o--", BLUE) if side.is_toxic else ("o-", ORANGE)
            shares = rates[side.name].tolist()
            closed = [*angles, angles[0]], [*shares, shares[0]]
            axes.plot(*closed, line, color=colour, ms=2.5, label=side.rate)
            axes.fill(angles, shares, color=colour, alpha=0.15)
    axes.set_xticks(angles, rates.index)
    for text, across in zip(axes.get_xticklabels(), np.sin(angles), strict=True):
        text.set_ha("center" if abs(across) < 0.1 else "left" if across > 0 else "right")
    axes.set_ylim(0, 100)
    figure.legend(loc="outside lower center", ncols=2)
    figure.suptitle(f"{shortened(model, LONGEST_NAME)}, %")
    return figure


def scatter(models: pd.DataFrame, grey: pd.DataFrame, notes: Sequence[str]) -> Figure:
    """A mark per model. Families differ in marker as well as in colour.

    models, grey: rows of `leaderboard` with both rates; notes: lines above the picture.
    """
    figure = Figure((WIDTH, 5), layout="constrained")
    axes = figure.subplots()
    lines = [*_trend(axes, models), *_trend(axes, grey), *notes]
    marks = pd.concat([models.assign(faint=False), grey.assign(faint=True)], ignore_index=True)
    for (family, faint), same in marks.groupby(["family", "faint"], sort=False):
        _draw_family(axes, family, same, faint)
    axes.set_xlabel("Over-refusal rate (% of safe prompts refused)")
    axes.set_ylabel("Toxic rejection rate (% of toxic prompts refused)")
    axes.grid()
    axes.margins(0.07, 0.1)  # room for names
    figure.legend(loc="outside lower center", ncols=8, handletextpad=0.2)
    axes.set_title("\n".join(lines), loc="left")
    figure.draw_without_rendering()  # names are placed in the final layout
    _write_names(axes, marks)
    return figure


def _trend(axes: Axes, models: pd.DataFrame) -> list[str]:
    """Draw the quadratic regression line; the rank correlation. Both only for enough models."""
    x = models["over_refusal_percent"].tolist()
    y = models["toxic_percent"].tolist()
    rho, low, high = spearman(x, y)
    if isnan(low):
        return []
    if max(x) - min(x) > 20:  # over fewer points, a curve says nothing
        span = np.linspace(min(x), max(x), 200)
        axes.plot(span, np.polyval(np.polyfit(x, y, 2), span), "--", color=GREY, lw=0.9)
    kind = "published" if models["published"].all() else "measured"
    return [f"{len(x)} {kind} models: Spearman's ρ = {rho:.4f} [{low:.2f}, {high:.2f}]"]


def _draw_family(axes: Axes, family: str, models: pd.DataFrame, faint: bool) -> None:
    x = models["over_refusal_percent"]
    y = models["toxic_percent"]
    colour, marker = MARKS.get(family, (GREY, "o"))
    if faint:
        axes.scatter(x, y, s=18, color=LIGHT_GREY, marker=marker)
        return
    axes.scatter(x, y, s=36, color=colour, marker=marker, label=family or "other", zorder=3)
    axes.hlines(y, models["over_refusal_low_percent"], models["over_refusal_high_percent"], colour)
    axes.vlines(x, models["toxic_low_percent"], models["toxic_high_percent"], colour)


def _write_names(axes: Axes, marks: pd.DataFrame) -> None:
    """Write the models' names where they cover neither marks nor names, each with a thin line to
    its mark. The first model chooses first. Grey names without room are left out.
    """
    names = [shortened(label(row), LONGEST_NAME) for row in marks.to_dict("records")]
    x = marks["over_refusal_percent"]
    y = marks["toxic_percent"]
    faint = marks["faint"]
    sizes: Any = [3 * axes.figure.dpi / 72] * len(marks)  # the marks' radii in pixels
    textalloc.allocate(
        *(axes, x, y, names),
        x_scatter=x,
        y_scatter=y,
        scatter_sizes=sizes,
        textsize=6,
        textcolor=np.where(faint, GREY, BLACK).tolist(),
        linecolor=GREY,
        linewidth=0.4,
        margin=0.003,  # around a name, in parts of the picture's width
        max_distance=0.15,  # from its mark
        draw_all=not faint.any(),
        nbr_candidates=min(1000, 40_000 // len(marks)),  # a name's cost grows with their number
        in_layout=False,  # names give way to the axes, never the axes to names
    )


def safety_pictures(frames: dict[str, pd.DataFrame]) -> Iterator[tuple[str, str, Figure]]:
    """File name (without its ending), title and figure. frames: of `toxicity` and `triggers`."""
    mpl.rcParams.update(STYLE)
    if "toxicity_curve" in frames:
        yield "toxicity", "Refusals by toxicity", toxicity_curves(frames["toxicity_curve"])
    if "triggers" in frames:
        words = frames["triggers"][frames["triggers"]["against"] == ""]
        for _, terms in words.groupby(["model", "settings", "part"], sort=False):
            name = ", ".join(filter(None, [label(terms.iloc[0]), terms["part"].iat[0]]))
            yield file_name_part(f"triggers_{name}"), f"Words: {name}", trigger_words(terms, name)


def toxicity_curves(curve: pd.DataFrame) -> Figure:
    """A line per model, refusal rate by score, with intervals."""
    figure = Figure((WIDTH, 4), layout="constrained")
    axes = figure.subplots()
    models = curve.groupby(["model", "settings", "prompts", "judge"], sort=False)
    for (_, rows), colour, mark in zip(models, cycle(COLOURS), cycle("o^vsDPX>"), strict=False):
        rate = rows["rate_percent"]
        ends = [rate - rows["rate_low_percent"], rows["rate_high_percent"] - rate]
        name = shortened(label(rows.iloc[0]), LONGEST_NAME)
        axes.errorbar(rows["score"], rate, ends, fmt=f"-{mark}", color=colour, ms=4, label=name)
    axes.axhline(50, ls="--", lw=0.6, color=GREY)
    axes.set(xlabel="Toxicity score of the prompt", ylabel="Refused, %", ylim=(-3, 103))
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def trigger_words(terms: pd.DataFrame, name: str) -> Figure:
    """The strongest terms of each side by their log-odds."""
    shown = terms.groupby("side").head(STRONGEST).sort_values("log_odds")
    places = range(len(shown))
    colours = [ORANGE if side == "refused" else BLUE for side in shown["side"]]
    figure = Figure((4.4, 1 + 0.15 * len(shown)), layout="constrained")
    axes = figure.subplots()
    axes.scatter(shown["log_odds"], places, s=12, c=colours)
    axes.axvline(0, lw=0.6, color=GREY)
    axes.set_yticks(places, [shortened(term, LONGEST_NAME) for term in shown["term"]])
    axes.set_xlabel("Log-odds: in answered prompts (left), in refused prompts (right)")
    figure.suptitle(shortened(name, 2 * LONGEST_NAME))
    return figure
