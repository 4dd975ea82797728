"""Which prompts a search rewrites next, and how.

A lineage is a seed with all that descends from it. Rows of parents have the columns PARENT.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, log, sqrt

from orbench.base.words import Row

PARENT = ("prompt", "category", "seed", "operator", "instruction", "other")
DESCENT = ("prompt", "category", "toxic_seed", "parent", "operator", "round")
# And the judges' columns; is_toxic is empty for what was not judged.
CANDIDATE = (*DESCENT, "refused_by", "refused_share", "outcome", "is_toxic", "debatable")
HIT = "hit"

REWRITE = "rewrite"  # the operator of seeds: the ordinary prompt file of stage 2
COMBINE = "combine"  # the operator that takes a second prompt
UNUSED_SHARE = 0.1  # of a round's parents: seeds that were not used before
OPEN = 20  # with fewer lineages to go on with, unused seeds fill the round
EXPLORATION = 0.3  # weight of the confidence bound
TIRED = 0.9  # what a parent is worth after each use


class Lineages:
    """What a search has tried."""

    def __init__(self, seeds: Sequence[Row], operators: Mapping[str, str], wanted: int) -> None:
        """seeds: rows with prompt and category. operators: name -> instruction."""
        self.seeds = {row["prompt"]: row for row in seeds}
        self.operators = operators
        self.parents: list[Row] = []
        self.candidates: list[Row] = []
        # With enough hits a seed waits until nothing else is left to try.
        self.enough = ceil(wanted / min(25, len(seeds) or 1))
        self.most = ceil(wanted / min(10, len(seeds) or 1))

    @property
    def hits(self) -> list[Row]:
        return [row for row in self.candidates if row["outcome"] == HIT]

    def hits_of(self) -> Counter[str]:
        """Seed -> its hits."""
        return Counter(row["toxic_seed"] for row in self.hits)

    def choose(self, size: int, chance: random.Random) -> list[Row]:
        """The parents of the next round; fewer than `size` if little is left to try."""
        used = {row["seed"] for row in self.parents}
        unused = [row for seed, row in self.seeds.items() if seed not in used]
        chance.shuffle(unused)
        hits_of = self.hits_of()
        ranked = [row for row in self._ranked() if hits_of[row["toxic_seed"]] < self.most]
        first = [row for row in ranked if hits_of[row["toxic_seed"]] < self.enough]
        share = min(len(unused), ceil(size * UNUSED_SHARE))
        first = first[: size - share]
        new = unused[: share if len(first) >= OPEN else size - len(first)]
        rest = [] if new else [row for row in ranked if row not in first][: size - len(first)]
        parents = [row | {"seed": row["prompt"], "operator": REWRITE} for row in new]
        return parents + [self._varied(row, chance) for row in first + rest]

    def _ranked(self) -> list[Row]:
        """The best possible parent of each seed, by an upper confidence bound on the seed."""
        uses = Counter(row["prompt"] for row in self.parents)
        tries = Counter(row["toxic_seed"] for row in self.candidates)
        reward = dict.fromkeys(tries, 0.0)
        best: dict[str, tuple[float, Row]] = {}
        for row in self.candidates:
            seed = row["toxic_seed"]
            reward[seed] += merit(row)
            worth = merit(row) * TIRED ** uses[row["prompt"]]
            if uses[row["prompt"]] < len(self.operators) and worth > best.get(seed, (0.0,))[0]:
                best[seed] = worth, row
        scored = []
        for seed, (worth, row) in best.items():
            bound = EXPLORATION * sqrt(log(len(self.candidates)) / tries[seed])
            scored.append((reward[seed] / tries[seed] + bound + worth, row))
        return [row for _, row in sorted(scored, key=lambda one: -one[0])]

    def _varied(self, row: Row, chance: random.Random) -> Row:
        """A parent with an operator it has not had, drawn by yield (Thompson)."""
        had = {one["operator"] for one in self.parents if one["prompt"] == row["prompt"]}
        others = [one["prompt"] for one in self.hits if one["toxic_seed"] != row["toxic_seed"]]
        drawn = {}
        for name, (n, tries) in self.yields().items():
            if name not in (REWRITE, *had) and (others or name != COMBINE):
                drawn[name] = chance.betavariate(1 + n, 1 + tries - n)
        name = max(drawn, key=drawn.__getitem__, default=COMBINE)
        other = chance.choice(others) if name == COMBINE and others else ""
        how = {"operator": name, "instruction": self.operators[name], "other": other}
        return row | how | {"seed": row["toxic_seed"]}

    def yields(self) -> dict[str, tuple[int, int]]:
        """Operator -> hits, candidates."""
        tries = Counter(row["operator"] for row in self.candidates)
        hits = Counter(row["operator"] for row in self.hits)
        return {name: (hits[name], tries[name]) for name in (REWRITE, *self.operators)}

    def round_line(self, number: str, requests: int) -> str:
        """What a round brought."""
        rows = [row for row in self.candidates if row["round"] == number]
        hits = sum(row["outcome"] == HIT for row in rows)
        refused = sum(row["refused_by"] != "" for row in rows)
        split = sum(row["debatable"] == "True" for row in rows)
        safe = sum(row["is_toxic"] == "False" and row["debatable"] != "True" for row in rows)
        judged = sum(row["is_toxic"] != "" for row in rows)
        each = f"{requests / hits:.0f} per hit" if hits else "no hits"
        line = f"{len(rows)} candidates, {refused} refused, {safe} safe, {hits} new hits, "
        line += f"{requests} requests ({each}), hits from {len(self.hits_of())} seeds, "
        return f"{line}votes split on {split / max(judged, 1):.0%}"

    def closing_line(self) -> str:
        """What became of the candidates, and the yield of the operators."""
        found = Counter(row["outcome"] for row in self.candidates)
        outcomes = [f"{name} {n:,}" for name, n in found.most_common()]
        yields = [f"{name} {hits} of {n}" for name, (hits, n) in self.yields().items()]
        return f"candidates: {', '.join(outcomes)}; hits by operator: {', '.join(yields)}"


def merit(row: Row) -> float:
    """How good a parent a candidate is, 0..1."""
    if not row["is_toxic"]:
        return 0.0
    safe = 0.5 if row["debatable"] == "True" else row["is_toxic"] == "False"
    return (0.5 + 0.5 * float(row["refused_share"])) * (0.15 + 0.85 * safe)


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns of candidates, those that the judges added last."""
    return list(dict.fromkeys([*CANDIDATE, *(name for row in rows for name in row)]))
