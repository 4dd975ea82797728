"""moderator/label_sheet.py and the audit sheets of the datasets, run as users run them."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.conftest import Desk, error_line

SHEET = "moderator/label_sheet.py"
BUILD = "moderator/build_dataset.py"
LABELLED = {0: "safe", 1: "safe", 2: "toxic", 3: "toxic"}  # by how many of three judges say toxic

Drawn = Callable[..., None]


def prompt(number: int) -> str:
    return f"How do I fold paper bird number {number}?"


@pytest.fixture
def drawn(desk: Desk) -> Drawn:
    """Draws sheets from 100 prompts: 70 that no judge calls toxic, and 10 each that 1, 2, 3 do.
    Two more miss a vote. The model refuses each second one of the 70.
    """
    toxic = [0] * 70 + [1] * 10 + [2] * 10 + [3] * 10
    votes = [[str(judge < n) for judge in range(3)] for n in toxic] + [["", "True", "True"]] * 2
    rows = [[prompt(i), "True", *vote] for i, vote in enumerate(votes)]
    desk.csv("labels.csv", ("prompt", "is_toxic", *(f"is_toxic_{n}" for n in "abc")), rows)
    refused = [[prompt(i), str(i < 70 and i % 2 == 0)] for i in range(100)]
    desk.csv("results.csv", ("prompt", "is_rejected"), refused)

    def draw(*flags: str) -> None:
        done = desk.run(SHEET, "--input_file=labels.csv", "--number=40", *flags)
        assert (done.returncode, done.stdout) == (0, "sheets/sheet_key.csv\n"), done.stderr
        assert "100 prompts with a toxicity score, of 102 rows" in done.stderr

    return draw


def label(desk: Desk, name: str, wrong: int = 0) -> None:
    """Fill in a sheet by LABELLED; the first `wrong` rows the other way round."""
    key = {row["id"]: row for row in desk.rows("sheets/sheet_key.csv")}
    rows = []
    for n, row in enumerate(desk.rows(f"sheets/{name}.csv")):
        said = LABELLED[round(3 * float(key[row["id"]]["toxicity"]))]
        said = said if n >= wrong else {"safe": "toxic", "toxic": "safe"}[said]
        rows.append([row["id"], row["prompt"], f" {said.upper()}"])
    desk.csv(f"sheets/{name}.csv", ("id", "prompt", "label"), rows)


def test_sheets_are_blinded_and_drawn_evenly_over_scores_and_refusals(
    desk: Desk, drawn: Drawn
) -> None:
    drawn("--results", "results.csv")
    key = desk.rows("sheets/sheet_key.csv")
    assert Counter(row["toxicity"] for row in key) == {"0": 16, "0.3333": 8, "0.6667": 8, "1": 8}
    weights = {(row["toxicity"], row["weight"]) for row in key}
    assert weights == {("0", "4.375"), ("0.3333", "1.25"), ("0.6667", "1.25"), ("1", "1.25")}
    assert sum(float(row["weight"]) for row in key) == 100
    sheets = [desk.rows(f"sheets/sheet_{n}.csv") for n in (1, 2, 3)]
    for sheet in sheets:
        assert {tuple(row) for row in sheet} == {("id", "prompt", "label")}
        assert {row["label"] for row in sheet} == {""}
    orders = {tuple(row["prompt"] for row in sheet) for sheet in [*sheets, key]}
    assert len(orders) == 4 and len({frozenset(order) for order in orders}) == 1


def test_drawn_sheets_are_kept(desk: Desk, drawn: Drawn) -> None:
    drawn()
    before = desk.files()
    done = desk.run(SHEET, "--input_file=labels.csv", "--number=5")
    assert "sheets/sheet_key.csv and its sheets are kept" in done.stderr
    assert desk.files() == before


def test_labels_become_weighted_ratings_with_agreement(desk: Desk, drawn: Drawn) -> None:
    drawn("--annotators=2")
    label(desk, "sheet_1")
    label(desk, "sheet_2", wrong=4)
    done = desk.run(SHEET, "--read", "sheets/sheet_1.csv", "sheets/sheet_2.csv")
    assert (done.returncode, done.stdout) == (0, "ratings.csv\n"), done.stderr
    assert "40 labelled prompts, 2 annotators: Krippendorff's alpha 0.8" in done.stderr
    end = "sensitivity 100.0%, specificity 100.0%"  # the four ties are left out
    assert f"judges against people, 36 prompts: alpha 1.000, {end}" in done.stderr
    rows = desk.rows("ratings.csv")
    assert {tuple(row) for row in rows} == {("prompt", "annotator", "label", "weight")}
    assert Counter(row["annotator"] for row in rows) == {"sheet_1": 40, "sheet_2": 40}
    assert {row["weight"] for row in rows} == {"7", "1"}


def test_what_people_and_judges_tell_apart_is_weighted(desk: Desk, drawn: Drawn) -> None:
    drawn("--annotators=1")
    key = {row["id"]: float(row["toxicity"]) for row in desk.rows("sheets/sheet_key.csv")}
    rows = desk.rows("sheets/sheet_1.csv")
    # People call toxic what any judge does, of which the majority finds 20 of 30, and two more
    # that stand for 7 prompts each.
    more = [row["id"] for row in rows if not key[row["id"]]][:2]
    cells = [[n, "", "toxic" if key[n] or n in more else "safe"] for n in (r["id"] for r in rows)]
    desk.csv("sheets/sheet_1.csv", ("id", "prompt", "label"), cells)
    done = desk.run(SHEET, "--read", "sheets/sheet_1.csv")
    assert "sensitivity 45.5%, specificity 100.0%" in done.stderr


def test_wrong_labels_and_a_missing_key_end_in_one_line(desk: Desk, drawn: Drawn) -> None:
    drawn("--annotators=1")
    read = (SHEET, "--read", "sheets/sheet_1.csv")
    assert "no prompt is labelled" in error_line(desk.run(*read))
    for cells, text in {
        ("x", "", "safe"): "the id 'x' is not in sheets/sheet_key.csv",
        ("x", "", "maybe"): "'maybe' is not toxic, safe or empty",
    }.items():
        desk.csv("sheets/sheet_1.csv", ("id", "prompt", "label"), [cells])
        assert text in error_line(desk.run(*read))
    (desk.folder / "sheets/sheet_key.csv").unlink()
    assert "put the sheets beside their key" in error_line(desk.run(*read))


def test_a_dataset_comes_with_a_sheet_that_is_read_with_its_key(desk: Desk) -> None:
    rows = [
        [f"Prompt {i} of some {'x' * i} length", "a", str(i < 6), str(i < 6)] for i in range(12)
    ]
    desk.csv("a.csv", ("prompt", "category", "is_toxic", "is_toxic_gpt4"), rows)
    flags = ("--moderated_files", "a.csv", "--audit_sample=20", "--similarity=1")
    assert desk.run(BUILD, *flags).returncode == 0
    sheet = desk.rows("or-bench/audit_sheet.csv")
    assert len(sheet) == 12 and {row["label"] for row in sheet} == {""}
    cells = [[row["id"], row["prompt"], "safe"] for row in sheet]
    desk.csv("or-bench/anna.csv", ("id", "prompt", "label"), cells)
    done = desk.run(SHEET, "--read", "or-bench/anna.csv")
    assert "12 prompts: alpha" in done.stderr and "specificity 50.0%" in done.stderr
