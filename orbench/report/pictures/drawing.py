"""A drawing of lines, dots and texts.

All lengths are in ems, the size of the type; y grows downwards. drawing.svg.j2 writes a drawing as
SVG, `files` as PDF and PNG.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orbench.base.grouping import grouped

# What a color stands for. Orange and blue are told apart by everybody (M. Okabe and K. Ito, Color
# Universal Design, 2008). In dark mode the page's style replaces each one.
COLORS = {
    "ink": "#1b1b1b",
    "both": "#1b1b1b",
    "faint": "#555555",
    "rule": "#e0e0e0",
    "band": "#e6e6e6",
    "others": "#8c8c8c",
    "paper": "#ffffff",
    "over_refusal": "#d55e00",
    "toxic": "#0072b2",
    # Parts of a whole: each has a contrast of 3:1 against the page, light or dark.
    "helped": "#00629b",
    "partial": "#3d95cc",
    "safe_completion": "#8a8500",
    "indirect": "#c98200",
    "direct": "#b84000",
    "model": "#b84000",
    "model_api": "#8a4fe8",
    "filter": "#777777",
    "gateway": "#1b1b1b",
    "unknown": "#c98200",
}
EM = 8.0  # points, the size of the type in files
UNITS = 13  # of an SVG in an em: pixels of the page
WIDE = 62.1  # 6.9 inches, two columns of a paper, in type of 8 points
NARROW = 29.7  # 3.3 inches, one column; a phone
LINE = 1.25  # the height of a line of text
DOT = 0.6  # the width of a rate's dot
# Of DejaVu Sans, the widest of the fonts that a page or a file may be shown in.
WIDTHS = {
    0.3: "'IJijl",
    0.35: ",./:;\\| ",
    0.4: "!()-[]ft",
    0.45: "r",
    0.55: '"*_`?sz',
    0.65: "$0123456789EFKLPSTYabcdeghknopquvxy{}",
    0.75: "ABCHNRUVXZ",
    0.85: "#&+<=>DGOQ^w~",
}
WIDTH_OF = {letter: width for width, letters in WIDTHS.items() for letter in letters}
JINJA = Environment(
    autoescape=True, loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined
)
TEMPLATE = JINJA.get_template("drawing.svg.j2")
Point = tuple[float, float]


def units(length: float) -> str:
    """Return a length in those of an SVG."""
    return f"{UNITS * length:.1f}".removesuffix(".0")


class Shape(NamedTuple):
    """A line through points, or dots there: there may be hundreds."""

    points: Sequence[Point]
    color: str
    width: float = 0.14
    is_dots: bool = False

    @property
    def path(self) -> str:
        """Return it as part of the path of an SVG; dots are lines without length."""
        places = [f"{units(x)} {units(y)}" for x, y in self.points]
        if self.is_dots:
            return f"M{'h0M'.join(places)}h0"
        return f"M{'L'.join(places)}"


class Text(NamedTuple):
    """A line of text; x is its start, its middle or its end, and y its baseline."""

    x: float
    y: float
    text: str
    color: str = "ink"
    anchor: str = "start"


class Name(NamedTuple):
    """On a page, what a mark shows while it is pointed at or has the focus. words: all about it."""

    x: float
    y: float
    text: str
    words: str


Item = Shape | Text | Name


class Drawing(NamedTuple):
    """A picture. title: empty if figures beside it say the same."""

    width: float
    height: float
    items: Sequence[Item]
    title: str = ""

    @property
    def shapes(self) -> dict[Shape, list[Shape]]:
        """Return the lines and dots by what they look like, in the order they are painted in: those
        that look alike are one shape.
        """
        shapes = [item for item in self.items if isinstance(item, Shape) and item.points]
        return grouped(shapes, lambda shape: shape._replace(points=()))

    @property
    def texts(self) -> list[Text]:
        """Return the texts, which lie above all shapes."""
        return [item for item in self.items if isinstance(item, Text) and item.text]

    @property
    def svg(self) -> str:
        """Return the SVG."""
        return TEMPLATE.render(drawing=self, colors=COLORS, em=EM, units=units)

    def above(self, notes: Iterable[str]) -> "Drawing":
        """Return the drawing with notes below it."""
        items = [*self.items]
        height = self.height
        for note in notes:
            for line in wrap(note, int(self.width / 0.62), break_on_hyphens=False):
                height += LINE
                items.append(Text(0, height - 0.4, line, "faint"))
        return self._replace(height=height, items=items)


def width_of(text: str) -> float:
    """Return at least how wide a text is."""
    return sum(WIDTH_OF.get(letter, 1.0) for letter in text)


def fitted(text: str, width: float) -> str:
    """Return a text that is no wider, shortened in the middle: names differ at their ends."""
    shown = text
    kept = len(text)
    while width_of(shown) > width and kept > 2:
        kept -= 1
        half = kept // 2
        shown = f"{text[: kept - half]}…{text[-half:]}"
    return shown
