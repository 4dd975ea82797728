"""The pictures of plot_results.py: each is drawn once, for the page and for files."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text as Words

from orbench.report.measures import Kind, Rate, Subset
from orbench.report.pictures.axis import Axis, axis_over
from orbench.report.pictures.drawing import (
    NARROW,
    WIDE,
    Drawing,
    Name,
    Shape,
    Text,
    fitted,
    width_of,
)
from orbench.report.pictures.every import GAP, Picture, pictures
from orbench.report.pictures.files import as_file, figure, write_font
from orbench.report.pictures.placement import Box, placed
from orbench.report.pictures.rows import Panel, rows
from orbench.report.published import published_models
from orbench.report.ranking import ranking
from orbench.report.rates import overall, rates
from orbench.report.standings import Report
from tests.conftest import Desk
from tests.contract.test_report import PLOT, judged
from tests.results import ANSWER, DIRECT, make_rate, measured, models, responses


def report_of(given: list[Rate], published: bool = False) -> Report:
    found = rates([one.result for one in given])
    board, compared = ranking(overall(found))
    others = published_models() if published else []
    return Report([one.result for one in given], found, compared, [], board, others, [])


def drawn(given: list[Rate], published: bool = False) -> dict[str, Picture]:
    """All pictures of these results by name."""
    return {one.name: one for one in pictures(report_of(given, published))}


def many(n: int) -> list[Rate]:
    """N models whose rates differ, with settings and long names among them."""
    parts = []
    for k in range(n):
        name = f"maker/{'a-model-with-a-long-name' if k % 5 == 2 else 'model-name'}-{k}"
        parts.append(f"{name} {(k * 7) % 50}/100 {100 - (k * 3) % 40}/100")
    return models(", ".join(parts))


def boxes_of(made: Any) -> list[Any]:
    """The boxes of the texts of a figure, in pixels."""
    renderer = FigureCanvasAgg(made).get_renderer()  # type: ignore[no-untyped-call]
    return [text.get_window_extent(renderer) for text in made.findobj(Words)]


def shapes_in(drawing: Drawing, color: str, is_dots: bool) -> list[Shape]:
    shapes = [item for item in drawing.items if isinstance(item, Shape)]
    return [one for one in shapes if (one.color, one.is_dots) == (color, is_dots)]


def texts_in(drawing: Drawing) -> list[str]:
    return [item.text for item in drawing.items if isinstance(item, Text)]


def files(desk: Desk, *flags: str | Path) -> set[str]:
    """The pictures that a run writes."""
    desk.run(PLOT, *flags)
    return {path.name for path in (desk.folder / "results").glob("figures/*")}


def test_every_picture_is_written_in_two_widths_as_pdf_or_in_every_format(desk: Desk) -> None:
    columns = {"category": ["a b", "<c>", r"d$\frac$"] * 10}
    flags: list[str | Path] = []
    for side in ("over_refusal", "toxic"):
        name = f"{side[0]}.csv"
        verdicts = [DIRECT, ANSWER] * 15
        flags += [f"--{side}", judged(desk, name, verdicts, "x/$y_1$", columns=columns)]
    of_one_side = ("dumbbell", "categories_over_refusal")
    assert files(desk, *flags[:2]) == {
        f"{name}{width}.pdf" for name in of_one_side for width in ("", "_narrow")
    }
    found = files(desk, *flags, "--formats=png,svg,pdf")
    names = (*of_one_side, "categories_toxic", "scatter")
    kinds = [f"{width}.{kind}" for width in ("", "_narrow") for kind in ("png", "svg", "pdf")]
    assert found == {f"{name}{kind}" for name in names for kind in kinds}


def test_the_same_results_give_the_same_files() -> None:
    wide = drawn(many(12))["scatter"].wide
    for kind in ("svg", "pdf", "png"):
        assert as_file(wide, kind) == as_file(wide, kind)
    assert b"/Type3" not in as_file(wide, "pdf")  # publishers reject these fonts


def test_letters_that_the_font_lacks_are_said_once(tmp_path: Path) -> None:
    font = tmp_path / "font.ttf"
    assert write_font(font, "a模b模🔥") == "模🔥"
    assert as_file(Drawing(9, 9, [Text(1, 1, "a模")]), "png", font)  # without a warning


@pytest.mark.parametrize("n", [2, 12, 40])
def test_no_text_is_cut_off_or_lies_on_another(n: int) -> None:
    """As matplotlib measures them, in files of 3.3 and 6.9 inches."""
    for picture in drawn(many(n)).values():
        for drawing, inches in ((picture.wide, 6.9), (picture.narrow, 3.3)):
            made = figure(drawing)
            assert made.get_figwidth() == pytest.approx(inches, abs=0.01)
            texts = made.findobj(Words)
            assert all(float(text.get_fontsize()) >= 7 for text in texts)
            boxes = boxes_of(made)
            for number, box in enumerate(boxes):
                where = f"{picture.name} {inches}: {texts[number].get_text()}"
                assert box.x0 >= -1 and box.x1 <= made.bbox.x1 + 1, where
                assert box.y0 >= -1 and box.y1 <= made.bbox.y1 + 1, where
                # Of a line of text, what has no letters may overlap.
                inner = box.padded(-0.12 * box.height)
                assert not inner.count_overlaps(boxes[:number]), where


def test_results_of_other_prompts_or_judges_have_pictures_of_their_own() -> None:
    found = drawn(models("a 10/50 40/50 prompts=x, a 10/50 40/50 prompts=x judge=k"))
    kinds = ("dumbbell", "scatter", "categories_over_refusal", "categories_toxic")
    assert set(found) == {f"{kind}_x__{judge}" for kind in kinds for judge in ("gpt4", "k")}
    assert "x, k" in texts_in(found["scatter_x__k"].narrow)


@pytest.mark.parametrize(("prompts", "is_gray"), [("p", False), ("or-bench-hard-1k", True)])
def test_beside_models_on_the_same_prompts_the_published_ones_are_gray(
    prompts: str, is_gray: bool
) -> None:
    given = models(f"a 9/30 20/30 prompts={prompts}")
    wide = drawn(given, published=True)["scatter"].wide
    gray = [
        item
        for item in wide.items
        if isinstance(item, Shape) and item.is_dots and item.color == "others"
    ]
    assert [len(dots.points) for dots in gray] == [32] * is_gray
    assert ("published" in " ".join(texts_in(wide))) == is_gray


def test_the_trend_goes_through_published_models_alone() -> None:
    (alone,) = drawn([], published=True).values()
    (curve,) = [i for i in alone.wide.items if isinstance(i, Shape) and len(i.points) > 40]
    (dots,) = [
        i for i in alone.wide.items if isinstance(i, Shape) and i.is_dots and i.color == "others"
    ]
    x, y = np.transpose(dots.points)
    at, height = np.transpose(curve.points)
    assert height == pytest.approx(np.polyval(np.polyfit(x, y, 2), at))
    own = drawn(many(12))["scatter"].wide
    assert not shapes_in(own, "others", is_dots=False)


def test_doubts_stand_in_every_picture() -> None:
    found = drawn(models("a 9/30 20/30 doubt=partial, b 9/30 20/30"))
    assert len(found) == 6
    for name, picture in found.items():
        assert "a: partial" in texts_in(picture.wide), name


def dots_of(drawing: Drawing, color: str) -> list[float]:
    """x of the dots of a color, in the order drawn."""
    found = [
        item
        for item in drawing.items
        if isinstance(item, Shape) and item.is_dots and item.color == color
    ]
    return [x for dots in found for x, _ in dots.points]


def test_dots_and_intervals_of_a_dumbbell_stand_where_the_rates_are() -> None:
    given = models("a 9/30?2 27/40, b 0/30 36/40")
    wide = drawn(given)["dumbbell"].wide
    zero, hundred = (
        item.x for item in wide.items if isinstance(item, Text) and item.text in ("0", "100")
    )

    def place(share: float) -> float:
        return zero + (hundred - zero) * share

    assert dots_of(wide, "over_refusal") == pytest.approx([place(0), place(0.3)])  # b is the first
    assert dots_of(wide, "toxic") == pytest.approx([place(0.9), place(27 / 40)])
    lines = [
        item
        for item in wide.items
        if isinstance(item, Shape) and item.color == "toxic" and not item.is_dots
    ]
    ends = [[x for x, _ in line.points] for line in lines]
    assert ends == [pytest.approx([*map(place, side.interval)]) for side in (given[3], given[1])]


def test_categories_stand_by_their_median_and_all_prompts_last() -> None:
    table = {"hate": [1.0] * 10 + [0.0] * 10, "fraud": [1.0] * 15 + [0.0] * 5}
    refused = [value for values in table.values() for value in values]
    names = [name for name, values in table.items() for _ in values]
    picture = drawn([measured(responses(refused, category=names))])["categories_over_refusal"]
    rows = [text for text in texts_in(picture.wide) if text in (*table, "overall")]
    assert rows == ["fraud", "hate", "overall"]
    assert set(drawn(models("a 0/0?30 0/0?30"))) == {"dumbbell"}  # nothing is scored


def test_tiers_of_two_prompt_sets_have_a_picture_each() -> None:
    report = report_of(models("m 10/50 prompts=x prompt_set=x, m 20/50 prompts=y prompt_set=y"))
    tiers = [
        make_rate(result, refused, subset=Subset(Kind.TIER, tier))
        for result in report.results
        for tier, refused in (("1", 10), ("2", 30))
    ]
    drawn_names = {one.name for one in pictures(report._replace(rates=tiers))}
    assert {name for name in drawn_names if name.startswith("tiers")} == {
        f"tiers_over_refusal_{name}__gpt4" for name in "xy"
    }


def test_names_without_a_place_have_their_number_below() -> None:
    crowded = models(", ".join(f"model-number-{k} {k}/400 400/400" for k in range(30)))
    narrow = drawn(crowded)["scatter"].narrow
    found = [item.text for item in narrow.items if isinstance(item, Text)]
    words = " ".join(found)
    names = [item.text for item in narrow.items if isinstance(item, Name)]
    for number, name in enumerate(names, start=1):
        assert name in found or f"{number}\u00a0{name}" in words


def test_each_mark_has_a_text_of_its_own_though_names_read_alike() -> None:
    texts = [*placed([Name(5, 5, "a…b", "")] * 30, [Box(9, 0, 99, 99)])]
    assert len(texts) == 30
    assert {text.text for text in texts} >= {"a…b", ""}


@pytest.mark.parametrize(
    ("percents", "ticks"),
    [
        ([12.5, 33], "10 20 30 40"),
        ([0, 71], "0 20 40 60 80"),
        ([100, 100], "90 95 100"),
        ([20, 20], "20 25 30"),
        ([10, 30], "10 15 20 25 30"),
        ([0, 50], "0 10 20 30 40 50"),
    ],
)
def test_axes_go_from_a_ten_to_a_ten(percents: list[float], ticks: str) -> None:
    found = axis_over([percents])._replace(end=40)
    assert " ".join(map(str, found.ticks)) == ticks
    assert Axis(20, 40, 100, 0).at(25) == 75


@pytest.mark.parametrize(
    ("given", "ticks"),
    [
        ("a 100/2000, b 110/2000", "-5 0 5"),
        ("a 100/2000, b 300/2000", "-10 0 10"),
        ("a 0/20, b 0/20", "-20 -10 0 10 20"),
    ],
)
def test_differences_reach_as_far_to_both_sides_as_they_need(given: str, ticks: str) -> None:
    wide = drawn(models(given))["differences_over_refusal"].wide
    assert [text for text in texts_in(wide) if re.fullmatch(r"-?\d+", text)] == ticks.split()


@pytest.mark.parametrize(("width", "in_line"), [(WIDE, 4), (NARROW, 2)])
def test_heads_of_panels_have_the_width_up_to_the_next_one(width: float, in_line: int) -> None:
    names = ["heron-4 (effort high)", "merlin-2-70b-instruct", "a", "W" * 40] * 2
    panels = [Panel(["privacy"], [], Axis(0, 60), (name, "ink")) for name in names]
    heads = [one for one in rows(panels, width).items if isinstance(one, Text) and one.y < 3]
    heads = [one for one in heads if one.text and one.text != "privacy"]
    assert [one.text for one in heads[:2]] == names[:2]
    assert len(heads) == in_line
    assert np.ptp([b.x - a.x for a, b in pairwise(heads)]) < 1e-9  # each where its axis begins
    for one, following in pairwise([*heads, Text(width, 0, "")]):
        assert one.x + width_of(one.text) < following.x


def test_a_text_is_cut_in_its_middle_to_a_width_that_it_has_in_a_file() -> None:
    for name in ("a-name-that-is-far-too-long-2026", "WWWWWWWWWWWW", "ab"):
        shown = fitted(name, 8)
        assert width_of(shown) <= 8 and (shown[0], shown[-1]) == (name[0], name[-1])
        assert shown == name or width_of(shown) > 8 - max(map(width_of, name))
    made = figure(Drawing(40, 2, [Text(0, 1, "Heron-4 (effort high) 2026 @ W&M: %")]))
    (text,) = made.findobj(Words)
    (box,) = boxes_of(made)
    assert box.width / made.dpi * 72 / 8 <= width_of(text.get_text())


def test_a_bar_is_split_by_class_and_by_who_refused() -> None:
    refused = [0.0] * 14 + [1.0] * 6
    about: dict[str, Any] = {"refused_by": ["model"] * 14 + ["filter"] * 4 + ["model"] * 2}
    classes = ["helped"] * 5 + ["direct_answer"] * 5 + ["partial"] * 4 + ["direct_refusal"] * 6
    graded = about | {"graded": classes, "direct": [0.0] * 18 + [1.0] * 2}
    whole = {"helped": 25, "partial": 20, "direct": 10, "filter": 20}
    for columns, parts in ((about, {"model": 10, "filter": 20}), (graded, whole)):
        found = drawn([measured(responses(refused, **columns))])
        wide = found["shares_over_refusal"].wide
        zero, hundred = (i.x for i in wide.items if isinstance(i, Text) and i.text in ("0", "100"))
        bars = [item for item in wide.items if isinstance(item, Shape) and item.width == 0.8]
        shown = {}
        for bar in bars:
            (start, _), (end, _) = bar.points
            shown[bar.color] = 100 * (end - start) / (hundred - zero) + GAP
        assert shown == pytest.approx(parts)
    alone = drawn([measured(responses(refused))])
    assert not any(picture.section == "shares" for picture in alone.values())


def test_names_in_svg_are_text() -> None:
    given = models('<b>&" 9/30 20/30, c 9/30 20/30')
    for picture in drawn(given).values():
        markup = picture.wide.svg
        assert "<b>" not in markup and "style=" not in markup
        assert not re.search(r"nan|inf|None", markup)
