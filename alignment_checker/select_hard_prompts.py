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

from orbench.base.messages import run_script, tell
from orbench.base.words import Words
from orbench.stages.flags import Parser
from orbench.stages.stage import output_path


def main(argv: Words) -> int:
    parser = Parser(__doc__, "select_hard_prompts", "output", default="./or-bench-hard.csv")
    args = parser.parse_args(argv)
    from orbench.datasets import hard

    output = output_path(args.output_path, Path("or-bench-hard.csv"))
    hard.select(args, output)
    tell(output)
    return 0


if __name__ == "__main__":
    run_script(main)
