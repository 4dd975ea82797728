"""Builds the report that response_checker/plot_results.py describes."""

from argparse import Namespace
from collections.abc import Sequence

from orbench.base.messages import UserError, say, tell
from orbench.base.words import GIVEN
from orbench.report import finding, gate
from orbench.report.analyses.drift import drift
from orbench.report.analyses.labels import labels_of, toxicity
from orbench.report.analyses.pairs import pairs
from orbench.report.analyses.robustness import with_robustness
from orbench.report.analyses.tiers import tiers
from orbench.report.analyses.trigger_words import trigger_words
from orbench.report.compare import hedging, with_margin
from orbench.report.load import load_results, sources_of
from orbench.report.measures import Association
from orbench.report.published import is_on_or_bench, published_models
from orbench.report.ranking import ranking
from orbench.report.rates import overall, rates
from orbench.report.results import Source
from orbench.report.standings import Report, in_order
from orbench.report.write import write


def report(options: Namespace) -> int:
    """Write the report and return the exit status that the gates ask for. Raises OSError and
    UserError.
    """
    decided = options.output_dir / gate.FILE
    decided.unlink(missing_ok=True)  # a run that stops leaves no old result
    sources = find_sources(options)
    made = build(sources, options)
    write(made, sources, options)
    for found in finding.findings(made):
        say(found.headline)
        if found.remarks:
            say(". ".join(found.remarks) + ".")
    gates = [*options.fail_if, *options.require]
    results = gate.check(gates, overall(made.rates), options.gated)
    if gates and not options.gated:
        for side in GIVEN:
            for text in getattr(options, side):
                results += gate.without_results(text)
    if results:
        gate.write(decided, results)
    if options.junit:
        gate.write_junit(options.junit, results)
    tell(options.output_dir / options.tells)
    return gate.report(results)


def find_sources(options: Namespace) -> list[Source]:
    """Return the files to report on. Raises UserError."""
    sources = []
    for side in GIVEN:
        for text in getattr(options, side):
            sources += sources_of(text, side)
    if options.baseline:
        sources = gate.with_baseline(options.baseline, sources)
    needs_results = options.html or not options.with_published
    if needs_results and not sources:
        raise UserError(
            "no results: give some to --over_refusal, --toxic or --merged; files of failed rows "
            "have none, and a page cannot show published models alone"
        )
    return sources


def build(sources: Sequence[Source], options: Namespace) -> Report:
    """Return all that the report shows. Raises UserError."""
    with_texts = options.html and not options.no_responses
    results, prompts = load_results(sources, with_texts)
    measured = rates(results)
    whole = overall(measured)
    board, compared = ranking(whole)
    if options.margin:
        compared = [*with_margin(compared, options.margin)]
    analyses = []
    labels = None
    if options.toxicity and results:
        labels = labels_of(prompts, options.toxicity)
        analyses.append(toxicity(results, board, labels))
    if options.pairs:
        analyses.append(pairs(board))
    hedged = hedging(in_order(measured, board))
    analyses += [hedged, tiers(board), drift(whole), trigger_words(prompts, board)]
    comparisons = [*with_robustness(compared, results, labels)]
    associations: list[Association] = []
    for analysis in analyses:
        measured += analysis.rates
        comparisons += analysis.comparisons
        associations += analysis.associations
    published = []
    if options.with_published and (not board or any(map(is_on_or_bench, board))):
        published = published_models()
    lines = labels.lines if labels else []
    return Report(results, measured, comparisons, associations, board, published, lines)
