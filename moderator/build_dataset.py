"""Build the datasets from moderated prompts: safe ones, toxic ones, a sample of the toxic ones.

    python build_dataset.py --moderated_files p_toxic_moderation_gpt4_prompt.csv \\
        p_non_toxic_moderation_gpt4_prompt.csv responses_moderation_merged_gpt4_response.csv

Reads files of stage 3, merged or split, and of stage 3 with --column=response on stage 4's
responses to the toxic prompts (the second chance). Columns: prompt, category, is_toxic.

Writes to --output_dir, in input order (docs/datasets.md has the rules):
    or-bench-80k.csv        prompt, category, and seed_id if there are seeds: the safe prompts
    or-bench-toxic-all.csv  the same columns: the toxic prompts; or-bench-toxic.csv: some of them
    ..._provenance.csv      for each: all columns of the input, second_chance, source_file
    or-bench-dropped.csv    prompt, category, is_toxic, reason, resembles: what was left out
    README.md               the dataset card
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.base.messages import run_script, tell
from orbench.stages import flags


def main(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    from orbench.datasets import build

    tell(build.build(args))
    return 0


def similarity(text: str) -> float:
    """Read a share for argparse: from one half to all."""
    if not 0.5 <= float(text) <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0.5 to 1")
    return float(text)


def parser() -> argparse.ArgumentParser:
    parser = flags.Parser(__doc__)
    add = parser.add_argument
    number = flags.whole_number(0)
    kind = flags.input_path
    add("--moderated_files", nargs="+", type=kind, required=True, metavar="FILE", help="see above")
    add("--output_dir", type=Path, default=Path("or-bench"), help="folder (default ./%(default)s)")
    add("--toxic_sample", type=number, default=655, help="prompts in the sample (default 655)")
    add("--seed", type=int, default=0, help="random seed of that sample (default %(default)s)")
    add(
        "--similarity",
        type=similarity,
        default=0.8,
        metavar="SHARE",
        help="shared text in near-duplicates, 0.5 to 1 (default "
        "%(default)s: 1 of 18 words differs)",
    )
    add(
        "--exclude",
        nargs="+",
        default=[],
        metavar="FILE",
        help="CSVs (column prompt) or named sets: drop near-duplicates of their prompts",
    )
    add(
        "--names",
        nargs=2,
        metavar=("SAFE", "TOXIC"),
        help="write two CSVs with these names instead: safe prompts, all toxic prompts",
    )
    add(
        "--refusals_count",
        action="store_true",
        help="count refusals as safe responses (default: the prompt stays toxic)",
    )
    add("--license", default="unknown", help="for the card, e.g. cc-by-4.0 (default %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(run_script(main))
