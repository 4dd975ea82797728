"""What is known at the end of a run: the counts, and the run record."""

from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path

from orbench.asking.log import AnswerLog
from orbench.base.messages import counted, one_line
from orbench.base.prompts import prompt_id_of, prompt_set_hash, set_name
from orbench.base.records import (
    CARRIED,
    NOT_ASKED,
    Record,
    failed_hash,
    is_scripted,
    now,
    read_record,
)
from orbench.base.tables import sha256_of
from orbench.base.words import VERDICTS, Lines, Row
from orbench.models.providers import Model
from orbench.models.requests import REFUSED_TO_JUDGE, Missing, Tokens
from orbench.models.substitutes import is_same_model
from orbench.stages.engine import StageRun
from orbench.stages.existing import settings_of
from orbench.stages.stage import Result, Stage

FRESH = "fresh prompts"  # written by a model, and one of the parts that stage 3 makes
GENERATORS = ("toxic_prompt_generator", "rewritter")

MOST_NOTES = 5  # on finish reasons

ByModel = defaultdict[str, Counter[str]]  # model as asked -> counts


# -- counts --------------------------------------------------------------------------------------


class Counts:
    """What came of a run's rows and answers, counted while the rows are written."""

    def __init__(self) -> None:
        self.rows = Counter[str]()  # done, failed, unscored, not_asked
        self.answers = Counter[str]()  # reused, cut off
        self.unknown_ends = Counter[str]()  # finish reasons
        self.written = 0  # output rows
        self.failed: list[Row] = []  # rows of the failed file
        self.nothing = False  # rows were planned, but there is no output row
        self.kept = False  # nothing was written, and the files of an earlier run stay
        self.languages = Counter[str]()  # of the responses that the rules do not read
        self.tokens = Tokens()  # of the answers used
        self.errors = Counter[str]()
        self.served_by = ByModel(Counter)  # `Answer.served_by`
        self.substituted = Counter[str]()  # the same, of other models than the one asked
        self.dropped = ByModel(Counter)  # parameters that were left out
        self.judge_refused = Counter[str]()  # to judge a text, by judge
        self.prompts = set[str]()  # ids
        self._used = set[bytes]()  # keys of answers

    def add(self, result: Result, log: AnswerLog) -> None:
        """Count one row and the answers behind it, each answer once."""
        if "prompt" in result.row:
            self.prompts.add(prompt_id_of(result.row))
        rows = result.rows
        if isinstance(rows, list):
            self.rows["done"] += 1
            self.written += len(rows)
        elif rows.kind == NOT_ASKED:
            self.rows[NOT_ASKED] += 1
        elif rows.kind in ("bad_request", "gave_up") and result.readings:
            self.rows["failed"] += 1
            self.errors[rows.why] += 1
        else:  # rows that failed in the stage before are unscored here
            self.rows["unscored"] += 1
            if "response_language" in rows.known:
                self.languages[rows.known["response_language"]] += 1
        for request, answer, reading in result.answers:
            if answer is None or request.key in self._used:
                continue
            self._used.add(request.key)
            model = request.model.asked
            if isinstance(reading, Missing) and reading.kind == REFUSED_TO_JUDGE:
                self.judge_refused[model] += 1
            self.answers["reused"] += request.key in log.old
            self.answers["cut off"] += answer.meaning == "cut_off"
            if not answer.meaning:
                self.unknown_ends[answer.finish_reason] += 1
            self.tokens.add(answer)
            self.served_by[model][answer.served_by] += 1
            if is_same_model(request.model.id, answer.model) is False:
                self.substituted[answer.served_by] += 1
            self.dropped[model].update(answer.dropped)


def end_notes(counts: Counts) -> Lines:
    """Yield how many answers may not be whole, by finish reasons that api.toml does not know."""
    for reason, n in counts.unknown_ends.most_common(MOST_NOTES):
        yield f"{counted(n, 'answer')} with finish_reason {one_line(reason)}, not known"


# -- the run record ------------------------------------------------------------------------------


def record_of(run: StageRun, counts: Counts, part: str, sha256: str) -> Record:
    """Return what the record of one CSV says of its run, see `orbench.base.records`."""
    from importlib.metadata import version

    stage = run.stage
    before = stage.input_record
    path = stage.outputs[part]
    doubt = stage.closing.doubt
    time = _time_of(run, counts, path)
    if not part and before.get("part") in VERDICTS:
        part = before["part"]
    numbers = {
        **counts.rows,
        **counts.answers,
        "written": counts.written,
        "requests": run.requests,
        "retries": run.retried.total(),
        "retried": run.retried,
    }
    return {
        "models": [_model_entry(model, run, counts) for model in stage.models],
        "notes": [*stage.notes, *filter(None, [doubt]), *end_notes(counts)],
        "scripted": measures_nothing(stage),
        "scripted_input": is_scripted(before),
        "parameters": stage.parameters | stage.reading,
        "settings": settings_of(stage),
        "input": _input_of(stage),
        "output": {"csv": sha256, "failed": failed_hash(path)},
        "prompt_set": prompt_set_hash(counts.prompts),
        "part": part,
        "counts": numbers,
        "judge_refused": counts.judge_refused,
        "tokens": asdict(counts.tokens),
        "findings": dict(stage.closing.findings),
        "complete": not counts.rows[NOT_ASKED] and before.get("complete") is not False,
        "versions": {"openai": version("openai"), **stage.versions},
        **time,
        **_carried(stage, before, time | {"unranked": doubt}),
    }


def _input_of(stage: Stage) -> Record:
    """Return the file that a stage read; stage 1 has none, a prompt set has its `source`."""
    source = {"path": "", "sha256": "", "rows": len(stage.table.rows)}
    if stage.table.file.is_file():
        source |= {"path": str(stage.table.file), "sha256": sha256_of(stage.table.file)}
    return source


def _time_of(run: StageRun, counts: Counts, path: Path) -> Record:
    """Return when the answers in a CSV were asked for. path: of the CSV."""
    start = run.start
    if counts.answers["reused"]:  # some of the answers are of an earlier run
        start = min(start, read_record(path).get("start", start))
    return {"start": start, "end": now()}


def _carried(stage: Stage, before: Record, known: Record) -> Record:
    """Return what later stages must know, from the input's record and of this run."""
    carried = {name: before[name] for name in CARRIED if name in before}
    source = carried.pop("source", {}) | stage.table.source
    if stage.name in GENERATORS:
        source.pop("side", None)  # rewrites of toxic prompts are meant to be safe
        (model,) = stage.models
        writer = {"asked": model.asked, "id": model.id, "family": model.family}
        carried["written_by"] = [*before.get("written_by", ()), writer]
    if stage.under_test:
        name = set_name(stage.table.path)
        if before.get("written_by") and before.get("part"):
            name = FRESH
        measured_with = {"prompts": name, "parameters": stage.parameters}
        # What an imported log says of its run counts, not when it was imported.
        carried["under_test"] = stage.under_test | measured_with | known | stage.under_test
    if source:
        carried["source"] = source
        if getattr(stage.args, "shuffle", None) is not None:
            source["sampled"] = True
    return carried


def _model_entry(model: Model, run: StageRun, counts: Counts) -> Record:
    return model._asdict() | {
        "base_url": model.address,
        "family": model.family,
        "served_by": counts.served_by[model.asked],
        "left_out_parameters": counts.dropped[model.asked],
        "left_out": run.left_out.get(model.asked, ""),
    }


def measures_nothing(stage: Stage) -> bool:
    """Tell whether the answers, or what they judge, are the scripted model's."""
    behind = stage.input_record.get("scripted") is True and not stage.under_test
    return behind or any(model.provider == "scripted" for model in stage.models)
