"""The pictures: a scatter of both sides, heat maps by category, toxicity, words.

Every rate is of refused prompts: a good model is low in over-refusal and high in toxic rejection.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from math import isnan
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import textalloc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbench.base.messages import shortened
from orbench.base.tables import file_name_part
from orbench.base.words import OVERALL, SIDES
from orbench.report.rates import FEW_PROMPTS, FEWEST_MODELS, by_category, label, short_label
from orbench.report.tables import category_tables

WIDTH = 4.6  # inches: a column and a half of a paper, and legible on a phone
LONGEST_NAME = 32  # characters
FEW_MODELS = 12  # whose names are large
STRONGEST = 15  # words on each side
BLACK = "#000000"
GREY = "#666666"
LIGHT_GREY = "#BBBBBB"
# Everybody tells these apart (M. Okabe and K. Ito, Color Universal Design, 2008).
COLOURS = ("#0072B2", "#D55E00", "#009E73", BLACK, "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "oXs^D*vPh>d"
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


def pictures(
    results: pd.DataFrame, board: pd.DataFrame, frames: Mapping[str, pd.DataFrame]
) -> Iterator[tuple[str, str, Figure]]:
    """File name (without its ending), title and figure of all there is something to draw for.

    results: `rates`; board: `leaderboard`; frames: `toxicity` and `triggers`. Doubts about
    rates are written into the corner.
    """
    mpl.rcParams.update(STYLE)
    for name, title, part, figure, rows in _of_rates(results, board):
        figure.text(0.005, 0.01, "; ".join(sorted(set(rows["doubt"]) - {""})), va="bottom")
        title = f"{title}: {part}" if part else title
        yield file_name_part(f"{name}_{part}" if part else name), title, figure
    if "toxicity_curve" in frames:
        yield "toxicity", "Refusals by prompt toxicity", toxicity_curves(frames["toxicity_curve"])
    if "triggers" in frames:
        words = frames["triggers"][frames["triggers"]["against"] == ""]
        for _, terms in words.groupby(["model", "settings", "part"], sort=False):
            name, title = (
                ", ".join(filter(None, [named(terms.iloc[0]), terms["part"].iat[0]]))
                for named in (label, short_label)
            )
            yield file_name_part(f"triggers_{name}"), f"Words: {title}", trigger_words(terms, title)


def _of_rates(
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
            notes.append("grey: published with OR-Bench (25 of 32 on earlier prompts), trend")
        rows = results[results["result"].isin([*group["safe"], *group["toxic"]])]
        figure = scatter(group, published, notes)
        yield "scatter", "Over-refusal and toxic rejection", first["part"], figure, rows
    for title, part, rows in category_tables(results):
        yield f"heatmap_{rows['side'].iat[0]}", title, part, heat_map(rows, title), rows


def heat_map(results: pd.DataFrame, title: str) -> Figure:
    """Models x categories, the overall rate last. results: of one side, prompt set and judge."""
    models = {row["result"]: short_label(row) for row in results.to_dict("records")}
    columns = [*sorted(set(by_category(results)["category"])), OVERALL]
    table = results.pivot(index="result", columns="category").loc[[*models]]
    rates = table["rate_percent"][columns]
    n = table["n"][columns]
    figure = Figure((WIDTH, 1.3 + 0.27 * len(models)), layout="constrained")
    axes = figure.subplots()
    axes.imshow(rates, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for (i, j), rate in np.ndenumerate(rates):
        text = "–" if isnan(rate) else f"{rate:.0f}" + "†" * int(n.iat[i, j] < FEW_PROMPTS)
        axes.text(j, i, text, ha="center", va="center", color="white" if rate > 70 else BLACK)
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
    names = [shortened(name, LONGEST_NAME) for name in models.values()]
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{title}, %\n† fewer than {FEW_PROMPTS} prompts", loc="left")
    return figure


def scatter(models: pd.DataFrame, grey: pd.DataFrame, notes: Sequence[str]) -> Figure:
    """A mark per model, published ones in light grey. Families differ in marker and colour.

    models, grey: rows of `leaderboard` with both rates; notes: lines above the picture.
    """
    figure = Figure((WIDTH, 3.8), layout="constrained")
    axes = figure.subplots()
    marks = pd.concat([models.assign(faint=False), grey.assign(faint=True)], ignore_index=True)
    for some in (models, grey):
        _draw_trend(axes, some)
    axes.scatter(grey["over_refusal_percent"], grey["toxic_percent"], s=14, color=LIGHT_GREY)
    looks = zip(cycle(COLOURS), cycle(MARKERS), strict=False)  # no two of 77 are alike
    # A model of an unknown family is one of its own.
    names = [row["family"] or short_label(row) for row in models.to_dict("records")]
    for (name, same), look in zip(models.groupby(names, sort=False), looks, strict=False):
        _draw_family(axes, str(name), same, *look)
    axes.set_xlabel("Over-refusal rate (% of safe prompts refused)")
    axes.set_ylabel("Toxic rejection rate (% of toxic prompts refused)")
    axes.set_xlim(_below(marks, "over_refusal"), 100)
    axes.set_ylim(_below(marks, "toxic"), 100)
    axes.grid()
    if len(set(names)) > 1:
        figure.legend(loc="outside lower center", ncols=4, handletextpad=0.2)
    axes.set_title("\n".join(map(fill, notes)), loc="left")
    figure.draw_without_rendering()  # names are placed in the final layout
    _write_names(axes, marks)
    return figure


def _below(marks: pd.DataFrame, side: str) -> float:
    """Where an axis begins: at a ten, below all rates and intervals."""
    lowest = marks[[f"{side}_percent", f"{side}_low_percent"]].min(axis=None)
    return max(0, 10 * ((float(lowest) - 2) // 10))


def _draw_trend(axes: Axes, models: pd.DataFrame) -> None:
    """Draw the quadratic regression line of enough models."""
    x = models["over_refusal_percent"].tolist()
    if len(x) < FEWEST_MODELS or max(x) - min(x) < 20:  # over fewer points a curve says nothing
        return
    span = np.linspace(min(x), max(x), 200)
    curve = np.polyval(np.polyfit(x, models["toxic_percent"].tolist(), 2), span)
    axes.plot(span, curve, "--", color=GREY, lw=0.9)


def _draw_family(axes: Axes, family: str, models: pd.DataFrame, colour: str, marker: str) -> None:
    x = models["over_refusal_percent"]
    y = models["toxic_percent"]
    shown: Any = {"color": colour, "clip_on": False, "zorder": 3}  # also at 100
    axes.scatter(x, y, s=24, marker=marker, label=family, **shown)
    axes.hlines(y, models["over_refusal_low_percent"], models["over_refusal_high_percent"], **shown)
    axes.vlines(x, models["toxic_low_percent"], models["toxic_high_percent"], **shown)


def _write_names(axes: Axes, marks: pd.DataFrame) -> None:
    """Write the models' names where they cover no mark, interval or name, each with a thin line to
    its mark. The first model chooses first. Names without room are left out.
    """
    names = [shortened(short_label(row), LONGEST_NAME) for row in marks.to_dict("records")]
    x = marks["over_refusal_percent"]
    y = marks["toxic_percent"]
    faint = marks["faint"]
    few = (~faint).sum() <= FEW_MODELS
    sizes: Any = [3 * axes.figure.dpi / 72] * len(marks)  # the marks' radii in pixels
    own = marks.dropna(subset=["toxic_low_percent"])  # published models have no intervals
    at = {side: own[[f"{side}_percent"] * 2].to_numpy().tolist() for side in SIDES}
    ends = {side: [f"{side}_low_percent", f"{side}_high_percent"] for side in SIDES}
    lines = {side: own[two].to_numpy().tolist() for side, two in ends.items()}
    textalloc.allocate(
        *(axes, x, y, names),
        x_scatter=x,
        y_scatter=y,
        scatter_sizes=sizes,
        x_lines=lines["over_refusal"] + at["over_refusal"],
        y_lines=at["toxic"] + lines["toxic"],
        textsize=np.where(faint | ~few, 5, 7.5).tolist(),
        textcolor=np.where(faint, GREY, BLACK).tolist(),
        linecolor=GREY,
        linewidth=0.4,
        margin=0.003,  # around a name, in parts of the picture's width
        draw_all=False,
        nbr_candidates=min(1000, 40_000 // len(marks)),  # a name's cost grows with their number
        in_layout=False,  # names give way to the axes, never the axes to names
    )


def toxicity_curves(curve: pd.DataFrame) -> Figure:
    """A line per model, refusal rate by score, with intervals."""
    figure = Figure((WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    models = curve.groupby(["model", "settings", "prompts", "judge"], sort=False)
    for (_, rows), colour, mark in zip(models, cycle(COLOURS), cycle("o^vsDPX>"), strict=False):
        rate = rows["rate_percent"]
        ends = [rate - rows["rate_low_percent"], rows["rate_high_percent"] - rate]
        name = shortened(short_label(rows.iloc[0]), LONGEST_NAME)
        axes.errorbar(rows["score"], rate, ends, fmt=f"-{mark}", color=colour, ms=4, label=name)
    axes.axhline(50, ls="--", lw=0.6, color=GREY)
    axes.set(
        xlabel="Toxicity score of the prompt",
        ylabel="Refused, %",
        xlim=(-0.03, 1.03),
        ylim=(-3, 103),
    )
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def trigger_words(terms: pd.DataFrame, name: str) -> Figure:
    """The strongest terms of each side by their log-odds."""
    shown = terms.groupby("side").head(STRONGEST).sort_values("log_odds")
    places = range(len(shown))
    colours = [COLOURS[side == "refused"] for side in shown["side"]]
    figure = Figure((WIDTH, 1 + 0.15 * len(shown)), layout="constrained")
    axes = figure.subplots()
    axes.scatter(shown["log_odds"], places, s=12, c=colours)
    axes.axvline(0, lw=0.6, color=GREY)
    axes.set_yticks(places, [shortened(term, LONGEST_NAME) for term in shown["term"]])
    axes.set_xlabel("Log-odds: more common in answered (left) or refused (right) prompts")
    figure.suptitle(shortened(name, 2 * LONGEST_NAME))
    return figure
