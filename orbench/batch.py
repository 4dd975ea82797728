"""Requests through a provider's batch service: hand in, wait, collect into the answer log.

The service is OpenAI's (`client.files`, `client.batches`; about half the price, an answer within
24 hours): a file of request lines (`orbench.exchange`) is uploaded, a batch is made of it, its
results are files again. What is under way stands in `<output stem>.batches.json`, written after
each step and removed when all is collected, so that a run may be killed at any moment:

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

import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from orbench.chat import (
    ADAPTABLE,
    BadRequest,
    Fatal,
    Limited,
    Passing,
    Request,
    fault_of,
    key_of,
    one_line,
)
from orbench.exchange import (
    URL,
    Rejected,
    Wanted,
    answer_in,
    read_result,
    request_line,
    store,
)
from orbench.gate import LONGEST_WAIT_S
from orbench.models import PROVIDERS, Model
from orbench.options import UserError, say
from orbench.run import FAILURES_IN_A_ROW, Failure, Run
from orbench.table import write_text

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch, FileObject

# https://platform.openai.com/docs/guides/batch and the package's BatchCreateParams: "up to 50,000
# requests, and can be up to 200 MB in size"; Groq's are the same.
MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
OVER = ("completed", "failed", "expired", "cancelled")
QUEUE_FULL = "token_limit_exceeded"  # too many tokens enqueued: when others are done, it may do
T = TypeVar("T")


class Missing(Fatal):
    """A 404: the service does not know what it was asked for."""


class Way(NamedTuple):
    """How the batches of a run are made and waited for."""

    poll_interval: float = 30.0  # seconds
    most_requests: int = MOST_REQUESTS
    wait: bool = True
    once: bool = False  # what the first batches leave unanswered is not sent again
    quiet: bool = False


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
    file_id: str = ""
    batch_id: str = ""  # empty: nobody knows whether there is one
    status: str = ""

    def holds(self) -> Iterator[bytes]:
        """The keys of its requests."""
        keys = bytes.fromhex(self.keys)
        return (keys[at : at + 16] for at in range(0, len(keys), 16))


class State:
    """The batches that are under way, on disk."""

    def __init__(self, path: Path) -> None:
        """Read what an earlier run left. Raises UserError for a file that cannot be used."""
        self.path = path
        self.tag, self.rounds, self.parts = secrets.token_hex(8), 0, list[Part]()
        self.rejected: list[list[str]] = []  # endpoint, model, parameter that it does not take
        # What is known of this round's requests, by key in hex: no result, and what was said; or
        # why there will be none (error_type, error).
        self.unsettled: dict[str, str] = {}
        self.failed: dict[str, list[str]] = {}
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            self.tag, self.rounds = str(data["tag"]), int(data["rounds"])
            self.parts = [Part(**part) for part in data["parts"]]
            self.rejected = [[str(word) for word in words] for words in data["rejected"]]
            unsettled, failed = data.get("unsettled", {}), data.get("failed", {})
            self.unsettled = {str(key): str(said) for key, said in unsettled.items()}
            self.failed = {str(key): [*map(str, why)] for key, why in failed.items()}
            for part in self.parts:
                bytes.fromhex(part.keys)
            for key, (_, _) in self.failed.items():
                bytes.fromhex(key)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(
                f"{path} says which batches are under way and cannot be read; without it they "
                "would be sent and paid for again (delete it if that is wanted)"
            ) from None

    def save(self) -> None:
        """Write it; without a batch under way there is no file. Raises UserError."""
        try:
            if not self.parts:
                self.path.unlink(missing_ok=True)
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


class Draft:
    """The requests of a batch that is being filled."""

    def __init__(self, folder: Path) -> None:
        # A file without a name: gone with this process, however that ends.
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - stays open
        self.keys = bytearray()
        self.sent: set[str] = set()
        self.bytes = self.n = 0

    def is_full(self, line: bytes, way: Way) -> bool:
        """Whether there is no room for another line."""
        return self.n >= way.most_requests or self.bytes + len(line) > MOST_BYTES

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
        if not own and not model.settings.batches:
            able = ", ".join(name for name, provider in PROVIDERS.items() if provider.batches)
            raise UserError(
                f"--batch: {model.provider}, which serves {model.asked}, has no batch service of "
                f"OpenAI's protocol ({able} have); leave --batch off, or see --export_requests"
            )


class Batches:
    """The batches of one run."""

    def __init__(
        self,
        run: Run,
        models: Sequence[Model],
        pending: Callable[[], Iterable[tuple[Request, Request]]],
        path: Path,
        way: Way,
    ) -> None:
        """pending: the requests that lack an answer, each with how it is to be asked next. path:
        of the state.

        Raises UserError, and ModelError for a key that is not set.
        """
        refuse_unable(models)
        self.run, self.pending, self.way = run, pending, way
        self.models = {(model.endpoint, model.id): model for model in models}
        self.clients = {
            name: connect(model, run.limits.timeout) for name, model in self.models.items()
        }
        self.state = State(path)
        for endpoint, model_id, parameter in self.state.rejected:
            if model := self.models.get((endpoint, model_id)):
                run.adaptation.adapt(model, parameter)
        self.wanted = Wanted()
        self.failed: dict[str, str] = {}  # error code -> message of batches that failed as a whole
        self.fatal = ""
        self.progress = False  # something came of the batches of this round
        self.done = self.errors = 0  # requests of the batches under way

    def parts(self) -> list[Part]:
        """The parts under way that belong to this run's models."""
        return [part for part in self.state.parts if (part.endpoint, part.model) in self.models]

    def go(self) -> Literal["done", "waiting", "left"]:
        """Hand in what is pending, wait and collect, until nothing is left to be sent.

        "waiting": batches are under way and nobody waits for them; "left": what the first ones
        left unanswered is the caller's. Sets run.stopped and run.interrupted as a live run does.
        """
        try:
            return self._go()
        except Fatal as error:
            self.run.stopped = str(error)
        except BadRequest as error:
            self.run.stopped = f"the batch service turns the request down ({error})"
        except OSError as error:
            why = error.strerror or str(error)
            self.run.stopped = f"no batch can be written or read in {self.state.path.parent}: {why}"
        except KeyboardInterrupt:
            self.run.interrupted = True
            if self.parts():
                say("the batches go on at the service; the same command collects them")
        finally:
            for client in self.clients.values():
                client.close()
        return "done"

    def _go(self) -> Literal["done", "waiting", "left"]:
        self.recover()
        state = self.state
        if not self.parts():  # what is in the file is another model's
            state.rounds, state.unsettled, state.failed = 0, {}, {}
        for key, (error_type, error) in state.failed.items():
            self.run.failed[bytes.fromhex(key)] = Failure(error_type, error)
        while True:
            self.hand_in()
            if not self.parts():
                return "done"
            self.progress = False
            if self.way.wait:
                self.wait()
            else:
                self.look()
            self.stop_where_hopeless()
            if self.parts():
                self.say_waiting()
                return "waiting"
            if self.way.once:
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
        if not self.failed:  # a full queue is no try: the requests in it were not looked at
            self.state.rounds += 1
        tried = self.state.rounds
        if tried > self.run.limits.max_retries:
            for key, said in self.state.unsettled.items():
                why = f"no result in {tried} batches, the last time: {said}"
                self.fail(bytes.fromhex(key), Failure("gave_up", why))
            self.state.unsettled.clear()
        self.failed.clear()

    def fail(self, key: bytes, failure: Failure) -> None:
        """Note that a request has no answer and will get none in this run, nor in one that goes
        on with its batches.
        """
        first = self.wanted.first(key)
        self.run.failed[first] = failure
        self.state.failed[first.hex()] = list(failure)

    # -- handing in -----------------------------------------------------------------------------

    def recover(self) -> None:
        """Bring parts that an earlier run was killed over to where they can be waited for."""
        strangers = [part for part in self.state.parts if part not in self.parts()]
        for part in strangers:
            say(f"{self.state.path}: batch {part.batch_id} is of {part.model}, not of this run")
        for part in self.parts():
            if not part.batch_id:
                self.create(part, doubtful=True)

    def hand_in(self) -> None:
        """Put what is pending and in no batch yet into batches."""
        under_way = self.state.under_way()
        again = not self.parts()  # what has no result waits until the others of its round are over
        drafts: dict[Model, Draft] = {}
        self.wanted = Wanted()
        for request, asked in self.pending():
            if request.key() in self.run.failed:
                continue
            key, model = asked.key(), asked.model
            self.wanted.add(request, asked)
            if key in under_way or (key.hex() in self.state.unsettled and not again):
                continue
            self.run.retries += self.state.unsettled.pop(key.hex(), None) is not None
            body = self.run.adaptation.fit(asked)
            line = request_line(key, body)
            draft = drafts.get(model)
            if draft is not None and draft.is_full(line, self.way):
                self.submit(model, draft)
                draft = None
            if draft is None:
                draft = drafts[model] = Draft(self.state.path.parent)
            draft.add(key, line)
            draft.sent.update(name for name in ADAPTABLE if name in body)
        for model, draft in drafts.items():
            self.submit(model, draft)

    def submit(self, model: Model, draft: Draft) -> None:
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
        )
        client = self.client(part)
        name = f"orbench-{state.tag}-{part.number}.jsonl"

        def upload() -> str:
            draft.file.seek(0)
            file = (name, draft.file, "application/jsonl")
            return id_of(client.files.create(file=file, purpose="batch"))

        try:
            part.file_id = self.call(part, upload, f"{model.endpoint} has no batch service")
        finally:
            draft.file.close()
        state.parts.append(part)
        state.save()
        self.create(part)

    def create(self, part: Part, *, doubtful: bool = False) -> None:
        """Make the batch of an uploaded file. doubtful: it may have been made already."""
        client = self.client(part)
        tried = doubtful

        def make() -> tuple[str, str]:
            nonlocal tried
            if tried and (made := self.find(part)):
                return made
            tried = True
            batch = client.batches.create(
                input_file_id=part.file_id,
                endpoint=URL,
                completion_window="24h",
                metadata={"orbench": self.state.tag, "part": str(part.number)},
            )
            return id_of(batch), str(batch.status)

        try:
            made = self.call(part, make, f"{part.endpoint} makes no batch for {part.model}")
        except (BadRequest, Missing):
            self.state.parts.remove(part)  # it was turned down: there is none
            self.state.save()
            raise
        part.batch_id, part.status = made
        self.state.save()
        say(f"batch {one_line(part.batch_id)}: {part.n:,} requests to {part.model}")

    def find(self, part: Part) -> tuple[str, str] | None:
        """Id and status of the batch of a part's file, if the service has one."""
        import openai

        model = self.models[part.endpoint, part.model]
        try:
            for batch in batches_of(self.client(part)):
                if batch.get("input_file_id") == part.file_id:
                    return str(batch["id"]), str(batch.get("status"))
        except openai.APIStatusError as error:
            passing = isinstance(fault_of(error, model), Passing | Limited)
            if passing and error.status_code != 501:
                raise
            raise Fatal(
                f"{part.endpoint} cannot list its batches ({one_line(error.message, model)}), so "
                f"nobody knows whether {part.n:,} requests are under way already; if they are "
                f"not, delete {self.state.path}"
            ) from None
        return None

    # -- waiting --------------------------------------------------------------------------------

    def wait(self) -> None:
        """Look until all batches are over and collected."""
        said = ""
        while self.parts():
            self.look()
            if not self.parts():
                return
            now = self.standing()
            if now != said and not self.way.quiet:
                said = now
                say(now)
            time.sleep(self.way.poll_interval)

    def look(self) -> None:
        """See how far each batch is; collect those that are over."""
        self.done = self.errors = 0
        for part in self.parts():
            batch = self.retrieve(part)
            if batch.status != part.status:
                part.status = batch.status
                self.state.save()
            if batch.status in OVER:
                self.collect(part, batch)
            else:
                completed, failed = counts_of(batch)
                self.done += completed
                self.errors += failed

    def retrieve(self, part: Part) -> "Batch":
        """How far a batch is."""
        client = self.client(part)

        def retrieved() -> "Batch":
            batch = client.batches.retrieve(part.batch_id)
            id_of(batch)
            if not isinstance(batch.status, str):
                raise Passing("a batch without a status")
            if batch.status in OVER and counts_of(batch)[0] and not batch.output_file_id:
                raise Passing(f"the batch is {batch.status}, its results are not there yet")
            return batch

        return self.call(
            part,
            retrieved,
            f"{part.endpoint} does not know the batch {one_line(part.batch_id)} (another key or "
            f"project?); to send its requests again, delete {self.state.path}",
        )

    def standing(self) -> str:
        """One line on how far the batches are."""
        parts = self.parts()
        statuses = ", ".join(sorted({part.status for part in parts}))
        total = sum(part.n for part in parts)
        line = f"batches: {len(parts)} under way ({one_line(statuses)}), {self.done:,} of {total:,}"
        return line + " requests done" + (f", {self.errors:,} failed" if self.errors else "")

    def say_waiting(self) -> None:
        """What a user is told who does not wait."""
        say(self.standing())
        say("the same command collects the answers (without --no_wait it waits for them)")

    # -- collecting -----------------------------------------------------------------------------

    def collect(self, part: Part, batch: "Batch") -> None:
        """Take the results of a batch that is over; then it is done with."""
        missing = dict.fromkeys(part.holds(), f"the batch is {batch.status}")
        model = self.models[part.endpoint, part.model]
        promised = min(counts_of(batch)[0], part.n)
        results: set[bytes] = set()

        def read() -> None:
            for file_id in (batch.output_file_id, batch.error_file_id):
                if file_id:
                    with self.download(part, file_id) as lines:
                        results.update(self.take(part, model, line, missing) for line in lines)
            results.discard(b"")
            if len(results) < promised:
                raise Passing(f"only {len(results):,} of {promised:,} results can be read")

        try:
            self.call(part, read, f"a result file of {one_line(batch.id)} is not there")
        except Fatal as error:
            raise Fatal(
                f"{error}; if they are lost, delete {self.state.path} to ask (and pay) for what is "
                "under way again"
            ) from None
        self.run.requests += part.n
        self.state.unsettled |= {
            key.hex(): said for key, said in missing.items() if key not in self.run.log
        }
        if batch.status == "failed":
            code, said = error_of(batch)
            self.failed[code] = one_line(said, model)
            say(f"batch {one_line(batch.id)} failed: {self.failed[code]}")
        elif missing:
            say(f"batch {one_line(batch.id)} is {batch.status}: {len(missing):,} without a result")
        with self.run.log.path.open("rb") as file:
            os.fsync(file.fileno())  # the answers must be on disk before the batch is forgotten
        self.state.parts.remove(part)
        self.state.save()

    def take(self, part: Part, model: Model, line: bytes, missing: dict[bytes, str]) -> bytes:
        """Bring one result line to where it belongs; `missing` loses what is settled. Gives the
        request's key, empty for a line that is no result.
        """
        result = read_result(line)
        if result is None:
            return b""
        key = result.key
        if key not in missing:
            return key
        if key in self.run.log:
            del missing[key]
            return key
        try:
            answer = answer_in(result, model, part.sent)
        except (Passing, Limited) as error:
            missing[key] = str(error)
        except Rejected as error:
            self.reject(model, error.parameter)
            self.progress = True
            missing[key] = str(error)
        except Fatal as error:
            self.fatal = missing[key] = str(error)
        except BadRequest as error:
            del missing[key]
            self.progress = True
            self.fail(key, Failure("bad_request", str(error)))
        else:
            del missing[key]
            self.progress = True
            store(self.run, key, answer._replace(dropped=tuple(part.dropped)))
        return key

    def reject(self, model: Model, parameter: str) -> None:
        """Leave a parameter out (or rename it) from here on, in later runs of this state too."""
        self.run.adaptation.adapt(model, parameter)
        if [model.endpoint, model.id, parameter] not in self.state.rejected:
            self.state.rejected.append([model.endpoint, model.id, parameter])

    def download(self, part: Part, file_id: str) -> IO[bytes]:
        """A result file in a file without a name. Raises Passing where it is not whole."""
        import openai

        file = tempfile.TemporaryFile(dir=self.state.path.parent)  # noqa: SIM115 - the caller's
        files = self.client(part).files.with_streaming_response
        try:
            with files.content(file_id) as response:
                for block in response.iter_bytes():
                    file.write(block)
        except openai.NotFoundError as error:  # some services need a while
            said = one_line(error.message, self.models[part.endpoint, part.model])
            raise Passing(f"the result file {one_line(file_id)}: {said}") from None
        if not is_whole(file):
            raise Passing(f"the result file {one_line(file_id)} is torn, or none")
        return file

    # -- the service ----------------------------------------------------------------------------

    def client(self, part: Part) -> "OpenAI":
        """The client of a part's endpoint."""
        return self.clients[part.endpoint, part.model]

    def call(self, part: Part, send: Callable[[], T], unknown: str) -> T:
        """Ask the service something until it answers; faults that can pass are waited out.

        unknown: what a 404 means. Raises Fatal, Missing or BadRequest.
        """
        import openai

        model = self.models[part.endpoint, part.model]
        fault: Passing | Limited | BadRequest | Fatal
        faults: tuple[type[Exception], ...] = (*stream_faults(), ValueError)
        for _ in range(FAILURES_IN_A_ROW):
            wait = self.way.poll_interval
            try:
                return send()
            except openai.APIStatusError as error:
                fault = fault_of(error, model)
                if error.status_code == 404:
                    raise Missing(f"{unknown} ({one_line(error.message, model)})") from None
                if isinstance(fault, BadRequest | Fatal):
                    raise fault from None
                if isinstance(fault, Limited) and fault.wait:
                    wait = min(fault.wait, LONGEST_WAIT_S)
            except Passing as error:
                fault = error
            except openai.APIConnectionError as error:
                fault = Passing(one_line(str(error.__cause__ or error), model))
            except faults as error:
                fault = Passing(one_line(str(error), model) or "the answer was cut off")
            time.sleep(wait)
        raise Fatal(
            f"{part.endpoint} cannot be asked about batches, {FAILURES_IN_A_ROW} times in a row, "
            f"the last time: {fault}; the same command goes on"
        )


def connect(model: Model, timeout: float) -> "OpenAI":
    """A client for an endpoint's files and batches. Raises ModelError when the key is not set."""
    import openai

    key = key_of(model)
    return openai.OpenAI(api_key=key, base_url=model.base_url, max_retries=0, timeout=timeout)


def batches_of(client: "OpenAI") -> Iterator[dict[str, Any]]:
    """All batches that a service has, newest first. Raises Passing for what is no list of them.

    Read as plain data: the package's own list raises an AttributeError over a gateway's page.
    """
    params: dict[str, object] = {"limit": 100}
    seen: set[object] = set()
    while True:
        page = client.get("/batches", cast_to=object, options={"params": params})
        batches = page.get("data") if isinstance(page, dict) else None
        if not isinstance(page, dict) or not isinstance(batches, list):
            raise Passing("no list of batches (a gateway's page?)")
        new = [b for b in batches if isinstance(b, dict) and b.get("id") not in seen]
        yield from new
        seen.update(batch.get("id") for batch in new)
        if not new or not page.get("has_more"):  # a service that cannot turn pages gives no new
            return
        params["after"] = new[-1].get("id")


def id_of(answer: "Batch | FileObject") -> str:
    """The id in a service's answer. Raises Passing where there is none (a gateway's page)."""
    found = getattr(answer, "id", None)
    if not isinstance(found, str) or not found:
        raise Passing("the answer holds no id (a gateway's page?)")
    return found


def counts_of(batch: "Batch") -> tuple[int, int]:
    """How many requests are completed and failed, as the service says; 0 where it does not."""
    counts = batch.request_counts
    found = getattr(counts, "completed", 0), getattr(counts, "failed", 0)
    completed, failed = (n if isinstance(n, int) else 0 for n in found)
    return completed, failed


def error_of(batch: "Batch") -> tuple[str, str]:
    """Why a batch failed as a whole: the first error's code, and what is said of the first three.

    A gateway's `errors` may have any form.
    """
    errors = getattr(batch.errors, "data", batch.errors)
    errors = [one for one in errors[:3] if hasattr(one, "code")] if isinstance(errors, list) else []
    said = "; ".join(f"{one.code}: {getattr(one, 'message', '')}" for one in errors)
    code = errors[0].code if errors else None
    return str(code or "failed"), said or str(batch.errors or "the service does not say why")


def stream_faults() -> tuple[type[Exception], ...]:
    """What openai lets through unwrapped while a body is streamed: its transport's own errors."""
    try:
        import httpx2
    except ImportError:
        return ()
    return (httpx2.HTTPError,)


def is_whole(file: IO[bytes]) -> bool:
    """Whether the last line of a result file is one; the file is at its beginning then."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - (1 << 20)))
    last = file.read().rstrip().rpartition(b"\n")[2]
    file.seek(0)
    return not end or read_result(last) is not None
