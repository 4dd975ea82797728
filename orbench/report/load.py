"""Result files of stages 4 and 5, with their failed rows and run records, as results.

Stage 5 (answer_category) tells direct from indirect refusals, stage 4 (is_rejected) does not.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import nan
from os.path import getmtime
from pathlib import Path

from orbench.base.grouping import grouped
from orbench.base.messages import UserError, clean, progress_bar
from orbench.base.prompts import prompt_id_of, prompt_set_hash
from orbench.base.records import (
    FAILED,
    Record,
    UnderTest,
    check_whole,
    failed_rows,
    read_record,
    under_test,
    validation_of,
)
from orbench.base.tables import NO_NAME, Table, beside, placed_rows, read_csv
from orbench.base.words import WEIGHT, Row, Rows, Texts
from orbench.report.about import about, set_name
from orbench.report.names import with_distinct_names
from orbench.report.responses import (
    Known,
    lookalikes_in,
    read_row,
    responses_hash,
    responses_of,
    text_of,
)
from orbench.report.results import Corrected, Result, Source
from orbench.stats.intervals import Interval


def sources_of(text: str, side: str) -> list[Source]:
    """Return the files behind `FILE`, `MODEL=FILE` or a folder, oldest first; never files of failed
    rows. Raises UserError.
    """
    model, equals, name = text.partition("=")
    if not equals or Path(text).exists():
        model, name = "", text
    if not name:
        raise UserError(NO_NAME)
    paths = [Path(name)]
    if paths[0].is_dir():
        paths = sorted(paths[0].rglob("*.csv"), key=getmtime)
    model = clean(model).strip()
    return [Source(path, model, side) for path in paths if not path.match(f"*{FAILED}")]


def load_results(sources: Sequence[Source], texts: bool = False) -> tuple[list[Result], Texts]:
    """Return the results in the order given, and the prompts of all by their ids, by number: as
    first spelled; of a conversation, the last turn. texts: whether responses keep their text.

    Raises UserError for a file that cannot be used, a result given twice, a prompt on both sides,
    of one model or of two.
    """
    known = Known({}, {}, {})
    results: list[Result] = []
    with progress_bar("reading files", sources) as shown:
        for source in shown:
            results += _results_in(source, known, texts)
    results = with_distinct_names(results)
    return results, {id_: prompt.text for id_, prompt in known.prompts.items()}


def _results_in(source: Source, known: Known, texts: bool) -> Iterator[Result]:
    """Yield the results in a file: one, or one per side."""
    path = source.path
    record = read_record(path)
    check_whole(path, record)
    table = read_csv(path, ["prompt"])
    lost = failed_rows(path)
    _check_table(table, lost, record)
    _check_apart(table, lost)
    tested = under_test(record)
    _check_name(source, tested, known)
    validation = validation_of(path)
    known_labels = validation or {}
    rates = known_labels.get("corrected", {})
    labels = ""  # the column with those that corrected a rate, if they have no weights
    if any(rates.values()) and WEIGHT not in table.columns:
        labels = str(known_labels.get("column", ""))
    rows = []
    placed = [*placed_rows(path, table.rows)]
    placed += placed_rows(beside(path, FAILED), lost)
    for where, row in placed:
        rows.append(read_row(row, where, source.side, tested.id, labels, known))
    ids = Counter(row["model"] for row in rows if row["model"])
    shared = about(source, record, table, ids, validation)
    for side, part in grouped(rows, lambda row: row["side"]).items():
        prompt_ids = {row["id"] for row in part}
        responses = responses_of(part)
        rate, low, high = rates.get(side.name) or rates.get("") or (nan, nan, nan)
        yield Result(
            **vars(shared) | {"notes": (*shared.notes, *lookalikes_in(part))},
            side=side,
            prompts=set_name(path, side, record, len(prompt_ids)),
            prompt_set=prompt_set_hash(prompt_ids),
            ids=" ".join(sorted({*ids, tested.id} if responses.other_model.any() else ids)),
            corrected=Corrected(rate, Interval(low, high)),
            responses_hash=responses_hash(part),
            responses=responses,
            texts=[text_of(row) for row in part if texts and row["verdict"]],
        )


def _check_name(source: Source, tested: UnderTest, known: Known) -> None:
    """Raise UserError if a model has no name, or the user's is that of another one, too."""
    path = source.path
    names = (source.model or tested.label, tested.name)
    if not any(names):
        raise UserError(
            f"{path}: unknown model, because there is no run record beside it; write MODEL={path}"
        )
    if all(names) and known.names.setdefault(*names) != tested.name:
        raise UserError(
            f"{names[0]} is the name of {known.names[names[0]]} and of {tested.name} "
            f"({path}); give each a name of its own"
        )


def _check_table(table: Table, lost: Rows, record: Record) -> None:
    """Raise UserError if neither stage 4 nor stage 5 wrote the file, or it is of failed rows; or,
    without a record, several models in a column `model`, in any letter case.
    """
    columns = table.columns
    without = {"answer_category", "is_rejected"}.isdisjoint(columns)
    if without or not (table.rows or lost) or "error_type" in columns:
        raise UserError(
            f"{table.path} does not hold results of stage 4 ('is_rejected') or stage 5 "
            f"('answer_category'); its columns: {clean(', '.join(columns))}"
        )
    if record:  # the column came with the prompts
        return
    for column in columns:
        models = {row[column] for row in table.rows} - {""}
        if column.lower() == "model" and len(models) > 1:
            raise UserError(
                f"{table.path} has several models in its column {column}; give a file for each"
            )


def _check_apart(table: Table, lost: Rows) -> None:
    """Raise UserError if the failed file lists a scored row, with its response or without."""
    if not lost:
        return
    scored = {*map(_asked, table.rows)}
    scored |= {_asked(row | {"response": ""}) for row in table.rows}
    if not scored.isdisjoint(map(_asked, lost)):
        raise UserError(f"{table.path} and its {FAILED} share rows; remove them from one")


def _asked(row: Row) -> tuple[str, ...]:
    """Return what tells the rows of a run apart."""
    names = ("response", "sample", "judge_sample")
    return prompt_id_of(row), *(row.get(name, "") for name in names)
