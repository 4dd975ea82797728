"""The pictures: a scatter of both sides, heat maps by category, refusals by toxicity.

Every rate is of refused prompts: a good model is low in over-refusal and high in toxic rejection.
"""

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import cycle
from operator import attrgetter
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.polynomial import Polynomial

from orbench.base.grouping import grouped
from orbench.base.messages import shortened
from orbench.base.tables import file_name_part
from orbench.base.words import Side, Words
from orbench.report.categories import CategoryTable, category_tables
from orbench.report.measures import FEW_PROMPTS, FEWEST_MODELS, Kind, Rates
from orbench.report.rates import refusals
from orbench.report.results import SAFE, TOXIC, Result
from orbench.report.scatter import axes_over, percents_of, scatters
from orbench.report.standings import Placed, Published, Report

WIDTH = 4.6  # inches: a column and a half of a paper
NARROW = 3.4  # of pictures on the page: legible on a phone
LONGEST_NAME = 32  # characters
DARK = 1.5  # the share of bad responses that would be darkest: black text is legible on 100
GRAY = "#666666"
LIGHT_GRAY = "#BBBBBB"
# Everybody tells these apart (M. Okabe and K. Ito, Color Universal Design, 2008).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "oXs^D*vPh>d"
ON_PAGE = "toxicity"  # the page draws the others itself
DATES = {"svg": "Date", "pdf": "CreationDate", "png": "Date"}  # as files name theirs


def as_file(figure: Figure, kind: str) -> bytes:
    """Return a figure as png, svg or pdf."""
    file = BytesIO()
    figure.savefig(file, format=kind, metadata={DATES[kind]: None})
    return file.getvalue()


def pictures(report: Report) -> Iterator[tuple[str, Figure]]:
    """Draw all there is something to draw for: the name of a file, without its ending, and what is
    in it.
    """
    mpl.rc_file(Path(__file__).with_suffix(".mplstyle"))
    if report.published and not report.board:  # then they are the models
        yield _drawn("scatter", scatter(report.published, [], []), [])
    for group in scatters(report):
        models = group.standings
        first = models[0].result
        notes = [fill(f"{first.prompts}; {first.judge}")]
        if group.gray:
            notes.append("gray: published with OR-Bench (25 of 32 on earlier prompts), trend")
        results = [result for model in models for result in model.results]
        yield _drawn("scatter", scatter(models, group.gray, notes), results, models[0].part)
    for table in category_tables(report):
        yield _drawn(f"heatmap_{table.side.name}", heat_map(table), table.rates, table.part)
    by_score = refusals(report.rates, Kind.SCORE)
    if by_score:
        yield _drawn(ON_PAGE, toxicity_curves(by_score), [])


def _drawn(
    name: str, figure: Figure, results: Iterable[Result], part: str = ""
) -> tuple[str, Figure]:
    """Return a picture of these results, laid out; doubts about them are written into its corner.
    part: see `Standing`.

    With a layout engine of its own, a figure would be laid out again for each file.
    """
    doubts = {result.doubt for result in results} - {""}
    figure.text(0.005, 0.01, "; ".join(sorted(doubts)), va="bottom")
    ConstrainedLayoutEngine().execute(figure)
    return file_name_part(f"{name}_{part}" if part else name), figure


# -- the scatter -------------------------------------------------------------------------------


def scatter(models: Sequence[Placed], gray: Sequence[Published], notes: Words) -> Figure:
    """Draw a mark per model, published ones in light gray. notes: lines above the picture."""
    figure = Figure((WIDTH, max(3.4, 1.3 + 0.16 * len(models))))
    axes = figure.subplots()
    _draw_trend(axes, models)
    _draw_trend(axes, gray)
    axes.scatter(_rates(gray, SAFE), _rates(gray, TOXIC), s=14, color=LIGHT_GRAY)
    x, y = axes_over([*models, *gray]).values()
    axes.set(
        xlabel="Over-refusal rate (% of safe prompts refused)",
        xlim=(x.low, 100),
        ylabel="Toxic rejection rate (% of toxic prompts refused)",
        ylim=(y.low, 100),
        title="\n".join([*notes, "↖ good: answers safe prompts, refuses toxic ones"]),
    )
    axes.grid()
    for place, model in enumerate(models):
        _draw_model(axes, model, place)
    figure.legend(loc="outside right lower")  # in the order of the leaderboard
    return figure


def _rates(models: Sequence[Placed], side: Side) -> list[float]:
    return [100 * model.rate(side) for model in models]


def _draw_trend(axes: Axes, models: Sequence[Placed]) -> None:
    """Draw the quadratic regression line of enough models."""
    x = _rates(models, SAFE)
    if len(x) >= FEWEST_MODELS and np.ptp(x) >= 20:  # over fewer points a curve says nothing
        trend = Polynomial.fit(x, _rates(models, TOXIC), 2)
        axes.plot(*trend.linspace(200), "--", color=GRAY, lw=0.9)


def _draw_model(axes: Axes, model: Placed, place: int) -> None:
    """Draw a mark with its intervals."""
    number = place if isinstance(model, Published) else model.mark_number
    style: Any = {"color": COLORS[number % len(COLORS)], "clip_on": False, "zorder": 3}
    x, *x_ends = percents_of(model, SAFE)
    y, *y_ends = percents_of(model, TOXIC)
    axes.scatter(
        x,
        y,
        s=24,
        marker=MARKERS[number % len(MARKERS)],
        label=shortened(model.result.short, LONGEST_NAME),
        **style,
    )
    axes.plot(x_ends, [y] * len(x_ends), **style)  # nothing without ends
    axes.plot([x] * len(y_ends), y_ends, **style)


# -- heat maps and curves ----------------------------------------------------------------------


def heat_map(table: CategoryTable) -> Figure:
    """Draw models x categories, the overall rate last; what is bad is dark."""
    names = [shortened(result.short, LONGEST_NAME) for result in table.rates]
    titles = [subset.name for subset in table.subsets]
    bad = np.full((len(names), len(titles)), np.nan)
    figure = Figure((WIDTH, 1.3 + 0.27 * len(names)))
    axes = figure.subplots()
    for i, rates in enumerate(table.rates.values()):
        for j, subset in enumerate(table.subsets):
            rate = rates.get(subset)
            text = "–"
            if rate and rate.n:
                bad[i, j] = abs(table.side.is_toxic - rate.mean.rate)
                text = f"{100 * rate.mean.rate:.0f}" + "†" * rate.is_small
            axes.text(j, i, text, ha="center", va="center")
    axes.imshow(bad, cmap="Oranges", vmin=0, vmax=DARK, aspect="auto")
    axes.set_xticks(range(len(titles)), titles, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.set(frame_on=False, title=f"{fill(table.title)}, %\n† fewer than {FEW_PROMPTS} prompts")
    return figure


def toxicity_curves(rates: Rates) -> Figure:
    """Draw a line per model, refusal rate by score, with intervals."""
    figure = Figure((NARROW, 3.4))
    axes = figure.subplots()
    curves = grouped(rates, attrgetter("result.number"))
    for curve, color, marker in zip(curves.values(), cycle(COLORS), cycle("o^vsDPX>")):
        score = [float(rate.subset.value) for rate in curve]
        ends = [[rate.mean.rate, *rate.mean.interval] for rate in curve]
        percent, low, high = 100 * np.transpose(ends)
        axes.errorbar(
            score,
            percent,
            [percent - low, high - percent],
            fmt=f"-{marker}",
            color=color,
            ms=4,
            label=shortened(curve[0].result.label, LONGEST_NAME),
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
