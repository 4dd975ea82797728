"""How varied the prompts of a data set are, and how far rewrites keep the rules on words."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

SAMPLE = 100  # prompts a category for Self-BLEU: it grows with their number, so it is one for all

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


class Quality(NamedTuple):
    """The prompts of one category of a data set."""

    category: str
    prompts: Sequence[str]  # those in the data set
    exact: int  # dropped from it as exact duplicates
    near: int  # dropped from it as near-duplicates
    rewrites: bool  # whether they were rewritten from seeds: only then do the rules on words apply


def broken_rules(prompt: str) -> list[str]:
    """The paper's rules on words that a rewrite breaks: names of `WORD_RULES`."""
    return [name for name, pattern in WORD_RULES.items() if pattern.search(prompt)]


def self_bleu(prompts: Sequence[str], seed: int) -> tuple[float | None, int]:
    """Self-BLEU (0..100, high: monotonous) and the number of prompts it rests on.

    Each prompt of a seeded sample of at most `SAMPLE` is scored against all others of it as
    references (Zhu et al., Texygen, SIGIR 2018; BLEU-4 of sacrebleu, with effective order for the
    sake of prompts shorter than four words), and the mean is given; None for fewer than two.
    """
    from sacrebleu.metrics.bleu import BLEU

    sample = random.Random(seed).sample(prompts, min(SAMPLE, len(prompts)))
    if len(sample) < 2:
        return None, len(sample)
    bleu = BLEU(effective_order=True)
    scores = [
        bleu.sentence_score(prompt, sample[:i] + sample[i + 1 :]).score
        for i, prompt in enumerate(sample)
    ]
    return sum(scores) / len(scores), len(sample)


def lines(title: str, categories: Iterable[Quality], seed: int) -> Iterator[str]:
    """The table of a data set; what was cut is a share of what was there before."""
    rows = list(categories)
    whole = Quality(
        "overall",
        [prompt for row in rows for prompt in row.prompts],
        sum(row.exact for row in rows),
        sum(row.near for row in rows),
        any(row.rewrites for row in rows),
    )
    shown = [*rows, whole] if len(rows) != 1 else rows
    width = max(len("category"), *(len(row.category) for row in shown))
    rules = list(WORD_RULES) if whole.rewrites else []
    yield title
    heads = "".join(f"  {rule:>13}" for rule in rules)
    yield (
        f"{'category':<{width}}  {'n':>7}  {'words':>6}  {'characters':>10}  {'exact cut':>9}  "
        f"{'near cut':>9}  Self-BLEU (of n){heads}"
    )
    for row in shown:
        yield _line(row, width, rules, seed)
    yield "exact cut, near cut: share of the prompts dropped before as duplicates, near-duplicates"
    if rules:
        yield "safe words, harmful words, reversals: share of prompts that break the paper's rule"


def _line(row: Quality, width: int, rules: Sequence[str], seed: int) -> str:
    n = len(row.prompts)
    before = n + row.near + row.exact
    words = sum(len(prompt.split()) for prompt in row.prompts)
    characters = sum(map(len, row.prompts))
    bleu, used = self_bleu(row.prompts, seed)
    score = "-" if bleu is None else f"{bleu:.1f} ({used})"
    broken = [broken_rules(prompt) for prompt in row.prompts] if row.rewrites else []
    shares = (_share(sum(rule in found for found in broken), len(broken)) for rule in rules)
    return (
        f"{row.category:<{width}}  {n:>7,}  {_mean(words, n):>6}  {_mean(characters, n):>10}  "
        f"{_share(row.exact, before):>9}  {_share(row.near, before):>9}  {score:>16}"
        + "".join(f"  {share:>13}" for share in shares)
    )


def _mean(total: int, n: int) -> str:
    return f"{total / n:.1f}" if n else "-"


def _share(hits: int, n: int) -> str:
    return f"{hits / n:.1%}" if n else "-"
