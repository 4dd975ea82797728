"""Batch services on loopback: OpenAI's files and batches, and Anthropic's message batches.

Written from platform.openai.com/docs/api-reference/batch and .../files, and from
platform.claude.com/docs/en/build-with-claude/batch-processing. Each request of a batch gets what
the same script says to a live one, so that the two can be compared.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from openai.types import Batch

from tests.server import KEY, Body, Reply, Script, Server, error

Json = dict[str, Any]
STEPS = {
    r"POST /files": "upload",
    r"POST PATH": "create",
    r"GET PATH/([^/]+)": "retrieve",
    r"GET (?:/files/([^/]+)/content|PATH/([^/]+)/results)": "content",
}


class BatchServer(Server):
    """OpenAI's service. What may be set, before or while it runs:

    outcome: number of the batch, from 1, -> what a look at it finds: "in_progress", "completed",
    "expired" (with results for its first half) or "failed" (nothing but an error). refuse: step ->
    replies that it gets instead, in order. The steps are upload, create, retrieve, content.

    What came of it: submitted, the custom_ids of each batch; steps; requests, the live ones alone.
    """

    path = "/batches"

    def __init__(self, reply: Script) -> None:
        super().__init__(reply)
        self.outcome: Callable[[int], str] = lambda number: "completed"
        self.refuse: dict[str, list[Reply]] = {}
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Json] = {}
        self.bodies: dict[str, dict[str, Body]] = {}  # of each batch, by custom_id
        self.over: set[str] = set()
        self.submitted: list[list[str]] = []
        self.steps: list[str] = []

    @property
    def sizes(self) -> list[int]:
        """How many requests each batch had."""
        return [len(ids) for ids in self.submitted]

    def ends(self, *outcomes: str) -> None:
        """Let the batches end so, those after them like the last."""
        self.outcome = lambda number: outcomes[min(number, len(outcomes)) - 1]

    def take(self, head: str, raw: bytes) -> Reply:
        line = head.partition("\r\n")[0].replace(" /v1", " ", 1).partition(" HTTP")[0]
        for pattern, step in STEPS.items():
            if found := re.fullmatch(pattern.replace("PATH", self.path), line.partition("?")[0]):
                named = next(filter(None, found.groups()), "")
                return self.do(step, named, head, raw)
        return super().take(head, raw)

    def do(self, step: str, named: str, head: str, raw: bytes) -> Reply:
        """One step. named: the id in the path."""
        self.steps.append(step)
        if self.refuse.get(step):
            return self.refuse[step].pop(0)
        match step:
            case "upload":
                return self.upload(raw)
            case "create":
                return self.create(json.loads(raw))
            case "retrieve" if named in self.batches:
                return self.retrieve(named)
            case "content" if named in self.files:
                return Reply(self.files[named], content_type="application/octet-stream")
        return error(404, f"No such object: {named}")

    def retrieve(self, batch_id: str) -> Reply:
        outcome = self.outcome(int(batch_id.removeprefix("batch_")))
        if batch_id not in self.over and outcome != "in_progress":
            self.over.add(batch_id)
            self.finish(batch_id, outcome)
        return self.show(self.batches[batch_id])

    def upload(self, raw: bytes) -> Reply:
        assert b'name="purpose"\r\n\r\nbatch' in raw
        (part,) = (p for p in raw.split(raw.partition(b"\r\n")[0]) if b'name="file"' in p)
        content = part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        file_id = f"file-{len(self.files) + 1}"
        self.files[file_id] = content
        data = {"id": file_id, "object": "file", "bytes": len(content), "created_at": 1}
        return Reply(json.dumps({**data, "filename": "x.jsonl", "purpose": "batch"}))

    def create(self, body: Json) -> Reply:
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert {(line["method"], line["url"]) for line in lines} == {("POST", body["endpoint"])}
        assert len({line["body"]["model"] for line in lines}) == 1
        fields = ("endpoint", "input_file_id", "completion_window")
        data = {"object": "batch", "created_at": 1, "status": "in_progress"}
        bodies = {line["custom_id"]: line["body"] for line in lines}
        return self.add({**data, **{name: body[name] for name in fields}}, bodies)

    def add(self, data: Json, bodies: dict[str, Body]) -> Reply:
        assert bodies and all(re.fullmatch(r"[\w-]{1,64}", name) for name in bodies)
        batch_id = f"batch_{len(self.batches) + 1}"
        self.batches[batch_id] = {"id": batch_id, **data}
        self.bodies[batch_id] = bodies
        self.submitted.append(list(bodies))
        return self.show(self.batches[batch_id])

    def show(self, batch: Json) -> Reply:
        return Reply(Batch.model_validate(batch, strict=True).model_dump_json())

    def results(self, batch_id: str, outcome: str) -> Iterator[tuple[str, Reply | None]]:
        """custom_id and reply, None for what was not executed; not in the order of the requests."""
        every = list(enumerate(self.bodies[batch_id].items()))
        for number, (custom_id, body) in reversed(every):
            late = outcome == "expired" and number >= len(every) // 2
            yield custom_id, None if late else self.reply_to(body, json.dumps(body).encode())

    def finish(self, batch_id: str, outcome: str) -> None:
        batch = self.batches[batch_id]
        batch["status"] = outcome
        if outcome == "failed":
            about = {"code": "invalid_request", "message": f"{batch['endpoint']} by order of {KEY}"}
            entry = about | {"line": None, "param": None}
            batch["errors"] = {"object": "list", "data": [entry]}
            return
        for custom_id, reply in self.results(batch_id, outcome):
            line: Json = {"custom_id": custom_id, "response": None, "error": None}
            if reply is None:
                line["error"] = {"code": "batch_expired", "message": "not executed in time"}
            else:
                body = json.loads(reply.body)
                line["response"] = {"status_code": reply.status, "body": body, "request_id": "r"}
            kind = "output" if reply and reply.status == 200 else "error"
            file_id = batch.setdefault(f"{kind}_file_id", f"file-{kind}s-of-{batch_id}")
            self.files[file_id] = self.files.get(file_id, b"") + json.dumps(line).encode() + b"\n"


class MessageServer(BatchServer):
    """Anthropic's service; it ends a batch as "completed" or "expired"."""

    path = "/messages/batches"

    def take(self, head: str, raw: bytes) -> Reply:
        assert re.search(r"(?im)^x-api-key: ", head), head
        assert re.search(r"(?im)^anthropic-version: 2023-06-01", head), head
        return super().take(head, raw)

    def create(self, body: Json) -> Reply:
        assert body.keys() == {"requests"}
        requests = {one["custom_id"]: one["params"] for one in body["requests"]}
        return self.add({"type": "message_batch", "processing_status": "in_progress"}, requests)

    def show(self, batch: Json) -> Reply:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        return Reply(json.dumps({"request_counts": counts, "results_url": None, **batch}))

    def finish(self, batch_id: str, outcome: str) -> None:
        lines = []
        for custom_id, reply in self.results(batch_id, outcome):
            result: Json = {"type": "expired"}
            if reply is not None:
                good, data = reply.status == 200, json.loads(reply.body)
                result = {"type": "succeeded", "message": data}
                result = result if good else {"type": "errored", "error": data}
            lines.append(json.dumps({"custom_id": custom_id, "result": result}) + "\n")
        self.files[batch_id] = "".join(lines).encode()
        url = f"{self.url}/messages/batches/{batch_id}/results"
        self.batches[batch_id] |= {"processing_status": "ended", "results_url": url}
