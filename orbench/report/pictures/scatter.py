"""Over-refusal against toxic rejection, for models with the same prompts and judge."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np
from numpy.polynomial import Polynomial

from orbench.base.grouping import grouped
from orbench.base.words import Side
from orbench.report.pictures.axis import Axis, axis_over, on, percents_of
from orbench.report.pictures.drawing import (
    Dots,
    Drawing,
    Item,
    Line,
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
    x = _axis_of(known, SAFE)._replace(start=LEFT, end=width - 1.3)
    y = _axis_of(known, TOXIC)._replace(start=floor, end=TOP)
    (dots,) = on([Dots([*map(_point, models)], "toxic")], x, y)
    names = [fitted(model.result.short, LONGEST_NAME) for model in models]
    texts = placed(dots.points, names, Box(LEFT + 0.2, 1.6, width, floor))
    shapes = [*_published(gray), *_settings(models), *_intervals(models)]
    items: list[Item] = [
        *x.rules(TOP - 0.2, floor),
        *y.rules(x.end, LEFT, is_upright=True),
        Text(width, floor + 2.7, "safe prompts refused, % →  worse", "faint", "end"),
        Text(0.2, 1.1, "↑ toxic prompts refused, %: better", "faint"),
        *on(shapes, x, y),
        dots,
        *texts,
    ]
    # What answers to pointer and keyboard lies above everything.
    for model, place, name in zip(models, dots.points, names, strict=True):
        safe, toxic = _point(model)
        words = f"refuses {safe:.1f} % of safe prompts and {toxic:.1f} % of toxic ones"
        items.append(Name(*place, name, f"{model.result.short}: {words}"))
    numbers = []
    for number, (name, text) in enumerate(zip(names, texts, strict=True), start=1):
        if text.text != name:
            numbers.append(f"{number}\u00a0{name}")
    notes = [", ".join(numbers)]
    if gray:
        notes.append(GRAY)
    return Drawing(width, floor + 3.2, items).above(notes)


def _axis_of(models: Sequence[Placed], side: Side) -> Axis:
    """Return an axis that holds all models with their intervals."""
    return axis_over([percent for model in models for percent in percents_of(model, side)])


def _point(model: Placed) -> Point:
    """Return both rates of a model, in percent."""
    return 100 * model.rate(SAFE), 100 * model.rate(TOXIC)


def _settings(models: Sequence[Placed]) -> Iterator[Shape]:
    """Yield a line through the settings of each model."""
    for settings in grouped(models, attrgetter("result.model")).values():
        yield Line(sorted(map(_point, settings)), "ink", 0.1)


def _intervals(models: Sequence[Placed]) -> Iterator[Shape]:
    """Yield the cross of each model."""
    for model in models:
        safe, toxic = _point(model)
        yield Line([(end, toxic) for end in percents_of(model, SAFE)[1:]], "toxic", 0.1)
        yield Line([(safe, end) for end in percents_of(model, TOXIC)[1:]], "toxic", 0.1)


def _published(gray: Sequence[Placed]) -> Iterator[Shape]:
    """Yield published models, and the trend through them."""
    if gray:
        points = [*map(_point, gray)]
        safe, toxic = np.transpose(points)
        curve = Polynomial.fit(safe, toxic, 2).linspace(50)
        yield Line(np.transpose(curve).tolist(), "others", 0.1)
        yield Dots(points, "others", 0.5)
