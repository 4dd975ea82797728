"""How far judges, or people, agree on yes/no questions: rates, Cohen's and Fleiss' kappa.

    votes = Agreement(["gpt4", "llama3"])
    votes.add({"gpt4": True, "llama3": None})  # True: toxic, False: not, None: no vote
    print("\\n".join(votes.lines()))

Kappa is (observed agreement - agreement by chance) / (1 - agreement by chance). Where all votes are
the same, so that chance agrees always, and where there is nothing to compare, it is undefined: None
here, printed as "undefined", never as 0 or 1.

Rows go by one at a time and only their patterns of votes are counted: memory does not grow with
the rows.
The formulas are checked against statsmodels in the tests; they stand here because
stage 3 prints them and runs without either.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

Vote = bool | None
ENOUGH_VOTES = 0.9  # of the rows: below it the closing text warns of a rater


class Pair(NamedTuple):
    """Two raters on the rows that both voted on."""

    first: str
    second: str
    n: int
    agree: int
    kappa: float | None  # Cohen's

    @property
    def rate(self) -> float | None:
        """The share of rows on which both say the same, 0..1; None without a row."""
        return self.agree / self.n if self.n else None


class Rater(NamedTuple):
    """What one rater did."""

    name: str
    votes: int
    toxic: int
    missing: int  # rows without a vote of this rater

    @property
    def rate(self) -> float | None:
        """The share of toxic votes, 0..1; None without a vote."""
        return self.toxic / self.votes if self.votes else None


def cohen_kappa(both: int, first: int, second: int, neither: int) -> float | None:
    """Cohen's kappa of two raters (J. Cohen, Educ. Psychol. Meas. 20, 1960); None if undefined.

    Rows counted by who said yes: both, the first alone, the second alone, neither.
    """
    n = both + first + second + neither
    if not n:
        return None
    # Whole numbers up to the one division: exact, whatever n.
    chance = (both + first) * (both + second) + (second + neither) * (first + neither)
    return None if chance == n * n else ((both + neither) * n - chance) / (n * n - chance)


def fleiss_kappa(rows: Mapping[tuple[int, int], int]) -> float | None:
    """Fleiss' kappa (J. L. Fleiss, Psychol. Bull. 76, 1971); None if undefined.

    rows: (yes votes, no votes) of a row -> how many such rows. Raises ValueError where rows differ
    in their number of votes, which Fleiss' kappa does not cover.
    """
    raters = {yes + no for (yes, no), times in rows.items() if times}
    if len(raters) > 1:
        raise ValueError(f"rows with {sorted(raters)} votes: Fleiss' kappa needs the same number")
    (votes,) = raters or {0}
    n = sum(rows.values())
    if votes < 2:
        return None
    yes_share = sum(yes * times for (yes, _), times in rows.items()) / (n * votes)
    chance = yes_share**2 + (1 - yes_share) ** 2
    same = sum((yes * (yes - 1) + no * (no - 1)) * times for (yes, no), times in rows.items())
    observed = same / (n * votes * (votes - 1))
    return None if yes_share in (0.0, 1.0) else (observed - chance) / (1 - chance)


def krippendorff_alpha(patterns: Mapping[tuple[Vote, ...], int]) -> tuple[float | None, int]:
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
        self.patterns: Counter[tuple[Vote, ...]] = Counter()  # votes in the raters' order -> rows

    def add(self, votes: Mapping[str, Vote]) -> None:
        """Count one row. A rater without an entry has no vote."""
        self.patterns[tuple(votes.get(rater) for rater in self.raters)] += 1

    @property
    def silent(self) -> list[str]:
        """Raters without a single vote."""
        return [rater.name for rater in self.each() if not rater.votes]

    def each(self) -> list[Rater]:
        """Each rater's votes."""
        return [self._rater(i) for i in range(len(self.raters))]

    def pairs(self) -> list[Pair]:
        """Each pair of raters, on the rows that both voted on."""
        return [self._pair(i, j) for i, j in combinations(range(len(self.raters)), 2)]

    def fleiss(self) -> tuple[float | None, int]:
        """Fleiss' kappa of all raters that voted at all, and the number of rows it rests on.

        Rows on which one of those has no vote are left out: the formula needs every vote.
        """
        silent = set(self.silent)
        rows: Counter[tuple[int, int]] = Counter()
        for votes, times in self.patterns.items():
            cast = [
                vote for name, vote in zip(self.raters, votes, strict=True) if name not in silent
            ]
            if None not in cast:
                rows[cast.count(True), cast.count(False)] += times
        return fleiss_kappa(rows), rows.total()

    def lines(self, rater: str = "judge") -> list[str]:
        """The closing text: pairs with n, agreement and kappa, Fleiss' kappa, each toxic rate.

        rater: what the raters are called.
        """
        return list(self._lines(rater))

    def _rater(self, i: int) -> Rater:
        counts: Counter[Vote] = Counter()
        for votes, times in self.patterns.items():
            counts[votes[i]] += times
        return Rater(self.raters[i], counts[True] + counts[False], counts[True], counts[None])

    def _pair(self, i: int, j: int) -> Pair:
        counts = [
            sum(t for votes, t in self.patterns.items() if (votes[i], votes[j]) == wanted)
            for wanted in ((True, True), (True, False), (False, True), (False, False))
        ]
        kappa = cohen_kappa(*counts)
        return Pair(self.raters[i], self.raters[j], sum(counts), counts[0] + counts[3], kappa)

    def _lines(self, word: str) -> Iterator[str]:
        pairs = self.pairs()
        if pairs:
            names = [f"{pair.first} - {pair.second}" for pair in pairs]
            width = max(len("agreement"), *map(len, names))
            yield f"{'agreement':<{width}}  {'n':>7}  {'agree':>7}  Cohen's kappa"
            for name, pair in zip(names, pairs, strict=True):
                kappa, rate = _kappa(pair.kappa), _percent(pair.rate)
                yield f"{name:<{width}}  {pair.n:>7,}  {rate}  {kappa:>13}"
            overall, n = self.fleiss()
            who = "all" if not self.silent else f"all but {', '.join(self.silent)}"
            yield f"Fleiss' kappa of {who}, {n:,} rows with every vote: {_kappa(overall)}"
            alpha, n = krippendorff_alpha(self.patterns)
            yield f"Krippendorff's alpha, {n:,} rows with two votes or more: {_kappa(alpha)}"
        width = max([len(word), *map(len, self.raters)])
        yield f"{word:<{width}}  {'votes':>7}  {'toxic':>7}  no vote"
        for rater in self.each():
            rate = _percent(rater.rate)
            yield f"{rater.name:<{width}}  {rater.votes:>7,}  {rate}  {rater.missing:>7,}"
        for rater in self.each():
            rows = rater.votes + rater.missing
            if rows and not rater.votes:
                yield f"{rater.name} has no vote at all"
            elif rater.votes < ENOUGH_VOTES * rows:
                share = rater.votes / rows
                yield f"warning: {rater.name} voted on only {share:.1%} of {rows:,} rows"


def _percent(share: float | None) -> str:
    return "      -" if share is None else f"{share:7.1%}"


def _kappa(kappa: float | None) -> str:
    return "undefined" if kappa is None else f"{kappa:.3f}"
