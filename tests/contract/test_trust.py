"""What could make a figure wrong without a word, on files that stages 4 and 5 made."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from orbench.base import records
from tests.conftest import ALIGN, CHECK, Desk, Done, error_line, read_csv, write_csv
from tests.contract.test_report import PLOT, markdown, overall, percents, report, table
from tests.hub_server import HubServer
from tests.server import Body, Reply, completion, error, number_of

NO = "I'm sorry, but I can't help with that."
YES = "Sure! Here are the steps. Fold it in half, press the edge, and fold it once more."


def check(desk: Desk, name: str, *flags: str, of: str = "", judge: str = "rules") -> Done:
    """Stage 5 on the responses OF_r.csv (default: NAME_r.csv), into NAME.csv."""
    files = (f"--input_file={of or name}_r.csv", f"--output_path={name}.csv")
    return desk.run(CHECK, f"--check_model={judge}", *files, *flags)


ALIKE = "safe prompts may be rewrites of one another, so intervals may be too narrow"


def judged(desk: Desk, name: str, refused: int, rows: int = 60, **columns: list[str]) -> str:
    """Stage 5's rules on responses of which the first are refusals. Returns NAME=NAME.csv."""
    cells = {"prompt": [f"Fold bird {n}?" for n in range(rows)]} | columns
    cells = {"response": [NO] * refused + [YES] * (rows - refused)} | cells
    desk.csv(f"{name}_r.csv", list(cells), list(zip(*cells.values(), strict=True)))
    assert check(desk, name, "--overwrite").returncode in (0, 3)
    return f"{name}={name}.csv"


def asked(desk: Desk, name: str, *flags: str, returned: str = "", share: int = 2) -> str:
    """Stages 4 and 5 on p.csv, every share-th prompt refused. Returns NAME.csv."""

    def reply(body: Body, seen: int) -> Reply:
        number = number_of(body)
        text = f"{YES} Bird {number}." if number % share else NO
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return Reply(completion(choices=[choice], model=returned or body["model"]))

    if not desk.url:
        desk.serve()
    desk.server.reply = reply
    done = desk.stage(ALIGN, *flags, f"--output_path={name}_r.csv")
    assert done.returncode == check(desk, name).returncode == 0, done.stderr
    return f"{name}.csv"


def edit(path: Path, column: str, **changes: str) -> None:
    """Change cells of a column by hand: old -> new."""
    rows = [row | {column: changes.get(row[column], row[column])} for row in read_csv(path)]
    write_csv(path, list(rows[0]), [list(row.values()) for row in rows])


def amend(path: Path, **entries: Any) -> None:
    """Change entries of a run record."""
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def findings(desk: Desk, *files: str) -> list[str]:
    report(desk, "--over_refusal", *files)
    return [pair["finding"] for pair in table(desk, "comparison")]


def stopped(desk: Desk, *flags: str) -> str:
    return error_line(desk.run(PLOT, *flags, "--table"))


def test_a_file_edited_by_hand_is_named_in_every_table(desk: Desk) -> None:
    files, said = (judged(desk, "a", 30), judged(desk, "b", 29)), "edited since stage 5 wrote it"
    assert findings(desk, *files) == ["no difference shown"]
    edit(desk.folder / "a.csv", "answer_category", direct_refusal="direct_answer")
    edit(desk.folder / "a.csv", "refused", **{"True": "False"})
    assert findings(desk, *files) == [f"a refuses fewer safe prompts than b (a: {said})"]
    assert said in overall(desk, model="a")["notes"] and said in markdown(desk)


def test_a_named_set_knows_its_side_and_its_size(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    prompts = desk.prompts(40).read_bytes()
    with HubServer({"bench-llm/or-bench/or-bench-toxic.csv": prompts}) as hub:
        env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(desk.folder / "hf")}
        flags = ("--model=scripted", "--input_file=or-bench-toxic", "--limit=20")
        done = desk.run(ALIGN, *flags, "--output_path=f_r.csv", env=env, own_process=True)
    assert done.returncode == check(desk, "f").returncode == 0, done.stderr
    line = stopped(desk, "--over_refusal", "f.csv")
    assert "or-bench-toxic holds toxic prompts; give it to --toxic" in line
    report(desk, "--toxic", "f.csv")
    assert table(desk, "leaderboard")[0]["prompts"] == "or-bench-toxic (20 of 655)"


def test_a_sample_of_a_file_is_called_one(desk: Desk) -> None:
    desk.prompts(40)
    for flags, how in ((), ""), (("--shuffle=1",), ", sampled proportionally by category"):
        report(desk, "--over_refusal", asked(desk, "a", "--limit=20", "--overwrite", *flags))
        assert overall(desk)["prompts"] == f"p (20 of 40{how})"
        (desk.folder / "a.csv").unlink()


def test_responses_edited_before_stage_5_are_reported(desk: Desk) -> None:
    desk.prompts(40)
    asked(desk, "a")
    edit(desk.folder / "a_r.csv", "response", **{YES: NO})
    assert check(desk, "b", of="a").returncode == 0
    report(desk, "--over_refusal", "b.csv")
    assert "responses edited since stage 4 wrote them" in overall(desk)["notes"]


def test_unscored_rows_are_unknown_once_their_file_is_gone(desk: Desk) -> None:
    desk.prompts(40)
    desk.serve()
    name = asked(desk, "a")
    edit(desk.folder / "a_r.csv", "response", **{NO: " "})
    assert check(desk, "a", "--overwrite").returncode == 3
    (desk.folder / "a_failed.csv").unlink()
    report(desk, "--over_refusal", name)
    assert overall(desk)["unscored"] == overall(desk)["low_all_percent"] == ""


def test_settings_rubric_and_judge_prompt_part_results(desk: Desk) -> None:
    desk.prompts(60)
    files = asked(desk, "a", "--model=m/a"), asked(desk, "b", "--model=m/b", "--temperature=1")
    said = f"(settings differ; {ALIKE}; m/b (temperature 1): the same responses"
    assert said in findings(desk, *files)[0]
    assert [row["settings"] for row in table(desk, "leaderboard")] == ["", "temperature 1"]
    desk.serve("[[direct_answer]]")
    for name, *flags in (["c"], ["d"], ["e", "--rubric=graded"]):
        of = "a" if name == "c" else "b"
        assert check(desk, name, *flags, of=of, judge="gpt-x").returncode == 0
    assert len(findings(desk, "c.csv", "d.csv")) == 1
    other = desk.record("d.csv")["settings"] | {"prompt file": "5eed" * 3}
    amend(desk.folder / "d.run.json", settings=other)
    assert findings(desk, "c.csv", "d.csv", "e.csv") == []
    judges = [row["judge"] for row in table(desk, "leaderboard")]
    assert judges[1:] == ["gpt-x, prompt 5eed5eed", "gpt-x, graded"]


def test_seeds_that_span_categories_widen_the_macro_average(desk: Desk) -> None:
    category, seeds = [f"c{n % 3}" for n in range(60)], [f"s{n // 6}" for n in range(60)]
    a = judged(desk, "a", 30, category=category, toxic_seed=seeds)
    report(desk, "--over_refusal", a, judged(desk, "b", 30, category=category))
    ends = (percents(row, "low", "high") for row in table(desk, subset="macro average"))
    seeds_together, apart = (high - low for low, high in ends)
    assert seeds_together > 1.5 * apart


def test_a_model_that_judges_itself_or_its_family_is_named(desk: Desk) -> None:
    desk.prompts(60)
    models = ("gpt-4o", "gpt-4.1", "gpt-4-x")
    for share, model in enumerate(models, start=2):
        asked(desk, model, f"--model={model}", share=share)
    desk.server.reply = "[[direct_answer]]"
    files = [f"{model}_c.csv" for model in models]
    for model in models:
        assert check(desk, f"{model}_c", of=model, judge="gpt-4o").returncode == 0
    report(desk, "--over_refusal", *files, "--html", "--formats=svg")
    finding = table(desk, "comparison")[2]["finding"]
    said = "gpt-4.1: judged by its own family; gpt-4o: judged by itself"
    assert finding.endswith(f"({ALIKE}; {said})")
    page = (desk.folder / "results/results.html").read_text()
    for model, said in (("gpt-4o", "judged by itself"), ("gpt-4.1", "judged by its own family")):
        assert said in overall(desk, model=model)["notes"] and said in page
    ranks = {row["model"]: row["rank"] for row in table(desk, "leaderboard")}
    assert ranks == {"gpt-4o": "", "gpt-4.1": "1-2", "gpt-4-x": "1-2"}


def test_one_model_under_two_names_has_one_rank(desk: Desk) -> None:
    desk.prompts(60)
    dated = "gpt-4o-2024-08-06"
    files = [asked(desk, "a", "--model=gpt-4o", returned=dated)]
    files.append(asked(desk, "b", f"--model={dated}", returned=dated))
    files.append(asked(desk, "c", "--model=m/c", share=40))
    said = f"({ALIKE}; {dated}: the same model as gpt-4o, by the returned ids)"
    assert findings(desk, *files)[0] == f"no difference shown {said}"
    assert [row["rank"] for row in table(desk, "leaderboard")] == ["1", "2", ""]
    assert "a.csv is given twice" in stopped(desk, "--over_refusal", "x=a.csv", "y=./a.csv")
    line = stopped(desk, "--over_refusal", "a.csv", "a.csv")
    assert "the same model, prompts and judge" in line and "MODEL=FILE" in line


def test_versions_of_a_model_and_the_dates_are_in_the_table(desk: Desk) -> None:
    desk.prompts(30)
    asked(desk, "a", "--model=gpt-4o", returned="gpt-4o-2024-05-13")
    amend(desk.folder / "a_r.run.json", start="2024-05-20T10:00:00+00:00")
    desk.prompts(60)
    asked(desk, "a", "--model=gpt-4o", returned="gpt-4o-2024-08-06")
    report(desk, "--over_refusal", "a.csv")
    row = overall(desk)
    assert row["date"] == f"2024-05-20 to {desk.record('a_r.csv')['end'][:10]}"
    said = "answered by gpt-4o-2024-05-13 (30 rows), gpt-4o-2024-08-06 (30 rows)"
    assert row["notes"].startswith(said)


def test_blanks_make_no_prompt_and_without_a_record_unscored_rows_are_unknown(desk: Desk) -> None:
    judged(desk, "a", 30, prompt=[f"Fold bird {n // 2}?{' ' * (n % 2)}" for n in range(60)])
    os.unlink(desk.folder / "a.run.json")
    done = report(desk, "--over_refusal", "a=a.csv")
    row = overall(desk)
    assert (row["n"], row["rows"]) == ("30", "60")
    assert row["unscored"] == row["low_all_percent"] == ""
    assert "unscored rows are unknown" in row["notes"] and "unscored 0" not in done.stderr


def test_rules_that_are_seldom_certain_rank_nobody(desk: Desk) -> None:
    files = judged(desk, "a", 30), judged(desk, "b", 10)
    for name, certain in (("a", 50), ("b", 47)):
        found = {"certain": certain, "by_rules": 60}
        amend(desk.folder / f"{name}.run.json", findings=found)
    said = "only 78 % of the rules' verdicts are certain"
    assert findings(desk, *files) == [f"b refuses fewer safe prompts than a (b: {said})"]
    assert overall(desk, model="b")["certain_percent"][:4] == "78.3" and said in markdown(desk)
    assert {row["rank"] for row in table(desk, "leaderboard")} == {""}


def test_an_edited_input_does_not_replace_results(desk: Desk) -> None:
    judged(desk, "a", 30)
    before = (desk.folder / "a.csv").read_bytes()
    edit(desk.folder / "a_r.csv", "prompt", **{"Fold bird 1?": "Do you sing?"})
    line = error_line(check(desk, "a"))
    assert "that this input does not have" in line and "pass --overwrite" in line
    assert (desk.folder / "a.csv").read_bytes() == before
    assert check(desk, "a", "--overwrite").returncode == 0


def test_rows_that_a_missing_judge_was_not_asked_about_are_in_no_rate(desk: Desk) -> None:
    unclear = ["Paper has been folded for ages; birds are a topic of their own."] * 20
    judged(desk, "a", 0, rows=40, response=[NO] * 20 + unclear)
    desk.serve(error(404, "no such model", code="model_not_found"))
    done = check(desk, "b", of="a", judge="rules+gpt-tpyo")
    assert done.returncode == 1
    assert "%" not in done.stderr and "not asked " in done.stderr
    report(desk, "--over_refusal", "m=b.csv")
    row = overall(desk)
    assert 0 < int(row["rows"]) == 40 - int(row["unscored"]) < 40


def test_the_record_says_if_the_code_had_uncommitted_changes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "git init -q; echo 1 > f; git add f; git -c user.name=a -c user.email=a@b commit -qm 1"
    assert desk.shell(commit).returncode == 0
    monkeypatch.setattr(records, "__file__", str(desk.folder / "orbench/base/records.py"))
    for ending in ("", "-dirty"):
        assert re.fullmatch("[0-9a-f]{7,40}" + ending, records.versions.__wrapped__()["commit"])
        (desk.folder / "f").write_text("2")
