"""A loopback server that plays an OpenAI-compatible endpoint, good and bad.

What it answers is a script: a function `reply(body, seen)` of the request's JSON body and of how
often exactly this body came before, or a constant. It gives a text (a plain answer) or a `Reply`:

    answer("Fold it.", "length")                            text and finish_reason
    answer(None, refusal="I won't.")                        further members of the message
    error(429, "slow down", headers=[("Retry-After", "1")])
    error(400, "no", code="content_filter", param="seed")   as OpenAI words an error
    Reply("<html>", 502, content_type="text/html")          any body; `completion` makes one
    Reply(fault="drop")                                     see `Reply`
    answer("late")._replace(delay=0.5)                      seconds

`by_number` makes a script of what single prompts get; `prompt_of` and `number_of` read a request.
"""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

KEY = "sk-loopback-0123456789"  # that tests set
NOBODY = "http://127.0.0.1:9/v1"  # no server listens there

Body = dict[str, Any]


class Reply(NamedTuple):
    """One HTTP answer. fault: "hang" never answers, "drop" closes the connection, "cut" stops in
    the middle of the body, "garbage" is not HTTP.
    """

    body: str | bytes = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    fault: str = ""
    delay: float = 0.0


ReplyFunction = Callable[[Body, int], Reply | str]
Script = ReplyFunction | Reply | str


def answer(text: str | None, finish_reason: str | None = "stop", **message: Any) -> Reply:
    """A well-formed chat completion."""
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "finish_reason": finish_reason, "message": said}
    return Reply(completion(choices=[choice]))


def completion(**changes: Any) -> str:
    """The JSON of a chat completion (10 tokens in, 5 out) with some of its members replaced."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    data = {"id": "c", "object": "chat.completion", "created": 1, "model": "loopback-1"}
    return json.dumps({**data, "choices": [], "usage": usage, **changes})


def error(status: int, message: str = "no", headers: Any = (), **members: Any) -> Reply:
    """An error as OpenAI sends it."""
    body = json.dumps({"error": {"message": message, **members}})
    return Reply(body, status, tuple(headers))


def prompt_of(body: Body) -> str:
    """The first user message's text: a retry of an unreadable answer adds messages behind it."""
    content = next(m["content"] for m in body["messages"] if m.get("role", "user") == "user")
    assert isinstance(content, str)
    return content


def number_of(body: Mapping[str, Any]) -> int:
    """Which row of `prompts_csv` a request, or a row of an output, is about."""
    found = re.search(r"paper bird number (\d+)", json.dumps(body))
    assert found, body
    return int(found[1])


def by_number(replies: Mapping[int, Reply | str], otherwise: Script = "Fold it.") -> ReplyFunction:
    """What some prompts get, and what all others get."""

    def reply(body: Body, seen: int) -> Reply | str:
        script = replies.get(number_of(body), otherwise)
        return script(body, seen) if callable(script) else script

    return reply


class Server:
    """Runs in a thread of its own; use it as a context manager.

    requests: the JSON bodies in order of arrival; paths: of their URLs; headers: those of the last
    request, as text; most: the largest number of requests in work at once.
    """

    def __init__(self, reply: Script, latency: float = 0.0, port: int = 0) -> None:
        """latency: seconds that every answer takes. port: 0 takes a free one."""
        self.reply: Script = reply
        self.latency, self.port = latency, port
        self.requests: list[Body] = []
        self.paths: list[str] = []
        self.headers = ""
        self.most = self.in_work = 0
        self.seen: Counter[bytes] = Counter()
        self.transports: set[asyncio.Transport] = set()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        """The base URL to give the client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def sent(self) -> int:
        """How many requests there were."""
        return len(self.requests)

    def __enter__(self) -> Self:
        protocol = lambda: _Connection(self)  # noqa: E731
        start = self.loop.create_server(protocol, "127.0.0.1", self.port, backlog=2048)
        self._server = self.loop.run_until_complete(start)
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self.loop.close()

    def _end(self) -> None:
        self._server.close()
        for transport in self.transports:
            transport.abort()
        self.loop.call_soon(self.loop.stop)  # once they are gone

    def take(self, head: str, raw: bytes) -> Reply:
        """Note a request and decide its answer."""
        self.headers = head
        self.paths.append(head.split(" ")[1].partition("?")[0])
        body = json.loads(raw or b"{}")  # a GET has none
        self.requests.append(body)
        return self.reply_to(body, raw)

    def reply_to(self, body: Body, raw: bytes) -> Reply:
        """What the script says to a request."""
        seen = self.seen[raw]
        self.seen[raw] += 1
        reply = self.reply(body, seen) if callable(self.reply) else self.reply
        return answer(reply) if isinstance(reply, str) else reply


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
        text = head.decode("latin-1")
        found_length = re.search(r"(?i)content-length: *(\d+)", text)
        length = int(found_length[1]) if found_length else 0
        if not found or len(rest) < length:
            return
        self.buffer = rest[length:]
        server = self.server
        server.in_work += 1
        server.most = max(server.most, server.in_work)
        reply = server.take(text, rest[:length])
        if delay := server.latency + reply.delay:
            server.loop.call_later(delay, self.send, reply)
        else:
            self.send(reply)

    def send(self, reply: Reply) -> None:
        self.server.in_work -= 1
        if self.transport.is_closing() or reply.fault == "hang":
            return
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        headers = {"Content-Type": reply.content_type, "Content-Length": str(len(body))}
        lines = [f"{name}: {value}\r\n" for name, value in (headers | dict(reply.headers)).items()]
        head = f"HTTP/1.1 {reply.status} X\r\n{''.join(lines)}\r\n".encode()
        if reply.fault == "drop":
            self.transport.abort()
        elif reply.fault:
            cut = head + body[: len(body) // 2]
            self.transport.write(
                cut if reply.fault == "cut" else b"\x00\xff this is no HTTP\r\n\r\n"
            )
            self.transport.close()
        else:
            self.transport.write(head + body)
