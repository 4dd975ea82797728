"""Builds the report that response_checker/plot_results.py describes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orbench.base.messages import UserError, say
from orbench.report import gate
from orbench.report.analyses.drift import drift
from orbench.report.analyses.graded import hedging
from orbench.report.analyses.labels import Labels, labels_of, toxicity
from orbench.report.analyses.pairs import pairs
from orbench.report.analyses.robustness import with_robustness
from orbench.report.analyses.tiers import tiers
from orbench.report.analyses.trigger_words import trigger_words
from orbench.report.compare import compare
from orbench.report.finding import findings
from orbench.report.load import Source, load_results, sources_of
from orbench.report.measures import Analysis, Report
from orbench.report.page import MOST_ROWS
from orbench.report.published import published_for
from orbench.report.ranking import leaderboard
from orbench.report.rates import overall, rates

FIGURES = "figures"


@dataclass(frozen=True)
class Options:
    """What to report, and how."""

    output_dir: Path
    command: Sequence[str]
    given: dict[str, list[str]]  # files and folders by side, see `sources_of`
    labels: Sequence[Path] = ()  # of the prompts
    baseline: str = ""  # a model, or a folder of earlier results
    with_published: bool = False
    pairs: bool = False
    table: bool = False  # no pictures
    formats: Sequence[str] = ("png",)
    html: bool = False
    export: bool = False
    gates: Sequence[str] = ()
    gated: Sequence[str] = ()  # the files that the gates are about; none: all
    names_page: bool = True  # whether to say where the page is


def report(options: Options) -> int:
    """Write the report and return the exit status that the gates ask for. Raises OSError and
    UserError.
    """
    sources = find_sources(options)
    made = build(sources, options)
    write(made, sources, options)
    for line in findings(made.board, made.comparisons):
        say(line)
    found = gate.check(options.gates, overall(made.rates), options.gated)
    for result in found:
        gate.report(result)
    return gate.exit_status(found)


def find_sources(options: Options) -> list[Source]:
    """Return the files to report on. Raises UserError."""
    sources: list[Source] = []
    for side, texts in options.given.items():
        for text in texts:
            sources += sources_of(text, side)
    if options.baseline:
        sources = gate.with_baseline(options.baseline, sources)
    needs_results = options.html or not options.with_published
    if needs_results and not sources:
        raise UserError("only files of failed rows were given; give the results beside them")
    return sources


def build(sources: Sequence[Source], options: Options) -> Report:
    """Return all that the report shows. Raises UserError."""
    results, prompts = load_results(sources, MOST_ROWS if options.html else 0)
    measured = rates(results)
    whole = overall(measured)
    board = leaderboard(whole)
    labels = None
    if options.labels and results:
        labels = labels_of(prompts, options.labels)
    agreed = labels.agreed(results) if labels else {}
    comparisons = with_robustness(compare(whole), results, agreed)
    made = Report(
        prompts=prompts,
        results=results,
        rates=measured,
        comparisons=comparisons,
        associations=[],
        board=board,
        published=published_for(results) if options.with_published else [],
        label_lines=labels.lines if labels else [],
    )
    for analysis in _analyses(made, labels, options):
        made.rates.extend(analysis.rates)
        made.comparisons.extend(analysis.comparisons)
        made.associations.extend(analysis.associations)
    return made


def _analyses(made: Report, labels: Labels | None, options: Options) -> Iterator[Analysis]:
    """Yield what stands behind the rates of a report."""
    whole = overall(made.rates)
    if labels:
        yield toxicity(made.results, made.board, labels)
    if options.pairs:
        yield pairs(made.board)
    yield hedging(made.rates)
    yield tiers(made.board)
    yield drift(whole)
    yield trigger_words(made.prompts, made.board)
