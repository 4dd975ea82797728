"""The pictures of plot_results.py."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text

from orbench.report.load import load_results, sources_of
from orbench.report.pictures import as_file, pictures
from orbench.report.published import published_models
from orbench.report.ranking import leaderboard
from orbench.report.rates import overall, rates
from orbench.report.standings import Report
from tests.conftest import Desk
from tests.contract.test_report import judged, on
from tests.results import ANSWER, DIRECT

PLOT = "response_checker/plot_results.py"


def drawn(safe: list[Path], toxic: list[Path], published: bool = False) -> dict[str, Any]:
    """Name -> figure of all pictures of these results."""
    sides = (("over_refusal", safe), ("toxic", toxic))
    sources = []
    for side, paths in sides:
        for path in paths:
            sources += sources_of(str(path), side)
    results, prompts = load_results(sources)
    measured = rates(results)
    board = leaderboard(overall(measured))
    others = published_models() if published else []
    whole = Report(prompts, results, measured, [], [], board, others, [])
    return {drawing.name: drawing.figure for drawing in pictures(whole)}


def files(desk: Desk, *flags: str | Path) -> set[str]:
    """The pictures that a run writes."""
    done = desk.run(PLOT, *flags)
    assert done.returncode == 0, done.stderr
    return {path.name for path in (desk.folder / "results").glob("figures/*")}


def both(desk: Desk, model: str = "maker/a", **columns: list[str]) -> tuple[list[Path], list[Path]]:
    """A model's results on both sides, thirty prompts each."""
    verdicts = {"s.csv": [DIRECT, ANSWER] * 15, "t.csv": [DIRECT, DIRECT, ANSWER] * 10}
    safe, toxic = (judged(desk, *one, model, columns=columns) for one in verdicts.items())
    return [safe], [toxic]


def test_every_picture_is_written_as_png_or_in_every_format(desk: Desk) -> None:
    (safe,), (toxic,) = both(desk, "x/$y_1$", category=["a b", "<c>", r"d$\frac$"] * 10)
    parts = ("scatter", "heatmap_over_refusal", "heatmap_toxic")
    both_sides = ("--over_refusal", safe, "--toxic", toxic)
    assert files(desk, *both_sides[:2]) == {"heatmap_over_refusal.png"}
    found = files(desk, *both_sides, "--formats=png,svg,pdf")
    assert found == {f"{part}.{kind}" for part in parts for kind in ("png", "svg", "pdf")}


def test_the_same_results_give_the_same_files(desk: Desk) -> None:
    (safe,), _ = both(desk)
    pictures_of = []
    for _ in range(2):
        assert len(files(desk, "--over_refusal", safe, "--formats=svg,pdf")) == 2
        pictures = (desk.folder / "results/figures").iterdir()
        pictures_of.append({path.name: path.read_bytes() for path in pictures})
    assert pictures_of[0] == pictures_of[1]


def test_results_of_other_prompts_or_judges_have_pictures_of_their_own(desk: Desk) -> None:
    safe = [on(desk, "hard", "a", 10), on(desk, "hard", "a", 10, judge="qwen")]
    toxic = [on(desk, "bad", "a", 40), on(desk, "bad", "a", 40, judge="qwen")]
    assert set(drawn(safe, toxic)) == {
        *("scatter_hard__bad__gpt4", "scatter_hard__bad__qwen"),
        *("heatmap_over_refusal_hard__gpt4", "heatmap_over_refusal_hard__qwen"),
        *("heatmap_toxic_bad__gpt4", "heatmap_toxic_bad__qwen"),
    }


def test_published_models_alone_are_colored_and_named_and_show_their_trend(desk: Desk) -> None:
    (figure,) = drawn([], [], published=True).values()
    (axes,) = figure.axes
    (legend,) = figure.legends
    names = {text.get_text() for text in legend.get_texts()}
    assert len(names) == 32 and {"GPT-4o", "Llama-3.1-405B"} <= names
    assert any(line.get_linestyle() == "--" for line in axes.lines)
    # The names stand beside the picture, in it as a whole.
    as_file(figure, "pdf")  # which lays it out
    box = legend.get_window_extent()
    assert box.x0 > axes.get_window_extent().x1
    assert box.height < figure.bbox.height


def test_beside_models_on_the_same_prompts_the_published_ones_are_gray(desk: Desk) -> None:
    on_or_bench = {"asked": "a", "prompts": "or-bench-hard-1k"}
    for about, is_gray in (({}, False), ({"under_test": on_or_bench}, True)):
        safe, toxic = (judged(desk, f"{n}.csv", [DIRECT] * 30, "a", **about) for n in "st")
        figure = drawn([safe], [toxic], published=True)["scatter"]
        (axes,) = figure.axes
        title = axes.get_title(loc="left")
        assert ("gray: published with OR-Bench" in title) == is_gray and "; gpt4" in title
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["a"]


@pytest.mark.parametrize(
    ("about", "says"), [({"scripted": True}, "measures nothing"), ({"complete": False}, "partial")]
)
def test_scripted_and_partial_results_say_so_in_every_picture(
    desk: Desk, about: dict[str, bool], says: str
) -> None:
    safe, toxic = (judged(desk, name, [DIRECT] * 30, **about) for name in ("s.csv", "t.csv"))
    figures = drawn([safe], [toxic])
    assert len(figures) == 3
    for name, figure in figures.items():
        assert any(says in text.get_text() for text in figure.findobj(Text)), name


def test_a_heat_map_marks_few_prompts_and_has_the_overall_rate_last(desk: Desk) -> None:
    category = ["privacy"] * 40 + ["hate"] * 10
    safe = judged(desk, "s.csv", [DIRECT] * 50, "a", columns={"category": category})
    (figure,) = drawn([safe], []).values()
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["100†", "100", "100"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["hate", "privacy", "overall"]
    assert "† fewer than 30 prompts" in axes.get_title(loc="left")
