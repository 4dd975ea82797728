"""Results of a report: small files of stage 5, and objects built without any file."""

import json
from dataclasses import fields, replace
from itertools import count
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from orbench.base.prompts import prompt_id
from orbench.base.records import failed_hash, read_record, record_path
from orbench.base.tables import sha256_of
from orbench.report.load import load_results, sources_of
from orbench.report.measures import (
    OVERALL,
    Compared,
    Comparison,
    Counted,
    Details,
    Outcome,
    Rate,
)
from orbench.report.rates import rate
from orbench.report.results import SAFE, TOXIC, UNCORRECTED, Responses, Result
from orbench.report.standings import Rank, Standing
from orbench.stats.core import Array, Difference, Mean, Verdicts
from orbench.stats.intervals import Interval
from tests.conftest import write_csv

ANSWER, DIRECT, INDIRECT = "direct_answer", "direct_refusal", "indirect_refusal"
TEXTS = ("response", "category", "tier", "refused_by", "api_category", "graded")
LISTS = ("unranked", "cautions", "notes")
NUMBERS = count()
MARGIN = 0.02  # from a given rate to the ends of its interval
GAP_MARGIN = 0.05  # from a given difference to the ends of its interval
FLAGS = ("is_toxic", "api", "after_text", "other_model", "judge_refused")


# -- files ---------------------------------------------------------------------------------------


def numbered(n: int) -> list[str]:
    return [f"Prompt {number}" for number in range(n)]


def written(
    folder: Path, name: str, verdicts: list[str], model: str = "maker/a", /, **about: Any
) -> Path:
    """Stage 5's file, a row per verdict, and its record; two categories in turn. about: columns
    (lists) and entries of the record.
    """
    n = len(verdicts)
    columns = {
        "prompt": [f"Toxic {text}" if name == "t.csv" else text for text in numbered(n)],
        "category": ["ab"[number % 2] for number in range(n)],
        "response": [f"Response {number} of {model}" for number in range(n)],
        "answer_category": verdicts,
        "answer_type_response": ["because"] * n,
    }
    columns |= about.pop("columns", {})
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path, list(columns), list(zip(*columns.values(), strict=True)))
    record = {"stage": "response_checker", "under_test": {"asked": model}}
    record["parameters"] = {"check_model": about.pop("judge", "gpt4")}
    path.with_suffix(".run.json").write_text(json.dumps(record | about))
    record_output(path)
    return path


def record_output(csv: Path) -> None:
    """Let the record beside a CSV say that its stage wrote it and its failed rows as they are."""
    record = read_record(csv)
    if record:
        record["output"] = {"csv": sha256_of(csv), "failed": failed_hash(csv)}
        record_path(csv).write_text(json.dumps(record))


def lost(path: Path, prompts: list[str], **columns: str) -> None:
    """The file of failed rows beside a result; columns: with the same value in each row."""
    about = {"category": "a", "error_type": "unscored", "error": "no verdict"} | columns
    rows = [[prompt, *about.values()] for prompt in prompts]
    write_csv(path.with_name(f"{path.stem}_failed.csv"), ["prompt", *about], rows)
    record_output(path)


def loaded(
    *safe: Path | str, toxic: tuple[Path | str, ...] = (), texts: bool = False
) -> list[Result]:
    """The results in files, the safe ones first."""
    sources = []
    for side, paths in ((SAFE, safe), (TOXIC, toxic)):
        for path in paths:
            sources += sources_of(str(path), side.name)
    return load_results(sources, texts)[0]


# -- objects -------------------------------------------------------------------------------------


def responses(refused: Array | list[float], **columns: Any) -> Responses:
    """Responses to a prompt each, each of a seed of its own, if not said otherwise."""
    n = len(refused)
    numbers = np.arange(n)
    every: dict[str, Any] = dict.fromkeys(TEXTS, "") | dict.fromkeys(FLAGS, False)
    every |= {"category": "a", "direct": refused, "indirect": 0.0, "cut_off": np.nan}
    every |= {"people": np.nan, "refused_by": "model"}
    every |= {"prompt": numbers, "seed": numbers, "refused": refused} | columns
    arrays = {}
    for name, value in every.items():
        kind: type | None = object if name in TEXTS else None
        arrays[name] = np.array([value] * n if np.isscalar(value) else value, kind)
    arrays["refused"] = arrays["refused"].astype(float)
    return Responses(**arrays)


def result_of(given: Responses | None = None, number: int | None = None, **about: Any) -> Result:
    """Return a result on the safe side, if not said otherwise."""
    if number is None:
        number = next(NUMBERS)
    every: dict[str, Any] = dict.fromkeys([field.name for field in fields(Result)], "")
    every |= dict.fromkeys(LISTS, ()) | dict.fromkeys(
        ("is_baseline", "is_demo", "is_edited"), False
    )
    every |= {"side": SAFE, "prompts": "p", "judge": "gpt4", "judge_any_version": "gpt4"}
    every |= {"certain": nan, "corrected": UNCORRECTED, "unscored_known": True}
    model = about.get("model", f"m{number}")
    every |= {
        "number": number,
        "model": model,
        "called": model,
        "short": model,
        "file": f"{model}.csv",
    }
    every |= about
    if given is not None:
        is_toxic = np.full(len(given.prompt), every["side"].is_toxic)
        every |= {"responses": replace(given, is_toxic=is_toxic), "texts": []}
    return Result(**every)


def verdicts_of(text: str) -> list[float]:
    """Return verdicts such as `20/100?5`: 20 refusals among 100, then 5 unscored ones."""
    scored, _, lost = text.partition("?")
    refused, n = map(int, scored.split("/"))
    return [1.0] * refused + [0.0] * (n - refused) + [nan] * int(lost or 0)


def measured(given: str | Array | Responses, model: str = "m", **about: Any) -> Rate:
    """Return the overall rate of responses, or of verdicts."""
    if isinstance(given, str):
        given = np.array(verdicts_of(given))
    if not isinstance(given, Responses):
        given = responses(given)
    return rate(result_of(given, model=model, **about), given.verdicts(), OVERALL)


def models(text: str) -> list[Rate]:
    """Return the rates of models such as `a 20/100 90/100 judge=k, b - 90/100`: the name, the safe
    and the toxic side, and fields of both.
    """
    rates = []
    for model in text.split(", "):
        name, *words = model.split(" ")
        about: dict[str, Any] = dict(word.split("=") for word in words if "=" in word)
        for field, value in about.items():
            about[field] = (value,) if field in LISTS else value == "yes" or value
        for side, word in zip((SAFE, TOXIC), words, strict=False):
            if "/" in word:
                fields = {"prompts": side.name, "prompt_set": side.name} | about
                verdicts = verdicts_of(word)
                numbers = np.arange(len(verdicts)) + 10_000 * side.is_toxic
                given = responses(verdicts, prompt=numbers, seed=numbers)
                rates.append(measured(given, name, side=side, **fields))
    return rates


def standing_of(safe: Result | None, toxic: Result | None = None) -> Standing:
    """Return the standing of a model, unranked."""
    results = [result for result in (safe, toxic) if result]
    return Standing([rate(one, one.responses.verdicts(), OVERALL) for one in results])


def prompts_of(texts: list[str]) -> dict[str, str]:
    """Return the prompts of a report, by their number."""
    return {prompt_id(text): text for text in texts}


# -- figures that a test names ------------------------------------------------------------------


def make_result(model: str = "m", **changed: Any) -> Result:
    """Return a result without responses."""
    return result_of(responses([]), model=model, **changed)


def make_rate(
    result: Result | str = "m", percent: float = 12, n: int = 100, unscored: int = 0, **changed: Any
) -> Rate:
    """Return a rate whose interval ends MARGIN from it, of prompts the first of which are refused.

    result: may be the name of a model. changed: fields of the rate.
    """
    if isinstance(result, str):
        result = make_result(result)
    refused = np.full(n + unscored, np.nan)
    refused[:n] = np.arange(n) < n * percent / 100
    prompts = np.arange(n + unscored)
    share = percent / 100
    interval = Interval(share - MARGIN, share + MARGIN)
    mean = Mean(share, interval, n, n, n, variance=0.0, df=n, design_effect=1.0)
    verdicts = Verdicts(refused, prompts, prompts)
    details = make_details(n + unscored)
    rate = Rate(result, OVERALL, Counted.REFUSED, verdicts, mean, mean.interval, details)
    return replace(rate, **changed)


def make_details(rows: int, **changed: Any) -> Details:
    """Return details in which nothing but `changed` is above 0."""
    shares = dict.fromkeys(["direct", "indirect", "cut_off", "after_text", "flips"], 0.0)
    return Details(**(shares | {"rows": rows} | changed))


def widened(rate: Rate, low: float, high: float) -> Rate:
    """Return a rate with another interval, through unscored rows, in percent."""
    return replace(rate, with_unscored=Interval(low / 100, high / 100))


def make_standing(
    model: str = "m",
    safe: float = 12,
    toxic: float = nan,
    rank: Rank | None = None,
    n: int = 100,
    **changed: Any,
) -> Standing:
    """Return a row of the leaderboard. safe, toxic: percent refused, NaN for a side that was not
    measured; changed: fields of both results.
    """
    of_safe = make_rate(make_result(model, side=SAFE, **changed), safe, n)
    of_toxic = make_rate(make_result(model, side=TOXIC, **changed), toxic, n)
    youden = make_gap(of_toxic, of_safe)
    standing = Standing([of_safe, of_toxic], youden, rank=rank)
    if isnan(safe):
        return replace(standing, sides=[of_toxic], youden=None)
    if isnan(toxic):
        return replace(standing, sides=[of_safe], youden=None)
    return standing


def make_gap(a: Rate, b: Rate, n: int = 100, p: float = 0.001) -> Difference:
    """Return a difference whose interval ends GAP_MARGIN from it. n: prompts in common."""
    gap = a.mean.rate - b.mean.rate
    mean_a = a.mean._replace(prompts=n)
    mean_b = b.mean._replace(prompts=n)
    interval = Interval(gap - GAP_MARGIN, gap + GAP_MARGIN)
    return Difference(mean_a, mean_b, interval, p, 0.0, n)


def make_comparison(
    a: Rate,
    b: Rate,
    outcome: Outcome = Outcome.FINDING,
    n: int = 100,
    p: float = 0.001,
    **changed: Any,
) -> Comparison:
    """Return a comparison with an outcome that its figures need not have. n: prompts in common."""
    detectable = changed.pop("detectable", 0.1)
    comparison = Comparison(a, b, Compared.MODELS, make_gap(a, b, n, p), 3, p, p, outcome)
    comparison = replace(comparison, **changed)
    vars(comparison)["detectable"] = detectable
    return comparison
