"""alignment_checker/select_hard_prompts.py, run as a user runs it."""

import json
from typing import Any

from tests.conftest import Desk

HARD = "alignment_checker/select_hard_prompts.py"
COLUMNS = ("prompt", "category", "is_rejected")
Words = tuple[str, ...]
ONE, TWO = ("--min_families=1",), ("--min_families=2",)
FAMILIES = {"gpt-3.5": "GPT-3.5", "llama-2": "Llama-2", "llama-3": "Llama-3", "claude": "Claude"}


def selected(desk: Desk, *files: str, flags: Words = ()) -> None:
    done = desk.run(HARD, "--result_files", *files, *flags)
    assert done.stdout == "or-bench-hard.csv\n"


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
