"""The pictures of a report: what each shows, and the section of the page that it stands in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.tables import file_name_part
from orbench.base.words import SIDES, Side
from orbench.report.categories import CategoryTable, category_tables
from orbench.report.measures import OVERALL, Compared, Kind, Rate, Rates
from orbench.report.pictures.axis import Axis, axis_over, on, percents, percents_of
from orbench.report.pictures.drawing import NARROW, WIDE, Dots, Drawing, Line, Shape
from orbench.report.pictures.rows import MOST_PANELS, Panel, dot, rows
from orbench.report.pictures.scatter import scatter
from orbench.report.published import is_on_or_bench
from orbench.report.rates import refusals
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Placed, Report

WHOLE = Axis(0, 100, 0, 100)
BAR = Axis(0, 100, 1, 21)  # of the leaderboard
BAR_TICKS = Drawing(22, 1.2, [*BAR.rules(0, -0.2)])
BAR_ROW = Axis(0, 1, 0.5, 1.5)
MOST_PAIRS = 15  # those of six models
REACHES = (5, 10, 20, 50, 100)  # points from 0 to the ends of an axis of differences
GAP = 0.4  # percent between parts, whatever their colors
# By section.
TITLES = {
    "dumbbell": "Both rates of each model",
    "scatter": "Over-refusal and toxic rejection",
    "shares": "Kinds of responses",
    "categories": "Refusals by category",
    "tiers": "Refusals by tier",
    "toxicity": "Refusals by toxicity score",
    "drift": "Change between prompt sets",
    "differences": "Differences between models",
}
OF_RATES = (
    "Percent refused, with 95 % intervals. Gray: the other models. "
    f"The first {MOST_PANELS} models have a panel."
)
CAPTIONS = {
    "dumbbell": (
        "Percent of prompts refused, with 95 % intervals. A longer bar is a better balance; the "
        "score is its length."
    ),
    "scatter": (
        "Good models stand upper left: they answer safe prompts and refuse toxic ones. Crosses: "
        "95 % intervals. A line joins the settings of one model."
    ),
    "shares": "Percent of the responses.",
    "categories": f"{OF_RATES} Categories stand by their median.",
    "tiers": OF_RATES,
    "toxicity": OF_RATES,
    "drift": OF_RATES,
    "differences": (
        "Percentage points, with 95 % intervals. Gray: the tests show no difference, which does "
        "not show that the models are equal."
    ),
}
# The classes of graded responses, and who refused: the fields of RefusedBy. Refusals by the model
# are in words; graded ones are split.
PARTS = {
    "helped": "helped",
    "partial": "partial",
    "safe_completion": "safe completion",
    "indirect": "indirect refusal",
    "direct": "direct refusal",
    "model": "refused in words",
    "model_api": "refused by the model's API",
    "filter": "by the provider's filter",
    "gateway": "by a gateway",
    "unknown": "by an API that does not say who",
}


class Picture(NamedTuple):
    """A picture at both widths."""

    section: str  # of the page
    name: str  # of its files, without an ending
    caption: str  # how to read it
    wide: Drawing
    narrow: Drawing


class Chart(NamedTuple):
    """What a picture shows. draw: in a width."""

    section: str
    draw: Callable[[float], Drawing]
    side: Side | None = None
    part: str = ""  # the prompts and the judge, if there are several charts of its kind


def pictures(report: Report) -> Iterator[Picture]:
    """Draw all there is something to draw for, with doubts about the results below it."""
    doubts = [f"{result.label}: {result.doubt}" for result in report.results if result.doubt]
    for section, draw, side, part in _charts(report):
        title = TITLES[section]
        name = section
        if side:
            title += f": {side.prompts}"
            name += f"_{side.name}"
        if part:
            name += f"_{part}"
        notes = [part, *dict.fromkeys(doubts)]
        drawn = [draw(width).above(notes)._replace(title=title) for width in (WIDE, NARROW)]
        yield Picture(section, file_name_part(name), CAPTIONS[section], *drawn)


def _charts(report: Report) -> Iterator[Chart]:
    for models in grouped(report.board, attrgetter("group")).values():
        draw = partial(rows, [dumbbell(models)])
        yield Chart("dumbbell", draw, part=models[0].part)
    yield from _scatters(report)
    yield from _shares(report)
    yield from _multiples(report)
    yield from _differences(report)


# -- models ----------------------------------------------------------------------------------------


def dumbbell(models: Sequence[Placed]) -> Panel:
    """Return both rates of each model, in their order."""
    names = [model.result.short for model in models]
    scores = [f"{100 * model.score:z.1f}" if model.has_both_sides else "" for model in models]
    shapes = [shape for row, model in enumerate(models) for shape in _both(model, row)]
    heads = ("○ safe prompts", "over_refusal"), ("toxic prompts ●", "toxic")
    return Panel(names, shapes, WHOLE, *heads, scores)


def bar_of(model: Placed) -> Drawing:
    """Return the row of one model, without its name and its score."""
    return Drawing(22, 1, [*on(_both(model, 0), BAR, BAR_ROW)])


def _both(model: Placed, row: int) -> list[Shape]:
    """Return the rates of both sides, joined by a bar, or one rate."""
    shapes: list[Shape] = []
    ends = []
    for side in (SAFE, TOXIC):
        known = percents_of(model, side)
        ends += [(percent, row) for percent in known[:1]]
        shapes += dot(known, row, side.name, is_hollow=not side.is_toxic)
    return [Line(ends, "band", 0.55), *shapes]


def _scatters(report: Report) -> Iterator[Chart]:
    """Yield a scatter for each group of the leaderboard that has models with both rates."""
    measured = [standing for standing in report.board if standing.has_both_sides]
    known: list[Placed] = [*measured, *report.published]
    for models in grouped(measured, attrgetter("group")).values():
        gray = report.published if is_on_or_bench(models[0]) else []
        draw = partial(scatter, models, gray, known)
        yield Chart("scatter", draw, part=models[0].part)
    if not report.board:  # then the published models are the models
        yield Chart("scatter", partial(scatter, report.published, report.published, known))


def _shares(report: Report) -> Iterator[Chart]:
    """Yield the shares of graded classes and of who refused, if not the models alone, in words."""
    parts = {rate: standing.part for standing in report.board for rate in standing.sides}
    groups = grouped(parts, lambda rate: (rate.side, parts[rate]))
    for (side, part), rates in groups.items():
        shapes: list[Shape] = []
        for row, rate in enumerate(rates):
            shapes += _stacked(_shares_of(rate, report), row)
        colors = {shape.color for shape in shapes}
        if colors - {"helped", "model"}:
            panel = Panel([rate.result.short for rate in rates], shapes, WHOLE)
            key = {color: words for color, words in PARTS.items() if color in colors}
            draw = partial(rows, [panel], key=key)
            yield Chart("shares", draw, side, part)


def _shares_of(rate: Rate, report: Report) -> dict[str, float]:
    """Return the shares of PARTS."""
    refused_by = rate.details.refused_by
    shares = refused_by._asdict() if refused_by else {}
    graded = {one.counted: one.mean.rate for one in report.shares if one.result is rate.result}
    if graded:
        shares.pop("model", None)
    return shares | graded


def _stacked(shares: Mapping[str, float], row: int) -> Iterator[Line]:
    """Yield the parts of a bar."""
    end = 0.0
    for part in PARTS:
        start, end = end, end + 100 * shares.get(part, 0)
        if end > start:
            yield Line([(start, row), (end - GAP, row)], part, 0.8)


# -- parts of the prompts, and pairs of models -----------------------------------------------------


def _multiples(report: Report) -> Iterator[Chart]:
    """Yield the rates by category, by tier, by toxicity score, and on several prompt sets."""
    for table in category_tables(report):
        shown = _by_median(table)
        if shown:
            draw = partial(rows, _panels(shown, "subset.name"))
            yield Chart("categories", draw, table.side, table.part)
    changes = [one for one in report.comparisons if one.kind is Compared.SETS]
    same = ("side", "result.judge", "result.prompt_set")
    tiers = report.in_order(refusals(report.rates, Kind.TIER))
    both_sets = [rate for one in changes for rate in (one.b, one.a)]
    curves = {  # the rates, what a row is about, and what all rates of a picture share
        "tiers": (tiers, "subset.name", same),
        "toxicity": (refusals(report.rates, Kind.SCORE), "subset.name", same),
        "drift": (both_sets, "result.prompts", ("side", "result.judge")),
    }
    for section, (rates, value, shared) in curves.items():
        scored = [rate for rate in rates if rate.n]
        groups = grouped(scored, attrgetter(*shared))
        for of_group in groups.values():
            first = of_group[0].result
            part = ""
            if len(groups) > len({one.side for one in scored}):
                part = f"{first.prompts}, {first.judge}"
            draw = partial(rows, _panels(of_group, value, is_joined=True))
            yield Chart(section, draw, of_group[0].side, part)


def _by_median(table: CategoryTable) -> list[Rate]:
    """Return the rates by category, the categories by their median, and all prompts last."""
    shown = []
    for of_model in table.rates.values():
        shown += [rate for rate in of_model.values() if rate.n and rate.subset in table.subsets]
    by_subset = grouped(shown, attrgetter("subset"))

    def order(rate: Rate) -> tuple[bool, float]:
        median = np.median([one.mean.rate for one in by_subset[rate.subset]])
        return rate.subset == OVERALL, -median

    return sorted(shown, key=order)


def _panels(rates: Rates, value: str, is_joined: bool = False) -> list[Panel]:
    """Return scored rates of each model, with those of all in gray, in rows by a value."""
    value_of = attrgetter(value)
    names = [*grouped(rates, value_of)]
    places = {rate: (100 * rate.mean.rate, names.index(value_of(rate))) for rate in rates}
    axis = axis_over([percent for rate in rates for percent in percents(rate)])
    panels = []
    for name, own in grouped(rates, attrgetter("result.short")).items():
        shapes: list[Shape] = [Dots([*places.values()], "others", 0.28)]
        for rate in own:
            shapes += dot(percents(rate), places[rate][1], rate.side.name)
        if is_joined:
            line = sorted([places[rate] for rate in own], key=itemgetter(1))
            shapes.append(Line(line, "ink", 0.07))
        panels.append(Panel(names, shapes, axis, (name, "ink")))
    return panels


def _differences(report: Report) -> Iterator[Chart]:
    """Yield the differences of models on each side, by each judge, if they are few."""
    groups = grouped(report.of_models(), attrgetter("a.side", "judge"))
    for (side, judge), pairs in groups.items():
        if len(pairs) > MOST_PAIRS:
            continue
        names = [f"{pair.a.result.short} - {pair.b.result.short}" for pair in pairs]
        shapes: list[Shape] = []
        for row, pair in enumerate(pairs):
            points = [100 * share for share in (pair.gap.difference, *pair.gap.interval)]
            shapes += dot(points, row, side.name if pair.is_finding else "others")
        furthest = max(100 * abs(end) for pair in pairs for end in pair.gap.interval)
        reach = next(reach for reach in REACHES if furthest <= reach)
        heads = ("← the first refuses fewer", "faint"), ("more →", "faint")
        draw = partial(rows, [Panel(names, shapes, Axis(-reach, reach, 0, 1), *heads)])
        part = judge if len(groups) > len(SIDES) else ""
        yield Chart("differences", draw, side, part)
