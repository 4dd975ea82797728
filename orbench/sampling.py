"""`--limit N --shuffle SEED`: some rows of a table, spread over its categories.

Each category gets nearly its share of the N rows. Which of its rows are taken depends
on the seed and on each prompt alone, so the sample stays as it is when the file is sorted anew, and
a larger N adds rows to it without taking any away.
"""

import argparse
import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path

from orbench.columns import Row
from orbench.conversation import asked_in
from orbench.table import Table
from orbench.terminal import UserError


class Sample(Table):
    """A stratified sample of a CSV's rows, in the order of the file.

    Memory grows by thirteen bytes a row of the file.
    """

    def __init__(
        self,
        path: str | Path,
        needed: Sequence[str],
        limit: int,
        seed: int,
        check: Callable[[Row, str], object] | None = None,
    ) -> None:
        """limit: how many rows. Raises UserError as Table does; all rows are checked."""
        strata, keys, names = array("L"), array("Q"), dict[str, int]()

        def note(row: Row, where: str) -> None:
            if check:
                check(row, where)
            strata.append(names.setdefault(row.get("category", ""), len(names)))
            keys.append(_key(row, seed))

        super().__init__(path, needed, check=note)
        self._mask = _chosen(strata, keys, limit)
        self.limit, self.n = limit, sum(self._mask)

    def _taken(self, records: Iterator[list[str]]) -> Iterator[list[str]]:
        return compress(records, self._mask)


def table_of(
    path: str | Path,
    needed: Sequence[str],
    args: argparse.Namespace,
    check: Callable[[Row, str], object] | None = None,
) -> Table:
    """The rows that --limit and --shuffle leave of an input file. Raises UserError."""
    if args.shuffle is None:
        return Table(path, needed, limit=args.limit, check=check)
    if args.limit is None:
        raise UserError("--shuffle SEED chooses the rows of --limit N: give both")
    return Sample(path, needed, args.limit, args.shuffle, check)


def _key(row: Row, seed: int) -> int:
    """A number that orders the rows of a category, the same wherever in the file a prompt is."""
    text = asked_in(row) if "prompt" in row else "\0".join(row.values())
    digest = hashlib.sha256(f"{seed}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def _chosen(strata: "array[int]", keys: "array[int]", limit: int) -> bytearray:
    """Per row 1 where it is in the sample.

    The r-th of a category's m rows, by key, stands at (r + 1/2) / m: among the first N by place,
    each category has its share.
    """
    rows = range(len(keys))
    sizes, seen, places = Counter(strata), Counter[int](), array("d", bytes(8 * len(keys)))
    for row in sorted(rows, key=keys.__getitem__):
        places[row] = (seen[strata[row]] + 0.5) / sizes[strata[row]]
        seen[strata[row]] += 1
    mask = bytearray(len(keys))
    for row in sorted(rows, key=lambda row: (places[row], keys[row]))[:limit]:
        mask[row] = 1
    return mask
