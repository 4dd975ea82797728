"""Over-refusal against toxic rejection, for models with the same prompts and judge."""

from collections.abc import Iterator, Sequence
from math import inf
from operator import attrgetter

import numpy as np
from numpy.polynomial import Polynomial

from orbench.base.grouping import grouped
from orbench.report.pictures.axis import Axis, axis_over, on, percents_of
from orbench.report.pictures.drawing import (
    DOT,
    Drawing,
    Name,
    Point,
    Shape,
    Text,
    fitted,
)
from orbench.report.pictures.placement import Box, placed
from orbench.report.results import SAFE, TOXIC
from orbench.report.standings import Placed

TOP = 3.3  # ems
LEFT = 3.2
LONGEST_NAME = 20
GRAY = "Gray: published with OR-Bench, 25 of the 32 on earlier prompts, with a quadratic trend."


def scatter(
    models: Sequence[Placed], gray: Sequence[Placed], known: Sequence[Placed], width: float
) -> Drawing:
    """Return a picture of models, and in gray of published ones. known: whom the axes hold."""
    floor = TOP + min(0.7 * width, 36)
    x = axis_over(percents_of(model, SAFE) for model in known)
    y = axis_over(percents_of(model, TOXIC) for model in known)
    x = x._replace(start=LEFT, end=width - 1.3)
    y = y._replace(start=floor, end=TOP)
    marks = [_mark(model, x, y) for model in models]
    beyond = Box(0, 0, LEFT, inf), Box(width, 0, inf, inf), Box(0, floor, inf, inf)
    texts = [*placed(marks, beyond)]
    items = [
        *x.rules(TOP - 0.2, floor),
        *y.rules(x.end, LEFT, is_upright=True),
        Text(width, floor + 2.7, "safe prompts refused, % →  worse", "faint", "end"),
        Text(0.2, 1.1, "↑ toxic prompts refused, %: better", "faint"),
        *on(_below(models, gray), x, y),
        Shape([(mark.x, mark.y) for mark in marks], "toxic", DOT, is_dots=True),
        *texts,
        *marks,
    ]
    numbers = []
    for number, (mark, text) in enumerate(zip(marks, texts, strict=True), start=1):
        if text.text != mark.text:
            numbers.append(f"{number}\u00a0{mark.text}")
    return Drawing(width, floor + 3.2, items).above([", ".join(numbers), GRAY if gray else ""])


def _point(model: Placed) -> Point:
    """Return both rates of a model, in percent."""
    return 100 * model.rate(SAFE), 100 * model.rate(TOXIC)


def _mark(model: Placed, x: Axis, y: Axis) -> Name:
    """Return the name of a model at its place."""
    safe, toxic = _point(model)
    short = model.result.short
    words = f"{short}: refuses {safe:.1f} % of safe prompts and {toxic:.1f} % of toxic ones"
    return Name(x.at(safe), y.at(toxic), fitted(short, LONGEST_NAME), words)


def _below(models: Sequence[Placed], gray: Sequence[Placed]) -> Iterator[Shape]:
    """Yield what lies below the dots: published models with the trend through them, a line through
    the settings of each model, and its cross.
    """
    if gray:
        points = [*map(_point, gray)]
        safe, toxic = zip(*points, strict=True)
        curve = Polynomial.fit(safe, toxic, 2).linspace(50)
        yield Shape(np.transpose(curve).tolist(), "others", 0.1)
        yield Shape(points, "others", 0.5, is_dots=True)
    for settings in grouped(models, attrgetter("result.model")).values():
        yield Shape(sorted(map(_point, settings)), "ink", 0.1)
    for model in models:
        x, y = _point(model)
        yield Shape([(end, y) for end in percents_of(model, SAFE)[1:]], "toxic", 0.1)
        yield Shape([(x, end) for end in percents_of(model, TOXIC)[1:]], "toxic", 0.1)
