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

TYPE_CHECKING = False  # typing takes a while to import
if TYPE_CHECKING:
    from types import TracebackType

    from orbench.refusals.detect import Verdict


def _end(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """Ctrl-C while a script's modules are still being imported: one line, and status 130."""
    if KeyboardInterrupt in (kind, type(error.__cause__)):  # a class being made wraps it
        os.write(2, b"interrupted; run the same command to resume\n")
        os._exit(130)
    sys.__excepthook__(kind, error, trace)


# Only in a clone: a program that has installed the package has its own way to end.
_IN_CLONE = os.path.exists(f"{os.path.dirname(__file__)}/../measure.py")
if _IN_CLONE and sys.excepthook is sys.__excepthook__:
    sys.excepthook = _end
    # A finalizer must not swallow Ctrl-C.
    sys.unraisablehook = lambda event: _end(*event[:3])  # type: ignore[index]

__all__ = ["classify"]


def classify(text: str) -> "Verdict":
    """Return whether a model's response is a refusal, as `kind`, `rule` and `certain`.

    Raises TypeError for anything but a str.
    """
    from orbench.refusals import detect

    if not isinstance(text, str):
        raise TypeError("classify takes a response as a str")
    return detect.classify(text)
