"""Result files of stages 4 and 5, with their failed rows and run records, into one table with a row
per response. Stage 5 (answer_category) tells direct from indirect refusals, stage 4 (is_rejected)
does not.
"""

import sys
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.asking.models import family_of, is_same_model
from orbench.base import prompts, records, words
from orbench.base.messages import UserError, clean
from orbench.base.tables import NO_NAME, read_csv
from orbench.stats.core import Verdicts

CUT_OFF = ("length", "max_tokens")  # finish_reason, in small letters, at the token limit
KEYS = ["model", "settings", "side", "prompt_set", "judge"]  # what makes a result
# What else its rows share. home: the repository of its prompts, else its file; doubt: why it is
# neither ranked nor compared.
ABOUT = ["prompts", "family", "date", "file", "home", "doubt", "notes"]
TEXTS = {
    "question": prompts.shown_question,
    "response": lambda row: row.get("response", ""),
    "reason": words.reason_of,
}
# Entry of a run record, its value, and what that makes of the result.
DOUBTS = (
    ("scripted", True, "scripted: measures nothing"),
    ("scripted_input", True, "scripted prompts"),
    ("complete", False, "partial: some rows were not asked yet"),
)

About = dict[str, str]


class Source(NamedTuple):
    """A result file as the user named it."""

    path: Path
    model: str  # empty: as the run record says
    side: str  # a key of SIDES; empty: the column is_toxic tells the sides apart


def sources_of(text: str, side: str) -> list[Source]:
    """The files behind `FILE`, `MODEL=FILE` or a folder, oldest first; never files of failed rows.
    Raises UserError.
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


def load(sources: Sequence[Source], texts: int = 0) -> pd.DataFrame:
    """One row per response, results in the order given.

    Columns: result (its number), KEYS, ABOUT; category; id, text (of the prompt); prompt, seed
    (numbers, the same in all files; without a seed the prompt is its own); verdict (of VERDICTS,
    empty: unscored); refused, direct, indirect, api (refused by the API itself), cut_off (at the
    token limit), other_model (another one answered): 1, 0, NaN: not known; TEXTS, of `texts` rows.

    Raises UserError for a file that cannot be used, and for a result given twice.
    """
    parts = list[pd.DataFrame]()
    abouts = list[About]()
    for source in sources:
        for about, part in _results_in(source, texts // len(sources)):
            parts.append(part.assign(result=len(parts)))
            abouts.append(about)
    if not parts:
        return pd.DataFrame(columns=["result", *KEYS, *ABOUT])
    rows = pd.concat(parts, ignore_index=True)
    table = pd.DataFrame(abouts)
    if len(twice := table[table.duplicated(KEYS, keep=False)]):
        same = "the same model, prompts and judge; name one MODEL=FILE"
        raise UserError(f"{' and '.join(twice['file'])}: {same}")
    several = table.groupby(["side", "prompts"])["prompt_set"].transform("nunique") > 1
    table.loc[several, "prompts"] += " " + table["prompt_set"].str[:8]
    for name in ("prompt", "seed"):
        rows[name] = pd.factorize(rows[name])[0]
    return rows.join(table.astype("category"), on="result")


def verdicts(rows: pd.DataFrame, *, macro: bool = False) -> Verdicts:
    """What `orbench.stats.core` takes, with the column weight, if any. macro: categories alike."""
    refused, prompt, seed = (rows[name].to_numpy() for name in ("refused", "prompt", "seed"))
    category = pd.factorize(rows["category"])[0] if macro else None
    weight = rows["weight"].to_numpy() if "weight" in rows else None
    return Verdicts(refused, prompt, seed, category, weight)


def _results_in(source: Source, texts: int) -> Iterator[tuple[About, pd.DataFrame]]:
    """KEYS, ABOUT and the rows of each result in a file: one, or one per side."""
    path = source.path
    record = records.read_record(source.path)
    table = read_csv(path, ["prompt"])
    lost = records.failed_rows(path)
    records.check_whole(path, record)
    by_judge = "answer_category" in table.columns
    if not table.rows or not (by_judge or "is_rejected" in table.columns):
        needed = "rows with 'answer_category' (stage 5) or 'is_rejected' (stage 4)"
        raise UserError(f"{path} has no {needed}; its columns: {clean(', '.join(table.columns))}")
    about = _about(source, record, by_judge)
    scored = len(table.rows)
    tested = records.under_test(record).id
    frame = pd.DataFrame(
        _fields(row, f"{path}, row {n}", source.side, n <= scored)
        for n, row in enumerate(table.rows + lost, start=1)
    ).astype(dict.fromkeys(("refused", "direct", "indirect", "cut_off"), float))
    frame["other_model"] = [not is_same_model(tested, id_) for id_ in frame.pop("served_by")]
    kept = np.linspace(0, scored - 1, min(texts, scored), dtype=int)
    for name, read in TEXTS.items():
        frame[name] = pd.Series({n: read(table.rows[n]) for n in kept}, dtype=object)
    for side, part in frame.groupby("side", sort=False):
        of_side = {"side": str(side), "prompt_set": prompts.prompt_set_hash(part["prompt"])}
        yield about | of_side, part.drop(columns="side")


def _fields(row: words.Row, where: str, of_file: str, scored: bool) -> dict[str, Any]:
    """The columns of `load` that a row has itself, and side, served_by."""
    verdict = words.verdict_of(row, where) if scored else ""
    refused = words.VERDICTS.get(verdict, nan)
    prompt = prompts.prompt_id_of(row)
    judged = "answer_category" in row
    reason = row.get("finish_reason")
    return {
        "side": _side(row, of_file, where),
        "category": words.category_of(row),
        "id": prompt,
        "text": sys.intern(row["prompt"]),
        "prompt": prompt,
        "seed": prompts.seed_id_of(row) or prompt,
        "verdict": verdict,
        "refused": refused,
        "direct": verdict == "direct_refusal" if judged else nan,
        "indirect": verdict == "indirect_refusal" if judged else nan,
        "api": refused is True and words.refused_by_api(row),
        "cut_off": nan if reason is None else reason.lower() in CUT_OFF,
        "served_by": row.get("served_by", "").partition(" via ")[0],
    }


def _side(row: words.Row, of_file: str, where: str) -> str:
    """The side of a row. Raises UserError if it is not the file's, or not known."""
    found = words.side_of(row, where)
    side = found.name if found else of_file
    if not side or of_file not in ("", side):
        said = f"{where}: is_toxic is {row.get('is_toxic', '')!r}"
        raise UserError(f"{said}; files with both sides go to --merged, which needs it in each row")
    return side


def _about(source: Source, record: records.Record, by_judge: bool) -> About:
    """What all rows of a file share. Raises UserError if the model is not known."""
    path = source.path
    tested = records.under_test(record)
    asked = record
    if by_judge:  # the run that asked the model was stage 4's
        responses = _in(record, "input", "path")
        asked = records.read_record(path.parent / responses) if responses else {}
    model = source.model or tested.shown
    if not model:
        raise UserError(
            f"{path}: which model? There is no run record beside it; write MODEL={path}"
        )
    family = tested.family or family_of(model)
    doubt = next((text for name, value, text in DOUBTS if record.get(name) is value), "")
    if family in records.selectors(record):
        doubt = f"selected: {family} was among the families that chose the prompts"
    unknown = "" if record else "no run record: judge, settings and date are unknown"
    notes = [doubt, *map(clean, record.get("notes", [])), unknown]
    return {
        "model": model,
        "settings": tested.settings,
        "judge": _judge(record, by_judge),
        "prompts": _in(record, "source", "name") or Path(_in(asked, "input", "path") or path).stem,
        "family": family,
        "date": str(asked.get("end", ""))[:10],
        "file": str(path),
        "home": _in(record, "source", "repository") or str(path),
        "doubt": doubt,
        "notes": "; ".join(filter(None, notes)),
    }


def _judge(record: records.Record, by_judge: bool) -> str:
    """The rules, or a judge with its model; empty: unknown."""
    judge = _in(record, "parameters", "check_model")
    models = record.get("models", [])
    id_ = models[0]["id"] if models else ""
    judge = judge if judge.endswith(id_) else f"{judge} ({id_})"
    phrases = record.get("parameters", {}).get("refusal_phrases")
    own = f", own phrases {prompts.prompt_set_hash(phrases)[:8]}" if phrases else ""
    return (judge if by_judge else "stage 4 rules") + own


def _in(record: records.Record, part: str, name: str) -> str:
    """An entry of a part of the record as text; empty if it does not say."""
    return clean(str(record.get(part, {}).get(name) or ""))
