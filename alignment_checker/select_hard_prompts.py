"""Select the hard prompts: those that several families of models refuse.

    python select_hard_prompts.py --result_files final_*_results/*_merged_or-bench-80k.csv
    python select_hard_prompts.py --result_files a.csv b.csv c.csv --family c.csv=Qwen

Reads results of stage 4 or 5, one file per model, with the columns prompt and category. Also reads
the run record and the _failed.csv (unscored rows) beside each. Writes
    or-bench-hard.csv          prompt, category (and seed_id): refused by --min_families or more
    or-bench-hard_models.csv   every prompt: a column for each model (refused, answered, unscored),
                               families_refused, families_unscored, hard (yes, no, undecidable)

A family refuses if any of its models does. A prompt that would be hard if its unscored families
refused it is undecidable, and left out.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
from pathlib import Path

from orbench.base.messages import UserError, run_script, tell
from orbench.base.tables import Paths, beside, check_outputs, make_folder, write_csv
from orbench.base.words import Words
from orbench.stages import flags
from orbench.stages.stage import output_path

SELECTED_BY = "select_hard_prompts"  # in run records


def main(argv: Words) -> int:
    args = parser().parse_args(argv)
    from orbench.datasets import card, hard

    output = output_path(args.output_path, Path("or-bench-hard.csv"))
    table = beside(output, "_models.csv")
    make_folder(output.parent)
    card.check_ours(output, SELECTED_BY)
    check_outputs([output, table], args.result_files)
    given = families_given(args.family, args.result_files)
    families, decided = hard.decided(args.result_files, given, args.min_families)
    chosen = [row for row in decided if row["hard"] == hard.YES]
    columns = ["prompt", "category"]
    if any(row["seed_id"] for row in decided):
        columns.append("seed_id")
    verdicts = [*families, "families_refused", "families_unscored", "hard"]
    write_csv(table, columns + verdicts, decided)
    write_csv(output, columns, chosen)
    selectors = families.values()
    card.write_dataset_record(output, chosen, args.result_files, args, SELECTED_BY, selectors)
    card.list_datasets(output.parent)
    hard.say_selection(families, decided)
    tell(output)
    return 0


def families_given(pairs: Words, files: Paths) -> dict[Path, str]:
    """Return the pairs FILE=NAME of --family. Raises UserError."""
    families = {}
    for pair in pairs:
        file, _, name = pair.rpartition("=")
        if not name or Path(file) not in files:
            raise UserError("--family: write FILE=NAME, FILE as in --result_files")
        families[Path(file)] = name
    return families


def parser() -> flags.Parser:
    return flags.Parser(__doc__, "select_hard_prompts", "output", default="./or-bench-hard.csv")


if __name__ == "__main__":
    run_script(main)
