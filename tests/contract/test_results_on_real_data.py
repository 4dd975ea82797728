"""Responses of two models through stage 5 `rules` and plot_results.py."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import CHECK, SHARED_DATA, read_csv, run

pytestmark = pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no shared data")
PLOT = "response_checker/plot_results.py"
FILES = {
    "Llama-3-8B-Instruct": "or_bench_hard_1k_llama3_8b_instruct.csv",
    "DeepSeek-R1-Distill-Llama-8B": "or_bench_hard_1k_deepseek_r1_distill_llama_8b.csv",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both files judged, then every output."""
    folder = tmp_path_factory.mktemp("real")
    judged = []
    for model, name in FILES.items():
        shutil.copyfile(SHARED_DATA / name, folder / name)
        done = run(CHECK, "--check_model=rules", "--quiet", f"--input_file={name}", cwd=folder)
        judged.append(f"{model}={done.stdout.strip()}")
    run(PLOT, "--over_refusal", *judged, "--html", "--formats=svg", cwd=folder)
    return folder / "results"


def test_rates_are_those_of_the_reference_judge_or_near_them(folder: Path) -> None:
    reference = read_csv(SHARED_DATA / "or_bench_hard_1k_llama3_8b_reference.csv")
    rows = {
        row["value"] or row["subset"]: row
        for row in read_csv(folder / "results.csv")
        if row["model"] == "Llama-3-8B-Instruct" and row["side"] == "over_refusal"
    }
    assert (rows["overall"]["n"], rows["overall"]["judge"]) == ("1319", "rules")
    assert abs(float(rows["overall"]["rate_percent"]) - 63.0) < 4
    for expected in reference:
        row = rows[expected["category"]]
        assert row["n"] == expected["n"], row
        assert abs(float(row["rate_percent"]) - float(expected["refusal_rate"])) < 12, row


def test_both_models_are_compared_on_all_prompts(folder: Path) -> None:
    rows = read_csv(folder / "results.csv")
    counts = Counter(row["subset"] for row in rows)
    assert counts.items() >= {"overall": 2, "macro average": 2, "category": 20}.items()
    assert len({row["prompt_set"] for row in rows}) == 1
    assert not any("rewrites" in row["notes"] for row in rows)
    (pair,) = read_csv(folder / "comparison.csv")
    assert pair["n"] == "1319"
    kinds = {path.stem.removesuffix("_narrow") for path in (folder / "figures").iterdir()}
    assert kinds == {"dumbbell", "categories_over_refusal", "differences_over_refusal"}
