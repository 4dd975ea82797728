"""Select the hard prompts: those that at least so many families of models refuse.

    python select_hard_prompts.py --result_files final_*_results/*_merged_or-bench-80k.csv
    python select_hard_prompts.py --result_files a.csv b.csv c.csv --family c.csv=Qwen

Reads results of stage 4 (is_rejected) or stage 5 (answer_category: direct and indirect refusals
count), a file a model, all on the same prompts, with the columns prompt and category; where there
the run record beside each file, and the rows without a verdict in its _failed.csv and in that of
the stage 4 file behind it.
Writes
    or-bench-hard.csv         prompt, category: refused by --min_families families or more
    or-bench-hard_models.csv  every prompt: prompt, category, a column for each model (refused,
                              answered or unscored), families_refused, families_unscored, hard
                              (yes, no, or undecidable)

The family of a model is its maker's line in the model table (orbench/models.py): GPT-3.5, GPT-4 and
later GPT count apart, as do Llama-2 and Llama-3, as in the paper. It decides which prompts are
hard; --family FILE=NAME overrides it, and the family of each file is printed.

A family refuses when one of its models does, and counts once. One that does not, with a model whose
verdict is missing, is unscored. A prompt that would be hard if its unscored families refused is
undecidable: it is left out and counted. Where a file has several rows for a prompt (samples) their
majority counts; a tie is unscored.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.under_test import judged_by_stage5

from orbench import options, record
from orbench.columns import REFUSALS, verdict_of
from orbench.dataset.card import HARD_CONFIG, add_config
from orbench.models import family_of, resolve
from orbench.record import check_whole, under_test
from orbench.stage import make_folder
from orbench.table import Table, Writer, beside, prompt_set_hash, storable
from orbench.terminal import UserError, clean, counted, run_script, say

REFUSED, ANSWERED, UNSCORED = "refused", "answered", "unscored"
YES, NO, UNDECIDABLE = "yes", "no", "undecidable"
VERDICT_COLUMNS = {4: "is_rejected", 5: "answer_category"}  # by stage
SCORED_BY = {4: "rules", 5: "judge"}
NAMED_BY_STAGE_4 = "_merged_"  # {model}_merged_{input file name}


@dataclass
class Result:
    """One model's results."""

    path: Path
    record: record.Record
    model: str  # as shown
    id: str  # what tells models apart
    family: str
    stage: int
    sha256: str
    # prompt -> refusals minus answers: above 0 refused, below 0 answered, 0 no verdict
    score: dict[str, int]

    def verdict(self, prompt: str) -> str:
        """What the model did with a prompt."""
        score = self.score[prompt]
        return REFUSED if score > 0 else ANSWERED if score < 0 else UNSCORED


def main(argv: Sequence[str]) -> int:
    args = parse(argv)
    output = Path(args.output_path)
    make_folder(output.parent)
    try:
        select(args, output)
    except OSError as error:
        raise UserError(f"{error.filename or output}: {error.strerror}") from None
    print(output)
    return 0


def select(args: argparse.Namespace, output: Path) -> None:
    """Read the results, write the hard prompts and the table behind them."""
    categories: dict[str, str] = {}  # prompt -> category, in the order of the first file
    results = read(args.result_files, families_given(args), categories)
    families = families_of(results, args.min_families)
    prompts = common_prompts(results, categories, common_only=args.common_only)
    chosen = write(
        output, results, families, {p: categories[p] for p in prompts}, args.min_families
    )
    hard = [prompt for prompt in prompts if chosen[prompt] == YES]
    write_record(output, results, args, hard)
    add_config(output.parent, HARD_CONFIG, output.name)
    for line in summary(results, families, prompts, categories, chosen, args.min_families):
        say(line)


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
        found[Path(file).resolve()] = name.strip()
    return found


def read(
    paths: Sequence[Path], families: Mapping[Path, str], categories: dict[str, str]
) -> list[Result]:
    """Read the files, each a model. Fills in the categories. Raises UserError, UserError."""
    results: list[Result] = []
    for path in paths:
        result = read_one(path, families.get(path.resolve(), ""), categories)
        for other in results:
            if is_same_model(other, result):
                raise UserError(
                    f"{other.path} and {path} are both results of {result.model}; give each "
                    "model once"
                )
        results.append(result)
    return results


def read_one(path: Path, family: str, categories: dict[str, str]) -> Result:
    """Read one file with the failed rows that belong to it."""
    table = Table(path, ("prompt", "category"))
    stage = 5 if "answer_category" in table.columns else 4
    if stage == 4 and "is_rejected" not in table.columns:
        raise UserError(
            f"{path} has no column 'answer_category' (stage 5) or 'is_rejected' (stage 4); it has: "
            f"{clean(', '.join(table.columns))}"
        )
    run = record.read(path)
    check_whole(path, run)
    recorded = under_test(run)
    # Without a record stage 4's way to name its files tells the model, else the file's own name.
    stem, by_stage_4, _ = path.stem.partition(NAMED_BY_STAGE_4)
    asked = recorded.asked or clean(stem)
    id_ = recorded.id or identity(asked)
    family = clean(family) or recorded.family
    if not family and not recorded.id and (recorded.asked or by_stage_4):
        family = family_of(asked) or family_of(id_)
    model = recorded.shown or asked
    if not family:
        raise UserError(f"which family is {model} ({path}) of? Give --family {path}=NAME")
    result = Result(path, run, model, id_, family, stage, table.sha256, {})
    for number, row in enumerate(table, start=1):
        prompt = row["prompt"]
        categories.setdefault(prompt, row["category"])
        result.score.setdefault(prompt, 0)
        if row[VERDICT_COLUMNS[stage]]:  # empty: no verdict
            refused = verdict_of(row, f"{path}, row {number}") in REFUSALS
            result.score[prompt] += 1 if refused else -1
    for prompt, category in failed_prompts(path, run):
        categories.setdefault(prompt, category)
        result.score.setdefault(prompt, 0)
    return result


def failed_prompts(path: Path, run: record.Record) -> Iterator[tuple[str, str]]:
    """Prompts without a verdict and their categories: of the file, and of stage 4 before it."""
    judged, missing = judged_by_stage5(path, run)
    if missing:
        say(f"{path}: {missing}")
    for csv in (path, judged):
        failed = csv and beside(csv, "_failed.csv")
        if failed and failed.is_file():
            for row in Table(failed, ("prompt",)):
                yield row["prompt"], row.get("category", "")


def identity(model: str) -> str:
    """The id that an alias stands for now, where the run record does not say what it stood for."""
    try:
        return resolve(model).id
    except UserError:
        return model


def is_same_model(one: Result, other: Result) -> bool:
    """Whether two files are of one model: by name, or copies that no run record tells apart."""
    recorded = under_test(one.record).asked and under_test(other.record).asked
    copies = one.sha256 == other.sha256 and not recorded
    return copies or one.id == other.id


def families_of(results: Sequence[Result], least: int) -> dict[str, list[Result]]:
    """Family -> its models. Raises UserError where there are fewer than asked for."""
    spelling: dict[str, str] = {}  # Qwen and qwen are one family
    families: dict[str, list[Result]] = {}
    for result in results:
        result.family = spelling.setdefault(result.family.casefold(), result.family)
        families.setdefault(result.family, []).append(result)
    if len(families) < least:
        raise UserError(
            f"--min_families {least}, but the files are of {len(families)} "
            f"({', '.join(families)}): no prompt could be hard"
        )
    return families


def common_prompts(
    results: Sequence[Result], categories: Mapping[str, str], *, common_only: bool
) -> list[str]:
    """The prompts of all files, in the order of the first. Raises UserError where they differ."""
    common = [prompt for prompt in categories if all(prompt in one.score for one in results)]
    if len(common) == len(categories) and common:
        return common
    sizes = ", ".join(f"{one.path} has {len(one.score):,}" for one in results)
    unfinished = [str(one.path) for one in results if one.record.get("complete") is False]
    if not common:
        raise UserError(f"the result files have no prompt in common: {sizes}")
    if not common_only:
        hint = f"; not finished: {', '.join(unfinished)}" if unfinished else ""
        raise UserError(
            f"the result files are of different prompt sets: {len(common):,} prompts are common, "
            f"{sizes}{hint}. Give --common_only to select among the common ones"
        )
    say(f"selecting among the {counted(len(common), 'prompt')} common to all files: {sizes}")
    return common


# ---------------------------------------------------------------------------------- writing


def write(
    output: Path,
    results: Sequence[Result],
    families: Mapping[str, Sequence[Result]],
    categories: Mapping[str, str],
    least: int,
) -> dict[str, str]:
    """Write both CSVs. Gives prompt -> yes, no or undecidable."""
    columns = ["prompt", "category", *(column_of(one.model) for one in results)]
    hard = Writer({"": output}, ("prompt", "category"))
    table = Writer(
        {"": beside(output, "_models.csv")},
        [*columns, "families_refused", "families_unscored", "hard"],
    )
    chosen = {}
    try:
        for prompt, category in categories.items():
            counts = Counter(family_verdict(prompt, members) for members in families.values())
            chosen[prompt] = decide(counts[REFUSED], counts[UNSCORED], least)
            row = {
                "prompt": storable(prompt),
                "category": storable(category),
                **{column_of(one.model): one.verdict(prompt) for one in results},
                "families_refused": str(counts[REFUSED]),
                "families_unscored": str(counts[UNSCORED]),
                "hard": chosen[prompt],
            }
            table.write(row)
            if chosen[prompt] == YES:
                hard.write(row)
        table.commit()
        hard.commit()
    finally:
        table.discard()
        hard.discard()
    return chosen


def family_verdict(prompt: str, members: Sequence[Result]) -> str:
    """What a family did: refused if one of its models did, else unscored if one is unscored."""
    verdicts = {member.verdict(prompt) for member in members}
    return next(verdict for verdict in (REFUSED, UNSCORED, ANSWERED) if verdict in verdicts)


def decide(refused: int, unscored: int, least: int) -> str:
    """Whether a prompt is hard, by the number of families that refused it and that are unscored."""
    if refused >= least:
        return YES
    return UNDECIDABLE if refused + unscored >= least else NO


def column_of(model: str) -> str:
    """A model's column; a model named like another column keeps apart from it."""
    return model if model not in ("prompt", "category", "hard") else f"model {model}"


def write_record(
    output: Path, results: Sequence[Result], args: argparse.Namespace, hard: Sequence[str]
) -> None:
    """The run record beside the hard prompts."""
    entry: record.Record = {
        "stage": "select_hard_prompts",
        "command": sys.argv,
        "inputs": [
            {"path": str(one.path), "sha256": one.sha256, "model": one.model, "family": one.family}
            for one in results
        ],
        "scripted": any(one.record.get("scripted") is True for one in results),
        "parameters": {"min_families": args.min_families, "common_only": args.common_only},
        "prompt_set": prompt_set_hash(map(storable, hard)),
        "counts": {"done": len(hard)},
        "complete": True,
        "end": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    record.write(output, entry)


def summary(
    results: Sequence[Result],
    families: Mapping[str, Sequence[Result]],
    prompts: Sequence[str],
    categories: Mapping[str, str],
    chosen: Mapping[str, str],
    least: int,
) -> Iterator[str]:
    """What each model did, and how many prompts of each category are hard."""
    width = max(len("model"), *(len(one.model) for one in results))
    between = max(len("family"), *map(len, families))
    yield f"{'model':<{width}}  {'family':<{between}}  refused  answered  unscored  by"
    for one in results:
        count = Counter(map(one.verdict, prompts))
        yield (
            f"{one.model:<{width}}  {one.family:<{between}}  {count[REFUSED]:>7,}  "
            f"{count[ANSWERED]:>8,}  {count[UNSCORED]:>8,}  {SCORED_BY[one.stage]}"
        )
    if len({one.stage for one in results}) > 1:
        yield "note: some models are scored by the rules of stage 4, others by a judge (stage 5)"
    if any(one.record.get("scripted") is True for one in results):
        yield "note: answers of the offline scripted model: this selection measures nothing"
    total = Counter(clean(categories[prompt]) or "(none)" for prompt in prompts)
    hard = Counter(clean(categories[p]) or "(none)" for p in prompts if chosen[p] == YES)
    width = max(len("category"), *map(len, total))
    yield f"{'category':<{width}}  prompts     hard"
    for category in sorted(total):
        yield f"{category:<{width}}  {total[category]:>7,}  {hard[category]:>7,}"
    yield f"{'all':<{width}}  {total.total():>7,}  {hard.total():>7,}"
    yield f"hard: refused by at least {least} of {len(families)} families"
    if undecidable := sum(verdict == UNDECIDABLE for verdict in chosen.values()):
        yield (
            f"{counted(undecidable, 'prompt')} left out as undecidable: families that could "
            "decide are unscored"
        )


def parse(argv: Sequence[str]) -> argparse.Namespace:
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
    options.add_output_path(parser, "./or-bench-hard.csv")
    parser.set_defaults(output_path="or-bench-hard.csv")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(run_script(main))
