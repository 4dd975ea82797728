"""What the chain of stages 3, 4 and 3 again says about each prompt: safe, toxic, or nothing.

The files of the chain overlap: the split toxic file and the file with the moderated answers hold
the same prompts. They are joined by `brackets.same`, so that spellings differing in case, spacing
or end punctuation are one prompt, and each prompt keeps the row that decided. The rules:

- Files that disagree about a prompt: toxic, the cautious side; the same for two answers to it.
- The second chance is for prompts judged toxic: an answer judged safe makes the prompt safe.
- A refusal is not an answer. That it is harmless says nothing about the prompt, so the prompt stays
  toxic (`refusals_count=True` takes it as a safe answer, the widest reading of the paper).
- A toxic prompt without a judged answer stays toxic. A safe prompt stays safe whatever its answer.
- No verdict about the prompt: it is in no data set.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from orbench import record
from orbench.brackets import same
from orbench.columns import REFUSALS, verdict_of
from orbench.table import Row, Table, storable
from orbench.terminal import UserError, clean, counted

NEEDED = ("prompt", "category", "is_toxic")
ANSWER_VERDICT = "response_is_toxic"
# What a model did in the chain, as it stands on the card.
JUDGED, ANSWERED = "judged the prompts", "answered the toxic prompts"
JUDGED_ANSWERS = "judged the answers"
FLAGS = {"true": True, "false": False, "": None}  # as cells, in small letters


class Answer(IntEnum):
    """What the second chance said, the stronger word last."""

    NONE = 0
    REFUSED = 1
    SAFE = 2
    TOXIC = 3


@dataclass(slots=True)
class Prompt:
    """One prompt and what is known about it. There may be 100,000 of them."""

    text: str
    key: str  # `same` of the text
    category: str
    toxic: bool | None  # judged by itself; None: no verdict
    answer: Answer
    source: tuple[int, int]  # file and row (from 0) that decided
    rows: int = 0  # in files of moderated prompts
    answers: int = 0  # in files of moderated answers
    sample: str = ""  # of the first of these answers
    first_answers: int = 0  # the answers with that number: one an input row
    contradicted: bool = False

    @property
    def copies(self) -> int:
        """How often the prompt came in. Its answers, one or several samples a row, come from the
        same rows once more; where these are not given, only the answers tell how many they were.
        """
        return self.rows or self.first_answers

    @property
    def again(self) -> int:
        """Rows that are no copies of the prompt but (further) answers to it."""
        return self.rows + self.answers - self.copies

    def count_answer(self, sample: str) -> None:
        """Count a row of a file of moderated answers. sample: its number, if it has one."""
        self.sample = self.sample if self.answers else sample
        self.answers += 1
        self.first_answers += sample == self.sample


@dataclass(slots=True)
class Joined:
    """The prompts in the order of the rows that decided, and the rows that count nowhere."""

    prompts: list[Prompt]
    refusals_count: bool
    rows: int = 0
    empty: int = 0  # rows without a prompt

    def is_safe(self, prompt: Prompt) -> bool | None:
        """The side of a prompt; None without a verdict."""
        return None if prompt.toxic is None else not prompt.toxic or self.second_chance(prompt)

    def second_chance(self, prompt: Prompt) -> bool:
        """Whether a safe answer brought a toxic prompt back."""
        least = Answer.REFUSED if self.refusals_count else Answer.SAFE
        return bool(prompt.toxic) and least <= prompt.answer <= Answer.SAFE

    def lines(self) -> Iterator[str]:
        """What happened to the prompts, in sentences with counts."""
        count = Counter((prompt.toxic, prompt.answer) for prompt in self.prompts)
        toxic = sum(n for (judged, _), n in count.items() if judged)
        safe = sum(n for (judged, _), n in count.items() if judged is False)
        unscored = sum(n for (judged, _), n in count.items() if judged is None)
        copies = sum(prompt.copies - 1 for prompt in self.prompts)
        again = sum(prompt.again for prompt in self.prompts)
        yield (
            f"{counted(self.rows, 'row')}, {counted(len(self.prompts), 'prompt')}; "
            + (f"{counted(again, 'second-chance row')} of the same prompts, " if again else "")
            + f"{counted(copies, 'exact duplicate')} dropped"
        )
        if self.empty:
            yield f"{counted(self.empty, 'row')} without a prompt left out"
        yield f"judged by themselves: {safe:,} safe, {toxic:,} toxic"
        if unscored:
            yield f"{counted(unscored, 'prompt')} without a verdict, in no data set"
        if toxic:
            refused = "count as safe answers" if self.refusals_count else "stay toxic"
            yield (
                f"second chance for the toxic: {count[True, Answer.SAFE]:,} had a safe answer and "
                f"come back, {count[True, Answer.TOXIC]:,} had a toxic answer, "
                f"{count[True, Answer.REFUSED]:,} only a refusal ({refused}), "
                f"{count[True, Answer.NONE]:,} no judged answer (stay toxic)"
            )
        if odd := count[False, Answer.TOXIC]:
            yield f"{counted(odd, 'prompt')} judged safe with an answer judged toxic: still safe"
        if contradicted := sum(prompt.contradicted for prompt in self.prompts):
            yield (
                f"{counted(contradicted, 'prompt')} with contradicting verdicts: the toxic one "
                "counts"
            )


def read(tables: Sequence[Table], *, refusals_count: bool) -> Joined:
    """Join moderated files.

    Columns: `NEEDED`, and where there response_is_toxic, with is_rejected or answer_category to
    tell whether the answer was a refusal, and sample, its number. Raises UserError for a cell that
    holds no verdict.
    """
    found: dict[str, Prompt] = {}
    joined = Joined([], refusals_count)
    for file, table in enumerate(tables):
        answered = ANSWER_VERDICT in table.columns
        marked = bool({"answer_category", "is_rejected"} & set(table.columns))
        for number, row in enumerate(table):
            joined.rows += 1
            text = row["prompt"]
            key = same(text) or text.strip()  # nothing but punctuation is a prompt, too
            if not key:
                joined.empty += 1
                continue
            where = f"{table.path}, row {number + 1}"
            prompt = found.get(key)
            if prompt is None:
                prompt = found[key] = Prompt("", key, "", None, Answer.NONE, (file, number))
            if answered:
                prompt.count_answer(row.get("sample", ""))
            else:
                prompt.rows += 1
            if _merge(prompt, flag(row, "is_toxic", where), _answer(row, marked, where)):
                prompt.text, prompt.category = storable(text), storable(row["category"])
                prompt.source = (file, number)
    joined.prompts = sorted(found.values(), key=lambda prompt: prompt.source)
    return joined


def deciding_rows(
    tables: Sequence[Table], prompts: Sequence[Prompt]
) -> Iterator[tuple[Prompt, Row]]:
    """Each prompt with the row that decided, read again; in the order of `Joined.prompts`."""
    waiting = iter(prompts)
    prompt = next(waiting, None)
    for file, table in enumerate(tables):
        for number, row in enumerate(table):
            if prompt is not None and prompt.source == (file, number):
                yield prompt, row
                prompt = next(waiting, None)


def flag(row: Mapping[str, str], column: str, where: str) -> bool | None:
    """A True/False cell in any letter case; None for an empty one. Raises UserError."""
    cell = row.get(column, "")
    try:
        return FLAGS[cell.lower()]
    except KeyError:
        shown = clean(cell)[:40]
        raise UserError(f"{where}: {column} is {shown!r}, not True or False") from None


def models_of(
    tables: Sequence[Table], records: Sequence[record.Record]
) -> Iterable[tuple[str, str]]:
    """What which model did (task, model), from the run records beside the files; each once."""
    found = []
    for table, one in zip(tables, records, strict=True):
        answers = ANSWER_VERDICT in table.columns
        if answers and one.get("model_under_test"):
            found.append((ANSWERED, str(one["model_under_test"])))
        for model in one.get("models") or ():
            if not isinstance(model, dict):
                continue
            asked, id_ = str(model.get("asked", "")), str(model.get("id", ""))
            task = JUDGED_ANSWERS if answers else JUDGED
            found.append((task, asked if id_ in ("", asked) else f"{asked} ({id_})"))
    return dict.fromkeys(found)


def record_lines(records: Sequence[record.Record]) -> Iterator[str]:
    """What the run records say of rows that are not in the files."""
    # Split files share one run; it counts once.
    runs = {(str(r.get("start")), str(r.get("stage")), str(r.get("input"))): r for r in records}
    counts = [c for r in runs.values() if isinstance(c := r.get("counts"), dict)]
    if lost := sum(int(c.get(name) or 0) for c in counts for name in ("failed", "unscored")):
        yield (
            f"{counted(lost, 'row')} of those runs without a verdict, not here: they stand in the "
            "runs' files of failed rows"
        )
    if unfinished := sum(r.get("complete") is False for r in runs.values()):
        yield f"unfinished runs, of which more rows would come: {unfinished}"


def _answer(row: Row, marked: bool, where: str) -> Answer:
    toxic = flag(row, ANSWER_VERDICT, where)
    if toxic is None:
        return Answer.NONE
    if toxic:
        return Answer.TOXIC
    refused = marked and verdict_of(row, where) in REFUSALS
    return Answer.REFUSED if refused else Answer.SAFE


def _merge(prompt: Prompt, toxic: bool | None, answer: Answer) -> bool:
    """Add what another row says. Gives whether that row decides from now on."""
    decides = not prompt.text
    if toxic is not None and toxic != prompt.toxic:
        if prompt.toxic is not None:
            prompt.contradicted = True
        decides |= toxic or prompt.toxic is None
        prompt.toxic = toxic or bool(prompt.toxic)
    if {answer, prompt.answer} == {Answer.SAFE, Answer.TOXIC}:
        prompt.contradicted = True
    if answer > prompt.answer:
        prompt.answer, decides = answer, True
    return decides
