"""A summary for programs, results.json; and rates in the schema of Every Eval Ever 0.3
(github.com/evaleval/every_eval_ever, every_eval_ever/schemas/eval.schema.json). Both hold
aggregates, without prompts and responses.
"""

import json
import time
from math import isnan
from pathlib import Path

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.records import VERSION, Record, read_record
from orbench.base.tables import file_name_part, make_folder, write_text
from orbench.base.words import MACRO, SIDES
from orbench.report.frames import Entry
from orbench.report.rates import RATE_COLUMNS, label, overall

NAME = "orbench"
SUMMARY_VERSION = 1  # of the format of results.json; a new column does not change it
ANY = {"additional_details": {"deployment_type": "unknown", "model_availability": "unknown"}}
SOURCE = {
    "source_name": NAME,
    "source_type": "evaluation_run",
    "source_organization_name": "unknown",
    "evaluator_relationship": "other",
}
PERCENT = {"metric_unit": "percent", "score_type": "continuous", "min_score": 0, "max_score": 100}
DETAILS = ("category", "judge", "settings", "prompt_set", "unscored", "design_effect", "notes")
SENT = ("temperature", "top_p", "max_tokens")  # parameters that the schema has fields for


def write_summary(output: Path, results: DataFrame, board: DataFrame) -> Path:
    """Write results.json beside `output` and return its path: a row of results.csv per result, with
    its rank and its score, null for what is not known. Raises OSError.

    results, board: of `rates` and `leaderboard`. A result in several rows of the leaderboard has
    neither rank nor score.
    """
    places = board.melt(["rank", "score"], ["safe", "toxic"], value_name="result")
    places = places.drop_duplicates("result", keep=False)
    table = overall(results).merge(places, "left", "result")
    table = table[["rank", "score", *RATE_COLUMNS]].drop(columns="category")
    content = table.replace("", None).convert_dtypes().to_json(orient="records", indent=2)
    path = output.with_suffix(".json")
    write_text(path, f'{{"version": {SUMMARY_VERSION}, "results": {content}}}\n')
    return path


def write_eee(folder: Path, results: DataFrame) -> list[Path]:
    """Write a file per model, settings and side, and return the paths. results: of `rates`.

    Raises OSError and UserError.
    """
    make_folder(folder)
    paths = []
    scored = results[(results["category"] != MACRO) & (results["n"] > 0)]
    for (model, _, side), part in scored.groupby(["model", "settings", "side"], sort=False):
        rows = part.to_dict("records")
        name = label(rows[0])
        file = file_name_part(f"{name}_{side}")
        now = f"{time.time():.0f}"
        content = {
            "schema_version": "0.3.0",
            "evaluation_id": f"{NAME}/{file}/{now}",
            "retrieved_timestamp": now,
            "source_metadata": SOURCE,
            "eval_library": {"name": NAME, "version": VERSION},
            "model_info": {"name": name, "id": model, **ANY},
            "evaluation_results": [_result(row) for row in rows],
        }
        paths.append(folder / f"{file}.json")
        write_text(paths[-1], json.dumps(content, indent=2) + "\n")
    return paths


def _result(row: Entry) -> Entry:
    """A rate on a prompt set by a judge, overall or in a category."""
    side = SIDES[row["side"]]
    record = read_record(Path(row["file"]))
    source = {"source_type": "other"}  # prompts from a file
    repository = record.get("source", {}).get("repository")
    if repository:
        source = {"source_type": "hf_dataset", "hf_repo": repository}
    sent = record.get("under_test", {}).get("parameters", {})
    return {
        "evaluation_name": f"{row['prompts']}: {side.rate}, {row['category']}",
        "evaluation_timestamp": row["date"],
        "source_data": {"dataset_name": row["prompts"], **source},
        "metric_config": {
            "metric_id": f"{NAME}.{side.name}",
            "metric_name": side.rate,
            **PERCENT,
            **_judges(record),
            "lower_is_better": not side.is_toxic,
        },
        "score_details": _score(row),
        "generation_config": {
            "generation_args": {name: sent[name] for name in SENT if name in sent}
        },
    }


def _judges(record: Record) -> Entry:
    """The judges of stage 5; none for rules, and for stage 4."""
    models = record.get("models", [])
    if not models or "check_model" not in record.get("parameters", {}):
        return {}
    prompt = record.get("settings", {}).get("prompt file")
    judges = [{"model_info": {"name": one["asked"], "id": one["id"], **ANY}} for one in models]
    return {"llm_scoring": {"judges": judges, "input_prompt": f"SHA-256 {prompt}..."}}


def _score(row: Entry) -> Entry:
    # The interval that includes unscored rows, as in the tables.
    kind = "all_percent"
    if isnan(row["low_all_percent"]):  # unscored rows are not known
        kind = "percent"
    ends = {"lower": row[f"low_{kind}"], "upper": row[f"high_{kind}"]}
    interval = ends | {"confidence_level": 0.95}
    return {
        "score": row["rate_percent"],
        "details": {name: str(row[name]) for name in DETAILS},
        "uncertainty": {"confidence_interval": interval, "num_samples": int(row["n"])},
    }
