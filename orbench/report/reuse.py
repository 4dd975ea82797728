"""What the last run of plot_results.py left: does it still hold, and which files are its own?"""

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

from orbench.base import tables
from orbench.base.records import FAILED, Record, read_record, write_record

FLEETING = ("start", "end", "command", "counts", "versions")  # in records of a run without news
OWN_FOLDERS = (".", "figures", "eee")  # in the output folder


def state_of(args: argparse.Namespace, inputs: Sequence[Path]) -> str:
    """A hash of all that the files follow from: arguments, inputs and the suite's code."""
    lists = [value if isinstance(value, list) else [value] for value in vars(args).values()]
    named = [Path(str(value)) for values in lists for value in values]
    here = Path(__file__).parent
    code = sorted([*here.parent.rglob("*.py"), *here.glob("page.*")])
    beside = [tables.beside(path, FAILED) for path in inputs]
    paths = [path for path in (*inputs, *beside, *named, *code) if path.is_file()]
    records = [read_record(path) for path in inputs]
    kept = [{name: one[name] for name in one if name not in FLEETING} for one in records]
    found = (lists, kept, [tables.sha256_of(path) for path in paths])
    return hashlib.sha256(repr(found).encode()).hexdigest()


def files_of(main: Path, record: Record) -> list[Path]:
    """What a run that wrote `main` recorded as its own: plain names in OWN_FOLDERS."""
    names = [Path(str(name)) for name in record.get("files", [])]
    own = [name for name in names if str(name.parent) in OWN_FOLDERS and name.name != ".."]
    return [main.parent / name for name in own]


def finish(main: Path, state: str, before: Record) -> None:
    """Record this run's files, and remove those of the run before that it made alone."""
    for path in files_of(main, before):
        if path.resolve() not in tables.written:
            path.unlink(missing_ok=True)
    folder = main.parent.resolve()
    names = [str(p.relative_to(folder)) for p in tables.written if p.is_relative_to(folder)]
    write_record(main, read_record(main) | {"state": state, "files": sorted(names)})
