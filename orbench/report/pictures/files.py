"""Drawings as files: SVG as on the page, PDF and PNG by matplotlib."""

from io import BytesIO
from typing import Any, Literal

import matplotlib as mpl
from matplotlib import text as mpl_text
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Affine2D

from orbench.report.pictures.drawing import (
    COLORS,
    Dots,
    Drawing,
    Item,
    Line,
    Text,
    svg,
)

EM = 8.0  # points, the size of the type
DATES = {"pdf": "CreationDate", "png": "Date"}  # as files name theirs
STYLE: dict[Any, Any] = {
    "figure.dpi": 300,
    "font.family": "DejaVu Sans",
    "lines.solid_capstyle": "butt",  # an interval ends where its line does
    "pdf.fonttype": 42,  # publishers reject Type 3 fonts
    "text.parse_math": False,  # a model may be called a$b$c
}
ALIGNED: dict[str, Literal["left", "center", "right"]] = {
    "start": "left",
    "middle": "center",
    "end": "right",
}


def as_file(drawing: Drawing, kind: str) -> bytes:
    """Return a drawing as svg, pdf or png; the same bytes in each run."""
    if kind == "svg":
        return svg(drawing, EM, is_file=True).encode()
    file = BytesIO()
    with mpl.rc_context(STYLE):
        figure(drawing).savefig(file, format=kind, metadata={DATES[kind]: None})
    return file.getvalue()


def figure(drawing: Drawing) -> Figure:
    """Return a drawing as a figure."""
    made = Figure((drawing.width * EM / 72, drawing.height * EM / 72))
    in_ems = Affine2D().scale(1 / drawing.width, -1 / drawing.height).translate(0, 1)
    for order, item in enumerate(drawing.items):
        artist = _artist(item)
        if artist:
            artist.set(transform=in_ems + made.transFigure, zorder=order)
            made.add_artist(artist)
    return made


def _artist(item: Item) -> Artist | None:
    """Return what draws an item; nothing of what only a page shows."""
    match item:
        case Line([_, _, *_] as points, color, width):
            x, y = zip(*points, strict=True)
            return Line2D(x, y, color=COLORS[color], linewidth=width * EM)
        case Dots([_, *_] as points, color, size):
            x, y = zip(*points, strict=True)
            return Line2D(x, y, color=COLORS[color], ls="", marker="o", ms=size * EM, mew=0)
        case Text(x, y, text, color, anchor, weight) if text:
            place = ALIGNED[anchor]
            return mpl_text.Text(
                x, y, text, color=COLORS[color], ha=place, fontsize=EM, fontweight=weight
            )
    return None
