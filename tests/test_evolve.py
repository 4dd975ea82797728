"""rewritter/evolve_prompts.py and prompts.sh, in a small world over HTTP."""

import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from orbench.base.prompts import set_name
from orbench.datasets.lineage import COMBINE, HIT, REWRITE, Lineages
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
    seeds_file(desk.folder, 20)
    desk.serve(EASY.reply)
    return desk


def test_a_hit_is_refused_safe_to_all_judges_and_known_by_its_descent(world: Desk) -> None:
    said = found(world, "--wanted=8", "--min_refusing=2", "--audit_sample=5")
    assert "ended because --wanted 8 was reached" in said
    hits, candidates = world.rows(), world.rows("o_candidates.csv")
    assert len(hits) >= 8 and max(Counter(row["toxic_seed"] for row in hits).values()) == 1
    seeds = {row["prompt"] for row in world.rows("seeds.csv")}
    for row in hits:
        refusing = [target for target in TARGETS if EASY.refused(row["prompt"], target)]
        assert len(row["refused_by"].split(";")) == len(refusing) >= 2
        assert float(row["refused_share"]) == pytest.approx(len(refusing) / 3, abs=0.001)
        assert {row[f"is_toxic_{judge}"] for judge in JUDGES} == {"False"}
        assert row["toxic_seed"] in seeds
        assert (row["operator"] == REWRITE) == (row["parent"] == row["toxic_seed"])
    outcomes = Counter(row["outcome"] for row in candidates)
    assert outcomes[HIT] == len(hits) and outcomes["toxic"] and outcomes["answered"]
    assert all(row["refused_by"] for row in candidates if row["is_toxic"])
    assert world.record()["selectors"] == ["GPT-4", "Llama-3", "Qwen"]
    assert list(world.rows("o_audit_sheet.csv")[0]) == ["id", "prompt", "label"]
    sent = re.findall(r"round \d+: .* (\d+) requests .*votes split on \d+%", said)
    assert sum(map(int, sent)) == len(world.server.requests)
    assert "--min_refusing 2" in error_line(evolve(world, "--wanted=99"))  # was, and is not now


def test_a_missing_verdict_leaves_a_candidate_unscored(world: Desk) -> None:
    def reply(body: Body, seen: int) -> Reply | str:
        place = sum(prompt_of(body).encode())
        if body["model"] == JUDGES[0] and place % 3 == 0:
            return "No verdict."
        faulty = body["model"] == TARGETS[0] and place % 7 == 0
        return error(400) if faulty else EASY.reply(body, seen)

    world.server.reply = reply
    found(world, "--rounds=2")
    candidates = world.rows("o_candidates.csv")
    unscored = [row for row in candidates if row["outcome"] == "unscored"]
    assert {row["refused_by"] != "" for row in unscored} == {True, False}
    assert all(row["votes"] == "3" for row in world.rows())
    assert "log.txt" in error_line(judge_is_gone(world))


def judge_is_gone(desk: Desk) -> Done:
    desk.serve(lambda body, seen: error(404) if body["model"] in JUDGES else EASY.reply(body, seen))
    return evolve(desk, "--rounds=3")


def test_near_duplicates_of_excluded_prompts_are_no_hits(world: Desk) -> None:
    found(world, "--rounds=1")
    first = [row["prompt"] for row in world.rows()]
    world.csv("public.csv", ["prompt"], [[text.upper() + " now"] for text in first[:2]])
    shutil.rmtree(world.folder / "o_rounds")
    said = found(world, "--rounds=1", "--exclude", "public.csv")
    assert "near-duplicate in excluded 2" in said
    assert [row["prompt"] for row in world.rows()] == first[2:]


def test_a_search_says_why_it_ended_and_what_a_round_can_cost(world: Desk) -> None:
    done = evolve(world, "--dry_run")
    assert (done.returncode, done.stdout) == (0, "") and not world.server.requests
    assert "at most 186 requests" in done.stderr
    assert "--max_requests 200 was reached" in found(world, "--max_requests=200")
    assert len(world.server.requests) <= 200
    world.server.reply = World(refuses=9).reply
    assert "ended because three rounds in a row" in found(world)


def test_a_search_that_is_killed_ends_like_one_that_was_not(world: Desk) -> None:
    found(world, "--rounds=3")
    whole = {name: (world.folder / name).read_bytes() for name in ("o.csv", "o_candidates.csv")}
    shutil.rmtree(world.folder / "o_rounds")
    server = world.serve(EASY.reply, latency=0.02)
    command = [sys.executable, str(ROOT / EVOLVE), *SMALL, "--rounds=3"]
    for more in (4, 70, 60):
        process = subprocess.Popen(command, cwd=world.folder, env=environment(world.url))
        wanted = len(server.requests) + more
        while len(server.requests) < wanted:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
    in_flight = len(server.requests) - answered(world)
    found(world, "--rounds=3")
    assert {name: (world.folder / name).read_bytes() for name in whole} == whole
    # Every request since the last kill has brought an answer that was not there.
    assert len(server.requests) - answered(world) == in_flight
    before = len(server.requests)
    found(world, "--rounds=3")
    assert len(server.requests) == before


def answered(desk: Desk) -> int:
    """How many whole lines are in the answer logs."""
    logs = desk.folder.glob("o_rounds/*/*.answers.jsonl")
    return sum(log.read_bytes().count(b"\n") for log in logs)


# -- the choice of parents ---------------------------------------------------------------------


def candidate(seed: str, n: int, outcome: str, operator: str = REWRITE) -> dict[str, str]:
    toxic = {HIT: "False", "toxic": "True"}.get(outcome, "")
    about = {"prompt": f"{seed}-{n}", "category": "c", "toxic_seed": seed, "operator": operator}
    return about | {"refused_share": "1", "outcome": outcome, "is_toxic": toxic, "debatable": ""}


def test_parents_are_spread_over_seeds_and_operators_follow_their_yield() -> None:
    seeds = [{"prompt": f"s{n}", "category": "c"} for n in range(30)]
    of = Lineages(seeds, {"near": "Near.", "far": "Far.", COMBINE: "Both."}, wanted=50)
    of.candidates += [candidate("s0", n, HIT) for n in range(2)]  # enough: a 25th of 50
    of.candidates += [candidate("s1", n, HIT, "far") for n in range(1)]
    of.candidates += [candidate("s2", n, "toxic", "near") for n in range(60)]
    of.candidates += [candidate("s3", 0, "answered")]
    of.parents += [{"prompt": f"s{n}", "seed": f"s{n}", "operator": REWRITE} for n in range(4)]
    parents = of.choose(20, random.Random(0))
    varied = {row["seed"]: row for row in parents if row["operator"] != REWRITE}
    assert varied.keys() == {"s1", "s2"} and len(parents) == 20
    assert not {row["prompt"] for row in parents} & {"s0", "s1", "s2", "s3"}
    drawn = Counter(of.choose(2, random.Random(n))[-1]["operator"] for n in range(30))
    assert drawn["far"] > 10 and not drawn["near"]
    of.parents += [{"prompt": "s1-0", "seed": "s1", "operator": "far"}]
    again = [of.choose(2, random.Random(n))[-1] for n in range(30)]
    assert "far" not in {row["operator"] for row in again if row["prompt"] == "s1-0"}
    assert all(row["other"].startswith("s0") for row in again if row["operator"] == COMBINE)


# -- the release -------------------------------------------------------------------------------


def test_the_sets_of_two_releases_have_names_of_their_own() -> None:
    assert set_name(Path("releases/2026-12/hard.csv")) == "2026-12-hard"
    assert set_name(Path("data/hard.csv")) == set_name(Path("hard.jsonl")) == "hard"


def test_a_release_in_one_command(desk: Desk) -> None:
    models = {"REWRITER": "scripted", "TARGETS": "scripted", "JUDGES": "scripted"}
    more = {"PER_CATEGORY": "4", "CATEGORIES": "harmful"}
    command = f"sh {ROOT / 'prompts.sh'}"
    done = desk.shell(command, NAME="one", **models, **more)
    assert (done.returncode, done.stdout) == (0, "releases/one/hard.csv\n"), done.stderr
    assert "measures nothing" in done.stderr
    hard, toxic = (desk.rows(f"releases/one/{name}.csv") for name in ("hard", "toxic"))
    assert hard and {tuple(row) for row in [*hard, *toxic]} == {("prompt", "category", "seed_id")}
    assert "| harmful " in (desk.folder / "releases/one/README.md").read_text()
    assert desk.record("releases/one/hard.csv")["selectors"] == ["scripted"]
    assert desk.record("releases/one/toxic.csv")["selectors"] == []
    other = desk.shell(command, NAME="one", **models, **more, EXCLUDE="x.csv")
    assert other.returncode == 1 and "> EXCLUDE=x.csv" in other.stderr
    second = desk.shell(command, NAME="two", **models, **more)
    assert second.returncode == 0 and "near-duplicate in excluded" in second.stderr
    assert not desk.rows("releases/two/toxic.csv")
