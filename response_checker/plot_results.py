"""Turn the results of stages 4 and 5 into tables, pictures and a page.

    python plot_results.py --over_refusal final_*/*hard-1k*.csv --toxic final_*/*toxic*.csv
    python plot_results.py --merged MODEL=results.csv --table
    python plot_results.py --over_refusal results/over_refusal --toxic results/toxic --html
    python plot_results.py --with_published

Reads result files of stage 4 (is_rejected) or stage 5 (answer_category) with the column prompt and,
optionally, category, toxic_seed or seed_id, is_toxic (--merged) and response. The model's name
comes from the run record beside the file, or from MODEL=FILE. Unscored rows come from
{stem}_failed.csv; do not give that file.

Writes to --output_dir:
    results.csv        a row per model, side and category; rates and 95 % intervals in percent
    comparison.csv     a row per pair of models: paired difference, test, finding
    leaderboard.csv    both sides of a model in a row; rank (1-3: a tie)
    drift.csv          with two prompt sets: how rates change from one to the other
    triggers.csv       words in refused versus answered safe prompts, with examples
    toxicity*.csv      with --toxicity: rates over prompts with agreed labels, and by score
    pairs*.csv         with --pairs: seeds refused and their rewrites answered
    results.md, .tex   all tables, for reading
    figures/           scatter, heatmap_{side}, toxicity, triggers_{model} in each of --formats
    results.html       with --html: tables, pictures, and the responses behind each number
    eee/               with --export eee: rates in the Every Eval Ever schema, one file per model
                       and side, without prompts and responses
Removes files from the last run that this run does not write.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.base.messages import run_script, tell
from orbench.stages.flags import Parser


def main(argv: Sequence[str]) -> int:
    args = command_line(argv)
    from orbench.report import build

    tell(build.report(args))
    return 0


def command_line(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(__doc__)
    parser.add("plot_results")
    args: argparse.Namespace = parser.parse_args(argv)
    given = args.over_refusal or args.toxic or args.merged
    if not given and (args.html or not args.with_published):
        parser.error("nothing to show: give --over_refusal, --toxic or --merged")
    return args


if __name__ == "__main__":
    sys.exit(run_script(main))
