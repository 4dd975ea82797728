"""How far judges, or people, agree on yes/no questions: rates, Cohen's and Fleiss' kappa.

    votes = Agreement(["gpt4", "llama3"])
    votes.add({"gpt4": True, "llama3": None})  # True: toxic, False: not, None: no vote
    print("\\n".join(votes.lines()))

Kappa is (observed agreement - agreement by chance) / (1 - agreement by chance). Where all votes are
the same, so that chance agrees always, and where there is nothing to compare, it is undefined: None
here, printed as "undefined", never as 0 or 1.

Only patterns of votes are counted: memory does not grow with the rows. Both kappas are checked
against statsmodels in the tests; they are computed here because stage 3 prints them and runs
without it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from orbench.terminal import counted, shortened

ENOUGH_VOTES = 0.9  # of the rows: below it the closing text warns of a rater


class Pair(NamedTuple):
    """Two raters on the rows that both voted on."""

    first: str
    second: str
    n: int
    agree: int
    kappa: float | None  # Cohen's


def cohen_kappa(both: int, first: int, second: int, neither: int) -> float | None:
    """Cohen's kappa of two raters (J. Cohen, Educ. Psychol. Meas. 20, 1960); None if undefined.

    Rows counted by who said yes: both, the first alone, the second alone, neither.
    """
    n = both + first + second + neither
    # Whole numbers up to the one division: exact, whatever n.
    chance = (both + first) * (both + second) + (second + neither) * (first + neither)
    return None if chance == n * n else ((both + neither) * n - chance) / (n * n - chance)


def fleiss_kappa(raters: int, rows: Mapping[int, int]) -> float | None:
    """Fleiss' kappa (J. L. Fleiss, Psychol. Bull. 76, 1971); None if undefined.

    rows: yes votes -> how many rows have that many; each row has a vote of every rater.
    """
    n = sum(rows.values())
    if raters < 2 or not n:
        return None
    yes = sum(votes * times for votes, times in rows.items()) / (n * raters)
    chance = yes**2 + (1 - yes) ** 2
    same = sum(
        (votes * (votes - 1) + (raters - votes) * (raters - votes - 1)) * times
        for votes, times in rows.items()
    )
    observed = same / (n * raters * (raters - 1))
    return None if yes in (0.0, 1.0) else (observed - chance) / (1 - chance)


def krippendorff_alpha(patterns: Mapping[tuple[bool | None, ...], int]) -> tuple[float | None, int]:
    """Krippendorff's alpha of yes/no votes, some of which may be missing, and the number of rows
    that it rests on: those with two votes or more. None where it is undefined.

    K. Krippendorff, Content Analysis, 4th ed. (2019), chapter 12: 1 - observed / expected
    disagreement, for two values. patterns: votes -> rows.
    """
    rows = yes = no = 0
    apart = 0.0  # pairs of votes that differ, each row's over its votes less one
    for votes, times in patterns.items():
        a, b = votes.count(True), votes.count(False)
        if a + b > 1:
            rows, yes, no = rows + times, yes + a * times, no + b * times
            apart += 2 * a * b / (a + b - 1) * times
    if not (yes and no):
        return None, rows  # nothing to compare, or all say the same, which chance does too
    return 1 - (yes + no - 1) * apart / (2 * yes * no), rows


class Agreement:
    """Counts the votes of some raters while rows go by."""

    def __init__(self, raters: Sequence[str]) -> None:
        self.raters = tuple(raters)
        # The votes in the raters' order -> rows.
        self.patterns: Counter[tuple[bool | None, ...]] = Counter()

    def add(self, votes: Mapping[str, bool | None]) -> None:
        """Count one row. A rater without an entry has no vote."""
        self.patterns[tuple(votes.get(rater) for rater in self.raters)] += 1

    def votes_of(self, rater: str) -> Counter[bool | None]:
        """A rater's votes, True, False and None -> rows."""
        place, counts = self.raters.index(rater), Counter[bool | None]()
        for votes, times in self.patterns.items():
            counts[votes[place]] += times
        return counts

    @property
    def silent(self) -> list[str]:
        """Raters without a single vote."""
        return [rater for rater in self.raters if not self.votes_of(rater).keys() - {None}]

    def pairs(self) -> list[Pair]:
        """Each pair of raters, on the rows that both voted on."""
        return [self._pair(one, other) for one, other in combinations(range(len(self.raters)), 2)]

    def fleiss(self) -> tuple[float | None, int]:
        """Fleiss' kappa of all raters that voted at all, and the number of rows it rests on.

        Rows on which one of those has no vote are left out: the formula needs every vote.
        """
        at_work = [i for i, rater in enumerate(self.raters) if rater not in self.silent]
        rows = Counter[int]()
        for votes, times in self.patterns.items():
            cast = [votes[i] for i in at_work]
            if None not in cast:
                rows[cast.count(True)] += times
        return fleiss_kappa(len(at_work), rows), rows.total()

    def lines(self, word: str = "judge") -> list[str]:
        """The closing text: pairs with n, agreement and kappa, Fleiss' kappa, each toxic rate.

        word: what a rater is called.
        """
        return [*(self._pair_lines() if self.raters[1:] else ()), *self._rater_lines(word)]

    def _pair(self, one: int, other: int) -> Pair:
        counts = Counter[tuple[bool | None, bool | None]]()
        for votes, times in self.patterns.items():
            counts[votes[one], votes[other]] += times
        both, neither = counts[True, True], counts[False, False]
        first, second = counts[True, False], counts[False, True]
        kappa = cohen_kappa(both, first, second, neither)
        n = both + first + second + neither
        return Pair(self.raters[one], self.raters[other], n, both + neither, kappa)

    def _pair_lines(self) -> Iterator[str]:
        pairs = [
            (" - ".join(shortened(one, 22) for one in pair[:2]), pair) for pair in self.pairs()
        ]
        width = max(len("agreement"), *(len(name) for name, _ in pairs))
        yield f"{'agreement':<{width}}  {'n':>7}  {'agree':>7}  Cohen's kappa"
        for name, pair in pairs:
            rate = _percent(pair.agree, pair.n)
            yield f"{name:<{width}}  {pair.n:>7,}  {rate}  {_kappa(pair.kappa):>13}"
        kappa, n = self.fleiss()
        who = f"all but {', '.join(self.silent)}" if self.silent else "all"
        yield f"Fleiss' kappa of {who}, {counted(n, 'row')} with every vote: {_kappa(kappa)}"
        alpha, n = krippendorff_alpha(self.patterns)
        yield f"Krippendorff's alpha, {counted(n, 'row')} with two votes or more: {_kappa(alpha)}"

    def _rater_lines(self, word: str) -> Iterator[str]:
        width = min(max([len(word), *map(len, self.raters)]), 53)
        yield f"{word:<{width}}  {'votes':>7}  {'toxic':>7}  no vote"
        warnings = []
        for rater in self.raters:
            votes = self.votes_of(rater)
            cast, rows = votes[True] + votes[False], votes.total()
            rate = _percent(votes[True], cast)
            yield f"{shortened(rater, width):<{width}}  {cast:>7,}  {rate}  {votes[None]:>7,}"
            if rows and not cast:
                warnings.append(f"{rater} has no vote at all")
            elif cast < ENOUGH_VOTES * rows:
                warnings.append(
                    f"warning: {rater} voted on only {cast / rows:.1%} of {counted(rows, 'row')}"
                )
        yield from warnings


def _percent(hits: int, n: int) -> str:
    return f"{hits / n:7.1%}" if n else "      -"


def _kappa(kappa: float | None) -> str:
    return "undefined" if kappa is None else f"{kappa:.3f}"
