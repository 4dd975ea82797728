"""Build the datasets from moderated prompts: the safe ones, the toxic ones, a sample of those.

    python build_dataset.py --moderated_files p_toxic_moderation_gpt4_prompt.csv \\
        p_non_toxic_moderation_gpt4_prompt.csv answers_moderation_merged_gpt4_response.csv
    python build_dataset.py --output_dir or-bench --audit_labels anna.csv ben.csv

Reads files of stage 3, merged or split, and of stage 3 with --column=response on stage 4's
answers to the toxic prompts (the second chance). Columns: prompt, category, is_toxic; where there
is_toxic_{judge}, response_is_toxic, is_rejected, answer_category, toxic_seed.

Writes to --output_dir, all in input order:
    or-bench-80k.csv        prompt, category: safe at once, or by the second chance; seed_id, a
                            hash of the seed, where the moderated files have toxic_seed
    or-bench-toxic-all.csv  likewise: the toxic prompts
    or-bench-toxic.csv      likewise: --toxic_sample of them, even over the categories
    ..._provenance.csv      of each: what else the moderated files say, second_chance, source_file
    or-bench-dropped.csv    prompt, category, is_toxic, reason, resembles: what was left out
    README.md               the dataset card
    audit_sheet.csv, audit_votes.csv   with --audit_sample: id, prompt, label; the votes on them
    audit_agreement.csv     with --audit_labels: rater, against, where, n, agree, rate_percent,
                            low_percent, high_percent (Wilson, 95 %), cohen_kappa

Contradicting verdicts count as toxic. A toxic prompt comes back by an answer judged safe; a refusal
is no answer (see --refusals_count). Of near-duplicates the first is kept, and a safe prompt that
nearly equals a toxic one is dropped. --exclude drops what nearly equals a prompt of a public set:
models may know it.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options
from orbench.terminal import UserError, run_script, say, tell

PUBLISHED_TOXIC = 655  # rows of the published or-bench-toxic


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    from orbench.dataset import audit, build  # pandas: --help answers without it

    try:
        if args.audit_labels:
            for line in audit.compare_sheets(args.output_dir, args.audit_labels):
                say(line)
            path = args.output_dir / audit.AGREEMENT_FILE
        else:
            path = build.build(args)
    except OSError as error:
        raise UserError(f"{error.filename or args.output_dir}: {error.strerror}") from None
    tell(path)
    return 0


def similarity(text: str) -> float:
    """An argparse type."""
    value = float(text)
    if not 0.5 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0.5 to 1")
    return value


def parser() -> argparse.ArgumentParser:
    parser = options.Parser(__doc__ or "")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--moderated_files",
        nargs="+",
        type=options.input_path,
        metavar="FILE",
        help="CSVs of stage 3, see above",
    )
    what.add_argument(
        "--audit_labels",
        nargs="+",
        type=options.input_path,
        metavar="FILE",
        help="labelled audit sheets, one per person: report how far people and judges agree",
    )
    parser.add_argument(
        "--output_dir", type=Path, default=Path("or-bench"), help="default ./%(default)s"
    )
    parser.add_argument(
        "--toxic_sample",
        type=options.whole_number(0),
        default=PUBLISHED_TOXIC,
        metavar="N",
        help="prompts in or-bench-toxic.csv (default %(default)s, as published)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="for sampling and shuffling (default %(default)s)"
    )
    parser.add_argument(
        "--similarity",
        type=similarity,
        default=0.8,
        metavar="SHARE",
        help="share of 4-character pieces in common that makes two prompts near-duplicates: 0.5 "
        "to 1 (default %(default)s, where about one word of eighteen differs; 1: exact ones only)",
    )
    parser.add_argument(
        "--exclude",
        nargs="+",
        type=options.input_path,
        default=[],
        metavar="FILE",
        help="CSVs of public prompts (column prompt): prompts that nearly equal one are dropped",
    )
    parser.add_argument(
        "--refusals_count",
        action="store_true",
        help="a refusal judged safe counts as a safe answer (default: it says nothing about the "
        "prompt, which stays toxic)",
    )
    parser.add_argument(
        "--license", default="unknown", help="for the card, e.g. cc-by-4.0 (default %(default)s)"
    )
    parser.add_argument(
        "--diversity",
        action="store_true",
        help="print lengths, duplicate rates, Self-BLEU and broken word rules per category",
    )
    parser.add_argument(
        "--audit_sample",
        type=options.whole_number(0),
        default=0,
        metavar="N",
        help="write a sheet of N prompts for people to label",
    )
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
