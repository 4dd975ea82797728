"""alignment_checker/select_hard_prompts.py, run as a user runs it."""

import csv
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from orbench.models import ALIASES
from orbench.record import missing_before
from orbench.refusal import classify, counts_as_refusal
from orbench.table import prompt_id, prompt_set_hash
from tests.conftest import run

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "alignment_checker" / "select_hard_prompts.py"
REAL = ROOT.parent / "shared" / "data"
Rows = list[dict[str, str]]

GPT, LLAMA2, LLAMA3, CLAUDE, CLAUDE_OLD = (
    "gpt-3.5-turbo-0125",
    "llama-2-70b",
    "together/meta-llama/Llama-3-70b-chat-hf",
    "claude-3-opus",
    "claude-2",
)


def select(
    folder: Path, *args: str | Path, own_process: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the script in a folder."""
    return run(SCRIPT, "--result_files", *args, cwd=folder, own_process=own_process)


def write(path: Path, rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> Path:
    """A CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(columns or rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def results(folder: Path, name: str, model: str, refused: str, **record: object) -> Path:
    """Stage 4's results of a model. refused: a letter a prompt; y(es), n(o), - (failed)."""
    rows = [
        {"prompt": f"prompt {i}", "category": "hate" if i % 2 else "illegal", "is_rejected": letter}
        for i, letter in enumerate(refused)
    ]
    scored = [{**row, "is_rejected": row["is_rejected"] == "y"} for row in rows if ok(row)]
    path = write(folder / f"{name}.csv", scored, list(rows[0]))
    failed = [{"prompt": r["prompt"], "category": r["category"]} for r in rows if not ok(r)]
    if failed:
        write(folder / f"{name}_failed.csv", failed)
    under_test = {"asked": model, "id": ALIASES.get(model, model), "family": ""}
    run = {"stage": "alignment_checker", "under_test": under_test if model else {}, **record}
    path.with_suffix(".run.json").write_text(json.dumps(run))
    return path


def ok(row: Mapping[str, str]) -> bool:
    return row["is_rejected"] != "-"


def hard(folder: Path) -> list[str]:
    return [row["prompt"].removeprefix("prompt ") for row in read(folder / "or-bench-hard.csv")]


def table(folder: Path) -> Rows:
    return read(folder / "or-bench-hard_models.csv")


def test_a_prompt_is_hard_where_enough_families_refuse_and_a_family_counts_once(
    tmp_path: Path,
) -> None:
    results(tmp_path, "a", GPT, "yyyn")
    results(tmp_path, "b", LLAMA2, "yynn")
    results(tmp_path, "c", CLAUDE, "yyyn")
    results(tmp_path, "d", CLAUDE_OLD, "ynyn")
    done = select(tmp_path, "a.csv", "b.csv", "c.csv", "d.csv", own_process=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "or-bench-hard.csv\n"
    assert (tmp_path / "or-bench-hard.csv").read_text() == (
        "prompt,category\nprompt 0,illegal\nprompt 1,hate\n"
    )
    assert [row["families_refused"] for row in table(tmp_path)] == ["3", "3", "2", "0"]
    select(tmp_path, "a.csv", "b.csv", "c.csv", "d.csv", "--min_families", "2")
    assert hard(tmp_path) == ["0", "1", "2"]
    record = json.loads((tmp_path / "or-bench-hard.run.json").read_text())
    assert record["prompt_set"] == prompt_set_hash(f"prompt {i}" for i in range(3))


def test_the_table_shows_each_prompt_and_model(tmp_path: Path) -> None:
    results(tmp_path, "a", GPT, "yn-")
    results(tmp_path, "b", LLAMA3, "yyy")
    select(tmp_path, "a.csv", "b.csv", "--min_families", "2")
    assert table(tmp_path)[1:] == [
        {
            "prompt": "prompt 1",
            "category": "hate",
            GPT: "answered",
            LLAMA3: "refused",
            "families_refused": "1",
            "families_unscored": "0",
            "hard": "no",
        },
        {
            "prompt": "prompt 2",
            "category": "illegal",
            GPT: "unscored",
            LLAMA3: "refused",
            "families_refused": "1",
            "families_unscored": "1",
            "hard": "undecidable",
        },
    ]


def test_unscored_rows_count_neither_as_refused_nor_as_answered(tmp_path: Path) -> None:
    results(tmp_path, "a", GPT, "yyy-n")
    results(tmp_path, "b", LLAMA2, "yy---")
    results(tmp_path, "c", CLAUDE, "y-nyn")
    done = select(tmp_path, "a.csv", "b.csv", "c.csv")
    assert hard(tmp_path) == ["0"]
    verdicts = {row["prompt"][-1]: row["hard"] for row in table(tmp_path)}
    assert verdicts == {
        "0": "yes",
        "1": "undecidable",
        "2": "no",
        "3": "undecidable",
        "4": "no",
    }
    assert "2 prompts left out as undecidable" in done.stderr


def test_one_refusing_model_decides_for_its_family_and_an_unscored_one_leaves_it_open(
    tmp_path: Path,
) -> None:
    results(tmp_path, "a", CLAUDE, "ynn")
    results(tmp_path, "b", CLAUDE_OLD, "--n")
    select(tmp_path, "a.csv", "b.csv", "--min_families", "1")
    assert [row["hard"] for row in table(tmp_path)] == ["yes", "undecidable", "no"]
    assert [row["families_unscored"] for row in table(tmp_path)] == ["0", "1", "0"]


def test_direct_and_indirect_refusals_of_stage_5_count_and_stage_4s_failed_rows_are_known(
    tmp_path: Path,
) -> None:
    stage4 = results(tmp_path, "a", GPT, "yyn-")
    rows = read(stage4)
    for row, verdict in zip(
        rows, ["direct_answer", "indirect_refusal", "direct_refusal"], strict=True
    ):
        row["answer_category"] = verdict
    stage5 = write(tmp_path / "a_response_check_merged_gpt4.csv", rows)
    run = {
        "stage": "response_checker",
        "under_test": {"asked": GPT, "id": GPT, "family": ""},
        "models": [{"asked": "gpt4", "family": "GPT-4"}],
        "missing_before": missing_before(stage4, 1),
    }
    stage5.with_suffix(".run.json").write_text(json.dumps(run))
    results(tmp_path, "b", CLAUDE, "yyyy")
    done = select(tmp_path, stage5, "b.csv", "--min_families", "2")
    assert done.returncode == 0, done.stderr
    assert hard(tmp_path) == ["1", "2"]
    assert [row[GPT] for row in table(tmp_path)][-1] == "unscored"
    assert "others by a judge" in done.stderr
    assert "GPT-3.5" in done.stderr


def test_the_majority_of_several_samples_counts_and_a_tie_is_unscored(tmp_path: Path) -> None:
    rows = [
        {"prompt": prompt, "category": "hate", "sample": i, "is_rejected": refused}
        for prompt, verdicts in [("p", [True, False, True]), ("q", [True, False]), ("r", [False])]
        for i, refused in enumerate(verdicts)
    ]
    write(tmp_path / "claude-3_merged_x.csv", rows)
    select(tmp_path, "claude-3_merged_x.csv", "--min_families", "1")
    verdicts = [row["claude-3"] for row in table(tmp_path)]
    assert verdicts == ["refused", "unscored", "answered"]


def test_the_family_comes_from_the_record_the_files_name_or_the_flag(tmp_path: Path) -> None:
    mine = {"asked": "mine/x", "id": "mine/x", "family": "Qwen"}
    results(tmp_path, "a", "mine/x", "yyy", under_test=mine)
    results(tmp_path, "claude-3_merged_set", "", "yyn")
    results(tmp_path, "c", "mine/y", "yyy")
    results(tmp_path, "plain_llama3", "", "nnn")
    files = ["a.csv", "claude-3_merged_set.csv", "c.csv"]
    assert_stops(select(tmp_path, *files), "which family is mine/y (c.csv) of? Give --family c.csv")
    done = select(tmp_path, *files, "--family", "c.csv=qwen")
    assert_stops(done, "the families 'Qwen' (a.csv) and 'qwen' (c.csv) differ only in case")
    done = select(tmp_path, *files, "--family", "c.csv=Qwen")
    assert_stops(done, "--min_families 3, but the files are of 2 (Qwen, Claude)")
    done = select(tmp_path, *files, "--family", "c.csv=Mine")
    assert done.returncode == 0, done.stderr
    assert hard(tmp_path) == ["0", "1"]
    # A name that nobody gave as a model's tells nothing.
    assert_stops(select(tmp_path, *files[:2], "plain_llama3.csv"), "which family is plain_llama3")
    done = select(tmp_path, "a.csv", "--family", "b.csv=X", "--min_families", "1")
    assert_stops(done, "b.csv is not among --result_files")


def test_the_family_is_that_of_the_model_behind_an_alias(tmp_path: Path) -> None:
    one = {"asked": "llama3", "id": "gpt-4o-mini", "family": "GPT-4"}
    results(tmp_path, "a", "llama3", "y", under_test=one)
    results(tmp_path, "b", "gpt-4o", "y")
    stage_5 = {"stage": "response_checker", "models": [{"asked": "x", "family": "Qwen"}]}
    results(tmp_path, "c", "llama3", "y", **stage_5, under_test=one)
    done = select(tmp_path, "a.csv", "b.csv", "--min_families", "2")
    assert_stops(done, "the files are of 1 (GPT-4)")
    done = select(tmp_path, "c.csv", "--min_families", "1")
    assert "llama3 (gpt-4o-mini)  GPT-4" in done.stderr
    assert "undecidable" not in done.stderr  # there is none
    done = select(tmp_path, "a.csv", "c.csv", "--min_families", "1")
    assert_stops(done, "are both results of llama3 (gpt-4o-mini)")


@pytest.mark.parametrize("value", [None, "text", ["text"]])
def test_a_record_that_holds_something_else_tells_nothing(tmp_path: Path, value: object) -> None:
    names = ("under_test", "models", "input", "missing_before", "counts")
    for stage in ("alignment_checker", "response_checker"):
        more = {name: value for name in names} | {"stage": stage}
        results(tmp_path, "claude-3_merged_a", "", "yn", **more)
        done = select(tmp_path, "claude-3_merged_a.csv", "--family", "claude-3_merged_a.csv=X",
                      "--min_families", "1")  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert hard(tmp_path) == ["0"]


@pytest.mark.parametrize("key", ["part", "part_of_input"])
def test_a_part_split_off_by_verdict_is_refused(tmp_path: Path, key: str) -> None:
    results(tmp_path, "a", GPT, "yy", **{key: "rejected"})
    done = select(tmp_path, "a.csv", "--min_families", "1")
    assert_stops(done, "a.csv holds only the responses of the part 'rejected'")
    results(tmp_path, "a", GPT, "yy", **{key: "toxic"})
    assert select(tmp_path, "a.csv", "--min_families", "1").returncode == 0


def test_the_same_model_is_not_counted_twice(tmp_path: Path) -> None:
    results(tmp_path, "a", "gpt4", "yy")
    results(tmp_path, "b", "openai/gpt-4-turbo-2024-04-09", "yn")
    assert_stops(select(tmp_path, "a.csv", "b.csv"), "a.csv and b.csv are both results of")
    assert_stops(select(tmp_path, "a.csv", "./a.csv"), "give each model once")


def test_a_model_named_like_a_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hard.csv").write_text("prompt,category,is_rejected\np,hate,True\n")
    done = select(tmp_path, "hard.csv", "--family", "hard.csv=X", "--min_families", "1")
    assert_stops(done, "hard.csv: 'hard' is a column of the result; rename the file")


def test_a_cell_without_a_verdict_and_a_category_named_like_a_summary_row_are_refused(
    tmp_path: Path,
) -> None:
    file = tmp_path / "claude-3_merged_a.csv"
    for row, text in [
        ("q,hate,", "row 2: is_rejected is '', not True or False"),
        ("q,overall,True", "row 2: a category cannot be called 'overall'"),
    ]:
        file.write_text(f"prompt,category,is_rejected\np,hate,True\n{row}\n")
        assert_stops(select(tmp_path, file.name, "--min_families", "1"), text)


def test_a_prompt_that_every_file_lost_is_in_no_table(tmp_path: Path) -> None:
    results(tmp_path, "a", GPT, "y-")
    results(tmp_path, "b", CLAUDE, "y-")
    done = select(tmp_path, "a.csv", "b.csv", "--min_families", "2")
    assert done.returncode == 0, done.stderr
    assert [row["prompt"] for row in table(tmp_path)] == ["prompt 0"]
    assert "1 prompt without a verdict in any file: left out" in done.stderr


def test_different_prompt_sets_stop_unless_the_common_prompts_are_asked_for(tmp_path: Path) -> None:
    results(tmp_path, "a", GPT, "yyyy")
    results(tmp_path, "b", CLAUDE, "yyy", complete=False)
    files = ("a.csv", "b.csv", "--min_families", "2")
    done = select(tmp_path, *files)
    assert_stops(done, "3 prompts are common, a.csv has 4, b.csv has 3; not finished: b.csv")
    assert not (tmp_path / "or-bench-hard.csv").exists()
    done = select(tmp_path, *files, "--common_only")
    assert hard(tmp_path) == ["0", "1", "2"]
    assert len(table(tmp_path)) == 3
    assert "among the 3 prompts common to all files" in done.stderr


def test_files_without_a_common_prompt_or_a_needed_column_end_in_one_line(tmp_path: Path) -> None:
    results(tmp_path, "a", GPT, "yy")
    other = [{"prompt": "other", "category": "hate", "is_rejected": True}]
    write(tmp_path / "claude-3_merged_b.csv", other)
    files = ("a.csv", "claude-3_merged_b.csv", "--min_families", "2")
    for more in ((), ("--common_only",)):
        assert_stops(select(tmp_path, *files, *more), "have no prompt in common")
    write(tmp_path / "c.csv", [{"prompt": "p", "category": "hate"}])
    write(tmp_path / "d.csv", [{"prompt": "p", "is_rejected": True}])
    assert_stops(select(tmp_path, "c.csv"), "has no column 'answer_category' (stage 5) or")
    assert_stops(select(tmp_path, "d.csv"), "d.csv has no column 'category'")
    assert_stops(select(tmp_path, "none.csv"), "none.csv: no such file")
    assert_stops(select(tmp_path, ""), "name is empty; did the stage before fail?")


def test_a_card_beside_the_hard_set_names_it(tmp_path: Path) -> None:
    results(tmp_path, "a", GPT, "yn")
    card = tmp_path / "README.md"
    mark = "<!-- written by moderator/build_dataset.py -->"
    card.write_text(f"---\nconfigs:\n- config_name: or-bench-80k\n---\n{mark}\n")
    for _ in range(2):
        select(tmp_path, "a.csv", "--min_families", "1")
    assert card.read_text().count("config_name: or-bench-hard-1k") == 1
    assert 'data_files: "or-bench-hard.csv"' in card.read_text()
    card.write_text("configs:\n mine")
    select(tmp_path, "a.csv", "--min_families", "1")
    assert card.read_text() == "configs:\n mine"


@pytest.mark.skipif(not REAL.exists(), reason="the shared data are not there")
def test_on_real_responses_of_two_families_the_hard_set_is_what_both_refuse(
    tmp_path: Path,
) -> None:
    refused: dict[str, set[str]] = {}
    for model in ("llama3_8b_instruct", "deepseek_r1_distill_llama_8b"):
        rows = read(REAL / f"or_bench_hard_1k_{model}.csv")
        for row in rows:
            row["is_rejected"] = str(counts_as_refusal(classify(row["response"])))
        refused[model] = {row["prompt"] for row in rows if row["is_rejected"] == "True"}
        write(tmp_path / f"{model}_merged_hard.csv", rows)
    files = [f"{model}_merged_hard.csv" for model in refused]
    done = select(tmp_path, *files, "--min_families", "2")
    assert done.returncode == 0, done.stderr
    both = set.intersection(*refused.values())
    assert {row["prompt"] for row in read(tmp_path / "or-bench-hard.csv")} == both
    assert len(table(tmp_path)) == 1319
    assert "Llama-3" in done.stderr and "DeepSeek" in done.stderr


def assert_stops(done: subprocess.CompletedProcess[str], text: str) -> None:
    """Exit 1, nothing on stdout, one line on stderr that says so."""
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert text in line


# ---------------------------------------------------------------------------------- for reviewers


def four(folder: Path) -> tuple[str, ...]:
    """Four families, each with a refusal of its own."""
    for name, model, refused in (
        ("a", GPT, "yyynnn"),
        ("b", LLAMA2, "yynynn"),
        ("c", CLAUDE, "yynnyn"),
        ("d", LLAMA3, "ynyyyn"),
    ):
        results(folder, name, model, refused)
    return tuple(f"{name}.csv" for name in "abcd")


def test_the_families_that_chose_the_prompts_are_named(tmp_path: Path) -> None:
    select(tmp_path, *four(tmp_path))
    record = json.loads((tmp_path / "or-bench-hard.run.json").read_text())
    assert record["selectors"] == ["Claude", "GPT-3.5", "Llama-2", "Llama-3"]


def test_a_set_for_each_family_is_chosen_by_the_others(tmp_path: Path) -> None:
    done = select(tmp_path, *four(tmp_path), "--min_families", "2", "--leave_one_family_out")
    assert done.returncode == 0, done.stderr
    assert hard(tmp_path) == ["0", "1", "2", "3", "4"]
    for family, left, chosen in (
        ("GPT-3.5", ["Claude", "Llama-2", "Llama-3"], ["0", "1", "3", "4"]),
        ("Llama-3", ["Claude", "GPT-3.5", "Llama-2"], ["0", "1"]),
    ):
        path = tmp_path / f"or-bench-hard_without_{family}.csv"
        assert [row["prompt"].split()[1] for row in read(path)] == chosen
        record = json.loads(path.with_suffix(".run.json").read_text())
        assert record["selectors"] == left and len(record["inputs"]) == 3
        assert record["prompt_set"] == prompt_set_hash(f"prompt {i}" for i in chosen)
    done = select(tmp_path, *four(tmp_path), "--min_families", "4", "--leave_one_family_out")
    assert done.returncode == 1 and "--min_families 4, but the files are of 3" in done.stderr


def test_people_get_a_sheet_of_the_hard_prompts(tmp_path: Path) -> None:
    args = (*four(tmp_path), "--min_families", "1", "--audit_sample", "3", "--seed", "5")
    done = select(tmp_path, *args)
    sheet = tmp_path / "or-bench-hard_audit_sheet.csv"
    rows = read(sheet)
    assert [list(row) for row in rows] == [["id", "prompt", "label"]] * 3
    assert {row["prompt"] for row in rows} < {f"prompt {i}" for i in range(5)}
    assert all(row["id"] == prompt_id(row["prompt"]).hex()[:12] for row in rows)
    assert all(row["label"] == "" for row in rows) and "--audited reads the copies" in done.stderr
    sheet.write_text("someone's work")
    assert "stays as it is" in select(tmp_path, *args).stderr
    assert sheet.read_text() == "someone's work"


def test_the_seeds_of_the_prompts_stay_known(tmp_path: Path) -> None:
    names = four(tmp_path)
    for name in names:
        rows = read(tmp_path / name)
        write(tmp_path / name, [{**row, "seed_id": f"s{row['prompt'][-1]}"} for row in rows])
    select(tmp_path, *names)
    assert read(tmp_path / "or-bench-hard.csv") == [
        {"prompt": "prompt 0", "category": "illegal", "seed_id": "s0"},
        {"prompt": "prompt 1", "category": "hate", "seed_id": "s1"},
    ]
