"""moderator/build_dataset.py, run as a user runs it, and the rules behind it."""

import csv
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbench.dataset.card import add_config
from orbench.dataset.diversity import broken_rules
from orbench.dataset.selection import even_sample
from orbench.table import prompt_id, prompt_set_hash
from tests.conftest import run

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "moderator" / "build_dataset.py"
SELECT_HARD = ROOT / "alignment_checker" / "select_hard_prompts.py"
REAL = ROOT.parent / "shared" / "data" / "or_bench_hard_1k.csv"
Rows = list[dict[str, str]]

FRUIT = "How do I peel an orange without hurting my thumb?"
BREAD = "Which flour makes the darkest bread in a small oven?"
SHIP = "What keeps a paper ship afloat for an afternoon?"
CLOUD = "Could you name the clouds that bring hail to a valley?"
CHESS = "Why does a knight stand badly at the rim of the board?"
PIANO = "When should a piano be tuned after a long winter?"


def build(
    folder: Path, *args: str | Path, script: Path = SCRIPT, own_process: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the script in a folder; similarity 1 unless said otherwise, which is quick."""
    if "--moderated_files" in args and "--similarity" not in args:
        args = (*args, "--similarity", "1")
    return run(script, *args, cwd=folder, own_process=own_process)


def write(path: Path, rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> Path:
    """A CSV."""
    names = list(columns or dict.fromkeys(column for row in rows for column in row))
    with path.open("w", newline="", encoding="utf-8", errors="surrogatepass") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def prompts(path: Path) -> list[str]:
    return [row["prompt"] for row in read(path)]


def judged(
    prompt: str, toxic: object, category: str = "harmful", **more: object
) -> dict[str, object]:
    """A row of stage 3."""
    return {"prompt": prompt, "category": category, "is_toxic": toxic, **more}


def answered(prompt: str, toxic: object, refused: bool = False) -> dict[str, object]:
    """A row of stage 3 on stage 4's answers."""
    answer = {"response": "x", "is_rejected": refused, "response_is_toxic": toxic}
    return judged(prompt, True) | answer


def names(i: int) -> str:
    """One of many prompts that resemble none other."""
    rng = random.Random(i)
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(12))


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A folder with the three files of the chain."""
    write(tmp_path / "non_toxic.csv", [judged(FRUIT, False), judged(BREAD, False)])
    toxic = [judged(p, True) for p in (SHIP, CLOUD, CHESS, PIANO)]
    write(tmp_path / "toxic.csv", toxic)
    answers = [answered(SHIP, False), answered(CLOUD, True), answered(CHESS, False, refused=True)]
    write(tmp_path / "answers.csv", answers)
    return tmp_path


FILES = ("--moderated_files", "non_toxic.csv", "toxic.csv", "answers.csv")


def test_safe_at_once_or_by_a_safe_answer_is_safe_and_all_else_is_toxic(chain: Path) -> None:
    done = build(chain, *FILES)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "or-bench/or-bench-80k.csv\n"
    assert read(chain / "or-bench/or-bench-80k.csv") == [
        {"prompt": prompt, "category": "harmful"} for prompt in (FRUIT, BREAD, SHIP)
    ]
    assert prompts(chain / "or-bench/or-bench-toxic-all.csv") == [PIANO, CLOUD, CHESS]
    assert (
        "9 rows, 6 prompts; 3 second-chance rows of the same prompts, 0 exact duplicates dropped"
        in done.stderr
    )
    assert "1 had a safe answer and come back, 1 had a toxic answer" in done.stderr
    assert "1 only a refusal (stay toxic), 1 no judged answer (stay toxic)" in done.stderr


def test_a_refusal_counts_as_a_safe_answer_only_where_asked_for(chain: Path) -> None:
    done = build(chain, *FILES, "--refusals_count")
    assert prompts(chain / "or-bench/or-bench-80k.csv") == [FRUIT, BREAD, SHIP, CHESS]
    assert "1 only a refusal (count as safe answers)" in done.stderr


def test_the_judge_of_stage_5_says_what_a_refusal_is_where_he_was_asked(chain: Path) -> None:
    rows = [
        answered(SHIP, False, refused=True) | {"answer_category": "direct_answer"},
        answered(CHESS, False) | {"answer_category": "indirect_refusal"},
    ]
    write(chain / "answers.csv", rows)
    build(chain, *FILES)
    assert prompts(chain / "or-bench/or-bench-80k.csv") == [FRUIT, BREAD, SHIP]


def test_it_works_from_the_root_and_with_the_output_elsewhere(chain: Path, tmp_path: Path) -> None:
    files = [chain / name for name in FILES[1:]]
    out = tmp_path / "new" / "out"
    done = build(ROOT, "--moderated_files", *files, "--output_dir", out, own_process=True)
    assert done.stdout.strip() == str(out / "or-bench-80k.csv")
    assert prompts(out / "or-bench-80k.csv") == [FRUIT, BREAD, SHIP]


@pytest.mark.parametrize("order", [("a.csv", "b.csv"), ("b.csv", "a.csv")])
def test_contradicting_verdicts_are_toxic_and_counted(tmp_path: Path, order: list[str]) -> None:
    write(tmp_path / "a.csv", [judged(FRUIT, True), judged(BREAD, False)])
    write(tmp_path / "b.csv", [judged(f"  {FRUIT.upper()}", False)])
    done = build(tmp_path, "--moderated_files", *order)
    assert prompts(tmp_path / "or-bench/or-bench-80k.csv") == [BREAD]
    assert prompts(tmp_path / "or-bench/or-bench-toxic-all.csv") == [FRUIT]
    assert "1 prompt with contradicting verdicts" in done.stderr


def test_one_toxic_answer_outweighs_a_safe_one(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [answered(SHIP, False), answered(CLOUD, True)])
    write(tmp_path / "b.csv", [answered(SHIP, True), answered(CLOUD, False)])
    done = build(tmp_path, "--moderated_files", "a.csv", "b.csv")
    assert prompts(tmp_path / "or-bench/or-bench-80k.csv") == []
    assert "2 prompts with contradicting verdicts" in done.stderr


def test_a_prompt_without_a_verdict_is_in_no_data_set(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [judged(FRUIT, ""), judged(BREAD, "TRUE"), judged(" ", True)])
    done = build(tmp_path, "--moderated_files", "a.csv")
    folder = tmp_path / "or-bench"
    assert prompts(folder / "or-bench-80k.csv") == []
    assert prompts(folder / "or-bench-toxic-all.csv") == [BREAD]
    assert "1 prompt without a verdict" in done.stderr
    assert "1 row without a prompt" in done.stderr
    (dropped,) = read(folder / "or-bench-dropped.csv")
    assert (dropped["prompt"], dropped["reason"]) == (FRUIT, "no verdict")


def test_exact_duplicates_are_dropped_whatever_case_spacing_and_end(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [judged(FRUIT, False), judged(BREAD, False)])
    write(tmp_path / "b.csv", [judged(f" {FRUIT.upper().rstrip('?')}. ", False)])
    done = build(tmp_path, "--moderated_files", "a.csv", "b.csv")
    assert prompts(tmp_path / "or-bench/or-bench-80k.csv") == [FRUIT, BREAD]
    assert "3 rows, 2 prompts; 1 exact duplicate dropped" in done.stderr


@pytest.mark.parametrize(
    ("files", "first"),
    [
        (["toxic.csv", "answers.csv"], "18 rows, 4 prompts; 13 second-chance rows"),
        (["answers.csv"], "13 rows, 4 prompts; 8 second-chance rows"),
    ],
)
def test_several_answers_to_a_prompt_are_no_duplicates_of_it(
    tmp_path: Path, files: list[str], first: str
) -> None:
    """Four prompts, one of them twice; three samples of answers, of which two failed."""
    asked = [SHIP, CLOUD, CHESS, PIANO, SHIP.upper()]
    write(tmp_path / "toxic.csv", [judged(prompt, True) for prompt in asked])
    answers = [answered(prompt, False) | {"sample": i} for prompt in asked for i in range(3)]
    write(tmp_path / "answers.csv", [row for n, row in enumerate(answers) if n not in (4, 6)])
    done = build(tmp_path, "--moderated_files", *files, "--diversity")
    line = f"{first} of the same prompts, 1 exact duplicate dropped"
    assert line in done.stderr.splitlines()
    assert f"- {line}" in (tmp_path / "or-bench/README.md").read_text().splitlines()
    table = done.stderr.split("quality of or-bench-80k")[1].splitlines()
    quality = next(line.split() for line in table if line.startswith("harmful"))
    assert quality[4] == "20.0%"  # one of five was cut as a duplicate


def test_of_near_duplicates_the_first_stays_and_none_that_nearly_equals_a_toxic_one(
    tmp_path: Path,
) -> None:
    long = (
        "Could you please describe in some detail how a sailor ties the {} knot on a ship at sea?"
    )
    rows = [
        judged(long.format("first"), False),
        judged(long.format("third"), False),
        judged(FRUIT.replace("thumb", "thumbs"), False),
        judged(FRUIT, True),
    ]
    write(tmp_path / "a.csv", rows)
    done = build(tmp_path, "--moderated_files", "a.csv", "--similarity", "0.8")
    folder = tmp_path / "or-bench"
    assert prompts(folder / "or-bench-80k.csv") == [long.format("first")]
    assert prompts(folder / "or-bench-toxic-all.csv") == [FRUIT]
    assert "1 near-duplicate (similarity 0.8 or more) and 1 safe prompt nearly" in done.stderr
    assert {row["prompt"]: (row["reason"], row["resembles"]) for row in read(folder / DROPPED)} == {
        long.format("third"): ("near-duplicate", long.format("first")),
        FRUIT.replace("thumb", "thumbs"): ("nearly equals a toxic prompt", FRUIT),
    }
    build(tmp_path, "--moderated_files", "a.csv", "--similarity", "1")
    assert len(prompts(folder / "or-bench-80k.csv")) == 3


def test_a_safe_prompt_that_nearly_equals_a_dropped_toxic_one_is_dropped(tmp_path: Path) -> None:
    pytest.importorskip("datasketch")
    from orbench.dataset.near_duplicates import jaccard, pieces

    kept = "Could you please describe how a sailor ties the first knot on a wooden ship at sea?"
    near = kept.replace("first", "third")
    safe = near.replace("wooden", "woollen")
    assert jaccard(pieces(kept), pieces(near)) > 0.8 < jaccard(pieces(near), pieces(safe))
    assert jaccard(pieces(kept), pieces(safe)) < 0.8
    write(tmp_path / "a.csv", [judged(kept, True), judged(near, True), judged(safe, False)])
    done = build(tmp_path, "--moderated_files", "a.csv", "--similarity", "0.8")
    assert "1 near-duplicate (similarity 0.8 or more) and 1 safe prompt nearly" in done.stderr
    assert prompts(tmp_path / "or-bench/or-bench-80k.csv") == []
    assert prompts(tmp_path / "or-bench/or-bench-toxic-all.csv") == [kept]
    found = {row["prompt"]: row for row in read(tmp_path / "or-bench" / DROPPED)}
    assert found[safe]["reason"] == "nearly equals a toxic prompt"
    assert (found[safe]["resembles"], found[near]["resembles"]) == (near, kept)


DROPPED = "or-bench-dropped.csv"


def test_the_provenance_holds_what_decided_and_every_column_of_the_input(tmp_path: Path) -> None:
    votes = {"is_toxic_gpt4": True, "is_toxic_llama3": False, "moderation_result_gpt4": 'a, "b"\n'}
    write(tmp_path / "safe.csv", [judged(FRUIT, False, toxic_seed="seed", mine="kept") | votes])
    write(tmp_path / "toxic.csv", [judged(SHIP, True) | votes])
    write(tmp_path / "answers.csv", [answered(SHIP, False) | votes])
    build(tmp_path, "--moderated_files", "safe.csv", "toxic.csv", "answers.csv")
    first, second = read(tmp_path / "or-bench/or-bench-80k_provenance.csv")
    assert list(first)[:2] == ["prompt", "category"]
    assert (first["prompt"], first["mine"], first["toxic_seed"]) == (FRUIT, "kept", "seed")
    assert (first["second_chance"], first["source_file"]) == ("False", "safe.csv")
    assert first["moderation_result_gpt4"] == 'a, "b"\n'
    assert (second["prompt"], second["second_chance"]) == (SHIP, "True")
    assert (second["source_file"], second["response"]) == ("answers.csv", "x")


def test_the_toxic_sample_is_even_over_the_categories_and_the_same_for_a_seed(
    tmp_path: Path,
) -> None:
    sizes = {"hate": 3, "illegal": 30, "privacy": 30}
    rows = [judged(names(i), True, c) for c, n in sizes.items() for i in range(len(c), len(c) + n)]
    rows = [{**row, "prompt": f"{row['category']} {row['prompt']}"} for row in rows]
    write(tmp_path / "a.csv", rows)
    drawn = []
    for seed in ("1", "1", "2"):
        done = build(tmp_path, "--moderated_files", "a.csv", "--toxic_sample", "21", "--seed", seed)
        drawn.append(read(tmp_path / "or-bench/or-bench-toxic.csv"))
    assert drawn[0] == drawn[1] != drawn[2]
    found = Counter(row["category"] for row in drawn[0])
    assert found == {"hate": 3, "illegal": 9, "privacy": 9}
    assert [row["prompt"] for row in rows if row["prompt"] in {r["prompt"] for r in drawn[0]}] == [
        row["prompt"] for row in drawn[0]
    ]
    assert "toxic sample: 21 prompts (seed 2)" in done.stderr


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcde"), max_size=60), st.integers(0, 80))
def test_an_even_sample_takes_as_much_as_there_is_and_no_more(cats: list[str], size: int) -> None:
    drawn = list(even_sample({str(i): c for i, c in enumerate(cats)}, size, seed=3))
    assert len(set(drawn)) == len(drawn) == min(size, len(cats))
    found, there = Counter(cats[int(i)] for i in drawn), Counter(cats)
    fullest = max((found[c] for c in there), default=0)
    assert all(found[c] >= min(there[c], fullest - 1) for c in there)


def test_agreement_counts_each_prompt_once_though_the_files_overlap(tmp_path: Path) -> None:
    def votes(a: bool, b: object) -> dict[str, object]:
        return {"is_toxic_gpt4": a, "is_toxic_llama3": b}

    toxic = [judged(SHIP, True) | votes(True, True), judged(CLOUD, True) | votes(True, False)]
    write(tmp_path / "safe.csv", [judged(FRUIT, False) | votes(False, "")])
    write(tmp_path / "toxic.csv", toxic)
    others = {"response_is_toxic_gpt4": False, "response_is_toxic_qwen": True}
    write(tmp_path / "answers.csv", [answered(SHIP, False) | votes(True, True) | others])
    done = build(tmp_path, "--moderated_files", "safe.csv", "toxic.csv", "answers.csv")
    lines = [line.split() for line in done.stderr.splitlines()]
    assert ["gpt4", "-", "llama3", "2", "50.0%", "0.000"] in lines
    assert ["gpt4", "3", "66.7%", "0"] in lines
    assert ["llama3", "2", "50.0%", "1"] in lines
    assert ["gpt4", "-", "qwen", "1", "0.0%", "0.000"] in lines
    assert ["qwen", "1", "100.0%", "0"] in lines  # no answer, no missing vote
    assert "gpt4 - llama3" in (tmp_path / "or-bench/README.md").read_text()


def test_prompts_that_nearly_equal_a_public_one_are_dropped_and_counted(tmp_path: Path) -> None:
    mine = [names(i) for i in range(4)]
    rows = [judged(mine[0], False), judged(mine[1], True), judged(mine[2], False)]
    write(tmp_path / "a.csv", [*rows, judged(f"{mine[2]}!", False)])
    near = f"z{mine[0][1:]}"
    write(tmp_path / "public.csv", [{"prompt": near, "label": "x"}, {"prompt": mine[3]}])
    write(tmp_path / "more.csv", [{"prompt": mine[1].upper()}])
    files = ("--exclude", "public.csv", "more.csv", "--similarity", "0.8")
    done = build(tmp_path, "--moderated_files", "a.csv", *files)
    assert prompts(tmp_path / "or-bench/or-bench-80k.csv") == [f"{mine[2]}"]
    assert prompts(tmp_path / "or-bench/or-bench-toxic-all.csv") == []
    gone = read(tmp_path / "or-bench/or-bench-dropped.csv")
    assert [(row["prompt"], row["resembles"]) for row in gone] == [
        (mine[0], near),
        (mine[1], mine[1].upper()),
    ]
    assert {row["reason"] for row in gone} == {"nearly equals a public prompt"}
    says = "2 prompts nearly equal (similarity 0.8 or more) to one of public.csv, more.csv"
    assert says in done.stderr
    assert says.replace("_", "\\_") in (tmp_path / "or-bench/README.md").read_text()
    kept = json.loads((tmp_path / "or-bench/or-bench-80k.run.json").read_text())
    assert kept["parameters"]["exclude"] == ["public.csv", "more.csv"]
    done = build(tmp_path, "--moderated_files", "a.csv", "--exclude", "no.csv")
    assert done.returncode == 1 and "no.csv: no such file" in done.stderr


def test_the_card_carries_a_canary_of_its_own(chain: Path) -> None:
    def canary() -> str:
        text = (chain / "or-bench/README.md").read_text()
        found = re.findall(r"canary GUID ([0-9a-f-]{36})$", text, re.MULTILINE)
        assert len(found) == 1
        return str(found[0])

    build(chain, *FILES)
    first = canary()
    build(chain, *FILES)
    assert canary() == first
    build(chain, *FILES, "--refusals_count")
    assert canary() != first


@pytest.mark.parametrize("column", ["toxic_seed", "seed_id"])
def test_a_prompt_keeps_a_hash_of_its_seed(tmp_path: Path, column: str) -> None:
    seeds = [FRUIT, FRUIT, BREAD, ""]
    rows = [judged(names(i), i == 2, **{column: seed}) for i, seed in enumerate(seeds)]
    write(tmp_path / "a.csv", rows)
    build(tmp_path, "--moderated_files", "a.csv")
    hashed = {FRUIT: prompt_id(FRUIT).hex()[:12], BREAD: prompt_id(BREAD).hex()[:12], "": ""}
    ids = [seed if column == "seed_id" else hashed[seed] for seed in seeds]
    for name, which in (("or-bench-80k", (0, 1, 3)), ("or-bench-toxic-all", (2,))):
        found = read(tmp_path / f"or-bench/{name}.csv")
        assert [list(row) for row in found] == [["prompt", "category", "seed_id"]] * len(which)
        assert [row["seed_id"] for row in found] == [ids[i] for i in which]


def test_the_card_holds_counts_judges_models_hash_and_licence(chain: Path) -> None:
    run = {
        "stage": "moderator",
        "models": [{"asked": "gpt4", "id": "gpt-4-turbo-2024-04-09"}],
        "counts": {"failed": 2, "unscored": 3},
        "start": "now",
        "scripted": True,
    }
    for name in ("non_toxic", "toxic"):  # the two halves of one run
        (chain / f"{name}.run.json").write_text(json.dumps(run))
    under_test = {"models": [], "under_test": {"asked": "ollama/a|b", "id": "a|b", "family": ""}}
    (chain / "answers.run.json").write_text(json.dumps(under_test))
    done = build(chain, *FILES, "--license", "cc-by-4.0")
    card = (chain / "or-bench/README.md").read_text()
    assert 'license: "cc-by-4.0"' in card
    assert "| harmful | 3 | 3 | 3 |" in card
    assert "Judges of the prompts: gpt4 (gpt-4-turbo-2024-04-09)." in card
    assert "- answered the toxic prompts: ollama/a\\|b" in card
    assert f"| or-bench-80k | {prompt_set_hash([FRUIT, BREAD, SHIP])} |" in card
    assert "measures nothing" in card and "measure nothing" in done.stderr
    assert "5 rows of those runs without a verdict" in done.stderr
    record = json.loads((chain / "or-bench/or-bench-80k.run.json").read_text())
    assert record["prompt_set"] == prompt_set_hash([FRUIT, BREAD, SHIP])


def test_a_readme_that_is_no_card_is_never_overwritten(chain: Path) -> None:
    (chain / "README.md").write_text("mine")
    done = build(chain, *FILES, "--output_dir", ".")
    assert (done.returncode, done.stdout) == (1, "")
    assert (chain / "README.md").read_text() == "mine"
    assert not (chain / "or-bench-80k.csv").exists()
    assert build(chain, *FILES).returncode == build(chain, *FILES).returncode == 0


def test_the_output_loads_with_the_datasets_library(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    odd = ["NA", "007", 'a "quoted", one\nwith a line', "\udcff lone", "carriage\rreturn"]
    write(tmp_path / "a.csv", [judged(p, False, "hate") for p in odd] + [judged(SHIP, True)])
    assert build(tmp_path, "--moderated_files", "a.csv").returncode == 0
    folder = tmp_path / "or-bench"
    (folder / "or-bench-hard.csv").write_text("prompt,category\nNA,hate\n")
    build(tmp_path, "--moderated_files", "a.csv")
    load = {"split": "train", "cache_dir": str(tmp_path / "cache")}
    found = datasets.load_dataset(str(folder), "or-bench-80k", **load)
    assert found.column_names == ["prompt", "category"]
    assert found["prompt"][:3] == odd[:3]
    assert found["prompt"][3] == "\ufffd lone"
    hard = datasets.load_dataset(str(folder), "or-bench-hard-1k", **load)
    assert hard["prompt"][:] == ["NA"]
    plain = datasets.load_dataset("csv", data_files=str(folder / "or-bench-toxic.csv"), **load)
    assert plain[:] == {"prompt": [SHIP], "category": ["harmful"]}


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Path, str], list[str]]:
    """Load the prompts of a data set as a user would, always with the same cache."""
    datasets = pytest.importorskip("datasets")

    def loaded(folder: Path, config: str) -> list[str]:
        cache = str(tmp_path / "cache")
        found = datasets.load_dataset(str(folder), config, split="train", cache_dir=cache)
        return list(found["prompt"])

    return loaded


def test_a_data_set_built_anew_is_loaded_anew(
    tmp_path: Path, load: Callable[[Path, str], list[str]]
) -> None:
    for folder, n in (("here", 4), ("here", 9), ("there", 6), ("here", 9)):
        where = tmp_path / folder
        where.mkdir(exist_ok=True)
        write(where / "a.csv", [judged(names(i), i % 2 == 0) for i in range(n)])
        assert build(where, "--moderated_files", "a.csv").returncode == 0
        assert load(where / "or-bench", "or-bench-80k") == [names(i) for i in range(1, n, 2)]
        assert load(where / "or-bench", "or-bench-toxic-all") == [names(i) for i in range(0, n, 2)]


def test_hard_prompts_selected_anew_are_loaded_anew(
    tmp_path: Path, load: Callable[[Path, str], list[str]]
) -> None:
    write(tmp_path / "a.csv", [judged(names(i), False) for i in range(4)])
    build(tmp_path, "--moderated_files", "a.csv")
    folder = tmp_path / "or-bench"
    card = folder / "README.md"
    for refused in ({0}, {0, 2, 3}, set[int](), {1}):
        rows = [judged(names(i), False, is_rejected=i in refused) for i in range(4)]
        write(tmp_path / "claude-3_merged_a.csv", rows)
        words = ("--result_files", "claude-3_merged_a.csv", "--min_families", "1")
        done = build(
            tmp_path, *words, "--output_path", "or-bench/or-bench-hard.csv", script=SELECT_HARD
        )
        assert done.returncode == 0, done.stderr
        assert card.read_text().count("config_name: or-bench-hard-1k") == bool(refused)
        if refused:
            assert load(folder, "or-bench-hard-1k") == [names(i) for i in sorted(refused)]
        assert load(folder, "or-bench-80k") == [names(i) for i in range(4)]
    build(tmp_path, "--moderated_files", "a.csv")
    assert load(folder, "or-bench-hard-1k") == [names(1)]


def test_a_data_set_without_a_prompt_is_no_config_of_the_card(
    tmp_path: Path, load: Callable[[Path, str], list[str]]
) -> None:
    write(tmp_path / "a.csv", [judged(FRUIT, False)])
    (tmp_path / "or-bench").mkdir()
    (tmp_path / "or-bench/or-bench-hard.csv").write_text("prompt,category\n")
    assert build(tmp_path, "--moderated_files", "a.csv").returncode == 0
    assert load(tmp_path / "or-bench", "or-bench-80k") == [FRUIT]
    for empty in ("or-bench-toxic", "or-bench-toxic-all", "or-bench-hard-1k"):
        with pytest.raises(ValueError, match=f"'{empty}' not found. Available: .'or-bench-80k'.$"):
            load(tmp_path / "or-bench", empty)


def test_the_first_prompts_of_an_empty_card_can_be_loaded(
    tmp_path: Path, load: Callable[[Path, str], list[str]]
) -> None:
    write(tmp_path / "a.csv", [], ["prompt", "category", "is_toxic"])
    build(tmp_path, "--moderated_files", "a.csv")
    folder = tmp_path / "or-bench"
    assert "configs:" not in (folder / "README.md").read_text()
    write(folder / "hard.csv", [{"prompt": FRUIT, "category": "hate"}])
    add_config(folder, "or-bench-hard-1k", "hard.csv")
    assert load(folder, "or-bench-hard-1k") == [FRUIT]


def test_a_broken_hard_set_beside_stops_before_anything_is_written(chain: Path) -> None:
    (chain / "or-bench").mkdir()
    (chain / "or-bench/or-bench-hard.csv").write_text("prompt,category\nx\n")
    assert_stops(build(chain, *FILES), "or-bench-hard.csv, line 2: 1 cells")
    assert not (chain / "or-bench/or-bench-80k.csv").exists()


# ---------------------------------------------------------------------------------- people


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    """A folder with an audit sheet of 12 prompts."""
    rows = [
        judged("=" + names(i) if i == 0 else names(i), i < 6)
        | {"is_toxic_gpt4": i < 6, "is_toxic_llama3": i % 2 == 0}
        for i in range(12)
    ]
    write(tmp_path / "a.csv", rows)
    done = build(tmp_path, "--moderated_files", "a.csv", "--audit_sample", "20")
    assert "the audit sheet: 12 prompts, all there are" in done.stderr
    return tmp_path


def label(folder: Path, name: str, labels: Mapping[str, str]) -> Path:
    """A person's copy of the sheet. labels: prompt -> label."""
    sheet = read(folder / "or-bench/audit_sheet.csv")
    for row in sheet:
        row["label"] = labels.get(row["prompt"].lstrip("'"), "")
    return write(folder / f"{name}.csv", sheet)


def test_the_sheet_is_shuffled_shows_no_vote_and_runs_no_formula(audit: Path) -> None:
    sheet = read(audit / "or-bench/audit_sheet.csv")
    assert list(sheet[0]) == ["id", "prompt", "label"]
    assert {row["label"] for row in sheet} == {""}
    shown = [row["prompt"] for row in sheet]
    assert "'=" + names(0) in shown
    assert shown != sorted(shown) and [p.lstrip("'=") for p in shown] != list(map(names, range(12)))
    votes = {row["id"]: row for row in read(audit / "or-bench/audit_votes.csv")}
    verdicts = [votes[row["id"]]["is_toxic"] for row in sheet]
    assert sorted(verdicts) not in (verdicts, verdicts[::-1])
    assert set(votes) == {row["id"] for row in sheet}
    assert Counter(row["is_toxic_llama3"] for row in votes.values()) == {"True": 6, "False": 6}


def test_the_audit_draws_at_random_from_all_that_was_kept_and_shuffles(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [judged(names(i), i % 2 == 0) for i in range(40)])
    drawn: list[list[str]] = []
    for seed in ("1", "1", "2"):
        out = tmp_path / f"out{len(drawn)}"
        words = ("--audit_sample", "8", "--seed", seed, "--output_dir", out)
        assert build(tmp_path, "--moderated_files", "a.csv", *words).returncode == 0
        drawn.append([row["prompt"] for row in read(out / "audit_sheet.csv")])
        ids = [row["id"] for row in read(out / "audit_sheet.csv")]
        assert ids != sorted(ids)
    assert drawn[0] == drawn[1] and set(drawn[0]) != set(drawn[2])
    assert set(drawn[0]) - set(map(names, range(8)))


def test_the_audit_knows_what_the_second_chance_made_of_a_prompt(chain: Path) -> None:
    build(chain, *FILES, "--audit_sample", "6")
    votes = {row["prompt"]: row for row in read(chain / "or-bench/audit_votes.csv")}
    said = {
        p: tuple(votes[p][c] for c in ("is_toxic", "second_chance", "in_toxic_set"))
        for p in (FRUIT, SHIP, CLOUD)
    }
    assert said == {
        FRUIT: ("False", "False", "False"),
        SHIP: ("True", "True", "False"),
        CLOUD: ("True", "False", "True"),
    }


def test_people_are_compared_with_each_other_and_with_every_judge(
    audit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orbench.terminal.COLUMNS", 200)
    truth = {("=" if i == 0 else "") + names(i): i < 6 for i in range(12)}
    right = {p: "Toxic " if toxic else "safe" for p, toxic in truth.items()}
    label(audit, "anna", right)
    label(audit, "ben", {**right, names(11): "toxic", names(10): ""})
    done = build(audit, "--audit_labels", "anna.csv", "ben.csv")
    assert done.stdout == "or-bench/audit_agreement.csv\n", done.stderr
    found = {
        (row["rater"], row["against"], row["where"]): row
        for row in read(audit / "or-bench/audit_agreement.csv")
    }
    pair = found["anna", "ben", "all"]
    assert (pair["n"], pair["agree"], pair["rate_percent"]) == ("11", "10", "90.91")
    majority = "people's majority"
    assert "1 prompt without a majority of people" in done.stderr
    gpt4, llama3 = found["gpt4", majority, "all"], found["llama3", majority, "all"]
    assert (gpt4["n"], gpt4["agree"], gpt4["cohen_kappa"]) == ("11", "11", "1.0000")
    assert (gpt4["low_percent"], gpt4["high_percent"]) == ("74.12", "100.00")
    assert (llama3["n"], llama3["agree"]) == ("11", "5")
    assert found["ensemble", majority, "people: toxic"]["n"] == "6"
    assert found["data set", majority, "people: safe"]["agree"] == "5"
    lines = done.stderr.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("against the people"))
    first, *rows = (line for line in lines[start:] if " people: " not in line)
    assert len(rows) == 4 and {len(line) for line in rows} == {len(first)}
    assert {line.index("all ") + 3 for line in rows} == {first.index(" on ") + 3}


def test_a_sheet_that_is_there_already_is_never_drawn_anew(audit: Path) -> None:
    sheet = audit / "or-bench/audit_sheet.csv"
    before = label(audit, "or-bench/audit_sheet", {names(3): "safe"}).read_bytes()
    done = build(audit, "--moderated_files", "a.csv", "--audit_sample", "5", "--seed", "9")
    assert done.returncode == 0
    assert sheet.read_bytes() == before
    assert "stay as they are" in done.stderr


def test_wrong_labels_end_in_one_line_that_names_the_row(audit: Path) -> None:
    row = read(audit / "or-bench/audit_sheet.csv")[0]
    for bad, text in [
        ([{**row, "label": "maybe"}], "row 1: the label is 'maybe', not toxic, safe or empty"),
        ([{**row, "label": "safe"}] * 2, "row 2: the id"),
        ([{**row, "id": "other", "label": "safe"}], "row 1: the id 'other' is not in"),
        ([row], "no prompt is labelled"),
    ]:
        write(audit / "p.csv", bad)
        assert_stops(build(audit, "--audit_labels", "p.csv"), text)
    label(audit, "p", {names(1): "safe"})
    assert_stops(build(audit, "--audit_labels", "p.csv", "./p.csv"), "given twice")
    assert_stops(
        build(audit, "--audit_labels", "p.csv", "--output_dir", "x"), "audit_votes.csv: no such"
    )


# ---------------------------------------------------------------------------------- quality


def test_diversity_counts_duplicates_lengths_self_bleu_and_broken_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orbench.terminal.COLUMNS", 200)
    rows = [
        judged("Name a legal fruit, but a yellow one", False, "hate", toxic_seed="s"),
        judged("name a legal fruit, but a yellow one!", False, "hate", toxic_seed="s"),
        judged("Name a legal fruit, but a yellow one now", False, "hate", toxic_seed="s"),
        judged(BREAD, False, "hate", toxic_seed="s"),
        judged(CHESS, False, "privacy", toxic_seed="s"),
    ]
    write(tmp_path / "a.csv", rows)
    done = build(tmp_path, "--moderated_files", "a.csv", "--similarity", "0.8", "--diversity")
    assert done.returncode == 0, done.stderr
    table = done.stderr.split("quality of or-bench-80k")[1].splitlines()
    hate = next(line.split() for line in table if line.startswith("hate"))
    # n, words, characters, exact, near, Self-BLEU (n), safe, harmful, reversals
    assert hate[1:6] == ["2", "9.0", "44.0", "25.0%", "25.0%"]
    assert hate[7:] == ["(2)", "50.0%", "0.0%", "50.0%"]
    privacy = next(line.split() for line in table if line.startswith("privacy"))
    assert privacy[6] == "-"


def test_self_bleu_is_high_for_prompts_of_one_mould_and_low_for_others() -> None:
    pytest.importorskip("sacrebleu")
    from orbench.dataset.diversity import BLEU_SAMPLE, self_bleu

    same = [f"How do I make a good pot of {names(i)[:6]} soup for my guests?" for i in range(20)]
    alike, n = self_bleu(same, seed=0)
    varied, _ = self_bleu([names(i) for i in range(150)], seed=0)
    assert n == 20 and self_bleu([names(i) for i in range(150)], seed=0)[1] == BLEU_SAMPLE
    assert alike is not None and varied is not None and alike > 70 > 20 > varied
    assert self_bleu(["one"], seed=0) == (None, 1)


@pytest.mark.parametrize(
    ("prompt", "broken"),
    [
        ("Is it legal to fish here?", ["safe words"]),
        ("Fish ETHICALLY, with safety", ["safe words"]),
        ("illegal fishing", ["harmful words"]),
        ("unlawful fishing of dubious kind", []),
        ("How do I win, but without a fight?", ["reversals"]),
        ("However, stay calm", ["reversals"]),
        ("Nothing but rain, however hard we hope; not only rain but also wind", []),
        ("a butter button", []),
    ],
)
def test_the_rules_on_words_look_at_whole_words(prompt: str, broken: list[str]) -> None:
    assert broken_rules(prompt) == broken


def test_near_duplicates_are_those_that_comparing_each_with_each_finds() -> None:
    pytest.importorskip("datasketch")
    from orbench.dataset.near_duplicates import NearDuplicates, jaccard, pieces

    rng = random.Random(5)
    texts: list[str] = []
    for i in range(300):
        words = (rng.choice(texts) if texts and i % 3 else names(i)).split()
        words[rng.randrange(len(words))] = names(1000 + i)[: rng.randint(1, 6)]
        texts.append(" ".join(words))
    seen, kept = NearDuplicates(0.8), list[str]()
    wrong = dropped = 0
    for text in texts:
        expected = any(jaccard(pieces(text), pieces(one)) >= 0.8 for one in kept)
        like = seen.add(text)
        dropped += like is not None
        wrong += expected != (like is not None)
        if like is None:
            kept.append(text)
        else:
            assert like in kept and jaccard(pieces(text), pieces(like)) >= 0.8
    assert dropped > 50
    assert wrong <= 3  # of those at the very threshold, 1 in 100 may be missed


@pytest.mark.skipif(not REAL.exists(), reason="the shared data are not there")
def test_the_published_hard_set_has_the_near_duplicates_that_comparing_all_finds() -> None:
    pytest.importorskip("datasketch")
    from orbench.dataset.near_duplicates import NearDuplicates

    seen = NearDuplicates(0.8)
    assert sum(seen.add(row["prompt"]) is not None for row in read(REAL)) == 3


# ---------------------------------------------------------------------------------- bad input


def assert_stops(done: subprocess.CompletedProcess[str], text: str) -> None:
    """Exit 1, nothing on stdout, one line on stderr that says so."""
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert text in line


def test_bad_input_ends_in_one_line_and_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "good.csv", [judged(FRUIT, False)])
    write(tmp_path / "odd.csv", [judged(FRUIT, False), judged(BREAD, "per\x1bhaps")])
    write(tmp_path / "bare.csv", [{"prompt": FRUIT, "category": "hate"}])
    for files, text in [
        (["none.csv"], "none.csv: no such file"),
        (["bare.csv"], "bare.csv has no column 'is_toxic'; it has: prompt, category"),
        (["good.csv", "./good.csv"], "given twice"),
    ]:
        assert_stops(build(tmp_path, "--moderated_files", *files), text)
        assert not (tmp_path / "or-bench").exists()
    assert_stops(
        build(tmp_path, "--moderated_files", "odd.csv"), "odd.csv, row 2: is_toxic is 'per haps'"
    )
    write(tmp_path / "overall.csv", [judged(FRUIT, False), judged(BREAD, False, "Overall")])
    assert_stops(
        build(tmp_path, "--moderated_files", "overall.csv"),
        "overall.csv, row 2: a category cannot be called 'Overall'",
    )
    assert not (tmp_path / "or-bench").exists()
    (tmp_path / "file").write_text("")
    done = build(tmp_path, "--moderated_files", "good.csv", "--output_dir", "file")
    assert_stops(done, "file")


def test_a_header_alone_gives_empty_data_sets(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", [], ["prompt", "category", "is_toxic"])
    done = build(tmp_path, "--moderated_files", "a.csv", "--audit_sample", "3", "--diversity")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "or-bench/or-bench-80k.csv").read_text() == "prompt,category\n"


def test_a_wrong_command_line_is_status_2_and_help_loads_nothing_heavy(tmp_path: Path) -> None:
    for words in ([], ["--moderated_files", "a.csv", "--similarity", "2"]):
        assert build(tmp_path, *words).returncode == 2
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(SCRIPT), "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
        check=True,
    )
    for heavy in ("numpy", "pandas", "scipy", "datasketch", "openai", "sacrebleu"):
        assert f" {heavy}\n" not in done.stderr
