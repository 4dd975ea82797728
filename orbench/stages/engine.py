"""One run of a stage: ask what is missing from the answer log, then write what follows.

`orbench.stages.runner` puts the steps together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orbench.asking.inquiry import Done, Inquiry, Limits, Run, pending, replay, state
from orbench.asking.log import AnswerLog
from orbench.base.messages import UserError, counted, say
from orbench.base.records import NOT_ASKED, Record
from orbench.base.tables import CsvWriter
from orbench.base.words import Row
from orbench.models.requests import Missing, Request
from orbench.stages.counts import Counts
from orbench.stages.stage import Closing, Plan, Result, Stage, Written


@dataclass
class Job:
    """One run of a stage. plan: each row with its inquiries."""

    stage: Stage
    log: AnswerLog
    run: Run
    input_record: Record
    closing: Closing
    plan: list[tuple[Row, Plan]] = field(default_factory=list)
    start: datetime = field(default_factory=lambda: datetime.now(UTC))
    counts: Counts = field(default_factory=Counts)

    @property
    def handed_over(self) -> bool:
        """Tell whether the answers come later, so that there is no CSV yet."""
        return self.run.waiting or bool(self.stage.args.export_requests)

    @property
    def stopped(self) -> bool:
        """Tell whether nothing more can be asked in this run."""
        return bool(self.run.stopped) or self.run.interrupted or self.handed_over

    def inquiries(self) -> Iterator[Inquiry]:
        """Yield the inquiries of all rows."""
        for _, planned in self.plan:
            if isinstance(planned, list):
                yield from (item for item in planned if isinstance(item, Inquiry))

    def pending(self) -> list[Request]:
        """Return the requests to send now."""
        return pending(self.inquiries(), self.log, self.run)

    def results(self) -> Iterator[Result]:
        """Yield what came of each row once the run is over, rows lost in the stage before last."""
        planned = (self._result(row, items) for row, items in self.plan)
        yield from self.stage.together(planned)
        for row in self.stage.lost:
            yield Result(row, Missing(row["error_type"], row.get("error", "")), [], [])

    def _result(self, row: Row, planned: Plan) -> Result:
        if isinstance(planned, Missing):
            return Result(row, planned, [], [])
        readings = []
        answers = []
        for item in planned:
            if not isinstance(item, Inquiry):
                readings.append(item)
                continue
            done = state(item, self.log, self.run)
            assert isinstance(done, Done)  # nothing more is sent
            readings.append(done.reading)
            if done.answer is not None:
                answers.append(done)
        return Result(row, self._rows(row, readings), readings, answers)

    def _rows(self, row: Row, readings: list[Any]) -> Written:
        missing = [reading for reading in readings if isinstance(reading, Missing)]
        not_asked = [reading for reading in missing if reading.kind == NOT_ASKED]
        # A panel goes on without a vote that failed, but waits for one that was not asked yet;
        # `--from_log` shows the votes that are there.
        must_wait = len(not_asked) == len(readings) or not self.run.from_log
        if not_asked and must_wait:
            return not_asked[0]
        if missing and not self.stage.panel:
            return missing[0]
        return self.stage.rows(row, readings)


def extend(job: Job) -> None:
    """Build the inquiries of the rows that have none yet."""
    for row in job.stage.table.rows[len(job.plan) :]:
        job.plan.append((row, job.stage.inquiries(row)))
    replay(job.inquiries(), job.log, job.run)


def ask(job: Job) -> None:
    """Send what is missing (4): live, through a batch service, or through files."""
    stage = job.stage
    args = stage.args
    run = job.run
    run.over = args.from_log or not stage.models
    if run.over:
        return
    if args.import_answers:
        from orbench.asking.files import import_answers

        import_answers(job.pending(), job.log, run, [Path(name) for name in args.import_answers])
    elif args.batch:
        from orbench.asking.batch import ask_in_batches

        state_file = stage.beside(".batches.json")
        wait = args.batch == "wait"
        ask_in_batches(job.pending, stage.models, job.log, run, wait, state_file)
    elif requests := job.pending():
        _ask_or_export(job, requests)
    elif args.export_requests:
        say("nothing to export: the log holds every answer")
    run.over = True
    for note in run.adaptation.notes:
        say(note)
    run.adaptation.notes.clear()


def _ask_or_export(job: Job, requests: list[Request]) -> None:
    stage = job.stage
    args = stage.args
    waiting = in_batches(stage).intersection(request.key.hex() for request in requests)
    if waiting:
        twice = f"{counted(len(waiting), 'request')} are already in batches and would be paid for"
        collect = f"collect them with --batch, or delete {stage.beside('.batches.json')}"
        raise UserError(f"{twice} twice; {collect}")
    if args.export_requests:
        from orbench.asking.files import export_requests

        export_requests(requests, Path(args.export_requests), stage.models)
        return
    from orbench.asking.live import Progress, ask_live

    progress = Progress(stage.name, len(requests), quiet=args.quiet, prices=args.prices)
    limits = Limits(args.concurrency, args.max_retries, args.timeout, args.requests_per_minute)
    ask_live(requests, stage.models, job.log, job.run, limits, progress)


def in_batches(stage: Stage) -> set[str]:
    """Return the keys, in hex, of requests under way in batches. Raises UserError."""
    from orbench.asking.batch import read_batches

    batches = read_batches(stage.beside(".batches.json"))
    return {key for batch in batches for key in batch.keys}


def write_rows(job: Job, writers: Mapping[str, CsvWriter], failed: CsvWriter) -> None:
    """Write and count each row: to the CSV of its part, or to the failed file. Raises OSError."""
    stage = job.stage
    for result in job.results():
        job.counts.add(result, job.log)
        job.closing.add(result)
        if isinstance(result.rows, Missing):
            reason = {"error_type": result.rows.kind, "error": result.rows.why}
            failed.write(result.row | reason)
            continue
        for row in result.rows:
            writers[stage.label(row) if stage.parts else ""].write(row)
