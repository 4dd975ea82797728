"""A summary for programs, results.json; and rates in the schema of Every Eval Ever 0.3
(github.com/evaleval/every_eval_ever, every_eval_ever/schemas/eval.schema.json). Both hold
aggregates, without prompts and responses.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from orbench.base.grouping import grouped
from orbench.base.records import VERSION, Record, read_record
from orbench.base.tables import file_name_part, make_folder, write_text
from orbench.base.words import Json
from orbench.report.columns import (
    OF_SUBSETS,
    RANK,
    RATES,
    SCORE,
    UNPAIRED,
    can_lead,
    joined,
)
from orbench.report.measures import Rate
from orbench.report.rates import overall
from orbench.report.sentences import notes_of
from orbench.report.standings import Report, Standing
from orbench.report.tables import known, text_of

NAME = "orbench"
SUMMARY_VERSION = 1  # of the format of results.json; a new member does not change it
ANY = {"additional_details": {"deployment_type": "unknown", "model_availability": "unknown"}}
SOURCE = {
    "source_name": NAME,
    "source_type": "evaluation_run",
    "source_organization_name": "unknown",
    "evaluator_relationship": "other",
}
PERCENT = {"metric_unit": "percent", "score_type": "continuous", "min_score": 0, "max_score": 100}
SENT = ("temperature", "top_p", "max_tokens")  # parameters that the schema has fields for
DIGITS = 10  # of figures in results.json, behind the point


def write_summary(output: Path, report: Report) -> Path:
    """Write results.json beside `output` and return its path: the columns of results.csv that are
    not about subsets, of each overall rate, with its rank and its score; null for what is not
    known. Raises OSError.

    A result in several rows of the leaderboard has neither rank nor score.
    """
    entries = [_summary(rate, report.board) for rate in overall(report.rates)]
    content = {"version": SUMMARY_VERSION, "results": entries}
    path = output.with_suffix(".json")
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return path


def _summary(rate: Rate, board: Sequence[Standing]) -> Json:
    of_result = [standing for standing in board if rate.result in standing.results]
    entry: Json = {}
    for of_board in (RANK, SCORE):
        entry[of_board.name] = None
        if len(of_result) == 1:
            entry[of_board.name] = _rounded(of_board.value(of_result[0]))
    for column in RATES:
        if column.name and column not in (*OF_SUBSETS, UNPAIRED):
            entry[column.name] = _rounded(column.value(rate))
    return entry


def _rounded(value: object) -> object:
    """Return a value for JSON; None for what is not known, and for an empty text."""
    value = known(value)
    if isinstance(value, float):
        return round(value, DIGITS)
    return None if value == "" else value


# -- Every Eval Ever -------------------------------------------------------------------------------


def write_eee(folder: Path, report: Report) -> list[Path]:
    """Write a file per model, settings and side, and return the paths.

    Raises OSError and UserError.
    """
    make_folder(folder)
    rates = [rate for rate in report.rates if can_lead(rate) and rate.n]
    groups = grouped(rates, lambda rate: (rate.result.label, rate.side))
    return [_write_model(folder, group) for group in groups.values()]


def _write_model(folder: Path, rates: Sequence[Rate]) -> Path:
    """Write the rates of a model on one side, and return the path."""
    result = rates[0].result
    file = file_name_part(f"{result.label}_{result.side.name}")
    now = f"{time.time():.0f}"
    content = {
        "schema_version": "0.3.0",
        "evaluation_id": f"{NAME}/{file}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": SOURCE,
        "eval_library": {"name": NAME, "version": VERSION},
        "model_info": {"name": result.label, "id": result.model, **ANY},
        "evaluation_results": [_evaluation(rate) for rate in rates],
    }
    path = folder / f"{file}.json"
    write_text(path, json.dumps(content, indent=2) + "\n")
    return path


def _evaluation(rate: Rate) -> Json:
    """Return a rate on a prompt set by a judge, overall or in a category."""
    result = rate.result
    record = read_record(Path(result.file))
    source = {"source_type": "other"}  # prompts from a file
    repository = record.get("source", {}).get("repository")
    if repository:
        source = {"source_type": "hf_dataset", "hf_repo": repository}
    sent = record.get("under_test", {}).get("parameters", {})
    return {
        "evaluation_name": f"{result.prompts}: {result.side.rate}, {rate.subset.name}",
        "evaluation_timestamp": result.date,
        "source_data": {"dataset_name": result.prompts, **source},
        "metric_config": {
            "metric_id": f"{NAME}.{result.side.name}",
            "metric_name": result.side.rate,
            **PERCENT,
            **_judges(record),
            "lower_is_better": not result.side.is_toxic,
        },
        "score_details": _score(rate),
        "generation_config": {
            "generation_args": {name: sent[name] for name in SENT if name in sent}
        },
    }


def _judges(record: Record) -> Json:
    """Return the judges of stage 5; none for rules, and for stage 4."""
    models = record.get("models", [])
    if not models or "check_model" not in record.get("parameters", {}):
        return {}
    prompt = record.get("settings", {}).get("prompt file")
    judges = [{"model_info": {"name": one["asked"], "id": one["id"], **ANY}} for one in models]
    return {"llm_scoring": {"judges": judges, "input_prompt": f"SHA-256 {prompt}..."}}


def _score(rate: Rate) -> Json:
    interval = {  # that includes unscored rows, as in the tables
        "lower": 100 * rate.interval.low,
        "upper": 100 * rate.interval.high,
        "confidence_level": 0.95,
    }
    return {
        "score": 100 * rate.mean.rate,
        "details": {
            "category": rate.subset.name,
            "judge": rate.result.judge,
            "settings": rate.result.settings,
            "prompt_set": rate.result.prompt_set,
            "unscored": text_of(rate.unscored),
            "design_effect": text_of(rate.mean.design_effect),
            "notes": joined(notes_of(rate)),
        },
        "uncertainty": {"confidence_interval": interval, "num_samples": rate.n},
    }
