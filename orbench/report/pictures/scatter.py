"""Over-refusal against toxic rejection, for models with the same prompts and judge."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from orbench.base.grouping import grouped
from orbench.report.pictures.axis import Axis, axis_over
from orbench.report.pictures.drawing import Dots, Drawing, Item, Line, Name, Point, Text, fitted
from orbench.report.pictures.placement import Box, placed

TOP = 3.3  # ems
LEFT = 3.2
LONGEST_NAME = 20
CAPTION = (
    "Good models stand upper left: they answer safe prompts and refuse toxic ones. Crosses: 95 % "
    "intervals. A line joins the settings of one model."
)
GRAY = " Gray: published with OR-Bench, 25 of the 32 on earlier prompts, with a quadratic trend."


class Mark(NamedTuple):
    """A model: its rates in percent, each followed by the ends of its interval if known."""

    model: str
    name: str  # with settings
    safe: Sequence[float]
    toxic: Sequence[float]
    words: str  # all this


def scatter(
    marks: Sequence[Mark], gray: Sequence[Mark], axes: tuple[Axis, Axis], width: float
) -> Drawing:
    """Return a picture of models, and in gray of published ones."""
    floor = TOP + min(0.7 * width, 36)
    x = axes[0]._replace(start=LEFT, end=width - 1.3)
    y = axes[1]._replace(start=floor, end=TOP)
    names = [fitted(mark.name, LONGEST_NAME) for mark in marks]
    places = [(x.at(mark.safe[0]), y.at(mark.toxic[0])) for mark in marks]
    texts = placed(places, names, Box(LEFT + 0.2, 1.6, width, floor))
    items: list[Item] = [*x.across(TOP - 0.2, floor), *y.upwards(LEFT, x.end)]
    items += [
        Text(width, floor + 2.7, "safe prompts refused, % →  worse", "faint", "end"),
        Text(0.2, 1.1, "↑ toxic prompts refused, %: better", "faint"),
        *_published(gray, x, y),
        *_settings(marks, places),
        *_intervals(marks, x, y),
        Dots(places, "toxic"),
        *texts,
    ]
    # What answers to pointer and keyboard lies above everything.
    items += [
        Name(*place, name, mark.words)
        for mark, place, name in zip(marks, places, names, strict=True)
    ]
    caption = CAPTION + GRAY * bool(gray)
    drawing = Drawing("Over-refusal and toxic rejection", caption, width, floor + 3.2, items)
    shown = {text.text for text in texts}
    numbers = [f"{n}\u00a0{name}" for n, name in enumerate(names, start=1) if name not in shown]
    return drawing.above([", ".join(numbers)])


def axes_over(marks: Sequence[Mark]) -> tuple[Axis, Axis]:
    """Return axes that hold all models with their intervals."""
    safe = [percent for mark in marks for percent in mark.safe]
    toxic = [percent for mark in marks for percent in mark.toxic]
    return axis_over(safe), axis_over(toxic)


def _settings(marks: Sequence[Mark], places: Sequence[Point]) -> Iterator[Line]:
    """Yield a line through the settings of each model."""
    by_model = grouped(zip(marks, places, strict=True), lambda pair: pair[0].model)
    for pairs in by_model.values():
        yield Line(sorted(place for _, place in pairs), "ink", 0.1)


def _intervals(marks: Sequence[Mark], x: Axis, y: Axis) -> Iterator[Line]:
    """Yield the cross of each model."""
    for mark in marks:
        safe, *safe_ends = map(x.at, mark.safe)
        toxic, *toxic_ends = map(y.at, mark.toxic)
        yield Line([(end, toxic) for end in safe_ends], "toxic", 0.1)
        yield Line([(safe, end) for end in toxic_ends], "toxic", 0.1)


def _published(gray: Sequence[Mark], x: Axis, y: Axis) -> Iterator[Item]:
    """Yield published models, and the trend through them."""
    if gray:
        safe = [mark.safe[0] for mark in gray]
        toxic = [mark.toxic[0] for mark in gray]
        curve = np.transpose(Polynomial.fit(safe, toxic, 2).linspace(50)).real
        yield Line([(x.at(a), y.at(b)) for a, b in curve], "others", 0.1)
        yield Dots([(x.at(a), y.at(b)) for a, b in zip(safe, toxic, strict=True)], "others", 0.5)
