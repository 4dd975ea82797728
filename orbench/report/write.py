"""Writes a report: tables first, so that the figures are safe before anything is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orbench.base.messages import say
from orbench.base.records import read_record, write_record
from orbench.base.tables import check_outputs, make_folder, sha256_of, write_bytes
from orbench.report import export, sentences
from orbench.report.compare import of_models
from orbench.report.measures import Counted
from orbench.report.page import write_page
from orbench.report.ranking import rank_correlations
from orbench.report.rates import overall
from orbench.report.results import Source
from orbench.report.standings import Report
from orbench.report.tables import csv_paths, write_csvs, write_documents

FIGURES = "figures"
EEE = "eee"  # Every Eval Ever
WITH_TABLES = (".md", ".tex", ".html", ".json")  # beside results.csv


@dataclass(frozen=True)
class Outputs:
    """Where a report goes, and what is written of it."""

    folder: Path
    command: Sequence[str]  # for the run record
    pictures: bool = True
    formats: Sequence[str] = ("png",)  # of pictures
    html: bool = False
    names_page: bool = True  # whether to say where the page is
    export: bool = False  # also in the schema of Every Eval Ever

    @property
    def table(self) -> Path:
        """Return the main CSV."""
        return self.folder / "results.csv"


def write(made: Report, sources: Sequence[Source], labels: Sequence[Path], to: Outputs) -> None:
    """Write a report, and remove what the last one wrote and this one does not.

    sources, labels: its inputs. Raises OSError, and UserError if an output is an input.
    """
    outputs = [*csv_paths(to.folder), *map(to.table.with_suffix, WITH_TABLES)]
    check_outputs(outputs, [*(source.path for source in sources), *labels])
    make_folder(to.folder)
    files = [*write_csvs(to.folder, made), export.write_summary(to.table, made)]
    lines = analysis_lines(made)
    for line in _terminal_lines(made, lines):
        say(line)
    correlations = rank_correlations(made.board, made.published)
    lines += map(sentences.correlation_line, correlations)
    files += write_documents(to.table, made, lines)
    pictures = _draw(made, to, files) if to.pictures else {}
    if to.html:
        files.append(to.table.with_suffix(".html"))
        write_page(files[-1], made, lines, pictures)
        if to.names_page:
            say(f"page: {files[-1]}")
    if to.export:
        files += export.write_eee(to.folder / EEE, made)
    _finish(sources, labels, to, files)


def analysis_lines(made: Report) -> list[str]:
    """Return what a reader must know of what stands behind the rates."""
    lines = [*made.label_lines]
    lines += sentences.small_subset_lines(made.rates)
    lines += sentences.comparison_lines(of_models(made.comparisons, Counted.HEDGED))
    return lines + sentences.trend_lines(made.associations)


def _terminal_lines(made: Report, lines: Sequence[str]) -> list[str]:
    """Return what the terminal shows before the finding."""
    rates = overall(made.rates)
    notes = []
    if not all(rate.result.is_demo for rate in rates):
        notes = [*sentences.warnings(rates), *lines]
    # Else the finding says the first; the rest is about what few prompts cannot show.
    notes += sentences.rate_lines(rates)
    return notes + sentences.comparison_lines(of_models(made.comparisons, Counted.REFUSED))


def _draw(made: Report, to: Outputs, files: list[Path]) -> dict[str, bytes]:
    """Draw what can be drawn, in each of the formats, and add the files to `files`. Returns the
    pictures of the page as SVG, by name.
    """
    from orbench.report import pictures  # a report of tables does without matplotlib

    make_folder(to.folder / FIGURES)
    on_page = {}
    for picture in pictures.pictures(made):
        for kind in to.formats:
            path = to.folder / FIGURES / f"{picture.name}.{kind}"
            write_bytes(path, pictures.as_file(picture.figure, kind))
            files.append(path)
        if to.html and picture.name == pictures.ON_PAGE:
            on_page[picture.name] = pictures.as_file(picture.figure, "svg")
    return on_page


def _finish(
    sources: Sequence[Source], labels: Sequence[Path], to: Outputs, files: Sequence[Path]
) -> None:
    """Write the run record, and remove what the last report wrote and this one did not."""
    inputs = [{"path": str(path)} for path in labels]
    inputs += [{"path": str(source.path), "model": source.model} for source in sources]
    for entry in inputs:
        entry["sha256"] = sha256_of(Path(entry["path"]))
    before = read_record(to.table).get("files", [])
    names = [path.relative_to(to.folder).as_posix() for path in files]
    write_record(to.table, "plot_results", to.command, {"inputs": inputs, "files": names})
    own_folders = (to.folder, to.folder / FIGURES, to.folder / EEE)
    for name in before:
        path = to.folder / name
        if name not in names and path.parent in own_folders and path.is_file():
            path.unlink()
