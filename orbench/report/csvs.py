"""The CSVs of a report, for programs."""

from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from typing import TypeVar

from orbench.base.tables import write_csv
from orbench.base.words import Row
from orbench.report.columns import (
    ASSOCIATIONS,
    BOARD,
    COMPARISONS,
    PUBLISHED,
    RATES,
    Column,
)
from orbench.report.measures import Report

T = TypeVar("T")

NAMES = ("results", "comparison", "associations", "leaderboard")


def csv_paths(folder: Path) -> list[Path]:
    """Return the paths of the CSVs."""
    return [folder / f"{name}.csv" for name in NAMES]


def write_csvs(folder: Path, report: Report) -> list[Path]:
    """Write the CSVs and return their paths. Raises OSError."""
    board = rows_of(BOARD, report.board) + rows_of(PUBLISHED, report.published)
    tables = (
        (names_of(RATES), rows_of(RATES, report.rates)),
        (names_of(COMPARISONS), rows_of(COMPARISONS, report.comparisons)),
        (names_of(ASSOCIATIONS), rows_of(ASSOCIATIONS, report.associations)),
        (names_of(BOARD), board),
    )
    paths = csv_paths(folder)
    for path, (names, rows) in zip(paths, tables, strict=True):
        write_csv(path, names, rows)
    return paths


def names_of(columns: Sequence[Column[T]]) -> list[str]:
    """Return the names of columns."""
    return [column.name for column in columns]


def rows_of(columns: Sequence[Column[T]], items: Iterable[T]) -> list[Row]:
    """Return the rows of a CSV."""
    return [{column.name: text_of(column.value(item)) for column in columns} for item in items]


def text_of(value: object) -> str:
    """Return a value for programs: 7 digits, and nothing for what was not measured."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if isnan(value) else f"{value:.7g}"
    return str(value)
