"""Have people label prompts as toxic or safe, without showing them any verdict.

    python label_sheet.py --input_file=labels.csv --number=100 --annotators=3 --output_dir=sheets
    python label_sheet.py --read sheets/sheet_*.csv --output_path=ratings.csv

The first command reads a CSV of stage 3 and draws prompts evenly across their toxicity scores and,
with --results, across those that at least one model refuses and those that none refuses. Writes to
--output_dir a sheet per annotator, sheet_1.csv and so on (id, prompt, label), and sheet_key.csv.

The second command reports how far annotators agree with each other and with the judges, and writes
prompt, annotator, label and weight (how many prompts a drawn one stands for), which
plot_results.py --toxicity takes.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.base.messages import UserError, counted, run_script, say, tell
from orbench.base.tables import beside, make_folder, read_csv, write_csv
from orbench.base.words import VERDICTS, verdict_of
from orbench.datasets import audit
from orbench.judging.panels import toxicity_scores
from orbench.stages import flags
from orbench.stages.stage import output_path


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    if args.input_file:
        tell(draw_sheet(args))
        return 0
    rows = audit.read_sheets(args.read)
    for line in audit.label_lines(rows):
        say(line)
    output = output_path(args.output_path, Path("ratings.csv"))
    make_folder(output.parent)
    write_csv(output, audit.RATINGS, rows)
    tell(output)
    return 0


def draw_sheet(args: argparse.Namespace) -> Path:
    """Write the sheets and their key; return the key's path. Raises UserError."""
    refused = set()
    for path in args.results:
        results = read_csv(path, ["prompt"]).rows
        refused |= {row["prompt"] for row in results if VERDICTS[verdict_of(row, str(path))]}
    table = read_csv(args.input_file, ["prompt", "is_toxic"])
    rows = {}
    strata = {}
    scores = toxicity_scores(table.rows, str(table.path))
    for row, score in zip(table.rows, scores, strict=True):
        if score is not None:
            rows[row["prompt"]] = row
            strata[row["prompt"]] = f"{score:.4g} {row['prompt'] in refused}"
    if not rows:
        raise UserError(f"{args.input_file} has no prompt with votes from all judges")
    say(f"{counted(len(rows), 'prompt')} with a toxicity score, of {len(table.rows):,} rows")
    make_folder(args.output_dir)
    sheet = args.output_dir / "sheet.csv"
    audit.write_sheets(
        sheet, list(rows.values()), args.number, list(strata.values()), args.annotators
    )
    return beside(sheet, audit.KEY_ENDING)


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    ways = parser.add_mutually_exclusive_group(required=True)
    add = parser.add_argument
    file: Any = {"type": flags.input_path, "metavar": "FILE"}
    ways.add_argument("--input_file", **file, help="a CSV of stage 3 to draw from")
    ways.add_argument("--read", nargs="+", **file, help="labelled sheets, one per annotator")
    add("--results", nargs="+", default=[], **file, help="results of stage 4 or 5 on these prompts")
    number = flags.whole_number(1)
    add("--number", type=number, default=100, help="prompts to draw (default %(default)s)")
    add("--annotators", type=number, default=3, help="sheets to write (default %(default)s)")
    meaning = "folder of the sheets (default %(default)s)"
    add("--output_dir", type=Path, default=Path("sheets"), metavar="FOLDER", help=meaning)
    meaning = "with --read: the CSV to write (default ratings.csv)"
    add("--output_path", type=flags.given, metavar="FILE", help=meaning)
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
