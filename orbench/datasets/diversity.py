"""How varied the prompts of a dataset are: lengths and duplicates."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from orbench.base.words import category_of
from orbench.datasets.card import table_lines
from orbench.datasets.moderated import Prompt

QUALITY = ("dataset", "category", "n", "words", "duplicates")


def quality_lines(prompts: Sequence[Prompt]) -> Iterator[str]:
    """The quality of each category on each side."""
    parts: dict[tuple[str, str], list[Prompt]] = {}
    for one in prompts:
        if one.side:
            parts.setdefault((one.side, category_of(one.row)), []).append(one)
    lines = [QUALITY]
    for (side, category), part in sorted(parts.items()):
        kept = [one.row["prompt"] for one in part if not one.reason]
        words = f"{fmean(len(text.split()) for text in kept):.1f}" if kept else "-"
        cut = 1 - len(kept) / sum(max(one.copies, 1) for one in part)
        lines.append((side, category, f"{len(kept):,}", words, f"{cut:.1%}"))
    yield from table_lines(lines)
    yield "words: mean length; duplicates: share dropped"
