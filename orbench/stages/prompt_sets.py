"""A stage's input: a CSV file, a named prompt set, or a file of the Hugging Face Hub; and samples.

    --input_file=prompts.csv
    --input_file=or-bench-hard-1k
    --input_file=hf://datasets/OWNER/NAME@REVISION/FILE --prompt_column=question

The named sets are in prompt_sets.toml. Hub files are CSV, JSON lines or Parquet, and stay in
huggingface_hub's cache; the stage sees the columns prompt and, if there is one, category.
"""

import argparse
import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orbench.base.messages import UserError, clean, did_you_mean
from orbench.base.prompts import asked_in
from orbench.base.tables import Table, read_csv, sha256_of, storable
from orbench.base.words import Row

HUB_FILE = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@([^/]+))?/(.+)")


class PromptSet(NamedTuple):
    """A public set of prompts: where it is, and how its columns map to ours."""

    repository: str
    file: str
    revision: str  # a commit; "" is the newest
    licence: str = ""
    side: str = ""  # a key of SIDES
    rows: int = 0  # as the makers say
    prompt: str = "prompt"
    category: str = "category"
    only: Sequence[str] = ()  # column and value of the rows that belong to it


def prompt_sets() -> dict[str, PromptSet]:
    """The named sets."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {name: PromptSet(**one) for name, one in tomllib.loads(text).items()}


def add_column_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a stage whose input may name its columns otherwise."""
    for column in ("prompt", "category"):
        meaning = f"the input column that holds the {column} (default: {column})"
        parser.add_argument(f"--{column}_column", default="", metavar="COLUMN", help=meaning)


def read_input(name: str, needed: Sequence[str], args: argparse.Namespace) -> Table:
    """The rows that an input flag names, after --limit and --shuffle. Raises UserError."""
    columns = ("prompt", "category")
    given: Any = {column: getattr(args, f"{column}_column", "") for column in columns}
    given = {ours: theirs for ours, theirs in given.items() if theirs}
    if found := _wanted(name):
        table = _downloaded(name, found._replace(**given))
    else:
        table = read_csv(name, [*given.values(), *(set(needed) - given.keys())])
        for ours, theirs in given.items():  # a copy under the name that the suite knows
            table.columns += [] if ours in table.columns else [ours]
            table.rows = [row | {ours: row[theirs]} for row in table.rows]
    if args.shuffle is not None and args.limit is None:
        raise UserError("--shuffle SEED chooses the rows of --limit N: give both")
    if args.shuffle is not None:
        table.rows = stratified_sample(table.rows, args.limit, args.shuffle)
    elif args.limit is not None:
        table.rows = table.rows[: args.limit]
    return table


def prompts_of(names: Sequence[str]) -> list[str]:
    """The prompts of CSV files and named sets. Raises UserError."""
    whole = argparse.Namespace(limit=None, shuffle=None)
    return [row["prompt"] for name in names for row in read_input(name, ["prompt"], whole).rows]


def stratified_sample(rows: Sequence[Row], limit: int, seed: int) -> list[Row]:
    """`limit` rows, proportional by category, in file order.

    Which rows depends on the seed and the prompts alone: the sample does not change if the file is
    sorted, and a larger one contains it. The r-th of a category's m rows, in the order of a seeded
    hash, stands at (r + 1/2) / m, and the first rows by place are taken.
    """

    def order(row: Row) -> bytes:
        text = asked_in(row) if "prompt" in row else "\0".join(row.values())
        return hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "surrogatepass")).digest()

    keys = [order(row) for row in rows]
    names = [row.get("category", "") for row in rows]
    sizes = Counter(names)
    seen = Counter[str]()
    places = list[tuple[float, bytes, int]]()
    for number in sorted(range(len(rows)), key=keys.__getitem__):
        name = names[number]
        places.append(((seen[name] + 0.5) / sizes[name], keys[number], number))
        seen[name] += 1
    return [rows[number] for number in sorted(number for _, _, number in sorted(places)[:limit])]


# -- the Hub -----------------------------------------------------------------------------------


def _wanted(name: str) -> PromptSet | None:
    """The set that a name stands for; None for a file on this machine. Raises UserError."""
    if found := HUB_FILE.fullmatch(name):
        return PromptSet(found[1], found[3], found[2] or "")
    if not name or Path(name).exists():
        return None
    sets = prompt_sets()
    if name not in sets and "." not in name and "/" not in name:
        meant = did_you_mean(name, sets)
        raise UserError(
            f"{name}: no such file or prompt set; the sets are {', '.join(sets)}{meant}"
        )
    return sets.get(name)


def _downloaded(name: str, asked: PromptSet) -> Table:
    """The rows of a Hub file that belong to a set. Raises UserError."""
    path = _fetch(asked)
    named = name in prompt_sets()
    frame = _read_frame(path)
    columns = {"prompt": asked.prompt}
    if named or asked.category in frame.columns:
        columns["category"] = asked.category
    for column in (*columns.values(), *asked.only[:1]):
        if column not in frame.columns:
            there = clean(", ".join(map(str, frame.columns)))
            raise UserError(f"{asked.file} has no column {column!r}; it has: {there}")
    if asked.only:
        frame = frame[frame[asked.only[0]].astype(str) == asked.only[1]]
    cells = [frame[theirs].fillna("").astype(str).map(storable) for theirs in columns.values()]
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*cells, strict=True)]
    commit = re.search(r"/snapshots/([0-9a-f]{40})/", str(path))
    source = {"name": name if named else ""} | asked._asdict() | {"sha256": sha256_of(path)}
    source["revision"] = commit[1] if commit else asked.revision
    stem = name if named else Path(asked.file).stem
    return Table(Path(f"{stem}.csv"), list(columns), rows, source)


def _fetch(asked: PromptSet) -> Path:
    """The file in huggingface_hub's cache. Raises UserError."""
    from huggingface_hub import errors, hf_hub_download

    where = (asked.repository, asked.file)
    revision = asked.revision or None
    try:
        return Path(hf_hub_download(*where, repo_type="dataset", revision=revision))
    except errors.GatedRepoError:
        page = f"huggingface.co/datasets/{asked.repository}"
        raise UserError(f"accept the terms on {page}, then set HF_TOKEN") from None
    except errors.LocalEntryNotFoundError:
        why = "the Hugging Face Hub cannot be reached, and the file is not in its cache"
    except (errors.HfHubHTTPError, errors.HFValidationError, OSError) as error:
        why = clean(str(error))[:200]
    raise UserError(f"{asked.file} of {asked.repository} cannot be downloaded: {why}")


def _read_frame(path: Path) -> Any:
    """A CSV, JSON lines or Parquet file as a pandas table. Raises UserError."""
    import pandas as pd  # type: ignore[import-untyped]

    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        if path.suffix == ".jsonl":
            return pd.read_json(path, lines=True, dtype=False, convert_dates=False)
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, OSError) as error:  # pyarrow's and the parsers' errors are ValueErrors
        said = clean(str(error))[:200]
        raise UserError(f"{path} is no CSV, JSON lines or Parquet file: {said}") from None
