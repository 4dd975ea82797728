"""Requests through a provider's batch service: about half the price, answers within 24 hours.

OpenAI's files and batches (platform.openai.com/docs/guides/batch), which gateways copy, and
Anthropic's message batches (platform.claude.com/docs/en/build-with-claude/batch-processing). The
batches under way are noted in `<output stem>.batches.json` as soon as they exist. When all are
over, the requests without a result go into the next ones.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

from orbench.asking.adaptation import ADAPTABLE
from orbench.asking.answer_log import AnswerLog
from orbench.asking.asked import Asked, Pending
from orbench.asking.client import connect, headers_of
from orbench.asking.faults import BadRequest, Fatal, Limited, Passing, fault_of, message_of, shown
from orbench.asking.files import ResultLine, answer_in, read_result, rejected_in, request_line
from orbench.asking.models import PROVIDERS, Model
from orbench.asking.protocols import MESSAGES_API, PROTOCOLS
from orbench.asking.requests import Missing, Request
from orbench.base.messages import UserError, counted, one_line, say
from orbench.base.tables import sync_folder, write_text

TIMEOUT_S = 600.0  # for each read
POLL_S = (10.0, 15.0, 20.0, 30.0, 45.0, 60.0)  # between looks; the last one repeats
RETRY_S = (1.0, 5.0, 15.0, 30.0)  # before each retry of a call
MOST_BARREN = 2  # rounds of batches in a row
LARGEST_BATCH = 50_000, 200_000_000  # requests, bytes; OpenAI's limits, Anthropic's are larger
OVER = ("completed", "failed", "expired", "cancelled", "ended")


class Batch(NamedTuple):
    """A batch under way, as the state file has it."""

    id: str
    model: list[str]  # address and id
    protocol: str
    rejected: list[str]  # parameters that the model was known to reject
    keys: list[str]  # of its requests, in hex

    def holds(self) -> set[bytes]:
        """The keys of its requests. Raises ValueError."""
        return set(map(bytes.fromhex, self.keys))


def read_batches(state: Path) -> list[Batch]:
    """The batches in a state file. Raises UserError if it cannot be read."""
    try:
        batches = [Batch(**entry) for entry in json.loads(state.read_text(encoding="utf-8"))]
        all(batch.holds() for batch in batches)  # ValueError for a damaged key
        return batches
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, RecursionError):
        raise UserError(
            f"{state} names the batches under way and cannot be read; restore it, or delete it to "
            "send (and pay for) their requests again"
        ) from None


def under_way(state: Path) -> set[bytes]:
    """The keys of the requests in batches under way. Raises UserError."""
    return set().union(*(batch.holds() for batch in read_batches(state)))


def ask_in_batches(
    pending: Pending, models: Sequence[Model], log: AnswerLog, asked: Asked, wait: bool, state: Path
) -> None:
    """Put the pending requests into batches and collect the answers, until nothing is pending.

    wait=False: collect only what is ready; asked.waiting says that more comes later. state: the
    file that names the batches under way. Raises UserError.
    """
    work = _Batches(pending, log, asked, state)
    if not (work.batches or pending()):
        return
    try:
        asyncio.run(work.run(models, wait))
    except Fatal as error:
        hint = f"; rerun to collect the batches under way, or delete {state} if they are lost"
        asked.stopped = f"{error}{hint if work.batches else ''}"
    except KeyboardInterrupt:
        asked.interrupted = True
        if work.batches:
            say("the batches go on at the provider; run the same command to collect the answers")


class _Batches:
    """The batches of one run."""

    def __init__(self, pending: Pending, log: AnswerLog, asked: Asked, state: Path) -> None:
        self.pending, self.log, self.asked = pending, log, asked
        self.state, self.batches = state, read_batches(state)
        self.services: dict[tuple[str, ...], Service] = {}
        self.answered: set[Model] = set()
        self.fault = ""  # the last one
        self.barren = 0  # rounds of batches in a row without any result

    async def run(self, models: Sequence[Model], wait: bool) -> None:
        """See `ask_in_batches`. Raises Fatal."""
        try:
            for model in models:
                self.services[model.address, model.id] = Service(model)
            for service, batch in self.ours():
                for name in batch.rejected:
                    self.asked.adaptation.adapt(service.model, name)
            while self.ours() or await self.submit_pending():
                self.barren += 1
                if not await self.collect(wait):
                    self.asked.waiting = True
                    return
                if self.barren == MOST_BARREN:
                    raise Fatal(f"{self.barren} batches in a row had no result ({self.fault})")
        finally:
            for service in self.services.values():
                await service.client.close()

    def ours(self) -> list[tuple["Service", Batch]]:
        """The batches under way of this run's models."""
        known = [(self.services.get(tuple(batch.model)), batch) for batch in self.batches]
        return [(service, batch) for service, batch in known if service]

    async def submit_pending(self) -> bool:
        """Put what is pending into batches. Returns whether there was anything. Raises Fatal."""
        requests = defaultdict[tuple[str, str], list[Request]](list)
        for request in self.pending():
            requests[request.model.address, request.model.id].append(request)
        adaptation = self.asked.adaptation
        for endpoint, some in requests.items():
            service, (model, protocol) = self.services[endpoint], (some[0].model, some[0].protocol)
            rejected = [name for name in ADAPTABLE if adaptation.knows(model, name)]
            lines = ((one.key.hex(), request_line(one, adaptation.fit(one))) for one in some)
            for chunk in _chunks(lines):
                body = await service.call(partial(service.body, protocol, list(chunk.values())))
                id_ = await service.call(partial(service.make, body), lost=False)
                self.batches.append(Batch(id_, [*endpoint], protocol, rejected, list(chunk)))
                self.save()
                say(f"batch {one_line(id_)}: {counted(len(chunk), 'request')} to {model.id}")
        return bool(requests)

    async def collect(self, wait: bool) -> bool:
        """Look until all are over, and take their results. Returns if all are. Raises Fatal."""
        pauses = chain(POLL_S, repeat(POLL_S[-1]))
        while True:
            for service, batch in self.ours():
                status, lines = await service.call(partial(service.look, batch.id))
                if status.startswith(OVER):
                    self.take(service.model, batch, status, lines)
            n = sum(len(batch.keys) for _, batch in self.ours())
            if n and not wait:
                say(f"{counted(n, 'request')} in batches; rerun the same command to collect them")
            if not (n and wait):
                return not n
            await asyncio.sleep(next(pauses))

    def take(self, model: Model, batch: Batch, status: str, lines: list[bytes]) -> None:
        """Take the results of a batch that is over, and forget it."""
        left, n = batch.holds(), len(batch.keys)
        self.fault = status
        for good in (True, False):  # answers first: they show which parameters the model takes
            for result in filter(None, map(read_result, lines)):
                due = (result.status == 200) is good and result.key in left
                if due and self.settle(model, batch, result):
                    left.discard(result.key)
                    self.barren = 0
        again = f", {len(left):,} without a result are sent again" if left else ""
        say(f"batch {one_line(batch.id)} is {status}: {counted(n, 'request')}{again}")
        self.asked.requests += n
        self.asked.retries += len(left)
        sync_folder(self.log.path)  # the answers are on disk before their batch is forgotten
        self.batches.remove(batch)
        self.save()

    def settle(self, model: Model, batch: Batch, result: ResultLine) -> bool:
        """Put a result where it belongs. Returns False if its request is to be sent again."""
        adaptation = self.asked.adaptation
        name = rejected_in(result, {name: 0 for name in ADAPTABLE if name not in batch.rejected})
        if name and (adaptation.knows(model, name) or model not in self.answered):
            adaptation.adapt(model, name)
            self.barren = 0
            return False
        try:
            answer = answer_in(result, model, batch.protocol)
        except BadRequest as error:
            self.asked.failed[result.key] = Missing("bad_request", str(error))
        except (Passing, Limited, Fatal) as error:
            self.fault = str(error)
            return False
        else:
            self.answered.add(model)
            self.asked.tokens.add(answer)
            self.log.append(result.key, answer._replace(dropped=adaptation.dropped(model)))
        return True

    def save(self) -> None:
        """Write the state file; without a batch there is none. Raises UserError."""
        try:
            if self.batches:
                write_text(self.state, json.dumps([batch._asdict() for batch in self.batches]))
            else:
                self.state.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(f"{self.state} cannot be written: {error.strerror}") from None


def _chunks(lines: Iterable[tuple[str, bytes]]) -> Iterator[dict[str, bytes]]:
    """Key -> line, as many at once as a batch takes."""
    (most, most_bytes), chunk, size = LARGEST_BATCH, dict[str, bytes](), 0
    for key, line in lines:
        if chunk and (len(chunk) == most or size + len(line) > most_bytes):
            yield chunk
            chunk, size = {}, 0
        chunk[key] = line
        size += len(line)
    yield chunk


class Service:
    """The batch service of one model's endpoint."""

    def __init__(self, model: Model) -> None:
        """Raises UserError if the provider has no batch service, or its key is not set."""
        if model.provider in PROVIDERS and not model.settings.batches:
            able = " and ".join(name for name, one in PROVIDERS.items() if one.batches)
            raise UserError(
                f"{model.provider} has no batch service ({able} have one); leave out --batch, or "
                "see --export_requests"
            )
        self.model, self.anthropic = model, model.protocol == MESSAGES_API
        self.path = "/messages/batches" if self.anthropic else "/batches"
        self.client = connect(model, model.base_url, TIMEOUT_S)
        self.options: Any = {"headers": headers_of(PROTOCOLS[model.protocol], self.client.api_key)}

    async def body(self, protocol: str, lines: Sequence[bytes]) -> dict[str, Any]:
        """What makes a batch of request lines, which are uploaded first (OpenAI)."""
        if self.anthropic:
            some = map(json.loads, lines)
            return {"requests": [{"custom_id": o["custom_id"], "params": o["body"]} for o in some]}
        content = ("requests.jsonl", b"".join(lines))
        file = await self.client.files.create(file=content, purpose="batch")
        if not (file_id := getattr(file, "id", "")):
            raise ValueError("it is no file (a gateway's page?)")
        url = "/v1" + PROTOCOLS[protocol].path
        return {"input_file_id": file_id, "endpoint": url, "completion_window": "24h"}

    async def make(self, body: dict[str, Any]) -> str:
        """Make a batch. Returns its id."""
        made = await self.client.post(self.path, body=body, cast_to=object, options=self.options)
        return str(_batch_in(made)["id"])

    async def look(self, id_: str) -> tuple[str, list[bytes]]:
        """The status of a batch, with the errors of one that failed; its result lines if over."""
        from openai import HttpxBinaryResponseContent as Content

        path, get = f"{self.path}/{id_}", partial(self.client.get, options=self.options)
        batch, lines = _batch_in(await get(path, cast_to=object)), list[bytes]()
        status = str(batch.get("processing_status") or batch.get("status"))
        ids = [batch.get("output_file_id"), batch.get("error_file_id")]
        files = [f"/files/{file_id}/content" for file_id in ids if file_id]
        files = [f"{path}/results"] if batch.get("results_url") else files
        if status in ("completed", "ended") and not files:
            raise ValueError(f"batch {one_line(id_)} is {status} without results")
        for file in files if status in OVER else ():
            found = (await get(file, cast_to=Content)).content.splitlines()
            if not found or read_result(found[-1]) is None:  # not whole: its answers are paid for
                raise ValueError(f"results of batch {one_line(id_)} cannot be read")
            lines += found
        why = f": {json.dumps(batch['errors'])}" if batch.get("errors") else ""
        return shown(f"{status}{why}", self.model), lines

    async def call(self, send: Callable[[], Awaitable[Any]], lost: bool = True) -> Any:
        """Call the service, and retry (lost: even if no answer came). Raises Fatal."""
        import aiohttp
        import openai

        silence = (openai.APIConnectionError, ValueError, aiohttp.ClientError)
        for pause in (*RETRY_S, 0.0):
            try:
                return await send()
            except openai.APIStatusError as error:
                fault: Exception = fault_of(error, self.model)
                if error.status_code == 404:
                    fault = BadRequest(f"404: {shown(message_of(error), self.model)}")
            except silence as error:
                said = f"no good answer: {shown(str(error.__cause__ or error), self.model)}"
                if not lost:
                    hint = "if there is a new batch at the provider, cancel it; then run this again"
                    raise Fatal(f"{said}; {hint}") from None
                fault = Passing(said)
            if isinstance(fault, BadRequest | Fatal) or not pause:
                break
            await asyncio.sleep(getattr(fault, "wait", None) or pause)
        raise Fatal(f"the batch service of {self.model.provider} fails: {fault}")


def _batch_in(data: object) -> dict[str, Any]:
    """The JSON of a batch. Raises ValueError for anything else."""
    if not isinstance(data, dict) or "id" not in data:
        raise ValueError("it is no batch (a gateway's page?)")
    return data
