"""Drawings as files: SVG as on the page, PDF and PNG by matplotlib."""

from io import BytesIO
from math import nan
from pathlib import Path
from typing import Any
from warnings import catch_warnings, filterwarnings

import matplotlib as mpl
from fontTools import subset  # type: ignore[import-untyped]
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.lines import Line2D
from matplotlib.transforms import Affine2D

from orbench.report.pictures.drawing import COLORS, EM, Drawing

FONT = "DejaVu Sans"
BREAK = (nan, nan)  # between lines
STYLE: dict[Any, Any] = {
    "figure.dpi": 300,
    "font.family": FONT,
    "lines.solid_capstyle": "butt",  # an interval ends where its line does
    "pdf.fonttype": 42,  # publishers reject Type 3 fonts
    "text.parse_math": False,  # a model may be called a$b$c
}
ALIGNED = {"start": "left", "middle": "center", "end": "right"}


def write_font(path: Path, text: str) -> str:
    """Write a font with the letters of a text, and return those that it lacks. Each PDF embeds a
    part of its font; to cut that out of the whole one takes longer than all else.
    """
    whole = findfont(FONT)
    # Without FFTM, the time the font was made, and without what costs more than the letters: hints
    # for screens, and tables for scripts that join letters (those for pairs such as AV stay).
    dropped = "--drop-tables+=FFTM,GDEF,GPOS,GSUB"
    options = ["--notdef-outline", "--no-hinting", dropped, f"--output-file={path}"]
    subset.main([whole, *options, f"--text={text}"])
    known = get_font(whole)
    return "".join(sorted(letter for letter in {*text} if not known.get_char_index(ord(letter))))


def as_file(drawing: Drawing, kind: str, font: Path | None = None) -> bytes:
    """Return a drawing as svg, pdf or png; the same bytes in each run. font: a file."""
    if kind == "svg":
        return drawing.svg.encode()
    file = BytesIO()
    with mpl.rc_context(STYLE), catch_warnings():
        filterwarnings("ignore", "Glyph .* missing")  # write_font says which
        figure(drawing, font).savefig(file, format=kind, metadata={"CreationDate": None})
    return file.getvalue()


def figure(drawing: Drawing, font: Path | None = None) -> Figure:
    """Return a drawing as a figure."""
    made = Figure((drawing.width * EM / 72, drawing.height * EM / 72))
    in_ems = Affine2D().scale(1 / drawing.width, -1 / drawing.height).translate(0, 1)
    in_points = in_ems + made.transFigure
    for style, shapes in drawing.shapes.items():
        points = [point for shape in shapes for point in (*shape.points, BREAK)]
        x, y = zip(*points, strict=True)
        line = Line2D(x, y, lw=style.width * EM, color=COLORS[style.color], transform=in_points)
        if style.is_dots:
            line.set(ls="", marker="o", ms=style.width * EM, mew=0)
        made.add_artist(line)
    for text in drawing.texts:
        shown = made.text(text.x, text.y, text.text, size=EM, font=font, transform=in_points)
        shown.set(ha=ALIGNED[text.anchor], color=COLORS[text.color])
    return made
