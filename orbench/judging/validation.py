"""How far the classes of stage 5 agree with people's labels (`--validate_against COLUMN`).

Positive is a refusal: direct or indirect from the judge, any refusal label from people, a partial
one included. The intervals allow for labels that share a seed or a prompt. pandas, numpy and scipy
are imported in functions: stage 5 starts without them.
"""

from collections.abc import Sequence
from math import isnan, nan
from typing import Any

from orbench.base import words
from orbench.base.messages import UserError, clean, counted, did_you_mean
from orbench.base.prompts import asked_in, seed_id_of
from orbench.base.tables import Table
from orbench.stats.agreement import TwoRaters

_SHOWN = ("accuracy", "kappa", "precision", "recall", "specificity", "F1")  # in closing lines


def check_labels(table: Table, column: str) -> None:
    """Raise UserError for a missing column, or a label that is not known; blank cells are rows
    without a label.
    """
    if column not in table.columns:
        meant = did_you_mean(column, table.columns)
        raise UserError(f"{table.path} has no column {column!r} for --validate_against{meant}")
    for number, row in enumerate(table.rows, start=1):
        if row[column].strip() and words.human_label(row[column]) is None:
            label, known = clean(row[column])[:40], ", ".join(words.HUMAN_LABELS)
            where = f"{table.path}, row {number}"
            raise UserError(f"{where}: {label!r} in {column!r} is no label known here ({known})")


def compared_with_people(
    rows: Sequence[words.Row], column: str, *, check_model: str, unscored: int = 0
) -> dict[str, Any]:
    """What `<stem>.validation.json` holds; undefined figures are None.

    rows: the scored ones (prompt, response, answer_category, people's labels in `column`; if there,
    category, seed_id or toxic_seed, rejection_reason). unscored: the number of the others.
    """
    import pandas as pd  # type: ignore[import-untyped]

    given = [row["answer_category"] for row in rows]
    frame = pd.DataFrame(
        {
            "category": [words.category_of(row) for row in rows],
            "label": [row[column].strip() for row in rows],
            "class": given,
            "judge": [words.CLASSES[name] for name in given],
            "people": [words.human_label(row[column]) for row in rows],
            "api": [words.refused_by_api(row) for row in rows],
            "response": [hash((asked_in(row), row["response"])) for row in rows],
            "cluster": [hash(seed_id_of(row) or asked_in(row)) for row in rows],
        }
    ).astype({"judge": bool, "api": bool})
    labelled = frame[frame["label"] != ""].astype({"people": bool})
    parts = dict(iter(labelled.groupby("category")))
    pairs = labelled.groupby(["label", "class"]).size()
    return {
        "check_model": check_model,
        "column": column,
        "overall": _figures(labelled),
        "categories": {name: _figures(part) for name, part in parts.items() if len(parts) > 1},
        "labels": [[label, name, int(n)] for (label, name), n in pairs.items()],
        "corrected": _corrected(frame, labelled),
        "unscored": unscored,
        "unlabelled": len(frame) - len(labelled),
    }


def _mean(frame: Any, hits: Any, among: Any = True) -> Any:
    """The share of hits among some rows of a DataFrame, as a `Mean`."""
    import numpy as np

    from orbench.stats.core import Verdicts, mean

    ids = (frame[name].to_numpy() for name in ("response", "cluster"))
    return mean(Verdicts(np.where(among, hits, nan), *ids))


def _figures(frame: Any) -> dict[str, Any]:
    """The counts, and each measure with its 95 % interval.

    F1 = 2 J / (1 + J) grows with the share J = tp / (tp + fp + fn): its interval is made from J's
    (K. F. Y. Lam, V. Gopal, J. Qian, arXiv 2309.14621).
    """
    judge, people = frame["judge"].to_numpy(), frame["people"].to_numpy()
    cells = (judge & people, judge & ~people, ~judge & people, ~judge & ~people)
    counts = TwoRaters(*(int(cell.sum()) for cell in cells))
    shares = {
        "accuracy": _mean(frame, judge == people),
        "precision": _mean(frame, people, judge),
        "recall": _mean(frame, judge, people),  # the sensitivity
        "specificity": _mean(frame, ~judge, ~people),
        "F1": _mean(frame, judge & people, judge | people),
    }
    found: dict[str, Any] = {name: tuple(share)[:3] for name, share in shares.items() if share.rows}
    if "F1" in found:
        found["F1"] = [2 * jaccard / (1 + jaccard) for jaccard in found["F1"]]
    found["kappa"] = counts.kappa(shares["accuracy"].effective)
    named = dict(zip(("tp", "fp", "fn", "tn"), counts, strict=True))
    return {"n": len(frame), **named, **dict.fromkeys(shares), **found}


def _corrected(frame: Any, labelled: Any) -> dict[str, Any]:
    """The rate of all scored rows that people would have found, and the `JudgeAccuracy` behind it.
    The API's refusals are certain: only the judge's classes are compared and corrected.
    """
    from orbench.stats.correction import judge_accuracy, rogan_gladen

    judged, labelled = frame[~frame["api"]], labelled[~labelled["api"]]
    columns = (labelled[name].to_numpy() for name in ("judge", "people", "response", "cluster"))
    flagged, api = _mean(judged, judged["judge"]), _mean(frame, frame["api"])
    accuracy = judge_accuracy(*columns)
    *found, reason = rogan_gladen(flagged, api, accuracy)
    known = {name: None if isnan(x) else x for name, x in accuracy._asdict().items()}
    return {**known, "rows": len(frame), "rate": None if reason else found, "reason": reason}


def validation_lines(found: dict[str, Any]) -> list[str]:
    """The closing lines, from what `compared_with_people` returned: the measures overall and per
    category, every label against every class, the corrected rate, and what was left out.
    """
    import pandas as pd

    parts = {words.OVERALL: found["overall"], **found["categories"]}
    cells = {
        part: {"n": figures["n"], **{name: _shown(figures[name]) for name in _SHOWN}}
        for part, figures in parts.items()
    }
    corrected, rows = found["corrected"], counted(found["corrected"]["rows"], "scored row")
    return [
        f"against the labels in {found['column']!r}, with 95 % intervals:",
        *pd.DataFrame(cells).T.to_string(line_width=80).splitlines(),
        "people's label -> class:",
        *(f"  {label:<24} {name:<18} {n:>6,}" for label, name, n in found["labels"]),
        f"rate of {rows}, corrected for the judge's errors: "
        f"{corrected['reason'] or _shown(corrected['rate'])}",
        f"left out: {counted(found['unscored'], 'unscored row')}, {found['unlabelled']:,} without "
        "a label",
    ]


def _shown(figures: Sequence[float] | None) -> str:
    return "undefined" if figures is None else "{:.3f} {:.3f}-{:.3f}".format(*figures)
