"""The pictures of a report: what each shows, and the section of the page that it stands in."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import ceil
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.tables import file_name_part
from orbench.base.words import SIDES, Side
from orbench.report.measures import OVERALL, Compared, Kind, Rate, Rates
from orbench.report.pictures.axis import Axis, axis_over, on, percents, percents_of
from orbench.report.pictures.drawing import NARROW, WIDE, Drawing, Shape
from orbench.report.pictures.rows import MOST_PANELS, Panel, dot, rows
from orbench.report.pictures.scatter import scatter
from orbench.report.published import is_on_or_bench
from orbench.report.rates import overall, refusals
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Board, Placed, Report, in_order

WHOLE = Axis(0, 100, 1, 21)  # where bars of the leaderboard have it
BAR_TICKS = Drawing(22, 1.2, [*WHOLE.rules(0, -0.2)])
MOST_PAIRS = 15  # those of six models
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
    "categories": f"{OF_RATES} Categories stand by their median, highest first.",
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


def pictures(report: Report) -> Iterator[Picture]:
    """Draw all there is something to draw for."""
    for models in grouped(report.board, attrgetter("group")).values():
        yield from _of_models(report, models)
    if not report.board:  # then the published models are the models
        draw = partial(scatter, report.published, report.published, report.published)
        yield _picture(report, "scatter", draw)
    yield from _multiples(report)
    yield from _differences(report)


def _picture(
    report: Report,
    section: str,
    draw: Callable[[float], Drawing],
    side: Side | None = None,
    part: str = "",
) -> Picture:
    """Draw a picture, with doubts about the results below it. draw: in a width; part: the prompts
    and the judge, if there are several pictures of its kind.
    """
    title = TITLES[section]
    name = section
    if side:
        title += f": {side.prompts}"
        name += f"_{side.name}"
    if part:
        name += f"_{part}"
    doubts = [f"{result.label}: {result.doubt}" for result in report.results if result.doubt]
    notes = [part, *dict.fromkeys(doubts)]
    drawn = [draw(width).above(notes)._replace(title=title) for width in (WIDE, NARROW)]
    return Picture(section, file_name_part(name), CAPTIONS[section], *drawn)


# -- models ----------------------------------------------------------------------------------------


def _of_models(report: Report, models: Board) -> Iterator[Picture]:
    """Yield the pictures of models with the same prompts and judge."""
    part = models[0].part
    yield _picture(report, "dumbbell", partial(rows, [dumbbell(models)]), part=part)
    with_both = [model for model in models if model.has_both_sides]
    if with_both:
        known = [model for model in report.placed if model.has_both_sides]
        gray = report.published if is_on_or_bench(models[0]) else []
        yield _picture(report, "scatter", partial(scatter, with_both, gray, known), part=part)
    rates = [rate for model in models for rate in model.sides]
    for side, of_side in grouped(rates, attrgetter("side")).items():
        shapes: list[Shape] = []
        for row, rate in enumerate(of_side):
            shapes += _stacked(rate, row, report)
        colors = {shape.color for shape in shapes}
        if colors - {"helped", "model"}:  # else the models alone refused, in words
            panel = Panel([rate.result.short for rate in of_side], shapes, WHOLE)
            key = {color: words for color, words in PARTS.items() if color in colors}
            yield _picture(report, "shares", partial(rows, [panel], key=key), side, part)


def dumbbell(models: Sequence[Placed]) -> Panel:
    """Return both rates of each model, in their order."""
    names = [model.result.short for model in models]
    scores = [f"{100 * model.score:z.1f}" if model.has_both_sides else "" for model in models]
    shapes = [shape for row, model in enumerate(models) for shape in _both(model, row)]
    heads = ("○ safe prompts", "over_refusal"), ("toxic prompts ●", "toxic")
    return Panel(names, shapes, WHOLE, *heads, scores)


def bar_of(model: Placed) -> Drawing:
    """Return the row of one model, without its name and its score."""
    return Drawing(22, 1, [*on(_both(model, 0.5), WHOLE, Axis(0, 1))])


def _both(model: Placed, row: float) -> list[Shape]:
    """Return the rates of both sides, joined by a bar, or one rate."""
    interval, safe = dot(percents_of(model, SAFE), row, SAFE.name)
    toxic = dot(percents_of(model, TOXIC), row, TOXIC.name)
    bar = Shape([*safe.points, *toxic[1].points], "band", 0.55)
    return [bar, interval, safe, Shape(safe.points, "paper", 0.4, is_dots=True), *toxic]


def _stacked(rate: Rate, row: int, report: Report) -> Iterator[Shape]:
    """Yield the parts of a bar."""
    refused_by = rate.details.refused_by
    shares = refused_by._asdict() if refused_by else {}
    for one in report.shares:
        if one.result is rate.result:
            shares[one.counted] = one.mean.rate
            shares["model"] = 0  # its graded refusals are split
    end = 0.0
    for part in PARTS:
        start, end = end, end + 100 * shares.get(part, 0)
        if end > start:
            yield Shape([(start, row), (end - GAP, row)], part, 0.8)


# -- parts of the prompts, and pairs of models -----------------------------------------------------


def _multiples(report: Report) -> Iterator[Picture]:
    """Yield the rates by category, by tier, by toxicity score, and on several prompt sets."""
    categories = refusals(report.rates, Kind.CATEGORY)
    results = {rate.result for rate in categories}
    categories += [rate for rate in overall(report.rates) if rate.result in results]
    tiers = refusals(report.rates, Kind.TIER)
    sets = [(one.b, one.a) for one in report.comparisons if one.kind is Compared.SETS]
    subset = attrgetter("subset.name")
    same = attrgetter("result.prompt_set", "result.judge")
    tables = {  # the rates, what a row is about, and what all rates of a picture share
        "categories": (in_order(categories, report.board), subset, same),
        "tiers": (in_order(tiers, report.board), subset, same),
        "toxicity": (refusals(report.rates, Kind.SCORE), subset, same),
        "drift": (chain(*sets), attrgetter("result.prompts"), attrgetter("result.judge")),
    }
    for section, (rates, row_of, shared) in tables.items():
        scored = [rate for rate in rates if rate.n]
        for side, of_side in grouped(scored, attrgetter("side")).items():
            groups = grouped(of_side, shared)
            for of_group in groups.values():
                first = of_group[0].result
                part = first.measured_by if len(groups) > 1 else ""
                draw = partial(rows, _panels(of_group, row_of, section != "categories"))
                yield _picture(report, section, draw, side, part)


def _panels(rates: Rates, row_of: Callable[[Rate], str], in_steps: bool) -> list[Panel]:
    """Return scored rates of each model, with those of all in gray, in rows by a value: joined as
    steps, or by their median, with all prompts last.
    """
    by_row = grouped(rates, row_of)

    def order(name: str) -> tuple[bool, float]:
        median = np.median([rate.mean.rate for rate in by_row[name]])
        return name == OVERALL.name, -median

    names = [*by_row] if in_steps else sorted(by_row, key=order)
    places = {rate: (100 * rate.mean.rate, names.index(row_of(rate))) for rate in rates}
    axis = axis_over(map(percents, rates))
    panels = []
    for name, own in grouped(rates, attrgetter("result.short")).items():
        shapes = [Shape([*places.values()], "others", 0.28, is_dots=True)]
        for rate in own:
            shapes += dot(percents(rate), places[rate][1], rate.side.name)
        if in_steps:
            line = sorted([places[rate] for rate in own], key=itemgetter(1))
            shapes.append(Shape(line, "ink", 0.07))
        panels.append(Panel(names, shapes, axis, (name, "ink")))
    return panels


def _differences(report: Report) -> Iterator[Picture]:
    """Yield the differences of models on each side, by each judge, if they are few."""
    groups = grouped(report.of_models(), attrgetter("a.side", "judge"))
    for (side, judge), pairs in groups.items():
        if len(pairs) > MOST_PAIRS:
            continue
        names = [f"{pair.a.result.short} - {pair.b.result.short}" for pair in pairs]
        shapes: list[Shape] = []
        furthest = 5.0  # or more
        for row, pair in enumerate(pairs):
            points = [100 * share for share in (pair.gap.difference, *pair.gap.interval)]
            shapes += dot(points, row, side.name if pair.is_finding else "others")
            furthest = max(furthest, *map(abs, points))
        reach = 5 * ceil(furthest / 5)
        heads = ("← the first refuses fewer", "faint"), ("more →", "faint")
        draw = partial(rows, [Panel(names, shapes, Axis(-reach, reach), *heads)])
        part = judge if len(groups) > len(SIDES) else ""
        yield _picture(report, "differences", draw, side, part)
