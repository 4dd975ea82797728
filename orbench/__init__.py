"""What the five stages of the over-refusal benchmark share."""

import os
import sys
from types import TracebackType


def _end_quietly(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """A Ctrl-C while the modules of a script are still being imported: status 130, no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(130)
    sys.__excepthook__(kind, error, trace)


if sys.excepthook is sys.__excepthook__:
    sys.excepthook = _end_quietly
