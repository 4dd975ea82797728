"""Builds the datasets that moderator/build_dataset.py describes."""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from orbench.base.messages import UserError, say
from orbench.base.prompts import prompt_id, seed_id_of
from orbench.base.records import is_scripted, read_record
from orbench.base.tables import beside, make_folder, write_csv
from orbench.base.words import OVERALL, Row, category_of
from orbench.datasets import audit, card
from orbench.datasets.moderated import SAFE_SET, TOXIC_SET, Prompt, join_lines, read_moderated
from orbench.datasets.near_duplicates import near_duplicates
from orbench.stages.prompt_sets import prompts_of

BUILT_BY = "build_dataset"  # in run records

Chosen = Mapping[str, Sequence[Row]]  # dataset -> its rows, in input order


def build(args: argparse.Namespace) -> Path:
    """Return the path of the safe set. Raises UserError and OSError."""
    folder: Path = args.output_dir
    if (folder / card.CARD).exists() and not card.has_card(folder):
        raise UserError(f"{folder / card.CARD} was not written by this tool; name another folder")
    for name in args.names or card.DATASETS:
        card.check_ours(folder / f"{name}.csv", BUILT_BY)
    prompts = read_moderated(args.moderated_files, refusals_count=args.refusals_count)
    drop_near_duplicates(prompts, prompts_of(args.exclude), args.similarity)
    kept = [one for one in prompts if not one.reason]
    safe = [one.row for one in kept if one.side == SAFE_SET]
    toxic = [one.row for one in kept if one.side == TOXIC_SET]
    drawn = audit.even_sample(list(map(category_of, toxic)), args.toxic_sample, args.seed)
    found = (safe, toxic, [toxic[place] for place in sorted(drawn)])
    chosen = dict(zip(args.names or card.DATASETS, found, strict=False))  # two names: no sample
    make_folder(folder)
    hashes = _write_csvs(prompts, chosen, args)
    counts = [*_category_counts(chosen), ("prompt set hash", *hashes)]
    history = list(_history(prompts, args))
    card.write_card(folder, counts, history, args.license)
    for line in [*history, *card.table_lines(counts)]:
        say(line)
    if args.audit_sample:
        rows = [one.row for one in kept]
        audit.write_sheets(folder / "audit_sheet.csv", rows, args.audit_sample)
    return folder / f"{next(iter(chosen))}.csv"


def drop_near_duplicates(prompts: Sequence[Prompt], public: Sequence[str], least: float) -> None:
    """Give near-duplicates their reason and resembles. public: prompts that models may know."""
    # The toxic side goes first: a safe prompt that nearly equals a toxic one is dropped.
    judged = [one for side in (TOXIC_SET, SAFE_SET) for one in prompts if one.side == side]
    texts = [*public, *(one.row["prompt"] for one in judged)]
    sides = ["public sets"] * len(public) + [one.side for one in judged]
    for place, earlier in near_duplicates(texts, sides, least).items():
        if place >= len(public):
            prompt = judged[place - len(public)]
            prompt.reason = f"near-duplicate in {sides[earlier]}"
            prompt.resembles = texts[earlier]


def _write_csvs(
    prompts: Sequence[Prompt], chosen: Chosen, args: argparse.Namespace
) -> Iterator[str]:
    """Write the CSVs and records; yield prompt set hashes."""
    gone = []
    for one in prompts:
        own = prompt_id(one.row["prompt"]) if args.names else ""  # the toxic ones are the seeds
        one.row["seed_id"] = seed_id_of(one.row) or own
        one.row["second_chance"] = str(one.second_chance)
        if one.reason:
            gone.append(one.row | {"reason": one.reason, "resembles": one.resembles})
    columns = ("prompt", "category", "is_toxic", "reason", "resembles")
    write_csv(args.output_dir / "or-bench-dropped.csv", columns, gone)
    first = ["prompt", "category"]
    first += ["seed_id"] if any(one.row["seed_id"] for one in prompts) else []
    every = list(dict.fromkeys([*first, *(column for one in prompts for column in one.row)]))
    for name, kept in chosen.items():
        path = args.output_dir / f"{name}.csv"
        write_csv(beside(path, "_provenance.csv"), every, kept)
        write_csv(path, first, kept)
        # Refusals select the safe prompts of a release alone.
        sources = {row["source_file"] for row in kept}
        inputs = [file for file in args.moderated_files if not args.names or file.name in sources]
        yield card.write_dataset_record(path, kept, inputs, args, stage=BUILT_BY)


def _category_counts(chosen: Chosen) -> Iterator[Sequence[str]]:
    """Rows of a table, head first."""
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
    public = ", ".join(Path(name).name for name in args.exclude) or "none"
    yield f"similarity {args.similarity:g}; public sets: {public}; random seed {args.seed}"
    records = [read_record(path) for path in args.moderated_files]
    judges = {str(one.get("asked")) for record in records for one in record.get("models", ())}
    yield f"judges: {', '.join(sorted(judges)) or 'not recorded'}"
    if any(map(is_scripted, records)):
        yield "replies of the offline scripted model: these datasets measure nothing"
