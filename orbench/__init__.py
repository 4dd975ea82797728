"""What the five stages of the over-refusal benchmark share.

Public is `classify` alone (docs/python.md). The packages, lowest first:

base      messages, words in CSVs, CSV files, run records
stats     intervals, tests, agreement
refusals  is this response a refusal
models    providers, requests, one request over HTTP
asking    what to ask, the answer log, live, batches, files
judging   judges and their verdicts
stages    what a stage is, and the engine that runs it
datasets  moderated prompts into datasets
report    result files into tables, pictures and a page
"""

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

__all__ = ["classify"]

if TYPE_CHECKING:
    from orbench.refusals.detect import Verdict


def classify(text: str) -> "Verdict":
    """Return whether a model's response is a refusal, as `kind`, `rule` and `certain`."""
    from orbench.refusals import detect

    return detect.classify(text)


def _end_quietly(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Ctrl-C while a script's modules are still being imported: status 130, no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(130)
    sys.__excepthook__(kind, error, trace)


# Only in a clone: a program that has installed the package has its own way to end.
_IN_CLONE = Path(__file__).parents[1].joinpath("measure.py").exists()
if _IN_CLONE and sys.excepthook is sys.__excepthook__:
    sys.excepthook = _end_quietly
