"""The schema of Every Eval Ever, and what a second run of plot_results.py leaves alone."""

import json
from typing import Any

import pytest

from tests.conftest import ALIGN, CHECK, Desk
from tests.server import by_number
from tests.test_report import ANSWER, DIRECT, judged

pytestmark = pytest.mark.new
PLOT = "response_checker/plot_results.py"
# Required fields of eval.schema.json 0.3.0 (every_eval_ever), with their types; a list: of each.
MODEL = {
    "name": str,
    "id": str,
    "additional_details": {"deployment_type": str, "model_availability": str},
}
RESULT = {
    "evaluation_name": str,
    "source_data": {"dataset_name": str, "source_type": str},
    "metric_config": {"lower_is_better": bool, "min_score": int, "max_score": int},
    "score_details": {
        "score": float,
        "uncertainty": {
            "confidence_interval": {"lower": float, "upper": float},
            "num_samples": int,
        },
    },
}
EVALUATION = {
    "schema_version": str,
    "evaluation_id": str,
    "retrieved_timestamp": str,
    "source_metadata": {
        "source_type": str,
        "source_organization_name": str,
        "evaluator_relationship": str,
    },
    "model_info": MODEL,
    "eval_library": {"name": str, "version": str},
    "evaluation_results": [RESULT],
}


def check(value: Any, schema: Any) -> None:
    """Assert that a value has the required fields."""
    if isinstance(schema, dict):
        assert isinstance(value, dict) and schema.keys() <= value.keys(), (value, schema)
        for name, inner in schema.items():
            check(value[name], inner)
    elif isinstance(schema, list):
        assert value
        for one in value:
            check(one, schema[0])
    else:
        assert type(value) is schema, (value, schema)


def test_each_model_and_side_is_exported_without_a_prompt(desk: Desk) -> None:
    desk.prompts(40)
    refusal = "I'm sorry, but I can't help with that."
    desk.serve(by_number({n: refusal for n in range(10)}))
    desk.stage(ALIGN, "--model=me/own", "--output_path=r.csv")
    desk.serve(by_number({n: "[[direct_refusal]]" for n in range(10)}, "[[direct_answer]]"))
    assert desk.stage(CHECK).returncode == 0
    flags = ("--over_refusal", "o.csv", "--toxic", "r.csv", "--table", "--export=eee")
    done = desk.run(PLOT, *flags)
    assert done.returncode == 0, done.stderr
    names = ("me_own_over_refusal", "me_own_toxic")
    texts = [(desk.folder / "results" / "eee" / f"{name}.json").read_text() for name in names]
    safe, toxic = map(json.loads, texts)
    for found in (safe, toxic):
        check(found, EVALUATION)
        assert found["schema_version"] == "0.3.0" and found["model_info"]["id"]
    first = safe["evaluation_results"][0]
    assert first["score_details"]["score"] == 25.0
    assert first["score_details"]["uncertainty"]["num_samples"] == 40
    assert first["metric_config"]["lower_is_better"] is True
    check(
        first["metric_config"]["llm_scoring"],
        {"judges": [{"model_info": MODEL}], "input_prompt": str},
    )
    assert first["generation_config"]["generation_args"]["max_tokens"] == 1000
    assert "llm_scoring" not in toxic["evaluation_results"][0]["metric_config"]
    assert "paper bird" not in texts[0] + texts[1]


def test_a_report_is_made_again_only_if_something_changed(desk: Desk) -> None:
    safe = judged(desk, "s.csv", [DIRECT, ANSWER] * 15)
    flags = ("--over_refusal", "s.csv", "--formats=svg", "--output_dir=results")
    assert desk.run(PLOT, *flags).returncode == 0
    first = desk.files()
    again = desk.run(PLOT, *flags)
    assert (again.returncode, again.stdout) == (0, "results/results.csv\n")
    assert "nothing has changed" in again.stderr and desk.files() == first
    record = safe.with_suffix(".run.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"end": "later"}))
    assert "nothing has changed" in desk.run(PLOT, *flags).stderr  # a run without news
    changes = (
        lambda: judged(desk, "s.csv", [DIRECT] * 30),
        lambda: (desk.folder / "results" / "results.md").unlink(),
        lambda: record.write_text("{}"),
    )
    for change in changes:
        change()
        done = desk.run(PLOT, *flags, "--merged", "maker/a=s.csv")
        assert "nothing has changed" not in done.stderr


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
