"""Requests through a provider's batch service: about half the price, answers within 24 hours.

OpenAI's (platform.openai.com/docs/guides/batch), which gateways copy, and Anthropic's
(platform.claude.com/docs/en/build-with-claude/batch-processing). Batches under way are noted in
`<output stem>.batches.json`. Requests without a result go into the next ones.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from orbench.asking.files import ResultLine, read_result, request_line, take
from orbench.asking.inquiry import Phase, Run, pending
from orbench.base.messages import UserError, counted, one_line, say
from orbench.base.tables import sync_folder, write_text
from orbench.base.words import Json
from orbench.models.adaptation import OURS
from orbench.models.client import connect, options_of
from orbench.models.errors import Fatal, TransientError, fault_of, reply_of, shown, transient_errors
from orbench.models.providers import MESSAGES_API, PROVIDERS, Model, Models
from orbench.models.requests import PROTOCOLS, Request

TIMEOUT_S = 600.0  # for each read
RETRIES = 10  # of a call, by the openai package: about a minute
POLL_S = 20.0  # between looks
LARGEST_BATCH = 20_000  # requests; the services take 50,000 and more, but only 200 MB
OVER = ("completed", "failed", "expired", "cancelled", "ended")


class Batch(NamedTuple):
    """A batch under way, as the state file has it."""

    id: str
    model: list[str]  # address and id
    rejected: list[str]  # parameters that the model was known to reject
    keys: list[str]  # of its requests, in hex


def read_batches(state: Path) -> list[Batch]:
    """Return the batches in a state file. Raises UserError if it cannot be read."""
    if not state.exists():
        return []
    try:
        entries = json.loads(state.read_text(encoding="utf-8"))
        if not isinstance(entries, list):
            raise TypeError
        return [Batch(**entry) for entry in entries]
    except (OSError, ValueError, TypeError):
        raise UserError(
            f"{state} lists batches in progress and cannot be read; restore it, or delete it to "
            "send (and pay for) their requests again"
        ) from None


def ask_in_batches(models: Models, run: Run, wait: bool, state: Path) -> None:
    """Put the pending requests into batches and collect the answers, until nothing is pending.

    wait=False: collect only what is ready; the run is waiting if more comes later. state: the
    file that names the batches under way. Raises UserError.
    """
    work = _Batches(run, state, read_batches(state))
    if not (work.batches or pending(run)):
        return
    run.log.reserve(1)  # a full disk shows before anything is paid for
    try:
        asyncio.run(work.collect_all(models, wait))
    except Fatal as error:
        why = str(error)
        if work.batches:
            why += f"; rerun to collect the batches in progress, or delete {state} if they are lost"
        run.stopped = why
    except KeyboardInterrupt:
        run.phase = Phase.INTERRUPTED
        if work.batches:
            say("the batches continue at the provider; rerun the same command to collect them")


@dataclass
class _Batches:
    """The batches of one run. progress, fault: of a round: any result; the last fault."""

    run: Run
    state: Path
    batches: list[Batch]  # in the state file, those of models that this run does not ask too
    services: list["Service"] = field(default_factory=list)
    progress: bool = False
    fault: str = ""

    async def collect_all(self, models: Models, wait: bool) -> None:
        """See `ask_in_batches`. Raises Fatal."""
        try:
            self.services += map(Service, models)
            for service, batch in self.ours():
                self.run.adaptation.reject(service.model, batch.rejected)
            while self.ours() or await self.submit_pending():
                self.progress = False
                while n := await self.collect():
                    if not wait:
                        left = f"{counted(n, 'request')} in batches"
                        say(f"{left}; rerun the same command to collect them")
                        self.run.phase = Phase.WAITING
                        return
                    await asyncio.sleep(POLL_S)
                if not self.progress:
                    raise Fatal(f"the last batch had no result ({self.fault})")
        finally:
            for service in self.services:
                await service.client.close()

    def ours(self) -> list[tuple["Service", Batch]]:
        """Return the batches under way of this run's models."""
        pairs = product(self.services, self.batches)
        return [(service, batch) for service, batch in pairs if batch.model == service.name]

    async def submit_pending(self) -> bool:
        """Put what is pending into batches. Return whether there was anything. Raises Fatal."""
        requests_to_send = pending(self.run)
        for service in self.services:
            requests = [request for request in requests_to_send if request.model == service.model]
            for start in range(0, len(requests), LARGEST_BATCH):
                await self.submit(service, requests[start : start + LARGEST_BATCH])
        return bool(requests_to_send)

    async def submit(self, service: "Service", requests: Sequence[Request]) -> None:
        """Put requests to a model into a batch. Raises Fatal."""
        adaptation = self.run.adaptation
        bodies = {one.key.hex(): one.body(adaptation.fit(one)) for one in requests}
        path = PROTOCOLS[requests[0].protocol].path
        id_ = await service.submit(bodies, path)
        rejected = [*adaptation.rejected[service.model]]
        self.batches.append(Batch(id_, service.name, rejected, [*bodies]))
        self.save()
        say(f"batch {one_line(id_)}: {counted(len(bodies), 'request')} to {service.model.id}")

    async def collect(self) -> int:
        """Take the results that are there. Return how many requests are left. Raises Fatal."""
        for service, batch in self.ours():
            self.fault, results = await service.look(batch.id)
            if results is not None:
                self.take(service.model, batch, results)
        return sum(len(batch.keys) for _, batch in self.ours())

    def take(self, model: Model, batch: Batch, results: Sequence[ResultLine]) -> None:
        """Take the results of a batch that is over, and forget it."""
        status = self.fault
        left = set(batch.keys)
        # Answers first: they show which parameters the model takes.
        for result in sorted(results, key=lambda one: one.status != 200):
            key = result.key.hex()
            if key in left and self.settle(model, batch, result):
                left.remove(key)
                self.progress = True
        again = f", {len(left):,} without a result are sent again" if left else ""
        n = len(batch.keys)
        say(f"batch {one_line(batch.id)} is {status}: {counted(n, 'request')}{again}")
        self.run.requests += n
        self.run.retried["unanswered"] += len(left)
        sync_folder(self.run.log.path)  # the answers are on disk before their batch is forgotten
        self.batches.remove(batch)
        self.save()

    def settle(self, model: Model, batch: Batch, result: ResultLine) -> bool:
        """Put a result where it belongs. Return False if its request is to be sent again."""
        run = self.run
        reply = reply_of(result.status, result.body, model)
        if run.adaptation.learns(model, reply, set(OURS).difference(batch.rejected)):
            self.progress = True
            return False
        take(result, model, run)
        failed = run.failed.get(result.key)
        if failed and failed.kind == "gave_up":
            del run.failed[result.key]
            self.fault = failed.why
            return False
        return True

    def save(self) -> None:
        """Write the state file; without a batch there is none. Raises OSError."""
        if self.batches:
            write_text(self.state, json.dumps([batch._asdict() for batch in self.batches]))
        else:
            self.state.unlink(missing_ok=True)


class Service:
    """The batch service of one model's endpoint."""

    def __init__(self, model: Model) -> None:
        """Raises UserError if the provider has no batch service, or its key is not set."""
        if model.provider in PROVIDERS and not model.settings.batches:
            raise UserError(
                f"{model.provider} has no batch service (openai and anthropic have one); leave out "
                "--batch, or see --export_requests"
            )
        self.model = model
        self.name = [model.address, model.id]
        self.anthropic = model.protocol == MESSAGES_API
        self.path = "/messages/batches" if self.anthropic else "/batches"
        self.client = connect(model, model.base_url, TIMEOUT_S, RETRIES)
        self.options = options_of(model)

    async def submit(self, bodies: Mapping[str, Json], path: str) -> str:
        """Make a batch of bodies by key for a protocol's path. Return its id. Raises Fatal."""
        if self.anthropic:
            entries = [{"custom_id": key, "params": body} for key, body in bodies.items()]
            batch: Json = {"requests": entries}
        else:
            lines = [request_line(key, path, body) for key, body in bodies.items()]
            file = await self.call(
                "/files",
                body={"purpose": "batch"},
                files={"file": ("requests.jsonl", b"".join(lines))},
                options={"headers": {"Content-Type": "multipart/form-data"}},
            )
            url = f"/v1{path}"
            batch = {"input_file_id": file["id"], "endpoint": url, "completion_window": "24h"}
        # Not sent again by itself: that could make, and bill, a second batch.
        once = self.options | {"max_retries": 0}
        hint = "; if there is a new batch at the provider, cancel it first"
        made = await self.call(self.path, hint, body=batch, options=once)
        return str(made["id"])

    async def look(self, id_: str) -> tuple[str, list[ResultLine] | None]:
        """Return the status of a batch, and its results if it is over. Raises Fatal."""
        path = f"{self.path}/{id_}"
        batch = await self.call(path)
        status = str(batch.get("processing_status") or batch.get("status"))
        if status not in OVER:
            return status, None
        ids = [batch.get("output_file_id"), batch.get("error_file_id")]
        paths = [f"/files/{file_id}/content" for file_id in ids if file_id]
        if self.anthropic:
            paths = [f"{path}/results"]
        lines: list[bytes] = []
        for path in paths:
            lines += await self.call(path, read=bytes.splitlines)
        results = [result for result in map(read_result, lines) if result]
        if status in ("completed", "ended") and not results:  # they are paid for
            raise Fatal(f"the results of batch {one_line(id_)} cannot be read")
        if batch.get("errors"):
            status += f": {json.dumps(batch['errors'])}"
        return shown(status, self.model), results

    async def call(
        self, path: str, hint: str = "", read: Callable[[bytes], Any] = json.loads, **post: Any
    ) -> Any:
        """Return what the service replies. hint: what to do if nothing came. post: what is sent, if
        anything. Raises Fatal.
        """
        import openai

        send: Any = self.client.post if post else self.client.get
        arguments = {"options": self.options, "cast_to": bytes} | post
        fails = f"the batch service of {self.model.provider} fails:"
        try:
            with transient_errors(self.model):
                return read(await send(path, **arguments))
        except openai.APIStatusError as error:
            rejection = reply_of(error.status_code, error.body, self.model)
            raise Fatal(f"{fails} {fault_of(rejection, self.model)}") from None
        except TransientError as fault:
            raise Fatal(f"{fails} {fault}{hint}") from None
