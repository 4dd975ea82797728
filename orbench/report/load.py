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
from orbench.base.words import Row, Side
from orbench.report.about import AboutFile, about_file, about_side
from orbench.report.names import told_apart
from orbench.report.responses import (
    Numbers,
    Response,
    columns_of,
    lookalikes_in,
    response_of,
    responses_hash,
    side_in,
    text_of,
)
from orbench.report.results import Prompts, Result

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
        model = ""
        name = text
    if not name:
        raise UserError(NO_NAME)
    path = Path(name)
    model = clean(model).strip()
    paths = [path]
    if path.is_dir():
        paths = sorted(path.rglob("*.csv"), key=lambda one: one.stat().st_mtime_ns)
    kept = [one for one in paths if not one.match(f"*{records.FAILED}")]
    return [Source(one, model, side) for one in kept]


def load_results(sources: Sequence[Source], texts: int = 0) -> tuple[list[Result], Prompts]:
    """Return the results in the order given, and the prompts of all. texts: how many responses keep
    their text.

    Raises UserError for a file that cannot be used, a result given twice, a prompt on both sides,
    of one model or of two.
    """
    numbers = Numbers()
    results: list[Result] = []
    for source in sources:
        for result in _results_in(source, numbers, texts // len(sources)):
            results.append(replace(result, number=len(results)))
    if results:
        results = told_apart(results)
        _check_sides(results)
        _check_given_once(sources)
    return results, numbers.prompts


def _check_sides(results: Sequence[Result]) -> None:
    """Raise UserError if a prompt is on both sides, of one model or of two."""
    sides = defaultdict[int, set[Side]](set)
    for result in results:
        for prompt in np.unique(result.responses.prompt):
            sides[int(prompt)].add(result.side)
    shared = [prompt for prompt, several in sides.items() if len(several) > 1]
    if not shared:
        return
    files = [one.file for one in results if np.isin(one.responses.prompt, shared).any()]
    both = f"{counted(len(shared), 'prompt')} on both sides"
    how = "give safe prompts to --over_refusal and toxic ones to --toxic, and remove"
    raise UserError(f"{both}; {how} what is on the wrong side: {', '.join(files)}")


def _check_given_once(sources: Sequence[Source]) -> None:
    paths = Counter(source.path.resolve() for source in sources)
    path, times = paths.most_common(1)[0]
    if times > 1:
        raise UserError(f"{path} is given twice")


# -- a file --------------------------------------------------------------------------------------


def _results_in(source: Source, numbers: Numbers, texts: int) -> Iterator[Result]:
    """Yield the results in a file: one, or one per side."""
    path = source.path
    record = records.read_record(path)
    table = read_csv(path, ["prompt"])
    lost = records.failed_rows(path)
    records.check_whole(path, record)
    about = about_file(path, source.model, record, _is_judged(table))
    if not record:  # else the column came with the prompts
        _check_one_model(table)
    _check_apart(table, lost)
    scored = len(table.rows)
    kept = set(np.linspace(0, scored - 1, min(texts, scored), dtype=int).tolist())
    rows: dict[Side, list[Response]] = {}
    for number, row in enumerate(table.rows + lost):
        where = f"{path}, row {number + 1}"
        side = side_in(row, source.side, where)
        verdict = words.verdict_of(row, where) if number < scored else ""
        response = response_of(row, side, verdict, where, about.tested, numbers)
        if number in kept:
            response = response._replace(text=text_of(row, verdict))
        rows.setdefault(side, []).append(response)
    _check_categories(path, rows)
    expected = record.get("output", {}).get("failed")  # else the file was removed since
    about = about._replace(doubt=about.doubt or _emptiness(table.rows))
    known = bool(lost) or (bool(record) and not expected)
    for part in rows.values():
        yield _result(source, record, about, part, known, numbers)


def _emptiness(rows: words.Rows) -> str:
    """Return a doubt if most responses in words are empty."""
    own = [row.get("response", "?") for row in rows if not words.refused_by_api(row)]
    empty = sum(not text.strip() or prompts.is_no_value(text) for text in own)
    if empty > len(own) / 2:
        return f"{empty:,} of {len(own):,} responses are empty"
    return ""


def _result(
    source: Source,
    record: Record,
    about: AboutFile,
    rows: Sequence[Response],
    known: bool,
    numbers: Numbers,
) -> Result:
    """Return the result that rows of one side make; its number and short name come later."""
    side = rows[0].side
    distinct = dict.fromkeys(row.prompt for row in rows)
    ids = [numbers.prompts.id[number] for number in distinct]
    served_by = Counter(row.served_by for row in rows if row.served_by)
    of_side = about_side(source.path, side, record, len(distinct), served_by)
    returned = of_side.ids
    if returned and any(row.other_model for row in rows):
        returned = [*returned, about.tested]
    return Result(
        number=0,
        model=about.model + BASELINE * source.baseline,
        settings=about.settings,
        short="",
        family=about.family,
        side=side,
        prompts=of_side.prompts,
        prompt_set=prompts.prompt_set_hash(ids),
        home=of_side.home,
        judge=about.judge.name,
        judge_any_version=about.judge.name,
        judge_version=about.judge.rules,
        template=about.judge.template,
        date=about.date,
        ids=" ".join(returned),
        responses_hash=responses_hash(rows, numbers.prompts),
        file=str(source.path),
        is_baseline=source.baseline,
        certain=about.certain,
        unscored_known=known,
        corrected=of_side.corrected,
        doubt=about.doubt,
        is_demo=about.is_demo,
        unranked=tuple(about.unranked),
        cautions=(*about.cautions, *of_side.cautions),
        notes=tuple(about.notes),
        lookalikes=lookalikes_in(rows, numbers.prompts),
        scored=sum(row.verdict != "" for row in rows),
        responses=columns_of(rows),
        texts=[row.text for row in rows if row.text],
    )


def _check_categories(path: Path, rows: dict[Side, list[Response]]) -> None:
    """Raise UserError if a category is called as the report calls all of them."""
    for part in rows.values():
        for name in {words.OVERALL, words.MACRO} & {row.category for row in part}:
            taken = f"{path} has a category {name!r}"
            raise UserError(f"{taken}, which the report itself uses; rename it")


def _check_one_model(table: Table) -> None:
    """Raise UserError if a column `model`, in any letter case, holds several."""
    for column in table.columns:
        if column.lower() != "model":
            continue
        models = {row[column] for row in table.rows} - {""}
        if len(models) > 1:
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


def _is_judged(table: Table) -> bool:
    """Return whether stage 5 wrote the file. Raises UserError if neither 4 nor 5 did."""
    path = table.path
    if "error_type" in table.columns:
        raise UserError(f"{path} holds the rows without a result; give the results beside it")
    by_judge = "answer_category" in table.columns
    if not table.rows or not (by_judge or "is_rejected" in table.columns):
        needed = "rows with 'answer_category' (stage 5) or 'is_rejected' (stage 4)"
        raise UserError(f"{path} has no {needed}; its columns: {clean(', '.join(table.columns))}")
    return by_judge
