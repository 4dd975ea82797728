"""Times live asking against loopback endpoints that reject requests.

    python tests/simulations/endpoints.py                       # scenes of at most a minute
    python tests/simulations/endpoints.py --only "120 s" --only "a minute"

1,000 rows of 200 ms, 64 in flight. Prints wall seconds beside the goal, rejections a prompt beside
the goal, requests sent and rows answered. Exit status 1 if a goal is missed or a row is lost.
tests/units/test_pacing.py plays the same endpoints in virtual time. Nothing leaves this machine.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from orbench.asking.inquiry import Inquiry, Limits, Reader, Run, pending  # noqa: E402
from orbench.asking.live import Progress, ask_live  # noqa: E402
from orbench.asking.log import AnswerLog  # noqa: E402
from orbench.models.providers import resolve  # noqa: E402
from orbench.models.requests import Request, user  # noqa: E402
from tests.endpoint_server import LATENCY_S, ROWS, SCENES, Endpoint, Scene  # noqa: E402
from tests.server import Body, Reply, Server, answer, error  # noqa: E402

SHORT_S = 60.0


class Player:
    """Answers over HTTP as an endpoint would, and counts."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.server = Server(self.reply, LATENCY_S)
        self.start = 0.0
        self.asked = self.rejected = 0

    def reply(self, body: Body, seen: int) -> Reply:
        """What the endpoint says to a request."""
        self.server.requests.clear()  # it remembers nothing
        self.start = self.start or time.monotonic()
        self.asked += 1
        rejection = self.endpoint.ask(time.monotonic() - self.start)
        if rejection is None:
            self.server.loop.call_later(LATENCY_S, self.endpoint.leave)
            return answer("Here is how a kite flies.")
        self.rejected += 1
        wait = rejection.retry_after
        headers = [] if wait is None else [("Retry-After", f"{wait:.3f}")]
        return error(rejection.status, "slow down", headers)


def play(scene: Scene, folder: Path, rows: int) -> tuple[Player, float, int, Run]:
    """Ask in one scene. Gives the player, wall seconds, rows answered, and what came of asking."""
    player = Player(scene.endpoint())
    with player.server as server, AnswerLog(folder / "a.answers.jsonl", write=True) as log:
        model = resolve("gpt-bench", base_url=server.url)
        requests = [
            Request(model, [user(f"Why does kite {n} fly?")], {"max_tokens": 1000})
            for n in range(rows)
        ]
        asked = Run(Reader(), log, list(map(Inquiry, requests)))
        start = time.perf_counter()
        ask_live(
            pending(asked),
            [model],
            asked,
            Limits(concurrency=64),
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
        parser.error(f"no such scene; there are: {list(SCENES)}")
    print(f"{'endpoint':<38} {'wall s':>7} {'goal':>5} {'rejected':>9} {'goal':>6}   sent rows")
    status = 0
    for name in names or short:
        scene = SCENES[name]
        with tempfile.TemporaryDirectory() as folder:
            player, wall, answered, asked = play(scene, Path(folder), args.rows)
        share = player.rejected / args.rows
        met = wall <= scene.wall and share <= scene.rejected and answered == args.rows
        status |= not met
        print(
            f"{name:<38} {wall:>7.1f} {scene.wall:>5.0f} {share:>9.2f} {scene.rejected:>6.2f} "
            f"{player.asked:>6} {answered:>4}  {'' if met else 'missed'} {asked.stopped}",
            flush=True,
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
