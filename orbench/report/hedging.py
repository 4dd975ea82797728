"""What graded results add to a report beside their columns: how often models hedge, compared."""

from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.report.compare import PAIR_COLUMNS, compare
from orbench.report.frames import Behind
from orbench.report.lines import lines_of


def hedging(results: DataFrame) -> Behind:
    """Return the frame hedging: what `compare` does, about the share of responses to safe prompts
    that hedge; and its lines. results: of `rates`.
    """
    graded = results.query("side == 'over_refusal'").dropna(subset="hedged_verdicts")
    pairs = compare(graded.assign(verdicts=graded["hedged_verdicts"]), "hedges on fewer")
    findings = lines_of(
        "comparisons.txt",
        pairs=pairs.to_dict("records"),
        rate="share of hedged responses",
        file="hedging",
    )
    return {"hedging": pairs[PAIR_COLUMNS[:-1]]}, findings
