"""Build the data sets from moderated prompts: the safe ones, the toxic ones, a sample of those.

    python build_dataset.py --moderated_files p_toxic_moderation_gpt4_prompt.csv \\
        p_non_toxic_moderation_gpt4_prompt.csv answers_moderation_merged_gpt4_response.csv
    python build_dataset.py --output_dir or-bench --audit_labels anna.csv ben.csv

Reads files of stage 3, merged or split, and of stage 3 with --column=response on stage 4's
answers to the toxic prompts (the second chance). Columns: prompt, category, is_toxic; where there
is_toxic_{judge}, response_is_toxic, is_rejected, answer_category, toxic_seed.

Writes to --output_dir, all in input order:
    or-bench-80k.csv        prompt, category: safe at once, or by the second chance
    or-bench-toxic-all.csv  prompt, category: the toxic prompts
    or-bench-toxic.csv      prompt, category: --toxic_sample of them, even over the categories
    ..._provenance.csv      of each: what else the moderated files say, second_chance, source_file
    or-bench-dropped.csv    prompt, category, is_toxic, reason, resembles: what was left out
    README.md               the data set card
    audit_sheet.csv, audit_votes.csv   with --audit_sample: id, prompt, label; the votes on them
    audit_agreement.csv     with --audit_labels: rater, against, where, n, agree, rate_percent,
                            low_percent, high_percent (Wilson, 95 %), cohen_kappa

Contradicting verdicts count as toxic. A toxic prompt comes back by an answer judged safe; a refusal
is no answer (see --refusals_count). Of near-duplicates the first is kept, and a safe prompt that
nearly equals a toxic one is dropped.
"""

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options, record
from orbench.agreement import Agreement
from orbench.options import UserError, say
from orbench.stage import make_folder
from orbench.table import Row, Table, Writer, prompt_set_hash, storable, write_text
from orbench.words import counted

if TYPE_CHECKING:
    from orbench.dataset.card import Card
    from orbench.dataset.moderated import Joined
    from orbench.dataset.selection import Chosen

# What imports numpy or more is imported in functions: --help answers in a blink.

PUBLISHED_TOXIC = 655  # rows of the published or-bench-toxic
LIBRARIES = ("numpy", "scipy", "datasketch", "sacrebleu")
JUDGE = re.compile(r"is_toxic_(.+)")  # the column of one judge of an ensemble ...
ANSWER_JUDGE = re.compile(r"response_is_toxic_(.+)")  # ... and of the answers' judges


class Votes(NamedTuple):
    """What the second reading of the moderated files gave."""

    prompts: Agreement  # of the judges of the prompts
    answers: Agreement  # of the judges of the answers
    audit: list[Row]  # the rows of the audit sample


def main(argv: Sequence[str]) -> int:
    args = parse(argv)
    try:
        path = read_audit(args) if args.audit_labels else build(args)
    except ModuleNotFoundError as error:
        if error.name not in LIBRARIES:
            raise
        raise UserError(
            f"the package {error.name} is not installed: pip install {error.name}"
        ) from None
    except OSError as error:
        raise UserError(f"{error.filename or args.output_dir}: {error.strerror}") from None
    print(path)
    return 0


# ---------------------------------------------------------------------------------- data sets


def build(args: argparse.Namespace) -> Path:
    """Read, choose, write. Gives the path of the safe set."""
    from orbench.dataset import card as dataset_card
    from orbench.dataset import moderated, selection

    folder: Path = args.output_dir
    tables = [Table(path, moderated.NEEDED) for path in each_once(args.moderated_files)]
    make_folder(folder)
    if not dataset_card.is_ours(folder):
        raise UserError(
            f"{folder / dataset_card.NAME} is no data set card of this script and stays; give "
            "another --output_dir"
        )
    hard = dataset_card.configs(folder, {dataset_card.HARD_CONFIG: dataset_card.HARD_FILE})
    records = [record.read(table.path) for table in tables]
    joined = moderated.read(tables, refusals_count=args.refusals_count)
    settings = (args.similarity, args.toxic_sample, args.seed)
    say(f"{counted(len(joined.prompts), 'prompt')}; choosing ...")
    chosen = selection.choose(joined, *settings)
    # Before anything is written: a missing package must not leave half of the work.
    quality = list(quality_lines(tables, joined, chosen, args.seed)) if args.diversity else []
    votes = write(tables, joined, chosen, args)

    members = {
        name: [prompt for i, prompt in enumerate(joined.prompts) if chosen.holds(name, i)]
        for name in selection.DATASETS
    }
    history = [
        *joined.lines(),
        *selection.lines(chosen, *settings),
        *moderated.record_lines(records),
    ]
    models = list(moderated.models_of(tables, records))
    card = dataset_card.Card(
        license=args.license,
        counts={name: Counter(p.category for p in found) for name, found in members.items()},
        hashes={name: prompt_set_hash(p.text for p in found) for name, found in members.items()},
        # A single judge has no columns of his own.
        judges=votes.prompts.raters or [m for task, m in models if task == moderated.JUDGED],
        models=models,
        agreement=list(agreement_lines(votes)),
        history=history,
        date=datetime.now(UTC).date().isoformat(),
        scripted=any(one.get("scripted") is True for one in records),
        configs=dataset_card.configs(folder, {name: f"{name}.csv" for name in members}) + hard,
    )
    for name in selection.DATASETS:
        record.write(folder / f"{name}.csv", record_of(name, card, tables, args))
    write_text(folder / dataset_card.NAME, dataset_card.text(card))
    for line in [*summary(card), *quality]:
        say(line)
    if args.audit_sample:
        write_audit(folder, votes, args)
    return folder / f"{selection.SAFE}.csv"


def each_once(paths: Sequence[Path]) -> Sequence[Path]:
    """The files given. Raises UserError for one given twice."""
    for path, times in Counter(path.resolve() for path in paths).items():
        if times > 1:
            raise UserError(f"{path} is given twice among --moderated_files")
    return paths


def write(
    tables: Sequence[Table], joined: "Joined", chosen: "Chosen", args: argparse.Namespace
) -> Votes:
    """Write the CSVs. The texts of judges and answers go from file to file and are never held."""
    from orbench.dataset.moderated import deciding_rows, flag
    from orbench.dataset.selection import DATASETS, TOXIC

    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    judges = {found[1]: column for column in columns if (found := JUDGE.fullmatch(column))}
    others = {found[1]: column for column in columns if (found := ANSWER_JUDGE.fullmatch(column))}
    votes = Votes(Agreement(list(judges)), Agreement(list(others)), [])
    audited = audit_sample(chosen, args)
    own = ("prompt", "category", "second_chance", "source_file")
    passed_on = [column for column in columns if column not in own]
    folder: Path = args.output_dir
    plain = Writer({name: folder / f"{name}.csv" for name in DATASETS}, own[:2])
    full = Writer(
        {name: folder / f"{name}_provenance.csv" for name in DATASETS},
        [*own[:2], *passed_on, *own[2:]],
    )
    gone = Writer(
        {"": folder / "or-bench-dropped.csv"},
        ("prompt", "category", "is_toxic", "reason", "resembles"),
    )
    try:
        for i, (prompt, row) in enumerate(deciding_rows(tables, joined.prompts)):
            path = tables[prompt.source[0]].path
            where = f"{path}, row {prompt.source[1] + 1}"
            votes.prompts.add({judge: flag(row, column, where) for judge, column in judges.items()})
            if prompt.answer:
                votes.answers.add({j: flag(row, column, where) for j, column in others.items()})
            row = {column: storable(cell) for column, cell in row.items()}
            row["second_chance"] = str(joined.second_chance(prompt))
            row["source_file"] = storable(path.name)
            for name in DATASETS:
                if chosen.holds(name, i):
                    plain.write(row, name)
                    full.write(row, name)
            if i in chosen.dropped:
                gone.write({**row, **chosen.dropped[i]._asdict()})
            if i in audited:
                wanted = ("prompt", "category", "second_chance", *judges.values())
                cells = {column: row.get(column, "") for column in wanted}
                cells["is_toxic"] = str(prompt.toxic)
                cells["in_toxic_set"] = str(chosen.side[i] == TOXIC)
                votes.audit.append(cells)
        for writer in (full, gone, plain):
            writer.commit()
    finally:
        for writer in (full, gone, plain):
            writer.discard()
    return votes


def agreement_lines(votes: Votes) -> Iterator[str]:
    """How far the judges agree: on the prompts, and on the answers."""
    for what, agreement in (("prompts", votes.prompts), ("answers", votes.answers)):
        if agreement.raters and agreement.patterns:
            yield f"judges of the {what}:"
            yield from agreement.lines()


def record_of(
    name: str, card: "Card", tables: Sequence[Table], args: argparse.Namespace
) -> record.Record:
    """The run record of one data set."""
    return {
        "stage": "build_dataset",
        "command": sys.argv,
        "inputs": [{"path": str(t.path), "sha256": t.sha256, "rows": t.n} for t in tables],
        "models": [{"asked": model, "task": task} for task, model in card.models],
        "scripted": card.scripted,
        "parameters": {
            "similarity": args.similarity,
            "seed": args.seed,
            "toxic_sample": args.toxic_sample,
            "refusals_count": args.refusals_count,
        },
        "prompt_set": card.hashes[name],
        "counts": {"done": sum(card.counts[name].values())},
        "complete": True,
        "end": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def summary(card: "Card") -> Iterator[str]:
    """What is on the card, for the terminal."""
    from orbench.dataset.selection import count_lines
    from orbench.table import clean

    found = sorted({category for count in card.counts.values() for category in count})
    yield from card.history
    yield from count_lines(card.counts, {name: clean(name) or "(none)" for name in found})
    yield from map(clean, card.agreement)
    if card.scripted:
        yield "answers of the offline scripted model: these data sets measure nothing"


def quality_lines(
    tables: Sequence[Table], joined: "Joined", chosen: "Chosen", seed: int
) -> Iterator[str]:
    """The quality of the safe and of the toxic set, per category."""
    from orbench.dataset import diversity
    from orbench.dataset.selection import SAFE, TOXIC
    from orbench.table import clean

    rewrites = any("toxic_seed" in table.columns for table in tables)
    for dataset, safe in ((SAFE, True), (TOXIC, False)):
        members: dict[str, list[str]] = {}
        exact, near = Counter[str](), Counter[str]()
        for i, prompt in enumerate(joined.prompts):
            if joined.is_safe(prompt) is safe:
                exact[prompt.category] += prompt.copies - 1
                near[prompt.category] += i in chosen.dropped
                members.setdefault(prompt.category, [])
                if i in chosen.side:
                    members[prompt.category].append(prompt.text)
        quality = [
            diversity.Quality(clean(c) or "(none)", members[c], exact[c], near[c], rewrites)
            for c in sorted(members)
        ]
        yield from diversity.lines(f"quality of {dataset}", quality, seed)


# ---------------------------------------------------------------------------------- people


def audit_sample(chosen: "Chosen", args: argparse.Namespace) -> set[int]:
    """A plain random sample of all prompts kept, so that shares found in it hold for all."""
    kept = sorted(chosen.side)
    return set(random.Random(args.seed).sample(kept, min(args.audit_sample, len(kept))))


def write_audit(folder: Path, votes: Votes, args: argparse.Namespace) -> None:
    """Write the sheet for people, unless there is one: it may hold their work."""
    from orbench.dataset import audit

    sheet, hidden = folder / audit.SHEET, folder / audit.VOTES
    if sheet.exists() or hidden.exists():
        say(f"{sheet} and {hidden.name} stay as they are; move them away to draw a new sample")
        return
    audit.write(folder, votes.audit, votes.prompts.raters, args.seed)
    if len(votes.audit) < args.audit_sample:
        say(f"the audit sheet: {counted(len(votes.audit), 'prompt')}, all there are")
    say(
        f"for people: a copy of {sheet} each, toxic or safe in the column label; the votes are "
        f"in {hidden.name}; --audit_labels reads the copies back"
    )


def read_audit(args: argparse.Namespace) -> Path:
    """Compare labelled sheets with each other and with the judges. Gives the result's path."""
    from orbench.dataset import audit

    rows, lines = audit.compare(args.output_dir, args.audit_labels)
    path: Path = args.output_dir / audit.RESULT
    writer = Writer({"": path}, audit.RESULT_COLUMNS)
    for row in rows:
        writer.write(row.cells())
    writer.commit()
    for line in lines:
        say(line)
    return path


# ---------------------------------------------------------------------------------- command line


def similarity(text: str) -> float:
    """An argparse type."""
    value = float(text)
    if not 0.5 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0.5 to 1")
    return value


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = options.Parser(__doc__ or "")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--moderated_files",
        nargs="+",
        type=options.input_path,
        metavar="FILE",
        help="CSVs of stage 3, see above",
    )
    what.add_argument(
        "--audit_labels",
        nargs="+",
        type=options.input_path,
        metavar="FILE",
        help="copies of the audit sheet, one a person: how far people and judges agree",
    )
    parser.add_argument(
        "--output_dir", type=Path, default=Path("or-bench"), help="default ./%(default)s"
    )
    parser.add_argument(
        "--toxic_sample",
        type=options.whole_number(0),
        default=PUBLISHED_TOXIC,
        metavar="N",
        help="prompts in or-bench-toxic.csv (default %(default)s, as published)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the samples and the shuffle (default %(default)s)"
    )
    parser.add_argument(
        "--similarity",
        type=similarity,
        default=0.8,
        metavar="SHARE",
        help="of 4-character pieces in common, from which on two prompts are near-duplicates: 0.5 "
        "to 1 (default %(default)s, where about one word of eighteen differs; 1: exact ones only)",
    )
    parser.add_argument(
        "--refusals_count",
        action="store_true",
        help="a refusal judged safe counts as a safe answer (default: it says nothing about the "
        "prompt, which stays toxic)",
    )
    parser.add_argument(
        "--license", default="unknown", help="for the card, e.g. cc-by-4.0 (default %(default)s)"
    )
    parser.add_argument(
        "--diversity",
        action="store_true",
        help="print lengths, duplicate rates, Self-BLEU and broken word rules per category",
    )
    parser.add_argument(
        "--audit_sample",
        type=options.whole_number(0),
        default=0,
        metavar="N",
        help="write a sheet of N prompts for people to label",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(options.run_script(main))
