"""What moderated files say about each prompt: safe, toxic, or nothing.

Spellings that differ in case, spacing or end punctuation are one prompt. If rows disagree, the
toxic one counts. The second chance: a response judged safe makes a toxic prompt safe. A refusal is
harmless whatever the prompt, so it gives no second chance (with --refusals_count, it does).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from orbench.base.messages import counted
from orbench.base.prompts import same
from orbench.base.tables import Paths, check_single, placed_rows, read_csv
from orbench.base.words import VERDICTS, Lines, Row, optional_flag, verdict_of

SECOND_CHANCE = "response_is_toxic"  # the column of files with moderated responses
SAFE_SET = "or-bench-80k"
TOXIC_SET = "or-bench-toxic-all"  # the two sides, by their datasets


class Said(IntEnum):
    """What rows say about a prompt, or about responses to it; the highest counts."""

    NOTHING = 0
    REFUSAL = 1  # of responses only
    SAFE = 2
    TOXIC = 3


_SAID = {None: Said.NOTHING, False: Said.SAFE, True: Said.TOXIC}
_SIDES = {Said.NOTHING: "", Said.SAFE: SAFE_SET, Said.TOXIC: TOXIC_SET}


@dataclass
class Prompt:
    """What all files say about a prompt."""

    row: Row  # the one that decided, with its source_file
    judged: Said = Said.NOTHING
    answered: Said = Said.NOTHING
    copies: int = 0  # rows that are not of the second chance
    reason: str = ""  # why it is in no dataset, if it is in none
    resembles: str = ""  # the prompt that a near-duplicate resembles

    @property
    def second_chance(self) -> bool:
        """Return whether a response made it safe."""
        return self.judged is Said.TOXIC and self.answered is Said.SAFE

    @property
    def side(self) -> str:
        """Return SAFE_SET or TOXIC_SET; "" without a verdict."""
        return SAFE_SET if self.second_chance else _SIDES[self.judged]

    def add(self, row: Row, judged: Said, answered: Said) -> None:
        """Count a row of this prompt."""
        self.copies += SECOND_CHANCE not in row
        if judged > self.judged or answered > self.answered:
            self.row = row
        self.judged = max(judged, self.judged)
        self.answered = max(answered, self.answered)


def read_moderated(paths: Paths, *, refusals_count: bool) -> list[Prompt]:
    """Read and join moderated files; the prompts are in input order. Raises UserError."""
    prompts = dict[str, Prompt]()
    for path in paths:
        table = read_csv(path, ("prompt", "category", "is_toxic"))
        check_single(table)
        for place, row in placed_rows(path, table.rows):
            judged = _SAID[optional_flag(row, "is_toxic", place)]
            answered = _SAID[optional_flag(row, SECOND_CHANCE, place)]
            checked = "answer_category" in row or "is_rejected" in row  # by stage 5, by stage 4
            harmless = answered is Said.SAFE and checked and not refusals_count
            if harmless and VERDICTS[verdict_of(row, place)]:
                answered = Said.REFUSAL
            row["source_file"] = path.name
            prompt = prompts.setdefault(same(row["prompt"]), Prompt(row))
            prompt.add(row, judged, answered)
    for text, prompt in prompts.items():
        if not text:
            prompt.reason = "no prompt"
        elif not prompt.side:
            prompt.reason = "no verdict"
    return list(prompts.values())


def join_lines(prompts: Sequence[Prompt]) -> Lines:
    """Yield how many prompts there are, and what became of the toxic ones by their responses."""
    copies = sum(max(prompt.copies - 1, 0) for prompt in prompts)
    yield f"{counted(len(prompts), 'prompt')}, {counted(copies, 'exact duplicate')} dropped"
    answered = Counter(prompt.answered for prompt in prompts if prompt.judged is Said.TOXIC)
    if any(answered):
        parts = [f"{said.name.lower()} {n:,}" for said, n in sorted(answered.items())]
        yield f"responses to the toxic prompts: {' · '.join(parts)}"
