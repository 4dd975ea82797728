"""What a stage is: three methods between an input CSV and an output CSV. They change nothing.

`orbench.stages.runner` runs a stage; between the methods stands the answer log.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from orbench.asking.inquiry import Done, Reader
from orbench.base.messages import UserError
from orbench.base.records import read_record
from orbench.base.tables import Table, beside, read_csv
from orbench.base.words import SIDES, Json, Row, Rows, Texts, Values, Words
from orbench.models.providers import Models
from orbench.models.requests import Missing

Plan = list[Any] | Missing  # inquiries and what is known without asking, or why nothing is asked
Written = list[Row] | Missing  # the output rows, or why there is none


class Result(NamedTuple):
    """What came of an input row."""

    row: Row
    rows: Written  # the output rows, or why there is none
    readings: Sequence[Any] = ()  # what each inquiry says, or what was known without asking
    answers: Sequence[Done] = ()  # how each inquiry ended


Readings = list[Any]  # what each inquiry about a row says
Results = Iterator[Result]  # of all rows, in order


class Closing:
    """What a stage says at its end, folded from its results while they are written.

    findings: what the run record says of the results. doubt: why these must not be ranked; "" if
    they may.
    """

    findings: Values = MappingProxyType({})
    doubt = ""

    def add(self, result: Result) -> None:
        """Count one row."""

    def save(self) -> None:
        """Write a file beside the CSVs, once these are written. Raises OSError."""

    def lines(self) -> Iterable[str]:
        """Return the closing lines."""
        return ()


class Stage(Reader):
    """One stage script subclasses this; see the methods.

    panel: several judges, so that `rows` sees missing votes among the others. brings: what its
    requests are for, unless for responses to the prompts.
    """

    panel = False
    brings = ""

    def __init__(self, args: Any, table: Table, models: Models, csv: Path, columns: Words) -> None:
        """csv: the output, unless --output_path names another. columns: of it. Raises UserError."""
        self.args = args
        self.table = table
        self.input_record = read_record(table.file)
        self.models = models
        self.columns = columns
        self.output = output_path(args.output_path, csv)
        self.outputs = {"": self.output}  # label -> the CSV of the rows with that label
        self.prompt_file = ""  # its hash, see `prompt_template`; of judges `JudgeKind.hash`, too
        self.parameters: Json = {}  # what the requests are made with
        self.reading: Json = {}  # how answers are read and counted, for the record
        self.versions: Texts = {}  # of what decides, for the record
        self.under_test: Json = {}  # the fields of records.UnderTest
        self.notes: list[str] = []  # what a reader of the numbers must know
        self.closing = Closing()

    @property
    def title(self) -> str:
        """Return what a run counts: `toxic prompts`, `safe prompts: verdicts`."""
        side = SIDES.get(self.table.source.get("side", ""))
        prompts = self.args.prompts or (side.prompts if side else "")
        return ": ".join(filter(None, [prompts, self.brings])) or "prompts"

    def inquiries(self, row: Row) -> Plan:
        """Return what to ask about a row, as `Inquiry`, or what is known without asking.

        Missing if nothing is ever asked. Equal requests are sent once.
        """
        raise NotImplementedError

    def rows(self, row: Row, readings: Readings) -> Written:
        """Return the output rows, from what the inquiries about the row say. Change nothing."""
        raise NotImplementedError

    def together(self, results: Results) -> Results:
        """Yield the results of all rows, changed where one row depends on those before it."""
        return results

    def plan_more(self, results: Results) -> bool:
        """Add rows to the table once all are answered. Return whether there are any."""
        return False

    def label(self, row: Row) -> str:
        """Return the label of an output row, a key of `outputs`, with --merge_result=False."""
        raise NotImplementedError

    def origin(self, row: Row) -> Row:
        """Return the input row that an output row came from, in the columns they share."""
        return row

    def beside(self, ending: str) -> Path:
        """Return the path of a file that belongs to the output: `<output stem><ending>`."""
        return beside(self.output, ending)

    def written(self) -> Rows:
        """Return the rows that stand in the CSVs, from this run or an earlier one."""
        rows = []
        for path in self.outputs.values():
            if path.is_file():
                rows += read_csv(path).rows
        return rows

    def split(self, before: str, labels: Iterable[str], after: str) -> None:
        """Write one CSV per label with --merge_result=False, which stands in its name between two
        texts; a given --output_path gets the label after its stem instead.
        """
        if self.args.merge_result:
            return
        self.outputs.clear()
        if self.args.output_path:
            before = f"{self.output.stem}_"
            after = ".csv"
        for label in labels:
            self.outputs[label] = self.output.with_name(before + label + after)


def output_path(given: str | None, default: Path) -> Path:
    """Return where the CSV goes. Raises UserError."""
    path = Path(given) if given else default
    if path.suffix != ".csv":
        raise UserError(f"{path} does not end in .csv; name a CSV file")
    if path.stem.endswith("_failed"):  # another run's failed rows, which would be lost
        raise UserError(f"{path}: names that end in _failed.csv are for rows without a result")
    return path.resolve() if path.is_symlink() else path  # write the link's target


def empty_cell(row: Row, column: str) -> Missing | None:
    """Return why a row with a blank cell is never sent; None for one with a text."""
    if row[column].strip():
        return None
    return Missing("empty_" + column, f"the {column} is empty")


def sampled(table: Table, samples: int, column: str) -> Table:
    """Return the table with each row repeated `samples` times, numbered in a new column.

    Raises UserError if the input has that column.
    """
    if samples == 1:
        return table
    columns = output_columns(table, [column])
    rows = []
    for row in table.rows:
        rows += [row | {column: str(number)} for number in range(samples)]
    return Table(table.path, columns, rows, table.source)


def output_columns(table: Table, added: Words) -> list[str]:
    """Return the input's columns and the stage's. Raises UserError if one would be overwritten."""
    for column in added:
        if column in table.columns:
            raise UserError(f"{table.path} already has a column {column!r}; rename or drop it")
    return [*table.columns, *added]
