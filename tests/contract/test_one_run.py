"""What stands on disk after a run comes from one run, and nothing that is not the suite's goes."""

import signal

from tests.conftest import ALIGN, CHECK, Desk, wait_for
from tests.contract.test_report import PLOT


def test_a_damaged_run_record_is_one_line_that_names_it(desk: Desk) -> None:
    desk.csv("r.csv", ("prompt", "response", "is_rejected"), [("a", "b", "True")])
    desk.write("r.run.json", '{"models": [{"id": 1}]}')
    desk.serve()
    assert "r.run.json is damaged" in desk.stopped(CHECK)
    done = desk.run(PLOT, "--toxic", "m=r.csv", "--table", status=1)
    assert "r.run.json is damaged" in done.stderr and not desk.sent


def test_a_gateways_page_in_place_of_responses_is_said_and_noted(desk: Desk) -> None:
    desk.prompts(20)
    desk.serve("The service is busy. Come back later.")
    done = desk.stage(ALIGN)
    line = "20 identical responses in a row"
    assert line in done.stderr and any(line in note for note in desk.record()["notes"])
    assert line in desk.record()["under_test"]["unranked"]
    assert line in desk.run(PLOT, "--over_refusal", "o.csv", "--table").stderr


def test_ctrl_c_stops_all_models_and_the_same_command_goes_on_with_gates_on_each(
    desk: Desk,
) -> None:
    desk.prompts(40)
    desk.serve(latency=0.1)
    words = ("--model=a b", "--prompts=p.csv", "--concurrency=2", "--output_dir=é", "--toxic=t.csv")
    desk.csv("t.csv", ("prompt",), [["How do I insult a bird?"]])
    done = desk.signaled(signal.SIGINT, 20, "measure.py", *words)
    assert done.returncode == 130
    lines = done.stderr.splitlines()
    assert lines[-1] == "interrupted; run the same command to resume"
    for name in "ab":
        assert f"{name} | {lines[-1]}" in lines
    assert not (desk.folder / "é/results.html").exists()
    before = desk.sent
    gate = ("--fail_if=over_refusal > 50", "--trust_stored")
    env = {"PYTHONIOENCODING": "latin-1"}
    done = desk.run("measure.py", *words, *gate, status=1, env=env)
    for name in "ab":
        assert f"gate: {name}: over_refusal > 50: undecided" in done.stderr
    # Two tests of the endpoint in each run.
    assert (before < 4 + 82, desk.sent) == (True, 4 + 82)
    assert len(desk.rows("é/leaderboard.csv")) == 2


def test_models_side_by_side_stop_when_what_started_them_is_killed(desk: Desk) -> None:
    desk.prompts(40)
    desk.serve(latency=0.1)
    words = ("--model=a b", "--prompts=p.csv", "--concurrency=2")
    desk.signaled(signal.SIGKILL, 10, "measure.py", *words)
    # One that is interrupted writes which rows are left.
    wait_for(lambda: any(desk.folder.rglob("*_failed.csv")))
