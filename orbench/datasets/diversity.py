"""How varied the prompts of a dataset are: lengths, duplicates, Self-BLEU."""

import random
from collections.abc import Iterator, Sequence
from statistics import fmean

from orbench.base.words import category_of
from orbench.datasets.card import table_lines
from orbench.datasets.moderated import Prompt

BLEU_SAMPLE = 100  # prompts of a category: Self-BLEU grows with their number
QUALITY = ("dataset", "category", "n", "words", "duplicates", "Self-BLEU")


def self_bleu(prompts: Sequence[str], seed: int) -> float | None:
    """Self-BLEU (Zhu et al., Texygen, SIGIR 2018), 0..100; high: monotonous.

    The mean BLEU-4 of each prompt of a sample against the others. None for fewer than two.
    """
    from sacrebleu.metrics.bleu import BLEU

    sample = random.Random(seed).sample(prompts, min(BLEU_SAMPLE, len(prompts)))
    score = BLEU(effective_order=True).sentence_score  # for prompts of fewer than four words
    others = (sample[:i] + sample[i + 1 :] for i in range(len(sample)))
    found = [score(one, rest).score for one, rest in zip(sample, others, strict=True) if rest]
    return fmean(found) if found else None


def quality_lines(prompts: Sequence[Prompt], seed: int) -> Iterator[str]:
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
        bleu = self_bleu(kept, seed)
        shown = "-" if bleu is None else f"{bleu:.1f}"
        lines.append((side, category, f"{len(kept):,}", words, f"{cut:.1%}", shown))
    yield from table_lines(lines)
    yield f"duplicates: share dropped; Self-BLEU: of at most {BLEU_SAMPLE} prompts"
