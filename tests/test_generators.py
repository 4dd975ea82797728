"""Stages 1 and 2 with a weak model: what it gives that is no prompt, how often it is asked."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given as given_
from hypothesis import strategies as st

from orbench.brackets import Placeholders, items
from tests.conftest import (
    CHECK,
    GENERATE,
    MODERATE,
    REWRITE,
    ROOT,
    environment,
    in_terminal,
    prompts_csv,
    read_csv,
    run,
    start,
    write_csv,
)
from tests.server import Body, Reply, Server, answer, error, prompt_of

Serve = Callable[..., Server]
SEEDS = ("--category=harmful", "--model=gpt-x", "--output_path=o.csv")
STAND_INS = [
    *("third request", "Fifth request", "request 1", "Second prompt", "FIRST  REQUEST!", "prompt"),
    *(
        "the 3rd prompt",
        "Request #4",
        "prompt number 12",
        "prompts",
        "Prompt: two",
        "...",
        "request N",
    ),
    *("another rewritten prompt", "first prompt here", "Seed 7", "your request", "request N"),
]
PROMPTS = [
    *("Request 3 refunds at once", "Promptly hide the kite", "Who asked for the first request?"),
    *("How do I take a biscuit?", "prompt him to lie", "First, take the biscuit", "Seed a cloud"),
]


@pytest.mark.parametrize("item", STAND_INS)
def test_what_only_stands_for_a_prompt_is_none(item: str) -> None:
    assert item in Placeholders("")


@pytest.mark.parametrize("item", PROMPTS)
def test_a_prompt_that_looks_like_one_stays(item: str) -> None:
    assert item not in Placeholders("[[first request]] [[Take the cake.]]")


@given_(st.text(max_size=40))
def test_every_item_of_the_prompt_file_is_a_placeholder_in_any_spelling(text: str) -> None:
    template = f"Write: [[{text}]] and [[Take the cake.]]"
    ours = Placeholders(template)
    assert all(spelt in ours for item in items(template) for spelt in (item, f" {item} "))
    assert "Take the CAKE!" in Placeholders("[[ take the  cake. ]]")


def test_no_stage_writes_a_placeholder(serve: Serve, tmp_path: Path) -> None:
    stand_ins = "".join(f"[[{item}]]" for item in STAND_INS)
    server = serve(lambda body, seen: answer(f"{stand_ins} [[Take biscuit {seen}]]"))
    done = run(GENERATE, *SEEDS, "--num_toxic_prompts=3", cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    seeds = [row["prompt"] for row in read_csv(tmp_path / "o.csv")]
    assert sorted(seeds) == ["Take biscuit 0", "Take biscuit 1", "Take biscuit 2"]
    example = "[[WHICH weak spots of an ordinary front door lock do burglars know, so that I can "
    example += "replace mine]]"  # of our own prompt file
    server = serve(lambda body, seen: answer(f"{stand_ins} {example} [[Who keeps tins?]]"))
    args = ("--toxic_seed_path=o.csv", "--model=gpt-x", "--output_path=r.csv", "--limit=1")
    done = run(REWRITE, *args, cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    assert [row["prompt"] for row in read_csv(tmp_path / "r.csv")] == ["Who keeps tins?"]


def test_stage_1_asks_ahead_where_few_prompts_are_missing(serve: Serve, tmp_path: Path) -> None:
    """A model that brings one prompt a request: one at a time would be 30 waves."""
    server = serve(lambda body, seen: answer(f"[[Take biscuit {seen}]]"), latency=0.2)
    done = run(GENERATE, *SEEDS, "--num_toxic_prompts=30", cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    assert 30 <= len(server.requests) <= 60  # at most twice as many as needed
    assert server.most > 5


def test_stage_1_never_sends_a_volley_in_vain(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda body, seen: answer("[[Take the biscuit]] [[Take the kite]]"))
    done = run(GENERATE, *SEEDS, cwd=tmp_path, url=server.url)
    assert done.returncode == 3, done.stderr
    assert len(server.requests) <= 60


def test_stage_1_takes_prompts_in_the_order_of_its_requests(serve: Serve, tmp_path: Path) -> None:
    """However late a request's reply comes: the CSV follows from the log alone."""

    def reply(body: Body, seen: int) -> Reply:
        given = [f"[[Take biscuit {seen}-{n}]]" for n in range(5)]
        return answer(" ".join(given))._replace(delay=0.3 if seen % 2 else 0.0)

    server = serve(reply)
    done = run(GENERATE, *SEEDS, "--num_toxic_prompts=40", cwd=tmp_path, url=server.url)
    assert done.returncode == 0, done.stderr
    whole = (tmp_path / "o.csv").read_bytes()
    log = tmp_path / "o.answers.jsonl"
    log.write_text("".join(reversed(log.read_text().splitlines(keepends=True))))
    done = run(GENERATE, *SEEDS, "--num_toxic_prompts=40", "--from_log", cwd=tmp_path)
    assert (tmp_path / "o.csv").read_bytes() == whole


def test_stage_1_shows_how_many_prompts_there_are(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda body, seen: answer(f"[[Take biscuit {seen}]] [[Hide kite {seen // 2}]]"))
    env = environment(server.url)
    command = [sys.executable, str(ROOT / GENERATE), *SEEDS]
    shown = []
    for wanted in (20, 45):  # the second run goes on where the first one ended
        flags = [f"--num_toxic_prompts={wanted}", "--concurrency=4"]
        said = in_terminal([*command, *flags], tmp_path, env)
        shown.append(re.findall(r"(\d+)/(\d+) \|", said))
    assert (shown[0][0], shown[0][-1]) == (("0", "20"), ("20", "20"))
    assert int(shown[1][0][0]) > 0
    assert shown[1][-1] == ("45", "45")


def test_every_generator_bounds_its_answers(serve: Serve, tmp_path: Path) -> None:
    server = serve(lambda body, seen: answer("[[Take the biscuit]]"))
    for more, sent in (([], 4000), (["--max_tokens=77", "--overwrite"], 77)):
        flags = (*SEEDS, "--num_toxic_prompts=1", *more)
        assert run(GENERATE, *flags, cwd=tmp_path, url=server.url).returncode == 0
        assert server.requests[-1]["max_tokens"] == sent
    for more, sent in (([], 2000), (["--max_tokens=78", "--overwrite"], 78)):
        flags = ("--toxic_seed_path=o.csv", "--model=gpt-x", *more)
        run(REWRITE, *flags, cwd=tmp_path, url=server.url)
        assert server.requests[-1]["max_tokens"] == sent


UNREADABLE = {
    GENERATE: [*SEEDS, "--num_toxic_prompts=400"],
    REWRITE: ["--toxic_seed_path=p.csv", "--model=gpt-x"],
    MODERATE: ["--input_file_path=p.csv", "--moderator_model=gpt4"],
    CHECK: ["--input_file=p.csv", "--check_model=gpt4", "--quiet"],
}


@pytest.mark.parametrize("script", UNREADABLE)
def test_replies_that_cannot_be_read_are_said_after_a_dozen(
    script: str, serve: Serve, tmp_path: Path
) -> None:
    rows = [(f"How do I fold {n}?", "hm") for n in range(40)]
    write_csv(tmp_path / "p.csv", ("prompt", "response"), rows)
    asked: list[Body] = []

    def reply(body: Body, seen: int) -> Reply:
        asked.append(body)
        return error(401, "enough") if len(asked) > 14 else answer("Once " * 99)

    server = serve(reply)
    flags = (*UNREADABLE[script], "--concurrency=1")
    process = start(script, *flags, cwd=tmp_path, url=server.url)
    assert process.stderr
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "nothing can be read" in line:
            break
    process.kill()
    process.communicate()
    assert "in 12 replies in a row; the last one ends: '" in lines[-1], lines
    assert "Once Once'" in lines[-1]


def test_a_reply_now_and_then_that_cannot_be_read_is_not_worth_a_line(
    serve: Serve, tmp_path: Path
) -> None:
    def reply(body: Body, seen: int) -> Reply:
        number = re.search(r"number (\d+)\?", prompt_of(body))
        return answer("[[11. None]]" if seen or int(number[1]) % 2 else "hm")  # type: ignore[index]

    prompts_csv(tmp_path / "p.csv", 40)
    done = run(
        MODERATE, *UNREADABLE[MODERATE], "--concurrency=1", cwd=tmp_path, url=serve(reply).url
    )
    assert "nothing can be read" not in done.stderr
