"""Reading the results of stages 4 and 5: one `Measurement` per model and side.

Stage 5 files (column `answer_category`) count direct and indirect refusals, stage 4 files
`is_rejected`. A result file is read as a stream and none of its texts is kept. Rows without a
verdict, those that stage 4 lost included, are counted as unscored; they never enter a rate.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from orbench import record as run_record
from orbench.clustered import Prompts, by_prompt
from orbench.columns import (
    CONVENTIONS,
    INDIRECT,
    NO_INDIRECT,
    REFUSALS,
    SIDES,
    category_of,
    flag_in,
    refused_by_api,
    side_of,
    verdict_of,
)
from orbench.conversation import SYSTEM_PROMPT
from orbench.dataset.audit import AUDIT_BYTES
from orbench.models import ALIASES, OTHER_FAMILY, family_of, is_same_model
from orbench.options import input_path
from orbench.rates import CUT_OFF
from orbench.table import PromptSet, Row, Table, prompt_id, prompt_id_of, seed_id_of
from orbench.terminal import UserError, clean, counted

# Prompts of which nothing is known are numbered from 0 to here, which no hash of a prompt is.
UNKNOWN = 2**32
NO_RESULTS = (run_record.FAILED, ".partial.csv")  # what else a run leaves
Labels = Mapping[bytes, float]  # `prompt_id` -> 1 or 0, as people say


class People(NamedTuple):
    """What people said of responses and of prompts."""

    refused: Labels  # by `response_id`
    toxic: Labels  # by the first bytes of `prompt_id`, as many as an audit sheet shows

    def of(self, row: Row) -> tuple[float, float]:
        """Refused, toxic: 1 or 0; NaN where they said nothing."""
        refused = toxic = nan
        if self.refused:
            refused = self.refused.get(response_id(row["prompt"], row.get("response", "")), nan)
        if self.toxic:
            toxic = self.toxic.get(prompt_id_of(row)[:AUDIT_BYTES], nan)
        return refused, toxic


class Source(NamedTuple):
    """A result file as the user named it."""

    path: Path
    model: str  # empty: as the run record says
    side: str  # a key of SIDES; empty: a merged file, whose column is_toxic tells the sides apart


@dataclass(frozen=True, eq=False)
class Measurement:
    """One model on one side, read from one file; under one of its system prompts, which `model`
    then names behind a comma.

    scored: the rows with a verdict, indexed by their position in the file, with the columns
    category, verdict (a key of VERDICTS), refused, direct, indirect, api_refusals (refused by the
    API), api_category (that the API named), other_model (answered by another model than the one
    asked), by_judge (as refused, NaN for what the API refused), cut_off (at the token limit; NaN
    where the file does not say), rules (1 or 0, what stage 4 found, where a file of stage 5 has
    it), people (1 or 0, refused in the eyes of people, where labelled), toxic (1 or 0, the prompt
    in their eyes, where labelled), prompt and seed (64 bits of their hash; without a seed that of
    the prompt).
    missing: the rows without a verdict: category, times (how many rows), prompt and seed.
    """

    table: Table
    side: str
    model: str  # of this name there is no other on this side, see `_told_apart`
    tested: str  # the model alone, under its system prompt
    family: str
    source: str  # the set of prompts, as a named set or its file is called; empty: not known
    repository: str  # of a named set
    settings: str  # how the model was asked, in words; empty: the record does not say
    date: str  # the day of the last response, ISO 8601; empty: likewise
    judge: str  # stage 5's --check_model; empty: the record does not say
    two_classes: bool  # the judge tells refusals, but no direct ones from indirect ones
    judge_is: str  # the model behind an alias that points elsewhere than ours; else empty
    phrases: str  # a mark of the user's own refusal phrases; empty: none
    convention: str  # how partial responses count, a key of CONVENTIONS; empty: likewise
    scripted: bool
    scripted_input: bool  # the prompts are the scripted model's
    scored: pd.DataFrame
    missing: pd.DataFrame
    unlisted: int  # more rows without a verdict, whose prompt and category are not known
    prompt_set: str  # the hash of all prompts, those without a verdict included
    partial: bool  # rows were not asked yet
    gaps: Sequence[str]  # what is known of missing rows beyond their number, in words
    merged: bool  # the file holds both sides, or several system prompts: the gaps are those of all
    selectors: Sequence[str]  # the families whose refusals chose these prompts

    @property
    def by_stage5(self) -> bool:
        """Whether stage 5 decided what is a refusal, and not the rules of stage 4."""
        return "answer_category" in self.table.columns

    @property
    def counted_by(self) -> str:
        """What decided which responses are refusals, in words."""
        what = f"stage 5 {self.judge}".strip() if self.by_stage5 else "stage 4 rules"
        what += f" ({self.judge_is})" if self.judge_is else ""
        what += f", own phrases {self.phrases}" if self.phrases else ""
        as_refusals = CONVENTIONS.get(self.convention, False)
        return f"{what}, partial responses as refusals" if as_refusals else what

    @property
    def notes(self) -> list[str]:
        """What holds for every number of this file, in words."""
        notes = ["scripted: measures nothing"] if self.scripted else []
        if self.two_classes:
            notes.append(NO_INDIRECT)
        notes += ["scripted prompts"] if self.scripted_input else []
        if self.selected_itself:
            notes.append(f"selected: {self.family} was among the families that chose the prompts")
        return [*notes, *self.gaps]

    @property
    def selected_itself(self) -> bool:
        """Whether a model of this family was among those whose refusals chose the prompts."""
        return self.family in self.selectors

    def prompts(self, column: str = "refused", category: str = "") -> Prompts:
        """Each prompt with its rows, those without a verdict included.

        column: of `scored`, what counts as refused; NaN is left out of a rate. category: empty for
        all; then each unlisted row is a prompt of its own.
        """
        scored, missing = self.scored, self.missing
        if category:
            scored, missing = (t[t["category"] == category] for t in (scored, missing))
        lost = missing.loc[missing.index.repeat(missing["times"])]
        # Those of two models are the same numbers: perhaps they are the same prompts.
        unknown = np.arange(0 if category else self.unlisted, dtype=np.uint64)
        prompt, seed = (
            np.concatenate([scored[name].to_numpy(), lost[name].to_numpy(), unknown])
            for name in ("prompt", "seed")
        )
        without = np.full(len(lost) + len(unknown), nan)
        refused = np.concatenate([scored[column].to_numpy(float), without])
        return by_prompt(prompt, refused, seed)

    def rows(self, positions: Sequence[int]) -> Iterator[Row]:
        """The file's rows at these positions, in the order of the file."""
        wanted = set(positions)
        return (row for position, row in enumerate(self.table) if position in wanted)


def sources_of(text: str, side: str) -> list[Source]:
    """`FILE`, `MODEL=FILE` or a folder, as it stands on the command line; of a folder all results
    below it, the last one written last. Raises UserError where there is none.
    """
    model, equals, path = text.partition("=")
    if text and Path(text).is_dir():
        found = [path for path in Path(text).rglob("*.csv") if not path.name.endswith(NO_RESULTS)]
        if not found:
            raise UserError(f"{text} holds no results")
        return [Source(path, "", side) for path in sorted(found, key=_last_written)]
    if not equals or Path(text).exists():
        return [Source(input_path(text), "", side)]
    return [Source(input_path(path), clean(model).strip(), side)]


def _last_written(path: Path) -> tuple[int, Path]:
    return path.stat().st_mtime_ns, path


def measure(
    sources: Sequence[Source], labels: Labels | None = None, audited: Labels | None = None
) -> list[Measurement]:
    """Read the files. Models in the order given, each side and system prompt of its own.

    Columns needed: prompt, and answer_category (stage 5) or is_rejected (stage 4); a merged file
    also is_toxic. Used where there: category, rejection_reason, answer_type_response, is_rejected,
    finish_reason, toxic_seed or seed_id, messages, system_prompt_name, response (with labels).
    labels: `response_id` -> refused; audited: `prompt_id`, its first bytes -> toxic. Raises
    UserError for a file that cannot be used and for a model given twice on a side with the same
    prompts and judge.
    """
    people = People(labels or {}, audited or {})
    found = [one for source in sources for one in _measurements(source, people)]
    alike = defaultdict[tuple[str, str], list[Measurement]](list)
    for one in found:
        others = alike[one.side, one.model]
        for other in others:
            if (other.prompt_set, other.counted_by) == (one.prompt_set, one.counted_by):
                raise UserError(
                    f"{one.model} is given twice among the {SIDES[one.side].prompts}: "
                    f"{other.table.path} and {one.table.path}; give one of them another name with "
                    "MODEL=FILE"
                )
        others.append(one)
    return [replace(one, model=_told_apart(one, alike[one.side, one.model])) for one in found]


def _told_apart(one: Measurement, alike: Sequence[Measurement]) -> str:
    """The model's name, with what is particular to this one among the measurements of the model:
    `gpt-4o (xstest, keyword)`.
    """
    sources, sets, judges = (
        {getattr(other, name) for other in alike} for name in ("source", "prompt_set", "counted_by")
    )
    said = [one.source] if len(sources) > 1 else []
    said += [one.prompt_set[:8]] if len(sets) > len(sources) else []
    said += [one.counted_by.removeprefix("stage 5 ")] if len(judges) > 1 else []
    return f"{one.model} ({', '.join(said)})" if said else one.model


def toxic_side_of(safe: Measurement, measurements: Sequence[Measurement]) -> Measurement | None:
    """The measurement on toxic prompts that makes one score with this one on safe prompts.

    Of the same model by the same judge: of the same file, else of the same repository, else the
    only one there is.
    """
    those = [
        one
        for one in measurements
        if one.side == "toxic" and (one.tested, one.counted_by) == (safe.tested, safe.counted_by)
    ]
    same_file = [one for one in those if one.table is safe.table]
    same_home = [one for one in those if one.repository == safe.repository != ""]
    return next((ones[0] for ones in (same_file, same_home, those) if len(ones) == 1), None)


def response_id(prompt: str, response: str) -> bytes:
    """16 bytes that stand for a response to a prompt."""
    return prompt_id(f"{len(prompt)} {prompt}{response}")


def _measurements(source: Source, people: People) -> Iterator[Measurement]:
    record = run_record.read(source.path)
    tested, of_stage4 = run_record.under_test(record), _of_stage4(source.path, record)
    table, scored = _read(source, people, tested.id)
    run_record.check_whole(source.path, record)
    model = _model_of(source, tested)
    missing = run_record.missing_rows(source.path)
    known = set(zip(scored["under"], scored["prompt"], strict=True))
    lost, unlisted = _lost(source, missing, known)
    units = list(dict.fromkeys([*scored["under"], *lost["under"]]))
    placed = bool(source.side) and len(units) == 1
    unknown = "side" if len(units) == 1 else "system prompt"
    for under, side in product(units, SIDES):
        rows, without = (t[(t["under"] == under) & (t["side"] == side)] for t in (scored, lost))
        missing_here, unit = without[without["missing"]], ", ".join(filter(None, [model, under]))
        if len(rows) or len(missing_here):
            yield Measurement(
                table=table,
                side=side,
                model=unit,
                tested=unit,
                source=_source_name(record, of_stage4),
                repository=_text(record, "source", "repository"),
                settings=_settings(of_stage4, under),
                date=clean(str(of_stage4.get("end") or ""))[:10],
                family=tested.family or family_of(model) or OTHER_FAMILY.name,
                judge=_text(record, "parameters", "check_model"),
                two_classes=INDIRECT not in (_text(record, "parameters", "classes") or INDIRECT),
                judge_is=_moved(record) if _text(record, "parameters", "check_model") else "",
                phrases=_text(record, "parameters", "refusal_phrases"),
                convention=_text(record, "parameters", "partial"),
                scripted=record.get("scripted") is True,
                scripted_input=record.get("scripted_input") is True,
                scored=_hashed(rows.drop(columns=["side", "under"])),
                missing=_hashed(missing_here.drop(columns=["side", "under", "missing"])),
                unlisted=unlisted if placed else 0,
                prompt_set=_prompt_set([*rows["prompt"], *without["prompt"]]),
                partial=not missing.complete,
                gaps=_gaps(missing, 0 if placed else unlisted, unknown),
                merged=not placed,
                selectors=run_record.selectors(record),
            )


def _moved(record: run_record.Record) -> str:
    """The models behind aliases that the user has pointed elsewhere, as a record names them."""
    models = record.get("models")
    pairs = [
        (str(one.get("asked")), str(one.get("id")))
        for one in (models if isinstance(models, list) else [])
        if isinstance(one, dict)
    ]
    moved = [id_ for asked, id_ in pairs if not ALIASES.get(asked, id_).endswith(id_)]
    return ", ".join(map(clean, moved))


def _model_of(source: Source, tested: run_record.UnderTest) -> str:
    """The name of the model that a file is of. Raises UserError where none is known."""
    if model := source.model or tested.shown:
        return model
    raise UserError(
        f"{source.path} does not say which model it measured (no run record beside it); "
        f"write MODEL={source.path}"
    )


def _read(source: Source, people: People, asked: str) -> tuple[Table, pd.DataFrame]:
    """The file, and its rows with a verdict: `Measurement.scored`, with their side and the whole
    `prompt_id`. The rows are taken while the file is checked, so that it is read once.
    """
    found = list[tuple[object, ...]]()

    def collect(row: Row, where: str) -> None:
        answered = row.get("served_by", "").partition(" via ")[0]
        other = bool(asked) and not is_same_model(asked, answered)
        api = clean(row.get("api_category", ""))
        found.append((*_scored(row, source, where), other, api, *people.of(row)))

    table = Table(source.path, ("prompt",), check=collect)
    if not found:
        raise UserError(f"{source.path} holds no result, only a header")
    names = ["side", "category", "verdict", "api_refusals", "cut_off", "rules", "prompt", "seed"]
    names += ["under", "other_model", "api_category", "people", "toxic"]
    frame = pd.DataFrame(found, columns=names)
    frame["refused"] = frame["verdict"].isin(REFUSALS)
    frame["by_judge"] = frame["refused"].astype(float).mask(frame["api_refusals"])
    for kind in ("direct", "indirect"):
        frame[kind] = frame["verdict"] == f"{kind}_refusal"
    return table, frame.astype({"side": "category", "category": "category", "verdict": "category"})


def _scored(row: Row, source: Source, where: str) -> tuple[object, ...]:
    by_stage5, by_rules = "answer_category" in row, "is_rejected" in row
    if not (by_stage5 or by_rules):
        raise UserError(
            f"{source.path} has no column 'answer_category' (stage 5) or 'is_rejected' (stage 4); "
            f"it has: {clean(', '.join(row))}"
        )
    side, verdict = _placed(row, source.side, where), verdict_of(row, where)
    if not side:
        raise UserError(f"{where}: is_toxic is not given, and --merged needs it")
    api = verdict in REFUSALS and refused_by_api(row)
    rules = float(flag_in(row, "is_rejected", where)) if by_stage5 and by_rules else nan
    finish = row.get("finish_reason")
    cut_off = nan if finish is None else float(finish.lower() in CUT_OFF)
    ids = prompt_id_of(row), seed_id_of(row), clean(row.get(SYSTEM_PROMPT, ""))
    return side, category_of(row, where), verdict, api, cut_off, rules, *ids


def _lost(
    source: Source, missing: run_record.MissingRows, scored: set[tuple[str, bytes]]
) -> tuple[pd.DataFrame, int]:
    """The rows without a verdict by side and category; and how many cannot be placed.

    missing: False for a prompt that has a verdict by now, having failed in an earlier run; with
    several samples of a prompt, another of them can be the one without.
    """
    found, unlisted = [], missing.unlisted
    where = f"{source.path}, a row without a verdict"
    for row in missing.rows:
        cells, id_, under = row._asdict(), bytes.fromhex(row.prompt), clean(row.system_prompt)
        is_missing = row.sampled or (under, id_) not in scored
        if side := _placed(cells, source.side, where):
            about = side, category_of(cells, where), row.times, is_missing, id_, row.seed, under
            found.append(about)
        elif is_missing:
            unlisted += row.times
    names = ["side", "category", "times", "missing", "prompt", "seed", "under"]
    return pd.DataFrame(found, columns=names).astype({"missing": bool, "times": int}), unlisted


def _placed(row: Row, side: str, where: str) -> str:
    """The side on which a row counts; empty where that is not known.

    Raises UserError for a row of the other side than the file's.
    """
    found = side_of(row, where)
    if side and found and found.name != side:
        raise UserError(
            f"{where}: is_toxic is {row['is_toxic']} in a file for --{side}; give the file to "
            "--merged to tell them apart, or remove the column"
        )
    return side or (found.name if found else "")


def _gaps(missing: run_record.MissingRows, unplaced: int, what: str) -> list[str]:
    gaps = []
    if not missing.complete:
        left = counted(missing.not_asked, "row") if missing.not_asked else "some rows"
        gaps.append(f"partial: {left} not asked yet")
    if unplaced:
        rows = counted(unplaced, "row")
        gaps.append(f"{rows} without a verdict, {what} unknown: counted in no coverage")
    return gaps


def _of_stage4(path: Path, record: run_record.Record) -> run_record.Record:
    """The record of the run that asked the model; empty where it is not found."""
    if record.get("stage") != "response_checker":
        return record
    responses = _text(record, "input", "path")
    return run_record.read(path.parent / responses) if responses else {}


def _source_name(record: run_record.Record, of_stage4: run_record.Record) -> str:
    """A named set's name, else that of the file with the prompts."""
    return _text(record, "source", "name") or Path(_text(of_stage4, "input", "path")).stem


def _settings(of_stage4: run_record.Record, under: str) -> str:
    """`temperature 0, max_tokens 1000, no system prompt`, without what the model rejected."""
    rejected = str(of_stage4.get("dropped_parameters"))
    said = {name: _text(of_stage4, "parameters", name) for name in ("temperature", "max_tokens")}
    if not any(said.values()):
        return ""
    among = (of_stage4["parameters"], "system_prompts", under)
    system = _text(*among) if under else _text(of_stage4, "parameters", "system_prompt")
    kept = [
        f"{name} {value.removesuffix('.0')}"
        for name, value in said.items()
        if value and name not in rejected
    ]
    return ", ".join([*kept, f"system prompt: {system}" if system else "no system prompt"])


def _text(record: run_record.Record, part: str, name: str) -> str:
    """An entry of a part of the record, as text; empty where it does not say."""
    entries = record.get(part)
    found = entries.get(name) if isinstance(entries, dict) else None
    return "" if found is None else clean(str(found))


def _prompt_set(ids: Sequence[bytes]) -> str:
    prompts = PromptSet()
    for id_ in ids:
        prompts.add_id(id_)
    return prompts.hexdigest()


def _hashed(rows: pd.DataFrame) -> pd.DataFrame:
    """prompt and seed as 64 bits; the prompt is its own seed where none is known."""
    ids = list(zip(rows["prompt"], rows["seed"], strict=True))
    prompt = np.array([_short_hash(id_) for id_, _ in ids], dtype=np.uint64)
    seeds = (prompt_id(seed) if seed else id_ for id_, seed in ids)
    seed = np.array(list(map(_short_hash, seeds)), dtype=np.uint64)
    return rows.assign(prompt=prompt, seed=seed)


def _short_hash(id_: bytes) -> int:
    return int.from_bytes(id_[:8], "big")
