"""Builds the report that response_checker/plot_results.py describes."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.messages import UserError, say
from orbench.base.records import read_record, write_record
from orbench.base.tables import check_outputs, make_folder, sha256_of, write_bytes
from orbench.base.words import SIDES
from orbench.report import compare, drift, export, gate, hedging, load, rates, tables, toxicity
from orbench.report.about import DEMO
from orbench.report.finding import findings
from orbench.report.frames import Behind, Frames
from orbench.report.lines import lines_of
from orbench.report.multiverse import stands_in
from orbench.report.page import MOST_ROWS, Picture, write_page
from orbench.report.seed_pairs import seed_pairs
from orbench.report.tiers import tiers
from orbench.report.triggers import triggers


def report(args: Namespace) -> int:
    """Write the report and return the exit status that --fail_if asks for. Raises OSError and
    UserError.
    """
    output: Path = args.output_dir / "results.csv"
    sources = _sources(args)
    rows = load.load_results(sources, MOST_ROWS if args.html else 0)
    measured = rates.rates(rows)
    pairs = compare.compare(measured)
    pairs["stands_in"] = stands_in(pairs, rows)
    own = compare.leaderboard(measured)
    board = own
    if args.with_published:
        board = compare.with_published(own)
    frames, lines = _behind(args, rows, measured, own)
    csvs = {
        "comparison": pairs[compare.PAIR_COLUMNS],
        "leaderboard": board[compare.BOARD_COLUMNS],
        "results": measured[rates.RATE_COLUMNS],
    }
    inputs = [source.path for source in sources] + args.toxicity
    files = _write_tables(output, csvs | frames, inputs)
    files.append(export.write_summary(output, measured, own))
    notes = [*tables.warnings(measured), *lines]
    if measured["doubt"].eq(DEMO).all():
        notes = []  # the finding says the first; the rest is about what few prompts cannot show
    notes += lines_of("rates.txt", results=rates.overall(measured).to_dict("records"))
    notes += lines_of("comparisons.txt", pairs=pairs.to_dict("records"))
    for line in notes:
        say(line)
    lines += compare.rank_correlation(board)
    # The numbers are safe before anything is drawn.
    files += _show(args, rows, compare.in_order(measured, own), board, pairs, frames, lines)
    _finish(args, sources, files)
    for line in findings(own, pairs):
        say(line)
    if args.fail_if:
        return gate.check(args.fail_if, measured, args.gated)
    return 0


def _show(
    args: Namespace,
    rows: DataFrame,
    measured: DataFrame,
    board: DataFrame,
    pairs: DataFrame,
    frames: Frames,
    lines: Sequence[str],
) -> list[Path]:
    """Write what people look at, and return the paths. measured: in the leaderboard's order."""
    output = args.output_dir / "results.csv"
    warnings = tables.warnings(measured)
    grids = tables.grids(measured, board, pairs)
    files = tables.write_documents(output, grids, [*warnings, *lines])
    pictures = []
    if not args.table:
        pictures = _draw(args, measured, board, frames, files)
    if args.html:
        files.append(output.with_suffix(".html"))
        shown = {
            "finding": findings(board[~board["published"]], pairs),
            "notes": warnings,
            "board": board.to_dict("records"),
            "pairs": pairs.to_dict("records"),
            "grids": grids,
            "behind_rates": tables.behind(frames),
            "tiers": frames.get("tiers", DataFrame()).to_dict("records"),
            "details": lines,
            "pictures": pictures,
        }
        write_page(files[-1], rows, measured, shown)
        if args.name_page:
            say(f"page: {files[-1]}")
    if args.export:
        files += export.write_eee(output.with_name("eee"), measured)
    return files


def _sources(args: Namespace) -> list[load.Source]:
    sources = []
    for side in (*SIDES, load.BOTH):
        for text in vars(args)[side]:
            sources += load.sources_of(text, side)
    if args.baseline:
        sources = gate.with_baseline(args.baseline, sources)
    needs_rows = args.html or not args.with_published
    if needs_rows and not sources:
        raise UserError("only files of failed rows were given; give the results beside them")
    return sources


def _behind(args: Namespace, rows: DataFrame, measured: DataFrame, own: DataFrame) -> Behind:
    """Return what stands behind the rates: frames by the names of their CSVs, and lines for the
    reader.
    """
    parts = list[Behind]()
    if rows.empty:
        return {}, []
    if args.toxicity:
        parts.append(toxicity.toxicity(rows, own, args.toxicity))
    if args.pairs:
        parts.append(seed_pairs(rows, own))
    parts.append(hedging.hedging(measured))
    parts.append(tiers(rows, own))
    parts.append(drift.drift(measured))
    parts.append(triggers(rows, own))
    frames = dict[str, DataFrame]()
    lines = []
    for several, about in parts:
        frames |= {name: frame for name, frame in several.items() if len(frame)}
        lines += about
    return frames, lines


def _write_tables(output: Path, csvs: Frames, inputs: Sequence[Path]) -> list[Path]:
    """Write the CSVs and return their paths. Raises UserError if an output is an input."""
    paths = [output.with_stem(name) for name in csvs]
    others = [output.with_suffix(kind) for kind in (".md", ".tex", ".html", ".json")]
    check_outputs([*paths, *others], inputs)
    make_folder(output.parent)
    for path, table in zip(paths, csvs.values(), strict=True):
        tables.write_table(path, table)
    return paths


def _draw(
    args: Namespace,
    measured: DataFrame,
    board: DataFrame,
    frames: Frames,
    files: list[Path],
) -> list[Picture]:
    """Draw what can be drawn, in each of the formats, and add the files to `files`. Returns the
    pictures of the page.
    """
    from orbench.report import pictures  # --table does without matplotlib

    drawn = []
    folder = args.output_dir / "figures"
    make_folder(folder)
    for name, title, figure in pictures.pictures(measured, board, frames):
        for kind in args.formats:
            path = folder / f"{name}.{kind}"
            write_bytes(path, pictures.as_file(figure, kind))
            files.append(path)
        if args.html and not name.startswith(("scatter", "heatmap")):  # the page has its own
            drawn.append(Picture(name, title, pictures.as_file(figure, "svg")))
    return drawn


def _finish(args: Namespace, sources: Sequence[load.Source], files: list[Path]) -> None:
    """Write the run record, and remove what the last report wrote and this one did not."""
    folder: Path = args.output_dir
    output = folder / "results.csv"
    inputs = [{"path": str(path), "sha256": sha256_of(path)} for path in args.toxicity]
    for path, model, *_ in sources:
        inputs.append({"path": str(path), "model": model, "sha256": sha256_of(path)})
    before = read_record(output).get("files", [])
    names = [path.relative_to(folder).as_posix() for path in files]
    write_record(output, "plot_results", args.command, {"inputs": inputs, "files": names})
    own_folders = (folder, folder / "figures", folder / "eee")
    for name in before:
        path = folder / name
        if name not in names and path.parent in own_folders and path.is_file():
            path.unlink()
