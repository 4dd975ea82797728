"""The datasets' run records, and the card that the Hugging Face hub shows."""

import json
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from string import Template
from textwrap import indent
from uuid import NAMESPACE_URL, uuid5

from orbench.base.messages import UserError, clean
from orbench.base.prompts import ids_of, prompt_set_hash
from orbench.base.records import is_scripted, now, read_record, selectors, write_record
from orbench.base.tables import Paths, sha256_of, write_csv, write_text, write_yaml
from orbench.base.words import OVERALL, Rows, Words, category_of
from orbench.datasets.moderated import SAFE_SET, TOXIC_SET

CARD = "README.md"
# What makes a dataset a benchmark on the Hub (huggingface.co/docs/hub/eval-results).
EVAL = "eval.yaml"
BENCHMARK = {
    "name": "Over-refusal prompts",
    "description": "Safe prompts that look toxic, and toxic prompts, which a model should refuse",
    "evaluation_framework": "orbench",
}
CARD_MARK = "<!-- written by moderator/build_dataset.py -->"  # as in card.md
DATASETS = (SAFE_SET, TOXIC_SET, "or-bench-toxic")  # the last one is a sample
BUILT_BY = "build_dataset"  # in run records
SELECTED_BY = "select_hard_prompts"
# File -> config, where the published dataset calls it otherwise.
CONFIGS = {"or-bench-hard": "or-bench-hard-1k"}

Chosen = Mapping[str, Rows]  # dataset -> its rows, in input order


def check_ours(path: Path, stage: str) -> None:
    """Raise UserError for a CSV that exists and was not written by this tool."""
    if path.exists() and read_record(path).get("stage") != stage:
        raise UserError(f"{path} was not written by this tool and is kept; choose another output")


def columns_of(rows: Rows) -> list[str]:
    """Return the columns of a dataset: seed_id is one of them if there are seeds."""
    columns = ["prompt", "category"]
    if any(row["seed_id"] for row in rows):
        columns.append("seed_id")
    return columns


def write_dataset(
    csv: Path,
    columns: Words,
    rows: Rows,
    inputs: Paths,
    args: Namespace,
    stage: str,
    selected_by: Collection[str] = (),
) -> str:
    """Write a dataset and its run record; return its prompt set hash. Raises OSError.

    stage: what wrote it. selected_by: families whose refusals chose the rows; if empty, those of
    the inputs.
    """
    write_csv(csv, columns, rows)
    families = set(selected_by)
    writers = {}
    records = list(map(read_record, inputs))
    for record in records:
        if not selected_by:
            families.update(selectors(record))
        for writer in record.get("written_by", ()):
            writers[str(writer)] = writer
    parameters = {name: str(value) for name, value in vars(args).items()}
    del parameters["command"]  # which the record has by itself
    prompt_set = prompt_set_hash(ids_of(rows))
    facts = {
        "selectors": sorted(families),
        "parameters": parameters,
        "written_by": list(writers.values()),
        "scripted": any(map(is_scripted, records)),
        "inputs": [*map(str, inputs)],
        "prompt_set": prompt_set,
        "counts": {"done": len(rows)},
    }
    write_record(csv, stage, args.command, facts)
    return prompt_set


def has_card(folder: Path) -> bool:
    """Return whether a folder has a card of this suite. Raises OSError."""
    path = folder / CARD
    return path.exists() and CARD_MARK in path.read_text(encoding="utf-8", errors="replace")


def write_card(
    folder: Path,
    example: str,
    table: Words,
    history: Words,
    license: str,
    hashes: Words,
) -> None:
    """Write the card of the CSVs in a folder: `card.md`, filled. Raises OSError."""
    template = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    values = {
        "license": json.dumps(license),  # a JSON string is a YAML string
        "counts": "\n".join(table),
        "history": indent("\n".join(map(clean, history)), "    "),
        "example": example,
        "date": now()[:10],
        "canary": uuid5(NAMESPACE_URL, " ".join(["prompt set hash", *hashes])),
    }
    write_text(folder / CARD, Template(template).substitute(values))
    list_datasets(folder)


def list_datasets(folder: Path) -> None:
    """Have a folder's card, if there is one, list what `load_dataset` can load, and EVAL, too."""
    if not has_card(folder):
        return
    configs = []
    tasks = []
    for path in sorted(folder.glob("*.csv")):
        is_ours = read_record(path).get("stage") in (BUILT_BY, SELECTED_BY)
        if is_ours and path.read_bytes().count(b"\n") > 1:  # it has rows
            name = CONFIGS.get(path.stem, path.stem)
            configs.append(
                {
                    "config_name": name,
                    "data_files": path.name,
                    "keep_default_na": False,
                    # The library recognizes what it has loaded by this list: the hash is in it.
                    "description": sha256_of(path),
                }
            )
            tasks.append({"id": name, "config": name, "split": "train"})
    write_yaml(folder / EVAL, BENCHMARK | {"tasks": tasks})
    text = (folder / CARD).read_text(encoding="utf-8")
    line = f"configs: {json.dumps(configs)}"  # one line: YAML takes JSON
    write_text(folder / CARD, re.sub("(?m)^configs:.*", line, text, count=1))


def table_of(chosen: Chosen, hashes: Words) -> Words:
    """Return the prompts by category and dataset as a Markdown table, hashes last."""
    counts = [Counter(map(category_of, rows)) for rows in chosen.values()]
    table = [["category", *chosen], ["---"] * (1 + len(chosen))]
    for category in sorted(set().union(*counts)):
        table.append([category.replace("|", "/"), *(f"{count[category]:,}" for count in counts)])
    table.append([OVERALL, *(f"{count.total():,}" for count in counts)])
    table.append(["prompt set hash", *hashes])
    return [f"| {' | '.join(row)} |" for row in table]
