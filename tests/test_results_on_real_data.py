"""The two models' responses through stage 5 `keyword` into every output of plot_results.py."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import CHECK, SHARED_DATA, read_csv, run

PLOT = "response_checker/plot_results.py"
FILES = {
    "Llama-3-8B-Instruct": "or_bench_hard_1k_llama3_8b_instruct.csv",
    "DeepSeek-R1-Distill-Llama-8B": "or_bench_hard_1k_deepseek_r1_distill_llama_8b.csv",
}

pytestmark = pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no shared data")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both files judged, then every output made ; one file stands for a toxic side too."""
    folder = tmp_path_factory.mktemp("real")
    judged = []
    for model, name in FILES.items():
        shutil.copyfile(SHARED_DATA / name, folder / name)
        done = run(CHECK, "--check_model=keyword", "--quiet", f"--input_file={name}", cwd=folder)
        assert done.returncode == 0, done.stderr
        judged.append(f"{model}={done.stdout.strip()}")
    args = ["--over_refusal", *judged, "--toxic", judged[0], "--html"]
    done = run(PLOT, *args, "--formats", "svg", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_n_and_rates_are_those_of_the_reference_judge_or_near_them(folder: Path) -> None:
    with (SHARED_DATA / "or_bench_hard_1k_llama3_8b_reference.csv").open() as file:
        reference = {row["category"]: row for row in csv.DictReader(file)}
    rows = {
        row["category"]: row
        for row in read_csv(folder / "results" / "results.csv")
        if row["model"] == "Llama-3-8B-Instruct" and row["side"] == "over_refusal"
    }
    assert rows["overall"]["n"] == "1319" and rows["overall"]["counted_by"] == "stage 5 keyword"
    assert abs(float(rows["overall"]["rate_percent"]) - 63.0) < 4
    for category, expected in reference.items():
        assert rows[category]["n"] == expected["n"], category
        difference = float(rows[category]["rate_percent"]) - float(expected["refusal_rate"])
        assert abs(difference) < 12, category


def test_both_models_were_measured_on_the_same_prompts(folder: Path) -> None:
    rows = read_csv(folder / "results" / "results.csv")
    assert len({row["prompt_set"] for row in rows if row["prompt_set"]}) == 1
    (pair,) = read_csv(folder / "results" / "comparison.csv")
    assert pair["prompts"] == "1319"
    assert float(pair["low_points"]) < float(pair["difference_points"]) < float(pair["high_points"])


def test_every_output_is_there(folder: Path) -> None:
    found = {path.name for path in (folder / "results").iterdir()}
    tables = {"results.csv", "results.run.json", "results.md", "results.tex", "comparison.csv"}
    pictures = {"scatter.svg", "heatmap_over_refusal.svg", "heatmap_toxic.svg"}
    for model in FILES:
        pictures |= {f"bars_{model}.svg", f"radar_{model}.svg"}
    assert found == tables | pictures | {"results.html"}


def test_the_page_holds_every_prompt_and_response(folder: Path) -> None:
    page = (folder / "results" / "results.html").read_text(encoding="utf-8")
    text = page.partition('id="data">')[2].partition("</script>")[0]
    data = json.loads(text)
    assert len(data["rows"]) == data["total"] == 3 * 1319
    assert len(data["prompts"]) == 1319
