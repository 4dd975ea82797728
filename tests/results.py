"""Results of a report: small files of stage 5, and objects built without any file."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from orbench.base.prompts import prompt_id
from orbench.report.load import load_results, sources_of
from orbench.report.measures import OVERALL
from orbench.report.rates import rate
from orbench.report.results import SAFE, TOXIC, Prompts, Responses, Result
from orbench.report.standings import Standing
from orbench.stats.core import Array
from tests.conftest import write_csv

ANSWER, DIRECT, INDIRECT = "direct_answer", "direct_refusal", "indirect_refusal"
TEXTS = ("category", "tier", "api_category", "graded")
FLAGS = ("api", "after_text", "other_model", "judge_refused")


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
    return path


def lost(path: Path, prompts: list[str], **columns: str) -> None:
    """The file of failed rows beside a result; columns: with the same value in each row."""
    about = {"category": "a", "error_type": "unscored", "error": "no verdict"} | columns
    rows = [[prompt, *about.values()] for prompt in prompts]
    write_csv(path.with_name(f"{path.stem}_failed.csv"), ["prompt", *about], rows)


def loaded(*safe: Path | str, toxic: tuple[Path | str, ...] = (), texts: int = 0) -> list[Result]:
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
    every |= {"prompt": numbers, "seed": numbers, "refused": refused} | columns
    arrays = {}
    for name, value in every.items():
        kind: type | None = object if name in TEXTS else None
        arrays[name] = np.array([value] * n if np.isscalar(value) else value, kind)
    arrays["refused"] = arrays["refused"].astype(float)
    return Responses(**arrays)


def result_of(given: Responses, number: int = 0, **about: Any) -> Result:
    """A result on the safe side, if not said otherwise."""
    values = {field.name: "" for field in fields(Result)}
    every: dict[str, Any] = values | {
        "number": number,
        "model": f"m{number}",
        "short": f"m{number}",
        "side": SAFE,
        "prompts": "p",
        "judge": "gpt4",
        "judge_any_version": "gpt4",
        "is_baseline": False,
        "certain": np.nan,
        "unscored_known": True,
        "corrected": None,
        "is_demo": False,
        "days": (),
        "unranked": (),
        "cautions": (),
        "notes": (),
        "lookalikes": None,
        "scored": int(given.scored.sum()),
        "responses": given,
        "texts": [],
    }
    return Result(**every | about)


def standing_of(safe: Result | None, toxic: Result | None = None) -> Standing:
    """The standing of a model, unranked."""
    a = rate(safe, safe.responses.verdicts(), OVERALL) if safe else None
    b = rate(toxic, toxic.responses.verdicts(), OVERALL) if toxic else None
    return Standing(a, b, youden=None, group=0, part="", look=0, rank=None)


def prompts_of(texts: list[str]) -> Prompts:
    """The prompts of a report, by their number."""
    return Prompts([prompt_id(text) for text in texts], texts)
