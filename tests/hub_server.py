"""A loopback server in place of the Hugging Face Hub (HF_ENDPOINT)."""

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c0ffee" + "0" * 34


class HubServer(ThreadingHTTPServer):
    """Datasets on loopback; use it as a context manager.

    files: "OWNER/NAME/FILE" -> its bytes. gated: repositories whose terms were not accepted.
    asked: method and path of every request. url: for HF_ENDPOINT.
    """

    def __init__(
        self, files: Mapping[str, bytes], license: str = "", gated: tuple[str, ...] = ()
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.license, self.gated = files, license, gated
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def answer_to(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body, as the Hub's documentation gives them."""
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            card = {"license": self.license} if self.license else {}
            info = {"id": "/".join(parts[2:4]), "sha": COMMIT, "cardData": card, "siblings": []}
            return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()
        repository, file = "/".join(parts[1:3]), "/".join(parts[5:])
        if repository in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        if not any(name.startswith(repository + "/") for name in self.files):
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        body = self.files.get(f"{repository}/{file}")
        commit = {"X-Repo-Commit": parts[4] if len(parts[4]) == 40 else COMMIT}
        if body is None:
            return 404, {"X-Error-Code": "EntryNotFound", **commit}, b""
        return 200, {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', **commit}, body


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
