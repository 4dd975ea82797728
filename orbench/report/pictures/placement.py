"""Where the names of marks stand, so that none lies on another or on a mark.

A name without a place becomes its number. Other orders of the marks, also at random, place less
than one name more in twenty.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orbench.report.pictures.drawing import Point, Text, width_of

# Beside a mark, to the right or to the left: how far aside and down a text goes, in ems.
# First where it lies on neither interval of the mark.
PLACES = ((0.3, -0.82), (0.3, 1.02), (0.75, 0), (0.2, -1.2), (0.2, 1.2))


class Box(NamedTuple):
    """A rectangle, and the text in it."""

    left: float
    top: float
    right: float
    bottom: float
    text: str = ""

    def touches(self, other: "Box") -> bool:
        """Return whether both share a point."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: "Box") -> bool:
        """Return whether the other one is inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom


def placed(marks: Sequence[Point], names: Sequence[str], within: Box) -> list[Text]:
    """Return for each mark its name, its number or, without a place, an empty text. within: where
    they may stand.
    """
    taken = [Box(x - 0.4, y - 0.4, x + 0.4, y + 0.4) for x, y in marks]
    texts = []
    for number, (mark, name) in enumerate(zip(marks, names, strict=True), start=1):
        text = Text(*mark, "")
        for box in (*_around(mark, name), *_around(mark, str(number))):
            if within.holds(box) and not any(map(box.touches, taken)):
                taken.append(box)
                text = Text(box.left, box.bottom - 0.1, box.text)
                break
        texts.append(text)
    return texts


def _around(mark: Point, text: str) -> Iterator[Box]:
    """Yield the places of a text around a mark."""
    x, y = mark
    width = width_of(text)
    for aside, down in PLACES:
        for left in (x + aside, x - aside - width):
            yield Box(left, y + down - 0.6, left + width, y + down + 0.4, text)
