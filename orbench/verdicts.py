"""Reading the verdicts that stages 4 and 5 wrote: whether a response was refused, and by whom."""

from collections.abc import Sequence

from orbench.table import Row, TableError, clean

VERDICTS = ("direct_answer", "direct_refusal", "indirect_refusal", "answered", "rejected")
REFUSALS = ("direct_refusal", "indirect_refusal", "rejected")
STAGE5 = ("direct_answer", "direct_refusal", "indirect_refusal")  # `answer_category`
RULES = {"true": "rejected", "false": "answered"}  # `is_rejected`, in small letters


def verdict_of(row: Row, where: str) -> str:
    """The verdict of a row, one of VERDICTS. Raises TableError where its cell is none."""
    if "answer_category" in row:
        verdict = row["answer_category"]
        if verdict not in STAGE5:
            raise bad_cell(where, "answer_category", verdict, STAGE5)
        return verdict
    return RULES[flag_of(row, "is_rejected", where)]


def reason_of(row: Row) -> str:
    """Why the verdict is what it is: the judge's words or the rule's name."""
    return row.get("answer_type_response") or row.get("rejection_reason", "")


def refused_by_api(row: Row) -> bool:
    """Whether the refusal is the API's (a filter, a refusal field), not the model's words."""
    return any(
        row.get(column, "").startswith("api:")
        for column in ("answer_type_response", "rejection_reason")
    )


def flag_of(row: Row, column: str, where: str) -> str:
    """A True/False cell in small letters."""
    if column not in row:
        raise TableError(f"{where}: no column {column!r}")
    flag = row[column].lower()
    if flag not in ("true", "false"):
        raise bad_cell(where, column, row[column], ("True", "False"))
    return flag


def bad_cell(where: str, column: str, cell: str, allowed: Sequence[str]) -> TableError:
    """What to raise for a cell that is none of those allowed."""
    return TableError(f"{where}: {column} is {clean(cell)[:40]!r}, not {' or '.join(allowed)}")
