"""Put the results of stages 4 and 5 into tables and pictures for a paper.

    python plot_results.py --over_refusal final_*/*hard-1k*.csv --toxic final_*/*toxic*.csv
    python plot_results.py --merged NAME=results.csv --table
    python plot_results.py --over_refusal results/over_refusal --toxic results/toxic --html
    python plot_results.py --with_published
    python plot_results.py --plan --rate 0.2 --difference 0.05 --rewrites 5

Reads result files of stage 4 (`is_rejected`) or stage 5 (`answer_category`), a model each, with the
column `prompt`, and where there `category`, `response`, `rejection_reason`, `is_toxic` (--merged),
`answer_type_response`. The name of the model comes from the run record beside the file, or from
`NAME=FILE`. Rows without a verdict are read from `<stem>_failed.csv` and the run record beside it.

Writes to --output_dir:
    results.csv      a row per model, side and category; rates and 95 % intervals in percent
    comparison.csv   a row per pair of models: paired difference, test, Holm, what it could show
    results.md, results.tex   the same, to be read
    scatter, heatmap_<side>, radar_<model>, bars_<model>   in each of --formats
    results.html     with --html: tables, pictures, and the prompts and responses behind each number
"""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench import options
from orbench.columns import OVERALL
from orbench.terminal import UserError, counted, run_script, say, tell

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

    from orbench.report.measurements import Measurement

# What needs pandas or matplotlib is imported in a function: --help answers in a blink, and --table
# works without matplotlib.

FORMATS = ("png", "svg", "pdf")
LIBRARIES = (
    "numpy",
    "pandas",
    "scipy",
    "statsmodels",
    "matplotlib",
    "textalloc",
)  # in the run record
HTML_ROWS = 12_000  # six models on the hard and the toxic set; about 30 MB of page


def main(argv: Sequence[str]) -> int:
    args = command_line(argv)
    if args.plan:
        return plan(args)
    try:
        path = run(args)
    except OSError as error:
        raise UserError(f"{error.filename or args.output_dir}: {error.strerror}") from None
    tell(path)
    return 0


def run(args: argparse.Namespace) -> Path:
    """Read, write the tables, draw. Returns the path of results.csv."""
    from orbench import record
    from orbench.report import documents, tables
    from orbench.report.comparisons import PAIR_COLUMNS, comparisons_of
    from orbench.report.measurements import measure, sources_of
    from orbench.report.people import read_audit, read_labels, read_validation
    from orbench.report.results import RATE_COLUMNS, results_of

    given = (("over_refusal", args.over_refusal), ("toxic", args.toxic), ("", args.merged))
    sources = [one for side, texts in given for text in texts for one in sources_of(text, side)]
    validated = read_validation(args.validation) if args.validation else None
    labels = read_labels(*args.labels) if args.labels else None
    audited = read_audit(args.audited) if args.audited else None
    measurements = measure(sources, labels, audited)
    results = results_of(measurements, validated, args.with_published)
    comparisons = comparisons_of(measurements)
    grids = tables.grids(results, comparisons, validated)
    warnings = tables.warnings(measurements, results)

    folder: Path = args.output_dir
    folder.mkdir(parents=True, exist_ok=True)
    main_csv = folder / "results.csv"
    tables.write_csv(folder / "comparison.csv", comparisons, PAIR_COLUMNS)
    documents.write_markdown(folder / "results.md", grids, warnings)
    documents.write_latex(folder / "results.tex", grids, warnings)
    tables.write_csv(main_csv, results, RATE_COLUMNS)
    record.write(main_csv, run_record(args, measurements, flips_in(results)))
    for line in [*tables.summary_lines(results), *warnings]:
        say(line)
    # The numbers are safe before anything is drawn.
    pictures = [] if args.table else draw(args, results)
    if args.html:
        from orbench.report import page

        html = folder / "results.html"
        say(page.write_page(html, measurements, grids, warnings, pictures, args.html_rows))
    return main_csv


def plan(args: argparse.Namespace) -> int:
    """Say how many prompts a comparison needs; their number alone goes to stdout."""
    from orbench import planning

    try:
        found = planning.prompts_needed(
            args.rate, args.difference, rewrites=args.rewrites, icc=args.icc
        )
    except ValueError as error:
        raise UserError(f"--rate {args.rate:g} --difference {args.difference:g}: {error}") from None
    other = args.rate + args.difference
    say(
        f"to show that {args.rate:.1%} and {other:.1%} differ, with a probability of "
        f"{planning.POWER:.0%} at the 5 % level: {counted(found.prompts, 'prompt')}, the same for "
        "both models"
    )
    if args.rewrites > 1:
        say(
            f"{args.rewrites} rewrites a seed, correlation {args.icc:g}: design effect "
            f"{found.design_effect:.2f}, {counted(found.seeds, 'seed')}"
        )
    print(found.prompts)
    return 0


def draw(args: argparse.Namespace, results: "DataFrame") -> list[tuple[str, bytes]]:
    """Draw everything that can be drawn. Returns (title, SVG) of each picture, for the page."""
    from orbench.report.figures import rendered, save
    from orbench.report.pictures import pictures

    drawn = []
    for picture in pictures(results, say):
        for kind in args.formats:
            save(picture, args.output_dir, kind)
        if unnamed := picture.drawn.unnamed:
            say(
                f"{picture.name}: no room for {counted(len(unnamed), 'name')}: {', '.join(unnamed)}"
            )
        if args.html:
            drawn.append((picture.title, rendered(picture, "svg")))
    return drawn


def flips_in(results: "DataFrame") -> list[dict[str, object]]:
    """How often the samples of a prompt got different verdicts, where there are several."""
    columns = ["model", "side", "samples", "flip_percent", "flip_low_percent", "flip_high_percent"]
    several = (results["category"] == OVERALL) & results["flip_percent"].notna()
    found: list[dict[str, object]] = results.loc[several, columns].to_dict("records")
    return found


def run_record(
    args: argparse.Namespace,
    measurements: Sequence["Measurement"],
    flips: Sequence[dict[str, object]],
) -> dict[str, object]:
    """Enough to say how the numbers came about."""
    return {
        "stage": "plot_results",
        "command": sys.argv,
        "inputs": [
            {
                "model": one.model,
                "side": one.side,
                "path": str(one.table.path),
                "sha256": one.table.sha256,
            }
            for one in measurements
        ],
        "validation": str(args.validation or ""),
        "labels": str(args.labels[0]) if args.labels else "",
        "audited": list(map(str, args.audited)),
        "flips": list(flips),
        "with_published": args.with_published,
        "scripted": any(one.scripted for one in measurements),
        "versions": {"python": sys.version.split()[0], **dict(library_versions())},
    }


def library_versions() -> list[tuple[str, str]]:
    """The installed libraries that had a part in the numbers and pictures."""
    found = []
    for name in LIBRARIES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found


def command_line(argv: Sequence[str]) -> argparse.Namespace:
    parser = options.Parser(__doc__ or "")
    for flag, what in (
        ("--over_refusal", "results on safe prompts, a model each"),
        ("--toxic", "results on toxic prompts, a model each"),
        ("--merged", "results on both, told apart by the column is_toxic"),
    ):
        parser.add_argument(
            flag, nargs="+", action="extend", default=[], metavar="[MODEL=]FILE|FOLDER", help=what
        )
    parser.add_argument(
        "--with_published", action="store_true", help="add the 32 models of the paper"
    )
    add_people(parser)
    parser.add_argument(
        "--output_dir",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="where the files go (default: %(default)s)",
    )
    parser.add_argument("--table", action="store_true", help="only tables, without matplotlib")
    parser.add_argument(
        "--formats",
        type=formats,
        default=FORMATS,
        metavar="LIST",
        help=f"of the pictures, with commas between (default: {','.join(FORMATS)})",
    )
    parser.add_argument("--html", action="store_true", help="write one self-contained page too")
    parser.add_argument(
        "--html_rows",
        type=options.whole_number(0),
        default=HTML_ROWS,
        metavar="N",
        help="prompts and responses in the page, at most (default: %(default)s)",
    )
    add_plan(parser)
    args = parser.parse_args(argv)
    if args.plan and None in (args.rate, args.difference):
        parser.error("--plan needs --rate and --difference")
    if not args.plan and not (
        args.over_refusal or args.toxic or args.merged or args.with_published
    ):
        parser.error("nothing to show: give --over_refusal, --toxic, --merged or --with_published")
    return args


def add_people(parser: argparse.ArgumentParser) -> None:
    """The flags of what people said."""
    parser.add_argument(
        "--validation",
        type=options.input_path,
        metavar="FILE",
        help="what stage 5 wrote with --validate_against: adds rates corrected for the judge",
    )
    parser.add_argument(
        "--labels",
        type=labelled,
        metavar="[COLUMN=]FILE",
        help="people's labels of a random part of these responses, with the columns prompt, "
        "response and COLUMN (default: label): adds rates corrected by them",
    )
    parser.add_argument(
        "--audited",
        nargs="+",
        type=options.input_path,
        default=[],
        metavar="FILE",
        help="labelled copies of an audit sheet: adds the over-refusal of truly safe prompts",
    )


def add_plan(parser: argparse.ArgumentParser) -> None:
    """The flags of a plan."""
    group = parser.add_argument_group("planning, without any results")
    group.add_argument("--plan", action="store_true", help="say how many prompts are needed")
    group.add_argument("--rate", type=float, metavar="SHARE", help="of one model, from 0 to 1")
    group.add_argument(
        "--difference", type=float, metavar="SHARE", help="from the rate of the other model"
    )
    group.add_argument(
        "--rewrites",
        type=options.whole_number(1),
        default=1,
        metavar="N",
        help="prompts from one seed (default: %(default)s)",
    )
    group.add_argument(
        "--icc",
        type=float,
        default=0.3,
        metavar="R",
        help="how alike rewrites of one seed are treated: 0 not at all, 1 always (default: "
        "%(default)s)",
    )


def labelled(text: str) -> tuple[Path, str]:
    """`[COLUMN=]FILE` -> the file and the column."""
    column, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return options.input_path(text), "label"
    return options.input_path(path), column


def formats(text: str) -> tuple[str, ...]:
    """`png,pdf` -> ("png", "pdf")."""
    names = tuple(dict.fromkeys(text.lower().replace(" ", "").split(",")))
    wrong = [name for name in names if name not in FORMATS]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(FORMATS)}")
    return names


if __name__ == "__main__":
    sys.exit(run_script(main))
