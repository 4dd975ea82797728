"""Times the whole stage 4 script against a loopback server, beside two bare openai loops.

    python tests/benchmark/run.py --rows 5000 --latency 0 --concurrency 64

Prints rows/s, CPU seconds per 1,000 rows, peak memory and the ratios. The server has a core of its
own where there are two, so that it is never the limit. Nothing leaves this machine.
"""

import argparse
import asyncio
import csv
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing import Process, Queue
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.server import Body, Reply, Server, answer  # noqa: E402

STAGE_4 = ROOT / "alignment_checker" / "gpt3_4_alignment_checker.py"
SEQUENTIAL_ROWS = 100  # enough to see its rate


class Figures(NamedTuple):
    """One whole process: wall and CPU seconds, peak memory in MiB."""

    name: str
    rows: int
    wall: float
    cpu: float
    memory: float

    def line(self) -> str:
        """As a table row."""
        per_1000 = 1000 * self.cpu / self.rows
        return (
            f"{self.name:<34} {self.rows:>6} {self.wall:>8.2f} {self.rows / self.wall:>8.0f} "
            f"{self.cpu:>7.2f} {per_1000:>9.3f} {self.memory:>7.0f}"
        )


def serve(latency: float, text: str, port: "Queue[int]") -> None:
    """The server's process."""
    pin(1)
    reply = answer(text)

    def respond(body: Body, seen: int) -> Reply:
        server.requests.clear()  # this one is for speed: it remembers nothing
        server.seen.clear()
        return reply

    server = Server(respond, latency)
    server.listen()
    port.put(server.port)
    server.run()


def bare(url: str, prompts: Path, concurrency: int) -> None:
    """A bare loop of the openai package: what the suite is measured against."""
    import openai

    async def loop() -> None:
        client = openai.AsyncOpenAI(
            base_url=url, api_key="none", http_client=openai.DefaultAioHttpClient()
        )
        with prompts.open(newline="") as file:
            rows = iter(list(csv.DictReader(file)))

        async def work() -> None:
            for row in rows:
                await client.chat.completions.create(
                    model="gpt-bench",
                    messages=[{"role": "user", "content": row["prompt"]}],
                    temperature=0,
                    max_tokens=1000,
                )

        await asyncio.gather(*(work() for _ in range(concurrency)))
        await client.close()

    asyncio.run(loop())


def pin(core: int) -> None:
    """Keep this process on one core, where the system can and there are two."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {core})


def measure(name: str, rows: int, command: list[str], env: dict[str, str]) -> Figures:
    """Run a command as a whole process on core 0."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=env, preexec_fn=lambda: pin(0), stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{name} ended with {process.returncode}")
    return Figures(name, rows, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def prompts_file(folder: Path, rows: int, source: Path | None) -> tuple[Path, int]:
    """The prompts: a CSV of the user's, or harmless made ones."""
    if source is not None:
        with source.open(newline="", encoding="utf-8") as file:
            return source.resolve(), sum(1 for _ in csv.DictReader(file))
    path = folder / "prompts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "category"])
        for n in range(rows):
            writer.writerow([f"Why does kite {n} fly so well in a light wind?", f"c{n % 10}"])
    return path, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--input", type=Path, help="a CSV of prompts in place of made ones")
    parser.add_argument("--latency", type=float, default=0, help="milliseconds (default 0)")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--characters", type=int, default=600, help="of an answer (default 600)")
    parser.add_argument("--stage_only", action="store_true", help="without the bare loops")
    parser.add_argument("--again", action="store_true", help="run once more over the full log")
    parser.add_argument("--bare", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        bare(args.bare[0], Path(args.bare[1]), args.concurrency)
        return
    port: Queue[int] = Queue()
    text = ("Here is how a kite flies. " * args.characters)[: args.characters]
    server = Process(target=serve, args=(args.latency / 1000, text, port), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port.get()}/v1"
    env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prompts, rows = prompts_file(folder, args.rows, args.input)
        stage = [sys.executable, str(STAGE_4), "--model=gpt-bench", f"--input_file={prompts}"]
        stage += [f"--concurrency={args.concurrency}", f"--output_path={folder / 'out.csv'}"]
        stage += ["--quiet"]
        found = [measure("stage 4, whole script", rows, stage, env)]
        if args.again:
            found.append(measure("stage 4, all answers in the log", rows, stage, env))
        if not args.stage_only:
            itself = [sys.executable, __file__, f"--concurrency={args.concurrency}"]
            found.append(measure("bare loop", rows, [*itself, "--bare", url, str(prompts)], env))
            few, count = prompts_file(folder, min(rows, SEQUENTIAL_ROWS), None)
            itself[-1] = "--concurrency=1"
            found.append(measure("sequential loop", count, [*itself, "--bare", url, str(few)], env))
    server.terminate()
    server.join()
    print(f"latency {args.latency:g} ms, {args.concurrency} in flight")
    head = f"{'':<34} {'rows':>6} {'wall s':>8} {'rows/s':>8} {'CPU s':>7}"
    print(f"{head} {'CPU/1,000':>9} {'MiB':>7}")
    for figures in found:
        print(figures.line())
    speed = [figures.rows / figures.wall for figures in found]
    for figures, other in zip(found[1:], speed[1:], strict=True):
        print(f"rows/s, stage 4 to {figures.name}: {speed[0] / other:.2f}")


if __name__ == "__main__":
    main()
