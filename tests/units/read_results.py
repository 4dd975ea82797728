"""Results read from short lines: "1*2+0? tier=1212" is two refusals, an answer, an unscored row."""

from dataclasses import fields
from typing import Any

import numpy as np

from orbench.base.words import SIDES
from orbench.report.results import TOXIC, Responses, Result
from tests.results import responses, result_of, standing_of

COLUMNS = [field.name for field in fields(Responses)]
FIRST_TOXIC = 500  # the number of the first toxic prompt


def cells_of(text: str) -> str:
    """Return a text with its repetitions written out: "1*3+0" is "1110"."""
    whole = ""
    for part in text.split("+"):
        cells, _, times = part.partition("*")
        whole += cells * int(times or 1)
    return whole


def verdicts_of(text: str) -> list[float]:
    return [float(cell.replace("?", "nan")) for cell in cells_of(text)]


def read_result(text: str, number: int = 0, **about: Any) -> Result:
    """Return a result on the safe side, if not said otherwise. Numbers of prompts and seeds go on
    with letters. about: columns with a value for each row, and fields of the result.
    """
    refused, *words = text.split()
    values = verdicts_of(refused)
    columns = {name: about.pop(name) for name in COLUMNS if name in about}
    for word in words:
        name, _, value = word.partition("=")
        if name in ("prompt", "seed"):
            columns[name] = [int(cell, 36) for cell in cells_of(value)]
        elif name in COLUMNS:
            columns[name] = list(cells_of(value))
        else:
            about[name] = SIDES.get(value, value.replace("_", " "))
    return result_of(responses(values, **columns), number, **about)


def read_standing(text: str, number: int = 0, **about: Any) -> Any:
    """Return the standing of a model of "safe & toxic"; a side may be empty."""
    safe, _, toxic = text.partition("&")
    about |= {"model": f"m{number}"}
    of_safe = read_result(safe, 2 * number, **about) if safe.strip() else None
    of_toxic = None
    if toxic:
        prompts = np.arange(len(cells_of(toxic.split()[0]))) + FIRST_TOXIC
        given = about if "prompt=" in toxic else {"prompt": prompts} | about
        of_toxic = read_result(toxic, 2 * number + 1, side=TOXIC, **given)
    return standing_of(of_safe, of_toxic)


def read_board(text: str, **about: Any) -> list[Any]:
    """Return the standings of models parted by semicolons."""
    return [read_standing(one, number, **about) for number, one in enumerate(text.split(";"))]
