"""What stands behind the rates of a report, as `toxicity`, `seed_pairs`, `drift` and `triggers`
return it.
"""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame  # type: ignore[import-untyped]

Entry = dict[str, Any]  # a row of a table, by column
Entries = list[Entry]
Frames = Mapping[str, DataFrame]  # by the names of their CSVs
Behind = tuple[dict[str, DataFrame], list[str]]  # by the names of their CSVs; lines to read


def who(entry: Entry) -> Entry:
    """Return what names a model in a frame. entry: of `leaderboard`."""
    return {name: entry[name] for name in ("model", "settings", "judge", "prompts")}


def named(model: str, settings: str) -> str:
    """Return a model with its settings, in one name that can stand in a list."""
    return f"{model} ({settings})" if settings else model


def joined(*texts: str, mark: str = "; ") -> str:
    """Join the texts that are not empty."""
    return mark.join(filter(None, texts))
