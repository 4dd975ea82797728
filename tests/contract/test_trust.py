"""What could make a figure wrong without a word, on files that stages 4 and 5 made."""

import json
import re
from typing import Any

import pytest

from orbench.base import records
from tests.conftest import ALIGN, CHECK, Desk, Done, error_line
from tests.contract.test_bad_input import hub_env
from tests.contract.test_report import PLOT, overall, report, table
from tests.hub_server import HubServer
from tests.server import Body, Reply, answer, error, number_of

NO = "I'm sorry, but I can't help with that."
YES = "Sure! Here are the steps. Fold it in half, press the edge, and fold it once more."


def check(
    desk: Desk, name: str, *flags: str, of: str = "", judge: str = "rules", **more: Any
) -> Done:
    """Stage 5 on the responses OF_r.csv (default: NAME_r.csv), into NAME.csv."""
    files = (f"--input_file={of or name}_r.csv", f"--output_path={name}.csv")
    return desk.run(CHECK, f"--check_model={judge}", *files, *flags, **more)


def judged(desk: Desk, name: str, refused: int, rows: int = 60, **columns: list[str]) -> str:
    """Stage 5's rules on responses of which the first are refusals. Returns NAME=NAME.csv."""
    cells = {"prompt": [f"Fold bird {n}?" for n in range(rows)]} | columns
    cells = {"response": [NO] * refused + [YES] * (rows - refused)} | cells
    desk.csv(f"{name}_r.csv", list(cells), list(zip(*cells.values(), strict=True)))
    check(desk, name, "--overwrite", status=None)
    return f"{name}={name}.csv"


def asked(desk: Desk, name: str, *flags: str, returned: str = "", share: int = 2) -> str:
    """Stages 4 and 5 on p.csv, every share-th prompt refused. Returns NAME.csv."""

    def reply(body: Body, seen: int) -> Reply:
        number = number_of(body)
        text = f"{YES} Bird {number}." if number % share else NO
        served_by = returned or body["model"]
        return Reply(str(answer(text).body).replace("loopback-1", served_by))

    if not desk.url:
        desk.serve()
    desk.server.reply = reply
    desk.stage(ALIGN, *flags, f"--output_path={name}_r.csv")
    check(desk, name)
    return f"{name}.csv"


def stopped(desk: Desk, *flags: str) -> str:
    return error_line(desk.run(PLOT, *flags, "--table", status=1))


def test_a_named_set_is_downloaded_once_and_knows_its_side_and_its_size(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    name, asked = "or-bench-toxic.csv", []
    with HubServer({f"bench-llm/or-bench/{name}": desk.prompts(40).read_bytes()}) as hub:
        flags = ("--model=scripted", "--input_file=or-bench-toxic", "--limit=20")
        for _ in range(2):  # the output is no input, though it has the name of the set
            env = hub_env(desk, hub.url)
            desk.stage(ALIGN, *flags, f"--output_path={name}", env=env, own_process=True)
            asked.append(len(hub.asked))
    assert asked[0] == asked[1] > 0
    source = desk.record(name)["source"]
    assert re.fullmatch("[0-9a-f]{40}", source.pop("revision"))
    about = {"name": "or-bench-toxic", "license": "CC-BY-4.0", "side": "toxic"}
    assert source.items() >= about.items()
    desk.run(CHECK, "--check_model=rules", f"--input_file={name}", "--output_path=f.csv")
    line = stopped(desk, "--over_refusal", "f.csv")
    assert "or-bench-toxic holds toxic prompts; give it to --toxic" in line
    report(desk, "--toxic", "f.csv")
    assert table(desk, "leaderboard")[0]["prompts"] == "or-bench-toxic (20 of 655)"


def test_what_the_stages_record_reaches_the_table(desk: Desk) -> None:
    desk.prompts(30)
    asked(desk, "a", "--model=gpt-4o", returned="gpt-4o-2024-05-13")
    record = desk.record("a_r.csv") | {"start": "2024-05-20T10:00:00+00:00"}
    desk.write("a_r.run.json", json.dumps(record))
    desk.prompts(60)
    asked(desk, "a", "--model=gpt-4o", returned="gpt-4o-2024-08-06")
    asked(desk, "b", "--model=m/b", "--temperature=1", "--shuffle=1", "--limit=40")
    asked(desk, "c", "--model=gpt-4o", "--limit=40")
    desk.server.reply = "[[direct_answer]]"
    check(desk, "c", "--rubric=graded", "--overwrite", judge="gpt-4o")
    report(desk, "--over_refusal", "a.csv", "b.csv", "c.csv")
    a, b, c = table(desk, subset="overall", counted="refused")
    assert a["date"] == f"2024-05-20 to {desk.record('a_r.csv')['end'][:10]}"
    said = "answered by gpt-4o-2024-05-13 (30 rows), gpt-4o-2024-08-06 (30 rows)"
    assert a["notes"].startswith(said)
    assert b["prompts"] == "p (40 of 60, sampled proportionally by category)"
    assert [b["settings"], b["judge"], a["prompts"]] == ["temperature 1", "rules", "p"]
    assert c["judge"] == "gpt-4o, graded" and "judged by itself" in c["notes"]


def test_rows_that_a_missing_judge_was_not_asked_about_are_in_no_rate(desk: Desk) -> None:
    unclear = ["Paper has been folded for ages; birds are a topic of their own."] * 20
    judged(desk, "a", 0, rows=40, response=[NO] * 20 + unclear)
    desk.serve(error(404, "no such model", code="model_not_found"))
    done = check(desk, "b", of="a", judge="rules+gpt-tpyo", status=1)
    assert "%" not in done.stderr and "not asked " in done.stderr
    report(desk, "--over_refusal", "m=b.csv")
    row = overall(desk)
    assert 0 < int(row["rows"]) == 40 - int(row["unscored"]) < 40


def test_the_record_says_if_the_code_had_uncommitted_changes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "git init -q; echo 1 > f; git add f; git -c user.name=a -c user.email=a@b commit -qm 1"
    desk.shell(f"{commit}; git worktree add -q w")
    for folder in ("", "w/"):
        monkeypatch.setattr(records, "ROOT", desk.folder / folder)
        for ending in ("", "-dirty"):
            assert re.fullmatch("[0-9a-f]{7,40}" + ending, records.versions.__wrapped__()["commit"])
            desk.write(f"{folder}f", "2")
