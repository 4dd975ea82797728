"""The run record beside each CSV of a run."""

from dataclasses import asdict
from datetime import UTC, datetime

from orbench.base.prompts import prompt_set_hash, set_name
from orbench.base.records import (
    CARRIED,
    NOT_ASKED,
    Record,
    failed_hash,
    is_scripted,
    read_record,
    write_record,
)
from orbench.base.tables import sha256_of
from orbench.base.words import VERDICTS, Texts
from orbench.models.providers import Model
from orbench.stages.engine import Job
from orbench.stages.existing import settings_of
from orbench.stages.stage import Stage

GENERATORS = ("toxic_prompt_generator", "rewritter")


def write_records(job: Job, hashes: Texts, *, whole: bool) -> None:
    """Write the record beside each CSV. hashes: part -> the SHA-256 of its CSV. whole: the CSVs
    stand under their names. Raises OSError.
    """
    for part, sha256 in hashes.items():
        facts = facts_of(job, part, sha256)
        facts["complete"] = facts["complete"] and whole
        stage = job.stage
        write_record(stage.outputs[part], stage.name, stage.args.command, facts)


def facts_of(job: Job, part: str, sha256: str) -> Record:
    """Return what the record of one CSV says of its run, see `orbench.base.records`."""
    from importlib.metadata import version

    stage = job.stage
    counts = job.counts
    before = job.input_record
    path = stage.outputs[part]
    doubt = job.closing.doubt()
    start = job.start.isoformat(timespec="seconds")
    if counts.answers["reused"]:  # some of the answers are of an earlier run
        start = min(start, read_record(path).get("start", start))
    time = {"start": start, "end": datetime.now(UTC).isoformat(timespec="seconds")}
    only = part
    if not part and before.get("part") in VERDICTS:
        only = before["part"]
    retried = job.run.retried
    sent: Record = {"requests": job.run.requests, "retries": retried.total()}
    if retried:
        sent["retried"] = retried
    facts = {
        "models": [_model_entry(model, job) for model in stage.models],
        "notes": [*stage.notes, doubt] if doubt else stage.notes,
        "scripted": measures_nothing(job),
        "scripted_input": is_scripted(before),
        "parameters": stage.parameters | stage.reading,
        "settings": settings_of(stage),
        "input": _input_entry(stage),
        "output": {"csv": sha256, "failed": failed_hash(path)},
        "prompt_set": prompt_set_hash(counts.prompts),
        "part": only,
        "counts": {**counts.rows, **counts.answers, "written": counts.written, **sent},
        "judge_refused": counts.judge_refused,
        "tokens": asdict(counts.tokens),
        "findings": job.closing.findings(),
        "complete": not counts.rows[NOT_ASKED] and before.get("complete") is not False,
        "versions": {"openai": version("openai"), **stage.versions},
    }
    return facts | time | _carried(stage, before, time | {"unranked": doubt})


def _carried(stage: Stage, before: Record, known: Record) -> Record:
    """Return what later stages must know, from the input's record and of this run."""
    carried = {name: before[name] for name in CARRIED if name in before}
    source = carried.pop("source", {}) | stage.table.source
    if stage.name in GENERATORS:
        source.pop("side", None)  # rewrites of toxic prompts are meant to be safe
        writers = carried.get("written_by", [])
        for model in stage.models:
            writers = [*writers, {"asked": model.asked, "id": model.id, "family": model.family}]
        carried["written_by"] = writers
    if stage.under_test:
        of = {"prompts": set_name(stage.table.path), "parameters": stage.parameters}
        carried["under_test"] = stage.under_test | of | known
    if source and getattr(stage.args, "shuffle", None) is not None:
        source["sampled"] = True
    if source:
        carried["source"] = source
    return carried


def _model_entry(model: Model, job: Job) -> Record:
    return model._asdict() | {
        "base_url": model.address,
        "family": model.family,
        "served_by": job.counts.served_by[model.asked],
        "left_out_parameters": job.counts.dropped[model.asked],
        "left_out": job.run.left_out.get(model.asked, ""),
    }


def _input_entry(stage: Stage) -> Record:
    path = stage.table.file
    entry = {"path": "", "sha256": "", "rows": len(stage.table.rows)}
    if path.is_file():  # stage 1 has none, a prompt set has its `source`
        entry |= {"path": str(path), "sha256": sha256_of(path)}
    return entry


def measures_nothing(job: Job) -> bool:
    """Tell whether the answers, or what they judge, are the scripted model's."""
    behind = job.input_record.get("scripted") is True and not job.stage.under_test
    return behind or any(model.scripted for model in job.stage.models)
