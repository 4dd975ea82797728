"""What the chain of stages 3, 4 and 3 again says about each prompt: safe, toxic, or nothing.

The files of the chain overlap: the split toxic file and the file with the moderated answers hold
the same prompts. They are joined by `brackets.same`, so that spellings differing in case, spacing
or end punctuation are one prompt, and each prompt keeps the row that decided. The rules:

- Files that disagree about a prompt: toxic, the cautious side; the same for two answers to it.
- The second chance is for prompts judged toxic: an answer judged safe makes the prompt safe.
- A refusal is not an answer. That it is harmless says nothing about the prompt, so the prompt stays
  toxic (`refusals_count=True` takes it as a safe answer, the widest reading of the paper).
- A toxic prompt without a judged answer stays toxic. A safe prompt stays safe whatever its answer.
- No verdict about the prompt: it is in no dataset.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]

from orbench.brackets import same
from orbench.columns import REFUSALS, category_of, optional_flag, verdict_of
from orbench.conversation import check_single
from orbench.record import Record, under_test
from orbench.table import Row, Table, storable
from orbench.terminal import UserError, counted

NEEDED_COLUMNS = ("prompt", "category", "is_toxic")
ANSWER_VERDICT = "response_is_toxic"
# What a model did in the chain, as it stands on the card.
JUDGED, ANSWERED = "judged the prompts", "answered the toxic prompts"
JUDGED_ANSWERS = "judged the answers"
SAFE, TOXIC = "or-bench-80k", "or-bench-toxic-all"  # the sides, by the datasets they make
_CELLS = ("file", "key", "text", "category", "toxic", "answer", "sample")


class Judged(IntEnum):
    """What a row says of its prompt; of several rows the highest counts."""

    UNKNOWN = 0
    SAFE = 1
    TOXIC = 2


class Answered(IntEnum):
    """What a row says of an answer to its prompt; of several rows the highest counts."""

    NONE = 0
    REFUSED = 1
    SAFE = 2
    TOXIC = 3


def read_moderated(
    paths: Sequence[Path], *, refusals_count: bool
) -> tuple[list[Table], pd.DataFrame]:
    """Read and join moderated files.

    Columns: `NEEDED_COLUMNS`, and where there response_is_toxic, with is_rejected or
    answer_category to tell whether the answer was a refusal, and sample, its number. Gives the
    tables and the prompts, see `joined`. Raises UserError for a file given twice and for a cell
    that holds no verdict.
    """
    resolved = [path.resolve() for path in paths]
    for path in resolved:
        if resolved.count(path) > 1:
            raise UserError(f"{path} is given twice among --moderated_files")
    tables: list[Table] = []
    rows: list[tuple[object, ...]] = []

    def collect(row: Row, where: str) -> None:
        rows.append((len(tables), *_cells(row, where)))  # this file comes after those read

    for path in paths:
        tables.append(Table(path, NEEDED_COLUMNS, check=collect))
        check_single(path, tables[-1].columns)
    # As objects: pandas would copy the texts into its own strings and back.
    frame = pd.DataFrame(rows, columns=_CELLS, dtype=object)
    frame = frame.astype({"file": int, "toxic": int, "answer": int})
    return tables, joined(frame, refusals_count=refusals_count)


def joined(rows: pd.DataFrame, *, refusals_count: bool) -> pd.DataFrame:
    """The prompts behind all rows, in the order of the rows that decided.

    Index: the key, what spellings of a prompt share. Columns: file, number (from 0) of the row that
    decided, its text and category; toxic, answer; contradicted; copies: how often the prompt came
    in; again: rows that are no copies but answers; second_chance: whether a safe answer brought a
    toxic prompt back; side: SAFE, TOXIC or "" without a verdict.
    """
    rows["number"] = rows.groupby("file").cumcount()
    rows = rows[rows["key"] != ""]
    by_key = rows.groupby("key")
    highest = by_key[["toxic", "answer"]].max()
    # The row that last raised one of the two: of the first rows with either highest the later.
    decided = by_key[["toxic", "answer"]].idxmax().max(axis=1)
    prompts = rows.loc[decided.sort_values()].set_index("key").drop(columns="sample")
    prompts[["toxic", "answer"]] = highest
    said = rows[["toxic", "answer"]].where(
        rows[["toxic", "answer"]] >= [Judged.SAFE, Answered.SAFE]
    )
    prompts["contradicted"] = said.groupby(rows["key"]).nunique().max(axis=1) > 1
    # A prompt's answers, one or several samples a row, come from its own rows once more; where
    # these are not given, only the answers tell how many they were.
    given = rows["sample"].isna().groupby(rows["key"]).sum()
    answered = rows.groupby(["key", "sample"]).size().groupby("key").max()
    prompts["copies"] = given.where(given > 0, answered).astype(int)
    prompts["again"] = by_key.size() - prompts["copies"]
    least = Answered.REFUSED if refusals_count else Answered.SAFE
    prompts["second_chance"] = (prompts["toxic"] == Judged.TOXIC) & prompts["answer"].between(
        least, Answered.SAFE
    )
    sides = {Judged.UNKNOWN: "", Judged.SAFE: SAFE, Judged.TOXIC: TOXIC}
    prompts["side"] = prompts["toxic"].map(sides).mask(prompts["second_chance"], SAFE)
    return prompts


def deciding_rows(
    tables: Sequence[Table], prompts: pd.DataFrame
) -> Iterator[tuple[Row, Path, str]]:
    """The row that decided about each prompt, read again, its file and where it stands in words;
    in the order of the prompts.
    """
    waiting = zip(prompts["file"], prompts["number"], strict=True)
    source = next(waiting, None)
    for file, table in enumerate(tables):
        for number, row in enumerate(table):
            if source == (file, number):
                yield row, table.path, f"{table.path}, row {number + 1}"
                source = next(waiting, None)


def join_lines(
    prompts: pd.DataFrame, tables: Iterable[Table], *, refusals_count: bool
) -> Iterator[str]:
    """What happened to the prompts, in sentences with counts."""
    rows, copies = sum(table.n for table in tables), prompts["copies"].sum()
    again = prompts["again"].sum()
    yield (
        f"{counted(rows, 'row')}, {counted(len(prompts), 'prompt')}; "
        + (f"{counted(again, 'second-chance row')} of the same prompts, " if again else "")
        + f"{counted(copies - len(prompts), 'exact duplicate')} dropped"
    )
    if empty := rows - copies - again:
        yield f"{counted(empty, 'row')} without a prompt left out"
    count = Counter(zip(prompts["toxic"], prompts["answer"], strict=True))
    judged = prompts["toxic"].value_counts()
    unscored, safe, toxic = (judged.get(verdict, 0) for verdict in Judged)
    yield f"judged by themselves: {safe:,} safe, {toxic:,} toxic"
    if unscored:
        yield f"{counted(unscored, 'prompt')} without a verdict, in no dataset"
    if toxic:
        refused = "count as safe answers" if refusals_count else "stay toxic"
        yield (
            f"second chance for the toxic: {count[Judged.TOXIC, Answered.SAFE]:,} had a safe "
            f"answer and come back, {count[Judged.TOXIC, Answered.TOXIC]:,} had a toxic answer, "
            f"{count[Judged.TOXIC, Answered.REFUSED]:,} only a refusal ({refused}), "
            f"{count[Judged.TOXIC, Answered.NONE]:,} no judged answer (stay toxic)"
        )
    if odd := count[Judged.SAFE, Answered.TOXIC]:
        yield f"{counted(odd, 'prompt')} judged safe with an answer judged toxic: still safe"
    if contradicted := prompts["contradicted"].sum():
        yield f"{counted(contradicted, 'prompt')} with contradicting verdicts: the toxic one counts"


def models_of(tables: Sequence[Table], records: Sequence[Record]) -> list[tuple[str, str]]:
    """What which model did (task, model), from the run records beside the files; each once."""
    found = []
    for table, record in zip(tables, records, strict=True):
        answers = ANSWER_VERDICT in table.columns
        if answers and (model := under_test(record).shown):
            found.append((ANSWERED, model))
        for judge in record.get("models") or ():
            asked, id_ = str(judge.get("asked", "")), str(judge.get("id", ""))
            task = JUDGED_ANSWERS if answers else JUDGED
            found.append((task, asked if id_ in ("", asked) else f"{asked} ({id_})"))
    return list(dict.fromkeys(found))


def record_lines(records: Sequence[Record]) -> Iterator[str]:
    """What the run records say of rows that are not in the files."""
    # Split files share one run; it counts once.
    runs = {(str(r.get("start")), str(r.get("stage")), str(r.get("input"))): r for r in records}
    counts = [run.get("counts") or {} for run in runs.values()]
    if lost := sum(count.get(name, 0) for count in counts for name in ("failed", "unscored")):
        yield (
            f"{counted(lost, 'row')} of those runs without a verdict, not here: they stand in the "
            "runs' files of failed rows"
        )
    if unfinished := sum(run.get("complete") is False for run in runs.values()):
        yield f"unfinished runs, of which more rows would come: {unfinished}"


def _cells(row: Row, where: str) -> tuple[object, ...]:
    """What `joined` needs of a row: `_CELLS` without the file."""
    text = storable(row["prompt"])
    key = same(text) or text.strip()  # nothing but punctuation is a prompt, too
    if not key:
        return key, text, "", Judged.UNKNOWN, Answered.NONE, None
    toxic = {None: Judged.UNKNOWN, False: Judged.SAFE, True: Judged.TOXIC}
    judged = toxic[optional_flag(row, "is_toxic", where)]
    sample = row.get("sample", "") if ANSWER_VERDICT in row else None
    return key, text, category_of(row, where), judged, _answered(row, where), sample


def _answered(row: Row, where: str) -> Answered:
    toxic = optional_flag(row, ANSWER_VERDICT, where)
    if toxic is None:
        return Answered.NONE
    if toxic:
        return Answered.TOXIC
    marked = "answer_category" in row or "is_rejected" in row
    refused = marked and verdict_of(row, where) in REFUSALS
    return Answered.REFUSED if refused else Answered.SAFE
