"""Requests through a provider's batch service: export, hand in, wait, import into the answer log.

What is under way is noted in `<output stem>.batches.json`, written after each step and removed when
all is collected, so that a run may be killed at any moment:

    while a file is uploaded   nothing is noted: its requests are still pending (an unused file at
                               the service costs nothing)
    while a batch is made      its file's id is noted; whether the service has a batch of that file
                               is looked up before one is made
    while a batch is at work   its id is noted; it is only waited for
    while results are read     they are read again; a key is stored once

A batch is only forgotten when as many results were read as the service says there are: its answers
are paid for. What a batch leaves unanswered (expired, cancelled, faults of the server) goes into
another one when all of a round are over, at most `max_retries` times.
"""

import argparse
import json
import re
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from orbench.answers import AnswerLog, Missing
from orbench.batch_service import OVER, Service, Unknown, counts_of, error_of
from orbench.chat import ADAPTABLE, BadRequest, Fatal, Limited, Passing
from orbench.exchange import Pending, Rejected, Wanted, answer_in, read_result, request_line
from orbench.message_batches import MessageBatches
from orbench.mistral_batches import MistralBatches
from orbench.models import PROVIDERS, Model
from orbench.protocols import MESSAGES, PROTOCOLS
from orbench.run import Run
from orbench.table import remove, write_text
from orbench.terminal import UserError, counted, one_line, say

if TYPE_CHECKING:
    from openai.types import Batch

# https://platform.openai.com/docs/guides/batch and the package's BatchCreateParams: "up to 50,000
# requests, and can be up to 200 MB in size"; Groq's are the same, Anthropic's are larger.
MOST_BYTES = 200_000_000
QUEUE_FULL = "token_limit_exceeded"  # too many tokens enqueued: it may do when others are done
ENDING = ".batches.json"


# ---------------------------------------------------------------------------------- state


@dataclass
class Part:
    """One batch: what is in it, and how far it is."""

    number: int
    endpoint: str
    model: str
    n: int
    sent: list[str]  # names of the sampling parameters in its bodies
    dropped: list[str]  # those that were left out
    keys: str  # of its requests, 32 hex digits each
    made: str
    protocol: str
    file_id: str = ""
    batch_id: str = ""  # empty: it is not known whether there is one
    status: str = ""

    def holds(self) -> Iterator[bytes]:
        """The keys of its requests."""
        keys = bytes.fromhex(self.keys)
        return (keys[at : at + 16] for at in range(0, len(keys), 16))


def _is_intact(part: Part) -> bool:
    """Whether a part is as a run notes it, with all its keys: what lacks one would be paid for
    again. Raises TypeError, ValueError for some that are not.
    """
    return (
        _is_count(part.number, 1)
        and _is_count(part.n, 1)
        and len(part.keys) == 32 * part.n == 32 * len(set(part.holds()))
        and all(isinstance(text, str) for text in (part.endpoint, part.model, part.made))
        and {*part.sent, *part.dropped} <= set(ADAPTABLE)
        and all(re.fullmatch("[!-~]*", id_) for id_ in (part.file_id, part.batch_id, part.status))
        and part.file_id != ""
        and part.protocol in PROTOCOLS
    )


def _is_count(value: object, least: int) -> bool:
    return type(value) is int and value >= least


class State:
    """The batches that are under way, on disk."""

    def __init__(self, path: Path) -> None:
        """Read what an earlier run left. Raises UserError for a file that cannot be used."""
        self.path = path
        self.tag, self.rounds, self.parts = secrets.token_hex(8), 0, list[Part]()
        self.rejected: list[list[str]] = []  # endpoint, model, parameter that it does not take
        # What is known of this round's requests, by key in hex: no result, and what was said; or
        # why there will be none (kind, why).
        self.unsettled: dict[str, str] = {}
        self.failed: dict[str, list[str]] = {}
        try:
            self._read(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UserError(
                f"{path} says which batches are under way and cannot be read; without it they "
                "would be sent and paid for again (delete it if that is wanted)"
            ) from None

    def _read(self, path: Path) -> None:
        data = json.loads(path.read_text(encoding="utf-8"))
        self.tag, self.rounds = data["tag"], data["rounds"]
        self.parts = [Part(**part) for part in data["parts"]]
        self.rejected = [[str(word) for word in words] for words in data["rejected"]]
        unsettled, failed = data.get("unsettled", {}), data.get("failed", {})
        self.unsettled = {str(key): str(said) for key, said in unsettled.items()}
        self.failed = {str(key): [*map(str, why)] for key, why in failed.items()}
        if not (
            all(_is_intact(part) for part in self.parts)
            and re.fullmatch("[0-9a-f]{16}", self.tag)
            and _is_count(self.rounds, 0)
            and all(len(words) == 3 and words[2] in ADAPTABLE for words in self.rejected)
            and all(re.fullmatch("[0-9a-f]{32}", key) for key in (*self.unsettled, *self.failed))
            and all(len(why) == 2 for why in self.failed.values())
        ):
            raise ValueError

    def save(self) -> None:
        """Write it; without a batch under way there is no file. Raises UserError."""
        try:
            if not self.parts:
                remove(self.path)
                return
            data = {
                "tag": self.tag,
                "rounds": self.rounds,
                "rejected": self.rejected,
                "unsettled": self.unsettled,
                "failed": self.failed,
                "parts": [asdict(part) for part in self.parts],
            }
            write_text(self.path, json.dumps(data) + "\n")
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error.strerror}") from None

    def under_way(self) -> set[bytes]:
        """The keys of the requests in its batches."""
        return {key for part in self.parts for key in part.holds()}


def state_path(log: Path) -> Path:
    """Where the run with this answer log notes its batches."""
    return log.with_name(log.name.removesuffix(".answers.jsonl") + ENDING)


def states(output: Path) -> list[State]:
    """What is on disk of an output's batches: those of the whole and of its shards."""
    ours = re.compile(rf"{re.escape(output.stem)}(\.shard-\d+-of-\d+)?{re.escape(ENDING)}")
    paths = output.parent.glob(f"{escape(output.stem)}*{ENDING}")
    return [State(path) for path in sorted(paths) if ours.fullmatch(path.name)]


def under_way(output: Path) -> set[bytes]:
    """The keys of the requests of an output that are in batches."""
    return {key for state in states(output) for key in state.under_way()}


def check_not_under_way(output: Path, pending: Pending, own: Path | None) -> None:
    """Raise UserError where requests of this run are in batches that it does not collect.

    own: the state that it does collect.
    """
    for state in states(output):
        keys = set() if state.path == own else state.under_way()
        n = keys and sum(request.key() in keys for request in pending())
        if n:
            raise UserError(
                f"{n:,} of the requests are under way in batches ({state.path}): the command "
                "that handed them in collects them; to ask (and pay) again, delete that file"
            )


# ---------------------------------------------------------------------------------- the tool


class Draft:
    """The requests of a batch that is being filled."""

    def __init__(self, folder: Path) -> None:
        # A file without a name disappears with this process, however that ends.
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - stays open
        self.keys = bytearray()
        self.sent: set[str] = set()
        self.bytes = self.n = 0

    def is_full(self, line: bytes, most_requests: int) -> bool:
        """Whether there is no room for another line."""
        return self.n >= most_requests or self.bytes + len(line) > MOST_BYTES

    def add(self, key: bytes, line: bytes) -> None:
        """Append a request."""
        self.file.write(line)
        self.keys += key
        self.bytes += len(line)
        self.n += 1


def refuse_unable(models: Sequence[Model]) -> None:
    """Raise UserError for a model whose provider has no batch service of this protocol.

    An endpoint of the user's own is taken at its word: it may be a gateway.
    """
    for model in models:
        own = model.provider not in PROVIDERS or (
            model.base_url != PROVIDERS[model.provider].base_url
        )
        takes = model.settings.batches
        if MESSAGES in (model.protocol, model.settings.protocol):  # its batches hold nothing else
            takes = takes and model.protocol == model.settings.protocol
        if not own and not takes:
            able = ", ".join(name for name, provider in PROVIDERS.items() if provider.batches)
            raise UserError(
                f"--batch: {model.provider}, which serves {model.asked}, has no batch service that "
                f"is asked in this way ({able} have one); drop --batch, or see --export_requests"
            )


def service_of(model: Model) -> type[Service]:
    """How the batch service of a model's endpoint is spoken to."""
    if model.protocol == MESSAGES:
        return MessageBatches
    return MistralBatches if model.provider == "mistral" else Service


def ask_in_batches(
    pending: Pending,
    models: Sequence[Model],
    log: AnswerLog,
    run: Run,
    args: argparse.Namespace,
) -> Literal["done", "waiting", "left"]:
    """Hand in what is pending, wait and collect, until nothing is left to be sent.

    "waiting": batches are under way and nobody waits for them; "left": what the first ones left
    unanswered is the caller's. Sets run.stopped and run.interrupted as a live run does.
    Raises UserError, also for a key that is not set.
    """
    refuse_unable(models)
    batches = Batches(pending, models, log, run, args)
    try:
        return batches.go()
    except Fatal as error:
        run.stopped = str(error)
    except BadRequest as error:
        run.stopped = f"the batch service turns the request down ({error})"
    except OSError as error:
        why = error.strerror or str(error)
        run.stopped = f"no batch can be written or read in {log.path.parent}: {why}"
    except KeyboardInterrupt:
        run.interrupted = True
        if batches.parts():
            say("the batches go on at the service; run the same command to collect them")
    finally:
        for service in batches.services.values():
            service.close()
    return "done"


class Batches:
    """The batches of one run."""

    def __init__(
        self,
        pending: Pending,
        models: Sequence[Model],
        log: AnswerLog,
        run: Run,
        args: argparse.Namespace,
    ) -> None:
        self.pending, self.log, self.run, self.args = pending, log, run, args
        self.state = State(state_path(log.path))
        self.services = {
            (model.endpoint, model.id): service_of(model)(
                model, args.timeout, args.poll_interval, self.state.path
            )
            for model in models
        }
        for endpoint, model_id, parameter in self.state.rejected:
            if service := self.services.get((endpoint, model_id)):
                run.adaptation.adapt(service.model, parameter)
        self.wanted = Wanted()
        self.failed: dict[str, str] = {}  # error code -> message of batches that failed as a whole
        self.fatal = ""
        self.progress = False  # something came of the batches of this round
        self.done = self.errors = 0  # requests of the batches under way

    def parts(self) -> list[Part]:
        """The parts under way that belong to this run's models."""
        return [part for part in self.state.parts if (part.endpoint, part.model) in self.services]

    def service(self, part: Part) -> Service:
        """The service that a part is with."""
        return self.services[part.endpoint, part.model]

    def go(self) -> Literal["done", "waiting", "left"]:
        """See `ask_in_batches`. Raises Fatal, BadRequest, OSError."""
        self.recover()
        state = self.state
        if not self.parts():  # what is in the file is another model's
            state.rounds, state.unsettled, state.failed = 0, {}, {}
        for key, (kind, why) in state.failed.items():
            self.run.failed[bytes.fromhex(key)] = Missing(kind, why)
        while True:
            self.hand_in()
            if not self.parts():
                return "done"
            self.progress = False
            self.look() if self.args.no_wait else self.wait()
            self.stop_where_hopeless()
            if self.parts():
                say(self.standing())
                say("run the same command to collect the answers (without --no_wait to wait)")
                return "waiting"
            if self.args.batch_fallback:
                return "left"
            self.end_round()

    def stop_where_hopeless(self) -> None:
        """Raise Fatal for a fault of all requests, and for batches that failed as a whole."""
        if self.fatal:
            raise Fatal(self.fatal)
        hopeless = [message for code, message in self.failed.items() if code != QUEUE_FULL]
        if hopeless:
            raise Fatal(f"a batch failed: {hopeless[0]}")

    def end_round(self) -> None:
        """Give up what was tried often enough. Raises Fatal where the queue stays full."""
        if self.failed and not self.progress:
            raise Fatal(f"{self.failed[QUEUE_FULL]} (--batch_size makes smaller batches)")
        if not self.failed:  # a full queue is not a try: its requests were never processed
            self.state.rounds += 1
        tried = self.state.rounds
        if tried > self.args.max_retries:
            for key, said in self.state.unsettled.items():
                why = f"no result in {tried} batches, the last time: {said}"
                self.fail(bytes.fromhex(key), Missing("gave_up", why))
            self.state.unsettled.clear()
        self.failed.clear()

    def fail(self, key: bytes, missing: Missing) -> None:
        """Note that a request has no answer and gets none in this run, nor in one that goes on
        with its batches.
        """
        first = self.wanted.first(key)
        self.run.fail(self.log, first, missing)
        self.state.failed[first.hex()] = [missing.kind, missing.why]

    def recover(self) -> None:
        """Bring parts whose run was killed to a state in which they can be waited for."""
        for part in self.state.parts:
            if (part.endpoint, part.model) not in self.services:
                say(f"{self.state.path}: batch {part.batch_id} is for {part.model}, not this run")
        for part in self.parts():
            if not part.batch_id:
                self.make(part)

    def hand_in(self) -> None:
        """Put what is pending and in no batch yet into batches."""
        in_batches = self.state.under_way()
        again = not self.parts()  # what has no result waits until the others of its round are over
        drafts: dict[tuple[Model, str], Draft] = {}
        self.wanted = Wanted()
        for request in self.pending():
            key, model = request.key(), request.model
            self.wanted.add(request)
            if key in in_batches or (key.hex() in self.state.unsettled and not again):
                continue
            self.run.retries += self.state.unsettled.pop(key.hex(), None) is not None
            body = self.run.adaptation.fit(request)
            line = request_line(request, body)
            draft = drafts.get((model, request.protocol))
            if draft is not None and draft.is_full(line, self.args.batch_size):
                self.submit(model, request.protocol, draft)
                draft = None
            if draft is None:
                draft = drafts[model, request.protocol] = Draft(self.state.path.parent)
            draft.add(key, line)
            draft.sent.update(name for name in ADAPTABLE if name in body)
        for (model, protocol), draft in drafts.items():
            self.submit(model, protocol, draft)

    def submit(self, model: Model, protocol: str, draft: Draft) -> None:
        """Upload a file and make a batch of it, each noted before the next."""
        state = self.state
        part = Part(
            number=max((part.number for part in state.parts), default=0) + 1,
            endpoint=model.endpoint,
            model=model.id,
            n=draft.n,
            sent=sorted(draft.sent),
            dropped=list(self.run.adaptation.dropped(model)),
            keys=draft.keys.hex(),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            protocol=protocol,
        )
        with draft.file:
            name = f"orbench-{state.tag}-{part.number}.jsonl"
            part.file_id = self.service(part).upload(name, draft.file)
            state.parts.append(part)
            state.save()
            self.make(part, draft.file)

    def make(self, part: Part, lines: IO[bytes] | None = None) -> None:
        """Make the batch of an uploaded file. lines: as uploaded; None: by a run that was killed,
        which may have made it already.
        """
        metadata = {"orbench": self.state.tag, "part": str(part.number)}
        url, keys = "/v1" + PROTOCOLS[part.protocol].path, set(part.holds())
        try:
            made = self.service(part).make(part.file_id, url, metadata, keys, lines)
        except (BadRequest, Unknown):
            self.state.parts.remove(part)  # it was turned down: there is none
            self.state.save()
            raise
        if not made[0]:  # its requests are pending again
            self.state.parts.remove(part)
            self.state.save()
            return
        part.batch_id, part.status = made
        self.state.save()
        say(f"batch {one_line(part.batch_id)}: {counted(part.n, 'request')} to {part.model}")

    def wait(self) -> None:
        """Look until all batches are over and collected."""
        said = ""
        while self.parts():
            self.look()
            if not self.parts():
                return
            now = self.standing()
            if now != said and not self.args.quiet:
                said = now
                say(now)
            time.sleep(self.args.poll_interval)

    def look(self) -> None:
        """See how far each batch is; collect those that are over."""
        self.done = self.errors = 0
        for part in self.parts():
            batch = self.service(part).retrieve(part.batch_id)
            if batch.status != part.status:
                part.status = batch.status
                self.state.save()
            if batch.status in OVER:
                collect(self, part, batch)
            else:
                completed, failed = counts_of(batch)
                self.done += completed
                self.errors += failed

    def standing(self) -> str:
        """One line on how far the batches are."""
        parts = self.parts()
        statuses = ", ".join(sorted({part.status for part in parts}))
        total = sum(part.n for part in parts)
        line = f"batches: {len(parts)} under way ({one_line(statuses)}), {self.done:,} of {total:,}"
        return line + " requests done" + (f", {self.errors:,} failed" if self.errors else "")


# ---------------------------------------------------------------------------------- results


def collect(work: Batches, part: Part, batch: "Batch") -> None:
    """Take the results of a batch that is over; then it is done with."""
    missing = dict.fromkeys(part.holds(), f"the batch is {batch.status}")
    promised = min(counts_of(batch)[0], part.n)
    work.service(part).collect(batch, lambda line: take(work, part, line, missing), promised)
    work.run.requests += part.n
    work.state.unsettled |= {
        key.hex(): said for key, said in missing.items() if key not in work.log
    }
    if batch.status == "failed":
        code, said = error_of(batch)
        work.failed[code] = one_line(said)
        say(f"batch {one_line(batch.id)} failed: {work.failed[code]}")
    elif missing:
        say(f"batch {one_line(batch.id)} is {batch.status}: {len(missing):,} without a result")
    work.log.sync()  # the answers must be on disk before the batch is forgotten
    work.state.parts.remove(part)
    work.state.save()


def take(work: Batches, part: Part, line: bytes, missing: dict[bytes, str]) -> bytes:
    """Put one result line where it belongs; `missing` loses what is settled. Gives the
    request's key, empty for a line that is no result.
    """
    result = read_result(line)
    if result is None:
        return b""
    key, model = result.key, work.service(part).model
    if key not in missing:
        return key
    if key in work.log:
        del missing[key]
        return key
    try:
        answer = answer_in(result, model, part.protocol, part.sent)
    except (Passing, Limited) as error:
        missing[key] = str(error)
    except Rejected as error:
        reject(work, model, error.parameter)
        work.progress = True
        missing[key] = str(error)
    except Fatal as error:
        work.fatal = missing[key] = str(error)
    except BadRequest as error:
        del missing[key]
        work.progress = True
        work.fail(key, Missing("bad_request", str(error)))
    else:
        del missing[key]
        work.progress = True
        work.run.store(work.log, key, answer._replace(dropped=tuple(part.dropped)))
    return key


def reject(work: Batches, model: Model, parameter: str) -> None:
    """Leave a parameter out (or rename it) from here on, in later runs of this state too."""
    work.run.adaptation.adapt(model, parameter)
    if [model.endpoint, model.id, parameter] not in work.state.rejected:
        work.state.rejected.append([model.endpoint, model.id, parameter])
