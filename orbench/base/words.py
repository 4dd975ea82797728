"""The words in the suite's CSVs: categories, verdicts, labels, True and False, sides.

Each is one table with one reader.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from math import inf, nan
from typing import Any, NamedTuple

from orbench.base.messages import UserError, clean
from orbench.base.toml_files import toml_beside

Row = dict[str, str]  # of a CSV
Rows = Sequence[Row]
Words = Sequence[str]  # names, phrases, lines
Lines = Iterator[str]  # that are yielded
Texts = Mapping[str, str]  # by name
Values = Mapping[str, Any]
Json = dict[str, Any]  # an object

# -- what a judge decides between --------------------------------------------------------------


class Choice(NamedTuple):
    """What a judge may answer: a category, or a class of responses, as the prompts define it."""

    name: str
    aliases: Sequence[str] = ()  # other names that judges use; case, - and _ do not matter
    number: int | None = None  # as the judge's prompt shows it, None if it shows none
    definition: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.definition}"  # as --new_category takes it


Choices = Sequence[Choice]
_TABLES = toml_beside(__file__)


def _choices(table: str) -> Choices:
    """Return a table of words.toml."""
    return [Choice(**entry) for entry in _TABLES[table]]


def numbered_list(choices: Choices) -> str:
    """Return the choices for a judge's prompt."""
    return "\n".join(f"{n}. {one}" for n, one in enumerate(choices, start=1))


def numbered(choices: Choices) -> Choices:
    """Return the choices of a judge whose prompt shows `numbered_list`."""
    return [choice._replace(number=n) for n, choice in enumerate(choices, start=1)]


# -- categories --------------------------------------------------------------------------------

# The ten of OR-Bench, and "none": what a moderator decides between.
CATEGORIES_OR_NONE = _choices("categories")
CATEGORIES = CATEGORIES_OR_NONE[:-1]
NO_CATEGORY = "none"  # `moderation_category` of a text in none of them
OTHER_CATEGORY = "other"  # of a text that a guard model calls unsafe for a reason outside the ten
CATEGORY_NAMES = tuple(sorted(category.name for category in CATEGORIES))
OVERALL = "overall"
MACRO = "macro average"
UNCATEGORIZED = "(no category)"  # in tables
# Not among the ten: judges know such a category only with --new_category.
FURTHER_CATEGORIES = _choices("further_categories")
ANY_NAME = "*"  # of --new_category without a value


def new_category(text: str) -> Choice:
    """Return the category `NAME: DEFINITION`. Raises UserError for a name with another meaning."""
    name, _, definition = map(str.strip, clean(text).partition(":"))
    if _plain(name) in ("", *_KNOWN, NO_CATEGORY, OTHER_CATEGORY):
        raise UserError(f"--new_category: {name!r} is no new name; choose another")
    return Choice(name, definition=definition or f"is {name}.")


def category_named(name: str, new: Choice | None) -> Choice:
    """Return a category. new: what --new_category says. Raises UserError for an unknown one."""
    for category in (*CATEGORIES, new, *FURTHER_CATEGORIES):
        if category and _plain(category.name) == _plain(name):
            return category
    if new and new.name == ANY_NAME:
        return new_category(name)
    raise UserError(
        f"{name!r} is not one of the ten categories ({', '.join(CATEGORY_NAMES)}); "
        f"--new_category '{name}: DEFINITION' adds it"
    )


_KNOWN = {name.replace("-", " "): name for name in CATEGORY_NAMES}


def category_of(row: Row) -> str:
    """Return a row's category as tables name it: case, - and _ do not matter."""
    name = _plain(row.get("category", ""))
    return _KNOWN.get(name, name) or UNCATEGORIZED


@lru_cache(maxsize=4096)  # a file holds few categories
def _plain(cell: str) -> str:
    """Return a name without what does not matter: case, spacing, - and _."""
    words = re.sub("[-_]", " ", clean(cell)).casefold().split()
    return " ".join(words)


# -- tiers -------------------------------------------------------------------------------------


def tier_of(row: Row) -> str:
    """Return a row's tier by the same rule, a number as such (1.0 is 1); "" without one."""
    cell = row.get("tier", "")
    try:
        return f"{float(cell):.15g}"
    except ValueError:
        return _plain(cell)


def tiers_in_order(tiers: Words) -> list[str]:
    """Return tiers from the lowest to the highest: numbers; the words of one scale of words.toml;
    else as they are given.
    """
    try:
        return sorted(tiers, key=float)
    except ValueError:
        pass
    for scale in _TABLES["scales"].values():
        if set(tiers) <= set(scale):
            return sorted(tiers, key=scale.index)
    return list(tiers)


# -- verdicts ----------------------------------------------------------------------------------

# `answer_category` of stage 5, and `graded_category` of --rubric graded
THREE_CLASSES = _choices("three_classes")
GRADED_CLASSES = _choices("graded_classes")
# Which of the three a graded class is, if not itself: the paper counts any attempt as an answer.
OF_THREE = {"partial": "direct_answer", "safe_completion": "direct_answer"}

# Verdict -> whether it is a refusal: `answer_category` of stage 5, ...
CLASSES = {"direct_answer": False, "direct_refusal": True, "indirect_refusal": True}
# ... and the parts that stage 4 splits its responses into, by `is_rejected`.
VERDICTS = {**CLASSES, "accepted": False, "rejected": True}
INDIRECT = "indirect_refusal"
API_SIGNAL = "api:"  # prefix of a refusal that the API itself declared

# People's labels, in small letters without leading numbers -> whether it is a refusal.
HUMAN_LABELS: dict[str, bool] = VERDICTS | _TABLES["human_labels"]


def verdict_of(row: Row, where: str) -> str:
    """Return the verdict of a row of stage 4 or 5, a key of VERDICTS. Raises UserError."""
    if "answer_category" not in row:
        rejected = optional_flag(row, "is_rejected", where)
        if rejected is None:
            raise UserError(f"{where}: is_rejected is empty or missing; it must be True or False")
        return "rejected" if rejected else "accepted"
    verdict = row["answer_category"]
    if verdict not in CLASSES:
        raise bad_cell(row, "answer_category", where, " or ".join(CLASSES))
    refused = optional_flag(row, "refused", where)
    if refused not in (None, VERDICTS[verdict]):  # somebody has corrected one of them
        both = f"{where}: refused is {refused}, but answer_category is {verdict}"
        raise UserError(f"{both}; make them agree")
    return verdict


def graded_class_of(row: Row, where: str) -> str:
    """Return the class of a row of stage 5; empty without --rubric graded. Raises UserError."""
    if "graded_category" not in row:
        return ""
    name = row["graded_category"]
    if OF_THREE.get(name, name) != row["answer_category"]:
        raise bad_cell(row, "graded_category", where, "a class that fits answer_category")
    return name


def reason_of(row: Row) -> str:
    """Return the reason for a verdict: the judge's words, the rule's name or the API's signal."""
    return row.get("answer_type_response") or row.get("rejection_reason", "")


def refused_by_api(row: Row) -> bool:
    """Return whether a refusal is the API's (a filter, a refusal field), not the model's words."""
    return reason_of(row).startswith(API_SIGNAL)


def after_text(row: Row) -> bool:
    """Return whether a refusal of the API's cut off a response, which stands there."""
    in_field = reason_of(row) == f"{API_SIGNAL}message.refusal"  # else its text stands there
    return bool(row.get("response", "").strip()) and not in_field


def label_word(cell: str) -> str:
    """Return a person's label as HUMAN_LABELS has it."""
    word = re.sub("[ -]", "_", cell.strip().lower())
    return re.sub(r"^\d+_(?=.)", "", word)  # XSTest: 1_full_compliance


@lru_cache
def human_label(cell: str) -> bool | None:
    """Return whether a person's label says refusal; None for a blank or unknown one."""
    return HUMAN_LABELS.get(label_word(cell))


WEIGHT = "weight"  # column: how many rows a labeled one stands for


def weight_of(row: Row, where: str) -> float:
    """Return how many rows a label stands for: 1 unless the row says, 0 if the label counts for
    nothing. Raises UserError.
    """
    weight = nan
    with suppress(ValueError):
        weight = float(row.get(WEIGHT, "").strip() or 1)
    if not 0 <= weight < inf:
        raise bad_cell(row, WEIGHT, where, "a number, 1 / the chance to be labeled")
    return weight


# -- True and False ----------------------------------------------------------------------------

_FLAGS = {"true": True, "false": False, "": None}


def optional_flag(row: Row, column: str, where: str) -> bool | None:
    """Return a True/False cell in any letter case; None without a value. Raises UserError."""
    try:
        return _FLAGS[row.get(column, "").strip().lower()]
    except KeyError:
        raise bad_cell(row, column, where, "True or False") from None


def bad_cell(row: Row, column: str, where: str, allowed: str) -> UserError:
    """Return the error for a cell that holds something else than is allowed."""
    cell = clean(row[column])[:40]
    return UserError(f"{where}: {column} is {cell!r}, not {allowed}")


# -- sides -------------------------------------------------------------------------------------


class Side(NamedTuple):
    """Safe prompts or toxic ones. The two never share a rate."""

    name: str  # the flag of plot_results.py, and the column `side` of results.csv
    is_toxic: bool
    rate: str
    prompts: str


WORSE = "worse"  # a gate: than the baseline
NOT_WORSE = "not_worse"  # a requirement: by a number of points

SIDES = {
    "over_refusal": Side("over_refusal", False, "over-refusal rate", "safe prompts"),
    "toxic": Side("toxic", True, "toxic rejection rate", "toxic prompts"),
}
MERGED = "merged"  # in place of a side: the column is_toxic tells the sides apart
GIVEN = (*SIDES, MERGED)  # how results are given: folders, and flags of the report


def side_of(row: Row, where: str) -> Side | None:
    """Return the side that `is_toxic` puts a row on; None without such a cell. Raises UserError."""
    toxic = optional_flag(row, "is_toxic", where)
    for side in SIDES.values():
        if side.is_toxic is toxic:
            return side
    return None


def known_side(row: Row) -> Side | None:
    """Return a row's side; None, too, if it is a user's own `is_toxic` that holds other words."""
    with suppress(UserError):
        return side_of(row, "")
    return None
