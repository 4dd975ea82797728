"""Which prompts go into which dataset: near-duplicates out, an even sample of the toxic ones."""

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence

from orbench.base.words import Row, category_of
from orbench.datasets.moderated import SAFE_SET, TOXIC_SET, Prompt

TOXIC_SAMPLE = "or-bench-toxic"
DATASETS = (SAFE_SET, TOXIC_SET, TOXIC_SAMPLE)  # file names

Chosen = Mapping[str, Sequence[Row]]  # dataset -> its rows, in input order


def choose(prompts: Sequence[Prompt], public: Sequence[str], args: argparse.Namespace) -> Chosen:
    """Drop near-duplicates, which sets their reason and resembles, and draw the toxic sample.

    public: prompts that models may know. args: similarity, toxic_sample, seed.
    """
    from orbench.datasets.near_duplicates import near_duplicates

    # The toxic side goes first: a safe prompt that nearly equals a toxic one is dropped.
    judged = [one for side in (TOXIC_SET, SAFE_SET) for one in prompts if one.side == side]
    texts = [*public, *(one.row["prompt"] for one in judged)]
    sides = ["public sets"] * len(public) + [one.side for one in judged]
    for place, earlier in near_duplicates(texts, sides, args.similarity).items():
        if place >= len(public):
            prompt = judged[place - len(public)]
            prompt.reason = f"near-duplicate in {sides[earlier]}"
            prompt.resembles = texts[earlier]
    kept = [one for one in prompts if not one.reason]
    safe, toxic = ([one.row for one in kept if one.side == side] for side in (SAFE_SET, TOXIC_SET))
    drawn = sorted(even_sample(list(map(category_of, toxic)), args.toxic_sample, args.seed))
    return {SAFE_SET: safe, TOXIC_SET: toxic, TOXIC_SAMPLE: [toxic[place] for place in drawn]}


def even_sample(categories: Sequence[str], size: int, seed: int) -> Iterator[int]:
    """Draw places, as many of each category; what a small one lacks comes from the larger ones."""
    members: dict[str, list[int]] = {}
    for place, category in enumerate(categories):
        members.setdefault(category, []).append(place)
    smallest_first = sorted(members.items(), key=lambda item: (len(item[1]), item[0]))
    for done, (category, found) in enumerate(smallest_first):
        share = min(len(found), size // (len(members) - done))
        size -= share
        yield from random.Random(f"{seed} {category}").sample(found, share)
