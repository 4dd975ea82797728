"""The pictures: a scatter of both sides, heat maps by category, refusals by toxicity.

Every rate is of refused prompts: a good model is low in over-refusal and high in toxic rejection.
"""

import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle
from math import nan
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import get_registered_canvas_class
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.polynomial import Polynomial

from orbench.base.messages import shortened
from orbench.base.tables import file_name_part
from orbench.base.words import Side
from orbench.report.categories import CategoryTable, category_tables
from orbench.report.columns import Placed
from orbench.report.measures import FEW_PROMPTS, FEWEST_MODELS, OVERALL, Kind, Rate
from orbench.report.rates import refusals
from orbench.report.results import SAFE, TOXIC, Result
from orbench.report.scatter import percents_of, scatters
from orbench.report.standings import Published, Report
from orbench.stats.core import Array

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
TITLE = "Over-refusal and toxic rejection"  # of a scatter
GOOD_CORNER = "↖ good: answers safe prompts, refuses toxic ones"
STYLE = Path(__file__).with_suffix(".mplstyle")
POINTS = 72  # an inch: the dpi at which svg and pdf measure text
UNKNOWN = (nan, nan)  # ends of an interval
NO_DATE: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}


class Drawing(NamedTuple):
    """A picture before it is written to a file."""

    name: str  # of its file, without the ending
    title: str
    figure: Figure
    is_on_page: bool = False  # which draws the others itself


def as_file(figure: Figure, kind: str) -> bytes:
    """Return a figure as png, svg or pdf.

    With a layout engine of its own, a figure would be drawn twice for each file.
    """
    get_registered_canvas_class(kind)(figure)
    figure.dpi = mpl.rcParams["savefig.dpi"] if kind == "png" else POINTS
    ConstrainedLayoutEngine().execute(figure)
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata=NO_DATE[kind])
    return file.getvalue()


def pictures(report: Report) -> Iterator[Drawing]:
    """Draw all there is something to draw for."""
    mpl.rc_file(STYLE)
    yield from _scatters(report)
    for table in category_tables(report.rates, report.board):
        name = f"heatmap_{table.side.name}"
        yield _drawing(name, table.title, table.part, heat_map(table), table.results)
    by_score = refusals(report.rates, Kind.SCORE)
    if by_score:
        curves = toxicity_curves(by_score)
        yield Drawing("toxicity", "Refusals by prompt toxicity", curves, is_on_page=True)


def _drawing(
    name: str, title: str, part: str, figure: Figure, results: Sequence[Result]
) -> Drawing:
    """Return a picture of these results; doubts about them are written into its corner. part: see
    `Standing`.
    """
    doubts = {result.doubt for result in results} - {""}
    figure.text(0.005, 0.01, "; ".join(sorted(doubts)), va="bottom")
    if part:
        name += f"_{part}"
        title += f": {part}"
    return Drawing(file_name_part(name), title, figure)


def _shown(name: str) -> str:
    return shortened(name, LONGEST_NAME)


# -- the scatter -------------------------------------------------------------------------------


def _scatters(report: Report) -> Iterator[Drawing]:
    """Yield a scatter for each group of models with the same prompts and judge."""
    if report.published and not report.board:  # then they are the models
        yield _drawing("scatter", TITLE, "", scatter(report.published, [], []), [])
    for group in scatters(report):
        first = group.standings[0]
        notes = [f"{first.prompts}; {first.judge}"]
        if group.gray:
            notes.append("gray: published with OR-Bench (25 of 32 on earlier prompts), trend")
        figure = scatter(group.standings, group.gray, notes)
        results = [result for standing in group.standings for result in standing.results]
        yield _drawing("scatter", TITLE, group.part, figure, results)


def scatter(models: Sequence[Placed], gray: Sequence[Published], notes: Sequence[str]) -> Figure:
    """Draw a mark per model, published ones in light gray. notes: lines above the picture."""
    figure = Figure((WIDTH, max(3.4, 1.3 + 0.16 * len(models))))
    axes = figure.subplots()
    _draw_trend(axes, models)
    _draw_trend(axes, gray)
    axes.scatter(_rates(gray, SAFE), _rates(gray, TOXIC), s=14, color=LIGHT_GRAY, label="_")
    axes.set(
        xlabel="Over-refusal rate (% of safe prompts refused)",
        xlim=(_below([*models, *gray], SAFE), 100),
        ylabel="Toxic rejection rate (% of toxic prompts refused)",
        ylim=(_below([*models, *gray], TOXIC), 100),
    )
    axes.grid()
    axes.set_title("\n".join([*map(fill, notes), GOOD_CORNER]))
    for place, model in enumerate(models):
        _draw_model(axes, model, place)
    figure.legend(loc="outside right lower")  # in the order of the leaderboard
    return figure


def _rates(models: Sequence[Placed], side: Side) -> list[float]:
    return [percents_of(model, side)[0] for model in models]


def _below(models: Sequence[Placed], side: Side) -> float:
    """Return where an axis begins: at a ten, below all rates and intervals."""
    lowest = min(min(percents_of(model, side)) for model in models)
    return max(0, 10 * ((lowest - 2) // 10))


def _draw_trend(axes: Axes, models: Sequence[Placed]) -> None:
    """Draw the quadratic regression line of enough models."""
    x = _rates(models, SAFE)
    if len(x) < FEWEST_MODELS or np.ptp(x) < 20:  # over fewer points a curve says nothing
        return
    trend = Polynomial.fit(x, _rates(models, TOXIC), 2)
    axes.plot(*trend.linspace(200), "--", color=GRAY, lw=0.9)


def _draw_model(axes: Axes, model: Placed, place: int) -> None:
    """Draw a mark with its intervals."""
    mark_number = place if isinstance(model, Published) else model.mark_number
    style: Any = {"color": COLORS[mark_number % len(COLORS)], "clip_on": False, "zorder": 3}
    x, *x_ends = percents_of(model, SAFE)
    y, *y_ends = percents_of(model, TOXIC)
    marker = MARKERS[mark_number % len(MARKERS)]
    axes.scatter(x, y, s=24, marker=marker, label=_shown(model.short), **style)
    axes.hlines(y, *(x_ends or UNKNOWN), **style)
    axes.vlines(x, *(y_ends or UNKNOWN), **style)


# -- heat maps and curves ----------------------------------------------------------------------


def heat_map(table: CategoryTable) -> Figure:
    """Draw models x categories, the overall rate last; what is bad is dark."""
    names = [_shown(result.short) for result in table.results]
    columns = [*table.categories, OVERALL]
    titles = [subset.name for subset in columns]
    percent = np.full((len(names), len(columns)), nan)
    figure = Figure((WIDTH, 1.3 + 0.27 * len(names)))
    axes = figure.subplots()
    for i, result in enumerate(table.results):
        for j, subset in enumerate(columns):
            rate = table.rates.get((result.number, subset))
            if rate:
                percent[i, j] = 100 * rate.mean.rate
            text = axes.text(j, i, _cell(rate), ha="center", va="center")
            text.set_in_layout(subset in (columns[0], OVERALL))  # others cannot stick out
    bad = 100 - percent if table.side.is_toxic else percent
    axes.imshow(bad, cmap="Oranges", vmin=0, vmax=DARK, aspect="auto")
    axes.set_xticks(range(len(columns)), titles, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{table.title}, %\n† fewer than {FEW_PROMPTS} prompts")
    return figure


def _cell(rate: Rate | None) -> str:
    """Return a rate in whole percent, marked if it is of few prompts."""
    if not rate or not rate.n:
        return "–"
    mark = "†" if rate.is_small else ""
    return f"{100 * rate.mean.rate:.0f}{mark}"


def toxicity_curves(rates: Sequence[Rate]) -> Figure:
    """Draw a line per model, refusal rate by score, with intervals."""
    models = defaultdict[tuple[str, str, str, str], list[Rate]](list)
    for rate in rates:
        result = rate.result
        models[result.model, result.settings, result.prompts, result.judge].append(rate)
    figure = Figure((NARROW, 3.4))
    axes = figure.subplots()
    for curve, color, marker in zip(models.values(), cycle(COLORS), cycle("o^vsDPX>")):
        score = [float(rate.subset.value) for rate in curve]
        percent = _percents([rate.mean.rate for rate in curve])
        low = _percents([rate.mean.interval.low for rate in curve])
        high = _percents([rate.mean.interval.high for rate in curve])
        axes.errorbar(
            score,
            percent,
            [percent - low, high - percent],
            fmt=f"-{marker}",
            color=color,
            ms=4,
            label=_shown(curve[0].result.label),
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


def _percents(fractions: Sequence[float]) -> Array:
    return 100 * np.array(fractions)
