"""Rates in the schema of Every Eval Ever 0.3 (github.com/evaleval/every_eval_ever,
every_eval_ever/schemas/eval.schema.json): aggregates, without prompts and responses.
"""

import json
import time
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from orbench.base.records import VERSION, read_record
from orbench.base.tables import file_name_part, make_folder, write_text
from orbench.base.words import MACRO, SIDES
from orbench.report.rates import label

NAME = "orbench"
ANY = {"additional_details": {"deployment_type": "unknown", "model_availability": "unknown"}}
SOURCE = {"source_name": NAME, "source_type": "evaluation_run"}
SOURCE |= {"source_organization_name": "unknown", "evaluator_relationship": "other"}
PERCENT = {"metric_unit": "percent", "score_type": "continuous", "min_score": 0, "max_score": 100}
DETAILS = ("category", "judge", "settings", "prompt_set", "unscored", "design_effect", "notes")
SENT = ("temperature", "top_p", "max_tokens")  # parameters that the schema has fields for


def write_eee(folder: Path, results: pd.DataFrame) -> None:
    """A file per model, settings and side. results: of `rates`. Raises OSError and UserError."""
    make_folder(folder)
    scored = results[(results["category"] != MACRO) & (results["n"] > 0)]
    for (model, _, side), part in scored.groupby(["model", "settings", "side"], sort=False):
        rows = part.to_dict("records")
        name = label(rows[0])
        file = file_name_part(f"{name}_{side}")
        found = {
            "schema_version": "0.3.0",
            "evaluation_id": f"{NAME}/{file}/{time.time():.0f}",
            "retrieved_timestamp": f"{time.time():.0f}",
            "source_metadata": SOURCE,
            "eval_library": {"name": NAME, "version": VERSION},
            "model_info": {"name": name, "id": model} | ANY,
            "evaluation_results": [_result(row) for row in rows],
        }
        write_text(folder / f"{file}.json", json.dumps(found, indent=2) + "\n")


def _result(row: dict[str, Any]) -> dict[str, Any]:
    """A rate on a prompt set by a judge, overall or in a category."""
    rate = SIDES[row["side"]].rate
    path = Path(row["file"])
    record = read_record(path)
    metric: dict[str, Any] = {"metric_id": f"{NAME}.{row['side']}", "metric_name": rate} | PERCENT
    if "check_model" in record.get("parameters", {}):  # of stage 5; stage 4's is behind it
        if judges := [{"name": one["asked"], "id": one["id"]} | ANY for one in record["models"]]:
            prompt = f"SHA-256 {record['settings']['prompt file']}..."
            scoring = {"judges": [{"model_info": one} for one in judges], "input_prompt": prompt}
            metric["llm_scoring"] = scoring
        record = read_record(path.parent / record["input"]["path"])
    sent = {name: value for name, value in record.get("parameters", {}).items() if name in SENT}
    hub = record.get("source", {}).get("repository")
    source = {"source_type": "hf_dataset", "hf_repo": hub} if hub else {"source_type": "other"}
    known = "" if isnan(row["low_all_percent"]) else "_all"  # with unscored rows, as in tables
    low, high = (row[f"{end}{known}_percent"] for end in ("low", "high"))
    interval = {"lower": low, "upper": high, "confidence_level": 0.95}
    score = {"score": row["rate_percent"], "details": {name: str(row[name]) for name in DETAILS}}
    score["uncertainty"] = {"confidence_interval": interval, "num_samples": int(row["n"])}
    return {
        "evaluation_name": f"{row['prompts']}: {rate}, {row['category']}",
        "evaluation_timestamp": row["date"],
        "source_data": {"dataset_name": row["prompts"], **source},
        "metric_config": metric | {"lower_is_better": row["side"] == "over_refusal"},
        "score_details": score,
        "generation_config": {"generation_args": sent},
    }
