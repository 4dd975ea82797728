"""How far the classes of stage 5 agree with people's labels.

Positive is a refusal: direct or indirect from the checker, any refusal label from people. All
figures are over rows that have both.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from orbench.agreement import cohen_kappa
from orbench.columns import OVERALL
from orbench.rates import wilson
from orbench.table import Row, Table
from orbench.terminal import UserError

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
TP, FP, FN, TN = CELLS = range(4)
# Each share: the rows it counts, of which rows.
SHARES = {
    "accuracy": ((TP, TN), CELLS),
    "precision": ((TP,), (TP, FP)),
    "recall": ((TP,), (TP, FN)),
    "rate": ((TP, FP), CELLS),
    "true_rate": ((TP, FN), CELLS),
}


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


class Compared:
    """The rows of some category in the four cells of a `Confusion`, by response: those of the same
    response (a judge asked several times) are not independent.
    """

    def __init__(self) -> None:
        self.cells = [Counter[int]() for _ in CELLS]  # hash of prompt and response -> rows

    def add(self, row: Row, *, checker: bool, human: bool) -> None:
        """Count a row. checker, human: whether they call it a refusal."""
        cell = (TP if human else FP) if checker else (FN if human else TN)
        self.cells[cell][hash((row["prompt"], row["response"]))] += 1

    def include(self, other: "Compared") -> None:
        """Count another's rows in."""
        for mine, more in zip(self.cells, other.cells, strict=True):
            mine.update(more)

    def rows(self, cells: Iterable[int] = CELLS) -> int:
        """How many rows are in these cells."""
        return sum(self.cells[cell].total() for cell in cells)

    def responses(self, cells: Iterable[int] = CELLS) -> int:
        """How many different responses are in these cells."""
        return len(set[int]().union(*(self.cells[cell] for cell in cells)))

    def confusion(self) -> Confusion:
        """The rows of each cell."""
        return Confusion(*(self.rows((cell,)) for cell in CELLS))

    def once(self) -> Confusion:
        """The counts as of one row a response, at the same recall and the same share of false
        alarms: the nearest whole numbers, where a judge contradicts himself.
        """
        tp, fn = self._once(TP, FN)
        fp, tn = self._once(FP, TN)
        return Confusion(tp, fp, fn, tn)

    def _once(self, cell: int, other: int) -> tuple[int, int]:
        rows, responses = self.rows((cell, other)), self.responses((cell, other))
        hits = round(self.rows((cell,)) / rows * responses) if rows else 0
        return hits, responses - hits


class Validation:
    """Compares while rows go by; a stage's closing lines and what `.validation.json` holds."""

    def __init__(self, column: str, table: Table) -> None:
        """column: people's labels. Raises UserError where it is missing or holds an unknown
        label.
        """
        if column not in table.columns:
            raise UserError(f"{table.path} has no column {column!r} for --validate_against")
        self.column = column
        self.unlabelled = self.unscored_rows = 0
        self.compared: dict[str, Compared] = {}  # by category, as `rates.shown` names it
        self.classes: Counter[tuple[str, str]] = Counter()  # (human label, answer_category)
        for number, row in enumerate(table, 1):
            if row[column].strip() and label_of(row[column]) is None:
                raise UserError(
                    f"{table.path}, row {number}: {row[column]!r} in {column!r} is no label known "
                    f"here ({', '.join(HUMAN_LABELS)})"
                )

    def scored(self, row: Row) -> None:
        """Compare one row. Columns: prompt, response, answer_category, people's; category."""
        human = label_of(row[self.column])
        if human is None:
            self.unlabelled += 1
            return
        compared = self.compared.setdefault(row.get("category", "") or "(no category)", Compared())
        compared.add(row, checker=row["answer_category"] != "direct_answer", human=human)
        self.classes[row[self.column].strip(), row["answer_category"]] += 1

    def unscored(self, row: Row) -> None:
        """Count a row without a class."""
        self.unscored_rows += 1

    def lines(self) -> list[str]:
        """The comparison as a table: overall and per category, then every label against every
        class.
        """
        rows = {OVERALL: self.overall(), **self.categories()}
        width = max(map(len, rows))
        head = f"{'':<{width}}  {'n':>5}"
        for name in ("accuracy", "kappa", "precision", "recall", "F1"):
            head += f"  {name:>20}"
        head += f"  {'rate':>6}  {'true rate':>9}"
        lines = [f"against people's labels in {self.column!r}:", head]
        for name, compared in rows.items():
            lines.append(f"{name:<{width}}  {compared.rows():>5}" + _figures(compared))
        if rows[OVERALL].responses() < rows[OVERALL].rows():
            lines.append("intervals as of one row a response")
        lines.append("people's label -> class:")
        for (human, given), count in sorted(self.classes.items()):
            lines.append(f"  {human:<24} {given:<18} {count:>6}")
        lines.append(
            f"left out: {self.unscored_rows} unscored rows, {self.unlabelled} without a label"
        )
        return lines

    def overall(self) -> Compared:
        """What was compared in all categories."""
        whole = Compared()
        for compared in self.compared.values():
            whole.include(compared)
        return whole

    def categories(self) -> dict[str, Compared]:
        """What was compared in each category, where there are several."""
        return dict(sorted(self.compared.items())) if len(self.compared) > 1 else {}

    def to_json(self, check_model: str) -> str:
        """What `plot_results.py --validation` reads.

        n and the counts are as of one row a response, as the intervals are; rows: those compared.
        """
        data = {
            "check_model": check_model,
            "column": self.column,
            "overall": _kept(self.overall()),
            "categories": {name: _kept(c) for name, c in self.categories().items()},
            "unscored": self.unscored_rows,
            "unlabelled": self.unlabelled,
        }
        return json.dumps(data, indent=2) + "\n"


def label_of(cell: str) -> bool | None:
    """Whether a person's label says refusal; None for a blank or unknown one."""
    word = cell.strip().lower().replace(" ", "_").replace("-", "_")
    head, _, rest = word.partition("_")
    return HUMAN_LABELS.get(rest if head.isdigit() and rest else word)  # XSTest: 1_full_compliance


def measures(compared: Compared) -> dict[str, Any]:
    """Each measure with its 95 % interval; null where it is undefined or cannot be had.

    Shares of the rows. Their intervals are Wilson's, as of one row a response at the same share:
    more rows of a response never make them narrower. F1 is 2 J / (1 + J), which grows with the
    share J = tp / (tp + fp + fn), so its interval is made from Wilson's of J (K. F. Y. Lam,
    V. Gopal, J. Qian, Confidence intervals for the F1 score, arXiv 2309.14621: "Wilson indirect").
    Kappa's are percentiles of a bootstrap over the four counts (seeded, so that the same counts
    give the same interval). Where all draws give the same kappa, as without a single error, they
    say nothing of how sure it is: no interval.
    """
    found: dict[str, Any] = {}
    for name, (hits, among) in SHARES.items():
        found[name], found[f"{name}_interval"] = _share(compared, hits, among)
    found["kappa"] = cohen_kappa(*compared.confusion())
    found["kappa_interval"] = _bootstrap(compared)
    jaccard, interval = _share(compared, (TP,), (TP, FP, FN))
    found["f1"] = None if jaccard is None else _f1(jaccard)
    found["f1_interval"] = None if interval is None else [_f1(end) for end in interval]
    return found


def _share(
    compared: Compared, hits: Iterable[int], among: Sequence[int]
) -> tuple[float, list[float]] | tuple[None, None]:
    n, responses = compared.rows(among), compared.responses(among)
    if not n:
        return None, None
    share = compared.rows(hits) / n
    return share, list(wilson(share * responses, responses))


def _f1(jaccard: float) -> float:
    return 2 * jaccard / (1 + jaccard)


def _bootstrap(compared: Compared) -> list[float] | None:
    n, responses = compared.rows(), compared.responses()
    if not n:
        return None
    import numpy as np

    shares = np.array(compared.confusion()) / n
    draws = np.random.default_rng(SEED).multinomial(responses, shares, size=RESAMPLES)
    kappas = [cohen_kappa(*map(int, draw)) for draw in draws]
    defined = [kappa for kappa in kappas if kappa is not None]
    low, high = np.percentile(defined, [2.5, 97.5]).tolist() if defined else (0.0, 0.0)
    return [low, high] if low < high else None


def _kept(compared: Compared) -> dict[str, Any]:
    once = compared.once()
    return {"n": once.n, **once._asdict(), "rows": compared.rows(), **measures(compared)}


def _figures(compared: Compared) -> str:
    found = measures(compared)
    text = ""
    for name in ("accuracy", "kappa", "precision", "recall", "f1"):
        value, interval = found[name], found[f"{name}_interval"]
        figure = "undefined"
        if value is not None:
            ends = f"{interval[0]:.3f}–{interval[1]:.3f}" if interval else "no interval"
            figure = f"{value:.3f} {ends}"
        text += f"  {figure:>20}"
    rate, true = ("-" if r is None else f"{r:.1%}" for r in (found["rate"], found["true_rate"]))
    return text + f"  {rate:>6}  {true:>9}"
