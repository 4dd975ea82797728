"""Builds the datasets that moderator/build_dataset.py describes."""

from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from os.path import basename
from pathlib import Path

from orbench.base.messages import UserError, say
from orbench.base.near_duplicates import near_duplicates
from orbench.base.prompts import prompt_id, seed_id_of
from orbench.base.records import is_scripted, read_record
from orbench.base.tables import (
    beside,
    check_outputs,
    columns_in,
    file_name_part,
    make_folder,
    write_csv,
)
from orbench.base.words import Lines, Row, Words, category_of
from orbench.datasets.audit import even_sample
from orbench.datasets.card import (
    BUILT_BY,
    CARD,
    DATASETS,
    EVAL,
    Chosen,
    check_ours,
    columns_of,
    has_card,
    table_of,
    write_card,
    write_dataset,
)
from orbench.datasets.lineage import CONTRADICTED, HIT
from orbench.datasets.moderated import SAFE_SET, TOXIC_SET, Prompt, join_lines, read_moderated

DROPPED = "or-bench-dropped.csv"
PROVENANCE = "_provenance.csv"  # beside each dataset


def build(args: Namespace, public: Words) -> Path:
    """Build the datasets; return the path of the safe set. public: the prompts of --exclude.

    Raises UserError and OSError.
    """
    folder: Path = args.output_dir
    names = args.names or DATASETS
    _check_outputs(args, names)
    prompts = read_moderated(args.moderated_files, refusals_count=args.refusals_count)
    drop_near_duplicates(prompts, public, args.similarity)
    sides: dict[str, list[Row]] = {SAFE_SET: [], TOXIC_SET: []}
    for prompt in prompts:
        if not prompt.reason:
            sides[prompt.side].append(prompt.row)
    toxic = sides[TOXIC_SET]
    drawn = even_sample([*map(category_of, toxic)], args.toxic_sample, args.random_seed)
    sample = [toxic[place] for place in sorted(drawn)]
    chosen = dict(zip(names, (sides[SAFE_SET], toxic, sample), strict=False))  # or no sample
    make_folder(folder)
    hashes = _write_csvs(prompts, chosen, args)
    table = table_of(chosen, hashes)
    history = [*_history(prompts, args)]
    write_card(folder, names[0], table, history, args.license, hashes)
    for line in [*history, *table]:
        say(line)
    return folder / f"{names[0]}.csv"


def _check_outputs(args: Namespace, names: Words) -> None:
    """Raise UserError if a file would be replaced that is an input or another tool's."""
    folder = args.output_dir
    csvs = [folder / f"{name}.csv" for name in names]
    others = [folder / name for name in (CARD, EVAL, DROPPED)]
    for csv in csvs:
        check_ours(csv, BUILT_BY)
        others.append(beside(csv, PROVENANCE))
    outputs = {*csvs, *others}
    if len(outputs) < len(csvs) + len(others) or [*names] != [*map(file_name_part, names)]:
        raise UserError("--names takes two names of files that differ, without .csv and folders")
    if not (has_card(folder) or any(map(Path.exists, csvs))):
        for path in filter(Path.exists, others):
            raise UserError(f"{path} was not written by this tool; name another folder")
    check_outputs(outputs, [*args.moderated_files, *map(Path, args.exclude)])


def drop_near_duplicates(prompts: Sequence[Prompt], public: Words, least: float) -> None:
    """Give near-duplicates their reason and resembles. public: prompts that models may know."""
    # The toxic side goes first: a safe prompt that nearly equals a toxic one is dropped.
    sides = {"public sets": [*public], TOXIC_SET: [], SAFE_SET: []}
    judged = [prompt for prompt in prompts if not prompt.reason]
    for prompt in judged:
        sides[prompt.side].append(prompt.row["prompt"])
    resembled = near_duplicates(sides, least)
    for prompt in judged:
        if earlier := resembled.get(prompt.row["prompt"]):
            prompt.reason = f"near-duplicate in {earlier.side}"
            prompt.resembles = earlier.text


def _write_csvs(prompts: Sequence[Prompt], chosen: Chosen, args: Namespace) -> Words:
    """Write the CSVs and records; return the prompt set hashes."""
    folder = args.output_dir
    dropped = []
    for prompt in prompts:
        row = prompt.row
        row["seed_id"] = seed_id_of(row)
        if args.names and not row["seed_id"]:
            row["seed_id"] = prompt_id(row["prompt"])  # the toxic ones are the seeds
        row["second_chance"] = str(prompt.second_chance)
        if prompt.reason:
            dropped.append(row | {"reason": prompt.reason, "resembles": prompt.resembles})
    write_csv(folder / DROPPED, ("prompt", "category", "is_toxic", "reason", "resembles"), dropped)
    every = [prompt.row for prompt in prompts]
    columns = columns_of(every)
    all_columns = columns_in(every, columns)
    hashes = []
    for name, rows in chosen.items():
        csv = folder / f"{name}.csv"
        write_csv(beside(csv, PROVENANCE), all_columns, rows)
        inputs = args.moderated_files
        if args.names:  # refusals select the safe prompts of a release alone
            sources = {row["source_file"] for row in rows}
            inputs = [file for file in inputs if file.name in sources]
        hashes.append(write_dataset(csv, columns, rows, inputs, args, BUILT_BY))
    return hashes


def _history(prompts: Sequence[Prompt], args: Namespace) -> Lines:
    """Yield what became of the rows, for the card and the terminal."""
    yield from join_lines(prompts)
    dropped = Counter[tuple[str, str]]()
    for prompt in prompts:
        if prompt.reason:
            dropped[prompt.side or "all", prompt.reason] += 1
    for (side, reason), n in sorted(dropped.items()):
        yield f"dropped from {side}, {reason}: {n:,}"
    public = ", ".join(map(basename, args.exclude)) or "none"
    yield f"similarity {args.similarity:g}; public sets: {public}; random seed {args.random_seed}"
    records = [*map(read_record, args.moderated_files)]
    judges = set()
    confirmed = Counter[str]()
    for record in records:
        confirmed.update(record.get("confirmed", {}))
        for model in record.get("models", ()):
            judges.add(str(model.get("asked")))
    yield f"judges: {', '.join(sorted(judges)) or 'not recorded'}"
    if confirmed:
        yield (
            f"models outside the search confirmed {confirmed[HIT]:,} of {confirmed.total():,} hits "
            f"and contradicted {confirmed[CONTRADICTED]:,}"
        )
    if any(map(is_scripted, records)):
        yield "replies of the offline scripted model: these datasets measure nothing"
