"""How far judges agree: whether they call the same responses refusals."""

from operator import attrgetter

from pandas import DataFrame, Series, concat  # type: ignore[import-untyped]

from orbench.base.grouping import grouped
from orbench.report.measures import FEW_PROMPTS
from orbench.report.results import Result, Results


def agreement(results: Results) -> DataFrame:
    """Return for each two judges the share of the same verdicts, on the responses that both scored;
    NaN if they are few. Empty if nothing was judged twice.
    """
    tables: list[DataFrame] = []
    for judged in grouped(results, attrgetter("label", "side.name", "prompt_set")).values():
        if len(judged) > 1:
            tables += map(_verdicts, judged)
    if not tables:
        return DataFrame()
    verdicts = concat(tables).pivot_table("refused", ["model", "prompt", "response"], "judge")
    return verdicts.corr(_same, FEW_PROMPTS)


def _verdicts(result: Result) -> DataFrame:
    responses = result.responses
    columns = {
        "judge": result.judge,
        "model": result.label,
        "prompt": responses.prompt,
        "response": responses.response,
        "refused": responses.refused,
    }
    return DataFrame(columns)


def _same(a: Series, b: Series) -> float:
    return float((a == b).mean())
