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
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options, record
from orbench.agreement import Agreement
from orbench.dataset import card as dataset_card
from orbench.dataset import moderated, selection
from orbench.dataset.card import Card, Config
from orbench.dataset.moderated import Joined, Prompt, flag
from orbench.dataset.selection import DATASETS, SAFE, TOXIC, Chosen
from orbench.stage import make_folder
from orbench.table import Row, Table, Writer, prompt_set_hash, storable, write_text
from orbench.terminal import UserError, clean, counted, run_script, say

# What imports numpy or more is imported in functions: --help answers in a blink.

PUBLISHED_TOXIC = 655  # rows of the published or-bench-toxic
JUDGE = re.compile(r"is_toxic_(.+)")  # the column of one judge of an ensemble ...
ANSWER_JUDGE = re.compile(r"response_is_toxic_(.+)")  # ... and of the answers' judges


class Votes:
    """The single votes behind the verdicts, gathered while the deciding rows go by.

    prompts, answers: the agreement of the judges of either. audit: the rows of the audit sample.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        """columns: of all moderated files."""
        self.columns = {m[1]: column for column in columns if (m := JUDGE.fullmatch(column))}
        self._answer_columns = {m[1]: c for c in columns if (m := ANSWER_JUDGE.fullmatch(c))}
        self.prompts = Agreement(list(self.columns))
        self.answers = Agreement(list(self._answer_columns))
        self.audit: list[Row] = []

    def add(self, row: Row, prompt: Prompt, where: str) -> None:
        """Count a row. Raises UserError for a vote that is none."""
        self.prompts.add({j: flag(row, column, where) for j, column in self.columns.items()})
        if prompt.answer:
            answers = self._answer_columns.items()
            self.answers.add({judge: flag(row, column, where) for judge, column in answers})


def main(argv: Sequence[str]) -> int:
    args = parse(argv)
    try:
        path = read_audit(args) if args.audit_labels else build(args)
    except OSError as error:
        raise UserError(f"{error.filename or args.output_dir}: {error.strerror}") from None
    print(path)
    return 0


# ---------------------------------------------------------------------------------- data sets


def build(args: argparse.Namespace) -> Path:
    """Read, choose, write. Gives the path of the safe set."""
    folder: Path = args.output_dir
    tables = [Table(path, moderated.NEEDED) for path in each_once(args.moderated_files)]
    make_folder(folder)
    check_card(folder)
    hard = dataset_card.configs(folder, {dataset_card.HARD_CONFIG: dataset_card.HARD_FILE})
    joined = moderated.read(tables, refusals_count=args.refusals_count)
    say(f"{counted(len(joined.prompts), 'prompt')}; choosing ...")
    chosen = selection.choose(joined, *settings(args))
    # Before anything is written: a missing package must not leave half of the work.
    quality = list(quality_lines(tables, joined, chosen, args.seed)) if args.diversity else []
    votes = write(tables, joined, chosen, args)
    card = card_of(tables, joined, chosen, votes, hard, args)
    for name in DATASETS:
        record.write(folder / f"{name}.csv", record_of(name, card, tables, args))
    write_text(folder / dataset_card.NAME, dataset_card.text(card))
    for line in [*summary(card), *quality]:
        say(line)
    if args.audit_sample:
        write_audit(folder, votes, args)
    return folder / f"{SAFE}.csv"


def settings(args: argparse.Namespace) -> tuple[float, int, int]:
    """What the selection depends on: similarity, size of the toxic sample, seed."""
    return args.similarity, args.toxic_sample, args.seed


def check_card(folder: Path) -> None:
    """Raise UserError where a README.md that is no card of ours would be written over."""
    if not dataset_card.is_ours(folder):
        raise UserError(
            f"{folder / dataset_card.NAME} is no data set card of this script and stays; give "
            "another --output_dir"
        )


def each_once(paths: Sequence[Path]) -> Sequence[Path]:
    """The files given. Raises UserError for one given twice."""
    for path, times in Counter(path.resolve() for path in paths).items():
        if times > 1:
            raise UserError(f"{path} is given twice among --moderated_files")
    return paths


def write(
    tables: Sequence[Table], joined: Joined, chosen: Chosen, args: argparse.Namespace
) -> Votes:
    """Write the CSVs. The texts of judges and answers go from file to file and are never held."""
    columns = list(dict.fromkeys(column for table in tables for column in table.columns))
    votes = Votes(columns)
    audited = audit_sample(chosen, args)
    with ExitStack() as stack:
        plain, full, gone = open_writers(args.output_dir, columns, stack)
        for i, (prompt, row) in enumerate(moderated.deciding_rows(tables, joined.prompts)):
            path = tables[prompt.source[0]].path
            votes.add(row, prompt, f"{path}, row {prompt.source[1] + 1}")
            row = provenance(row, path, joined.second_chance(prompt))
            for name in DATASETS:
                if chosen.holds(name, i):
                    plain.write(row, name)
                    full.write(row, name)
            if i in chosen.dropped:
                gone.write({**row, **chosen.dropped[i]._asdict()})
            if i in audited:
                in_toxic_set = chosen.side[i] == TOXIC
                votes.audit.append(audit_row(row, votes, prompt, in_toxic_set=in_toxic_set))
        for writer in (full, gone, plain):
            writer.commit()
    return votes


def open_writers(
    folder: Path, columns: Sequence[str], stack: ExitStack
) -> tuple[Writer, Writer, Writer]:
    """For the data sets, what is behind them, what was left out. The stack discards what is not
    committed.
    """
    first, last = ("prompt", "category"), ("second_chance", "source_file")
    passed_on = [column for column in columns if column not in first + last]

    def opened(paths: dict[str, Path], names: Sequence[str]) -> Writer:
        writer = Writer(paths, names)
        stack.callback(writer.discard)
        return writer

    return (
        opened({name: folder / f"{name}.csv" for name in DATASETS}, first),
        opened(
            {name: folder / f"{name}_provenance.csv" for name in DATASETS},
            [*first, *passed_on, *last],
        ),
        opened({"": folder / "or-bench-dropped.csv"}, [*first, "is_toxic", "reason", "resembles"]),
    )


def provenance(row: Row, path: Path, second_chance: bool) -> Row:
    """A deciding row as the data sets show it, and where it came from."""
    cells = {column: storable(cell) for column, cell in row.items()}
    return {**cells, "second_chance": str(second_chance), "source_file": storable(path.name)}


def audit_row(row: Row, votes: Votes, prompt: Prompt, *, in_toxic_set: bool) -> Row:
    """What the audit keeps of a row: the prompt, the verdicts, the votes."""
    wanted = ("prompt", "category", "second_chance", *votes.columns.values())
    return {
        **{column: row.get(column, "") for column in wanted},
        "is_toxic": str(prompt.toxic),
        "in_toxic_set": str(in_toxic_set),
    }


def card_of(
    tables: Sequence[Table],
    joined: Joined,
    chosen: Chosen,
    votes: Votes,
    hard: Sequence[Config],
    args: argparse.Namespace,
) -> Card:
    """The data set card of the CSVs as they are written. hard: the hard set beside them."""
    folder: Path = args.output_dir
    records = [record.read(table.path) for table in tables]
    models = list(moderated.models_of(tables, records))
    members = {
        name: [prompt for i, prompt in enumerate(joined.prompts) if chosen.holds(name, i)]
        for name in DATASETS
    }
    return Card(
        license=args.license,
        counts={name: Counter(p.category for p in found) for name, found in members.items()},
        hashes={name: prompt_set_hash(p.text for p in found) for name, found in members.items()},
        # A single judge has no columns of his own.
        judges=votes.prompts.raters or [m for task, m in models if task == moderated.JUDGED],
        models=models,
        agreement=list(agreement_lines(votes)),
        history=[
            *joined.lines(),
            *selection.lines(chosen, *settings(args)),
            *moderated.record_lines(records),
        ],
        date=datetime.now(UTC).date().isoformat(),
        scripted=any(one.get("scripted") is True for one in records),
        configs=[
            *dataset_card.configs(folder, {name: f"{name}.csv" for name in DATASETS}),
            *hard,
        ],
    )


def agreement_lines(votes: Votes) -> Iterator[str]:
    """How far the judges agree: on the prompts, and on the answers."""
    for what, agreement in (("prompts", votes.prompts), ("answers", votes.answers)):
        if agreement.raters and agreement.patterns:
            yield f"judges of the {what}:"
            yield from agreement.lines()


def record_of(
    name: str, card: Card, tables: Sequence[Table], args: argparse.Namespace
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


def summary(card: Card) -> Iterator[str]:
    """What is on the card, for the terminal."""
    found = sorted({category for count in card.counts.values() for category in count})
    yield from card.history
    yield from selection.count_lines(card.counts, {name: clean(name) or "(none)" for name in found})
    yield from map(clean, card.agreement)
    if card.scripted:
        yield "answers of the offline scripted model: these data sets measure nothing"


def quality_lines(
    tables: Sequence[Table], joined: Joined, chosen: Chosen, seed: int
) -> Iterator[str]:
    """The quality of the safe and of the toxic set, per category."""
    from orbench.dataset import diversity

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


def audit_sample(chosen: Chosen, args: argparse.Namespace) -> set[int]:
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
    sys.exit(run_script(main))
