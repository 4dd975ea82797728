"""The pictures of plot_results.py."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.collections import PathCollection
from matplotlib.text import Text

from orbench.report.compare import leaderboard, with_published
from orbench.report.load import load, sources_of
from orbench.report.pictures import pictures
from orbench.report.rates import rates
from tests.conftest import Desk
from tests.test_report import ANSWER, DIRECT, judged, on

PLOT = "response_checker/plot_results.py"


def drawn(safe: list[Path], toxic: list[Path], published: bool = False) -> dict[str, Any]:
    """Name -> figure of all pictures of these results."""
    sides = (("over_refusal", safe), ("toxic", toxic))
    rows = load(
        [one for side, paths in sides for path in paths for one in sources_of(str(path), side)]
    )
    measured = rates(rows)
    board = leaderboard(rows, measured)
    board = with_published(board) if published else board
    return {name: figure for name, _, figure in pictures(measured, board, {})}


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
    assert files(desk, *both_sides) == {f"{part}.png" for part in parts}
    found = files(desk, *both_sides, "--formats=png,svg,pdf")
    assert found == {f"{part}.{kind}" for part in parts for kind in ("png", "svg", "pdf")}


def test_one_side_alone_is_drawn_as_far_as_it_goes(desk: Desk) -> None:
    (safe,), _ = both(desk)
    assert files(desk, "--over_refusal", safe, "--formats", "svg") == {"heatmap_over_refusal.svg"}


def test_the_same_results_give_the_same_files(desk: Desk) -> None:
    (safe,), _ = both(desk)
    for folder in ("one", "two"):
        files(desk, "--over_refusal", safe, "--formats=svg,pdf", "--output_dir", folder)
    one, two = (
        sorted((desk.folder / name / "figures").glob("heatmap*")) for name in ("one", "two")
    )
    assert len(one) == 2
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_results_of_other_prompts_or_judges_have_pictures_of_their_own(desk: Desk) -> None:
    safe = [on(desk, "hard", "a", 10), on(desk, "hard", "a", 10, judge="qwen")]
    toxic = [on(desk, "bad", "a", 40), on(desk, "bad", "a", 40, judge="qwen")]
    assert set(drawn(safe, toxic)) == {
        *("scatter_hard__bad__gpt4", "scatter_hard__bad__qwen"),
        *("heatmap_over_refusal_hard__gpt4", "heatmap_over_refusal_hard__qwen"),
        *("heatmap_toxic_bad__gpt4", "heatmap_toxic_bad__qwen"),
    }


def test_published_models_alone_are_coloured_and_named_and_show_their_trend(desk: Desk) -> None:
    (figure,) = drawn([], [], published=True).values()
    (axes,) = figure.axes
    names = {text.get_text() for text in axes.texts}
    assert len(names) > 24 and {"GPT-4o", "Llama-3.1-405B"} <= names
    assert (axes.get_xlim()[1], axes.get_ylim()) == (100, (60, 100))
    assert any(line.get_linestyle() == "--" for line in axes.lines)
    legend = {text.get_text() for text in figure.legends[0].texts}
    assert {"Claude", "GPT-4", "Llama-3"} < legend


def test_names_cover_neither_each_other_nor_marks(desk: Desk) -> None:
    (figure,) = drawn([], [], published=True).values()
    (axes,) = figure.axes
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts]
    marks = [one.get_offsets() for one in axes.collections if isinstance(one, PathCollection)]
    places = [place for one in marks for place in axes.transData.transform(one)]
    assert len(places) == 32
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])
    assert not any(box.contains(*place) for box in boxes for place in places)


def test_beside_measured_models_the_published_ones_are_grey(desk: Desk) -> None:
    figure = drawn(*both(desk), published=True)["scatter"]
    (axes,) = figure.axes
    title = axes.get_title(loc="left")
    assert "grey: published with OR-Bench" in title and "; gpt4" in title
    assert not figure.legends  # one family
    assert "a" in {text.get_text() for text in axes.texts}


@pytest.mark.parametrize(
    ("entry", "says"), [('"scripted": true', "measures nothing"), ('"complete": false', "partial")]
)
def test_scripted_and_partial_results_say_so_in_every_picture(
    desk: Desk, entry: str, says: str
) -> None:
    safe, toxic = both(desk, category=["a", "b", "c"] * 10)
    for path in (*safe, *toxic):
        record = path.with_suffix(".run.json")
        record.write_text(record.read_text().replace("{", f"{{{entry}, ", 1))
    found = drawn(safe, toxic)
    assert len(found) == 3
    for name, figure in found.items():
        assert any(says in text.get_text() for text in figure.findobj(Text)), name


def test_a_heat_map_marks_few_prompts_and_has_the_overall_rate_last(desk: Desk) -> None:
    category = ["privacy"] * 40 + ["hate"] * 10
    safe = judged(desk, "s.csv", [DIRECT] * 50, "a", columns={"category": category})
    (figure,) = drawn([safe], []).values()
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["100†", "100", "100"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["hate", "privacy", "overall"]
    assert "† fewer than 30 prompts" in axes.get_title(loc="left")
