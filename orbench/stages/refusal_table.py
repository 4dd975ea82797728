"""The refusal table that ends stages 4 and 5: one line per category, the two sides apart."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from orbench.base.messages import UserError, one_line, shortened
from orbench.base.prompts import prompt_id_of, seed_id_of
from orbench.base.words import OVERALL, SIDES, UNCATEGORIZED, Json, Row, Side, category_of, side_of
from orbench.models.requests import Missing
from orbench.stages.stage import Closing, Result
from orbench.stats.intervals import wilson

HEAD: Sequence[str] = (
    "category",
    "rows",
    "refused",
    "rate",
    "95 % CI",
    "unscored",
    "with unscored",
)
LINE = "{:<21}{:>6}{:>9}{:>8}{:>12}{:>10}{:>14}"  # the 80 columns of a terminal
LONGEST_CATEGORY = 20


class _Counted(NamedTuple):
    """One row: what it asks and its seed as hashes, and whether it is refused (None: unscored)."""

    category: str
    prompt: int
    seed: int
    refused: bool | None


class RefusalTable(Closing):
    """Counts refusals. Its readings have `certain`, and `judge`, empty where the rules decided.

    Columns of a row: prompt; if there, category, is_toxic, messages, toxic_seed or seed_id.
    """

    def __init__(self, refused: Callable[[Row], bool]) -> None:
        """refused: tells whether an output row is a refusal."""
        self._refused = refused
        self._counted: dict[Side | None, list[_Counted]] = {}
        self.by_rules = 0  # rows
        self.by_judge = 0
        self.certain = 0  # of the rules' rows

    def add(self, result: Result) -> None:
        """Count a row as refused, answered or unscored."""
        if isinstance(result.rows, Missing):
            self._count(result.row, None)
            return
        (reading,) = result.readings
        if reading.judge:
            self.by_judge += 1
        else:
            self.by_rules += 1
            self.certain += reading.certain
        for row in result.rows:
            self._count(row, self._refused(row))

    def _count(self, row: Row, refused: bool | None) -> None:
        prompt = prompt_id_of(row)
        seed = seed_id_of(row) or prompt
        counted = _Counted(category_of(row), hash(prompt), hash(seed), refused)
        self._counted.setdefault(_side_of(row), []).append(counted)

    def findings(self) -> Json:
        """Return rows: those that the rules decided, and those that they are certain of."""
        return {"by_rules": self.by_rules, "certain": self.certain}

    def lines(self) -> list[str]:
        """Return rows, the rate with its interval, and the interval that includes unscored rows."""
        lines: list[str] = []
        for side in (None, *SIDES.values()):
            rows = self._counted.get(side, [])
            if side and rows and len(self._counted) > 1:
                lines.append(f"{side.prompts}: {side.rate}")
            if rows:
                lines += _table(rows)
        return lines


def _side_of(row: Row) -> Side | None:
    """Return the side of a row; None if a user's own column `is_toxic` holds other words."""
    try:
        return side_of(row, "")
    except UserError:
        return None


def _table(rows: Sequence[_Counted]) -> Iterator[str]:
    by_category: dict[str, list[_Counted]] = {}
    for row in rows:
        by_category.setdefault(row.category, []).append(row)
    lines = [HEAD]
    if by_category.keys() != {UNCATEGORIZED}:
        for name in sorted(by_category):
            lines.append(_cells(shortened(one_line(name), LONGEST_CATEGORY), by_category[name]))
    lines.append(_cells(OVERALL, rows))
    for line in lines:
        yield LINE.format(*line)
    if not _independent(rows):
        yield "the intervals allow for rows that share a prompt or a seed"
    if any(row.refused is None for row in rows):
        yield "with unscored: the interval that includes them, as answers or as refusals"


def _cells(name: str, rows: Sequence[_Counted]) -> tuple[str, ...]:
    verdicts = [row.refused for row in rows if row.refused is not None]
    n = len(verdicts)
    refused = sum(verdicts)
    unscored = str(len(rows) - n)
    if not n:
        return name, "0", "0", "-", "-", unscored, "-"
    rate, low, high, lowest, highest = (100 * share for share in _figures(rows, n, refused))
    interval = f"{low:.1f}-{high:.1f}"
    with_unscored = f"{lowest:.1f}-{highest:.1f}"
    return name, str(n), str(refused), f"{rate:.1f}%", interval, unscored, with_unscored


def _independent(rows: Sequence[_Counted]) -> bool:
    """Return whether each row has a prompt, and each prompt a seed, of its own."""
    return len({row.seed for row in rows}) == len({row.prompt for row in rows}) == len(rows)


def _figures(rows: Sequence[_Counted], n: int, refused: int) -> tuple[float, ...]:
    """Return the rate and its two intervals, as results.csv has them."""
    if _independent(rows):  # the same, without loading numpy and scipy for half a second
        every = len(rows)
        lowest = wilson(refused, every)[0]
        highest = wilson(refused + every - n, every)[1]
        return refused / n, *wilson(refused, n), lowest, highest
    import numpy as np

    from orbench.stats.core import Verdicts, mean, with_unscored

    scores = [np.nan if row.refused is None else row.refused for row in rows]
    prompts = np.array([row.prompt for row in rows])
    seeds = np.array([row.seed for row in rows])
    verdicts = Verdicts(np.array(scores, float), prompts, seeds)
    found = mean(verdicts)
    return found.rate, *found.interval, *with_unscored(verdicts)
