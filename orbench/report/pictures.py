"""Which pictures there are: of what each kind is drawn, how, and what is said without it."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import matplotlib as mpl
import pandas as pd  # type: ignore[import-untyped]

from orbench.columns import MACRO, SIDES
from orbench.report.by_category import MOST_AROUND, MOST_BARS, bars, heatmap, radar
from orbench.report.figures import Drawn, Picture, short_name, use_style
from orbench.report.results import by_category, by_setting, measured, paired
from orbench.report.scatter import both_sides, not_drawn, scatter
from orbench.table import file_name_part


class Subject(NamedTuple):
    """The results of which one picture is drawn."""

    name: str  # of its file, behind the kind's; empty for all
    title: str
    results: pd.DataFrame


Subjects = Callable[[pd.DataFrame], Iterator[Subject]]


class PictureKind(NamedTuple):
    """A kind of picture."""

    name: str
    subjects: Subjects  # of the results
    draw: Callable[[pd.DataFrame], Drawn]
    without: str = ""  # what is said where there is no subject


def pictures(results: pd.DataFrame, tell: Callable[[str], None]) -> Iterator[Picture]:
    """Every picture there is something to draw for, one after the other. tell: takes a line on
    what cannot be drawn and why.
    """
    own, whole = measured(results), paired(results)
    if len(both_sides(whole)) and (one_sided := not_drawn(measured(whole))):
        tell(f"not in the scatter, measured on one side only: {', '.join(one_sided)}")
    lacking = use_style("".join([*own["model"], *own["category"]]))
    for kind in PICTURES:
        subjects = list(kind.subjects(results))
        for subject in subjects:
            name = "_".join(filter(None, [kind.name, subject.name]))
            yield Picture(name, subject.title, kind.draw(subject.results))
        if not subjects and kind.without and len(own):
            tell(kind.without)
    if lacking:
        tell(
            f"no installed font has {short_name(lacking)}: drawn as boxes; install one (Noto Sans "
            f"CJK, Symbola, ...) and remove matplotlib's list of fonts in {mpl.get_cachedir()}"
        )


def _everything(results: pd.DataFrame) -> Iterator[Subject]:
    own = paired(measured(results))
    published = results.drop(measured(results).index)
    for part, rows in by_setting(own) or [("", own)]:
        shown = pd.concat([_plain(rows), published]) if len(published) else _plain(rows)
        if len(both_sides(shown)):
            yield _subject("", "Over-refusal and toxic rejection", part, shown)


def _each_side(results: pd.DataFrame) -> Iterator[Subject]:
    for side in SIDES.values():
        for part, rows in by_setting(_with_categories(results[results["side"] == side.name])):
            yield _subject(side.name, f"{side.rate.capitalize()} by category", part, _plain(rows))


def _subject(name: str, title: str, part: str, results: pd.DataFrame) -> Subject:
    """part: which of the results these are, in words; empty: all."""
    names = filter(None, (name, part and file_name_part(part)))
    return Subject("_".join(names), ": ".join(filter(None, (title, part))), results)


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    """The models by their own names, as far as these tell them apart."""
    names = rows.drop_duplicates("model")["tested"]
    return rows.assign(model=rows["tested"]) if names.is_unique else rows


def _each_model(title: str, fewest: int, most: int) -> Subjects:
    """A subject per model with as many categories on each of its sides."""

    def subjects(results: pd.DataFrame) -> Iterator[Subject]:
        own = _with_categories(paired(measured(results)))
        for model, name in _file_names(own["model"].unique()).items():
            rows = own[own["model"] == model]
            sides = by_category(rows).groupby("category").size()
            if fewest <= (sides == rows["side"].nunique()).sum() and len(sides) <= most:
                yield Subject(name, title.format(model), rows)

    return subjects


def _with_categories(results: pd.DataFrame) -> pd.DataFrame:
    """The rows of the models and sides that have rates by category."""
    own = measured(results)
    pairs = own.loc[own["category"] == MACRO, ["model", "side"]]
    return own.merge(pairs, on=["model", "side"])


def _file_names(models: Iterable[str]) -> dict[str, str]:
    """model -> its part of a file name, different for different models in any letter case."""
    names: dict[str, str] = {}
    for model in models:
        base = name = file_name_part(model)
        number = 2
        while name.lower() in {taken.lower() for taken in names.values()}:
            name, number = f"{base}_{number}", number + 1
        names[model] = name
    return names


PICTURES = (
    PictureKind(
        "scatter",
        _everything,
        scatter,
        "no scatter: it needs a model with results on both sides",
    ),
    PictureKind(
        "heatmap",
        _each_side,
        heatmap,
        "no picture by category: the results have no column 'category'",
    ),
    PictureKind("bars", _each_model("{} by category", 0, MOST_BARS), bars),
    PictureKind("radar", _each_model("{}: radar", 3, MOST_AROUND), radar),
)
