"""Prompts that say nearly the same, found among 100,000 without comparing each with each.

Similarity is the share of 4-character pieces that two prompts have in common (Jaccard index), case
and spacing aside: 1 for the same prompt, about 0.8 where one word of eighteen differs. MinHash
signatures (datasketch; Broder 1997) name the earlier prompts worth a look, and their similarity is
then computed, so that nothing below the threshold is ever taken for a near-duplicate. A pair at the
threshold is found with a chance of about 99 %, a closer one almost surely; only among thousands of
prompts made from one template can more slip through.
"""

import zlib

import numpy as np
from datasketch import MinHash  # type: ignore[import-untyped]
from numpy.typing import NDArray

PIECE = 4  # characters; of 3, 4 and 5 the one that sets apart best in OR-Bench-Hard-1K
HASHES = 60  # numbers in a signature
CHANCE = 0.99  # of finding a pair that is exactly as similar as the threshold
# Prompts made from one template fill a few buckets by the thousand. So that they take no longer
# than others, only the first in a bucket and the likeliest of all candidates are looked at.
PER_BUCKET = 20
LOOKED_AT = 10


class NearDuplicates:
    """Keeps texts one by one, and says of each which of those kept before it resembles."""

    def __init__(self, similarity: float) -> None:
        """similarity: from which on a text resembles another, above 0 and up to 1."""
        self.similarity = similarity
        self._rows = rows_of_band(similarity)
        # crc32: the same on each machine, and in C; datasketch mixes its bits further.
        self._blank = MinHash(num_perm=HASHES, seed=1, hashfunc=zlib.crc32)
        self._texts: list[str] = []
        self._signatures: list[NDArray[np.generic]] = []
        self._buckets: dict[int, tuple[int, ...]] = {}  # a million of them: small keys and values

    def add(self, text: str) -> str | None:
        """Keep a text, or give the one kept before that it resembles."""
        here = pieces(text)
        signed = self._sign(here)
        if (found := self._find(here, *signed)) is None:
            self._keep(text, *signed)
        return found

    def find(self, text: str) -> str | None:
        """The text kept before that a text resembles."""
        here = pieces(text)
        return self._find(here, *self._sign(here))

    def keep(self, text: str) -> None:
        """Keep a text whatever it resembles."""
        self._keep(text, *self._sign(pieces(text)))

    def _sign(self, here: set[str]) -> tuple[NDArray[np.generic], list[int]]:
        """The signature of a text's pieces and the buckets that it falls into."""
        minhash = self._blank.copy()
        minhash.update_batch(piece.encode("utf-8", "surrogatepass") for piece in here)
        signature = minhash.hashvalues.astype(np.uint32)  # they have 32 bits
        buckets = [
            hash((band, signature[band : band + self._rows].tobytes()))
            for band in range(0, HASHES - self._rows + 1, self._rows)
        ]
        return signature, buckets

    def _find(
        self, here: set[str], signature: NDArray[np.generic], buckets: list[int]
    ) -> str | None:
        for number in self._likeliest(signature, buckets):
            if jaccard(here, pieces(self._texts[number])) >= self.similarity:
                return self._texts[number]
        return None

    def _keep(self, text: str, signature: NDArray[np.generic], buckets: list[int]) -> None:
        for bucket in buckets:
            numbers = self._buckets.get(bucket, ())
            if len(numbers) < PER_BUCKET:
                self._buckets[bucket] = (*numbers, len(self._texts))
        self._texts.append(text)
        self._signatures.append(signature)

    def _likeliest(self, signature: NDArray[np.generic], buckets: list[int]) -> list[int]:
        """The texts of some buckets that are worth a look, earliest first."""
        ordered = sorted({n for bucket in buckets for n in self._buckets.get(bucket, ())})
        if len(ordered) <= LOOKED_AT:
            return ordered
        equal = (np.stack([self._signatures[n] for n in ordered]) == signature).sum(axis=1)
        best = np.argsort(-equal, kind="stable")[:LOOKED_AT]
        return sorted(ordered[i] for i in best)


def pieces(text: str) -> set[str]:
    """The 4-character pieces of a text; a shorter text is one piece."""
    text = " ".join(text.casefold().split())
    return {text[i : i + PIECE] for i in range(max(1, len(text) - PIECE + 1))}


def jaccard(one: set[str], other: set[str]) -> float:
    """The share of the elements of either set that are in both, 0..1; 1 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 1.0


def rows_of_band(similarity: float) -> int:
    """How many numbers of a signature make a bucket: as many as `CHANCE` at the threshold allows.

    More of them mean fewer candidates to look at. Two signatures agree in a number with the chance
    of their similarity s, so in one of b bands of r numbers with 1 - (1 - s^r)^b.
    """
    for rows in range(10, 1, -1):
        if 1 - (1 - similarity**rows) ** (HASHES // rows) >= CHANCE:
            return rows
    return 1
