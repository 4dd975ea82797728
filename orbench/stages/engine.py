"""One run of a stage: what it asks, sends what is missing from the answer log, what came of it.

`orbench.stages.runner` puts the steps together.
"""

from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path

from orbench.asking.inquiry import (
    NOT_YET,
    Done,
    Inquiry,
    Limits,
    Phase,
    Run,
    pending,
    replay,
    state,
)
from orbench.base.messages import UserError, counted, say
from orbench.base.records import now
from orbench.base.words import Row
from orbench.models.requests import Missing, Request
from orbench.stages.stage import Plan, Readings, Result, Results, Stage, Written


@dataclass
class StageRun(Run):
    """One run of a stage. plan: each row with its inquiries."""

    stage: Stage
    plan: list[tuple[Row, Plan]] = field(default_factory=list)
    start: str = field(default_factory=now)

    def results(self) -> Results:
        """Return each row's outcome once the run is over."""
        return self.stage.together(starmap(self._result, self.plan))

    def _result(self, row: Row, planned: Plan) -> Result:
        if isinstance(planned, Missing):
            return Result(row, planned)
        readings = []
        answers = []
        for item in planned:
            if not isinstance(item, Inquiry):
                readings.append(item)
                continue
            done = state(item, self)
            assert isinstance(done, Done)  # nothing more is sent
            readings.append(done.reading)
            answers.append(done)
        return Result(row, self._rows(row, readings), readings, answers)

    def _rows(self, row: Row, readings: Readings) -> Written:
        # A panel goes on without a vote that failed, but waits for one that was not asked yet;
        # `--from_log` shows the votes that are there.
        not_yet = readings.count(NOT_YET)
        if not_yet and (not_yet == len(readings) or self.phase is not Phase.FROM_LOG):
            return NOT_YET
        for reading in readings:
            if isinstance(reading, Missing) and not self.stage.panel:
                return reading
        return self.stage.rows(row, readings)


def extend(run: StageRun) -> None:
    """Build the inquiries of the rows that have none yet."""
    for row in run.stage.table.rows[len(run.plan) :]:
        planned = run.stage.inquiries(row)
        run.plan.append((row, planned))
        if isinstance(planned, list):
            run.inquiries += [item for item in planned if isinstance(item, Inquiry)]
    replay(run)


def ask(run: StageRun) -> None:
    """Send what is missing (4), if the run has models to ask."""
    args = run.stage.args
    if args.from_log:
        run.phase = Phase.FROM_LOG
        return
    run.phase = Phase.ASKING
    if run.stage.models:
        _send(run)
    if run.asking:
        run.phase = Phase.OVER
        if args.export_requests:
            run.phase = Phase.WAITING


def _send(run: StageRun) -> None:
    """Send what is missing: live, through a batch service, or through files."""
    stage = run.stage
    args = stage.args
    if args.import_answers:
        from orbench.asking.files import import_answers

        import_answers(run, list(map(Path, args.import_answers)))
    elif args.batch:
        from orbench.asking.batch import ask_in_batches

        wait = args.batch == "wait"
        ask_in_batches(stage.models, run, wait, stage.beside(".batches.json"))
    elif requests := pending(run):
        _ask_or_export(run, requests)
    elif args.export_requests:
        say("nothing to export: the log holds every answer")
    for note in run.adaptation.notes:
        say(note)
    run.adaptation.notes.clear()


def _ask_or_export(run: StageRun, requests: list[Request]) -> None:
    stage = run.stage
    args = stage.args
    waiting = len(requests) - len(not_in_batches(stage, requests))
    if waiting:
        twice = f"{counted(waiting, 'request')} are already in batches and would be paid for"
        collect = f"collect them with --batch, or delete {stage.beside('.batches.json')}"
        raise UserError(f"{twice} twice; {collect}")
    if args.export_requests:
        from orbench.asking.files import export_requests

        export_requests(requests, Path(args.export_requests), stage.models)
        return
    from orbench.asking.live import Progress, Session

    progress = Progress(stage.title, len(requests), quiet=args.quiet, prices=args.prices)
    limits = Limits(args.concurrency, args.max_retries, args.timeout, args.requests_per_minute)
    Session(requests, stage.models, run, limits, progress).ask()


def not_in_batches(stage: Stage, requests: list[Request]) -> list[Request]:
    """Return the requests that are not under way in batches. Raises UserError."""
    from orbench.asking.batch import read_batches

    under_way = set()
    for batch in read_batches(stage.beside(".batches.json")):
        under_way.update(batch.keys)
    return [request for request in requests if request.key.hex() not in under_way]
