"""The schema of Every Eval Ever."""

import json
from functools import reduce
from typing import Any

import pytest

from orbench.base.records import VERSION
from tests.conftest import ALIGN, CHECK, Desk
from tests.server import by_number

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
    """From folders as measure.py names them."""
    desk.prompts(40)
    refused = range(10)
    desk.serve(by_number({n: "I'm sorry, but I can't help with that." for n in refused}))
    responses = "results/responses/over_refusal/p/me_own.csv"
    desk.stage(ALIGN, "--model=me/own", f"--output_path={responses}")
    desk.csv("t.csv", ("prompt",), [(f"Why fold paper bird number {n}?",) for n in range(9)])
    desk.stage(ALIGN, "--model=me/own", "--input_file=t.csv", "--output_path=tr.csv")
    record = desk.record("tr.csv") | {"source": {"repository": "o/n"}}
    desk.write("tr.run.json", json.dumps(record))
    desk.serve(by_number(dict.fromkeys(refused, "[[direct_refusal]]"), "[[direct_answer]]"))
    output = "--output_path=results/over_refusal/gpt-x/p/me_own.csv"
    desk.stage(CHECK, f"--input_file={responses}", output)
    flags = ("--over_refusal", "results/over_refusal", "--toxic", "tr.csv")
    desk.run(PLOT, *flags, "--table", "--export=eee")
    folder = desk.folder / "results" / "eee"
    texts = [(folder / f"me_own_{side}.json").read_text() for side in ("over_refusal", "toxic")]
    assert "paper bird" not in "".join(texts)
    safe, toxic = map(json.loads, texts)
    for model in (safe, toxic):
        assert all(isinstance(value, str) for value in values(model, REQUIRED))
        assert [values(result, OF_A_RESULT) for result in model["evaluation_results"]]
    assert safe["evaluation_id"].startswith("orbench/me_own_over_refusal/")
    assert safe["schema_version"] == "0.3.0"
    assert safe["eval_library"] == {"name": "orbench", "version": VERSION}
    first, of_toxic = safe["evaluation_results"][0], toxic["evaluation_results"][0]
    shown = values(first, OF_A_RESULT)[2:]
    expected = ["other", True, 0, 100, 25.0, pytest.approx(14.2, abs=0.1)]
    assert shown == [*expected, pytest.approx(40.2, abs=0.1), 40]
    assert of_toxic["metric_config"]["lower_is_better"] is False
    assert of_toxic["source_data"]["hf_repo"] == "o/n"
    (judge,) = first["metric_config"]["llm_scoring"]["judges"]
    assert judge["model_info"]["name"] == "gpt-x"
    assert "llm_scoring" not in of_toxic["metric_config"]
    sent = {"temperature": 0.0, "max_tokens": 1000}
    assert first["generation_config"]["generation_args"] == sent
