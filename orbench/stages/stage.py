"""What a stage is: three pure methods between an input CSV and an output CSV.

`orbench.stages.engine` runs a stage; between the methods stands the answer log.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orbench.asking.models import Model
from orbench.asking.requests import Answer, Missing, Request
from orbench.base.messages import UserError
from orbench.base.records import FAILED, failed_rows, read_record, record_path
from orbench.base.tables import Table, beside, check_no_input
from orbench.base.words import Row


class Stage:
    """One stage script subclasses this; see the methods.

    name: the folder. asks: how often a request is sent until its answer can be read. panel: several
    judges, so that `rows` sees missing votes among the others. grows: see `more`.
    """

    name = ""
    asks = 1
    panel = False
    grows = False

    def __init__(
        self, args: Any, table: Table, models: Sequence[Model], csv: Path, columns: Sequence[str]
    ) -> None:
        """csv: the output, unless --output_path names another. columns: of it. Raises UserError."""
        self.args = args
        self.table = table
        self.models = list(models)
        self.columns = list(columns)
        self.output = output_path(args.output_path, csv)
        self.parts: dict[str, Path] = {}  # label -> CSV, with --merge_result=False
        self.prompt_file: Path | None = None
        self.parameters: dict[str, Any] = {}  # what the requests are made with
        self.reading: dict[str, Any] = {}  # how answers are read and counted, for the record
        self.under_test: dict[str, str] = {}  # the fields of records.UnderTest
        self.lost: list[Row] = []  # rows that the stage before has no result for
        self.notes: list[str] = []  # what a reader of the numbers must know
        self.finished = False  # the output is there, and nothing may be asked again

    def requests(self, row: Row) -> list[Request] | Missing:
        """What to ask about a row; Missing if it is never sent. Equal requests are sent once."""
        raise NotImplementedError

    def read(self, request: Request, answer: Answer) -> Any:
        """What one answer says; Missing if it cannot be read."""
        raise NotImplementedError

    def rows(self, row: Row, readings: list[Any]) -> list[Row] | Missing:
        """The output rows, from what the answers to the row's requests say."""
        raise NotImplementedError

    def again(self, request: Request, answer: Answer, missing: Missing) -> Request:
        """The request after an answer that cannot be read."""
        return request.again()

    def more(self, outcomes: Sequence[list[Row] | Missing]) -> bool:
        """Whether a stage that `grows` has added rows to its table that must be asked too.

        `rows` has been called for all rows so far, and will be called for all of them again.
        """
        return False

    def label(self, row: Row) -> str:
        """The part that an output row belongs to, a key of `parts`, if there are parts."""
        raise NotImplementedError

    def origin(self, row: Row) -> Row:
        """The input row that an output row came from, in the columns they share."""
        return row

    def scored(self, row: Row) -> None:
        """Called with each output row while it is written."""

    def unscored(self, row: Row) -> None:
        """Called with each input row that has no result."""

    def summary(self) -> list[str]:
        """The closing lines. Called after the last row, when the CSVs are written."""
        return []

    def findings(self) -> dict[str, Any]:
        """What the run record says of the results."""
        return {}

    @property
    def outputs(self) -> Mapping[str, Path]:
        """Label -> the CSV of the rows with that label; one under "" without parts."""
        return self.parts or {"": self.output}

    def beside(self, ending: str) -> Path:
        """A file that belongs to the output: `<output stem><ending>`."""
        return beside(self.output, ending)

    def split(self, names: Mapping[str, str]) -> None:
        """With --merge_result=False, write one CSV per label. names: label -> default file name; a
        given --output_path gets the label after its stem instead.
        """
        if not self.args.merge_result:
            if self.args.output_path:
                names = {label: f"{self.output.stem}_{label}.csv" for label in names}
            self.parts = {label: self.output.with_name(name) for label, name in names.items()}


def output_path(given: str | None, default: Path) -> Path:
    """Where the CSV goes. Raises UserError."""
    path = Path(given) if given else default
    if path.suffix != ".csv":
        raise UserError(f"{path} does not end in .csv; name a CSV file")
    if path.stem.endswith("_failed"):  # another run's failed rows, which would be lost
        raise UserError(f"{path}: names that end in _failed.csv are for rows without a result")
    return path.resolve() if path.is_symlink() else path  # write the link's target


def check_outputs(stage: Stage) -> None:
    """Raise UserError if a run would overwrite its own input or cannot write at all."""
    paths = [*stage.outputs.values(), stage.beside(FAILED)]
    paths += [stage.beside(".answers.jsonl"), *map(record_path, stage.outputs.values())]
    for path in paths:
        if os.path.isdir(path):
            raise UserError(f"{path} is a folder, but this run has to write a file there")
        check_no_input(path)


def empty_cell(row: Row, column: str) -> Missing | None:
    """Why a row with a blank cell is never sent; None for one with a text."""
    missing = Missing("empty_" + column, f"the {column} is empty")
    return None if row[column].strip() else missing


def sampled(table: Table, samples: int) -> Table:
    """The table with each row repeated `samples` times, numbered in the column `sample`."""
    if samples == 1:
        return table
    rows = [row | {"sample": str(n)} for row in table.rows for n in range(samples)]
    return Table(table.path, [*table.columns, "sample"], rows, table.source)


def lost_before(table: Table, samples: int) -> list[Row]:
    """The rows that stage 4 has no response for: in its results they stay unscored."""
    if read_record(table.path).get("stage") != "alignment_checker":
        return []
    return sampled(Table(table.path, [], failed_rows(table.path)), samples).rows


def output_columns(table: Table, added: Sequence[str]) -> list[str]:
    """The input's columns and the stage's. Raises UserError if one would be overwritten."""
    for column in added:
        if column in table.columns:
            raise UserError(f"{table.path} already has a column {column!r}; rename or drop it")
    return [*table.columns, *added]
