"""Make a dated release of new prompts: seeds, a search in each category, two datasets.

    python release_prompts.py --name=2026-12 --rewriter=MODEL --targets=A,B,C --judges=X,Y,Z

Writes to releases/{name}/: hard.csv, the hits of the searches, and toxic.csv, the seeds that most
judges call toxic, with a card and run records; without a hit only work/. Prompts of other releases
and their near-duplicates are left out. Each model first gets one short test request. Rerun the same
command to resume.
"""

import sys
from os.path import realpath

sys.path.insert(0, realpath(f"{__file__}/../.."))  # the repository root
import orbench  # noqa: F401 - first: from here on Ctrl-C ends a script in one line

# isort: split
from argparse import Namespace
from pathlib import Path

from orbench.base.messages import UserError, run_script, say
from orbench.base.tables import file_name_part, make_folder, read_csv
from orbench.base.words import CATEGORIES, CATEGORY_NAMES, Choice, Json, Words, category_named
from orbench.judging.panels import models_of_search
from orbench.stages.flags import Parser
from orbench.stages.run import check_settings, load, run, words_of

SEEDS_PER_HIT = 3


def main(argv: Words) -> int:
    args = parser().parse_args(argv)
    release = Path("releases", file_name_part(args.name))
    work = release / "work"
    new = args.new_category
    categories = [category_named(name, new) for name in args.categories]
    if new and new not in categories:
        raise UserError(f"--categories does not name {new.name!r}, which --new_category defines")
    searching, confirming = models_of_search(args)
    if not work.exists():
        from orbench.asking.live import try_endpoints

        try_endpoints([*searching, *confirming])
    make_folder(work)
    settings = vars(args) | {"categories": " ".join(args.categories)}
    del settings["command"]  # in another order it is the same release
    check_settings(work / "settings", settings, "--name")
    excluded = list(args.exclude)
    for path in sorted(release.parent.glob("*/*.csv")):
        if path.parent != release and path.stem in ("hard", "toxic"):
            excluded.append(str(path))
    others = {"exclude": excluded or None}
    files = []
    for category in categories:
        files += moderated(work / file_name_part(category.name), category, args, others)
    if not any(read_csv(hits).rows for hits in files[::2]):
        raise UserError(
            "no safe rewrite was refused, or --confirm confirmed none (see the lines "
            f"`candidates`); {work} is kept; try other --targets under another --name"
        )
    build = {"names": ["hard", "toxic"], "output_dir": release, "moderated_files": files}
    return int(load("moderator/build_dataset.py").main(words_of(others | build)))


def moderated(stem: Path, category: Choice, args: Namespace, others: Json) -> list[str]:
    """Return the CSVs with the hits and the moderated seeds of a category. Raises UserError."""
    new = None if category in CATEGORIES else category
    seeds = step(
        "toxic_prompt_generator/generate_toxic_promt_from_category.py",
        model=args.rewriter,
        category=category.name,
        num_toxic_prompts=SEEDS_PER_HIT * args.per_category,
        output_path=f"{stem}.csv",
        new_category=new,
    )
    small = {}
    if args.rewriter == "scripted":  # such a search measures nothing
        small = {"rounds": 2, "max_tokens": 40}
    hits = step(
        "rewritter/evolve_prompts.py",
        seeds=seeds,
        rewriter=args.rewriter,
        targets=args.targets,
        judges=args.judges,
        confirm=args.confirm,
        wanted=args.per_category,
        output_path=f"{stem}_hits.csv",
        **small,
        **others,
        new_category=new,
    )
    toxic = step(
        "moderator/moderate_only.py",
        moderator_model=args.judges,
        merge_result="False",
        input_file=seeds,
        output_path=f"{stem}_seeds.csv",
        new_category=new,
    )
    return [hits, toxic]


def step(script: str, **flags: object) -> str:
    """Run a script, and return the path of its CSV. End the release if it stops."""
    say(f"== {script}")
    outcome = run(script, flags)
    if outcome.status == 1:  # it has said why; 3: some rows failed, and are in a file of their own
        sys.exit(1)
    return str(outcome.path)


def parser() -> Parser:
    parser = Parser(__doc__, "release_prompts", "confirm", "new_category")
    parser.set_defaults(categories=CATEGORY_NAMES)
    return parser


if __name__ == "__main__":
    run_script(main)
