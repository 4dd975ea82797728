"""Result files of stages 4 and 5 into one table with a row per response.

Stage 5 (column answer_category) tells direct from indirect refusals, stage 4 (is_rejected) does
not. Unscored rows come from `<stem>_failed.csv`, what holds for a whole file from its run record.
"""

from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.asking.models import family_of, is_same_model
from orbench.base import prompts, words
from orbench.base import records as files
from orbench.base.messages import UserError, clean, counted
from orbench.base.tables import NO_NAME, Table, read_csv
from orbench.stats.core import Verdicts

CUT_OFF = ("length", "max_tokens")  # finish_reason, in small letters, at the token limit
UNKNOWN_JUDGE = "unknown"  # stage 5's, if no record names it
# What makes a result: its rows share these. Models are ranked if prompt_set and judge are the same.
KEYS = ["model", "settings", "side", "prompt_set", "judge"]
# What else the rows of a result share. home: the repository of its prompts, else its file; doubt:
# why it is neither ranked nor compared; selected: its family, if that chose the prompts.
ABOUT = ["prompts", "family", "asked_with", "date", "file", "home", "doubt", "selected", "notes"]
TEXTS = {
    "question": prompts.shown_question,
    "response": lambda row: row.get("response", ""),
    "reason": words.reason_of,
}

About = dict[str, str]


class Source(NamedTuple):
    """A result file as the user named it."""

    path: Path
    model: str  # empty: as the run record says
    side: str  # a key of SIDES; empty: the column is_toxic tells the sides apart


def sources_of(text: str, side: str) -> list[Source]:
    """The files that a word of the command line names: `FILE`, `MODEL=FILE` or a folder, whose
    files come as they were written; never files of failed rows. Raises UserError.
    """
    model, equals, name = text.partition("=")
    if not equals or Path(text).exists():
        model, name = "", text
    if not name:
        raise UserError(NO_NAME)
    path, model = Path(name), clean(model).strip()
    paths = sorted(path.rglob("*.csv"), key=lambda p: p.stat().st_mtime_ns)
    found = paths if path.is_dir() else [path]
    return [Source(path, model, side) for path in found if not path.match(f"*{files.FAILED}")]


def load(sources: Sequence[Source], texts: int = 0) -> pd.DataFrame:
    """One row per response, those of a result together, results in the order given.

    Columns: result (its number), KEYS, ABOUT; category; prompt, seed (numbers, the same for all
    files; the prompt is its own seed if none is known); verdict (a key of VERDICTS, empty:
    unscored); refused (1, 0, NaN: unscored); api (refused by the API itself), api_category; cut_off
    (at the token limit) and rules (refused by stage 4's rules): 1, 0, NaN: the file does not say;
    other_model (another one answered); TEXTS of about as many rows as `texts` says, else NaN.

    Raises UserError for a file that cannot be used, and for a result given twice.
    """
    if not sources:
        return pd.DataFrame(columns=["result", *KEYS, *ABOUT])
    parts, abouts = list[pd.DataFrame](), dict[tuple[str, ...], About]()
    for source in sources:
        for about, part in _results_in(source, texts // len(sources)):
            parts.append(part.assign(result=len(parts)))
            other = abouts.setdefault(tuple(about[name] for name in KEYS), about)
            if other is not about:
                two = f"{other['file']} and {about['file']}"
                raise UserError(f"{two}: the same model, prompts and judge; name one MODEL=FILE")
    rows, table = pd.concat(parts, ignore_index=True), pd.DataFrame(abouts.values())
    several = table.groupby(["side", "prompts"])["prompt_set"].transform("nunique") > 1
    hashes = table["prompt_set"].str[:8].where(several | (table["prompts"] == ""), "")
    table["prompts"] = (table["prompts"] + " " + hashes).str.strip()
    ids = pd.concat([rows["prompt"], rows["seed"].where(rows["seed"] != "", rows["prompt"])])
    rows["prompt"], rows["seed"] = np.split(pd.factorize(ids)[0], 2)
    rows = rows.astype(dict.fromkeys(("category", "verdict", "api_category"), "category"))
    return rows.join(table.astype("category"), on="result")


def verdicts(rows: pd.DataFrame, *, macro: bool = False) -> Verdicts:
    """What `orbench.stats.core` takes. macro: each category counts alike."""
    refused, prompt, seed = (rows[name].to_numpy() for name in ("refused", "prompt", "seed"))
    category = rows["category"].cat.codes.to_numpy() if macro else None
    return Verdicts(refused, prompt, seed, category)


def _results_in(source: Source, texts: int) -> Iterator[tuple[About, pd.DataFrame]]:
    """KEYS and ABOUT, and the rows, of each result in a file: one, or one per side."""
    record, table = files.read_record(source.path), read_csv(source.path, ["prompt"])
    files.check_whole(source.path, record)
    if not table.rows or not {"answer_category", "is_rejected"} & {*table.columns}:
        needed = "rows with 'answer_category' (stage 5) or 'is_rejected' (stage 4)"
        raise UserError(
            f"{source.path} has no {needed}; its columns: {clean(', '.join(table.columns))}"
        )
    about = _about(source, record, by_judge="answer_category" in table.columns)
    rows, tested = _rows_of(source, table, texts), files.under_test(record).id
    served = {one: one.partition(" via ")[0] for one in rows["served_by"].unique()}
    others = {one: bool(tested) and not is_same_model(tested, id_) for one, id_ in served.items()}
    rows["other_model"] = rows.pop("served_by").map(others)
    for side, part in rows.groupby("side", sort=False):
        doubt = _doubt(record, int(part.pop("not_asked").sum()))
        notes = "; ".join(filter(None, [doubt, about["notes"]]))
        of_side = {"side": str(side), "prompt_set": prompts.prompt_set_hash(part["prompt"])}
        yield {**about, **of_side, "doubt": doubt, "notes": notes}, part.drop(columns="side")


def _rows_of(source: Source, table: Table, texts: int) -> pd.DataFrame:
    """The columns of `load` that a file has itself, and side, served_by, not_asked."""
    scored, lost = table.rows, files.failed_rows(source.path)
    rows, where = [*scored, *lost], [f"{source.path}, row {n + 1}" for n in range(len(scored))]
    pairs = list(zip(scored, where, strict=True))
    where += [f"{source.path}, an unscored row"] * len(lost)
    found = {
        "side": [_side(row, source.side, at) for row, at in zip(rows, where, strict=True)],
        "category": list(map(words.category_of, rows)),
        "prompt": list(map(prompts.prompt_id_of, rows)),
        "seed": list(map(prompts.seed_id_of, rows)),
        "verdict": [*(words.verdict_of(row, at) for row, at in pairs), *([""] * len(lost))],
        "api_category": [clean(row.get("api_category", "")) for row in rows],
        "served_by": [row.get("served_by", "") for row in rows],
        "not_asked": [row.get("error_type") == files.NOT_ASKED for row in rows],
    }
    frame = pd.DataFrame(found).assign(cut_off=nan, rules=nan)
    frame["refused"] = frame["verdict"].map(words.VERDICTS).astype(float)
    frame["api"] = np.array(list(map(words.refused_by_api, rows))) & (frame["refused"] == 1)
    if "finish_reason" in table.columns:
        frame["cut_off"] = [row.get("finish_reason", "").lower() in CUT_OFF for row in rows]
    if {"answer_category", "is_rejected"} <= {*table.columns}:
        by_rules = [words.flag_in(row, "is_rejected", at) for row, at in pairs]
        frame["rules"] = pd.Series(by_rules, dtype=float)
    kept = np.unique(np.linspace(0, len(scored) - 1, min(texts, len(scored)), dtype=int))
    for name, read in TEXTS.items():
        frame[name] = pd.Series([read(scored[n]) for n in kept], kept, dtype=object)
    return frame


def _side(row: words.Row, of_file: str, where: str) -> str:
    """The side of a row. Raises UserError if it is not the file's, or not known."""
    found = words.side_of(row, where)
    if not (found or of_file):
        raise UserError(f"{where}: is_toxic is empty or missing, and --merged needs it")
    if found and of_file not in ("", found.name):
        said = f"{where}: is_toxic is {row['is_toxic']} in a file for --{of_file}"
        raise UserError(f"{said}; give the file to --merged, or remove the column")
    return found.name if found else of_file


# -- what the records say ----------------------------------------------------------------------


def _about(source: Source, record: files.Record, *, by_judge: bool) -> About:
    """What all rows of a file share. Raises UserError if the model is not known."""
    path, tested, asked = source.path, files.under_test(record), _record_of_stage4(source, record)
    model = source.model or tested.shown
    if not model:
        why = "does not say which model it measured (no run record beside it)"
        raise UserError(f"{path} {why}; write MODEL={path}")
    file = _in(record, "source", "file") or _in(asked, "input", "path")
    family = tested.family or family_of(model)
    selected = family if family in files.selectors(record) else ""
    notes = list(map(clean, record.get("notes", [])))
    notes += [] if record else ["no run record: judge, settings and date are unknown"]
    chosen = f"selected: {selected} was among the families that chose the prompts"
    notes += [chosen] if selected else []
    return {
        "model": model,
        "settings": tested.settings,
        "judge": _judge(record, by_judge),
        "prompts": _in(record, "source", "name") or Path(file).stem,
        "family": family,
        "asked_with": _asked_with(asked),
        "date": str(asked.get("end", ""))[:10],
        "file": str(path),
        "home": _in(record, "source", "repository") or str(path),
        "selected": selected,
        "notes": "; ".join(notes),
    }


def _judge(record: files.Record, by_judge: bool) -> str:
    """What decided: the rules, or a judge with the model behind an alias; the user's phrases."""
    judge, models = _in(record, "parameters", "check_model"), record.get("models")
    id_ = models[0]["id"] if models else ""
    judge = f"{judge} ({id_})" if not judge.endswith(id_) else judge or UNKNOWN_JUDGE
    phrases = record.get("parameters", {}).get("refusal_phrases")
    own = f", own phrases {prompts.prompt_set_hash(phrases)[:8]}" if phrases else ""
    return (judge if by_judge else "stage 4 rules") + own


def _doubt(record: files.Record, not_asked: int) -> str:
    if record.get("scripted"):
        return "scripted: measures nothing"
    if record.get("scripted_input"):
        return "scripted prompts"
    return f"partial: {counted(not_asked, 'row')} not asked yet" if not_asked else ""


def _record_of_stage4(source: Source, record: files.Record) -> files.Record:
    """The record of the run that asked the model; empty if it is not found."""
    if record.get("stage") != "response_checker":
        return record
    responses = _in(record, "input", "path")
    return files.read_record(source.path.parent / responses) if responses else {}


def _asked_with(record: files.Record) -> str:
    """How the model was asked: `temperature 0.0, max_tokens 1000`."""
    models, sent = record.get("models"), record.get("parameters", {})
    rejected = models[0].get("left_out_parameters", ()) if models else ()
    said = [f"{name} {value}" for name, value in sent.items() if name not in rejected]
    return clean(", ".join(word for word in said if not word.endswith((" ", " []"))))


def _in(record: files.Record, part: str, name: str) -> str:
    """An entry of a part of the record as text; empty if it does not say."""
    return clean(str(record.get(part, {}).get(name) or ""))
