"""A run as the answer log sees it: which requests are missing, and what follows from answers."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from orbench.asking.answer_log import AnswerLog
from orbench.asking.asked import Asked
from orbench.asking.requests import Answer, Missing, Request
from orbench.base.messages import say
from orbench.base.records import NOT_ASKED, Record
from orbench.base.words import Row
from orbench.stages.stage import Stage

UNREADABLE = 12  # first replies of a model in a row, after which it is asked once per row


@dataclass
class Job:
    """One run of a stage. plan: each row with its requests."""

    stage: Stage
    log: AnswerLog
    input_record: Record
    plan: list[tuple[Row, list[Request] | Missing]] = field(default_factory=list)
    asked: Asked = field(default_factory=Asked)
    start: datetime = field(default_factory=lambda: datetime.now(UTC))
    unreadable: Counter[str] = field(default_factory=Counter)  # replies in a row, by model as asked

    def count(self, request: Request, reading: Any) -> None:
        """Count unreadable first replies in a row, and report once that there are many."""
        name = request.model.asked
        before = self.unreadable[name]
        if isinstance(reading, Missing):
            self.unreadable[name] += 1
            if before + 1 == UNREADABLE:
                say(f"{name}: {UNREADABLE} unreadable replies in a row; now asked once per row")
        elif before < UNREADABLE:
            self.unreadable[name] = 0

    @property
    def handed_over(self) -> bool:
        """Whether the answers come later, so that there is no CSV yet."""
        return self.asked.waiting or bool(self.stage.args.export_requests)


class Found(NamedTuple):
    """What the log has of a request and of those that follow from it."""

    request: Request  # the last one of them: answered, or to be sent
    answer: Answer | None
    reading: Any  # Missing if there is no usable answer


def after_unreadable(
    job: Job, request: Request, answer: Answer, missing: Missing
) -> Request | None:
    """What to ask after an answer that cannot be read; None if nothing is left to ask."""
    if request.attempt + 1 < job.stage.asks:
        again = job.stage.again(request, answer, missing)
        if job.unreadable[request.model.asked] < UNREADABLE or again.key in job.log:
            return again
    return request.substitute


def look_up(job: Job, request: Request) -> Found:
    """Follow a request through the log, up to a readable answer or one that is not there."""
    following: Request | None = request
    while following is not None:
        request = following
        answer = job.log.get(following.key)
        if answer is not None:
            job.asked.adaptation.recall(request.model, answer)
            reading = job.stage.read(request, answer)
            if not isinstance(reading, Missing):
                break
            following = after_unreadable(job, request, answer, reading)
        else:
            reading = why_missing(job, request)
            following = request.substitute
            if reading.kind == NOT_ASKED and not (following and following.key in job.log):
                break
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
    plan = [one for _, some in job.plan if not isinstance(some, Missing) for one in some]
    job.unreadable.clear()
    for one in plan if job.stage.asks > 1 else ():
        request: Request | None = one
        while request:
            if first := job.log.get(request.key):
                job.count(request, job.stage.read(request, first))
            request = request.substitute
    for request in plan:
        known = request.model in job.asked.adaptation.rejected
        if job.stage.asks == 1 and known and request.key in job.log:
            continue  # it need not be read
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
