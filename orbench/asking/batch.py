"""Requests through a provider's batch service: about half the price, answers within 24 hours.

OpenAI's (platform.openai.com/docs/guides/batch), which gateways copy, and Anthropic's
(platform.claude.com/docs/en/build-with-claude/batch-processing). Batches under way are noted in
`<output stem>.batches.json`. Requests without a result go into the next ones.
"""

import asyncio
import json
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from orbench.asking import client, faults, files
from orbench.asking.adaptation import OURS
from orbench.asking.answer_log import AnswerLog
from orbench.asking.asked import Asked, Pending
from orbench.asking.models import PROVIDERS, Model
from orbench.asking.protocols import MESSAGES_API, PROTOCOLS
from orbench.asking.requests import Request
from orbench.base.messages import UserError, counted, one_line, say
from orbench.base.tables import sync_folder, write_text

TIMEOUT_S = 600.0  # for each read
RETRIES = 10  # of a call, by the openai package: about a minute
POLL_S = 20.0  # between looks
LARGEST_BATCH = 20_000  # requests; the services take 50,000 and more, but only 200 MB
OVER = ("completed", "failed", "expired", "cancelled", "ended")


class Batch(NamedTuple):
    """A batch under way, as the state file has it."""

    id: str
    model: tuple[str, str]  # address and id
    protocol: str
    rejected: list[str]  # parameters that the model was known to reject
    keys: list[str]  # of its requests, in hex


def read_batches(state: Path) -> list[Batch]:
    """The batches in a state file. Raises UserError if it cannot be read."""
    try:
        entries = json.loads(state.read_text(encoding="utf-8"))
        batches = [Batch(**entry | {"model": tuple(entry["model"])}) for entry in entries]
        for batch in batches:  # what Python cannot do with an entry, it raises here
            path = PROTOCOLS[batch.protocol].path
            "".join([batch.id, path, *batch.model, *batch.rejected])
            for key in batch.keys:
                bytes.fromhex(key)
        return batches
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UserError(
            f"{state} lists batches in progress and cannot be read; restore it, or delete it to "
            "send (and pay for) their requests again"
        ) from None


def under_way(state: Path) -> set[bytes]:
    """The keys of the requests in batches under way. Raises UserError."""
    return {bytes.fromhex(key) for batch in read_batches(state) for key in batch.keys}


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
    except faults.Fatal as error:
        hint = f"; rerun to collect the batches in progress, or delete {state} if they are lost"
        asked.stopped = f"{error}{hint if work.batches else ''}"
    except KeyboardInterrupt:
        asked.interrupted = True
        if work.batches:
            say("the batches continue at the provider; rerun the same command to collect them")


@dataclass
class _Batches:
    """The batches of one run. progress, fault: of a round: any result; the last fault."""

    pending: Pending
    log: AnswerLog
    asked: Asked
    state: Path
    progress: bool = False
    fault: str = ""

    def __post_init__(self) -> None:
        self.batches = read_batches(self.state)
        self.services: dict[tuple[str, str], Service] = {}

    async def run(self, models: Sequence[Model], wait: bool) -> None:
        """See `ask_in_batches`. Raises Fatal."""
        try:
            for model in models:
                self.services[model.address, model.id] = Service(model)
            for service, batch in self.ours():
                for name in batch.rejected:
                    self.asked.adaptation.reject(service.model, name)
            while self.ours() or await self.submit_pending():
                self.progress = False
                while n := await self.collect():
                    if not wait:
                        left = f"{counted(n, 'request')} in batches"
                        say(f"{left}; rerun the same command to collect them")
                        self.asked.waiting = True
                        return
                    await asyncio.sleep(POLL_S)
                if not self.progress:
                    raise faults.Fatal(f"the last batch had no result ({self.fault})")
        finally:
            for service in self.services.values():
                await service.client.close()

    def ours(self) -> list[tuple["Service", Batch]]:
        """The batches under way of this run's models."""
        known = self.services
        return [(known[batch.model], batch) for batch in self.batches if batch.model in known]

    async def submit_pending(self) -> bool:
        """Put what is pending into batches. Returns whether there was anything. Raises Fatal."""
        pending = self.pending()
        for service in self.services.values():
            some = [request for request in pending if request.model == service.model]
            for start in range(0, len(some), LARGEST_BATCH):
                await self.submit(service, some[start : start + LARGEST_BATCH])
        return bool(pending)

    async def submit(self, service: "Service", requests: Sequence[Request]) -> None:
        """Put requests to a model into a batch. Raises Fatal."""
        model = service.model
        adaptation = self.asked.adaptation
        id_ = await service.submit(requests, [one.body(adaptation.fit(one)) for one in requests])
        rejected = [*adaptation.rejected[model]]
        keys = [one.key.hex() for one in requests]
        batch = Batch(id_, (model.address, model.id), requests[0].protocol, rejected, keys)
        self.batches.append(batch)
        self.save()
        say(f"batch {one_line(id_)}: {counted(len(keys), 'request')} to {model.id}")

    async def collect(self) -> int:
        """Take the results that are there. Returns how many requests are left. Raises Fatal."""
        for service, batch in self.ours():
            status, results = await service.look(batch.id)
            if results is not None:
                self.take(service.model, batch, status, results)
        return sum(len(batch.keys) for _, batch in self.ours())

    def take(
        self, model: Model, batch: Batch, status: str, results: Sequence[files.ResultLine]
    ) -> None:
        """Take the results of a batch that is over, and forget it."""
        left = set(batch.keys)
        n = len(batch.keys)
        self.fault = status
        # Answers first: they show which parameters the model takes.
        for result in sorted(results, key=lambda one: one.status != 200):
            if result.key.hex() in left and self.settle(model, batch, result):
                left.discard(result.key.hex())
                self.progress = True
        again = f", {len(left):,} without a result are sent again" if left else ""
        say(f"batch {one_line(batch.id)} is {status}: {counted(n, 'request')}{again}")
        self.asked.requests += n
        self.asked.retries += len(left)
        sync_folder(self.log.path)  # the answers are on disk before their batch is forgotten
        self.batches.remove(batch)
        self.save()

    def settle(self, model: Model, batch: Batch, result: files.ResultLine) -> bool:
        """Put a result where it belongs. Returns False if its request is to be sent again."""
        adaptation = self.asked.adaptation
        sent = set(OURS).difference(batch.rejected)
        if adaptation.learns(model, faults.ErrorReply(result.status, result.body), sent):
            self.progress = True
            return False
        files.take(result, model, batch.protocol, self.log, self.asked)
        failed = self.asked.failed.get(result.key)
        if failed and failed.kind == "gave_up":
            self.fault = self.asked.failed.pop(result.key).why
            return False
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
        self.model = model
        self.anthropic = model.protocol == MESSAGES_API
        self.path = "/messages/batches" if self.anthropic else "/batches"
        self.client = client.connect(model, model.base_url, TIMEOUT_S, RETRIES)
        headers = client.headers_of(PROTOCOLS[model.protocol], self.client.api_key)
        self.options: Any = {"headers": headers}

    async def submit(self, requests: Sequence[Request], bodies: Sequence[dict[str, Any]]) -> str:
        """Make a batch. Returns its id. Raises Fatal."""
        if self.anthropic:
            pairs = zip(requests, bodies, strict=True)
            some = [{"custom_id": one.key.hex(), "params": body} for one, body in pairs]
            batch: dict[str, Any] = {"requests": some}
        else:
            content = ("requests.jsonl", b"".join(map(files.request_line, requests, bodies)))
            file = await self.call(self.client.files.create(file=content, purpose="batch"))
            url = "/v1" + PROTOCOLS[requests[0].protocol].path
            batch = {"input_file_id": file.id, "endpoint": url, "completion_window": "24h"}
        # Not sent again by itself: that could make, and bill, a second batch.
        options: Any = {**self.options, "max_retries": 0}
        making = self.client.post(self.path, body=batch, cast_to=object, options=options)
        made = await self.call(making, "; if there is a new batch at the provider, cancel it first")
        return str(made["id"])

    async def look(self, id_: str) -> tuple[str, list[files.ResultLine] | None]:
        """The status of a batch, and its results if it is over. Raises Fatal."""
        from openai import HttpxBinaryResponseContent as Content

        get = self.client.get
        path = f"{self.path}/{id_}"
        options = self.options
        batch = await self.call(get(path, cast_to=object, options=options))
        status = str(batch.get("processing_status") or batch.get("status"))
        if status not in OVER:
            return status, None
        ids = [batch.get("output_file_id"), batch.get("error_file_id")]
        paths = [f"/files/{file_id}/content" for file_id in ids if file_id]
        lines: list[bytes] = []
        for one in [f"{path}/results"] if self.anthropic else paths:
            found = await self.call(get(one, cast_to=Content, options=options))
            lines += found.content.splitlines()
        results = [result for result in map(files.read_result, lines) if result]
        if status in ("completed", "ended") and not results:  # they are paid for
            raise faults.Fatal(f"the results of batch {one_line(id_)} cannot be read")
        why = f": {json.dumps(batch['errors'])}" if batch.get("errors") else ""
        return faults.shown(f"{status}{why}", self.model), results

    async def call(self, reply: Awaitable[Any], hint: str = "") -> Any:
        """A reply of the service. hint: what to do if none came. Raises Fatal."""
        import openai

        fails = f"the batch service of {self.model.provider} fails:"
        try:
            with faults.passing_faults(self.model):
                found = await reply
            if isinstance(found, str):
                raise faults.Passing("the reply is not JSON (a gateway's page?)")
            return found
        except openai.APIStatusError as error:
            refused = faults.ErrorReply(error.status_code, faults.error_in(error.body))
            raise faults.Fatal(f"{fails} {faults.fault_of(refused, self.model)}") from None
        except faults.Passing as fault:
            raise faults.Fatal(f"{fails} {fault}{hint}") from None
