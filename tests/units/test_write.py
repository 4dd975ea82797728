"""The files of a report: what is written, recorded and removed, and the summary for programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from orbench.base.messages import UserError
from orbench.base.records import VERSION
from orbench.base.tables import sha256_of
from orbench.report.build import Options, report
from orbench.report.write import Outputs
from orbench.stats.intervals import wilson
from tests.conftest import write_csv
from tests.results import ANSWER, DIRECT, INDIRECT, lost, written

N = 40
TABLES = ["associations.csv", "comparison.csv", "leaderboard.csv", "results.csv"]
DOCUMENTS = ["results.json", "results.md", "results.tex"]
COMMAND = ["plot_results.py", "--table"]


def model(folder: Path, name: str, refused: int, /, **about: Any) -> Path:
    return written(
        folder,
        f"{name}.csv",
        [DIRECT] * refused + [ANSWER] * (N - refused),
        f"maker/{name}",
        **about,
    )


def run(folder: Path, *safe: Path | str, toxic: tuple[Path | str, ...] = (), **about: Any) -> Path:
    """Write a report of tables, and return its folder. about: fields of Options and of Outputs."""
    fields = {"folder": folder / "results", "command": COMMAND, "pictures": False}
    for name in ("folder", "html", "names_page", "export"):
        if name in about:
            fields[name] = about.pop(name)
    given = {"over_refusal": [str(path) for path in safe], "toxic": [str(path) for path in toxic]}
    outputs = Outputs(**fields)  # type: ignore[arg-type]
    assert report(Options(given, outputs, **about)) == 0
    return outputs.folder


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def record_in(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "results.run.json").read_text())
    return record


# -- files -----------------------------------------------------------------------------------------


def test_the_record_names_inputs_files_and_command(tmp_path: Path) -> None:
    safe, toxic = model(tmp_path, "a", 4), model(tmp_path, "t", 30)
    labels = write_csv(tmp_path / "labels.csv", ("prompt", "label"), [["Prompt 1", "safe"]])
    folder = run(tmp_path, f"Own name={safe}", toxic=(toxic,), labels=[labels])
    record = record_in(folder)
    assert (record["stage"], record["command"]) == ("plot_results", COMMAND)
    assert record["inputs"] == [
        {"path": str(labels), "sha256": sha256_of(labels)},
        {"path": str(safe), "model": "Own name", "sha256": sha256_of(safe)},
        {"path": str(toxic), "model": "", "sha256": sha256_of(toxic)},
    ]
    assert record["files"][-3:] == DOCUMENTS
    assert sorted(record["files"]) == sorted(TABLES + DOCUMENTS)
    assert names_in(folder) == sorted([*TABLES, *DOCUMENTS, "results.run.json"])
    assert record["versions"]["orbench"] == VERSION


def test_what_the_last_report_wrote_and_this_one_does_not_is_removed(tmp_path: Path) -> None:
    path = model(tmp_path, "a", 4)
    folder = run(tmp_path, path, html=True, export=True)
    assert {"results.html", "eee"} < {*names_in(folder)}
    record = record_in(folder)
    earlier = ["drift.csv", "triggers.csv", "figures/old.png", "eee/old.json"]
    kept = ["mine.csv", "figures/mine.png", "eee/mine.json", "sub/other.csv"]
    for name in earlier + kept:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    (folder / "figures" / "folder").mkdir()
    others = ["gone.csv", "figures/folder", "sub/other.csv", "../a.csv", str(path)]
    (folder / "results.run.json").write_text(
        json.dumps(record | {"files": record["files"] + earlier + others})
    )
    run(tmp_path, path)
    for name in [*earlier, "results.html", "eee/maker_a_over_refusal.json"]:
        assert not (folder / name).exists(), name
    for name in [*kept, "figures/folder", *TABLES, *DOCUMENTS]:
        assert (folder / name).exists(), name
    assert path.exists()


def test_files_in_an_unknown_folder_stay(tmp_path: Path) -> None:
    path = model(tmp_path, "a", 4)
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "drift.csv").write_text("mine")
    run(tmp_path, path)
    assert (folder / "drift.csv").read_text() == "mine"


@pytest.mark.parametrize("name", [*TABLES, *DOCUMENTS, "results.html"])
@pytest.mark.parametrize("as_labels", [True, False])
def test_an_output_that_is_an_input_stops_the_run(
    tmp_path: Path, name: str, as_labels: bool
) -> None:
    path = model(tmp_path, "a", 4)
    inside = tmp_path / "results" / name
    inside.parent.mkdir()
    inside.write_text("prompt,label\nPrompt 1,safe\n" if as_labels else path.read_text())
    (tmp_path / "link.csv").symlink_to(inside)
    before = {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()}
    given = (path,) if as_labels else (f"b={tmp_path / 'link.csv'}",)
    labels = [tmp_path / "link.csv"] if as_labels else []
    with pytest.raises(UserError, match=f"{name} is an input and would be overwritten"):
        run(tmp_path, *given, labels=labels)
    assert {one: one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()} == before


def test_the_pages_name_is_said_unless_someone_else_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path, "a", 4)
    folder = run(tmp_path, path, html=True)
    assert f"page: {folder / 'results.html'}\n" in capsys.readouterr().err
    run(tmp_path, path, html=True, names_page=False)
    run(tmp_path, path)
    assert "page:" not in capsys.readouterr().err


# -- what the terminal shows -----------------------------------------------------------------------


def test_warnings_come_before_analyses_rates_and_comparisons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiers = {"tier": ["1", "2"] * 20, "seed_id": [str(n // 2) for n in range(N)]}
    paths = [model(tmp_path, name, n, columns=tiers) for name, n in (("a", 4), ("b", 30))]
    lost(paths[0], [f"Lost {n}" for n in range(10)], tier="1")
    labels = write_csv(tmp_path / "l.csv", ("prompt", "label"), [["Prompt 1", "safe"]])
    folder = run(tmp_path, *paths, labels=[labels], pairs=True)
    lines = capsys.readouterr().err.splitlines()
    kinds = (
        "maker/a, over-refusal rate: coverage 80.0 %",
        "toxicity: 1 prompts with a score, 49 without",
        "maker/a: too few safe prompts with an agreed label (1)",
        "maker/a, 1, 2: 20 pairs, ",
        "maker/a: refusals by tier (1 < 2): ",
        "maker/a: over-refusal rate 10.0 % [",
        "a - b, over-refusal rate: -65.0 points [",
        "a, gpt4: a refuses 10.0 % [",
    )
    places = [next(n for n, line in enumerate(lines) if line.startswith(kind)) for kind in kinds]
    assert places == sorted(places), lines
    text = (folder / "results.md").read_text().replace("\\", "")
    for kind in kinds[:5]:
        assert kind in text


def test_of_the_demo_only_the_finding_and_the_rates_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model(tmp_path, "a", 4, scripted_input=True)
    run(tmp_path, path)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("maker/a: over-refusal rate 10.0 % [") and len(lines) == 2
    other = model(tmp_path, "b", 4)
    run(tmp_path, path, other)
    assert "demo prompts" in capsys.readouterr().err.splitlines()[0]


# -- results.json ----------------------------------------------------------------------------------


def summary_in(folder: Path) -> list[dict[str, Any]]:
    content = json.loads((folder / "results.json").read_text())
    assert content["version"] == 1
    return list(content["results"])


def test_the_summary_has_an_entry_per_model_and_side(tmp_path: Path) -> None:
    finish = {"finish_reason": ["stop"] * 30 + ["length"] * 10}
    a, b = model(tmp_path, "a", 4, columns=finish), model(tmp_path, "b", 30)
    texts = {"prompt": [f"Rude {n}" for n in range(N)]}
    verdicts = [DIRECT] * 20 + [INDIRECT] * 10 + [ANSWER] * 10
    toxic = written(tmp_path, "ta.csv", verdicts, "maker/a", columns=texts)
    folder = run(tmp_path, a, b, toxic=(toxic,))
    first, second, third = summary_in(folder)
    low, high = (100 * end for end in wilson(4, N))
    assert first["rate_percent"] == first["direct_percent"] == 10
    assert [first["low_percent"], first["high_percent"]] == pytest.approx([low, high])
    assert first["low_percent"] == round(first["low_percent"], 10)
    assert (first["n"], first["rows"], first["unscored"]) == (N, N, 0)
    assert (first["cut_off_percent"], second["cut_off_percent"]) == (25, None)
    assert (third["side"], third["indirect_percent"], third["score"]) == ("toxic", 25, 65)
    assert (first["score"], second["score"]) == (65, -75)
    names = {"rank", "score", "model", "side", "judge", "prompts", "prompt_set", "notes"}
    assert names < first.keys() and first.keys() == third.keys()
    assert not {"", "subset", "value", "category", "counted", "unpaired"} & first.keys()
    assert first["corrected_percent"] is first["settings"] is first["api_categories"] is None


def test_ranks_stand_as_in_the_leaderboard(tmp_path: Path) -> None:
    paths = [model(tmp_path, name, n) for name, n in (("a", 4), ("b", 5), ("c", 38))]
    folder = run(tmp_path, *paths)
    found = [(one["model"], one["rank"], one["score"]) for one in summary_in(folder)]
    assert found == [("maker/a", "1-2", -10), ("maker/b", "1-2", -12.5), ("maker/c", "3", -95)]


def test_a_toxic_set_of_two_rows_has_neither_rank_nor_score(tmp_path: Path) -> None:
    safe = model(tmp_path, "a", 4)
    texts = {"prompt": [f"Easy {n}" for n in range(N)]}
    easy = written(tmp_path, "easy.csv", [ANSWER] * N, "maker/a", columns=texts)
    rude = {"prompt": [f"Rude {n}" for n in range(N)]}
    toxic = written(tmp_path, "tox.csv", [DIRECT] * N, "maker/a", columns=rude)
    entries = summary_in(run(tmp_path, safe, easy, toxic=(toxic,)))
    assert [one["score"] for one in entries] == [90, 100, None]
    assert entries[2]["rank"] is None and entries[2]["rate_percent"] == 100


# -- Every Eval Ever -------------------------------------------------------------------------------


def exported(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(json.loads((folder / "eee" / name).read_text())["evaluation_results"])


def test_each_model_settings_and_side_has_a_file_of_its_rates(tmp_path: Path) -> None:
    a = model(tmp_path, "a", 4)
    low = {"asked": "maker/a", "settings": "effort low", "parameters": {"top_p": 0.5, "n": 3}}
    other = {"prompt": [f"Easy {n}" for n in range(N)]}
    b = written(tmp_path, "b.csv", [DIRECT] * N, columns=other, under_test=low)
    c = written(tmp_path, "c.csv", [ANSWER] * N, columns=other, under_test=low, judge="rules",
                source={"repository": "o/n", "name": "easy"})  # fmt: skip
    lost(a, [f"Lost {n}" for n in range(10)], category="none")
    folder = run(tmp_path, a, b, c, export=True)
    assert names_in(folder / "eee") == [
        "maker_a__effort_low__over_refusal.json",
        "maker_a_over_refusal.json",
    ]
    plain = exported(folder, "maker_a_over_refusal.json")
    assert [one["score_details"]["details"]["category"] for one in plain] == ["overall", "a", "b"]
    score = plain[0]["score_details"]
    assert score["score"] == 10 and score["details"]["unscored"] == "10"
    interval = score["uncertainty"]["confidence_interval"]
    assert interval["lower"] == pytest.approx(100 * wilson(4, N + 10).low)
    assert interval["upper"] == pytest.approx(100 * wilson(14, N + 10).high)
    assert interval["confidence_level"] == 0.95
    assert "coverage 80.0 %" in score["details"]["notes"]
    both = exported(folder, "maker_a__effort_low__over_refusal.json")
    about = [(one["score_details"]["details"]["judge"], one["source_data"]) for one in both]
    assert about[0] == ("gpt4", {"dataset_name": "b", "source_type": "other"})
    of_hub = {"dataset_name": "easy", "source_type": "hf_dataset", "hf_repo": "o/n"}
    assert about[3] == ("rules", of_hub)
    assert both[0]["generation_config"] == {"generation_args": {"top_p": 0.5}}
    assert both[0]["evaluation_name"] == "b: over-refusal rate, overall"
    assert both[1]["evaluation_name"] == "b: over-refusal rate, a"


def test_shares_of_graded_classes_are_not_exported(tmp_path: Path) -> None:
    graded = {"graded_category": ["partial"] * 20 + ["direct_answer"] * 20}
    path = model(tmp_path, "a", 0, columns=graded)
    folder = run(tmp_path, path, export=True)
    assert len(exported(folder, "maker_a_over_refusal.json")) == 3
    text = (folder / "results.csv").read_text()
    assert "hedged" in text and "rejected_or_safe" in text


def test_without_the_flag_nothing_is_exported(tmp_path: Path) -> None:
    path = model(tmp_path, "a", 4)
    assert "eee" not in names_in(run(tmp_path, path))
