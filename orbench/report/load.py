"""Result files of stages 4 and 5, with their failed rows and run records, into one table with a row
per response. Stage 5 (answer_category) tells direct from indirect refusals, stage 4 (is_rejected)
does not.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pandas import DataFrame, Series, concat, factorize  # type: ignore[import-untyped]

from orbench.base import prompts, records, words
from orbench.base.messages import UserError, clean, counted
from orbench.base.tables import NO_NAME, Table, read_csv
from orbench.models.providers import is_same_model
from orbench.models.requests import REFUSED_TO_JUDGE
from orbench.refusals.api import CUT_OFF
from orbench.report.about import ABOUT, about_file, about_side
from orbench.report.frames import Entry, joined, named
from orbench.stats.core import Verdicts

BOTH = "merged"
BASELINE = " (baseline)"  # behind the name of a model
KEYS = ["model", "settings", "side", "prompt_set", "judge"]  # what makes a result
# What is not ranked, since another model's result equals it in some columns; the last one is known.
REPEATED = {
    "the same responses as {} throughout, a copy or an ignored setting": ["side", "responses"],
    "the same model as {}, by the returned ids": ["settings", "side", "prompt_set", "judge", "ids"],
}
TEXTS = {
    "question": prompts.shown_question,
    "response": lambda row: row.get("response", ""),
    "reason": words.reason_of,
}


class Source(NamedTuple):
    """A result file as the user named it."""

    path: Path
    model: str  # empty: as the run record says
    side: str  # a key of SIDES; BOTH: the column is_toxic tells the sides apart
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
    written = sorted(path.rglob("*.csv"), key=lambda one: one.stat().st_mtime_ns)
    paths = written if path.is_dir() else [path]
    return [Source(one, model, side) for one in paths if not one.match(f"*{records.FAILED}")]


def load_results(sources: Sequence[Source], texts: int = 0) -> DataFrame:
    """Return one row per response, results in the order given.

    Columns: result (its number), KEYS, ABOUT; category, tier; id, text (of the prompt); prompt,
    seed (numbers, the same in all files; without a seed the prompt is its own); seedless (the text
    of a prompt without a seed); verdict (of VERDICTS, empty: unscored); refused, direct, indirect,
    api (refused by the API itself, then neither direct nor indirect; with api_category, and
    after_text), cut_off (at the token limit), other_model (another one answered), judge_refused
    (to judge it): 1, 0, NaN: not known; graded (the class; empty: another rubric); TEXTS, of
    `texts` rows.

    Raises UserError for a file that cannot be used, a result given twice, a prompt on both sides,
    of one model or of two.
    """
    parts = list[DataFrame]()
    abouts = []
    for source in sources:
        for about, part in _results_in(source, texts // len(sources)):
            parts.append(part.assign(result=len(parts)))
            abouts.append(about)
    if not parts:
        return DataFrame(columns=["result", *KEYS, *ABOUT])
    rows = concat(parts, ignore_index=True)
    results = _told_apart(DataFrame(abouts))
    for name in ("prompt", "seed"):
        rows[name] = factorize(rows[name])[0]
    rows = rows.join(results.astype("category"), on="result")
    _check_sides(rows, results)
    paths = Counter(source.path.resolve() for source in sources)
    path, times = paths.most_common(1)[0]
    if times > 1:
        raise UserError(f"{path} is given twice")
    return rows


def _check_sides(rows: DataFrame, results: DataFrame) -> None:
    """Raise UserError if a prompt is on both sides, of one model or of two."""
    sides = rows.groupby("prompt")["side"].nunique()
    shared = sides[sides > 1].index
    if len(shared):
        numbers = rows["result"][rows["prompt"].isin(shared)]
        files = ", ".join(results["file"][numbers.unique()])
        both = f"{counted(len(shared), 'prompt')} on both sides"
        how = "give safe prompts to --over_refusal and toxic ones to --toxic, and remove"
        raise UserError(f"{both}; {how} what is on the wrong side: {files}")


def _told_apart(results: DataFrame) -> DataFrame:
    """Make names unique, and note which result has the same model as one before it. results: a row
    per result. Raises UserError for a result given twice.
    """
    sets = results.groupby(["side", "prompts"])["prompt_set"].transform("nunique")
    results.loc[sets > 1, "prompts"] += " " + results["prompt_set"].str[:8]
    templates = results.groupby("judge")["template"].transform("nunique")
    results.loc[templates > 1, "judge"] += ", prompt " + results["template"].str[:8]
    results["judge_alike"] = results["judge"]
    versions = results.groupby("judge")["judge_version"].transform("nunique")
    results.loc[versions > 1, "judge"] += ", rules " + results["judge_version"]
    repeated = results[results.duplicated(KEYS, keep=False)]
    if len(repeated):
        same = "the same model, prompts and judge; remove one, or rename it with MODEL=FILE"
        raise UserError(f"{' and '.join(repeated['file'])}: {same}")
    short = results["model"].str.rpartition("/")[2]
    models = results["model"].groupby(short).transform("nunique")
    results["short"] = short.where(models == 1, results["model"])
    if results["settings"].nunique() > 1:
        results["short"] = list(map(named, results["short"], results["settings"]))
    results["label"] = list(map(named, results["model"], results["settings"]))
    for why, alike in REPEATED.items():
        known = results[(results[alike[-1]] != "") & ~results["baseline"]]
        first = known.groupby(alike)["label"].transform("first")
        again = first[first != known["label"]]
        results.loc[again.index, "unranked"] = again.map(why.format)
    results["notes"] = [
        joined(*texts) for texts in results[["doubt", "unranked", "cautions", "notes"]].to_numpy()
    ]
    return results


def verdicts(rows: DataFrame) -> Verdicts:
    """Return what `orbench.stats.core` takes, with the column weight, if any."""
    refused, prompt, seed = (rows[name].to_numpy() for name in ("refused", "prompt", "seed"))
    weight = rows["weight"].to_numpy() if "weight" in rows else 1.0
    return Verdicts(refused, prompt, seed, weight=weight)


def _results_in(source: Source, texts: int) -> Iterator[tuple[Entry, DataFrame]]:
    """Yield KEYS, ABOUT, template and the rows of each result in a file: one, or one per side."""
    path = source.path
    record = records.read_record(path)
    table = read_csv(path, ["prompt"])
    lost = records.failed_rows(path)
    records.check_whole(path, record)
    by_judge = _is_judged(table)
    about = about_file(path, source.model, record, by_judge)
    about["baseline"] = source.baseline
    if source.baseline:
        about["model"] += BASELINE
    expected = record.get("output", {}).get("failed")  # else the file was removed since
    about["known"] = bool(lost) or (bool(record) and not expected)
    if not record:  # else the column came with the prompts
        _check_one_model(table)
    _check_apart(table, lost)
    own = [row.get("response", "?") for row in table.rows if not words.refused_by_api(row)]
    empty = sum(not text.strip() or prompts.is_no_value(text) for text in own)
    if empty > len(own) / 2:
        about["doubt"] = about["doubt"] or f"{empty:,} of {len(own):,} responses are empty"
    scored = len(table.rows)
    fields = []
    for number, row in enumerate(table.rows + lost, start=1):
        where = f"{path}, row {number}"
        fields.append(_fields(row, where, source.side, number <= scored))
    frame = DataFrame(fields)
    for name in {words.OVERALL, words.MACRO} & {*frame["category"]}:
        raise UserError(f"{path} has a category {name!r}, which the report itself uses; rename it")
    frame = frame.astype(dict.fromkeys(("refused", "direct", "indirect", "cut_off"), float))
    tested = records.under_test(record).id
    frame["other_model"] = [not is_same_model(tested, id_) for id_ in frame["served_by"]]
    kept = np.linspace(0, scored - 1, min(texts, scored), dtype=int)
    for name, read in TEXTS.items():
        frame[name] = Series({n: read(table.rows[n]) for n in kept}, dtype=object)
    for side, part in frame.groupby("side", sort=False):
        of_side = about_side(str(side), part, record, path)
        of_side["cautions"] = joined(about["cautions"], of_side["cautions"])
        yield about | of_side, part.drop(columns=["side", "served_by", "response_id"])


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


def _asked(row: words.Row) -> tuple[str, ...]:
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


def _fields(row: words.Row, where: str, of_file: str, scored: bool) -> Entry:
    """Return the columns of `load_results` that a row has itself, and side, served_by and
    response_id. Raises UserError for what cannot be read.
    """
    verdict = words.verdict_of(row, where) if scored else ""
    refused = words.VERDICTS.get(verdict, nan)
    prompt = prompts.prompt_id_of(row)
    text = sys.intern(row["prompt"])
    seed = prompts.seed_id_of(row)
    api = refused is True and words.refused_by_api(row)
    fields = {
        "side": _side(row, of_file, where),
        "category": words.category_of(row),
        "tier": "" if prompts.is_no_value(row.get("tier", "")) else words.tier_of(row),
        "id": prompt,
        "text": text,
        "prompt": prompt,
        "seed": seed or prompt,
        "seedless": "" if seed else text,
        "verdict": verdict,
        "refused": refused,
        "graded": "",
        "direct": nan,
        "indirect": nan,
        "api": api,
        "api_category": clean(row.get("api_category", "")) if api else "",
        "after_text": api and words.after_text(row),
        "cut_off": nan,
        "response_id": prompts.text_id(row.get("response", "")),
        "served_by": row.get("served_by", "").partition(" via ")[0],
        "judge_refused": row.get("error_type") == REFUSED_TO_JUDGE,
    }
    if "answer_category" in row:
        fields["direct"] = verdict == "direct_refusal" and not api
        fields["indirect"] = verdict == words.INDIRECT and not api
        if "graded_category" in row:
            fields["graded"] = words.graded_class_of(row, where)
    if "finish_reason" in row:
        fields["cut_off"] = row["finish_reason"].lower() in CUT_OFF
    return fields


def _side(row: words.Row, of_file: str, where: str) -> str:
    """Return the side of a row. Raises UserError if it is not the file's, or not known."""
    of_row = words.side_of(row, where)
    side = of_row.name if of_row else of_file
    if side == BOTH or of_file not in (BOTH, side):
        cell = f"{where}: is_toxic is {row.get('is_toxic', '')!r}"
        needed = "files with both sides go to --merged, which needs is_toxic in each row"
        raise UserError(f"{cell}; {needed}")
    return side
