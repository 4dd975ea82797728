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
    corrections.csv    with --validation: rates corrected for the judge's errors
    triggers.csv       words in refused against answered safe prompts, with examples
    toxicity*.csv      with --toxicity: rates over prompts whose label is agreed on, by score
    pairs*.csv         with --pairs: seeds refused and their rewrites answered
    results.md, .tex   all tables, for reading
    figures/           scatter, heatmap_{side}, toxicity, triggers_{model} in each of --formats
    results.html       with --html: tables, pictures, and the responses behind each number
    eee/               with --export eee: rates in the Every Eval Ever schema, one file per model
                       and side, without prompts and responses
Writes nothing if nothing has changed since the last run. Removes files that only that run made.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository root, for orbench

from orbench.base.messages import UserError, run_script, say, tell
from orbench.base.records import read_record, versions, write_record
from orbench.base.tables import make_folder, sha256_of, write_bytes
from orbench.base.words import SIDES
from orbench.stages.flags import Parser, input_path

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

    from orbench.report.load import Source
    from orbench.report.page import Picture, Section
    from orbench.report.tables import Grid

# What needs pandas or matplotlib is imported in functions: --help answers at once, and --table
# works without matplotlib.

FORMATS = ("png", "svg", "pdf")


def main(argv: Sequence[str]) -> int:
    args = command_line(argv)
    from orbench.report import reuse

    output = args.output_dir / "results.csv"
    last = read_record(output)
    state = reuse.state_of(args)
    if reuse.holds(output, state, last):
        say(f"nothing has changed since {output} was written")
    else:
        write_results(args)
        reuse.finish(output, state, last)
    tell(output)
    return 0


def write_results(args: argparse.Namespace) -> None:
    """Write everything. Raises OSError and UserError."""
    from orbench.report import compare, export, load, page, rates, tables

    sources = sources_in(args)
    folder = args.output_dir
    rows = load.load(sources, page.MOST_ROWS if args.html else 0)
    measured = rates.rates(rows)
    pairs = compare.compare(rows, measured)
    board = compare.leaderboard(rows, measured, args.with_published)
    grids = tables.grids(measured, board, pairs)
    warnings = tables.warnings(measured)
    csvs = [("comparison", pairs, compare.PAIR_COLUMNS)]
    csvs += [("leaderboard", board, compare.BOARD_COLUMNS)]
    csvs += [("results", measured, rates.RATE_COLUMNS)]
    if args.validation:
        corrections = rates.corrected(rows, measured, args.validation)
        warnings = list(dict.fromkeys([*warnings, *tables.warnings(corrections)]))
        csvs += [("corrections", corrections, rates.CORRECTED_COLUMNS)]
    frames, said = safety(args, rows, measured, board) if len(rows) else ({}, [])
    details = [*said, *compare.rank_correlation(board)]
    csvs += [(name, table, list(table.columns)) for name, table in frames.items()]
    make_folder(folder)
    for name, table, columns in csvs:
        tables.write_table(folder / f"{name}.csv", table, columns)
    tables.write_documents(folder / "results", grids, [*warnings, *details])
    write_record(folder / "results.csv", run_record(args, sources))
    for line in [*warnings, *said, *rates_in_words(measured, board)]:
        say(line)
    # The numbers are safe before anything is drawn.
    pictures = [] if args.table else draw(args, measured, board, frames)
    if args.html:
        scatters = [one for one in pictures if one.name.startswith("scatter")]
        sections = sections_of(grids, frames, pictures, details)
        page.write_page(
            folder / "results.html", rows, measured, board, warnings, scatters, sections
        )
    if args.export:
        export.write_eee(folder / "eee", measured)


def sources_in(args: argparse.Namespace) -> list["Source"]:
    """The result files of the command line. Raises UserError if there is none."""
    from orbench.report.load import sources_of

    words = (("over_refusal", args.over_refusal), ("toxic", args.toxic), ("", args.merged))
    found = [source for side, texts in words for text in texts for source in sources_of(text, side)]
    if not found and not args.with_published:
        raise UserError("only files of failed rows were given; give the results beside them")
    return found


def rates_in_words(measured: "DataFrame", board: "DataFrame") -> Iterator[str]:
    """`gpt-4o: over-refusal rate 12.3 % [11.0, 14.6] (n 1,319, unscored 0)`, a line per model."""
    from orbench.report.rates import label, overall

    for entry in board[~board["published"]].to_dict("records"):
        sides = measured["result"].isin([entry["safe"], entry["toxic"]])
        said = []
        for row in overall(measured[sides]).to_dict("records"):
            about = [f"{name} {row[name]:,.0f}" for name in ("n", "unscored") if row[name] >= 0]
            about += filter(None, [row["doubt"]])
            of = f"{SIDES[row['side']].rate} {row['rate_percent']:.1f} % {row['interval']}"
            said.append(f"{of} ({', '.join(about)})")
        yield f"{label(entry)}: {' · '.join(said)}"


def safety(
    args: argparse.Namespace, rows: "DataFrame", measured: "DataFrame", board: "DataFrame"
) -> tuple[dict[str, "DataFrame"], list[str]]:
    """What stands behind the rates: frames by the names of their CSVs, and lines for the reader."""
    from orbench.report import drift, seed_pairs, toxicity, triggers

    parts = [toxicity.toxicity(rows, board, args.toxicity)] if args.toxicity else []
    parts += [seed_pairs.seed_pairs(rows, board)] if args.pairs else []
    parts += [drift.drift(rows, measured), triggers.triggers(rows, board)]
    frames = {name: one for found, _ in parts for name, one in found.items() if len(one)}
    return frames, [line for _, lines in parts for line in lines]


def draw(
    args: argparse.Namespace,
    measured: "DataFrame",
    board: "DataFrame",
    frames: "dict[str, DataFrame]",
) -> list["Picture"]:
    """Draw everything that can be drawn, in each of the formats. frames: of `safety`."""
    from orbench.report.page import Picture
    from orbench.report.pictures import as_file, on_dark, pictures, safety_pictures

    drawn = []
    figures = args.output_dir / "figures"
    make_folder(figures)
    for name, title, figure in chain(pictures(measured, board), safety_pictures(frames)):
        files = {kind: as_file(figure, kind) for kind in args.formats}
        for kind, content in files.items():
            write_bytes(figures / f"{name}.{kind}", content)
        if args.html:
            svg = files.get("svg") or as_file(figure, "svg")
            drawn.append(Picture(name, title, svg, on_dark(svg)))
    return drawn


def sections_of(
    grids: Sequence["Grid"],
    frames: "dict[str, DataFrame]",
    pictures: Sequence["Picture"],
    said: Sequence[str],
) -> list["Section"]:
    """What follows the leaderboard on the page; words and the tables of figures are folded."""
    from orbench.report import page, tables

    def drawn(name: str) -> list["Picture"]:
        return [one for one in pictures if one.name.startswith(name)]

    _, *others = grids
    pairs = [grid for grid in others if grid.title == tables.SAME_PROMPTS]
    details = [grid for grid in others if grid.title != tables.SAME_PROMPTS]
    about = [*said, tables.LEGEND, *tables.ABOUT_DETAILS]
    sections = [
        page.Section("Who refuses more?", [tables.ABOUT_PAIRS], pairs),
        page.Section("By category", pictures=drawn("heatmap")),
        *(
            page.Section(title, [line], [grid], drawn(name), folded=name == "triggers")
            for name, title, line, grid in tables.behind_rates(frames)
        ),
        page.Section("Details", about, details, folded=True),
    ]
    return [one for one in sections if one.tables or one.pictures]


def run_record(args: argparse.Namespace, sources: Sequence["Source"]) -> dict[str, object]:
    """How the numbers came about."""
    return {
        "stage": "plot_results",
        "command": sys.argv,
        "inputs": [
            {"path": str(one.path), "model": one.model, "sha256": sha256_of(one.path)}
            for one in sources
        ],
        "validation": str(args.validation or ""),
        "toxicity": [{"path": str(one), "sha256": sha256_of(one)} for one in args.toxicity or ()],
        "with_published": args.with_published,
        "versions": versions(),
    }


def command_line(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(__doc__)
    add = parser.add_argument
    for flag, meaning in (
        ("--over_refusal", "results on safe prompts"),
        ("--toxic", "results on toxic prompts"),
        ("--merged", "results on both, separated by the column is_toxic"),
    ):
        word = "[MODEL=]FILE|FOLDER"
        add(flag, nargs="+", action="extend", default=[], metavar=word, help=meaning)
    add("--with_published", action="store_true", help="add the 32 models of the paper")
    meaning = "what stage 5 wrote with --validate_against: adds rates corrected for judge errors"
    add("--validation", type=input_path, metavar="FILE", help=meaning)
    meaning = "labels of the prompts: files of stage 3, or people's ratings (docs/results.md)"
    add("--toxicity", type=input_path, nargs="+", action="extend", metavar="FILE", help=meaning)
    meaning = "pair rewrites (--over_refusal) with their seeds (--toxic)"
    add("--pairs", action="store_true", help=meaning)
    meaning = "where the files go (default %(default)s)"
    add("--output_dir", type=Path, default=Path("results"), metavar="FOLDER", help=meaning)
    add("--table", action="store_true", help="only tables, without matplotlib")
    meaning = f"picture formats, comma-separated: {', '.join(FORMATS)} (default png)"
    add("--formats", type=formats, default=FORMATS[:1], metavar="LIST", help=meaning)
    add("--html", action="store_true", help="also write one self-contained page")
    add("--export", choices=("eee",), help="also write the rates in the schema of Every Eval Ever")
    args = parser.parse_args(argv)
    given = args.over_refusal or args.toxic or args.merged
    if not given and (args.html or not args.with_published):
        parser.error("nothing to show: give --over_refusal, --toxic or --merged")
    return args


def formats(text: str) -> tuple[str, ...]:
    """`png,pdf` -> ("png", "pdf")."""
    names = tuple(dict.fromkeys(text.lower().replace(" ", "").split(",")))
    wrong = [name for name in names if name not in FORMATS]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not one of {', '.join(FORMATS)}")
    return names


if __name__ == "__main__":
    sys.exit(run_script(main))
