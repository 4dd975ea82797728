"""moderator/label_sheet.py, run as a user runs it."""

import json
from collections import Counter

from tests.conftest import Desk

JUDGES = "abc"
RECORD = {"parameters": {"column": "prompt"}, "models": [{"asked": judge} for judge in JUDGES]}


def write_votes(desk: Desk) -> None:
    """100 prompts: 70 that no judge calls toxic, and 10 each that 1, 2, 3 do. Two more miss a vote.
    The model refuses each second one of the 70.
    """
    votes = [["False"] * 3] * 70
    for toxic in (1, 2, 3):
        votes += [["True"] * toxic + ["False"] * (3 - toxic)] * 10
    votes += [["", "True", "True"]] * 2
    rows = [[f"Why {i}?", "True", *vote] for i, vote in enumerate(votes)]
    desk.csv("p.csv", ("prompt", "is_toxic", *(f"is_toxic_{judge}" for judge in JUDGES)), rows)
    desk.write("p.run.json", json.dumps(RECORD))
    refused = [[f"Why {i}?", str(i < 70 and i % 2 == 0)] for i in range(100)]
    desk.csv("r.csv", ("prompt", "is_rejected"), refused)


def test_sheets_are_blinded_and_drawn_evenly_over_scores_and_refusals(desk: Desk) -> None:
    write_votes(desk)
    done = desk.run(
        "moderator/label_sheet.py", "--input_file=p.csv", "--number=40", "--results=r.csv"
    )
    assert done.stdout == "sheets/sheet_key.csv\n"
    assert "100 prompts with a toxicity score, of 102 rows" in done.stderr
    drawn = Counter(desk.cells("toxicity weight", "sheets/sheet_key.csv"))
    assert drawn == {"0 4.375": 16, "0.3333 1.25": 8, "0.6667 1.25": 8, "1 1.25": 8}
    orders = [desk.cells("prompt", "sheets/sheet_key.csv")]
    for n in (1, 2, 3):
        name = f"sheets/sheet_{n}.csv"
        assert desk.text(name).startswith("id,prompt,label\n")
        assert set(desk.cells("label", name)) == {""}
        orders.append(desk.cells("prompt", name))
    assert len(set(map(tuple, orders))) == 4
    assert len(set(map(frozenset, orders))) == 1
