"""Result files of stage 5, and options of a report of them."""

import json
from pathlib import Path
from typing import Any

from orbench.report.write import Options
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
) -> Options:
    """Options of a report of tables."""
    given = {"over_refusal": list(map(str, safe)), "toxic": list(map(str, toxic))}
    return Options(given, folder / "results", ["plot_results.py"], table=True, **about)


def add_to_record(path: Path, **entries: Any) -> None:
    file = path.with_suffix(".run.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))
