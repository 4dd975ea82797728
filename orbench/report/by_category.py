"""Heat maps, bars and radars: rates by category.

Each takes rows of the results table. Every rate is of refused prompts: a good model is low in
over-refusal and high in toxic rejection.
"""

from collections.abc import Sequence
from math import pi
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from matplotlib.axes import Axes

from orbench.clustered import FEW_PROMPTS
from orbench.columns import MACRO, OVERALL, SIDES
from orbench.models import BLACK, BLUE, ORANGE
from orbench.report.figures import (
    COLUMN,
    FULL,
    MEASURES_NOTHING,
    NO_RANKING,
    PARTIAL,
    Drawn,
    new_figure,
    short_name,
)
from orbench.report.results import by_category, same_prompts

COLOUR = {"over_refusal": ORANGE, "toxic": BLUE}
LABEL = {"over_refusal": "over-refusal", "toxic": "toxic rejection"}
MOST_BARS, MOST_AROUND = 60, 10  # categories
FEW_BARS = 12  # with more, their names stand steeper
WHITE_FROM = 72  # per cent; on the blue from there on, white has more contrast than black (WCAG 2)


def heatmap(results: pd.DataFrame) -> Drawn:
    """Models x categories, with the overall rate in the last column. results: of one side."""
    side = SIDES[results["side"].iloc[0]]
    table = _wide(results, "rate_percent")
    columns = [*sorted(table.columns.drop(OVERALL)), OVERALL]
    shares, prompts = table[columns], _wide(results, "prompts")[columns].fillna(0)
    figure = new_figure(FULL, 1.35 + 0.27 * len(shares))
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for (i, j), share in np.ndenumerate(shares):
        few = "†" if prompts.iat[i, j] < FEW_PROMPTS else ""
        text = "–" if np.isnan(share) else f"{share:.1f}{few}"
        colour = "white" if share >= WHITE_FROM else BLACK
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
    _tilted(axes, np.arange(len(columns)), list(map(short_name, columns)), 30)
    axes.set_yticks(range(len(shares)), list(map(short_name, shares.index)))
    axes.axvline(len(columns) - 1.5, color="white", linewidth=2)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=12)
    bar.set_label(f"{side.rate} (%)")
    bar.outline.set_visible(False)
    axes.set_title(_title(f"{side.rate.capitalize()} (% of {side.prompts})", results), loc="left")
    return Drawn(figure)


def bars(results: pd.DataFrame) -> Drawn:
    """One model: over-refusal and toxic rejection by category, with intervals."""
    sides = _seen(results, [OVERALL, *_categories(results)])
    names = _counted(results)
    figure = new_figure(FULL, 2.6)
    axes = figure.subplots()
    width, at = 0.8 / len(sides), np.arange(len(names))
    for k, (side, seen) in enumerate(sides.items()):
        places = at + (k - (len(sides) - 1) / 2) * width
        height = seen["rate"]
        label = f"{LABEL[side]} (n = {seen.loc[OVERALL, 'n']:,.0f})"
        axes.bar(places, height, width * 0.94, color=COLOUR[side], label=label)
        axes.errorbar(
            places,
            height,
            yerr=np.clip([height - seen["low"], seen["high"] - height], 0, None),  # rounding
            fmt="none",
            ecolor=BLACK,
            elinewidth=0.7,
            capsize=1.8,
            clip_on=False,  # the cap of an interval that ends at 100 %
        )
    _tilted(axes, at, names, 25 if len(names) <= FEW_BARS else 60)
    axes.axvline(0.5, color=BLACK, linewidth=0.4)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, 100)
    axes.set_ylabel("refused (% of the prompts)")
    axes.grid(axis="y", linewidth=0.3, color="#DDDDDD")
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1.01), ncols=2, frameon=False)
    axes.set_title(_title(short_name(results["model"].iloc[0]), results), loc="left")
    return Drawn(figure)


def radar(results: pd.DataFrame) -> Drawn:
    """One model: over-refusal and toxic rejection by category, around a circle."""
    names = _categories(results)
    angles = np.arange(len(names)) / len(names) * 2 * pi
    longest = max(map(len, _marked(results)))
    figure = new_figure(min(FULL, COLUMN + 0.11 * max(0, longest - 12)), COLUMN)
    axes: Any = figure.add_subplot(projection="polar")
    axes.set_theta_offset(pi / 2)
    axes.set_theta_direction(-1)
    for side, seen in _seen(results, names).items():
        shares = seen["rate"].to_numpy()
        axes.plot(
            np.append(angles, angles[0]),
            np.append(shares, shares[0]),
            "-" if side == "over_refusal" else "--",
            color=COLOUR[side],
            linewidth=1.3,
            marker="o",
            markersize=2.5,
            label=LABEL[side],
        )
        if not np.isnan(shares).any():
            axes.fill(angles, shares, color=COLOUR[side], alpha=0.15)
    _set_up_circle(axes, angles, _marked(results))
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    # Over the figure: the circle stands off its middle where names are long on one side.
    figure.suptitle(_title(short_name(results["model"].iloc[0]), results))
    return Drawn(figure)


def _set_up_circle(axes: Any, angles: Any, names: Sequence[str]) -> None:
    axes.set_xticks(angles, names)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        across = np.sin(angle)
        label.set_ha("center" if abs(across) < 0.1 else "left" if across > 0 else "right")
    axes.tick_params(axis="x", pad=1)
    axes.set_ylim(0, 100)
    axes.set_yticks(
        [20, 40, 60, 80, 100], ["20", "40", "60", "80", "100 % refused"], color="#666666"
    )
    axes.set_rlabel_position(180 / len(names))
    axes.grid(linewidth=0.4, color="#CCCCCC")
    axes.spines["polar"].set_linewidth(0.4)


def _tilted(axes: Axes, at: Any, names: Sequence[str], degrees: float) -> None:
    axes.set_xticks(at, names, rotation=degrees, ha="right", rotation_mode="anchor")


def _wide(results: pd.DataFrame, column: str) -> pd.DataFrame:
    """Models x categories and OVERALL, models in the order of the results."""
    rows = results[results["category"] != MACRO]
    table = rows.pivot(index="model", columns="category", values=column)
    return table.loc[rows["model"].unique()].astype(float)


def _categories(results: pd.DataFrame) -> list[str]:
    return sorted(set(by_category(results)["category"]))


def _seen(results: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Side -> rate, low and high as they are drawn, in percent, and n, a row per category."""
    seen = {}
    for side, rows in results.groupby("side"):
        rates = rows.set_index("category")[["rate_percent", "low_percent", "high_percent", "n"]]
        seen[str(side)] = rates.reindex(names).set_axis(["rate", "low", "high", "n"], axis=1)
    return seen


def _counted(results: pd.DataFrame) -> list[str]:
    """OVERALL and the categories, with n on each side: `privacy (295, 66)`."""
    names = [OVERALL, *_categories(results)]
    counts = [seen["n"].fillna(0) for seen in _seen(results, names).values()]
    n = [", ".join(f"{of_side[name]:,.0f}" for of_side in counts) for name in names]
    return [f"{name} ({of})" for name, of in zip([OVERALL, *_marked(results)], n, strict=True)]


def _marked(results: pd.DataFrame) -> list[str]:
    """The categories' names, those with few prompts marked."""
    few = _few(results).any()
    return [short_name(name) + (" †" if few[name] else "") for name in _categories(results)]


def _few(results: pd.DataFrame) -> pd.DataFrame:
    """(side, model) x category -> whether it has few prompts with a verdict, or none with one."""
    rows = by_category(results)
    prompts = rows.pivot(index=["side", "model"], columns="category", values="prompts")
    return prompts < FEW_PROMPTS


def _title(title: str, results: pd.DataFrame) -> str:
    """A title with what a reader has to know below it."""
    lines = [title]
    few = _few(results).any(axis=1)
    if few.any():
        sides = few[few].index.unique("side")
        kinds = " or ".join(SIDES[side].prompts.split()[0] for side in sides)
        lines.append(f"† fewer than {FEW_PROMPTS} {kinds} prompts")
    if results["scripted"].any():
        lines.append(MEASURES_NOTHING)
    if results["partial"].any():
        lines.append(PARTIAL)
    if results["model"].nunique() > 1 and not same_prompts(results):
        lines.append(NO_RANKING)
    return "\n".join(lines)
