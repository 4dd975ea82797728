"""How every stage runs: send the requests that are missing from the log, then write what follows.

`run_stage` is the order of things; `look_up` follows one request through the log.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from orbench.asking.answer_log import AnswerLog
from orbench.asking.asked import Asked
from orbench.asking.requests import CHARACTERS_A_TOKEN, Answer, Missing, Request
from orbench.base.messages import UserError, counted, one_line, say
from orbench.base.records import NOT_ASKED, Record, read_record
from orbench.base.tables import make_folder
from orbench.base.words import Row
from orbench.stages.flags import limits_of
from orbench.stages.stage import Stage, check_outputs

UNREADABLE = 12  # replies in a row in which nothing can be read
SAMPLE = 150  # characters of the end of one, for the message


@dataclass
class Job:
    """One run of a stage. plan: each row with its requests."""

    stage: Stage
    log: AnswerLog
    input_record: Record
    plan: list[tuple[Row, list[Request] | Missing]] = field(default_factory=list)
    asked: Asked = field(default_factory=Asked)
    start: datetime = field(default_factory=lambda: datetime.now(UTC))
    unreadable: int = 0  # replies in a row

    @property
    def handed_over(self) -> bool:
        """Whether the answers come later, so that there is no CSV yet."""
        return self.asked.waiting or bool(self.stage.args.export_requests)


def run_stage(stage: Stage) -> int:
    """Run a stage over its table. Returns the exit status; the CSV's path goes to stdout.

    Raises UserError.
    """
    from orbench.stages import output

    args = stage.args
    check_outputs(stage)
    output.check_not_replaced(stage)
    sends = bool(stage.models) and not (args.from_log or args.dry_run)
    if sends or not stage.models:
        make_folder(stage.output.parent)
    with AnswerLog(stage.beside(".answers.jsonl"), write=sends) as log:
        job = Job(stage, log, read_record(stage.table.path))
        if args.dry_run:
            return estimate(job)
        if args.from_log and not len(log):
            raise UserError(f"there is no answer in {log.path}")
        say_before(job)
        while True:
            plan(job)
            ask(job)
            over = job.asked.stopped or job.asked.interrupted or job.handed_over
            if over or not (stage.grows and stage.more([outcome(job, *p)[0] for p in job.plan])):
                break
        if job.handed_over:
            return output.close_without_csv(job)
        counts = output.write_outputs(job)
    return output.close(job, counts)


def plan(job: Job) -> None:
    """Build the requests of the rows that have no plan yet."""
    for row in job.stage.table.rows[len(job.plan) :]:
        job.plan.append((row, job.stage.requests(row)))


def say_before(job: Job) -> None:
    """Report which models are asked, and what is wrong with the input."""
    for model in job.stage.models:
        if model.id != model.asked or model.base_url != model.settings.base_url:
            name = model.asked if model.asked == model.id else f"{model.asked} is {model.id}"
            say(f"{name} at {model.address}")
    for note in job.stage.notes:
        say(note)
    if job.input_record.get("complete") is False:
        say(f"{job.stage.table.path} is from a run that did not finish: rows are missing in it")


# -- asking ------------------------------------------------------------------------------------


def ask(job: Job) -> None:
    """Send what is missing: live, through a batch service, or through files."""
    stage, args, log, asked = job.stage, job.stage.args, job.log, job.asked
    if not stage.models or args.from_log:
        return
    pending = partial(pending_requests, job)
    if args.import_answers:
        from orbench.asking.files import import_answers

        import_answers(pending, log, asked, list(map(Path, args.import_answers)))
    elif args.batch:
        from orbench.asking.batch import ask_in_batches

        state, wait = stage.beside(".batches.json"), args.batch == "wait"
        ask_in_batches(pending, stage.models, log, asked, wait, state)
    elif requests := pending():
        if waiting := in_batches(stage).intersection(request.key for request in requests):
            raise UserError(
                f"{counted(len(waiting), 'request')} under way in batches would be paid for twice; "
                f"collect them with --batch, or delete {stage.beside('.batches.json')}"
            )
        if args.export_requests:
            from orbench.asking.files import export_requests

            export_requests(lambda: requests, Path(args.export_requests), stage.models)
        else:
            ask_now(job, requests)
    elif args.export_requests:
        say("every request is answered in the log: there is nothing to export")
    for note in asked.adaptation.notes:
        say(note)
    asked.adaptation.notes.clear()


def ask_now(job: Job, requests: list[Request]) -> None:
    """Send the requests live, and again while an answer cannot be read."""
    from orbench.asking.live import Progress, ask_live

    stage = job.stage
    progress = Progress(stage.name, len(requests), quiet=stage.args.quiet)

    def follow_up(request: Request, answer: Answer | None) -> Request | None:
        if answer is None:
            return request.substitute
        if stage.asks == 1:
            return None
        reading = stage.read(request, answer)
        watch(job, answer, reading)
        if not isinstance(reading, Missing):
            return None
        return after_unreadable(stage, request, answer, reading)

    limits = limits_of(stage.args)
    ask_live(lambda: requests, stage.models, job.log, job.asked, limits, follow_up, progress)


def watch(job: Job, answer: Answer, reading: Any) -> None:
    """Report, once, that nothing can be read in a model's replies."""
    job.unreadable = job.unreadable + 1 if isinstance(reading, Missing) else 0
    if job.unreadable == UNREADABLE:
        end = one_line(answer.text[-SAMPLE:])
        say(f"{UNREADABLE} unreadable replies in a row; the last one ends: {end!r}")


def in_batches(stage: Stage) -> set[bytes]:
    """The keys of requests that are under way in a provider's batches."""
    state = stage.beside(".batches.json")
    if not state.exists():
        return set()
    from orbench.asking.batch import under_way

    return under_way(state)


# -- following a request through the log -------------------------------------------------------


class Found(NamedTuple):
    """What the log has of a request and of those that follow from it."""

    request: Request  # the last one of them: answered, or to be sent
    answer: Answer | None
    reading: Any  # Missing if there is no usable answer


def after_unreadable(
    stage: Stage, request: Request, answer: Answer, missing: Missing
) -> Request | None:
    """What to ask after an answer that cannot be read; None if nothing is left to ask."""
    if request.attempt + 1 < stage.asks:
        return stage.again(request, answer, missing)
    return request.substitute


def look_up(job: Job, request: Request) -> Found:
    """Follow a request through the log, up to a readable answer or one that is not there."""
    following: Request | None = request
    while following is not None:
        request, answer = following, job.log.get(following.key)
        if answer is not None:
            reading = job.stage.read(request, answer)
            if not isinstance(reading, Missing):
                break
            following = after_unreadable(job.stage, request, answer, reading)
        else:
            reading, substitute = why_missing(job, request), request.substitute
            taken_over = substitute is not None and substitute.key in job.log
            following = substitute if reading.kind != NOT_ASKED or taken_over else None
    return Found(request, answer, reading)


def why_missing(job: Job, request: Request) -> Missing:
    """Why a request has no answer in the log."""
    if failed := job.asked.failed.get(request.key):
        return failed
    left_out = job.asked.left_out.get(request.model.asked)
    if left_out and not job.asked.stopped:
        return Missing("gave_up", left_out)
    return Missing(NOT_ASKED, "not asked yet")


def pending_requests(job: Job) -> list[Request]:
    """The requests to send now, each key once."""
    pending: dict[bytes, Request] = {}
    for _, requests in job.plan:
        for request in [] if isinstance(requests, Missing) else requests:
            if job.stage.asks > 1 or request.key not in job.log:  # else it need not be read
                found = look_up(job, request)
                if found.answer is None and found.reading.kind == NOT_ASKED:
                    pending.setdefault(found.request.key, found.request)
    return list(pending.values())


def outcome(
    job: Job, row: Row, requests: list[Request] | Missing
) -> tuple[list[Row] | Missing, list[Found]]:
    """The output rows of one input row, or why it has none, and what its requests brought."""
    if isinstance(requests, Missing):
        return requests, []
    found = [look_up(job, request) for request in requests]
    missing = [one.reading for one in found if isinstance(one.reading, Missing)]
    not_asked = [one for one in missing if one.kind == NOT_ASKED]
    # A panel goes on without a vote that failed, but waits for one that was not asked yet; a look
    # into the log does not.
    if not_asked and (len(not_asked) == len(found) or not job.stage.args.from_log):
        return not_asked[0], found
    if missing and not job.stage.panel:
        return missing[0], found
    return job.stage.rows(row, [one.reading for one in found]), found


# -- estimating --------------------------------------------------------------------------------


def estimate(job: Job) -> int:
    """Report what a run would send and cost. Returns the exit status."""
    stage, prices = job.stage, job.stage.args.prices
    plan(job)
    waiting, pending = in_batches(stage), pending_requests(job)
    requests = [request for request in pending if request.key not in waiting]
    every = {r.key for _, some in job.plan if not isinstance(some, Missing) for r in some}
    n, answered = len(requests), len(every) - len(pending)
    say(f"requests: {len(every):,}, answered in the log: {answered:,}, to send: {n:,}")
    if len(pending) > n:
        say(f"under way in batches: {len(pending) - n:,}; --batch collects them")
    tokens = sum(request.characters for request in requests) // CHARACTERS_A_TOKEN
    most = sum(request.parameters.get("max_tokens", 0) for request in requests)
    of_answers = f", at most {most:,} in the answers (max_tokens)" if most else ""
    say(f"tokens: about {tokens:,} in the prompts{of_answers}")
    if prices:
        cost = f"cost: about {tokens / 1e6 * prices.prompt:.2f} for the prompts"
        more = f", at most {most / 1e6 * prices.completion:.2f} for the answers" if most else ""
        say(cost + more)
    if requests:
        say(f"the first request, to {requests[0].model.address}:")
        for line in json.dumps(requests[0].body(), indent=2).splitlines():
            say(line)
    return 0
