"""How far the classes of stage 5 agree with people's labels (`--validate_against COLUMN`).

Positive is a refusal: direct or indirect from the judge, any refusal label from people, a partial
one included. Labels that share a seed or a prompt are not independent.
"""

from collections import Counter
from collections.abc import Sequence
from math import isnan, nan
from typing import Any

import numpy as np
from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base import words
from orbench.base.messages import UserError, clean, did_you_mean
from orbench.base.prompts import asked_in, seed_id_of
from orbench.base.tables import Table
from orbench.stats.agreement import two_raters
from orbench.stats.core import Mean, Verdicts, difference, mean

MEASURES = ["accuracy", "kappa", "precision", "recall", "F1"]
Figures = dict[str, Any]  # as in the JSON
BIASED_AT = 0.001  # p of the difference between labelled rows and others


def check_labels(table: Table, column: str) -> None:
    """Raise UserError for a missing column or an unknown label; a blank cell is no label."""
    if column not in table.columns:
        meant = did_you_mean(column, table.columns)
        raise UserError(f"{table.path} has no column {column!r} for --validate_against{meant}")
    for number, row in enumerate(table.rows, start=1):
        label = row[column].strip()
        if label and words.human_label(label) is None:
            cell = f"{table.path}, row {number}: {clean(label)[:40]!r} in {column!r}"
            known = ", ".join(words.HUMAN_LABELS)
            raise UserError(f"{cell} is not a known label ({known})")


def compared_with_people(rows: Sequence[words.Row], column: str, check_model: str) -> Figures:
    """Return what `<stem>.validation.json` holds; undefined figures are None.

    rows: the scored ones, with prompt, response, answer_category and the labels in `column`.
    """
    cells = []
    for row in rows:
        prompt = asked_in(row)
        cells.append(
            {
                "category": words.category_of(row),
                "judge": words.CLASSES[row["answer_category"]],
                "people": words.human_label(row[column]),
                "api": words.refused_by_api(row),
                "response": (prompt, row["response"]),
                "cluster": seed_id_of(row) or prompt,
            }
        )
    frame = DataFrame(cells)
    labelled = frame[frame["people"].notna()].astype({"people": bool})
    categories = {}
    if labelled["category"].nunique() > 1:
        categories = {name: _figures(part) for name, part in labelled.groupby("category")}
    judged = frame[~frame["api"]]  # the API's refusals are not the judge's
    bias = _bias(judged)
    return {
        "check_model": check_model,
        "column": column,
        "overall": _figures(labelled),
        "categories": categories,
        "judge": _accuracy(labelled[~labelled["api"]], bias),
        "bias": bias,
        "unlabelled": len(frame) - len(labelled),
    }


def _verdicts(frame: DataFrame, hits: str, among: str = "True") -> Verdicts:
    """Return hits among some rows, both as expressions of columns."""
    refused = np.where(frame.eval(among), frame.eval(hits), nan)
    return Verdicts(refused, frame["response"].to_numpy(), frame["cluster"].to_numpy())


def _share(frame: DataFrame, hits: str, among: str = "True") -> Mean:
    return mean(_verdicts(frame, hits, among))


def _bias(judged: DataFrame) -> str:
    """Return how the labelled rows differ from the others; "" if they may be a random sample."""
    judged = judged.assign(labelled=judged["people"].notna())
    labelled = _verdicts(judged, "judge", "labelled")
    others = _verdicts(judged, "judge", "~labelled")
    gap = difference(labelled, others, paired=False)
    if not gap.p < BIASED_AT:
        return ""
    shares = f"{100 * gap.a.rate:.0f} % of them are refusals, but {100 * gap.b.rate:.0f} %"
    return f"the labelled rows are not a random sample: {shares} of the other rows"


def _figures(frame: DataFrame) -> Figures:
    """Return the counts, and each of MEASURES with its 95 % interval.

    F1 = 2 J / (1 + J) grows with the share J = tp / (tp + fp + fn): its interval is made from J's
    (K. F. Y. Lam, V. Gopal, J. Qian, arXiv 2309.14621).
    """
    counts = two_raters(Counter(zip(frame["judge"], frame["people"], strict=True)), 0, 1)
    tp, fp, fn, tn = counts
    figures: Figures = {"n": len(frame), "tp": tp, "fp": fp, "fn": fn, "tn": tn}
    accuracy = _share(frame, "judge == people")
    shares = {
        "accuracy": accuracy,
        "precision": _share(frame, "people", "judge"),
        "recall": _share(frame, "judge", "people"),  # the sensitivity
        "F1": _share(frame, "judge & people", "judge | people"),
    }
    for name, share in shares.items():
        figures[name] = list(share[:3]) if share.rows else None
    if figures["F1"]:
        figures["F1"] = [2 * share / (1 + share) for share in figures["F1"]]
    figures["kappa"] = counts.kappa(accuracy.effective)
    return figures


def _accuracy(judged: DataFrame, bias: str) -> Figures:
    """Return how often the judge agrees with people who say refused, and who say answered, and the
    effective numbers of their labels, on the rows that it judged; None: undefined or biased.
    """
    refused = _share(judged, "judge", "people")
    answered = _share(judged, "~judge", "~people")
    accuracy = {
        "sensitivity": refused.rate,
        "positives": refused.effective,
        "specificity": answered.rate,
        "negatives": answered.effective,
    }
    return {name: None if bias or isnan(value) else value for name, value in accuracy.items()}


def validation_lines(found: Figures) -> list[str]:
    """Return the closing lines, from what `compared_with_people` returned."""
    parts = {words.OVERALL: found["overall"], **found["categories"]}
    table = DataFrame(parts.values(), parts, ["n", *MEASURES])
    table[MEASURES] = table[MEASURES].map(_shown)
    lines = [f"against the labels in {found['column']!r}, with 95 % intervals:"]
    lines += table.to_string(line_width=80).splitlines()
    lines.append(f"rows without a label: {found['unlabelled']:,}")
    if found["bias"]:
        lines.append(found["bias"])
    return lines


def _shown(figures: Sequence[float] | None) -> str:
    if not figures:
        return "undefined"
    return "{:.3f} {:.3f}-{:.3f}".format(*figures)
