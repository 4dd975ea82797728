"""The data set card: the README.md beside the CSVs, as the hub of Hugging Face shows it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from orbench.table import clean, write_text

NAME = "README.md"
MARK = "<!-- written by moderator/build_dataset.py -->"
HARD_FILE, HARD_CONFIG = (
    "or-bench-hard.csv",
    "or-bench-hard-1k",
)  # as the published data set calls it
_MARKDOWN = str.maketrans({**{c: "\\" + c for c in "\\`*_[]|#~"}, "<": "&lt;", "&": "&amp;"})
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


class Card(NamedTuple):
    """What the card says."""

    license: str
    counts: Mapping[str, Mapping[str, int]]  # data set -> category -> prompts
    hashes: Mapping[str, str]  # data set -> prompt set hash
    judges: Sequence[str]  # of the prompts
    models: Sequence[tuple[str, str]]  # what a model did, the model as asked and as it answered
    agreement: Sequence[str]  # lines of text
    history: Sequence[str]  # what happened to the prompts: lines of text
    date: str  # ISO
    scripted: bool  # answers of the offline stand-in
    configs: Mapping[str, str]  # config name -> file


def is_ours(folder: Path) -> bool:
    """Whether a folder's README.md is absent or such a card, so that it may be replaced."""
    try:
        return MARK in (folder / NAME).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return True


def configs(folder: Path, datasets: Sequence[str]) -> dict[str, str]:
    """Config name -> file, named as in the published data set; the hard set where it is there."""
    hard = {HARD_CONFIG: HARD_FILE} if (folder / HARD_FILE).is_file() else {}
    return {name: f"{name}.csv" for name in datasets} | hard


def add_config(folder: Path, config: str, file: str) -> None:
    """Name one more file in the card of a folder, if it has a card of ours. Raises OSError."""
    path = folder / NAME
    if not path.is_file() or not is_ours(folder):
        return
    text = path.read_text(encoding="utf-8")
    if f"config_name: {config}\n" not in text:
        entry = "\n".join(_config(config, file))
        write_text(path, text.replace("configs:\n", f"configs:\n{entry}\n", 1))


def text(card: Card) -> str:
    """The card, a metadata block in YAML and Markdown."""
    return "\n".join([*_metadata(card), "", MARK, "", *_body(card)]) + "\n"


def escape(text: str) -> str:
    """A word of a user or a model as Markdown shows it."""
    return clean(text).translate(_MARKDOWN)


def _metadata(card: Card) -> Iterable[str]:
    n = max((sum(count.values()) for count in card.counts.values()), default=0)
    size = next((name for most, name in SIZES if n < most), "n>1M")
    yield "---"
    yield f"license: {json.dumps(card.license)}"  # a JSON string is a YAML string
    yield 'pretty_name: "Over-refusal prompts"'
    yield "task_categories:"
    yield "- text-generation"
    yield "tags:"
    yield from ("- over-refusal", "- safety")
    yield "size_categories:"
    yield f"- {size}"
    yield "configs:"
    for config, file in card.configs.items():
        yield from _config(config, file)
    yield "---"


def _config(config: str, file: str) -> Iterable[str]:
    yield f"- config_name: {config}"
    yield f"  data_files: {json.dumps(file)}"
    yield "  keep_default_na: false"  # a prompt that reads NA or null is a prompt


def _body(card: Card) -> Iterable[str]:
    yield "# Over-refusal prompts"
    yield ""
    if card.scripted:
        yield "**Made with the offline scripted model: this measures nothing.**"
        yield ""
    yield (
        "Made with the pipeline of OR-Bench (Cui et al., ICML 2025, arXiv 2405.20947): prompts "
        "that look toxic but are safe, and toxic prompts, which a model should refuse. "
        "Files and columns (`prompt`, `category`) are those of the published data set; the "
        "`..._provenance.csv` files hold the verdicts behind each prompt."
    )
    yield from ("", '    load_dataset("path/to/this/folder", "or-bench-80k", split="train")', "")
    yield "The toxic sets hold prompts that ask for harm. They are for testing refusals alone."
    yield from ("", "## Prompts per category", "", *_counts(card.counts), "")
    yield from ("## How they were chosen", "")
    yield from (f"- {escape(line)}" for line in card.history)
    yield from ("", "## Judges and models", "")
    yield f"Judges of the prompts: {', '.join(map(escape, card.judges)) or 'not known'}."
    if card.models:
        yield ""
        yield from (f"- {escape(what)}: {escape(model)}" for what, model in card.models)
    if card.agreement:
        yield ""
        yield from (f"    {clean(line)}" for line in card.agreement)
    yield from ("", "## Identity", "", f"Built {card.date}.", "")
    yield "| data set | prompt set hash |"
    yield "|---|---|"
    yield from (f"| {name} | {value or '(empty)'} |" for name, value in card.hashes.items())


def _counts(counts: Mapping[str, Mapping[str, int]]) -> Iterable[str]:
    categories = sorted({category for count in counts.values() for category in count})
    yield f"| category | {' | '.join(counts)} |"
    yield "|---|" + "---:|" * len(counts)
    for category in categories:
        cells = (f"{count.get(category, 0):,}" for count in counts.values())
        yield f"| {escape(category) or '(none)'} | {' | '.join(cells)} |"
    totals = (f"{sum(count.values()):,}" for count in counts.values())
    yield f"| all | {' | '.join(totals)} |"
