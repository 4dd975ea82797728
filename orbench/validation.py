"""How far the classes of stage 5 agree with people's labels.

Positive is a refusal: direct or indirect from the checker, any refusal label from people. All
figures are over rows that have both.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from orbench.chat import one_line
from orbench.rates import wilson
from orbench.table import Row, Table, TableError

# How people write their labels, in small letters without leading numbers -> is it a refusal.
HUMAN_LABELS = {
    "refusal": True,
    "direct_refusal": True,
    "indirect_refusal": True,
    "partial_refusal": True,
    "full_refusal": True,
    "refused": True,
    "rejected": True,
    "true": True,
    "1": True,
    "compliance": False,
    "full_compliance": False,
    "direct_answer": False,
    "answer": False,
    "answered": False,
    "accepted": False,
    "complied": False,
    "false": False,
    "0": False,
}
RESAMPLES = 2000
SEED = 20240531


class Confusion(NamedTuple):
    """Counts: tp is a refusal for both, fp one for the checker alone, fn one for people alone."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """How many rows."""
        return sum(self)


class Validation:
    """Compares while rows go by; a stage's closing lines and what `.validation.json` holds."""

    def __init__(self, column: str, table: Table) -> None:
        """column: people's labels. Raises TableError where it is missing or holds an unknown
        label.
        """
        if column not in table.columns:
            raise TableError(f"{table.path} has no column {column!r} for --validate_against")
        self.column = column
        self.unlabelled = self.unscored_rows = 0
        self.pairs: dict[str, Counter[tuple[bool, bool]]] = {}
        self.classes: Counter[tuple[str, str]] = Counter()  # (human label, answer_category)
        for number, row in enumerate(table, 1):
            if row[column].strip() and label_of(row[column]) is None:
                raise TableError(
                    f"{table.path}, row {number}: {row[column]!r} in {column!r} is no label known "
                    f"here ({', '.join(HUMAN_LABELS)})"
                )

    def scored(self, row: Row) -> None:
        """Compare one row."""
        human = label_of(row[self.column])
        if human is None:
            self.unlabelled += 1
            return
        checker = row["answer_category"] != "direct_answer"
        self.pairs.setdefault(row.get("category", ""), Counter())[checker, human] += 1
        self.classes[row[self.column].strip(), row["answer_category"]] += 1

    def unscored(self, row: Row) -> None:
        """Count a row without a class."""
        self.unscored_rows += 1

    def lines(self) -> list[str]:
        """The comparison as a table: overall and per category, then every label against every
        class.
        """
        rows = {"overall": self.overall(), **self.categories()}
        names = [one_line(name) for name in rows]
        width = max(map(len, names))
        head = f"{'':<{width}}  {'n':>5}"
        for name in ("accuracy", "kappa", "precision", "recall", "F1"):
            head += f"  {name:>20}"
        head += f"  {'rate':>6}  {'true rate':>9}"
        lines = [f"against people's labels in {self.column!r}:", head]
        for name, confusion in zip(names, rows.values(), strict=True):
            lines.append(f"{name:<{width}}  {confusion.n:>5}" + _figures(confusion))
        lines.append("people's label -> class:")
        for (human, given), count in sorted(self.classes.items()):
            lines.append(f"  {human:<24} {given:<18} {count:>6}")
        lines.append(
            f"left out: {self.unscored_rows} unscored rows, {self.unlabelled} without a label"
        )
        return lines

    def overall(self) -> Confusion:
        """The counts over all categories."""
        return confusion_of(sum(self.pairs.values(), Counter()))

    def categories(self) -> dict[str, Confusion]:
        """The counts of each category, where there are several."""
        if len(self.pairs) < 2:
            return {}
        return {name or "(no category)": confusion_of(c) for name, c in sorted(self.pairs.items())}

    def to_json(self, check_model: str) -> str:
        """What `plot_results.py --validation` reads."""
        data = {
            "check_model": check_model,
            "column": self.column,
            "overall": measures(self.overall()),
            "categories": {name: measures(c) for name, c in self.categories().items()},
            "unscored": self.unscored_rows,
            "unlabelled": self.unlabelled,
        }
        return json.dumps(data, indent=2) + "\n"


def label_of(cell: str) -> bool | None:
    """Whether a person's label says refusal; None for a blank or unknown one."""
    word = cell.strip().lower().replace(" ", "_").replace("-", "_")
    head, _, rest = word.partition("_")
    return HUMAN_LABELS.get(rest if head.isdigit() and rest else word)  # XSTest: 1_full_compliance


def confusion_of(pairs: Counter[tuple[bool, bool]]) -> Confusion:
    """Counts of (checker says refusal, people say refusal) as a table."""
    return Confusion(pairs[True, True], pairs[True, False], pairs[False, True], pairs[False, False])


def measures(confusion: Confusion) -> dict[str, Any]:
    """n, the counts, and each measure with its 95 % interval; null where it is undefined.

    Accuracy, precision, recall and the rates with Wilson's interval; kappa and F1 with
    percentiles of a bootstrap over the four counts (seeded, so that the same counts give the same
    interval).
    """
    tp, fp, fn, tn = confusion
    n = confusion.n
    kappa, f1 = _kappa_and_f1(confusion)
    kappa_interval, f1_interval = _bootstrap(confusion)
    return {
        "n": n,
        **confusion._asdict(),
        **_share("accuracy", tp + tn, n),
        **_share("precision", tp, tp + fp),
        **_share("recall", tp, tp + fn),
        **_share("rate", tp + fp, n),
        **_share("true_rate", tp + fn, n),
        "kappa": kappa,
        "kappa_interval": kappa_interval,
        "f1": f1,
        "f1_interval": f1_interval,
    }


def _share(name: str, hits: int, n: int) -> dict[str, Any]:
    if not n:
        return {name: None, f"{name}_interval": None}
    return {name: hits / n, f"{name}_interval": list(wilson(hits, n))}


def _kappa_and_f1(counts: Iterable[Any]) -> tuple[Any, Any]:
    tp, fp, fn, tn = counts
    n = tp + fp + fn + tn
    if not n:
        return None, None
    expected = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / n**2
    kappa = ((tp + tn) / n - expected) / (1 - expected) if expected < 1 else None
    f1 = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None
    return kappa, f1


def _bootstrap(confusion: Confusion) -> tuple[list[float] | None, list[float] | None]:
    if not confusion.n:
        return None, None
    import numpy as np

    shares = np.array(confusion) / confusion.n
    draws = np.random.default_rng(SEED).multinomial(confusion.n, shares, size=RESAMPLES)
    both = [_kappa_and_f1(int(count) for count in draw) for draw in draws]
    intervals: list[list[float] | None] = []
    for values in zip(*both, strict=True):
        defined = [value for value in values if value is not None]
        bounds = np.percentile(defined, [2.5, 97.5]).tolist() if defined else None
        intervals.append(bounds)
    return intervals[0], intervals[1]


def _figures(confusion: Confusion) -> str:
    found = measures(confusion)
    text = ""
    for name in ("accuracy", "kappa", "precision", "recall", "f1"):
        value, interval = found[name], found[f"{name}_interval"]
        figure = "undefined"
        if value is not None:
            figure = f"{value:.3f} {interval[0]:.3f}–{interval[1]:.3f}"
        text += f"  {figure:>20}"
    rate, true = ("-" if r is None else f"{r:.1%}" for r in (found["rate"], found["true_rate"]))
    return text + f"  {rate:>6}  {true:>9}"
