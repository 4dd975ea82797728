"""Evaluation results for models' repositories on the Hugging Face Hub
(huggingface.co/docs/hub/eval-results): rates, without prompts and responses.
"""

from collections import defaultdict
from pathlib import Path

from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from orbench.base.messages import counted, say
from orbench.base.prompts import text_id
from orbench.base.records import read_record
from orbench.base.tables import Paths, file_name_part, make_folder, write_yaml
from orbench.base.words import Json
from orbench.report.measures import Rate
from orbench.report.rates import overall
from orbench.report.sentences import notes_of, rate_line
from orbench.report.standings import Report


def write_evaluations(folder: Path, report: Report, link: str) -> Paths:
    """Write a file per model, settings and judge, and return the paths. link: to the results.

    Raises OSError and UserError.
    """
    files = defaultdict(list)
    for rate in overall(report.rates):
        result = rate.result
        record = read_record(Path(result.file))
        source = record.get("source", {})
        why = result.doubt
        if "repository" not in source or record.get("written_by"):  # rewrites are other prompts
            why = "its prompts are not from the Hub"
        if why:
            say(f"not for the Hub: {result.label}, {result.prompts}: {why}")
        elif rate.n:
            files[f"{result.label}_{result.judge}"].append(_evaluation(rate, source, link))
    paths = []
    for name, entries in files.items():
        path = folder / f"{file_name_part(name)}.yaml"
        if path in paths:  # of m_a, where one of m/a is
            path = path.with_stem(f"{path.stem}_{text_id(name)}")
        make_folder(folder)
        write_yaml(path, eval_result_entries_to_yaml(entries))
        paths.append(path)
    if paths:
        say(f"for the Hub: {counted(len(paths), 'file')} in {folder}")
    return paths


def _evaluation(rate: Rate, source: Json, link: str) -> EvalResultEntry:
    """Return a rate on a prompt set of the Hub. source: the set, as the record has it."""
    result = rate.result
    notes = [rate_line([rate]), f"prompts: {result.prompts}", f"judge: {result.judge}"]
    return EvalResultEntry(
        dataset_id=source["repository"],
        # As in the eval.yaml of build_dataset.py.
        task_id=source.get("config" if source.get("split") else "name", ""),
        dataset_revision=source.get("revision"),
        value=round(100 * rate.mean.rate, 2),
        date=max(result.days, default=None),
        source_url=link or None,
        notes="; ".join([*notes, *notes_of(rate)]),
    )
