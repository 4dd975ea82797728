"""What tells how the datasets were made: their run records and the dataset card, the README.md
beside the CSVs, as the Hugging Face hub shows it.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from orbench import record
from orbench.table import Table, write_text
from orbench.terminal import clean

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

NAME = "README.md"
CARD_MARK = "<!-- written by moderator/build_dataset.py -->"
HARD_FILE = "or-bench-hard.csv"
HARD_CONFIG = "or-bench-hard-1k"  # as the published dataset calls it
_MARKDOWN = str.maketrans({**{c: "\\" + c for c in "\\`*_[]|#~"}, "<": "&lt;", "&": "&amp;"})
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


class Config(NamedTuple):
    """A dataset as `load_dataset` finds it in a card."""

    name: str
    file: str
    sha256: str  # of the file


class Card(NamedTuple):
    """What the card says."""

    license: str
    counts: "DataFrame"  # prompts by category and dataset; the last row counts all
    hashes: Mapping[str, str]  # dataset -> prompt set hash
    judges: Sequence[str]  # of the prompts
    models: Sequence[tuple[str, str]]  # what a model did, the model as asked and as it answered
    agreement: Sequence[str]  # lines of text
    history: Sequence[str]  # what happened to the prompts: lines of text
    date: str  # ISO
    scripted: bool  # answers of the offline stand-in
    configs: Sequence[Config]


def write_dataset_record(csv: Path, stage: str, prompt_set: str, n: int, **more: object) -> None:
    """The run record beside a dataset of n prompts. Raises OSError."""
    entry = {"stage": stage, "command": sys.argv, **more, "prompt_set": prompt_set}
    end = datetime.now(UTC).isoformat(timespec="seconds")
    record.write(csv, {**entry, "counts": {"done": n}, "complete": True, "end": end})


def is_ours(folder: Path) -> bool:
    """Whether a folder's README.md is absent or such a card, so that it may be replaced."""
    try:
        return CARD_MARK in (folder / NAME).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return True


def configs(folder: Path, files: Mapping[str, str]) -> list[Config]:
    """Those of some datasets that can be loaded: a file that is absent or has no row cannot.

    files: config name -> file in the folder. Raises UserError for a broken file.
    """
    paths = {name: folder / file for name, file in files.items() if (folder / file).exists()}
    tables = {name: Table(path) for name, path in paths.items()}
    return [Config(name, files[name], table.sha256) for name, table in tables.items() if table.n]


def add_config(folder: Path, config: str, file: str) -> None:
    """Name one more file in the card of a folder, if it has a card of ours, in place of what the
    card said of that config. Raises OSError, UserError.
    """
    path = folder / NAME
    if not path.is_file() or not is_ours(folder):
        return
    # A config is its line in a list and the indented lines below.
    before = re.compile(rf"^- config_name: {re.escape(config)}\n(?:  .*\n)*", re.MULTILINE)
    text = before.sub("", path.read_text(encoding="utf-8"), count=1)
    entry = [line for one in configs(folder, {config: file}) for line in _config(one)]
    if entry and "\nconfigs:\n" not in text:
        text = text.replace("---\n", "---\nconfigs:\n", 1)
    write_text(path, text.replace("configs:\n", "\n".join(["configs:", *entry, ""]), 1))


def text(card: Card) -> str:
    """The card, a metadata block in YAML and Markdown: `card.md`, filled."""
    n = card.counts.loc["all"].max()
    warning = "**Made with the offline scripted model: this measures nothing.**\n\n"
    counts = [(escape(name), *map("{:,}".format, row)) for name, *row in card.counts.itertuples()]
    entries = [line for config in card.configs for line in _config(config)]
    return Template(Path(__file__).with_name("card.md").read_text(encoding="utf-8")).substitute(
        license=json.dumps(card.license),  # a JSON string is a YAML string
        size=next((name for most, name in SIZES if n < most), "n>1M"),
        configs="".join(f"{line}\n" for line in (["configs:", *entries] if entries else ())),
        warning=warning if card.scripted else "",
        counts=_table(("category", *card.counts), counts, "---:"),
        history="\n".join(f"- {escape(line)}" for line in card.history),
        judges=", ".join(map(escape, card.judges)) or "not known",
        models=_block(f"- {escape(what)}: {escape(model)}" for what, model in card.models),
        agreement=_block(f"    {clean(line)}" for line in card.agreement),
        date=card.date,
        canary=uuid5(NAMESPACE_URL, " ".join(card.hashes.values())),
        hashes=_table(
            ("dataset", "prompt set hash"),
            [(name, value or "(empty)") for name, value in card.hashes.items()],
        ),
    )


def escape(text: str) -> str:
    """A word of a user or a model as Markdown shows it."""
    return clean(text).translate(_MARKDOWN)


def _config(config: Config) -> Iterable[str]:
    yield f"- config_name: {config.name}"
    yield f"  data_files: {json.dumps(config.file)}"
    yield "  keep_default_na: false"  # a prompt that reads NA or null is a prompt
    # The datasets library knows again what it loaded by the folder's name and this block alone:
    # without a word on the data, a set built anew would load as it was before.
    yield f'  description: "sha256 {config.sha256}"'


def _block(lines: Iterable[str]) -> str:
    """Lines with an empty one before them; nothing if there are none."""
    return "".join(f"\n{line}" for line in lines) + "\n" if (lines := list(lines)) else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "---") -> str:
    """A Markdown table. align: of all columns but the first."""
    lines = [head, ["---", *[align] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
