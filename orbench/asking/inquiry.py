"""What to ask about a row, and what follows from an answer. No other module knows that rule.

An inquiry is a question: its request, how it is asked again if the answer cannot be read, and who
is asked instead. `state` says what is to be sent next or what the answer says, from the answer log
and from what this run knows beside it. Live asking, batches, files, the dry run and the writer all
call it.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from orbench.asking.log import AnswerLog
from orbench.base.messages import say
from orbench.base.records import NOT_ASKED
from orbench.models.adaptation import Adaptation
from orbench.models.requests import Answer, Missing, Request, Tokens

UNREADABLE = 12  # first replies of a model in a row, after which it is asked once per row


class Limits(NamedTuple):
    """How a run may use its endpoints."""

    concurrency: int | None = None  # requests in flight; None: the provider's default
    max_retries: int = 6  # of a request, after transient errors
    timeout: float = 180.0  # seconds, for a whole attempt
    requests_per_minute: float | None = None


class Inquiry(NamedTuple):
    """A question about a row."""

    request: Request
    substitute: Request | None = None  # to another model, if the first gives no readable answer


class Done(NamedTuple):
    """Nothing is to be sent any more."""

    request: Request  # the one that ended the inquiry
    answer: Answer | None = None
    reading: Any = None  # what the answer says, Missing without a usable one; None: not read yet


NOT_YET = Missing(NOT_ASKED, "not asked yet")


class Reader:
    """Reads answers: a stage. name: its folder. asks: how often a question is sent at most, until
    it can be read.
    """

    name = ""
    asks = 1

    def read(self, request: Request, answer: Answer) -> Any:
        """Return what one answer says; Missing if it cannot be read."""
        raise NotImplementedError

    def refusals(self, reading: Any) -> list[bool]:
        """Return whether a response is a refusal, if the reading tells."""
        return []

    def again(self, request: Request, answer: Answer, missing: Missing) -> Request:
        """Return the request after an answer that cannot be read."""
        return request.again()


class Phase(Enum):
    """How far the asking is in a run. Only while it is under way, requests are sent."""

    ASKING = "asking"
    OVER = "over"
    FROM_LOG = "from_log"  # nothing is sent at all, and the log alone counts
    WAITING = "waiting"  # answers come later, from a batch or a file, and so does the CSV
    INTERRUPTED = "interrupted"  # by the user


@dataclass
class Run:
    """What a run asks, the log with the answers, and what it knows beside it.

    failed: why requests have no answer, by key. left_out: models that are asked nothing more, and
    why.
    """

    stage: Reader
    log: AnswerLog
    inquiries: list[Inquiry] = field(default_factory=list)
    failed: dict[bytes, Missing] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # by model as asked
    phase: Phase = Phase.ASKING
    stopped: str = ""  # why the run could not go on
    requests: int = 0  # attempts sent
    retried: Counter[str] = field(default_factory=Counter)  # of these: by why it was sent again
    tokens: Tokens = field(default_factory=Tokens)
    adaptation: Adaptation = field(default_factory=Adaptation)
    unreadable: Counter[str] = field(default_factory=Counter)  # replies in a row, by model as asked
    readings: dict[bytes, Done] = field(default_factory=dict)
    under_way: dict[bytes, Inquiry] = field(default_factory=dict)  # by the key that was sent

    @property
    def asking(self) -> bool:
        """Tell whether requests may still be sent."""
        return self.phase is Phase.ASKING and not self.stopped

    @property
    def retries(self) -> str:
        """Return how many requests were sent again and why: `15 (12 throttled, 3 timed out)`."""
        reasons = [f"{n:,} {why}" for why, n in self.retried.most_common()]
        return f"{self.retried.total():,} ({', '.join(reasons)})".removesuffix(" ()")

    @property
    def follows(self) -> bool:
        """Tell whether something can follow from an answer, so that it must be read at once."""
        return self.stage.asks > 1

    def store(self, key: bytes, answer: Answer) -> None:
        """Put an answer into the log, then count its tokens. Raises UserError."""
        self.log.append(key, answer)
        self.tokens.add(answer)

    def read(self, request: Request, *, first: bool = True) -> Done | None:
        """Read the answer to a request, once in a run if something can follow from it.

        first: the first attempt, which the brake on unreadable replies counts. Return None if there
        is no answer. Raises UserError if the log cannot be read.
        """
        if done := self.readings.get(request.key):
            return done
        answer = self.log.answer(request.key)
        if answer is None:
            return None
        self.adaptation.recall(request.model, answer)
        done = Done(request, answer, self.stage.read(request, answer))
        if self.follows:  # else every response would stay in memory
            self.readings[request.key] = done
            if first:
                self._count(request.model.asked, isinstance(done.reading, Missing))
        return done

    def _count(self, model: str, unreadable: bool) -> None:
        """Count unreadable first replies in a row, and report once that there are many."""
        if self.brakes(model):
            return
        self.unreadable[model] += 1
        if not unreadable:
            self.unreadable[model] = 0
        if self.brakes(model):
            say(f"{model}: {UNREADABLE} unreadable replies in a row; now asked once per row")

    def brakes(self, model: str) -> bool:
        """Tell whether a model is asked only once per row."""
        return self.unreadable[model] >= UNREADABLE


def state(inquiry: Inquiry, run: Run) -> Request | Done:
    """Walk the attempts, then the substitute; stop at the first one without an answer.

    Return the request to send next (none once the run is over), or the request that ended it, with
    what its answer says or Missing. A reader that asks once follows up on no answer: it is only
    looked up here, and read when the rows are written.
    """
    step = _walk(inquiry.request, run)
    substitute = inquiry.substitute
    if substitute is None or isinstance(step, Request) or not isinstance(step.reading, Missing):
        return step
    # Several judges share a substitute: its answer says nothing about one that was not asked yet.
    from_log = run.phase is Phase.FROM_LOG
    if step.reading == NOT_YET and not (from_log and substitute.key in run.log):
        return step
    return _walk(substitute, run)


def _walk(request: Request, run: Run) -> Request | Done:
    """Follow a request through its attempts, up to a readable answer or one that is not there."""
    if run.asking and not run.follows:
        if request.key in run.log:
            return Done(request)  # read when the rows are written
        return _without_answer(request, run)
    attempts = 1
    while True:
        done = run.read(request, first=attempts == 1)
        if done is None or done.answer is None:
            return _without_answer(request, run)
        if not isinstance(done.reading, Missing) or attempts == run.stage.asks:
            return done
        again = run.stage.again(request, done.answer, done.reading)
        if run.brakes(request.model.asked) and again.key not in run.log:
            return done
        request = again
        attempts += 1


def _without_answer(request: Request, run: Run) -> Request | Done:
    """Decide whether a request without an answer is to be sent, and if not, say why."""
    failed = run.failed.get(request.key)
    if failed:
        return Done(request, reading=failed)
    left_out = run.left_out.get(request.model.asked)
    if left_out and not run.stopped:
        return Done(request, reading=Missing("gave_up", left_out))
    if run.asking:
        return request
    return Done(request, reading=NOT_YET)


def replay(run: Run) -> None:
    """Read what the log holds already, in the order of arrival: the brake depends on it, and what
    earlier answers tell about a model's parameters.
    """
    requests: dict[bytes, Request] = {}
    for inquiry in run.inquiries:
        requests.update((request.key, request) for request in inquiry if request)
    for key in run.log:
        request = requests.get(key)
        if request and (run.follows or request.model not in run.adaptation.rejected):
            run.read(request)


def pending(run: Run) -> list[Request]:
    """Return the requests to send now, each key once. Raises UserError."""
    run.under_way.clear()
    steps = [_next(inquiry, run) for inquiry in run.inquiries]
    return [step for step in steps if step]


def follow_up(key: bytes, run: Run) -> Request | None:
    """Return what to send once the request with this key is answered or has failed, if any."""
    return _next(run.under_way.pop(key), run)


def _next(inquiry: Inquiry, run: Run) -> Request | None:
    """Return what to send for an inquiry, unless another one has it sent."""
    step = state(inquiry, run)
    if isinstance(step, Done) or step.key in run.under_way:
        return None
    run.under_way[step.key] = inquiry
    return step
