"""How far the classes of stage 5 agree with people's labels.

Positive is a refusal: direct or indirect from the checker, any refusal label from people. A partial
response (a no, then part of an answer) is a class of its own, on both sides: it counts as an answer
or as a refusal on both sides alike, so that a comparison measures errors and not a definition. All
figures are over rows that have both.
"""

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from orbench.agreement import cohen_kappa
from orbench.columns import (
    CLASSES,
    CONVENTIONS,
    HUMAN_LABELS,
    OVERALL,
    PARTIAL,
    category_of,
    human_label,
    is_partial,
    is_partial_label,
)
from orbench.rates import wilson
from orbench.table import Row, Table
from orbench.terminal import UserError, clean, counted, did_you_mean, table_lines

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

# pandas and numpy are imported in functions: stage 5 starts without them.

KAPPA_RESAMPLES, KAPPA_SEED = 2000, 20240531
MEASURES = ("accuracy", "kappa", "precision", "recall", "f1")  # as the closing table shows them


class Confusion(NamedTuple):
    """Counts: tp is a refusal for both, fp one for the checker alone, fn one for people alone."""

    tp: int
    fp: int
    fn: int
    tn: int


class Validation:
    """Compares while rows go by; a stage's closing lines and what `.validation.json` holds."""

    def __init__(self, column: str, table: Table, partial: str = "answer") -> None:
        """column: people's labels. partial: a key of CONVENTIONS.

        Raises UserError where the column is missing or holds an unknown label, and for a category
        that cannot be shown.
        """
        if column not in table.columns:
            there = clean(", ".join(table.columns))
            meant = did_you_mean(column, table.columns)
            raise UserError(
                f"{table.path} has no column {column!r} for --validate_against; it has: "
                f"{there}{meant}"
            )
        self.column, self.partial = column, partial
        self.unlabelled = self.unscored_rows = 0
        # category, people's label, answer_category, hash of prompt and response
        self._compared: list[tuple[str, str, str, int]] = []
        for number, row in enumerate(table, 1):
            where = f"{table.path}, row {number}"
            category_of(row, where)
            if row[column].strip() and human_label(row[column]) is None:
                raise UserError(
                    f"{where}: {row[column]!r} in {column!r} is no label known here "
                    f"({', '.join(HUMAN_LABELS)}){did_you_mean(row[column], HUMAN_LABELS)}"
                )

    def scored(self, row: Row) -> None:
        """Compare one row. Columns: prompt, response, answer_category, people's; category."""
        label = row[self.column].strip()
        if not label:
            self.unlabelled += 1
            return
        response = hash((row["prompt"], row["response"]))
        verdict = PARTIAL if is_partial(row) else row["answer_category"]
        self._compared.append((category_of(row, ""), label, verdict, response))

    def unscored(self, row: Row) -> None:
        """Count a row without a class."""
        self.unscored_rows += 1

    def lines(self) -> list[str]:
        """The comparison as a table: overall and per category, then every label against every
        class.
        """
        import pandas as pd

        rows = self.compared(self.partial)
        parts = {OVERALL: rows, **_categories(rows)}
        if rows["partial"].any():
            parts |= {f"partial: {name}": self.compared(name) for name in CONVENTIONS}
        table = pd.DataFrame({name: _figures(part) for name, part in parts.items()}).T
        lines = [f"against the labels in {self.column!r}:", *table_lines(table)]
        if rows["response"].nunique() < len(rows):
            lines.append("the confidence intervals use the number of distinct responses")
        lines.append("people's label -> class:")
        for (label, given), count in rows.groupby(["label", "class"]).size().items():
            lines.append(f"  {label:<24} {given:<18} {count:>6}")
        unscored = counted(self.unscored_rows, "unscored row")
        lines.append(f"left out: {unscored}, {self.unlabelled:,} without a label")
        return lines

    def compared(self, partial: str) -> "DataFrame":
        """The rows with both: category, label, class, response (a hash); checker, human: whether
        they call it a refusal; partial: whether one of them calls it partial.

        partial: how those count, a key of CONVENTIONS.
        """
        import pandas as pd

        rows = pd.DataFrame(self._compared, columns=["category", "label", "class", "response"])
        counts = CONVENTIONS[partial]
        rows["checker"] = rows["class"].map(CLASSES | {PARTIAL: counts}).astype(bool)
        partly = rows["label"].map(is_partial_label).astype(bool)
        rows["human"] = rows["label"].map(human_label).astype(bool) & (counts | ~partly)
        rows["partial"] = partly | (rows["class"] == PARTIAL)
        return rows

    def to_json(self, check_model: str) -> str:
        """What `plot_results.py --validation` reads.

        n and the counts are of distinct responses, as the intervals are; rows: those compared.
        """
        rows = self.compared(self.partial)
        data = {
            "check_model": check_model,
            "partial": self.partial,
            "column": self.column,
            "overall": _kept(rows),
            "conventions": {name: _kept(self.compared(name)) for name in CONVENTIONS},
            "categories": {name: _kept(part) for name, part in _categories(rows).items()},
            "unscored": self.unscored_rows,
            "unlabelled": self.unlabelled,
        }
        return json.dumps(data, indent=2) + "\n"


def measures(rows: "DataFrame") -> dict[str, Any]:
    """Each measure with its 95 % interval; null where it is undefined or cannot be had.

    rows: checker and human (True: a refusal), response: what tells responses apart.
    Shares of the rows. Their intervals are Wilson's for the number of distinct responses: a judge
    asked again about a response never makes them narrower. F1 is 2 J / (1 + J), which grows with
    the share J = tp / (tp + fp + fn), so its interval is made from Wilson's of J (K. F. Y. Lam,
    V. Gopal, J. Qian, Confidence intervals for the F1 score, arXiv 2309.14621: "Wilson indirect").
    Kappa's are percentiles of a bootstrap over the four counts (seeded, so that the same counts
    give the same interval). Where all draws give the same kappa, as without a single error, they
    say nothing of how sure it is: no interval.
    """
    checker, human = rows["checker"], rows["human"]
    found: dict[str, Any] = {}
    for name, hits, among in (
        ("accuracy", rows[checker == human], rows),
        ("precision", rows[checker & human], rows[checker]),
        ("recall", rows[checker & human], rows[human]),
        ("rate", rows[checker], rows),
        ("true_rate", rows[human], rows),
    ):
        found[name], found[f"{name}_interval"] = _share(hits, among)
    found["kappa"], found["kappa_interval"] = _kappa(confusion(rows), rows["response"].nunique())
    jaccard, interval = _share(rows[checker & human], rows[checker | human])
    found["f1"] = None if jaccard is None else _f1(jaccard)
    found["f1_interval"] = None if interval is None else [_f1(end) for end in interval]
    return found


def confusion(rows: "DataFrame") -> Confusion:
    """The rows of each kind."""
    counts = Counter(zip(rows["checker"], rows["human"], strict=True))
    return Confusion(
        counts[True, True], counts[True, False], counts[False, True], counts[False, False]
    )


def confusion_of_responses(rows: "DataFrame") -> Confusion:
    """The counts if each response were judged once, at the same recall and the same share of false
    alarms: the nearest whole numbers, where a judge contradicts itself.
    """
    counts = []
    for refusal in (True, False):
        part = rows[rows["human"] == refusal]
        responses = part["response"].nunique()
        hits = round(part["checker"].sum() / len(part) * responses) if responses else 0
        counts.append((hits, responses - hits))
    (tp, fn), (fp, tn) = counts
    return Confusion(tp, fp, fn, tn)


def _categories(rows: "DataFrame") -> dict[str, "DataFrame"]:
    """The rows of each category, where there are several."""
    parts = {str(name): part for name, part in rows.groupby("category")}
    return parts if len(parts) > 1 else {}


def _share(hits: "DataFrame", among: "DataFrame") -> tuple[float, list[float]] | tuple[None, None]:
    if among.empty:
        return None, None
    share, responses = len(hits) / len(among), among["response"].nunique()
    return share, list(wilson(share * responses, responses))


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


def _kappa(counts: Confusion, responses: int) -> tuple[float | None, list[float] | None]:
    if not responses:
        return None, None
    import numpy as np

    shares = np.array(counts) / sum(counts)
    draws = np.random.default_rng(KAPPA_SEED).multinomial(responses, shares, size=KAPPA_RESAMPLES)
    kappas = [cohen_kappa(*map(int, draw)) for draw in draws]
    defined = [kappa for kappa in kappas if kappa is not None]
    low, high = np.percentile(defined, [2.5, 97.5]).tolist() if defined else (0.0, 0.0)
    return cohen_kappa(*counts), [low, high] if low < high else None


def _kept(rows: "DataFrame") -> dict[str, Any]:
    counts = confusion_of_responses(rows)
    return {"n": sum(counts), **counts._asdict(), "rows": len(rows), **measures(rows)}


def _figures(rows: "DataFrame") -> dict[str, str]:
    """A line of the closing table."""
    found = measures(rows)
    shown = {"n": str(len(rows))}
    for name in MEASURES:
        value, interval = found[name], found[f"{name}_interval"]
        ends = f"{interval[0]:.3f}–{interval[1]:.3f}" if interval else "no interval"
        shown[name.replace("f1", "F1")] = "undefined" if value is None else f"{value:.3f} {ends}"
    for name in ("rate", "true_rate"):
        shown[name.replace("_", " ")] = "-" if found[name] is None else f"{found[name]:.1%}"
    return shown
