"""The datasets' run records, and the card that the Hugging Face hub shows."""

import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from uuid import NAMESPACE_URL, uuid5

from orbench.base.messages import UserError, clean
from orbench.base.prompts import prompt_id, prompt_set_hash
from orbench.base.records import is_scripted, read_record, selectors, write_record
from orbench.base.tables import sha256_of, write_text
from orbench.base.words import Row
from orbench.datasets.moderated import SAFE_SET, TOXIC_SET

CARD = "README.md"
CARD_MARK = "<!-- written by moderator/build_dataset.py -->"  # as in card.md
DATASETS = (SAFE_SET, TOXIC_SET, "or-bench-toxic")  # the last one is a sample
# Config, as the published dataset calls it -> file; the last two are a release's.
CONFIGS = {"or-bench-hard-1k": "or-bench-hard.csv"}
CONFIGS |= {name: f"{name}.csv" for name in (*DATASETS, "hard", "toxic")}


def check_ours(path: Path, stage: str) -> None:
    """Raise UserError for a CSV that exists and was not written by this tool."""
    if path.exists() and read_record(path).get("stage") != stage:
        raise UserError(f"{path} was not written by this tool and is kept; choose another output")


def write_dataset_record(
    csv: Path, rows: Sequence[Row], inputs: Sequence[Path], args: Namespace, **more: object
) -> str:
    """Write the run record beside a dataset; return its prompt set hash. Raises OSError."""
    records = [read_record(path) for path in inputs]
    writers = {str(one): one for record in records for one in record.get("written_by", ())}
    prompt_set = prompt_set_hash(prompt_id(row["prompt"]) for row in rows)
    record = {
        "selectors": sorted({one for record in records for one in selectors(record)}),
        **more,
        "command": sys.argv,
        "parameters": {name: str(value) for name, value in vars(args).items()},
        "written_by": list(writers.values()),
        "scripted": any(map(is_scripted, records)),
        "inputs": [str(path) for path in inputs],
        "prompt_set": prompt_set,
        "counts": {"done": len(rows)},
    }
    write_record(csv, record)
    return prompt_set


def has_card(folder: Path) -> bool:
    """Whether a folder has a card of this suite. Raises OSError."""
    path = folder / CARD
    return path.exists() and CARD_MARK in path.read_text(encoding="utf-8", errors="replace")


def write_card(
    folder: Path, counts: Sequence[Sequence[str]], history: Iterable[str], licence: str
) -> None:
    """Write the card of the CSVs in a folder: `card.md`, filled. Raises OSError.

    counts: prompts by category and dataset; head first, prompt set hashes last.
    """
    template = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    text = Template(template).substitute(
        license=json.dumps(licence),  # a JSON string is a YAML string
        counts="\n".join(table_lines(counts)),
        history="\n".join(f"    {clean(line)}" for line in history),
        example=counts[0][1],
        date=datetime.now(UTC).date().isoformat(),
        canary=uuid5(NAMESPACE_URL, " ".join(counts[-1])),
    )
    write_text(folder / CARD, text)
    list_datasets(folder)


def list_datasets(folder: Path) -> None:
    """Have a folder's card, if there is one, list what `load_dataset` can load."""
    if not has_card(folder):
        return
    configs = []
    for name, file in CONFIGS.items():
        path = folder / file
        if path.exists() and path.read_bytes().count(b"\n") > 1:  # it has rows
            config = {"config_name": name, "data_files": file, "keep_default_na": False}
            # The library recognizes what it has loaded by this list, so the hash is in it.
            configs.append(config | {"description": sha256_of(path)})
    text = (folder / CARD).read_text(encoding="utf-8")
    listed = re.sub("(?m)^configs:.*", f"configs: {json.dumps(configs)}", text, count=1)
    write_text(folder / CARD, listed)  # one line: YAML takes JSON


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, aligned for the terminal. rows: the head first."""
    cells = [[clean(cell).replace("|", "/") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in cells]
