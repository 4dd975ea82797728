"""moderator/build_dataset.py, run as a user runs it."""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from tests.conftest import SHARED_DATA, Desk, read_csv

BUILD = "moderator/build_dataset.py"
FRUIT = "How do I peel an orange without hurting my thumb?"
SHIP = "What keeps a paper ship afloat for an afternoon?"
SAFE, TOXIC, SAMPLE = "or-bench-80k", "or-bench-toxic-all", "or-bench-toxic"

Cell = str | bool | int
Flags = tuple[str, ...]
Load = Callable[[str], list[str]]


def judged(prompt: str, toxic: Cell, category: str = "harmful", **more: Cell) -> dict[str, Cell]:
    """A row of stage 3."""
    return {"prompt": prompt, "category": category, "is_toxic": toxic, **more}


def write(desk: Desk, name: str, *rows: Mapping[str, Cell]) -> str:
    """A CSV with the columns of any row."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    desk.csv(name, columns, [[str(row.get(column, "")) for column in columns] for row in rows])
    return name


def built(desk: Desk, *files: str, flags: Flags = ()) -> str:
    """stderr of a run."""
    done = desk.run(BUILD, "--moderated_files", *files, *flags)
    assert done.stdout == f"or-bench/{SAFE}.csv\n"
    return done.stderr


def prompts(desk: Desk, dataset: str) -> list[str]:
    return desk.cells("prompt", f"or-bench/{dataset}.csv")


def card_of(desk: Desk) -> str:
    return desk.text("or-bench/README.md")


def words(i: int) -> str:
    """One of many prompts that resemble none other."""
    rng = random.Random(i)
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(12))


# -- samples and near-duplicates ---------------------------------------------------------------


def test_the_toxic_sample_is_even_over_the_categories_and_fixed_by_the_seed(desk: Desk) -> None:
    sizes = {"hate": 3, "illegal": 30, "privacy": 30}
    rows = [judged(f"{c} {words(i)} {c}", True, c) for c, n in sizes.items() for i in range(n)]
    write(desk, "a.csv", *rows)
    drawn = []
    for seed in "112":
        built(desk, "a.csv", flags=("--toxic_sample=21", "--random_seed", seed, "--similarity=1"))
        drawn.append(desk.rows(f"or-bench/{SAMPLE}.csv"))
    assert drawn[0] == drawn[1] != drawn[2]
    found = Counter(row["category"] for row in drawn[0])
    assert found == {"hate": 3, "illegal": 9, "privacy": 9}
    kept = [row["prompt"] for row in drawn[0]]
    assert kept == [row["prompt"] for row in rows if row["prompt"] in kept]


@pytest.mark.skipif(not SHARED_DATA.exists(), reason="the shared data are not there")
def test_the_published_hard_set_has_three_near_duplicates() -> None:
    from orbench.base.near_duplicates import near_duplicates

    texts = [row["prompt"] for row in read_csv(SHARED_DATA / "or_bench_hard_1k.csv")]
    assert len(near_duplicates({"": texts}, 0.8)) == 3


@pytest.fixture
def load(desk: Desk) -> Load:
    """Load a dataset's prompts as a user would, always with the same cache."""
    datasets = pytest.importorskip("datasets")

    def loaded(config: str) -> list[str]:
        folder, cache = str(desk.folder / "or-bench"), str(desk.folder / "cache")
        return list(datasets.load_dataset(folder, config, split="train", cache_dir=cache)["prompt"])

    return loaded


def test_the_datasets_library_loads_what_was_built_last(desk: Desk, load: Load) -> None:
    odd = ["NA", "007", 'a "quoted", one\nwith a line', "\ufffd lone", "carriage\rreturn"]
    for safe, toxic in ((odd, [SHIP]), ([FRUIT], [])):
        rows = [judged(text.replace("\ufffd", "\udcff"), False) for text in safe]
        built(desk, write(desk, "a.csv", *rows, *(judged(text, True) for text in toxic)))
        assert load(SAFE)[:4] == safe[:4]
        listed = re.findall(r'config_name": "(.+?)"', card_of(desk))
        assert listed == ([SAFE, TOXIC, SAMPLE] if toxic else [SAFE])  # an empty one cannot load
        assert not toxic or load(TOXIC) == load(SAMPLE) == toxic
    desk.write("or-bench/or-bench-hard.csv", "prompt,category\nNA,hate\n")
    desk.write("or-bench/or-bench-hard.run.json", '{"stage": "select_hard_prompts"}')
    built(desk, "a.csv")
    assert load("or-bench-hard-1k") == ["NA"]
