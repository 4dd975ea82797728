"""Requests and answers as files, in the JSON lines of the OpenAI Batch API.

    request line  {"custom_id", "method", "url", "body"}
    result line   {"custom_id", "response": {"status_code", "body"}, "error"}

As in platform.openai.com/docs/guides/batch; `vllm run-batch` reads and writes the same. The result
lines of Anthropic's batches are read too. The custom_id is the request's key in hex.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from orbench.asking import faults
from orbench.asking.adaptation import rejected_parameter
from orbench.asking.answer_log import AnswerLog
from orbench.asking.asked import Asked, Pending
from orbench.asking.client import blocked_by_policy, read_answer, without_key
from orbench.asking.models import Model
from orbench.asking.protocols import PROTOCOLS
from orbench.asking.requests import Answer, Missing, Request
from orbench.base.messages import UserError, counted, say
from orbench.base.tables import check_no_input, file_name_part

FIRST_BYTES = b'{"custom_id":'


class ResultLine(NamedTuple):
    """One result line."""

    key: bytes  # of the request; empty for a custom_id that is not ours
    status: int  # of HTTP; 0 if the request was not processed (expired, cancelled)
    body: Any  # the API's JSON, or its error object


def request_line(request: Request, body: dict[str, Any]) -> bytes:
    """The line of a request. body: as it is to be sent."""
    url = "/v1" + PROTOCOLS[request.protocol].path
    entry = {"custom_id": request.key.hex(), "method": "POST", "url": url, "body": body}
    return json.dumps(entry).encode() + b"\n"


def read_result(line: bytes) -> ResultLine | None:
    """Read a result line; None if it is torn or holds no result."""
    try:
        entry = json.loads(line)
        key, response = bytes.fromhex(entry["custom_id"]), entry.get("response") or {}
        status, body = response.get("status_code", 0), response.get("body")
        error = _error_in(entry.get("error"))
        if "result" in entry:
            status, body = _message_result(entry["result"])
        if 200 <= status < 300 and not error:
            return ResultLine(key, 200, body)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    error = error or _error_in(body)  # beside an empty body (vLLM), or in it (OpenAI)
    return ResultLine(key, status if status >= 300 else 0, error) if status or error else None


def _message_result(result: dict[str, Any]) -> tuple[int, Any]:
    """Status and body in a result of Anthropic's: succeeded, errored, canceled or expired.

    platform.claude.com/docs/en/build-with-claude/batch-processing
    """
    if result["type"] == "succeeded":
        return 200, result["message"]
    if result["type"] != "errored":
        return 0, {"message": str(result["type"])}
    error = _error_in(result["error"])  # any other type may be sent again, by that page
    return 400 if error.get("type") == "invalid_request_error" else 500, error


def _error_in(data: object) -> dict[str, Any]:
    """The error object in a body, however deep it is wrapped; empty if there is none."""
    while isinstance(data, dict) and data.get("error"):
        data = data["error"]
    return data if isinstance(data, dict) else {"message": str(data)} if data else {}


def answer_in(result: ResultLine, model: Model, protocol: str) -> Answer:
    """The answer in a result, read as a live one. Raises Passing, Limited, BadRequest or Fatal."""
    if result.status == 200:
        return without_key(read_answer(PROTOCOLS[protocol].read(result.body), model), model)
    error = _as_raised(result)
    if not result.status:
        raise faults.Passing(f"no answer: {faults.shown(faults.message_of(error), model)}")
    if faults.is_policy_block(error):
        return blocked_by_policy(faults.said_in(error))
    raise faults.fault_of(error, model)


def rejected_in(result: ResultLine, sent: dict[str, Any]) -> str:
    """The sent parameter that the model does not take, by its result; "" if it names none."""
    if result.status != 400:
        return ""
    error = _as_raised(result)
    return rejected_parameter(error, faults.message_of(error), sent)


def _as_raised(result: ResultLine) -> Any:
    """The openai.APIStatusError of a live request."""
    import openai

    response: Any = SimpleNamespace(status_code=result.status, headers={}, request=None)
    return openai.APIStatusError(json.dumps(result.body), response=response, body=result.body)


def export_requests(pending: Pending, path: Path, models: Sequence[Model] = ()) -> int:
    """Write the pending requests to `path`; with several models each to `<stem>.<model>.jsonl`.

    models: get a file even if none of their requests is pending. Returns the number of requests.
    Raises UserError.
    """
    requests: dict[Model, list[Request]] = {model: [] for model in models}
    for request in pending():
        requests.setdefault(request.model, []).append(request)
    for model, some in requests.items():
        own = path.with_name(f"{path.stem}.{file_name_part(model.asked)}.jsonl")
        _write_lines(own if len(requests) > 1 else path, some)
    return sum(map(len, requests.values()))


def _write_lines(path: Path, requests: Sequence[Request]) -> None:
    """Write a file of requests whole. It replaces an earlier export and nothing else."""
    check_no_input(path)
    half = path.with_name(path.name + ".tmp")
    try:
        if path.exists() and not (path.read_bytes() or FIRST_BYTES).startswith(FIRST_BYTES):
            raise UserError(f"{path} exists and holds no requests; name another file")
        with half.open("wb") as file:
            file.writelines(request_line(request, request.body()) for request in requests)
        os.replace(half, path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    say(f"{counted(len(requests), 'request')} written to {path}")


def import_answers(pending: Pending, log: AnswerLog, asked: Asked, paths: Sequence[Path]) -> None:
    """Put the answers to pending requests into the log, in whatever order they come.

    An error is the request's failure unless another line holds its answer. An unreadable answer
    makes its retry pending, which the files may answer too. Raises UserError.
    """
    before, known = len(log), set[bytes]()
    while True:
        wanted = {request.key: request for request in pending()}
        known |= wanted.keys()
        settled, others = len(log) + len(asked.failed), Counter[str]()
        for result in _results(paths, others):
            if result.key in log:
                continue
            if request := wanted.get(result.key):
                _take(result, request, log, asked)
            others["of other requests"] += result.key not in known
        if len(log) + len(asked.failed) == settled:
            break
    others["errors"] = len(asked.failed)
    more = ", ".join(f"{n:,} {what}" for what, n in others.items() if n)
    say(f"imported {counted(len(log) - before, 'answer')}" + f" (other lines: {more})" * bool(more))


def _take(result: ResultLine, request: Request, log: AnswerLog, asked: Asked) -> None:
    try:
        answer = answer_in(result, request.model, request.protocol)
    except (faults.Passing, faults.Limited, faults.BadRequest, faults.Fatal) as error:
        kind = "bad_request" if isinstance(error, faults.BadRequest) else "gave_up"
        asked.failed[request.key] = Missing(kind, str(error))
    else:
        asked.store(log, request, answer)
        asked.failed.pop(request.key, None)


def _results(paths: Sequence[Path], others: Counter[str]) -> Iterator[ResultLine]:
    """The results in files. Lines without one are counted."""
    for path in paths:
        try:
            with path.open("rb") as file:
                for line in filter(bytes.strip, file):
                    if result := read_result(line):
                        yield result
                    else:
                        others["unreadable"] += 1
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
