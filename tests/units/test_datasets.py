"""What is drawn: samples over categories, sheets, the parents of a search; what ends a script."""

import random
from argparse import Namespace
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from orbench.base import messages
from orbench.datasets.audit import even_sample, label_line
from orbench.datasets.lineage import COMBINE, HIT, REWRITE, Lineages
from orbench.stages.run import load
from tests.conftest import ALIGN, Desk

EVOLVE = "rewritter/evolve_prompts.py"

# Rows in each category, how many to draw -> how many of each category are drawn.
SAMPLES: tuple[tuple[dict[str, int], int, dict[str, int]], ...] = (
    ({"a": 6, "b": 3, "c": 2, "d": 1}, 7, {"a": 2, "b": 2, "c": 2, "d": 1}),
    ({"a": 6, "b": 3, "c": 2, "d": 1}, 9, {"a": 3, "b": 3, "c": 2, "d": 1}),
    ({"a": 6, "b": 3}, 99, {"a": 6, "b": 3}),
    ({"b": 2, "a": 2}, 3, {"a": 1, "b": 2}),  # what does not divide goes to the later name
    ({"a": 2}, 0, {}),
    ({}, 5, {}),
)


@pytest.mark.parametrize(("sizes", "size", "wanted"), SAMPLES)
def test_a_sample_is_even_and_what_is_short_comes_from_larger_categories(
    sizes: dict[str, int], size: int, wanted: dict[str, int]
) -> None:
    categories = [name for name, n in sizes.items() for _ in range(n)]
    drawn = even_sample(categories, size, seed=3)
    assert Counter(categories[place] for place in drawn) == wanted
    assert len(set(drawn)) == len(drawn) and drawn == even_sample(categories, size, seed=3)


def test_the_line_about_labels_counts_prompts_with_two_or_more() -> None:
    votes = {"p": "ts", "q": "tt", "r": "s"}
    rows = []
    for prompt, labels in votes.items():
        for name, label in zip("ab", labels, strict=False):
            said = {"t": "toxic", "s": "safe"}[label]
            rows.append({"id": prompt, "annotator": name, "label": said})
    # Two prompts, four labels, three toxic: expected disagreement 2 * 3 / (4 * 3), observed 1 / 2.
    assert label_line(rows) == (
        "3 labeled prompts, 2 annotators: Krippendorff's alpha 0.000 (2 prompts with two or more "
        "labels)"
    )


# -- the parents of a search -------------------------------------------------------------------


def lineages(seeds: int, hits: dict[str, int], wanted: int = 99) -> Lineages:
    """A search over seeds s0, s1, ... of which some were used and have hits."""
    rows = [{"prompt": f"s{n}", "category": "c"} for n in range(seeds)]
    found = Lineages(rows, {"near": "Near.", "far": "Far.", COMBINE: "Both."}, wanted)
    for seed, number in hits.items():
        found.parents.append({"prompt": seed, "seed": seed, "operator": REWRITE})
        for n in range(number):
            row = {"prompt": f"{seed}-{n}", "toxic_seed": seed, "outcome": HIT, "round": "1"}
            found.candidates.append(row)
    return found


@pytest.mark.parametrize(
    ("seeds", "wanted", "most"), [(24, 100, 10), (24, 101, 11), (3, 4, 2), (0, 7, 7), (10, 1, 1)]
)
def test_a_seed_has_at_most_its_share_of_the_hits(seeds: int, wanted: int, most: int) -> None:
    assert lineages(seeds, {}, wanted).most == most


def test_a_tenth_of_the_parents_are_new_seeds_and_more_if_there_are_few_hits() -> None:
    many = lineages(30, {f"s{n}": 2 for n in range(15)})
    for size, new in ((10, 1), (11, 2), (25, 3)):
        drawn = many.choose(size, random.Random(1))
        seeds = [row for row in drawn if row["operator"] == REWRITE]
        assert (len(drawn), len(seeds)) == (size, new)
        assert all(row["seed"] == row["prompt"] and row["category"] == "c" for row in seeds)
        assert {row["seed"] for row in seeds}.isdisjoint(row["seed"] for row in many.parents)
    few = lineages(8, {"s0": 1}).choose(20, random.Random(1))
    assert len(few) == 8 and drawn == many.choose(25, random.Random(1))
    assert len(lineages(2, {"s0": 1, "s1": 1}).choose(5, random.Random(1))) == 2


def test_a_hit_rests_when_each_operator_was_tried_or_its_seed_has_enough() -> None:
    found = lineages(1, {"s0": 1})
    for name in ("near", "far"):
        (row,) = found.choose(3, random.Random(2))
        assert row["operator"] in ("near", "far") and not row["other"]  # nobody to combine with
        assert row["instruction"] == found.operators[row["operator"]]
        found.parents.append({"prompt": "s0-0", "seed": "s0", "operator": name})
        found.operators = {name: text for name, text in found.operators.items() if name != "near"}
    assert not found.choose(3, random.Random(2))
    assert not lineages(1, {"s0": 4}, wanted=4).choose(3, random.Random(2))


# Hits of each round -> why no other round follows, of at most 9 with 99 hits and 999 requests.
ENDED = (
    ([99], "--wanted 99 was reached"),
    ([98], ""),
    ([1] * 9, "--rounds 9 was reached"),
    ([0, 0, 0], ""),
    ([20, 1, 0, 0], ""),
    ([21, 0, 1, 0], "three rounds in a row yielded less than a twentieth of the best one"),
)


@pytest.mark.parametrize(("brought", "why"), ENDED)
def test_a_search_ends_for_a_reason(brought: list[int], why: str) -> None:
    args = Namespace(wanted=99, rounds=9, max_requests=999, parents=5)
    search = SimpleNamespace(args=args, brought=brought, size=lambda: 1)
    assert load(EVOLVE).Search.ended(search) == why


# -- how a script ends -------------------------------------------------------------------------

ENDS = (
    (messages.UserError("use\x1b this"), 1, "error: use  this\n"),
    (OSError(28, "No space left"), 1, "error: [Errno 28] No space left\n"),
    (KeyboardInterrupt(), 130, "interrupted; run the same command to resume\n"),
    (
        ModuleNotFoundError(name="openai"),
        1,
        "error: openai is not installed here: activate the environment "
        "(after make demo: . .venv/bin/activate)\n",
    ),
)


@pytest.mark.parametrize(("error", "status", "line"), ENDS)
def test_a_script_ends_with_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    line: str,
) -> None:
    def main(argv: object) -> int:
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(messages, "_on_signals", lambda act: None)
    assert messages.run_script(main) == status
    assert capsys.readouterr().err == line
    assert messages.run_script(lambda argv: 7) == 7


def test_the_nearest_env_file_counts_and_variables_that_are_set_win(desk: Desk) -> None:
    (desk.folder / "a" / "b").mkdir(parents=True)
    (desk.folder / ".env").write_text("ODD_KEY=far\n")
    (desk.folder / "a" / ".env").write_text("ODD_KEY=near\n")
    desk.prompts(1)
    desk.serve()
    run = ("--api_key_env=ODD_KEY", "--input_file=" + str(desk.folder / "p.csv"))
    for folder, env, key in (
        ("a/b", {}, "near"),
        (".", {}, "far"),
        ("a", {"ODD_KEY": "set"}, "set"),
    ):
        out = f"--output_path={desk.folder}/{key}.csv"
        done = desk.stage(ALIGN, *run, out, cwd=desk.folder / folder, env=env)
        assert done.returncode == 0, done.stderr
        assert f"Bearer {key}" in desk.server.headers
    (desk.folder / ".env").write_bytes(b"\xff\xfe")
    assert ".env cannot be read: " in desk.stopped(ALIGN, *run)
