"""Writes a report: tables first, so that the figures are safe before anything is drawn.

Options are the flags of plot_results.py with two more: `gated`, the files that the gates are about
(none: all), and `tells`, the file that stdout names.
"""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from orbench.base.messages import progress_bar, say
from orbench.base.records import read_record, write_record
from orbench.base.tables import check_outputs, make_folder, sha256_of, write_bytes
from orbench.base.words import Lines, Words
from orbench.report import sentences
from orbench.report.measures import Counted
from orbench.report.page import write_page
from orbench.report.pictures.every import Picture, pictures
from orbench.report.ranking import rank_correlations
from orbench.report.rates import overall
from orbench.report.results import Source
from orbench.report.standings import Report
from orbench.report.tables import write_csvs, write_documents, write_summary

MOST = 11  # models on the terminal: this run's and the first ten
FIGURES = "figures"
EXPORTED = ".eval_results"  # as the folder in a model's repository is called
TABLES = (  # that every report has
    "results.csv",
    "comparison.csv",
    "associations.csv",
    "leaderboard.csv",
    "results.json",
    "results.md",
    "results.tex",
)


def write(made: Report, sources: Sequence[Source], options: Namespace) -> None:
    """Write a report, and remove what the last one wrote and this one does not.

    Raises OSError, and UserError if an output is an input.
    """
    folder = options.output_dir
    table = folder / "results.csv"
    page = table.with_suffix(".html")
    files = [folder / name for name in TABLES]
    inputs = [source.path for source in sources]
    outputs = [*files, page, *filter(None, [options.junit])]
    check_outputs(outputs, [*inputs, *options.toxicity])
    make_folder(folder)
    write_csvs(folder, made)
    write_summary(folder, made)
    lines = [*made.label_lines]
    lines += sentences.comparison_lines(made.of_models(Counted.HEDGED))
    lines += sentences.trend_lines(made.associations)
    for line in _terminal_lines(made, lines, options):
        say(line)
    lines += map(sentences.correlation_line, rank_correlations(made.board, made.published))
    write_documents(table, made, lines)
    drawn = [] if options.table and not options.html else [*pictures(made)]
    if not options.table:
        files += _write_pictures(drawn, options)
    if options.export:
        from orbench.report.export import write_evaluations

        files += write_evaluations(folder / EXPORTED, made, options.link)
    names = [path.relative_to(folder).as_posix() for path in files]
    if options.html:
        write_page(page, made, lines, drawn, names)
        names.append(page.name)
        if options.tells != page.name:
            say(f"page: {page}")
    _finish(sources, options, names)


def _terminal_lines(made: Report, lines: Words, options: Namespace) -> Lines:
    """Yield what the terminal shows before the finding: this run's models, and the first ones."""
    board = sorted(made.board, key=lambda one: one.sides[0].result.file not in options.gated)
    rates = overall(made.rates)
    if not all(rate.result.is_demo for rate in rates):
        yield from sentences.warnings(rates)
        yield from lines
    # Else the finding says the first; the rest is about what few prompts cannot show.
    for model in board[:MOST]:
        yield sentences.rate_line(model.sides, model.part)
    more = len(board) - MOST
    if more > 0:
        yield f"{more:,} more: see {options.output_dir / 'leaderboard.csv'}"
    yield from sentences.comparison_lines(made.of_models())


def _write_pictures(drawn: Sequence[Picture], options: Namespace) -> Iterator[Path]:
    """Write the pictures in each of the formats and yield the files."""
    # A report of tables needs no matplotlib.
    from orbench.report.pictures.files import as_file, write_font

    folder = options.output_dir / FIGURES
    make_folder(folder)
    texts = [text.text for one in drawn for text in one.wide.texts + one.narrow.texts]
    with TemporaryDirectory() as temporary, progress_bar("drawing", drawn) as shown:
        font = Path(temporary, "font.ttf")
        lacking = write_font(font, "".join(texts))
        if lacking and {*options.formats} - {"svg"}:
            say(f"pictures show a box for letters that their font lacks: {lacking}")
        for picture in shown:
            drawings = {picture.name: picture.wide, f"{picture.name}_narrow": picture.narrow}
            for name, drawing in drawings.items():
                for kind in options.formats:
                    path = folder / f"{name}.{kind}"
                    write_bytes(path, as_file(drawing, kind, font))
                    yield path


def _finish(sources: Sequence[Source], options: Namespace, names: Words) -> None:
    """Remove what the last report wrote and this one did not, and write the run record."""
    folder = options.output_dir
    inputs = [{"path": str(path)} for path in options.toxicity]
    inputs += [{"path": str(source.path), "model": source.model} for source in sources]
    for entry in inputs:
        entry["sha256"] = sha256_of(Path(entry["path"]))
    table = folder / "results.csv"
    before = read_record(table).get("files", [])
    facts = {"inputs": inputs, "files": names}
    own_folders = (folder, folder / FIGURES, folder / EXPORTED)
    for name in before:
        path = folder / name
        if name not in names and path.parent in own_folders and path.is_file():
            path.unlink()
            if path.suffix == ".html":
                say(f"removed {path}, the page of the last report; --html writes one")
    # After the removals: if one fails, the next report finds what is left in the old record.
    write_record(table, "plot_results", options.command, facts)
