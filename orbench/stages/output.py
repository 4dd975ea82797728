"""What a run leaves: the CSVs, the failed file, the run record and the closing lines."""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from orbench.asking.models import Model, is_same_model
from orbench.asking.requests import Missing, Tokens
from orbench.base.messages import UserError, counted, one_line, say, tell, without_query
from orbench.base.prompts import prompt_id_of, prompt_set_hash, set_name
from orbench.base.records import (
    CARRIED,
    FAILED,
    NOT_ASKED,
    Record,
    failed_hash,
    is_scripted,
    read_record,
    versions,
    write_record,
)
from orbench.base.tables import CsvWriter, read_csv, sha256_of
from orbench.base.words import VERDICTS, Row
from orbench.stages.job import Found, Job, outcome
from orbench.stages.stage import Stage

SCRIPTED_NOTE = "scripted model: fixed texts, not a real model's; this measures nothing"
SCRIPTED_INPUT_NOTE = "prompts of the scripted model, written by hand; responses of a real model"
GENERATORS = ("toxic_prompt_generator", "rewritter")


def settings_of(stage: Stage) -> dict[str, str]:
    """What the requests of a run are made with, its input aside: name -> text."""
    models = ", ".join(f"{model.id} at {model.address}" for model in stage.models)
    prompt = sha256_of(stage.prompt_file)[:12] if stage.prompt_file else ""
    values = {name: json.dumps(value, sort_keys=True) for name, value in stage.parameters.items()}
    return {"stage": stage.name, "model": models, "prompt file": prompt, **values}


def check_not_replaced(stage: Stage) -> None:
    """Raise UserError if this run, without --overwrite, would replace results that were made with
    other settings, or hold rows that the input does not have.
    """
    there = [path for path in stage.outputs.values() if path.is_file()]
    if stage.args.overwrite or not there:
        return
    before = read_record(there[0]).get("settings")
    now = settings_of(stage)
    if not isinstance(before, dict):
        wrong = [f"{there[0]} is not a result of this stage"]
    else:
        pairs = [(name, str(before.get(name)), str(now.get(name))) for name in before | now]
        wrong = [f"{name} was {one_line(a)}, now {one_line(b)}" for name, a, b in pairs if a != b]
    if not wrong and (rows := _rows_not_in_input(stage, there)):
        wrong = [f"{there[0]} holds {counted(rows, 'row')} that this input does not have"]
    if wrong:
        kept = f"existing results are kept: {'; '.join(wrong)}"
        raise UserError(f"{kept}. Choose another --output_path or pass --overwrite")


def _rows_not_in_input(stage: Stage, outputs: list[Path]) -> int:
    """How many rows of existing results come from no row of this input."""
    tables = [read_csv(path, is_input=False) for path in outputs]
    columns = [name for name in stage.table.columns if name in tables[0].columns]
    if not columns:
        return 0
    known = {hash(tuple(row[name] for name in columns)) for row in stage.table.rows}
    origins = (stage.origin(row) for table in tables for row in table.rows)
    return sum(hash(tuple(row[name] for name in columns)) not in known for row in origins)


@dataclass
class Counts:
    """What came of a run's rows and answers."""

    rows: Counter[str] = field(default_factory=Counter)  # done, failed, unscored, not_asked
    answers: Counter[str] = field(default_factory=Counter)  # reused, cut off
    written: int = 0  # output rows
    tokens: Tokens = field(default_factory=Tokens)  # of the answers used
    errors: Counter[str] = field(default_factory=Counter)
    # By model as asked: `Answer.served_by`, and the parameters that were left out
    served_by: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    dropped: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    prompts: set[str] = field(default_factory=set)  # ids
    _used: set[bytes] = field(default_factory=set)  # keys of answers

    @property
    def aside(self) -> int:
        """Rows in the failed file."""
        return self.rows.total() - self.rows["done"]

    def add(self, row: Row, result: list[Row] | Missing, found: list[Found], job: Job) -> None:
        """Count one row."""
        if "prompt" in row:
            self.prompts.add(prompt_id_of(row))
        if isinstance(result, list):
            self.rows["done"] += 1
            self.written += len(result)
        elif result.kind in ("bad_request", "gave_up"):
            self.rows["failed"] += 1
            self.errors[result.why] += 1
        else:
            self.rows[NOT_ASKED if result.kind == NOT_ASKED else "unscored"] += 1
        for request, answer, _ in found:
            if answer is not None and request.key not in self._used:
                self._used.add(request.key)
                self.answers["reused"] += job.log.was_there(request.key)
                self.answers["cut off"] += answer.cut_off
                self.tokens.add(answer)
                self.served_by[request.model.asked][answer.served_by] += 1
                self.dropped[request.model.asked].update(answer.dropped)


def write_outputs(job: Job) -> Counts:
    """Write the CSVs, the failed file and the run record. Raises UserError."""
    stage = job.stage
    counts = Counts()
    try:
        with ExitStack() as stack:
            writers = {
                label: stack.enter_context(CsvWriter(path, stage.columns))
                for label, path in stage.outputs.items()
            }
            columns = list(dict.fromkeys([*stage.table.columns, "error_type", "error"]))
            failed = stack.enter_context(CsvWriter(stage.beside(FAILED), columns))
            _write_rows(job, counts, writers, failed)
            if counts.aside:
                failed.commit()
            else:
                stage.beside(FAILED).unlink(missing_ok=True)
            if counts.written or not job.plan:  # what stood there stays if there is no row
                # A record before its CSV, which would never be replaced without one.
                records = {
                    stage.outputs[label]: record_of(job, counts, label, writer.sha256())
                    for label, writer in writers.items()
                }
                for path, record in records.items():
                    write_record(path, record | {"complete": False})
                for writer in writers.values():
                    writer.commit()
                for path, record in records.items():
                    write_record(path, record)
    except OSError as error:
        raise UserError(
            f"{stage.output} cannot be written: {error.strerror}; the answers are in the log: "
            "rerun the same command"
        ) from None
    return counts


def _write_rows(job: Job, counts: Counts, writers: dict[str, CsvWriter], failed: CsvWriter) -> None:
    stage = job.stage
    for row, requests in job.plan:
        result, found = outcome(job, row, requests)
        counts.add(row, result, found, job)
        if isinstance(result, Missing):
            failed.write({**row, "error_type": result.kind, "error": result.why})
            stage.unscored(row)
            continue
        for out in result:
            writers[stage.label(out) if stage.parts else ""].write(out)
            stage.scored(out)
    for row in stage.lost:
        counts.rows["unscored"] += 1
        failed.write(row)
        stage.unscored(row)


def record_of(job: Job, counts: Counts, part: str, sha256: str) -> Record:
    """The run record of one CSV, see `orbench.base.records`. sha256: of the CSV."""
    from importlib.metadata import version

    stage = job.stage
    asked = job.asked
    path = stage.outputs[part]
    before = job.input_record
    behind = before.get("part") if before.get("part") in VERDICTS else ""
    start = job.start.isoformat(timespec="seconds")
    if counts.answers["reused"]:
        start = min(start, read_record(path).get("start", start))
    time = {"start": start, "end": datetime.now(UTC).isoformat(timespec="seconds")}
    return {
        "stage": stage.name,
        "command": [*map(without_query, sys.argv)],
        "models": [_model_entry(model, job, counts) for model in stage.models],
        **_carried(stage, before, time),
        "notes": stage.notes,
        "scripted": measures_nothing(job),
        "scripted_input": is_scripted(before),
        "parameters": stage.parameters | stage.reading,
        "settings": settings_of(stage),
        "input": _input_entry(stage),
        "output": {"csv": sha256, "failed": failed_hash(path)},
        "prompt_set": prompt_set_hash(counts.prompts),
        "part": part or behind,
        "counts": {**counts.rows, **counts.answers, "written": counts.written}
        | {"requests": asked.requests, "retries": asked.retries},
        "tokens": asdict(counts.tokens),
        "findings": stage.findings(),
        "complete": not counts.rows[NOT_ASKED] and before.get("complete") is not False,
        "versions": versions() | {"openai": version("openai")},
        **time,
    }


def _carried(stage: Stage, before: Record, time: Record) -> Record:
    """What later stages must know, from the input's record and of this run."""
    carried = {name: before[name] for name in CARRIED if name in before}
    if stage.name in GENERATORS:
        wrote = [{"asked": m.asked, "id": m.id, "family": m.family} for m in stage.models]
        carried["written_by"] = [*carried.get("written_by", []), *wrote]
    if stage.under_test:
        carried["under_test"] = {**stage.under_test, "prompts": set_name(stage.table.path), **time}
    source = carried.get("source", {}) | stage.table.source
    if source:
        sampled = getattr(stage.args, "shuffle", None) is not None
        carried["source"] = source | ({"sampled": True} if sampled else {})
    return carried


def _model_entry(model: Model, job: Job, counts: Counts) -> Record:
    return model._asdict() | {
        "base_url": model.address,
        "family": model.family,
        "served_by": counts.served_by[model.asked],
        "left_out_parameters": counts.dropped[model.asked],
        "left_out": job.asked.left_out.get(model.asked, ""),
    }


def _input_entry(stage: Stage) -> Record:
    path = stage.table.path
    rows = len(stage.table.rows)
    if not path.is_file():  # stage 1 has none, a prompt set has its `source`
        return {"path": "", "sha256": "", "rows": rows}
    return {"path": str(path), "sha256": sha256_of(path), "rows": rows}


def measures_nothing(job: Job) -> bool:
    """Whether the scripted model answered, or what it wrote was judged."""
    behind = job.input_record.get("scripted") is True and not job.stage.under_test
    return behind or any(model.scripted for model in job.stage.models)


def close(job: Job, counts: Counts) -> int:
    """Report how it went, print the CSV's path, and return the exit status."""
    asked = job.asked
    rows = counts.rows
    for line in closing_lines(job, counts):
        say(line)
    nothing = bool(job.plan) and not counts.written
    if asked.interrupted:
        say(f"interrupted: {counted(rows[NOT_ASKED], 'row')} left; run the same command to resume")
    elif asked.stopped:
        say(f"error: {asked.stopped}")
    elif nothing:
        where = job.stage.beside(FAILED if counts.aside else ".answers.jsonl")
        say(f"error: none of the {counted(len(job.plan), 'request')} gave a result; see {where}")
        if rows["unscored"]:
            say(f"unreadable replies are kept; to ask again, delete {job.log.path}")
    if not nothing:
        first, *others = job.stage.outputs.values()
        for path in others:
            say(f"also written: {path}")
        tell(first)
    if asked.interrupted:
        return 130
    if asked.stopped or nothing:
        return 1
    return 3 if counts.aside else 0


def closing_lines(job: Job, counts: Counts) -> Iterator[str]:
    """The stage's table, what a reader of the numbers must know, and the counts."""
    stage = job.stage
    rows = counts.rows
    yield from stage.summary() if rows.total() > rows[NOT_ASKED] else ()
    if measures_nothing(job):
        yield SCRIPTED_NOTE
    elif is_scripted(job.input_record):
        yield SCRIPTED_INPUT_NOTE
    shown = [f"{counted(counts.written, 'row')} written"] * (counts.written != rows["done"])
    shown += [f"{name} {rows[name]:,}" for name in ("done", "failed", "unscored")]
    shown += [f"not asked {rows[NOT_ASKED]:,}"] * bool(rows[NOT_ASKED])
    yield " · ".join([*shown, f"answers reused from the log {counts.answers['reused']:,}"])
    yield " · ".join([_sent(job), *_other_models(job, counts)])
    if cut_off := counts.answers["cut off"]:
        limit = stage.parameters.get("max_tokens")
        of = f" of {limit:,} tokens (--max_tokens)" if limit else ""
        yield f"{counted(cut_off, 'answer')} cut off at the limit{of}"
    if counts.aside:
        yield f"{counted(counts.aside, 'row')} in {stage.beside(FAILED)}"
    for why, times in counts.errors.most_common(1):
        if why not in job.asked.stopped:
            yield f"the most frequent error ({times:,}): {why}"


def _sent(job: Job) -> str:
    """Requests, retries, tokens and cost of this run."""
    asked = job.asked
    tokens = job.asked.tokens
    prices = job.stage.args.prices
    line = f"requests {asked.requests:,}, retries {asked.retries:,} · tokens in {tokens.prompt:,}"
    line += f" (cached {tokens.cached:,})" if tokens.cached else ""
    line += f", out {tokens.completion:,}"
    line += f" (thinking {tokens.reasoning:,})" if tokens.reasoning else ""
    if prices:
        cost = (tokens.prompt - tokens.cached) * prices.prompt + tokens.cached * prices.cached
        cost += tokens.completion * prices.completion
        line += f" · cost {cost / 1e6:.4f}"
    return line


def _other_models(job: Job, counts: Counts) -> Iterator[str]:
    """Which other models answered, and which changed during the run."""
    for model in job.stage.models:
        found = {id_: n for id_, n in counts.served_by[model.asked].items() if id_}
        ids = {id_.partition(" via ")[0] for id_ in found}
        named = ", ".join(f"{one_line(id_)} ({n:,})" for id_, n in sorted(found.items()))
        if not all(is_same_model(model.id, id_) for id_ in ids):
            n = sum(found.values())
            yield f"{n:,} answered by {named} instead of {model.id}"
        elif len(ids) > 1:
            yield f"{model.id} answered as {named}"
