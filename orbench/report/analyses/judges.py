"""How far judges agree: whether they call the same responses refusals."""

from pandas import DataFrame, Series, concat  # type: ignore[import-untyped]

from orbench.report.measures import FEW_PROMPTS
from orbench.report.results import Result, Results


def agreement(results: Results) -> DataFrame:
    """Return for each two judges the share of the same verdicts, on the responses that both scored;
    NaN if they are few. Empty if nothing was judged twice.
    """
    response = ["model", "prompt", "response"]
    verdicts = concat(map(_verdicts, results)).pivot_table("refused", response, "judge")
    judged_twice = verdicts.dropna(thresh=2).dropna(axis="columns", how="all")
    return judged_twice.corr(_same, FEW_PROMPTS)


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
