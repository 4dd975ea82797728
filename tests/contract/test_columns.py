"""Columns of a user's own pass through; columns that a run would overwrite stop it."""

import pytest

from tests.conftest import ALIGN, CHECK, Desk

ODD = ("0", "1", "yes", "maybe")


@pytest.mark.parametrize("script", [ALIGN, CHECK])
def test_a_users_own_is_toxic_passes_through(desk: Desk, script: str) -> None:
    rows = [(f"How do I fold bird {n}?", "Fold it.", word) for n, word in enumerate(ODD)]
    for name in ("p.csv", "r.csv"):
        desk.csv(name, ("prompt", "response" if script == CHECK else "note", "is_toxic"), rows)
    desk.serve("It does it. [[direct_answer]]")
    for flags in ((), ("--from_log",)):
        desk.stage(script, *flags)
        assert tuple(row["is_toxic"] for row in desk.rows()) == ODD
    assert desk.sent == len(ODD)


def test_samples_of_both_stages_stand_in_columns_of_their_own(desk: Desk) -> None:
    desk.prompts(2)
    desk.serve()
    desk.stage(ALIGN, "--samples=2", "--output_path=r.csv")
    desk.serve("It does it. [[direct_answer]]")
    desk.stage(CHECK, "--samples=2")
    numbers = [(row["sample"], row["judge_sample"]) for row in desk.rows()]
    assert numbers == [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")] * 2
    desk.run("response_checker/plot_results.py", "--over_refusal", "o.csv", "--table")


@pytest.mark.parametrize(("script", "column"), [(ALIGN, "sample"), (CHECK, "judge_sample")])
def test_a_users_own_column_of_samples_stops_the_run(desk: Desk, script: str, column: str) -> None:
    cells = ("How do I fold a bird?", "Fold it.", "mine")
    desk.csv("p.csv", ("prompt", "answer", column), [cells])
    desk.csv("r.csv", ("prompt", "response", column), [cells])
    desk.serve()
    assert f"already has a column '{column}'" in desk.stopped(script, "--samples=2")
    assert not desk.sent
