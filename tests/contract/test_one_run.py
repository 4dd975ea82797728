"""What stands on disk after a run comes from one run, and nothing that is not the suite's goes."""

import pytest

from tests.conftest import ALIGN, CHECK, Desk
from tests.server import Body, answer, by_number, error


def test_if_every_request_of_another_run_fails_the_old_pair_stays(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(by_number({1: error(400)}))
    assert desk.stage(ALIGN).returncode == 3
    before = {name: text for name, text in desk.files().items() if name.startswith("o")}
    desk.serve(error(400, "no such thing"))
    done = desk.stage(ALIGN, "--max_tokens=5", "--overwrite")
    assert (done.returncode, done.stdout) == (1, "")
    assert "kept from an earlier run" in done.stderr and "no such thing" in done.stderr
    after = desk.files()
    for name in ("o.csv", "o_failed.csv", "o.run.json"):
        assert after[name] == before[name]


def test_a_failed_file_that_the_suite_did_not_write_stays_and_stops_the_run(desk: Desk) -> None:
    desk.prompts(1)
    mine = desk.csv("o_failed.csv", ("prompt", "why"), [("mine", "exam")]).read_bytes()
    desk.serve()
    assert "this suite did not write it" in desk.stopped(ALIGN)
    assert (desk.folder / "o_failed.csv").read_bytes() == mine
    assert not desk.server.requests


@pytest.mark.parametrize(
    "text",
    [
        *('{"stage": 1}', '{"part": []}', '{"models": [7]}', '{"models": [{"id": 1}]}'),
        *('{"findings": []}', '{"source": "x"}', '{"parameters": null}', '{"settings": 1}'),
        *('{"notes": [1]}', '{"selectors": {}}', '{"output": []}', '{"start": 5}', "[]", "["),
    ],
)
def test_a_damaged_run_record_is_one_line_that_names_it(desk: Desk, text: str) -> None:
    desk.csv("r.csv", ("prompt", "response", "is_rejected"), [("a", "b", "True")])
    (desk.folder / "r.run.json").write_text(text)
    desk.serve()
    assert "r.run.json is damaged" in desk.stopped(CHECK)
    done = desk.run("response_checker/plot_results.py", "--toxic", "m=r.csv", "--table")
    assert done.returncode == 1 and "r.run.json is damaged" in done.stderr
    assert "Traceback" not in done.stderr and not desk.server.requests


def test_a_gateways_page_in_place_of_responses_is_said_and_noted(desk: Desk) -> None:
    desk.prompts(20)
    desk.serve("The service is busy. Come back later.")
    done = desk.stage(ALIGN)
    assert done.returncode == 0, done.stderr
    line = "20 identical responses in a row"
    assert line in done.stderr and any(line in note for note in desk.record()["notes"])
    assert line in desk.record()["under_test"]["unranked"]
    done = desk.run("response_checker/plot_results.py", "--over_refusal", "o.csv", "--table")
    assert line in done.stderr


@pytest.mark.parametrize("other", [answer("Fold it well."), answer(None, refusal="No.")])
def test_fewer_equal_responses_or_refusals_are_no_gateways_page(desk: Desk, other: object) -> None:
    desk.prompts(30)

    def reply(body: Body, seen: int) -> object:
        return other if "number 15?" in str(body) else "Fold it."

    desk.serve(reply)  # type: ignore[arg-type]
    assert desk.stage(ALIGN).returncode == 0
    assert not desk.record()["notes"]
