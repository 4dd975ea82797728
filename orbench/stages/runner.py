"""How every stage runs: five steps, from the settings to the CSVs."""

from collections.abc import Mapping
from contextlib import ExitStack

from orbench.asking.inquiry import Phase
from orbench.asking.log import AnswerLog
from orbench.base.messages import UserError, say
from orbench.base.prompts import is_no_value
from orbench.base.records import FAILED, FAILED_COLUMNS, write_record
from orbench.base.tables import CsvWriter, columns_in, make_folder, sha256_of, write_csv
from orbench.models.requests import Missing
from orbench.stages.closing import outcome_of
from orbench.stages.engine import StageRun, ask, extend
from orbench.stages.estimate import dry_run
from orbench.stages.existing import check_existing, check_paths
from orbench.stages.facts import Counts, record_of
from orbench.stages.run import Outcome
from orbench.stages.stage import Stage

EDITED = "CSV of responses edited since it was written"


def run_stage(stage: Stage) -> Outcome:
    """Run a stage in five steps. Raises UserError, and KeyboardInterrupt if it was interrupted
    before there is anything to write.
    """
    # 1. The settings and the outputs.
    args = stage.args
    check_paths(stage)
    may_write = not (args.dry_run or args.from_log)
    if not args.dry_run:
        make_folder(stage.output.parent)
    # 2. The log: under its lock no other run asks.
    path = stage.beside(".answers.jsonl")
    with AnswerLog(path, write=may_write and bool(stage.models)) as log:
        check_existing(stage)
        if args.from_log and stage.models and not log:
            raise UserError(f"{log.path} holds no answers; first run this without --from_log")
        run = StageRun(stage, log)
        say_before(stage)
        # 3. The inquiries.
        extend(run)
        if args.dry_run:
            return dry_run(run)
        # 4. What is pending, and what a stage plans after that.
        ask(run)
        while run.phase in (Phase.OVER, Phase.FROM_LOG) and stage.plan_more(run.results()):
            extend(run)
            ask(run)
        # 5. The CSVs.
        return finish(run)


def say_before(stage: Stage) -> None:
    """Report which models are asked, and what is wrong with the input."""
    for model in stage.models:
        if model.id != model.asked or model.base_url != model.settings.base_url:
            say(f"{model.id} at {model.address}{model.moved_by}")
    before = stage.input_record
    path = stage.table.file
    recorded = before.get("output", {}).get("csv")
    if before.get("stage") == "alignment_checker" and recorded not in (None, sha256_of(path)):
        stage.notes.append(EDITED)
    no_values = sum(is_no_value(row.get("prompt", "")) for row in stage.table.rows)
    if no_values:
        stage.notes.append(f"prompts that read nan, none or null, used as they are: {no_values:,}")
    for note in stage.notes:
        say(note)
    if before.get("complete") is False:
        say(f"{path} is from an unfinished run: rows are missing")


def finish(run: StageRun) -> Outcome:
    """Write the CSVs, report how it went, and return what came of the run. Raises UserError."""
    if run.phase is Phase.WAITING:
        return Outcome(0)
    try:
        counts = _write(run)
        if not counts.nothing:
            run.stage.closing.save()
    except OSError as error:
        raise UserError(
            f"{run.stage.output} cannot be written: {error.strerror}; "
            "the answers are in the log: rerun the same command"
        ) from None
    return outcome_of(run, counts)


def _write(run: StageRun) -> Counts:
    """Write the CSVs, the failed file and the run records, all from this run or none."""
    stage = run.stage
    with ExitStack() as stack:
        writers = {}
        for part, path in stage.outputs.items():
            writers[part] = stack.enter_context(CsvWriter(path, stage.columns))
        counts = write_rows(run, writers)
        # Without a result, but responses that a judge may score, the CSV has no rows.
        counts.nothing = bool(run.plan) and not counts.written and not counts.languages
        counts.kept = counts.nothing and any(path.exists() for path in stage.outputs.values())
        if counts.kept:
            return counts
        if counts.failed:
            columns = columns_in([stage.table.columns, FAILED_COLUMNS, *counts.failed])
            write_csv(stage.beside(FAILED), columns, counts.failed)
        else:
            stage.beside(FAILED).unlink(missing_ok=True)
        if counts.nothing:
            return counts
        records = {}
        head = (stage.name, stage.args.command)
        for part, writer in writers.items():
            path = stage.outputs[part]
            records[path] = record_of(run, counts, part, writer.sha256())
            # A record before its CSV, which would never be replaced without one.
            write_record(path, *head, records[path] | {"complete": False})
        for writer in writers.values():
            writer.commit()
        for path, record in records.items():
            write_record(path, *head, record)
    return counts


def write_rows(run: StageRun, writers: Mapping[str, CsvWriter]) -> Counts:
    """Write each row to the CSV of its part, and count it. Raises OSError."""
    counts = Counts()
    for result in run.results():
        counts.add(result, run.log)
        run.stage.closing.add(result)
        if isinstance(result.rows, Missing):
            kind, why, known = result.rows
            counts.failed.append({**result.row, "error_type": kind, "error": why, **known})
            continue
        for row in result.rows:
            writer = writers.get("") or writers[run.stage.label(row)]
            writer.write(row)
    return counts
