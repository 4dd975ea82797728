"""Build the datasets from moderated prompts: safe ones, toxic ones, a sample of the toxic ones.

    python build_dataset.py --moderated_files p_toxic_moderation_gpt4_prompt.csv \\
        p_non_toxic_moderation_gpt4_prompt.csv responses_moderation_merged_gpt4_response.csv

Reads files of stage 3, merged or split, and of stage 3 with --column=response on stage 4's
responses to the toxic prompts (the second chance). Columns: prompt, category, is_toxic.

Writes to --output_dir, in input order (docs/prompt_sets.md has the rules):
    or-bench-80k.csv        prompt, category, and seed_id if there are seeds: the safe prompts
    or-bench-toxic-all.csv  the same columns: the toxic prompts; or-bench-toxic.csv: some of them
    ..._provenance.csv      for each: all columns of the input, second_chance, source_file
    or-bench-dropped.csv    prompt, category, is_toxic, reason, resembles: what was left out
    README.md, eval.yaml    the dataset card, and the benchmark's tasks, for the Hugging Face Hub
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split

from orbench.base.messages import run_script, tell
from orbench.base.words import Words
from orbench.stages.flags import Parser
from orbench.stages.prompt_sets import prompts_of


def main(argv: Words) -> int:
    args = Parser(__doc__, "build_dataset").parse_args(argv)
    from orbench.datasets import build

    tell(build.build(args, prompts_of(args.exclude)))
    return 0


if __name__ == "__main__":
    run_script(main)
