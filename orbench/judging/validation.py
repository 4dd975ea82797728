"""How far the classes of stage 5 agree with people's labels (`--validate_against COLUMN`).

Positive is a refusal: direct or indirect from the judge, any refusal label from people, a partial
one included. Labels that share a seed or a prompt are not independent.
"""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.base import words
from orbench.base.messages import UserError, clean, did_you_mean
from orbench.base.prompts import asked_in, seed_id_of
from orbench.base.tables import Table
from orbench.stats.agreement import TwoRaters
from orbench.stats.core import Verdicts, difference, mean
from orbench.stats.correction import judge_accuracy

MEASURES = ("accuracy", "kappa", "precision", "recall", "F1")
BIASED_AT = 0.001  # p of the difference between labelled rows and others


def check_labels(table: Table, column: str) -> None:
    """Raise UserError for a missing column or an unknown label; a blank cell is no label."""
    if column not in table.columns:
        meant = did_you_mean(column, table.columns)
        raise UserError(f"{table.path} has no column {column!r} for --validate_against{meant}")
    for number, row in enumerate(table.rows, start=1):
        if (label := row[column].strip()) and words.human_label(label) is None:
            wrong = f"{table.path}, row {number}: {clean(label)[:40]!r} in {column!r} is not"
            raise UserError(f"{wrong} a known label ({', '.join(words.HUMAN_LABELS)})")


def compared_with_people(
    rows: Sequence[words.Row], column: str, check_model: str
) -> dict[str, Any]:
    """What `<stem>.validation.json` holds; undefined figures are None.

    rows: the scored ones, with prompt, response, answer_category and the labels in `column`.
    """
    frame = pd.DataFrame(
        {
            "category": [words.category_of(row) for row in rows],
            "judge": [words.CLASSES[row["answer_category"]] for row in rows],
            "people": [words.human_label(row[column]) for row in rows],
            "api": [words.refused_by_api(row) for row in rows],
            "response": [hash((asked_in(row), row["response"])) for row in rows],
            "cluster": [hash(seed_id_of(row) or asked_in(row)) for row in rows],
        }
    ).astype({"judge": bool, "api": bool})
    labelled = frame[frame["people"].notna()].astype({"people": bool})
    parts = dict(iter(labelled.groupby("category")))
    bias = _bias(frame)
    return {
        "check_model": check_model,
        "column": column,
        "overall": _figures(labelled),
        "categories": {name: _figures(part) for name, part in parts.items() if len(parts) > 1},
        "judge": _judge_accuracy(labelled, bias),
        "bias": bias,
        "unlabelled": len(frame) - len(labelled),
    }


def _verdicts(frame: pd.DataFrame, hits: Any, among: Any = True) -> Verdicts:
    """Hits among some rows."""
    ids = (frame[name].to_numpy() for name in ("response", "cluster"))
    return Verdicts(np.where(among, hits, nan), *ids)


def _bias(frame: pd.DataFrame) -> str:
    """Why the labels correct no rate: they are not a random sample; "" if they may be one."""
    judged = frame[~frame["api"]]
    has_label = judged["people"].notna()
    sides = (_verdicts(judged, judged["judge"], one) for one in (has_label, ~has_label))
    gap = difference(*sides, paired=False)
    if not gap.p < BIASED_AT:
        return ""
    shares = f"{100 * gap.a.rate:.0f} % of them are refusals, but {100 * gap.b.rate:.0f} %"
    return f"the labelled rows are not a random sample: {shares} of the other rows"


def _figures(frame: pd.DataFrame) -> dict[str, Any]:
    """The counts, and each of MEASURES with its 95 % interval.

    F1 = 2 J / (1 + J) grows with the share J = tp / (tp + fp + fn): its interval is made from J's
    (K. F. Y. Lam, V. Gopal, J. Qian, arXiv 2309.14621).
    """
    judge = frame["judge"].to_numpy()
    people = frame["people"].to_numpy()
    cells = (judge & people, judge & ~people, ~judge & people, ~judge & ~people)
    counts = TwoRaters(*(int(cell.sum()) for cell in cells))
    shares = {
        "accuracy": mean(_verdicts(frame, judge == people)),
        "precision": mean(_verdicts(frame, people, judge)),
        "recall": mean(_verdicts(frame, judge, people)),  # the sensitivity
        "F1": mean(_verdicts(frame, judge & people, judge | people)),
    }
    found = {name: list(share[:3]) if share.rows else None for name, share in shares.items()}
    if jaccard := found["F1"]:
        found["F1"] = [2 * share / (1 + share) for share in jaccard]
    kappa = counts.kappa(shares["accuracy"].effective)
    named = dict(zip(("tp", "fp", "fn", "tn"), counts, strict=True))
    return {"n": len(frame), **named, **found, "kappa": kappa}


def _judge_accuracy(labelled: pd.DataFrame, bias: str) -> dict[str, float | None]:
    """The `JudgeAccuracy` by which rates are corrected; the API's refusals are not the judge's."""
    judged = labelled[~labelled["api"]]
    columns = (judged[name].to_numpy() for name in ("judge", "people", "response", "cluster"))
    accuracy = judge_accuracy(*columns)._asdict()
    return {name: None if bias or isnan(one) else one for name, one in accuracy.items()}


def validation_lines(found: dict[str, Any]) -> list[str]:
    """The closing lines, from what `compared_with_people` returned."""
    parts = {words.OVERALL: found["overall"], **found["categories"]}
    cells = {
        part: {"n": figures["n"], **{name: _shown(figures[name]) for name in MEASURES}}
        for part, figures in parts.items()
    }
    return [
        f"against the labels in {found['column']!r}, with 95 % intervals:",
        *pd.DataFrame(cells).T.to_string(line_width=80).splitlines(),
        f"rows without a label: {found['unlabelled']:,}",
        *filter(None, [found["bias"]]),
    ]


def _shown(figures: Sequence[float] | None) -> str:
    return "{:.3f} {:.3f}-{:.3f}".format(*figures) if figures else "undefined"
