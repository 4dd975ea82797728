"""A loopback server that plays an OpenAI-compatible endpoint, good and bad.

It speaks just enough HTTP/1.1 to never be the limit of a measurement. What it answers is one
function, `reply(body, seen) -> Reply`; what it was asked is kept in `requests`.
"""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

Body = dict[str, Any]


class Reply(NamedTuple):
    """One HTTP answer. A fault: "hang" never answers, "drop" closes at once, "cut" stops in the
    body, "drip" sends a byte every tenth of a second, "endless" sends its body again and again,
    "garbage" is no HTTP. A header that is None is left out."""

    body: str | bytes = ""
    status: int = 200
    headers: tuple[tuple[str, str | None], ...] = ()
    content_type: str = "application/json"
    fault: str = ""
    delay: float = 0.0


def answer(text: str | None, finish_reason: str | None = "stop", **message: Any) -> Reply:
    """A well-formed chat completion."""
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": text, **message},
    }
    return Reply(completion(choices=[choice]))


def completion(**changes: Any) -> str:
    """The JSON of a chat completion with some of its members replaced."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    data = {"id": "c", "object": "chat.completion", "created": 1, "model": "loopback-1"}
    return json.dumps({**data, "choices": [], "usage": usage, **changes})


def error(status: int, message: str = "no", headers: Any = (), **members: Any) -> Reply:
    """An error as OpenAI sends it."""
    body = json.dumps({"error": {"message": message, **members}})
    return Reply(body, status, tuple(headers))


def prompt_of(body: Body) -> str:
    """The first user message's text: what is said after an unreadable answer comes behind it."""
    content = next(m["content"] for m in body["messages"] if m.get("role", "user") == "user")
    assert isinstance(content, str)
    return content


class Server:
    """Runs in a thread of its own; use it as a context manager.

    requests: the JSON bodies in order of arrival; headers: those of the last request;
    most: the largest number of requests in work at once; sent: bytes of endless bodies.
    """

    def __init__(self, reply: Callable[[Body, int], Reply], latency: float = 0.0) -> None:
        """reply: (body, how many times exactly this body has come before) -> what to answer."""
        self.reply, self.latency = reply, latency
        self.requests: list[Body] = []
        self.headers = ""
        self.most = 0
        self.sent = 0
        self._now = 0
        self.transports: set[asyncio.Transport] = set()
        self.seen: Counter[bytes] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        """The base URL to give the client."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "Server":
        self.listen()
        self._thread.start()
        return self

    def listen(self, port: int = 0) -> None:
        """Bind; port 0 takes a free one."""
        start = self._loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=2048)
        self._server = self._loop.run_until_complete(start)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def run(self) -> None:
        """Serve in this thread, until the process ends."""
        self._loop.run_forever()

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self._loop.close()

    def _end(self) -> None:
        self._server.close()
        for transport in self.transports:
            transport.abort()
        self._loop.call_soon(self._loop.stop)  # once they are gone

    def take(self, head: str, raw: bytes) -> Reply:
        """Note a request and decide its answer."""
        self.headers = head
        try:
            body = json.loads(raw or b"{}")  # a GET has none
        except ValueError:
            return error(400, "the request is not JSON")
        self.requests.append(body)
        seen = self.seen[raw]
        self.seen[raw] += 1
        return self.reply(body, seen)


class _Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.transports.add(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.server.transports.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, found, rest = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        text = head.decode("latin-1")
        found_length = re.search(r"(?i)content-length: *(\d+)", text)
        length = int(found_length.group(1)) if found_length else 0
        if len(rest) < length:
            return
        self.buffer = rest[length:]
        server = self.server
        server._now += 1
        server.most = max(server.most, server._now)
        reply = server.take(text, rest[:length])
        delay = server.latency + reply.delay
        if delay:
            server._loop.call_later(delay, self.send, reply)
        else:
            self.send(reply)

    def send(self, reply: Reply) -> None:
        self.server._now -= 1
        if self.transport.is_closing() or reply.fault == "hang":
            return
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        headers: dict[str, str | None] = {"Content-Type": reply.content_type}
        headers["Content-Length"] = str(len(body))
        headers.update(reply.headers)
        if reply.fault == "endless":
            del headers["Content-Length"]
        head = f"HTTP/1.1 {reply.status} X\r\n"
        told = [f"{name}: {value}\r\n" for name, value in headers.items() if value is not None]
        head += "".join(told) + "\r\n"
        if reply.fault == "drop":
            self.transport.abort()
        elif reply.fault == "garbage":
            self.transport.write(b"\x00\xff this is no HTTP\r\n\r\n")
            self.transport.close()
        elif reply.fault == "cut":
            self.transport.write(head.encode() + body[: len(body) // 2])
            self.transport.close()
        elif reply.fault == "drip":
            self.transport.write(head.encode())
            self._drip(body, 0)
        elif reply.fault == "endless":
            self.transport.write(head.encode())
            self._endless(body)
        else:
            self.transport.write(head.encode() + body)

    def _endless(self, body: bytes) -> None:
        if not self.transport.is_closing():
            if self.transport.get_write_buffer_size() < 1 << 20:
                self.transport.write(body)
                self.server.sent += len(body)
            if self.server.sent > 128 << 20:  # whoever reads all that has failed the test
                self.transport.close()
            self.server._loop.call_soon(self._endless, body)

    def _drip(self, body: bytes, at: int) -> None:
        if at < len(body) and not self.transport.is_closing():
            self.transport.write(body[at : at + 1])
            self.server._loop.call_later(0.1, self._drip, body, at + 1)
