"""make measure and make demo: the shell scripts, as a user runs them."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orbench.local import WHEELS
from orbench.scripted import prompts
from tests.conftest import ROOT, STAGES, environment, prompts_csv, read_csv, run, write_csv
from tests.hub_server import HubServer
from tests.server import Body, Reply, Server, answer, prompt_of
from tests.test_project import FORBIDDEN

Serve = Callable[..., Server]
SHOW_RATES = "response_checker/show_rates.py"


def shell(
    script: Path, *args: str, cwd: Path, url: str = "", **settings: str
) -> "subprocess.CompletedProcess[str]":
    """A shell script run with this Python first on the path, as make does it."""
    env = environment(url, **settings)
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    command = ["sh", str(script), *args]
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=900
    )


def play(body: Body, seen: int) -> Reply:
    """A model that refuses every fifth bird, and a judge."""
    text = prompt_of(body)
    if "You judge how an assistant responded" in text:
        return answer("It answers. [[direct_answer]]")
    refused = re.search(r"number \d*[05]\?", text)
    return answer("I'm sorry, but I can't help with that." if refused else "Fold it in half.")


def test_a_models_name_is_enough_for_a_rate_and_a_page(serve: Serve, tmp_path: Path) -> None:
    safe, toxic = prompts_csv(tmp_path / "safe.csv", 40), prompts_csv(tmp_path / "b ad.csv", 20)
    server = serve(play)
    flags = {"PROMPTS": str(safe), "TOXIC": str(toxic)}
    done = shell(ROOT / "measure.sh", cwd=tmp_path, url=server.url, MODEL="me/one", **flags)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "results/results.html\n"
    last = done.stderr.splitlines()[-1]
    assert last.startswith("me/one: over-refusal rate 20.0 % [10.5, 34.8] (n 40, ")
    assert "· toxic rejection rate 20.0 % [8.1, 41.6] (n 20, " in last
    assert len(server.requests) == 60

    safe_alone = {"PROMPTS": str(safe), "MODEL": "me/two"}
    two = shell(ROOT / "measure.sh", cwd=tmp_path, url=server.url, **safe_alone)
    assert two.stdout == "results/results.html\n"
    assert [line.split(":")[0] for line in two.stderr.splitlines()[-2:]] == ["me/one", "me/two"]
    board = (tmp_path / "results" / "results.md").read_text().partition("## Leaderboard")[2]
    assert "| me/one | 20.0" in board and "| me/two | 20.0" in board  # not on the same prompts

    judged = {"PROMPTS": str(safe), "JUDGE": "me/judge", "LIMIT": "40"}
    done = shell(ROOT / "measure.sh", cwd=tmp_path, url=server.url, MODEL="me/one", **judged)
    assert done.returncode == 0, done.stderr
    assert {body["model"] for body in server.requests[100:]} == {"me/judge"}
    assert "toxic" not in done.stderr.splitlines()[-1]
    *_, others, last = done.stderr.splitlines()
    assert last.startswith("me/one (me/judge): over-refusal rate 0.0 % [0.0, 8.8]")
    assert others == "2 more in the table, with other prompts or another judge"


def test_named_sets_and_a_sample_of_them_are_measured(serve: Serve, tmp_path: Path) -> None:
    rows = [(f"How do I fold paper bird number {n}?", "abcd"[n % 4]) for n in range(40)]
    file = write_csv(tmp_path / "set.csv", ("prompt", "category"), rows).read_bytes()
    sets = {"PROMPTS": "or-bench-80k", "TOXIC": "or-bench-toxic", "LIMIT": "8"}
    with HubServer({f"bench-llm/or-bench/{name}.csv": file for name in sets.values()}) as hub:
        hub_settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf")}
        url, settings = serve(play).url, {"MODEL": "gpt-x", **sets, **hub_settings}
        done = shell(ROOT / "measure.sh", cwd=tmp_path, url=url, **settings)
    assert done.returncode == 0, done.stderr
    sample = read_csv(tmp_path / "results/over_refusal/keyword/or-bench-80k/gpt-x.csv")
    assert sorted(row["category"] for row in sample) == sorted("abcd" * 2)


def test_a_stage_that_stops_ends_the_measuring(serve: Serve, tmp_path: Path) -> None:
    for settings, says in (
        ({}, "error: which model?"),
        ({"MODEL": "gpt-x", "PROMPTS": "none.csv"}, "none.csv: no such file"),
    ):
        done = shell(ROOT / "measure.sh", cwd=tmp_path, url=serve(play).url, **settings)
        assert done.returncode != 0 and done.stdout == ""
        assert says in done.stderr.splitlines()[-1]


def test_rates_are_shown_of_models_that_were_measured_here(tmp_path: Path) -> None:
    columns = "model,side,category,n,rate_percent,low_percent,high_percent,unscored,counted_by"
    rows = [
        "m,over_refusal,overall,1319.0,12.34,10.99,14.61,2.0,stage 5 gpt4,coverage 90%,1.5",
        "m,over_refusal,hate,5.0,12.34,10.99,14.61,2.0,stage 5 gpt4,,",
        "m,toxic,overall,0.0,,,,9.0,stage 5 gpt4,,",
        "p,toxic,overall,,50.0,,,,published,,",
    ]
    path = tmp_path / "results.csv"
    path.write_text("\n".join([columns + ",notes,cut_off_percent", *rows]) + "\n")
    done = run(SHOW_RATES, path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    assert done.stderr == (
        "m: over-refusal rate 12.3 % [11.0, 14.6] (n 1,319, cut off 1.5 %, unscored 2, "
        "coverage 90%) · toxic rejection rate unknown (n 0, unscored 9)\n"
    )
    others = [f"{row},hash-{row[0]}" for row in (rows[0], rows[0].replace("m,", "n,", 1))]
    path.write_text("\n".join([columns + ",notes,cut_off_percent,prompt_set", *others]) + "\n")
    said = run(SHOW_RATES, path, cwd=tmp_path).stderr.splitlines()
    assert said[0].startswith("1 more in the table") and said[1].startswith("n: ")
    path.write_text("\n".join([columns + ",notes,cut_off_percent", rows[-1]]) + "\n")
    done = run(SHOW_RATES, path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")


def test_the_demo_ends_with_a_rate_and_a_page(tmp_path: Path) -> None:
    for folder in {(ROOT / stage).parent for stage in STAGES} | {ROOT / "orbench"}:
        shutil.copytree(folder, tmp_path / folder.name)
    shutil.copy(ROOT / "demo.sh", tmp_path)
    done = shell(tmp_path / "demo.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "demo/results.html\n"
    model, rate = done.stderr.splitlines()[-1].split(": ", 1)
    assert re.match(r"over-refusal rate \d+\.\d % \[\d+\.\d, \d+\.\d\] \(n 60, ", rate)
    assert ("measures nothing" in rate) == (model == "scripted")
    assert (WHEELS[0] in done.stderr) == (model == "scripted")  # which is not installed
    page = (tmp_path / "demo" / "results.html").read_text()
    assert all(one in page for one in (prompts()["hate"][0], prompts()["privacy"][5]))


@pytest.mark.parametrize("category", prompts())
def test_the_prompts_of_the_demo_keep_the_rules_of_a_rewrite(category: str) -> None:
    assert len(prompts()) == 10
    assert len(set(prompts()[category])) == 6
    for prompt in prompts()[category]:
        assert not FORBIDDEN.search(prompt) and not re.search(r"[\[\]{}]", prompt)
