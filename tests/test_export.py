"""The schema of Every Eval Ever, and what a second run of plot_results.py leaves alone."""

import json
from functools import reduce
from typing import Any

import pytest

from orbench.base.records import VERSION
from orbench.report import reuse
from tests.conftest import ALIGN, CHECK, Desk
from tests.server import by_number
from tests.test_report import ANSWER, DIRECT, judged

PLOT = "response_checker/plot_results.py"
# The required fields of eval.schema.json 0.3.0 (every_eval_ever), and those of what we add.
REQUIRED = """
schema_version evaluation_id retrieved_timestamp eval_library.name eval_library.version
source_metadata.source_type source_metadata.source_organization_name
source_metadata.evaluator_relationship model_info.name model_info.id
model_info.additional_details.deployment_type model_info.additional_details.model_availability
"""
OF_A_RESULT = """
evaluation_name source_data.dataset_name source_data.source_type metric_config.lower_is_better
metric_config.min_score metric_config.max_score score_details.score
score_details.uncertainty.confidence_interval.lower
score_details.uncertainty.confidence_interval.upper score_details.uncertainty.num_samples
"""


def values(found: Any, paths: str) -> list[Any]:
    """What stands at these paths; a KeyError if anything is missing."""
    return [reduce(lambda one, name: one[name], path.split("."), found) for path in paths.split()]


def test_each_model_and_side_is_exported_without_a_prompt(desk: Desk) -> None:
    desk.prompts(40)
    refusal = "I'm sorry, but I can't help with that."
    desk.serve(by_number({n: refusal for n in range(10)}))
    desk.stage(ALIGN, "--model=me/own", "--output_path=r.csv")
    rows = [(f"Why fold paper bird number {n}?", "ab"[n % 2]) for n in range(9)]
    desk.csv("t.csv", ("prompt", "category"), rows)
    desk.stage(ALIGN, "--model=me/own", "--input_file=t.csv", "--output_path=tr.csv")
    record = desk.record("tr.csv") | {"source": {"repository": "o/n"}}
    (desk.folder / "tr.run.json").write_text(json.dumps(record))
    desk.serve(by_number({n: "[[direct_refusal]]" for n in range(10)}, "[[direct_answer]]"))
    assert desk.stage(CHECK).returncode == 0
    flags = ("--over_refusal", "o.csv", "--toxic", "tr.csv", "--table", "--export=eee")
    done = desk.run(PLOT, *flags)
    assert done.returncode == 0, done.stderr
    names = ("me_own_over_refusal", "me_own_toxic")
    texts = [(desk.folder / "results" / "eee" / f"{name}.json").read_text() for name in names]
    safe, toxic = map(json.loads, texts)
    for found in (safe, toxic):
        assert all(isinstance(value, str) for value in values(found, REQUIRED))
        assert len([values(one, OF_A_RESULT) for one in found["evaluation_results"]]) == 3
    assert safe["schema_version"] == "0.3.0" and safe["eval_library"]["version"] == VERSION
    first = safe["evaluation_results"][0]
    _, _, kind, lower, least, most, score, low, high, n = values(first, OF_A_RESULT)
    assert (kind, lower, score, n) == ("other", True, 25.0, 40)
    assert (least, most, round(low, 1), round(high, 1)) == (0, 100, 14.2, 40.2)
    assert toxic["evaluation_results"][0]["metric_config"]["lower_is_better"] is False
    assert toxic["evaluation_results"][0]["source_data"]["hf_repo"] == "o/n"
    judges = first["metric_config"]["llm_scoring"]["judges"]
    assert judges[0]["model_info"]["name"] == "gpt-x"
    assert first["generation_config"]["generation_args"]["max_tokens"] == 1000
    assert "llm_scoring" not in toxic["evaluation_results"][0]["metric_config"]
    assert "paper bird" not in texts[0] + texts[1]


def test_a_report_is_made_again_only_if_something_changed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    safe = judged(desk, "s.csv", [DIRECT, ANSWER] * 15)
    flags = ("--over_refusal", "s.csv", "--table")
    assert desk.run(PLOT, *flags).returncode == 0
    first = desk.files()
    again = desk.run(PLOT, *flags)
    assert (again.returncode, again.stdout) == (0, "results/results.csv\n")
    assert "nothing has changed" in again.stderr and desk.files() == first
    record = safe.with_suffix(".run.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"end": "later"}))
    assert "nothing has changed" in desk.run(PLOT, *flags).stderr  # a run without news
    record.write_text(json.dumps(json.loads(record.read_text()) | {"scripted": True}))
    assert "nothing has changed" not in desk.run(PLOT, *flags).stderr
    (desk.folder / "s_failed.csv").write_text("prompt,error_type\nx,unscored\n")
    assert "nothing has changed" not in desk.run(PLOT, *flags).stderr
    judged(desk, "s.csv", [DIRECT] * 30)
    assert "nothing has changed" not in desk.run(PLOT, *flags).stderr
    (desk.folder / "s_failed.csv").unlink()
    moved = ("--toxic", "s.csv", "--table")  # the same file on the other side
    assert "nothing has changed" not in desk.run(PLOT, *moved).stderr
    assert "nothing has changed" not in desk.run(PLOT, *flags).stderr
    monkeypatch.setattr(reuse, "__file__", str(desk.folder / "report/reuse.py"))  # other code
    assert "nothing has changed" not in desk.run(PLOT, *flags).stderr
    (desk.folder / "results" / "results.md").unlink()
    assert "nothing has changed" not in desk.run(PLOT, *flags).stderr


def test_only_its_own_files_of_the_last_run_are_removed(desk: Desk) -> None:
    judged(desk, "s.csv", [DIRECT, ANSWER] * 15)
    results = desk.folder / "results"
    assert desk.run(PLOT, "--over_refusal", "s.csv", "--html").returncode == 0
    (results / "figures" / "mine.png").write_bytes(b"")
    record = desk.record("results/results.csv")
    record["files"] += ["../s.csv", "figures/../../s.csv", str(desk.folder / "s.csv")]
    (results / "results.run.json").write_text(json.dumps(record))
    assert desk.run(PLOT, "--over_refusal", "s.csv", "--table").returncode == 0
    assert [path.name for path in (results / "figures").iterdir()] == ["mine.png"]
    assert not (results / "results.html").exists() and (desk.folder / "s.csv").exists()
