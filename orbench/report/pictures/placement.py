"""Where the names of marks stand, so that none lies on another or on a mark.

A name without a place becomes its number. Other orders of the marks, also at random, place less
than one name more in twenty.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from orbench.report.pictures.drawing import Name, Text, width_of

# Beside a mark: how far to the right or to the left a text ends, and how far down it goes, in ems.
# First where it lies on neither interval of the mark.
PLACES = ((0.3, -0.82), (0.3, 1.02), (0.75, 0), (0.2, -1.2), (0.2, 1.2))


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def touches(self, other: "Box") -> bool:
        """Return whether both share a point."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def placed(marks: Sequence[Name], taken: Sequence[Box]) -> Iterator[Text]:
    """Yield for each mark its name, its number or, without a place, an empty text. taken: where
    none may stand.
    """
    boxes = [*taken, *(Box(x - 0.4, y - 0.4, x + 0.4, y + 0.4) for x, y, *_ in marks)]
    for number, mark in enumerate(marks, start=1):
        for text, (aside, down), is_left in product((mark.text, str(number), ""), PLACES, (0, 1)):
            width = width_of(text)
            left = mark.x + aside - is_left * (2 * aside + width)
            baseline = mark.y + down + 0.3
            box = Box(left, baseline - 0.9, left + width, baseline + 0.1)
            if not any(map(box.touches, boxes)):
                break
        boxes.append(box)
        yield Text(left, baseline, text)
