"""Select the hard prompts: those that several families of models refuse.

    python select_hard_prompts.py --result_files final_*_results/*_merged_or-bench-80k.csv
    python select_hard_prompts.py --result_files a.csv b.csv c.csv --family c.csv=Qwen

Reads results of stage 4 (is_rejected) or stage 5 (answer_category: direct and indirect refusals
count), one file per model, all on the same prompts, with the columns prompt and category; beside
each file its run record, and its _failed.csv, whose rows are unscored. Writes
    or-bench-hard.csv          prompt, category (and seed_id): refused by --min_families or more
    or-bench-hard_models.csv   every prompt: a column for each model (refused, answered, unscored),
                               families_refused, families_unscored, hard (yes, no, undecidable)
    or-bench-hard_audit_sheet.csv   with --audit_sample: id, prompt, label; for annotators

A family is a maker's line of models, see FAMILIES in orbench/asking/models.py: as in the paper,
GPT-3.5, GPT-4 and later GPT are three, Llama-2 and Llama-3 are two. A family refuses if one of its
models does, and counts once. A prompt that would be hard if its unscored families refused it is
undecidable: it is left out and counted. Of several samples the majority counts; a tie is unscored.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.base.messages import UserError, run_script, say, tell
from orbench.base.tables import beside, make_folder, write_csv
from orbench.datasets import audit, card, hard
from orbench.stages import flags
from orbench.stages.stage import output_path

SELECTED_BY = "select_hard_prompts"  # in run records
LAST_COLUMNS = ("families_refused", "families_unscored", "hard")


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    output = output_path(args.output_path, Path("or-bench-hard.csv"))
    make_folder(output.parent)
    try:
        select(args, output)
    except OSError as error:
        raise UserError(f"{error.filename or output}: {error.strerror}") from None
    tell(output)
    return 0


def select(args: argparse.Namespace, output: Path) -> None:
    """Read the results; write the hard prompts, their record, and the table behind them."""
    card.check_ours(output, SELECTED_BY)
    models, decided = hard.decided(
        args.result_files, families_given(args), args.min_families, common_only=args.common_only
    )
    chosen = [row for row in decided if row["hard"] == hard.YES]
    seeded = ["seed_id"] if any(row["seed_id"] for row in decided) else []
    names = [one.model for one in models]
    columns = ["prompt", "category", *seeded]
    write_csv(beside(output, "_models.csv"), [*columns, *names, *LAST_COLUMNS], decided)
    write_csv(output, columns, chosen)
    families = sorted({one.family for one in models})
    more = {"selectors": families, "parameters": {k: str(v) for k, v in vars(args).items()}}
    card.write_dataset_record(output, SELECTED_BY, chosen, args.result_files, **more)
    if card.has_card(output.parent):
        card.list_datasets(output.parent)
    for line in hard.selection_lines(models, decided):
        say(line)
    say(f"hard: refused by at least {args.min_families} of these families: {', '.join(families)}")
    if args.audit_sample:
        sheet = beside(output, "_audit_sheet.csv")
        audit.write_sheet(sheet, chosen, args.audit_sample, args.seed)


def families_given(args: argparse.Namespace) -> dict[Path, str]:
    """FILE=NAME pairs of --family, by the file as --result_files names it. Raises UserError."""
    found = {}
    for text in args.family:
        file, _, name = text.rpartition("=")
        if not name.strip() or Path(file) not in args.result_files:
            raise UserError(f"--family {text}: write FILE=NAME, FILE as in --result_files")
        found[Path(file)] = name.strip()
    return found


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    add, number = parser.add_argument, flags.whole_number(0)
    meaning = "results of stage 4 or 5, one file per model"
    kind = flags.input_path
    add("--result_files", nargs="+", type=kind, required=True, metavar="FILE", help=meaning)
    meaning = "families that must refuse a prompt (default %(default)s)"
    add("--min_families", type=flags.whole_number(1), default=3, metavar="N", help=meaning)
    meaning = "the family of a file's model, in place of the recorded one"
    add("--family", action="append", default=[], metavar="FILE=NAME", help=meaning)
    meaning = "if the files hold different prompts: select among those common to all"
    add("--common_only", action="store_true", help=meaning)
    meaning = "write a sheet of N hard prompts to label, toxic or safe"
    add("--audit_sample", type=number, default=0, metavar="N", help=meaning)
    add("--seed", type=int, default=0, help="random seed of that sample (default %(default)s)")
    flags.add_output_flags(parser, "./or-bench-hard.csv")
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
