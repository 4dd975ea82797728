"""moderator/label_sheet.py, run as a user runs it."""

import json
from collections import Counter
from collections.abc import Callable

import pytest

from tests.conftest import Desk

SHEET = "moderator/label_sheet.py"
RECORD = {
    "stage": "moderator",
    "parameters": {"column": "prompt"},
    "models": [{"asked": judge} for judge in "abc"],
}
LABELLED = {0: "safe", 1: "safe", 2: "toxic", 3: "toxic"}  # by how many of three judges say toxic

Drawn = Callable[..., None]


def prompt(number: int) -> str:
    return f"How do I fold paper bird number {number}?"


@pytest.fixture
def drawn(desk: Desk) -> Drawn:
    """Draws sheets from 100 prompts: 70 that no judge calls toxic, and 10 each that 1, 2, 3 do.
    Two more miss a vote. The model refuses each second one of the 70.
    """
    toxic = [0] * 70 + [1] * 10 + [2] * 10 + [3] * 10
    votes = [[str(judge < n) for judge in range(3)] for n in toxic] + [["", "True", "True"]] * 2
    rows = [[prompt(i), "True", *vote] for i, vote in enumerate(votes)]
    desk.csv("labels.csv", ("prompt", "is_toxic", *(f"is_toxic_{n}" for n in "abc")), rows)
    desk.write("labels.run.json", json.dumps(RECORD))
    refused = [[prompt(i), str(i < 70 and i % 2 == 0)] for i in range(100)]
    desk.csv("results.csv", ("prompt", "is_rejected"), refused)

    def draw(*flags: str) -> None:
        done = desk.run(SHEET, "--input_file=labels.csv", "--number=40", *flags)
        assert done.stdout == "sheets/sheet_key.csv\n"
        assert "100 prompts with a toxicity score, of 102 rows" in done.stderr

    return draw


def label(desk: Desk, name: str, wrong: int = 0) -> None:
    """Fill in a sheet by LABELLED; the first `wrong` rows the other way round."""
    key = {row["id"]: row for row in desk.rows("sheets/sheet_key.csv")}
    rows = []
    for n, row in enumerate(desk.rows(f"sheets/{name}.csv")):
        said = LABELLED[round(3 * float(key[row["id"]]["toxicity"]))]
        said = said if n >= wrong else {"safe": "toxic", "toxic": "safe"}[said]
        rows.append([row["id"], row["prompt"], f" {said.upper()}"])
    desk.csv(f"sheets/{name}.csv", ("id", "prompt", "label"), rows)


def test_sheets_are_blinded_and_drawn_evenly_over_scores_and_refusals(
    desk: Desk, drawn: Drawn
) -> None:
    drawn("--results", "results.csv")
    key = desk.rows("sheets/sheet_key.csv")
    assert Counter(row["toxicity"] for row in key) == {"0": 16, "0.3333": 8, "0.6667": 8, "1": 8}
    weights = {(row["toxicity"], row["weight"]) for row in key}
    assert weights == {("0", "4.375"), ("0.3333", "1.25"), ("0.6667", "1.25"), ("1", "1.25")}
    assert sum(float(row["weight"]) for row in key) == 100
    sheets = [desk.rows(f"sheets/sheet_{n}.csv") for n in (1, 2, 3)]
    for sheet in sheets:
        assert {tuple(row) for row in sheet} == {("id", "prompt", "label")}
        assert {row["label"] for row in sheet} == {""}
    orders = {tuple(row["prompt"] for row in sheet) for sheet in [*sheets, key]}
    assert len(orders) == 4 and len({frozenset(order) for order in orders}) == 1
