"""What could make a figure wrong without a word, on files that stages 4 and 5 made."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from orbench.base import records
from tests.conftest import ALIGN, CHECK, Desk, Done, error_line, read_csv, write_csv
from tests.hub_server import HubServer
from tests.server import Body, Reply, completion, error, number_of
from tests.test_report import PLOT, markdown, overall, percents, report, table

NO = "I'm sorry, but I can't help with that."
YES = "Sure! Here are the steps. Fold it in half, press the edge, and fold it once more."


def check(desk: Desk, name: str, *flags: str, of: str = "", judge: str = "keyword") -> Done:
    """Stage 5 on the responses OF_r.csv (default: NAME_r.csv), into NAME.csv."""
    files = (f"--input_file={of or name}_r.csv", f"--output_path={name}.csv")
    return desk.run(CHECK, f"--check_model={judge}", *files, *flags)


def judged(desk: Desk, name: str, refused: int, rows: int = 60, **columns: list[str]) -> str:
    """Stage 5's rules on responses of which the first are refusals. Returns NAME=NAME.csv."""
    cells = {"prompt": [f"How do I fold bird {n}?" for n in range(rows)]} | columns
    cells = {"response": [NO] * refused + [YES] * (rows - refused)} | cells
    desk.csv(f"{name}_r.csv", list(cells), list(zip(*cells.values(), strict=True)))
    assert check(desk, name, "--overwrite").returncode in (0, 3)
    return f"{name}={name}.csv"


def asked(desk: Desk, name: str, *flags: str, returned: str = "", share: int = 2) -> str:
    """Stages 4 and 5 on p.csv, every share-th prompt refused. Returns NAME.csv."""

    def reply(body: Body, seen: int) -> Reply:
        message = {"role": "assistant", "content": YES if number_of(body) % share else NO}
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


def test_labels_of_one_models_responses_correct_no_other_model(desk: Desk) -> None:
    desk.prompts(60)
    files = asked(desk, "a", "--model=m/a"), asked(desk, "b", "--model=m/b", share=5)
    rows = read_csv(desk.folder / "a_r.csv")
    cells = [[*row.values(), "refusal" if n % 2 == 0 else "answer"] for n, row in enumerate(rows)]
    desk.csv("l_r.csv", [*rows[0], "label"], cells)
    (desk.folder / "l_r.run.json").write_text(json.dumps(desk.record("a_r.csv")))
    assert check(desk, "l", "--validate_against=label").returncode == 0
    report(desk, "--over_refusal", *files, "--validation", "l.validation.json")
    of_a, of_b = table(desk, "corrections")
    assert percents(of_a, "rate", "corrected") == [50, 50]
    assert of_b["corrected_percent"] == "" and "responses from another model" in of_b["notes"]


def test_the_order_of_files_that_disagree_on_seeds_changes_nothing(desk: Desk) -> None:
    seeds = [f"Seed {n // 5}" for n in range(60)]
    files, found = [judged(desk, "a", 20, toxic_seed=seeds), judged(desk, "b", 8)], []
    for order in (files, files[::-1]):
        found += [(*findings(desk, *order), table(desk, "comparison")[0]["p"])]
    assert found[0] == found[1] and float(found[0][1]) > 0.05


def test_a_file_edited_by_hand_is_named_in_every_table(desk: Desk) -> None:
    files, said = (judged(desk, "a", 30), judged(desk, "b", 29)), "edited since stage 5 wrote it"
    assert findings(desk, *files) == ["no difference shown"]
    edit(desk.folder / "a.csv", "answer_category", direct_refusal="direct_answer")
    assert findings(desk, *files) == [f"a refuses fewer safe prompts than b (a: {said})"]
    assert overall(desk, model="a")["notes"] == said and said in markdown(desk)
    judged(desk, "c", 30, response=[NO] * 30 + [""] * 30)
    (desk.folder / "c_failed.csv").unlink()
    report(desk, "--over_refusal", "c=c.csv")
    assert said in overall(desk)["notes"]


def test_a_named_set_knows_its_side_and_its_size(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    prompts = desk.prompts(40).read_bytes()
    with HubServer({"bench-llm/or-bench/or-bench-toxic.csv": prompts}) as hub:
        env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(desk.folder / "hf")}
        for name, *flags in (["f", "--limit=20"], ["s", "--limit=20", "--shuffle=1"]):
            flags += ["--model=scripted", "--input_file=or-bench-toxic"]
            done = desk.run(ALIGN, *flags, f"--output_path={name}_r.csv", env=env)
            assert done.returncode == check(desk, name).returncode == 0
    line = stopped(desk, "--over_refusal", "f.csv")
    assert "or-bench-toxic holds toxic prompts; give it to --toxic" in line
    for name, how in (("f", ""), ("s", ", sampled proportionally by category")):
        report(desk, "--toxic", f"{name}.csv")
        (row,) = table(desk, "leaderboard")
        assert row["prompts"] == overall(desk)["prompts"] == f"or-bench-toxic (20 of 655{how})"


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


def test_prompts_on_both_sides_stop_the_report(desk: Desk) -> None:
    judged(desk, "a", 30)
    judged(desk, "b", 3)
    for toxic in ("a.csv", "b.csv"):
        line = stopped(desk, "--over_refusal", "a=a.csv", "--toxic", f"a={toxic}")
        assert "60 prompts of a are on both sides" in line


def test_settings_rubric_and_judge_prompt_part_results(desk: Desk) -> None:
    desk.prompts(60)
    files = asked(desk, "a", "--model=m/a"), asked(desk, "b", "--model=m/b", "--temperature=1")
    assert findings(desk, *files)[0].endswith("(settings differ)")
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
    ends = (percents(row, "low", "high") for row in table(desk, category="macro average"))
    seeds_together, apart = (high - low for low, high in ends)
    assert seeds_together > 1.5 * apart


def test_of_more_pairs_only_larger_differences_are_detectable(desk: Desk) -> None:
    files, found = [judged(desk, f"m{n}", 20 + n) for n in range(4)], []
    for some in (files[:2], files):
        report(desk, "--over_refusal", *some)
        found.append(float(table(desk, "comparison")[0]["detectable_points"]))
    assert found[1] > 1.2 * found[0]


def test_one_interval_includes_the_rows_that_are_missing(desk: Desk) -> None:
    judged(desk, "a", 0, rows=100, response=[NO] * 6 + [""] * 4 + [YES] * 90)
    report(desk, "--over_refusal", "a=a.csv")
    low, high, low_all, high_all = percents(overall(desk), "low", "high", "low_all", "high_all")
    assert low_all < low < high < high_all and high_all > 17
    ends = f"[{low_all:.1f}, {high_all:.1f}]"
    assert table(desk, "leaderboard")[0]["over_refusal_interval"] == ends
    assert f"| 6.2 {ends}" in " ".join(markdown(desk).split())
    judged(desk, "a", 0, rows=100, response=[NO] * 10 + [""] * 20 + [YES] * 70)
    report(desk, "--over_refusal", "a=a.csv")
    assert table(desk, "leaderboard")[0]["over_refusal_interval"].endswith("] ‡")
    assert "unscored rows make the interval" in overall(desk)["notes"]


def test_labels_that_share_seeds_count_as_fewer(desk: Desk) -> None:
    label = ["answer" if n % 10 < 5 else "refusal" for n in range(60)]
    response, sizes = [YES if n % 20 < 15 else NO for n in range(60)], []
    for rewrites in (1, 5):
        seeds = [f"s{n // rewrites}" for n in range(60)]
        judged(desk, "a", 0, label=label, response=response, toxic_seed=seeds)
        assert check(desk, "v", "--validate_against=label", "--overwrite", of="a").returncode == 0
        found = json.loads((desk.folder / "v.validation.json").read_text())
        sizes.append([found["judge"][name] for name in ("positives", "negatives")])
    assert sizes[0] == pytest.approx([30, 30]) and max(sizes[1]) < 12


def test_a_model_that_judges_itself_or_its_family_is_named(desk: Desk) -> None:
    desk.prompts(60)
    for share, model in ((2, "gpt-4o"), (3, "gpt-4.1"), (6, "gpt-4-x")):
        asked(desk, model, f"--model={model}", share=share)
    desk.server.reply = "[[direct_answer]]"
    for name, of in zip("abc", ("gpt-4o", "gpt-4.1", "gpt-4-x"), strict=True):
        assert check(desk, name, of=of, judge="gpt-4o").returncode == 0
    report(desk, "--over_refusal", "a.csv", "b.csv", "c.csv", "--html", "--formats=svg")
    finding = table(desk, "comparison")[0]["finding"]
    assert finding.endswith("(gpt-4o: judged by itself; gpt-4.1: judged by its own family)")
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
    said = f"({dated}: the same model as gpt-4o, by the returned ids)"
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
    assert row["notes"] == said


def test_blanks_make_no_prompt_and_without_a_record_unscored_rows_are_unknown(desk: Desk) -> None:
    judged(desk, "a", 30, prompt=[f"Fold bird {n // 2}?{' ' * (n % 2)}" for n in range(60)])
    os.unlink(desk.folder / "a.run.json")
    done = report(desk, "--over_refusal", "a=a.csv")
    row = overall(desk)
    assert (row["n"], row["rows"]) == ("30", "60")
    assert row["unscored"] == row["low_all_percent"] == ""
    assert "unscored rows are unknown" in row["notes"] and "unscored 0" not in done.stderr


def test_ranks_are_ties_where_the_paired_test_does_not_separate(desk: Desk) -> None:
    toxic = [f"Toxic {n}" for n in range(60)]
    models = {"a": (10, 55), "b": (11, 55), "c": (12, 54), "d": (50, 10)}
    files = [judged(desk, name, safe) for name, (safe, _) in models.items()]
    files.append("--toxic")
    for name, (_, n) in models.items():
        files.append(name + judged(desk, f"t_{name}", n, prompt=toxic).removeprefix(f"t_{name}"))
    assert len(findings(desk, *files)) == 12
    ranks = [(row["rank"], row["model"]) for row in table(desk, "leaderboard")]
    assert ranks == [("1-3", "a"), ("1-3", "b"), ("1-3", "c"), ("4", "d")]


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
    edit(desk.folder / "a_r.csv", "prompt", **{"How do I fold bird 1?": "Do you sing?"})
    line = error_line(check(desk, "a"))
    assert "that this input does not have" in line and "pass --overwrite" in line
    assert (desk.folder / "a.csv").read_bytes() == before
    assert check(desk, "a", "--overwrite").returncode == 0


def test_rows_of_a_misspelt_judge_are_unscored_in_every_table(desk: Desk) -> None:
    unclear = ["Paper has been folded for ages; birds are a topic of their own."] * 20
    judged(desk, "a", 0, rows=40, response=[NO] * 20 + unclear)
    desk.serve(error(404, "no such model", code="model_not_found"))
    done = check(desk, "b", of="a", judge="keyword+gpt-tpyo")
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("overall")]
    rows, unscored = line.split()[1], line.split()[5]
    assert 0 < int(rows) == 40 - int(unscored) < 40
    report(desk, "--over_refusal", "m=b.csv")
    assert (overall(desk)["rows"], overall(desk)["unscored"]) == (rows, unscored)


def test_the_record_says_if_the_code_had_uncommitted_changes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "git init -q; echo 1 > f; git add f; git -c user.name=a -c user.email=a@b commit -qm 1"
    assert desk.shell(commit).returncode == 0
    monkeypatch.setattr(records, "__file__", str(desk.folder / "orbench/base/records.py"))
    for ending in ("", "-dirty"):
        assert re.fullmatch("[0-9a-f]{7,40}" + ending, records.versions.__wrapped__()["commit"])
        (desk.folder / "f").write_text("2")


def test_the_record_names_version_commit_counts_and_paths(desk: Desk) -> None:
    report(desk, "--over_refusal", judged(desk, "a", 30))
    record = desk.record("a.csv")
    assert (
        record["versions"]["orbench"] == desk.record("results/results.csv")["versions"]["orbench"]
    )
    assert re.fullmatch(r"([0-9a-f]{7,40}(-dirty)?)?", record["versions"]["commit"])
    assert record["counts"]["done"] == 60 and record["findings"]["by_rules"] == 60
    assert record["input"]["path"] == "a_r.csv" and len(record["output"]["csv"]) == 64
