"""Runs of a script side by side, a process for each: its lines and its bar, behind its name."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from io import TextIOWrapper
from pathlib import Path
from signal import SIGTERM
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any

from orbench.base.messages import QUIET, say
from orbench.base.words import Words


def side_by_side(names: Words, command: Words, shown: int) -> tuple[Words, int]:
    """Run a command with --lane=1, 2, ... for the names. Return the lines that they wrote to
    stdout, and 1 if any has failed.

    shown: of how many the lines are shown as they come; then the next ones'.
    """
    if sys.stderr.isatty():
        command = [*command, "--bars"]
    runs = []
    env = os.environ | {"PYTHONIOENCODING": "utf-8"}  # whatever the terminal's is
    with ThreadPoolExecutor(shown) as pool:
        try:
            for lane, _ in enumerate(names, 1):
                own = [*command, f"--lane={lane}"]
                runs.append(Popen(own, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env))
            told = "".join(pool.map(_shown, names, runs))
        except BaseException:
            for run in runs:  # again, where Ctrl-C has reached it: that does no harm
                run.terminate()
            raise
    return told.splitlines(), int(any(run.returncode for run in runs))


def end_with_parent() -> None:
    """Have this lane interrupted once its parent is gone, which then closes the lane's stdin: a
    parent that is killed cannot stop it. One that a user starts has another stdin, and goes on.
    """
    if Path("/dev/stdin").is_fifo():
        Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    os.read(0, 1)  # nothing is ever written
    os.kill(os.getpid(), SIGTERM)


def _shown(name: str, run: Any) -> str:
    """Show what a run says until it ends, and return what it wrote to stdout."""
    from tqdm import tqdm

    bar = tqdm(bar_format="{desc}", leave=False, dynamic_ncols=True, disable=QUIET.get())
    # Where it draws its own bar, it returns to the start of the line.
    with run, bar, TextIOWrapper(run.stderr, "utf-8", "replace", newline="") as texts:
        for text in texts:
            line = f"{name} | {text.rstrip()}"
            if text.endswith("\n"):
                with tqdm.external_write_mode(sys.stderr):
                    say(line)
            else:
                bar.set_description_str(line)
        return str(run.stdout.read(), "utf-8")
