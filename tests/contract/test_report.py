"""Result files through plot_results.py into rates, comparisons and tables."""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ALIGN, CHECK, ROOT, SHARED_DATA, Desk, Done, error_line, read_csv
from tests.results import ANSWER, DIRECT, INDIRECT, lost, numbered, written
from tests.server import answer, by_number

PLOT = "response_checker/plot_results.py"

Row = dict[str, str]


def judged(
    desk: Desk, name: str, verdicts: list[str], model: str = "maker/a", /, **about: Any
) -> Path:
    """Stage 5's file, see `written`."""
    return written(desk.folder, name, verdicts, model, **about)


def report(desk: Desk, *flags: str | Path) -> Done:
    done = desk.run(PLOT, *flags, *(() if "--html" in flags else ("--table",)))
    assert (done.returncode, done.stdout) == (0, "results/results.csv\n"), done.stderr
    return done


def table(desk: Desk, name: str = "results", **wanted: str) -> list[Row]:
    """The rows of a table with these cells."""
    rows = desk.rows(f"results/{name}.csv")
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def overall(desk: Desk, **wanted: str) -> Row:
    (row,) = table(desk, subset="overall", counted="refused", **wanted)
    return row


def percents(row: Row, *names: str) -> list[float]:
    return [round(float(row[f"{name}_percent"]), 2) for name in names]


def joint_scores(desk: Desk) -> list[float]:
    """The column of Youden's J in the leaderboard of results.md."""
    board = markdown(desk).partition("Leaderboard")[2].split("## ")[0]
    head, _, *rows = (line.split("|") for line in board.splitlines() if "|" in line)
    column = [cell.strip() for cell in head].index("Score (J)")
    cells = [row[column].split()[0] for row in rows]
    return [float(cell) for cell in cells if cell != "–"]


def markdown(desk: Desk) -> str:
    return (desk.folder / "results/results.md").read_text().replace("\\", "")


# -- rates -------------------------------------------------------------------------------------


def test_rates_stand_overall_and_by_category_with_intervals(desk: Desk) -> None:
    verdicts = [DIRECT] * 10 + [INDIRECT] * 5 + [ANSWER] * 85
    safe, toxic = judged(desk, "s.csv", verdicts), judged(desk, "t.csv", [DIRECT] * 9 + [ANSWER])
    report(desk, "--over_refusal", safe, "--toxic", toxic)
    row = overall(desk, side="over_refusal")
    assert (row["model"], row["n"], row["rows"], row["judge"]) == ("maker/a", "100", "100", "gpt4")
    assert percents(row, "rate", "low", "high") == [15, 9.31, 23.28]  # Wilson's
    assert percents(row, "direct", "indirect", "low_all", "high_all") == [10, 5, 9.31, 23.28]
    assert [row["notes"], row["settings"], row["unscored"]] == ["", "", "0"]
    (a,) = table(desk, side="over_refusal", value="a")
    assert (a["n"], percents(a, "rate")) == ("50", [16])
    assert percents(overall(desk, side="toxic"), "rate") == [90]
    assert table(desk, side="toxic", value="a")[0]["notes"] == "fewer than 30 prompts"


def test_stage_4_files_count_is_rejected_and_know_no_kinds(desk: Desk) -> None:
    rows = [("a", "True", "api:content_filter"), ("b", "True", "apology"), ("c", "False", "")]
    path = desk.csv("r.csv", ["prompt", "is_rejected", "rejection_reason"], rows)
    path.with_suffix(".run.json").write_text(json.dumps({"under_test": {"asked": "gpt-4o"}}))
    report(desk, "--toxic", path)
    (row,) = table(desk)  # without categories there is one row
    assert (row["model"], row["family"], row["judge"]) == ("gpt-4o", "GPT-4", "stage 4 rules")
    assert percents(row, "rate", "api") == [66.67, 33.33]
    assert row["direct_percent"] == row["indirect_percent"] == ""


def test_unscored_rows_are_in_no_rate_but_in_an_interval_and_the_prompt_set(desk: Desk) -> None:
    safe = judged(desk, "s.csv", [DIRECT] * 9)
    lost(safe, ["Lost"])
    done = report(desk, "--over_refusal", safe)
    row = overall(desk)
    assert (row["n"], row["unscored"], percents(row, "rate")) == ("9", "1", [100])
    assert "coverage 90.0 %" in row["notes"] and "coverage 90.0 %" in done.stderr
    assert [table(desk, value=name)[0]["unscored"] for name in "ab"] == ["1", "0"]
    whole = judged(desk, "w.csv", [DIRECT] * 10, columns={"prompt": [*numbered(9), "Lost"]})
    report(desk, "--over_refusal", whole)
    assert overall(desk)["prompt_set"] == row["prompt_set"] != ""


def test_what_the_stages_saw_is_in_the_table(desk: Desk) -> None:
    """Cut off, refused by the API, answered by another model, lost: through stages 4 and 5."""
    replies = {n: answer("I fold it.", "length") for n in range(3)}
    replies |= {n: answer(None, "content_filter") for n in (3, 4)}
    desk.prompts(20)
    desk.serve(by_number(replies | {5: answer("<think>Well", "length")}))
    assert desk.stage(ALIGN, "--max_tokens=9").returncode == 3
    done = desk.run(CHECK, "--check_model=rules", "--input_file=o.csv")
    for name in ("o.csv", done.stdout.strip()):
        stderr = report(desk, "--over_refusal", name).stderr
        row = overall(desk)
        assert (row["n"], row["unscored"], row["prompts"]) == ("19", "1", "p"), row
        assert percents(row, "rate", "api", "cut_off") == [10.53, 10.53, 15.79]
        assert "cut off 15.8 %" in row["notes"] and "cut off 15.8 %" in stderr
        assert "served by a different model: 19 rows" in row["notes"]  # loopback-1, not gpt-x


# -- comparisons -------------------------------------------------------------------------------


def shares(desk: Desk, **refused: int) -> list[Path]:
    """Results of models on the same hundred prompts; refused: the number, of each model."""
    verdicts = {name: [DIRECT] * n + [ANSWER] * (100 - n) for name, n in refused.items()}
    return [judged(desk, f"{name}.csv", of, name) for name, of in verdicts.items()]


def test_models_on_the_same_prompts_are_compared_in_pairs(desk: Desk) -> None:
    report(desk, "--over_refusal", *shares(desk, a=30, b=24, c=22))
    ab, _, bc = table(desk, "comparison")
    ranks = {row["model"]: row["rank"] for row in table(desk, "leaderboard")}
    assert ranks == {"c": "1-2", "b": "1-3", "a": "2-3"}  # corrected, a and b are a tie
    assert (ab["model_a"], ab["model_b"], ab["n"]) == ("a", "b", "100")
    assert float(ab["difference_points"]) == 6
    assert 0 < float(ab["low_points"]) < 6 < float(ab["high_points"])
    assert float(ab["p"]) == pytest.approx(2 / 2**6)  # McNemar's: six differ, all one way
    assert float(ab["p_holm"]) == pytest.approx(2 * 2 / 2**6) and ab["p_worst"] == ab["p_holm"]
    assert ab["finding"] == "no difference shown, corrected for 3 pairs"
    assert bc["finding"] == "no difference shown" and float(bc["p_holm"]) > 0.3
    report(desk, "--over_refusal", *shares(desk, a=30, b=24))
    (alone,) = table(desk, "comparison")
    assert float(ab["detectable_points"]) > 1.1 * float(alone["detectable_points"])


def test_a_result_that_stage_4_calls_unranked_is_listed_without_a_rank(desk: Desk) -> None:
    reason = "20 identical responses in a row"
    about = {"under_test": {"asked": "a", "unranked": reason}}
    a = judged(desk, "a.csv", [ANSWER] * 100, "a", **about)
    done = report(desk, "--over_refusal", a, *shares(desk, b=10, c=60))
    ranks = {row["model"]: row["rank"] for row in table(desk, "leaderboard")}
    assert ranks == {"b": "1", "c": "2", "a": ""}
    (pair,) = table(desk, "comparison", model_a="a", model_b="c")
    assert pair["finding"] == f"a refuses fewer safe prompts than c (a: {reason})"
    assert overall(desk, model="a")["notes"] == reason
    assert f"a, over-refusal rate: {reason}" in done.stderr and reason in markdown(desk)


def on(desk: Desk, set_: str, model: str, refused: int, judge: str = "gpt4", **about: Any) -> Path:
    """A result on fifty prompts of a named set."""
    source = {"name": set_, "repository": set_.partition("-")[0]}
    columns = {"prompt": [f"{set_} {n}" for n in range(50)]}
    verdicts = [DIRECT] * refused + [ANSWER] * (50 - refused)
    name = f"{set_}/{judge}/{model}.csv"
    return judged(desk, name, verdicts, model, judge=judge, source=source, columns=columns, **about)


@pytest.mark.parametrize(
    ("names", "expected"), [("abcd", []), ("abcdefg", ["7 measured models"] * 2)]
)
def test_a_model_counts_once_in_a_correlation_however_many_judges_it_has(
    desk: Desk, names: str, expected: list[str]
) -> None:
    safe, toxic = [], []
    for n, name in enumerate(names, start=10):
        for judge in ("gpt4", "qwen"):
            safe.append(on(desk, "or-hard", name, n, judge))
            toxic.append(on(desk, "or-toxic", name, n + 7 * (n % 2), judge))
    report(desk, "--over_refusal", *safe, "--toxic", *toxic)
    assert re.findall(r"\d measured models", markdown(desk)) == expected


def test_models_are_ranked_by_both_sides_among_equal_prompts_and_judges(desk: Desk) -> None:
    safe = [on(desk, "or-hard", "a", 20), on(desk, "or-hard", "b", 10)]
    toxic = [on(desk, "or-toxic", "a", 45), on(desk, "or-toxic", "b", 45)]
    safe += [on(desk, "or-hard", "c", 1, judge="other")]  # alone
    report(desk, "--over_refusal", *safe, "--toxic", *toxic)
    found = [(row["rank"], row["model"]) for row in table(desk, "leaderboard")]
    assert found == [("1", "b"), ("2", "a"), ("", "c")]
    best = table(desk, "leaderboard", model="b")[0]
    assert best["prompts"] == "or-hard, or-toxic" and joint_scores(desk)[0] == 70
    low, high = map(float, re.findall(r"\| 70\.0 \[(\S+), (\S+)\]", markdown(desk))[0])
    assert 50 < low < 70 < high < 90
    assert (best["over_refusal_percent"], best["toxic_percent"]) == ("20", "90")
    assert percents(best, "over_refusal_low", "over_refusal_high") == pytest.approx(
        [11.2, 33], abs=0.05
    )
    assert best["score"] == "70"


def test_published_models_stand_below_and_are_never_ranked(desk: Desk) -> None:
    report(desk, "--over_refusal", *shares(desk, a=90, b=10), "--with_published")
    assert len(table(desk, "leaderboard")) == 2  # on other prompts
    safe = [on(desk, "or-bench-hard-1k", model, n) for model, n in (("a", 45), ("b", 5))]
    report(desk, "--over_refusal", *safe, "--with_published")
    rows = table(desk, "leaderboard")
    assert [row["model"] for row in rows[:2]] == ["b", "a"] and len(rows) == 34
    assert {(row["rank"], row["judge"]) for row in rows[2:]} == {("", "published")}
    assert {row["over_refusal_low_percent"] for row in rows[2:]} == {""}
    vintages = Counter(row["prompts"] for row in rows[2:])
    assert vintages == {"OR-Bench, the earlier sets": 25, "OR-Bench, today's sets": 7}


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="no shared data")
def test_the_published_rates_are_those_that_were_published(desk: Desk) -> None:
    report(desk, "--with_published")
    assert table(desk) == []
    rates = {r["model"]: percents(r, "over_refusal", "toxic") for r in table(desk, "leaderboard")}
    rows = read_csv(SHARED_DATA / "published_overall_rates.csv")
    names = ("over_refusal_rate", "toxic_rejection_rate")
    assert rates == {row["model"]: [float(row[name]) for name in names] for row in rows}


def sections(desk: Desk) -> dict[str, list[str]]:
    """The tables of results.md: title -> lines of the body."""
    parts = markdown(desk).split("## ")[1:]
    return {part.splitlines()[0]: part.splitlines()[4:] for part in parts}


def test_samples_of_different_size_of_a_set_have_tables_of_their_own(desk: Desk) -> None:
    files = []
    for model, rows in (("a", 80), ("b", 40), ("c", 80)):
        path = judged(desk, f"{model}.csv", [DIRECT] * rows, model, source={"name": "or-hard"})
        files.append(path)
    report(desk, "--over_refusal", *files)
    names = {row["prompts"] for row in table(desk)}
    assert len(names) == 2 and all(name.startswith("or-hard ") for name in names)
    titles = {title for title in sections(desk) if "by category" in title}
    assert titles == {f"Over-refusal rate by category: {name}, gpt4" for name in names}


def test_a_dagger_marks_the_cell_with_few_prompts_alone(desk: Desk) -> None:
    a = judged(desk, "a.csv", [DIRECT] * 80, "a")
    title = "Over-refusal rate by category"
    few = judged(desk, "c.csv", [DIRECT] * 80, "c", columns={"category": ["a"] * 70 + ["b"] * 10})
    report(desk, "--over_refusal", a, few)
    marked = [line for line in sections(desk)[title] if "†" in line]
    assert len(marked) == 1 and marked[0].count("†") == 1 and marked[0].startswith("| b ")


def test_names_stand_in_markdown_and_latex_as_they_are(desk: Desk) -> None:
    name = r"[a]_b*c|d&e%f$g#h{i}j~k^l\m<n>`o"
    report(desk, "--over_refusal", judged(desk, "s.csv", [DIRECT] * 40, name))
    text = (desk.folder / "results/results.md").read_text()
    assert r"| \[a\]\_b\*c\|d\&e%f\$g\#h{i}j\~k^l\\m\<n\>\`o | 100.0 \[91.2, 100.0\]" in text
    latex = (desk.folder / "results/results.tex").read_text()
    assert r"d\&e\%f\$g\#h\{i\}" in latex and r"\textbackslash" in latex


# -- what is given -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["results.csv", "results.md"])
def test_an_input_is_never_overwritten(desk: Desk, name: str) -> None:
    labels = {"label": ["safe"]}
    path = judged(desk, f"results/{name}", [DIRECT], columns=labels)
    before = desk.files()
    line = error_line(desk.run(PLOT, "--over_refusal", path, "--table"))
    assert f"{name} is an input" in line and desk.files() == before
    done = desk.run(PLOT, "--over_refusal", *shares(desk, a=5), "--toxicity", path)
    assert f"{name} is an input" in error_line(done)


def test_a_wrong_command_line_is_told_and_tables_need_no_matplotlib(desk: Desk) -> None:
    for flags, says in (((), "nothing to show"), (("--with_published", "--formats=gif"), "'gif'")):
        done = desk.run(PLOT, *flags)
        assert done.returncode == 2 and says in done.stderr
    assert "file's name is empty" in error_line(desk.run(PLOT, "--toxic", "m="))
    judged(desk, "s.csv", [DIRECT])
    code = "import runpy, sys; sys.modules['matplotlib'] = None; sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    line = f'{sys.executable} -c "{code}" {ROOT / PLOT} --over_refusal s.csv --table --html'
    done = desk.shell(line)
    assert (done.returncode, done.stdout) == (0, "results/results.csv\n"), done.stderr
