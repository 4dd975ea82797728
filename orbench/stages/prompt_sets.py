"""A stage's input: a file, a named set, or a file of the Hugging Face Hub; and samples.

    --input_file=or-bench-hard-1k
    --input_file=hf://datasets/OWNER/NAME@REVISION/FILE --prompt_column=question

The named sets are in prompt_sets.toml. Hub files stay in huggingface_hub's cache; of them, the
stage sees the columns prompt and, if they are there, category and seed_id.
"""

import hashlib
import logging
import re
import tomllib
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from orbench.base.messages import UserError, clean, did_you_mean, one_line, without_query
from orbench.base.prompts import MESSAGES, asked_in, ids_of, prompt_id, prompt_id_of, shown_question
from orbench.base.tables import Table, read_csv, sha256_of
from orbench.base.words import SIDES, Json, Row, Rows, Texts

HUB_FILE = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@([^/]+))?/(.+)")
COLUMNS = ("prompt", "category")  # that a flag can name
HINT = (
    "; CSV (also with semicolons or tabs), JSON lines and parquet files are read; "
    "--prompt_column and --category_column name other columns"
)


class PromptSet(NamedTuple):
    """A public set of prompts: where it is, and how its columns map to ours."""

    repository: str
    file: str
    revision: str  # a commit; "" is the newest
    license: str = ""
    side: str = ""  # a key of SIDES
    rows: int = 0  # as the makers say
    prompt: str = "prompt"
    category: str = "category"
    only: Sequence[str] = ()  # column and value of the rows that belong to it
    seed: str = ""  # the column with the toxic prompt that a row's prompt is paired with
    name: str = ""  # none for other files of the Hub


def prompt_sets() -> dict[str, PromptSet]:
    """Return the named sets."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {name: PromptSet(**one, name=name) for name, one in tomllib.loads(text).items()}


def read_input(name: str, needed: Sequence[str], args: Namespace) -> Table:
    """Return the rows that an input flag names, after --limit and --shuffle. Raises UserError."""
    given = {}  # our name of a column -> the user's
    for column in COLUMNS:
        theirs = getattr(args, f"{column}_column", "")
        if theirs:
            given[column] = theirs
    wanted = _wanted(name, given)
    if wanted:
        table = _of_set(wanted)
    else:
        hint = HINT if hasattr(args, "prompt_column") else ""
        table = _of_file(name, needed, given, hint)
    every = len(table.rows)
    if args.shuffle is not None:
        if args.limit is None:
            raise UserError("--shuffle RANDOM_SEED needs --limit N")
        table.rows = stratified_sample(table.rows, args.limit, args.shuffle)
    else:
        table.rows = table.rows[: args.limit]  # all without --limit
    if len(table.rows) < every and "response" not in needed:  # tables say `40 of 150`
        table.source["rows"] = table.source.get("rows") or every
    return table


def _of_file(name: str, needed: Sequence[str], given: Texts, hint: str) -> Table:
    """Return the rows of a file, under our names. Raises UserError."""
    if "://" in name:  # it may hold a token
        raise UserError(f"{without_query(name)} is no file here; download it first")
    columns = [given.get(column, column) for column in needed]
    columns += [theirs for ours, theirs in given.items() if ours not in needed]
    table = read_csv(name, columns, hint=hint)
    for ours, theirs in given.items():
        if ours == theirs:
            continue
        taken = MESSAGES if ours == "prompt" and MESSAGES in table.columns else ours
        if taken in table.columns:
            both = f"{table.path} has the columns {taken!r} and {theirs!r}"
            raise UserError(f"{both}; drop --{ours}_column, or rename {taken!r}")
        table.columns.append(ours)
        table.rows = [row | {ours: row[theirs]} for row in table.rows]
    return table


def prompts_of(names: Sequence[str]) -> list[str]:
    """Return the prompts of CSV files and named sets. Raises UserError."""
    whole = Namespace(limit=None, shuffle=None)
    prompts = []
    for name in names:
        prompts += [row["prompt"] for row in read_input(name, ["prompt"], whole).rows]
    return prompts


def check_sides(prompts: Texts, args: Namespace) -> dict[str, set[str]]:
    """Return the ids of each side's prompts. prompts: side -> what an input flag names, as for
    `read_input`. Raises UserError for a set of the other side, an empty one, or a prompt on both
    sides.
    """
    found = dict[str, set[str]]()
    known = set[str]()
    for side, name in prompts.items():
        named = prompt_sets().get(name)
        if named and named.side != side:
            raise UserError(f"{name} holds {SIDES[named.side].prompts}: it is on the wrong side")
        rows = read_input(name, ["prompt"], args).rows
        if not rows:
            raise UserError(f"{without_query(name)} holds no prompts, or --limit is 0")
        for row in rows:
            if row["prompt"].strip() and prompt_id_of(row) in known:
                text = one_line(shown_question(row))
                raise UserError(f"in --prompts and in --toxic, remove it from one: {text}")
        found[side] = ids_of(rows)
        known |= found[side]
    return found


def stratified_sample(rows: Rows, limit: int, seed: int) -> list[Row]:
    """Return `limit` rows, proportional by category, in file order.

    They depend on seed and prompts alone, and a larger sample contains a smaller one: the r-th of a
    category's m rows, by a seeded hash, stands at (r + 1/2) / m, and the first by place are taken.
    """
    members = defaultdict[str, list[tuple[bytes, int]]](list)
    for number, row in enumerate(rows):
        members[row.get("category", "")].append((_order_of(row, seed), number))
    places = []
    for category in members.values():
        for rank, (order, number) in enumerate(sorted(category)):
            places.append(((rank + 0.5) / len(category), order, number))
    places.sort()
    taken = sorted(number for _, _, number in places[:limit])
    return [rows[number] for number in taken]


def _order_of(row: Row, seed: int) -> bytes:
    text = asked_in(row) if "prompt" in row else "\0".join(row.values())
    return hashlib.sha256(f"{seed}\0{text}".encode()).digest()


def _wanted(name: str, columns: Json) -> PromptSet | None:
    """Return a named set, or a file of the Hub with these columns; else None. Raises UserError."""
    hub_file = HUB_FILE.fullmatch(name)
    if hub_file:
        repository, revision, file = hub_file.groups()
        return PromptSet(repository, file, revision or "", **columns)
    if not name or Path(name).exists():
        return None
    sets = prompt_sets()
    if name not in sets and "." not in name and "/" not in name:
        known = f"the sets are {', '.join(sets)}{did_you_mean(name, sets)}"
        raise UserError(f"{name}: no such file or prompt set; {known}")
    return sets.get(name)


def _of_set(wanted: PromptSet) -> Table:
    """Return the rows of a Hub file that belong to a set. Raises UserError."""
    path = _fetch(wanted)
    table = read_csv(path, [wanted.prompt], hint=HINT)
    columns = {"prompt": wanted.prompt, "category": wanted.category, "seed_id": wanted.seed}
    columns = {ours: theirs for ours, theirs in columns.items() if theirs in table.columns}
    rows = []
    for row in table.rows:
        if wanted.only and row[wanted.only[0]] != wanted.only[1]:
            continue
        ours = {column: row[theirs] for column, theirs in columns.items()}
        if wanted.seed:
            ours["seed_id"] = prompt_id(row[wanted.seed])
        rows.append(ours)
    source = wanted._asdict() | {"sha256": sha256_of(path)}
    commit = re.search(r"/snapshots/([0-9a-f]{40})/", str(path))
    if commit:
        source["revision"] = commit[1]
    name = wanted.name or Path(wanted.file).stem
    return Table(Path(f"{name}.csv"), list(columns), rows, source)


def _fetch(wanted: PromptSet) -> Path:
    """Return the file in huggingface_hub's cache. Raises UserError."""
    from huggingface_hub import errors, hf_hub_download

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # no line for each attempt
    revision = wanted.revision or None
    try:
        return Path(
            hf_hub_download(wanted.repository, wanted.file, repo_type="dataset", revision=revision)
        )
    except errors.GatedRepoError:
        page = f"huggingface.co/datasets/{wanted.repository}"
        raise UserError(f"accept the terms on {page}, then set HF_TOKEN") from None
    except errors.LocalEntryNotFoundError:
        why = "the Hugging Face Hub cannot be reached, and the file is not in its cache"
    except (errors.HfHubHTTPError, errors.HFValidationError, OSError) as error:
        why = clean(str(error))[:200]
    raise UserError(f"{wanted.file} of {wanted.repository} cannot be downloaded: {why}")
