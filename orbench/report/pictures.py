"""The pictures: a scatter of both sides, heat maps by category, toxicity, words.

Every rate is of refused prompts: a good model is low in over-refusal and high in toxic rejection.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
import textalloc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.polynomial import Polynomial
from pandas import DataFrame, concat  # type: ignore[import-untyped]

from orbench.base.messages import shortened
from orbench.base.tables import file_name_part
from orbench.base.words import OVERALL
from orbench.report.frames import Entry, Frames, joined
from orbench.report.rates import (
    FEW_PROMPTS,
    FEWEST_MODELS,
    categories_of,
    label,
    overall,
    short_label,
)
from orbench.report.tables import category_tables

WIDTH = 4.6  # inches: a column and a half of a paper, and legible on a phone
LONGEST_NAME = 32  # characters
FEW_MODELS = 12  # whose names are large
STRONGEST = 15  # words on each side
BLACK = "#000000"
GRAY = "#666666"
LIGHT_GRAY = "#BBBBBB"
# Everybody tells these apart (M. Okabe and K. Ito, Color Universal Design, 2008).
COLORS = ("#0072B2", "#D55E00", "#009E73", BLACK, "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "oXs^D*vPh>d"
_Picture = tuple[str, str, Figure]  # file name without its ending, title

# Columns of the leaderboard, and the ends of their intervals.
X = "over_refusal_percent"
Y = "toxic_percent"
X_ENDS: Any = ["over_refusal_low_percent", "over_refusal_high_percent"]
Y_ENDS: Any = ["toxic_low_percent", "toxic_high_percent"]
TITLE = "Over-refusal and toxic rejection"  # of a scatter
STYLE = Path(__file__).with_suffix(".mplstyle")
NO_DATE: Entry = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def as_file(figure: Figure, kind: str) -> bytes:
    """Return a figure as png, svg or pdf."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=NO_DATE[kind])
    return file.getvalue()


def pictures(results: DataFrame, board: DataFrame, frames: Frames) -> Iterator[_Picture]:
    """Draw all there is something to draw for.

    results: `rates`; board: `leaderboard`; frames: `toxicity` and `triggers`.
    """
    mpl.rc_file(STYLE)
    yield from _scatters(results, board)
    for title, part, rows in category_tables(results):
        name = f"heatmap_{rows['side'].iat[0]}"
        yield _of_rates(name, title, part, heat_map(rows, title), rows)
    if "toxicity_curve" in frames:
        yield "toxicity", "Refusals by prompt toxicity", toxicity_curves(frames["toxicity_curve"])
    if "triggers" in frames:
        terms = frames["triggers"].query("against == ''")
        for (_, _, part), rows in terms.groupby(["model", "settings", "part"], sort=False):
            first = rows.iloc[0]
            name = joined("triggers_" + label(first), part, mark=", ")
            title = joined(short_label(first), part, mark=", ")
            yield file_name_part(name), f"Words: {title}", trigger_words(rows, title)


def _of_rates(name: str, title: str, part: str, figure: Figure, rows: DataFrame) -> _Picture:
    """A picture of these rates; doubts about them are written into its corner. part: see
    `leaderboard`.
    """
    doubts = sorted(set(rows["doubt"]) - {""})
    figure.text(0.005, 0.01, "; ".join(doubts), va="bottom")
    file = file_name_part(joined(name, part, mark="_"))
    return file, joined(title, part, mark=": "), figure


def _scatters(results: DataFrame, board: DataFrame) -> Iterator[_Picture]:
    """A scatter for each group of models with the same prompts and judge."""
    published = board[board["published"]]
    measured = board[~board["published"]]
    models = measured.dropna(subset=[X, Y])
    if models.empty:  # the published ones are the models
        models = published
        published = published[:0]
    for _, group in models.groupby("group", sort=False):
        first = group.iloc[0]
        notes = []
        if not first["published"]:
            notes.append(f"{first['prompts']}; {first['judge']}")
        if len(published):
            notes.append("gray: published with OR-Bench (25 of 32 on earlier prompts), trend")
        rows = results[results["result"].isin(group[["safe", "toxic"]].stack())]
        figure = scatter(group, published, notes)
        yield _of_rates("scatter", TITLE, first["part"], figure, rows)


def heat_map(results: DataFrame, title: str) -> Figure:
    """Draw models x categories, the overall rate last. results: of one side, prompt set, judge."""
    names = _names(overall(results))
    columns = [*categories_of(results), OVERALL]
    table = results.pivot(index="result", columns="category")
    rates = table["rate_percent"][columns]
    few = table["n"][columns] < FEW_PROMPTS
    texts = rates.map("{:.0f}".format) + np.where(few, "†", "")
    texts = texts.mask(rates.isna(), "–")
    colors = np.where(rates > 70, "white", BLACK)
    figure = Figure((WIDTH, 1.3 + 0.27 * len(names)))
    axes = figure.subplots()
    axes.imshow(rates, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for (i, j), text in np.ndenumerate(texts):
        axes.text(j, i, text, ha="center", va="center", color=colors[i, j])
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{title}, %\n† fewer than {FEW_PROMPTS} prompts")
    return figure


def _names(models: DataFrame) -> list[str]:
    return [shortened(short_label(row), LONGEST_NAME) for row in models.to_dict("records")]


def scatter(models: DataFrame, gray: DataFrame, notes: Sequence[str]) -> Figure:
    """Draw a mark per model, published ones in light gray. Families differ in marker and color.

    models, gray: rows of `leaderboard` with both rates; notes: lines above the picture.
    """
    figure = Figure((WIDTH, 3.8))
    axes = figure.subplots()
    _draw_trend(axes, models)
    _draw_trend(axes, gray)
    axes.scatter(X, Y, data=gray, s=14, color=LIGHT_GRAY, label="_")
    # A model of an unknown family is one of its own.
    names = [row["family"] or short_label(row) for row in models.to_dict("records")]
    looks = zip(cycle(COLORS), cycle(MARKERS), strict=False)  # no two of 77 are alike
    for family, of_family in models.groupby(names, sort=False):
        _draw_family(axes, str(family), of_family, *next(looks))
    marks = concat([models, gray], ignore_index=True)
    axes.set(
        xlabel="Over-refusal rate (% of safe prompts refused)",
        xlim=(_below(marks[[X, *X_ENDS]]), 100),
        ylabel="Toxic rejection rate (% of toxic prompts refused)",
        ylim=(_below(marks[[Y, *Y_ENDS]]), 100),
    )
    axes.grid()
    if len(set(names)) > 1:
        figure.legend(loc="outside lower center", ncols=4, handletextpad=0.2)
    axes.set_title("\n".join(map(fill, notes)))
    figure.draw_without_rendering()  # names are placed in the final layout
    _write_names(axes, marks, len(models))
    return figure


def _below(rates: DataFrame) -> float:
    """Where an axis begins: at a ten, below all rates and intervals."""
    lowest = float(rates.min(axis=None))
    return max(0, 10 * ((lowest - 2) // 10))


def _draw_trend(axes: Axes, models: DataFrame) -> None:
    """Draw the quadratic regression line of enough models."""
    x = models[X].astype(float)
    if len(x) < FEWEST_MODELS or np.ptp(x) < 20:  # over fewer points a curve says nothing
        return
    trend = Polynomial.fit(x, models[Y].astype(float), 2)
    axes.plot(*trend.linspace(200), "--", color=GRAY, lw=0.9)


def _draw_family(axes: Axes, family: str, models: DataFrame, color: str, marker: str) -> None:
    look: Any = {"data": models, "color": color, "clip_on": False, "zorder": 3}  # also at 100
    axes.scatter(X, Y, s=24, marker=marker, label=family, **look)
    axes.hlines(Y, *X_ENDS, label="_", **look)
    axes.vlines(X, *Y_ENDS, label="_", **look)


def _write_names(axes: Axes, marks: DataFrame, colored: int) -> None:
    """Write the models' names where they cover no mark, interval or name, each with a thin line to
    its mark. The first model chooses first. Names without room are left out. colored: how many of
    the marks, the first ones, are not gray.
    """
    x = marks[X]
    y = marks[Y]
    faint = marks.index >= colored
    large = ~faint & (colored <= FEW_MODELS)
    radius: Any = [3 * axes.figure.dpi / 72] * len(marks)  # pixels
    measured = marks.dropna(subset=Y_ENDS)  # published models have no intervals
    with redirect_stdout(io.StringIO()):  # it prints a line if there is room for no name
        textalloc.allocate(
            axes,
            x,
            y,
            _names(marks),
            x_scatter=x,
            y_scatter=y,
            scatter_sizes=radius,
            x_lines=[*measured[X_ENDS].to_numpy(), *measured[[X, X]].to_numpy()],
            y_lines=[*measured[[Y, Y]].to_numpy(), *measured[Y_ENDS].to_numpy()],
            textsize=np.where(large, 7.5, 5).tolist(),
            textcolor=np.where(faint, GRAY, BLACK).tolist(),
            linecolor=GRAY,
            linewidth=0.4,
            margin=0.003,  # around a name, in parts of the picture's width
            draw_all=False,
            nbr_candidates=min(1000, 40_000 // len(marks)),  # a name's cost grows with their number
            in_layout=False,  # names give way to the axes, never the axes to names
        )


def toxicity_curves(curve: DataFrame) -> Figure:
    """Draw a line per model, refusal rate by score, with intervals."""
    figure = Figure((WIDTH, 3.4))
    axes = figure.subplots()
    models = curve.groupby(["model", "settings", "prompts", "judge"], sort=False)
    for (_, rows), color, marker in zip(models, cycle(COLORS), cycle("o^vsDPX>"), strict=False):
        rate = rows["rate_percent"]
        interval = [rate - rows["rate_low_percent"], rows["rate_high_percent"] - rate]
        name = _names(rows)[0]
        axes.errorbar(
            rows["score"], rate, interval, fmt=f"-{marker}", color=color, ms=4, label=name
        )
    axes.axhline(50, ls="--", lw=0.6, color=GRAY)
    axes.set(
        xlabel="Toxicity score of the prompt",
        xlim=(-0.03, 1.03),
        ylabel="Refused, %",
        ylim=(-3, 103),
    )
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def trigger_words(terms: DataFrame, name: str) -> Figure:
    """Draw the strongest terms of each side by their log-odds."""
    shown = terms.groupby("side").head(STRONGEST).sort_values("log_odds")
    places = range(len(shown))
    colors = shown["side"].map({"answered": COLORS[0], "refused": COLORS[1]})
    figure = Figure((WIDTH, 1 + 0.15 * len(shown)))
    axes = figure.subplots()
    axes.scatter(shown["log_odds"], places, s=12, c=colors)
    axes.axvline(0, lw=0.6, color=GRAY)
    axes.set_yticks(places, [shortened(term, LONGEST_NAME) for term in shown["term"]])
    axes.set_xlabel("Log-odds: more common in answered (left) or refused (right) prompts")
    figure.suptitle(shortened(name, 2 * LONGEST_NAME))
    return figure
