"""Rates or differences in rows, as dots with their intervals on one axis; panels of such rows."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from orbench.base.words import Words
from orbench.report.pictures.axis import Axis, on
from orbench.report.pictures.drawing import (
    DOT,
    LINE,
    Drawing,
    Item,
    Shape,
    Text,
    fitted,
    width_of,
)

HEAD = 2.2  # ems, above the rows
FOOT = 2.2
BELOW = 0.8  # the last row, to the end of the rules
SCORE = 3.9
MARGIN = 2.2  # between panels; the last number and a long head reach into it
PANEL = 9.5  # the narrowest
MOST_PANELS = 12
LONGEST = 28  # a name


class Panel(NamedTuple):
    """Rows below a head. left, right: the texts above both ends of the axis, and their colors."""

    names: Words
    shapes: Sequence[Shape]  # whose points are a percent and the number of a row
    axis: Axis
    left: tuple[str, str] = ("", "ink")
    right: tuple[str, str] = ("", "ink")
    scores: Words = ()


def rows(panels: Sequence[Panel], width: float, key: Mapping[str, str] = {}) -> Drawing:
    """Return the first panels, in lines of a width. The names of the rows, which are the same in
    all panels, stand beside or above those of each line's first panel. key: what colors mean.
    """
    shown = panels[:MOST_PANELS]
    names = [fitted(name, LONGEST) for name in shown[0].names]
    left = 0.8 + max(map(width_of, names))
    height = 1.45
    name = Text(left - 0.8, 0.35, "", anchor="end")  # beside its row
    if left > 0.42 * width:
        height = 2.9
        left = 1.2
        name = Text(left, -0.75, "")  # above it
    lines = ceil(len(shown) / int((width - left) / PANEL))
    in_line = ceil(len(shown) / lines)
    across = (width - left) / in_line
    items: list[Item] = []
    bottom = 0.0
    for first in range(0, len(shown), in_line):
        top = bottom + HEAD + height - BELOW  # of the first row
        y = Axis(0, 1, top, top + height)
        for row, text in enumerate(names):
            items.append(name._replace(y=name.y + y.at(row), text=text))
        for column, panel in enumerate(shown[first : first + in_line]):
            start = left + column * across
            end = start + across - (SCORE if panel.scores else MARGIN)
            items += _panel(panel, panel.axis._replace(start=start, end=end), y)
        bottom = y.at(len(names) - 1) + BELOW + FOOT
    for color, words in key.items():
        bottom += LINE
        items += [
            Shape([(0.4, bottom - 0.75)], color, DOT, is_dots=True),
            Text(1.3, bottom - 0.4, words),
        ]
    return Drawing(width, bottom, items)


def _panel(panel: Panel, x: Axis, y: Axis) -> Iterator[Item]:
    """Yield a panel without the names of its rows."""
    head = y.at(-1)
    room = x.end - x.start + MARGIN - 0.6
    left = fitted(panel.left[0], room)
    start = x.start
    if panel.right[0]:
        start = min(start, x.end - width_of(left + panel.right[0]))
    yield from x.rules(head + BELOW, y.at(len(panel.names) - 1) + BELOW)
    yield Text(start, head, left, panel.left[1])
    yield Text(x.end, head, *panel.right, "end")
    yield from on(panel.shapes, x, y)
    for row, score in enumerate(panel.scores):
        yield Text(x.end + SCORE - 0.2, y.at(row) + 0.35, score, anchor="end")


def dot(percents: Sequence[float], row: float, color: str) -> tuple[Shape, Shape]:
    """Return an interval, and a dot on it. percents: the rate, and the ends if they are known."""
    points = [(percent, row) for percent in percents]
    return Shape(points[1:], color), Shape(points[:1], color, DOT, is_dots=True)
