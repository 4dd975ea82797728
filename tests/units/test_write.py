"""The files of a report: what is written, recorded and removed, and the summary for programs."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orbench.base.messages import UserError
from orbench.base.records import VERSION
from orbench.base.tables import sha256_of
from orbench.report.build import report
from orbench.report.write import EXPORTED
from tests.conftest import write_csv
from tests.units.reported import add_to_record, model, options

TABLES = ["associations.csv", "comparison.csv", "leaderboard.csv", "results.csv"]
DOCUMENTS = ["results.json", "results.md", "results.tex"]


def run(folder: Path, *safe: Path | str, **about: Any) -> Path:
    """Write a report and return its folder; see `options`."""
    given = options(folder, *safe, **about)
    assert report(given) == 0
    return folder / "results"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def content_of(path: Path) -> Any:
    return json.loads(path.read_text())


# -- files -----------------------------------------------------------------------------------------


def test_the_record_names_inputs_files_and_command(tmp_path: Path) -> None:
    safe, toxic = model(tmp_path, "a", 4), model(tmp_path, "t", 30, texts="Rude")
    labels = write_csv(tmp_path / "labels.csv", ("prompt", "label"), [["Prompt 1", "safe"]])
    folder = run(tmp_path, f"Own name={safe}", toxic=(toxic,), toxicity=[labels])
    record = content_of(folder / "results.run.json")
    assert (record["stage"], record["command"]) == ("plot_results", ["plot_results.py"])
    assert record["inputs"] == [
        {"path": str(labels), "sha256": sha256_of(labels)},
        {"path": str(safe), "model": "Own name", "sha256": sha256_of(safe)},
        {"path": str(toxic), "model": "", "sha256": sha256_of(toxic)},
    ]
    assert sorted(record["files"]) == sorted(TABLES + DOCUMENTS)
    assert names_in(folder) == sorted([*TABLES, *DOCUMENTS, "results.run.json"])
    assert record["versions"]["orbench"] == VERSION


def test_what_could_not_be_removed_is_removed_by_the_next_report(tmp_path: Path) -> None:
    def fail(path: Path, missing_ok: bool = False) -> None:
        if not missing_ok:
            raise OSError("busy")

    path = model(tmp_path, "a", 4)
    run(tmp_path, path, html=True)
    with mock.patch.object(Path, "unlink", fail), pytest.raises(OSError, match="busy"):
        run(tmp_path, path)
    folder = run(tmp_path, path)
    assert names_in(folder) == sorted([*TABLES, *DOCUMENTS, "results.run.json"])


def test_what_the_last_report_wrote_and_this_one_does_not_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path, "a", 0)
    add_to_record(path, source={"repository": "org/own", "name": "own"})
    folder = run(tmp_path, path, html=True, export="hub")
    record = content_of(folder / "results.run.json")
    earlier = ["drift.csv", "figures/old.png"]
    kept = ["mine.csv", "figures/mine.png", "sub/other.csv"]
    for name in earlier + kept:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    (folder / "figures" / "folder").mkdir()
    record["files"] += [*earlier, "gone.csv", "figures/folder", "sub/other.csv", "../a.csv"]
    (folder / "results.run.json").write_text(json.dumps(record))
    earlier += ["results.html", f"{EXPORTED}/maker_a_gpt4.yaml"]
    assert all((folder / name).exists() for name in earlier)
    run(tmp_path, path)
    page = f"removed {folder}/results.html, the page of the last report; --html writes one\n"
    assert page in capsys.readouterr().err
    assert not any((folder / name).exists() for name in earlier)
    kept += ["figures/folder", "../a.csv", *TABLES, *DOCUMENTS]
    assert all((folder / name).exists() for name in kept)


def test_files_in_an_unknown_folder_stay(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "drift.csv").write_text("mine")
    run(tmp_path, model(tmp_path, "a", 4))
    assert (folder / "drift.csv").read_text() == "mine"


@pytest.mark.parametrize("name", [*TABLES, *DOCUMENTS, "results.html"])
def test_an_output_that_is_an_input_stops_the_run(tmp_path: Path, name: str) -> None:
    path = model(tmp_path, "a", 4)
    inside = tmp_path / "results" / name
    inside.parent.mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(inside)
    labels = "prompt,label\nPrompt 1,safe\n"
    for content, safe, ratings in ((labels, path, [link]), (path.read_text(), f"b={link}", [])):
        inside.write_text(content)
        with pytest.raises(UserError, match=f"{name} is an input and would be overwritten"):
            run(tmp_path, safe, toxicity=ratings)
        assert inside.read_text() == content and names_in(inside.parent) == [name]


# -- what the terminal shows -----------------------------------------------------------------------


def test_of_the_demo_only_the_finding_and_the_rates_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path, "a", 4, scripted_input=True)
    run(tmp_path, path)
    rate, _ = capsys.readouterr().err.splitlines()
    assert rate.startswith("maker/a: over-refusal rate 10.0 % [")
    run(tmp_path, path, model(tmp_path, "b", 4))
    assert "demo prompts" in capsys.readouterr().err.splitlines()[0]
