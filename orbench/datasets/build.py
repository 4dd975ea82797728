"""Builds the datasets; moderator/build_dataset.py describes the outputs and the flags."""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from orbench.base.messages import UserError, say
from orbench.base.prompts import seed_id_of
from orbench.base.records import is_scripted, read_record
from orbench.base.tables import make_folder, read_csv, write_csv
from orbench.base.words import OVERALL, category_of
from orbench.datasets import audit, card
from orbench.datasets.diversity import quality_lines
from orbench.datasets.moderated import SAFE_SET, Prompt, join_lines, read_moderated
from orbench.datasets.selection import DATASETS, Chosen, choose

BUILT_BY = "build_dataset"  # in run records
ADDED = ("second_chance", "source_file")
DROPPED = ("prompt", "category", "is_toxic", "reason", "resembles")


def build(args: argparse.Namespace) -> Path:
    """Read, choose, write; return the path of the safe set. Raises UserError and OSError."""
    folder: Path = args.output_dir
    _check_outputs(folder)
    prompts = read_moderated(args.moderated_files, refusals_count=args.refusals_count)
    public = [row["prompt"] for path in args.exclude for row in read_csv(path, ["prompt"]).rows]
    chosen = choose(prompts, args.similarity, public, args.toxic_sample, args.seed)
    # Before anything is written: a missing package must not leave half of the work.
    quality = list(quality_lines(prompts, args.seed)) if args.diversity else []
    make_folder(folder)
    _write_csvs(folder, prompts, chosen)
    hashes, settings = [], {name: str(value) for name, value in vars(args).items()}
    for name, rows in chosen.items():
        path = folder / f"{name}.csv"
        inputs = args.moderated_files
        hashes.append(card.write_dataset_record(path, BUILT_BY, rows, inputs, parameters=settings))
    counts = [*_category_counts(chosen), ("prompt set hash", *hashes)]
    history = list(_history(prompts, args))
    card.write_card(folder, counts, history, args.license)
    for line in [*history, *card.table_lines(counts), *quality]:
        say(line)
    if args.audit_sample:
        kept = [one.row for one in prompts if not one.reason]
        audit.write_sheet(folder / "audit_sheet.csv", kept, args.audit_sample, args.seed)
    return folder / f"{SAFE_SET}.csv"


def _check_outputs(folder: Path) -> None:
    """Raise UserError for a file of other origin in the place of an output."""
    if (folder / card.CARD).exists() and not card.has_card(folder):
        raise UserError(f"{folder / card.CARD} is no card of ours and is kept; name another folder")
    for name in DATASETS:
        card.check_ours(folder / f"{name}.csv", BUILT_BY)


def _write_csvs(folder: Path, prompts: Sequence[Prompt], chosen: Chosen) -> None:
    """Write the datasets, what is known about their prompts, and what was dropped."""
    columns: dict[str, None] = {}
    for prompt in prompts:
        columns |= dict.fromkeys(prompt.row)
        prompt.row["seed_id"] = seed_id_of(prompt.row)
        prompt.row["second_chance"] = str(prompt.second_chance)
        prompt.row["source_file"] = prompt.source
    seeded = any(prompt.row["seed_id"] for prompt in prompts)
    first = ["prompt", "category", *(["seed_id"] if seeded else [])]
    every = list(dict.fromkeys([*first, *columns, *ADDED]))
    for name, kept in chosen.items():
        write_csv(folder / f"{name}_provenance.csv", every, kept)
        write_csv(folder / f"{name}.csv", first, kept)
    gone = (one for one in prompts if one.reason)
    rows = (one.row | {"reason": one.reason, "resembles": one.resembles} for one in gone)
    write_csv(folder / "or-bench-dropped.csv", DROPPED, rows)


def _category_counts(chosen: Chosen) -> Iterator[Sequence[str]]:
    """How many prompts of each category are in each dataset; head first, all last."""
    counts = [Counter(map(category_of, rows)) for rows in chosen.values()]
    yield "category", *chosen
    for category in sorted(set().union(*counts)):
        yield category, *(f"{count[category]:,}" for count in counts)
    yield OVERALL, *(f"{count.total():,}" for count in counts)


def _history(prompts: Sequence[Prompt], args: argparse.Namespace) -> Iterator[str]:
    """What became of the rows, for the card and the terminal."""
    yield from join_lines(prompts)
    dropped = Counter((one.side or "all", one.reason) for one in prompts if one.reason)
    for (side, reason), n in sorted(dropped.items()):
        yield f"dropped from {side}, {reason}: {n:,}"
    public = ", ".join(path.name for path in args.exclude) or "none"
    yield f"similarity {args.similarity:g}; public sets: {public}; random seed {args.seed}"
    records = [read_record(path) for path in args.moderated_files]
    judges = {str(one.get("asked")) for record in records for one in record.get("models", ())}
    yield f"judges: {', '.join(sorted(judges)) or 'not recorded'}"
    if any(map(is_scripted, records)):
        yield "replies of the offline scripted model: these datasets measure nothing"
