"""The pictures of a report: what each shows, and the section of the page that it stands in."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from orbench.base.grouping import grouped
from orbench.base.tables import file_name_part
from orbench.base.words import SIDES, Side, Words
from orbench.report.categories import CategoryTable, category_tables
from orbench.report.measures import OVERALL, Compared, Kind, Rates
from orbench.report.pictures import scatter
from orbench.report.pictures.axis import Axis, axis_over, percents
from orbench.report.pictures.drawing import NARROW, WIDE, Drawing
from orbench.report.pictures.rows import Mark, Row, Rows, marks, panels, picture
from orbench.report.published import is_on_or_bench
from orbench.report.rates import refusals
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Placed, Published, Report

WHOLE = Axis(0, 100, 0, 100)
BAR = Axis(0, 100, 1, 21)  # of the leaderboard
BAR_TICKS = Drawing("", "", 22, 1.2, [*BAR.across(0, -0.2)])
NUMBERED = 20  # models: with more, their names have the numbers by which scatters call them
MOST_PAIRS = 15  # those of six models
REACHES = (5, 10, 20, 50, 100)  # points from 0 to the ends of an axis of differences
DUMBBELL = (
    "Percent of prompts refused, with 95 % intervals. A longer bar is a better balance; the score "
    "is its length."
)
TITLES = {
    "tiers": "Refusals by tier",
    "toxicity": "Refusals by toxicity score",
    "drift": "Change between prompt sets",
}
PANELS = "Percent refused, with 95 % intervals. Gray: the other models."
DIFFERENCES = (
    "Percentage points, with 95 % intervals. Filled: the tests show a difference. Hollow: they do "
    "not, which does not show that the models are equal."
)
OF_RESPONSES = "Percent of the responses."
GAP = 0.4  # percent between parts, whatever their colors
SHARES = {"classes": "Responses to", "refusers": "Who refused"}
# Of SHARES: the classes of graded responses, which add up to all; the fields of RefusedBy.
PARTS = {
    "classes": {
        "helped": "helped",
        "partial": "partial",
        "safe_completion": "safe completion",
        "indirect": "indirect refusal",
        "direct": "direct refusal",
        "api": "refused by the API",
    },
    "refusers": {
        "model": "the model, in words",
        "model_api": "the model's API",
        "filter": "the provider's filter",
        "gateway": "a gateway",
        "unknown": "an API that does not say who",
    },
}


class Picture(NamedTuple):
    """A picture at both widths."""

    section: str  # of the page
    name: str  # of its files, without an ending
    wide: Drawing
    narrow: Drawing


def pictures(report: Report) -> Iterator[Picture]:
    """Draw all there is something to draw for, with doubts about the results below it."""
    doubts = [f"{result.label}: {result.doubt}" for result in report.results if result.doubt]
    notes = [*dict.fromkeys(doubts)]
    for one in _drawn(report):
        yield one._replace(wide=one.wide.above(notes), narrow=one.narrow.above(notes))


def _drawn(report: Report) -> Iterator[Picture]:
    for models in grouped(report.board, attrgetter("group")).values():
        draw = partial(picture, dumbbell(models), "Both rates of each model", DUMBBELL)
        yield _picture("leaderboard", "dumbbell", draw, models[0].part)
    yield from _scatters(report)
    yield from _shares(report)
    yield from _multiples(report)
    yield from _differences(report)


def _picture(section: str, name: str, draw: Callable[[float], Drawing], part: str = "") -> Picture:
    """Return a picture. part: the prompts and the judge, if there are several of its kind."""
    file = file_name_part(f"{name}_{part}" if part else name)
    return Picture(section, file, *[draw(width).above([part]) for width in (WIDE, NARROW)])


# -- the leaderboard -------------------------------------------------------------------------------


def dumbbell(models: Sequence[Placed]) -> Rows:
    """Return both rates of each model, in their order."""
    rows = []
    for number, model in enumerate(models, start=1):
        name = model.result.short
        if len(models) > NUMBERED:
            name = f"{number}  {name}"
        score = f"{100 * model.score:z.0f}" if model.has_both_sides else ""
        rows.append(Row(name, _both(model), score))
    heads = ("○ safe prompts", "over_refusal"), ("toxic prompts ●", "toxic")
    return Rows(rows, WHOLE, *heads)


def bar_of(model: Placed) -> Drawing:
    """Return the row of one model, without its name and its score."""
    return Drawing("", "", 22, 1, [*marks(Row("", _both(model)), BAR, 0.5)])


def _both(model: Placed) -> list[Mark]:
    """Return the marks of both sides, or of one."""
    found = []
    for side in (SAFE, TOXIC):
        known = _percents(model, side)
        if known:
            found.append(Mark(known, side.name, is_hollow=not side.is_toxic))
    return found


def _percents(model: Placed, side: Side) -> list[float]:
    """Return the rate of a side in percent, and the ends of its interval if it has one."""
    if isinstance(model, Published):
        return [100 * model.rate(side)]
    rate = model.on(side)
    return percents(rate) if rate else []


def _scatters(report: Report) -> Iterator[Picture]:
    """Yield a scatter for each group of the leaderboard that has models with both rates."""
    measured = [standing for standing in report.board if standing.has_both_sides]
    gray = [*map(_mark, report.published)]
    axes = scatter.axes_over([*map(_mark, measured), *gray])
    for models in grouped(measured, attrgetter("group")).values():
        beside = gray if is_on_or_bench(models[0]) else []
        draw = partial(scatter.scatter, [*map(_mark, models)], beside, axes)
        yield _picture("scatter", "scatter", draw, models[0].part)
    if not report.board:  # then the published models are the models
        yield _picture("scatter", "scatter", partial(scatter.scatter, gray, gray, axes))


def _mark(model: Placed) -> scatter.Mark:
    """Return both rates of a model."""
    safe = _percents(model, SAFE)
    toxic = _percents(model, TOXIC)
    name = model.result.short
    words = f"{name}: refuses {safe[0]:.1f} % of safe prompts and {toxic[0]:.1f} % of toxic ones"
    return scatter.Mark(model.result.model, name, safe, toxic, words)


def _shares(report: Report) -> Iterator[Picture]:
    """Yield the shares of graded classes, and who refused where that is not the model alone."""
    graded = grouped(report.shares, attrgetter("result"))
    rows = defaultdict(list)
    for standing in report.board:
        for rate in standing.sides:
            refused_by = rate.details.refused_by
            shares = refused_by._asdict() if refused_by else {}
            shares |= {one.counted: one.mean.rate for one in graded.get(rate.result, ())}
            for name, parts in PARTS.items():
                row = Row(rate.result.short, [*_stacked(shares, parts)])
                rows[name, rate.side, standing.part].append(row)
    for (name, side, part), found in rows.items():
        given = Rows(found, WHOLE, parts=PARTS[name])
        if {mark.color for row in found for mark in row.marks} - {"helped", "model"}:
            draw = partial(picture, given, f"{SHARES[name]} {side.prompts}", OF_RESPONSES)
            yield _picture("shares", f"{name}_{side.name}", draw, part)


def _stacked(shares: Mapping[str, float], parts: Iterable[str]) -> Iterator[Mark]:
    """Yield the parts of a bar."""
    end = 0.0
    for part in parts:
        start, end = end, end + 100 * shares.get(part, 0)
        if end > start:
            yield Mark([start, start, end - GAP], part, is_part=True)


# -- parts of the prompts, and pairs of models -----------------------------------------------------


def _multiples(report: Report) -> Iterator[Picture]:
    """Yield the rates by category, by tier, by toxicity score, and on several prompt sets."""
    for table in category_tables(report):
        draw = partial(panels, _by_category(table), table.title, PANELS)
        yield _picture("categories", f"categories_{table.side.name}", draw, table.part)
    changes = [one for one in report.comparisons if one.kind is Compared.SETS]
    curves = {
        "tiers": (report.in_order(refusals(report.rates, Kind.TIER)), "subset.name"),
        "toxicity": (refusals(report.rates, Kind.SCORE), "subset.name"),
        "drift": ([rate for one in changes for rate in (one.b, one.a)], "result.prompts"),
    }
    for name, (rates, value) in curves.items():
        groups = grouped(rates, attrgetter("side", "result.judge"))
        for (side, judge), of_side in groups.items():
            title = f"{TITLES[name]}: {side.prompts}"
            draw = partial(panels, _curves(of_side, value), title, PANELS)
            part = judge if len(groups) > len(SIDES) else ""
            yield _picture(name, f"{name}_{side.name}", draw, part)


def _by_category(table: CategoryTable) -> list[Rows]:
    """Return the rates by category of each model, the categories by their median."""
    rates = [rate for of_model in table.rates.values() for rate in of_model.values() if rate.n]
    by_name = grouped(
        [rate for rate in rates if rate.subset in table.subsets], attrgetter("subset.name")
    )
    medians = {name: -np.median([one.mean.rate for one in of]) for name, of in by_name.items()}
    medians[OVERALL.name] = 1  # the last
    return _rows_of_models(by_name, sorted(by_name, key=medians.__getitem__))


def _curves(rates: Rates, value: str) -> list[Rows]:
    """Return the rates of each model on one side, which are in their order."""
    by_value = grouped([rate for rate in rates if rate.n], attrgetter(value))
    rows = _rows_of_models(by_value, [*by_value])
    return [one._replace(is_joined=True) for one in rows]


def _rows_of_models(by_value: Mapping[str, Rates], values: Words) -> list[Rows]:
    """Return the rates of each model, with those of the others in gray."""
    rates = [rate for value in values for rate in by_value[value]]
    axis = axis_over([percent for rate in rates for percent in percents(rate)])
    found = []
    for name in dict.fromkeys(rate.result.short for rate in rates):
        rows = []
        for value in values:
            others = [100 * rate.mean.rate for rate in by_value[value]]
            own = [rate for rate in by_value[value] if rate.result.short == name]
            marks = [Mark(percents(rate), rate.side.name) for rate in own]
            rows.append(Row(value, marks, others=others))
        found.append(Rows(rows, axis, (name, "ink")))
    return found


def _differences(report: Report) -> Iterator[Picture]:
    """Yield the differences of models on each side, by each judge, if they are few."""
    groups = grouped(report.of_models(), attrgetter("a.side", "judge"))
    for (side, judge), pairs in groups.items():
        if len(pairs) > MOST_PAIRS:
            continue
        rows = []
        for pair in pairs:
            points = [100 * share for share in (pair.gap.difference, *pair.gap.interval)]
            mark = Mark(points, side.name, is_hollow=not pair.is_finding)
            rows.append(Row(f"{pair.a.result.short} - {pair.b.result.short}", [mark]))
        furthest = max(abs(end) for row in rows for mark in row.marks for end in mark.percents)
        reach = next(reach for reach in REACHES if furthest <= reach)
        heads = ("← the first refuses fewer", "faint"), ("more →", "faint")
        given = Rows(rows, Axis(-reach, reach, 0, 1), *heads)
        draw = partial(picture, given, f"Differences in {side.rate}", DIFFERENCES)
        part = judge if len(groups) > len(SIDES) else ""
        yield _picture("differences", f"differences_{side.name}", draw, part)
