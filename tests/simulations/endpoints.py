"""Times live asking against loopback endpoints that reject requests.

    python tests/simulations/endpoints.py                       # scenes of at most a minute
    python tests/simulations/endpoints.py --only "120 s" --only "a minute"

Each scene twice: rejections take as long as answers, and they come at once. Prints wall seconds
beside the goal, rejections a row beside the goal, requests sent and rows answered. Exit status 1 if
a goal is missed or a row is lost. tests/units/test_pacing.py plays the same endpoints in virtual
time. Nothing leaves this machine.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from orbench.asking.inquiry import Inquiry, Reader, Run, pending  # noqa: E402
from orbench.asking.live import Progress, Session  # noqa: E402
from orbench.asking.log import AnswerLog  # noqa: E402
from orbench.models.errors import TimedOut  # noqa: E402
from orbench.models.providers import resolve  # noqa: E402
from orbench.models.requests import Request, user  # noqa: E402
from tests.endpoint_server import LATENCY_S, SCENES, Endpoint, Goals, Scene  # noqa: E402
from tests.server import Body, Reply, Server, answer, error  # noqa: E402

SHORT_S = 60.0


class Player:
    """Answers over HTTP as an endpoint would, and counts. quick: rejections come at once."""

    def __init__(self, endpoint: Endpoint, quick: bool) -> None:
        self.endpoint = endpoint
        self.rejection_s = 0.0 if quick else LATENCY_S
        self.server = Server(self.reply)
        self.start = 0.0
        self.asked = self.rejected = 0

    def reply(self, body: Body, seen: int) -> Reply:
        """What the endpoint says to a request."""
        self.server.requests.clear()  # it remembers nothing
        self.start = self.start or time.monotonic()
        self.asked += 1
        at = time.monotonic() - self.start
        rejection = self.endpoint.ask(at)
        if rejection is None:
            seconds = self.endpoint.takes(at)
            self.server.loop.call_later(seconds, self.endpoint.leave)
            return answer("Here is how a kite flies.")._replace(delay=seconds)
        self.rejected += 1
        wait = rejection.retry_after
        headers = [] if wait is None else [("Retry-After", f"{wait:.3f}")]
        reply = error(rejection.status, "slow down", headers)
        return reply._replace(delay=self.rejection_s)


def play(scene: Scene, quick: bool, folder: Path) -> tuple[Player, float, int, Run]:
    """Ask in one scene. Gives the player, wall seconds, rows answered, and what came of asking."""
    player = Player(scene.endpoint(), quick)
    with player.server as server, AnswerLog(folder / "a.answers.jsonl", write=True) as log:
        model = resolve("gpt-bench", base_url=server.url)
        requests = [
            Request(model, [user(f"Why does kite {n} fly?")], {"max_tokens": 1000})
            for n in range(scene.rows)
        ]
        asked = Run(Reader(), log, list(map(Inquiry, requests)))
        start = time.perf_counter()
        progress = Progress("benchmark", scene.rows, quiet=True)
        Session(pending(asked), [model], asked, scene.limits, progress).ask()
        return player, time.perf_counter() - start, len(log), asked


def main() -> int:
    """Play scenes; a line each. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    add = parser.add_argument
    add("--only", action="append", default=[], metavar="NAME", help="scenes with this in the name")
    args = parser.parse_args()
    short = [name for name, scene in SCENES.items() if scene.slow.wall <= SHORT_S]
    names = [name for name in SCENES if any(part in name for part in args.only)]
    if args.only and not names:
        parser.error(f"no such scene; there are: {list(SCENES)}")
    head = f"{'rejections':<10} {'wall s':>7} {'goal':>5} {'a row':>6} {'goal':>6}   sent rows"
    print(f"{'endpoint':<37} {head}")
    status = 0
    for name in names or short:
        for speed in ("slow", "quick"):
            status |= not meets(name, speed)
    return status


def meets(name: str, speed: str) -> bool:
    """Play a scene and print its line. Gives whether its goals are met."""
    scene = SCENES[name]
    goals: Goals = getattr(scene, speed)
    with tempfile.TemporaryDirectory() as folder:
        player, wall, answered, asked = play(scene, speed == "quick", Path(folder))
    share = (player.rejected + asked.retried[TimedOut.kind]) / scene.rows
    met = wall <= goals.wall and share <= goals.rejected and answered == scene.rows
    print(
        f"{name:<37} {speed:<10} {wall:>7.1f} {goals.wall:>5.0f} {share:>6.2f} "
        f"{goals.rejected:>6.2f} {player.asked:>6} {answered:>4}  {'' if met else 'missed'} "
        f"{asked.stopped}",
        flush=True,
    )
    return met


if __name__ == "__main__":
    sys.exit(main())
