"""The pictures: a scatter of both sides, heat maps by category, toxicity, words.

Every rate is of refused prompts: a good model is low in over-refusal and high in toxic rejection.
"""

import io
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.polynomial import Polynomial
from pandas import DataFrame, concat  # type: ignore[import-untyped]

from orbench.base.messages import shortened
from orbench.base.tables import file_name_part
from orbench.base.words import OVERALL, SIDES
from orbench.report.frames import Entry, Frames, joined
from orbench.report.rates import (
    FEW_PROMPTS,
    FEWEST_MODELS,
    categories_of,
    overall,
    short_label,
)
from orbench.report.tables import category_tables

WIDTH = 4.6  # inches: a column and a half of a paper
NARROW = 3.4  # of pictures on the page: legible on a phone
LONGEST_NAME = 32  # characters
BLACK = "#000000"
DARK = 150  # percent of bad responses that would be darkest: black text is legible on 100
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
GOOD_CORNER = "↖ good: answers safe prompts, refuses toxic ones"
STYLE = Path(__file__).with_suffix(".mplstyle")
NO_DATE: Entry = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def as_file(figure: Figure, kind: str) -> bytes:
    """Return a figure as png, svg or pdf."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=NO_DATE[kind])
    return file.getvalue()


def pictures(results: DataFrame, board: DataFrame, frames: Frames) -> Iterator[_Picture]:
    """Draw all there is something to draw for.

    results: `rates`; board: `leaderboard`; frames: of `toxicity`.
    """
    mpl.rc_file(STYLE)
    yield from _scatters(results, board)
    for title, part, rows in category_tables(results):
        name = f"heatmap_{rows['side'].iat[0]}"
        yield _of_rates(name, title, part, heat_map(rows, title), rows)
    if "toxicity_curve" in frames:
        yield "toxicity", "Refusals by prompt toxicity", toxicity_curves(frames["toxicity_curve"])


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
    if measured.empty:  # the published ones are the models
        models = published.assign(or_bench=False, look=range(len(published)))
    for _, group in models.groupby("group", sort=False):
        first = group.iloc[0]
        notes = []
        gray = published[:0]
        if first["or_bench"] and len(published):
            gray = published
            notes.append("gray: published with OR-Bench (25 of 32 on earlier prompts), trend")
        if not first["published"]:
            notes.insert(0, f"{first['prompts']}; {first['judge']}")
        rows = results[results["result"].isin(group[["safe", "toxic"]].stack())]
        figure = scatter(group, gray, notes)
        yield _of_rates("scatter", TITLE, first["part"], figure, rows)


def heat_map(results: DataFrame, title: str) -> Figure:
    """Draw models x categories, the overall rate last; what is bad is dark.

    results: of one side, prompt set and judge.
    """
    models = overall(results)
    names = _names(models)
    columns = [*categories_of(results), OVERALL]
    table = results.pivot(index="result", columns="category").loc[models["result"]]
    rates = table["rate_percent"][columns]
    few = table["n"][columns] < FEW_PROMPTS
    texts = rates.map("{:.0f}".format) + np.where(few, "†", "")
    texts = texts.mask(rates.isna(), "–")
    is_toxic = SIDES[results["side"].iat[0]].is_toxic
    bad = 100 - rates if is_toxic else rates
    figure = Figure((WIDTH, 1.3 + 0.27 * len(names)))
    axes = figure.subplots()
    axes.imshow(bad, cmap="Oranges", vmin=0, vmax=DARK, aspect="auto")
    for (i, j), text in np.ndenumerate(texts):
        axes.text(j, i, text, ha="center", va="center")
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{title}, %\n† fewer than {FEW_PROMPTS} prompts")
    return figure


def _names(models: DataFrame) -> list[str]:
    return [shortened(short_label(row), LONGEST_NAME) for row in models.to_dict("records")]


def scatter(models: DataFrame, gray: DataFrame, notes: Sequence[str]) -> Figure:
    """Draw a mark per model, published ones in light gray.

    models, gray: rows of `leaderboard` with both rates; notes: lines above the picture.
    """
    figure = Figure((WIDTH, max(3.4, 1.3 + 0.16 * len(models))))
    axes = figure.subplots()
    _draw_trend(axes, models)
    _draw_trend(axes, gray)
    axes.scatter(X, Y, data=gray, s=14, color=LIGHT_GRAY, label="_")
    marks = concat([models, gray], ignore_index=True)
    axes.set(
        xlabel="Over-refusal rate (% of safe prompts refused)",
        xlim=(_below(marks[[X, *X_ENDS]]), 100),
        ylabel="Toxic rejection rate (% of toxic prompts refused)",
        ylim=(_below(marks[[Y, *Y_ENDS]]), 100),
    )
    axes.grid()
    axes.set_title("\n".join([*map(fill, notes), GOOD_CORNER]))
    _draw_models(axes, models)
    figure.legend(loc="outside right lower")  # in the order of the leaderboard
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


def _draw_models(axes: Axes, models: DataFrame) -> None:
    """Draw marks with their intervals."""
    for name, row in zip(_names(models), models.to_dict("records"), strict=True):
        look: Any = {"color": COLORS[row["look"] % len(COLORS)], "clip_on": False, "zorder": 3}
        x = row[X]
        y = row[Y]
        marker = MARKERS[row["look"] % len(MARKERS)]
        axes.scatter(x, y, s=24, marker=marker, label=name, **look)
        axes.hlines(y, *[row[end] for end in X_ENDS], **look)
        axes.vlines(x, *[row[end] for end in Y_ENDS], **look)


def toxicity_curves(curve: DataFrame) -> Figure:
    """Draw a line per model, refusal rate by score, with intervals."""
    figure = Figure((NARROW, 3.4))
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
    figure.legend(loc="outside lower left")
    return figure
