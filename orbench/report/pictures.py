"""Which pictures there are: of what each kind is drawn, how, and what is said without it."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import matplotlib as mpl
import pandas as pd  # type: ignore[import-untyped]

from orbench.columns import MACRO, SIDES
from orbench.report.by_category import bars, heatmap, radar
from orbench.report.figures import Drawn, Picture, short_name, use_style
from orbench.report.results import by_category, measured
from orbench.report.scatter import both_sides, scatter
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
    own = measured(results)
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
    if len(both_sides(results)):
        yield Subject("", "Over-refusal and toxic rejection", results)


def _each_side(results: pd.DataFrame) -> Iterator[Subject]:
    for side in SIDES.values():
        rows = _with_categories(results[results["side"] == side.name])
        if len(rows):
            yield Subject(side.name, f"{side.rate.capitalize()} by category", rows)


def _each_model(title: str, fewest: int) -> Subjects:
    """A subject per model that has at least so many categories."""

    def subjects(results: pd.DataFrame) -> Iterator[Subject]:
        for model, name in _file_names(results["model"].unique()).items():
            rows = _with_categories(results[results["model"] == model])
            if by_category(rows)["category"].nunique() >= fewest:
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
    PictureKind("bars", _each_model("{} by category", 1), bars),
    PictureKind("radar", _each_model("{}: radar", 3), radar),
)
