"""A headless Chromium for the tests, spoken to over a pipe (the DevTools protocol)."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")


class Browser:
    """A page in a browser without network. problems: what the browser complained about."""

    def __init__(self, page: Path) -> None:
        self.problems: list[str] = []
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        # Chromium reads commands from descriptor 3 and answers on 4.
        command = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "sh", CHROMIUM, *FLAGS, "--remote-debugging-pipe",
             f"--user-data-dir={self._profile.name}", "--host-resolver-rules=MAP * ~NOTFOUND",
             "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._reader = os.fdopen(self._from, "rb")
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable", {}, self._session)
        self._call("Page.navigate", {"url": page.as_uri()}, self._session)
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._read())

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        what = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self._call("Runtime.evaluate", what, self._session)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        self.problems += [
            str(event["params"])
            for event in self._events
            if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")
        ]
        self._events.clear()
        return answer["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        """Show the page as on a phone of this size."""
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self._call("Emulation.setDeviceMetricsOverride", screen, self._session)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.close()
        os.close(self._to)
        self._profile.cleanup()

    def _call(self, method: str, params: dict[str, Any], session: str = "") -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._events.append(answer)

    def _read(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._reader.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("chromium has ended")
            data += byte
        message: dict[str, Any] = json.loads(data)
        return message
