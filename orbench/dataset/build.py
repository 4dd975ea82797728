"""Builds the datasets: reads moderated files, chooses, writes the CSVs, their records and the card.

All outputs, and what the parameters mean, are described in moderator/build_dataset.py.
"""

import argparse
import itertools
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from orbench import record
from orbench.agreement import Agreement
from orbench.columns import optional_flag
from orbench.dataset import audit, moderated
from orbench.dataset import card as dataset_card
from orbench.dataset.card import Card, Config, configs
from orbench.dataset.moderated import JUDGED, SAFE, TOXIC, Judged
from orbench.dataset.selection import DATASETS, category_counts, choice_lines, choose
from orbench.stage import make_folder
from orbench.table import (
    SEED_COLUMNS,
    Row,
    Table,
    Writer,
    prompt_set_hash,
    seed_id_of,
    storable,
    write_text,
)
from orbench.terminal import UserError, counted, say, table_lines

FIRST, LAST = ("prompt", "category"), ("second_chance", "source_file")  # of the provenance
DROPPED_COLUMNS = (*FIRST, "is_toxic", "reason", "resembles")


class Votes:
    """The single votes of an ensemble's judges, gathered while the deciding rows go by."""

    def __init__(self, columns: Iterable[str], prefix: str) -> None:
        """columns: of all moderated files. prefix: of the columns with a judge's vote."""
        votes = re.compile(f"{prefix}(.+)")
        self.columns = {found[1]: found[0] for c in columns if (found := votes.fullmatch(c))}
        self.agreement = Agreement(list(self.columns))

    def add(self, row: Row, where: str) -> None:
        """Count a row. Raises UserError for a vote that is none."""
        self.agreement.add({j: optional_flag(row, c, where) for j, c in self.columns.items()})

    def lines(self, judged: str) -> list[str]:
        """How far the judges agree; nothing without votes. judged: what they judged."""
        if not self.columns or not self.agreement.patterns:
            return []
        return [f"judges of the {judged}:", *self.agreement.lines()]


def build(args: argparse.Namespace) -> Path:
    """Read, choose, write. Gives the path of the safe set. Raises UserError, OSError."""
    folder: Path = args.output_dir
    if not dataset_card.is_ours(folder):
        raise UserError(
            f"{folder / dataset_card.NAME} was not written by this script and is kept; give "
            "another --output_dir"
        )
    hard = configs(folder, {dataset_card.HARD_CONFIG: dataset_card.HARD_FILE})
    tables, prompts = moderated.read_moderated(
        args.moderated_files, refusals_count=args.refusals_count
    )
    make_folder(folder)
    say(f"{counted(len(prompts), 'prompt')}; choosing ...")
    public = [row["prompt"] for path in args.exclude for row in Table(path, ("prompt",))]
    choose(prompts, args.similarity, args.toxic_sample, args.seed, public)
    # Before anything is written: a missing package must not leave half of the work.
    quality = list(_quality(tables, prompts, args.seed)) if args.diversity else []
    votes, audited = _write(tables, prompts, args)
    card = _card(tables, prompts, votes, hard, args)
    _write_records(card, tables, args)
    write_text(folder / dataset_card.NAME, dataset_card.text(card))
    for line in [*_summary(card), *quality]:
        say(line)
    if args.audit_sample:
        _write_audit(audited, votes["prompts"].agreement.raters, args)
    return folder / f"{SAFE}.csv"


def _write(
    tables: Sequence[Table], prompts: pd.DataFrame, args: argparse.Namespace
) -> tuple[dict[str, Votes], list[Row]]:
    """Write the CSVs. Gives the votes on the prompts and on the answers, and the rows to audit.

    The texts of judges and answers go from file to file and are never held.
    """
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    votes = {
        "prompts": Votes(columns, "is_toxic_"),
        "answers": Votes(columns, f"{moderated.ANSWER_VERDICT}_"),
    }
    sample, audited = _audit_sample(prompts, args), list[Row]()
    chosen = prompts[list(DATASETS)].itertuples(index=False, name=None)
    folder: Path = args.output_dir
    seeded = [] if set(SEED_COLUMNS).isdisjoint(columns) else ["seed_id"]
    first = [*FIRST, *seeded]
    every = [*first, *(column for column in columns if column not in (*first, *LAST)), *LAST]
    with (
        Writer({name: folder / f"{name}.csv" for name in DATASETS}, first) as plain,
        Writer({name: folder / f"{name}_provenance.csv" for name in DATASETS}, every) as full,
        Writer({"": folder / "or-bench-dropped.csv"}, DROPPED_COLUMNS) as gone,
    ):
        for prompt, datasets, (row, path, where) in zip(
            prompts.itertuples(), chosen, moderated.deciding_rows(tables, prompts), strict=True
        ):
            votes["prompts"].add(row, where)
            if prompt.answer:
                votes["answers"].add(row, where)
            row = _provenance(row, path, prompt)
            for name in itertools.compress(DATASETS, datasets):
                plain.write(row, name)
                full.write(row, name)
            if prompt.reason:
                gone.write({**row, "reason": prompt.reason, "resembles": prompt.resembles})
            if prompt.Index in sample:
                audited.append({**row, **_verdicts(prompt)})
        for writer in (full, gone, plain):
            writer.commit()
    return votes, audited


def _provenance(row: Row, path: Path, prompt: Any) -> Row:
    """A deciding row, and where it came from."""
    cells = {column: storable(cell) for column, cell in row.items()}
    return cells | {
        "seed_id": seed_id_of(row),
        "second_chance": str(prompt.second_chance),
        "source_file": storable(path.name),
    }


def _verdicts(prompt: Any) -> Row:
    """What the audit compares people with, besides the single votes."""
    return {
        "is_toxic": str(prompt.toxic == Judged.TOXIC),
        audit.IN_TOXIC_SET: str(prompt.side == TOXIC),
    }


def _card(
    tables: Sequence[Table],
    prompts: pd.DataFrame,
    votes: dict[str, Votes],
    hard: Sequence[Config],
    args: argparse.Namespace,
) -> Card:
    """The dataset card of the CSVs as they are written. hard: the hard set beside them."""
    records = [record.read(table.path) for table in tables]
    models = moderated.models_of(tables, records)
    return Card(
        license=args.license,
        counts=category_counts(prompts),
        hashes={name: prompt_set_hash(prompts.loc[prompts[name], "text"]) for name in DATASETS},
        # A single judge has no columns of its own.
        judges=list(votes["prompts"].columns) or [m for task, m in models if task == JUDGED],
        models=models,
        agreement=[line for judged, found in votes.items() for line in found.lines(judged)],
        history=[
            *moderated.join_lines(prompts, tables, refusals_count=args.refusals_count),
            *choice_lines(prompts, args.similarity, args.toxic_sample, args.seed, args.exclude),
            *moderated.record_lines(records),
        ],
        date=datetime.now(UTC).date().isoformat(),
        scripted=any(map(record.is_scripted, records)),
        configs=[*configs(args.output_dir, {name: f"{name}.csv" for name in DATASETS}), *hard],
    )


def _write_records(card: Card, tables: Sequence[Table], args: argparse.Namespace) -> None:
    """The run record of each dataset."""
    parameters = ("similarity", "seed", "toxic_sample", "refusals_count")
    more = {
        "inputs": [{"path": str(t.path), "sha256": t.sha256, "rows": t.n} for t in tables],
        "models": [{"asked": model, "task": task} for task, model in card.models],
        "scripted": card.scripted,
        "parameters": {parameter: getattr(args, parameter) for parameter in parameters}
        | {"exclude": list(map(str, args.exclude))},
    }
    for name, n in card.counts.loc["all"].items():
        path, prompt_set = args.output_dir / f"{name}.csv", card.hashes[name]
        dataset_card.write_dataset_record(path, "build_dataset", prompt_set, int(n), **more)


def _summary(card: Card) -> Iterator[str]:
    """What is on the card, for the terminal."""
    yield from card.history
    counts = card.counts.map("{:,}".format).rename_axis(index=None, columns="category")
    yield from table_lines(counts)
    yield from card.agreement
    if card.scripted:
        yield "answers of the offline scripted model: these datasets measure nothing"


def _quality(tables: Sequence[Table], prompts: pd.DataFrame, seed: int) -> Iterator[str]:
    """The quality of the safe and of the toxic set, per category."""
    from orbench.dataset.diversity import quality_lines  # sacrebleu

    rewrites = any("toxic_seed" in table.columns for table in tables)
    for side in (SAFE, TOXIC):
        members = prompts[prompts["side"] == side]
        yield from quality_lines(f"quality of {side}", members, rewrites=rewrites, seed=seed)


def _audit_sample(prompts: pd.DataFrame, args: argparse.Namespace) -> set[str]:
    """A plain random sample of all prompts kept, so that shares found in it hold for all."""
    kept = list(prompts.index[prompts["reason"] == ""])
    return set(random.Random(args.seed).sample(kept, min(args.audit_sample, len(kept))))


def _write_audit(rows: Sequence[Row], judges: Sequence[str], args: argparse.Namespace) -> None:
    """Write the sheet for people, unless there is one: it may hold their work."""
    sheet, hidden = args.output_dir / audit.SHEET_FILE, args.output_dir / audit.VOTES_FILE
    if sheet.exists() or hidden.exists():
        say(f"{sheet} and {hidden.name} stay as they are; move them away to draw a new sample")
        return
    audit.write_sheet_and_votes(args.output_dir, rows, judges, args.seed)
    if len(rows) < args.audit_sample:
        say(f"the audit sheet: {counted(len(rows), 'prompt')}, all there are")
    say(
        f"for people: a copy of {sheet} each, toxic or safe in the column label; the votes are "
        f"in {hidden.name}; --audit_labels reads the copies back"
    )
