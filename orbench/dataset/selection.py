"""Which prompts go into which dataset: sides, near-duplicates, the even sample."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]

from orbench.dataset.moderated import SAFE, TOXIC
from orbench.terminal import counted

SAMPLE = "or-bench-toxic"
DATASETS = (SAFE, TOXIC, SAMPLE)  # file names
NEAR, ACROSS, NO_VERDICT = "near-duplicate", "nearly equals a toxic prompt", "no verdict"
PUBLIC = "nearly equals a public prompt"


def choose(
    prompts: pd.DataFrame, similarity: float, sample: int, seed: int, public: Sequence[str] = ()
) -> None:
    """Choose among the prompts of `moderated.joined`, and add columns that say how.

    similarity: see `near_duplicates`; 1: nothing is dropped (exact duplicates are joined already).
    sample: how many toxic prompts to draw. public: prompts that a model may have been trained on;
    what resembles one of them is dropped.
    Adds: resembles, the text of the prompt that a near-duplicate is too near to (a toxic one may be
    dropped itself); reason (PUBLIC, NEAR, ACROSS, NO_VERDICT), empty for a prompt that is kept; and
    for each of DATASETS whether the prompt is in it.
    """
    side, text = prompts["side"], prompts["text"]
    known = resembling_public(text[side != ""], public, similarity)
    like = {} if similarity == 1 else resembling(side.drop(list(known)), similarity)
    across = [key for key, other in like.items() if side[key] != side[other]]
    resembled = {key: text[other] for key, other in like.items()} | known
    prompts["resembles"] = [resembled.get(key, "") for key in prompts.index]
    prompts["reason"] = ""
    prompts.loc[side == "", "reason"] = NO_VERDICT
    prompts.loc[list(known), "reason"] = PUBLIC
    prompts.loc[list(like), "reason"] = NEAR
    prompts.loc[across, "reason"] = ACROSS
    for dataset in (SAFE, TOXIC):
        prompts[dataset] = (side == dataset) & (prompts["reason"] == "")
    drawn = set(even_sample(prompts.loc[prompts[TOXIC], "category"], sample, seed))
    prompts[SAMPLE] = prompts.index.isin(drawn)


def resembling_public(
    texts: Mapping[str, str], public: Sequence[str], similarity: float
) -> dict[str, str]:
    """The prompts that nearly equal a public one -> the public one. texts: key -> prompt."""
    if not public:
        return {}
    from orbench.dataset.near_duplicates import NearDuplicates

    near = NearDuplicates(similarity)
    for prompt in public:
        near.keep(prompt)
    found = ((key, near.find(text)) for key, text in texts.items())
    return {key: other for key, other in found if other is not None}


def resembling(side: pd.Series, similarity: float) -> dict[str, str]:
    """The near-duplicates among the prompts -> the prompt that each resembles.

    side: key of a prompt -> its side. Of near-duplicates the first is kept. The toxic side goes
    first: a safe prompt that nearly equals a toxic one is dropped, not the other way round, for the
    verdict on it is in doubt; that toxic one may be a near-duplicate of another itself.
    """
    from orbench.dataset.near_duplicates import NearDuplicates  # datasketch: not for similarity 1

    near, found = NearDuplicates(similarity), dict[str, str]()

    def place(key: str) -> None:
        if (other := near.add(key)) is not None:
            found[key] = other

    for key in side.index[side == TOXIC]:
        place(key)
    for key in list(found):
        near.keep(key)
    for key in side.index[side == SAFE]:
        place(key)
    return found


def even_sample(categories: Mapping[str, str], size: int, seed: int) -> Iterator[str]:
    """Draw equally many of each category; what a small one lacks comes from the larger ones.

    categories: member -> category.
    """
    members: dict[str, list[str]] = {}
    for member, category in categories.items():
        members.setdefault(category, []).append(member)
    smallest_first = sorted(members.items(), key=lambda item: (len(item[1]), item[0]))
    for left, (category, found) in zip(range(len(members), 0, -1), smallest_first, strict=True):
        share = min(len(found), size // left)
        size -= share
        yield from random.Random(f"{seed} {category}").sample(found, share)


def choice_lines(
    prompts: pd.DataFrame, similarity: float, sample: int, seed: int, exclude: Sequence[Path] = ()
) -> Iterator[str]:
    """What was dropped and what the sample holds, in sentences with counts."""
    if exclude:
        yield (
            f"dropped: {counted((prompts['reason'] == PUBLIC).sum(), 'prompt')} nearly equal "
            f"(similarity {similarity:g} or more) to one of {', '.join(p.name for p in exclude)}"
        )
    if similarity < 1:
        reasons = prompts["reason"].value_counts()
        yield (
            f"dropped: {counted(reasons.get(NEAR, 0), 'near-duplicate')} (similarity "
            f"{similarity:g} or more) and {counted(reasons.get(ACROSS, 0), 'safe prompt')} nearly "
            "equal to a toxic one"
        )
    else:
        yield "near-duplicates are kept (similarity 1): only exact ones were dropped"
    n = prompts[SAMPLE].sum()
    short = f"; {sample:,} were asked for, there are no more" if n < sample else ""
    yield f"toxic sample: {counted(n, 'prompt')} (seed {seed}){short}"


def category_counts(prompts: pd.DataFrame) -> pd.DataFrame:
    """How many prompts of each category are in each dataset; the last row counts all."""
    kept = prompts[prompts[SAFE] | prompts[TOXIC]]
    counts = kept.groupby("category")[list(DATASETS)].sum()
    counts.loc["all"] = counts.sum()
    return counts.astype(int)
