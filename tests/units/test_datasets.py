"""What is drawn: samples over categories, sheets, the parents of a search; what ends a script."""

import random
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest

from orbench.base import messages
from orbench.datasets.audit import even_sample, label_line
from orbench.datasets.lineage import COMBINE, CONTRADICTED, HIT, REWRITE, Lineages
from orbench.stages.run import load
from tests.conftest import ALIGN, Desk

EVOLVE = "rewritter/evolve_prompts.py"

# Rows of each category, how many to draw -> what is drawn. A remainder goes to the earlier name.
SAMPLES = (
    ("aaaaaabbbccd", 7, "aabbccd"),
    ("aaaaaabbbccd", 9, "aaabbbccd"),
    ("aaaaaabbb", 99, "aaaaaabbb"),
    ("bbaa", 3, "aab"),
    ("aa", 0, ""),
    ("", 5, ""),
)


@pytest.mark.parametrize(("categories", "size", "wanted"), SAMPLES)
def test_a_sample_is_even_and_what_is_short_comes_from_larger_categories(
    categories: str, size: int, wanted: str
) -> None:
    drawn = even_sample(list(categories), size, seed=3)
    assert "".join(sorted(categories[place] for place in drawn)) == wanted
    assert len(set(drawn)) == len(drawn) and drawn == even_sample(list(categories), size, seed=3)


def test_the_line_about_labels_counts_prompts_with_two_or_more() -> None:
    rows = []
    for cells in ("p a toxic", "p b safe", "q a toxic", "q b toxic", "r a safe"):
        rows.append(dict(zip(("id", "annotator", "label"), cells.split(), strict=True)))
    # Two prompts, four labels, three toxic: expected disagreement 2 * 3 / (4 * 3), observed 1 / 2.
    assert label_line(rows) == (
        "3 labeled prompts, 2 annotators: Krippendorff's alpha 0.000 (2 prompts with two or more "
        "labels)"
    )


# -- the parents of a search -------------------------------------------------------------------


def lineages(seeds: int, hits: int = 0, of_each: int = 1, wanted: int = 99) -> Lineages:
    """A search over seeds s0, s1, ... of which the first were used and have so many hits each."""
    rows = [{"prompt": f"s{n}", "category": "c"} for n in range(seeds)]
    found = Lineages(rows, {"near": "Near.", "far": "Far.", COMBINE: "Both."}, wanted)
    for seed in [f"s{n}" for n in range(hits)]:
        found.parents.append({"prompt": seed, "seed": seed, "operator": REWRITE})
        for n in range(of_each):
            row = {"prompt": f"{seed}-{n}", "toxic_seed": seed, "outcome": HIT, "round": "1"}
            found.hits.append(row)
    return found


@pytest.mark.parametrize(
    ("seeds", "wanted", "most"), [(24, 98, 7), (24, 100, 8), (3, 4, 2), (0, 7, 7), (10, 1, 1)]
)
def test_a_seed_has_at_most_its_share_of_the_hits(seeds: int, wanted: int, most: int) -> None:
    assert lineages(seeds, wanted=wanted).most == most


@pytest.mark.parametrize(("size", "new"), [(10, 4), (11, 5), (25, 10)])
def test_two_fifths_of_the_parents_are_new_seeds(size: int, new: int) -> None:
    many = lineages(30, hits=15, of_each=2)
    drawn = many.choose(size, random.Random(1))
    assert len(drawn) == size and drawn == many.choose(size, random.Random(1))
    seeds = [row for row in drawn if row["operator"] == REWRITE]
    assert len(seeds) == new
    used = {row["seed"] for row in many.parents}
    for row in seeds:
        assert row["seed"] == row["prompt"] and row["category"] == "c"
        assert row["seed"] not in used
    combined = lineages(2, hits=2, of_each=9).choose(18, random.Random(1))
    pairs = {row["seed"] + row["other"][:2] for row in combined if row["other"]}
    assert pairs == {"s0s1", "s1s0"}


@pytest.mark.parametrize(("seeds", "hits", "size", "drawn"), [(8, 1, 20, 9), (2, 2, 2, 2)])
def test_few_hits_make_room_for_more_seeds(seeds: int, hits: int, size: int, drawn: int) -> None:
    assert len(lineages(seeds, hits).choose(size, random.Random(1))) == drawn


def test_a_hit_rests_when_each_operator_was_tried() -> None:
    found = lineages(1, hits=1, of_each=2)
    tried = []
    for _ in range(2):
        for row in found.choose(3, random.Random(2)):
            assert row["instruction"] == found.operators[row["operator"]]
            assert not row["other"]  # no hit of another seed to combine with
            tried.append(f"{row['prompt']} {row['operator']}")
            found.parents.append(row)
    assert sorted(tried) == ["s0-0 far", "s0-0 near", "s0-1 far", "s0-1 near"]
    assert not found.choose(3, random.Random(2))


def test_a_hit_rests_when_its_seed_has_enough() -> None:
    found = lineages(1, hits=1, of_each=4, wanted=4)
    assert not found.choose(3, random.Random(2))
    found.hits[0]["outcome"] = CONTRADICTED  # then it has less than enough
    assert len(found.choose(3, random.Random(2))) == 1


# Hits of each round -> why no other round follows, of at most 9 with 99 hits and 999 requests.
ENDED = (
    ([99], "--wanted 99 was reached"),
    ([98], ""),
    ([1] * 9, "--rounds 9 was reached"),
    ([0, 0, 0], ""),
    ([20, 1, 0, 0], ""),
    ([1, 41, 1, 1, 1], "three consecutive rounds stayed below 5 % of the best round's hits"),
)


@pytest.mark.parametrize(("brought", "why"), ENDED)
def test_a_search_ends_for_a_reason(brought: list[int], why: str) -> None:
    args = Namespace(wanted=99, rounds=9, max_requests=999, parents=5)
    search = SimpleNamespace(args=args, brought=brought, size=lambda: 1)
    assert load(EVOLVE).Search.ended(search) == why


# -- how a script ends -------------------------------------------------------------------------

ENDS = (
    (messages.UserError("use\x1b this"), 1, "error: use  this\n"),
    (OSError(28, "No space left"), 1, "error: a file cannot be used: No space left\n"),
    (OSError("closed"), 1, "error: a file cannot be used: closed\n"),
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
    with pytest.raises(SystemExit, match=str(status)):
        messages.run_script(main)
    assert capsys.readouterr().err == line
    with pytest.raises(SystemExit, match="7"):
        messages.run_script(lambda argv: 7)


@pytest.mark.parametrize(("folder", "key"), [("a", "near"), (".", "far"), ("a", "set")])
def test_the_env_file_of_the_folder_counts_and_variables_that_are_set_win(
    desk: Desk, folder: str, key: str
) -> None:
    desk.serve()
    for path, own in ((".env", "far"), ("a/.env", "near"), ("a/b/x", "")):
        desk.write(path, f"ODD_KEY={own}\nOPENAI_BASE_URL={desk.url}\n")
    desk.prompts(1)
    run = ("--api_key_env=ODD_KEY", f"--input_file={desk.folder / 'p.csv'}")
    env = {"ODD_KEY": key} if key == "set" else {}
    done = desk.stage(ALIGN, *run, url="", cwd=desk.folder / folder, env=env)
    assert "/v1, by OPENAI_BASE_URL in .env\n" in done.stderr
    assert f"Bearer {key}" in desk.server.headers
    desk.stage(ALIGN, *run, url="", cwd=desk.folder / "a/b", status=1)  # no file above counts


def test_an_env_file_that_is_no_text_is_named(desk: Desk) -> None:
    desk.prompts(1)
    (desk.folder / ".env").write_bytes(b"\xff\xfe")
    assert ".env cannot be read: " in desk.stopped(ALIGN)
