"""rewritter/evolve_prompts.py and prompts.sh, in a small world over HTTP."""

import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from orbench.datasets.lineage import COMBINE, HIT, REWRITE, Lineages, merit
from tests.benchmark.search import JUDGES, TARGETS, World, seeds_file
from tests.conftest import ROOT, Desk, Done, environment, error_line
from tests.server import Body, Reply, error, prompt_of

EVOLVE = "rewritter/evolve_prompts.py"
EASY = World(refuses=0.6, toxic=0.8)  # a third of all prompts is refused
MODELS = (f"--targets={','.join(TARGETS)}", f"--judges={','.join(JUDGES)}", "--rewriter=rewriter")
SMALL = ("--seeds=seeds.csv", *MODELS, "--parents=6", "--output_path=o.csv")


def evolve(desk: Desk, *flags: str) -> Done:
    return desk.run(EVOLVE, *SMALL, *flags)


def found(desk: Desk, *flags: str) -> str:
    """stderr of a search that succeeds."""
    done = evolve(desk, *flags)
    assert (done.returncode, done.stdout) == (0, "o.csv\n"), done.stderr
    return done.stderr


@pytest.fixture
def world(desk: Desk) -> Desk:
    """A desk with seeds, and a server that plays the rewriter, three targets and three judges."""
    seeds_file(desk.folder, 20, "t")
    desk.serve(EASY.reply)
    return desk


# -- hits --------------------------------------------------------------------------------------


def test_a_hit_is_refused_safe_to_all_judges_and_known_by_its_descent(world: Desk) -> None:
    said = found(world, "--wanted=12", "--audit_sample=5")
    assert "ended as --wanted 12 is reached" in said
    hits, candidates = world.rows(), world.rows("o_candidates.csv")
    assert len(hits) >= 12 and max(Counter(row["toxic_seed"] for row in hits).values()) <= 2
    seeds = {row["prompt"] for row in world.rows("seeds.csv")}
    known = seeds | {row["prompt"] for row in candidates}
    for row in hits:
        refusing = [target for target in TARGETS if EASY.refused(row["prompt"], target)]
        assert len(row["refused_by"].split(";")) == len(refusing) > 0
        assert float(row["refused_share"]) == pytest.approx(len(refusing) / 3, abs=0.001)
        assert not any(EASY.is_toxic(row["prompt"], judge) for judge in JUDGES)
        assert {row[f"is_toxic_{judge}"] for judge in JUDGES} == {"False"}
        assert row["toxic_seed"] in seeds and row["parent"] in known
        assert (row["operator"] == REWRITE) == (row["parent"] in seeds)
    outcomes = Counter(row["outcome"] for row in candidates)
    assert outcomes[HIT] == len(hits) and outcomes["toxic"] and outcomes["answered"]
    judged = [row for row in candidates if row["safe_share"]]
    assert all(row["refused_by"] for row in judged) and len(judged) < len(candidates)
    assert world.record()["selectors"] == ["GPT-4", "Llama-3", "Qwen"]
    assert list(world.rows("o_audit_sheet.csv")[0]) == ["id", "prompt", "label"]
    lines = re.findall(r"round \d+: .* (\d+) requests .*judges split on \d+%", said)
    assert sum(map(int, lines)) == len(world.server.requests)


def test_several_families_may_have_to_refuse(world: Desk) -> None:
    found(world, "--wanted=5", "--min_refusing=3")
    assert {row["refused_by"] for row in world.rows()} == {"GPT-4;Llama-3;Qwen"}
    assert "--targets" in error_line(evolve(world, "--min_refusing=4"))


def test_a_missing_verdict_leaves_a_candidate_unscored(world: Desk) -> None:
    def reply(body: Body, seen: int) -> Reply | str:
        text = prompt_of(body)
        if body["model"] == JUDGES[0] and hash_of(text) % 3 == 0:
            return "No verdict."
        if body["model"] == TARGETS[0] and hash_of(text) % 7 == 0:
            return error(400)
        return EASY.reply(body, seen)

    world.server.reply = reply
    found(world, "--rounds=2")
    candidates = world.rows("o_candidates.csv")
    unscored = [row for row in candidates if row["outcome"] == "unscored"]
    assert {bool(row["safe_share"]) for row in unscored} == {True, False}
    assert all(row["votes"] == "3" for row in world.rows())


def hash_of(text: str) -> int:
    return sum(text.encode())


def test_near_duplicates_of_hits_and_of_excluded_prompts_are_no_hits(world: Desk) -> None:
    found(world, "--rounds=1")
    first = world.rows()
    near = [row["prompt"].upper() + " now" for row in first[:2]]
    world.csv("public.csv", ["prompt"], [[text] for text in near])
    shutil.rmtree(world.folder / "o_rounds")
    said = found(world, "--rounds=1", "--exclude", "public.csv")
    assert "near-duplicate in excluded 2" in said
    assert [row["prompt"] for row in world.rows()] == [row["prompt"] for row in first[2:]]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--rounds=2",), "--rounds 2 is reached"),
        (("--max_requests=200",), "--max_requests 200 is reached"),
        (("--parents=30",), "nothing is left to try"),
    ],
)
def test_a_search_says_why_it_ended(world: Desk, flags: tuple[str, ...], why: str) -> None:
    nothing = World(refuses=9)
    if "--parents=30" in flags:
        world.server.reply = nothing.reply
    assert f"ended as {why}" in found(world, *flags)
    if "--max_requests=200" in flags:
        assert len(world.server.requests) <= 200


def test_a_dry_run_reports_the_most_a_round_can_cost(world: Desk) -> None:
    done = evolve(world, "--dry_run")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "186 (rewriter 6, targets 90, judges 90)" in done.stderr
    assert not world.server.requests


# -- resumed -----------------------------------------------------------------------------------


def test_a_search_that_is_killed_ends_like_one_that_was_not(world: Desk) -> None:
    flags = ("--wanted=10", "--rounds=4")
    found(world, *flags)
    whole = {name: (world.folder / name).read_bytes() for name in ("o.csv", "o_candidates.csv")}
    shutil.rmtree(world.folder / "o_rounds")
    server = world.serve(EASY.reply, latency=0.02)
    answered = set[str]()
    for more in (10, 60, 40):
        command = [sys.executable, str(ROOT / EVOLVE), *SMALL, *flags]
        process = subprocess.Popen(
            command, cwd=world.folder, env=environment(world.url), stderr=subprocess.PIPE
        )
        wanted = len(keys(world)) + more
        while len(keys(world)) < wanted and process.poll() is None:
            pass
        process.kill()
        process.communicate()
        assert keys(world) > answered
        answered = keys(world)
    found(world, *flags)
    assert {name: (world.folder / name).read_bytes() for name in whole} == whole
    sent = Counter(json.dumps(body, sort_keys=True) for body in server.requests)
    assert len(keys(world)) == len(sent) and len(sent) + 3 * 64 >= sent.total()
    before = len(server.requests)
    found(world, *flags)
    assert len(server.requests) == before


def keys(desk: Desk) -> set[str]:
    """The answered requests in all logs, each log's own."""
    logs = desk.folder.glob("o_rounds/*/*.answers.jsonl")
    lines = [(log, line) for log in logs for line in log.read_text().split("\n")]
    return {f"{log} {line[:50]}" for log, line in lines if line.endswith("}")}


def test_rounds_of_other_settings_are_not_mixed(world: Desk) -> None:
    found(world, "--rounds=1")
    line = error_line(evolve(world, "--rounds=2", "--min_refusing=2"))
    assert "--min_refusing 1" in line and "--output_path" in line


def test_a_model_that_answers_nothing_stops_the_search(world: Desk) -> None:
    def reply(body: Body, seen: int) -> Reply | str:
        return error(404) if body["model"] == JUDGES[1] else EASY.reply(body, seen)

    world.server.reply = reply
    assert "log.txt" in error_line(evolve(world))
    world.server.reply = EASY.reply
    found(world, "--rounds=1")


# -- the choice of parents ---------------------------------------------------------------------


def candidate(
    seed: str, n: int, outcome: str, safe: str, operator: str = REWRITE
) -> dict[str, str]:
    about = {"prompt": f"{seed}{n}", "category": "c", "toxic_seed": seed, "parent": seed}
    about |= {"operator": operator, "round": "1", "refused_by": "A", "refused_share": "1"}
    return about | {"safe_share": safe, "outcome": outcome}


def lineages(*candidates: dict[str, str], wanted: int = 50) -> Lineages:
    """Thirty seeds, of which those of the candidates are used."""
    seeds = [{"prompt": f"seed {n} ", "category": "c"} for n in range(30)]
    found = Lineages(seeds, {"near": "Near.", "far": "Far.", COMBINE: "Both."}, wanted)
    found.parents += [{"prompt": s, "seed": s, "operator": REWRITE} for s in used(candidates)]
    found.candidates += candidates
    return found


def used(candidates: tuple[dict[str, str], ...]) -> set[str]:
    return {row["toxic_seed"] for row in candidates}


def test_a_seed_with_enough_hits_waits_and_a_full_one_has_no_more() -> None:
    of = lineages(
        *(candidate("seed 0 ", n, HIT, "1") for n in range(2)),
        *(candidate("seed 1 ", n, HIT, "1") for n in range(5)),
        candidate("seed 2 ", 0, "toxic", "0.333"),
        candidate("seed 3 ", 0, "answered", ""),
    )
    parents = of.choose(28, random.Random(0))
    assert Counter(row["seed"] for row in parents if row["operator"] != REWRITE) == {
        "seed 0 ": 1,
        "seed 2 ": 1,
    }
    assert sum(row["operator"] == REWRITE for row in parents) == 26
    assert of.choose(1, random.Random(0))[0]["seed"] not in used(tuple(of.candidates))


def test_operators_follow_their_yield_and_a_parent_has_each_once() -> None:
    near = [candidate("seed 1 ", n, "answered", "", "near") for n in range(60)]
    far = [candidate(f"seed {n} ", 99, HIT, "1", "far") for n in range(2, 20)]
    of = lineages(*near, *far)
    drawn = Counter(row["operator"] for row in of.choose(15, random.Random(0)))
    assert drawn["far"] > 5 and not drawn["near"]
    of.parents += [{"prompt": far[0]["prompt"], "seed": "x", "operator": "far"}]
    again = [r for r in of.choose(40, random.Random(0)) if r["prompt"] == far[0]["prompt"]]
    assert again and again[0]["operator"] != "far"
    assert merit(far[0]) == 1 > merit(candidate("s", 1, "toxic", "0.667")) > 0 == merit(near[0])


# -- the release -------------------------------------------------------------------------------


def test_a_release_in_one_command(desk: Desk) -> None:
    models = {"REWRITER": "scripted", "TARGETS": "scripted", "JUDGES": "scripted"}
    more = {"PER_CATEGORY": "4", "CATEGORIES": "harmful privacy"}
    command = f"sh {ROOT / 'prompts.sh'}"
    done = desk.shell(command, NAME="one", **models, **more)
    assert (done.returncode, done.stdout) == (0, "releases/one/hard.csv\n"), done.stderr
    assert "measures nothing" in done.stderr
    hard, toxic = (desk.rows(f"releases/one/{name}.csv") for name in ("hard", "toxic"))
    assert {tuple(row) for row in hard + toxic} == {("prompt", "category", "seed_id")}
    assert {row["category"] for row in hard} == {"harmful", "privacy"} and toxic
    assert "| harmful " in (desk.folder / "releases/one/README.md").read_text()
    assert desk.record("releases/one/hard.csv")["selectors"] == ["scripted"]
    assert desk.record("releases/one/toxic.csv")["selectors"] == []
    again = desk.shell(command, NAME="one", **models, **more)
    assert again.returncode == 0 and desk.rows("releases/one/hard.csv") == hard
    other = desk.shell(command, NAME="one", **models, **more, EXCLUDE="x.csv")
    assert other.returncode == 1 and "> EXCLUDE=x.csv" in other.stderr
    second = desk.shell(command, NAME="two", **models, **more)
    assert second.returncode == 0, second.stderr
    assert not {row["prompt"] for row in desk.rows("releases/two/hard.csv")} & {
        row["prompt"] for row in hard
    }


def test_the_prompt_file_of_variations_fences_what_is_only_material() -> None:
    lines = (ROOT / "rewritter" / "prompt_vary.txt").read_text().splitlines()
    for mark in ("{seed}", "{other}"):
        at = lines.index(mark)
        assert lines[at - 1] == lines[at + 1] == "----- {mark}"
