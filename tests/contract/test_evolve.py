"""rewritter/evolve_prompts.py and release_prompts.py, in a small world over HTTP."""

import re
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from orbench.datasets.lineage import HIT, REWRITE
from tests.conftest import Desk, error_line, wait_for
from tests.server import Body, Server, error
from tests.worlds import JUDGES, TARGETS, World, seeds_file

EVOLVE = "rewritter/evolve_prompts.py"
RELEASE = "rewritter/release_prompts.py"
# A third of all prompts is refused; the families differ.
EASY = World(refuses=0.6, toxic=0.8, shared=0.5)
TWIN = "gpt-4-y"  # of the family of the first target, and refuses what that one does
MODELS = ("--targets=" + ",".join((*TARGETS, TWIN)), f"--judges={','.join(JUDGES)}")
SMALL = ("--seeds=seeds.csv", "--rewriter=rewriter", *MODELS, "--parents=6", "--output_path=o.csv")
WHOLE = ("--rounds=3", "--wanted=3", "--min_refusing=2")


def reply(body: Body, seen: int) -> str:
    return EASY.reply(body | {"model": TARGETS[0]} if body["model"] == TWIN else body, seen)


def found(desk: Desk, *flags: str) -> str:
    """stderr of a search."""
    done = desk.run(EVOLVE, *SMALL, *flags)
    assert done.stdout == "o.csv\n"
    return done.stderr


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str]]:
    """A finished search that no test changes, and what it said."""
    with Server(reply) as server:
        desk = Desk(tmp_path_factory.mktemp("searched"), lambda *_: server)
        desk.serve()
        seeds_file(desk.folder, 20)
        yield desk, found(desk, *WHOLE)


def test_a_hit_is_refused_safe_to_all_judges_and_known_by_its_descent(
    searched: tuple[Desk, str],
) -> None:
    desk, said = searched
    assert "ended because --wanted 3 was reached" in said
    hits, candidates = desk.rows(), desk.rows("o_candidates.csv")
    every = [row for row in candidates if row["outcome"] == HIT]
    assert len(hits) == 3 < len(every)  # the last round brought more than were wanted
    assert len(hits + desk.rows("o_more.csv")) == len(every)
    seeds = set(desk.cells("prompt", "seeds.csv"))
    for row in every:
        refusing = [target for target in TARGETS if EASY.refused(row["prompt"], target)]
        assert len(row["refusing_families"].split(";")) == len(refusing) >= 2  # families
        share = (len(refusing) + (TARGETS[0] in refusing)) / 4
        assert float(row["refused_share"]) == pytest.approx(share, abs=0.001)
        assert {row[f"is_toxic_{judge}"] for judge in JUDGES} == {"False"}
        assert row["toxic_seed"] in seeds
        assert (row["operator"] == REWRITE) == (row["parent"] == row["toxic_seed"])
    assert max(Counter(row["toxic_seed"] for row in every).values()) == 1  # a fourteenth of 3
    outcomes = Counter(row["outcome"] for row in candidates)
    assert outcomes["toxic"] and outcomes["answered"]
    few = [row for row in candidates if row["outcome"] == "refused by too few families"]
    assert ("GPT-4", "0.500") in {(row["refusing_families"], row["refused_share"]) for row in few}
    assert all(row["refusing_families"] for row in candidates if row["is_toxic"])
    assert desk.record()["selectors"] == ["GPT-4", "Llama-3", "Qwen"]
    step = desk.record("o_rounds/01/seeds_done.csv")["command"]
    assert "--prompt_file=prompt.txt" in step and "--wanted=3" not in step
    sent = re.findall(r"round \d+: .* (\d+) requests, hits from \d+ seeds", said)
    assert sum(map(int, sent)) == desk.sent
    done = desk.run(EVOLVE, *SMALL, "--wanted=99", status=1)
    assert "--min_refusing 2" in error_line(done)  # was, and is not now


def test_a_search_that_is_killed_ends_like_one_that_was_not(
    desk: Desk, searched: tuple[Desk, str]
) -> None:
    seeds_file(desk.folder, 20)
    server = desk.serve(reply, latency=0.02)
    for more in (4, 70):
        process = desk.start(EVOLVE, *SMALL, *WHOLE)
        wanted = server.sent + more
        wait_for(lambda wanted=wanted: server.sent >= wanted)  # type: ignore[misc]
        process.kill()
        process.communicate()
    in_flight = server.sent - answered(desk)
    server.latency = 0
    found(desk, *WHOLE)
    for name in ("o.csv", "o_candidates.csv"):
        assert desk.rows(name) == searched[0].rows(name)
    # Every request since the last kill has brought an answer that was not there.
    assert server.sent - answered(desk) == in_flight
    before = server.sent
    found(desk, *WHOLE, "--rounds=2", "--wanted=99")
    assert server.sent == before


def answered(desk: Desk) -> int:
    """How many whole lines are in the answer logs."""
    logs = desk.folder.glob("o_rounds/*/*.answers.jsonl")
    return sum(log.read_bytes().count(b"\n") for log in logs)


# -- the release -------------------------------------------------------------------------------


def test_a_release_ends_where_a_stage_is_interrupted_or_stops(desk: Desk) -> None:
    server = desk.serve("[[How do I fold a bird?]]", latency=0.1)
    models = ["--rewriter=a", "--targets=b", "--judges=c"]
    # Each model is tried first.
    done = desk.signaled(signal.SIGINT, 3 + 1 + 1, RELEASE, "--name=one", *models)
    assert (done.returncode, done.stderr.count("== ")) == (130, 1), done.stderr
    server.reply = lambda body, seen: "Hi." if "Hello" in str(body) else error(401)
    done = desk.run(RELEASE, "--name=two", *models, status=1)
    assert done.stderr.count("== ") == 1, done.stderr
