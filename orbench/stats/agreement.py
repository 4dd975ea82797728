"""How far judges, or people, agree on yes/no questions. Pure Python.

A vote is True, False or None (no vote). Where all votes are the same, kappa and alpha are
undefined: None.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from orbench.stats.intervals import wilson

Votes = Sequence[bool | None]


class TwoRaters(NamedTuple):
    """The rows that two raters both voted on, by who said yes."""

    both: int
    first: int  # only the first
    second: int
    neither: int

    def kappa(self, effective: float) -> tuple[float, float, float] | None:
        """Return Cohen's kappa (Educ. Psychol. Meas. 20 (1960) 37-46) and its 95 % interval.

        The interval is Wilson's of the agreement, at the agreement by chance found: it covers .94
        to .98, percentiles of a bootstrap .57 to .96 (simulated: 50 to 300 rows, kappa .5 to .95).
        effective: the number of independent rows.
        """
        n = sum(self)
        yes = self.both + self.first
        other = self.both + self.second
        chance = yes * other + (n - yes) * (n - other)
        best = n * n - chance
        if not best:
            return None
        agreed = (self.both + self.neither) / n
        ends = wilson(agreed * effective, effective)
        kappa, low, high = [(share * n * n - chance) / best for share in (agreed, *ends)]
        return kappa, low, high


def two_raters(first: Votes, second: Votes) -> TwoRaters:
    """Count the rows by the votes of two raters, who both voted in the same order."""
    cells = Counter[object](zip(first, second, strict=True))
    return TwoRaters(*[cells[votes] for votes in product((True, False), repeat=2)])


def krippendorffs_alpha(votes_of_rows: Iterable[Votes]) -> tuple[float | None, int]:
    """Return alpha of a panel, and the number of rows with two votes or more, on which it rests.

    1 - observed / expected disagreement, for two values (K. Krippendorff, Content Analysis, 4th
    ed., 2019, chapter 12).
    """
    rows = yes = no = 0
    apart = 0.0  # pairs of votes that differ, each row's over its votes less one
    for votes in votes_of_rows:
        for_yes = votes.count(True)
        for_no = votes.count(False)
        others = for_yes + for_no - 1
        if others > 0:
            rows += 1
            yes += for_yes
            no += for_no
            apart += 2 * for_yes * for_no / others
    if not yes or not no:
        return None, rows
    return 1 - (yes + no - 1) * apart / (2 * yes * no), rows
