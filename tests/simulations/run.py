"""Times the whole stage 4 script against a loopback server, alone or beside another checkout.

    python tests/simulations/run.py --rows 1319 --latency 0 --concurrency 64
    python tests/simulations/run.py --rows 1319 --beside ../other_checkout --runs 5

Prints the medians of wall seconds, CPU seconds and peak memory, and with --beside the medians of
the ratios; the two take turns. The server has a core of its own if there are two. Nothing leaves
this machine.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing import Process, Queue
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.server import Body, Reply, Server, answer  # noqa: E402

STAGE_4 = Path("alignment_checker", "gpt3_4_alignment_checker.py")


class Figures(NamedTuple):
    """One whole process: wall and CPU seconds, peak memory in MiB."""

    wall: float
    cpu: float
    memory: float


def serve(latency: float, text: str, port: "Queue[int]") -> None:
    """The server's process."""
    pin(1)
    reply = answer(text)

    def respond(body: Body, seen: int) -> Reply:
        server.requests.clear()  # this one is for speed: it remembers nothing
        server.paths.clear()
        server.seen.clear()
        return reply

    with Server(respond, latency) as server:
        port.put(server.port)
        time.sleep(3600)  # its loop runs in a thread; the benchmark ends this process


def pin(core: int) -> None:
    """Keep this process on one core, if the system can and there are two."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {core})


def measure(checkout: Path, prompts: Path, flags: list[str], env: dict[str, str]) -> Figures:
    """Run stage 4 of a checkout as a whole process on core 0, with a fresh log."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(checkout / STAGE_4), "--model=gpt-bench", "--quiet"]
        command += [f"--input_file={prompts}", f"--output_path={folder}/out.csv", *flags]
        start = time.perf_counter()
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(
            command, env=env, preexec_fn=lambda: pin(0), stdout=quiet, stderr=quiet
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{checkout} ended with {process.returncode}")
    return Figures(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def prompts_file(folder: Path, rows: int) -> Path:
    """Harmless made prompts."""
    path = folder / "prompts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "category"])
        for n in range(rows):
            writer.writerow([f"Why does kite {n} fly so well in a light wind?", f"c{n % 10}"])
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=1319)
    parser.add_argument("--latency", type=float, default=0, help="milliseconds (default 0)")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--characters", type=int, default=600, help="of an answer (default 600)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--beside", type=Path, help="another checkout to compare with")
    args = parser.parse_args()
    port: Queue[int] = Queue()
    text = ("Here is how a kite flies. " * args.characters)[: args.characters]
    server = Process(target=serve, args=(args.latency / 1000, text, port), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port.get()}/v1"
    env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url}
    checkouts = [ROOT, *([args.beside.resolve()] if args.beside else [])]
    flags = [f"--concurrency={args.concurrency}"]
    with tempfile.TemporaryDirectory() as folder:
        prompts = prompts_file(Path(folder), args.rows)
        runs = [[measure(c, prompts, flags, env) for c in checkouts] for _ in range(args.runs)]
    server.terminate()
    server.join()
    for place, checkout in enumerate(checkouts):
        figures = [median(values) for values in zip(*(run[place] for run in runs), strict=True)]
        print(f"{checkout}: wall {figures[0]:.2f} s, CPU {figures[1]:.2f} s, {figures[2]:.0f} MiB")
    if args.beside:
        ratios = [median(run[0][n] / run[1][n] for run in runs) for n in range(3)]
        print(f"ratio: wall {ratios[0]:.2f}, CPU {ratios[1]:.2f}, memory {ratios[2]:.2f}")


if __name__ == "__main__":
    main()
