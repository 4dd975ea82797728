"""Result files of stages 4 and 5, with their failed rows and run records, as results.

Stage 5 (answer_category) tells direct from indirect refusals, stage 4 (is_rejected) does not.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from orbench.base import prompts, records, words
from orbench.base.messages import UserError, clean, counted
from orbench.base.records import Record
from orbench.base.tables import NO_NAME, Table, read_csv
from orbench.base.words import Row, Rows, Side
from orbench.report.about import about, set_name
from orbench.report.names import with_distinct_names
from orbench.report.responses import (
    Judged,
    Numbers,
    judged,
    lookalikes_in,
    responses_hash,
    responses_of,
    side_in,
    texts_of,
)
from orbench.report.results import SAFE, TOXIC, Prompts, Responses, Result

BASELINE = " (baseline)"  # behind the name of a model


class Source(NamedTuple):
    """A result file as the user named it."""

    path: Path
    model: str  # empty: as the run record says
    side: str  # a key of SIDES; MERGED: the column is_toxic tells the sides apart
    baseline: bool = False  # what others are compared with


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
        paths = sorted(paths[0].rglob("*.csv"), key=lambda path: path.stat().st_mtime_ns)
    kept = [path for path in paths if not path.match(f"*{records.FAILED}")]
    return [Source(path, clean(model).strip(), side) for path in kept]


def load_results(sources: Sequence[Source], texts: int = 0) -> tuple[list[Result], Prompts]:
    """Return the results in the order given, and the prompts of all. texts: how many responses keep
    their text.

    Raises UserError for a file that cannot be used, a result given twice, a prompt on both sides,
    of one model or of two.
    """
    numbers = Numbers({}, {}, {})
    results: list[Result] = []
    for source in sources:
        results += _results_in(source, numbers, texts // len(sources))
    results = with_distinct_names(results)
    _check_sides(results)
    _check_given_once(sources)
    return results, Prompts([*numbers.texts], [*numbers.texts.values()])


def _check_sides(results: Sequence[Result]) -> None:
    """Raise UserError if a prompt is on both sides, of one model or of two."""
    asked = defaultdict[Side, set[int]](set)
    for one in results:
        asked[one.side].update(one.responses.prompt.tolist())
    shared = asked[SAFE] & asked[TOXIC]
    if shared:
        files = [one.file for one in results if not shared.isdisjoint(one.responses.prompt)]
        both = f"{counted(len(shared), 'prompt')} on both sides"
        how = "give safe prompts to --over_refusal and toxic ones to --toxic, and remove"
        raise UserError(f"{both}; {how} what is on the wrong side: {', '.join(files)}")


def _check_given_once(sources: Sequence[Source]) -> None:
    paths = [source.path.resolve() for source in sources]
    for path in paths:
        if paths.count(path) > 1:
            raise UserError(f"{path} is given twice")


# -- a file --------------------------------------------------------------------------------------


def _results_in(source: Source, numbers: Numbers, texts: int) -> Iterator[Result]:
    """Yield the results in a file: one, or one per side."""
    path = source.path
    record = records.read_record(path)
    table = read_csv(path, ["prompt"])
    lost = records.failed_rows(path)
    records.check_whole(path, record)
    _check_stage(table)
    if not record:  # else the column came with the prompts
        _check_one_model(table)
    _check_apart(table, lost)
    scored = len(table.rows)
    shown = set(np.linspace(0, scored - 1, min(texts, scored), dtype=int).tolist())
    parts = defaultdict[Side, list[Judged]](list)
    for number, row in enumerate(table.rows + lost):
        where = f"{path}, row {number + 1}"
        side = side_in(row, source.side, where)
        parts[side].append(judged(row, number < scored, number in shown, where, numbers))
    for side, part in parts.items():
        result = _result(source.model, record, table, lost, side, part, numbers)
        if source.baseline:
            result = replace(result, model=result.model + BASELINE, is_baseline=True)
        yield result


def _result(
    name: str,
    record: Record,
    table: Table,
    lost: Rows,
    side: Side,
    part: Sequence[Judged],
    numbers: Numbers,
) -> Result:
    """Return the result that the rows of one side make."""
    served_by = Counter(one.model for one in part if one.model)
    tested = records.under_test(record).id
    responses = responses_of(part, tested)
    _check_categories(table.path, responses)
    ids = sorted(map(clean, served_by))
    if responses.other_model.any():
        ids.append(tested)
    prompt_ids = {one.id for one in part}
    return Result(
        **vars(about(name, record, table, lost, side, served_by)),
        side=side,
        prompts=set_name(table.path, side, record, len(prompt_ids)),
        prompt_set=prompts.prompt_set_hash(prompt_ids),
        ids=" ".join(ids),
        responses_hash=responses_hash(part),
        lookalikes=lookalikes_in(part, numbers),
        scored=int(responses.scored.sum()),
        responses=responses,
        texts=[*texts_of(part)],
    )


def _check_categories(path: Path, responses: Responses) -> None:
    """Raise UserError if a category is called as the report calls all of them."""
    for name in {words.OVERALL, words.MACRO}.intersection(responses.category):
        taken = f"{path} has a category {name!r}"
        raise UserError(f"{taken}, which the report itself uses; rename it")


def _check_one_model(table: Table) -> None:
    """Raise UserError if a column `model`, in any letter case, holds several."""
    for column in table.columns:
        models = {row[column] for row in table.rows} - {""}
        if column.lower() == "model" and len(models) > 1:
            several = f"{table.path} has several models in its column {column}"
            raise UserError(f"{several}; give a file for each")


def _check_apart(table: Table, lost: words.Rows) -> None:
    """Raise UserError if the failed file lists a scored row, with its response or without."""
    if not lost:
        return
    scored = {*map(_asked, table.rows)}
    scored |= {_asked(row | {"response": ""}) for row in table.rows}
    if not scored.isdisjoint(map(_asked, lost)):
        both = f"{table.path} and its {records.FAILED}"
        raise UserError(f"{both} share rows; remove them from one")


def _asked(row: Row) -> tuple[str, ...]:
    """Return what tells the rows of a run apart."""
    names = ("response", "sample", "judge_sample")
    return prompts.prompt_id_of(row), *(row.get(name, "") for name in names)


def _check_stage(table: Table) -> None:
    """Raise UserError if neither stage 4 nor stage 5 wrote the file."""
    path = table.path
    if "error_type" in table.columns:
        raise UserError(f"{path} holds the rows without a result; give the results beside it")
    if not table.rows or {"answer_category", "is_rejected"}.isdisjoint(table.columns):
        needed = "rows with 'answer_category' (stage 5) or 'is_rejected' (stage 4)"
        raise UserError(f"{path} has no {needed}; its columns: {clean(', '.join(table.columns))}")
