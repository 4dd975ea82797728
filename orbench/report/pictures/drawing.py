"""A drawing of lines, dots and texts, and the drawing as SVG.

All lengths are in ems, the size of the type; y grows downwards. `files` writes a drawing as PDF and
PNG.
"""

from collections.abc import Iterable, Sequence
from html import escape
from textwrap import wrap
from typing import NamedTuple

from orbench.base.words import Words

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
}
WIDE = 62.1  # 6.9 inches, two columns of a paper, in type of 8 points
NARROW = 29.7  # 3.3 inches, one column; a phone
LINE = 1.25  # the height of a line of text
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
Point = tuple[float, float]


class Line(NamedTuple):
    """A line through points."""

    points: Sequence[Point]
    color: str
    width: float = 0.14


class Dots(NamedTuple):
    """Circles, as one shape: there may be hundreds."""

    points: Sequence[Point]
    color: str
    size: float = 0.6  # their diameter


class Text(NamedTuple):
    """A line of text; x is its start, its middle or its end, and y its baseline."""

    x: float
    y: float
    text: str
    color: str = "ink"
    anchor: str = "start"
    weight: int = 400


class Name(NamedTuple):
    """On a page, what a mark shows while it is pointed at or has the focus. words: all about it."""

    x: float
    y: float
    text: str
    words: str


Item = Line | Dots | Text | Name


class Drawing(NamedTuple):
    """A picture."""

    title: str
    caption: str  # how to read it
    width: float
    height: float
    items: Sequence[Item]

    def above(self, notes: Words) -> "Drawing":
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
    while width_of(shown) > width and len(text) > 2:
        middle = len(text) // 2
        text = text[:middle] + text[middle + 1 :]
        shown = f"{text[:middle]}…{text[middle:]}"
    return shown


# -- SVG -------------------------------------------------------------------------------------------


def svg(drawing: Drawing, em: float, *, is_file: bool = False) -> str:
    """Return the SVG. em: the size of the type, in points; in pixels on a page."""
    size = [drawing.width * em, drawing.height * em]
    width, height = map(_number, size)
    about = 'aria-hidden="true"'  # if it has no title: figures beside it say the same
    if drawing.title:
        about = f'role="group" aria-label="{escape(drawing.title)}"'
    if is_file:
        about += f' width="{width}pt" height="{height}pt"'
    shapes = "".join(_shape(item, em) for item in drawing.items)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {about} '
        f'font-size="{em:g}" font-family="system-ui, Liberation Sans, DejaVu Sans, sans-serif">'
        f"{shapes}</svg>"
    )


def _shape(item: Item, em: float) -> str:
    """Return the element of an item."""
    match item:
        case Line([] | [_]) | Dots([]) | Text(text=""):
            return ""
        case Line(points, color, width):
            return f'<path d="M{_places(points, em, "L")}" {_stroke(color, width * em)}/>'
        case Dots(points, color, size):
            places = _places(points, em, "h0M")
            return f'<path d="M{places}h0" {_stroke(color, size * em)} stroke-linecap="round"/>'
        case Text(x, y, text, color, anchor, weight):
            return (
                f'<text x="{_number(x * em)}" y="{_number(y * em)}" fill="{COLORS[color]}" '
                f'text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
            )
        case Name(x, y, text, words):
            mark = _shape(Dots([(x, y)], "ink", 1.4), em)
            shown = _shape(Text(x + 1, y - 0.8, text, weight=700), em)
            return (
                f'<g class="one" tabindex="0" role="img" aria-label="{escape(words)}">'
                f"<title>{escape(words)}</title>{mark}{shown}</g>"
            )


def _places(points: Iterable[Point], em: float, between: str) -> str:
    return between.join(f"{_number(x * em)} {_number(y * em)}" for x, y in points)


def _stroke(color: str, width: float) -> str:
    return f'fill="none" stroke="{COLORS[color]}" stroke-width="{_number(width)}"'


def _number(length: float) -> str:
    return f"{length:.1f}".removesuffix(".0")
