"""Builds the report that response_checker/plot_results.py describes."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]

from orbench.base.messages import UserError, say
from orbench.base.records import read_record, versions, write_record
from orbench.base.tables import make_folder, sha256_of, write_bytes
from orbench.base.words import SIDES
from orbench.report import compare, drift, export, load, page, rates, reuse, tables, toxicity
from orbench.report.seed_pairs import seed_pairs
from orbench.report.triggers import triggers


def report(args: argparse.Namespace) -> Path:
    """Return the path of results.csv. Raises OSError and UserError."""
    output: Path = args.output_dir / "results.csv"
    last = read_record(output)
    state = reuse.state_of(args)
    if reuse.holds(output, state, last):
        say(f"nothing has changed since {output} was written")
    else:
        _write(args, output)
        reuse.finish(output, state, last)
    return output


def _write(args: argparse.Namespace, output: Path) -> None:
    sources = _sources(args)
    rows = load.load(sources, page.MOST_ROWS if args.html else 0)
    measured = rates.rates(rows)
    pairs = compare.compare(rows, measured)
    own = compare.leaderboard(rows, measured)
    board = compare.with_published(own) if args.with_published else own
    grids = tables.grids(measured, board, pairs)
    warnings = tables.warnings(measured)
    csvs = [("comparison", pairs, compare.PAIR_COLUMNS)]
    csvs += [("leaderboard", board, compare.BOARD_COLUMNS)]
    csvs += [("results", measured, rates.RATE_COLUMNS)]
    if args.validation:
        corrections = rates.corrected(rows, measured, args.validation)
        warnings = list(dict.fromkeys([*warnings, *tables.warnings(corrections)]))
        csvs += [("corrections", corrections, rates.CORRECTED_COLUMNS)]
    frames, said = _behind(args, rows, measured, own) if len(rows) else ({}, [])
    details = [*said, *compare.rank_correlation(board)]
    csvs += [(name, table, list(table.columns)) for name, table in frames.items()]
    make_folder(output.parent)
    for name, table, columns in csvs:
        tables.write_table(output.with_stem(name), table, columns)
    tables.write_documents(output, grids, [*warnings, *details])
    write_record(output, _record(args, sources))
    for line in [*warnings, *said, *_in_words(measured, own), *_findings(pairs)]:
        say(line)
    # The numbers are safe before anything is drawn.
    pictures = [] if args.table else _draw(args, measured, board, frames)
    if args.html:
        html = output.with_suffix(".html")
        sections = _sections(grids, frames, pictures, details)
        page.write_page(html, rows, measured, board, warnings, pictures, sections)
    if args.export:
        export.write_eee(output.with_name("eee"), measured)


def _sources(args: argparse.Namespace) -> list[load.Source]:
    words = (("over_refusal", args.over_refusal), ("toxic", args.toxic), ("", args.merged))
    every = [(text, side) for side, texts in words for text in texts]
    found = [source for text, side in every for source in load.sources_of(text, side)]
    if not found and (args.html or not args.with_published):
        raise UserError("only files of failed rows were given; give the results beside them")
    return found


def _behind(
    args: argparse.Namespace, rows: pd.DataFrame, measured: pd.DataFrame, own: pd.DataFrame
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """What stands behind the rates: frames by the names of their CSVs, and lines for the reader."""
    parts = [toxicity.toxicity(rows, own, args.toxicity)] if args.toxicity else []
    parts += [seed_pairs(rows, own)] if args.pairs else []
    parts += [drift.drift(rows, measured), triggers(rows, own)]
    frames = {name: one for found, _ in parts for name, one in found.items() if len(one)}
    return frames, [line for _, lines in parts for line in lines]


def _in_words(measured: pd.DataFrame, own: pd.DataFrame) -> Iterator[str]:
    """`gpt-4o: over-refusal rate 12.3 % [11.0, 14.6] (n 1,319, unscored 0)`, a line per model."""
    for entry in own.to_dict("records"):
        sides = measured["result"].isin([entry["safe"], entry["toxic"]])
        said = []
        for row in rates.overall(measured[sides]).to_dict("records"):
            about = [f"{name} {row[name]:,.0f}" for name in ("n", "unscored") if row[name] >= 0]
            about += filter(None, [row["doubt"]])
            of = f"{SIDES[row['side']].rate} {row['rate_percent']:.1f} % {row['interval']}"
            said.append(f"{of} ({', '.join(about)})")
        judge = entry["judge"] if own["judge"].nunique() > 1 else ""
        yield f"{', '.join(filter(None, [rates.label(entry), judge]))}: {' · '.join(said)}"


def _findings(pairs: pd.DataFrame) -> Iterator[str]:
    """The comparisons of up to three models, a line each."""
    for row in pairs.to_dict("records") if len(pairs) <= 6 else ():
        gap = f"{row['difference_points']:+.1f} points"
        ends = f"[{row['low_points']:.1f}, {row['high_points']:.1f}]"
        both = " - ".join(rates.short_label(row, end) for end in ("_a", "_b"))
        yield f"{both}, {SIDES[row['side']].rate}: {gap} {ends}: {row['finding']}"


def _draw(
    args: argparse.Namespace,
    measured: pd.DataFrame,
    board: pd.DataFrame,
    frames: Mapping[str, pd.DataFrame],
) -> list[page.Picture]:
    """Draw everything that can be drawn, in each of the formats. frames: of `_behind`."""
    from orbench.report import pictures  # --table does without matplotlib

    drawn = []
    folder = args.output_dir / "figures"
    make_folder(folder)
    for name, title, figure in pictures.pictures(measured, board, frames):
        for kind in args.formats:
            write_bytes(folder / f"{name}.{kind}", pictures.as_file(figure, kind))
        if args.html:
            drawn.append(page.Picture(name, title, pictures.as_file(figure, "svg")))
    return drawn


def _sections(
    grids: Sequence[tables.Grid],
    frames: Mapping[str, pd.DataFrame],
    pictures: Sequence[page.Picture],
    said: Sequence[str],
) -> Iterator[page.Section]:
    """What follows the leaderboard on the page; words and the tables of figures are folded."""

    def drawn(name: str) -> list[page.Picture]:
        return [one for one in pictures if one.name.startswith(name)]

    _, *others = grids
    pairs = [grid for grid in others if grid.title == tables.SAME_PROMPTS]
    details = [grid for grid in others if grid.title != tables.SAME_PROMPTS]
    yield page.Section("Who refuses more?", [tables.ABOUT_PAIRS], pairs)
    yield page.Section("By category", pictures=drawn("heatmap"))
    for name, title, line, grid in tables.behind_rates(frames):
        yield page.Section(title, [line], [grid], drawn(name), folded=name == "triggers")
    about = [*said, tables.LEGEND, *tables.ABOUT_DETAILS]
    yield page.Section("Details", about, details, folded=True)


def _record(args: argparse.Namespace, sources: Sequence[load.Source]) -> dict[str, object]:
    """How the numbers came about."""
    inputs = [(one.path, {"model": one.model}) for one in sources]
    inputs += [(path, {}) for path in args.toxicity or ()]
    return {
        "stage": "plot_results",
        "command": sys.argv,
        "inputs": [{"path": str(path), **of, "sha256": sha256_of(path)} for path, of in inputs],
        "validation": str(args.validation or ""),
        "with_published": args.with_published,
        "versions": versions(),
    }
