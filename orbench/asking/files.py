"""Requests and answers as files, in the JSON lines of the OpenAI Batch API.

    request line  {"custom_id", "method", "url", "body"}
    result line   {"custom_id", "response": {"status_code", "body"}, "error"}

`vllm run-batch` reads and writes the same. The result lines of Anthropic's batches are read too.
The custom_id is the request's key in hex.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orbench.asking.inquiry import Run, pending
from orbench.base.messages import UserError, counted, say
from orbench.base.tables import Paths, file_name_part, write_text
from orbench.base.words import Json
from orbench.models.client import answer_to_error, read_answer
from orbench.models.errors import (
    MALFORMED,
    BadRequest,
    Fatal,
    TransientError,
    error_in,
    reply_of,
    shown,
)
from orbench.models.providers import Model, Models
from orbench.models.requests import PROTOCOLS, Answer, Missing, Request

REQUESTS = re.compile(rb'(\{"custom_id": "\w+", "method"|$)')  # how a file of them begins


class ResultLine(NamedTuple):
    """One result line."""

    key: bytes  # of the request
    status: int  # of HTTP; 0 if the request was not processed (expired, canceled)
    body: Any  # the API's JSON, or its error object


def request_line(key: str, path: str, body: Json) -> bytes:
    """Return the line of a request. key: in hex. path: of its protocol."""
    entry = {"custom_id": key, "method": "POST", "url": f"/v1{path}", "body": body}
    return json.dumps(entry).encode() + b"\n"


def read_result(line: bytes) -> ResultLine | None:
    """Read a result line; None if it is torn or holds no result."""
    try:
        entry = json.loads(line)
        key = bytes.fromhex(entry["custom_id"])
        response = entry.get("response") or {}
        status = response.get("status_code", 0)
        body = response.get("body")
        error = error_in(entry.get("error"))
        if "result" in entry:
            status, body = _message_result(entry["result"])
        if 200 <= status < 300 and not error:
            return ResultLine(key, 200, body)
    except MALFORMED:
        return None
    error = error or error_in(body)  # beside an empty body (vLLM), or in it (OpenAI)
    if not (status or error):
        return None
    return ResultLine(key, status if status >= 300 else 0, error)


def _message_result(result: Json) -> tuple[int, Any]:
    """Return what a result of Anthropic's says: succeeded, errored, canceled or expired."""
    if result["type"] == "succeeded":
        return 200, result["message"]
    if result["type"] != "errored":
        return 0, {"message": str(result["type"])}
    error = error_in(result)  # any other type may be sent again, by Anthropic's page
    return 400 if error.get("type") == "invalid_request_error" else 500, error


def answer_in(result: ResultLine, model: Model) -> Answer:
    """Read the answer in a result as a live one is read.

    Raises TransientError, BadRequest or Fatal.
    """
    if result.status == 200:
        return read_answer(result.body, model)
    reply = reply_of(result.status, result.body, model)
    if not result.status:
        raise TransientError(f"no answer: {shown(reply.message, model)}")
    return answer_to_error(reply, model)


def export_requests(requests: Sequence[Request], output: Path, models: Models) -> None:
    """Write requests to `output`, with several models each to `<stem>.<model>.jsonl`,
    if need be an empty one. Raises UserError.
    """
    for model in models:
        target = output
        if len(models) > 1:
            target = output.with_name(f"{output.stem}.{file_name_part(model.asked)}.jsonl")
        lines = []
        for request in requests:
            if request.model == model:
                path = PROTOCOLS[request.protocol].path
                body = request.body(model.named(request.wanted()))
                lines.append(request_line(request.key.hex(), path, body))
        try:  # it replaces an earlier export and nothing else
            if target.exists() and not REQUESTS.match(target.read_bytes()):
                raise UserError(f"{target} exists and holds no requests; name another file")
            write_text(target, b"".join(lines).decode())
        except OSError as error:
            raise UserError(f"{target} cannot be written: {error.strerror}") from None
        say(f"{counted(len(lines), 'request')} written to {target}")


def import_answers(run: Run, paths: Paths) -> None:
    """Put the answers to what is pending into the log, in whatever order they come.

    An error is the request's failure unless another line holds its answer. Raises UserError,
    OSError.
    """
    before = len(run.log)
    n = 0
    wanted = {request.key: request for request in pending(run)}
    for path in paths:
        with path.open("rb") as file:
            for line in filter(bytes.strip, file):
                n += 1
                result = read_result(line)
                request = wanted.get(result.key) if result else None
                if result and request and request.key not in run.log:
                    take(result, request.model, run)
    say(f"imported {counted(len(run.log) - before, 'answer')} from {counted(n, 'line')}")


def take(result: ResultLine, model: Model, run: Run) -> None:
    """Put the answer in a result into the log, or the reason why there is none into `run`."""
    run.failed.pop(result.key, None)
    try:
        answer = answer_in(result, model)
    except BadRequest as error:
        run.failed[result.key] = Missing("bad_request", str(error))
    except (TransientError, Fatal) as error:
        run.failed[result.key] = Missing("gave_up", str(error))
    else:
        run.adaptation.answered.add(model)
        run.store(result.key, answer._replace(dropped=run.adaptation.dropped(model)))
