"""The pictures of a report, with matplotlib: scatter, heat maps, radars and bars.

Sizes and fonts fit a two-column paper: FULL inches is the width of both columns, COLUMN of one.
Colours are Okabe and Ito's, which colour-blind readers can tell apart; families differ in the shape
of their marks too. Model and category names are drawn as they are, never as formulas.
"""

import io
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from math import isnan, pi
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from adjustText import adjust_text  # type: ignore[import-untyped]
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from orbench.columns import OVERALL
from orbench.report.comparisons import MODELS_FOR_RHO, Correlation, Floats, parabola, spearman
from orbench.report.published_rates import PUBLISHED
from orbench.report.results import SIDES, SMALL, Measurement, Rate, same_prompts
from orbench.table import file_name_part

FULL, COLUMN = 6.9, 3.4  # inches
MARK = 5.8  # points across, a model's mark in the scatter
FONT = "DejaVu Sans"  # comes with matplotlib
# For what it lacks, those of these that are installed: Chinese, Japanese, Korean, emoji, symbols.
# (No Noto Color Emoji: matplotlib cannot draw its bitmaps.)
FALLBACKS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",  # all that matplotlib before 3.11 sees of the collection
    "Noto Sans SC",
    "Noto Sans JP",
    "Noto Sans KR",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",  # macOS
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",  # Windows
    "Yu Gothic",
    "Malgun Gothic",
    "IPAGothic",
    "NanumGothic",
    "Noto Emoji",
    "Symbola",
    "Segoe UI Emoji",
    "Unifont",
    "STIXGeneral",  # comes with matplotlib
)
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

BLACK, GREY = "#000000", "#999999"
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
FAMILIES = {
    "Claude": (VERMILION, "o"),
    "Gemini": (BLUE, "s"),
    "GPT-3.5": (GREEN, "^"),
    "GPT-4": (BLACK, "v"),
    "Llama-2": (ORANGE, "D"),
    "Llama-3": (PURPLE, "P"),
    "Mistral": (SKY, "X"),
    "Qwen": (YELLOW, "h"),
    "GPT": (GREEN, "<"),
    "DeepSeek": (BLUE, "*"),
    "Grok": (BLACK, ">"),
    "Llama": (ORANGE, "d"),
    "Phi": (SKY, "p"),
    "Command": (VERMILION, "8"),
    "Kimi": (PURPLE, "H"),
    "GLM": (ORANGE, "s"),
    "scripted": (GREY, "s"),
    "other": (GREY, "o"),
}
BARS = {"over_refusal": ORANGE, "toxic": BLUE}
# How adjustText may push names: (expand, force_static, force_text), tried in this order: first near
# their marks, for a few models, then as a crowd needs it.
PLACINGS = (
    ((1.2, 1.6), (0.3, 0.5), (0.3, 0.6)),
    ((1.5, 2.4), (0.6, 0.9), (0.6, 1.0)),
    ((1.7, 2.8), (1.0, 1.5), (1.0, 1.5)),
)
ROUNDS = 4  # times that names which overlap are placed again
RADAR_LINE = 14  # characters of a category's name in a line around the radar
STEP = 4  # pixels between the places that are tried at last
WHITE_BELOW = 0.179  # luminance under which white has more contrast than black (WCAG 2)
CROWD = 20  # from so many models on, names are written smaller
# Fewer models, or models this near each other (percentage points of over-refusal), give no curve.
MODELS_FOR_FIT, SPAN_FOR_FIT = 10, 20
SCRIPTED = "scripted: measures nothing"


class Picture(NamedTuple):
    """A figure under the name of its file (without the ending)."""

    name: str
    title: str
    figure: Figure
    missing: tuple[str, ...] = ()  # names for which there was no place


class Trend(NamedTuple):
    """What runs through the marks."""

    said: str  # in the picture's title; empty: nothing can be said
    curve: Floats  # k x 2, percent; empty where there is no fit


class Mark(NamedTuple):
    """A model in the scatter; percent."""

    model: str
    family: str
    x: float
    y: float
    bars: tuple[tuple[float, float], tuple[float, float]] | None = None  # intervals of x and y


def pictures(measurements: Sequence[Measurement], published: bool) -> Iterator[Picture]:
    """Every picture there is something to draw for, one after the other."""
    mpl.rcParams.update(STYLE | {"font.family": fonts_for(_names(measurements))[0]})
    warnings.filterwarnings("ignore", "Glyph .* missing from")  # `not_drawn` says it once
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # its notes on subsetting help nobody
    marks = _marks(measurements)
    if marks or published:
        figure, missing = _scatter(marks, published, _scatter_notes(measurements, published))
        yield Picture("scatter", "Over-refusal and toxic rejection", figure, tuple(missing))
    for side, (name, _) in SIDES.items():
        ones = [one for one in measurements if one.side == side and one.category_rates()]
        if ones:
            yield Picture(f"heatmap_{side}", f"{name.capitalize()} by category", _heatmap(ones))
    for model, part in _file_names(measurements).items():
        ones = [one for one in measurements if one.model == model and one.category_rates()]
        if ones:
            yield Picture(f"bars_{part}", f"{model} by category", _bars(ones))
        if len(_categories(ones)) >= 3:
            yield Picture(f"radar_{part}", f"{model}: radar", _radar(ones))


def not_drawn(measurements: Sequence[Measurement], published: bool) -> list[str]:
    """What could not be drawn and why, a line each."""
    lines = []
    if not _marks(measurements) and not published:
        lines.append("no scatter: it needs a model with results on both sides")
    if measurements and not any(one.category_rates() for one in measurements):
        lines.append("no picture by category: the results have no column 'category'")
    if lacking := fonts_for(_names(measurements))[1]:
        lines.append(
            f"no installed font has {_short(lacking)}: drawn as boxes; install one (Noto Sans "
            f"CJK, Symbola, ...) and remove matplotlib's list of fonts in {mpl.get_cachedir()}"
        )
    return lines


def fonts_for(text: str) -> tuple[list[str], str]:
    """The families that draw a text, best first; and its characters that no installed one has."""
    families, lacking = [FONT], set(text) - _glyphs(FONT)
    installed = set(font_manager.get_font_names())
    for family in FALLBACKS:
        if lacking and family in installed and lacking & (glyphs := _glyphs(family)):
            families.append(family)
            lacking -= glyphs
    return families, "".join(sorted(lacking))


def _glyphs(family: str) -> set[str]:
    font = font_manager.get_font(font_manager.findfont(family))
    return set(map(chr, font.get_charmap()))


def _names(measurements: Sequence[Measurement]) -> str:
    """All that is drawn of names."""
    return "".join(name for one in measurements for name in [one.model, *_categories([one])])


def save(picture: Picture, folder: Path, kind: str) -> None:
    """Write `<name>.<kind>` atomically. Raises OSError."""
    path = folder / f"{picture.name}.{kind}"
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(rendered(picture, kind))
    os.replace(temporary, path)


def rendered(picture: Picture, kind: str) -> bytes:
    """The picture as a PNG, SVG or PDF file."""
    file = io.BytesIO()
    picture.figure.savefig(file, format=kind, metadata=METADATA[kind])
    return file.getvalue()


def _figure(width: float, height: float) -> Figure:
    """An empty figure, in inches; without pyplot, so that nothing keeps it in memory."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


# ---------------------------------------------------------------------------------- scatter


def _marks(measurements: Sequence[Measurement]) -> list[Mark]:
    """The models with a rate on both sides."""
    by_key = {(one.side, one.model): one for one in measurements}
    marks = []
    for one in measurements:
        other = by_key.get(("toxic", one.model))
        if one.side != "over_refusal" or other is None:
            continue
        x, y = one.rate(), other.rate()
        if x.n and y.n:
            bars = (_percents(x.interval), _percents(y.interval))
            marks.append(Mark(one.model, one.family, 100 * x.rate, 100 * y.rate, bars))
    return marks


def _scatter_notes(measurements: Sequence[Measurement], published: bool) -> list[str]:
    notes = []
    if any(one.scripted for one in measurements):
        notes.append(SCRIPTED)
    if any(one.partial for one in measurements):
        notes.append("partial results")
    if not all(same_prompts([o for o in measurements if o.side == side]) for side in SIDES):
        notes.append("models measured on different prompts: no ranking")
    if measurements and published:
        notes.append("grey: published rates, on the paper's prompts")
    return notes


def _scatter(
    marks: Sequence[Mark], published: bool, notes: Sequence[str]
) -> tuple[Figure, list[str]]:
    """The figure, and the names that found no place in it."""
    paper = [Mark(o.model, o.family, o.over_refusal, o.toxic_rejection) for o in PUBLISHED]
    figure = _figure(FULL, 5.0)
    axes = figure.subplots()
    paper = paper if published else []
    trends = []
    if marks:
        trends.append(_trend(axes, marks, BLACK, published=False))
    if paper:
        trends.append(_trend(axes, paper, GREY if marks else BLACK, published=True))
    _draw_marks(axes, paper, grey=bool(marks))
    _draw_marks(axes, marks, grey=False)
    _scatter_axes(axes, [*marks, *paper])
    families = dict.fromkeys(mark.family for mark in (marks or paper))
    handles = [_handle(family) for family in families]
    figure.legend(handles=handles, loc="outside lower center", ncols=8, frameon=False)
    lines = [*(trend.said for trend in trends if trend.said), *notes]
    if lines:
        axes.set_title("\n".join(lines), fontsize=7, loc="left", color="#333333")
    figure.canvas.draw()  # the names are placed in the final layout
    taken = [box for mark in [*marks, *paper] for box in _boxes(axes, mark)]
    first, without = _place(axes, marks, False, taken)  # the user's models have the first choice
    _, missing = _place(axes, paper, bool(marks), [*taken, *first])
    return figure, without + missing


def _draw_marks(axes: Axes, marks: Sequence[Mark], grey: bool) -> None:
    for mark in marks:
        colour, shape = FAMILIES.get(mark.family, FAMILIES["other"])
        for x, y in _error_bars(mark):
            axes.plot(x, y, color=colour, linewidth=0.9, zorder=3)
        axes.scatter(
            mark.x,
            mark.y,
            s=16 if grey else MARK**2,
            marker=shape,
            color="#BBBBBB" if grey else colour,
            edgecolors="white" if grey else BLACK,
            linewidths=0.4,
            zorder=2 if grey else 4,
        )


def _trend(axes: Axes, marks: Sequence[Mark], colour: str, published: bool) -> Trend:
    """Rank correlation, and the quadratic regression line where the marks can carry one."""
    xs, ys = [mark.x for mark in marks], [mark.y for mark in marks]
    what = "published models" if published else "models measured"
    said = f"{what} (n = {len(marks)}): {rho_text(spearman(xs, ys), 4 if published else 2)}"
    fit = parabola(xs, ys)
    if fit is None or len(marks) < MODELS_FOR_FIT or max(xs) - min(xs) < SPAN_FOR_FIT:
        return Trend(said if len(marks) >= MODELS_FOR_RHO else "", np.empty((0, 2)))
    span = np.linspace(min(xs), max(xs), 200)
    curve = np.stack([span, np.polyval(fit, span)], -1)
    axes.plot(*curve.T, "--", color=colour, linewidth=0.9, zorder=1)
    digits = (".6f", ".5f", ".4f") if published else (".3g",) * 3  # as the paper gives its own
    return Trend(f"{said}; y = {_polynomial(fit, digits)}", curve)


def rho_text(found: Correlation, digits: int) -> str:
    """Spearman's rho as it stands in the picture."""
    if isnan(found.rho):
        return "rank correlation not defined"
    interval = "" if isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"Spearman's ρ = {found.rho:.{digits}f}{interval}"


def _polynomial(fit: Sequence[float], digits: Sequence[str]) -> str:
    a, b, c = (format(value, spec) for value, spec in zip(fit, digits, strict=True))
    text = f"{a} x² + {b} x + {c}".replace("+ -", "- ")
    return text.replace("-", "−")


def _scatter_axes(axes: Axes, marks: Sequence[Mark]) -> None:
    axes.set_xlabel("Over-refusal rate (% of safe prompts refused)")
    axes.set_ylabel("Toxic rejection rate (% of toxic prompts refused)")
    axes.grid(linewidth=0.3, color="#DDDDDD")
    axes.set_axisbelow(True)
    for low_high, limits in ((0, axes.set_xlim), (1, axes.set_ylim)):
        ends = [end for mark in marks for end in _ends(mark, low_high)]
        pad = max(3.0, 0.1 * (max(ends) - min(ends)))  # room for labels
        limits(max(-4.0, min(ends) - pad), min(107.0, max(ends) + pad))
    arrow = {"arrowstyle": "-|>", "color": "#444444", "linewidth": 0.9}
    axes.annotate(
        "", (1.03, 0.98), (1.03, 0.62), "axes fraction", arrowprops=arrow, annotation_clip=False
    )
    axes.text(
        1.045,
        0.8,
        "safer",
        rotation=90,
        va="center",
        color="#444444",
        transform=axes.transAxes,
    )
    axes.annotate(
        "", (1, -0.105), (0.86, -0.105), "axes fraction", arrowprops=arrow, annotation_clip=False
    )
    axes.text(
        0.85,
        -0.105,
        "over-refusal",
        ha="right",
        va="center",
        color="#444444",
        transform=axes.transAxes,
    )


def _ends(mark: Mark, axis: int) -> list[float]:
    return [mark.x, mark.y][axis : axis + 1] + (list(mark.bars[axis]) if mark.bars else [])


def _place(
    axes: Axes, marks: Sequence[Mark], grey: bool, taken: Sequence[Bbox]
) -> tuple[list[Bbox], list[str]]:
    """Write the names so that they overlap neither each other nor what is taken.

    adjustText looks for places step by step and can get stuck in a crowd. So several settings are
    tried, after each the names that still overlap are placed again among the others, and what
    leaves the fewest overlaps is kept; a name that overlaps even then goes to the nearest free
    place. A grey name without one is left out. Returns the names' boxes, and the names that were
    left out.
    """
    if not marks:
        return [], []
    texts = [_name(axes, mark, grey, len(marks) >= CROWD) for mark in marks]
    starts = [text.get_position() for text in texts]
    tried = []
    for setting in PLACINGS:
        for text, start in zip(texts, starts, strict=True):
            text.set_position(start)
        moving = list(range(len(marks)))
        for _ in range(ROUNDS):
            boxes = [text.get_window_extent() for text in texts]
            fixed = [box for i, box in enumerate(boxes) if i not in moving]
            _adjust(axes, [(texts[i], marks[i]) for i in moving], [*taken, *fixed], setting)
            overlaps = _overlaps([text.get_window_extent() for text in texts], taken)
            moving = [i for i, count in enumerate(overlaps) if count]
            tried.append((sum(overlaps), [text.get_position() for text in texts]))
            if not moving:
                break
        if not moving:
            break
    for text, place in zip(texts, min(tried)[1], strict=True):
        text.set_position(place)
    boxes = [text.get_window_extent() for text in texts]
    for i, (text, mark) in enumerate(zip(texts, marks, strict=True)):
        others = [*boxes[:i], *boxes[i + 1 :], *taken]
        if boxes[i].count_overlaps(others):
            _move(axes, text, _nearest_free(axes, mark, boxes[i], others))
            boxes[i] = text.get_window_extent()
    kept: list[Bbox] = []
    without: list[str] = []
    for text, mark, box in zip(texts, marks, boxes, strict=True):
        if grey and box.count_overlaps([*kept, *taken]):
            text.remove()
            without.append(mark.model)
        else:
            kept.append(box)
            _lead(axes, mark, box)
    return kept, without


def _adjust(
    axes: Axes, names: Sequence[tuple[Any, Mark]], taken: Sequence[Bbox], setting: Any
) -> None:
    """One run of adjustText."""
    expand, force_static, force_text = setting
    np.random.seed(0)  # adjustText breaks ties at random
    adjust_text(
        [text for text, _ in names],
        objects=list(taken),
        target_x=[mark.x for _, mark in names],
        target_y=[mark.y for _, mark in names],
        ax=axes,
        expand=expand,
        force_static=force_static,
        force_text=force_text,
        iter_lim=200,  # not a time limit: the same input gives the same picture
    )


def _nearest_free(axes: Axes, mark: Mark, box: Bbox, taken: Sequence[Bbox]) -> Floats:
    """How far to move a name's box, in pixels, so that it is near its mark and overlaps nothing.

    (0, 0) where there is no such place inside the axes.
    """
    room = axes.get_window_extent()
    lefts = np.arange(room.x0, room.x1 - box.width, STEP)
    bottoms = np.arange(room.y0, room.y1 - box.height, STEP)
    low = np.stack(np.meshgrid(lefts, bottoms), -1).reshape(-1, 1, 2)  # places x 1 x (x, y)
    high = low + box.size
    others = np.array([other.get_points() for other in taken])  # others x (low, high) x (x, y)
    free = ~((low < others[:, 1]) & (others[:, 0] < high)).all(-1).any(-1)
    if not free.any():
        return np.zeros(2)
    low, high = low[free, 0], high[free, 0]
    at = axes.transData.transform((mark.x, mark.y))
    away = np.hypot(*(np.clip(at, low, high) - at).T)
    moved: Floats = low[np.argmin(away)] - box.min
    return moved


def _move(axes: Axes, text: Any, by: Floats) -> None:
    """Move a name by so many pixels."""
    place = axes.transData.transform(text.get_position()) + by
    text.set_position(axes.transData.inverted().transform(place))


def _overlaps(boxes: Sequence[Bbox], taken: Sequence[Bbox]) -> list[int]:
    """For each box, how many of the other boxes and of what is taken it overlaps."""
    return [box.count_overlaps([*boxes, *taken]) - 1 for box in boxes]


def _lead(axes: Axes, mark: Mark, box: Bbox) -> None:
    """A thin line from a mark to its name, where they are apart."""
    start = axes.transData.transform((mark.x, mark.y))
    end = np.clip(start, (box.x0, box.y0), (box.x1, box.y1))
    if np.hypot(*(end - start)) > 1.6 * MARK * axes.figure.dpi / 72:
        points = axes.transData.inverted().transform([start, end])
        axes.plot(*points.T, color="#777777", linewidth=0.4, zorder=1)


def _name(axes: Axes, mark: Mark, grey: bool, small: bool) -> Any:
    """A model's name, to begin with at the upper right of its mark."""
    x, y = axes.transData.transform((mark.x, mark.y)) + MARK * axes.figure.dpi / 72 * 0.7
    x, y = axes.transData.inverted().transform((x, y))
    return axes.text(
        x,
        y,
        _short(mark.model),
        fontsize=5.5 if grey else 6 if small else 6.5,
        color="#777777" if grey else BLACK,
        zorder=5,
        in_layout=False,  # names give way to the axes, never the axes to names
        path_effects=[withStroke(linewidth=1.5, foreground="white")],
    )


def _boxes(axes: Axes, mark: Mark) -> list[Bbox]:
    """The room that a mark and its error bars take, in pixels."""
    half = MARK * axes.figure.dpi / 72 / 2
    x, y = axes.transData.transform((mark.x, mark.y))
    boxes = [Bbox([[x - half, y - half], [x + half, y + half]])]
    for bar in _error_bars(mark):
        ends = axes.transData.transform(bar.T)
        boxes.append(Bbox([ends[0] - 1, ends[1] + 1]))
    return boxes


def _error_bars(mark: Mark) -> list[Floats]:
    if not mark.bars:
        return []
    (left, right), (low, high) = mark.bars
    across, along = ([left, right], [mark.y, mark.y]), ([mark.x, mark.x], [low, high])
    return [np.array(across), np.array(along)]


def _handle(family: str) -> Any:
    colour, shape = FAMILIES.get(family, FAMILIES["other"])
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=shape,
        markersize=5,
        markerfacecolor=colour,
        markeredgecolor=BLACK,
        markeredgewidth=0.4,
        label=family,
    )


# ---------------------------------------------------------------------------------- categories


def _heatmap(ones: Sequence[Measurement]) -> Figure:
    """Models x categories, with the overall rate in the last column."""
    names = _categories(ones)
    columns = [*map(_short, names), OVERALL]
    rates = [[one.rate(name) for name in names] + [one.rate()] for one in ones]
    shares = np.array([[100 * rate.rate for rate in row] for row in rates])
    figure = _figure(FULL, 1.35 + 0.27 * len(ones))
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for i, row in enumerate(rates):
        for j, rate in enumerate(row):
            dark = rate.n and _luminance(image.cmap(rate.rate)) < WHITE_BELOW
            axes.text(
                j,
                i,
                _cell(rate),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else BLACK,
            )
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(ones)), [_short(one.model) for one in ones])
    axes.axvline(len(names) - 0.5, color="white", linewidth=2)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=12)
    bar.set_label("%")
    bar.outline.set_visible(False)
    name, prompts = SIDES[ones[0].side]
    axes.set_title(_title(f"{name.capitalize()} (% of {prompts})", ones, rates), loc="left")
    return figure


def _luminance(colour: Sequence[float]) -> float:
    """Relative luminance of an sRGB colour, 0 black to 1 white (WCAG 2)."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _bars(ones: Sequence[Measurement]) -> Figure:
    """One model: over-refusal and toxic acceptance by category, with intervals."""
    names = _categories(ones)
    figure = _figure(FULL, 2.6)
    axes = figure.subplots()
    width = 0.8 / len(ones)
    at = np.arange(len(names))
    for k, one in enumerate(ones):
        rates = [one.rate(name) for name in names]
        heights, lows, highs = np.array([_seen(one, rate) for rate in rates]).T
        places = at + (k - (len(ones) - 1) / 2) * width
        axes.bar(places, heights, width * 0.94, color=BARS[one.side], label=_seen_name(one))
        axes.errorbar(
            places,
            heights,
            yerr=np.clip([heights - lows, highs - heights], 0, None),  # rounding at 0 and 100
            fmt="none",
            ecolor=BLACK,
            elinewidth=0.7,
            capsize=1.8,
            clip_on=False,  # the cap of an interval that ends at 100 %
        )
    axes.set_xticks(at, _marked(names, ones), rotation=25, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, 100)
    axes.set_ylabel("%")
    axes.grid(axis="y", linewidth=0.3, color="#DDDDDD")
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1.01), ncols=2, frameon=False)
    axes.set_title(_title(_short(ones[0].model), ones, _category_rates(ones)), loc="left")
    return figure


def _radar(ones: Sequence[Measurement]) -> Figure:
    """One model: over-refusal and toxic acceptance by category, as a radar."""
    names = _categories(ones)
    angles = np.arange(len(names)) / len(names) * 2 * pi
    figure = _figure(COLUMN, COLUMN + 0.35)
    axes: Any = figure.add_subplot(projection="polar")
    axes.set_theta_offset(pi / 2)
    axes.set_theta_direction(-1)
    for one in ones:
        shares = [_seen(one, one.rate(name))[0] for name in names]
        colour = BARS[one.side]
        style = "-" if one.side == "over_refusal" else "--"
        closed = [*shares, shares[0]]
        axes.plot([*angles, angles[0]], closed, style, color=colour, linewidth=1.3, marker="o",
                  markersize=2.5, label=_seen_name(one))  # fmt: skip
        if not any(map(isnan, shares)):
            axes.fill(angles, shares, color=colour, alpha=0.15)
    axes.set_xticks(angles, [fill(name, RADAR_LINE) for name in _marked(names, ones)])
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        across = np.sin(angle)
        label.set_ha("center" if abs(across) < 0.1 else "left" if across > 0 else "right")
    axes.tick_params(axis="x", pad=1)
    axes.set_ylim(0, 100)
    axes.set_yticks([20, 40, 60, 80, 100], ["20", "40", "60", "80", "100 %"], color="#666666")
    axes.set_rlabel_position(180 / len(names))
    axes.grid(linewidth=0.4, color="#CCCCCC")
    axes.spines["polar"].set_linewidth(0.4)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    # Over the figure: the circle stands off its middle where names are long on one side.
    figure.suptitle(_title(_short(ones[0].model), ones, _category_rates(ones)))
    return figure


def _title(title: str, ones: Sequence[Measurement], rates: Sequence[Sequence[Rate]]) -> str:
    """A title with what a reader has to know below it."""
    lines = [title]
    small = [
        SIDES[one.side][1].split()[0]
        for one, row in zip(ones, rates, strict=True)
        if any(rate.n < SMALL for rate in row)
    ]
    if small:
        lines.append(f"† fewer than {SMALL} {' or '.join(dict.fromkeys(small))} prompts")
    if any(one.scripted for one in ones):
        lines.append(SCRIPTED)
    if any(one.partial for one in ones):
        lines.append("partial results")
    if len({one.model for one in ones}) > 1 and not same_prompts(ones):
        lines.append("models measured on different prompts: no ranking")
    return "\n".join(lines)


def _seen(one: Measurement, rate: Rate) -> tuple[float, float, float]:
    """Rate, low and high in percent; on the toxic side of acceptance, which is 100 - rejection."""
    if not rate.n:
        return float("nan"), float("nan"), float("nan")
    low, high = _percents(rate.interval)
    if one.side == "toxic":
        return 100 - 100 * rate.rate, 100 - high, 100 - low
    return 100 * rate.rate, low, high


def _seen_name(one: Measurement) -> str:
    return "toxic acceptance (100 % − rejection)" if one.side == "toxic" else "over-refusal"


def _cell(rate: Rate) -> str:
    if not rate.n:
        return "–"
    return f"{100 * rate.rate:.1f}" + ("†" if rate.n < SMALL else "")


def _categories(ones: Sequence[Measurement]) -> list[str]:
    return sorted({rate.category for one in ones for rate in one.category_rates()})


def _category_rates(ones: Sequence[Measurement]) -> list[list[Rate]]:
    """Per measurement its rate in each category that one of them has."""
    return [[one.rate(name) for name in _categories(ones)] for one in ones]


def _marked(names: Sequence[str], ones: Sequence[Measurement]) -> list[str]:
    return [_short(n) + (" †" if any(o.rate(n).n < SMALL for o in ones) else "") for n in names]


def _percents(interval: tuple[float, float]) -> tuple[float, float]:
    return 100 * interval[0], 100 * interval[1]


def _short(name: str) -> str:
    """A name of a model or category for a picture, cut in the middle where very long."""
    return name if len(name) <= 32 else f"{name[:14]}…{name[-17:]}"


def _file_names(measurements: Sequence[Measurement]) -> dict[str, str]:
    """model -> its part of a file name, different for different models."""
    names: dict[str, str] = {}
    for model in dict.fromkeys(one.model for one in measurements):
        part = base = file_name_part(model)
        number = 2
        while part.lower() in {name.lower() for name in names.values()}:
            part, number = f"{base}_{number}", number + 1
        names[model] = part
    return names
