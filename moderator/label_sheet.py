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
from pathlib import Path

from orbench.base.messages import run_script, say, tell
from orbench.base.tables import check_outputs, make_folder, write_csv
from orbench.base.words import Words
from orbench.datasets import audit
from orbench.stages.flags import Parser
from orbench.stages.stage import output_path


def main(argv: Words) -> int:
    parser = Parser(__doc__)
    parser.add(parser.add_mutually_exclusive_group(required=True), "label_sheet_way")
    parser.add(parser, "label_sheet")
    args = parser.parse_args(argv)
    if args.read:
        rows = audit.read_sheets(args.read)
        say(audit.label_line(rows))
        output = output_path(args.output_path, Path("ratings.csv"))
        check_outputs([output], args.read)
        make_folder(output.parent)
        write_csv(output, audit.RATINGS, rows)
    else:
        noun = "prompt"
        if args.responses:
            noun = "response"
            sample = audit.drawn_responses(args.responses, args.number)
        else:
            sample = audit.drawn_prompts(args.input_file, args.results, args.number)
        output = audit.write_sheets(args.output_dir, noun, sample, args.annotators)
    tell(output)
    return 0


if __name__ == "__main__":
    run_script(main)
