"""A loopback server in the place of the Hugging Face Hub (HF_ENDPOINT)."""

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c0ffee" + "0" * 34


class HubServer:
    """Datasets on loopback; use it as a context manager.

    files: "OWNER/NAME/FILE" -> its bytes. gated: repositories whose terms were not accepted.
    asked: method and path of every request.
    """

    def __init__(
        self, files: Mapping[str, bytes], licence: str = "", gated: tuple[str, ...] = ()
    ) -> None:
        self.files, self.licence, self.gated = files, licence, gated
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """For HF_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "HubServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.answer()

            def do_GET(self) -> None:
                self.answer()

            def answer(self) -> None:
                hub.asked.append(f"{self.command} {self.path}")
                status, headers, body = hub.answer_to(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer_to(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body, as the Hub's documentation gives them."""
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[:2] == ["api", "datasets"]:
            card = {"license": self.licence} if self.licence else {}
            info = {"id": "/".join(parts[2:4]), "sha": COMMIT, "cardData": card, "siblings": []}
            return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()
        repository, file = "/".join(parts[1:3]), "/".join(parts[5:])
        if repository in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        if not any(name.startswith(repository + "/") for name in self.files):
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        body = self.files.get(f"{repository}/{file}")
        commit = parts[4] if len(parts[4]) == 40 else COMMIT
        if body is None:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        etag = hashlib.sha256(body).hexdigest()
        return 200, {"ETag": f'"{etag}"', "X-Repo-Commit": commit}, body
