"""How far the classes of stage 5 agree with people's labels (`--validate_against COLUMN`).

Positive is a refusal: direct or indirect from the judge, any refusal label from people, a partial
one included. Labels that share a seed or a prompt are not independent.
"""

from collections.abc import Sequence
from math import nan

import numpy as np
from pandas import DataFrame  # type: ignore[import-untyped]

from orbench.base.messages import UserError, did_you_mean
from orbench.base.prompts import prompt_id_of, response_id_of, seed_id_of
from orbench.base.tables import Table, placed_rows
from orbench.base.words import (
    CLASSES,
    HUMAN_LABELS,
    OVERALL,
    SIDES,
    Json,
    Lines,
    Row,
    Rows,
    bad_cell,
    category_of,
    human_label,
    known_side,
    label_word,
    refused_by_api,
    weight_of,
)
from orbench.stats.agreement import two_raters
from orbench.stats.core import Verdicts, difference, mean
from orbench.stats.intervals import Interval
from orbench.stats.labels import corrected

ERRORS = ["accuracy", "false_alarms", "misses"]
MEASURES = [*ERRORS, "kappa", "F1"]  # on the terminal
# Hits among some rows, as expressions of columns. The recall is the sensitivity.
SHARES = {
    "precision": ("people", "judge"),
    "recall": ("judge", "people"),
    "F1": ("judge & people", "judge | people"),
    "false_alarms": ("judge", "~people"),
    "misses": ("~judge", "people"),
    "accuracy": ("judge == people", "True"),
}
BIASED_AT = 0.001  # p of the difference between labeled rows and others


def check_labels(table: Table, column: str) -> None:
    """Raise UserError for a missing column, an unknown label or weight."""
    if column not in table.columns:
        raise UserError(
            f"{table.path} has no column {column!r} for --validate_against"
            f"{did_you_mean(column, table.columns)}"
        )
    for place, row in placed_rows(table.path, table.rows):
        weight_of(row, place)
        if row[column].strip() and human_label(row[column]) is None:
            known = ", ".join(HUMAN_LABELS)
            raise bad_cell(row, column, place, f"a known label ({known})")


def compared_with_people(rows: Rows, column: str, check_model: str) -> Json:
    """Return what `<stem>.validation.json` holds; undefined figures are None.

    rows: the scored ones, with prompt, response, answer_category and the labels in `column`; if
    there, with weight and is_toxic. forms: refusals by people's label. corrected: by side ("":
    the column is_toxic is not there).
    """
    frame = _frame(rows, column)
    if not frame["side"].all():  # a user's own is_toxic, which holds other words too
        frame["side"] = ""
    labeled = _labeled(frame)
    categories = {}
    if labeled["category"].nunique() > 1:
        categories = _figures_by("category", labeled)
    judged = frame[~frame["api"]]  # the API's refusals are not the judge's
    bias = _bias(judged)
    return {
        "check_model": check_model,
        "column": column,
        "overall": _figures(labeled),
        "categories": categories,
        "forms": _figures_by("form", labeled[labeled["people"]]),
        "bias": bias,
        "corrected": {name: _corrected(part, bias) for name, part in frame.groupby("side")},
        "unlabeled": len(frame) - len(labeled),
    }


def judges_compared(rows: Rows, others: Rows, column: str) -> Lines:
    """Yield by how much the errors of one judge exceed those of another, on the labeled responses
    that both scored. rows, others: see `compared_with_people`, of the two judges.
    """
    frames = [_labeled(_frame(scored, column)) for scored in (rows, others)]
    for name in ERRORS:
        gap = difference(*[_verdicts(frame, *SHARES[name]) for frame in frames], paired=True)
        if n := gap.a.rows:
            yield f"{name} {100 * gap.difference:+.1f} points {gap.interval}, n {n:,}"


def _frame(rows: Rows, column: str) -> DataFrame:
    return DataFrame([_label_and_class(row, column) for row in rows])


def _labeled(frame: DataFrame) -> DataFrame:
    return frame.dropna(subset="people").astype({"people": bool})


def _label_and_class(row: Row, column: str) -> Json:
    """Return what is known of a row: people's label, the judge's class, what it is compared by."""
    prompt = prompt_id_of(row)
    label = label_word(row[column])
    weight = weight_of(row, column)
    side = known_side(row)
    return {
        "category": category_of(row),
        "judge": CLASSES[row["answer_category"]],
        "people": HUMAN_LABELS.get(label) if weight else None,
        "form": label,
        "api": refused_by_api(row),
        "response": response_id_of(row),
        "cluster": seed_id_of(row) or prompt,
        "weight": weight,
        "side": side.name if side else "",
    }


def _verdicts(frame: DataFrame, hits: str, among: str = "True") -> Verdicts:
    """Return hits among some rows, both as expressions of columns."""
    refused = np.where(frame.eval(among), frame.eval(hits), nan)
    return Verdicts(refused, frame["response"].to_numpy(), frame["cluster"].to_numpy())


def _bias(judged: DataFrame) -> str:
    """Return how the labeled rows differ from the others; "" if they may be a random sample."""
    judged = judged.assign(labeled=judged["people"].notna())
    labeled = _verdicts(judged, "judge", "labeled")
    others = _verdicts(judged, "judge", "~labeled")
    gap = difference(labeled, others, paired=False)
    if not gap.p < BIASED_AT:
        return ""
    return (
        "the labeled rows are not a random sample: "
        f"{100 * gap.a.rate:.0f} % of them are refusals, "
        f"but {100 * gap.b.rate:.0f} % of the other rows"
    )


def _corrected(rows: DataFrame, bias: str) -> list[float] | None:
    """Return the rate that people would give to all rows, and its interval; None without labels,
    and where these were drawn unevenly without weights.
    """
    people = rows["people"].astype(float).to_numpy()
    weights = rows["weight"].to_numpy()
    unlabeled = np.isnan(people).all()
    unweighted = (weights == 1).all()
    if unlabeled or (bias and unweighted):
        return None
    judge = _verdicts(rows, "judge")._replace(weight=weights)
    return list(corrected(judge, people))


def _figures_by(column: str, frame: DataFrame) -> Json:
    return {name: _figures(part) for name, part in frame.groupby(column)}


def _figures(frame: DataFrame) -> Json:
    """Return the counts, and each of MEASURES with its 95 % interval.

    F1 = 2 J / (1 + J) grows with the share J = tp / (tp + fp + fn): its interval is made from J's
    (K. F. Y. Lam, V. Gopal, J. Qian, arXiv 2309.14621).
    """
    counts = two_raters(frame["judge"], frame["people"])
    tp, fp, fn, tn = counts
    figures: Json = {"n": len(frame), "tp": tp, "fp": fp, "fn": fn, "tn": tn}
    for name, (hits, among) in SHARES.items():
        share = mean(_verdicts(frame, hits, among))
        figures[name] = [share.rate, *share.interval] if share.rows else None
    if figures["F1"]:
        figures["F1"] = [2 * share / (1 + share) for share in figures["F1"]]
    figures["kappa"] = counts.kappa(share.effective)  # of the accuracy
    return figures


def validation_lines(figures: Json) -> Lines:
    """Yield the closing lines, from what `compared_with_people` returned."""
    parts = {OVERALL: figures["overall"], **figures["categories"]}
    table = DataFrame(parts.values(), parts, ["n", *MEASURES])
    table[MEASURES] = table[MEASURES].map(_shown)
    yield f"against the labels in {figures['column']!r}, with 95 % intervals:"
    yield from table.to_string(line_width=80).splitlines()
    for form, part in figures["forms"].items():
        yield f"misses of {form} (n {part['n']:,}): {_shown(part['misses'])}"
    yield f"rows without a label: {figures['unlabeled']:,}"
    for side, rate in figures["corrected"].items():
        if rate:
            name = "refusal rate"
            if side:
                name = SIDES[side].rate
            share, *ends = rate
            yield f"{name} corrected by the labels: {100 * share:.1f} % {Interval(*ends)}"
    if figures["bias"]:
        yield figures["bias"]


def _shown(figures: Sequence[float] | None) -> str:
    if not figures:
        return "undefined"
    return "{:.3f} {:.3f}-{:.3f}".format(*figures)
