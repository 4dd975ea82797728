"""Rates or differences in rows, as dots with their intervals on one axis; panels of such rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from orbench.report.pictures.axis import Axis
from orbench.report.pictures.drawing import LINE, Dots, Drawing, Item, Line, Text, fitted, width_of

HEAD = 2.2  # ems, above the rows
FOOT = 1.8
SCORE = 3.9
PANEL = 9.5  # the narrowest
MOST_PANELS = 12
LOW = 1.25  # the height of a row in a panel
LONGEST = 28  # ems, a name
# Where names stand, from where their rows begin.
BESIDE = Text(-0.8, 0.35, "", anchor="end")
ABOVE = Text(0, -0.75, "")


class Mark(NamedTuple):
    """A dot with its interval."""

    percents: Sequence[float]  # the rate, and the ends of its interval if they are known
    color: str
    is_hollow: bool = False
    is_part: bool = False  # of a stacked bar, from end to end


class Row(NamedTuple):
    """A name and its marks; the first and the last one are joined by a bar."""

    name: str
    marks: Sequence[Mark]
    score: str = ""
    others: Sequence[float] = ()  # in gray


class Rows(NamedTuple):
    """Rows below a head. left, right: the texts above both ends of the axis, and their colors."""

    rows: Sequence[Row]
    axis: Axis
    left: tuple[str, str] = ("", "ink")
    right: tuple[str, str] = ("", "ink")
    is_joined: bool = False  # the marks of all rows, by a line
    parts: Mapping[str, str] = {}  # color -> words, explained below the rows

    @property
    def names(self) -> float:
        """Return the room that the names need."""
        return 0.8 + min(LONGEST, max(width_of(row.name) for row in self.rows))


def picture(given: Rows, title: str, caption: str, width: float) -> Drawing:
    """Return rows in a width, with the names beside or above them."""
    score = SCORE if any(row.score for row in given.rows) else 1
    if given.names < 0.42 * width:
        place, height, start = BESIDE, 1.6, given.names
    else:
        place, height, start = ABOVE, 2.9, 1.2
    axis = given.axis._replace(start=start, end=width - score)
    items = [*_rows(given, axis, 0, height, place)]
    bottom = HEAD + FOOT + height * len(given.rows)
    for color, words in given.parts.items():
        bottom += LINE
        items += [Dots([(0.4, bottom - 0.75)], color), Text(1.3, bottom - 0.4, words)]
    return Drawing(title, caption, width, bottom, items)


def panels(given: Sequence[Rows], title: str, caption: str, width: float) -> Drawing:
    """Return a panel for each of the first models, in lines of a width; the names of the rows stand
    at the left of each line.
    """
    shown = given[:MOST_PANELS]
    names = shown[0].names
    in_line = max(1, min(len(shown), int((width - names) / PANEL)))
    across = (width - names) / in_line
    down = HEAD + FOOT + 0.8 + LOW * len(shown[0].rows)
    items: list[Item] = []
    for number, panel in enumerate(shown):
        line, column = divmod(number, in_line)
        left = names + column * across
        axis = panel.axis._replace(start=left, end=left + across - 2.2)
        items += _rows(panel, axis, line * down, LOW, None if column else BESIDE)
    return Drawing(title, caption, width, down * -(-len(shown) // in_line), items)


def _rows(given: Rows, axis: Axis, top: float, height: float, place: Text | None) -> Iterator[Item]:
    """Yield the head, the axis and the rows. place: of a name, from where its row begins."""
    first = top + HEAD + height - 0.8
    yield from axis.across(top + HEAD, top + HEAD + height * len(given.rows))
    yield Text(axis.start, top + 1.4, fitted(given.left[0], axis.end - axis.start), given.left[1])
    yield Text(axis.end, top + 1.4, *given.right, "end")
    joined = []
    for number, row in enumerate(given.rows):
        y = first + height * number
        if place:
            x = axis.start + place.x
            yield place._replace(x=x, y=y + place.y, text=fitted(row.name, LONGEST))
        yield from marks(row, axis, y)
        yield Text(axis.end + SCORE - 0.2, y + 0.35, row.score, anchor="end")
        joined += [(axis.at(mark.percents[0]), y) for mark in row.marks]
    if given.is_joined:
        yield Line(joined, "ink", 0.07)


def marks(row: Row, axis: Axis, y: float) -> Iterator[Item]:
    """Yield what a row shows."""
    yield Line([(axis.at(mark.percents[0]), y) for mark in row.marks], "band", 0.55)
    yield Dots([(axis.at(rate), y) for rate in row.others], "others", 0.28)
    for percents, color, is_hollow, is_part in row.marks:
        rate, *ends = [(axis.at(percent), y) for percent in percents]
        if is_part:
            yield Line(ends, color, 0.8)
            continue
        yield Line(ends, color)
        yield Dots([rate], color)
        if is_hollow:
            yield Dots([rate], "paper", 0.4)
