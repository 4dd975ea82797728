"""Result files of stages 4 and 5, with their failed rows and run records, into one table with a row
per response. Stage 5 (answer_category) tells direct from indirect refusals, stage 4 (is_rejected)
does not.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench.asking.models import family_of, is_same_model
from orbench.base import prompts, records, words
from orbench.base.messages import UserError, clean, counted
from orbench.base.tables import NO_NAME, read_csv, sha256_of
from orbench.stats.core import Verdicts

CUT_OFF = ("length", "max_tokens")  # finish_reason, in small letters, at the token limit
KEYS = ["model", "settings", "side", "prompt_set", "judge"]  # what makes a result
# What else its rows share. short: the model without its provider, if that is clear; ids: of the
# models that answered, as returned; certain: the share of the rules' verdicts that are; known:
# whether unscored rows are; home: the repository of its prompts, else its file; doubt: why it is
# neither ranked nor compared; unranked: why it is not ranked; cautions: stand in findings.
ABOUT = [
    *("short", "prompts", "family", "date", "ids", "certain", "known", "file", "home"),
    *("doubt", "unranked", "cautions", "notes"),
]
TEXTS = {
    "question": prompts.shown_question,
    "response": lambda row: row.get("response", ""),
    "reason": words.reason_of,
}
# Entry of a run record, its value, and what that makes of the result.
DOUBTS = (
    ("scripted", True, "scripted: measures nothing"),
    ("scripted_input", True, "scripted prompts"),
    ("complete", False, "partial: some rows have not been asked yet"),
)

ONLY_FAILED = "holds the rows without a result; give the results beside it"
CERTAIN = 0.8  # with fewer certain verdicts, the rules alone rank nobody

About = dict[str, Any]


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
    if model and path.match(f"*{records.FAILED}"):
        raise UserError(f"{path} {ONLY_FAILED}")
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
    table = _told_apart(pd.DataFrame(abouts))
    for name in ("prompt", "seed"):
        rows[name] = pd.factorize(rows[name])[0]
    rows = rows.join(table.drop(columns="template").astype("category"), on="result")
    sides = rows.groupby(["model", "prompt"], observed=True)["side"].nunique()
    for model, shared in (sides > 1).groupby("model", observed=True).sum().items():
        if shared:
            both = f"{counted(shared, 'prompt')} of {model} are on both sides"
            files = ", ".join(table.loc[table["model"] == model, "file"])
            how = "give safe prompts to --over_refusal and toxic ones to --toxic, and remove"
            raise UserError(f"{both}; {how} what is on the wrong side: {files}")
    return rows


def _told_apart(table: pd.DataFrame) -> pd.DataFrame:
    """A row per result, names made unique. Raises UserError for a result given twice."""
    several = table.groupby(["side", "prompts"])["prompt_set"].transform("nunique") > 1
    table.loc[several, "prompts"] += " " + table["prompt_set"].str[:8]
    several = table.groupby("judge")["template"].transform("nunique") > 1
    table.loc[several, "judge"] += ", prompt " + table["template"].str[:8]
    if len(twice := table[table.duplicated(KEYS, keep=False)]):
        same = "the same model, prompts and judge; remove one, or rename it with MODEL=FILE"
        raise UserError(f"{' and '.join(twice['file'])}: {same}")
    paths = table["file"].map(os.path.realpath)
    if len(twice := table[table.assign(file=paths).duplicated(["side", "file"])]):
        raise UserError(f"{twice['file'].iat[0]} is given twice")
    short = table["model"].str.rpartition("/")[2]
    models = table["model"].groupby(short).transform("nunique")
    table["short"] = short.where(models == 1, table["model"])
    known = table[table["ids"] != ""]
    of = [name for name in [*KEYS, "ids"] if name != "model"]
    first = known.groupby(of)["model"].transform("first")
    again = first[first != known["model"]]
    table.loc[again.index, "unranked"] = "the same model as " + again + ", by the returned ids"
    every = table[["doubt", "unranked", "cautions", "notes"]]
    return table.assign(notes=every.agg(lambda row: "; ".join(filter(None, row)), axis=1))


def verdicts(rows: pd.DataFrame, *, macro: bool = False) -> Verdicts:
    """What `orbench.stats.core` takes, with the column weight, if any. macro: categories alike."""
    refused, prompt, seed = (rows[name].to_numpy() for name in ("refused", "prompt", "seed"))
    category = pd.factorize(rows["category"])[0] if macro else None
    weight = rows["weight"].to_numpy() if "weight" in rows else None
    return Verdicts(refused, prompt, seed, category, weight)


def _results_in(source: Source, texts: int) -> Iterator[tuple[About, pd.DataFrame]]:
    """KEYS, ABOUT, template and the rows of each result in a file: one, or one per side."""
    path = source.path
    record = records.read_record(source.path)
    table = read_csv(path, ["prompt"])
    lost = records.failed_rows(path)
    records.check_whole(path, record)
    if "error_type" in table.columns:
        raise UserError(f"{path} {ONLY_FAILED}")
    by_judge = "answer_category" in table.columns
    if not table.rows or not (by_judge or "is_rejected" in table.columns):
        needed = "rows with 'answer_category' (stage 5) or 'is_rejected' (stage 4)"
        raise UserError(f"{path} has no {needed}; its columns: {clean(', '.join(table.columns))}")
    gone = bool(record.get("output", {}).get("failed")) and not lost  # removed since
    known = bool(record or lost) and not gone
    about = _about(source, record, by_judge) | {"known": known}
    scored = len(table.rows)
    tested = records.under_test(record).id
    frame = pd.DataFrame(
        _fields(row, f"{path}, row {n}", source.side, n <= scored)
        for n, row in enumerate(table.rows + lost, start=1)
    ).astype(dict.fromkeys(("refused", "direct", "indirect", "cut_off"), float))
    frame["other_model"] = [not is_same_model(tested, id_) for id_ in frame["served_by"]]
    kept = np.linspace(0, scored - 1, min(texts, scored), dtype=int)
    for name, read in TEXTS.items():
        frame[name] = pd.Series({n: read(table.rows[n]) for n in kept}, dtype=object)
    for side, part in frame.groupby("side", sort=False):
        own = _about_side(str(side), part, record, path)
        own["cautions"] = "; ".join(filter(None, [about["cautions"], own["cautions"]]))
        yield about | own, part.drop(columns=["side", "served_by"])


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
        needed = "files with both sides go to --merged, which needs is_toxic in each row"
        raise UserError(f"{said}; {needed}")
    return side


def _about(source: Source, record: records.Record, by_judge: bool) -> About:
    """What all rows of a file share. Raises UserError if the model is not known."""
    path = source.path
    tested = records.under_test(record)
    model = source.model or tested.shown
    if not model:
        raise UserError(
            f"{path}: unknown model, because there is no run record beside it; write MODEL={path}"
        )
    family = tested.family or family_of(model)
    doubt = next((text for name, value, text in DOUBTS if record.get(name) is value), "")
    if family in records.selectors(record):
        doubt = f"selected: {family} was among the families that chose the prompts"
    judges = [one["id"] for one in record.get("models", []) if by_judge]
    itself = bool(tested.id) and any(is_same_model(tested.id, id_) for id_ in judges)
    found = record.get("findings", {})
    certain = found.get("certain", nan) / (found.get("by_rules") or nan)
    unranked = ["judged by itself"] * itself
    if not judges and certain < CERTAIN:
        unranked.append(f"only {100 * certain:.0f} % of the rules' verdicts are certain")
    related = not itself and family != "" and family in map(family_of, judges)
    cautions = ["judged by its own family"] * related
    hashes = {"csv": sha256_of(path), "failed": records.failed_hash(path)}
    if record.get("output", hashes) != hashes:
        cautions.append(f"edited since stage {5 if by_judge else 4} wrote it")
    unknown = "" if record else "no run record: judge, settings, date and unscored rows are unknown"
    first, last = (_in(record, "under_test", end)[:10] for end in ("start", "end"))
    return {
        "model": model,
        "settings": tested.settings,
        "judge": _judge(record, by_judge),
        "family": family,
        "date": " to ".join(dict.fromkeys(filter(None, (first, last)))),
        "certain": certain,
        "file": str(path),
        "doubt": doubt,
        "unranked": "; ".join(unranked),
        "cautions": "; ".join(cautions),
        "notes": "; ".join(filter(None, [*map(clean, record.get("notes", [])), unknown])),
    }


def _about_side(side: str, part: pd.DataFrame, record: records.Record, path: Path) -> About:
    """What the rows of one side share. Raises UserError for a set of the other side."""
    source = record.get("source", {})
    name = _in(record, "source", "name")
    if source.get("side") not in (None, "", side):
        right = words.SIDES[source["side"]].prompts
        raise UserError(f"{path}: {name} holds {right}; give it to --{source['side']}")
    name = name or _in(record, "under_test", "prompts") or path.stem
    n = part["prompt"].nunique()
    if n < (every := source.get("rows") or 0):
        how = ", sampled proportionally by category" if source.get("sampled") else ""
        name += f" ({n:,} of {every:,}{how})"
    answered = part["served_by"][part["served_by"] != ""].value_counts()
    ids = sorted(map(clean, answered.index))
    versions = [f"{clean(id_)} ({counted(rows, 'row')})" for id_, rows in answered.items()]
    asked = records.under_test(record).id if part["other_model"].any() else ""
    return {
        "side": side,
        "prompt_set": prompts.prompt_set_hash(part["prompt"]),
        "home": _in(record, "source", "repository") or str(path),
        "template": _in(record, "settings", "prompt file"),
        "prompts": name,
        "ids": " ".join([*ids, asked] if ids else []),
        "cautions": f"answered by {', '.join(versions)}" if len(ids) > 1 else "",
    }


def _judge(record: records.Record, by_judge: bool) -> str:
    """The rules, or a judge with its model and what is not as usual; empty: unknown."""
    parameters = record.get("parameters", {})
    judge = _in(record, "parameters", "check_model")
    models = record.get("models", [])
    id_ = models[0]["id"] if models else ""
    judge = judge if judge.endswith(id_) else f"{judge} ({id_})"
    said = [judge if by_judge else "stage 4 rules", _in(record, "parameters", "judge_settings")]
    said += ["graded"] * (parameters.get("rubric") == "graded")
    if phrases := parameters.get("refusal_phrases"):
        said.append(f"own phrases {prompts.prompt_set_hash(phrases)[:8]}")
    return ", ".join(filter(None, said))


def _in(record: records.Record, part: str, name: str) -> str:
    """An entry of a part of the record as text; empty if it does not say."""
    return clean(str(record.get(part, {}).get(name) or ""))
