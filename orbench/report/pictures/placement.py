"""Where the names of marks stand, so that none lies on another or on a mark.

The marks with the fewest free places choose first. A name without a place becomes its number. Other
orders of the marks, at random, place less than one name more in twenty.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from orbench.report.pictures.drawing import Point, Text, width_of

# From a mark: how far to the right and down a text goes, in ems, and what part of its width back.
PLACES = (
    *((0.75, 0, 0), (-0.75, 0, 1), (0.6, -0.6, 0), (-0.6, -0.6, 1), (0.6, 0.6, 0)),
    *((-0.6, 0.6, 1), (0, -0.95, 0.5), (0, 0.95, 0.5), (0.2, -1.2, 0), (-0.2, -1.2, 1)),
    *((0.2, 1.2, 0), (-0.2, 1.2, 1)),
)


class Box(NamedTuple):
    """A rectangle, and the text in it."""

    left: float
    top: float
    right: float
    bottom: float
    text: str = ""

    def is_free_of(self, others: Iterable["Box"]) -> bool:
        """Return whether it shares no point with other rectangles."""
        return all(
            self.right <= other.left
            or other.right <= self.left
            or self.bottom <= other.top
            or other.bottom <= self.top
            for other in others
        )


def placed(marks: Sequence[Point], names: Sequence[str], within: Box) -> list[Text]:
    """Return the names, or their numbers, where they have a place. within: where they may stand."""
    dots = [Box(x - 0.4, y - 0.4, x + 0.4, y + 0.4) for x, y in marks]
    choices = []
    for number, (mark, name) in enumerate(zip(marks, names, strict=True), start=1):
        boxes = [*_around(mark, name), *_around(mark, str(number))]
        choices.append([box for box in boxes if _is_inside(box, within) and box.is_free_of(dots)])
    taken: list[Box] = []
    for boxes in sorted(choices, key=len):
        taken += [box for box in boxes if box.is_free_of(taken)][:1]
    return [Text(box.left, box.bottom - 0.1, box.text) for box in taken]


def _around(mark: Point, text: str) -> Iterator[Box]:
    """Yield the places of a text around a mark."""
    x, y = mark
    width = width_of(text)
    for right, down, part in PLACES:
        left = x + right - part * width
        yield Box(left, y + down - 0.6, left + width, y + down + 0.4, text)


def _is_inside(box: Box, within: Box) -> bool:
    across = within.left <= box.left and box.right <= within.right
    return across and within.top <= box.top and box.bottom <= within.bottom
