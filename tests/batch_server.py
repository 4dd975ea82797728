"""A loopback server that plays OpenAI's files and batches endpoints, good and bad.

Written from the API's reference (platform.openai.com/docs/api-reference/batch and .../files); what
it hands out is checked against the openai package's own types. Each request of a batch is answered
by the same function `reply(body, seen)` that answers live requests, so the answers can be compared.
"""

import json
import random
import re
import threading
from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from openai.types import Batch, FileObject
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter

from tests.server import Body, Reply, Server, error

BODY = TypeAdapter(CompletionCreateParamsNonStreaming)
URL = "/v1/chat/completions"
Json = dict[str, Any]


class BatchServer(Server):
    """What may be set, before or while it runs:

    polls: looks at a batch until it is over. outcome: number of the batch (from 1) -> how it ends:
    "completed", "expired" or "cancelled" (both with results for its first half), "failed" (nothing
    but an error with `failed_code`), or a status that it never leaves. stall: the step that never
    answers though it is done: upload, create, list, retrieve, content, error_content. refuse: step
    -> the reply it gets instead.

    What came of it: uploads and batches in order, custom_ids of each; live: the live requests.
    """

    def __init__(self, reply: Callable[[Body, int], Reply]) -> None:
        super().__init__(reply)
        self.polls = 1
        self.outcome: Callable[[int], str] = lambda number: "completed"
        self.failed_code = "invalid_request"
        self.stall = ""
        self.refuse: dict[str, list[Reply]] = {}
        self.most_requests = 50_000
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Json] = {}
        self.submitted: list[list[str]] = []  # the custom_ids of each batch
        self.bodies: list[list[Body]] = []
        self.live: list[Body] = []
        self.steps: list[str] = []
        self.stalled = threading.Event()
        self._looked: dict[str, int] = {}

    # -- routes ---------------------------------------------------------------------------------

    def take(self, head: str, raw: bytes) -> Reply:
        method, target, _ = head.split("\r\n")[0].split(" ")
        parts = urlsplit(target)
        route = (method, *parts.path.removeprefix("/v1/").split("/"))
        named = route[2] if len(route) > 2 else ""
        match route:
            case ("POST", "files"):
                step = "upload"
            case ("POST", "batches"):
                step = "create"
            case ("GET", "batches"):
                step = "list"
            case ("GET", "batches", _):
                step = "retrieve"
            case ("GET", "files", file_id, "content"):
                step = "error_content" if "errors" in file_id else "content"
            case _:
                self.live.append(json.loads(raw))
                return super().take(head, raw)
        self.steps.append(step)
        if self.refuse.get(step):
            return self.refuse[step].pop(0)
        reply = self.serve(step, named, parts.query, head, raw)
        if step == self.stall:
            self.stalled.set()
            return reply._replace(fault="hang")
        return reply

    def serve(self, step: str, named: str, query: str, head: str, raw: bytes) -> Reply:
        """Do one step. named: the id in the path."""
        if step == "upload":
            return self.upload(head, raw)
        if step == "create":
            return self.create(json.loads(raw))
        if step == "list":
            return self.page(parse_qs(query))
        if step == "retrieve":
            return self.retrieve(named)
        return self.content(named)

    def upload(self, head: str, raw: bytes) -> Reply:
        found = re.search(r"boundary=(\S+)", head)
        assert found, head
        fields = {}
        for part in raw.split(b"--" + found[1].encode())[1:-1]:
            part_head, _, value = part.partition(b"\r\n\r\n")
            name = re.search(rb' name="(\w+)"', part_head)
            assert name
            fields[name[1]] = value.removesuffix(b"\r\n")
        assert fields[b"purpose"] == b"batch"
        file_id = f"file-{len(self.files) + 1}"
        self.files[file_id] = fields[b"file"]
        data = {
            "id": file_id,
            "object": "file",
            "bytes": len(fields[b"file"]),
            "created_at": 1,
            "filename": "x.jsonl",
            "purpose": "batch",
            "status": "processed",
        }
        return as_json(FileObject.model_validate(data, strict=True))

    def create(self, body: Json) -> Reply:
        assert (body["endpoint"], body["completion_window"]) == (URL, "24h")
        batch_id = f"batch_{len(self.batches) + 1}"
        self.batches[batch_id] = {
            "id": batch_id,
            "object": "batch",
            "endpoint": body["endpoint"],
            "completion_window": "24h",
            "created_at": 1,
            "input_file_id": body["input_file_id"],
            "metadata": body.get("metadata"),
            "status": "validating",
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        }
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        self.submitted.append([line["custom_id"] for line in lines])
        self.bodies.append([line["body"] for line in lines])
        return self.show(batch_id)

    def page(self, query: dict[str, list[str]]) -> Reply:
        ids = list(reversed(self.batches))
        if "after" in query:
            ids = ids[ids.index(query["after"][0]) + 1 :]
        some = ids[:2]  # small pages: a client that does not turn them is found out
        data = [self.batches[batch_id] for batch_id in some]
        return Reply(json.dumps({"object": "list", "data": data, "has_more": len(ids) > 2}))

    def retrieve(self, batch_id: str) -> Reply:
        if batch_id not in self.batches:
            return error(404, f"No batch found with id '{batch_id}'.")
        self._looked[batch_id] = self._looked.get(batch_id, 0) + 1
        batch = self.batches[batch_id]
        if batch["status"] in ("validating", "in_progress"):
            batch["status"] = "in_progress"
            if self._looked[batch_id] >= self.polls:
                self.finish(batch, self.outcome(int(batch_id.removeprefix("batch_"))))
        return self.show(batch_id)

    def content(self, file_id: str) -> Reply:
        if file_id not in self.files:
            return error(404, f"No such File object: {file_id}")
        return Reply(self.files[file_id], content_type="application/octet-stream")

    def show(self, batch_id: str) -> Reply:
        return as_json(Batch.model_validate(self.batches[batch_id], strict=True))

    # -- what a batch does ----------------------------------------------------------------------

    def finish(self, batch: Json, outcome: str) -> None:
        """Check the input file as the service does, answer its requests, end as told."""
        lines = self.files[batch["input_file_id"]].splitlines()
        wrong = self.mistake_in(lines)
        if wrong or outcome == "failed":
            said = wrong or f"by order ({self.failed_code})"
            entry = {"code": self.failed_code, "message": said, "line": None, "param": None}
            batch["errors"] = {"object": "list", "data": [entry]}
            batch["status"] = "failed"
            return
        batch["status"] = outcome
        if outcome not in ("completed", "expired", "cancelled"):
            return
        good: list[Json] = []
        bad: list[Json] = []
        for number, line in enumerate(lines):
            request = json.loads(line)
            result = {"id": f"batch_req_{number}", "custom_id": request["custom_id"]}
            if outcome != "completed" and number >= len(lines) // 2:
                said = "This request could not be executed before the completion window expired."
                failure = {"code": f"batch_{outcome}", "message": said}
                bad.append({**result, "response": None, "error": failure})
                continue
            raw = json.dumps(request["body"]).encode()
            seen = self.seen[raw]
            self.seen[raw] += 1
            reply = self.reply(request["body"], seen)
            response = {
                "status_code": reply.status,
                "request_id": f"req_{number}",
                "body": json.loads(reply.body),
            }
            (good if reply.status == 200 else bad).append(
                {**result, "response": response, "error": None}
            )
        random.Random(len(lines)).shuffle(good)  # the order is not that of the input
        for kind, results in (("output", good), ("error", bad)):
            if results:
                file_id = f"file-{kind}s-of-{batch['id']}"
                text = "".join(json.dumps(result) + "\n" for result in results)
                self.files[file_id] = text.encode()
                batch[f"{kind}_file_id"] = file_id
        counts = {"total": len(lines), "completed": len(good), "failed": len(bad)}
        batch["request_counts"] = counts

    def mistake_in(self, lines: list[bytes]) -> str:
        """Why a batch of this input file fails its validation; "" if it does not."""
        requests = [json.loads(line) for line in lines]
        if not requests or len(requests) > self.most_requests:
            return f"{len(requests)} requests"
        ids = {request["custom_id"] for request in requests}
        if len(ids) < len(requests) or not all(re.fullmatch(r"[\w-]{1,64}", i) for i in ids):
            return "custom_id"
        if len({request["body"]["model"] for request in requests}) != 1:
            return "a batch takes one model"
        for request in requests:
            if (request["method"], request["url"]) != ("POST", URL):
                return "method or url"
            BODY.validate_python(request["body"])
        return ""


def as_json(answer: Batch | FileObject) -> Reply:
    """An object of the API as it goes over the wire."""
    return Reply(answer.model_dump_json())


class MessageServer(BatchServer):
    """Anthropic's batches in place of OpenAI's, by the page named in orbench/message_batches.py.

    outcome: "ended", or a status that a batch never leaves. result: (body, reply to it) -> the
    result's type and members, where it is not what the reply makes of it. A batch that was made by
    somebody else is put into `batches`, newest last.
    """

    def __init__(self, reply: Callable[[Body, int], Reply]) -> None:
        super().__init__(reply)
        self.outcome = lambda number: "ended"
        self.result: Callable[[int, Body], Json | None] = lambda number, body: None

    def take(self, head: str, raw: bytes) -> Reply:
        method, target, _ = head.split("\r\n")[0].split(" ")
        parts = urlsplit(target)
        route = (method, *parts.path.removeprefix("/v1/").split("/"))
        assert re.search(r"(?im)^x-api-key: ", head), head
        assert re.search(r"(?im)^anthropic-version: 2023-06-01", head), head
        assert not re.search(r"(?im)^authorization: ", head), head
        match route:
            case ("POST", "messages", "batches"):
                step = "create"
            case ("GET", "messages", "batches"):
                step = "list"
            case ("GET", "messages", "batches", _):
                step = "retrieve"
            case ("GET", "messages", "batches", _, "results"):
                step = "content"
            case _:
                self.live.append(json.loads(raw))
                return Server.take(self, head, raw)
        self.steps.append(step)
        if self.refuse.get(step):
            return self.refuse[step].pop(0)
        reply = self.serve(step, route[-1], parts.query, head, raw)
        if step == "content":
            reply = Reply(self.files[route[3]], content_type="application/x-jsonl")
        if step == self.stall:
            self.stalled.set()
            return reply._replace(fault="hang")
        return reply

    def create(self, body: Json) -> Reply:
        requests = body.pop("requests")
        ids = [request["custom_id"] for request in requests]
        assert not body
        assert 0 < len(set(ids)) == len(ids) <= 100_000
        assert all(re.fullmatch(r"[\w-]{1,64}", one) for one in ids)
        assert all(request.keys() == {"custom_id", "params"} for request in requests)
        self.submitted.append(ids)
        self.bodies.append([request["params"] for request in requests])
        return self.add(f"msgbatch_{len(self.submitted)}", len(ids))

    def add(self, batch_id: str, n: int) -> Reply:
        """Have a batch of n requests, just made."""
        zero = dict.fromkeys(("succeeded", "errored", "canceled", "expired"), 0)
        day = "2026-01-01T00:00:00Z"
        self.batches[batch_id] = {
            "id": batch_id,
            "type": "message_batch",
            "processing_status": "in_progress",
            "request_counts": {"processing": n, **zero},
            **{"created_at": day, "expires_at": day, "ended_at": None, "results_url": None},
        }
        return self.show(batch_id)

    def page(self, query: dict[str, list[str]]) -> Reply:
        ids = list(reversed(self.batches))
        if "after_id" in query:
            ids = ids[ids.index(query["after_id"][0]) + 1 :]
        data = [self.batches[batch_id] for batch_id in ids[:2]]
        ends = {"first_id": ids[0], "last_id": data[-1]["id"]} if data else {}
        return Reply(json.dumps({"data": data, "has_more": len(ids) > 2, **ends}))

    def retrieve(self, batch_id: str) -> Reply:
        batch = self.batches[batch_id]
        self._looked[batch_id] = self._looked.get(batch_id, 0) + 1
        if batch["processing_status"] != "ended" and self._looked[batch_id] >= self.polls:
            number = int(batch_id.removeprefix("msgbatch_"))
            batch["processing_status"] = self.outcome(number)
            if batch["processing_status"] == "ended":
                self.end(batch, number)
        return self.show(batch_id)

    def show(self, batch_id: str) -> Reply:
        return Reply(json.dumps(self.batches[batch_id]))

    def end(self, batch: Json, number: int) -> None:
        """Answer a batch's requests."""
        lines = []
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        for custom_id, body in zip(
            *(each[number - 1] for each in (self.submitted, self.bodies)), strict=True
        ):
            result = self.result(number, body) or self.answered(body)
            counts[result["type"]] += 1
            lines.append(json.dumps({"custom_id": custom_id, "result": result}) + "\n")
        random.Random(len(lines)).shuffle(lines)  # the order is not that of the input
        self.files[batch["id"]] = "".join(lines).encode()
        batch["request_counts"] = counts
        batch["results_url"] = f"{self.url}/messages/batches/{batch['id']}/results"

    def answered(self, body: Body) -> Json:
        """The result that stands for what a live request gets."""
        raw = json.dumps(body).encode()
        seen = self.seen[raw]
        self.seen[raw] += 1
        reply = self.reply(body, seen)
        data = json.loads(reply.body)
        return (
            {"type": "succeeded", "message": data}
            if reply.status == 200
            else {"type": "errored", "error": data}
        )


class MistralServer(BatchServer):
    """Mistral's jobs in place of OpenAI's batches, by the pages named in
    orbench/mistral_batches.py; files are the same.
    """

    WORDS: ClassVar = {
        "completed": "SUCCESS",
        "failed": "FAILED",
        "expired": "TIMEOUT_EXCEEDED",
        "cancelled": "CANCELLED",
        "validating": "QUEUED",
        "in_progress": "RUNNING",
    }

    def take(self, head: str, raw: bytes) -> Reply:
        return super().take(head.replace("/v1/batch/jobs", "/v1/batches", 1), raw)

    def create(self, body: Json) -> Reply:
        (file_id,) = body["input_files"]
        assert body["model"]
        more = {"completion_window": "24h", "metadata": body["metadata"]}
        return super().create({"input_file_id": file_id, "endpoint": body["endpoint"], **more})

    def page(self, query: dict[str, list[str]]) -> Reply:
        start = 2 * int(query.get("page", ["0"])[0])
        some = list(self.batches)[start : start + 2]
        data = [json.loads(self.show(batch_id).body) for batch_id in some]
        return Reply(json.dumps({"object": "list", "data": data, "total": len(self.batches)}))

    def show(self, batch_id: str) -> Reply:
        batch = self.batches[batch_id]
        counts = batch.get("request_counts", {})
        errors = batch.get("errors", {}).get("data", [])
        job = {
            "id": batch_id,
            "status": self.WORDS[batch.get("status", "completed")],
            "input_files": [batch["input_file_id"]],
            "errors": [{"message": error["message"], "count": 1} for error in errors],
            "output_file": batch.get("output_file_id"),
            "error_file": batch.get("error_file_id"),
            "total_requests": counts.get("total", 0),
            "succeeded_requests": counts.get("completed", 0),
            "failed_requests": counts.get("failed", 0),
        }
        return Reply(json.dumps(job))
