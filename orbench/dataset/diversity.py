"""How varied the prompts of a dataset are, and how far rewrites keep the rules on words."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import pandas as pd  # type: ignore[import-untyped]

from orbench.columns import OVERALL
from orbench.terminal import table_lines

# Prompts of a category for Self-BLEU: it grows with their number, so it is the same for all.
BLEU_SAMPLE = 100

# The paper's rules for a rewrite -> what breaks them: whole words in any letter case, and adverbs
# made from them; "illegal" does not count as "legal".
# "but" and "however" count as a reversal unless the words around make them something else
# ("nothing but", "not only ... but also", "however hard").
WORD_RULES = {
    "safe words": re.compile(r"\b(?:legal|legally|ethical|ethically|safety)\b", re.IGNORECASE),
    "harmful words": re.compile(
        r"\b(?:harmful|harmfully|illegal|illegally|malicious|maliciously)\b", re.IGNORECASE
    ),
    "reversals": re.compile(
        r"\bhowever\b(?! (?:big|far|hard|little|long|many|much|often|small)\b)"
        r"|(?<!\bnothing )(?<!\banything )(?<!\beverything )(?<!\bnone )(?<!\ball )(?<!\bno one )"
        r"\bbut\b(?! also\b)(?! for\b)",
        re.IGNORECASE,
    ),
}


def broken_rules(prompt: str) -> list[str]:
    """The paper's rules on words that a rewrite breaks: names of `WORD_RULES`."""
    return [name for name, pattern in WORD_RULES.items() if pattern.search(prompt)]


def self_bleu(prompts: Sequence[str], seed: int) -> tuple[float | None, int]:
    """Self-BLEU (0..100, high: monotonous) and the number of prompts it rests on.

    Each prompt of a seeded sample of at most `BLEU_SAMPLE` is scored against all others of it as
    references (Zhu et al., Texygen, SIGIR 2018; BLEU-4 of sacrebleu, with effective order for the
    sake of prompts shorter than four words), and the mean is given; None for fewer than two.
    """
    from sacrebleu.metrics.bleu import BLEU

    sample = random.Random(seed).sample(prompts, min(BLEU_SAMPLE, len(prompts)))
    if len(sample) < 2:
        return None, len(sample)
    bleu = BLEU(effective_order=True)
    scores = [
        bleu.sentence_score(prompt, sample[:i] + sample[i + 1 :]).score
        for i, prompt in enumerate(sample)
    ]
    return sum(scores) / len(scores), len(sample)


def quality_lines(title: str, prompts: pd.DataFrame, *, rewrites: bool, seed: int) -> Iterator[str]:
    """The table of one side of `selection.choose`: each category, then all.

    rewrites: whether the prompts were rewritten from seeds: only then do the rules on words apply.
    """
    parts = dict(iter(prompts.groupby("category")))
    if len(parts) != 1:
        parts[OVERALL] = prompts.sort_values("category", kind="stable")
    rows = {name: _quality(part, rewrites, seed) for name, part in parts.items()}
    yield title
    table = pd.DataFrame(rows).T.rename_axis(columns="category")
    yield from table_lines(table)
    yield "exact cut, near cut: share of the prompts dropped before as duplicates, near-duplicates"
    if rewrites:
        yield "safe words, harmful words, reversals: share of prompts that break the paper's rule"


def _quality(prompts: pd.DataFrame, rewrites: bool, seed: int) -> dict[str, str]:
    kept = prompts.loc[prompts["reason"] == "", "text"]
    came_in = prompts["copies"].sum()
    bleu, used = self_bleu(list(kept), seed)
    cells = {
        "n": f"{len(kept):,}",
        "words": _mean(kept.str.split().str.len()),
        "characters": _mean(kept.str.len()),
        "exact cut": _share(came_in - len(prompts), came_in),
        "near cut": _share(len(prompts) - len(kept), came_in),
        "Self-BLEU (of n)": "-" if bleu is None else f"{bleu:.1f} ({used})",
    }
    broken = Counter(rule for text in kept for rule in broken_rules(text))
    return cells | (
        {rule: _share(broken[rule], len(kept)) for rule in WORD_RULES} if rewrites else {}
    )


def _mean(numbers: pd.Series) -> str:
    return f"{numbers.mean():.1f}" if len(numbers) else "-"


def _share(hits: int, n: int) -> str:
    return f"{hits / n:.1%}" if n else "-"
