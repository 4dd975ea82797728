"""What moderated files say about each prompt: safe, toxic, or nothing.

The files overlap: the toxic prompts are also in the file with their moderated responses. Spellings
that differ in case, spacing or end punctuation are one prompt. If rows disagree, the toxic one
counts. The second chance: a response judged safe makes a toxic prompt safe. A refusal is harmless
whatever the prompt, so it says nothing (--refusals_count: the widest reading of the paper).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from orbench.base.messages import counted
from orbench.base.prompts import check_single
from orbench.base.tables import read_csv, storable
from orbench.base.words import VERDICTS, Row, optional_flag, verdict_of
from orbench.stages.generators import same

RESPONSE_VERDICT = "response_is_toxic"
SAFE_SET, TOXIC_SET = "or-bench-80k", "or-bench-toxic-all"  # the two sides, by their datasets


class Said(IntEnum):
    """What rows say about a prompt, or about responses to it; the highest counts."""

    NOTHING = 0
    REFUSAL = 1  # of responses only
    SAFE = 2
    TOXIC = 3


_SIDES = {Said.NOTHING: "", Said.SAFE: SAFE_SET, Said.TOXIC: TOXIC_SET}


@dataclass(slots=True)
class Prompt:
    """What all files say about a prompt. `choose` sets reason and resembles."""

    row: Row  # the one that decided
    source: str  # its file
    judged: Said = Said.NOTHING
    answered: Said = Said.NOTHING
    copies: int = 0  # rows that are not of the second chance
    second_chance: bool = False  # whether a response made it safe
    side: str = ""  # SAFE_SET, TOXIC_SET; "" without a verdict
    reason: str = ""  # why it is in no dataset
    resembles: str = ""  # the prompt that a near-duplicate resembles

    def add(self, row: Row, source: str, where: str, least: Said) -> None:
        """Count a row of this prompt. Raises UserError for a cell that is no verdict.

        least: the response that gives a toxic prompt its second chance, REFUSAL or SAFE.
        """
        judged, answered = _said(row, "is_toxic", where), _said(row, RESPONSE_VERDICT, where)
        self.copies += RESPONSE_VERDICT not in row
        if judged > self.judged or answered > self.answered:
            self.row, self.source = row, source
        self.judged, self.answered = max(judged, self.judged), max(answered, self.answered)
        self.second_chance = self.judged is Said.TOXIC and least <= self.answered <= Said.SAFE
        self.side = SAFE_SET if self.second_chance else _SIDES[self.judged]


def read_moderated(paths: Sequence[Path], *, refusals_count: bool) -> list[Prompt]:
    """Read and join moderated files; the prompts are in input order. Raises UserError.

    Columns: prompt, category, is_toxic; if there, response_is_toxic, with is_rejected or
    answer_category to tell whether the response is a refusal.
    """
    found, least = dict[str, Prompt](), Said.REFUSAL if refusals_count else Said.SAFE
    for path in paths:
        table = read_csv(path, ("prompt", "category", "is_toxic"))
        check_single(path, table.columns)
        for number, row in enumerate(table.rows, start=1):
            row = {column: storable(cell) for column, cell in row.items()}
            if key := same(row["prompt"]) or row["prompt"].strip():  # "?!" is a prompt, too
                prompt = found.setdefault(key, Prompt(row, path.name))
                prompt.add(row, path.name, f"{path}, row {number}", least)
    return list(found.values())


def _said(row: Row, column: str, where: str) -> Said:
    toxic = optional_flag(row, column, where)
    if toxic is not False:
        return Said.TOXIC if toxic else Said.NOTHING
    marked = column == RESPONSE_VERDICT and ("answer_category" in row or "is_rejected" in row)
    return Said.REFUSAL if marked and VERDICTS[verdict_of(row, where)] else Said.SAFE


def join_lines(prompts: Sequence[Prompt]) -> Iterator[str]:
    """What the files say, with counts."""
    copies = counted(sum(max(one.copies - 1, 0) for one in prompts), "exact duplicate")
    yield f"{counted(len(prompts), 'prompt')}, {copies} dropped"
    yield f"verdicts on the prompts: {_counts(one.judged for one in prompts)}"
    answered = [one.answered for one in prompts if one.judged is Said.TOXIC]
    if any(answered):
        safe = sum(one.second_chance for one in prompts)
        yield f"responses to the toxic prompts: {_counts(answered)}; became safe {safe:,}"


def _counts(said: Iterable[Said]) -> str:
    return " · ".join(f"{one.name.lower()} {n:,}" for one, n in sorted(Counter(said).items()))
