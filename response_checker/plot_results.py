"""Turn the results of stages 4 and 5 into tables, pictures and a page.

    python plot_results.py --over_refusal final_*/*hard-1k*.csv --toxic final_*/*toxic*.csv
    python plot_results.py --merged MODEL=results.csv --table
    python plot_results.py --over_refusal results/over_refusal --toxic results/toxic --html
    python plot_results.py --over_refusal new/over_refusal --baseline old --fail_if worse
    python plot_results.py --with_published

Reads result files of stage 4 (is_rejected) or stage 5 (answer_category) with the column prompt and,
optionally, category, tier, toxic_seed or seed_id, is_toxic (--merged) and response. The model's
name comes from the run record beside the file, or from MODEL=FILE. Unscored rows come from
{stem}_failed.csv; do not give that file.

Writes to --output_dir:
    results.csv        a row per rate: of a model and side, overall, by category, tier, label, ...;
                       95 % intervals in percent
    comparison.csv     a row per comparison of two models, of a model on two prompt sets, or of
                       pairs: difference, test, finding
    associations.csv   a row per trend over tiers, AUC of toxicity scores, or word
    leaderboard.csv    both sides of a model in a row; rank (1-3: what the tests leave)
    results.json       a summary for programs: rates, rank and score per model and side
    gate.json          with gates: an object per gate and model
    results.md, .tex   all tables, for reading
    figures/           dumbbell, scatter, categories_{side}, differences_{side}, tiers, ... in
                       each of --formats; {name}_narrow fits a column of a paper
    results.html       with --html: tables, pictures, and the responses behind each number
    .eval_results/     with --export hub: for models' repositories on the Hugging Face Hub, one
                       file per model, settings and judge, without prompts and responses
Deletes report files that it no longer produces. Exit status 4: a gate is not met; 1: one is
undecided.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split

from orbench.base.messages import run_script
from orbench.base.words import Words
from orbench.stages.flags import Parser


def main(argv: Words) -> int:
    options = Parser(__doc__, "plot_results", "gate").parse_args(argv)
    options.gated = []
    options.tells = "results.csv"
    from orbench.report.build import report

    return report(options)


if __name__ == "__main__":
    run_script(main)
