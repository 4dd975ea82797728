"""alignment_checker/select_hard_prompts.py, run as a user runs it."""

import json
from typing import Any

import pytest

from tests.conftest import Desk, Done, error_line

HARD = "alignment_checker/select_hard_prompts.py"
COLUMNS = ("prompt", "category", "is_rejected")
Words = tuple[str, ...]
ONE, TWO = ("--min_families=1",), ("--min_families=2",)
FAMILIES = {"gpt-3.5": "GPT-3.5", "llama-2": "Llama-2", "llama-3": "Llama-3", "claude": "Claude"}


def select(desk: Desk, *files: str, flags: Words = ()) -> Done:
    return desk.run(HARD, "--result_files", *files, *flags)


def selected(desk: Desk, *files: str, flags: Words = ()) -> str:
    """stderr of a run that succeeds."""
    done = select(desk, *files, flags=flags)
    assert (done.returncode, done.stdout) == (0, "or-bench-hard.csv\n"), done.stderr
    return done.stderr


def stopped(desk: Desk, *files: str, flags: Words = ()) -> str:
    line = error_line(select(desk, *files, flags=flags))
    assert not (desk.folder / "or-bench-hard.csv").exists()
    return line


def results(desk: Desk, model: str, verdicts: str, name: str = "", **record: Any) -> str:
    """Stage 4's results of a model. verdicts: a letter for each prompt, y(es), n(o), - (failed)."""
    name = name or f"{model}.csv"
    rows = [(f"prompt {i}", "hate" if i % 2 else "illegal", v) for i, v in enumerate(verdicts)]
    desk.csv(name, COLUMNS, [(*text, str(v == "y")) for *text, v in rows if v != "-"])
    failed = name.replace(".csv", "_failed.csv")
    desk.csv(failed, (*COLUMNS[:2], "error_type"), [row for row in rows if row[2] == "-"])
    tested = {"asked": model, "id": model, "family": FAMILIES.get(model.rpartition("-")[0], "")}
    path = (desk.folder / name).with_suffix(".run.json")
    path.write_text(json.dumps({"under_test": tested if model else {}, **record}))
    return name


def hard(desk: Desk) -> list[str]:
    return [row["prompt"].removeprefix("prompt ") for row in desk.rows("or-bench-hard.csv")]


def table(desk: Desk) -> list[dict[str, str]]:
    return desk.rows("or-bench-hard_models.csv")


@pytest.fixture
def four(desk: Desk) -> Words:
    """Results of two models of one family and two of others."""
    return (
        results(desk, "gpt-3.5-turbo", "yyyn"),
        results(desk, "llama-2-70b", "yynn"),
        results(desk, "claude-3", "yyyn"),
        results(desk, "claude-2", "ynyn"),
    )


def test_a_prompt_is_hard_if_enough_families_refuse_it_and_a_family_counts_once(
    desk: Desk, four: Words
) -> None:
    said = selected(desk, *four)
    assert desk.rows("or-bench-hard.csv") == [
        {"prompt": "prompt 0", "category": "illegal"},
        {"prompt": "prompt 1", "category": "hate"},
    ]
    assert [row["families_refused"] for row in table(desk)] == ["3", "3", "2", "0"]
    assert "hard 2 · not 2 · undecidable 0" in said
    record = desk.record("or-bench-hard.csv")
    assert record["selectors"] == ["Claude", "GPT-3.5", "Llama-2"]  # for the results table
    assert record["inputs"] == list(four) and record["counts"] == {"done": 2}
    selected(desk, *four, flags=TWO)
    assert hard(desk) == ["0", "1", "2"]


def test_the_table_shows_each_prompt_and_model(desk: Desk) -> None:
    files = results(desk, "gpt-3.5-turbo", "yn-"), results(desk, "llama-3-70b", "yyy")
    selected(desk, *files, flags=TWO)
    counts = ("families_refused", "families_unscored", "hard")
    assert tuple(table(desk)[0]) == ("prompt", "category", "gpt-3.5-turbo", "llama-3-70b", *counts)
    assert [tuple(row.values()) for row in table(desk)][1:] == [
        ("prompt 1", "hate", "answered", "refused", "1", "0", "no"),
        ("prompt 2", "illegal", "unscored", "refused", "1", "1", "undecidable"),
    ]


def test_unscored_rows_count_neither_as_refused_nor_as_answered(desk: Desk) -> None:
    verdicts = {"gpt-3.5-turbo": "yyyn--", "llama-2-70b": "yy----", "claude-3": "yny-n-"}
    said = selected(desk, *(results(desk, model, each) for model, each in verdicts.items()))
    found = [row["hard"] for row in table(desk)]
    assert found == ["yes", "no", "undecidable", "no", "no", "undecidable"]
    assert hard(desk) == ["0"] and "undecidable 2, left out" in said


def test_one_refusing_model_decides_for_its_family_and_an_unscored_one_does_not(desk: Desk) -> None:
    selected(desk, results(desk, "claude-3", "ynn"), results(desk, "claude-2", "--n"), flags=ONE)
    found = {row["prompt"][-1]: (row["hard"], row["families_unscored"]) for row in table(desk)}
    assert found == {"0": ("yes", "0"), "1": ("undecidable", "1"), "2": ("no", "0")}


def test_the_classes_of_stage_5_count_before_the_rules_and_seeds_stay_known(desk: Desk) -> None:
    name = results(desk, "gpt-3.5-turbo", "yynn")
    classes = ["direct_answer", "indirect_refusal", "direct_refusal", "direct_answer"]
    rows = [(*row.values(), c) for row, c in zip(desk.rows(name), classes, strict=True)]
    desk.csv(name, (*COLUMNS, "answer_category"), rows)
    selected(desk, name, flags=ONE)
    assert hard(desk) == ["1", "2"]
    desk.csv(name, (*COLUMNS, "toxic_seed"), [("p", "hate", "True", "s")])
    selected(desk, name, flags=ONE)
    assert len(desk.rows("or-bench-hard.csv")[0]["seed_id"]) == 12


def test_the_majority_of_several_samples_counts_and_a_tie_is_unscored(desk: Desk) -> None:
    verdicts = {"p": "yny", "q": "yn", "r": "n"}
    rows = [(p, "hate", str(v == "y")) for p, each in verdicts.items() for v in each]
    name = results(desk, "claude-3", "")
    desk.csv(name, COLUMNS, rows)
    selected(desk, name, flags=ONE)
    assert [row["claude-3"] for row in table(desk)] == ["refused", "unscored", "answered"]


def test_the_family_comes_from_the_flag_or_the_record(desk: Desk) -> None:
    files = results(desk, "claude-3", "yyn"), results(desk, "mine", "yyy")
    line = stopped(desk, *files, flags=TWO)
    assert "unknown family for mine; name it with --family mine.csv=NAME" in line
    line = stopped(desk, *files, flags=(*TWO, "--family=mine.csv=Claude"))
    assert "files cover only Claude" in line
    for wrong in ("b.csv=X", "mine.csv=", "mine.csv"):
        line = stopped(desk, *files, flags=("--family", wrong))
        assert "--family: write FILE=NAME" in line
    both = ("--family=./mine.csv=Claude", "--family=claude-3.csv=Other")
    assert "claude-3 (Other): " in selected(desk, *files, flags=(*TWO, *both))


def test_of_files_with_different_prompts_the_common_ones_count(desk: Desk) -> None:
    files = results(desk, "gpt-3.5-turbo", "yyyy"), results(desk, "claude-3", "yyy")
    said = selected(desk, *files, flags=TWO)
    assert "3 prompts common to all files: gpt-3.5-turbo has 4, claude-3 has 3" in said
    assert hard(desk) == ["0", "1", "2"]
    other = desk.csv("o.csv", COLUMNS, [("o", "hate", "True")]).name
    done = select(desk, files[0], other, flags=(*TWO, f"--family={other}=X"))
    assert "no prompt is in all of the files" in done.stderr and done.returncode == 1


def test_bad_input_ends_in_one_line(desk: Desk, four: Words) -> None:
    again = results(desk, "claude-3", "yyyn", "again.csv")
    part = results(desk, "claude-4", "yy", part="rejected")
    desk.csv("bare.csv", ("prompt", "category"), [("p", "hate")])
    desk.csv("odd.csv", COLUMNS, [("p", "hate", "")])
    for files, text in {
        (*four, again): "again.csv is a second file for claude-3",
        (part,): "responses of the part 'rejected'",
        ("bare.csv",): "bare.csv, row 1: is_rejected is empty or missing",
        ("odd.csv",): "odd.csv, row 1: is_rejected is empty",
    }.items():
        assert text in stopped(desk, *files)


def test_files_of_others_and_inputs_are_never_replaced(desk: Desk, four: Words) -> None:
    before = desk.files()
    for output in ("mine.csv", four[0]):
        (desk.folder / "mine.csv").write_text("mine")
        line = error_line(select(desk, *four, flags=("--output_path", output)))
        assert f"{output} was not written by this tool" in line
    assert desk.files() == before | {"mine.csv": b"mine"}


def test_the_card_beside_lists_the_hard_prompts(desk: Desk) -> None:
    card, listed = desk.folder / "README.md", list[str]()
    mark = "---\n\n<!-- written by moderator/build_dataset.py -->\n"
    card.write_text('---\ntags:\n- x\nconfigs: [{"config_name": "old"}]\n' + mark)
    for verdicts in ("ynn", "yyn", "nnn"):
        name = results(desk, "claude-3", verdicts)
        selected(desk, name, flags=ONE)
        listed.append(card.read_text())
        assert listed[-1].startswith("---\ntags:\n- x\n") and "old" not in listed[-1]
    assert listed[0] != listed[1]  # the hash of the file
    entry = '{"config_name": "or-bench-hard-1k", "data_files": "or-bench-hard.csv",'
    assert [text.count(entry) for text in listed] == [1, 1, 0]
    card.write_text("configs:\n mine")
    selected(desk, name, flags=ONE)
    assert card.read_text() == "configs:\n mine"
