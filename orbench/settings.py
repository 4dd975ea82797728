"""What a result was made with: a run with other settings must not replace it without a word.

The settings are what is in a request's key (model, address, messages, parameters). The same ones
go on where the last run stopped, also over an input that grew or was edited. How answers are read
costs nothing and may change.
"""

import argparse
import csv
from collections.abc import Iterator
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

from orbench.answers import AnswerLog
from orbench.protocols import CHAT
from orbench.record import Record
from orbench.stage import Stage
from orbench.table import sha256_of
from orbench.terminal import UserError, counted, one_line

# Of a stage's parameters those that are in no request: how answers are read, or how many are asked.
READING = (
    "check_model",
    "classes",
    "controversial",
    "min_votes",
    "num_toxic_prompts",
    "partial",
    "refusal_phrases",
)
SHOWN = 40  # characters of a value


def settings_of(stage: Stage) -> Record:
    """What the requests of a run are made with, apart from its input: a name, and a text for it."""
    substitute = stage.parameters.get("substitute")  # asked only for a vote that is missing
    models = [model for model in stage.models if model.asked != substitute]
    found = {
        "stage": stage.name,
        "model": ", ".join(f"{model.id} at {model.address}" for model in models),
        "protocol": ", ".join(model.protocol for model in models if model.protocol != CHAT),
        "prompt file": sha256_of(stage.prompt_file)[:12] if stage.prompt_file else "",
    }
    names = (name for name in stage.parameters if name not in (*READING, "substitute"))
    return found | {name: str(_in_order(stage.parameters[name])) for name in names}


def _in_order(value: Any) -> Any:
    """A value with the members of its objects sorted, as they are for a request's key."""
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def differences(before: object, now: Record) -> Iterator[str]:
    """Settings that are not what they were. before: of a record or a log, if they are known."""
    if isinstance(before, dict):
        for name in dict.fromkeys(chain(before, now)):
            was, is_ = (str(each.get(name, "")) for each in (before, now))
            if was != is_:  # the whole of both; what is shown begins where they differ, if late
                same = sum(
                    1 for _ in takewhile(lambda two: two[0] == two[1], zip(was, is_, strict=False))
                )
                start = same - SHOWN // 4 if same >= SHOWN else 0
                said = [one_line("…" * (start > 0) + each[start:])[:SHOWN] for each in (was, is_)]
                yield f"{name} {said[0] or 'none'}, now {said[1] or 'none'}"


def check_replaced(stage: Stage, previous: Record, args: argparse.Namespace) -> None:
    """Raise UserError where a run would put other results in the place of those that there are.

    previous: the record of the last run with this output. --overwrite lets it.
    """
    counts = previous.get("counts")
    nothing = isinstance(counts, dict) and counts.get("written") == 0
    if args.overwrite or nothing or not any(path.exists() for path in stage.outputs.values()):
        return
    before = previous.get("settings")
    if not previous:
        before = _settings_in_log(stage)
        # Killed before it wrote its record, a run that needs no log has left its columns.
        there = filter(Path.exists, stage.outputs.values())
        foreign = [path for path in there if not _like(stage, path)]
        if before is None and foreign:
            raise UserError(
                f"{foreign[0]} is there and no result of this stage. Choose another "
                "--output_path, or replace it with --overwrite"
            )
    found = [*differences(before, settings_of(stage))]
    found += [*_other_rows(stage, previous, args)]
    if found:
        raise UserError(
            f"{stage.output} holds other results: {'; '.join(found)}. Choose another "
            "--output_path, or replace it with --overwrite"
        )


def _settings_in_log(stage: Stage) -> Record | None:
    """The last settings in the answer log; None where there is no answer of known ones."""
    path = stage.beside(".answers.jsonl")
    if not path.exists():
        return None
    log = AnswerLog(path, write=False)
    log.close()
    return dict(log.made_with) if log.made_with else None


def _like(stage: Stage, path: Path) -> bool:
    """Whether a file has the columns of a stage's output."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            return next(csv.reader(file), []) == list(stage.columns)
    except (OSError, csv.Error):
        return False


def _other_rows(stage: Stage, previous: Record, args: argparse.Namespace) -> Iterator[str]:
    """How the rows are others, or fewer by the flags, than those of the last run."""
    read, counts = (previous.get(name) for name in ("input", "counts"))
    if not (isinstance(read, dict) and isinstance(counts, dict)):
        return
    was, now = str(read.get("path", "")), stage.table.path.resolve()
    if stage.table.sha256 and was and read.get("sha256") != stage.table.sha256:
        before = Path(stage.output.parent, was).resolve()
        if before != now:
            yield f"input {before}, now {now}"
    limit, samples = getattr(args, "limit", None), _number(read.get("samples"))
    if limit is not None and stage.table.n < stage.table.in_file:  # else they are all there
        shuffle = read.get("shuffle", args.shuffle)
        if shuffle != args.shuffle:
            yield f"shuffle {shuffle}, now {args.shuffle}"
    there = _number(read.get("rows")) * samples - _number(counts.get("remaining"))
    rows = stage.n if limit is None else min(stage.n, limit * len(stage.repeats))
    if (limit is not None or len(stage.repeats) < samples) and rows < there:
        yield f"{counted(there, 'row')}, now {rows:,}"
    written = _number(counts.get("written"))
    if stage.wanted and stage.wanted < written:
        yield f"{counted(written, 'prompt')}, now {stage.wanted:,}"


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
