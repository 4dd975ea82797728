"""Where the names of marks stand, so that none lies on another or on a mark.

Each mark takes the first of its places that is free, in several orders of the marks; the one in
which most names stand is kept. A name without a place becomes its number.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from orbench.report.pictures.drawing import Point, Text, width_of

ORDERS = 30
# From a mark: how far to the right and down a text goes, in ems, and what part of its width back.
PLACES = (
    *((0.75, 0, 0), (-0.75, 0, 1), (0.6, -0.6, 0), (-0.6, -0.6, 1), (0.6, 0.6, 0)),
    *((-0.6, 0.6, 1), (0, -0.95, 0.5), (0, 0.95, 0.5), (0.2, -1.2, 0), (-0.2, -1.2, 1)),
    *((0.2, 1.2, 0), (-0.2, 1.2, 1)),
)


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Return whether two rectangles share a point."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


class Place(NamedTuple):
    """A text at a mark."""

    text: str
    box: Box


def placed(marks: Sequence[Point], names: Sequence[str], within: Box) -> list[Text]:
    """Return the names, or their numbers, where they have a place. within: where they may stand."""
    dots = [Box(x - 0.4, y - 0.4, x + 0.4, y + 0.4) for x, y in marks]
    free = []
    for number, mark in enumerate(marks):
        others = dots[:number] + dots[number + 1 :]
        places = [*_around(mark, names[number], others), *_around(mark, str(number + 1), dots)]
        free.append([place for place in places if _is_inside(place.box, within)])
    order = sorted(range(len(marks)), key=lambda number: len(free[number]))
    chance = Random(0)  # the same picture in each run
    best: list[Place] = []
    for _ in range(ORDERS):
        taken: list[Place] = []
        for number in order:
            place = _first_free(free[number], taken)
            taken += [place] if place else []
        best = max(best, taken, key=lambda places: sum(place.text in names for place in places))
        chance.shuffle(order)
    return [Text(box.left, box.bottom - 0.1, text) for text, box in best]


def _around(mark: Point, text: str, dots: Sequence[Box]) -> Iterator[Place]:
    """Yield the places around a mark where a text touches no dot."""
    x, y = mark
    width = width_of(text)
    for right, down, part in PLACES:
        left = x + right - part * width
        box = Box(left, y + down - 0.6, left + width, y + down + 0.4)
        if not any(map(box.overlaps, dots)):
            yield Place(text, box)


def _first_free(places: Sequence[Place], taken: Sequence[Place]) -> Place | None:
    for place in places:
        if not any(place.box.overlaps(other.box) for other in taken):
            return place
    return None


def _is_inside(box: Box, within: Box) -> bool:
    across = within.left <= box.left and box.right <= within.right
    return across and within.top <= box.top and box.bottom <= within.bottom
