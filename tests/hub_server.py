"""A loopback server in place of the Hugging Face Hub (HF_ENDPOINT)."""

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "c0ffee" + "0" * 34
CONVERTED = "refs/convert/parquet"  # the branch with the Hub's own parquet files
CONVERTED_COMMIT = "facade" + "0" * 34


class HubServer(ThreadingHTTPServer):
    """Datasets on loopback; use it as a context manager.

    files: "OWNER/NAME/FILE" -> its bytes; in converted, those of the branch CONVERTED.
    gated: repositories whose terms were not accepted.
    asked: method and path of every request. url: for HF_ENDPOINT.
    """

    def __init__(
        self,
        files: Mapping[str, bytes],
        gated: tuple[str, ...] = (),
        converted: Mapping[str, bytes] | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.converted = converted or {}
        self.files, self.gated = files, gated
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def answer_to(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body, as the Hub's documentation gives them."""
        parts = path.partition("?")[0].strip("/").split("/")
        in_api = parts[:2] == ["api", "datasets"]
        repository = "/".join(parts[2:4] if in_api else parts[1:3])
        revision = unquote("".join(parts[5:6] if in_api else parts[4:5]))
        if repository in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        commit, files = self.at(repository, revision)
        if in_api and len(parts) == 4:
            return as_json({"id": repository, "sha": COMMIT, "siblings": []})
        if not files and revision == CONVERTED:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if not files:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if in_api and parts[4] == "revision":
            return as_json({"id": repository, "sha": commit, "siblings": []})
        if in_api:  # tree
            return as_json([entry(name, body) for name, body in files.items()])
        body = files.get("/".join(parts[5:]))
        if body is None:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        return 200, {"ETag": etag, "X-Repo-Commit": commit}, body

    def at(self, repository: str, revision: str) -> tuple[str, dict[str, bytes]]:
        """The commit of a revision, and the repository's files in it."""
        commit = revision if len(revision) == 40 else COMMIT
        files = self.files
        if revision in (CONVERTED, CONVERTED_COMMIT):
            commit, files = CONVERTED_COMMIT, self.converted
        start = repository + "/"
        found = {name: body for name, body in files.items() if name.startswith(start)}
        return commit, {name.removeprefix(start): body for name, body in found.items()}


def entry(name: str, body: bytes) -> dict[str, object]:
    """A file as the Hub lists it."""
    return {"type": "file", "path": name, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}


def as_json(value: object) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


class _Handler(BaseHTTPRequestHandler):
    server: HubServer

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        status, headers, body = self.server.answer_to(self.path)
        self.send_response(status)
        for name, value in (*headers.items(), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if self.command == "GET" else b"")

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass
