"""Builds the report that response_checker/plot_results.py describes."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.messages import UserError, say
from orbench.base.records import read_record, write_record
from orbench.base.tables import check_outputs, make_folder, sha256_of, write_bytes
from orbench.base.words import SIDES
from orbench.report import compare, drift, export, load, rates, tables, toxicity
from orbench.report.about import DEMO
from orbench.report.finding import findings
from orbench.report.frames import Behind, Frames
from orbench.report.multiverse import stands_in
from orbench.report.page import MOST_ROWS, Picture, write_page
from orbench.report.seed_pairs import seed_pairs
from orbench.report.triggers import triggers

MOST_FINDINGS = 6  # lines of comparisons on stderr: those of three models on two sides


def report(args: Namespace, name_page: bool = True) -> Path:
    """Write the report and return the path of results.csv.

    name_page: say where the page is. Raises OSError and UserError.
    """
    output: Path = args.output_dir / "results.csv"
    sources = _sources(args)
    texts = MOST_ROWS if args.html else 0
    rows = load.load_results(sources, texts)
    measured = rates.rates(rows)
    pairs = compare.compare(measured)
    own = compare.leaderboard(measured)
    board = own
    if args.with_published:
        board = compare.with_published(own)
    frames, lines = _behind(args, rows, measured, own)
    is_demo = measured["doubt"].eq(DEMO).all()
    if is_demo:
        lines = []  # they are about what few prompts cannot show
    pairs["stands_in"] = stands_in(pairs, rows)
    finding = findings(own, pairs)
    warnings = tables.warnings(measured)
    ordered = compare.in_order(measured, own)
    grids = tables.grids(ordered, board, pairs)
    details = [*lines, *compare.rank_correlation(board)]
    csvs = {
        "comparison": pairs[compare.PAIR_COLUMNS],
        "leaderboard": board[compare.BOARD_COLUMNS],
        "results": measured[rates.RATE_COLUMNS],
    }
    inputs = [source.path for source in sources] + args.toxicity
    files = _write_tables(output, csvs | frames, inputs)
    files += tables.write_documents(output, grids, [*warnings, *details])
    for line in [*warnings, *lines, *_rate_lines(measured), *_finding_lines(pairs)]:
        if not (is_demo and line in warnings):  # the finding says it
            say(line)
    # The numbers are safe before anything is drawn.
    pictures = []
    if not args.table:
        pictures = _draw(args, ordered, board, frames, files)
    if args.html:
        files.append(output.with_suffix(".html"))
        shown = {
            "finding": finding,
            "notes": warnings,
            "board": board.to_dict("records"),
            "pairs": pairs.to_dict("records"),
            "grids": grids,
            "behind_rates": tables.behind(frames),
            "details": details,
            "pictures": pictures,
        }
        write_page(files[-1], rows, ordered, shown)
        if name_page:
            say(f"page: {files[-1]}")
    if args.export:
        files += export.write_eee(output.with_name("eee"), measured)
    _finish(args, sources, files)
    for line in finding:
        say(line)
    return output


def _sources(args: Namespace) -> list[load.Source]:
    sources = []
    for side in (*SIDES, load.BOTH):
        for text in vars(args)[side]:
            sources += load.sources_of(text, side)
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
    others = [output.with_suffix(kind) for kind in (".md", ".tex", ".html")]
    check_outputs([*paths, *others], inputs)
    make_folder(output.parent)
    for path, table in zip(paths, csvs.values(), strict=True):
        tables.write_table(path, table)
    return paths


def _rate_lines(measured: DataFrame) -> Iterator[str]:
    """Yield `gpt-4o: over-refusal rate 12.3 % [11.0, 14.6] (n 1,319, unscored 0)` per result."""
    several_judges = measured["judge"].nunique() > 1
    for row in rates.overall(measured).to_dict("records"):
        name = rates.label(row)
        if several_judges:
            name += f", {row['judge']}"
        about = f"n {row['n']:,.0f}"
        if row["unscored"] >= 0:  # else it is not known
            about += f", unscored {row['unscored']:,.0f}"
        if row["doubt"]:
            about += f", {row['doubt']}"
        rate = f"{SIDES[row['side']].rate} {row['rate_percent']:.1f} % {row['interval']}"
        yield f"{name}: {rate} ({about})"


def _finding_lines(pairs: DataFrame) -> Iterator[str]:
    """Yield a line per comparison; if they are many, of some that have a finding."""
    total = len(pairs)
    if total > MOST_FINDINGS:
        pairs = pairs[pairs["stands"]][:MOST_FINDINGS]
    for row in pairs.to_dict("records"):
        gap = f"{row['difference_points']:+z.1f} points"
        ends = f"[{row['low_points']:z.1f}, {row['high_points']:z.1f}]"
        both = f"{rates.short_label(row, '_a')} - {rates.short_label(row, '_b')}"
        if pairs["judge"].nunique() > 1:
            both += f", {row['judge']}"
        yield f"{both}, {SIDES[row['side']].rate}: {gap} {ends}: {row['finding']}"
    if len(pairs) < total:
        yield f"{total - len(pairs)} more comparisons: see comparison.csv"


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
    for path, model, _ in sources:
        inputs.append({"path": str(path), "model": model, "sha256": sha256_of(path)})
    before = read_record(output).get("files", [])
    names = [path.relative_to(folder).as_posix() for path in files]
    write_record(output, "plot_results", args.command, {"inputs": inputs, "files": names})
    own_folders = (folder, folder / "figures", folder / "eee")
    for name in before:
        path = folder / name
        if name not in names and path.parent in own_folders and path.is_file():
            path.unlink()
