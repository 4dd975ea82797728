"""The pictures of plot_results.py."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text

from orbench.report.measures import Rate
from orbench.report.pictures import as_file, pictures
from orbench.report.published import published_models
from orbench.report.ranking import leaderboard
from orbench.report.rates import overall, rates
from orbench.report.standings import Report
from tests.conftest import Desk
from tests.contract.test_report import PLOT, judged
from tests.results import ANSWER, DIRECT, measured, models, responses


def drawn(given: list[Rate], published: bool = False) -> dict[str, Any]:
    """Name -> figure of all pictures of these results."""
    results = [one.result for one in given]
    found = rates(results)
    others = published_models() if published else []
    whole = Report(results, found, [], [], leaderboard(overall(found)), others, [])
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
