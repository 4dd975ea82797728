"""Times the whole stage 4 script against loopback endpoints that refuse.

    python tests/benchmark/endpoints.py                  # those that take less than a minute
    python tests/benchmark/endpoints.py "outage of 120 s" --concurrency 64

Prints wall and CPU seconds, requests, the share refused, rows written and the exit status. The same
endpoints are played in virtual time by tests/test_gate.py. Nothing leaves this machine.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmark.run import STAGE_4, pin, prompts_file  # noqa: E402
from tests.endpoints import (  # noqa: E402
    AtRandom,
    Bucket,
    Endpoint,
    InFlight,
    Outage,
    Refusal,
    Sliding,
)
from tests.server import Body, Reply, Server, answer, error  # noqa: E402

A_SECOND = Refusal(retry_after=1.0)
SPENT = Refusal(message="ExceededBudget: crossed budget")
NO_QUOTA = Refusal(message="You exceeded your quota", code="insufficient_quota")


class Scene(NamedTuple):
    """An endpoint, and what a run against it is to reach, in seconds."""

    endpoint: Callable[[], Endpoint]
    bound: float
    latency: float = 0.2
    rows: int = 1319
    concurrency: int = 64


SCENES = {
    "no refusal": Scene(Endpoint, 6),
    "5 % 429 at random": Scene(lambda: AtRandom(0.05, A_SECOND), 8),
    "20 % 429 at random": Scene(lambda: AtRandom(0.2, A_SECOND), 14),
    "40 % 429 at random": Scene(lambda: AtRandom(0.4, A_SECOND), 28),
    "20 % 503 at random": Scene(lambda: AtRandom(0.2, Refusal(503)), 12),
    "50 a second, bucket": Scene(lambda: Bucket(50, "1"), 30),
    "50 a second, bucket, no Retry-After": Scene(lambda: Bucket(50, "none"), 30),
    "50 a second, sliding": Scene(lambda: Sliding(50, 1, "1"), 30),
    "50 a second, sliding, no Retry-After": Scene(lambda: Sliding(50, 1, "none"), 30),
    "50 a second and 10 % at random": Scene(lambda: AtRandom(0.1, A_SECOND, Bucket(50, "1")), 36),
    "outage of 10 s": Scene(lambda: Outage(2, 12, A_SECOND), 20),
    "outage of 10 s, 503": Scene(lambda: Outage(2, 12, Refusal(503)), 20),
    "8 in flight": Scene(lambda: InFlight(8, A_SECOND), 38),
    "spent budget": Scene(lambda: Outage(0, 1e9, SPENT), 2),
    "no quota": Scene(lambda: Outage(0, 1e9, NO_QUOTA), 2),
    "1,000 in flight, 20 % at random": Scene(
        lambda: AtRandom(0.2, A_SECOND), 35, rows=20_000, concurrency=1000
    ),
    "outage of 120 s": Scene(lambda: Outage(2, 122, A_SECOND), 135),
    "8 in flight, 1 s": Scene(lambda: InFlight(8, A_SECOND), 240, latency=1.0),
    "429 for ever": Scene(lambda: Outage(0, 1e9, A_SECOND), 190),
    "200 a minute": Scene(lambda: Sliding(200, 60, "true"), 375),
    "200 a minute, Retry-After 1": Scene(lambda: Sliding(200, 60, "1"), 440),
    "200 a minute, no Retry-After": Scene(lambda: Sliding(200, 60, "none"), 450),
}
SHORT_S = 40


class Player:
    """Answers as an endpoint would, and counts."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.server: Server | None = None
        self.start = 0.0
        self.asked = self.refused = 0

    def reply(self, body: Body, seen: int) -> Reply:
        """What the endpoint says to a request."""
        assert self.server is not None
        self.server.requests.clear()  # it remembers nothing
        self.server.seen.clear()
        self.start = self.start or time.monotonic()
        self.asked += 1
        refusal = self.endpoint.ask(time.monotonic() - self.start)
        if refusal is None:
            self.server._loop.call_later(self.server.latency, self.endpoint.leave)
            return answer("Here is how a kite flies.")
        self.refused += 1
        headers = []
        if refusal.retry_after is not None:
            headers = [("Retry-After", f"{refusal.retry_after:.3f}")]
        members = {"code": refusal.code} if refusal.code else {}
        return error(refusal.status, refusal.message, headers, **members)


def cpu_of_children() -> float:
    """Seconds that the scripts so far have taken of a core."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def play(name: str, rows: int, concurrency: int) -> str:
    """Run stage 4 in one scene; a line of the table."""
    scene = SCENES[name]
    rows, concurrency = rows or scene.rows, concurrency or scene.concurrency
    player = Player(scene.endpoint())
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        prompts, _ = prompts_file(folder, rows, None)
        player.server = Server(player.reply, scene.latency)
        with player.server as server:
            command = [sys.executable, str(STAGE_4), "--model=gpt-bench", "--quiet"]
            command += [f"--input_file={prompts}", f"--output_path={folder / 'out.csv'}"]
            command += [f"--concurrency={concurrency}"]
            env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.url}
            cpu = cpu_of_children()
            start = time.perf_counter()
            process = subprocess.run(
                command, env=env, preexec_fn=lambda: pin(0), capture_output=True, text=True
            )
            wall = time.perf_counter() - start
            cpu = cpu_of_children() - cpu
        written = 0
        if (folder / "out.csv").exists():
            with (folder / "out.csv").open(newline="") as file:
                written = sum(1 for _ in csv.DictReader(file))
    return (
        f"{name:<38} {wall:>8.1f} {scene.bound:>6.0f} {cpu:>6.1f} {player.asked:>8} "
        f"{player.refused / max(1, player.asked):>8.1%} {written:>6} {process.returncode:>5}"
        + (f"\n    {process.stderr.splitlines()[-1]}" if process.returncode else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("scene", nargs="*", help=f"one of: {'; '.join(SCENES)}".replace("%", "%%"))
    parser.add_argument("--rows", type=int, default=0, help="in place of the scene's own")
    parser.add_argument("--concurrency", type=int, default=0, help="in place of the scene's own")
    args = parser.parse_args()
    if unknown := [name for name in args.scene if name not in SCENES]:
        parser.error(f"no scene {unknown[0]!r}; there are: {'; '.join(SCENES)}")
    pin(1)
    head = f"{'endpoint':<38} {'wall s':>8} {'reach':>6} {'CPU s':>6} {'requests':>8}"
    print(f"{head} {'refused':>8} {'rows':>6} {'exit':>5}")
    short = [name for name, scene in SCENES.items() if scene.bound < SHORT_S]
    for name in args.scene or short:
        print(play(name, args.rows, args.concurrency), flush=True)


if __name__ == "__main__":
    main()
