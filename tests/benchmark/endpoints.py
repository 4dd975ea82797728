"""Times live asking against loopback endpoints that refuse.

    python tests/benchmark/endpoints.py                       # scenes of at most a minute
    python tests/benchmark/endpoints.py --only "120 s" --only "a minute"

1,000 rows of 200 ms, 64 in flight. Prints wall seconds beside the goal, the share refused beside
the goal, requests sent and rows answered. Exit status 1 if a goal is missed or a row is lost.
tests/test_pacing.py plays the same endpoints in virtual time. Nothing leaves this machine.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from orbench.asking.answer_log import AnswerLog  # noqa: E402
from orbench.asking.asked import Asked, Limits  # noqa: E402
from orbench.asking.live import Progress, ask_live  # noqa: E402
from orbench.asking.models import resolve  # noqa: E402
from orbench.asking.requests import Request, user  # noqa: E402
from tests.endpoint_server import (  # noqa: E402
    AtRandom,
    Bucket,
    Endpoint,
    InFlight,
    Outage,
    Refusal,
    Sliding,
)
from tests.server import Body, Reply, Server, answer, error  # noqa: E402

ROWS = 1000
LATENCY_S = 0.2
SHORT_S = 60.0
A_SECOND = Refusal(retry_after=1.0)
OVERLOADED = Refusal(503)


class Scene(NamedTuple):
    """An endpoint and the goals: wall seconds, share refused."""

    endpoint: Callable[[], Endpoint]
    wall: float
    refused: float = 1.0


# The least possible: 3.2 s without a refusal, 19.2 s at 50 a second, 25 s in 8 slots, 240 s at 200
# a minute.
SCENES = {
    "no refusal": Scene(Endpoint, 5),
    "20 % 429 at random": Scene(lambda: AtRandom(0.2, A_SECOND), 14),
    "20 % 503 at random": Scene(lambda: AtRandom(0.2, OVERLOADED), 16),
    "50 a second, bucket": Scene(lambda: Bucket(50, "1"), 1.4 * 19.2, 0.15),
    "50 a second, bucket, no Retry-After": Scene(lambda: Bucket(50, "none"), 1.4 * 19.2, 0.15),
    "50 a second, sliding": Scene(lambda: Sliding(50, 1, "1"), 1.4 * 19.2, 0.15),
    "50 a second, sliding, no Retry-After": Scene(lambda: Sliding(50, 1, "none"), 1.4 * 19.2, 0.15),
    "8 slots": Scene(lambda: InFlight(8, A_SECOND), 1.5 * 25),
    "outage of 10 s": Scene(lambda: Outage(1, 11, A_SECOND), 25),
    "outage of 10 s, 503": Scene(lambda: Outage(1, 11, OVERLOADED), 25),
    "outage of 120 s": Scene(lambda: Outage(1, 121, A_SECOND), 140),
    "outage of 120 s, 503": Scene(lambda: Outage(1, 121, OVERLOADED), 140),
    "200 a minute": Scene(lambda: Sliding(200, 60, "true"), 1.5 * 240),
    "200 a minute, Retry-After 1": Scene(lambda: Sliding(200, 60, "1"), 1.5 * 240),
    "200 a minute, no Retry-After": Scene(lambda: Sliding(200, 60, "none"), 1.5 * 240),
}


class Player:
    """Answers over HTTP as an endpoint would, and counts."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.server = Server(self.reply, LATENCY_S)
        self.start = 0.0
        self.asked = self.refused = 0

    def reply(self, body: Body, seen: int) -> Reply:
        """What the endpoint says to a request."""
        self.server.requests.clear()  # it remembers nothing
        self.start = self.start or time.monotonic()
        self.asked += 1
        refusal = self.endpoint.ask(time.monotonic() - self.start)
        if refusal is None:
            self.server.loop.call_later(LATENCY_S, self.endpoint.leave)
            return answer("Here is how a kite flies.")
        self.refused += 1
        wait = refusal.retry_after
        headers = [] if wait is None else [("Retry-After", f"{wait:.3f}")]
        return error(refusal.status, "slow down", headers)


def play(scene: Scene, folder: Path, rows: int) -> tuple[Player, float, int, Asked]:
    """Ask in one scene. Gives the player, wall seconds, rows answered, and what came of asking."""
    player, asked = Player(scene.endpoint()), Asked()
    with player.server as server, AnswerLog(folder / "a.answers.jsonl", write=True) as log:
        model = resolve("gpt-bench", base_url=server.url)
        requests = [
            Request(model, [user(f"Why does kite {n} fly?")], {"max_tokens": 1000})
            for n in range(rows)
        ]
        start = time.perf_counter()
        ask_live(
            lambda: requests,
            [model],
            log,
            asked,
            Limits(concurrency=64),
            lambda request, answer: None,
            Progress("benchmark", rows, quiet=True),
        )
        return player, time.perf_counter() - start, len(log), asked


def main() -> int:
    """Play scenes; a line each. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    add = parser.add_argument
    add("--only", action="append", default=[], metavar="NAME", help="scenes with this in the name")
    add("--rows", type=int, default=ROWS, help=f"default: {ROWS:,}")
    args = parser.parse_args()
    short = [name for name, scene in SCENES.items() if scene.wall <= SHORT_S]
    names = [name for name in SCENES if any(part in name for part in args.only)]
    if args.only and not names:
        parser.error(f"there is no such scene; there are: {'; '.join(SCENES)}")
    print(f"{'endpoint':<38} {'wall s':>7} {'goal':>5} {'refused':>8} {'goal':>6} {'sent':>6} rows")
    status = 0
    for name in names or short:
        scene = SCENES[name]
        with tempfile.TemporaryDirectory() as folder:
            player, wall, answered, asked = play(scene, Path(folder), args.rows)
        share = player.refused / player.asked
        met = wall <= scene.wall and share <= scene.refused and answered == args.rows
        status |= not met
        print(
            f"{name:<38} {wall:>7.1f} {scene.wall:>5.0f} {share:>8.1%} {scene.refused:>6.0%} "
            f"{player.asked:>6} {answered:>4}  {'' if met else 'missed'} {asked.stopped}",
            flush=True,
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
