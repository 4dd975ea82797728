"""What could make a figure wrong without a word, on files that stages 4 and 5 made."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ALIGN, CHECK, Desk, Done, error_line, read_csv, write_csv
from tests.hub_server import HubServer
from tests.server import Body, Reply, completion, error
from tests.test_report import PLOT, joint_scores, markdown, overall, percents, report, table

pytestmark = pytest.mark.new
NO, YES = "I'm sorry, but I can't help with that.", "Fold it in half first."


def judged(desk: Desk, name: str, refused: int, rows: int = 60, **columns: list[str]) -> Path:
    """Stage 5's rules on responses of which the first are refusals: the file NAME.csv."""
    cells = {"prompt": [f"How do I fold bird {n}?" for n in range(rows)]} | columns
    cells = {"response": [NO] * refused + [YES] * (rows - refused)} | cells
    desk.csv(f"{name}_r.csv", list(cells), list(zip(*cells.values(), strict=True)))
    flags = (f"--input_file={name}_r.csv", f"--output_path={name}.csv", "--overwrite")
    done = desk.run(CHECK, "--check_model=keyword", *flags)
    assert done.returncode in (0, 3), done.stderr
    return desk.folder / f"{name}.csv"


def asked(desk: Desk, name: str, *flags: str, returned: str = "", share: int = 2) -> Path:
    """Stages 4 and 5 on p.csv, with every share-th prompt refused: the file NAME.csv."""

    def reply(body: Body, seen: int) -> Any:
        number = int(re.findall(r"number (\d+)", json.dumps(body))[-1])
        message = {"role": "assistant", "content": YES if number % share else NO}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return Reply(completion(choices=[choice], model=returned or body["model"]))

    if desk.url:
        desk.server.reply = reply
    else:
        desk.serve(reply)
    done = desk.stage(ALIGN, *flags, f"--output_path={name}_r.csv")
    assert done.returncode == 0, done.stderr
    flags = (f"--input_file={name}_r.csv", f"--output_path={name}.csv")
    assert desk.run(CHECK, "--check_model=keyword", *flags).returncode == 0
    return desk.folder / f"{name}.csv"


def edit(path: Path, column: str, **changes: str) -> None:
    """Change a column by hand: old cell -> new one."""
    rows = read_csv(path)
    for row in rows:
        row[column] = changes.get(row[column], row[column])
    write_csv(path, list(rows[0]), [list(row.values()) for row in rows])


def amend(path: Path, **entries: Any) -> None:
    """Change entries of the record beside a file."""
    record = path.with_suffix(".run.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | entries))


def findings(desk: Desk, *flags: str | Path) -> list[str]:
    report(desk, *flags)
    return [pair["finding"] for pair in table(desk, "comparison")]


def stopped(desk: Desk, *flags: str | Path) -> str:
    return error_line(desk.run(PLOT, *flags, "--table"))


def test_labels_of_one_models_responses_correct_no_other_model(desk: Desk) -> None:
    desk.prompts(60)
    a, b = asked(desk, "a", "--model=m/a"), asked(desk, "b", "--model=m/b", share=5)
    rows = read_csv(desk.folder / "a_r.csv")
    cells = [[*row.values(), "refusal" if n % 2 == 0 else "answer"] for n, row in enumerate(rows)]
    labelled = desk.csv("l_r.csv", [*rows[0], "label"], cells)
    labelled.with_suffix(".run.json").write_bytes((desk.folder / "a_r.run.json").read_bytes())
    flags = ("--input_file=l_r.csv", "--output_path=l.csv", "--validate_against=label")
    assert desk.run(CHECK, "--check_model=keyword", *flags).returncode == 0
    report(desk, "--over_refusal", a, b, "--validation", "l.validation.json")
    of_a, of_b = table(desk, "corrections")
    assert percents(of_a, "rate", "corrected") == [50, 50]
    assert of_b["corrected_percent"] == "" and "responses of another model" in of_b["notes"]


def test_the_order_of_files_that_disagree_on_seeds_changes_nothing(desk: Desk) -> None:
    seeds = [f"Seed {n // 5}" for n in range(60)]
    judged(desk, "a", 20, toxic_seed=seeds)
    judged(desk, "b", 8)
    (ab,), p = findings(desk, "--over_refusal", "a=a.csv", "b=b.csv"), []
    p.append(table(desk, "comparison")[0]["p"])
    (ba,) = findings(desk, "--over_refusal", "b=b.csv", "a=a.csv")
    assert (ab, p[0]) == (ba, table(desk, "comparison")[0]["p"]) and float(p[0]) > 0.05


def test_a_file_edited_by_hand_is_named_in_every_table(desk: Desk) -> None:
    a, b = judged(desk, "a", 30), judged(desk, "b", 29)
    said = "edited since stage 5 wrote it"
    assert said not in findings(desk, "--over_refusal", f"a={a}", f"b={b}")[0]
    assert overall(desk, model="a")["notes"] == ""
    edit(a, "answer_category", direct_refusal="direct_answer")
    (finding,) = findings(desk, "--over_refusal", f"a={a}", f"b={b}")
    assert finding == f"a refuses fewer than b (a: {said})"
    assert said in overall(desk, model="a")["notes"] and said in markdown(desk)
    lost = judged(desk, "c", 30, response=[NO] * 30 + [""] * 30)
    (desk.folder / "c_failed.csv").unlink()
    report(desk, "--over_refusal", f"c={lost}")
    assert said in overall(desk)["notes"]


def test_a_named_set_knows_its_side_and_its_size(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    prompts = desk.prompts(40).read_bytes()
    with HubServer({"bench-llm/or-bench/or-bench-toxic.csv": prompts}) as hub:
        env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(desk.folder / "hf")}
        for name, *flags in (["f", "--limit=20"], ["s", "--limit=20", "--shuffle=1"]):
            given = (
                "--model=scripted",
                "--input_file=or-bench-toxic",
                f"--output_path={name}_r.csv",
            )
            assert desk.run(ALIGN, *given, *flags, env=env).returncode == 0
            flags = [f"--input_file={name}_r.csv", f"--output_path={name}.csv"]
            assert desk.run(CHECK, "--check_model=keyword", *flags).returncode == 0
    line = stopped(desk, "--over_refusal", "f.csv")
    assert "or-bench-toxic holds toxic prompts; give it to --toxic" in line
    for name, how in (("f", ""), ("s", ", sampled proportionally by category")):
        report(desk, "--toxic", f"{name}.csv")
        (row,) = table(desk, "leaderboard")
        assert row["prompts"] == overall(desk)["prompts"] == f"or-bench-toxic (20 of 655{how})"


def test_prompts_on_both_sides_stop_the_report(desk: Desk) -> None:
    judged(desk, "a", 30)
    judged(desk, "b", 3)
    for toxic in ("a.csv", "b.csv"):
        line = stopped(desk, "--over_refusal", "a=a.csv", "--toxic", f"a={toxic}")
        assert "60 prompts of a stand on both sides" in line


def test_settings_rubric_and_judge_prompt_part_results(desk: Desk) -> None:
    desk.prompts(60)
    files = [asked(desk, "a", "--model=m/a"), asked(desk, "b", "--model=m/b", "--temperature=1")]
    (finding,) = findings(desk, "--over_refusal", *files)
    assert finding.endswith("(settings differ)")
    assert [row["settings"] for row in table(desk, "leaderboard")] == ["", "temperature 1"]
    desk.serve("[[direct_answer]]")
    for name, *flags in (["c"], ["d"], ["e", "--rubric=graded"]):
        flags += ["--check_model=gpt-x", f"--input_file={'a' if name == 'c' else 'b'}_r.csv"]
        assert desk.run(CHECK, *flags, f"--output_path={name}.csv").returncode == 0
    record = json.loads((desk.folder / "d.run.json").read_text())
    edited = {**record["settings"], "prompt file": "5eed" * 3}
    assert len(findings(desk, "--over_refusal", "c.csv", "d.csv")) == 1
    amend(desk.folder / "d.csv", settings=edited)
    assert findings(desk, "--over_refusal", "c.csv", "d.csv", "e.csv") == []
    judges = [row["judge"] for row in table(desk, "leaderboard")]
    assert judges[1:] == ["gpt-x, prompt 5eed5eed", "gpt-x, graded"]


def test_seeds_that_span_categories_widen_the_macro_average(desk: Desk) -> None:
    category = [f"c{n % 3}" for n in range(60)]
    judged(desk, "a", 30, category=category, toxic_seed=[f"s{n // 6}" for n in range(60)])
    judged(desk, "b", 30, category=category)
    report(desk, "--over_refusal", "a=a.csv", "b=b.csv")
    of_a, of_b = table(desk, category="macro average")
    widths = [high - low for low, high in (percents(row, "low", "high") for row in (of_a, of_b))]
    assert of_a["rate_percent"] == of_b["rate_percent"] and widths[0] > 1.5 * widths[1]


def test_of_more_pairs_only_larger_differences_are_detectable(desk: Desk) -> None:
    files = [f"m{n}={judged(desk, f'm{n}', 20 + n)}" for n in range(4)]
    report(desk, "--over_refusal", *files[:2])
    alone = float(table(desk, "comparison")[0]["detectable_points"])
    report(desk, "--over_refusal", *files)
    assert float(table(desk, "comparison")[0]["detectable_points"]) > 1.2 * alone


def test_one_interval_includes_the_rows_that_are_missing(desk: Desk) -> None:
    judged(desk, "a", 10, rows=100, response=[NO] * 6 + [""] * 4 + [YES] * 90)
    report(desk, "--over_refusal", "a=a.csv")
    row = overall(desk)
    low, high, low_all, high_all = percents(row, "low", "high", "low_all", "high_all")
    assert row["unscored"] == "4" and low_all < low < high < high_all and high_all > 17
    ends = f"[{low_all:.1f}, {high_all:.1f}]"
    assert table(desk, "leaderboard")[0]["over_refusal_interval"] == ends
    assert f"| 6.2 {ends}" in " ".join(markdown(desk).split())
    judged(desk, "b", 10, rows=100, response=[NO] * 10 + [""] * 20 + [YES] * 70)
    report(desk, "--over_refusal", "b=b.csv")
    assert table(desk, "leaderboard")[0]["over_refusal_interval"].endswith("] ‡")
    assert "unscored rows make the interval" in overall(desk)["notes"]


def test_labels_that_share_seeds_count_as_fewer(desk: Desk) -> None:
    label = ["answer" if n % 10 < 5 else "refusal" for n in range(60)]
    response = [YES if n % 20 < 15 else NO for n in range(60)]
    for name, rewrites in (("a", 1), ("b", 5)):
        seeds = [f"s{n // rewrites}" for n in range(60)]
        judged(desk, name, 0, label=label, response=response, toxic_seed=seeds)
        flags = (f"--input_file={name}_r.csv", f"--output_path={name}v.csv")
        done = desk.run(CHECK, "--check_model=keyword", "--validate_against=label", *flags)
        assert done.returncode == 0, done.stderr
    alone, shared = (
        json.loads((desk.folder / f"{name}v.validation.json").read_text())["judge"] for name in "ab"
    )
    assert alone["positives"] == pytest.approx(30) and shared["positives"] < 12


def test_a_model_that_judges_itself_or_its_family_is_named(desk: Desk) -> None:
    desk.prompts(60)
    asked(desk, "a", "--model=gpt-4o")
    asked(desk, "b", "--model=gpt-4.1", share=3)
    asked(desk, "c", "--model=gpt-4-x", share=6)
    desk.serve("[[direct_answer]]")
    for name in "abc":
        flags = (f"--input_file={name}_r.csv", f"--output_path={name}_j.csv")
        assert desk.run(CHECK, "--check_model=gpt-4o", *flags).returncode == 0
    found = findings(desk, "--over_refusal", "a_j.csv", "b_j.csv", "c_j.csv")
    assert found[0].endswith("(gpt-4o: judged by itself; gpt-4.1: judged by its own family)")
    assert "judged by itself" in overall(desk, model="gpt-4o")["notes"]
    assert "judged by its own family" in overall(desk, model="gpt-4.1")["notes"]
    ranks = {row["model"]: row["rank"] for row in table(desk, "leaderboard")}
    assert ranks == {"gpt-4o": "", "gpt-4.1": "1-2", "gpt-4-x": "1-2"}


def test_one_model_under_two_names_has_one_rank(desk: Desk) -> None:
    desk.prompts(60)
    dated = "gpt-4o-2024-08-06"
    asked(desk, "a", "--model=gpt-4o", returned=dated)
    asked(desk, "b", f"--model={dated}", returned=dated)
    asked(desk, "c", "--model=m/c", share=40)
    (ab, *_) = findings(desk, "--over_refusal", "a.csv", "b.csv", "c.csv")
    assert f"({dated}: the same model as gpt-4o, as the returned ids say)" in ab
    assert [row["rank"] for row in table(desk, "leaderboard")] == ["1", "2", ""]
    assert "a.csv is given twice" in stopped(desk, "--over_refusal", "x=a.csv", "y=./a.csv")


def test_versions_of_a_model_and_the_dates_are_in_the_table(desk: Desk) -> None:
    desk.prompts(30)
    asked(desk, "a", "--model=gpt-4o", returned="gpt-4o-2024-05-13")
    amend(desk.folder / "a_r.csv", start="2024-05-20T10:00:00+00:00")
    desk.prompts(60)
    asked(desk, "a", "--model=gpt-4o", returned="gpt-4o-2024-08-06")
    report(desk, "--over_refusal", "a.csv")
    row = overall(desk)
    assert row["date"] == f"2024-05-20 to {desk.record('a_r.csv')['end'][:10]}"
    said = "answered by gpt-4o-2024-05-13 (30 rows), gpt-4o-2024-08-06 (30 rows)"
    assert row["notes"] == said


def test_without_a_record_nothing_is_said_of_unscored_rows(desk: Desk) -> None:
    path = judged(desk, "a", 30)
    os.unlink(path.with_suffix(".run.json"))
    done = report(desk, "--over_refusal", f"a={path}")
    row = overall(desk)
    assert (row["n"], row["unscored"], row["low_all_percent"]) == ("60", "", "")
    assert "unscored rows are unknown" in row["notes"] and "unscored 0" not in done.stderr


def test_prompts_that_differ_in_blanks_around_them_are_one(desk: Desk) -> None:
    prompts = [f"Fold bird {n // 2}?{' ' * (n % 2)}" for n in range(60)]
    report(desk, "--over_refusal", f"a={judged(desk, 'a', 30, prompt=prompts)}")
    assert (overall(desk)["n"], overall(desk)["rows"]) == ("30", "60")


def test_ranks_are_ties_where_the_paired_test_does_not_separate(desk: Desk) -> None:
    for name, safe, toxic in (("a", 10, 55), ("b", 11, 55), ("c", 12, 54), ("d", 50, 10)):
        judged(desk, name, safe)
        judged(desk, f"{name}_t", toxic, prompt=[f"Toxic {n}" for n in range(60)])
    names = "abcd"
    safe_files = [f"{name}={name}.csv" for name in names]
    toxic_files = [f"{name}={name}_t.csv" for name in names]
    assert len(findings(desk, "--over_refusal", *safe_files, "--toxic", *toxic_files)) == 12
    ranks = [(row["rank"], row["model"]) for row in table(desk, "leaderboard")]
    assert ranks == [("1-3", "a"), ("1-3", "b"), ("1-3", "c"), ("4", "d")]
    assert joint_scores(desk)[0] == 75


def test_rules_that_are_seldom_certain_rank_nobody(desk: Desk) -> None:
    a, b = judged(desk, "a", 30), judged(desk, "b", 10)
    for path, certain in ((a, 50), (b, 30)):
        amend(path, findings={"certain": {"certain": certain, "rules": 60}})
    (finding,) = findings(desk, "--over_refusal", f"a={a}", f"b={b}")
    said = "only 50% of the rules' verdicts are certain"
    assert finding == f"b refuses fewer than a (b: {said})"
    assert overall(desk, model="b")["certain_percent"] == "50" and said in markdown(desk)
    assert {row["rank"] for row in table(desk, "leaderboard")} == {""}


# -- stages ------------------------------------------------------------------------------------


def check(desk: Desk, *flags: str) -> Done:
    flags = ("--check_model=keyword", "--input_file=a_r.csv", "--output_path=a.csv", *flags)
    return desk.run(CHECK, *flags)


@pytest.mark.parametrize("column", ["prompt", "response"])
def test_an_edited_input_does_not_replace_results(desk: Desk, column: str) -> None:
    path = judged(desk, "a", 30)
    before = path.read_bytes()
    edit(desk.folder / "a_r.csv", column, **{"How do I fold bird 1?": "Sing?", NO: YES})
    line = error_line(check(desk))
    assert "that this input does not have" in line and "pass --overwrite" in line
    assert path.read_bytes() == before
    assert check(desk, "--overwrite").returncode == 0


def test_a_sorted_or_longer_input_goes_on(desk: Desk) -> None:
    judged(desk, "a", 30)
    rows = read_csv(desk.folder / "a_r.csv")
    rows = [*rows[::-1], {"prompt": "One more?", "response": YES}]
    write_csv(desk.folder / "a_r.csv", list(rows[0]), [[r[c] for c in rows[0]] for r in rows])
    assert check(desk).returncode == 0 and len(read_csv(desk.folder / "a.csv")) == 61


def test_rows_of_a_misspelt_judge_are_unscored_in_every_table(desk: Desk) -> None:
    unclear = ["Paper has been folded for ages; birds are a topic of their own."] * 20
    judged(desk, "a", 0, rows=40, response=[NO] * 20 + unclear)
    desk.serve(error(404, "no such model", code="model_not_found"))
    flags = ("--check_model=keyword+gpt-tpyo", "--input_file=a_r.csv", "--output_path=b.csv")
    done = desk.run(CHECK, *flags)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("overall")]
    n = int(line.split()[1])
    assert n < 40 and int(line.split()[5]) == 40 - n
    report(desk, "--over_refusal", "m=b.csv")
    assert (overall(desk)["rows"], overall(desk)["unscored"]) == (str(n), str(40 - n))


def test_the_record_names_version_commit_counts_and_paths(desk: Desk) -> None:
    judged(desk, "a", 30)
    record = desk.record("a.csv")
    assert re.fullmatch(r"\d+\.\d+\.\d+", record["versions"]["orbench"])
    assert re.fullmatch(r"[0-9a-f]{7,}(-dirty)?", record["versions"]["commit"])
    counts = {"scored": 60, "refused": 30, "unscored": 0}
    assert record["findings"]["refusals"] == {"": {"(no category)": counts}}
    assert record["input"]["path"] == "a_r.csv" and len(record["output"]["csv"]) == 64
    report(desk, "--over_refusal", "a=a.csv")
    assert desk.record("results/results.csv")["versions"]["orbench"]
