"""A stage's input: a file, a named set, or a file or split of the Hugging Face Hub; and samples.

    --input_file=or-bench-hard-1k
    --input_file="hf://datasets/OWNER/NAME?config=C&split=S" --prompt_column=question

The named sets are in prompt_sets.toml, addresses of the Hub in hub.py. Of what is on the Hub, the
stage sees the columns prompt and, if they are there, category, tier, seed_id, messages and tools.
Where responses are read, the named sets are those with people's labels: the columns are prompt,
response, label and category, the name of the set.
"""

import hashlib
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from orbench.base.grouping import grouped
from orbench.base.messages import UserError, did_you_mean, one_line, without_query
from orbench.base.prompts import (
    MESSAGES,
    TOOLS,
    asked_in,
    ids_of,
    prompt_id,
    prompt_id_of,
    shown_question,
)
from orbench.base.tables import Table, read_csv, sha256_of
from orbench.base.toml_files import toml_beside
from orbench.base.words import SIDES, Json, Row, Rows, Texts, Words
from orbench.stages.hub import PromptSet, fetch, fetch_from_github, prompt_set_at

SideIds = dict[str, set[str]]  # side -> the ids of its prompts

COLUMNS = ("prompt", "category")  # that a flag can name
PROMPT_SETS = {name: PromptSet(**one, name=name) for name, one in toml_beside(__file__).items()}
LABELED_SETS = toml_beside(__file__, "labeled_sets.toml")
LABELED = "labeled-responses"  # all of them
HINT = (
    "; CSV (also with semicolons or tabs), JSON lines and parquet files are read; "
    "--prompt_column and --category_column name other columns"
)


def read_input(name: str, needed: Words, args: Namespace) -> Table:
    """Return the rows that an input flag names, after --limit and --shuffle. Raises UserError."""
    given = {}  # our name of a column -> the user's
    for column in COLUMNS:
        theirs = getattr(args, f"{column}_column", "")
        if theirs:
            given[column] = theirs
    sets = [LABELED, *LABELED_SETS] if "response" in needed else [*PROMPT_SETS]
    if name.startswith("hf://"):
        table = _of_set(prompt_set_at(name, given))
    elif name not in sets or Path(name).exists():
        hint = HINT if hasattr(args, "prompt_column") else ""
        table = _of_file(name, needed, given, hint, sets)
    elif name in PROMPT_SETS:
        table = _of_set(PROMPT_SETS[name])
    else:
        table = _labeled(name)
    total = len(table.rows)
    if args.shuffle is not None:
        if args.limit is None:
            raise UserError("--shuffle RANDOM_SEED needs --limit N")
        table.rows = stratified_sample(table.rows, args.limit, args.shuffle)
    else:
        table.rows = table.rows[: args.limit]  # all without --limit
    if len(table.rows) < total and "response" not in needed:  # tables say `40 of 150`
        table.source["rows"] = table.source.get("rows") or total
    return table


def _of_file(name: str, needed: Words, given: Texts, hint: str, sets: Words) -> Table:
    """Return the rows of a file, under our names. sets: known names. Raises UserError."""
    if "://" in name:  # it may hold a token
        raise UserError(f"{without_query(name)} is no file here; download it first")
    if not (Path(name).exists() or "." in name or "/" in name):
        raise UserError(
            f"{name}: no such file or prompt set; "
            f"the sets are {', '.join(sets)}{did_you_mean(name, sets)}"
        )
    columns = [given.get(column, column) for column in dict.fromkeys([*needed, *given])]
    table = read_csv(name, columns, hint=hint)
    for ours, theirs in given.items():
        if ours == theirs:
            continue
        taken = MESSAGES if ours == "prompt" and MESSAGES in table.columns else ours
        if taken in table.columns:
            raise UserError(
                f"{table.path} has the columns {taken!r} and {theirs!r}; "
                f"drop --{ours}_column, or rename {taken!r}"
            )
        table.columns.append(ours)
        table.rows = [row | {ours: row[theirs]} for row in table.rows]
    return table


def prompts_of(names: Words) -> Words:
    """Return the prompts of CSV files and named sets. Raises UserError."""
    whole = Namespace(limit=None, shuffle=None)
    prompts = []
    for name in names:
        prompts += [row["prompt"] for row in read_input(name, ["prompt"], whole).rows]
    return prompts


def check_sides(prompts: Texts, args: Namespace) -> SideIds:
    """Return the ids of each side's prompts. prompts: side -> what an input flag names, as for
    `read_input`. Raises UserError for a set of the other side, an empty one, or a prompt on both
    sides.
    """
    ids = {}
    of_other_side = set()
    for side, name in prompts.items():
        named = PROMPT_SETS.get(name)
        if named and named.side != side:
            raise UserError(f"{name} holds {SIDES[named.side].prompts}: it is on the wrong side")
        rows = read_input(name, ["prompt"], args).rows
        if not rows:
            raise UserError(f"{without_query(name)} holds no prompts, or --limit is 0")
        for row in rows:
            if row["prompt"].strip() and prompt_id_of(row) in of_other_side:
                raise UserError(
                    f"on both sides, remove it from one: {one_line(shown_question(row))}"
                )
        ids[side] = ids_of(rows)
        of_other_side |= ids[side]
    return ids


def stratified_sample(rows: Rows, limit: int, seed: int) -> list[Row]:
    """Return `limit` rows, proportional by category, in file order.

    They depend on seed and prompts alone, and a larger sample contains a smaller one: the r-th of a
    category's m rows, by a seeded hash, stands at (r + 1/2) / m, and the first by place are taken.
    """
    hashes = [_hash_of(row, seed) for row in rows]
    numbers = sorted(range(len(rows)), key=hashes.__getitem__)
    places = {}
    categories = grouped(numbers, lambda number: rows[number].get("category", ""))
    for category in categories.values():
        for rank, number in enumerate(category):
            places[number] = (rank + 0.5) / len(category)
    numbers.sort(key=places.__getitem__)
    return [rows[number] for number in sorted(numbers[:limit])]


def _hash_of(row: Row, seed: int) -> bytes:
    text = asked_in(row) if "prompt" in row else "\0".join(row.values())
    return hashlib.sha256(f"{seed}\0{text}".encode()).digest()


def _labeled(name: str) -> Table:
    """Return the responses of a labeled set, or of all. Raises UserError, OSError."""
    sets = LABELED_SETS if name == LABELED else {name: LABELED_SETS[name]}
    rows: list[Row] = []
    for one, entry in sets.items():
        for path in fetch_from_github(entry["commit"], entry["files"]):
            rows += _responses_in(path, entry, one)
    columns = ["prompt", "response", "label", "category"]
    return Table(Path(f"{name}.csv"), columns, rows, {"name": name, "sets": sets})


def _responses_in(path: Path, entry: Json, name: str) -> Iterator[Row]:
    """Yield the responses in a file of a set that have a label of ours."""
    columns = entry["columns"]
    for row in read_csv(path, columns.values()).rows:
        cells = {ours: row[theirs] for ours, theirs in columns.items()} | {"category": name}
        cells["label"] = entry["labels"].get(cells["label"], entry["other_labels"])
        if cells["label"]:
            yield cells


def _of_set(wanted: PromptSet) -> Table:
    """Return the rows of what is on the Hub that belong to a set. Raises UserError."""
    columns = {"prompt": wanted.prompt, "category": wanted.category, "tier": "tier"}
    columns["seed_id"] = wanted.seed or "seed_id"
    if wanted.prompt == "prompt":
        columns |= {MESSAGES: MESSAGES, TOOLS: TOOLS}
    folder, paths = fetch(wanted)
    rows = []
    for path in paths:
        table = read_csv(path, [wanted.prompt], hint=HINT)
        columns = {ours: theirs for ours, theirs in columns.items() if theirs in table.columns}
        for row in table.rows:
            if wanted.only.items() <= row.items():
                rows.append({ours: row[theirs] for ours, theirs in columns.items()})
    if wanted.seed:
        for row in rows:
            row["seed_id"] = prompt_id(row["seed_id"])
    files = {path.relative_to(folder).as_posix(): sha256_of(path) for path in paths}
    source = wanted._asdict() | {"revision": folder.name, "files": files}
    return Table(Path(f"{wanted.name}.csv"), list(columns), rows, source)
