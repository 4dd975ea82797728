"""Prompts that say nearly the same, found among 100,000 without comparing each with each.

Similarity is the Jaccard index of the 4-character pieces of two prompts, ignoring case and spacing:
about 0.8 if one word of eighteen differs. MinHash signatures (A. Broder, 1997) yield candidates,
whose similarity is then computed. So no pair below the threshold is reported. A pair at the
threshold is found with a probability of 99 %, a closer one almost surely; among thousands of
prompts from one template more are missed.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from datasketch import MinHash  # type: ignore[import-untyped]
from numpy.typing import NDArray

PIECE = 4  # characters; of 3, 4 and 5 the one that separates best in OR-Bench-Hard-1K
HASHES = 60  # numbers in a signature
RECALL = 0.99  # of finding a pair that is exactly as similar as the threshold
MARGIN = 0.15  # three standard errors of a similarity estimated from 60 hashes
NEIGHBORS = 20  # compared in a band: prompts from one template share bands by the thousand


def similar_pairs(texts: Sequence[str], similarity: float) -> list[tuple[int, int]]:
    """The pairs of texts that are at least so similar: (place of the earlier, of the later one).

    similarity: above 0 and up to 1.
    """
    signatures = _signatures(texts)
    earlier, later = _candidates(signatures, _band(similarity))
    equal = sum((hashes[earlier] == hashes[later]).astype(int) for hashes in signatures.T)
    close = equal >= (similarity - MARGIN) * HASHES
    pairs = zip(earlier[close].tolist(), later[close].tolist(), strict=True)
    return [(a, b) for a, b in pairs if jaccard(texts[a], texts[b]) >= similarity]


def pieces(text: str) -> set[str]:
    """The 4-character pieces of a text; a shorter text is one piece."""
    text = " ".join(text.casefold().split())
    return {text[i : i + PIECE] for i in range(max(1, len(text) - PIECE + 1))}


def jaccard(one: str, other: str) -> float:
    """The share of the pieces of two texts that are in both, 0..1."""
    here, there = pieces(one), pieces(other)
    return len(here & there) / len(here | there)


def _band(similarity: float) -> int:
    """How many numbers of a signature make a band: as many as RECALL allows."""
    # Similarity s makes one of b bands of r numbers equal with a probability of 1 - (1 - s^r)^b.
    for rows in range(10, 1, -1):
        if 1 - (1 - similarity**rows) ** (HASHES // rows) >= RECALL:
            return rows
    return 1


def _signatures(texts: Sequence[str]) -> NDArray[np.uint32]:
    """A row of HASHES numbers for each text."""
    found = np.empty((len(texts), HASHES), np.uint32)  # datasketch's have 32 bits
    # crc32 is the same on each machine; datasketch mixes its bits further.
    blank = MinHash(num_perm=HASHES, seed=1, hashfunc=zlib.crc32)
    for place, text in enumerate(texts):
        minhash = blank.copy()
        minhash.update_batch(piece.encode("utf-8", "surrogatepass") for piece in pieces(text))
        found[place] = minhash.hashvalues
    return found


def _candidates(signatures: NDArray[np.uint32], rows: int) -> list[NDArray[Any]]:
    """The pairs of texts that agree in a band: places of the earlier and of the later ones.

    Sorting takes 1.5 s and 40 MB for 100,000 texts; MinHashLSH takes 23 s and 310 MB.
    """
    n, codes = len(signatures), [np.zeros(0, np.int64)]
    for start in range(0, HASHES - rows + 1, rows):
        band = np.ascontiguousarray(signatures[:, start : start + rows])
        number = np.unique(band, axis=0, return_inverse=True)[1].ravel()
        order = np.argsort(number, kind="stable")
        for shift in range(1, min(NEIGHBORS, n - 1) + 1):
            equal = number[order[shift:]] == number[order[:-shift]]
            codes.append(order[:-shift][equal] * n + order[shift:][equal])
    return list(np.divmod(np.unique(np.concatenate(codes)), n))
