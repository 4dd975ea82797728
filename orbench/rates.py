"""Rates with their intervals, and the closing table of stages 4 and 5."""

from collections.abc import Callable, Iterable
from math import sqrt

from orbench.chat import one_line
from orbench.table import Row

Z95 = 1.959963984540054  # the normal distribution's 97.5 % quantile: two-sided 95 %


def wilson(hits: float, n: float, z: float = Z95) -> tuple[float, float]:
    """The Wilson score interval of hits out of n, as fractions; (0, 1) where n is 0.

    E. B. Wilson, JASA 22 (1927). It stays inside 0..1 and is fair for small n, unlike p +- 1.96 se.
    """
    if n == 0:
        return 0.0, 1.0
    p = hits / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # min and max: rounding must not put an end on the wrong side of the rate itself, at 0 and 1.
    return max(0.0, min(p, middle - half)), min(1.0, max(p, middle + half))


# `is_toxic` of a row, where stage 3 wrote it -> the side whose rate the row counts in.
SIDES = {
    "False": "over-refusal: safe prompts (is_toxic False)",
    "True": "toxic rejection: toxic prompts (is_toxic True)",
}


class RefusalTally:
    """Counts refusals per category while rows go by: a stage's closing tables.

    Safe and toxic prompts, where a file holds both, are never one rate.
    """

    def __init__(self, refused: Callable[[Row], bool]) -> None:
        """refused: whether a row of the output is a refusal."""
        self._refused = refused
        # side -> category -> [scored rows, refused rows, unscored rows, prompts with a scored row]
        self.counts: dict[str, dict[str, list[int]]] = {}

    def scored(self, row: Row) -> None:
        """Count one scored response."""
        count = self._of(row)
        count[0] += 1
        count[1] += self._refused(row)
        count[3] += row.get("sample", "0") == "0"

    def unscored(self, row: Row) -> None:
        """Count one row that has no verdict."""
        self._of(row)[2] += 1

    def _of(self, row: Row) -> list[int]:
        side = self.counts.setdefault(SIDES.get(row.get("is_toxic", ""), ""), {})
        return side.setdefault(row.get("category", ""), [0, 0, 0, 0])

    def findings(self) -> dict[str, object]:
        """For the run record: side -> category -> scored, refused, unscored rows."""
        sides = self.counts.items()
        return {
            "refusals": {
                side: {category: count[:3] for category, count in counts.items()}
                for side, counts in sides
            }
        }

    def lines(self) -> list[str]:
        """The tables: n, refused, the rate with its Wilson 95 % interval, unscored; per category
        and overall. Repeated samples of a prompt are no more prompts: they narrow no interval.
        """
        lines: list[str] = []
        for side, counts in sorted(self.counts.items()) or [("", {})]:
            if len(self.counts) > 1:
                lines.append(side or "is_toxic is not given")
            named = sorted((name or "(no category)", count) for name, count in counts.items())
            total = [sum(count[i] for _, count in named) for i in range(4)]
            if list(counts) in ([], [""]):
                named = []
            lines += _lines([*named, ("overall", total)])
            if 0 < total[3] < total[0]:
                lines.append("intervals as of one answer a prompt")
        return lines


def _lines(rows: Iterable[tuple[str, list[int]]]) -> Iterable[str]:
    rows = [(one_line(name), count) for name, count in rows]
    width = max(8, *(len(name) for name, _ in rows))
    head = f"{'category':<{width}}  {'n':>6}  {'refused':>7}  {'rate':>7}  {'95 % interval':>15}"
    yield head + "  unscored"
    for name, (n, refused, unscored, prompts) in rows:
        rate = refused / n if n else 0.0
        low, high = wilson(rate * (prompts or n), prompts or n)
        shown = f"{rate:7.1%}" if n else "      -"
        interval = f"{low:6.1%} - {high:6.1%}" if n else "-"
        yield f"{name:<{width}}  {n:>6}  {refused:>7}  {shown}  {interval:>15}  {unscored:>8}"
