"""alignment_checker/select_hard_prompts.py, run as a user runs it."""

from tests.conftest import Desk

ENTRY = '{"config_name": "or-bench-hard-1k", "data_files": "or-bench-hard.csv",'
HEAD = "---\ntags:\n- x\n"


def select(desk: Desk, refused: int) -> str:
    """Select from three prompts, of which a model refuses some; gives the card."""
    rows = [(f"prompt {i}", "hate", str(i < refused)) for i in range(3)]
    desk.csv("m.csv", ("prompt", "category", "is_rejected"), rows)
    flags = ("--result_files=m.csv", "--family=m.csv=M", "--min_families=1")
    done = desk.run("alignment_checker/select_hard_prompts.py", *flags)
    assert done.stdout == "or-bench-hard.csv\n"
    return desk.text("README.md")


def test_the_card_beside_lists_the_hard_prompts(desk: Desk) -> None:
    mark = "---\n\n<!-- written by moderator/build_dataset.py -->\n"
    desk.write("README.md", f'{HEAD}configs: [{{"config_name": "old"}}]\n{mark}')
    for name in ("hard", "toxic"):  # of a release
        desk.write(f"{name}.csv", "prompt\nFold it?\n")
    cards = [select(desk, refused) for refused in (1, 2, 0)]
    for card in cards:
        assert card.startswith(HEAD) and "old" not in card
        assert '"config_name": "hard"' in card and '"config_name": "toxic"' in card
    assert cards[0] != cards[1]  # the hash of the file
    assert [card.count(ENTRY) for card in cards] == [1, 1, 0]
    desk.write("README.md", "configs:\n mine")
    assert select(desk, 0) == "configs:\n mine"
