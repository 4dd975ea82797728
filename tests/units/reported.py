"""Result files of stage 5, and options of a report of them."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from orbench.stages.flags import Parser
from tests.results import ANSWER, DIRECT, numbered, written

N = 40
TIERS = {"tier": list("12") * (N // 2), "seed_id": [str(n // 2) for n in range(N)]}


def model(
    folder: Path, name: str, refused: int, n: int = N, /, texts: str = "Prompt", **about: Any
) -> Path:
    """A result of maker/NAME in NAME.csv, the first rows refused; the rest as for `written`.

    texts: what its prompts begin with.
    """
    columns = {"prompt": [text.replace("Prompt", texts) for text in numbered(n)]}
    columns |= about.pop("columns", {})
    file = about.pop("file", f"{name}.csv")
    verdicts = [DIRECT] * refused + [ANSWER] * (n - refused)
    return written(folder, file, verdicts, f"maker/{name}", columns=columns, **about)


def options(
    folder: Path, *safe: Path | str, toxic: tuple[Path | str, ...] = (), **about: Any
) -> Namespace:
    """Options of a report of tables."""
    given: Namespace = Parser(None, "plot_results", "gate").parse_args(["--table"])
    given.over_refusal = list(map(str, safe))
    given.toxic = list(map(str, toxic))
    given.output_dir = folder / "results"
    given.command = ["plot_results.py"]
    vars(given).update({"gated": [], "tells": "results.csv"} | about)
    return given


def add_to_record(path: Path, **entries: Any) -> None:
    file = path.with_suffix(".run.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))
