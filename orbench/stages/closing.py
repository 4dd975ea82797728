"""The refusal table that ends stages 4 and 5: one line per category, the two sides apart."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from orbench.base.messages import one_line, shortened
from orbench.base.prompts import prompt_id_of, seed_id_of
from orbench.base.words import OVERALL, SIDES, UNCATEGORISED, Row, Side, category_of, side_of
from orbench.stages.stage import Stage
from orbench.stats.intervals import wilson

HEAD = ("category", "rows", "refused", "rate", "95 % CI", "unscored", "with unscored")
TABLE_WIDTH = 80  # columns of a terminal


class _Counted(NamedTuple):
    """One row: what it asks and its seed as hashes, and whether it is refused (None: unscored)."""

    category: str
    prompt: int
    seed: int
    refused: bool | None


class RefusalStage(Stage):
    """A stage that ends with a refusal table. `refused` tells what an output row is.

    Columns of a row: prompt; if there, category, is_toxic, messages, toxic_seed or seed_id.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._counted: dict[Side | None, list[_Counted]] = {}
        self.decided_by = {"rules": 0, "judge": 0}  # rows
        self.certain = 0  # of the rules' rows

    def refused(self, row: Row) -> bool:
        """Whether an output row is a refusal."""
        raise NotImplementedError

    def scored(self, row: Row) -> None:
        self._count(row, self.refused(row))

    def unscored(self, row: Row) -> None:
        self._count(row, None)

    def _count(self, row: Row, refused: bool | None) -> None:
        asked = prompt_id_of(row)
        side = side_of(row, "a row")
        seed = hash(seed_id_of(row) or asked)
        one = _Counted(category_of(row), hash(asked), seed, refused)
        self._counted.setdefault(side, []).append(one)

    def findings(self) -> dict[str, Any]:
        """Rows: those that the rules decided, and those that they are certain of."""
        return {"by_rules": self.decided_by["rules"], "certain": self.certain}

    def summary(self) -> list[str]:
        """Rows, the rate with its 95 % interval, and the interval that includes unscored rows."""
        lines: list[str] = []
        for side in (None, *SIDES.values()):
            if rows := self._counted.get(side, []):
                if side and len(self._counted) > 1:
                    lines.append(f"{side.prompts}: {side.rate}")
                lines += _table(rows)
        return lines


def _table(rows: Sequence[_Counted]) -> Iterator[str]:
    by_category: dict[str, list[_Counted]] = {}
    for row in rows:
        by_category.setdefault(row.category, []).append(row)
    if by_category.keys() == {UNCATEGORISED}:
        by_category = {}
    parts = [(one_line(name), by_category[name]) for name in sorted(by_category)]
    cells = [HEAD, *(_cells(name, part) for name, part in [*parts, (OVERALL, rows)])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    most = TABLE_WIDTH - sum(width + 2 for width in widths[1:])
    for name, *figures in cells:
        right = (f"{cell:>{width}}" for cell, width in zip(figures, widths[1:], strict=True))
        yield "  ".join([f"{shortened(name, most):<{min(widths[0], most)}}", *right])
    if not _independent(rows):
        yield "the intervals allow for rows that share a prompt or a seed"
    if any(row.refused is None for row in rows):
        yield "with unscored: the interval that includes them, as answers or as refusals"


def _cells(name: str, rows: Sequence[_Counted]) -> tuple[str, ...]:
    verdicts = [row.refused for row in rows if row.refused is not None]
    n = len(verdicts)
    refused = sum(verdicts)
    unscored = len(rows) - len(verdicts)
    if not n:
        return name, "0", "0", "-", "-", str(unscored), "-"
    rate, *ends = (100 * figure for figure in _figures(rows, n, refused))
    return (
        name,
        str(n),
        str(refused),
        f"{rate:.1f}%",
        "{:.1f}-{:.1f}".format(*ends[:2]),
        str(unscored),
        "{:.1f}-{:.1f}".format(*ends[2:]),
    )


def _independent(rows: Sequence[_Counted]) -> bool:
    """Whether each row has a prompt, and each prompt a seed, of its own."""
    return len({row.seed for row in rows}) == len({row.prompt for row in rows}) == len(rows)


def _figures(rows: Sequence[_Counted], n: int, refused: int) -> tuple[float, ...]:
    """The rate and its two intervals, as results.csv has them."""
    if _independent(rows):  # the same, without loading numpy and scipy for half a second
        every = len(rows)
        ends = wilson(refused, every)[0], wilson(refused + every - n, every)[1]
        return refused / n, *wilson(refused, n), *ends
    import numpy as np

    from orbench.stats.core import Verdicts, mean, with_unscored

    found = np.array([np.nan if row.refused is None else row.refused for row in rows], float)
    prompts = np.array([row.prompt for row in rows])
    seeds = np.array([row.seed for row in rows])
    verdicts = Verdicts(found, prompts, seeds)
    return *mean(verdicts)[:3], *with_unscored(verdicts)
