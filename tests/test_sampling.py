"""--limit N --shuffle SEED: a sample spread over the categories."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbench.sampling import Sample
from orbench.terminal import UserError
from tests.conftest import ALIGN, CHECK, read_csv, run, write_csv


def prompts(folder: Path, sizes: dict[str, int], name: str = "p.csv") -> Path:
    """A file sorted by category, as published sets are."""
    rows = [(f"{category} {n}", category) for category, size in sizes.items() for n in range(size)]
    return write_csv(folder / name, ("prompt", "category"), rows)


def chosen(path: Path, limit: int, seed: int = 0) -> list[str]:
    return [row["prompt"] for row in Sample(path, ["prompt"], limit, seed)]


SIZES = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 40), min_size=1)


@given(SIZES, st.integers(0, 150), st.integers(0, 3))
def test_each_category_has_nearly_its_share(
    tmp_path_factory: pytest.TempPathFactory, sizes: dict[str, int], limit: int, seed: int
) -> None:
    path = prompts(tmp_path_factory.mktemp("sample"), sizes)
    found, whole = chosen(path, limit, seed), sum(sizes.values())
    assert len(found) == min(limit, whole) == len(set(found))
    counts = Counter(prompt.split()[0] for prompt in found)
    for category, size in sizes.items():
        # Half a row of its own, and of each other category at most half a row more or less.
        assert abs(counts[category] - size * len(found) / whole) <= 0.5 + len(sizes) / 2


def test_the_sample_is_in_the_order_of_the_file_and_as_often_the_same_as_read(
    tmp_path: Path,
) -> None:
    path = prompts(tmp_path, {"a": 30, "b": 30})
    table = Sample(path, ["prompt"], 20, 7)
    rows = list(table)
    assert rows == list(table) and table.n == 20
    every = [row["prompt"] for row in read_csv(path)]
    places = [every.index(row["prompt"]) for row in rows]
    assert places == sorted(places)
    assert places != list(range(20))


def test_a_larger_sample_holds_the_smaller_one_and_another_seed_is_another_sample(
    tmp_path: Path,
) -> None:
    path = prompts(tmp_path, {"a": 50, "b": 7, "c": 20})
    samples = [set(chosen(path, limit)) for limit in range(0, 77)]
    assert all(small < large for small, large in pairwise(samples))
    assert chosen(path, 20, 1) != chosen(path, 20, 2)


def test_the_sample_does_not_depend_on_the_order_of_the_file(tmp_path: Path) -> None:
    path = prompts(tmp_path, {"a": 50, "b": 30})
    rows = [(row["prompt"], row["category"]) for row in reversed(read_csv(path))]
    turned = write_csv(tmp_path / "turned.csv", ("prompt", "category"), rows)
    assert set(chosen(path, 25)) == set(chosen(turned, 25))


def test_a_file_without_categories_is_one_stratum(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "p.csv", ["text"], [[str(n)] for n in range(9)])
    assert Sample(path, ["text"], 4, 0).n == 4


def test_rows_are_checked_as_without_a_sample(tmp_path: Path) -> None:
    def check(row: Any, where: str) -> None:
        raise UserError(where)

    with pytest.raises(UserError, match=r"p\.csv, row 1"):
        Sample(prompts(tmp_path, {"a": 2}), ["prompt"], 1, 0, check)


def test_stages_4_and_5_take_a_sample(tmp_path: Path) -> None:
    path = prompts(tmp_path, {name: 30 for name in "abcd"})
    flags = ("--limit=8", "--shuffle=3")
    done = run(ALIGN, "--model=scripted", f"--input_file={path}", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = read_csv(tmp_path / done.stdout.strip())
    assert Counter(row["category"] for row in rows) == dict.fromkeys("abcd", 2)
    args = ("--check_model=keyword", f"--input_file={done.stdout.strip()}")
    done = run(CHECK, *args, "--limit=4", "--shuffle=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = read_csv(tmp_path / done.stdout.strip())
    assert Counter(row["category"] for row in rows) == dict.fromkeys("abcd", 1)


def test_a_seed_without_a_number_of_rows_is_an_error(tmp_path: Path) -> None:
    path = prompts(tmp_path, {"a": 3})
    done = run(ALIGN, "--model=scripted", f"--input_file={path}", "--shuffle=1", cwd=tmp_path)
    assert done.returncode == 1
    assert "--limit N: give both" in done.stderr
