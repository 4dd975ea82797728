"""Requests and answers as files: the JSON lines of the OpenAI Batch API.

A request line is `{"custom_id", "method", "url", "body"}`, a result line `{"id", "custom_id",
"response": {"status_code", "request_id", "body"}, "error"}`, as the openai documentation's batch
guide gives them; `vllm run-batch` reads and writes the same (vllm/entrypoints/openai/run_batch.py),
and so do the services that `orbench.batch` talks to. The custom_id is the request's key in the
answer log, in hex: a result finds its place whatever the order, and a line of another run is seen
to be foreign.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, cast

from orbench.answers import AnswerLog
from orbench.chat import (
    BLOCKED_BY_POLICY,
    Answer,
    BadRequest,
    Fatal,
    Limited,
    Passing,
    Request,
    fault_of,
    is_policy_block,
    one_line,
    read_answer,
    rejected_parameter,
    without_key,
)
from orbench.models import Model
from orbench.run import Failure, Run
from orbench.table import file_name_part
from orbench.terminal import UserError, say

if TYPE_CHECKING:
    from openai import APIStatusError

URL: Final = "/v1/chat/completions"  # of every request line


class Rejected(Exception):
    """A 400 that says the model does not take a parameter: the request may do without it.

    parameter: its name.
    """

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class Result(NamedTuple):
    """One result line."""

    key: bytes  # empty: a custom_id that is none of ours
    status: int  # of HTTP; 0 where no answer came at all (expired, cancelled)
    data: Any  # the completion's JSON, or what is said about the error


def request_line(key: bytes, body: dict[str, Any]) -> bytes:
    """The line of a request."""
    entry = {"custom_id": key.hex(), "method": "POST", "url": URL, "body": body}
    return (json.dumps(entry) + "\n").encode()


def read_result(line: bytes) -> Result | None:
    """Read a result line; None for one that is torn or holds no result."""
    try:
        entry = json.loads(line)
        custom_id, response, error = entry["custom_id"], entry.get("response"), entry.get("error")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(custom_id, str):
        return None
    key = _key(custom_id)
    if not isinstance(response, dict):
        return Result(key, 0, _error_in(error)) if error else None
    status, body = response.get("status_code"), response.get("body")
    if not isinstance(status, int) or isinstance(status, bool):
        return Result(key, 0, _error_in(error)) if error else None
    if 200 <= status < 300 and not error:
        return Result(key, 200, body)
    # OpenAI puts a refused request's error into the body, vLLM beside an empty one.
    return Result(key, 0 if status < 300 else status, _error_in(body) or _error_in(error))


def _key(custom_id: str) -> bytes:
    try:
        key = bytes.fromhex(custom_id)
    except ValueError:
        return b""
    return key if len(key) == 16 and key.hex() == custom_id else b""


def _error_in(data: object) -> dict[str, Any]:
    """The error object in a body, however deep it is wrapped; empty if there is none."""
    while isinstance(data, dict):
        inner = data.get("error")
        if not inner:
            return data
        data = inner
    return {"message": data} if isinstance(data, str) and data else {}


def answer_in(result: Result, model: Model, sent: Sequence[str] = ()) -> Answer:
    """The answer of a result, read as that of a live request is.

    sent: names of the sampling parameters that the request had.
    Raises Passing, Limited, BadRequest or Fatal as live, and Rejected.
    """
    if result.status == 200:
        return without_key(read_answer(result.data, model), model)
    message = one_line(str(result.data.get("message") or result.data.get("code") or ""), model)
    if not result.status:
        raise Passing(f"no answer: {message}")
    error = _status_error(result)
    if is_policy_block(error):
        return BLOCKED_BY_POLICY
    if result.status == 400 and (name := rejected_parameter(error, dict.fromkeys(sent))):
        raise Rejected(name, f"400: {message}")
    raise fault_of(error, model)


def _status_error(result: Result) -> "APIStatusError":
    """The error that the openai package would have raised for a live request."""
    import openai

    response = SimpleNamespace(status_code=result.status, headers={}, request=None)
    message = str(result.data.get("message") or "no message")
    return openai.APIStatusError(message, response=cast(Any, response), body=result.data)


# -- export ---------------------------------------------------------------------------------------


def export_requests(
    pending: Iterable[tuple[Request, Request]], models: Sequence[Model], path: Path
) -> int:
    """Write the lines of pending requests as they are to be asked next, each model's into a file
    of its own.

    Those of one model go to `path`, those of several to `<stem>.<model>.jsonl` beside it, as a
    batch may hold but one model. The files appear whole; one without a request is empty, so that
    nobody answers what an earlier export left. Gives the number of requests. Raises UserError, also
    where a file stands there that holds no requests.
    """
    if path.is_symlink():
        path = path.resolve()  # the file it stands for is written, not the link replaced
    if not path.name or path.is_dir():
        raise UserError(f"{path} is a folder; name a file for the requests")
    paths = {model: path for model in models}
    if len(models) > 1:
        ending = path.suffix or ".jsonl"
        paths = {
            model: path.with_name(f"{path.stem}.{file_name_part(model.asked)}{ending}")
            for model in models
        }
    counts = dict.fromkeys(models, 0)
    half = {model: whole.with_name(whole.name + ".tmp") for model, whole in paths.items()}
    try:
        for whole in paths.values():
            check_holds_requests(whole)
        try:
            with ExitStack() as stack:
                files: dict[Model, IO[bytes]] = {
                    model: stack.enter_context(half[model].open("wb")) for model in models
                }
                for _, asked in pending:
                    files[asked.model].write(request_line(asked.key(), asked.body()))
                    counts[asked.model] += 1
            for model, n in counts.items():
                os.replace(half[model], paths[model])
                say(f"{n:,} requests for {model.id} written to {paths[model]}")
        finally:
            for unfinished in half.values():
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    return sum(counts.values())


def check_holds_requests(path: Path) -> None:
    """Raise UserError for a file that is no earlier export, and so may be worth something."""
    if not path.exists():
        return
    with path.open("rb") as file:
        first = file.readline()
    try:
        line = json.loads(first) if first.strip() else {"url": URL}
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict) or line.get("url") != URL:
        raise UserError(f"{path} is there already and holds no requests; name another file")


# -- import ---------------------------------------------------------------------------------------


class Wanted:
    """The pending requests by the key under which they are to be asked next."""

    def __init__(self) -> None:
        self.models: dict[bytes, Model] = {}
        self._first: dict[bytes, bytes] = {}  # only where it is another one

    def __len__(self) -> int:
        return len(self.models)

    def add(self, request: Request, asked: Request) -> None:
        """Note a pending request, and how it is asked next."""
        self.models[asked.key()] = request.model
        if asked is not request:
            self._first[asked.key()] = request.key()

    def first(self, key: bytes) -> bytes:
        """The key of a request's first ask, under which its failure is noted."""
        return self._first.get(key, key)


def wanted_of(pending: Iterable[tuple[Request, Request]]) -> Wanted:
    """The index of the pending requests."""
    wanted = Wanted()
    for request, asked in pending:
        wanted.add(request, asked)
    return wanted


@dataclass
class Imported:
    """What came of an import, in lines."""

    answers: int = 0  # new in the log
    known: int = 0  # answered already: doubled lines, or an earlier import
    errors: int = 0
    foreign: int = 0  # of requests that this run does not make
    unreadable: int = 0  # torn, or no result line

    def line(self, lacking: int) -> str:
        """What to tell the user."""
        said = f"imported {self.answers:,} answers"
        others = (
            (self.known, "answered already"),
            (self.errors, "errors"),
            (self.foreign, "of requests that this run does not make"),
            (self.unreadable, "that hold no result"),
        )
        more = [f"{n:,} {what}" for n, what in others if n]
        if more:
            said += " (lines passed over: " + ", ".join(more) + ")"
        return f"{said}; {lacking:,} requests lack one"


def import_answers(run: Run, wanted: Wanted, paths: Sequence[Path]) -> Imported:
    """Take the answers to wanted requests out of result files into the log.

    An error goes where a live one goes, unless another line holds the answer.
    Raises UserError, LogError.
    """
    counts = Imported()
    for path in paths:
        for line in _lines(path):
            result = read_result(line)
            if result is None:
                counts.unreadable += 1
            elif result.key in run.log:
                counts.known += 1
            elif model := wanted.models.get(result.key):
                _take(run, result, model, wanted.first(result.key), counts)
            else:
                counts.foreign += 1
    return counts


def _take(run: Run, result: Result, model: Model, first: bytes, counts: Imported) -> None:
    try:
        answer = answer_in(result, model)
    except (Passing, Limited, BadRequest, Fatal) as error:  # never Rejected: `sent` is not known
        kind = "bad_request" if isinstance(error, BadRequest) else "gave_up"
        run.failed[first] = Failure(kind, str(error))
        counts.errors += 1
        return
    store(run, result.key, answer)
    run.failed.pop(first, None)
    counts.answers += 1


def store(run: Run, key: bytes, answer: Answer) -> None:
    """Count an answer and put it into the log."""
    run.note_answer(answer)
    run.log.append(key, answer)


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            for line in file:
                if line.strip():
                    yield line
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


# -- shards ---------------------------------------------------------------------------------------


class ShardLog(AnswerLog):
    """The log of one shard; what the merged log of an earlier run holds counts as answered too."""

    def __init__(self, path: Path, merged: Path, *, write: bool) -> None:
        super().__init__(path, write=write)
        self._merged = AnswerLog(merged, write=False)

    def __contains__(self, key: bytes) -> bool:
        return super().__contains__(key) or key in self._merged

    def was_before(self, key: bytes, size: int) -> bool:
        """As of the merged log: it is its size that a run record gives."""
        return self._merged.was_before(key, size)

    def get(self, key: bytes) -> Answer | None:
        return super().get(key) or self._merged.get(key)

    def close(self) -> None:
        self._merged.close()
        super().close()
