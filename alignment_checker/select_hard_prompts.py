"""Select the hard prompts: those that at least so many families of models refuse.

    python select_hard_prompts.py --result_files final_*_results/*_merged_or-bench-80k.csv
    python select_hard_prompts.py --result_files a.csv b.csv c.csv --family c.csv=Qwen

Reads results of stage 4 (is_rejected) or stage 5 (answer_category: direct and indirect refusals
count), a file a model, all on the same prompts, with the columns prompt and category; where there
the run record beside each file, and the rows without a verdict in its _failed.csv and in that of
the stage 4 file behind it.
Writes
    or-bench-hard.csv         prompt, category: refused by --min_families families or more; where
                              there seed_id
    or-bench-hard_models.csv  every prompt: prompt, category, a column for each model (refused,
                              answered or unscored), families_refused, families_unscored, hard
                              (yes, no, or undecidable)
    or-bench-hard_audit_sheet.csv       with --audit_sample: id, prompt, label; for people, who
                              write toxic or safe; plot_results.py --audited reads the copies
    or-bench-hard_without_{family}.csv  with --leave_one_family_out: hard for the other families,
                              to measure models of that one, whose prompts it did not choose

The family of a model is its maker's line in the model table (orbench/models.py): GPT-3.5, GPT-4 and
later GPT count apart, as do Llama-2 and Llama-3, as in the paper. It decides which prompts are
hard; --family FILE=NAME overrides it, and the family of each file is printed.

A family refuses when one of its models does, and counts once. One that does not, with a model whose
verdict is missing, is unscored. A prompt that would be hard if its unscored families refused is
undecidable: it is left out and counted. Where a file has several rows for a prompt (samples) their
majority counts; a tie is unscored.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options, record
from orbench.columns import REFUSALS, category_of, verdict_of
from orbench.dataset.card import HARD_CONFIG, add_config, write_dataset_record
from orbench.models import family_of
from orbench.stage import make_folder
from orbench.table import (
    Row,
    Table,
    beside,
    file_name_part,
    prompt_id,
    prompt_set_hash,
    seed_id_of,
    storable,
    write_rows,
)
from orbench.terminal import UserError, clean, counted, run_script, say, table_lines, tell

if TYPE_CHECKING:
    from pandas import DataFrame, Series  # type: ignore[import-untyped]

# pandas is imported in functions: --help answers in a blink.

REFUSED, ANSWERED, UNSCORED = 1, -1, 0  # verdicts; those of several samples are added up
CELLS = {REFUSED: "refused", ANSWERED: "answered", UNSCORED: "unscored"}
YES, NO, UNDECIDABLE = "yes", "no", "undecidable"
SCORED_BY = {"answer_category": "judge", "is_rejected": "rules"}  # by the column of the verdict
NAMED_BY_STAGE_4 = "_merged_"  # {model}_merged_{input file name}
FIRST_COLUMNS = ("prompt", "category")
LAST_COLUMNS = ("families_refused", "families_unscored", "hard")

# `prompt_id` -> prompt, category, seed_id; in order of appearance.
Texts = dict[bytes, tuple[str, str, str]]


class Tested(NamedTuple):
    """The results of one model."""

    path: Path
    sha256: str
    model: str  # as shown
    id: str  # what tells models apart
    family: str
    by: str  # a value of SCORED_BY
    run: record.Record
    verdicts: "Series"  # `prompt_id` -> REFUSED, ANSWERED or UNSCORED
    complete: bool


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    output = Path(args.output_path)
    make_folder(output.parent)
    try:
        select(args, output)
    except OSError as error:
        raise UserError(f"{error.filename or output}: {error.strerror}") from None
    tell(output)
    return 0


def select(args: argparse.Namespace, output: Path) -> None:
    """Read the results, write the hard prompts and the table behind them."""
    given, texts = families_given(args), Texts()
    models = [
        read_results(path, given.get(path.resolve(), ""), texts) for path in args.result_files
    ]
    check_models(models)
    families = families_of(models, args.min_families)
    verdicts = common_prompts(models, texts, common_only=args.common_only)
    decided = decide(verdicts, families, args.min_families)
    write_models_table(beside(output, "_models.csv"), verdicts, decided, texts)
    hard = write_hard(output, decided, texts, models, args)
    add_config(output.parent, HARD_CONFIG, output.name)
    if args.leave_one_family_out:
        leave_one_out(output, models, verdicts, texts, args)
    if args.audit_sample:
        write_audit(beside(output, "_audit_sheet.csv"), hard, args)
    for line in [*model_lines(models, verdicts), *hard_lines(decided, texts)]:
        say(line)
    say(f"hard: refused by at least {args.min_families} of {len(set(families.values()))} families")


# ---------------------------------------------------------------------------------- reading


def families_given(args: argparse.Namespace) -> dict[Path, str]:
    """FILE=NAME pairs of --family. Raises UserError."""
    files = {Path(path).resolve() for path in args.result_files}
    found = {}
    for text in args.family:
        file, _, name = text.rpartition("=")
        if not file or not name.strip():
            raise UserError(f"--family {text}: write FILE=NAME")
        if Path(file).resolve() not in files:
            raise UserError(f"--family {text}: {file} is not among --result_files")
        found[Path(file).resolve()] = clean(name.strip())
    return found


def read_results(path: Path, family: str, texts: Texts) -> Tested:
    """Read the results of one model, and add its prompts to the texts. Raises UserError.

    family: empty for that of the run record or, without a record, of stage 4's file name.
    """
    table = Table(path, FIRST_COLUMNS)
    column = next((column for column in SCORED_BY if column in table.columns), None)
    if column is None:
        raise UserError(
            f"{path} has no column 'answer_category' (stage 5) or 'is_rejected' (stage 4); it has: "
            f"{clean(', '.join(table.columns))}"
        )
    run = record.read(path)
    record.check_whole(path, run)
    under_test = record.under_test(run)
    stem, by_stage_4, _ = path.stem.partition(NAMED_BY_STAGE_4)
    model = under_test.shown or clean(stem)
    family = family or under_test.family
    if not family and by_stage_4 and not under_test.shown:
        family = family_of(stem)
    if not family:
        raise UserError(f"which family is {model} ({path}) of? Give --family {path}=NAME")
    missing = record.missing_rows(path)
    verdicts = read_verdicts(table, missing.rows, texts)
    return Tested(
        path,
        table.sha256,
        model,
        under_test.id or model,
        family,
        SCORED_BY[column],
        run,
        verdicts,
        missing.complete,
    )


def read_verdicts(table: Table, missing: Iterable[record.MissingRow], texts: Texts) -> "Series":
    """Each prompt's verdict: of several samples the majority; a tie or a lost row is unscored."""
    import numpy as np
    import pandas as pd

    prompts, verdicts = list[bytes](), list[int]()
    for number, row in enumerate(table, start=1):
        where = f"{table.path}, row {number}"
        category_of(row, where)
        prompts.append(prompt_id(row["prompt"]))
        verdicts.append(REFUSED if verdict_of(row, where) in REFUSALS else ANSWERED)
        about = row["prompt"], row["category"], seed_id_of(row)
        texts.setdefault(prompts[-1], about)
    lost = [bytes.fromhex(row.prompt) for row in missing]
    found = pd.Series(verdicts + [UNSCORED] * len(lost), index=prompts + lost, dtype=int)
    return np.sign(found.groupby(level=0).sum())


def check_models(models: Sequence[Tested]) -> None:
    """Raise UserError for a model that is given twice or named like a column of the result, and for
    two spellings of a family.
    """
    for one, other in combinations(models, 2):
        if one.id == other.id or one.model == other.model:
            raise UserError(
                f"{one.path} and {other.path} are both results of {other.model}; give each "
                "model once"
            )
        if one.family != other.family and one.family.casefold() == other.family.casefold():
            raise UserError(
                f"the families {one.family!r} ({one.path}) and {other.family!r} ({other.path}) "
                "differ only in case; spell them alike with --family"
            )
    for one in models:
        if one.model in FIRST_COLUMNS + LAST_COLUMNS:
            raise UserError(f"{one.path}: {one.model!r} is a column of the result; rename the file")


def common_prompts(models: Sequence[Tested], texts: Texts, *, common_only: bool) -> "DataFrame":
    """Prompt (by its id) x model: the verdicts on the prompts that all files know of. Raises
    UserError where the files differ.
    """
    import pandas as pd

    verdicts = pd.DataFrame({one.model: one.verdicts for one in models})
    if lost := len(verdicts) - len(texts):
        say(f"{counted(lost, 'prompt')} without a verdict in any file: left out")
    verdicts = verdicts.reindex(list(texts))
    common = verdicts.dropna().astype(int)
    if len(common) == len(texts) > 0:
        return common
    counts = zip(models, verdicts.count(), strict=True)
    sizes = ", ".join(f"{one.path} has {n:,}" for one, n in counts)
    if common.empty:
        raise UserError(f"the result files have no prompt in common: {sizes}")
    if not common_only:
        unfinished = ", ".join(str(one.path) for one in models if not one.complete)
        hint = f"; not finished: {unfinished}" if unfinished else ""
        raise UserError(
            f"the result files are of different prompt sets: {len(common):,} prompts are common, "
            f"{sizes}{hint}. Give --common_only to select among the common ones"
        )
    say(f"selecting among the {counted(len(common), 'prompt')} common to all files: {sizes}")
    return common


# ---------------------------------------------------------------------------------- deciding


def families_of(models: Sequence[Tested], least: int) -> dict[str, str]:
    """Model -> family. Raises UserError where there are fewer families than asked for."""
    families = {one.model: one.family for one in models}
    names = list(dict.fromkeys(families.values()))
    if len(names) < least:
        raise UserError(
            f"--min_families {least}, but the files are of {len(names)} ({', '.join(names)}): no "
            "prompt could be hard"
        )
    return families


def decide(verdicts: "DataFrame", families: Mapping[str, str], least: int) -> "DataFrame":
    """LAST_COLUMNS for each prompt. verdicts: prompt x model. families: model -> family.

    A family refused a prompt if one of its models did; else it is unscored if one of them is.
    """
    import pandas as pd

    refused = (verdicts == REFUSED).T.groupby(families).any()
    unscored = (verdicts == UNSCORED).T.groupby(families).any() & ~refused
    decided = pd.DataFrame({"families_refused": refused.sum(), "families_unscored": unscored.sum()})
    decided["hard"] = NO
    decided.loc[decided.sum(axis="columns", numeric_only=True) >= least, "hard"] = UNDECIDABLE
    decided.loc[decided["families_refused"] >= least, "hard"] = YES
    return decided


# ---------------------------------------------------------------------------------- writing


def write_models_table(
    path: Path, verdicts: "DataFrame", decided: "DataFrame", texts: Texts
) -> None:
    """Write what each model did with each prompt."""
    columns = [*FIRST_COLUMNS, *verdicts.columns, *decided.columns]

    def rows() -> Iterator[Row]:
        counts = decided.itertuples(index=False, name=None)
        for (key, *cells), count in zip(verdicts.itertuples(name=None), counts, strict=True):
            about = map(storable, texts[key][:2])
            shown = (*about, *map(CELLS.__getitem__, cells), *map(str, count))
            yield dict(zip(columns, shown, strict=True))

    write_rows(path, columns, rows())


def write_hard(
    output: Path,
    decided: "DataFrame",
    texts: Texts,
    models: Sequence[Tested],
    args: argparse.Namespace,
) -> list[Row]:
    """Write the hard prompts and the run record beside them. Gives the rows as they are written."""
    columns = [*FIRST_COLUMNS, "seed_id"]
    keys = decided.index[decided["hard"] == YES]
    hard = [dict(zip(columns, map(storable, texts[key]), strict=True)) for key in keys]
    seeded = any(seed_id for *_, seed_id in texts.values())
    write_rows(output, columns if seeded else FIRST_COLUMNS, hard)
    inputs = ("path", "sha256", "model", "family")
    write_dataset_record(
        output,
        "select_hard_prompts",
        prompt_set_hash(row["prompt"] for row in hard),
        len(hard),
        inputs=[{name: str(getattr(one, name)) for name in inputs} for one in models],
        selectors=sorted({one.family for one in models}),
        scripted=any(record.is_scripted(one.run) for one in models),
        parameters={"min_families": args.min_families, "common_only": args.common_only},
    )
    return hard


def leave_one_out(
    output: Path,
    models: Sequence[Tested],
    verdicts: "DataFrame",
    texts: Texts,
    args: argparse.Namespace,
) -> None:
    """Write a set for each family, chosen by the others. Raises UserError."""
    for family in sorted({one.family for one in models}):
        others = [one for one in models if one.family != family]
        families = families_of(others, args.min_families)
        decided = decide(verdicts[list(families)], families, args.min_families)
        path = beside(output, f"_without_{file_name_part(family)}.csv")
        hard = write_hard(path, decided, texts, others, args)
        say(f"without {family}: {counted(len(hard), 'hard prompt')}, {path}")


def write_audit(sheet: Path, hard: Sequence[Row], args: argparse.Namespace) -> None:
    """Write the sheet for people, unless there is one: it may hold their work."""
    from orbench.dataset.audit import write_sheet

    if sheet.exists():
        say(f"{sheet} stays as it is; move it away to draw a new sample")
        return
    drawn = random.Random(args.seed).sample(list(hard), min(args.audit_sample, len(hard)))
    write_sheet(sheet, drawn, args.seed)
    say(
        f"for people: a copy of {sheet} each ({counted(len(drawn), 'prompt')}), toxic or safe in "
        "the column label; plot_results.py --audited reads the copies back"
    )


def model_lines(models: Sequence[Tested], verdicts: "DataFrame") -> Iterator[str]:
    """What each model did."""
    import pandas as pd

    counts = {name: (verdicts == verdict).sum() for verdict, name in CELLS.items()}
    shown = pd.DataFrame(counts).map("{:,}".format)
    shown.insert(0, "family", [one.family for one in models])
    shown["by"] = [one.by for one in models]
    yield from table_lines(shown.rename_axis(columns="model"))
    if shown["by"].nunique() > 1:
        yield "note: some models are scored by the rules of stage 4, others by a judge (stage 5)"
    if any(record.is_scripted(one.run) for one in models):
        yield "note: answers of the offline scripted model: this selection measures nothing"


def hard_lines(decided: "DataFrame", texts: Texts) -> Iterator[str]:
    """How many prompts of each category are hard, and how many could not be decided."""
    category = [category_of({"category": texts[key][1]}, "") for key in decided.index]
    counts = (decided["hard"] == YES).groupby(category).agg(prompts="size", hard="sum")
    counts.loc["all"] = counts.sum()
    yield from table_lines(counts.map("{:,}".format).rename_axis(columns="category"))
    if undecidable := (decided["hard"] == UNDECIDABLE).sum():
        yield (
            f"{counted(undecidable, 'prompt')} left out as undecidable: families that could "
            "decide are unscored"
        )


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    parser.add_argument(
        "--result_files",
        nargs="+",
        type=options.input_path,
        required=True,
        metavar="FILE",
        help="results of stage 4 or 5, a file a model",
    )
    parser.add_argument(
        "--min_families",
        type=options.whole_number(1),
        default=3,
        metavar="N",
        help="families that must refuse a prompt (default %(default)s)",
    )
    parser.add_argument(
        "--family",
        action="append",
        default=[],
        metavar="FILE=NAME",
        help="the family of a file's model, in place of the one in the model table",
    )
    parser.add_argument(
        "--common_only",
        action="store_true",
        help="with files of different prompt sets: select among the prompts common to all",
    )
    add_for_reviewers(parser)
    options.add_output_path(parser, "./or-bench-hard.csv")
    parser.set_defaults(output_path="or-bench-hard.csv")
    return parser


def add_for_reviewers(parser: argparse.ArgumentParser) -> None:
    """The flags of label noise and of selection."""
    parser.add_argument(
        "--leave_one_family_out",
        action="store_true",
        help="write a set for each family as well, chosen by the others",
    )
    parser.add_argument(
        "--audit_sample",
        type=options.whole_number(0),
        default=0,
        metavar="N",
        help="write a sheet of N hard prompts for people to label: toxic or safe",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default %(default)s)")


if __name__ == "__main__":
    sys.exit(run_script(main))
