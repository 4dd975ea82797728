"""What the last run of plot_results.py left: does it still hold, and which files are its own?"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from orbench.base import tables
from orbench.base.records import FAILED, Record, read_record, write_record

FLEETING = {"start", "end", "command", "counts", "versions"}  # in records of a run without news
OWN_FOLDERS = (".", "figures", "eee")  # in the output folder


def state_of(args: argparse.Namespace) -> str:
    """A hash of all that the files follow from: arguments, inputs and the suite's code."""
    given = {name: value for name, value in vars(args).items() if name != "output_dir"}
    values = [value if isinstance(value, list) else [value] for value in given.values()]
    words = [str(one) for some in values for one in some]
    named = [Path(part) for word in words for part in (word, word.partition("=")[2])]
    inputs = [file for path in named for file in [path, *sorted(path.rglob("*.csv"))] if path.name]
    here = Path(__file__).parent
    code = sorted([*here.parent.rglob("*.py"), *here.glob("page.*")])
    paths = [*inputs, *(tables.beside(path, FAILED) for path in inputs), *code]
    hashes = [tables.sha256_of(path) for path in paths if path.is_file()]
    records = json.dumps([read_record(path) for path in inputs])
    kept = json.loads(records, object_hook=_lasting)
    return hashlib.sha256(repr((given, hashes, kept)).encode()).hexdigest()


def _lasting(part: Record) -> Record:
    return {name: value for name, value in part.items() if name not in FLEETING}


def holds(output: Path, state: str, last: Record) -> bool:
    """Whether a run in this state would write what the last one did."""
    return last.get("state") == state and all(path.is_file() for path in files_of(output, last))


def files_of(output: Path, record: Record) -> Iterator[Path]:
    """What a run recorded as its own: plain names in OWN_FOLDERS."""
    for name in map(Path, record.get("files", [])):
        if str(name.parent) in OWN_FOLDERS and name.name != "..":
            yield output.parent / name


def finish(output: Path, state: str, last: Record) -> None:
    """Record this run's files, and remove those of the last run that it made alone."""
    for path in files_of(output, last):
        if path.resolve() not in tables.written:
            path.unlink(missing_ok=True)
    folder = output.parent.resolve()
    names = [str(p.relative_to(folder)) for p in tables.written if p.is_relative_to(folder)]
    write_record(output, read_record(output) | {"state": state, "files": sorted(names)})
