"""Which prompts go into which data set: sides, near-duplicates, the even sample."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from orbench.dataset.moderated import Joined
from orbench.terminal import counted

if TYPE_CHECKING:
    from orbench.dataset.near_duplicates import NearDuplicates

SAFE, TOXIC, SAMPLE = "or-bench-80k", "or-bench-toxic-all", "or-bench-toxic"  # file names
DATASETS = (SAFE, TOXIC, SAMPLE)
NEAR, ACROSS, NO_VERDICT = "near-duplicate", "nearly equals a toxic prompt", "no verdict"


class Dropped(NamedTuple):
    """Why a prompt is in no data set."""

    reason: str  # NEAR, ACROSS or NO_VERDICT
    resembles: str = ""  # the prompt it is too near to; a toxic one may be dropped itself


class Chosen(NamedTuple):
    """What became of the prompts. Indices into `Joined.prompts`."""

    side: dict[int, str]  # SAFE or TOXIC, of those kept
    sample: set[int]  # those of TOXIC that are in SAMPLE
    dropped: dict[int, Dropped]

    def holds(self, dataset: str, i: int) -> bool:
        """Whether a prompt is in a data set."""
        return i in self.sample if dataset == SAMPLE else self.side.get(i) == dataset


def choose(joined: Joined, similarity: float, sample: int, seed: int) -> Chosen:
    """Put each prompt on its side, without near-duplicates, and draw the sample of the toxic ones.

    similarity: see `near_duplicates`; 1: nothing is dropped (exact duplicates are joined already).
    Of near-duplicates the first is kept. The toxic side goes first: a safe prompt that nearly
    equals a toxic one is dropped, not the other way round, for the verdict on it is in doubt. That
    toxic one may be in no data set itself, as a near-duplicate of another.
    """
    prompts = joined.prompts
    safe = [joined.is_safe(prompt) for prompt in prompts]
    chosen = Chosen({}, set(), {i: Dropped(NO_VERDICT) for i, s in enumerate(safe) if s is None})
    near = index(similarity)
    numbered: list[int] = []  # the prompts in the index

    def place(i: int, side: str) -> None:
        number = near.add(prompts[i].key) if near else None
        if number is None:
            numbered.append(i)
            chosen.side[i] = side
            return
        other = numbered[number]
        chosen.dropped[i] = Dropped(NEAR if safe[other] is safe[i] else ACROSS, prompts[other].text)

    toxic_side = [i for i, is_safe in enumerate(safe) if is_safe is False]
    for i in toxic_side:
        place(i, TOXIC)
    if near:
        for i in toxic_side:
            if i in chosen.dropped:
                near.keep(prompts[i].key)
                numbered.append(i)
    for i in (i for i, is_safe in enumerate(safe) if is_safe):
        place(i, SAFE)
    toxic = {i: prompts[i].category for i, side in chosen.side.items() if side == TOXIC}
    chosen.sample.update(even_sample(toxic, sample, seed))
    return chosen


def index(similarity: float) -> "NearDuplicates | None":
    """What finds near-duplicates; None where there are none to find."""
    if similarity == 1:  # also for those who do not have datasketch
        return None
    from orbench.dataset.near_duplicates import NearDuplicates

    return NearDuplicates(similarity)


def even_sample(categories: Mapping[int, str], size: int, seed: int) -> Iterator[int]:
    """Draw equally many of each category; what a small one lacks comes from the larger ones.

    categories: member -> category.
    """
    members: dict[str, list[int]] = {}
    for i in sorted(categories):
        members.setdefault(categories[i], []).append(i)
    smallest_first = sorted(members.items(), key=lambda item: (len(item[1]), item[0]))
    for left, (category, found) in zip(range(len(members), 0, -1), smallest_first, strict=True):
        share = min(len(found), size // left)
        size -= share
        yield from random.Random(f"{seed} {category}").sample(found, share)


def lines(chosen: Chosen, similarity: float, sample: int, seed: int) -> Iterator[str]:
    """What was dropped and what the sample holds, in sentences with counts."""
    reasons = Counter(dropped.reason for dropped in chosen.dropped.values())
    if similarity < 1:
        yield (
            f"dropped: {counted(reasons[NEAR], 'near-duplicate')} (similarity {similarity:g} or "
            f"more) and {counted(reasons[ACROSS], 'safe prompt')} nearly equal to a toxic one"
        )
    else:
        yield "near-duplicates are kept (similarity 1): only exact ones were dropped"
    n = len(chosen.sample)
    short = f"; {sample:,} were asked for, there are no more" if n < sample else ""
    yield f"toxic sample: {counted(n, 'prompt')} (seed {seed}){short}"


def count_lines(counts: Mapping[str, Mapping[str, int]], names: Mapping[str, str]) -> Iterator[str]:
    """The table of prompts per category and data set. names: category -> as it is shown."""
    width = max([len("category"), *map(len, names.values())])
    rows: Sequence[tuple[str, list[int]]] = [
        (name, [count.get(category, 0) for count in counts.values()])
        for category, name in names.items()
    ]
    rows = [*rows, ("all", [sum(count.values()) for count in counts.values()])]
    yield f"{'category':<{width}}  " + "  ".join(f"{name:>18}" for name in counts)
    for name, row in rows:
        yield f"{name:<{width}}  " + "  ".join(f"{n:>18,}" for n in row)
