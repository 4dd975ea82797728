"""The run record: `<output stem>.run.json` beside each CSV, enough to say how a number came
about.
"""

import json
from pathlib import Path
from typing import Any

from orbench.table import write_text

Record = dict[str, Any]


def path_of(csv: Path) -> Path:
    """The record of a CSV."""
    return csv.with_name(csv.stem + ".run.json")


def read(csv: Path) -> Record:
    """The record beside a CSV; empty where there is none that can be read."""
    try:
        record = json.loads(path_of(csv).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def write(csv: Path, record: Record) -> None:
    """Write the record beside its CSV. Raises OSError."""
    write_text(path_of(csv), json.dumps(record, indent=2) + "\n")
