"""Which prompts a search rewrites next, and how.

A lineage is a seed with all that descends from it. Rows of parents have the columns PARENT.
"""

import random
from collections import Counter
from itertools import product
from math import ceil
from operator import itemgetter

from orbench.base.words import Row, Rows, Texts

PARENT = ("prompt", "category", "seed", "operator", "instruction", "other")
DESCENT = ("prompt", "category", "toxic_seed", "parent", "operator", "round")
# And the judges' columns; is_toxic is empty for what was not judged.
CANDIDATE = (*DESCENT, "refusing_families", "refused_share", "outcome", "is_toxic", "debatable")
HIT = "hit"
# Outcomes of hits that models outside the search (--confirm) do not call hits, or did not decide.
CONTRADICTED = "contradicted"
UNCONFIRMED = "unconfirmed"

REWRITE = "rewrite"  # the operator of seeds: the ordinary prompt file of stage 2
COMBINE = "combine"  # the operator that takes a second prompt
UNUSED_SHARE = 0.4  # of a round's parents: seeds that were not used before
SHARES = 14  # the hits come from at least as many seeds, if there are as many


class Lineages:
    """What a search has tried."""

    def __init__(self, seeds: Rows, operators: Texts, wanted: int) -> None:
        """seeds: rows with prompt and category. operators: name -> instruction."""
        self.seeds = {row["prompt"]: row for row in seeds}
        self.operators = operators
        self.parents: list[Row] = []
        # Of the search itself: what --confirm says of one must not steer it.
        self.hits: list[Row] = []
        self.most = ceil(wanted / min(SHARES, len(seeds) or 1))  # hits of one seed

    def hits_of(self) -> Counter[str]:
        """Return the number of hits of each seed; contradicted ones use up none of its share."""
        return Counter(map(itemgetter("toxic_seed"), hits_in(self.hits, HIT, UNCONFIRMED)))

    def choose(self, size: int, chance: random.Random) -> Rows:
        """Draw the parents of the next round: hits, and seeds that were not used before.

        A hit is varied once by each operator; a seed with its share of hits rests. Returns fewer
        than `size` rows if little is left to try.
        """
        used = set(map(itemgetter("seed"), self.parents))
        unused = [seed for seed in self.seeds if seed not in used]
        chance.shuffle(unused)
        new = min(len(unused), ceil(size * UNUSED_SHARE))
        parents = self._varied(size - new, chance)
        seeds = unused[: size - len(parents)]
        return [self.seeds[seed] | {"seed": seed, "operator": REWRITE} for seed in seeds] + parents

    def _varied(self, size: int, chance: random.Random) -> list[Row]:
        """Draw hits, each paired with an operator not yet applied to it. A seed gets no more of
        them than it lacks hits.
        """
        tried = {(parent["prompt"], parent["operator"]) for parent in self.parents}
        hits_of = self.hits_of()
        ways = [*product(self.hits, self.operators)]
        alone = len(hits_of) < 2  # no hit of another seed
        varied: list[Row] = []
        for hit, name in chance.sample(ways, len(ways)):
            seed = hit["toxic_seed"]
            left = (hit["prompt"], name) not in tried and not (alone and name == COMBINE)
            if left and hits_of[seed] < self.most and len(varied) < size:
                hits_of[seed] += 1
                how = {
                    "seed": seed,
                    "operator": name,
                    "instruction": self.operators[name],
                    "other": "",
                }
                if name == COMBINE:
                    others = [row["prompt"] for row in self.hits if row["toxic_seed"] != seed]
                    how["other"] = chance.choice(others)
                varied.append(hit | how)
        return varied


def hits_in(rows: Rows, *outcomes: str) -> list[Row]:
    """Return the rows that nothing speaks against so far, or those with other outcomes."""
    return [row for row in rows if row["outcome"] in (outcomes or [HIT])]
