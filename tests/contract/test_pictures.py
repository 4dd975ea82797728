"""The pictures of plot_results.py."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from orbench.report.measures import Kind, Rate, Subset
from orbench.report.pictures import as_file, pictures, toxicity_curves
from orbench.report.published import published_models
from orbench.report.ranking import ranking
from orbench.report.rates import overall, rates
from orbench.report.standings import Report
from tests.conftest import Desk
from tests.contract.test_report import PLOT, judged
from tests.results import ANSWER, DIRECT, make_rate, make_result, measured, models, responses


def drawn(given: list[Rate], published: bool = False) -> dict[str, Any]:
    """Name -> figure of all pictures of these results."""
    results = [one.result for one in given]
    found = rates(results)
    others = published_models() if published else []
    whole = Report(results, found, [], [], ranking(overall(found))[0], others, [])
    return dict(pictures(whole))


def files(desk: Desk, *flags: str | Path) -> set[str]:
    """The pictures that a run writes."""
    desk.run(PLOT, *flags)
    return {path.name for path in (desk.folder / "results").glob("figures/*")}


def texts_in(figure: Any) -> str:
    return " ".join(text.get_text() for text in figure.findobj(Text))


def test_every_picture_is_written_as_png_or_in_every_format(desk: Desk) -> None:
    columns = {"category": ["a b", "<c>", r"d$\frac$"] * 10}
    flags: list[str | Path] = []
    for side in ("over_refusal", "toxic"):
        verdicts = [DIRECT, ANSWER] * 15
        name = f"{side[0]}.csv"
        flags += [f"--{side}", judged(desk, name, verdicts, "x/$y_1$", columns=columns)]
    assert files(desk, *flags[:2]) == {"heatmap_over_refusal.png"}
    parts = ("scatter", "heatmap_over_refusal", "heatmap_toxic")
    found = files(desk, *flags, "--formats=png,svg,pdf")
    assert found == {f"{part}.{kind}" for part in parts for kind in ("png", "svg", "pdf")}


def test_the_same_results_give_the_same_files(desk: Desk) -> None:
    safe = judged(desk, "s.csv", [DIRECT, ANSWER] * 15)
    folder = desk.folder / "results/figures"
    pictures_of = []
    for _ in range(2):
        names = files(desk, "--over_refusal", safe, "--formats=svg,pdf")
        pictures_of.append({name: (folder / name).read_bytes() for name in names})
    assert len(pictures_of[0]) == 2 and pictures_of[0] == pictures_of[1]


def test_results_of_other_prompts_or_judges_have_pictures_of_their_own() -> None:
    of_two = models("a 10/50 40/50 prompts=x, a 10/50 40/50 prompts=x judge=k")
    assert set(drawn(of_two)) == {
        *("scatter_x__gpt4", "scatter_x__k", "heatmap_over_refusal_x__gpt4"),
        *("heatmap_over_refusal_x__k", "heatmap_toxic_x__gpt4", "heatmap_toxic_x__k"),
    }


def test_published_models_alone_are_named_beside_the_picture_and_show_their_trend() -> None:
    (figure,) = drawn([], published=True).values()
    (axes,), (legend,) = figure.axes, figure.legends
    names = {text.get_text() for text in legend.get_texts()}
    assert len(names) == 32 and {"GPT-4o", "Llama-3.1-405B"} <= names
    assert any(line.get_linestyle() == "--" for line in axes.lines)
    as_file(figure, "pdf")  # which lays it out
    box = legend.get_window_extent()
    assert box.x0 > axes.get_window_extent().x1
    assert box.height < figure.bbox.height


@pytest.mark.parametrize(("prompts", "is_gray"), [("p", False), ("or-bench-hard-1k", True)])
def test_beside_models_on_the_same_prompts_the_published_ones_are_gray(
    prompts: str, is_gray: bool
) -> None:
    figure = drawn(models(f"a 9/30 20/30 prompts={prompts}"), published=True)["scatter"]
    (axes,), (legend,) = figure.axes, figure.legends
    title = axes.get_title(loc="left")
    assert ("gray: published with OR-Bench" in title) == is_gray and "; gpt4" in title
    assert [text.get_text() for text in legend.get_texts()] == ["a"]


def test_doubts_stand_in_every_picture() -> None:
    figures = drawn(models("a 9/30 20/30 doubt=partial, b 9/30 20/30"))
    assert len(figures) == 3
    for name, figure in figures.items():
        assert "partial" in [text.get_text() for text in figure.texts], name


def test_a_heat_map_marks_few_prompts_and_has_the_overall_rate_last() -> None:
    given = responses([1.0] * 50, category=["privacy"] * 40 + ["hate"] * 10)
    (figure,) = drawn([measured(given)]).values()
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["100†", "100", "100"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["hate", "privacy", "overall"]
    assert "† fewer than 30 prompts" in axes.get_title(loc="left")


def points_of(line: Any) -> list[list[float]]:
    """x and y of the points of a line."""
    return [list(map(float, ends)) for ends in line.get_data()]


def test_marks_and_intervals_of_a_scatter_stand_where_the_rates_are() -> None:
    given = models("a 9/30?2 27/40, b 0/30 36/40")
    figure = drawn(given)["scatter"]
    (axes,) = figure.axes
    marks = [marks.get_offsets().tolist()[0] for marks in axes.collections[1:]]
    assert marks == [pytest.approx([0, 90]), pytest.approx([30, 67.5])]  # as in the leaderboard
    lines = []
    for safe, toxic in (given[2:], given[:2]):
        x, y = (pytest.approx([100 * side.mean.rate] * 2) for side in (safe, toxic))
        x_ends, y_ends = (
            pytest.approx([100 * end for end in side.with_unscored or ()]) for side in (safe, toxic)
        )
        lines += [[x_ends, y], [x, y_ends]]
    assert [points_of(line) for line in axes.lines] == lines
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 100), (50, 100))


def test_gray_models_have_a_trend_of_their_own_and_room_on_the_axes() -> None:
    many = ", ".join(
        f"m{n} {40 + 4 * n}/100 {86 + n}/100 prompts=or-bench-hard-1k" for n in range(12)
    )
    figure = drawn(models(many), published=True)["scatter"]
    (axes,) = figure.axes
    own, gray = (line for line in axes.lines if line.get_linestyle() == "--")
    published = published_models()
    x, y = ([100 * getattr(one, side) for one in published] for side in ("safe", "toxic"))
    assert (axes.get_xlim()[0], axes.get_ylim()[0]) == (10 * (min(x) // 10), 10 * (min(y) // 10))
    assert axes.collections[0].get_offsets().tolist() == pytest.approx(np.transpose([x, y]))
    for line, among in ((own, (range(40, 87, 4), range(86, 98))), (gray, (x, y))):
        points = np.array(line.get_data())
        assert points[1] == pytest.approx(np.polyval(np.polyfit(among[0], among[1], 2), points[0]))
        assert (points[0].min(), points[0].max()) == pytest.approx((min(among[0]), max(among[0])))


def test_a_heat_map_is_darker_where_safe_prompts_are_refused_and_toxic_ones_answered() -> None:
    given = models("a 9/30 24/40, b 0/30 30/40")
    figures = drawn(given)
    shades = [
        figures[f"heatmap_{side}"].axes[0].images[0].get_array()
        for side in ("over_refusal", "toxic")
    ]
    over_refusal, toxic = (shade[:, -1].tolist() for shade in shades)  # b is the first
    assert over_refusal == pytest.approx([0, 0.3]) and toxic == pytest.approx([0.25, 0.4])


def test_a_curve_goes_through_the_rates_of_the_scores_with_their_intervals() -> None:
    given = (("0.25", 30.0), ("0.5", 60.0))
    result = make_result("a")
    curve = [make_rate(result, rate, subset=Subset(Kind.SCORE, score)) for score, rate in given]
    (axes,) = toxicity_curves(curve).axes
    (bars,) = axes.containers
    assert points_of(bars[0]) == [[0.25, 0.5], [30, 60]]
    (ends,) = bars[2]
    assert [path.vertices[:, 1].tolist() for path in ends.get_paths()] == [
        pytest.approx([28, 32]),
        pytest.approx([58, 62]),
    ]
