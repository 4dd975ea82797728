"""A provider's batch service, through the openai package: upload, make, look, download.

The service is OpenAI's (`client.files`, `client.batches`; about half the price, an answer within
24 hours): a file of request lines (`orbench.exchange`) is uploaded, a batch is made of it, its
results are files again. Every call is repeated while its fault can pass. What another service does
otherwise is a subclass (`orbench.message_batches`,
`orbench.mistral_batches`).
"""

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from orbench.chat import (
    LARGEST_BODY,
    BadRequest,
    Fatal,
    Limited,
    Passing,
    TurnedAway,
    check_headers,
    check_redirect,
    check_size,
    connecting,
    fault_of,
    headers_of,
    key_of,
    shown,
)
from orbench.exchange import read_result
from orbench.gate import LONGEST_WAIT_S
from orbench.models import Model
from orbench.protocols import PROTOCOLS
from orbench.run import FAILURES_IN_A_ROW
from orbench.terminal import one_line

if TYPE_CHECKING:
    import httpx2
    from openai import OpenAI
    from openai.types import Batch, FileObject

LARGEST_RESULT = 1 << 20  # bytes, on average over a result file
OVER = ("completed", "failed", "expired", "cancelled", "ended")
T = TypeVar("T")


class Unknown(Fatal):
    """A 404: the service does not know what it was asked for."""


class Service:
    """The batch service of one model's endpoint."""

    path = "/batches"
    after = "after"
    results = "/files/{}/content"  # of a file's id

    def __init__(self, model: Model, timeout: float, poll_interval: float, state: Path) -> None:
        """timeout, poll_interval: in seconds. state: the file that says what is under way, for
        messages. Raises UserError when the key is not set.
        """
        self.model, self.poll_interval, self.state = model, poll_interval, state
        self._downloading = False
        check_headers()
        with connecting():
            import openai

            self.client = openai.OpenAI(
                api_key=key_of(model),
                base_url=model.base_url,
                max_retries=0,
                timeout=timeout,
                http_client=openai.DefaultHttpxClient(event_hooks={"response": [self._look_at]}),
            )
        self.options: Any = {"headers": headers_of(PROTOCOLS[model.protocol], self.client.api_key)}

    def _look_at(self, response: "httpx2.Response") -> None:
        """As `chat.look_at`; a result file is bounded where it is written."""
        check_redirect(response)
        if not self._downloading:
            response._content = _body_of(response)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def upload(self, name: str, lines: IO[bytes]) -> str:
        """Upload a file of request lines. Gives its id. Raises Fatal, Unknown or BadRequest."""

        def send() -> str:
            lines.seek(0)
            file = (name, lines, "application/jsonl")
            return _id_of(self.client.files.create(file=file, purpose="batch"))

        return self._call(send, f"{self.model.endpoint} has no batch service")

    def make(
        self,
        file_id: str,
        url: str,
        metadata: dict[str, str],
        keys: Collection[bytes],
        lines: IO[bytes] | None,
    ) -> tuple[str, str]:
        """Make the batch of an uploaded file. url, keys: of its lines. lines: as uploaded; None
        where another run did, which may have made the batch already.

        Gives its id and status; "" where there is none and it takes the lines to make one. Raises
        Fatal, Unknown or BadRequest.
        """
        tried = lines is None

        def send() -> tuple[str, str]:
            nonlocal tried
            if tried and (made := self._find(file_id, keys)):
                return made
            tried = True
            return self._create(file_id, url, metadata, lines)

        return self._call(send, f"{self.model.endpoint} makes no batch for {self.model.id}")

    def _create(
        self, file_id: str, url: Any, metadata: dict[str, str], lines: IO[bytes] | None
    ) -> tuple[str, str]:
        batch = self.client.batches.create(
            input_file_id=file_id, endpoint=url, completion_window="24h", metadata=metadata
        )
        return _id_of(batch), str(batch.status)

    def _find(self, file_id: str, keys: Collection[bytes]) -> tuple[str, str] | None:
        """Id and status of the batch of a file with these requests, if the service has one."""
        import openai

        try:
            return self._made_of(file_id, keys)
        except openai.APIStatusError as error:
            passing = isinstance(fault_of(error, self.model), Passing | Limited)
            if passing and error.status_code != 501:
                raise
            raise Fatal(
                f"{self.model.endpoint} cannot list its batches "
                f"({shown(error.message, self.model)}), so it is unclear whether some requests are "
                f"under way already; if they are not, delete {self.state}"
            ) from None

    def _made_of(self, file_id: str, keys: Collection[bytes]) -> tuple[str, str] | None:
        for batch in batches_of(self):
            if batch.get("input_file_id") == file_id:
                return str(batch["id"]), str(batch.get("status"))
        return None

    def _next_page(self, pages: int, last: dict[str, Any]) -> dict[str, object]:
        """What asks for the page behind those that were read. last: the last batch on them."""
        return {self.after: last.get("id")}

    def retrieve(self, batch_id: str) -> "Batch":
        """How far a batch is. Raises Fatal, Unknown or BadRequest."""

        def send() -> "Batch":
            path, options = f"{self.path}/{quote(batch_id, safe='')}", self.options
            batch = self._read(self.client.get(path, cast_to=object, options=options))
            if batch.status in OVER and counts_of(batch)[0] and not batch.output_file_id:
                raise Passing(f"the batch is {batch.status}, its results are not there yet")
            return batch

        return self._call(
            send,
            f"{self.model.endpoint} does not know the batch {one_line(batch_id)} (another key or "
            f"project?); to send its requests again, delete {self.state}",
        )

    def _read(self, data: object) -> "Batch":
        """A batch in an answer. Raises Passing where there is none."""
        from openai.types import Batch

        if not isinstance(data, dict) or not isinstance(data.get("id"), str):
            raise Passing("the answer is no batch (a gateway's page?)")
        batch = Batch.construct(**self._as_openai(data))
        if not isinstance(batch.status, str):
            raise Passing("a batch without a status")
        return batch

    def _as_openai(self, data: dict[str, Any]) -> dict[str, Any]:
        """What a batch's members are at OpenAI."""
        return data

    def collect(self, batch: "Batch", take: Callable[[bytes], bytes], promised: int) -> None:
        """Hand each line of a batch's result files to `take`, which gives its request's key.

        promised: how many results there must be. Lines come again when a download is repeated.
        Raises Fatal.
        """
        results: set[bytes] = set()

        def read() -> None:
            for file_id in (batch.output_file_id, batch.error_file_id):
                if file_id:
                    with self._download(file_id, promised) as lines:
                        results.update(map(take, lines))
            results.discard(b"")
            if len(results) < promised:
                raise Passing(f"only {len(results):,} of {promised:,} results can be read")

        try:
            self._call(read, f"a result file of {one_line(batch.id)} is not there")
        except Fatal as error:
            raise Fatal(
                f"{error}; if they are lost, delete {self.state} to ask (and pay) for what is "
                "under way again"
            ) from None

    def _download(self, file_id: str, n: int) -> IO[bytes]:
        """A result file of n results in a file without a name. Raises Passing where it is too long
        for them, or not whole.
        """
        import openai

        path, name = self.results.format(quote(file_id, safe="")), one_line(file_id)
        headers = {**self.options["headers"], "Accept": "application/binary"}
        self._downloading = True
        try:
            file = _fetched(
                self.client, path, headers, self.state.parent, max(LARGEST_BODY, n * LARGEST_RESULT)
            )
        except openai.NotFoundError as error:  # some services need a while
            said = shown(error.message, self.model)
            raise Passing(f"the result file {name}: {said}") from None
        finally:
            self._downloading = False
        if not _is_whole(file):
            file.close()
            raise Passing(f"the result file {name} is truncated, or is not one")
        return file

    def _call(self, send: Callable[[], T], unknown: str) -> T:
        """Ask the service something until it answers; faults that can pass are waited out.

        unknown: what a 404 means. Raises Fatal, Unknown or BadRequest.
        """
        faults = _faults()
        for _ in range(FAILURES_IN_A_ROW):
            try:
                return send()
            except faults as error:
                fault = _passing(error, self.model, unknown)
            asked = fault.wait if isinstance(fault, Limited) else None
            time.sleep(min(asked, LONGEST_WAIT_S) if asked else self.poll_interval)
        raise Fatal(
            f"{self.model.endpoint} failed to answer about batches {FAILURES_IN_A_ROW} times in a "
            f"row, the last time: {fault}; run the same command again"
        )


def batches_of(service: "Service") -> Iterator[dict[str, Any]]:
    """All batches that the service has, newest first. Raises Passing for what is no list.

    Read as plain data: the package's own list raises an AttributeError over a gateway's page.
    """
    params: dict[str, object] = {"limit": 100}
    seen: set[object] = set()
    for pages in itertools.count(1):
        options: Any = {**service.options, "params": params}
        page: Any = service.client.get(service.path, cast_to=object, options=options)
        new = [batch for batch in _listed(page) if batch.get("id") not in seen]
        yield from new
        seen.update(batch.get("id") for batch in new)
        # A service that cannot turn pages has no new ones.
        if not new or not page.get("has_more", "total" in page):
            return
        params |= service._next_page(pages, new[-1])


def _passing(error: Exception, model: Model, unknown: str) -> Passing | Limited:
    """The fault that an error is, where it can pass. unknown: what a 404 means.

    Raises Fatal, Unknown or BadRequest for one that cannot.
    """
    import openai

    if isinstance(error, TurnedAway):
        raise Fatal(str(error)) from None
    if isinstance(error, Passing):
        return error
    if isinstance(error, openai.APIStatusError):
        fault = fault_of(error, model)
        if error.status_code == 404:
            raise Unknown(f"{unknown} ({shown(error.message, model)})") from None
        if isinstance(fault, BadRequest | Fatal):
            raise fault from None
        return fault
    if isinstance(error, openai.APIConnectionError):
        return Passing(shown(str(error.__cause__ or error), model))
    return Passing(shown(str(error), model) or "the answer was cut off")


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


def _listed(page: object) -> list[dict[str, Any]]:
    """The batches on a page of them. Raises Passing for what is none."""
    batches = page.get("data") if isinstance(page, dict) else None
    if not isinstance(batches, list):
        raise Passing("no list of batches (a gateway's page?)")
    return [batch for batch in batches if isinstance(batch, dict)]


def _body_of(response: "httpx2.Response") -> bytes:
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        check_size(len(body))
    return bytes(body)


def _fetched(
    client: "OpenAI", path: str, headers: dict[str, Any], folder: Path, most: int
) -> IO[bytes]:
    """What is at a path, so many bytes at most, in a file without a name in this folder."""
    import openai

    with ExitStack() as failed:  # only then is the file closed here
        file = failed.enter_context(tempfile.TemporaryFile(dir=folder))
        with client.get(
            path,
            cast_to=object,
            options={"headers": headers},
            stream=True,
            stream_cls=openai.Stream[object],
        ) as stream:
            for block in stream.response.iter_bytes():
                file.write(block)
                check_size(file.tell(), most)
        failed.pop_all()
    return file


def _id_of(answer: "Batch | FileObject") -> str:
    """The id in a service's answer. Raises Passing where there is none (a gateway's page)."""
    found = getattr(answer, "id", None)
    if not isinstance(found, str) or not found:
        raise Passing("the answer holds no id (a gateway's page?)")
    return found


def _faults() -> tuple[type[Exception], ...]:
    """What a call may raise, with what openai lets through unwrapped while a body is streamed: its
    transport's own errors.
    """
    import openai

    faults = (openai.APIError, Passing, TurnedAway, ValueError)
    try:
        import httpx2
    except ImportError:
        return faults
    return (*faults, httpx2.HTTPError)


def _is_whole(file: IO[bytes]) -> bool:
    """Whether the last line of a result file is one; the file is at its beginning then."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - (1 << 20)))
    last = file.read().rstrip().rpartition(b"\n")[2]
    file.seek(0)
    return not end or read_result(last) is not None
