"""The prompts and responses on the page, as its script reads them, and who refuses which prompts.

What counts against a model is on the page: each refusal of a safe prompt, each answer to a toxic
one. Of its other responses, a sample is.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter

from pandas import DataFrame, Series  # type: ignore[import-untyped]

from orbench.base.grouping import grouped
from orbench.base.toml_files import toml_beside
from orbench.base.words import API_SIGNAL, VERDICTS, Json
from orbench.report.measures import Rate
from orbench.report.results import Result, Text
from orbench.report.standings import Report

REASONS = toml_beside(__file__, "reasons.toml")
SAMPLE = 5000  # responses of all models; with it, 12 models of 2,000 prompts take about 10 MB
GOLDEN = 0.618034  # multiples of the golden ratio are evenly spaced, and fall into no file's rhythm
MOST_PROMPTS = 20  # in a table


def prompt_tables(report: Report) -> Iterator[DataFrame]:
    """Yield the prompts that most models refuse, or answer if they are toxic, in a table for models
    with the same prompts and judge, if there are several.

    A row is a prompt, a column a model's rate, in the order of the leaderboard: whether it does, as
    1, 0 or NaN. Of several responses to a prompt, more than half decide.
    """
    same = attrgetter("side", "result.prompt_set", "result.judge")
    for rates in grouped(report.whole, same).values():
        wrong = DataFrame({rate: _wrong(rate) for rate in rates})
        counts = wrong.sum(axis="columns")
        most = counts[counts > 0].nlargest(MOST_PROMPTS).index
        if len(most) and len(rates) > 1:
            yield wrong.loc[most]


def _wrong(rate: Rate) -> Series:
    """Return by prompt whether the model refuses it, or answers it if it is toxic."""
    prompts = rate.verdicts.prompts
    return Series(abs(prompts.refused - rate.side.is_toxic) > 0.5, prompts.prompt, float)


def shown_rows(report: Report, tables: Sequence[DataFrame]) -> Json:
    """Return what the page's script reads: rows refer to results and prompts by their numbers.

    tables: all responses to their prompts are shown. Empty if no response was read.
    """
    total = sum(len(result.texts) for result in report.results)
    if not total:
        return {}
    listed = {prompt for table in tables for prompt in table.index}
    results = []
    prompts = {}
    rows = []
    for result in report.results:
        results.append(f"{result.label}: {result.side.prompts}, {result.measured_by}")
        for text in _chosen(result, listed, SAMPLE / total):
            prompts[text.prompt] = text.question
            rows.append(_row(result, text))
    return {"results": results, "prompts": prompts, "rows": rows, "total": f"{total:,}"}


def _row(result: Result, text: Text) -> list[int | str]:
    """Return a response as the page shows it."""
    outcome = "refused" if VERDICTS[text.verdict] else "answered"
    verdict = text.verdict.replace("_", " ")
    response = text.response
    if text.more:
        response += f" ... {text.more:,} more characters"
    why = _why(text.reason)
    return [result.number, text.category, outcome, verdict, text.prompt, response, why]


def _chosen(result: Result, listed: set[int], share: float) -> Iterator[Text]:
    """Yield what counts against a model, and then its responses to the prompts that are listed and
    to a share of the others, the same ones of each model.
    """

    def is_right(text: Text) -> bool:
        return VERDICTS[text.verdict] == result.side.is_toxic

    for text in sorted(result.texts, key=is_right):
        in_sample = text.prompt * GOLDEN % 1 < share
        if in_sample or text.prompt in listed or not is_right(text):
            yield text


@lru_cache  # most reasons are a few rules
def _why(reason: str) -> str:
    """Return a rule or an API's signal in words; of a judge's structured reply, what it quotes."""
    if reason.startswith(API_SIGNAL):
        return f"by the API ({reason.removeprefix(API_SIGNAL)})"
    if reason.startswith("{"):
        with suppress(ValueError):
            return str(json.loads(reason).get("quote", reason))
    if " " not in reason:  # the name of a rule
        for name, words in REASONS.items():
            if reason.endswith(name):
                return str(words)
    return reason
