"""Reading the results of stages 4 and 5: one `Measurement` per model and side.

Stage 5 files (column `answer_category`) count direct and indirect refusals, stage 4 files
`is_rejected`. A result file is read as a stream and none of its texts is kept. Rows without a
verdict, those that stage 4 lost included, are counted as unscored; they never enter a rate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd  # type: ignore[import-untyped]

from orbench import record as run_record
from orbench.columns import (
    REFUSALS,
    SIDES,
    category_of,
    flag_in,
    refused_by_api,
    side_of,
    verdict_of,
)
from orbench.models import OTHER_FAMILY, family_of
from orbench.options import input_path
from orbench.table import PromptSet, Row, Table, prompt_id
from orbench.terminal import UserError, clean, counted


class Source(NamedTuple):
    """A result file as the user named it."""

    path: Path
    model: str  # empty: as the run record says
    side: str  # a key of SIDES; empty: a merged file, whose column is_toxic tells the sides apart


@dataclass(frozen=True, eq=False)
class Measurement:
    """One model on one side, read from one file.

    scored: the rows with a verdict, indexed by their position in the file, with the columns
    category, verdict (a key of VERDICTS), refused, api_refusals (refused by the API), rules (1 or
    0, what stage 4 found, where a file of stage 5 has it) and prompt (64 bits of its hash).
    unscored: category -> number of rows without a verdict.
    """

    table: Table
    side: str
    model: str
    family: str
    judge: str  # stage 5's --check_model; empty: the record does not say
    scripted: bool
    scored: pd.DataFrame
    unscored: "pd.Series[int]"
    unlisted: int  # more rows without a verdict, whose category is not known
    prompt_set: str  # the hash of all prompts, those without a verdict included
    partial: bool  # rows were not asked yet
    gaps: Sequence[str]  # what is known of missing rows beyond their number, in words
    merged: bool  # the file holds both sides, so the gaps are those of both

    @property
    def by_stage5(self) -> bool:
        """Whether stage 5 decided what is a refusal, and not the rules of stage 4."""
        return "answer_category" in self.table.columns

    @property
    def counted_by(self) -> str:
        """What decided which responses are refusals, in words."""
        return f"stage 5 {self.judge}".strip() if self.by_stage5 else "stage 4 rules"

    @property
    def notes(self) -> list[str]:
        """What holds for every number of this file, in words."""
        return [*(["scripted: measures nothing"] if self.scripted else []), *self.gaps]

    def rows(self, positions: Sequence[int]) -> Iterator[Row]:
        """The file's rows at these positions, in the order of the file."""
        wanted = set(positions)
        return (row for position, row in enumerate(self.table) if position in wanted)


def source_of(text: str, side: str) -> Source:
    """`FILE` or `MODEL=FILE`, as it stands on the command line. Raises UserError for no FILE."""
    model, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return Source(input_path(text), "", side)
    return Source(input_path(path), clean(model).strip(), side)


def measure(sources: Sequence[Source]) -> list[Measurement]:
    """Read the files. Models in the order given, one after the other on each side.

    Columns needed: prompt, and answer_category (stage 5) or is_rejected (stage 4); a merged file
    also is_toxic. Used where there: category, rejection_reason, answer_type_response, is_rejected.
    Raises UserError for a file that cannot be used and for a model given twice on a side.
    """
    found = [one for source in sources for one in _measurements(source)]
    seen: dict[tuple[str, str], Table] = {}
    for one in found:
        other = seen.setdefault((one.side, one.model), one.table)
        if other is not one.table:
            raise UserError(
                f"{one.model} is given twice among the {SIDES[one.side].prompts}: {other.path} and "
                f"{one.table.path}; give one of them another name with MODEL=FILE"
            )
    return found


def _measurements(source: Source) -> Iterator[Measurement]:
    (table, scored), record = _read(source), run_record.read(source.path)
    run_record.check_whole(source.path, record)
    tested = run_record.under_test(record)
    model = source.model or tested.shown
    if not model:
        raise UserError(
            f"{source.path} does not say which model it measured (no run record beside it); "
            f"write MODEL={source.path}"
        )
    missing = run_record.missing_rows(source.path)
    lost, unlisted = _lost(source, missing, set(scored["prompt"]))
    for side in SIDES:
        rows, without = scored[scored["side"] == side], lost[lost["side"] == side]
        unscored = without[without["missing"]].groupby("category")["times"].sum()
        if len(rows) or len(unscored):
            yield Measurement(
                table=table,
                side=side,
                model=model,
                family=tested.family or family_of(model) or OTHER_FAMILY.name,
                judge=_judge(record),
                scripted=record.get("scripted") is True,
                scored=rows.drop(columns="side").assign(prompt=rows["prompt"].map(_short_hash)),
                unscored=unscored,
                unlisted=unlisted if source.side else 0,
                prompt_set=_prompt_set([*rows["prompt"], *without["prompt"]]),
                partial=not missing.complete,
                gaps=_gaps(missing, 0 if source.side else unlisted),
                merged=not source.side,
            )


def _read(source: Source) -> tuple[Table, pd.DataFrame]:
    """The file, and its rows with a verdict: `Measurement.scored`, with their side and the whole
    `prompt_id`. The rows are taken while the file is checked, so that it is read once.
    """
    found = list[tuple[object, ...]]()

    def collect(row: Row, where: str) -> None:
        found.append(_scored(row, source, where))

    table = Table(source.path, ("prompt",), check=collect)
    if not found:
        raise UserError(f"{source.path} holds no result, only a header")
    names = ["side", "category", "verdict", "api_refusals", "rules", "prompt"]
    frame = pd.DataFrame(found, columns=names)
    frame["refused"] = frame["verdict"].isin(REFUSALS)
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
    rules = float(flag_in(row, "is_rejected", where)) if by_stage5 and by_rules else None
    return side, category_of(row, where), verdict, api, rules, prompt_id(row["prompt"])


def _lost(
    source: Source, missing: run_record.MissingRows, scored: set[bytes]
) -> tuple[pd.DataFrame, int]:
    """The rows without a verdict by side and category; and how many cannot be placed.

    missing: False for a prompt that has a verdict by now, having failed in an earlier run; with
    several samples of a prompt, another of them can be the one without.
    """
    found, unlisted = [], missing.unlisted
    where = f"{source.path}, a row without a verdict"
    for row in missing.rows:
        cells, id_ = row._asdict(), bytes.fromhex(row.prompt)
        is_missing = row.sampled or id_ not in scored
        if side := _placed(cells, source.side, where):
            found.append((side, category_of(cells, where), row.times, is_missing, id_))
        elif is_missing:
            unlisted += row.times
    names = ["side", "category", "times", "missing", "prompt"]
    return pd.DataFrame(found, columns=names).astype({"missing": bool}), unlisted


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


def _gaps(missing: run_record.MissingRows, of_either_side: int) -> list[str]:
    gaps = []
    if not missing.complete:
        left = counted(missing.not_asked, "row") if missing.not_asked else "some rows"
        gaps.append(f"partial: {left} not asked yet")
    if of_either_side:
        rows = counted(of_either_side, "row")
        gaps.append(f"{rows} without a verdict, side unknown: counted in no coverage")
    return gaps


def _judge(record: run_record.Record) -> str:
    """Stage 5's --check_model; empty where the record does not say."""
    parameters = record.get("parameters")
    judge = parameters.get("check_model") if isinstance(parameters, dict) else ""
    return clean(str(judge or ""))


def _prompt_set(ids: Sequence[bytes]) -> str:
    prompts = PromptSet()
    for id_ in ids:
        prompts.add_id(id_)
    return prompts.hexdigest()


def _short_hash(id_: bytes) -> int:
    return int.from_bytes(id_[:8], "big")
