"""What the figures beside stage 5's verdicts say about themselves."""

import hashlib
import json

from tests.conftest import CHECK, Desk


def test_figures_beside_the_verdicts_say_what_they_hold_for(desk: Desk) -> None:
    desk.csv("r.csv", ("prompt", "response", "human"), [("Why?", "Fold it.", "compliance")] * 2)
    desk.write("r.run.json", '{"under_test": {"asked": "m", "id": "maker/m"}}')
    desk.serve("[[1]]")
    flags = ("--validate_against=human", "--rubric=graded", "--check_model=j1", "--random_seed=3")
    desk.stage(CHECK, *flags)
    figures = json.loads(desk.text("o.validation.json"))
    csv = hashlib.sha256(desk.text("o.csv").encode()).hexdigest()
    assert figures["made_for"] == {"csv": csv}
    record = desk.record()
    assert (record["under_test"]["id"], record["output"]["csv"]) == ("maker/m", csv)
    made_with = record["parameters"]
    assert (made_with["check_model"], made_with["rubric"]) == ("j1", "graded")
    graded = "direct_answer partial safe_completion indirect_refusal direct_refusal"
    assert made_with["classes"] == graded.split() and made_with["refusal_phrases"] == []
    assert made_with["judge_settings"] == "random seed 3"
    assert (figures["column"], figures["overall"]["n"]) == ("human", 2)
