"""Have people label prompts as toxic or safe, or responses, without showing them any verdict.

    python label_sheet.py --input_file=labels.csv --number=100 --annotators=3 --output_dir=sheets
    python label_sheet.py --read sheets/sheet_*.csv --output_path=ratings.csv
    python label_sheet.py --responses a.csv b.csv --number=100 --annotators=1 --output_dir=sheets

The first command reads a CSV with the column prompt. With is_toxic (stage 3), it draws prompts
evenly across their toxicity scores, and with --results, across those that at least one model
refuses and those that none refuses. Writes to --output_dir a sheet per annotator, sheet_1.csv and
so on (id, prompt, label), and sheet_key.csv.

The second command reports how far annotators agree, and writes prompt, annotator, label and weight
(how many prompts a drawn one stands for). plot_results.py --toxicity takes them, and reports how
far the judges agree with people.

The third command draws the responses of several models (stage 4) to the same prompts; its sheets
do not show which model gave one. check_response.py --validate_against takes such a labeled sheet.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
from argparse import Namespace
from pathlib import Path

from orbench.base.messages import UserError, counted, run_script, say, tell
from orbench.base.prompts import prompt_id_of
from orbench.base.tables import Table, check_outputs, make_folder, read_csv, write_csv
from orbench.base.words import VERDICTS, Texts, Words, verdict_of
from orbench.datasets import audit
from orbench.judging.panels import toxicity_scores, votes_in
from orbench.stages.flags import Parser
from orbench.stages.stage import output_path


def main(argv: Words) -> int:
    parser = Parser(__doc__)
    parser.add(parser.add_mutually_exclusive_group(required=True), "label_sheet_way")
    parser.add(parser, "label_sheet")
    args = parser.parse_args(argv)
    if not args.read:
        tell(draw_sheet(args))
        return 0
    rows = audit.read_sheets(args.read)
    say(audit.label_line(rows))
    output = output_path(args.output_path, Path("ratings.csv"))
    check_outputs([output], args.read)
    make_folder(output.parent)
    write_csv(output, audit.RATINGS, rows)
    tell(output)
    return 0


def draw_sheet(args: Namespace) -> Path:
    """Write the sheets and their key; return the key's path. Raises UserError."""
    if args.responses:
        responses = audit.drawn_responses(args.responses, args.number)
        return audit.write_sheets(args.output_dir, "response", responses, args.annotators)
    refused = set()
    for path in args.results:
        for row in read_csv(path, ["prompt"]).rows:
            if VERDICTS[verdict_of(row, str(path))]:
                refused.add(row["prompt"])
    table = read_csv(args.input_file, ["prompt"])
    scores = scores_in(table)
    strata = [f"{score} {prompt in refused}" for prompt, score in scores.items()]
    prompts = audit.drawn_prompts(scores, strata, args.number)
    return audit.write_sheets(args.output_dir, "prompt", prompts, args.annotators)


def scores_in(table: Table) -> Texts:
    """Return the toxicity score of each prompt that has votes from all judges; "" without votes."""
    if "is_toxic" not in table.columns:
        return {row["prompt"]: "" for row in table.rows}
    shares = toxicity_scores(votes_in(table, "")).dropna().to_dict()
    scores = {}
    for row in table.rows:
        prompt = prompt_id_of(row)
        if prompt in shares:
            scores[row["prompt"]] = f"{shares[prompt]:.4g}"
    if not scores:
        raise UserError(f"{table.path} has no prompt with votes from all judges")
    say(f"{counted(len(scores), 'prompt')} with a toxicity score, of {len(table.rows):,} rows")
    return scores


if __name__ == "__main__":
    run_script(main)
