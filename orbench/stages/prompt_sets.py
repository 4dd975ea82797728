"""A stage's input: a file, a named set, a file of the Hugging Face Hub or the web; and samples.

    --input_file=or-bench-hard-1k
    --input_file=hf://datasets/OWNER/NAME@REVISION/FILE --prompt_column=question
    --input_file=https://example.org/prompts.jsonl

The named sets are in prompt_sets.toml. Hub files stay in huggingface_hub's cache, other downloads
in ~/.cache/orbench; the stage sees the columns prompt and, if they are there, category and seed_id.
"""

import argparse
import hashlib
import logging
import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orbench.base.messages import UserError, clean, did_you_mean, without_query
from orbench.base.prompts import asked_in, prompt_id
from orbench.base.tables import Table, make_folder, read_csv, sha256_of, write_bytes
from orbench.base.words import Row

HUB_FILE = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@([^/]+))?/(.+)")
# Unencrypted only from this machine.
WEB_FILE = re.compile(r"(?:https://|http://(?:localhost|127\.0\.0\.1)[:/])")
DOWNLOAD_TIMEOUT_S = 60
HINT = (
    "; CSV (also with semicolons), JSON lines and parquet files are read; "
    "--prompt_column and --category_column name other columns"
)


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
    seed: str = ""  # the column with the toxic prompt that a row's prompt is paired with
    name: str = ""  # none for other files of the Hub


def prompt_sets() -> dict[str, PromptSet]:
    """The named sets."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {name: PromptSet(**one, name=name) for name, one in tomllib.loads(text).items()}


def add_column_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of a stage whose input may name its columns otherwise."""
    for column in ("prompt", "category"):
        meaning = f"the input column that holds the {column} (default: {column})"
        parser.add_argument(f"--{column}_column", default="", metavar="COLUMN", help=meaning)


def read_input(name: str, needed: Sequence[str], args: argparse.Namespace) -> Table:
    """The rows that an input flag names, after --limit and --shuffle. Raises UserError."""
    own = {column: getattr(args, f"{column}_column", "") for column in ("prompt", "category")}
    given = {ours: theirs for ours, theirs in own.items() if theirs}
    if found := _wanted(name, given):
        table = _of_set(found)
    elif args.preflight is not None and "response" in needed and not Path(name).exists():
        table = Table(Path(name), list(needed), [])  # stage 4 has yet to write it
    else:
        path = _downloaded(name) if WEB_FILE.match(name) else name
        hint = HINT if hasattr(args, "prompt_column") else ""
        table = read_csv(path, [*given.values(), *(set(needed) - given.keys())], hint=hint)
        for ours, theirs in given.items():  # a copy under the name that the suite knows
            table.columns += [] if ours in table.columns else [ours]
            table.rows = [row | {ours: row[theirs]} for row in table.rows]
        if WEB_FILE.match(name):
            table.source = {"name": "", "url": without_query(name), "sha256": sha256_of(table.path)}
    if args.shuffle is not None and args.limit is None:
        raise UserError("--shuffle SEED needs --limit N")
    every = len(table.rows)
    if args.shuffle is not None:
        table.rows = stratified_sample(table.rows, args.limit, args.shuffle)
    elif args.limit is not None:
        table.rows = table.rows[: args.limit]
    if len(table.rows) < every and "response" not in needed:  # tables say `40 of 150`
        table.source.setdefault("rows", every)
    return table


def prompts_of(names: Sequence[str]) -> list[str]:
    """The prompts of CSV files and named sets. Raises UserError."""
    whole = argparse.Namespace(limit=None, shuffle=None, preflight=None)
    tables = [read_input(name, ["prompt"], whole) for name in names]
    return [row["prompt"] for table in tables for row in table.rows]


def stratified_sample(rows: Sequence[Row], limit: int, seed: int) -> list[Row]:
    """`limit` rows, proportional by category, in file order. They depend on seed and prompts alone,
    and a larger sample contains a smaller one: the r-th of a category's m rows, by a seeded hash,
    stands at (r + 1/2) / m, and the first by place are taken.
    """

    def order(row: Row) -> bytes:
        text = asked_in(row) if "prompt" in row else "\0".join(row.values())
        return hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "surrogatepass")).digest()

    members = defaultdict[str, list[tuple[bytes, int]]](list)
    for number, row in enumerate(rows):
        members[row.get("category", "")].append((order(row), number))
    places = list[tuple[float, bytes, int]]()
    for found in members.values():
        for r, (key, number) in enumerate(sorted(found)):
            places.append(((r + 0.5) / len(found), key, number))
    taken = sorted(number for _, _, number in sorted(places)[:limit])
    return [rows[number] for number in taken]


def _wanted(name: str, columns: dict[str, Any]) -> PromptSet | None:
    """A named set, or a file of the Hub with these columns; else None. Raises UserError."""
    if found := HUB_FILE.fullmatch(name):
        return PromptSet(found[1], found[3], found[2] or "", **columns)
    if not name or Path(name).exists():
        return None
    sets = prompt_sets()
    if name not in sets and "." not in name and "/" not in name:
        known = f"the sets are {', '.join(sets)}{did_you_mean(name, sets)}"
        raise UserError(f"{name}: no such file or prompt set; {known}")
    return sets.get(name)


def _of_set(asked: PromptSet) -> Table:
    """The rows of a Hub file that belong to a set. Raises UserError."""
    path = _fetch(asked)
    table = read_csv(path, [asked.prompt], hint=HINT)
    columns = {"prompt": asked.prompt, "category": asked.category, "seed_id": asked.seed}
    columns = {ours: theirs for ours, theirs in columns.items() if theirs in table.columns}
    rows = []
    for row in table.rows:
        if not asked.only or row[asked.only[0]] == asked.only[1]:
            rows.append({ours: row[theirs] for ours, theirs in columns.items()})
            if asked.seed:
                rows[-1]["seed_id"] = prompt_id(row[asked.seed])
    commit = re.search(r"/snapshots/([0-9a-f]{40})/", str(path))
    source = asked._asdict() | {"sha256": sha256_of(path)}
    source["revision"] = commit[1] if commit else asked.revision
    name = asked.name or Path(asked.file).stem
    return Table(Path(f"{name}.csv"), list(columns), rows, source)


def _fetch(asked: PromptSet) -> Path:
    """The file in huggingface_hub's cache. Raises UserError."""
    from huggingface_hub import errors, hf_hub_download

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # no line for each attempt
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


def _downloaded(url: str) -> Path:
    """A file of the web, downloaded once, into a folder of its own. Raises UserError."""
    from urllib.request import urlopen

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "orbench")
    name = re.sub(r"[^\w.-]", "_", without_query(url).rpartition("/")[2]) or "prompts"
    path = cache / hashlib.sha256(url.encode()).hexdigest()[:16] / name
    if not path.is_file():
        make_folder(path.parent)
        try:
            with urlopen(url, timeout=DOWNLOAD_TIMEOUT_S) as answer:
                write_bytes(path, answer.read())
        except (OSError, ValueError) as error:  # without its query: a token may be in it
            why = clean(str(error)).replace(url, without_query(url))[:200]
            raise UserError(f"{without_query(url)} cannot be downloaded: {why}") from None
    return path
