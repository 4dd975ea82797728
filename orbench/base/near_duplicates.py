"""Prompts that say nearly the same, found among 100,000 without comparing each with each.

Similarity is the Jaccard index of the 4-character pieces of two prompts, ignoring case and spacing.
MinHash signatures (A. Broder, 1997) yield candidates, whose similarity is then computed: a pair at
the threshold is found with a probability of 99 %. 80,000 prompts take 40 s and 390 MB.
"""

import zlib
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import combinations
from typing import NamedTuple

from orbench.base.words import Words

PIECE = 4  # characters; of 3, 4 and 5 the one that separates best in OR-Bench-Hard-1K
HASHES = 60  # numbers in a signature
# The similarity of rewrites. Of 150 prompts of OR-Bench-Hard-1K, or of XSTest's safe ones, at most
# 2 % are that similar to an earlier one; of prompts made from templates (SpeechMap), a third.
REWRITTEN = 0.4
RECALL = 0.99  # of finding a pair that is exactly as similar as the threshold


class Sided(NamedTuple):
    """A text and its side."""

    side: str
    text: str


def near_duplicates(sides: Mapping[str, Words], similarity: float) -> dict[str, Sided]:
    """Return each text that nearly equals an earlier one, with the first such text.

    sides: the texts of each. On one side, texts that are dropped themselves do not count.
    """
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]  # loads slowly

    # Similarity s makes one of b bands of r numbers equal with a probability of 1 - (1 - s^r)^b.
    rows = 10
    while 1 - (1 - similarity**rows) ** (HASHES // rows) < RECALL:
        rows -= 1
    seen = MinHashLSH(num_perm=HASHES, params=(HASHES // rows, rows))
    # crc32 is the same on each machine.
    blank = MinHash(num_perm=HASHES, seed=1, hashfunc=zlib.crc32)
    before: list[Sided] = []
    resembled = {}
    for side, texts in sides.items():
        for text in texts:
            signature = blank.copy()
            signature.update_batch(piece.encode() for piece in pieces(text))
            for place in sorted(seen.query(signature)):
                earlier = before[place]
                counts = earlier.side != side or earlier.text not in resembled
                if counts and jaccard(earlier.text, text) >= similarity:
                    resembled[text] = earlier
                    break
            seen.insert(len(before), signature)
            before.append(Sided(side, text))
    return resembled


@cache  # models mostly answer the same prompts
def like_rewrites(texts: tuple[str, ...]) -> set[str]:
    """Return those of a few hundred texts that look like rewrites of an earlier one."""
    return {text for one, text in combinations(texts, 2) if jaccard(one, text) >= REWRITTEN}


@lru_cache(maxsize=512)  # a text is compared with many others
def pieces(text: str) -> set[str]:
    """Return the 4-character pieces of a text; a shorter text is one piece."""
    text = " ".join(text.casefold().split())
    return {text[i : i + PIECE] for i in range(max(1, len(text) - PIECE + 1))}


def jaccard(one: str, other: str) -> float:
    """Return the share of the pieces of two texts that are in both, 0..1."""
    here = pieces(one)
    there = pieces(other)
    return len(here & there) / len(here | there)
