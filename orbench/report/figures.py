"""What the pictures share: size, style, fonts, and how a picture becomes a file.

Sizes and fonts fit a two-column paper: FULL inches is the width of both columns, COLUMN of one.
Model and category names are drawn as they are, never as formulas.
"""

import io
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from orbench.table import write_bytes

FULL, COLUMN = 6.9, 3.4  # inches
LONGEST_NAME = 32  # characters
FONT = "DejaVu Sans"  # comes with matplotlib
# For what it lacks, those of these that are installed: Chinese, Japanese, Korean, emoji, symbols.
# (No Noto Color Emoji: matplotlib cannot draw its bitmaps.)
# fmt: off
FALLBACKS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR",
    "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback",
    "Arial Unicode MS", "PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo",  # macOS
    "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "IPAGothic", "NanumGothic",  # Windows
    "Noto Emoji", "Symbola", "Segoe UI Emoji", "Unifont", "STIXGeneral",  # symbols
)
# fmt: on
STYLE: dict[Any, Any] = {
    "font.size": 7.5,
    "axes.labelsize": 8,
    "axes.titlesize": 8.5,
    "figure.titlesize": 8.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a model may be called a$b$c
    "pdf.fonttype": 42,  # publishers refuse Type 3 fonts
    "svg.fonttype": "path",  # looks the same everywhere
    "svg.hashsalt": "orbench",  # the same input gives the same file
    "savefig.dpi": 300,
}
METADATA: dict[str, dict[str, None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
MEASURES_NOTHING = "scripted: measures nothing"
PARTIAL = "partial results"
NO_RANKING = "models measured on different prompts: no ranking"


class Drawn(NamedTuple):
    """A figure, and the models for whose names there was no room in it."""

    figure: Figure
    unnamed: Sequence[str] = ()


class Picture(NamedTuple):
    """What is drawn, under the name of its file (without the ending)."""

    name: str
    title: str
    drawn: Drawn


def use_style(names: str) -> str:
    """Draw in STYLE, in fonts that have the characters of these names. Returns those that no
    installed font has.
    """
    fonts, lacking = fonts_for(names)
    mpl.rcParams.update(STYLE | {"font.family": fonts})
    warnings.filterwarnings("ignore", "Glyph .* missing from")  # the user is told once
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # its notes on subsetting help nobody
    return lacking


def fonts_for(text: str) -> tuple[list[str], str]:
    """The fonts that draw a text, best first; and its characters that no installed one has."""
    fonts, lacking = [FONT], set(text) - _glyphs(FONT)
    installed = set(font_manager.get_font_names())
    for font in FALLBACKS:
        if font in installed and (drawn := lacking & _glyphs(font)):
            fonts.append(font)
            lacking -= drawn
    return fonts, "".join(sorted(lacking))


def _glyphs(font: str) -> set[str]:
    return set(map(chr, font_manager.get_font(font_manager.findfont(font)).get_charmap()))


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches; without pyplot, so that nothing keeps it in memory."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def short_name(name: str) -> str:
    """A name of a model or category for a picture, cut in the middle where very long."""
    return name if len(name) <= LONGEST_NAME else f"{name[:14]}…{name[-17:]}"


def save(picture: Picture, folder: Path, kind: str) -> None:
    """Write `<name>.<kind>` atomically. Raises OSError."""
    write_bytes(folder / f"{picture.name}.{kind}", rendered(picture, kind))


def rendered(picture: Picture, kind: str) -> bytes:
    """The picture as a PNG, SVG or PDF file."""
    file = io.BytesIO()
    picture.drawn.figure.savefig(file, format=kind, metadata=METADATA[kind])
    return file.getvalue()
