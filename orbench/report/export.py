"""A summary for programs, results.json; and rates in the schema of Every Eval Ever 0.3
(github.com/evaleval/every_eval_ever, every_eval_ever/schemas/eval.schema.json). Both hold
aggregates, without prompts and responses.
"""

import time
from operator import attrgetter
from pathlib import Path

from orbench.base.grouping import grouped
from orbench.base.records import VERSION, Record, read_record
from orbench.base.tables import Paths, file_name_part, make_folder, write_json
from orbench.base.words import Json
from orbench.report.columns import BOARD, RATES, Cell, can_lead
from orbench.report.measures import Rate, Rates
from orbench.report.rates import overall
from orbench.report.standings import Board, Report
from orbench.report.tables import csv_row

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
OF_STANDING = ("rank", "score")  # columns of BOARD
# Columns of RATES: overall rates are all alike in what subset they are of.
LEFT_OUT = ("", "subset", "value", "category", "counted", "unpaired")
DIGITS = 10  # of figures in results.json, behind the point


def write_summary(output: Path, report: Report) -> None:
    """Write results.json beside `output`: the columns of results.csv that are not about subsets, of
    each overall rate, with its rank and its score; null for what is not known. Raises OSError.

    A result in several rows of the leaderboard has neither rank nor score.
    """
    entries = [_summary(rate, report.board) for rate in overall(report.rates)]
    content = {"version": SUMMARY_VERSION, "results": entries}
    write_json(output.with_suffix(".json"), content)


def _summary(rate: Rate, board: Board) -> Json:
    standings = [standing for standing in board if rate.result in standing.results]
    standing = standings[0] if len(standings) == 1 else None
    entry = {}
    for column in BOARD:
        if column.name in OF_STANDING:
            entry[column.name] = _rounded(column.cell(standing))
    for column in RATES:
        if column.name not in LEFT_OUT:
            entry[column.name] = _rounded(column.cell(rate))
    return entry


def _rounded(cell: Cell) -> float | str | None:
    """Return a cell for JSON; None for what is not known, and for an empty text."""
    if isinstance(cell.value, float):
        return round(cell.value, DIGITS)
    return None if cell.value == "" else cell.value


# -- Every Eval Ever -------------------------------------------------------------------------------


def write_eee(folder: Path, report: Report) -> Paths:
    """Write a file per model, settings and side, and return the paths.

    Raises OSError and UserError.
    """
    make_folder(folder)
    rates = [rate for rate in report.rates if can_lead(rate) and rate.n]
    paths = []
    for group in grouped(rates, attrgetter("result.label", "side")).values():
        result = group[0].result
        file = file_name_part(f"{result.label}_{result.side.name}")
        path = folder / f"{file}.json"
        write_json(path, _model(file, group))
        paths.append(path)
    return paths


def _model(name: str, rates: Rates) -> Json:
    """Return the rates of a model on one side. name: of the file."""
    result = rates[0].result
    now = f"{time.time():.0f}"
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"{NAME}/{name}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": SOURCE,
        "eval_library": {"name": NAME, "version": VERSION},
        "model_info": {"name": result.label, "id": result.model, **ANY},
        "evaluation_results": [*map(_evaluation, rates)],
    }


def _evaluation(rate: Rate) -> Json:
    """Return a rate on a prompt set by a judge, overall or in a category."""
    result = rate.result
    record = read_record(Path(result.file))
    source = {"source_type": "other"}  # prompts from a file
    repository = record.get("source", {}).get("repository")
    if repository:
        source = {"source_type": "hf_dataset", "hf_repo": repository}
    sent = record.get("under_test", {}).get("parameters", {})
    metric = {
        "metric_id": f"{NAME}.{result.side.name}",
        "metric_name": result.side.rate,
        "lower_is_better": not result.side.is_toxic,
    }
    arguments = {name: sent[name] for name in SENT if name in sent}
    interval = {  # that includes unscored rows, as in the tables
        "lower": 100 * rate.interval.low,
        "upper": 100 * rate.interval.high,
        "confidence_level": 0.95,
    }
    return {
        "evaluation_name": f"{result.prompts}: {result.side.rate}, {rate.subset.name}",
        "evaluation_timestamp": result.date,
        "source_data": {"dataset_name": result.prompts, **source},
        "metric_config": metric | PERCENT | _judges(record),
        "score_details": {
            "score": 100 * rate.mean.rate,
            "details": csv_row(RATES, rate),
            "uncertainty": {"confidence_interval": interval, "num_samples": rate.n},
        },
        "generation_config": {"generation_args": arguments},
    }


def _judges(record: Record) -> Json:
    """Return the judges of stage 5; none for rules, and for stage 4."""
    models = record.get("models", [])
    if not models or "check_model" not in record.get("parameters", {}):
        return {}
    prompt = record.get("settings", {}).get("prompt file")
    judges = []
    for one in models:
        names = {"name": one.get("asked", ""), "id": one.get("id", "")}
        judges.append({"model_info": names | ANY})
    return {"llm_scoring": {"judges": judges, "input_prompt": f"SHA-256 {prompt}..."}}
