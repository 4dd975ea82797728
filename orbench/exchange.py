"""Requests and answers as files: the JSON lines of the OpenAI Batch API; and the parts of a run.

A request line is `{"custom_id", "method", "url", "body"}`, a result line `{"id", "custom_id",
"response": {"status_code", "request_id", "body"}, "error"}`, as the openai documentation's batch
guide gives them; `vllm run-batch` reads and writes the same (vllm/entrypoints/openai/run_batch.py),
and so do the services that `orbench.batch` talks to. The custom_id is the request's key in the
answer log, in hex: a result finds its place in any order, and a line of another run is recognised
as foreign.
"""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from orbench import options
from orbench.answers import Answer, AnswerLog, Missing
from orbench.chat import (
    BadRequest,
    Fatal,
    Limited,
    Passing,
    Request,
    blocked_by_policy,
    fault_of,
    is_policy_block,
    read_answer,
    rejected_parameter,
    said_in,
    shown,
    without_key,
)
from orbench.models import Model
from orbench.protocols import PROTOCOLS
from orbench.run import Run
from orbench.table import file_name_part
from orbench.terminal import UserError, counted, say

if TYPE_CHECKING:
    from openai import APIStatusError

Pending = Callable[[], Iterable[Request]]  # the requests without an answer, as of now


# ---------------------------------------------------------------------------------- shards


class Shard(NamedTuple):
    """One of several equal parts of a run, told apart by the requests' keys."""

    number: int  # from 1
    of: int

    def __str__(self) -> str:
        return f"shard-{self.number}-of-{self.of}"

    def holds(self, key: bytes) -> bool:
        """Whether a request belongs to this part."""
        return int.from_bytes(key) % self.of == self.number - 1


def shard(text: str) -> Shard:
    """An argparse type: `2/4`, the second of four parts."""
    number, slash, of = text.partition("/")
    if slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
        return Shard(int(number), int(of))
    raise argparse.ArgumentTypeError(f"{text!r} is not I/N, such as 2/4, with I from 1 to N")


# ---------------------------------------------------------------------------------- flags


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Other ways for requests and answers than one live endpoint."""
    group = parser.add_argument_group("batches, files and shards")
    ways = group.add_mutually_exclusive_group()
    ways.add_argument(
        "--batch",
        action="store_true",
        help="send through the provider's batch service (about half the price, within 24 hours) "
        "and wait for the answers",
    )
    ways.add_argument(
        "--export_requests",
        type=options.given,
        metavar="FILE",
        help="send nothing; write the requests without an answer as a batch file (several judges: "
        "one file per judge)",
    )
    ways.add_argument(
        "--import_answers",
        type=options.given,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="send nothing; take the answers of result files into the log and write the CSV",
    )
    group.add_argument(
        "--no_wait",
        action="store_true",
        help="with --batch: submit, collect what is ready, and exit; run again to collect the rest",
    )
    group.add_argument(
        "--batch_fallback",
        action="store_true",
        help="with --batch: send what a batch leaves unanswered live, not in another batch",
    )
    group.add_argument(
        "--poll_interval",
        type=options.seconds,
        default=30.0,
        help="seconds between status checks of the batches (default %(default)g)",
    )
    group.add_argument(
        "--batch_size",
        type=options.whole_number(1, 50_000),
        default=50_000,
        help="most requests per batch (default %(default)s, the services' limit)",
    )
    group.add_argument(
        "--shard",
        type=shard,
        metavar="I/N",
        help="do only the I-th of N parts of the requests, with a log of its own and no CSV",
    )


def check_flags(args: argparse.Namespace) -> None:
    """Leave with status 2 where flags exclude each other or lack the one they belong to."""
    wrong = ""
    if (args.no_wait or args.batch_fallback) and not args.batch:
        wrong = "--no_wait and --batch_fallback belong to --batch"
    elif args.no_wait and args.batch_fallback:
        wrong = "--batch_fallback waits for the batches, --no_wait does not"
    elif args.from_log and (
        args.batch or args.export_requests or args.import_answers or args.shard
    ):
        wrong = (
            "--from_log only writes the CSV: leave off --batch, --export_requests, "
            "--import_answers and --shard"
        )
    if wrong:
        say(f"error: {wrong}")
        raise SystemExit(2)


# ---------------------------------------------------------------------------------- lines


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


def url_of(request: Request) -> str:
    """Where a request line is sent to."""
    return "/v1" + PROTOCOLS[request.protocol].path


def request_line(request: Request, body: dict[str, Any]) -> bytes:
    """The line of a request. body: as it is to be sent."""
    key, url = request.key().hex(), url_of(request)
    entry = {"custom_id": key, "method": "POST", "url": url, "body": body}
    return (json.dumps(entry) + "\n").encode()


def read_result(line: bytes) -> Result | None:
    """Read a result line; None for one that is torn or holds no result."""
    try:
        entry = json.loads(line)
        custom_id, response, error = entry["custom_id"], entry.get("response"), entry.get("error")
        if isinstance(result := entry.get("result"), dict):
            response, error = _of_messages(result)
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


# https://platform.claude.com/docs/en/api/errors: the error's type -> the status it has live. One
# that is not here says nothing about the request: it may be sent again.
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def _of_messages(result: dict[str, Any]) -> tuple[dict[str, Any] | None, Any]:
    """Response and error of a result line as Anthropic's batches have it: succeeded with a message,
    errored with what a live request's body would be, or a bare canceled or expired.

    https://platform.claude.com/docs/en/build-with-claude/batch-processing
    """
    kind, body = result.get("type"), result.get("error")
    if kind == "succeeded":
        return {"status_code": 200, "body": result.get("message")}, None
    if kind == "errored":
        status = STATUSES.get(str(_error_in(body).get("type")), 500)
        return {"status_code": status, "body": body}, None
    return None, {"message": str(kind)}


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


def answer_in(result: Result, model: Model, protocol: str, sent: Sequence[str] = ()) -> Answer:
    """The answer of a result, read as that of a live request of this protocol is.

    sent: names of the sampling parameters that the request had.
    Raises Passing, Limited, BadRequest or Fatal as live, and Rejected.
    """
    if result.status == 200:
        return without_key(read_answer(PROTOCOLS[protocol].read(result.data), model), model)
    message = shown(str(result.data.get("message") or result.data.get("code") or ""), model)
    if not result.status:
        raise Passing(f"no answer: {message}")
    error = _status_error(result)
    if is_policy_block(error):
        return blocked_by_policy(said_in(error))
    if result.status == 400 and (name := rejected_parameter(error, dict.fromkeys(sent))):
        raise Rejected(name, f"400: {message}")
    raise fault_of(error, model)


def _status_error(result: Result) -> "APIStatusError":
    """The error that the openai package would have raised for a live request."""
    import openai

    response = SimpleNamespace(status_code=result.status, headers={}, request=None)
    message = str(result.data.get("message") or "no message")
    return openai.APIStatusError(message, response=cast(Any, response), body=result.data)


# ---------------------------------------------------------------------------------- export


def export_requests(pending: Iterable[Request], models: Sequence[Model], path: Path) -> int:
    """Write pending requests as lines, each model's into a file of its own.

    Those of one model go to `path`, those of several to `<stem>.<model>.jsonl` beside it, as a
    batch may hold only one model. The files appear whole; one without a request is empty, so that
    nobody answers what an earlier export left. Gives the number of requests. Raises UserError, also
    where a file stands there that holds no requests.
    """
    if path.is_symlink():
        path = path.resolve()  # the file it stands for is written, not the link replaced
    if not path.name or path.is_dir():
        raise UserError(f"{path} is a folder; name a file for the requests")
    paths = _export_paths(models, path)
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
                for request in pending:
                    files[request.model].write(request_line(request, request.body()))
                    counts[request.model] += 1
            for model, n in counts.items():
                os.replace(half[model], paths[model])
                say(f"{counted(n, 'request')} for {model.id} written to {paths[model]}")
        finally:
            for unfinished in half.values():
                unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    return sum(counts.values())


def _export_paths(models: Sequence[Model], path: Path) -> dict[Model, Path]:
    if len(models) == 1:
        return {models[0]: path}
    ending = path.suffix or ".jsonl"
    return {
        model: path.with_name(f"{path.stem}.{file_name_part(model.asked)}{ending}")
        for model in models
    }


def check_holds_requests(path: Path) -> None:
    """Raise UserError for a file that is no earlier export, and so may be worth something."""
    if not path.exists():
        return
    with path.open("rb") as file:
        first = file.readline()
    try:
        line = json.loads(first) if first.strip() else {"custom_id": "", "url": ""}
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict) or not {"custom_id", "url"} <= line.keys():
        raise UserError(f"{path} is there already and holds no requests; name another file")


# ---------------------------------------------------------------------------------- import


class Wanted:
    """Pending requests by the key of the answer that they lack."""

    def __init__(self, requests: Iterable[Request] = ()) -> None:
        self.asked: dict[bytes, tuple[Model, str]] = {}  # with the protocol
        self._first: dict[bytes, bytes] = {}  # only where it is another one
        for request in requests:
            self.add(request)

    def __len__(self) -> int:
        return len(self.asked)

    def add(self, request: Request) -> None:
        """Note a pending request."""
        self.asked[request.key()] = request.model, request.protocol
        if request.ask:
            self._first[request.key()] = request.first()

    def first(self, key: bytes) -> bytes:
        """The key of a request's first ask, under which its failure is noted."""
        return self._first.get(key, key)


@dataclass
class Imported:
    """What came of an import, in lines."""

    answers: int = 0  # new in the log
    known: int = 0  # answered already: duplicate lines, or an earlier import
    errors: int = 0
    foreign: int = 0  # of requests that this run does not make
    unreadable: int = 0  # torn, or no result line

    def line(self, lacking: int) -> str:
        """What to tell the user."""
        said = f"imported {counted(self.answers, 'answer')}"
        others = (
            (self.known, "answered already"),
            (self.errors, "errors"),
            (self.foreign, "of requests that this run does not make"),
            (self.unreadable, "that hold no result"),
        )
        more = [f"{n:,} {what}" for n, what in others if n]
        if more:
            said += " (lines skipped: " + ", ".join(more) + ")"
        return f"{said}; without one: {counted(lacking, 'request')}"


def import_answers(pending: Pending, log: AnswerLog, run: Run, paths: Sequence[Path]) -> bool:
    """Take the answers to pending requests out of result files into the log.

    An error is treated as a live one, unless another line holds the answer. An unreadable answer
    makes its repeat pending, which the files may answer too. Gives whether requests are left
    without an answer. Raises UserError, LogError.
    """
    new = 0
    while wanted := Wanted(pending()):
        counts = _import_once(wanted, log, run, paths)
        counts.known -= new
        new += counts.answers
        say(counts.line(len(wanted) - counts.answers))
        if not counts.answers or not counts.foreign:
            break
    return any(True for _ in pending()) or bool(run.failed)


def _import_once(wanted: Wanted, log: AnswerLog, run: Run, paths: Sequence[Path]) -> Imported:
    counts, failed = Imported(), dict[bytes, Missing]()
    for path in paths:
        for line in _lines(path):
            result = read_result(line)
            if result is None:
                counts.unreadable += 1
            elif result.key in log:
                counts.known += 1
            elif asked := wanted.asked.get(result.key):
                _take(result, asked, log, run, failed, counts)
            else:
                counts.foreign += 1
    for key, missing in failed.items():
        run.fail(log, wanted.first(key), missing)
    return counts


def _take(
    result: "Result",
    asked: tuple[Model, str],
    log: AnswerLog,
    run: Run,
    failed: dict[bytes, Missing],
    counts: Imported,
) -> None:
    try:
        answer = answer_in(result, *asked)
    except (Passing, Limited, BadRequest, Fatal) as error:  # never Rejected: `sent` is not known
        kind = "bad_request" if isinstance(error, BadRequest) else "gave_up"
        failed[result.key] = Missing(kind, str(error))
        counts.errors += 1
        return
    run.store(log, result.key, answer)
    failed.pop(result.key, None)
    counts.answers += 1


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            for line in file:
                if line.strip():
                    yield line
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
