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
    made_for = figures.pop("made_for")
    assert made_for["csv"] == hashlib.sha256(desk.text("o.csv").encode()).hexdigest()
    assert (made_for["model"], made_for["check_model"]) == ("maker/m", "j1")
    assert made_for["rubric"] == "graded"
    graded = "direct_answer partial safe_completion indirect_refusal direct_refusal"
    assert made_for["classes"] == graded.split() and made_for["refusal_phrases"] == []
    assert made_for["judge_settings"] == "random seed 3"
    assert (figures["column"], figures["overall"]["n"]) == ("human", 2)
