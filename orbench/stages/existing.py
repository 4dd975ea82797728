"""What stands where a run writes: an earlier run's results, or files that are not the suite's."""

import json
from operator import itemgetter
from pathlib import Path

from orbench.base.messages import UserError, counted, one_line
from orbench.base.records import FAILED, FAILED_COLUMNS, read_record, record_path
from orbench.base.secrets import masked
from orbench.base.tables import beside, check_outputs, read_csv
from orbench.base.words import Texts, Words
from orbench.stages.stage import Stage

NOT_OURS = "; this suite did not write it: move it away, or choose another --output_path"
# What stage 4 reads in an answer: with other phrases or rules, it is the same row.
VERDICT = ("is_rejected", "rejection_reason", "refused_by")
OUTPUT_FLAGS = {"measure.py": "--output_dir (make: RESULTS)"}  # of programs that run stages


def check_paths(stage: Stage) -> None:
    """Raise UserError if a run would overwrite an input or a file that is not the suite's, or
    cannot write at all.
    """
    failed = stage.beside(FAILED)
    paths = [*stage.outputs.values(), failed, stage.beside(".answers.jsonl")]
    paths += map(record_path, stage.outputs.values())
    for path in paths:
        if path.is_dir():
            raise UserError(f"{path} is a folder, but this run has to write a file there")
    file = stage.table.file
    if file.name:  # stage 1 has none, nor has a prompt set
        check_outputs(paths, [file, beside(file, FAILED)])
    if failed.is_file():
        read_csv(failed, FAILED_COLUMNS, hint=NOT_OURS)


def settings_of(stage: Stage) -> Texts:
    """Return what the requests of a run are made with, its input aside: name -> text."""
    models = [f"{model.id} at {model.address}" for model in stage.models]
    settings = {"stage": stage.name, "model": ", ".join(models), "prompt file": stage.prompt_file}
    for name, value in stage.parameters.items():
        settings[name] = json.dumps(value, sort_keys=True)
    if new := vars(stage.args).get("new_category"):
        settings["new category"] = json.dumps(str(new))
    return settings


def check_existing(stage: Stage) -> None:
    """Raise UserError if this run, without --overwrite, would replace results that were made with
    other settings, or hold rows that the input does not have.
    """
    path = next(filter(Path.is_file, stage.outputs.values()), None)
    if stage.args.overwrite or not path:
        return
    differences = _differences(stage, path)
    if not differences and (others := _of_other_rows(stage)):
        differences = [f"{path} holds {counted(others, 'row')} that this input does not have"]
    if differences:
        flag = OUTPUT_FLAGS.get(stage.args.command[0], "--output_path")
        raise UserError(
            f"existing results are kept: {'; '.join(differences)}. "
            f"Choose another {flag} or pass --overwrite"
        )


def _differences(stage: Stage, earlier: Path) -> Words:
    """Return how the settings of earlier results differ from those of this run, in words."""
    before = read_record(earlier).get("settings")
    if before is None:
        return [f"{earlier} is not a result of this stage"]
    now = settings_of(stage)
    differences = []
    for name in before | now:
        was = str(before.get(name))
        value = masked(str(now.get(name)))  # as it is recorded
        if was != value:
            differences.append(f"{name} was {one_line(was)}, now {one_line(value)}")
    return differences


def _of_other_rows(stage: Stage) -> int:
    """Return how many rows of existing results come from no row of this input."""
    rows = [*stage.written()]
    shared = set(stage.table.columns).intersection(*rows[:1]).difference(VERDICT)
    if not shared:
        return 0
    cells_of = itemgetter(*shared)
    known = set(map(cells_of, stage.table.rows))
    return sum(cells_of(stage.origin(row)) not in known for row in rows)
